// SPDX-License-Identifier: Apache-2.0
// Attention without tensor cores: f32 and 8-bit caches and queries, mixed types, rotation on the fly. A group of lanes
// reads a key's row, 8 or 16 bytes a lane, directly into registers, for up to four query rows. The groups of a block
// take keys in turn, several at a time, so that eight loads of a lane are in flight. The states of the groups are added
// in shared memory at the end.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/attention/kernels/cuda/merge.cuh"

namespace flashinfer::cu {
namespace attn {

/// Elements of a lane: pieces rank + i * kLanes of a row; those beyond it are zeros.
template <AttentionCoresConfig C>
struct Cores {
  using K = scalar_of_t<C.kv>;
  static constexpr int kPer = C.per(), kLanes = C.lanes(), kGroups = C.groups();
  static constexpr int kPiecesK = C.dqk / kPer, kPiecesV = C.dvo / kPer;
  static constexpr int kPieces = kPiecesK > kPiecesV ? kPiecesK : kPiecesV;
  static constexpr int kLoads = ceil_div(kPieces, kLanes), kHas = kLoads * kPer;
  static constexpr int kStep = C.step();
  using Row = Pack<K, kPer>[kLoads];
};

template <AttentionCoresConfig C, int kPieces>
FI_GLOBAL_FN void load_row(const typename Cores<C>::K* row, uint32_t rank, typename Cores<C>::Row& to) {
  using X = Cores<C>;
#pragma unroll
  for (int i = 0; i < X::kLoads; ++i) {
    const uint32_t piece = rank + i * X::kLanes;
    if (kPieces == X::kLanes * X::kLoads || piece < kPieces) to[i] = load<X::kPer, Hint::kOnce>(row + piece * X::kPer);
  }
}
template <AttentionCoresConfig C, int kPieces>
FI_GLOBAL_FN void widen_row(const typename Cores<C>::Row& from, uint32_t rank, float (&to)[Cores<C>::kHas]) {
  using X = Cores<C>;
#pragma unroll
  for (int i = 0; i < X::kLoads; ++i) {
    if (kPieces != X::kLanes * X::kLoads && rank + i * X::kLanes >= kPieces) continue;
    float x[X::kPer];
    widen<X::kPer>(from[i].v, x);
#pragma unroll
    for (int e = 0; e < X::kPer; ++e) to[i * X::kPer + e] = x[e];
  }
}

/// Rotates a lane's elements of a row of dqk (pairs are d and d + dqk / 2); the other element of each pair is read from
/// `row` again. `table`: cosines and sines of the row's position.
template <AttentionCoresConfig C, class T>
FI_GLOBAL_FN void rotate(const T* row, const float* table, uint32_t rank, float (&x)[Cores<C>::kHas]) {
  using X = Cores<C>;
  constexpr uint32_t kHalf = C.dqk / 2;
#pragma unroll
  for (int i = 0; i < X::kLoads; ++i) {
    const uint32_t piece = rank + i * X::kLanes;
    if (X::kPiecesK != X::kLanes * X::kLoads && piece >= X::kPiecesK) continue;
    const bool low = piece < X::kPiecesK / 2;
    const T* other = low ? row + kHalf : row - kHalf;
#pragma unroll
    for (int e = 0; e < X::kPer; ++e) {
      const uint32_t d = piece * X::kPer + e;
      const float c = table[low ? d : d - kHalf], s = table[low ? d + kHalf : d], y = to_f32(other[d]);
      x[i * X::kPer + e] = x[i * X::kPer + e] * c + (low ? -y : y) * s;
    }
  }
}

/// One tile of rows. H: NoHooks or the hooks of a custom variant, whose parameters are `p`.
template <AttentionCoresConfig C, class H>
FI_GLOBAL_FN void run_cores(const AttentionCudaParams& pp, const typename H::Params& p) {
  using X = Cores<C>;
  using K = typename X::K;
  using Q = scalar_of_t<C.q>;
  using O = scalar_of_t<C.o>;
  constexpr int R = C.rows;
  const AttentionTile t = tile_of(pp);
  if (t.rows == 0) return;  // spare, in a captured grid
  const Seq seq = sequence(p, t.request);
  const H hooks(p, t.request);
  const uint32_t kv_head = block_y(), group = pp.group;
  const uint32_t mine = thread_x() / X::kLanes, rank = thread_x() % X::kLanes;
  const K* k_head = static_cast<const K*>(p.k) + kv_head * p.k_stride_h;
  const K* v_head = static_cast<const K*>(p.v) + kv_head * p.v_stride_h;
  const auto table = [&](int32_t position) { return p.rope + (position - p.rope_first) * C.dqk; };

  float q[R][X::kHas] = {}, o[R][X::kHas] = {}, m[R], l[R], slope[R];
  int32_t token[R];
  uint32_t head[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const uint32_t packed = static_cast<uint32_t>(t.row_begin) + (r < t.rows ? r : 0);
    head[r] = kv_head * group + packed % group;
    token[r] = static_cast<int32_t>(packed / group), m[r] = -kInf, l[r] = 0.0f;
    slope[r] = p.alibi_slopes ? p.alibi_slopes[head[r]] : 0.0f;
    float scale = pp.q_head_scales ? pp.q_head_scales[head[r]] : 1.0f;
    if (pp.k_head_scales) scale *= pp.k_head_scales[kv_head];
    const Q* x = static_cast<const Q*>(p.q) + (seq.q_first + token[r]) * p.q_stride_n + head[r] * p.q_stride_h;
#pragma unroll
    for (int i = 0; i < X::kLoads; ++i) {
      const uint32_t piece = rank + i * X::kLanes;
      if (X::kPiecesK != X::kLanes * X::kLoads && piece >= X::kPiecesK) continue;
#pragma unroll
      for (int e = 0; e < X::kPer; ++e) q[r][i * X::kPer + e] = to_f32(x[piece * X::kPer + e]);
    }
    if constexpr (C.rope) rotate<C>(x, table(token[r] + seq.offset), rank, q[r]);
#pragma unroll
    for (int e = 0; e < X::kHas; ++e) {
      if constexpr (H::kQuery) q[r][e] = hooks.query(q[r][e]);
      q[r][e] *= scale;
    }
  }
  // Rows are kept relative to their greatest logit, and the factor of the exponent is applied to the difference, which
  // is exact where it matters: a product near 1e5 alone is off by 0.004. The largest rows with RoPE have no register
  // left for the factor (255 without a spill on sm_90a) and keep the product.
  constexpr bool kProduct = C.rope && C.dqk > 128;
  const bool special = !H::kCustom && (kProduct || p.alibi_slopes || p.soft_cap > 0.0f || !(p.scale > 0.0f));
  float factor = special ? 1.0f : p.scale * kLog2e;
  if constexpr (H::kCustom) factor = H::kSoftmax ? hooks.factor() : 1.0f;
  const KeyRange range = key_range(p, seq, token[0], token[t.rows > 0 ? (t.rows < R ? t.rows : R) - 1 : 0]);
  const int32_t end = range.end < t.key_end ? range.end : t.key_end;
  constexpr int32_t kTurn = X::kGroups * X::kStep;  // keys of an iteration of the block, which starts at a fixed place
  const int32_t first = range.first > t.key_begin ? range.first / kTurn * kTurn : t.key_begin;
  for (int32_t turn = first; turn < end; turn += kTurn) {
    typename X::Row k[X::kStep], v[X::kStep];
    bool in_range[X::kStep];
#pragma unroll
    for (int j = 0; j < X::kStep; ++j) {
      const int32_t key = turn + j * X::kGroups + static_cast<int32_t>(mine);
      in_range[j] = key >= range.first && key < end;
      if (!in_range[j]) continue;
      const KeyOffsets row = key_offsets(p, seq, key);
      load_row<C, X::kPiecesK>(k_head + row.k, rank, k[j]);
      load_row<C, X::kPiecesV>(v_head + row.v, rank, v[j]);
    }
#pragma unroll
    for (int j = 0; j < X::kStep; ++j) {
      const int32_t key = turn + j * X::kGroups + static_cast<int32_t>(mine);
      float x[X::kHas] = {}, y[X::kHas] = {};
      if (in_range[j]) {
        widen_row<C, X::kPiecesK>(k[j], rank, x), widen_row<C, X::kPiecesV>(v[j], rank, y);
        if constexpr (C.rope) rotate<C>(k_head + key_offsets(p, seq, key).k, table(key), rank, x);
        if constexpr (H::kKey) {
#pragma unroll
          for (int e = 0; e < X::kHas; ++e)
            if (X::kPiecesK == X::kLanes * X::kLoads || rank + e / X::kPer * X::kLanes < X::kPiecesK)
              x[e] = hooks.key(x[e]);
        }
      }
#pragma unroll
      for (int r = 0; r < R; ++r) {
        float dot = 0.0f;
#pragma unroll
        for (int e = 0; e < X::kHas; ++e) dot += q[r][e] * x[e];
        dot = warp_reduce<X::kLanes>(dot, Sum{});
        bool seen = in_range[j] && visible(p, seq, token[r], key);
        if constexpr (H::kCustom) {
          seen = seen && hooks.shows(token[r], key, head[r]);
          if (seen) dot = hooks.logit(dot, token[r], key, head[r]);
        } else if (special) {
          dot = exponent(p, dot, slope[r], token[r], key);
        }
        float old = 1.0f, weight = seen ? dot : 0.0f;
        if constexpr (H::kSoftmax) {
          const float s = seen ? dot : -kInf, top = Max{}(s, m[r]), shift = top == -kInf ? 0.0f : top;
          old = exp2_fast((m[r] - shift) * factor), weight = exp2_fast((s - shift) * factor);
          m[r] = top, l[r] = l[r] * old + weight;
        } else if (seen) {
          m[r] = 0.0f;
        }
#pragma unroll
        for (int e = 0; e < X::kHas; ++e) o[r][e] = o[r][e] * old + weight * y[e];
      }
    }
  }

  if constexpr (H::kCustom) sync_warp();  // the user's code may leave lanes apart, and barriers are for whole warps
  float* outputs = reinterpret_cast<float*>(shared());  // [group][row][dvo]
  float* state = outputs + X::kGroups * R * C.dvo;      // [group][row][2]
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const uint32_t at = mine * R + r;
    if (rank == 0) state[2 * at] = m[r], state[2 * at + 1] = l[r];
#pragma unroll
    for (int e = 0; e < X::kHas; ++e) {
      const uint32_t piece = rank + e / X::kPer * X::kLanes;
      if (X::kPiecesV == X::kLanes * X::kLoads || piece < X::kPiecesV)
        outputs[at * C.dvo + piece * X::kPer + e % X::kPer] = o[r][e];
    }
  }
  sync_threads();
  constexpr uint32_t kQuads = C.dvo / 4;
  // Read again where a lane has many elements; smaller kernels keep the tile in registers.
  constexpr bool kAgain = C.dqk > 128 || C.dvo > 128;
  const AttentionTile same = to_write(kAgain ? tile_of(pp) : t);
  const Seq same_seq = kAgain ? sequence(p, same.request) : seq;
  for (uint32_t i = thread_x(); i < static_cast<uint32_t>(same.rows) * kQuads; i += C.threads) {
    const uint32_t row = i / kQuads, quad = i % kQuads;
    float top = -kInf, denominator = 0.0f, sum[4] = {};
    for (uint32_t g = 0; g < X::kGroups; ++g) top = Max{}(state[2 * (g * R + row)], top);
    for (uint32_t g = 0; g < X::kGroups; ++g) {
      const uint32_t at = g * R + row;
      const float weight = top == -kInf ? 0.0f : exp2_fast((state[2 * at] - top) * factor);
      denominator += weight * state[2 * at + 1];
      const Pack<float, 4> x = load_shared<4>(outputs + at * C.dvo + quad * 4);
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[e] += weight * x[e];
    }
    write_quad<O, C.dvo>(p, hooks, same_seq, same, kv_head, group, row, quad, top * factor, denominator, sum);
  }
  merge_last<O, C.dvo, C.threads, H>(pp, p);
  depend_launch();
}
}  // namespace attn

template <AttentionCoresConfig C>
FI_GLOBAL_FN void attention_cores(const AttentionCudaParams& p) {
  depend_wait();
  attn::run_cores<C, attn::NoHooks>(p, p.a);
}

}  // namespace flashinfer::cu
