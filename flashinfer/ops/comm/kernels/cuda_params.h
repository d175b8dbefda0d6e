// SPDX-License-Identifier: Apache-2.0
// Config and Params of the sums for GPUs, and what a rank's memory holds. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/kernels/common/factor_source.h"
#include "flashinfer/ops/comm/kernels/meet_params.h"
#include "flashinfer/ops/comm/kernels/params.h"

namespace flashinfer {

/// How the ranks' inputs come to the sum.
enum class AllReduceWay : unsigned char {
  kOneShot,   // through the ranks' memory; every rank sums all rows
  kTwoShots,  // the same; each sums a part of the rows, which the others read
  kScatter,   // the same; each sums its block of the tensor, which is its result
  kGathered,  // they are in this GPU's memory
  kAddend,    // there is no sum: what this rank adds is the result
};
/// What a rank adds.
enum class AllReduceAddend : unsigned char {
  kInput,
  kExperts,   // the sum of its experts' rows: row t of expert e is row e * rows + t
  kPermuted,  // the sum of rows that `index` names
};

struct AllReduceCudaConfig {
  DType dtype, weight;           // as AllReduceConfig
  unsigned char fp32_acc, norm;  // the same
  AllReduceQuant quant;          // the same
  AllReduceWay way;
  unsigned char aligned;  // pieces of 16 bytes of all tensors are aligned
  unsigned char ranks;
  AllReduceAddend addend;
  DType scale;           // of the experts' scales: f32 or `dtype`; `dtype` when there are none
  unsigned char scaled;  // experts' rows are multiplied by scales
  unsigned char adds;    // a row is added behind the experts'
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
    v("way", way);
    v("aligned", aligned);
    v("ranks", ranks);
    v("addend", addend);
    v("scale", scale);
    v("scaled", scaled);
    v("adds", adds);
    v("threads", threads);
  }
  friend constexpr bool operator==(const AllReduceCudaConfig&, const AllReduceCudaConfig&) = default;
};

/// Rows of row.d elements, of which each token adds one of each expert, or those of its choices.
struct ExpertsCudaParams {
  const void* x;
  const void* scales;    // [experts, rows]; permuted: [rows, experts]
  const int32_t* index;  // permuted: [rows, experts]; negative, or not a row of x: none
  const void* add;
  int64_t experts, x_rows;
};

/// The rows are [0, row.last) of `input` and of the results. Without norm and experts a row is a tile of threads * 16
/// bytes; the last one may be shorter: the tensor ends at `elements`, of kScatter each rank's block.
struct AllReduceCudaParams {
  AllReduceParams row;  // source[r]: the memory of rank r; gathered: its input
  FactorSource scale;   // of FP8 and FP4
  const void* input;
  ExpertsCudaParams experts;
  MeetCudaParams meet;
  int64_t elements, slot;  // slot: bytes
  int64_t gap;             // kScatter: elements of `input` between two blocks; `input` is rank * gap behind its begin
};

}  // namespace flashinfer
