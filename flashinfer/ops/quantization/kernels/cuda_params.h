// SPDX-License-Identifier: Apache-2.0
// Configs and Params of the quantisers on a GPU. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"
#include "flashinfer/kernels/common/factor_source.h"
#include "flashinfer/kernels/common/scale_units.h"

namespace flashinfer {

/// What the quantised values are made of.
enum class BlockInput : unsigned char {
  kPlain,     // elements of x
  kGated,     // silu(first half of a row) * second half, rounded to x's type
  kSmoothed,  // times the scale of their column, rounded to x's type
  kInto,      // elements of x, into rows of a larger tensor: other scales, and the padding, stay as they are
};

struct BlockQuantCudaConfig {
  DType dtype;  // of x: f16, bf16, f32, or e4m3 with 4-bit codes
  BlockInput input;
  unsigned char block;          // 16 or 32
  unsigned char ue8m0, fp8;     // as BlockQuantConfig
  unsigned char four_over_six;  // as BlockQuantConfig
  short aligned;                // pieces of 16 bytes of x, and the codes of one, are aligned in every row
  int threads;

  static constexpr const char* kName = "flashinfer::BlockQuantCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("input", input);
    v("block", block);
    v("ue8m0", ue8m0);
    v("fp8", fp8);
    v("four_over_six", four_over_six);
    v("aligned", aligned);
    v("threads", threads);
  }
  constexpr int min_blocks() const { return 768 / threads; }  // up to 80 registers; left alone, the compiler spills
  friend constexpr bool operator==(const BlockQuantCudaConfig&, const BlockQuantCudaConfig&) = default;
};

struct BlockQuantCudaParams {
  const void* x;
  const void* column_scale;  // kSmoothed: [k] of x's type
  uint8_t* codes;
  uint8_t* scales;
  ScaleUnits units;                     // of a batch; its columns are those of the codes, padding included
  uint32_t batches, rows, inner;        // row r of x is (r / inner, r % inner); rows: with codes
  uint32_t blocks;                      // of a row that hold elements; the others' codes and scales are 0
  uint32_t first_row;                   // kInto: row of the units that is row 0 of x, whose rows are runs of `inner`
                                        // blocks, row_stride[1] apart (codes: code_batch_stride)
  int32_t shuffle;                      // as BlockQuantParams
  int64_t second;                       // kGated: elements from the first half to the second
  int64_t batch_stride, row_stride[2];  // of x, in elements
  int64_t code_batch_stride, code_row_stride, scale_batch_stride;  // in bytes
  FactorSource encode;
  const int32_t* mask;  // valid rows of each batch; null: all
  int64_t mask_stride;
  const float* row_most;  // [rows] largest magnitudes, where a row has a scale of its own; null: none
  float token_most;       // e4m3_max * 6
};

/// A scale for each row: its factor, and its reciprocal as a result.
struct RowFactorConfig {
  DType dtype;
  unsigned char aligned;
  short threads;

  static constexpr const char* kName = "flashinfer::RowFactorConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const RowFactorConfig&, const RowFactorConfig&) = default;
};
struct RowFactorParams {
  const void* x;
  uint32_t inner;
  int64_t k, row_stride[2];
  float *most, *encode, *scale;  // [rows] each
  float token_most;
  const float* out;  // `scale` is stored times it; null: 1
};

struct BlockDequantCudaConfig {
  unsigned char fp8, ue8m0;
  short aligned;
  int threads;

  static constexpr const char* kName = "flashinfer::BlockDequantCudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("fp8", fp8);
    v("ue8m0", ue8m0);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const BlockDequantCudaConfig&, const BlockDequantCudaConfig&) = default;
};
struct BlockDequantCudaParams {
  const uint8_t* codes;
  const uint8_t* scales;
  float* y;
  ScaleUnits units;
  uint32_t block;  // elements
  int64_t code_stride, y_stride;
  int64_t scale_row_stride, scale_column_stride;  // of a linear layout
  FactorSource global;
};

/// Groups of a row to 8 bits. `lanes` threads process a group, with `kept` pieces of 16 bytes each in registers; 0
/// kept: two reads.
struct Group8CudaConfig {
  DType dtype, out;
  unsigned char aligned, kept;
  short lanes, threads;

  static constexpr const char* kName = "flashinfer::Group8CudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("out", out);
    v("aligned", aligned);
    v("kept", kept);
    v("lanes", lanes);
    v("threads", threads);
  }
  friend constexpr bool operator==(const Group8CudaConfig&, const Group8CudaConfig&) = default;
};
struct Group8CudaParams {
  const void* x;
  void* q;
  float* scales;
  uint32_t rows, groups, inner, by_rows;  // by_rows: neighbouring threads' groups are in neighbouring rows
  int64_t group;                          // elements
  int64_t x_stride[2], q_stride, scale_row_stride, scale_group_stride;
  float eps;
  int32_t power;  // scales are powers of two
};

/// One scale for a tensor: the largest magnitude in parts, then the codes.
struct Tensor8CudaConfig {
  DType dtype, out;
  short aligned;
  int threads;

  static constexpr const char* kName = "flashinfer::Tensor8CudaConfig";
  template <class V>
  constexpr void visit(V&& v) const {
    v("dtype", dtype);
    v("out", out);
    v("aligned", aligned);
    v("threads", threads);
  }
  friend constexpr bool operator==(const Tensor8CudaConfig&, const Tensor8CudaConfig&) = default;
};
struct Tensor8CudaParams {
  const void* x;
  void* q;
  float* scale;        // the scale that was used
  const float* given;  // null: from the parts
  float* parts;        // largest magnitude of each block of the first pass
  uint32_t part_count, inner;
  int64_t rows, k;
  int64_t x_stride[2], q_stride;
  float fixed;      // not 0: the scale
  float numerator;  // 0: scale = amax / largest value of the codes, 1 for zeros; else scale = min(numerator / amax,
                    // FLT_MAX)
};

}  // namespace flashinfer
