// SPDX-License-Identifier: Apache-2.0
// Packed sequences of the gated delta rule in chunks of 64 tokens on tensor cores. With L_i the sum of ln g up to token
// i of a chunk and G_ij = e^(L_i - L_j) for j <= i, else 0:
//   A_ij = beta_i G_ij k_i . k_j for j < i;  (I + A) U = diag(beta) (V - diag(e^L) K S^T)
//   O = diag(e^L) Q S^T + (G o Q K^T) U;  S <- e^(L_C) S + (diag(e^(L_C - L)) U)^T K
// A block takes 64 value channels of one head of one sequence. S is in registers in f32. q and k are bf16, so that
// their products are exact; S, U and G o Q K^T enter products as two bf16 parts; the system is solved in f32 by blocks
// of 16 rows.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/chunk_state.cuh"
#include "flashinfer/ops/linear_attention/kernels/cuda/packed.cuh"
#include "flashinfer/ops/linear_attention/kernels/gdn/chunk_cuda_config.h"

namespace flashinfer::cu {
namespace linear {

template <GdnChunkCudaConfig C>
struct GdnChunkBlock {
  static constexpr int kPieces = C.width / 8, kTiles = C.width / 8, kChunk = kGdnCudaChunk, kValues = kGdnCudaValues;
  const GdnChunkParams& p;
  uint32_t h, first_value;
  int64_t start;
  bf16_t *k, *q, *s_high, *s_low, *u;  // u: high, low parts of U, then of U decayed to the chunk's end
  float *a, *r, *beta;
  ChunkDecays decays;
  Acc s[kTiles];  // rows 16 warp .. + 16 of the state, columns 8 j .. + 8

  FI_GLOBAL_FN GdnChunkBlock(const GdnChunkParams& params, uint32_t head, uint32_t tile, int64_t begin)
      : p(params),
        h(head),
        first_value(tile * kValues),
        start(begin),
        decays(reinterpret_cast<float*>(shared()) + (C.shared_bytes() - ChunkDecays::kBytes) / 4) {
    k = reinterpret_cast<bf16_t*>(shared()), q = k + kChunk * C.width;
    s_high = u = q + kChunk * C.width, s_low = s_high + kValues * C.width;
    a = reinterpret_cast<float*>(u + C.region()), r = a + kChunk * kChunk, beta = r + kChunk * kValues;
  }
  FI_GLOBAL_FN uint32_t heads() const { return static_cast<uint32_t>(p.heads); }
  FI_GLOBAL_FN static uint32_t row() { return warp_row(); }
  FI_GLOBAL_FN static uint32_t group() { return lane_row(); }
  FI_GLOBAL_FN static uint32_t pair() { return lane_pair(); }
  /// Element (i, j) of a and r: columns permuted by rows so that stores of accumulators meet no bank twice.
  FI_GLOBAL_FN static uint32_t square(uint32_t i, uint32_t j) { return i * kChunk + (j ^ (i & 3u) << 3); }

  FI_GLOBAL_FN void load_state(int64_t slot) {
    clear(s);
    if (!p.in.data || slot < 0 || slot >= p.in_slots) return;
    with_states(p.in, [&](auto* data) { linear::load_state<true>(s, tile(data, slot, p.in), p.in.row, kValues); });
  }
  FI_GLOBAL_FN void store_state(const GdnStateTensor& t, int64_t slot) {
    with_states(t, [&](auto* data) { linear::store_state<true>(s, tile(data, slot, t), t.row, kValues); });
  }
  template <class T>
  FI_GLOBAL_FN T* tile(T* data, int64_t slot, const GdnStateTensor& t) const {
    return data + slot * t.slot + h * t.head + first_value * t.row;
  }

  /// This warp's rows of q or k, normalised and rounded when asked; zeros behind the tokens.
  FI_GLOBAL_FN void load_rows(const GdnPacked& t, int64_t token, int32_t count, bf16_t* to) const {
    constexpr uint32_t kRowsAtOnce = 32 / kPieces;
    const bf16_t* const head = static_cast<const bf16_t*>(t.data) + packed_at(t, 0, h, heads());
    const uint32_t piece = lane() % kPieces;
#pragma unroll
    for (uint32_t i = 0; i < 16; i += kRowsAtOnce) {
      const uint32_t at = row() + i + lane() / kPieces;
      Pack<bf16_t, 8> x = load_if<8>(static_cast<int32_t>(at) < count, head + (token + at) * t.token + piece * 8);
      if (p.l2norm) {
        float squares = 0.0f;
#pragma unroll
        for (int e = 0; e < 8; ++e) squares += to_f32(x[e]) * to_f32(x[e]);
        const float by = 1.0f / ::sqrtf(warp_reduce<kPieces>(squares, Sum{}) + 1e-6f);
#pragma unroll
        for (int e = 0; e < 8; ++e) x[e] = from_f32<bf16_t>(to_f32(x[e]) * by);
      }
      store_shared(to + piece_index<kPieces>(at, piece) * 8, x);
    }
  }
  /// By one warp: L and beta of the tokens; behind them g is 1 and beta 0.
  FI_GLOBAL_FN void load_gates(int64_t token, int32_t count) const {
    float g[2] = {1.0f, 1.0f};
#pragma unroll
    for (uint32_t e = 0; e < 2; ++e) {
      const uint32_t i = lane() + 32 * e;
      const bool within = static_cast<int32_t>(i) < count;
      float b = within ? 1.0f : 0.0f;
      if (within && p.gate.data) g[e] = element(DType::kF32, p.gate.data, packed_at(p.gate, token + i, h, heads()));
      if (within && p.beta.data) b = element(DType::kF32, p.beta.data, packed_at(p.beta, token + i, h, heads()));
      beta[i] = b;
    }
    const auto log = [](float x) { return x == 0.0f ? 0.0f : ::logf(x); };
    decays.sum(log(g[0]), log(g[1]), g[0] == 0.0f, g[1] == 0.0f);
  }
  /// This warp's rows of the system: A in a, its right side in r.
  FI_GLOBAL_FN void build_system(int64_t token, int32_t count) const {
    Acc acc[8];
    clear(acc);
    multiply_rows<kPieces>(acc, k, row(), k, 0, 2 * warp() + 2);
#pragma unroll
    for (uint32_t j = 0; j < 8; ++j)
      if (j < 2 * warp() + 2)
#pragma unroll
        for (uint32_t e = 0; e < 4; e += 2) {
          const uint32_t i = row() + group() + e / 2 * 8, c = 8 * j + pair();
          const float b = beta[i];
          store_shared(a + square(i, c),
                       Pack<float, 2>{{c < i ? b * decays.between(i, c) * acc[j].r[e] : 0.0f,
                                       c + 1 < i ? b * decays.between(i, c + 1) * acc[j].r[e + 1] : 0.0f}});
        }
    clear(acc);
    multiply_rows<kPieces>(acc, k, row(), s_high, 0, 8);
    multiply_rows<kPieces>(acc, k, row(), s_low, 0, 8);
    const bf16_t* const values = static_cast<const bf16_t*>(p.v.data) + packed_at(p.v, 0, h, heads()) + first_value;
#pragma unroll
    for (uint32_t j = 0; j < 8; j += 2)
#pragma unroll
      for (uint32_t e = 0; e < 4; e += 2) {
        const uint32_t i = row() + group() + e / 2 * 8;
        Pack<bf16_t, 4> v{};  // of both tiles: a whole sector for four lanes
        if (static_cast<int32_t>(i) < count) v = load<4>(values + (token + i) * p.v.token + 8 * j + 2 * pair());
        const float b = beta[i];
#pragma unroll
        for (uint32_t t = 0; t < 2; ++t)
          store_shared(r + square(i, 8 * (j + t) + pair()),
                       Pack<float, 2>{{b * (to_f32(v[2 * t]) - decays.since_begin(i, acc[j + t].r[e])),
                                       b * (to_f32(v[2 * t + 1]) - decays.since_begin(i, acc[j + t].r[e + 1]))}});
      }
  }
  /// U by blocks of 16 rows; a column is of two threads, which solve a block both, store U the one and U e^(L_C - L)
  /// the other, as two parts each, and share the rows that follow.
  FI_GLOBAL_FN void solve() const {
    const uint32_t c = thread_x() % kValues, half = thread_x() / kValues;
    bf16_t *const high = u + 2 * half * kChunk * kValues, *const low = high + kChunk * kValues;
#pragma unroll 1
    for (uint32_t first = 0; first < kChunk; first += 16) {
      float x[16];
#pragma unroll
      for (uint32_t i = 0; i < 16; ++i) {
        float sum = r[square(first + i, c)];
#pragma unroll
        for (uint32_t j = 0; j < i; ++j) sum -= a[square(first + i, first + j)] * x[j];
        x[i] = sum;
        const float y = half ? sum * decays.between(kChunk - 1, first + i) : sum;
        const uint32_t at = piece_index<8>(first + i, c / 8) * 8 + c % 8;
        high[at] = from_f32<bf16_t>(y), low[at] = from_f32<bf16_t>(low_part(y));
      }
#pragma unroll 1
      for (uint32_t i = first + 16 + half; i < kChunk; i += 2) {
        float sum = r[square(i, c)];
#pragma unroll
        for (uint32_t j = 0; j < 16; j += 4) {
          const Pack<float, 4> row = load_shared<4>(a + square(i, first + j));
          sum -= row[0] * x[j] + row[1] * x[j + 1] + row[2] * x[j + 2] + row[3] * x[j + 3];
        }
        r[square(i, c)] = sum;
      }
      sync_threads();
    }
  }
  /// scale G_ij q_i . k_j of this warp's rows and the 16 columns from 16 step on.
  FI_GLOBAL_FN void scores(Acc (&acc)[2], uint32_t step) const {
    clear(acc);
    multiply_rows<kPieces>(acc, q, row(), k, 16 * step, 2);
#pragma unroll
    for (uint32_t j = 0; j < 2; ++j)
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        const uint32_t i = row() + group() + e / 2 * 8, c = 16 * step + 8 * j + pair() + e % 2;
        acc[j].r[e] = c <= i ? decays.between(i, c) * acc[j].r[e] * p.scale : 0.0f;
      }
  }
  /// acc += the scores of the 16 columns from 16 step on times their rows of U; three products of parts. Of the block
  /// on the diagonal nothing of a later token enters, not even its NaN, which products with the zeros above the
  /// diagonal would carry: elements of that kind are left out and added to the results that they belong to.
  FI_GLOBAL_FN void add_products(Acc (&acc)[8], uint32_t step) const {
    Acc by[2];
    scores(by, step);
    const Split left = split(by[0], by[1]);
    const bool diagonal = step == warp();
    uint32_t rare = 0;
#pragma unroll
    for (uint32_t j = 0; j < 8; j += 2) {
      Frag4 high = b_columns<8>(u, 16 * step, j), low = b_columns<8>(u + kChunk * kValues, 16 * step, j);
      if (diagonal)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint32_t drop = not_finite_halves(high.r[i]);
          high.r[i] &= ~drop, low.r[i] &= ~drop, rare |= drop;
        }
      mma_pair(acc[j], acc[j + 1], left.low, high);
      mma_pair(acc[j], acc[j + 1], left.high, low);
      mma_pair(acc[j], acc[j + 1], left.high, high);
    }
    if (ballot(rare != 0) != 0) add_rare(acc, by, 16 * step);
  }
  /// 0xffff where a bf16 of the two is infinite or NaN.
  FI_GLOBAL_FN static uint32_t not_finite_halves(uint32_t x) {
    const uint32_t top = ((x & 0x7f807f80u) + 0x00800080u) & 0x80008000u;
    return (top >> 15) * 0xffffu;
  }
  /// What add_products left out of its block on the diagonal, whose first token is `first`.
  FI_GLOBAL_FN void add_rare(Acc (&acc)[8], const Acc (&by)[2], uint32_t first) const {
#pragma unroll 1
    for (uint32_t c = 0; c < 16; ++c) {
      const float weight[2] = {of_column<0>(by, c), of_column<2>(by, c)};
#pragma unroll
      for (uint32_t j = 0; j < 8; ++j)
#pragma unroll
        for (uint32_t e = 0; e < 4; ++e) {
          const float x = to_f32(u[piece_index<8>(first + c, j) * 8 + pair() + e % 2]);
          if (not_finite(x) && c <= group() + e / 2 * 8) acc[j].r[e] += weight[e / 2] * x;
        }
    }
  }
  FI_GLOBAL_FN void put(const Acc (&o)[8], int64_t token, int32_t count) const {
    bf16_t* const out = static_cast<bf16_t*>(p.out) + h * p.out_head + first_value;
#pragma unroll
    for (uint32_t j = 0; j < 8; j += 2)
#pragma unroll
      for (uint32_t e = 0; e < 4; e += 2) {
        const uint32_t i = row() + group() + e / 2 * 8;
        if (static_cast<int32_t>(i) < count)
          store(out + (token + i) * p.out_token + 8 * j + 2 * pair(),
                Pack<bf16_t, 4>{{from_f32<bf16_t>(o[j].r[e]), from_f32<bf16_t>(o[j].r[e + 1]),
                                 from_f32<bf16_t>(o[j + 1].r[e]), from_f32<bf16_t>(o[j + 1].r[e + 1])}});
      }
  }
  FI_GLOBAL_FN void update_state() {
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[j].r[i] = decays.since_begin(kChunk - 1, s[j].r[i]);
    const bf16_t* const decayed = u + 2 * kChunk * kValues;
#pragma unroll 1
    for (uint32_t step = 0; step < kChunk / 16; ++step) {
      const Split left{a_columns<8>(decayed, 16 * step, 2 * warp()),
                       a_columns<8>(decayed + kChunk * kValues, 16 * step, 2 * warp())};
      add_outer<kPieces>(s, left, k, 16 * step);
    }
  }
  /// Tokens [token, token + count), at most 64.
  FI_GLOBAL_FN void run(int64_t token, int32_t count) {
    load_rows(p.k, token, count, k);
    load_rows(p.q, token, count, q);
    if (warp() == 0) load_gates(token, count);
    spread_state(s, row(), s_high, s_low);
    sync_threads();
    build_system(token, count);
    Acc o[8];
    clear(o);
    multiply_rows<kPieces>(o, q, row(), s_high, 0, 8);
    multiply_rows<kPieces>(o, q, row(), s_low, 0, 8);
#pragma unroll
    for (uint32_t j = 0; j < 8; ++j)
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) o[j].r[e] = decays.since_begin(row() + group() + e / 2 * 8, o[j].r[e]) * p.scale;
    sync_threads();
    solve();
#pragma unroll 1
    for (uint32_t step = 0; step <= warp(); ++step) add_products(o, step);
    put(o, token, count);
    update_state();
    sync_threads();
  }
};

}  // namespace linear

template <GdnChunkCudaConfig C>
FI_GLOBAL_FN void gdn_chunk(const GdnChunkParams& p) {
  using namespace linear;
  depend_wait();
  const auto tiles = static_cast<uint32_t>(p.rows) / kGdnCudaValues, heads = static_cast<uint32_t>(p.heads);
  const uint32_t unit = block_x() / tiles, h = unit % heads;
  const int64_t n = unit / heads, start = p.sequences.at(n), tokens = p.sequences.at(n + 1) - start;
  if (tokens > 0 || (p.final.data && !p.keep_empty)) {
    const int64_t slot = p.slots.data ? p.slots.at(n) : n;
    GdnChunkBlock<C> block(p, h, block_x() % tiles, start);
    block.load_state(slot);
#pragma unroll 1
    for (int64_t done = 0; done < tokens; done += kGdnCudaChunk) {
      const int64_t left = tokens - done;
      block.run(start + done, static_cast<int32_t>(left < kGdnCudaChunk ? left : kGdnCudaChunk));
      const int64_t end = done + kGdnCudaChunk;
      if (p.every && left >= kGdnCudaChunk && static_cast<uint32_t>(end) % static_cast<uint32_t>(p.every) == 0) {
        const int64_t row = p.checkpoint_starts.at(n) + static_cast<uint32_t>(end) / static_cast<uint32_t>(p.every) - 1;
        if (row >= 0 && row < p.checkpoint_rows) block.store_state(p.checkpoints, row);
      }
    }
    if (p.final.data && slot >= 0 && slot < p.final_slots) block.store_state(p.final, slot);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
