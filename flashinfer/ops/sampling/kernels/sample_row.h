// SPDX-License-Identifier: Apache-2.0
// Sampling a token from a row, written once for the CPU and the GPU. A machine M provides the passes over a row
// (statistics, elements above a value, collecting, the draw by running sums); each pass has one bitwise result for a
// row on every machine. The steps between the passes are here, so the token does not depend on the back end.
//
// On a GPU all threads of a block run this code with the same values.
#pragma once
#include "flashinfer/kernels/common/philox.h"
#include "flashinfer/kernels/common/select_types.h"

namespace flashinfer::sampling {
using cpu::Above, cpu::Filter, cpu::BlockStats, cpu::stats_blocks;

/// Not inlined on a GPU: inlined at each use (13 of reject()) the steps took NVRTC a third of its time.
#if defined(__CUDACC__)
#define FI_SAMPLE_STEP __device__ __noinline__
#define FI_SAMPLE_FN __device__ __forceinline__
#else
#define FI_SAMPLE_STEP inline
#define FI_SAMPLE_FN inline
#endif

inline constexpr float kInfinite = __builtin_bit_cast(float, 0x7f800000u);
inline constexpr float kLeastPositive = 1.40129846e-45f;
inline constexpr double kMostSum = 3.4028234663852886e38;

/// The uniform numbers of an output row, in order.
struct Uniforms {
  uint64_t seed, subsequence, offset;
  constexpr float next() { return cpu::philox_uniform(seed, subsequence, offset++); }
};

/// A row (or the elements collected from one) with its statistics.
template <class T>
struct RowWithStats {
  const T* x;
  int64_t n;
  BlockStats s;
};

/// Scratch of a row's task.
struct Room {
  BlockStats row, inner;  // of the row, of the collected elements
  float* sums[2];         // of the elements above a value
  float* inner_sums[2];
  float* values;  // collected, with their positions; together also space for kth_value()
  uint32_t* positions;
  float* probs;  // of logits
};

/// A row's thresholds with defaults resolved.
struct Thresholds {
  int64_t k;     // n: off
  float p, min;  // infinity, 0: off
  bool has_k, has_min;
  bool joint;  // top_k and top_p both apply to the given probabilities
};

/// State of the rejection loop: tokens above `low`, of `mass` in all, are candidates.
struct Loop {
  float low, high;
  double mass;
  int64_t token;
  bool done;
};

/// Rejection sampling: draws above `low`; accepts when the filter allows the mass above the drawn value; else raises
/// `low` by bisection between the value and `high`. The interval shrinks each round, so it ends. Round i uses number i
/// of the row's uniform numbers. Returns early, not done, once few elements are left above `low`.
template <class M, class T>
FI_SAMPLE_STEP void reject(const M& m, const RowWithStats<T>& row, float* sums, float* const spare[2], const Filter& f,
                           Uniforms& u, bool may_leave, Loop& s) {
  const float top = m.top_of(row.s.tops, stats_blocks(row.n));
  while (s.low < s.high) {
    const int64_t t = m.draw(row.x, row.n, sums, s.low, static_cast<double>(m.next(u)) * s.mass);
    if (t < 0) break;
    s.token = t;
    const float a = m.element(row.x, t), b = (a + s.high) * 0.5f;
    float* const of_a = spare[sums == spare[0]];
    const Above over_a = m.above(row.x, row.n, a, row.s.tops, of_a);
    if (f.allows(over_a)) break;
    Above over_b;
    if (b < top) over_b = m.above(row.x, row.n, b, row.s.tops, sums);
    int64_t left = over_a.count;
    if (f.allows(over_b)) {
      s.low = a;
      s.high = b;
      s.mass = over_a.sum;
      sums = of_a;
    } else {
      if (b == s.low) break;  // neighbouring floats: no progress left
      s.low = b;
      s.mass = over_b.sum;
      left = over_b.count;
    }
    if (may_leave && left * 8 < row.n) return;
  }
  s.done = true;
}

/// Draws by rejection from a row whose positive elements sum to `mass`; -1 when there are none.
template <class M, class T>
FI_SAMPLE_STEP int64_t draw_filtered(const M& m, const RowWithStats<T>& row, const Filter& f, double scale, double mass,
                                     Uniforms& u, const Room& r) {
  const float top = m.top_of(row.s.tops, stats_blocks(row.n));
  float* const spare[2] = {r.sums[0], r.sums[1]};
  const float whole = static_cast<float>(scale);
  Loop s{0.0f, top > whole ? top : whole, mass, -1, false};
  // The sums of the statistics are needed once: they may be overwritten only when they are the row's own.
  m.copy(spare[0], row.s.sums, stats_blocks(row.n));
  reject(m, row, spare[0], spare, f, u, true, s);
  if (s.done) return s.token;
  // Elements strictly above `low`: collected from the next float on.
  const float next = cpu::key_value(cpu::value_key(s.low) + 1);
  const int64_t left = m.collect(row.x, row.n, next, row.s.tops, r.values, r.positions);
  const RowWithStats<float> few{r.values, left, r.inner};
  m.block_stats(few.x, left, few.s);
  const int64_t before = s.token;
  s.token = -1;
  m.copy(r.inner_sums[0], few.s.sums, stats_blocks(left));
  float* const inner[2] = {r.inner_sums[0], r.inner_sums[1]};
  reject(m, few, inner[0], inner, f, u, false, s);
  return s.token < 0 ? before : r.positions[s.token];
}

/// Draws from the n collected elements, those with less than top_p of their mass above them.
template <class M>
FI_SAMPLE_STEP int64_t draw_collected(const M& m, int64_t n, float top_p, Uniforms& u, const Room& r) {
  const RowWithStats<float> kept{r.values, n, r.inner};
  m.block_stats(kept.x, n, kept.s);
  const int64_t blocks = stats_blocks(n);
  const double mass = m.total(kept.s.sums, blocks);
  if (!(mass > 0)) return -1;
  if (top_p >= 1.0f) {
    const int64_t t = m.draw(kept.x, n, kept.s.sums, 0.0f, static_cast<double>(m.next(u)) * mass);
    return r.positions[t];
  }
  float* const spare[2] = {r.sums[0], r.sums[1]};
  m.copy(spare[0], kept.s.sums, blocks);
  const float top = m.top_of(kept.s.tops, blocks), whole = static_cast<float>(mass);
  Loop s{0.0f, whole > top ? whole : top, mass, -1, false};
  reject(m, kept, spare[0], spare, Filter{n + 1, static_cast<double>(top_p) * mass}, u, false, s);
  return r.positions[s.token];
}

template <class M, class T>
FI_SAMPLE_FN int64_t sample_probs(const M& m, const RowWithStats<T>& in, const Thresholds& t, Uniforms& u,
                                  const Room& r) {
  const int64_t blocks = stats_blocks(in.n);
  const double mass = m.total(in.s.sums, blocks);
  if (!(mass > 0) || mass > kMostSum) return -1;  // NaN, infinite, or no positive element
  if (t.p <= 0.0f) return m.first_top(in.x, in.n);
  const auto from = [&](float least) {
    return m.collect(in.x, in.n, least > kLeastPositive ? least : kLeastPositive, in.s.tops, r.values, r.positions);
  };
  if (t.has_min) return draw_collected(m, from(m.top_of(in.s.tops, blocks) * t.min), kInfinite, u, r);
  const bool all = t.k >= in.n, any_mass = t.p > 1.0f;
  if (all && any_mass) {
    const bool renormalised = !t.joint && t.has_k;  // the others use the given probabilities
    return m.draw(in.x, in.n, in.s.sums, 0.0f, static_cast<double>(m.next(u)) * (renormalised ? mass : 1.0));
  }
  const Filter f{all ? in.n + 1 : t.k, static_cast<double>(t.p)};
  if (t.joint) return draw_filtered(m, in, f, 1.0, 1.0, u, r);
  if (all) return draw_filtered(m, in, Filter{f.count, f.sum * mass}, mass, mass, u, r);
  return draw_collected(m, from(m.kth_value(in.x, in.n, in.s, t.k, r.values, r.positions)), t.p, u, r);
}

/// Logits. "top_k_first": the k largest are kept, and only they need exponentials; otherwise the whole row.
template <class M, class T>
FI_SAMPLE_FN int64_t sample_logits(const M& m, const RowWithStats<T>& in, const Thresholds& t, Uniforms& u,
                                   const Room& r) {
  if (!t.joint && t.k < in.n) {
    const double sum = m.total(in.s.sums, stats_blocks(in.n));
    if (!(sum <= kMostSum)) return -1;
    if (t.p <= 0.0f) return m.first_top(in.x, in.n);
    const float least = m.kth_value(in.x, in.n, in.s, t.k, r.values, r.positions);
    const int64_t n = m.collect(in.x, in.n, least, in.s.tops, r.values, r.positions);
    m.softmax(r.values, r.values, n, r.inner, r.sums[0]);
    return draw_collected(m, n, t.p, u, r);
  }
  m.softmax(in.x, r.probs, in.n, r.inner, r.sums[0]);
  const RowWithStats<float> probs{r.probs, in.n, r.row};
  m.block_stats(probs.x, in.n, probs.s);
  return sample_probs(m, probs, t, u, r);
}

FI_SAMPLE_FN int64_t index_of(const void* indices, int64_t wide, int64_t r) {
  if (!indices) return r;
  return wide ? static_cast<const int64_t*>(indices)[r] : static_cast<const int32_t*>(indices)[r];
}
FI_SAMPLE_FN void put_sample(void* samples, int64_t wide, int64_t r, int64_t id) {
  if (wide)
    static_cast<int64_t*>(samples)[r] = id;
  else
    static_cast<int32_t*>(samples)[r] = static_cast<int32_t>(id);
}
/// A counter given by the caller is increased.
FI_SAMPLE_FN int64_t add_count(void* counts, int64_t wide, int64_t given, int64_t r, int64_t n) {
  if (!given) return n;
  if (wide) return static_cast<int64_t*>(counts)[r] += n;
  return static_cast<int32_t*>(counts)[r] += static_cast<int32_t>(n);
}

}  // namespace flashinfer::sampling
