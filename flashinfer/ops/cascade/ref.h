// SPDX-License-Identifier: Apache-2.0
// Merging attention states from the definition, in double precision.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ref {

/// v[d] and s of one row from its states; `at(i)` gives (row of v, lse).
struct MergeRow {
  std::vector<double> v;
  double s;
};
template <class GetS, class GetV>
MergeRow merge_row(int64_t states, int64_t dim, GetS s_of, GetV v_of) {
  MergeRow r{std::vector<double>(static_cast<size_t>(dim), 0.0), -INFINITY};
  double m = -INFINITY, sum = 0;
  for (int64_t i = 0; i < states; ++i) m = std::max(m, s_of(i));
  if (m == -INFINITY) return r;
  for (int64_t i = 0; i < states; ++i) sum += std::exp2(s_of(i) - m);
  for (int64_t i = 0; i < states; ++i)
    for (int64_t d = 0; d < dim && s_of(i) != -INFINITY; ++d)
      r.v[static_cast<size_t>(d)] += std::exp2(s_of(i) - m) / sum * v_of(i, d);
  r.s = m + std::log2(sum);
  return r;
}
inline void put_row(const MergeRow& r, const TensorView& v, const TensorView& s, int64_t n, int64_t h) {
  for (int64_t d = 0; d < v.size(2); ++d) put(v, {n, h, d}, r.v[static_cast<size_t>(d)]);
  put(s, {n, h}, r.s);
}
/// Two states of every row into (v, s); rows of a token whose mask is 0 are left.
inline void merge_pair(const TensorView& va, const TensorView& sa, const TensorView& vb, const TensorView& sb,
                       const TensorView* mask, const TensorView& v, const TensorView& s) {
  for (int64_t n = 0; n < va.size(0); ++n)
    for (int64_t h = 0; h < va.size(1); ++h) {
      if (mask && at(*mask, {n}) == 0) continue;
      put_row(merge_row(
                  2, va.size(2), [&](int64_t i) { return at(i ? sb : sa, {n, h}); },
                  [&](int64_t i, int64_t d) { return at(i ? vb : va, {n, h, d}); }),
              v, s, n, h);
    }
}
inline void merge_states(const TensorView& v, const TensorView& s, const TensorView& v_out, const TensorView& s_out) {
  for (int64_t n = 0; n < v.size(0); ++n)
    for (int64_t h = 0; h < v.size(2); ++h)
      put_row(merge_row(
                  v.size(1), v.size(3), [&](int64_t i) { return at(s, {n, i, h}); },
                  [&](int64_t i, int64_t d) { return at(v, {n, i, h, d}); }),
              v_out, s_out, n, h);
}

}  // namespace flashinfer::ref
