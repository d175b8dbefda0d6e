// SPDX-License-Identifier: Apache-2.0
// Decode attention on the CPU: few query rows for each key, so reading K and V is the bottleneck, and every element
// read is used by all query heads of its KV head (docs/attention-cpu.md has the numbers). A work item is some KV heads
// of one request over some chunks. For each block of 32 keys, head and token: products of q with K, softmax over the
// block, products with V. Accumulation order: blocks of 32 keys from the request's first; states are folded every
// kDecodeChunkKeys keys in ascending order; inside a block a fixed order that depends on G, dims and types alone. So
// results do not depend on other requests of the batch, threads, work items or page size.
//
// Masked keys contribute nothing: their V rows are replaced by zeros, as 0 * NaN would be NaN.
#pragma once
#include "flashinfer/ops/attention/kernels/cpu/decode/convert.h"
#include "flashinfer/ops/attention/kernels/cpu/decode/fused.h"
#include "flashinfer/ops/attention/kernels/cpu/decode/nvfp4.h"
#include "flashinfer/ops/attention/kernels/cpu/decode/pairs.h"
#include "flashinfer/ops/attention/kernels/cpu/decode/read.h"
#include "flashinfer/ops/attention/kernels/cpu/decode/vec.h"

namespace flashinfer::cpu {
namespace attention {

template <AttentionConfig C>
struct Decode {
  using T = DecodeTypes<C>;
  using Q = typename T::Q;
  using KV = typename T::KV;
  using Cell = typename T::Cell;
  static constexpr bool kPairs = T::kPairs;
  using Block = typename DecodeReader<C>::Block;
  struct Pass {
    int first, width, rows;
  };
  const AttentionParams& p;
  const AttentionWorkItem& w;
  Request r;
  DecodeScratch s;
  LogitsOf logits;
  int64_t tokens, width, token_rows = 0;
  int passes = 0;
  bool codes, cells;   // operands: NVFP4 codes, or rows of bf16 in passes of cells; neither: rows of f32
  bool fused = false;  // rows are converted to bf16 during the products
  Pass pass[kDecodeRows];
  Range range[kMaxDecodeQueryTokens];
  Block blocks[2];  // the current block and the next one, whose first key is `found`
  int side = 0;
  int64_t found = -1;
  DecodeReader<C> in;

  Decode(const AttentionParams& params, const AttentionWorkItem& work)
      : p(params),
        w(work),
        r(params, work.request),
        s(params.scratch, params.head_dim_qk, params.head_dim_vo),
        logits(params),
        tokens(r.qo_len),
        width(padded(params.head_dim_vo)),
        codes(T::kCodes && r.group <= kCodesRows && params.head_dim_qk % 128 == 0 && params.head_dim_vo % 128 == 0),
        cells(T::kPairs && !codes),
        in(params, work, s) {
    const int64_t wide = padded(p.head_dim_qk > p.head_dim_vo ? p.head_dim_qk : p.head_dim_vo);
    memset(s.zeros, 0, static_cast<size_t>(4 * wide));
    for (int left = static_cast<int>(r.group); left > 0; ++passes) {
      const int wanted = cells ? pass_width(left) : left >= 4 && Vec::kLanes >= 4 ? 4 : left >= 2 ? 2 : 1;
      const int rows = wanted < left ? wanted : left;
      pass[passes] = {static_cast<int>(token_rows), wanted, rows};
      token_rows += wanted, left -= rows;
    }
    if constexpr (T::kConvert && kPairs) {
      fused = cells && tokens == 1 && p.head_dim_qk % 64 == 0 && p.head_dim_vo % 32 == 0;
      for (int n = 0; n < passes; ++n) fused &= pass[n].width >= 8;
    }
    for (int64_t t = 0; t < tokens; ++t) range[t] = visible_range(p, r, t);
    for (int64_t u = 0; u < units(); ++u)
      for (int k = 0; k < passes; ++k) pack(u, pass[k]);
  }

  /// A unit is one token's G heads of one KV head. It has token_rows rows of q and o, of which pass k has [first, first
  /// + width).
  int64_t units() const { return (w.head_end - w.head_begin) * tokens; }
  int64_t head_of(int64_t unit) const { return w.head_begin + unit / tokens; }
  float* o_of(int64_t unit, const Pass& a) const { return s.o + (unit * token_rows + a.first) * width; }
  uint32_t* q_of(int64_t unit, const Pass& a) const {
    return s.q + (unit * token_rows + a.first) * padded(p.head_dim_qk) / (kPairs ? 2 : 1);
  }
  /// One a pass with cells, else one a row.
  float* s_of(int64_t unit, const Pass& a) const { return s.s + (unit * token_rows + a.first) * kDecodeKeys; }
  uint32_t* cell_of(int64_t unit, const Pass& a) const {
    return s.cell + (unit * token_rows + a.first) * kDecodeKeys / 2;
  }
  Running& running(int64_t unit, int k) const { return s.running[unit * states() + (cells ? k : pass[k].first)]; }
  int64_t states() const { return cells ? passes : token_rows; }

  void pack(int64_t unit, const Pass& a) {
    const Q* rows[16];
    for (int i = 0; i < a.rows; ++i)
      rows[i] = static_cast<const Q*>(p.q) + (r.q_first + unit % tokens) * p.q_stride_n +
                (head_of(unit) * r.group + a.first + i) * p.q_stride_h;
#if defined(__AVX512BF16__)
#if defined(__AVX512VBMI__)
    if constexpr (T::kCodes)
      if (codes) return codes::pack_q(rows, a.rows, a.width, p.head_dim_qk, q_of(unit, a));
#endif
    if constexpr (kPairs) {
      uint32_t* to = q_of(unit, a);
      switch (a.width) {
        case 16: return pairs::pack_q<16>(rows, a.rows, p.head_dim_qk, to);
        case 8: return pairs::pack_q<8>(rows, a.rows, p.head_dim_qk, to);
        case 4: return pairs::pack_q<4>(rows, a.rows, p.head_dim_qk, to);
        case 2: return pairs::pack_q<2>(rows, a.rows, p.head_dim_qk, to);
        default: return pairs::pack_q<1>(rows, a.rows, p.head_dim_qk, to);
      }
    }
#endif
    if constexpr (!kPairs) f32::pack_q(rows, a.rows, p.head_dim_qk, reinterpret_cast<float*>(q_of(unit, a)));
  }

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
  /// run_keys for NVFP4 codes. Scales of masked keys are zeros, so their weights are 0 whatever the codes.
  template <bool Values>
  void run_codes(const Block& at, int64_t h, int64_t begin, int64_t end, int64_t first) {
    const int64_t row = h * (Values ? p.v_stride_h : p.k_stride_h),
                  sf = h * (Values ? p.v_sf_stride_h : p.k_sf_stride_h);
    const int64_t dim = Values ? p.head_dim_vo : p.head_dim_qk;
    bf16_t* scale = reinterpret_cast<bf16_t*>(s.k);
    for (int64_t t = 0; t < tokens; ++t) {
      const Shown b = shown(first, t);
      const int64_t lo = b.lo > begin ? b.lo : begin, hi = b.hi < end ? b.hi : end,
                    unit = (h - w.head_begin) * tokens + t;
      if (lo >= hi) continue;
      const uint8_t* rows[kDecodeKeys];
      for (int64_t j = begin; j < end; ++j)
        rows[j] = j >= lo && j < hi ? (Values ? at.v : at.k)[j] + row : reinterpret_cast<const uint8_t*>(s.zeros);
      codes::widen_scales(Values ? at.v_sf : at.k_sf, sf, dim / 16, begin, end, lo, hi, scale);
      in.ahead.template issue_prefetch<8>();
      for (int n = 0; n < passes; ++n)
        with_width(n, [&]<int W>() {
          if constexpr (W <= 4 && Values)
            codes::values<W>(rows, scale, lo, hi, s_of(unit, pass[n]), dim, o_of(unit, pass[n]), width, in.ahead);
          if constexpr (W <= 4 && !Values)
            codes::scores<W>(rows, scale, lo, hi, q_of(unit, pass[n]), dim, s_of(unit, pass[n]), in.ahead);
        });
    }
  }
#endif

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
  /// run_keys of a whole block that is converted during the products. Masked keys have codes and scales of zero.
  template <bool Values>
  void run_fused(const Block& at, int64_t h, int64_t first) {
    const Shown b = shown(first, 0);
    if (b.lo >= b.hi) return;
    const int64_t unit = h - w.head_begin, ld = padded(p.head_dim_qk);
    const KV* rows[kDecodeKeys];
    const uint8_t* sf[kDecodeKeys];
    in.head_rows(Values ? at.v : at.k, h * (Values ? p.v_stride_h : p.k_stride_h), b, rows);
    if constexpr (T::kFp4)
      in.head_rows(Values ? at.v_sf : at.k_sf, h * (Values ? p.v_sf_stride_h : p.k_sf_stride_h), b, sf);
    const auto source = [&] {
      if constexpr (T::kFp4)
        return fused::Nibbles{rows, sf};
      else
        return fused::Bytes<KV>{rows};
    }();
    const fused::Cells cells{reinterpret_cast<bf16_t*>(s.k), ld, passes > 1 ? kDecodeKeys : 16};
    const Cell* made[kDecodeKeys];
    if (!Values && passes > 1)
      for (int64_t j = 0; j < kDecodeKeys; ++j) made[j] = cells.row(j);
    for (int n = 0; n < passes; ++n)
      with_width(n, [&]<int W>() {
        if constexpr (W >= 8) {
          if constexpr (Values)
            fused::values<W>(source, b.lo, b.hi, cell_of(unit, pass[n]), p.head_dim_vo, o_of(unit, pass[n]), width,
                             in.ahead);
          else if (n == 0)
            fused::scores<W>(source, cells, b.lo, b.hi, q_of(unit, pass[n]), p.head_dim_qk, s_of(unit, pass[n]),
                             in.ahead);
          else
            multiply_k<W>(made, b.lo, b.hi, unit, n);
        }
      });
  }
#endif

  template <int W>
  void multiply_k(const Cell* const* k, int64_t lo, int64_t hi, int64_t unit, int n) {
    const Pass& a = pass[n];
#if defined(__AVX512BF16__)
    if constexpr (kPairs) pairs::scores<W, T::kShare>(k, lo, hi, q_of(unit, a), p.head_dim_qk, s_of(unit, a), in.ahead);
#endif
    if constexpr (!kPairs)
      f32::scores<W>(k, lo, hi, reinterpret_cast<const float*>(q_of(unit, a)), p.head_dim_qk, s_of(unit, a), in.ahead);
  }
  template <int W>
  void multiply_v(const Cell* const* v, int64_t lo, int64_t hi, int64_t unit, int n) {
    const Pass& a = pass[n];
#if defined(__AVX512BF16__)
    if constexpr (kPairs)
      pairs::values<W, T::kShare>(v, lo, hi, cell_of(unit, a), p.head_dim_vo, o_of(unit, a), width, in.ahead);
#endif
    if constexpr (!kPairs) f32::values<W>(v, lo, hi, s_of(unit, a), p.head_dim_vo, o_of(unit, a), width, in.ahead);
  }
  template <int W>
  void softmax_weights(const Shown& b, int64_t unit, int n) {
    const Pass& a = pass[n];
    if constexpr (kPairs)
      if (cells)
        return softmax<W, true>(logits, b, s_of(unit, a), running(unit, n), o_of(unit, a), width, cell_of(unit, a));
    softmax_rows<W>(b, unit, n, o_of(unit, a));
  }
  /// Calls f with the width W of pass `n` as a template argument.
  template <class F>
  void with_width(int n, F f) const {
    switch (pass[n].width) {
      case 1: return f.template operator()<1>();
      case 2: return f.template operator()<2>();
      case 4: return f.template operator()<4>();
      case 8:
        if constexpr (kPairs) return f.template operator()<8>();
      default:
        if constexpr (kPairs) return f.template operator()<16>();
    }
  }

  template <int W>
  void softmax_rows(const Shown& b, int64_t unit, int n, float* o) {
    Running* each = &running(unit, n);
    for (int i = 0; i < W; ++i) {
      Shown mine = b;
      if (b.slopes) mine.slopes = b.slopes + i;
      softmax<1, false>(logits, mine, s_of(unit, pass[n]) + i * kDecodeKeys, each[i], o + i * width, width, nullptr);
    }
  }
  Shown with_slopes(Shown b, int64_t head, int n, float* slopes) const {
    if (!p.alibi_slopes) return b;
    for (int i = 0; i < pass[n].rows; ++i) slopes[i] = p.alibi_slopes[head * r.group + pass[n].first + i];
    b.slopes = slopes;
    return b;
  }
  Shown shown(int64_t first, int64_t token) const {
    const Range& seen = range[token];
    return {seen.lo > first ? seen.lo - first : 0, seen.hi - first < kDecodeKeys ? seen.hi - first : kDecodeKeys,
            nullptr, static_cast<float>(first - token)};
  }

  /// Products of K or V for keys [begin, end) of a block, all rows of head `h`. Masked keys are zeros.
  template <bool Values>
  void run_keys(const Block& at, int64_t h, int64_t begin, int64_t end, int64_t first) {
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
    if constexpr (T::kCodes)
      if (codes) return run_codes<Values>(at, h, begin, end, first);
#endif
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
    if constexpr (T::kConvert && kPairs)
      if (fused) return run_fused<Values>(at, h, first);
#endif
    bool ready = !T::kConvert;
    for (int64_t t = 0; t < tokens; ++t) {
      const Shown b = shown(first, t);
      const int64_t lo = b.lo > begin ? b.lo : begin, hi = b.hi < end ? b.hi : end,
                    unit = (h - w.head_begin) * tokens + t;
      if (lo >= hi) continue;
      if (!ready) {
        const int64_t from = at.first > begin ? at.first : begin,
                      to = at.first + at.count < end ? at.first + at.count : end;  // keys of all tokens
        if constexpr (T::kConvert) in.template convert<Values>(at, h, from, to);
        ready = true;
      }
      const Cell* row[kDecodeKeys];
      if (lo == begin && hi == end) {
        for (int64_t j = begin; j < end; ++j) row[j] = in.template cells<Values>(at, h, j);
      } else {
        for (int64_t j = begin; j < end; ++j)
          row[j] = j < b.lo || j >= b.hi ? reinterpret_cast<const Cell*>(s.zeros) : in.template cells<Values>(at, h, j);
      }
      for (int n = 0; n < passes; ++n)
        with_width(n, [&]<int W>() {
          if constexpr (Values)
            multiply_v<W>(row, lo, hi, unit, n);
          else
            multiply_k<W>(row, lo, hi, unit, n);
        });
    }
  }
  void softmax_head(int64_t h, int64_t first) {
    for (int64_t t = 0; t < tokens; ++t) {
      const Shown seen = shown(first, t);
      if (seen.lo >= seen.hi) continue;
      for (int n = 0; n < passes; ++n) {
        float slopes[16] = {};
        const Shown b = with_slopes(seen, h, n, slopes);
        with_width(n, [&]<int W>() { softmax_weights<W>(b, (h - w.head_begin) * tokens + t, n); });
      }
    }
  }
  /// All heads of a block together, where they are adjacent in memory. Reading 32 rows of 256 bytes head by head costs
  /// a fifth of the bandwidth even without arithmetic (105 cycles for 512 bytes instead of 83); tiles of 8 keys come
  /// close to memory order, which the hardware prefetcher follows (90). From 4 rows on, loading and storing outputs for
  /// each tile costs as much, and so do rows that are converted.
  void run_tiles(const Block& block, const Block* next, int64_t first) {
    constexpr int64_t tile = kPairs ? 8 : 16, parts = 2 * kDecodeKeys / tile;
    for (int64_t i = 0; i < parts; ++i) {
      in.plan_prefetch(next, i, parts);
      if (2 * i == parts)
        for (int64_t h = w.head_begin; h < w.head_end; ++h) softmax_head(h, first);
      const int64_t begin = i * tile % kDecodeKeys;
      for (int64_t h = w.head_begin; h < w.head_end; ++h) {
        if (2 * i < parts)
          run_keys<false>(block, h, begin, begin + tile, first);
        else
          run_keys<true>(block, h, begin, begin + tile, first);
      }
    }
  }
  void run_head(const Block& block, int64_t h, int64_t first) {
    run_keys<false>(block, h, 0, kDecodeKeys, first);
    softmax_head(h, first);
    run_keys<true>(block, h, 0, kDecodeKeys, first);
  }

  void run_chunk(int64_t chunk) {
    memset(s.o, 0, static_cast<size_t>(units() * token_rows * width) * 4);
    for (int64_t i = 0; i < units() * states(); ++i) s.running[i].reset();
    int64_t t = 0;
    while (t < tokens && range[t].hi == 0) ++t;  // rows without visible keys come first (qo_len > kv_len)
    if (t == tokens) return;
    const int64_t begin = chunk * kDecodeChunkKeys, limit = int64_t{w.chunk_end} * kDecodeChunkKeys;
    const int64_t lo = range[t].lo,
                  all = range[tokens - 1].hi < limit ? range[tokens - 1].hi : limit;  // of this work item
    const int64_t hi = all < begin + kDecodeChunkKeys ? all : begin + kDecodeChunkKeys;
    int64_t first = lo > begin ? lo / kDecodeKeys * kDecodeKeys : begin;
    if (first < hi && found != first) in.find(blocks[side], first, lo, all);
    for (; first < hi; first += kDecodeKeys, side ^= 1) {
      found = first + kDecodeKeys < all ? first + kDecodeKeys : -1;  // also the next chunk's first block
      if (found >= 0) in.find(blocks[side ^ 1], found, lo, all), in.touch(blocks[side ^ 1]);
      const Block *current = &blocks[side], *next = found >= 0 ? &blocks[side ^ 1] : nullptr;
      const bool adjacent = in.heads_adjacent();
      if (adjacent && !T::kConvert && token_rows <= 2) {
        run_tiles(*current, next, first);
        continue;
      }
      for (int64_t h = w.head_begin; h < w.head_end; ++h) {
        if (adjacent)
          in.plan_prefetch(next, h - w.head_begin, w.head_end - w.head_begin);
        else
          in.plan_head_prefetch(*current, next, h);
        run_head(*current, h, first);
      }
    }
  }

  State state(int64_t unit, int n, int row) const {
    if (!cells) return state_of<1, false>((&running(unit, n))[row], 0);
    switch (pass[n].width) {
      case 1: return cells_state<1>(running(unit, n), row);
      case 2: return cells_state<2>(running(unit, n), row);
      case 4: return cells_state<4>(running(unit, n), row);
      case 8: return cells_state<8>(running(unit, n), row);
      default: return cells_state<16>(running(unit, n), row);
    }
  }
  template <int W>
  static State cells_state(const Running& r, int row) {
    if constexpr (kPairs) return state_of<W, true>(r, row);
    return {};
  }

  /// Stores a chunk's states for the reduction, writes the outputs, or folds them into the total.
  void emit(int64_t chunk, bool single) {
    for (int64_t unit = 0; unit < units(); ++unit)
      for (int n = 0; n < passes; ++n)
        for (int i = 0; i < pass[n].rows; ++i) {
          const float* o = o_of(unit, pass[n]) + i * width;
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
          if constexpr (T::kCodes)
            if (codes)
              codes::in_order(o, width, reinterpret_cast<float*>(s.k)), o = reinterpret_cast<const float*>(s.k);
#endif
          const int64_t row = unit * r.group + pass[n].first + i;
          const State mine = state(unit, n, i);
          if (w.partial >= 0) {
            const int64_t to = w.partial + (chunk - w.chunk_begin) * units() * r.group + row;
            memcpy(p.partial_o + to * width, o, static_cast<size_t>(width) * 4);
            reinterpret_cast<State*>(p.softmax_state)[to] = mine;
          } else if (single) {
            write(row, o, mine);
          } else {
            fold(s.total + row * width, s.total_state[row], o, mine, 1.0f, width);
          }
        }
  }
  void write(int64_t row, const float* o, State state) {
    const int64_t unit = row / r.group;
    finish<scalar_of_t<C.o>>(p, r.q_first + unit % tokens, head_of(unit) * r.group + row % r.group, o, state, 1.0f);
  }

  void run() {
    const bool single = w.chunk_end - w.chunk_begin == 1;
    const int64_t rows = units() * r.group;
    for (int64_t i = 0; i < rows; ++i) s.total_state[i].m = -INFINITY;
    for (int64_t c = w.chunk_begin; c < w.chunk_end; ++c) {
      run_chunk(c);
      emit(c, single);
    }
    if (single || w.partial >= 0) return;
    for (int64_t i = 0; i < rows; ++i) write(i, s.total + i * width, s.total_state[i]);
  }
};

}  // namespace attention

/// Task i >= 0: work[i]; then, when all are done, task -1 - i: merges[i].
template <AttentionConfig C>
void attention_decode_task(const AttentionParams& p, int64_t task) {
  using namespace attention;
  if (task >= 0) return Decode<C>(p, p.work[task]).run();
  merge_chunks<true>(p, p.merges[-1 - task], DecodeScratch(p.scratch, p.head_dim_qk, p.head_dim_vo).total, 1.0f,
                     [&](const Request&, int64_t token, int64_t head, float* o, const State& s) {
                       finish<scalar_of_t<C.o>>(p, token, head, o, s, 1.0f);
                     });
}

}  // namespace flashinfer::cpu
