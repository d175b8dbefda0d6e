// SPDX-License-Identifier: Apache-2.0
// Packed sequences of the delta rule with gates of key and value channels on tensor cores, 16 tokens at a time
// (channel_block.cuh). A block takes 64 value channels of one head of one sequence. Inputs of the next 16 tokens are on
// their way while these are computed.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/channel_block.cuh"
#include "flashinfer/ops/linear_attention/kernels/cuda/packed.cuh"
#include "flashinfer/ops/linear_attention/kernels/gdn/chunk_cuda_config.h"

namespace flashinfer::cu {
namespace linear {

template <GdnChannelsCudaConfig C>
struct GdnChannelChunk {
  using Block = ChannelBlock<C.width, true>;
  static constexpr int kPieces = Block::kPieces;
  const GdnChunkParams& p;
  uint32_t h;
  int64_t end;
  uint32_t first;        // value channel
  int32_t values;        // value channels that exist, at most 64
  Pack<bf16_t, 8> v, w;  // of the next tokens
  Block block;

  FI_GLOBAL_FN GdnChannelChunk(const GdnChunkParams& params, uint32_t head, uint32_t tile, int64_t last)
      : p(params), h(head), end(last), first(tile * kChannelCudaValues) {
    const int32_t left = static_cast<int32_t>(p.rows) - static_cast<int32_t>(first);
    values = left < kChannelCudaValues ? left : kChannelCudaValues;
    Block::init();
    block.origin = 0;
    clear(block.s);
  }
  template <class T>
  FI_GLOBAL_FN T* tile(T* data, int64_t slot, const GdnStateTensor& t) const {
    return data + slot * t.slot + h * t.head + first * t.row;
  }
  FI_GLOBAL_FN void load(int64_t n) {
    if (!p.in.data) return;
    with_states(p.in, [&](auto* data) { load_state(block.s, tile(data, n, p.in), p.in.row, values); });
  }
  FI_GLOBAL_FN void save(int64_t n) const {
    with_states(p.final, [&](auto* data) { store_state(block.s, tile(data, n, p.final), p.final.row, values); });
  }
  /// k, q and beta of the next tokens, as they are in memory; then g and w.
  FI_GLOBAL_FN static bf16_t* raw(int i) {
    return reinterpret_cast<bf16_t*>(Block::floats(C.raw_at() + i * C.layout().operand()));
  }
  FI_GLOBAL_FN static float* decays() { return Block::floats(C.decays_at()); }
  FI_GLOBAL_FN static bf16_t* writes() { return reinterpret_cast<bf16_t*>(Block::floats(C.writes_at())); }
  FI_GLOBAL_FN int64_t at(const GdnPacked& t, int64_t token) const {
    return packed_at(t, token, h + block.origin, static_cast<uint32_t>(p.heads));
  }
  FI_GLOBAL_FN const bf16_t* row(const GdnPacked& t, int64_t token) const {
    return static_cast<const bf16_t*>(t.data) + at(t, token);
  }
  FI_GLOBAL_FN void fetch(int64_t t, int32_t count) {
    copy_rows<kPieces>(row(p.k, t), p.k.token, count, raw(0));
    copy_rows<kPieces>(row(p.q, t), p.q.token, count, raw(1));
    if (p.beta.data) copy_rows<kPieces>(row(p.beta, t), p.beta.token, count, raw(2));
    if (p.gate.data && p.gate.type == DType::kF32)
      copy_rows<2 * kPieces>(static_cast<const float*>(p.gate.data) + at(p.gate, t), p.gate.token, count, decays());
    else if (p.gate.data)
      copy_rows<kPieces>(row(p.gate, t), p.gate.token, count, decays());
    commit_async();
    const auto token = static_cast<int32_t>(thread_x() / 8), piece = static_cast<int32_t>(thread_x() % 8);
    const bool exists = token < count && 8 * piece < values;
    v = load_if<8>(exists, row(p.v, t + token) + first + 8 * piece);
    if (p.write.data) w = load_if<8>(exists, row(p.write, t + token) + first + 8 * piece);
  }
  /// The rows of k or q of which this thread copied pieces; the threads of a row are neighbours.
  FI_GLOBAL_FN static void normalise(bf16_t* rows) {
    const uint32_t piece = thread_x() % kPieces;
#pragma unroll
    for (uint32_t i = 0; i < kChannelCudaTokens; i += C.threads / kPieces) {
      bf16_t* const at = rows + piece_index<kPieces>(i + thread_x() / kPieces, piece) * 8;
      Pack<bf16_t, 8> x = load_shared<8>(at);
      float squares = 0.0f;
#pragma unroll
      for (int e = 0; e < 8; ++e) squares += to_f32(x[e]) * to_f32(x[e]);
      const float by = 1.0f / ::sqrtf(warp_reduce<kPieces>(squares, Sum{}) + 1e-6f);
#pragma unroll
      for (int e = 0; e < 8; ++e) x[e] = from_f32<bf16_t>(to_f32(x[e]) * by);
      store_shared(at, x);
    }
  }
  /// Waits for the tokens of fetch().
  FI_GLOBAL_FN void arrive() const {
    wait_async<0>();
    if (p.l2norm) normalise(raw(0)), normalise(raw(1));
    sync_threads();
  }
  /// ln of the decays of four channels of a token.
  FI_GLOBAL_FN void logarithms(uint32_t token, uint32_t channel, uint32_t from, float (&to)[4]) const {
    if (!p.gate.data || p.gate.type == DType::kF32) {
      Pack<float, 4> x{};
      if (p.gate.data) x = load_shared<4>(decays() + piece_index<2 * kPieces>(token, channel / 4) * 4);
#pragma unroll
      for (int e = 0; e < 4; ++e) to[e] = x[e];
    } else if (p.gate.type == DType::kF16) {
      const Pack<f16_t, 4> x = load_shared<4>(reinterpret_cast<const f16_t*>(decays()) + from);
#pragma unroll
      for (int e = 0; e < 4; ++e) to[e] = to_f32(x[e]);
    } else {
      const Pack<bf16_t, 4> x = load_shared<4>(reinterpret_cast<const bf16_t*>(decays()) + from);
#pragma unroll
      for (int e = 0; e < 4; ++e) to[e] = to_f32(x[e]);
    }
  }
  /// Tokens t .. + count; then begins to load those from `next` on.
  FI_GLOBAL_FN void step(int64_t t, int32_t count, int64_t next, int32_t next_count) {
    block.origin = unknown_zero();
    const uint32_t mine = piece_index<8>(thread_x() / 8, thread_x() % 8) * 8;
    store_shared(Block::values() + mine, v);
    store_shared(writes() + mine, w);
    block.prepare([&](int i, float(&keys)[2][4], float(&queries)[2][4], float(&decay)[2][4], float(&gated)[2][4]) {
      const uint32_t channel = Block::channel(i);
#pragma unroll
      for (uint32_t b = 0; b < 2; ++b) {
        const uint32_t token = lane_row() + 8 * b + block.origin,
                       from = piece_index<kPieces>(token, channel / 8) * 8 + channel % 8;
        const bool exists = static_cast<int32_t>(token) < count;
        const Pack<bf16_t, 4> k = load_shared<4>(raw(0) + from), q = load_shared<4>(raw(1) + from);
        Pack<bf16_t, 4> beta{};
        if (p.beta.data) beta = load_shared<4>(raw(2) + from);
        float logs[4];
        logarithms(token, channel, from, logs);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          keys[b][e] = to_f32(k[e]), queries[b][e] = to_f32(q[e]),
          gated[b][e] = p.beta.data ? to_f32(beta[e]) * keys[b][e] : keys[b][e];
          decay[b][e] = exists ? ::expf(logs[e]) : 1.0f;
        }
      }
    });
    sync_threads();
    if (next_count > 0) fetch(next, next_count);
    if (warp() == 0) Block::solve(1.0f, false, p.scale);
    Acc wy[2], o[2];
    block.read_state(wy, o);
    sync_threads();
    block.finish(wy, o, writes());
    const uint32_t token = Block::result_token() + block.origin, piece = Block::result_piece();
    if (static_cast<int32_t>(token) < count && static_cast<int32_t>(8 * piece) < values)
      store<Hint::kOnce>(static_cast<bf16_t*>(p.out) + (t + token) * p.out_token + h * p.out_head + first + 8 * piece,
                         load_shared<8>(Block::values() + piece_index<8>(token, piece) * 8));
    arrive();
  }
  FI_GLOBAL_FN int32_t count_at(int64_t t) const {
    return end - t < kChannelCudaTokens ? static_cast<int32_t>(end - t) : kChannelCudaTokens;
  }
  FI_GLOBAL_FN void run(int64_t begin) {
#pragma unroll
    for (int e = 0; e < 8; ++e) w[e] = from_f32<bf16_t>(1.0f);
    fetch(begin, count_at(begin));
    arrive();
#pragma unroll 1
    for (int64_t t = begin; t < end; t += kChannelCudaTokens) {
      const int64_t next = t + kChannelCudaTokens;
      step(t, count_at(t), next, next < end ? count_at(next) : 0);
    }
  }
};

}  // namespace linear

template <GdnChannelsCudaConfig C>
FI_GLOBAL_FN void gdn_channels(const GdnChunkParams& p) {
  using namespace linear;
  depend_wait();
  const auto tiles = static_cast<uint32_t>(ceil_div(p.rows, kChannelCudaValues)),
             heads = static_cast<uint32_t>(p.heads);
  const uint32_t unit = block_x() / tiles;
  const int64_t n = unit / heads, begin = p.sequences.at(n), end = p.sequences.at(n + 1);
  if (end > begin || (p.final.data && !p.keep_empty)) {
    GdnChannelChunk<C> chunk(p, unit % heads, block_x() % tiles, end);
    chunk.load(n);
    if (end > begin) chunk.run(begin);
    if (p.final.data) chunk.save(n);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
