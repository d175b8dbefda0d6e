// SPDX-License-Identifier: Apache-2.0
// Grouped products of tokens sorted by expert, whose scales are padded to 4 rows an expert, with optional SwiGLU.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// out[r] = a[r] . b[e] of the expert whose rows [m_indptr[e], m_indptr[e + 1]) contain r, sums over blocks of 128
/// along k times a_scale and b_scale. With is_gated b's rows are first the linear half, then the gate: out = silu(gate)
/// * linear, of n / 2 columns, from unrounded sums. ValueError: another granularity, scale shapes, an m_indptr that
/// decreases or does not end at m.
struct MoeGemmFp8NtGroupwise {
  TensorView a;        // [m, k] e4m3
  TensorView b;        // [E, n, k] e4m3
  TensorView a_scale;  // f32 [ceil(k / 128), (m + 3 E) / 4 * 4]; expert e's begin at column (m_indptr[e] + 3 e) / 4 * 4
  TensorView b_scale;  // f32 [E, ceil(k / 128), ceil(n / 128)]
  TensorView m_indptr;  // i32 [E + 1]
  std::vector<int64_t> scale_granularity_mnk = {1, 128, 128};
  std::string scale_major_mode = "MN";
  std::string backend = "cute";
  std::optional<TensorView> out = {};   // [m, n or n / 2] bf16
  std::optional<DType> out_dtype = {};  // bf16
  bool is_gated = false;
};
Tensor moe_gemm_fp8_nt_groupwise(const MoeGemmFp8NtGroupwise& args);

/// The same with ue8m0 scales for 128 or 32 elements along k of each row of a and b, four in an int32, the first in the
/// lowest byte.
struct MoeGemmMxfp8NtGroupwise {
  TensorView a;        // [m, k] e4m3, k a multiple of the granularity
  TensorView b;        // [E, n, k] e4m3
  TensorView a_scale;  // i32 [(m + 3 E) / 4 * 4, ceil(k / (4 g))]; expert e's rows begin at (m_indptr[e] + 3 e) / 4 * 4
  TensorView b_scale;  // i32 [E, n, ceil(k / (4 g))]
  TensorView m_indptr;                                       // i32 [E + 1]
  std::vector<int64_t> scale_granularity_mnk = {1, 1, 128};  // the last: 128 or 32
  std::string scale_major_mode = "MN";
  std::string backend = "cute";
  std::optional<TensorView> out = {};
  std::optional<DType> out_dtype = {};
  bool is_gated = false;
};
Tensor moe_gemm_mxfp8_nt_groupwise(const MoeGemmMxfp8NtGroupwise& args);

}  // namespace flashinfer

#pragma GCC visibility pop
