// SPDX-License-Identifier: Apache-2.0
// Top-k on the CPU: exact, with defined tie-breaking. k = 1 is one vectorised pass. Otherwise statistics of the row
// give a bound that at least k elements reach; those that reach it are collected, and the best k of them are kept.
#pragma once
#include "flashinfer/kernels/cpu/select.h"
#include "flashinfer/kernels/cpu/select_threshold.h"
#include "flashinfer/ops/topk/kernels/params.h"
#include "flashinfer/ops/topk/kernels/words.h"

namespace flashinfer::cpu {

/// The keys of the k largest elements, in scratch.
template <class T>
inline uint64_t* top_keys(const T* x, int64_t n, int64_t k, bool large, bool sorted, const float* row_stats,
                          uint32_t* scratch) {
  const TopKScratch at = top_k_scratch(n);
  uint64_t* keys = reinterpret_cast<uint64_t*>(scratch + at.keys);
  uint64_t* room = reinterpret_cast<uint64_t*>(scratch + at.room);
  float* values = reinterpret_cast<float*>(scratch + at.values);
  uint32_t* positions = scratch + at.positions;
  BlockStats s = stats_at(row_stats ? const_cast<float*>(row_stats) : reinterpret_cast<float*>(scratch + at.row), n);
  int64_t found = -1;
  if (n > kTopKRoom && k < n) {
    if (!row_stats) block_stats<false>(x, 0, n, s);
    // Ranking a few keys is faster than finding their exact bound.
    const float bound =
        k <= stats_groups(n) / 16 ? reached_by(s.maxima, stats_groups(n), k) : kth_value(x, n, s, k, values, positions);
    if (bound > -__builtin_inff()) found = collect(x, n, bound, s.tops, values, positions);
  }
  if (found >= k) {
    for (int64_t i = 0; i < found; ++i) keys[i] = element_key(values[i], positions[i], large);
  } else {  // few elements, or too few above -inf
    for (int64_t i = 0; i < n; ++i) keys[i] = element_key(to_f32(x[i]), i, large);
    found = n;
  }
  keep_largest(keys, found, k, sorted, room);
  return keys;
}

template <class T>
inline void top_k_row(const TopKParams& p, int64_t r) {
  const bool large = p.large != 0;
  const T* x = static_cast<const T*>(p.input) + r * p.input_stride;
  T* values = static_cast<T*>(p.values) + r * p.values_stride;
  int64_t* indices = p.indices + r * p.indices_stride;
  if (p.k == 1) {
    indices[0] = arg_max(x, p.d, large);
    values[0] = x[indices[0]];
    return;
  }
  const float* row_stats = p.stats ? p.stats + r * stats_words(p.d) : nullptr;
  const uint64_t* keys = top_keys(x, p.d, p.k, large, p.sorted != 0, row_stats, p.scratch);
  for (int64_t i = 0; i < p.k; ++i) {
    indices[i] = key_index(keys[i], large);
    values[i] = x[indices[i]];
  }
}

template <class T>
inline void transform_row(const TopKParams& p, int64_t r) {
  const T* x = static_cast<const T*>(p.input) + r * p.input_stride + p.starts.at(r, 0);
  const int64_t n = p.lengths.at(r, p.d), selected = n < p.k ? n : p.k, offset = p.offsets.at(r, 0);
  const int32_t* table = p.page_table;
  if (table) table += p.batch.at(r, r) * p.table_stride + p.table_starts.at(r, 0);
  int32_t* out = p.output + r * p.output_stride;
  int32_t* raw = p.raw ? p.raw + r * p.raw_stride : nullptr;
  const bool large = p.large != 0;
  const uint64_t* keys = nullptr;
  if (n > p.k) keys = top_keys(x, n, p.k, large, false, nullptr, p.scratch);
  const int64_t in_page = (int64_t{1} << p.page_shift) - 1;
  for (int64_t i = 0; i < p.k; ++i) {
    const int64_t at = i >= selected ? -1 : keys ? key_index(keys[i], large) : i;
    if (raw) raw[i] = static_cast<int32_t>(at);
    int64_t y = at;
    if (at >= 0) y = table ? int64_t{table[at >> p.page_shift]} * (in_page + 1) + (at & in_page) : at + offset;
    out[i] = static_cast<int32_t>(y);
  }
}

template <TopKConfig C>
void top_k(const TopKParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  if (p.compute_stats) {
    const int64_t chunks = stats_chunks(p.d), r = task / chunks, begin = task % chunks * kStatsChunk;
    const int64_t end = p.d - begin < kStatsChunk ? p.d : begin + kStatsChunk;
    block_stats<false>(static_cast<const T*>(p.input) + r * p.input_stride, begin, end,
                       stats_at(p.stats + r * stats_words(p.d), p.d));
    return;
  }
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    if (p.transform)
      transform_row<T>(p, r);
    else
      top_k_row<T>(p, r);
  }
}

}  // namespace flashinfer::cpu
