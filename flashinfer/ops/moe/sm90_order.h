// SPDX-License-Identifier: Apache-2.0
// 4-bit weights and their scales in the order of FlashInfer's kernels for SM90, which its functions
// interleave_moe_weights_for_sm90_mixed_gemm and interleave_moe_scales_for_sm90_mixed_gemm make: CPU and GPU put those
// of the experts that a call uses back in plain order first. Scales of five dimensions say that both are so.
#pragma once
#include <span>

#include "flashinfer/ops/moe/fused_args.h"

namespace flashinfer::moe {

bool has_sm90_order(const Moe& a);
/// Throws for scales of five dimensions that are not those of [experts, n, k] weights.
void check_sm90_scales(const char* what, const TensorView& t, Mode mode, int64_t experts, int64_t n, int64_t k);
/// Codes of [E, n, k/2] bytes in plain order, of the experts that are used; the others' are not written. Of each 16
/// rows r and r + 8 lie together, for each 64 columns c = 32 u + 16 h + d (d < 16), in row r + 8 h. MXFP4: 16 bits 8 u
/// + d, d < 8, hold four codes, (r, c) A, (r + 8, c) B, (r, c + 8) C, (r + 8, c + 8) D, from bit 0 on: C012 B012 A012
/// C3 D12 B3 D0 D3 A3. Integers: 16 bits 8 u + 2 (d / 4) + s hold (r + 8 s, c) of four columns in order.
Tensor codes_in_plain_order(const TensorView& t, bool fp4, std::span<const char> used);
/// Scales [E, n, columns] of `item` bytes, `each` of them for 128 columns, in plain order: given are [E, n/64,
/// columns/each, 64/q, q * each], q = 16 / (item * each) rows that are 64 / q apart.
Tensor scales_in_plain_order(const TensorView& t, DType type, int64_t n, int64_t columns, int64_t each,
                             std::span<const char> used);

}  // namespace flashinfer::moe
