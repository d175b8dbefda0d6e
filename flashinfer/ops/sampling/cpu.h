// SPDX-License-Identifier: Apache-2.0
// Sampling on the CPU. A survey of the row (sums and maxima of blocks of 1024, in f32 over 64 lanes; blocks added in
// double) serves the draws: the block where one lands is found by the sums, and inside it elements are added one by one
// in double. Later passes skip blocks by their maxima. The order of sums depends on the row alone.
#pragma once
#include "flashinfer/kernels/cpu/philox.h"
#include "flashinfer/kernels/cpu/select.h"
#include "flashinfer/kernels/cpu/threshold.h"
#include "flashinfer/ops/sampling/params.h"
#include "flashinfer/ops/sampling/softmax_row.h"

namespace flashinfer::cpu {

/// The uniform numbers of an output row, in order.
struct Uniforms {
  uint64_t seed, subsequence, offset;
  float next() { return philox_uniform(seed, subsequence, offset++); }
};
inline Uniforms uniforms_of(const RandomParams& p, int64_t row) {
  return {p.seed[row * p.seed_stride], p.own_seed ? 0 : static_cast<uint64_t>(row), p.offset[row * p.offset_stride]};
}

/// The first element above `low` (>= 0) whose inclusive running sum over such elements exceeds `target`; the last one
/// above `low` when rounding leaves none; -1 when nothing is above it. `sums` are the block sums of what is above.
template <class T>
inline int64_t draw(const T* x, int64_t n, const float* sums, float low, double target) {
  double before = 0;
  int64_t block = -1;
  bool reached = false;
  for (int64_t b = 0; b < survey_blocks(n); ++b) {
    if (!(sums[b] > 0.0f)) continue;
    block = b;
    reached = before + static_cast<double>(sums[b]) > target;
    if (reached) break;
    before += static_cast<double>(sums[b]);
  }
  if (block < 0) return -1;
  const int64_t begin = block * kSurveyBlock, end = n - begin < kSurveyBlock ? n : begin + kSurveyBlock;
  int64_t last = -1;
  for (int64_t i = begin; i < end; ++i) {
    const float v = to_f32(x[i]);
    if (!(v > low)) continue;
    last = i;
    before += static_cast<double>(v);
    if (reached && before > target) break;
  }
  return last;
}

/// A row (or what was collected of one) with its survey.
template <class T>
struct Surveyed {
  const T* x;
  int64_t n;
  Survey s;
};

/// Memory of a row's task.
struct Room {
  float* survey;        // of the row
  float* sums[2];       // of what is above a value
  float* values;        // collected, with their positions; together also room for threshold()
  uint32_t* positions;
  float* inner;         // the survey of what was collected
  float* inner_sums[2];
  float* probs;         // of logits
};
inline Room room_of(float* words, int64_t v) {
  Room r;
  const int64_t blocks = survey_blocks(v);
  r.survey = words;
  r.sums[0] = words + survey_words(v);
  r.sums[1] = r.sums[0] + blocks;
  r.values = r.sums[1] + blocks;
  r.positions = reinterpret_cast<uint32_t*>(r.values + v + 64);
  r.inner = r.values + collect_words(v);
  r.inner_sums[0] = r.inner + survey_words(v);
  r.inner_sums[1] = r.inner_sums[0] + blocks;
  r.probs = r.inner_sums[1] + blocks;
  return r;
}

/// Where the rejection loop stands: tokens above `low`, of `mass` in all, are drawn from.
struct Loop {
  float low, high;
  double mass;
  int64_t token;
  bool done;
};

/// Rejection: draw above `low`; accept when the filter allows what is above the drawn value; else raise `low` by bisection
/// between the value and `high`. The interval shrinks each round, so it ends. Number i of the row's uniform numbers serves
/// round i. Returns early, not done, once few elements are left above `low`.
template <class T>
inline void reject(const Surveyed<T>& row, const float* sums, float* const spare[2], const Filter& f, Uniforms& u,
                   bool may_leave, Loop& s) {
  const float top = top_of(row.s.tops, survey_blocks(row.n));
  while (s.low < s.high) {
    const int64_t t = draw(row.x, row.n, sums, s.low, static_cast<double>(u.next()) * s.mass);
    if (t < 0) break;
    s.token = t;
    const float a = to_f32(row.x[t]), b = (a + s.high) * 0.5f;
    float* const of_a = spare[sums == spare[0]];
    const Above over_a = above(row.x, row.n, a, row.s.tops, of_a);
    if (f.allows(over_a)) break;
    Above over_b;
    if (b < top) over_b = above(row.x, row.n, b, row.s.tops, const_cast<float*>(sums));
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
template <class T>
inline int64_t draw_filtered(const Surveyed<T>& row, const Filter& f, double scale, double mass, Uniforms& u, const Room& r) {
  const float top = top_of(row.s.tops, survey_blocks(row.n));
  float* const spare[2] = {r.sums[0], r.sums[1]};
  const float whole = static_cast<float>(scale);
  Loop s{0.0f, top > whole ? top : whole, mass, -1, false};
  // The sums of the survey are needed once: they may be overwritten only when they are the row's own.
  for (int64_t b = 0; b < survey_blocks(row.n); ++b) spare[0][b] = row.s.sums[b];
  reject(row, spare[0], spare, f, u, true, s);
  if (s.done) return s.token;
  // What is above `low` strictly: collected from the next float on.
  const float next = key_value(value_key(s.low) + 1);
  const int64_t m = collect(row.x, row.n, next, row.s.tops, r.values, r.positions);
  const Surveyed<float> few{r.values, m, survey_at(r.inner, m)};
  survey<true>(few.x, 0, m, few.s);
  const int64_t before = s.token;
  s.token = -1;
  for (int64_t b = 0; b < survey_blocks(m); ++b) r.inner_sums[0][b] = few.s.sums[b];
  float* const inner[2] = {r.inner_sums[0], r.inner_sums[1]};
  reject(few, inner[0], inner, f, u, false, s);
  return s.token < 0 ? before : r.positions[s.token];
}

/// The row's thresholds, made plain.
struct Thresholds {
  int64_t k;     // n: off
  float p, min;  // infinity, 0: off
};
inline Thresholds thresholds_of(const SamplingParams& p, int64_t mapped) {
  Thresholds t{p.v, __builtin_inff(), 0.0f};
  if (p.top_k) t.k = p.top_k[mapped * p.top_k_stride];
  if (t.k <= 0 || t.k > p.v) t.k = p.v;
  if (p.top_p) t.p = p.top_p[mapped * p.top_p_stride];
  if (t.p >= 1.0f) t.p = __builtin_inff();
  if (p.min_p) t.min = p.min_p[mapped * p.min_p_stride];
  return t;
}

/// Draws from the m collected elements, those with less than top_p of their mass above them.
inline int64_t draw_collected(int64_t m, float top_p, Uniforms& u, const Room& r) {
  const Surveyed<float> kept{r.values, m, survey_at(r.inner, m)};
  survey<true>(kept.x, 0, m, kept.s);
  const int64_t blocks = survey_blocks(m);
  const double mass = total(kept.s.sums, blocks);
  if (!(mass > 0)) return -1;
  if (top_p >= 1.0f) {
    const int64_t t = draw(kept.x, m, kept.s.sums, 0.0f, static_cast<double>(u.next()) * mass);
    return r.positions[t];
  }
  float* const spare[2] = {r.sums[0], r.sums[1]};
  for (int64_t b = 0; b < blocks; ++b) spare[0][b] = kept.s.sums[b];
  const float top = top_of(kept.s.tops, blocks), whole = static_cast<float>(mass);
  Loop s{0.0f, whole > top ? whole : top, mass, -1, false};
  reject(kept, spare[0], spare, Filter{m + 1, static_cast<double>(top_p) * mass}, u, false, s);
  return r.positions[s.token];
}

inline constexpr float kLeastPositive = 1.40129846e-45f;

template <class T>
inline int64_t sample_probs(const SamplingParams& p, const Surveyed<T>& in, const Thresholds& t, Uniforms& u, const Room& r) {
  const int64_t blocks = survey_blocks(in.n);
  const double mass = total(in.s.sums, blocks);
  if (!(mass > 0) || mass > 3.4028234663852886e38) return -1;  // NaN, infinite, nothing positive
  if (t.p <= 0.0f) return arg_max(in.x, in.n, false);
  const auto from = [&](float least) {
    return collect(in.x, in.n, least > kLeastPositive ? least : kLeastPositive, in.s.tops, r.values, r.positions);
  };
  if (p.min_p) return draw_collected(from(top_of(in.s.tops, blocks) * t.min), __builtin_inff(), u, r);
  const bool all = t.k >= in.n, any_mass = t.p > 1.0f;
  if (all && any_mass) {
    const bool renormalised = !p.joint && p.top_k;  // the others take the probabilities as they are
    return draw(in.x, in.n, in.s.sums, 0.0f, static_cast<double>(u.next()) * (renormalised ? mass : 1.0));
  }
  const Filter f{all ? in.n + 1 : t.k, static_cast<double>(t.p)};
  if (p.joint) return draw_filtered(in, f, 1.0, 1.0, u, r);
  if (all) return draw_filtered(in, Filter{f.count, f.sum * mass}, mass, mass, u, r);
  return draw_collected(from(kth_value(in.x, in.n, in.s, t.k, r.values, r.positions)), t.p, u, r);
}

/// Logits. "top_k_first": the k largest are kept, and only they need exponentials; otherwise the whole row does.
template <class T>
inline int64_t sample_logits(const SamplingParams& p, const Surveyed<T>& in, const Thresholds& t, Uniforms& u, const Room& r) {
  const SoftmaxBlocks s = softmax_blocks(r.inner, in.n);
  if (!p.joint && t.k < in.n) {
    const double sum = total(in.s.sums, survey_blocks(in.n));
    if (!(sum <= 3.4028234663852886e38)) return -1;
    if (t.p <= 0.0f) return arg_max(in.x, in.n, false);
    const float least = kth_value(in.x, in.n, in.s, t.k, r.values, r.positions);
    const int64_t m = collect(in.x, in.n, least, in.s.tops, r.values, r.positions);
    softmax_first(r.values, r.values, 0, m, 1.0f, s);
    softmax_second(r.values, 0, m, s, softmax_scale(s, m));
    return draw_collected(m, t.p, u, r);
  }
  softmax_first(in.x, r.probs, 0, in.n, 1.0f, s);
  softmax_second(r.probs, 0, in.n, s, softmax_scale(s, in.n));
  const Surveyed<float> probs{r.probs, in.n, survey_at(r.survey, in.n)};
  survey<true>(r.probs, 0, in.n, probs.s);
  return sample_probs(p, probs, t, u, r);
}

inline int64_t index_of(const void* indices, int64_t wide, int64_t r) {
  if (!indices) return r;
  return wide ? static_cast<const int64_t*>(indices)[r] : static_cast<const int32_t*>(indices)[r];
}
inline void put_sample(void* samples, int64_t wide, int64_t r, int64_t id) {
  if (wide)
    static_cast<int64_t*>(samples)[r] = id;
  else
    static_cast<int32_t*>(samples)[r] = static_cast<int32_t>(id);
}

template <SamplingConfig C>
void sample(const SamplingParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const auto in = [&](int64_t r) {
    return static_cast<const T*>(p.probs) + index_of(p.indices, p.indices_wide, r) * p.probs_stride;
  };
  if (p.surveying) {
    const int64_t chunks = survey_chunks(p.v), r = task / chunks, begin = task % chunks * kSurveyChunk;
    const int64_t end = p.v - begin < kSurveyChunk ? p.v : begin + kSurveyChunk;
    survey<true>(in(r), begin, end, survey_at(p.surveys + r * survey_words(p.v), p.v));
    return;
  }
  const Room room = room_of(p.scratch, p.v);
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t mapped = index_of(p.indices, p.indices_wide, r);
    Surveyed<T> row{in(r), p.v, survey_at(p.surveys ? p.surveys + r * survey_words(p.v) : room.survey, p.v)};
    if (!p.surveys) survey<true>(row.x, 0, p.v, row.s);
    const Thresholds limits = thresholds_of(p, mapped);
    Uniforms u = uniforms_of(p.random, r);
    const int64_t t = p.logits ? sample_logits(p, row, limits, u, room) : sample_probs(p, row, limits, u, room);
    put_sample(p.samples, p.samples_wide, r, t < 0 ? 0 : t);
    if (p.valid) p.valid[r] = t >= 0;
  }
}

}  // namespace flashinfer::cpu
