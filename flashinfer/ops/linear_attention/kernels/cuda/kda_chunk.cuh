// SPDX-License-Identifier: Apache-2.0
// Kimi delta attention over sequences of at least 16 tokens on tensor cores (channel_block.cuh); kda.cuh takes the
// others. A block takes 64 value channels of one value head of one sequence. Inputs of the next 16 tokens are on their
// way while these are computed. A state that is stored ends a step.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/linear_attention/kernels/cuda/channel_block.cuh"
#include "flashinfer/ops/linear_attention/kernels/cuda/kda_inputs.cuh"
#include "flashinfer/ops/linear_attention/kernels/kda/chunk_cuda_config.h"

namespace flashinfer::cu {
namespace linear {

template <KdaChunkCudaConfig C>
struct KdaChunk {
  using Block = ChannelBlock<C.width, false>;
  using State = scalar_of_t<C.state>;
  static constexpr int kPieces = Block::kPieces;
  const KdaCudaParams& a;
  uint32_t h, query;
  int64_t end;
  uint32_t first;  // value channel
  int32_t values;  // value channels that exist, at most 64
  float rate;
  Pack<bf16_t, 8> v;  // of the next tokens, as beta of warp 0
  float beta;
  Block block;

  FI_GLOBAL_FN KdaChunk(const KdaCudaParams& params, uint32_t head, uint32_t tile, int64_t last)
      : a(params),
        h(head),
        query(head * static_cast<uint32_t>(params.call.heads) / static_cast<uint32_t>(params.call.value_heads)),
        end(last),
        first(tile * kChannelCudaValues),
        rate(0.0f),
        beta(0.0f) {
    const KdaParams& p = a.call;
    const int32_t left = static_cast<int32_t>(p.rows) - static_cast<int32_t>(first);
    values = left < kChannelCudaValues ? left : kChannelCudaValues;
    Block::init();
    block.origin = 0;
    clear(block.s);
    const bool gated = p.gate != KdaGate::kNone;
    if (gated) rate = decay_rate(p.a_log[query * p.a_log_stride]);
    if (thread_x() < C.width) bias()[thread_x()] = gated ? p.dt_bias[query * p.width + thread_x()] : 0.0f;
    sync_threads();
  }
  FI_GLOBAL_FN static float* bias() { return Block::floats(C.bias_at()); }  // dt_bias of the channels
  FI_GLOBAL_FN State* place(const KdaStates& pool, int64_t slot) const {
    return static_cast<State*>(pool.data) + slot * pool.slot + h * pool.head + first * pool.row;
  }
  FI_GLOBAL_FN void load(int64_t slot) {
    load_state(block.s, static_cast<const State*>(place(a.call.in, slot)), a.call.in.row, values);
  }
  FI_GLOBAL_FN void save(const KdaStates& pool, int64_t slot) const {
    store_state(block.s, place(pool, slot), pool.row, values);
  }
  /// The slot for the state after token t; -1: none.
  FI_GLOBAL_FN int64_t after(int64_t t) const {
    const int64_t slot = a.after.data ? a.after.at(t) : -1;
    return slot < a.after_slots ? slot : -1;
  }
  /// Tokens of the step that begins at token t.
  FI_GLOBAL_FN int32_t count_at(int64_t t) const {
    const int32_t left = end - t < kChannelCudaTokens ? static_cast<int32_t>(end - t) : kChannelCudaTokens;
    if (!a.after.data) return left;
    const auto at = static_cast<int32_t>(lane());
    const uint32_t stored = ballot(at < left && after(t + at) >= 0);
    return stored ? first_bit(stored) + 1 : left;
  }
  FI_GLOBAL_FN static int first_bit(uint32_t x) {
#if defined(__CUDACC__)
    return __ffs(static_cast<int>(x)) - 1;
#else
    return __builtin_ctz(x);
#endif
  }
  FI_GLOBAL_FN static const bf16_t* at(const KdaRows& r, int64_t token, int64_t head) {
    return static_cast<const bf16_t*>(r.data) + kda_at(r, token, head);
  }
  /// k, q and g of the next tokens, as they are in memory.
  FI_GLOBAL_FN static bf16_t* raw(int i) {
    return reinterpret_cast<bf16_t*>(Block::floats(C.raw_at() + i * C.layout().operand()));
  }
  FI_GLOBAL_FN void fetch(int64_t t, int32_t count) {
    const KdaParams& p = a.call;
    const uint32_t from = query + block.origin, value_head = h + block.origin;
    copy_rows<kPieces>(at(p.k, t, from), p.k.token, count, raw(0));
    copy_rows<kPieces>(at(p.q, t, from), p.q.token, count, raw(1));
    copy_rows<kPieces>(at(p.g, t, value_head), p.g.token, count, raw(2));
    commit_async();
    const auto token = static_cast<int32_t>(thread_x() / 8), piece = static_cast<int32_t>(thread_x() % 8);
    v = load_if<8>(token < count && 8 * piece < values, at(p.v, t + token, value_head) + first + 8 * piece);
    if (warp() == 0) {
      const auto own = static_cast<int32_t>(lane());
      beta = own < count ? to_f32(*at(p.beta, t + own, h)) : 0.0f;
      if (p.beta_is_logit && own < count) beta = logistic(beta);
    }
  }
  /// Tokens t .. + count; then begins to load those from `next` on.
  FI_GLOBAL_FN void step(int64_t t, int32_t count, int64_t next, int32_t next_count) {
    const KdaParams& p = a.call;
    block.origin = unknown_zero();
    store_shared(Block::values() + piece_index<8>(thread_x() / 8, thread_x() % 8) * 8, v);
    const float gate = beta;
    block.prepare([&](int i, float(&keys)[2][4], float(&queries)[2][4], float(&decays)[2][4]) {
      const uint32_t channel = Block::channel(i);
      const Pack<float, 4> shift = load_shared<4>(bias() + channel);
#pragma unroll
      for (uint32_t b = 0; b < 2; ++b) {
        const uint32_t token = lane_row() + 8 * b + block.origin,
                       from = piece_index<kPieces>(token, channel / 8) * 8 + channel % 8;
        const bool exists = static_cast<int32_t>(token) < count;
        const Pack<bf16_t, 4> k = load_shared<4>(raw(0) + from), q = load_shared<4>(raw(1) + from),
                              g = load_shared<4>(raw(2) + from);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          keys[b][e] = to_f32(k[e]), queries[b][e] = to_f32(q[e]);
          decays[b][e] = exists ? ::expf(kda_log_decay(p, to_f32(g[e]), shift[e], rate)) : 1.0f;
        }
      }
    });
    sync_threads();
    if (next_count > 0) fetch(next, next_count);
    if (warp() == 0) Block::solve(gate, p.l2norm, p.scale);
    Acc w[2], o[2];
    block.read_state(w, o);
    sync_threads();
    block.finish(w, o);
    const uint32_t token = Block::result_token() + block.origin, piece = Block::result_piece();
    if (static_cast<int32_t>(token) < count && static_cast<int32_t>(8 * piece) < values)
      store<Hint::kOnce>(const_cast<bf16_t*>(at(p.out, t + token, h)) + first + 8 * piece,
                         load_shared<8>(Block::values() + piece_index<8>(token, piece) * 8));
    wait_async<0>();
    sync_threads();
  }
  FI_GLOBAL_FN void run(int64_t begin) {
    int32_t count = count_at(begin);
    fetch(begin, count);
    wait_async<0>();
    sync_threads();
#pragma unroll 1
    for (int64_t t = begin; t < end;) {
      const int64_t next = t + count;
      const int32_t next_count = next < end ? count_at(next) : 0;
      step(t, count, next, next_count);
      if (const int64_t slot = after(next - 1); slot >= 0) save(a.call.after, slot);
      t = next, count = next_count;
    }
  }
};

}  // namespace linear

template <KdaChunkCudaConfig C>
FI_GLOBAL_FN void kda_chunk(const KdaCudaParams& a) {
  using namespace linear;
  depend_wait();
  const KdaParams& p = a.call;
  const auto tiles = static_cast<uint32_t>(ceil_div(p.rows, kChannelCudaValues)),
             heads = static_cast<uint32_t>(p.value_heads);
  const uint32_t unit = block_x() / tiles;
  const int64_t n = unit / heads, first = a.sequences.at(n), end = a.sequences.at(n + 1);
  const int64_t read = p.in.data ? kda_slot(a.read.at(n), a.in_slots) : -1;
  if (end - first >= kChannelCudaTokens && (!p.in.data || read >= 0)) {
    KdaChunk<C> chunk(a, unit % heads, block_x() % tiles, end);
    if (p.in.data) chunk.load(read);
    chunk.run(first);
    const int64_t write = a.updates ? kda_slot(a.write.data ? a.write.at(n) : read, a.state_slots) : -1;
    if (write >= 0) chunk.save(p.state, write);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
