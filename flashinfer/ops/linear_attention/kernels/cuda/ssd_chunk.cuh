// SPDX-License-Identifier: Apache-2.0
// The scan of Mamba-2 in chunks of 64 tokens on tensor cores. With L_i the sum of A dt up to token i of a chunk:
//   Y = diag(e^L) C S^T + (e^(L_i - L_j) dt_j [j <= i] C B^T) X;  S <- e^(L_C) S + (diag(e^(L_C - L) dt) X)^T B
// A block takes 64 elements of one head of one sequence, with S in registers in f32; x, B and C of the next chunk are
// copied to shared memory in the meantime. x, B and C are bf16, so that their products are exact; the other factors are
// sums of two bf16 parts, but S in the product with C, which is rounded.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/async.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/chunk_state.cuh"
#include "flashinfer/ops/linear_attention/kernels/cuda/ssu_plan.cuh"
#include "flashinfer/ops/linear_attention/kernels/mamba/ssd_cuda_config.h"

namespace flashinfer::cu {
namespace linear {

/// Whether one of two bf16 is infinite or NaN.
FI_GLOBAL_FN bool any_not_finite(uint32_t pair) {
  return (pair & 0x7f80u) == 0x7f80u || (pair & 0x7f800000u) == 0x7f800000u;
}
FI_GLOBAL_FN uint32_t finite_only(uint32_t pair) {
  const uint32_t low = (pair & 0x7f80u) == 0x7f80u ? 0u : 0xffffu,
                 high = (pair & 0x7f800000u) == 0x7f800000u ? 0u : 0xffff0000u;
  return pair & (low | high);
}

template <SsdCudaConfig C>
struct SsdChunkBlock {
  using State = scalar_of_t<C.state>;
  static constexpr int kPieces = C.width / 8, kTiles = C.width / 8, kChunk = kSsdCudaChunk, kDims = kSsdCudaDims;
  const SsuCudaParams& a;
  const SsuPlan& plan;
  uint32_t h, group, first;  // of heads; group of B and C; element of the head
  int32_t tokens, checkpoint;
  int32_t dims;  // elements that exist, at most 64
  ChunkDecays decays;
  float *dt, *share;   // dt_j; e^(L_C - L_j) dt_j
  float* skip;         // D of the block's elements
  uint32_t origin;     // unknown_zero() of a chunk
  float raw[2], rate;  // of warp 0: dt of its tokens of the next chunk as they are in memory; A
  Acc s[kTiles];       // rows 16 warp .. + 16 of the state

  FI_GLOBAL_FN SsdChunkBlock(const SsuCudaParams& params, const SsuPlan& of, uint32_t head, uint32_t tile)
      : a(params),
        plan(of),
        h(head),
        group(head / static_cast<uint32_t>(params.call.heads_per_group)),
        first(tile * kDims),
        tokens(static_cast<int32_t>(of.tokens)),
        checkpoint(static_cast<int32_t>(of.checkpoint)),
        decays(reinterpret_cast<float*>(shared()) + C.shared_bytes() / 4 - 6 * kChunk),
        dt(reinterpret_cast<float*>(shared()) + C.shared_bytes() / 4 - 3 * kChunk),
        share(dt + kChunk),
        skip(share + kChunk),
        origin(0),
        raw{},
        rate(static_cast<const float*>(params.call.a.data)[params.call.a.head * head]) {
    const int32_t left = static_cast<int32_t>(params.call.dim) - static_cast<int32_t>(first);
    dims = left < kDims ? left : kDims;
    clear(s);
    const SsuOperand& d = params.call.d;
    const auto i = static_cast<int32_t>(thread_x());
    if (i < kDims) skip[i] = d.data && i < dims ? element(d.dtype, d.data, d.head * h + d.dim * (first + i)) : 0.0f;
  }
  // Of a stage: x, B, C.
  FI_GLOBAL_FN static bf16_t* x_of(uint32_t stage) { return reinterpret_cast<bf16_t*>(shared()) + stage * C.stage(); }
  FI_GLOBAL_FN static bf16_t* b_of(uint32_t stage) { return x_of(stage) + kChunk * kDims; }
  FI_GLOBAL_FN static bf16_t* c_of(uint32_t stage) { return b_of(stage) + kChunk * C.width; }
  FI_GLOBAL_FN static bf16_t* copy() { return reinterpret_cast<bf16_t*>(shared()) + 2 * C.stage(); }  // of the state

  FI_GLOBAL_FN State* place(const SsuPool& pool, int64_t slot) const {
    return static_cast<State*>(pool.data) + pool.slot * slot + pool.head * h + pool.dim * first;
  }
  FI_GLOBAL_FN void load() {
    load_state(s, static_cast<const State*>(place(a.call.source, plan.read)), a.call.source.dim, dims);
  }
  FI_GLOBAL_FN void save(const SsuPool& pool, int64_t slot) const { store_state(s, place(pool, slot), pool.dim, dims); }
  /// Tokens of the chunk that begins at token t: a checkpoint ends it.
  FI_GLOBAL_FN int32_t count_at(int32_t t) const {
    const int32_t count = tokens - t < kChunk ? tokens - t : kChunk;
    return checkpoint > t && checkpoint - t < count ? checkpoint - t : count;
  }
  template <int kRowPieces>
  FI_GLOBAL_FN void copy_rows(const SsuOperand& o, int64_t head, int64_t at, int32_t t, int32_t count, int32_t pieces,
                              bf16_t* to) const {
    const bf16_t* const from = static_cast<const bf16_t*>(o.data) + ssu_at(o, plan.row, t, head) + at;
    const uint32_t piece = thread_x() % kRowPieces;
#pragma unroll 2
    for (uint32_t i = 0; i < kChunk; i += C.threads / kRowPieces) {
      const uint32_t row = i + thread_x() / kRowPieces + origin;
      const bool exists = static_cast<int32_t>(row) < count && static_cast<int32_t>(piece) < pieces;
      copy_async<16>(to + piece_index<kRowPieces>(row, piece) * 8, from + row * o.step + piece * 8, exists ? 16 : 0);
    }
  }
  /// Begins to load a chunk.
  FI_GLOBAL_FN void fetch(int32_t t, int32_t count, uint32_t stage) {
    const SsuParams& p = a.call;
    copy_rows<8>(p.x, h + origin, first, t, count, dims / 8, x_of(stage));
    copy_rows<kPieces>(p.b, group + origin, 0, t, count, kPieces, b_of(stage));
    copy_rows<kPieces>(p.c, group + origin, 0, t, count, kPieces, c_of(stage));
    commit_async();
    if (warp() != 0) return;
#pragma unroll
    for (uint32_t e = 0; e < 2; ++e) {
      const uint32_t i = lane() + 32 * e;
      raw[e] = 0.0f;
      if (static_cast<int32_t>(i) < count) raw[e] = element(p.dt.dtype, p.dt.data, ssu_at(p.dt, plan.row, t + i, h));
    }
  }
  /// By warp 0: dt, L and the shares of the tokens; a dt of 0 behind them.
  FI_GLOBAL_FN void prepare_steps(int32_t count) const {
    float log[2];
#pragma unroll
    for (uint32_t e = 0; e < 2; ++e) {
      const uint32_t i = lane() + 32 * e;
      const float step = static_cast<int32_t>(i) < count ? ssu_step_size(a.call, raw[e], h, 0) : 0.0f;
      dt[i] = step, log[e] = static_cast<int32_t>(i) < count ? rate * step : 0.0f;
    }
    const bool zero[2] = {log[0] == -kInf, log[1] == -kInf};
    decays.sum(zero[0] ? 0.0f : log[0], zero[1] ? 0.0f : log[1], zero[0], zero[1]);
    sync_warp();
#pragma unroll
    for (uint32_t e = 0; e < 2; ++e) {
      const uint32_t i = lane() + 32 * e;
      share[i] = decays.between(kChunk - 1, i) * dt[i];
    }
  }

  /// y[0], y[1] += the weights of the 16 tokens from 16 step on times their x that are not finite: of a token, its own
  /// and later results alone.
  FI_GLOBAL_FN void add_not_finite(Acc& y0, Acc& y1, const Acc (&weights)[2], const bf16_t* x, uint32_t step,
                                   uint32_t piece) const {
    Acc* const y[2] = {&y0, &y1};
#pragma unroll 1
    for (uint32_t j = 0; j < 16; ++j) {  // not unrolled: rare
      const float weight[2] = {of_column<0>(weights, j), of_column<2>(weights, j)};
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        const float value = to_f32(x[piece_index<8>(16 * step + j, piece + e / 2) * 8 + lane_pair() + e % 2]);
        if (!not_finite(value)) continue;
        if (j <= lane_row()) y[e / 2]->r[e % 2] += weight[0] * value;
        if (j <= lane_row() + 8) y[e / 2]->r[2 + e % 2] += weight[1] * value;
      }
    }
  }
  /// y += this warp's rows of the weighted C B^T times X, for the 16 tokens from 16 step on.
  FI_GLOBAL_FN void add_tokens(Acc (&y)[8], uint32_t stage, uint32_t step) const {
    const bf16_t* const x = x_of(stage);
    Acc weights[2];
    clear(weights);
    multiply_rows<kPieces>(weights, c_of(stage), warp_row() + origin, b_of(stage), 16 * step + origin, 2);
#pragma unroll
    for (uint32_t j = 0; j < 2; ++j)
#pragma unroll
      for (uint32_t e = 0; e < 4; ++e) {
        const uint32_t i = warp_row() + lane_row() + e / 2 * 8, c = 16 * step + 8 * j + lane_pair() + e % 2;
        weights[j].r[e] = c <= i ? weights[j].r[e] * (decays.between(i, c) * dt[c]) : 0.0f;
      }
    const Split left = split(weights[0], weights[1]);
#pragma unroll
    for (uint32_t j = 0; j < 8; j += 2) {
      if (static_cast<int32_t>(8 * j) >= dims) continue;
      Frag4 right = b_columns<8>(x, 16 * step + origin, j);
      // Products with the zeros above the diagonal would carry NaN and infinity to earlier tokens.
      bool rare = false;
#pragma unroll
      for (uint32_t r : right.r) rare = rare || any_not_finite(r);
      rare = step == warp() && ballot(rare) != 0;
      if (rare) {
#pragma unroll
        for (uint32_t& r : right.r) r = finite_only(r);
      }
      mma_pair(y[j], y[j + 1], left.low, right);
      mma_pair(y[j], y[j + 1], left.high, right);
      if (rare) add_not_finite(y[j], y[j + 1], weights, x, step, j);
    }
  }
  FI_GLOBAL_FN void update_state(uint32_t stage) {
#pragma unroll
    for (Acc& tile : s)
#pragma unroll
      for (float& e : tile.r) e = decays.since_begin(kChunk - 1, e);
#pragma unroll 1
    for (uint32_t step = 0; step < kChunk / 16; ++step) {
      const Frag4 x = a_columns<8>(x_of(stage), 16 * step + origin, 2 * warp());
      Split left;
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const Pack<float, 2> by = load_shared<2>(share + 16 * step + lane_pair() + r / 2 * 8);
        left.set(r, __builtin_bit_cast(float, x.r[r] << 16) * by[0],
                 __builtin_bit_cast(float, x.r[r] & 0xffff0000u) * by[1]);
      }
      add_outer<kPieces>(s, left, b_of(stage), 16 * step + origin);
    }
  }

  /// Place of element (i, c) of 16 x 32 results: stores of accumulators and loads of rows meet no bank twice.
  FI_GLOBAL_FN static uint32_t result(uint32_t i, uint32_t c) { return i * 32 + (c ^ (i & 3u) << 3 ^ (i & 1u) << 2); }
  /// out = (y + D x) silu(z) of the rows of this warp, through its rows of C, in two halves of 32 elements.
  FI_GLOBAL_FN void put(const Acc (&y)[8], uint32_t stage, int32_t t, int32_t count) const {
    float* const results = reinterpret_cast<float*>(c_of(stage) + warp_row() * C.width);
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      sync_warp();
#pragma unroll
      for (uint32_t j = 0; j < 4; ++j)
#pragma unroll
        for (uint32_t e = 0; e < 4; e += 2)
          store_shared(results + result(lane_row() + e / 2 * 8, 8 * j + lane_pair()),
                       Pack<float, 2>{{y[4 * half + j].r[e], y[4 * half + j].r[e + 1]}});
      sync_warp();
      const uint32_t piece = 4 * half + lane() % 4;
#pragma unroll 1
      for (uint32_t top = 0; top < 16; top += 8) {
        const uint32_t i = top + lane() / 4, token = warp_row() + i;
        if (static_cast<int32_t>(token) < count && static_cast<int32_t>(8 * piece) < dims) {
          const Pack<float, 4> low = load_shared<4>(results + result(i, 8 * piece % 32)),
                               high = load_shared<4>(results + result(i, 8 * piece % 32 + 4));
          put_piece(low, high, load_shared<8>(x_of(stage) + piece_index<8>(token, piece) * 8), t + token,
                    first + 8 * piece);
        }
      }
    }
  }
  FI_GLOBAL_FN void put_piece(const Pack<float, 4>& low, const Pack<float, 4>& high, const Pack<bf16_t, 8>& x,
                              int64_t t, uint32_t at) const {
    const SsuParams& p = a.call;
    float y[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) y[e] = e < 4 ? low[e % 4] : high[e % 4];
    if (p.d.data) {
#pragma unroll
      for (int e = 0; e < 8; e += 4) {
        const Pack<float, 4> d = load_shared<4>(skip + at - first + e);
#pragma unroll
        for (int i = 0; i < 4; ++i) y[e + i] += d[i] * to_f32(x[e + i]);
      }
    }
    if (p.z.data) {
      const Pack<bf16_t, 8> z =
          cu::load<8, Hint::kOnce>(static_cast<const bf16_t*>(p.z.data) + ssu_at(p.z, plan.row, t, h + origin) + at);
#pragma unroll
      for (int e = 0; e < 8; ++e) y[e] *= to_f32(z[e]) * sigmoid_fast(to_f32(z[e]));
    }
    Pack<bf16_t, 8> out;
#pragma unroll
    for (int e = 0; e < 8; ++e) out[e] = from_f32<bf16_t>(y[e]);
    cu::store<Hint::kOnce>(
        static_cast<bf16_t*>(const_cast<void*>(p.out.data)) + ssu_at(p.out, plan.row, t, h + origin) + at, out);
  }

  FI_GLOBAL_FN void run() {
    int32_t count = count_at(0);
    if (count > 0) fetch(0, count, 0);
    uint32_t stage = 0;
#pragma unroll 1
    for (int32_t t = 0; t < tokens; stage ^= 1) {
      const int32_t next = t + count;
      const int32_t next_count = count_at(next);
      origin = unknown_zero();
      wait_async<0>();
      if (warp() == 0) prepare_steps(count);
      if (next_count > 0) fetch(next, next_count, stage ^ 1);
      spread_state(s, warp_row() + origin, copy(), static_cast<bf16_t*>(nullptr));
      sync_threads();
      Acc y[8];
      clear(y);
      multiply_rows<kPieces>(y, c_of(stage), warp_row() + origin, copy(), origin, 8);
#pragma unroll
      for (Acc& tile : y)
#pragma unroll
        for (uint32_t e = 0; e < 4; ++e) tile.r[e] = decays.since_begin(warp_row() + lane_row() + e / 2 * 8, tile.r[e]);
#pragma unroll 1
      for (uint32_t step = 0; step <= warp(); ++step) add_tokens(y, stage, step);
      update_state(stage);
      put(y, stage, t, count);
      sync_threads();
      if (checkpoint == next) save(a.call.dst_pool, plan.checkpoint_slot);
      t = next, count = next_count;
    }
  }
};

}  // namespace linear

template <SsdCudaConfig C>
FI_GLOBAL_FN void ssd_chunk(const SsuCudaParams& a) {
  using namespace linear;
  depend_wait();
  const SsuParams& p = a.call;
  const auto tiles = static_cast<uint32_t>(ceil_div(p.dim, kSsdCudaDims)), heads = static_cast<uint32_t>(p.heads);
  const uint32_t unit = block_x() / tiles;
  const SsuPlan plan(a, unit / heads);
  if (plan.tokens > 0 || plan.write >= 0 || plan.checkpoint == 0) {
    SsdChunkBlock<C> block(a, plan, unit % heads, block_x() % tiles);
    if (plan.read >= 0) block.load();
    if (plan.checkpoint == 0) block.save(p.dst_pool, plan.checkpoint_slot);
    block.run();
    if (plan.write >= 0) block.save(p.pool, plan.write);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
