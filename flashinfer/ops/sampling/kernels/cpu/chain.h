// SPDX-License-Identifier: Apache-2.0
// Speculative sampling along a chain of draft tokens, on the CPU.
#pragma once
#include "flashinfer/kernels/common/philox.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/sampling/kernels/params.h"
#include "flashinfer/ops/sampling/kernels/sample_row.h"

namespace flashinfer::cpu {

/// max(target - draft, 0), or the target's probabilities where there is no draft.
template <class T>
struct Residual {
  const T *target, *draft;
  FI_VEC_INLINE Vec at(int64_t i) const {
    const Vec t = load(target + i);
    return max(draft ? t - load(draft + i) : t, zero());
  }
  FI_VEC_INLINE Vec at_n(int64_t i, int64_t n) const {
    const Vec t = load_n(target + i, n);
    return max(draft ? t - load_n(draft + i, n) : t, zero());
  }
  float one(int64_t i) const {
    const float t = to_f32(target[i]), v = draft ? t - to_f32(draft[i]) : t;
    return v > 0.0f ? v : 0.0f;
  }
};

/// A token drawn by u from the distribution; -1 when it has no mass. Block sums as in kernels/cpu/block_stats.h.
template <class T>
inline int64_t draw_residual(const Residual<T>& p, int64_t n, double u) {
  const auto sum_of = [&](int64_t b) {
    const int64_t len = n - b < kStatsBlock ? n - b : kStatsBlock;
    return static_cast<double>(sum_row(
        len, [&](Vec a, int64_t i) { return a + p.at(b + i); },
        [&](Vec a, int64_t i, int64_t m) { return a + p.at_n(b + i, m); }));
  };
  double mass = 0;
  for (int64_t b = 0; b < n; b += kStatsBlock) mass += sum_of(b);
  if (!(mass > 0) || mass > 3.4028234663852886e38) return -1;
  const double target = u * mass;
  double before = 0;
  int64_t last = -1;
  for (int64_t b = 0; b < n; b += kStatsBlock) {
    const double sum = sum_of(b);
    if (!(sum > 0)) continue;
    const bool reached = before + sum > target;
    double run = before;
    for (int64_t i = b; i < n && i < b + kStatsBlock; ++i) {
      const float v = p.one(i);
      if (!(v > 0.0f)) continue;
      last = i;
      run += static_cast<double>(v);
      if (reached && run > target) return i;
    }
    if (reached) return last;
    before += sum;
  }
  return last;
}

template <class T>
inline void chain_row(const ChainParams& p, int64_t r) {
  const T* draft = static_cast<const T*>(p.draft) + r * p.draft_row;
  const T* target = static_cast<const T*>(p.target) + r * p.target_row;
  int32_t* out = p.out + r * p.out_row;
  const uint64_t seed = p.random.seed[r * p.random.seed_stride];
  const uint64_t subsequence = p.random.own_seed ? 0 : static_cast<uint64_t>(r);
  uint64_t offset = p.random.offset[r * p.random.offset_stride];
  const auto next = [&] { return philox_uniform(seed, subsequence, offset++); };
  const auto id_at = [&](int64_t i) {
    return p.ids_wide ? static_cast<const int64_t*>(p.ids)[r * p.ids_row + i]
                      : static_cast<const int32_t*>(p.ids)[r * p.ids_row + i];
  };
  const auto accepts = [&](int64_t i) {
    const int64_t id = id_at(i);
    const float u = next();
    if (id < 0 || id >= p.v) return false;
    return u * to_f32(draft[i * p.draft_step + id]) < to_f32(target[i * p.target_step + id]);
  };
  int64_t emitted = 0;
  while (emitted < p.n && accepts(emitted)) {
    out[emitted] = static_cast<int32_t>(id_at(emitted));
    ++emitted;
  }
  int64_t accepted = emitted;
  for (int64_t i = emitted; i < p.n; ++i) accepted += accepts(i);
  const double u = static_cast<double>(next());
  Residual<T> rest{target + emitted * p.target_step, emitted < p.n ? draft + emitted * p.draft_step : nullptr};
  int64_t token = draw_residual(rest, p.v, u);
  if (token < 0 && rest.draft) {  // target and draft agree: nothing is left of their difference
    rest.draft = nullptr;
    token = draw_residual(rest, p.v, u);
  }
  out[emitted] = static_cast<int32_t>(token < 0 ? 0 : token);
  for (int64_t i = emitted + 1; i <= p.n; ++i) out[i] = -1;
  p.accepted_now[r] =
      static_cast<int32_t>(sampling::add_count(p.accepted, p.accepted_wide, p.accepted_given, r, accepted));
  p.emitted_now[r] = static_cast<int32_t>(sampling::add_count(p.emitted, p.emitted_wide, p.emitted_given, r, emitted));
}

template <SamplingConfig C>
void chain(const ChainParams& p, int64_t task) {
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) chain_row<scalar_of_t<C.dtype>>(p, r);
}

}  // namespace flashinfer::cpu
