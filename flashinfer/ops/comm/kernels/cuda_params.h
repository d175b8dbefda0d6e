// SPDX-License-Identifier: Apache-2.0
// Config and Params of the all-reduce kernel for GPUs, and what a rank's memory holds. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/factor_source.h"
#include "flashinfer/ops/comm/kernels/params.h"

namespace flashinfer {

/// Blocks of a launch, at most: each has its flags.
inline constexpr int kAllReduceBlocks = 64;
/// A rank's memory begins with flags, u32 [kAllReduceBlocks][kAllReduceRanks]: how many phases the block of that rank
/// has told. Then two slots for its input, which calls use in turn, and one for the sums of its part of the rows.
inline constexpr int64_t kAllReduceFlagBytes = int64_t{kAllReduceBlocks} * kAllReduceRanks * 4;
inline constexpr int kAllReduceInputSlots = 2, kAllReduceGpuSlots = 3;

struct AllReduceCudaConfig {
  DType dtype, weight;           // as AllReduceConfig
  unsigned char fp32_acc, norm;  // the same
  AllReduceQuant quant;          // the same
  unsigned char one_shot;        // every rank sums all rows; else each a part of them, which the others read
  unsigned char aligned;         // pieces of 16 bytes of all tensors are aligned
  unsigned char ranks;
  int threads;

  /// Up to 128 registers a thread, as NormQuantCudaConfig: left alone, ptxas takes fewer and spills.
  constexpr int min_blocks() const { return 512 / threads; }

  static constexpr const char* kName = "flashinfer::AllReduceCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("weight", weight);
    v("fp32_acc", fp32_acc);
    v("norm", norm);
    v("quant", quant);
    v("one_shot", one_shot);
    v("aligned", aligned);
    v("ranks", ranks);
    v("threads", threads);
  }
  friend constexpr bool operator==(const AllReduceCudaConfig&, const AllReduceCudaConfig&) = default;
};

/// The rows are [0, row.last) of `input` and of the results. Without a norm a row is a tile of threads * 16 bytes; the
/// last one may be shorter: the tensor ends at `elements`.
struct AllReduceCudaParams {
  AllReduceParams row;  // source[r]: the memory of rank r
  FactorSource scale;   // of FP8 and FP4
  const void* input;
  uint32_t* phases;        // of this rank alone: those that each block has passed
  int64_t elements, slot;  // slot: bytes
  uint64_t limit;          // nanoseconds that a block waits for another rank
  int rank;
};

}  // namespace flashinfer
