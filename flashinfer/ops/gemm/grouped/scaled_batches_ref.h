// SPDX-License-Identifier: Apache-2.0
// References of the batches of scaled products, from the tensors of the call.
#pragma once
#include <string>

#include "flashinfer/ops/gemm/grouped/ref.h"
#include "flashinfer/ops/gemm/grouped/scaled_batches.h"

namespace flashinfer::gemm {

struct BlockType {
  bool a_fp4, b_fp4, e8m0;
  int32_t block;
};
inline BlockType block_type(const std::string& name) {
  if (name == "nvfp4") return {true, true, false, 16};
  if (name == "mxfp4") return {true, true, true, 32};
  return {false, name == "mixed", true, 32};
}
/// Matrix q is rows [q m, (q + 1) m) of the product; scale factors of each matrix of a and of b by themselves.
inline void reference(const MaskedScaledBmm& a) {
  const BlockType t = block_type(a.block_scale_type);
  const int64_t q = a.a.size(0), m = a.a.size(1), n = a.b.size(1), depth = a.a.size(2) * (t.a_fp4 ? 2 : 1);
  const ref::ByteScales of_a{a.a_scale, SfLayout::k128x4, t.e8m0, m, depth, t.block},
      of_b{a.b_scale, SfLayout::k128x4, t.e8m0, n, depth, t.block};
  ref::batched_product(
      {.rows = q * m,
       .n = n,
       .depth = depth,
       .matrix_of = ref::by_counts(a.masked_m, m),
       .a = [&](int64_t r,
                int64_t k) { return ref::stacked_at(a.a, t.a_fp4, r / m, r % m, k) * of_a.at(r / m, r % m, k); },
       .b = [&](int64_t e, int64_t j, int64_t k) { return ref::stacked_at(a.b, t.b_fp4, e, j, k) * of_b.at(e, j, k); }},
      *a.out);
}
inline void reference(const RaggedScaledBmm& a) {
  const BlockType t = block_type(a.block_scale_type);
  const int64_t m = a.a.size(0), n = a.b.size(1), depth = a.a.size(1) * (t.a_fp4 ? 2 : 1);
  const ref::ByteScales of_a{a.a_scale, SfLayout::k128x4, t.e8m0, m, depth, t.block},
      of_b{a.b_scale, SfLayout::k128x4, t.e8m0, n, depth, t.block};
  ref::grouped_product(
      {.rows = m,
       .n = n,
       .depth = depth,
       .matrix_of = ref::by_offsets(a.m_indptr),
       .a = [&](int64_t r, int64_t k) { return ref::narrow_at(a.a, t.a_fp4, r, k) * of_a.at(0, r, k); },
       .b = [&](int64_t e, int64_t j, int64_t k) { return ref::stacked_at(a.b, t.b_fp4, e, j, k) * of_b.at(e, j, k); },
       .alpha =
           [&](int64_t e) {
             return ref::one_or(a.a_global_scale, 1) * (a.b_global_scale ? ref::get(*a.b_global_scale, e) : 1.0);
           }},
      *a.out);
}
inline void reference(const RaggedBlockScaledBmm& a) {
  const ref::BlockGrid of_a{a.a_scale, false, 1, 128}, of_b{a.b_scale, false, 128, 128};
  ref::grouped_product(
      {.rows = a.a.size(0),
       .n = a.b.size(1),
       .depth = a.a.size(1),
       .matrix_of = ref::by_offsets(a.m_indptr),
       .a = [&](int64_t r, int64_t k) { return ref::at(a.a, {r, k}) * of_a.at(0, r, k); },
       .b = [&](int64_t e, int64_t j, int64_t k) { return ref::at(a.b, {e, j, k}) * of_b.at(e, j, k); }},
      *a.out);
}
/// Experts are the last axis of every tensor. Scale (row, column) of expert e is at [row % 32, row % 128 / 32,
/// row / 128, column % 4, column / 4, e].
inline void reference(const GroupedGemmNtMasked& a) {
  const bool fp4 = a.ab_dtype == "float4_e2m1fn", e8m0 = a.sf_dtype == "float8_e8m0fnu";
  const TensorView &x = a.lhs.first, &y = a.rhs.first;
  const int64_t m = x.size(0), n = y.size(0), q = x.size(2);
  const auto scale = [&](const TensorView& t, int64_t e, int64_t row, int64_t k) {
    const int64_t c = k / a.sf_vec_size;
    int64_t place = 0;
    const int64_t index[6] = {row % 32, row % 128 / 32, row / 128, c % 4, c / 4, e};
    for (int i = 0; i < 6; ++i) place += index[i] * t.stride(i);
    return ref::scale_of_byte(static_cast<const uint8_t*>(t.data())[place], e8m0);
  };
  const auto code = [&](const TensorView& t, int64_t e, int64_t row, int64_t k) {
    return ref::narrow_at(t.select(2, e), fp4, row, k);
  };
  ref::grouped_product(
      {.rows = q * m,
       .n = n,
       .depth = x.size(1) * (fp4 ? 2 : 1),
       .matrix_of = ref::by_counts(a.masked_m, m),
       .a = [&](int64_t r, int64_t k) { return code(x, r / m, r % m, k) * scale(a.lhs.second, r / m, r % m, k); },
       .b = [&](int64_t e, int64_t j, int64_t k) { return code(y, e, j, k) * scale(a.rhs.second, e, j, k); },
       .alpha = [&](int64_t e) { return a.alpha ? ref::get(a.alpha->view({q}), e) : 1.0; }},
      [&](int64_t r, int64_t j, double v) { ref::put(a.out, {r % m, j, r / m}, v); });
}

}  // namespace flashinfer::gemm
