// SPDX-License-Identifier: Apache-2.0
// Attention without tensor cores: f32 and 8-bit caches. A group of lanes reads a key's row, 8 or 16 bytes a lane, straight into registers,
// for up to four query rows; groups of the block take keys in turn, four at a time, so that eight loads of a lane are in
// flight. States of the groups are added in shared memory at the end.
#pragma once
#include "flashinfer/ops/attention/cuda_rows.cuh"

namespace flashinfer::cu {
namespace attn {

template <AttentionCoresConfig C>
struct Cores {
  using K = scalar_of_t<C.kv>;
  // Elements of a load: 16 bytes; 8 of 8-bit types, whose 16 elements for four rows would not fit in registers.
  static constexpr int kPer = sizeof(K) == 1 ? 8 : 16 / static_cast<int>(sizeof(K));
  static constexpr int kPieces = C.dim / kPer;                             // loads of a row
  static constexpr int kLanes = kPieces < 32 ? kPieces : 32;               // of a group
  static constexpr int kLoads = kPieces / kLanes, kHas = kLoads * kPer;    // of a lane: loads and elements of a row
  static constexpr int kGroups = C.threads / kLanes, kStep = 4;            // keys that a group has in flight
};

/// Elements of this lane: piece lane + i * kLanes of the row.
template <AttentionCoresConfig C>
FI_GLOBAL_FN void load_row(const typename Cores<C>::K* row, uint32_t rank, Pack<typename Cores<C>::K, Cores<C>::kPer> (&to)[Cores<C>::kLoads]) {
#pragma unroll
  for (int i = 0; i < Cores<C>::kLoads; ++i) to[i] = load<Cores<C>::kPer, Hint::kOnce>(row + (rank + i * Cores<C>::kLanes) * Cores<C>::kPer);
}
template <AttentionCoresConfig C>
FI_GLOBAL_FN void widen_row(const Pack<typename Cores<C>::K, Cores<C>::kPer> (&from)[Cores<C>::kLoads], float (&to)[Cores<C>::kHas]) {
#pragma unroll
  for (int i = 0; i < Cores<C>::kLoads; ++i) {
    float x[Cores<C>::kPer];
    widen<Cores<C>::kPer>(from[i].v, x);
#pragma unroll
    for (int e = 0; e < Cores<C>::kPer; ++e) to[i * Cores<C>::kPer + e] = x[e];
  }
}
}  // namespace attn

template <AttentionCoresConfig C>
FI_GLOBAL_FN void attention_cores(const AttentionCudaParams& pp) {
  using namespace attn;
  using X = Cores<C>;
  using K = typename X::K;
  using Q = scalar_of_t<C.q>;
  using O = scalar_of_t<C.o>;
  constexpr int R = C.rows;
  const AttentionParams& p = pp.a;
  depend_wait();
  const AttentionTile t = pp.tiles[block_x()];
  const Seq seq = sequence(p, t.request);
  const uint32_t kv_head = block_y(), group = static_cast<uint32_t>(p.num_qo_heads / p.num_kv_heads);
  const uint32_t mine = thread_x() / X::kLanes, rank = thread_x() % X::kLanes;
  const K* k_head = static_cast<const K*>(p.k) + kv_head * p.k_stride_h;
  const K* v_head = static_cast<const K*>(p.v) + kv_head * p.v_stride_h;

  float q[R][X::kHas], o[R][X::kHas] = {}, m[R], l[R], slope[R];
  int32_t token[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const uint32_t packed = static_cast<uint32_t>(t.row_begin) + (r < t.rows ? r : 0), head = kv_head * group + packed % group;
    token[r] = static_cast<int32_t>(packed / group), m[r] = -kInf, l[r] = 0.0f;
    slope[r] = p.alibi_slopes ? p.alibi_slopes[head] : 0.0f;
    const Q* x = static_cast<const Q*>(p.q) + (seq.q_first + token[r]) * p.q_stride_n + head * p.q_stride_h;
#pragma unroll
    for (int i = 0; i < X::kLoads; ++i)
#pragma unroll
      for (int e = 0; e < X::kPer; ++e) q[r][i * X::kPer + e] = to_f32(x[(rank + i * X::kLanes) * X::kPer + e]);
  }
  const KeyRange range = key_range(p, seq, token[0], token[t.rows > 0 ? (t.rows < R ? t.rows : R) - 1 : 0]);
  const int32_t end = range.end < t.key_end ? range.end : t.key_end;
  constexpr int32_t kTurn = X::kGroups * X::kStep;  // keys of the block's turn; turns begin at fixed places
  const int32_t first = range.first > t.key_begin ? range.first / kTurn * kTurn : t.key_begin;
  for (int32_t turn = first; turn < end; turn += kTurn) {
    Pack<K, X::kPer> k[X::kStep][X::kLoads], v[X::kStep][X::kLoads];
    bool there[X::kStep];
#pragma unroll
    for (int j = 0; j < X::kStep; ++j) {
      const int32_t key = turn + j * X::kGroups + static_cast<int32_t>(mine);
      there[j] = key >= range.first && key < end;
      if (!there[j]) continue;
      load_row<C>(k_head + key_offset(p, seq, key, p.k_stride_page, p.k_stride_n), rank, k[j]);
      load_row<C>(v_head + key_offset(p, seq, key, p.v_stride_page, p.v_stride_n), rank, v[j]);
    }
#pragma unroll
    for (int j = 0; j < X::kStep; ++j) {
      const int32_t key = turn + j * X::kGroups + static_cast<int32_t>(mine);
      float x[X::kHas] = {}, y[X::kHas] = {};
      if (there[j]) widen_row<C>(k[j], x), widen_row<C>(v[j], y);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        float dot = 0.0f;
#pragma unroll
        for (int e = 0; e < X::kHas; ++e) dot += q[r][e] * x[e];
        dot = warp_reduce<X::kLanes>(dot, Sum{});
        float s = exponent(p, dot, slope[r], token[r], key);
        if (!there[j] || !visible(p, seq, token[r], key)) s = -kInf;
        const float top = Max{}(s, m[r]), shift = top == -kInf ? 0.0f : top, old = exp2_fast(m[r] - shift), weight = exp2_fast(s - shift);
        m[r] = top, l[r] = l[r] * old + weight;
#pragma unroll
        for (int e = 0; e < X::kHas; ++e) o[r][e] = o[r][e] * old + weight * y[e];
      }
    }
  }

  float* outputs = reinterpret_cast<float*>(shared());            // [group][row][dim]
  float* state = outputs + X::kGroups * R * C.dim;                // [group][row][2]
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const uint32_t at = mine * R + r;
    if (rank == 0) state[2 * at] = m[r], state[2 * at + 1] = l[r];
#pragma unroll
    for (int e = 0; e < X::kHas; ++e) outputs[at * C.dim + (rank + e / X::kPer * X::kLanes) * X::kPer + e % X::kPer] = o[r][e];
  }
  sync_threads();
  constexpr uint32_t kQuads = C.dim / 4;
  for (uint32_t i = thread_x(); i < static_cast<uint32_t>(t.rows) * kQuads; i += C.threads) {
    const uint32_t row = i / kQuads, quad = i % kQuads;
    float top = -kInf, denominator = 0.0f, sum[4] = {};
    for (uint32_t g = 0; g < X::kGroups; ++g) top = Max{}(state[2 * (g * R + row)], top);
    for (uint32_t g = 0; g < X::kGroups; ++g) {
      const uint32_t at = g * R + row;
      const float weight = top == -kInf ? 0.0f : exp2_fast(state[2 * at] - top);
      denominator += weight * state[2 * at + 1];
      const Pack<float, 4> x = load_shared<4>(outputs + at * C.dim + quad * 4);
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[e] += weight * x[e];
    }
    write_quad<O, C.dim>(p, seq, t, kv_head, group, row, quad, top, denominator, sum);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
