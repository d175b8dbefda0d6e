// SPDX-License-Identifier: Apache-2.0
// Config and Params of the all-reduce kernels. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/scale_layout.h"

namespace flashinfer {

inline constexpr int kAllReduceRanks = 64;

enum class AllReduceQuant : unsigned char {
  kNone,
  kFp8,         // e4m3, one scale for all
  kNvfp4,       // e2m1, an e4m3 scale for 16
  kGroupFp8,    // e4m3, a power of two for `group` elements
  kDynamicFp8,  // e4m3, an f32 scale a row
};

struct AllReduceConfig {
  DType dtype;             // of input, output, residual and normalised rows
  DType weight;            // of rms_gamma: `dtype` or f32; `dtype` when there is no norm
  unsigned char fp32_acc;  // the sum is rounded once, not after each rank
  unsigned char norm;      // residual_in is added and the sum normalised; else the sum is the result
  AllReduceQuant quant;    // of the normalised row

  static constexpr const char* kName = "flashinfer::AllReduceConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("weight", weight);
    v("fp32_acc", fp32_acc);
    v("norm", norm);
    v("quant", quant);
  }
  friend constexpr bool operator==(const AllReduceConfig&, const AllReduceConfig&) = default;
};

/// Rows [first, last) of tensors that are contiguous [rows, d]. Those before `first` are not in the sources.
struct AllReduceParams {
  const void* source[kAllReduceRanks];  // the ranks' inputs; with block_rows: the sums of the rows of each block
  int ranks;                            // whose inputs are added; 1 with block_rows
  int64_t block_rows;                   // > 0: row first + i is row i % block_rows of source[i / block_rows]
  int64_t first, last, d, rows_per_task;
  void* out;  // the sum; null: none
  const void* residual_in;
  void* residual_out;
  const void* gamma;
  void* norm_out;  // null: none
  void* quant_out;
  void* scale_out;
  int64_t scale_stride;  // group: of columns, in elements
  int64_t padded_rows;   // nvfp4, group: scales of rows [last, padded_rows) become 0; group: but for the last column
  SfLayout layout;
  int64_t group;
  float eps, weight_bias, scale;
  unsigned char past_caches;  // `out` and `norm_out` are too large for the caches: written around them where possible
  void* scratch;              // 2 * d elements of `dtype` a task
};

}  // namespace flashinfer
