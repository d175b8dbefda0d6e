// SPDX-License-Identifier: Apache-2.0
// Grouped products of FP8 and FP4 with block scales, whose groups are the valid rows of each matrix, or segments of
// rows. All sum in f32, in one order for an element whatever the other rows, and round once; rows of no group become 0.
// ValueError: inconsistent extents, dtypes or numbers of scales, transposed operands (only a[.., m, k] and b[q, n, k]
// are supported), misaligned offsets.
//
// block_scale_type: "nvfp4" (e2m1, an e4m3 scale for 16 along k), "mxfp4" (e2m1, ue8m0 for 32), "mxfp8" (FP8, ue8m0 for
// 32), "mixed" (a as mxfp8, b as mxfp4). Scales are in tiles of 128x4, each matrix padded to whole tiles; any shape
// with that number of bytes.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out[q, r] = a[q, r] . b[q]^T for r < masked_m[q].
struct MaskedScaledBmm {
  TensorView a, b;              // [q, m, k], [q, n, k]; e2m1: bytes of two
  TensorView a_scale, b_scale;  // u8 or e4m3
  TensorView masked_m;          // i32 [q], in [0, m]
  std::string block_scale_type;
  std::optional<TensorView> max_m_device = {};  // ignored
  bool transpose_a = false, transpose_b = true;
  std::optional<DType> out_dtype = {};  // bf16 (when absent), f16 or f32
  std::string backend = "cutile";
  std::optional<TensorView> out = {};  // C++ only: memory for the result, [q, m, n]
};
Tensor masked_scaled_bmm(const MaskedScaledBmm& args);

/// out[r] = a_global_scale * b_global_scale[q] * (a[r] . b[q]^T) for r in [m_indptr[q], m_indptr[q + 1]), in f32.
struct RaggedScaledBmm {
  TensorView a, b;              // [m, k], [q, n, k]; e2m1: bytes of two
  TensorView a_scale, b_scale;  // of all rows of a together
  TensorView m_indptr;          // i32 [q + 1], multiples of 128
  int64_t max_m = 0;            // upper bound of the segment lengths
  std::string block_scale_type;
  bool transpose_a = false, transpose_b = true;
  bool static_persistent = true;                                       // CUDA only
  bool swizzled_layout_a = true;                                       // only true
  std::optional<TensorView> a_global_scale = {}, b_global_scale = {};  // one f32, f32 [q]; 1 when absent
  std::string backend = "cutile";
  std::optional<TensorView> out = {};  // C++ only: f32 [m, n]
};
Tensor ragged_scaled_bmm(const RaggedScaledBmm& args);

/// out[r] = sum over blocks of k of a_scale * b_scale[q] * (a[r, block] . b[q][:, block]) for the rows of segment q.
struct RaggedBlockScaledBmm {
  TensorView a, b;              // [m, k], [q, n, k] e4m3
  TensorView a_scale, b_scale;  // f32 [m, k / 128], [q, n / 128, k / 128]
  TensorView m_indptr;          // i32 [q + 1], multiples of segment_alignment
  int64_t max_m = 0;
  std::optional<TensorView> max_m_device = {};
  bool transpose_a = false, transpose_b = true;
  std::optional<DType> out_dtype = {};  // bf16 (when absent), f16 or f32
  int64_t segment_alignment = 128;
  std::string backend = "cutile";
  std::optional<TensorView> out = {};  // C++ only: [m, n]
};
Tensor ragged_block_scaled_bmm(const RaggedBlockScaledBmm& args);

/// out[:, :, q] = alpha[q] * lhs[:, :, q] . rhs[:, :, q]^T for the first masked_m[q] rows. All operands are views whose
/// last axis, the experts, is the slowest: lhs (codes [m, k / 2, q], scales [32, 4, pad(m, 128) / 128, 4, pad(k /
/// sf_vec_size, 4) / 4, q]), rhs likewise with n, as scaled_fp4_grouped_quantize makes them; e4m3 codes: [m, k, q].
struct GroupedGemmNtMasked {
  op::PagedKv lhs, rhs;                         // (codes, scales)
  TensorView out;                               // [m, n, q], written
  TensorView masked_m;                          // i32 [q], in [0, m]
  std::string ab_dtype;                         // "float4_e2m1fn" or "float8_e4m3fn", what lhs and rhs hold
  std::string sf_dtype;                         // "float8_e4m3fn" or "float8_e8m0fnu"
  std::string c_dtype;                          // "bfloat16", "float16" or "float32", out's
  int64_t sf_vec_size = 0;                      // 16 for e4m3 scales, 32 for ue8m0
  std::optional<TensorView> alpha = {};         // f32 of q elements; 1 when absent
  std::optional<std::string> alpha_dtype = {};  // "float32"
  std::vector<int64_t> mma_tiler_mn = {128, 128}, cluster_shape_mn = {1, 1};  // CUDA only
  std::optional<int64_t> sm_count = {};                                       // CUDA only
  std::optional<TensorView> dst_signals = {};  // NotImplementedError: flags between kernels of a GPU
};
void grouped_gemm_nt_masked(const GroupedGemmNtMasked& args);

/// Offsets of the same groups, each padded to a multiple of 4 rows, and the new position of each row.
struct PadIndptr {
  TensorView m_indptr;                             // i32 or i64 [q + 1], from 0 on, non-decreasing
  std::optional<TensorView> padded_m_indptr = {};  // C++ only: as m_indptr
  std::optional<TensorView> padded_m_rank = {};    // C++ only: as m_indptr, [m_indptr[q]]
};
std::pair<Tensor, Tensor> pad_indptr_to_multiple_of_4(const PadIndptr& args);

}  // namespace flashinfer

#pragma GCC visibility pop
