// SPDX-License-Identifier: Apache-2.0
// Decode attention on the CPU: few rows (query heads) a key, so reading K and V is the limit and every element read serves all
// query heads of its KV head (docs/attention-cpu.md has the counts). A work is some KV heads of one request over some chunks; per
// block of 32 keys, head and token: products of q with K as it lies, softmax over the block, products with V. Accumulation order:
// blocks of 32 keys from the request's first, states folded every kDecodeChunkKeys keys in ascending order; inside a block a fixed
// order that depends on G, dims and types alone. So results do not depend on batch mates, threads, works or page size.
//
// The keys that a row does not see take no part at all: their V is replaced by zeros, for 0 * NaN would be NaN.
#pragma once
#include "flashinfer/ops/attention/cpu_decode_codes.h"
#include "flashinfer/ops/attention/cpu_decode_narrow.h"
#include "flashinfer/ops/attention/cpu_decode_pairs.h"
#include "flashinfer/ops/attention/cpu_decode_vec.h"

namespace flashinfer::cpu {
namespace attention {

/// NVFP4: groups of more heads gain more from rows of bf16, which cost once what codes cost a row. Cycles a key at D 128 from L2, codes and
/// rows: G = 1 48 and 87, G = 4 96 and 114, G = 8 174 and 144.
inline constexpr int kCodesRows = 4;

struct DecodeScratch {
  char* at;
  uint32_t *q, *cell;
  float *s, *o, *total;
  Running* running;
  State* total_state;
  char *zeros, *k, *v;
  DecodeScratch(void* base, int64_t dqk, int64_t dvo) : at(static_cast<char*>(base)) {
    q = take<uint32_t>(kDecodeRows * padded(dqk) * 4);
    o = take<float>(kDecodeRows * padded(dvo) * 4);
    total = take<float>(kDecodeRows * padded(dvo) * 4);
    running = take<Running>(kDecodeRows * 48 * 4);
    s = take<float>(16 * kBlockKeys * 4);
    cell = take<uint32_t>(16 * kBlockKeys * 4);
    total_state = take<State>(kDecodeRows * 16);
    zeros = take<char>(padded(dqk > dvo ? dqk : dvo) * 4);
    k = take<char>(kBlockKeys * padded(dqk) * 4);
    v = take<char>(kBlockKeys * padded(dvo) * 4);
  }
  template <class T>
  T* take(int64_t bytes) {
    char* here = at;
    at += round_up(bytes, 64);
    return reinterpret_cast<T*>(here);
  }
};

/// What the kernel reads and what it multiplies.
template <AttentionConfig C>
struct DecodeTypes {
  static constexpr bool kFp4 = C.kv == DType::kF4E2M1x2;
  static constexpr bool kNarrow = kFp4 || C.kv == DType::kF8E4M3 || C.kv == DType::kF8E5M2;
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
  static constexpr bool kPairs = C.q == DType::kBF16 && (C.kv == DType::kBF16 || kNarrow);
#elif defined(__AVX512BF16__)
  static constexpr bool kPairs = C.q == DType::kBF16 && C.kv == DType::kBF16;
#else
  static constexpr bool kPairs = false;
#endif
  static constexpr bool kCodes = kFp4 && kPairs;  // codes as they lie, where the dims allow it
  static constexpr bool kConvert = kFp4 || (kNarrow && kPairs);  // a block of rows before it is multiplied
  static constexpr DType kCell = !kConvert ? C.kv == DType::kF4E2M1x2 ? DType::kF32 : C.kv : kPairs ? DType::kBF16 : DType::kF32;
  using Q = scalar_of_t<C.q>;
  using KV = scalar_of_t<kFp4 ? DType::kU8 : C.kv>;
  using Cell = scalar_of_t<kCell>;
  /// Every how many lines that the products read one is asked for: conversion reads (and asks for) half of what there is.
  static constexpr int kShare = !kConvert ? 1 : kFp4 ? 8 : 4;
  static constexpr int64_t bytes(int64_t dim) { return kFp4 ? dim / 2 : dim * static_cast<int64_t>(sizeof(KV)); }
};

template <AttentionConfig C>
struct Decode {
  using T = DecodeTypes<C>;
  using Q = typename T::Q;
  using KV = typename T::KV;
  using Cell = typename T::Cell;
  static constexpr bool kPairs = T::kPairs;
  struct Pass {
    int first, width, rows;
  };
  struct Block {
    Rows<KV> rows;
    Rows<uint8_t> scales;  // of NVFP4 only
    void find(const Decode& d, int64_t first, int64_t lo, int64_t hi) {
      const int64_t end = first + kDecodeKeys < hi ? first + kDecodeKeys : hi;
      rows.find(d.p, d.w.request, first, lo, end);
      if constexpr (T::kFp4) scales.find(d.scales, d.w.request, first, lo, end);
    }
  };
  const AttentionParams& p;
  const AttentionWork& w;
  Request r;
  DecodeScratch s;
  LogitsOf logits;
  int64_t tokens, width, token_rows = 0;
  int passes = 0;
  bool codes, cells;  // what is multiplied: NVFP4 codes, rows of bf16 in passes of cells; neither: rows of f32
  Pass pass[kDecodeRows];
  Range range[kDecodeTokens];
  Lines ahead;
  Block blocks[2];      // the one that is worked on and the next, `found` of which is the first key
  int side = 0;
  int64_t found = -1;
  AttentionParams scales;  // the planes of block scales in the place of K and V


  Decode(const AttentionParams& params, const AttentionWork& work)
      : p(params), w(work), r(params, work.request), s(params.scratch, params.head_dim_qk, params.head_dim_vo), logits(params),
        tokens(r.qo_len), width(padded(params.head_dim_vo)), codes(T::kCodes && r.group <= kCodesRows && params.head_dim_qk % 128 == 0 && params.head_dim_vo % 128 == 0),
        cells(T::kPairs && !codes), scales(params) {
    if constexpr (T::kFp4) {
      scales.k = p.k_sf, scales.v = p.v_sf;
      scales.k_stride_page = p.k_sf_stride_page, scales.k_stride_n = p.k_sf_stride_n, scales.k_stride_h = p.k_sf_stride_h;
      scales.v_stride_page = p.v_sf_stride_page, scales.v_stride_n = p.v_sf_stride_n, scales.v_stride_h = p.v_sf_stride_h;
    }
    const int64_t wide = padded(p.head_dim_qk > p.head_dim_vo ? p.head_dim_qk : p.head_dim_vo);
    memset(s.zeros, 0, static_cast<size_t>(4 * wide));
    for (int left = static_cast<int>(r.group); left > 0; ++passes) {
      const int wanted = cells ? pass_width(left) : left >= 4 && Vec::kLanes >= 4 ? 4 : left >= 2 ? 2 : 1;
      const int rows = wanted < left ? wanted : left;
      pass[passes] = {static_cast<int>(token_rows), wanted, rows};
      token_rows += wanted, left -= rows;
    }
    for (int64_t t = 0; t < tokens; ++t) range[t] = visible_range(p, r, t);
    for (int64_t u = 0; u < units(); ++u)
      for (int k = 0; k < passes; ++k) pack(u, pass[k]);
  }

  /// A unit is one token's G heads of one KV head; its rows of q, o are token_rows, of which pass k has [first, first + width).
  int64_t units() const { return (w.head_end - w.head_begin) * tokens; }
  int64_t head_of(int64_t unit) const { return w.head_begin + unit / tokens; }
  float* o_of(int64_t unit, const Pass& a) const { return s.o + (unit * token_rows + a.first) * width; }
  uint32_t* q_of(int64_t unit, const Pass& a) const { return s.q + (unit * token_rows + a.first) * padded(p.head_dim_qk) / (kPairs ? 2 : 1); }
  /// One a pass of cells, else one a row.
  Running& running(int64_t unit, int k) const { return s.running[unit * states() + (cells ? k : pass[k].first)]; }
  int64_t states() const { return cells ? passes : token_rows; }

  void pack(int64_t unit, const Pass& a) {
    const Q* rows[16];
    for (int i = 0; i < a.rows; ++i)
      rows[i] = static_cast<const Q*>(p.q) + (r.q_first + unit % tokens) * p.q_stride_n + (head_of(unit) * r.group + a.first + i) * p.q_stride_h;
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

  /// What to ask for while head `h` of `here` is worked on: where the heads of a token lie side by side, this head's share of the
  /// tokens of the next block, in the order of memory; else the next head's rows.
  void look_ahead(const Block& here, const Block* next, int64_t h) {
    ahead.clear();
    const int64_t heads = w.head_end - w.head_begin, i = h - w.head_begin;
    const int64_t item = static_cast<int64_t>(sizeof(KV)), kb = T::bytes(p.head_dim_qk), vb = T::bytes(p.head_dim_vo);
    const bool side = p.k_stride_h * item == kb && p.v_stride_h * item == vb;
    const Block* block = side || i + 1 == heads ? next : &here;
    if (!block) return ahead.start(s.zeros);
    const int64_t head = side || i + 1 == heads ? w.head_begin : h + 1, many = side ? heads : 1;
    const Rows<KV>& rows = block->rows;
    const int64_t begin = rows.first + (side ? rows.count * i / heads : 0), end = rows.first + (side ? rows.count * (i + 1) / heads : rows.count);
    for (int64_t j = begin; j < end; ++j) ahead.add(rows.k[j] + head * p.k_stride_h, many * kb);
    for (int64_t j = begin; j < end; ++j) ahead.add(rows.v[j] + head * p.v_stride_h, many * vb);
    if constexpr (T::kFp4) {
      ahead.list();
      for (int64_t j = begin; j < end; ++j) ahead.add(block->scales.k[j] + head * p.k_sf_stride_h, many * p.head_dim_qk / 16);
      for (int64_t j = begin; j < end; ++j) ahead.add(block->scales.v[j] + head * p.v_sf_stride_h, many * p.head_dim_vo / 16);
    }
    ahead.start(s.zeros);
  }

  /// Asks for one line of every row, so that the page walks of a block overlap: a prefetch does not retire before its translation.
  void touch(const Block& block) const {
    const Rows<KV>& rows = block.rows;
    for (int64_t j = rows.first; j < rows.first + rows.count; ++j) {
      __builtin_prefetch(rows.k[j] + w.head_begin * p.k_stride_h, 0, 2);
      __builtin_prefetch(rows.v[j] + w.head_begin * p.v_stride_h, 0, 2);
    }
  }

  /// K and V of one head as cells in scratch.
  void convert(const Block& at, int64_t head, Rows<Cell>& out) {
    const Rows<KV>& rows = at.rows;
    Cell *k = reinterpret_cast<Cell*>(s.k), *v = reinterpret_cast<Cell*>(s.v);
    for (int64_t j = rows.first; j < rows.first + rows.count; ++j) {
      out.k[j] = k + j * padded(p.head_dim_qk), out.v[j] = v + j * padded(p.head_dim_vo);
      ahead.ask<2>();
      if constexpr (T::kFp4) {
        widen_row(rows.k[j] + head * p.k_stride_h, at.scales.k[j] + head * p.k_sf_stride_h, p.head_dim_qk, k + j * padded(p.head_dim_qk));
        widen_row(rows.v[j] + head * p.v_stride_h, at.scales.v[j] + head * p.v_sf_stride_h, p.head_dim_vo, v + j * padded(p.head_dim_vo));
      } else {
        widen_row(rows.k[j] + head * p.k_stride_h, p.head_dim_qk, k + j * padded(p.head_dim_qk));
        widen_row(rows.v[j] + head * p.v_stride_h, p.head_dim_vo, v + j * padded(p.head_dim_vo));
      }
    }
  }

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
  /// The rows of one token with NVFP4 codes. Scales of keys that it does not see are zeros: weights of 0, whatever the codes.
  void run_codes(const Block& at, int64_t head, const Shown& b, int64_t unit) {
    alignas(64) const uint8_t *k[kDecodeKeys], *v[kDecodeKeys];
    const int64_t kb = p.head_dim_qk / 16, vb = p.head_dim_vo / 16;
    uint8_t* raw = reinterpret_cast<uint8_t*>(s.cell);  // 2 KB; at most 32 x 16 of each, larger dims go in turns
    bf16_t *ks = reinterpret_cast<bf16_t*>(s.k), *vs = reinterpret_cast<bf16_t*>(s.v);
    const uint8_t* zeros = reinterpret_cast<const uint8_t*>(s.zeros);
    for (int64_t j = 0; j < kDecodeKeys; ++j) {
      const bool there = j >= b.lo && j < b.hi;
      k[j] = there ? at.rows.k[j] + head * p.k_stride_h : zeros, v[j] = there ? at.rows.v[j] + head * p.v_stride_h : zeros;
    }
    const auto widen_scales = [&](const uint8_t* const* rows, int64_t offset, int64_t blocks, bf16_t* out) {
      for (int64_t part = 0; part < blocks; part += 8) {
        for (int64_t j = 0; j < kDecodeKeys; ++j) memcpy(raw + j * 8, j >= b.lo && j < b.hi ? rows[j] + offset + part : zeros, 8);
        bf16_t* to = blocks == 8 ? out : reinterpret_cast<bf16_t*>(raw + kDecodeKeys * 8);
        widen_row(reinterpret_cast<const e4m3_t*>(raw), kDecodeKeys * 8, to);
        if (blocks != 8)
          for (int64_t j = 0; j < kDecodeKeys; ++j) memcpy(out + j * blocks + part, to + j * 8, 16);
      }
    };
    widen_scales(at.scales.k, head * p.k_sf_stride_h, kb, ks);
    widen_scales(at.scales.v, head * p.v_sf_stride_h, vb, vs);
    ahead.ask<16>();
    for (int n = 0; n < passes; ++n) {
      float slopes[16] = {};
      const Shown mine = with_slopes(b, head, n, slopes);
      switch (pass[n].width) {
        case 1: multiply_codes<1>(k, v, ks, vs, mine, unit, n); break;
        case 2: multiply_codes<2>(k, v, ks, vs, mine, unit, n); break;
        default: multiply_codes<4>(k, v, ks, vs, mine, unit, n);
      }
    }
  }
  template <int W>
  void multiply_codes(const uint8_t* const* k, const uint8_t* const* v, const bf16_t* ks, const bf16_t* vs, const Shown& b, int64_t unit, int n) {
    float* o = o_of(unit, pass[n]);
    codes::scores<W>(k, ks, b.lo, b.hi, q_of(unit, pass[n]), p.head_dim_qk, s.s, ahead);
    softmax_rows<W>(b, unit, n, o);
    codes::values<W>(v, vs, b.lo, b.hi, s.s, p.head_dim_vo, o, width, ahead);
  }
#endif

  /// Rows of one head for keys [lo, hi) of the block; all others are zeros.
  void point(const Rows<Cell>& at, int64_t dk, int64_t dv, int64_t lo, int64_t hi, const Cell** k, const Cell** v) const {
    if (lo == 0 && hi == kDecodeKeys) {
      for (int64_t j = 0; j < kDecodeKeys; ++j) k[j] = at.k[j] + dk, v[j] = at.v[j] + dv;
      return;
    }
    for (int64_t j = 0; j < kDecodeKeys; ++j) {
      const bool there = j >= lo && j < hi;
      k[j] = there ? at.k[j] + dk : reinterpret_cast<const Cell*>(s.zeros);
      v[j] = there ? at.v[j] + dv : reinterpret_cast<const Cell*>(s.zeros);
    }
  }

  template <int W>
  void multiply(const Cell* const* k, const Cell* const* v, const Shown& b, int64_t unit, int n) {
    const Pass& a = pass[n];
    float* o = o_of(unit, a);
#if defined(__AVX512BF16__)
    if constexpr (kPairs) {
      pairs::scores<W, T::kShare>(k, b.lo, b.hi, q_of(unit, a), p.head_dim_qk, s.s, ahead);
      softmax<W, true>(logits, b, s.s, running(unit, n), o, width, s.cell);
      pairs::values<W, T::kShare>(v, b.lo, b.hi, s.cell, p.head_dim_vo, o, width, ahead);
    }
#endif
    if constexpr (!kPairs) {
      f32::scores<W>(k, b.lo, b.hi, reinterpret_cast<const float*>(q_of(unit, a)), p.head_dim_qk, s.s, ahead);
      softmax_rows<W>(b, unit, n, o);
      f32::values<W>(v, b.lo, b.hi, s.s, p.head_dim_vo, o, width, ahead);
    }
  }

  template <int W>
  void softmax_rows(const Shown& b, int64_t unit, int n, float* o) {
    Running* each = &running(unit, n);
    for (int i = 0; i < W; ++i) {
      Shown mine = b;
      if (b.slopes) mine.slopes = b.slopes + i;
      softmax<1, false>(logits, mine, s.s + i * kDecodeKeys, each[i], o + i * width, width, nullptr);
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
    return {seen.lo > first ? seen.lo - first : 0, seen.hi - first < kDecodeKeys ? seen.hi - first : kDecodeKeys, nullptr,
            static_cast<float>(first - token)};
  }

  void run_block(const Rows<Cell>& at, int64_t dk, int64_t dv, int64_t first, int64_t unit) {
    const int64_t head = head_of(unit);
    const Shown seen = shown(first, unit % tokens);
    if (seen.lo >= seen.hi) return;
    const Cell *k[kDecodeKeys], *v[kDecodeKeys];
    point(at, dk, dv, seen.lo, seen.hi, k, v);
    for (int n = 0; n < passes; ++n) {
      float slopes[16] = {};
      const Shown b = with_slopes(seen, head, n, slopes);
      switch (pass[n].width) {
        case 1: multiply<1>(k, v, b, unit, n); break;
        case 2: multiply<2>(k, v, b, unit, n); break;
        case 4: multiply<4>(k, v, b, unit, n); break;
        case 8: if constexpr (kPairs) multiply<8>(k, v, b, unit, n); break;
        default: if constexpr (kPairs) multiply<16>(k, v, b, unit, n);
      }
    }
  }

  void run_chunk(int64_t chunk) {
    memset(s.o, 0, static_cast<size_t>(units() * token_rows * width) * 4);
    for (int64_t i = 0; i < units() * states(); ++i) s.running[i].reset();
    int64_t t = 0;
    while (t < tokens && range[t].hi == 0) ++t;  // rows that see nothing come first (qo_len > kv_len)
    if (t == tokens) return;
    const int64_t begin = chunk * kDecodeChunkKeys, limit = int64_t{w.chunk_end} * kDecodeChunkKeys;
    const int64_t lo = range[t].lo, all = range[tokens - 1].hi < limit ? range[tokens - 1].hi : limit;  // of this work
    const int64_t hi = all < begin + kDecodeChunkKeys ? all : begin + kDecodeChunkKeys;
    int64_t first = lo > begin ? lo / kDecodeKeys * kDecodeKeys : begin;
    if (first < hi && found != first) blocks[side].find(*this, first, lo, all);
    for (; first < hi; first += kDecodeKeys, side ^= 1) {
      found = first + kDecodeKeys < all ? first + kDecodeKeys : -1;  // also the next chunk's first block
      if (found >= 0) blocks[side ^ 1].find(*this, found, lo, all), touch(blocks[side ^ 1]);
      for (int64_t h = w.head_begin; h < w.head_end; ++h) {
        look_ahead(blocks[side], found >= 0 ? &blocks[side ^ 1] : nullptr, h);
        run_head(blocks[side], h, first);
      }
    }
  }
  void run_head(const Block& block, int64_t h, int64_t first) {
    const int64_t unit = (h - w.head_begin) * tokens;
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
    if constexpr (T::kCodes)
      if (codes) {
        for (int64_t t = 0; t < tokens; ++t)
          if (const Shown b = shown(first, t); b.lo < b.hi) run_codes(block, h, b, unit + t);
        return;
      }
#endif
    if constexpr (T::kConvert) {
      Rows<Cell> cells;
      convert(block, h, cells);
      for (int64_t t = 0; t < tokens; ++t) run_block(cells, 0, 0, first, unit + t);
    } else {
      for (int64_t t = 0; t < tokens; ++t) run_block(block.rows, h * p.k_stride_h, h * p.v_stride_h, first, unit + t);
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

  /// What becomes of a chunk's states: left for the merge, written, or folded into the total.
  void emit(int64_t chunk, bool single) {
    for (int64_t unit = 0; unit < units(); ++unit)
      for (int n = 0; n < passes; ++n)
        for (int i = 0; i < pass[n].rows; ++i) {
          const float* o = o_of(unit, pass[n]) + i * width;
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
          if constexpr (T::kCodes)
            if (codes) codes::in_order(o, width, reinterpret_cast<float*>(s.k)), o = reinterpret_cast<const float*>(s.k);
#endif
          const int64_t row = unit * r.group + pass[n].first + i;
          const State mine = state(unit, n, i);
          if (w.partial >= 0) {
            const int64_t to = w.partial + (chunk - w.chunk_begin) * units() * r.group + row;
            memcpy(p.partial_o + to * width, o, static_cast<size_t>(width) * 4);
            reinterpret_cast<State*>(p.partial_state)[to] = mine;
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

/// Task i >= 0: works[i]; then, when all are done, task -1 - i: merges[i].
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
