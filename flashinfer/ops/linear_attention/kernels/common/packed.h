// SPDX-License-Identifier: Apache-2.0
// What kernels over packed sequences share: rows of q, k, v as f32, states in and out.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/rows.h"
#include "flashinfer/ops/linear_attention/kernels/gdn/chunk_params.h"

namespace flashinfer::cpu::linear {

/// Row `token` of head `head` of `heads`, whose rows are shared by neighbouring heads when the tensor has fewer.
FI_VEC_INLINE int64_t offset(const GdnPacked& t, int64_t token, int64_t head, int64_t heads) {
  return token * t.token + head * t.heads / heads * t.head;
}
/// Rounds a row to `type` and back.
inline void round_row(DType type, float* x, int64_t n) {
  if (type == DType::kF32) return;
  constexpr int64_t kPart = 64;
  bf16_t memory[kPart];
  for (int64_t i = 0; i < n; i += kPart) {
    const int64_t left = n - i < kPart ? n - i : kPart;
    narrow_row(type, x + i, left, memory, 0);
    widen_row(type, memory, 0, left, x + i);
  }
}
/// A row of q or k: normalised, and then rounded to the type of the inputs, when asked.
inline void read_row(const GdnPacked& t, int64_t token, int64_t head, int64_t heads, int64_t n, bool normalise,
                     float* to) {
  widen_row(t.type, t.data, offset(t, token, head, heads), n, to);
  if (!normalise) return;
  scale_row(to, inverse_norm(to, n), n);
  round_row(t.type, to, n);
}
/// The same of bf16 tensors, as f32 and as bf16: padded(n) elements each.
inline void read_row_pairs(const GdnPacked& t, int64_t token, int64_t head, int64_t heads, int64_t n, bool normalise,
                           float* to, bf16_t* to16) {
  constexpr int64_t L = Vec::kLanes;
  const bf16_t* const from = static_cast<const bf16_t*>(t.data) + offset(t, token, head, heads);
  Vec by = splat(1.0f);
  if (normalise) {
    Vec squares[2] = {zero(), zero()};
    for (int64_t i = 0; i < n; i += 2 * L) {
      const Pairs x = load_pairs_n(from + i, n - i < 2 * L ? n - i : 2 * L);
      Vec& sum = squares[i / (2 * L) % 2];
      sum = dot_pairs(sum, x, x);
    }
    by = splat(1.0f / __builtin_sqrtf(reduce_add(squares[0] + squares[1]) + 1e-6f));
  }
  const auto part = [&](int64_t i) { return i + L <= n ? load(from + i) : i < n ? load_n(from + i, n - i) : zero(); };
  for (int64_t i = 0; i < padded(n); i += 2 * L) {
    write_pair(to16 + i, part(i) * by, part(i + L) * by);
    store(to + i, load(to16 + i)), store(to + i + L, load(to16 + i + L));
  }
}

/// Row v of a state as f32; zeros when there is no state.
FI_VEC_INLINE void read_state_row(const GdnStateTensor& t, int64_t slot, int64_t head, int64_t v, int64_t n,
                                  float* to) {
  if (t.data) return widen_row(t.type, t.data, slot * t.slot + head * t.head + v * t.row, n, to);
  for (int64_t i = 0; i < padded(n); ++i) to[i] = 0;
}
FI_VEC_INLINE void write_state_row(const GdnStateTensor& t, int64_t slot, int64_t head, int64_t v, int64_t n,
                                   const float* from) {
  narrow_row(t.type, from, n, t.data, slot * t.slot + head * t.head + v * t.row);
}

}  // namespace flashinfer::cpu::linear
