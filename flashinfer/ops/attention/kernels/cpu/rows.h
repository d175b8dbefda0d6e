// SPDX-License-Identifier: Apache-2.0
// Code shared by the CPU kernels: addresses of the rows and keys of a request, visible keys, the state of a row,
// folding of chunks, and writing of outputs.
#pragma once
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/ops/attention/kernels/cpu/scratch.h"

namespace flashinfer::cpu::attention {

inline float first_lane(Vec v) {
  float lanes[Vec::kLanes];
  store(lanes, v);
  return lanes[0];
}
inline float exp2(float x) { return first_lane(cpu::exp2(splat(x))); }

/// x * factor + base with one rounding on every target: near -2.5e5 rounding the product alone would shift an exponent
/// by 0.01.
FI_VEC_INLINE Vec exponent(Vec x, Vec factor, Vec base) {
#if defined(__AVX512F__) || defined(__AVX2__)
  return fma(x, factor, base);
#else
  typedef double Doubles __attribute__((vector_size(2 * sizeof(x.r))));
  const Doubles wide = __builtin_convertvector(x.r, Doubles) * __builtin_convertvector(factor.r, Doubles) +
                       __builtin_convertvector(base.r, Doubles);
  return {__builtin_convertvector(wide, decltype(x.r))};
#endif
}

/// 2^t for probabilities, t <= 8 or -inf: relative error 3.4e-6 (f32: 9.1e-8), where a bf16 has 2e-3. exp.h's exp2 is
/// good to 1.3 ulp and costs more terms, a clamp and a rounding; here -inf passes through vreduceps as 0 and vscalefps
/// makes it 0. vscalefps takes the floor of its exponent, so the fraction in [0, 1) saves a subtraction; in f32 the
/// longer interval would cost a term. Exact at whole t (the best fit without that condition is good to 2.6e-6): the
/// LSE of a row that sees one key is its logit.
template <bool Pairs>
FI_VEC_INLINE Vec probability(Vec t) {
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  if constexpr (Pairs) {
    constexpr float kC[] = {1.0f, 0.6930321204f, 0.2413797623f, 0.0520323707f, 0.0135557461f};
    return {_mm512_scalef_ps(
        cpu::detail::horner(Vec{_mm512_reduce_ps(t.r, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}, kC).r, t.r)};
  } else {
    const Vec f{_mm512_reduce_ps(t.r, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}, n = t - f;
    constexpr float kC[] = {1.0f,
                            0.6931470036506653f,
                            0.24022242426872253f,
                            0.05550733581185341f,
                            0.009671512991189957f,
                            0.001326472731307149f};
    return ldexp(cpu::detail::horner(f, kC), n);
  }
#else
  return cpu::exp2(t);
#endif
}

/// Rows and keys of a request.
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

/// Keys [lo, hi) that row `token` may see before a custom mask.
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
inline uint64_t visible_bits(const AttentionParams& p, const Request& r, int64_t b, int64_t token, Range range,
                             int64_t first) {
  uint64_t bits = low_bits(range.hi - first) & ~low_bits(range.lo - first);
  if (!bits) return 0;
  if (p.prefix_len) {  // a window masks from the left, multi-item scoring from the end of the prefix to the row's own
                       // delimiter
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
  const int64_t byte = bit >> 3, shift = bit & 7,
                bytes = (last >> 3) - byte + 1;  // 1..9, never past the request's mask
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
  const uint8_t *k_sf[kBlockKeys], *v_sf[kBlockKeys];  // NVFP4 only
  int64_t first, count;  // keys [first, first + count) of the block exist and are visible to some row

  /// Keys [lo, hi) of the block that starts at `start`.
  void find(const AttentionParams& p, int64_t b, int64_t start, int64_t lo, int64_t hi) {
    first = lo > start ? lo - start : 0;
    count = (hi - start < kBlockKeys ? hi - start : kBlockKeys) - first;
    if (count < 0) count = 0, first = lo > start ? kBlockKeys : 0;
    int64_t page = p.kv_indptr ? p.kv_indptr[b] : 0, entry = start + first;
    if (p.kv_indices) {
      page += entry / p.page_size;
      entry = entry % p.page_size;
    } else {
      entry += page;
    }
    const int64_t end = p.kv_indices ? p.page_size : INT64_MAX;
    for (int64_t j = first; j < first + count; ++page, entry = 0) {
      const int64_t k_page = p.kv_indices ? p.kv_indices[page] : 0, v_page = p.v_indices ? p.v_indices[page] : k_page;
      const KV* kp = static_cast<const KV*>(p.k) + k_page * p.k_stride_page;
      const KV* vp = static_cast<const KV*>(p.v) + v_page * p.v_stride_page;
      if (p.k_sf)
        for (int64_t i = j, e = entry; i < first + count && e < end; ++i, ++e) {
          k_sf[i] = p.k_sf + k_page * p.k_sf_stride_page + e * p.k_sf_stride_n;
          v_sf[i] = p.v_sf + v_page * p.v_sf_stride_page + e * p.v_sf_stride_n;
        }
      for (; j < first + count && entry < end; ++j, ++entry)
        k[j] = kp + entry * p.k_stride_n, v[j] = vp + entry * p.v_stride_n;
    }
  }
};

/// Adds a later chunk to the total of a row. The first chunk with keys is copied.
template <bool Softmax = true>  // without softmax: chunks are added
inline void fold(float* total, State& t, const float* o, State s, float factor, int64_t width) {
  if (s.m == -INFINITY) return;
  if (t.m == -INFINITY) {
    memcpy(total, o, static_cast<size_t>(width) * 4);
    t = s;
    return;
  }
  if constexpr (!Softmax) {
    for (int64_t d = 0; d < width; d += Vec::kLanes) store(total + d, load(o + d) + load(total + d));
    return;
  }
  const float top = s.m > t.m ? s.m : t.m;
  const float wa = exp2((t.m - top) * factor), wb = exp2((s.m - top) * factor);
  for (int64_t d = 0; d < width; d += Vec::kLanes)
    store(total + d, fma(load(o + d), splat(wb), load(total + d) * splat(wa)));
  t = {top, t.l * wa + s.l * wb, t.lse * wa + s.lse * wb};
}

/// The chunks of a tile of rows: into p.partial_o and p.softmax_state where another task merges them, else folded in
/// ascending order, and each row given to t.finish_row().
template <bool Softmax = true, class Tile>
inline void run_chunks(Tile& t, float factor) {
  const auto& p = t.p;
  const auto& w = t.w;
  const auto& s = t.s;
  const bool single = w.chunk_end - w.chunk_begin == 1;
  for (int64_t i = 0; i < t.rows; ++i) s.total_state[i].m = -INFINITY;
  for (int64_t c = w.chunk_begin; c < w.chunk_end; ++c) {
    t.run_chunk(c);
    for (int64_t i = 0; i < t.rows; ++i) {
      float* o = s.o + i * t.width;
      if (w.partial >= 0) {
        const int64_t at = w.partial + (c - w.chunk_begin) * t.rows + i;
        memcpy(p.partial_o + at * t.width, o, static_cast<size_t>(t.width) * 4);
        reinterpret_cast<State*>(p.softmax_state)[at] = t.state(i);
      } else if (single) {
        t.finish_row(i, o, t.state(i));
      } else {
        fold<Softmax>(s.total + i * t.width, s.total_state[i], o, t.state(i), factor, t.width);
      }
    }
  }
  if (single || w.partial >= 0) return;
  for (int64_t i = 0; i < t.rows; ++i) t.finish_row(i, s.total + i * t.width, s.total_state[i]);
}

/// Writes one row of outputs, times `weight`. Adding 0 makes -0 (from underflow) +0.
template <class O>
inline void store_row(const AttentionParams& p, int64_t token, int64_t head, const float* o, Vec weight) {
  O* out = static_cast<O*>(p.o) + token * p.o_stride_n + head * p.o_stride_h;
  const int64_t dim = p.head_dim_vo;
  int64_t d = 0;
  for (; d + Vec::kLanes <= dim; d += Vec::kLanes) store(out + d, fma(load(o + d), weight, zero()));
  if (d < dim) store_n(out + d, fma(load(o + d), weight, zero()), dim - d);
}

/// o / l in the output's dtype; zeros and -inf (with a sink: its logit) for a row without visible keys.
template <class O>
inline void finish(const AttentionParams& p, int64_t token, int64_t head, const float* o, State s, float factor) {
  const bool empty = s.m == -INFINITY;
  const float v_scale =
      p.v_head_scales ? p.v_scale * p.v_head_scales[head / (p.num_qo_heads / p.num_kv_heads)] : p.v_scale;
  float weight = v_scale / s.l, lse = p.lse ? s.m * factor + log2f(s.lse) : 0;
  if (p.sinks) {
    const float sink = p.sinks[head] * 1.44269504f, m = s.m * factor, top = empty || sink > m ? sink : m;
    const float w = exp2(m - top), z = exp2(sink - top);
    weight = v_scale * w / (s.l * w + z);
    lse = empty ? sink : top + log2f(s.lse * w + z);
  } else if (empty) {
    lse = -INFINITY;
  }
  store_row<O>(p, token, head, o, splat(empty ? 0.0f : weight));
  if (p.lse) p.lse[token * p.lse_stride_n + head * p.lse_stride_h] = lse * p.lse_factor;
}

/// After all work items: folds the states of the chunks of one merge, in ascending order, and writes each row with
/// write(request, token of q, head, output, state). `total`: space for one row.
template <bool Softmax, class Write>
void merge_chunks(const AttentionParams& p, const SplitKvReduction& g, float* total, float factor, Write write) {
  const Request r(p, g.request);
  const int64_t width = padded(p.head_dim_vo), local = g.row_end - g.row_begin,
                rows = local * (g.head_end - g.head_begin);
  for (int64_t i = 0; i < rows; ++i) {
    State state{-INFINITY, 0, 0};
    for (int64_t c = 0; c < g.chunks; ++c) {
      const int64_t at = g.partial + c * g.stride + i;
      fold<Softmax>(total, state, p.partial_o + at * width, reinterpret_cast<const State*>(p.softmax_state)[at], factor,
                    width);
    }
    const int64_t row = g.row_begin + i % local, head = (g.head_begin + i / local) * r.group + row % r.group;
    write(r, r.q_first + row / r.group, head, total, state);
  }
}

}  // namespace flashinfer::cpu::attention
