// SPDX-License-Identifier: Apache-2.0
// Other libraries that do the work of a row, timed in turns with it: each in a process of its own, so that its threads
// do not spin against ours.
#pragma once
#include <memory>
#include <string>

#include "flashinfer/op/op.h"

#pragma GCC visibility push(default)

namespace flashinfer::bench {

/// The libraries that bench/peers.py knows, in the order of the columns.
inline constexpr const char* kPeers[] = {"torch", "onednn", "zentorch", "llama.cpp", "ik_llama.cpp"};

class Peer {
 public:
  virtual ~Peer() = default;
  virtual const std::string& name() const = 0;
  /// Makes the inputs of a row ready, on `threads` threads; false: there is nothing to compare it with.
  virtual bool prepare(const op::Op& op, const op::Case& c, int threads) = 0;
  /// The median time of `calls` calls of the prepared row, in seconds.
  virtual double seconds(int calls) = 0;
};

/// One of kPeers (else ValueError), by the interpreter `python`, started at the first row. A library that is not
/// installed, and an interpreter that does not start, has nothing to compare with. An error of the library is printed
/// by the process, and the row has nothing to compare with.
std::unique_ptr<Peer> library_peer(const std::string& name, const std::string& python);

}  // namespace flashinfer::bench

#pragma GCC visibility pop
