// SPDX-License-Identifier: Apache-2.0
// Which candidate runs a call: the one loop over an op's candidates, for the call itself and for explain().
#pragma once
#include <cstddef>
#include <new>
#include <string>
#include <vector>

#include "flashinfer/op/op.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// Where the tensors of a call are, from one walk over them.
struct Placement {
  Device device = kCpu;              // of the first tensor outside host memory; absent outputs are allocated there
  const Field* on_device = nullptr;  // that tensor
  const Field* on_host = nullptr;    // the first one in host memory that may not stay there (op::host_memory)
  const Field* elsewhere = nullptr;  // the first one on a third device ...
  Device elsewhere_device = kCpu;    // ... this one
};
Placement placement_of(const Op& op, const void* block);
/// fn(field, view) for the tensors of all members.
template <class F>
void for_each_tensor(const Op& op, const void* block, F&& fn) {
  for (const Field& f : op.fields) {
    if (!f.tensors) continue;
    const Views v = f.tensors(block);
    for (int i = 0; i < v.size(); ++i) fn(f, v[i]);
  }
}
/// The device of a call: that of its first tensor outside host memory, else the CPU.
Device device_of(const Op& op, const void* block);

/// A candidate that does not run the call, and why.
struct Rejection {
  const Candidate* candidate;
  std::string why;
};

/// The first candidate, in the order of the op's table, that supports the call and what it prepared. Candidates for
/// another place than the tensors' are passed over. A candidate that the caller or a ForceCandidate names is the only
/// one.
class Selector {
 public:
  Selector(const Op& op, void* block, const Placement& placement) : op_(op), block_(block), placement_(placement) {}
  ~Selector() {
    if (prepared_) prepared_->~Prepared();
  }
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;

  /// False when no candidate supports the call; `rejections` then holds them all. It never throws for that.
  bool find();
  /// As find(); NotImplementedError that lists the rejections, and a warning, once an op, when only the reference is
  /// left.
  void require();

  const Candidate& candidate() const { return *candidate_; }
  Prepared& prepared() { return *prepared_; }
  std::vector<Rejection> rejections;

 private:
  bool prepare(const Candidate& c);
  std::string misplaced(const Candidate& c) const;

  const Op& op_;
  void* block_;
  const Placement& placement_;
  const Candidate* candidate_ = nullptr;
  Prepared* prepared_ = nullptr;  // in memory_: a Prepared never moves
  alignas(Prepared) std::byte memory_[sizeof(Prepared)];
};

/// Within the scope, calls of this thread use only the candidate of this name (cases, bench); NotImplementedError with
/// the reason when that one does not support a call. An empty name ends an outer scope's choice.
class ForceCandidate {
 public:
  explicit ForceCandidate(std::string name);
  ~ForceCandidate();
  ForceCandidate(const ForceCandidate&) = delete;
  ForceCandidate& operator=(const ForceCandidate&) = delete;

 private:
  const std::string* previous_;
  std::string name_;
};

}  // namespace flashinfer::op

#pragma GCC visibility pop
