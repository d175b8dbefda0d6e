// SPDX-License-Identifier: Apache-2.0
// Products in which each group of rows has its own weight: experts of a mixture, adapters, segments.
//
// Groups may be empty and of any length. Rows of no group (before m_indptr[0], from m_indptr[E] on, of index -1,
// masked) are written as 0. An element's sum depends neither on its row's group nor on the other rows.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/core/tensor.h"
#include "flashinfer/op/object.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out[r] = a[r] . b[e]^T for m_indptr[e] <= r < m_indptr[e + 1]
struct GroupedMmBf16 {
  TensorView a;                    // [m, k] bf16
  TensorView b;                    // [e, n, k] bf16
  TensorView m_indptr;             // [e + 1] i32, non-decreasing, at most m
  std::optional<TensorView> out;   // [m, n]
  DType out_dtype = DType::kBF16;  // bf16, f16 or f32
  std::string backend = "cudnn";
  int64_t tactic = -1;  // CUDA only
};
Tensor grouped_mm_bf16(const GroupedMmBf16& args);

/// The same of FP8 matrices, times alpha.
struct GroupedMmFp8 {
  TensorView a, b;  // e4m3 or e5m2, not both e5m2
  TensorView m_indptr;
  std::optional<TensorView> alpha;  // one f32; 1 when absent
  std::optional<TensorView> out;
  DType out_dtype = DType::kBF16;
  std::string backend = "cudnn";
  int64_t tactic = -1;
};
Tensor grouped_mm_fp8(const GroupedMmFp8& args);

/// The same of MXFP8 matrices.
struct GroupedMmMxfp8 {
  TensorView a, b;                  // e4m3 or e5m2
  TensorView a_descale, b_descale;  // u8 ue8m0, 128x4, of all rows of a together; of each matrix of b
  TensorView m_indptr;
  std::optional<TensorView> out;
  DType out_dtype = DType::kBF16;
  std::string backend = "cudnn";
  int64_t tactic = -1;
};
Tensor grouped_mm_mxfp8(const GroupedMmMxfp8& args);

/// The same of NVFP4 (block_size 16) or MXFP4 (32) matrices, times alpha.
struct GroupedMmFp4 {
  TensorView a, b;                  // [m, k / 2], [e, n, k / 2] u8 or e2m1x2
  TensorView a_descale, b_descale;  // e4m3 or ue8m0, 128x4, as in GroupedMmMxfp8
  TensorView m_indptr;
  std::optional<TensorView> alpha;
  std::optional<TensorView> out;
  DType out_dtype = DType::kBF16;
  int64_t block_size = 16;
  std::string backend = "cudnn";
  int64_t tactic = -1;
};
Tensor grouped_mm_fp4(const GroupedMmFp4& args);

/// out[r] = sum over blocks of k of a_scale * b_scale[e] * (a[r, block] . b[e][:, block])
struct GroupGemmFp8NtGroupwise {
  TensorView a, b;      // [m, k], [e, n, k] e4m3 or e5m2
  TensorView a_scale;   // f32, "MN": [k / gk, m / gm]; "K": [m / gm, k / gk]
  TensorView b_scale;   // f32, "MN": [e, k / gk, n / gn]; "K": [e, n / gn, k / gk]
  TensorView m_indptr;  // [e + 1] i32
  std::vector<int64_t> scale_granularity_mnk = {1, 128, 128};
  std::string scale_major_mode = "MN";
  int64_t mma_sm = 1;
  std::optional<TensorView> out;
  std::optional<DType> out_dtype;
  std::string backend = "trtllm";
  int64_t segment_alignment = 1;  // m_indptr has multiples of it, >= 1
};
Tensor group_gemm_fp8_nt_groupwise(const GroupGemmFp8NtGroupwise& args);

/// Row r uses expert m_indices[r]; -1: none.
struct GroupDeepgemmFp8NtGroupwise {
  TensorView a, b;              // [m, k], [e, n, k] e4m3
  TensorView a_scale, b_scale;  // f32 [m / gm, k / gk], [e, n / gn, k / gk]
  TensorView m_indices;         // [m] i32
  std::vector<int64_t> scale_granularity_mnk = {1, 128, 128};
  std::optional<TensorView> out;
  std::optional<DType> out_dtype;
};
Tensor group_deepgemm_fp8_nt_groupwise(const GroupDeepgemmFp8NtGroupwise& args);

/// The same with non-decreasing m_indices without -1, whose groups start at multiples of 128 rows.
struct GroupGemmFp8NtGroupwiseContiguous {
  TensorView a, b;
  TensorView a_scale, b_scale;
  TensorView m_indices;
  std::vector<int64_t> scale_granularity_mnk = {1, 128, 128};
  std::optional<TensorView> out;
  std::optional<DType> out_dtype;  // bf16
  bool validate_indices = false;   // ignored: they are always checked
};
Tensor group_gemm_fp8_nt_groupwise_contiguous(const GroupGemmFp8NtGroupwiseContiguous& args);

/// Rows [0, masked_m[e]) of each a[e] times b[e]^T.
struct BatchDeepgemmFp8NtGroupwise {
  TensorView a, b;              // [e, m, k], [e, n, k] e4m3
  TensorView a_scale, b_scale;  // f32 [e, m / gm, k / gk], [e, n / gn, k / gk]
  TensorView masked_m;          // [e] i32, at most m
  int64_t expected_m = 0;       // a hint, ignored
  std::vector<int64_t> scale_granularity_mnk = {1, 128, 128};
  std::optional<TensorView> out;  // [e, m, n]
  std::optional<DType> out_dtype;
  std::string backend = "deepgemm";
};
Tensor batch_deepgemm_fp8_nt_groupwise(const BatchDeepgemmFp8NtGroupwise& args);

/// a MXFP8, b MXFP4. The scale factors of group e start at row (m_indptr[e] + 127 e) / 128 * 128 of a_scale: each group
/// is padded.
struct GroupGemmMxfp4NtGroupwise {
  TensorView a;        // [m, k] e4m3 or e5m2
  TensorView b;        // [e, n, k / 2] u8
  TensorView a_scale;  // [padded m, k / 32] u8 ue8m0, 128x4
  TensorView b_scale;  // [e, padded n, k / 32] u8 ue8m0, 128x4
  TensorView m_indptr;
  int64_t mma_sm = 1, tile_m = 128, tile_n = 128, tile_k = 128;  // CUDA only
  bool swap_ab = true;
  std::optional<TensorView> out;
  std::optional<DType> out_dtype;  // bf16 or f16
};
Tensor group_gemm_mxfp4_nt_groupwise(const GroupGemmMxfp4NtGroupwise& args);

/// Both NVFP4, scales placed as in GroupGemmMxfp4NtGroupwise.
struct GroupGemmNvfp4NtGroupwise {
  TensorView a, b;              // [m, k / 2], [e, n, k / 2] u8
  TensorView a_scale, b_scale;  // [padded m, k / 16], [e, padded n, k / 16] u8 or e4m3, 128x4
  TensorView m_indptr;
  std::optional<TensorView> alpha;  // f32 [e]
  int64_t tile_m = 128, tile_n = 128, tile_k = 128;
  bool swap_ab = true;
  std::optional<TensorView> out;
  std::optional<DType> out_dtype;
};
Tensor group_gemm_nvfp4_nt_groupwise(const GroupGemmNvfp4NtGroupwise& args);

struct SegmentGemmInit {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer;
  std::string backend = "auto";
};
struct SegmentGemmReset {
  op::Object* self = nullptr;
  TensorView float_workspace_buffer, int_workspace_buffer;  // unused on the CPU
};
/// Segment i of x times weights[weight_indices[i]], i when there are no indices. LoRA: one segment a request, one
/// weight an adapter.
struct SegmentGemmRun {
  op::Object* self = nullptr;
  TensorView x;            // [sum of lengths, d_in] bf16|f16 (f32: by the reference)
  TensorView weights;      // [w, d_out, d_in] when column-major, else [w, d_in, d_out]
  int64_t batch_size = 0;  // segments
  bool weight_column_major = false;
  std::optional<TensorView> out{};                                       // [sum of lengths, d_out] as x
  std::optional<TensorView> seg_lens{}, seg_indptr{}, weight_indices{};  // [s], [s + 1], [s]; one of the first two
};
class SegmentGEMMWrapper {
 public:
  explicit SegmentGEMMWrapper(const TensorView& float_workspace_buffer, const std::string& backend = "auto");
  /// ValueError: neither lengths nor indptr, extents that are inconsistent, an index that is no weight.
  Tensor run(SegmentGemmRun args);
  void reset_workspace_buffer(const TensorView& float_workspace_buffer, const TensorView& int_workspace_buffer);

 private:
  op::Object self_;
};

}  // namespace flashinfer

#pragma GCC visibility pop
