// SPDX-License-Identifier: Apache-2.0
// Sampling on the CPU. Statistics of the row (sums and maxima of blocks of 1024, in f32 over 64 lanes; blocks added in
// double) speed up the draws: the sums locate the block of a draw, inside which elements are added one by one in
// double. Later passes skip blocks by their maxima. The order of sums depends on the row alone.
#pragma once
#include "flashinfer/kernels/cpu/select.h"
#include "flashinfer/kernels/cpu/select_threshold.h"
#include "flashinfer/ops/sampling/kernels/params.h"
#include "flashinfer/ops/sampling/kernels/sample_row.h"
#include "flashinfer/ops/sampling/kernels/softmax_row.h"

namespace flashinfer::cpu {

/// The first element above `low` (>= 0) whose inclusive running sum over such elements exceeds `target`; the last one
/// above `low` when rounding leaves none; -1 when no element is above it. `sums` are the block sums of elements above
/// `low`.
template <class T>
inline int64_t draw(const T* x, int64_t n, const float* sums, float low, double target) {
  double before = 0;
  int64_t block = -1;
  bool reached = false;
  for (int64_t b = 0; b < stats_blocks(n); ++b) {
    if (!(sums[b] > 0.0f)) continue;
    block = b;
    reached = before + static_cast<double>(sums[b]) > target;
    if (reached) break;
    before += static_cast<double>(sums[b]);
  }
  if (block < 0) return -1;
  const int64_t begin = block * kStatsBlock, end = n - begin < kStatsBlock ? n : begin + kStatsBlock;
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

/// `logits`: whether the input holds logits; else there is no room for `probs`.
inline sampling::Room room_of(float* words, int64_t v, bool logits) {
  const SamplingScratch at = sampling_scratch(v, logits);
  sampling::Room r;
  r.row = stats_at(words + at.row, v);
  r.values = words + at.values;
  r.positions = reinterpret_cast<uint32_t*>(words + at.positions);
  r.inner = stats_at(words + at.inner, v);
  for (int i = 0; i < 2; ++i) r.sums[i] = words + at.sums[i], r.inner_sums[i] = words + at.inner_sums[i];
  r.probs = words + at.probs;
  return r;
}

/// The passes of sample_row.h.
struct RowPasses {
  float next(sampling::Uniforms& u) const { return u.next(); }
  template <class T>
  float element(const T* x, int64_t i) const {
    return to_f32(x[i]);
  }
  void copy(float* to, const float* from, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  }
  float top_of(const float* tops, int64_t blocks) const { return cpu::top_of(tops, blocks); }
  double total(const float* sums, int64_t blocks) const { return cpu::total(sums, blocks); }
  template <class T>
  void block_stats(const T* x, int64_t n, const BlockStats& s) const {
    cpu::block_stats<true>(x, 0, n, s);
  }
  template <class T>
  int64_t draw(const T* x, int64_t n, const float* sums, float low, double target) const {
    return cpu::draw(x, n, sums, low, target);
  }
  template <class T>
  Above above(const T* x, int64_t n, float value, const float* tops, float* sums) const {
    return cpu::above(x, n, value, tops, sums);
  }
  template <class T>
  int64_t collect(const T* x, int64_t n, float bound, const float* tops, float* values, uint32_t* positions) const {
    return cpu::collect(x, n, bound, tops, values, positions);
  }
  template <class T>
  int64_t first_top(const T* x, int64_t n) const {
    return arg_max(x, n, false);
  }
  template <class T>
  float kth_value(const T* x, int64_t n, const BlockStats& s, int64_t k, float* values, uint32_t* positions) const {
    return cpu::kth_value(x, n, s, k, values, positions);
  }
  template <class T>
  void softmax(const T* x, float* y, int64_t n, const BlockStats& room, float*) const {
    const SoftmaxBlocks s{room.tops, room.sums};
    softmax_first(x, y, 0, n, s);
    softmax_second(y, 0, n, s, softmax_scale(s, n));
  }
};

inline sampling::Thresholds thresholds_of(const SamplingParams& p, int64_t mapped) {
  sampling::Thresholds t{p.v, __builtin_inff(), 0.0f, p.top_k != nullptr, p.min_p != nullptr, p.joint != 0};
  if (p.top_k) t.k = p.top_k[mapped * p.top_k_stride];
  if (t.k <= 0 || t.k > p.v) t.k = p.v;
  if (p.top_p) t.p = p.top_p[mapped * p.top_p_stride];
  if (t.p >= 1.0f) t.p = __builtin_inff();
  if (p.min_p) t.min = p.min_p[mapped * p.min_p_stride];
  return t;
}

inline sampling::Uniforms uniforms_of(const RandomParams& p, int64_t row) {
  return {p.seed[row * p.seed_stride], p.own_seed ? 0 : static_cast<uint64_t>(row), p.offset[row * p.offset_stride]};
}

template <SamplingConfig C>
void sample(const SamplingParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const auto in = [&](int64_t r) {
    return static_cast<const T*>(p.probs) + sampling::index_of(p.indices, p.indices_wide, r) * p.probs_stride;
  };
  if (p.compute_stats) {
    const int64_t chunks = stats_chunks(p.v), r = task / chunks, begin = task % chunks * kStatsChunk;
    const int64_t end = p.v - begin < kStatsChunk ? p.v : begin + kStatsChunk;
    block_stats<true>(in(r), begin, end, stats_at(p.stats + r * stats_words(p.v), p.v));
    return;
  }
  const sampling::Room room = room_of(p.scratch, p.v, p.logits != 0);
  const RowPasses passes;
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const int64_t mapped = sampling::index_of(p.indices, p.indices_wide, r);
    const BlockStats own = p.stats ? stats_at(p.stats + r * stats_words(p.v), p.v) : room.row;
    const sampling::RowWithStats<T> row{in(r), p.v, own};
    if (!p.stats) block_stats<true>(row.x, 0, p.v, row.s);
    const sampling::Thresholds limits = thresholds_of(p, mapped);
    sampling::Uniforms u = uniforms_of(p.random, r);
    const int64_t t =
        p.logits ? sample_logits(passes, row, limits, u, room) : sample_probs(passes, row, limits, u, room);
    sampling::put_sample(p.samples, p.samples_wide, r, t < 0 ? 0 : t);
    if (p.valid) p.valid[r] = t >= 0;
  }
}

}  // namespace flashinfer::cpu
