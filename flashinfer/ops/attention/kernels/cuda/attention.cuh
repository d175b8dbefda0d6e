// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores, FlashAttention-2's loop: Q stays in shared memory, K and V arrive in tiles of 64 keys by
// cp.async, S and P stay in registers. One source for prefill (16 rows a warp) and decode (16 rows shared by four
// warps, which divide the keys).
//
//   K0, V0 in flight | wait K | S = Q K | barrier, K next | softmax | wait V | O += P V | barrier, V next | ...
//
// The copy of the next K overlaps softmax and P V, that of the next V overlaps S.
#pragma once
#include "flashinfer/kernels/cuda/lane_row.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/ops/attention/kernels/cuda/nvfp4.cuh"

namespace flashinfer::cu {
namespace attn {

/// This warp's part of the tile.
struct Place {
  uint32_t row, key;  // first row in the tile of rows; first key in the tile of keys
};

/// S = Q K for 16 rows and kBlocks * 8 keys.
template <AttentionCudaConfig C, int kBlocks, class T, class Row>
FI_GLOBAL_FN void logits(Acc (&s)[kBlocks], const Row& q, const Row& k) {
  // As many steps at once as compile without spills within the registers of four blocks an SM in decode (D 128), two of
  // 256 threads in prefill at D 64, and one or two of all registers elsewhere (D 256: eight steps, sixteen spill).
  constexpr uint32_t kPieces = steps_of(C.dqk) * 2;
  constexpr int kSteps = C.warps_k > 1 ? 2 : C.dqk <= 128 ? 3 : 4;
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) s[n] = {};
#pragma unroll 2
  for (uint32_t group = 0; group < kPieces; group += 8) {
#pragma unroll kSteps
    for (uint32_t i = 0; i < 4; ++i) {
      if (kPieces % 8 != 0 && group + 2 * i >= kPieces) continue;
      const Frag4 a = load_matrix4(q.at(0, group, i));
#pragma unroll
      for (uint32_t n = 0; n < kBlocks; n += 2) {
        const Frag4 b = load_matrix4(k.at(n * 8, group, i));
        s[n] = mma<T>(a, {{b.r[0], b.r[1]}}, s[n]);
        s[n + 1] = mma<T>(a, {{b.r[2], b.r[3]}}, s[n + 1]);
      }
    }
  }
}

/// Outputs of a lane: blocks of 8 columns.
template <AttentionCudaConfig C>
inline constexpr uint32_t kColumns = C.used_dim(C.dvo) / 8;

/// O += P V.
template <AttentionCudaConfig C, int kBlocks, class T, class Row>
FI_GLOBAL_FN void add_values(Acc (&o)[kColumns<C>], const Acc (&s)[kBlocks], const Row& v) {
#pragma unroll
  for (uint32_t n = 0; n < kBlocks; n += 2) {
    const Frag4 a{{pack2<T>(s[n].r[0], s[n].r[1]), pack2<T>(s[n].r[2], s[n].r[3]),
                   pack2<T>(s[n + 1].r[0], s[n + 1].r[1]), pack2<T>(s[n + 1].r[2], s[n + 1].r[3])}};
#pragma unroll
    for (uint32_t d = 0; d < kColumns<C>; d += 2) {
      const Frag4 b = load_matrix4_transposed(v.at(n * 8, d / 8 * 8, d / 2 % 4));
      o[d] = mma<T>(a, {{b.r[0], b.r[1]}}, o[d]);
      o[d + 1] = mma<T>(a, {{b.r[2], b.r[3]}}, o[d + 1]);
    }
  }
}

/// The state of the two rows of a lane (g and g + 8 of its warp's 16).
struct RowState {
  float m[2] = {-kInf, -kInf}, l[2] = {0.0f, 0.0f};  // l: this lane's share
  int32_t token[2];
  uint32_t head[2];
  float slope[2];
  float factor[2];  // of the logits, with an 8-bit cache
};

/// Logits of a variant: LogitsTransform of the visible ones. Without softmax they are the weights, so this gives P.
template <class H, int kBlocks>
FI_GLOBAL_FN void custom_logits(Acc (&s)[kBlocks], RowState& st, const H& hooks, const Seq& seq, int32_t first,
                                int32_t end, bool check) {
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[n].r[2 * h + e];
        const int32_t key = first + n * 8 + static_cast<int32_t>(lane() % 4) * 2 + e;
        bool seen = !check || (key < end && visible(hooks.params, seq, st.token[h], key));
        seen = seen && hooks.shows(st.token[h], key, st.head[h]);
        x = seen ? hooks.logit(x, st.token[h], key, st.head[h]) : H::kSoftmax ? -kInf : 0.0f;
        if (!H::kSoftmax && seen) st.m[h] = 0.0f;
      }
}

/// S becomes P; O and l are rescaled to the new maxima. `check`: some key of the tile may be masked for some row.
template <AttentionCudaConfig C, class H, int kBlocks>
FI_GLOBAL_FN void softmax_step(Acc (&s)[kBlocks], Acc (&o)[kColumns<C>], RowState& st, const AttentionParams& p,
                               const H& hooks, const Seq& seq, int32_t first, int32_t end, bool check) {
  // Nearly always an exponent of 2 is the product times a constant, which is fused with the subtraction of the maximum
  // into one instruction.
  const bool special = !H::kCustom && (p.alibi_slopes || p.soft_cap > 0.0f || !(p.scale > 0.0f));
  float all_rows = special ? 1.0f : p.scale * kLog2e;
  if constexpr (H::kCustom) {
    all_rows = hooks.factor();
    custom_logits(s, st, hooks, seq, first, end, check);
    if constexpr (!H::kSoftmax) return;
  }
  float old[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float factor = C.narrow() && !special ? all_rows * st.factor[h] : all_rows;
    if (!H::kCustom && (special || check)) {
#pragma unroll
      for (int n = 0; n < kBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[n].r[2 * h + e];
          const int32_t key = first + n * 8 + static_cast<int32_t>(lane() % 4) * 2 + e;
          if (special) x = exponent(p, C.narrow() ? x * st.factor[h] : x, st.slope[h], st.token[h], key);
          if (check && (key >= end || !visible(p, seq, st.token[h], key))) x = -kInf;
        }
    }
    float top = -kInf;
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) top = Top{}(s[n].r[2 * h], Top{}(s[n].r[2 * h + 1], top));
    top = Top{}(warp_reduce<4>(top, Top{}) * factor, st.m[h]);
    const float shift = top == -kInf ? 0.0f : top;
    old[h] = exp2_fast(st.m[h] - shift);
    st.m[h] = top;
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[n].r[2 * h + e];
        x = exp2_fast(fmaf(x, factor, -shift));  // rounded once: near 1e5 the product alone is off by 0.004
        sum += x;
      }
    st.l[h] = st.l[h] * old[h] + sum;
  }
  // Most tiles have no new maximum in any of the warp's rows, and multiplying by 1 changes no bit.
  if (ballot(old[0] != 1.0f || old[1] != 1.0f) == 0) return;
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (uint32_t d = 0; d < kColumns<C>; ++d) o[d].r[2 * h] *= old[h], o[d].r[2 * h + 1] *= old[h];
}

/// Where four neighbouring outputs of a row lie in shared memory, permuted by the row so that neither side has bank
/// conflicts: a lane stores two of them at a time, of an 8-bit cache (narrow.cuh) four.
template <AttentionCudaConfig C>
FI_GLOBAL_FN uint32_t output_at(uint32_t row, uint32_t quad) {
  constexpr uint32_t kPitch = static_cast<uint32_t>(round_up(C.dvo, 64));
  return row * kPitch + (quad ^ (C.fp4() ? row % 2 : C.narrow() ? row % 2 * 4 : row % 8 * 2)) * 4;
}
template <AttentionCudaConfig C>
FI_GLOBAL_FN void store_outputs(float* outputs, const Acc (&o)[kColumns<C>], uint32_t row, uint32_t h) {
  const uint32_t t = lane() % 4;
  if constexpr (C.fp4()) {
#pragma unroll
    for (uint32_t d = 0; d < kColumns<C>; d += 4)
#pragma unroll
      for (uint32_t e = 0; e < 2; ++e)
        store_shared(
            outputs + output_at<C>(row, d * 2 + t * 2 + e),
            Pack<float, 4>{{o[d].r[2 * h + e], o[d + 1].r[2 * h + e], o[d + 2].r[2 * h + e], o[d + 3].r[2 * h + e]}});
  } else if constexpr (C.narrow()) {
#pragma unroll
    for (uint32_t d = 0; d < kColumns<C>; d += 2)
      store_shared(outputs + output_at<C>(row, d * 2 + t),
                   Pack<float, 4>{{o[d].r[2 * h], o[d + 1].r[2 * h], o[d].r[2 * h + 1], o[d + 1].r[2 * h + 1]}});
  } else {
#pragma unroll
    for (uint32_t d = 0; d < kColumns<C>; ++d)
      store_shared(outputs + output_at<C>(row, d * 2 + t / 2) + t % 2 * 2,
                   Pack<float, 2>{{o[d].r[2 * h], o[d].r[2 * h + 1]}});
  }
}

/// f32 outputs through shared memory: warps of the same rows are added, then rows are written in whole sectors.
template <AttentionCudaConfig C, class H>
FI_GLOBAL_FN void write_rows(const Acc (&o)[kColumns<C>], RowState& st, const AttentionParams& p, const H& hooks,
                             const Seq& seq, const AttentionTile& t, uint32_t kv_head, uint32_t group) {
  using O = scalar_of_t<C.o>;
  float* outputs = reinterpret_cast<float*>(shared());
  float* state = reinterpret_cast<float*>(shared() + C.state_at());
  const uint32_t g = lane() / 4, mine = warp() * 16;
#pragma unroll
  for (uint32_t h = 0; h < 2; ++h) {
    const uint32_t row = mine + g + 8 * h;
    const float l = warp_reduce<4>(st.l[h], Sum{});
    const float m = H::kSoftmax ? st.m[h] : warp_reduce<4>(st.m[h], Max{});
    if (lane() % 4 == 0) state[2 * row] = m, state[2 * row + 1] = l;
    store_outputs<C>(outputs, o, row, h);
  }
  sync_threads();
  constexpr uint32_t kQuads = C.dvo / 4, kWarpsQ = C.rows() / 16;
  for (uint32_t i = thread_x(); i < C.rows() * kQuads; i += C.threads) {
    const uint32_t row = i / kQuads, quad = i % kQuads;
    if (row >= static_cast<uint32_t>(t.rows)) break;
    float m = -kInf, l = 0.0f, sum[4] = {};
#pragma unroll
    for (uint32_t k = 0; k < C.warps_k; ++k) m = Max{}(state[2 * (k * kWarpsQ * 16 + row)], m);
#pragma unroll
    for (uint32_t k = 0; k < C.warps_k; ++k) {
      const uint32_t r = k * kWarpsQ * 16 + row;
      const float weight = m == -kInf ? 0.0f : exp2_fast(state[2 * r] - m);
      l += weight * state[2 * r + 1];
      const Pack<float, 4> x = load_shared<4>(outputs + output_at<C>(r, quad));
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[e] += weight * x[e] * (C.fp4() ? kSmallE2m1 : 1.0f);
    }
    write_quad<O, C.dvo>(p, hooks, seq, t, kv_head, group, row, quad, m, l, sum);
  }
}

/// One tile of rows. H: NoHooks or the hooks of a custom variant, whose parameters are `p`.
template <AttentionCudaConfig C, class H>
FI_GLOBAL_FN void run_tile(const AttentionCudaParams& pp, const typename H::Params& p) {
  using T = scalar_of_t<C.narrow() ? DType::kF16 : C.q>;  // of the products
  constexpr int kWarpsQ = C.rows() / 16, kKeys = C.keys(), kMine = kKeys / C.warps_k, kBlocks = kMine / 8;
  const AttentionTile t = pp.tiles[block_x()];
  if (t.rows == 0) return;  // spare, in a captured grid: 36 KB of zeros and the epilogue for nothing otherwise
  const Seq seq = sequence(p, t.request);
  const H hooks(p, t.request);
  const uint32_t kv_head = block_y(), group = static_cast<uint32_t>(p.num_qo_heads / p.num_kv_heads);
  T* q = reinterpret_cast<T*>(shared());
  char *k = shared() + C.q_bytes(), *v = k + C.tile_bytes(C.dqk);
  const char* k_head = static_cast<const char*>(p.k) + kv_head * p.k_stride_h * C.unit_bytes();
  const char* v_head = static_cast<const char*>(p.v) + kv_head * p.v_stride_h * C.unit_bytes();
  uint8_t *k_scales = reinterpret_cast<uint8_t*>(shared() + C.scales_at()),
          *v_scales = k_scales + C.keys() * C.scale_pitch(C.dqk);
  const Place at{warp() % kWarpsQ * 16, warp() / kWarpsQ * kMine};

  const int32_t i0 = t.row_begin / static_cast<int32_t>(group),
                i1 = (t.row_begin + t.rows - 1) / static_cast<int32_t>(group);
  const KeyRange range = key_range(p, seq, i0, i1);
  const int32_t end = range.end < t.key_end ? range.end : t.key_end;
  const int32_t first =
      range.first > t.key_begin ? range.first / kKeys * kKeys : t.key_begin;  // tiles start at fixed places
  RowState st;
#pragma unroll
  for (uint32_t h = 0; h < 2; ++h) {
    const uint32_t packed = static_cast<uint32_t>(t.row_begin) + at.row + lane() / 4 + 8 * h;
    st.token[h] = static_cast<int32_t>(packed / group);
    const bool in_range = at.row + lane() / 4 + 8 * h < static_cast<uint32_t>(t.rows);
    if (!in_range) st.token[h] = i0;  // any valid one
    st.head[h] = kv_head * group + packed % group;
    if (!C.narrow()) st.slope[h] = p.alibi_slopes ? p.alibi_slopes[st.head[h]] : 0.0f;
  }
  KeyOffsets* offsets =
      reinterpret_cast<KeyOffsets*>(shared() + C.offsets_at());  // of this tile and the next, in turns
  KeyRows<kKeys, C.unit_bytes(), C.fp4()> rows(pp, p, seq, first, end);
  if constexpr (!C.narrow()) copy_queries<C>(q, p, seq, t, kv_head, group);
  rows.store(offsets, first);
  sync_threads();
  // NVFP4: with the scales.
  const auto copy_k = [&](KeyOffsets* of, int32_t count) {
    copy_keys<C, C.dqk>(k, k_head, &of->k, count);
    if constexpr (C.fp4())
      copy_scales<C, C.dqk>(k_scales, p.k_sf + kv_head * p.k_sf_stride_h, scale_offsets<kKeys>(of), count);
  };
  const auto copy_v = [&](KeyOffsets* of, int32_t count) {
    copy_keys<C, C.dvo>(v, v_head, &of->v, count);
    if constexpr (C.fp4())
      copy_scales<C, C.dvo>(v_scales, p.v_sf + kv_head * p.v_sf_stride_h, scale_offsets<kKeys>(of) + kKeys, count);
  };
  copy_k(offsets, end - first);
  commit_async();
  copy_v(offsets, end - first);
  commit_async();
  RowFactors* of_rows = reinterpret_cast<RowFactors*>(shared() + C.state_at());
  if constexpr (C.narrow())
    store_queries<C>(q, of_rows, pp, p, seq, t, kv_head, group);  // while the copies are under way
  const LaneRow<pitch_of(C.dqk * 2)> q_row(q, at.row + lane() % 16, lane() / 16);
  // Of 16-bit elements two pieces of 8 or 16 keys, of 8-bit ones a piece of 32 keys.
  const uint32_t l = lane(), k_key = C.narrow() ? l : l / 16 * 8 + l % 8, v_key = C.narrow() ? l : l % 16;
  const LaneRow<pitch_of(C.row_bytes(C.dqk))> k_row(k, at.key + k_key, C.narrow() ? 0 : l / 8 % 2);
  const LaneRow<pitch_of(C.row_bytes(C.dvo))> v_row(v, at.key + v_key, C.narrow() ? 0 : l / 16);
  Acc o[kColumns<C>] = {};
  uint32_t turn = 0;
  for (int32_t key = first; key < end; key += kKeys) {
    const int32_t next = key + kKeys;
    turn ^= kKeys;
    KeyOffsets* of_next = offsets + turn;
    rows.store(offsets + turn, next);
    Acc s[kBlocks];
    wait_async<1>();
    if constexpr (H::kQuery)
      if (key == first) transform_own<C, C.rows()>(q, [&](float x) { return hooks.query(x); });
    if constexpr (H::kKey) transform_own<C, kKeys>(reinterpret_cast<T*>(k), [&](float x) { return hooks.key(x); });
    sync_threads();
    if constexpr (C.fp4())
      nvfp4_logits<C>(s, q_row, k_row, k_scales + at.key * C.scale_pitch(C.dqk));
    else if constexpr (C.narrow())
      narrow_logits<C>(s, q_row, k_row);
    else
      logits<C, kBlocks, T>(s, q_row, k_row);
    sync_threads();
    if (next < end) copy_k(of_next, end - next);
    commit_async();
    if constexpr (C.narrow()) {
#pragma unroll
      for (uint32_t h = 0; h < 2; ++h) {
        const Pack<float, 2> x = load_shared<2>(&of_rows[at.row + l / 4 + 8 * h].factor);
        st.factor[h] = x[0], st.slope[h] = x[1];
      }
    }
    const bool check = next > end || next > range.all_end || key < range.all_first;
    softmax_step<C>(s, o, st, p, hooks, seq, key + static_cast<int32_t>(at.key), end, check);
    wait_async<1>();
    sync_threads();
    if constexpr (C.fp4())
      add_nvfp4_values<C>(o, s, v_row, v_scales + at.key * C.scale_pitch(C.dvo));
    else if constexpr (C.narrow())
      add_narrow_values<C>(o, s, v_row);
    else
      add_values<C, kBlocks, T>(o, s, v_row);
    sync_threads();
    if (next < end) copy_v(of_next, end - next);
    commit_async();
  }
  wait_async<0>();  // of an empty range: Q and an unused tile
  sync_threads();
  write_rows<C>(o, st, p, hooks, seq, t, kv_head, group);
  depend_launch();
}

/// One block a (split row group, KV head): rows one after another, a thread four columns of a row. States are added in
/// ascending order of keys.
template <AttentionMergeCudaConfig C, class H>
FI_GLOBAL_FN void merge_cut(const AttentionCudaParams& pp, const typename H::Params& p) {
  static_assert(C.columns == 4);
  const AttentionCudaMerge cut = pp.cuts[block_x()];
  if (cut.rows == 0) return;
  const Seq seq = sequence(p, cut.request);
  const H hooks(p, cut.request);
  const uint32_t kv_head = block_y(), group = static_cast<uint32_t>(p.num_qo_heads / p.num_kv_heads);
  constexpr uint32_t kQuads = C.dvo / C.columns;
  for (uint32_t i = thread_x(); i < static_cast<uint32_t>(cut.rows) * kQuads; i += C.threads) {
    const uint32_t row = i / kQuads, quad = i % kQuads;
    const auto at = [&](int32_t c) {
      return (cut.partial + static_cast<int64_t>(c) * cut.rows + row) * p.num_kv_heads + kv_head;
    };
    const auto top = [&](int32_t c) { return p.softmax_state[H::kCustom ? 2 * at(c) : at(c)]; };
    float m = -kInf, l = 0.0f, sum[4] = {};
    for (int32_t c = 0; c < cut.chunks; ++c) m = Max{}(top(c), m);
#pragma unroll 1  // unrolled, NVRTC 13 targets 32 registers on sm_90 and spills three
    for (int32_t c = 0; c < cut.chunks && m != -kInf; ++c) {
      const float weight = exp2_fast(top(c) - m);
      const Pack<float, 4> x = load<4>(static_cast<const float*>(p.partial_o) + at(c) * C.dvo + quad * 4);
      l += H::kCustom ? weight * p.softmax_state[2 * at(c) + 1] : weight;
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[e] += weight * x[e];
    }
    write_output<scalar_of_t<C.o>>(p, hooks, seq, kv_head, group, static_cast<uint32_t>(cut.row_begin) + row, quad, m,
                                   l, sum);
  }
  depend_launch();
}
}  // namespace attn

template <AttentionCudaConfig C>
FI_GLOBAL_FN void attention(const AttentionCudaParams& p) {
  depend_wait();
  attn::run_tile<C, attn::NoHooks>(p, p.a);
}
template <AttentionMergeCudaConfig C>
FI_GLOBAL_FN void attention_merge(const AttentionCudaParams& p) {
  depend_wait();
  attn::merge_cut<C, attn::NoHooks>(p, p.a);
}

}  // namespace flashinfer::cu
