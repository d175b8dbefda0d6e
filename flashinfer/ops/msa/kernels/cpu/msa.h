// SPDX-License-Identifier: Apache-2.0
// Attention over selected blocks of 128 keys, and the largest logit of each block. Keys are converted to f32 eight at a
// time, once for up to 16 query heads that share them; a row's blocks are taken in the order of its list, so that
// results do not depend on the other rows or on threads.
#pragma once
#include <math.h>

#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/msa/kernels/params.h"

namespace flashinfer::cpu {

inline constexpr int64_t kMsaKeys = 8, kMsaHeads = 16;

/// Rows of one head: that of key j begins at data + j * step, its scale factors in row scale_row + j * scale_step.
template <class T>
struct MsaRows {
  const T* data;
  int64_t step;
  const uint8_t* scale;
  int64_t scale_row, scale_step;

  FI_VEC_INLINE void read(int64_t j, float* y) const {
    const T* x = data + j * step;
    if constexpr (__is_same(T, uint8_t)) {
      const int64_t row = sf_row_offset(SfLayout::k128x4, scale_row + j * scale_step, kMsaScales);
      for (int64_t b = 0; b < kMsaScales; ++b) {
        e4m3_t s;
        s.bits = scale[row + sf_column_offset(SfLayout::k128x4, b)];
        const Vec factor = splat(static_cast<float>(s));
        for (int64_t i = 16 * b; i < 16 * (b + 1); i += Vec::kLanes) store(y + i, load_e2m1(x + i / 2) * factor);
      }
    } else {
      for (int64_t i = 0; i < kMsaDim; i += Vec::kLanes) store(y + i, load(x + i));
    }
  }
};

/// The keys (or values) of block `blk` of a row's request.
template <class T>
FI_VEC_INLINE MsaRows<T> block_rows(const MsaParams& p, const MsaTensor& t, const MsaRow& row, int64_t blk, int64_t g) {
  const T* data = static_cast<const T*>(t.data) + g * t.head;
  if (p.pages) {
    const int64_t page = p.pages[row.first * p.page_table_stride + blk];
    return {data + page * t.page, t.token, t.scale, (page * p.kv_heads + g) * kMsaBlock, 1};
  }
  const int64_t key = row.first + blk * kMsaBlock;
  return {data + key * t.token, t.token, t.scale, key * p.kv_heads + g, p.kv_heads};
}

struct alignas(64) MsaHeads {
  float q[kMsaHeads][kMsaDim];
  float logits[kMsaHeads][kMsaBlock];
  float keys[kMsaKeys][kMsaDim];
};

template <class T>
FI_VEC_INLINE void read_queries(const MsaParams& p, int64_t r, int64_t h, int64_t heads, MsaHeads& w) {
  for (int64_t i = 0; i < heads; ++i) {
    const MsaRows<T> q{static_cast<const T*>(p.q.data) + r * p.q.token + (h + i) * p.q.head, 0, p.q.scale,
                       r * p.heads + h + i, 0};
    q.read(0, w.q[i]);
  }
}

/// logits[i][j] = q[i] . key j for the first n keys.
template <class T>
FI_VEC_INLINE void multiply_keys(const MsaRows<T>& rows, int64_t n, int64_t heads, MsaHeads& w) {
  for (int64_t j = 0; j < n; j += kMsaKeys) {
    const int64_t left = n - j < kMsaKeys ? n - j : kMsaKeys;
    for (int64_t x = 0; x < left; ++x) rows.read(j + x, w.keys[x]);
    for (int64_t i = 0; i < heads; ++i) {
      Vec sum[kMsaKeys];
#pragma GCC unroll 8
      for (int x = 0; x < kMsaKeys; ++x) sum[x] = zero();
      for (int64_t d = 0; d < kMsaDim; d += Vec::kLanes) {
        const Vec q = load(w.q[i] + d);
#pragma GCC unroll 8
        for (int x = 0; x < kMsaKeys; ++x) sum[x] = fma(q, load(w.keys[x] + d), sum[x]);
      }
#pragma GCC unroll 8
      for (int x = 0; x < kMsaKeys; ++x) w.logits[i][j + x] = reduce_add(sum[x]);
    }
  }
}

/// 2^x of one number, as the vectors compute it.
FI_VEC_INLINE float exp2_of(float x) {
  float y[Vec::kLanes];
  store(y, exp2(splat(x)));
  return y[0];
}

/// Softmax of one head: sums are relative to 2^largest.
struct MsaSoftmax {
  float largest = -__builtin_inff(), sum = 0, warm = 0;  // warm: with logits multiplied by the temperature's scale
};

/// Turns n logits into weights relative to the new largest one; returns the factor of what came before.
FI_VEC_INLINE float to_weights(const MsaParams& p, float* s, int64_t n, MsaSoftmax& state) {
  const int64_t padded = round_up(n, static_cast<int64_t>(Vec::kLanes));
  for (int64_t j = n; j < padded; ++j) s[j] = -__builtin_inff();
  Vec most = splat(-__builtin_inff());
  for (int64_t j = 0; j < padded; j += Vec::kLanes) {
    const Vec x = load(s + j) * splat(p.scale_log2);
    store(s + j, j + Vec::kLanes <= n ? x : select(first_n(n - j), x, splat(-__builtin_inff())));
    most = max(most, load(s + j));
  }
  const float block = reduce_max(most), now = block > state.largest ? block : state.largest;
  const float before = state.largest == -__builtin_inff() ? 0.0f : exp2_of(state.largest - now);
  const Vec base = splat(now == -__builtin_inff() ? 0.0f : now);
  Vec sum = zero(), warm = zero();
  for (int64_t j = 0; j < padded; j += Vec::kLanes) {
    const Vec x = load(s + j) - base, e = exp2(x);
    store(s + j, e);
    sum += e;
    if (p.lse_t) warm += select(first_n(n - j), exp2(x * splat(p.temperature)), zero());
  }
  if (p.lse_t) {
    const float faded = before == 0 ? 0.0f : exp2_of((state.largest - now) * p.temperature);
    state.warm = state.warm * faded + reduce_add(warm);
  }
  state.sum = state.sum * before + reduce_add(sum);
  state.largest = now;
  return before;
}

/// total[i] = total[i] * before[i] + sum over the first n keys of weight j times value j.
template <class T>
FI_VEC_INLINE void add_values(const MsaRows<T>& rows, int64_t n, int64_t heads, const float* before, MsaHeads& w,
                              float (*total)[kMsaDim]) {
  for (int64_t j = 0; j < n; j += kMsaKeys) {
    const int64_t left = n - j < kMsaKeys ? n - j : kMsaKeys;
    for (int64_t x = 0; x < left; ++x) rows.read(j + x, w.keys[x]);
    for (int64_t x = left; x < kMsaKeys; ++x) memset(w.keys[x], 0, sizeof w.keys[x]);
    for (int64_t i = 0; i < heads; ++i) {
      const Vec factor = splat(j == 0 ? before[i] : 1.0f);
      Vec weight[kMsaKeys];
#pragma GCC unroll 8
      for (int x = 0; x < kMsaKeys; ++x) weight[x] = splat(x < left ? w.logits[i][j + x] : 0.0f);
      for (int64_t d = 0; d < kMsaDim; d += Vec::kLanes) {
        Vec sum = load(total[i] + d) * factor;
#pragma GCC unroll 8
        for (int x = 0; x < kMsaKeys; ++x) sum = fma(weight[x], load(w.keys[x] + d), sum);
        store(total[i] + d, sum);
      }
    }
  }
}

/// Whether entry c of a list names a block of the request for the first time.
FI_VEC_INLINE bool is_new_block(const int32_t* list, int64_t c, int64_t blocks) {
  if (list[c] < 0 || list[c] >= blocks) return false;
  for (int64_t e = 0; e < c; ++e)
    if (list[e] == list[c]) return false;
  return true;
}

template <class T>
FI_VEC_INLINE void write_head(const MsaParams& p, int64_t at, const float* total, const MsaSoftmax& s) {
  constexpr float kLn2 = 0.693147180559945f;
  T* out = static_cast<T*>(p.out) + at * kMsaDim;
  const bool empty = s.largest == -__builtin_inff();
  const Vec factor = splat(empty ? 0.0f : p.v_scale / s.sum);
  for (int64_t d = 0; d < kMsaDim; d += Vec::kLanes) store(out + d, empty ? zero() : load(total + d) * factor);
  if (p.lse) p.lse[at] = empty ? s.largest : s.largest * kLn2 + logf(s.sum);
  if (p.lse_t) p.lse_t[at] = empty ? s.largest : s.largest * p.temperature * kLn2 + logf(s.warm);
}

/// Heads [h, h + heads) of row r, which share KV head g.
template <MsaConfig C>
void attend_heads(const MsaParams& p, int64_t r, int64_t g, int64_t h, int64_t heads) {
  using Kv = scalar_of_t<C.kv>;
  MsaHeads w;
  alignas(64) float total[kMsaHeads][kMsaDim];
  float before[kMsaHeads];
  MsaSoftmax state[kMsaHeads];
  memset(total, 0, sizeof total);
  memset(w.keys, 0, sizeof w.keys);
  read_queries<scalar_of_t<C.q>>(p, r, h, heads, w);
  const MsaRow& row = p.rows[r];
  const int32_t* list = p.selected + (g * p.n + r) * p.topk;
  for (int64_t c = 0; c < p.topk; ++c) {
    if (!is_new_block(list, c, row.blocks)) continue;
    const int64_t left = row.visible - list[c] * kMsaBlock, n = left < kMsaBlock ? left : kMsaBlock;
    if (n <= 0) continue;
    multiply_keys(block_rows<Kv>(p, p.k, row, list[c], g), n, heads, w);
    for (int64_t i = 0; i < heads; ++i) before[i] = to_weights(p, w.logits[i], n, state[i]);
    add_values(block_rows<Kv>(p, p.v, row, list[c], g), n, heads, before, w, total);
  }
  for (int64_t i = 0; i < heads; ++i) write_head<scalar_of_t<C.out>>(p, r * p.heads + h + i, total[i], state[i]);
}

template <MsaConfig C>
void msa_attention(const MsaParams& p, int64_t task) {
  const int64_t group = p.heads / p.kv_heads, items = p.n * p.kv_heads;
  for (int64_t i = task * p.items_per_task; i < items && i < (task + 1) * p.items_per_task; ++i) {
    const int64_t r = i / p.kv_heads, g = i % p.kv_heads;
    for (int64_t h = 0; h < group; h += kMsaHeads)
      attend_heads<C>(p, r, g, g * group + h, group - h < kMsaHeads ? group - h : kMsaHeads);
  }
}

/// The largest logit of the first n keys; NaN when one is.
FI_VEC_INLINE float largest_logit(const float* s, int64_t n) {
  float most = -__builtin_inff();
  for (int64_t j = 0; j < n; ++j)
    if (s[j] > most || s[j] != s[j]) most = s[j];
  return most;
}

template <MsaConfig C>
void score_heads(const MsaParams& p, int64_t r, int64_t g, int64_t h, int64_t heads, int64_t first, int64_t end) {
  MsaHeads w;
  memset(w.keys, 0, sizeof w.keys);
  read_queries<scalar_of_t<C.q>>(p, r, h, heads, w);
  const MsaRow& row = p.rows[r];
  for (int64_t t = first; t < end; ++t) {
    const int64_t left = row.visible - t * kMsaBlock, n = left < kMsaBlock ? left : kMsaBlock;
    if (n > 0) multiply_keys(block_rows<scalar_of_t<C.kv>>(p, p.k, row, t, g), n, heads, w);
    for (int64_t i = 0; i < heads; ++i) {
      const float most = n > 0 ? largest_logit(w.logits[i], n) * p.factor : -__builtin_inff();
      float* to = p.score + (p.reduce_heads ? 0 : (h + i) * p.score_head) + t * p.score_tile + r * p.score_row;
      if (!p.reduce_heads || h + i == 0 || most > *to || most != most) *to = most;
    }
  }
}

template <MsaConfig C>
void msa_scores(const MsaParams& p, int64_t task) {
  const int64_t group = p.heads / p.kv_heads, parts = ceil_div(p.tiles, p.tiles_per_item), items = p.n * parts;
  for (int64_t i = task * p.items_per_task; i < items && i < (task + 1) * p.items_per_task; ++i) {
    const int64_t r = i / parts, first = i % parts * p.tiles_per_item;
    const int64_t end = first + p.tiles_per_item < p.tiles ? first + p.tiles_per_item : p.tiles;
    for (int64_t g = 0; g < p.kv_heads; ++g)
      for (int64_t h = 0; h < group; h += kMsaHeads)
        score_heads<C>(p, r, g, g * group + h, group - h < kMsaHeads ? group - h : kMsaHeads, first, end);
  }
}

}  // namespace flashinfer::cpu
