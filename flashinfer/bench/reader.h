// SPDX-License-Identifier: Apache-2.0
// The limit of ops that only read: the bytes of a row's inputs summed by the same threads.
#pragma once
#include <vector>

#include "flashinfer/cases/parse.h"
#include "flashinfer/op/op.h"

namespace flashinfer::bench {

/// Sums the inputs of blocks: pages of pools in a random order, as a page table gives them, everything else in the
/// order of memory. A turn reads `bytes` (at most all of them) from where the last one ended.
class Reader {
 public:
  Reader(const op::Op& op, const std::vector<cases::Built*>& blocks, double bytes);
  double seconds();
  double moved() const { return moved_; }  // by the last turn

 private:
  struct Piece {
    const char* from;
    int64_t bytes;
  };
  void add(const op::Field& f, const TensorView& t);

  std::vector<Piece> pieces_;
  size_t next_ = 0;
  double bytes_, moved_ = 0;
};

}  // namespace flashinfer::bench
