// SPDX-License-Identifier: Apache-2.0
// Attention on the CPU: one kernel for decode and prefill, paged and not. A task is a tile of rows of one KV head (decode: the
// G heads of one token). Per block of 64 keys: pack K, multiply, softmax row by row, pack V, multiply. The order in which an
// output is summed is params.h's and nothing else's, so a decode row equals the prefill row of its position bit by bit.
#pragma once
#include "flashinfer/ops/attention/cpu_tile.h"

namespace flashinfer::cpu {
namespace attention {

/// A row's softmax state beside its unnormalised output: maximum, denominator, denominator of the LSE.
struct State {
  float m, l, lse;
};

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

/// Where the rows of a request lie.
struct Request {
  int64_t q_first, qo_len, kv_len, offset, group;  // offset = kv_len - qo_len
  Request(const AttentionParams& p, int64_t b) {
    q_first = p.qo_indptr ? p.qo_indptr[b] : b;
    qo_len = p.qo_indptr ? p.qo_indptr[b + 1] - q_first : 1;
    kv_len = p.kv_len[b];
    offset = kv_len - qo_len;
    group = p.num_qo_heads / p.num_kv_heads;
  }
};

/// Keys that row `token` may see before a custom mask: [lo, hi).
struct Range {
  int32_t lo, hi;
};
inline Range visible_range(const AttentionParams& p, const Request& r, int64_t token) {
  const int64_t at = token + r.offset;
  const int64_t hi = p.causal && !p.mask ? (at + 1 < r.kv_len ? at + 1 : r.kv_len) : r.kv_len;
  const int64_t lo = p.window_left >= 0 && at > p.window_left ? at - p.window_left : 0;
  return lo < hi ? Range{static_cast<int32_t>(lo), static_cast<int32_t>(hi)} : Range{0, 0};
}
inline uint64_t low_bits(int64_t n) { return n >= 64 ? ~0ull : n <= 0 ? 0 : (1ull << n) - 1; }
/// Bit j: key `first + j` is visible to `token`.
inline uint64_t visible_bits(const AttentionParams& p, const Request& r, int64_t b, int64_t token, Range range, int64_t first) {
  uint64_t bits = low_bits(range.hi - first) & ~low_bits(range.lo - first);
  if (p.prefix_len) {  // a window hides from the left, items from the end of the prefix to the row's own delimiter
    const int64_t prefix = p.prefix_len[b], at = token + r.offset;
    if (at >= prefix) {
      const int64_t distance = at - prefix < p.token_pos_len ? p.token_pos[b * p.token_pos_len + at - prefix] : 0;
      bits &= low_bits(prefix - first) | ~low_bits(at - distance + 1 - first);
    }
    return bits;
  }
  if (!p.mask) return bits;
  const uint8_t* mask = p.mask + p.mask_indptr[b];
  const int64_t bit = token * r.kv_len + first, last = bit + (r.kv_len - first < 64 ? r.kv_len - first : 64) - 1;
  const int64_t byte = bit >> 3, shift = bit & 7, bytes = (last >> 3) - byte + 1;  // 1..9, never past the request's mask
  uint64_t word = 0;
  memcpy(&word, mask + byte, static_cast<size_t>(bytes < 8 ? bytes : 8));
  word >>= shift;
  if (bytes > 8) word |= static_cast<uint64_t>(mask[byte + 8]) << (64 - shift);
  return bits & word;
}

/// Addresses of the K and V rows (of KV head 0) of one block.
template <class KV>
struct Rows {
  const KV *k[kBlockKeys], *v[kBlockKeys];
  int64_t first, count;  // keys [first, first + count) of the block exist and are visible to somebody

  /// Keys [lo, hi) of the block that starts at `start`.
  void find(const AttentionParams& p, int64_t b, int64_t start, int64_t lo, int64_t hi) {
    first = lo > start ? lo - start : 0;
    count = (hi - start < kBlockKeys ? hi - start : kBlockKeys) - first;
    int64_t page = p.kv_indptr ? p.kv_indptr[b] : 0, entry = start + first;
    if (p.kv_indices) {
      page += entry / p.page_size;
      entry = entry % p.page_size;
    } else {
      entry += page;
    }
    const int64_t end = p.kv_indices ? p.page_size : INT64_MAX;
    for (int64_t j = first; j < first + count; ++page, entry = 0) {
      const int64_t pool = p.kv_indices ? p.kv_indices[page] : 0;
      const KV* kp = static_cast<const KV*>(p.k) + pool * p.k_stride_page;
      const KV* vp = static_cast<const KV*>(p.v) + pool * p.v_stride_page;
      for (; j < first + count && entry < end; ++j, ++entry) k[j] = kp + entry * p.k_stride_n, v[j] = vp + entry * p.v_stride_n;
    }
  }
};

/// Adds a later chunk to the total of a row. The first one with keys is taken as it is.
inline void fold(float* total, State& t, const float* o, State s, float factor, int64_t width) {
  if (s.m == -INFINITY) return;
  if (t.m == -INFINITY) {
    memcpy(total, o, static_cast<size_t>(width) * 4);
    t = s;
    return;
  }
  const float top = s.m > t.m ? s.m : t.m;
  const float wa = exp2((t.m - top) * factor), wb = exp2((s.m - top) * factor);
  for (int64_t d = 0; d < width; d += Vec::kLanes)
    store(total + d, fma(load(o + d), splat(wb), load(total + d) * splat(wa)));
  t = {top, t.l * wa + s.l * wb, t.lse * wa + s.lse * wb};
}

/// o / l in the output's dtype; zeros and -inf (with a sink: its logit) for a row that saw nothing. Adding 0 makes -0 (from
/// underflow) +0.
template <class O>
inline void finish(const AttentionParams& p, int64_t token, int64_t head, const float* o, State s, float factor) {
  O* out = static_cast<O*>(p.o) + token * p.o_stride_n + head * p.o_stride_h;
  const bool empty = s.m == -INFINITY;
  float weight = p.v_scale / s.l, lse = s.m * factor + log2f(s.lse);
  if (p.sinks) {
    const float sink = p.sinks[head] * 1.44269504f, m = s.m * factor, top = empty || sink > m ? sink : m;
    const float w = exp2(m - top), z = exp2(sink - top);
    weight = p.v_scale * w / (s.l * w + z);
    lse = empty ? sink : top + log2f(s.lse * w + z);
  } else if (empty) {
    lse = -INFINITY;
  }
  const Vec inv = splat(empty ? 0.0f : weight);
  const int64_t dim = p.head_dim_vo;
  int64_t d = 0;
  for (; d + Vec::kLanes <= dim; d += Vec::kLanes) store(out + d, fma(load(o + d), inv, zero()));
  if (d < dim) store_n(out + d, fma(load(o + d), inv, zero()), dim - d);
  if (p.lse) p.lse[token * p.lse_stride_n + head * p.lse_stride_h] = lse * p.lse_factor;
}

template <AttentionConfig C>
struct Tile {
  using T = Types<C>;
  using KV = typename T::KV;
  const AttentionParams& p;
  const AttentionWork& w;
  Request r;
  Scratch s;
  Logits logits;
  int64_t local, rows, width;  // rows of a head, of all heads; row i belongs to head i / local
  Range range[kTileRows];      // of the rows of one head
  Ahead ahead;

  Tile(const AttentionParams& params, const AttentionWork& work)
      : p(params), w(work), r(params, work.request), s(params.scratch, params.head_dim_qk, params.head_dim_vo),
        logits(logits_of(params)), local(work.row_end - work.row_begin), rows(local * (work.head_end - work.head_begin)),
        width(padded(params.head_dim_vo)) {
    memset(s.zeros, 0, static_cast<size_t>(4 * padded(p.head_dim_qk > p.head_dim_vo ? p.head_dim_qk : p.head_dim_vo)));
    for (int64_t i = 0; i < local; ++i) range[i] = visible_range(p, r, token(i));
    for (int64_t i = 0; i < rows; ++i) {
      const auto* q = static_cast<const typename T::Q*>(p.q) + (r.q_first + token(i)) * p.q_stride_n + head(i) * p.q_stride_h;
      uint32_t* to = s.q + i * q_cells();
      if constexpr (C.rope) {
        rotate(q, table(token(i) + r.offset), p.head_dim_qk, s.rotated);
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
    if constexpr (C.rope) {
      const float* turned[kBlockKeys];
      for (int64_t j = 0; j < kBlockKeys; ++j) {
        float* to = s.rotated + j * padded(p.head_dim_qk);
        turned[j] = to;
        rotate(k[j], table(j >= at.first && j < end ? start + j : 0), p.head_dim_qk, to);
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
        if (logits.transformed) {
          const float slope = p.alibi_slopes ? p.alibi_slopes[head(i + x)] : 0.0f;
          transform(logits, row, slope * static_cast<float>(first - token(i + x)), slope);
        }
        softmax_row<T::kPairs>(row, visible_bits(p, r, w.request, token(i + x), visible[i + x], first), logits.factor, s.m[i + x],
                               s.l + (i + x) * 32, s.o + (i + x) * width, width, s.p + (i + x) * kCells);
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
          finish<typename T::O>(p, r.q_first + token(i), head(i), o, state(i), logits.factor);
        } else {
          fold(s.total + i * width, s.total_state[i], o, state(i), logits.factor, width);
        }
      }
    }
    if (single || w.partial >= 0) return;
    for (int64_t i = 0; i < rows; ++i)
      finish<typename T::O>(p, r.q_first + token(i), head(i), s.total + i * width, s.total_state[i], logits.factor);
  }
};
}  // namespace attention

namespace attention {
/// After all works: folds the states of the chunks of one merge, in ascending order.
template <AttentionConfig C>
void merge_chunks(const AttentionParams& p, const AttentionMerge& g) {
  const Request r(p, g.request);
  const Scratch s(p.scratch, p.head_dim_qk, p.head_dim_vo);
  const int64_t width = padded(p.head_dim_vo), local = g.row_end - g.row_begin, rows = local * (g.head_end - g.head_begin);
  const float factor = logits_of(p).factor;
  for (int64_t i = 0; i < rows; ++i) {
    State total{-INFINITY, 0, 0};
    for (int64_t c = 0; c < g.chunks; ++c) {
      const int64_t at = g.partial + c * rows + i;
      fold(s.total, total, p.partial_o + at * width, reinterpret_cast<const State*>(p.partial_state)[at], factor, width);
    }
    const int64_t row = g.row_begin + i % local, head = (g.head_begin + i / local) * r.group + row % r.group;
    finish<typename Types<C>::O>(p, r.q_first + row / r.group, head, s.total, total, factor);
  }
}
}  // namespace attention

/// Task i >= 0: works[i]; then, when all are done, task -1 - i: merges[i].
template <AttentionConfig C>
void attention_task(const AttentionParams& p, int64_t task) {
  if (task >= 0) attention::Tile<C>(p, p.work[task]).run();
  else attention::merge_chunks<C>(p, p.merges[-1 - task]);
}

}  // namespace flashinfer::cpu
