// SPDX-License-Identifier: Apache-2.0
// Config and Params of the kernel of mixed collectives on GPUs: sums of blocks of the ranks' inputs. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/ops/comm/kernels/meet_params.h"

namespace flashinfer {

struct MixedCommCudaConfig {
  DType dtype;
  unsigned char peers;     // through the ranks' memory; else source[r] is the input of rank r
  unsigned short aligned;  // pieces of 16 bytes of all blocks are
  int threads;

  /// As AllReduceCudaConfig: up to 128 registers a thread.
  constexpr int min_blocks() const { return 512 / threads; }

  static constexpr const char* kName = "flashinfer::MixedCommCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("peers", peers);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const MixedCommCudaConfig&, const MixedCommCudaConfig&) = default;
};

/// Elements [first, last) of blocks of `block` elements. Sum s is of block `own` of the inputs of ranks
/// rank[s * addends ...], in this order, and goes to block s of `out`; `copies`: of one rank, its bytes.
struct MixedCommCudaParams {
  const void* source[kAllReduceRanks];
  const void* in;  // this rank's input
  void* out;
  int64_t block, first, last, slot;  // slot: bytes
  int blocks, own, sums, addends, copies;
  unsigned char rank[kAllReduceRanks];
  MeetCudaParams meet;
};

}  // namespace flashinfer
