// SPDX-License-Identifier: Apache-2.0
// Attention on the CPU for many rows, paged or not: the tile kernel (for few rows: kernels/cpu/decode.h). A task is a
// tile of rows of some KV heads. For each block of 128 keys: pack K and V, then for 6 rows at a time (8 with AMX)
// multiply and turn logits into weights, then for as many accumulate outputs. The summation order of an output is that
// of params.h and depends on nothing else. Numbers: docs/attention-cpu.md.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/kernels/cpu/scratch.h"
#include "flashinfer/ops/attention/kernels/cpu/tile.h"
#include "flashinfer/ops/attention/kernels/cpu/variant.h"

namespace flashinfer::cpu {
namespace attention {

template <AttentionConfig C, class H>
struct Tile {
  using T = Types<C, H::kElements>;
  using KV = typename T::KV;
  static constexpr int64_t kHalves = kTileKeys / kBlockKeys, kPCells = kTileKeys / T::kPerCell;
  static constexpr int kRows = kGroupRows<T::kPairs>;

  const AttentionParams& p;
  const AttentionWorkItem& w;
  Request r;
  H hooks;
  Scratch s;
  Logits logits;
  int64_t local, rows, width, q_cells;  // rows of a head, of all heads; row i belongs to head i / local
  bool dense;                           // a row sees all keys of its range
  bool finite;                          // V of the packed block has no infinity or NaN
  Range range[kTileRows];               // of the rows of one head
  int32_t tokens[kTileRows], heads[kTileRows];
  Rows<KV> current[kHalves], next[kHalves];
  Prefetcher ahead;

  Tile(const AttentionParams& params, const AttentionWorkItem& work)
      : p(params),
        w(work),
        r(params, work.request),
        hooks(params, work.request),
        s(params.scratch, params.head_dim_qk, params.head_dim_vo),
        logits(logits_of(params)),
        local(work.row_end - work.row_begin),
        rows(local * (work.head_end - work.head_begin)),
        width(padded(params.head_dim_vo)),
        q_cells(padded(params.head_dim_qk) / T::kPerCell),
        dense(!params.mask && !params.prefix_len && !H::kCustom) {
    if constexpr (H::kCustom) logits.factor = hooks.factor();
    memset(s.zeros, 0, static_cast<size_t>(4 * padded(p.head_dim_qk > p.head_dim_vo ? p.head_dim_qk : p.head_dim_vo)));
    int64_t i = 0;
    for (int64_t h = w.head_begin; h < w.head_end; ++h) {
      int64_t token = w.row_begin / r.group, head = w.row_begin % r.group;
      for (int64_t row = 0; row < local; ++row, ++i) {
        tokens[i] = static_cast<int32_t>(token);
        heads[i] = static_cast<int32_t>(h * r.group + head);
        if (h == w.head_begin) range[row] = visible_range(p, r, token);
        if (++head == r.group) head = 0, ++token;
      }
    }
    // Rows are far apart, so the hardware prefetcher does not help.
    constexpr int64_t kAhead = 48;
    const int64_t bytes = p.head_dim_qk * static_cast<int64_t>(sizeof(typename T::Q));
    for (i = 0; i < rows; ++i) {
      if (i + kAhead < rows)
        for (int64_t d = 0; d < bytes; d += 64)
          __builtin_prefetch(reinterpret_cast<const char*>(q_of(i + kAhead)) + d, 0, 2);
      pack_row(q_of(i), i);
    }
  }
  const typename T::Q* q_of(int64_t i) const {
    return static_cast<const typename T::Q*>(p.q) + (r.q_first + tokens[i]) * p.q_stride_n + heads[i] * p.q_stride_h;
  }
  const float* table(int64_t position) const { return p.rope + (position - p.rope_first) * p.head_dim_qk; }

  void pack_row(const typename T::Q* q, int64_t i) {
    uint32_t* to = s.q + i * q_cells;
    if constexpr (C.rope || H::kElements) {
      copy_row(q, p.head_dim_qk, s.rotated);
      if constexpr (C.rope) rotate(s.rotated, table(tokens[i] + r.offset), p.head_dim_qk);
      if constexpr (H::kElements) hooks.query(s.rotated, p.head_dim_qk);
      pack_q<Types<AttentionConfig{DType::kF32, C.kv, C.o, true}>>(s.rotated, p.head_dim_qk, to);
    } else {
      pack_q<T>(q, p.head_dim_qk, to);
    }
  }

  /// Selects the prefetches during head `h`: the rows of the next head, or of the next block.
  void plan_prefetch(int64_t h, bool more) {
    ahead.at = ahead.d = ahead.count = 0;
    const bool same = h + 1 < w.head_end;
    if (!same && !more) return;
    const int64_t dim = p.head_dim_qk > p.head_dim_vo ? p.head_dim_qk : p.head_dim_vo;
    ahead.bytes = C.kv == DType::kF4E2M1x2 ? dim / 2 : dim * static_cast<int64_t>(sizeof(KV));
    const int64_t head = same ? h + 1 : w.head_begin;
    for (const Rows<KV>& half : same ? current : next)
      for (int64_t j = half.first; j < half.first + half.count; ++j) {
        ahead.rows[ahead.count++] = reinterpret_cast<const char*>(half.k[j] + head * p.k_stride_h);
        ahead.rows[ahead.count++] = reinterpret_cast<const char*>(half.v[j] + head * p.v_stride_h);
      }
  }

  /// Packs K and V of one head and 64 keys. Slots without a visible key are packed as zeros, so that unused slots of a
  /// page are never read.
  void pack_half(const Rows<KV>& at, int64_t start, int64_t kv_head, uint32_t* k_out, uint32_t* v_out) {
    typename T::Row k[kBlockKeys], v[kBlockKeys];
    const int64_t end = at.first + at.count;
    const KV* none = static_cast<const KV*>(s.zeros);
    for (int64_t j = 0; j < kBlockKeys; ++j) {
      const bool in_range = j >= at.first && j < end, scaled = in_range && p.k_sf;
      const auto* zero_scale = static_cast<const uint8_t*>(s.zeros);
      k[j] = Cache<C.kv>::row(in_range ? at.k[j] + kv_head * p.k_stride_h : none,
                              scaled ? at.k_sf[j] + kv_head * p.k_sf_stride_h : zero_scale);
      v[j] = Cache<C.kv>::row(in_range ? at.v[j] + kv_head * p.v_stride_h : none,
                              scaled ? at.v_sf[j] + kv_head * p.v_sf_stride_h : zero_scale);
    }
    if constexpr (C.rope || H::kElements) {
      const float* turned[kBlockKeys];
      for (int64_t j = 0; j < kBlockKeys; ++j) {
        float* to = s.rotated + j * padded(p.head_dim_qk);
        turned[j] = to;
        copy_row(k[j], p.head_dim_qk, to);
        if constexpr (C.rope) rotate(to, table(j >= at.first && j < end ? start + j : 0), p.head_dim_qk);
        if constexpr (H::kElements) hooks.key(to, p.head_dim_qk);
      }
      pack_k<T>(turned, kBlockKeys, p.head_dim_qk, k_out);
    } else {
      pack_k<T>(k, kBlockKeys, p.head_dim_qk, k_out);
    }
    finite &= pack_v<T>(v, end, p.head_dim_vo, v_out);
  }

  /// Applies transforms and masks to the logits of row i of the block at `first`, in place. Returns the bits of visible
  /// keys; null: all.
  const uint64_t* apply_mask(int64_t i, Range visible, int64_t first, float* row) {
    uint64_t* bits = s.seen + i * kHalves;
    if (dense && visible.lo <= first && visible.hi >= first + kTileKeys) {
      for (int64_t x = 0; x < kHalves; ++x) bits[x] = ~0ull;
    } else {
      for (int64_t x = 0; x < kHalves; ++x)
        bits[x] = visible_bits(p, r, w.request, tokens[i], visible, first + x * kBlockKeys);
    }
    if constexpr (H::kCustom) {
      for (int64_t x = 0; x < kHalves; ++x)
        hooks.logits(row + x * kBlockKeys, bits[x], tokens[i], first + x * kBlockKeys, heads[i], heads[i] / r.group);
    } else if (logits.transformed) {
      const float slope = p.alibi_slopes ? p.alibi_slopes[heads[i]] : 0.0f;
      transform(logits, row, kTileKeys, slope * static_cast<float>(first - tokens[i]), slope);
    }
    for (int64_t x = 0; x < kHalves; ++x)
      if (bits[x] != ~0ull) return bits;
    return nullptr;
  }

  /// Softmax weights of rows [i, i + n) over the packed block at `first`; keys from `end` on are masked for all of
  /// them.
  void softmax_weights(int64_t first, int64_t i, int64_t n, int64_t end, const Range* visible) {
    for (int64_t x = 0; x * kBlockKeys < end; ++x) {
      const int64_t columns = end - x * kBlockKeys < kBlockKeys ? round_up(end - x * kBlockKeys, 32) : kBlockKeys;
      product_rows<T::kPairs>(n, s.q + i * q_cells, q_cells, s.k + x * kBlockKeys * q_cells, kBlockKeys,
                              s.s + x * kBlockKeys, kTileKeys, cells<T>(p.head_dim_qk), columns, false);
    }
    for (int64_t x = 0; x < n; ++x) {
      float* row = s.s + x * kTileKeys;
      uint32_t* weights = s.p + (i + x) * kPCells;
      const uint64_t* bits = apply_mask(i + x, visible[x], first, row);
      if constexpr (H::kSoftmax) {
        const auto softmax = end > kBlockKeys ? softmax_row<T::kPairs, kTileKeys> : softmax_row<T::kPairs, kBlockKeys>;
        softmax(row, bits, logits.factor, s.m[i + x], s.l + (i + x) * 32, s.o + (i + x) * width, width, weights);
      } else {
        for (int64_t y = 0; y < kHalves; ++y) {
          const uint64_t word = s.seen[(i + x) * kHalves + y];
          weights_row<T::kPairs>(row + y * kBlockKeys, word, weights + y * kPCells / kHalves);
          if (word) s.m[i + x] = 0;
        }
      }
    }
  }

  /// Accumulates outputs of rows [i, i + n) over the packed block; keys from `end` on are masked for all of them.
  void accumulate(int64_t i, int64_t n, int64_t end) {
    if (finite) {
      product_rows<T::kPairs>(n, s.p + i * kPCells, kPCells, s.v, width, s.o + i * width, width, cells<T>(end), width,
                              true);
      return;
    }
    // 0 * infinity is NaN, so the value of a masked key must not be multiplied at all. Sums and order are those of the
    // product above.
    for (int64_t x = i; x < i + n; ++x) {
      hide_v<T>(s.v, kTileKeys, width, s.seen + x * kHalves, s.v_seen);
      product_rows<T::kPairs>(1, s.p + x * kPCells, kPCells, s.v_seen, width, s.o + x * width, width, cells<T>(end),
                              width, true);
    }
  }

  /// Rows [r0, r1) of one head times the packed block at key `first`.
  void multiply_block(int64_t first, int64_t r0, int64_t r1) {
    const Range* visible = range - r0 / local * local;
    const int64_t lines = ahead.each(2 * ceil_div(r1 - r0, kRows));
    auto groups = [&](auto f) {
      for (int64_t i = r0; i < r1; i += kRows) {
        const int64_t n = r1 - i < kRows ? r1 - i : kRows, end = visible[i + n - 1].hi - first;
        f(i, n, end < kTileKeys ? end : kTileKeys);
        ahead.issue_prefetch(lines);
      }
    };
    groups([&](int64_t i, int64_t n, int64_t end) { softmax_weights(first, i, n, end, visible + i); });
    groups([&](int64_t i, int64_t n, int64_t end) { accumulate(i, n, end); });
  }

  void run_chunk(int64_t chunk) {
    for (int64_t i = 0; i < rows; ++i) s.m[i] = -INFINITY;
    memset(s.l, 0, static_cast<size_t>(rows) * 128);
    memset(s.o, 0, static_cast<size_t>(rows * width) * 4);
    const int64_t begin = chunk * kChunkKeys, end = begin + kChunkKeys;
    int64_t r0 = 0;
    while (r0 < local && range[r0].hi == 0) ++r0;  // rows without visible keys come first (qo_len > kv_len)
    if (r0 == local) return;
    const int64_t lo = range[r0].lo, hi = range[local - 1].hi < end ? range[local - 1].hi : end;
    int64_t first = lo > begin ? lo / kTileKeys * kTileKeys : begin;
    if (first >= hi) return;
    find(current, first, lo, hi);
    for (; first < hi; first += kTileKeys) {
      int64_t a = r0, z = local;  // both bounds of the ranges ascend with the row
      while (a < z && range[a].hi <= first) ++a;
      while (z > a && range[z - 1].lo >= first + kTileKeys) --z;
      const bool more = first + kTileKeys < hi;
      if (more) find(next, first + kTileKeys, lo, hi);
      for (int64_t h = w.head_begin; h < w.head_end && a < z; ++h) {
        plan_prefetch(h, more);
        finite = true;
        for (int64_t x = 0; x < kHalves && first + x * kBlockKeys < hi; ++x)
          pack_half(current[x], first + x * kBlockKeys, h, s.k + x * kBlockKeys * q_cells,
                    s.v + x * kBlockKeys / T::kPerCell * width);
        const int64_t base = (h - w.head_begin) * local;
        multiply_block(first, base + a, base + z);
      }
      memcpy(current, next, sizeof current);
    }
  }
  void find(Rows<KV>* halves, int64_t first, int64_t lo, int64_t hi) {
    for (int64_t x = 0; x < kHalves; ++x) halves[x].find(p, w.request, first + x * kBlockKeys, lo, hi);
  }

  State state(int64_t i) const {
    const float* l = s.l + i * 32;
    const float sum = reduce_add(load(l));
    return {s.m[i], sum, T::kPairs ? reduce_add(load(l + 16)) : sum};
  }

  void finish_row(int64_t i, float* o, State st) {
    constexpr int64_t kAhead = 16;
    if (i + kAhead < rows) {
      const char* line = static_cast<const char*>(p.o) +
                         ((r.q_first + tokens[i + kAhead]) * p.o_stride_n + heads[i + kAhead] * p.o_stride_h) *
                             static_cast<int64_t>(sizeof(typename T::O));
      for (int64_t d = 0; d < p.head_dim_vo * static_cast<int64_t>(sizeof(typename T::O)); d += 64)
        __builtin_prefetch(line + d, 1);
    }
    if constexpr (H::kCustom)
      finish_custom<typename T::O>(hooks, p, r, r.q_first + tokens[i], heads[i], o, st, logits.factor);
    else
      finish<typename T::O>(p, r.q_first + tokens[i], heads[i], o, st, logits.factor);
  }

  void run() { run_chunks<H::kSoftmax>(*this, logits.factor); }
};

template <AttentionConfig C, class H>
void merge(const AttentionParams& p, const SplitKvReduction& g) {
  const H hooks(p, g.request);
  float factor = logits_of(p).factor;
  if constexpr (H::kCustom) factor = hooks.factor();
  merge_chunks<H::kSoftmax>(p, g, Scratch(p.scratch, p.head_dim_qk, p.head_dim_vo).total, factor,
                            [&](const Request& r, int64_t token, int64_t head, float* o, const State& s) {
                              if constexpr (H::kCustom)
                                finish_custom<typename Types<C>::O>(hooks, p, r, token, head, o, s, factor);
                              else
                                finish<typename Types<C>::O>(p, token, head, o, s, factor);
                            });
}
}  // namespace attention

/// Task i >= 0: work[i]; then, when all are done, task -1 - i: merges[i].
template <AttentionConfig C, class H = attention::NoHooks>
void attention_task(const AttentionParams& p, int64_t task) {
#if defined(FI_CPU_AMX)
  const TileScope tiles;
#endif
  if (task >= 0)
    attention::Tile<C, H>(p, p.work[task]).run();
  else
    attention::merge<C, H>(p, p.merges[-1 - task]);
}
/// The same with a custom variant: P is the generated struct of its parameters, V the user's.
template <AttentionConfig C, class P, class V>
void attention_variant_task(const AttentionParams& p, int64_t task) {
  const P params(p);
  attention_task<C, attention::Hooks<P, V>>(params, task);
}

}  // namespace flashinfer::cpu
