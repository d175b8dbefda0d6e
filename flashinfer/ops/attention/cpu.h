// SPDX-License-Identifier: Apache-2.0
// Attention on the CPU for many rows, paged and not: the tile kernel (few rows: cpu_decode.h). A task is a tile of rows of one KV
// head. Per block of 64 keys: pack K, multiply, softmax row by row, pack V, multiply. The order in which an output is summed is
// params.h's and nothing else's.
#pragma once
#include "flashinfer/ops/attention/cpu_tile.h"
#include "flashinfer/ops/attention/cpu_variant.h"

namespace flashinfer::cpu {
namespace attention {

/// The parts of AttentionParams::scratch.
struct Scratch {
  uint32_t *q, *k, *v, *p;
  float *s, *o, *total, *l, *m, *rotated;
  State* total_state;
  void* zeros;
  Scratch(void* base, int64_t dqk, int64_t dvo) {
    char* at = static_cast<char*>(base);
    auto take = [&](int64_t cells) {
      char* here = at;
      at += round_up(cells * 4, 64);
      return here;
    };
    q = reinterpret_cast<uint32_t*>(take(kTileRows * padded(dqk)));
    k = reinterpret_cast<uint32_t*>(take(kBlockKeys * padded(dqk)));
    v = reinterpret_cast<uint32_t*>(take(kBlockKeys * padded(dvo)));
    p = reinterpret_cast<uint32_t*>(take(kTileRows * kBlockKeys));
    s = reinterpret_cast<float*>(take(8 * kBlockKeys));
    o = reinterpret_cast<float*>(take(kTileRows * padded(dvo)));
    total = reinterpret_cast<float*>(take(kTileRows * padded(dvo)));
    l = reinterpret_cast<float*>(take(kTileRows * 32));
    m = reinterpret_cast<float*>(take(kTileRows));
    total_state = reinterpret_cast<State*>(take(kTileRows * 3));
    zeros = take(padded(dqk > dvo ? dqk : dvo));
    rotated = reinterpret_cast<float*>(take(kBlockKeys * padded(dqk)));
  }
};

template <AttentionConfig C, class H>
struct Tile {
  using T = Types<C, H::kElements>;
  using KV = typename T::KV;
  const AttentionParams& p;
  const AttentionWork& w;
  Request r;
  H hooks;
  Scratch s;
  Logits logits;
  int64_t local, rows, width;  // rows of a head, of all heads; row i belongs to head i / local
  Range range[kTileRows];      // of the rows of one head
  Ahead ahead;

  Tile(const AttentionParams& params, const AttentionWork& work)
      : p(params), w(work), r(params, work.request), hooks(params, work.request), s(params.scratch, params.head_dim_qk, params.head_dim_vo),
        logits(logits_of(params)), local(work.row_end - work.row_begin), rows(local * (work.head_end - work.head_begin)),
        width(padded(params.head_dim_vo)) {
    if constexpr (H::kCustom) logits.factor = hooks.factor();
    memset(s.zeros, 0, static_cast<size_t>(4 * padded(p.head_dim_qk > p.head_dim_vo ? p.head_dim_qk : p.head_dim_vo)));
    for (int64_t i = 0; i < local; ++i) range[i] = visible_range(p, r, token(i));
    for (int64_t i = 0; i < rows; ++i) {
      const auto* q = static_cast<const typename T::Q*>(p.q) + (r.q_first + token(i)) * p.q_stride_n + head(i) * p.q_stride_h;
      uint32_t* to = s.q + i * q_cells();
      if constexpr (C.rope || H::kElements) {
        if constexpr (C.rope) rotate(q, table(token(i) + r.offset), p.head_dim_qk, s.rotated);
        else copy_row(q, p.head_dim_qk, s.rotated);
        if constexpr (H::kElements) hooks.query(s.rotated, p.head_dim_qk);
        pack_q<Types<AttentionConfig{DType::kF32, C.kv, C.o, true}>>(s.rotated, p.head_dim_qk, to);
      } else {
        pack_q<T>(q, p.head_dim_qk, to);
      }
    }
  }
  int64_t token(int64_t i) const { return (w.row_begin + i % local) / r.group; }
  int64_t head(int64_t i) const { return (w.head_begin + i / local) * r.group + (w.row_begin + i % local) % r.group; }
  int64_t q_cells() const { return padded(p.head_dim_qk) / T::kPerCell; }
  const float* table(int64_t position) const { return p.rope + (position - p.rope_first) * p.head_dim_qk; }

  /// Sets what to prefetch while head `h` of `here` is worked on: the next head's rows or, where the heads of a token lie side
  /// by side and two blocks fit L2, this head's share of the tokens of the next block, in the order of memory.
  void look_ahead(const Rows<KV>& here, const Rows<KV>* next, int64_t h) {
    ahead.at = ahead.d = ahead.count = 0;
    const int64_t heads = w.head_end - w.head_begin, i = h - w.head_begin;
    const int64_t dim = p.head_dim_qk > p.head_dim_vo ? p.head_dim_qk : p.head_dim_vo;
    const int64_t item = static_cast<int64_t>(sizeof(KV));
    const bool tokens = p.k_stride_h == p.head_dim_qk && p.v_stride_h == p.head_dim_vo && 2 * kBlockKeys * heads * dim * item <= 262144;
    const Rows<KV>* rows = tokens || i + 1 == heads ? next : &here;
    if (!rows) return;
    const int64_t head = tokens || i + 1 == heads ? w.head_begin : h + 1;
    const int64_t begin = tokens ? rows->count * i / heads : 0, end = tokens ? rows->count * (i + 1) / heads : rows->count;
    ahead.bytes = dim * item * (tokens ? heads : 1);
    for (int64_t j = rows->first + begin; j < rows->first + end; ++j) {
      ahead.rows[ahead.count++] = reinterpret_cast<const char*>(rows->k[j] + head * p.k_stride_h);
      ahead.rows[ahead.count++] = reinterpret_cast<const char*>(rows->v[j] + head * p.v_stride_h);
    }
  }

  /// Packs K and V of one head. Slots that hold no visible key are taken from zeros, so that unused slots of a page are never read.
  void pack_block(const Rows<KV>& at, int64_t start, int64_t kv_head) {
    const KV *k[kBlockKeys], *v[kBlockKeys];
    const int64_t end = at.first + at.count;
    for (int64_t j = 0; j < kBlockKeys; ++j) {
      const bool there = j >= at.first && j < end;
      k[j] = there ? at.k[j] + kv_head * p.k_stride_h : static_cast<const KV*>(s.zeros);
      v[j] = there ? at.v[j] + kv_head * p.v_stride_h : static_cast<const KV*>(s.zeros);
    }
    if constexpr (C.rope || H::kElements) {
      const float* turned[kBlockKeys];
      for (int64_t j = 0; j < kBlockKeys; ++j) {
        float* to = s.rotated + j * padded(p.head_dim_qk);
        turned[j] = to;
        if constexpr (C.rope) rotate(k[j], table(j >= at.first && j < end ? start + j : 0), p.head_dim_qk, to);
        else copy_row(k[j], p.head_dim_qk, to);
        if constexpr (H::kElements) hooks.key(to, p.head_dim_qk);
      }
      pack_k<T>(turned, kBlockKeys, p.head_dim_qk, s.k, ahead);
    } else {
      pack_k<T>(k, kBlockKeys, p.head_dim_qk, s.k, ahead);
    }
    pack_v<T>(v, end, p.head_dim_vo, s.v, ahead);
  }

  /// Rows [r0, r1) of one head against the packed block at key `first`.
  void multiply_block(int64_t first, int64_t r0, int64_t r1) {
    constexpr int64_t kCells = kBlockKeys / T::kPerCell;
    const Range* visible = range - r0 / local * local;
    for (int64_t i = r0; i < r1; i += kMaxRows) {
      const int64_t n = r1 - i < kMaxRows ? r1 - i : kMaxRows;
      product_rows<T::kPairs>(n, s.q + i * q_cells(), q_cells(), s.k, kBlockKeys, s.s, kBlockKeys, cells<T>(p.head_dim_qk),
                              kBlockKeys, false, ahead);
      for (int64_t x = 0; x < n; ++x) {
        float* row = s.s + x * kBlockKeys;
        uint64_t bits = visible_bits(p, r, w.request, token(i + x), visible[i + x], first);
        if constexpr (H::kCustom) {
          hooks.logits(row, bits, token(i + x), first, head(i + x), head(i + x) / r.group);
        } else if (logits.transformed) {
          const float slope = p.alibi_slopes ? p.alibi_slopes[head(i + x)] : 0.0f;
          transform(logits, row, slope * static_cast<float>(first - token(i + x)), slope);
        }
        if constexpr (H::kSoftmax) {
          softmax_row<T::kPairs>(row, bits, logits.factor, s.m[i + x], s.l + (i + x) * 32, s.o + (i + x) * width, width,
                                 s.p + (i + x) * kCells);
        } else {
          weights_row<T::kPairs>(row, bits, s.p + (i + x) * kCells);
          if (bits) s.m[i + x] = 0;
        }
      }
    }
    for (int64_t i = r0; i < r1; i += kMaxRows) {
      const int64_t n = r1 - i < kMaxRows ? r1 - i : kMaxRows;
      const int64_t keys = visible[i + n - 1].hi - first < kBlockKeys ? visible[i + n - 1].hi - first : kBlockKeys;
      product_rows<T::kPairs>(n, s.p + i * kCells, kCells, s.v, width, s.o + i * width, width, cells<T>(keys), width, true, ahead);
    }
  }

  void run_chunk(int64_t chunk) {
    for (int64_t i = 0; i < rows; ++i) s.m[i] = -INFINITY;
    memset(s.l, 0, static_cast<size_t>(rows) * 128);
    memset(s.o, 0, static_cast<size_t>(rows * width) * 4);
    const int64_t begin = chunk * kChunkKeys, end = begin + kChunkKeys;
    int64_t r0 = 0;
    while (r0 < local && range[r0].hi == 0) ++r0;  // rows that see nothing come first (qo_len > kv_len)
    if (r0 == local) return;
    const int64_t lo = range[r0].lo, hi = range[local - 1].hi < end ? range[local - 1].hi : end;
    int64_t first = lo > begin ? lo / kBlockKeys * kBlockKeys : begin;
    if (first >= hi) return;
    Rows<KV> here, next;
    here.find(p, w.request, first, lo, hi);
    for (; first < hi; first += kBlockKeys, here = next) {
      int64_t a = r0, z = local;  // both bounds of the ranges ascend with the row
      while (a < z && range[a].hi <= first) ++a;
      while (z > a && range[z - 1].lo >= first + kBlockKeys) --z;
      const bool more = first + kBlockKeys < hi;
      if (more) next.find(p, w.request, first + kBlockKeys, lo, hi);
      for (int64_t h = w.head_begin; h < w.head_end && a < z; ++h) {
        look_ahead(here, more ? &next : nullptr, h);
        pack_block(here, first, h);
        const int64_t base = (h - w.head_begin) * local;
        multiply_block(first, base + a, base + z);
      }
    }
  }

  State state(int64_t i) const {
    const float* l = s.l + i * 32;
    const float sum = reduce_add(load(l));
    return {s.m[i], sum, T::kPairs ? reduce_add(load(l + 16)) : sum};
  }

  void finish_row(int64_t i, float* o, State st) {
    if constexpr (H::kCustom) finish_custom<typename T::O>(hooks, p, r, r.q_first + token(i), head(i), o, st, logits.factor);
    else finish<typename T::O>(p, r.q_first + token(i), head(i), o, st, logits.factor);
  }

  void run() {
    const bool single = w.chunk_end - w.chunk_begin == 1;
    for (int64_t i = 0; i < rows; ++i) s.total_state[i].m = -INFINITY;
    for (int64_t c = w.chunk_begin; c < w.chunk_end; ++c) {
      run_chunk(c);
      for (int64_t i = 0; i < rows; ++i) {
        const float* o = s.o + i * width;
        if (w.partial >= 0) {
          memcpy(p.partial_o + (w.partial + i) * width, o, static_cast<size_t>(width) * 4);
          reinterpret_cast<State*>(p.partial_state)[w.partial + i] = state(i);
        } else if (single) {
          finish_row(i, s.o + i * width, state(i));
        } else {
          fold<H::kSoftmax>(s.total + i * width, s.total_state[i], o, state(i), logits.factor, width);
        }
      }
    }
    if (single || w.partial >= 0) return;
    for (int64_t i = 0; i < rows; ++i) finish_row(i, s.total + i * width, s.total_state[i]);
  }
};
}  // namespace attention

namespace attention {
template <AttentionConfig C, class H>
void merge(const AttentionParams& p, const AttentionMerge& g) {
  const H hooks(p, g.request);
  float factor = logits_of(p).factor;
  if constexpr (H::kCustom) factor = hooks.factor();
  merge_chunks<H::kSoftmax>(p, g, Scratch(p.scratch, p.head_dim_qk, p.head_dim_vo).total, factor,
                            [&](const Request& r, int64_t token, int64_t head, float* o, const State& s) {
                              if constexpr (H::kCustom) finish_custom<typename Types<C>::O>(hooks, p, r, token, head, o, s, factor);
                              else finish<typename Types<C>::O>(p, token, head, o, s, factor);
                            });
}
}  // namespace attention

/// Task i >= 0: works[i]; then, when all are done, task -1 - i: merges[i].
template <AttentionConfig C, class H = attention::NoHooks>
void attention_task(const AttentionParams& p, int64_t task) {
  if (task >= 0) attention::Tile<C, H>(p, p.work[task]).run();
  else attention::merge<C, H>(p, p.merges[-1 - task]);
}
/// The same with a custom variant: P is the generated struct of its parameters, V the user's.
template <AttentionConfig C, class P, class V>
void attention_variant_task(const AttentionParams& p, int64_t task) {
  const P params(p);
  attention_task<C, attention::Hooks<P, V>>(params, task);
}

}  // namespace flashinfer::cpu
