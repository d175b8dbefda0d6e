// SPDX-License-Identifier: Apache-2.0
// Attention on tensor cores, FlashAttention-2's loop: Q stays in shared memory, K and V arrive in tiles of 64 keys by
// cp.async, S and P stay in registers. One source for prefill (16 or 32 rows a warp: a warp's two tiles of 16 rows
// share what is loaded of K and V, and give the same bits) and decode (16 rows shared by four warps, which divide the
// keys).
//
//   K0, V0 in flight | wait K | S = Q K | barrier, K next | softmax | wait V | O += P V | barrier, V next | ...
//
// The copy of the next K overlaps softmax and P V, that of the next V overlaps S.
#pragma once
#include "flashinfer/kernels/cuda/lane_row.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/ops/attention/kernels/cuda/merge.cuh"
#include "flashinfer/ops/attention/kernels/cuda/nvfp4.cuh"

namespace flashinfer::cu {
namespace attn {

/// run_tile()'s `ahead` of a block that has one tile.
struct Nothing {
  FI_GLOBAL_FN void operator()(bool) const {}
};
/// This warp's part of the tile.
struct Place {
  uint32_t row, key;  // first row in the tile of rows; first key in the tile of keys
};

/// S = Q K for the warp's rows and kBlocks * 8 keys.
template <AttentionCudaConfig C, int kBlocks, class T, class Row>
FI_GLOBAL_FN void logits(Acc (&s)[C.row_tiles()][kBlocks], const HeldQueries<C>& held, const Row& q, const Row& k) {
  constexpr uint32_t kPieces = steps_of(C.dqk) * 2;
  const auto multiply = [&](const Frag4(&a)[C.row_tiles()], uint32_t group, uint32_t i) {
#pragma unroll
    for (uint32_t n = 0; n < kBlocks; n += 2) {
      const Frag4 b = load_matrix4(k.at(n * 8, group, i));
#pragma unroll
      for (uint32_t r = 0; r < C.row_tiles(); ++r) {
        s[r][n] = mma<T>(a[r], {{b.r[0], b.r[1]}}, s[r][n]);
        s[r][n + 1] = mma<T>(a[r], {{b.r[2], b.r[3]}}, s[r][n + 1]);
      }
    }
  };
  clear(s);
#pragma unroll
  for (uint32_t step = 0; step < C.held; ++step) multiply(held.a[step], step / 4 * 8, step % 4);
#pragma unroll 2
  for (uint32_t group = C.held * 2; group < kPieces; group += 8) {
#pragma unroll 2  // more at once would spill at D 128 and 192
    for (uint32_t i = 0; i < 4; ++i) {
      if (kPieces % 8 != 0 && group + 2 * i >= kPieces) continue;
      Frag4 a[C.row_tiles()];
#pragma unroll
      for (uint32_t r = 0; r < C.row_tiles(); ++r) a[r] = load_matrix4(q.at(16 * r, group, i));
      multiply(a, group, i);
    }
  }
}

/// O += P V.
template <AttentionCudaConfig C, int kBlocks, class T, class Row>
FI_GLOBAL_FN void add_values(Outputs<C>& o, const Weights<C, kBlocks>& w, const Row& v) {
#pragma unroll
  for (uint32_t n = 0; n < kBlocks; n += 2) {
#pragma unroll
    for (uint32_t d = 0; d < kColumns<C>; d += 2) {
      const Frag4 b = load_matrix4_transposed(v.at(n * 8, d / 8 * 8, d / 2 % 4));
#pragma unroll
      for (uint32_t r = 0; r < C.row_tiles(); ++r) {
        o[r][d] = mma<T>(w.a[r][n / 2], {{b.r[0], b.r[1]}}, o[r][d]);
        o[r][d + 1] = mma<T>(w.a[r][n / 2], {{b.r[2], b.r[3]}}, o[r][d + 1]);
      }
    }
  }
}

/// The state of the two rows of a lane in a tile (g and g + 8 of its 16).
struct RowState {
  float m[2] = {-kInf, -kInf}, l[2] = {0.0f, 0.0f};  // l: this lane's share
  float factor[2], slope[2];                         // of an 8-bit cache: of the logits; ALiBi's
  float old[2];                                      // what O is to be multiplied by (AttentionCudaConfig::e4m3 2)
};
/// Which rows a lane has: row i (of 2, or 4) is g + 8 i of its warp's. Tokens are bytes of one register, and heads are
/// computed where they are needed: with 32 rows a warp at D 128 no register is left.
template <class Work>
struct LaneRows {
  uint32_t first, last;  // of this lane, and of the tile, in packed rows; rows behind the tile's last are that one
  uint32_t group;
  int32_t first_token;         // of the tile
  Pack<uint32_t, 1> behind{};  // tokens of the rows behind it
  template <class Tile>
  FI_GLOBAL_FN LaneRows(const Tile& t, uint32_t row, uint32_t tiles, uint32_t of_group)
      : first(static_cast<uint32_t>(t.row_begin) + row + lane() / 4),
        last(static_cast<uint32_t>(t.row_begin + t.rows - 1)),
        group(of_group),
        first_token(static_cast<int32_t>(static_cast<uint32_t>(t.row_begin) / of_group)) {
#pragma unroll
    for (uint32_t i = 0; i < 2 * tiles; ++i)
      behind[0] |= (packed(i) / group - static_cast<uint32_t>(first_token)) << 8 * i;
  }
  FI_GLOBAL_FN uint32_t packed(uint32_t i) const { return first + 8 * i < last ? first + 8 * i : last; }
  FI_GLOBAL_FN int32_t token(uint32_t i) const {
    return first_token + static_cast<int32_t>(behind[0] >> 8 * i & 0xffu);
  }
  FI_GLOBAL_FN uint32_t head(uint32_t i) const {
    return Work::head() * group + packed(i) - static_cast<uint32_t>(token(i)) * group;
  }
};
/// What decides which keys a lane's rows see.
template <class Work>
struct RowsOfRequest {
  LaneRows<Work> rows;
  Seq seq;
};
/// Weights that become e4m3 are 2^8 larger: 1 is 256 of 448. So are the sums of a row, as if its maximum were 8 less.
template <AttentionCudaConfig C>
inline constexpr float kWeightPower = C.e4m3 == 2 ? 8.0f : 0.0f;

/// Logits of a variant: LogitsTransform of the visible ones. Without softmax they are the weights, so this gives P.
template <class H, int kBlocks, class Work>
FI_GLOBAL_FN void custom_logits(Acc (&s)[kBlocks], RowState& st, const RowsOfRequest<Work>& of, uint32_t tile,
                                const H& hooks, int32_t first, int32_t end, bool check) {
#pragma unroll
  for (uint32_t h = 0; h < 2; ++h) {
    const int32_t token = of.rows.token(2 * tile + h);
    const uint32_t head = of.rows.head(2 * tile + h);
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[n].r[2 * h + e];
        const int32_t key = first + n * 8 + static_cast<int32_t>(lane() % 4) * 2 + e;
        bool seen = !check || (key < end && visible(hooks.params, of.seq, token, key));
        seen = seen && hooks.shows(token, key, head);
        x = seen ? hooks.logit(x, token, key, head) : H::kSoftmax ? -kInf : 0.0f;
        if (!H::kSoftmax && seen) st.m[h] = 0.0f;
      }
  }
}

/// Whether exponents of 2 are what exponent() computes. Nearly always they are the logit times a constant, which is
/// fused with the subtraction of the maximum into one instruction.
FI_GLOBAL_FN bool needs_exponent(const AttentionParams& p) {
  return p.alibi_slopes || p.soft_cap > 0.0f || !(p.scale > 0.0f);
}
/// Whether the factor of the logits is in a register, which says with a 1 that exponent() computes exponents: that is
/// right, too, where the product is 1. With few rows, and four blocks an SM, none is left for the predicate.
template <AttentionCudaConfig C, class H>
inline constexpr bool kKeepsFactor = C.warps_k > 1 && !C.narrow() && !H::kCustom;
/// S becomes P; O and l are rescaled to the new maxima. `check`: some key of the tile may be masked for some row.
/// `rows()`: the lane's RowsOfRequest. `factor`: see kKeepsFactor.
template <AttentionCudaConfig C, class H, int kBlocks, class Rows>
FI_GLOBAL_FN void softmax_step(Acc (&s)[kBlocks], Acc (&o)[kColumns<C>], RowState& st, const Rows& rows, uint32_t tile,
                               float factor, const AttentionParams& p, const H& hooks, int32_t first, int32_t end,
                               bool check) {
  const bool special = !H::kCustom && (kKeepsFactor<C, H> ? factor == 1.0f : needs_exponent(p));
  float all_rows = kKeepsFactor<C, H> ? factor : special ? 1.0f : p.scale * kLog2e;
  if constexpr (H::kCustom) {
    all_rows = hooks.factor();
    custom_logits(s, st, rows(), tile, hooks, first, end, check);
    sync_warp();  // the user's code may leave lanes apart, and barriers and products are for warps that are together
    if constexpr (!H::kSoftmax) return;
  }
  float old[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float of_row = C.narrow() && !special ? all_rows * st.factor[h] : all_rows;
    if (!H::kCustom && (special || check)) {
      const uint32_t row = 2 * tile + static_cast<uint32_t>(h);
      const auto of = rows();
      const int32_t token = of.rows.token(row);
      float slope = 0.0f;
      if (C.narrow())
        slope = st.slope[h];
      else if (p.alibi_slopes)
        slope = p.alibi_slopes[of.rows.head(row)];
#pragma unroll
      for (int n = 0; n < kBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[n].r[2 * h + e];
          const int32_t key = first + n * 8 + static_cast<int32_t>(lane() % 4) * 2 + e;
          if (special) x = exponent(p, C.narrow() ? x * st.factor[h] : x, slope, token, key);
          if (check && (key >= end || !visible(p, of.seq, token, key))) x = -kInf;
        }
    }
    float top = -kInf;
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) top = Top{}(s[n].r[2 * h], Top{}(s[n].r[2 * h + 1], top));
    top = Top{}(warp_reduce<4>(top, Top{}) * of_row, st.m[h]);
    float shift = top == -kInf ? 0.0f : top;
    old[h] = exp2_fast(st.m[h] - shift);
    st.m[h] = top;
    shift -= kWeightPower<C>;
    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < kBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[n].r[2 * h + e];
        x = exp2_fast(fmaf(x, of_row, -shift));  // rounded once: near 1e5 the product alone is off by 0.004
        sum += x;
      }
    st.l[h] = st.l[h] * old[h] + sum;
  }
  if constexpr (C.e4m3 == 2) {  // add_e4m3_values multiplies and adds at once
    st.old[0] = old[0], st.old[1] = old[1];
    return;
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

/// Which of the parts of V's columns this block computes.
template <AttentionCudaConfig C, class Work>
FI_GLOBAL_FN uint32_t part_of() {
  return C.halves ? Work::part() : 0;
}

/// f32 outputs through shared memory, 16 rows of each warp at a time: warps of the same rows are added, then rows are
/// written in whole sectors.
template <AttentionCudaConfig C, class Work, class H>
FI_GLOBAL_FN void write_rows(const Outputs<C>& o, RowState (&st)[C.row_tiles()], const AttentionParams& p,
                             const H& hooks, const Seq& seq, const AttentionTile& t, uint32_t kv_head, uint32_t group) {
  using O = scalar_of_t<C.o>;
  constexpr uint32_t kTiles = C.row_tiles(), kQuads = C.dvo / 4, kRows = C.rows() / kTiles;
  float* outputs = reinterpret_cast<float*>(shared());
  float* state = reinterpret_cast<float*>(shared() + C.state_at());
#pragma unroll
  for (uint32_t tile = 0; tile < kTiles; ++tile) {
    if (tile > 0) sync_threads();
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
      const uint32_t row = warp() * 16 + lane() / 4 + 8 * h;
      const float l = warp_reduce<4>(st[tile].l[h], Sum{});
      const float m = H::kSoftmax ? st[tile].m[h] : warp_reduce<4>(st[tile].m[h], Max{});
      if (lane() % 4 == 0) state[2 * row] = m - kWeightPower<C>, state[2 * row + 1] = l;
      store_outputs<C>(outputs, o[tile], row, h);
    }
    sync_threads();
    for (uint32_t i = thread_x(); i < kRows * kQuads; i += C.threads) {
      const uint32_t at = i / kQuads, quad = i % kQuads, row = (at / 16 * kTiles + tile) * 16 + at % 16;
      if (row >= static_cast<uint32_t>(t.rows)) break;
      float m = -kInf, l = 0.0f, sum[4] = {};
#pragma unroll
      for (uint32_t k = 0; k < C.warps_k; ++k) m = Max{}(state[2 * (k * kRows + at)], m);
#pragma unroll
      for (uint32_t k = 0; k < C.warps_k; ++k) {
        const uint32_t r = k * kRows + at;
        const float weight = m == -kInf ? 0.0f : exp2_fast(state[2 * r] - m);
        l += weight * state[2 * r + 1];
        const Pack<float, 4> x = load_shared<4>(outputs + output_at<C>(r, quad));
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[e] += weight * x[e] * (C.fp4() ? kSmallE2m1 : 1.0f);
      }
      write_quad<O, C.dvo * C.parts(), Work>(p, hooks, seq, t, kv_head, group, row, part_of<C, Work>() * kQuads + quad,
                                             m, l, sum);
    }
  }
}

/// One tile of rows. H: NoHooks or the hooks of a custom variant, whose parameters are `p`. Work: what this block
/// computes, which is asked again behind the loop over keys. `ahead(empty)`: called once, by all threads, while the
/// first copies are under way, or when the tile has no rows.
template <AttentionCudaConfig C, class H, class Work = OfGrid, class Ahead = Nothing>
FI_GLOBAL_FN void run_tile(const AttentionCudaParams& pp, const typename H::Params& p, const Ahead& ahead = {}) {
  using T = scalar_of_t<C.product_type()>;
  constexpr uint32_t kTiles = C.row_tiles(), kMyRows = 16 * kTiles, kWarpsQ = C.rows() / kMyRows;
  constexpr int kKeys = C.keys(), kMine = kKeys / C.warps_k, kBlocks = kMine / 8;
  const AttentionTile t = tile_of<Work>(pp);
  if (t.rows == 0) return ahead(true);  // spare, in a graph: 36 KB of zeros and the epilogue for nothing otherwise
  const Seq seq = sequence(p, t.request);
  const H hooks(p, t.request);
  const uint32_t group = pp.group;
  T* q = reinterpret_cast<T*>(shared());
  char *k = shared() + C.q_bytes(), *v = k + C.tile_bytes(C.dqk);
  uint8_t *k_scales = reinterpret_cast<uint8_t*>(shared() + C.scales_at()),
          *v_scales = k_scales + C.keys() * C.scale_pitch(C.dqk);
  const Place at{warp() % kWarpsQ * kMyRows, C.warps_k > 1 ? warp() / kWarpsQ * kMine : 0};

  const int32_t i0 = t.row_begin / static_cast<int32_t>(group),
                i1 = (t.row_begin + t.rows - 1) / static_cast<int32_t>(group);
  const KeyRange range = key_range(p, seq, i0, i1);
  const int32_t end = range.end < t.key_end ? range.end : t.key_end;
  const int32_t first =
      range.first > t.key_begin ? range.first / kKeys * kKeys : t.key_begin;  // tiles start at fixed places
  RowState st[kTiles];
  RowsOfRequest<Work> mine{{t, at.row, kTiles, group}, seq};
  KeyOffsets* offsets =
      reinterpret_cast<KeyOffsets*>(shared() + C.offsets_at());  // of this tile and the next, in turns
  KeyRows<kKeys, C.unit_bytes(), C.fp4()> rows(pp, p, seq, first, end);
  if constexpr (!C.narrow()) copy_queries<C>(q, p, seq, t, Work::head(), group);
  if constexpr (C.held > 0) commit_async();
  rows.store(offsets, first);
  sync_threads();
  // NVFP4: with the scales. The address of the head is computed here: a persistent launch has no registers to keep it.
  const auto copy_k = [&](KeyOffsets* of, int32_t count) {
    const char* head = static_cast<const char*>(p.k) + Work::head() * p.k_stride_h * C.unit_bytes();
    copy_keys<C, C.dqk>(k, head, &of->k, count);
    if constexpr (C.fp4())
      copy_scales<C, C.dqk>(k_scales, p.k_sf + Work::head() * p.k_sf_stride_h, scale_offsets<kKeys>(of), count);
  };
  const auto copy_v = [&](KeyOffsets* of, int32_t count) {
    const char* head = static_cast<const char*>(p.v) + Work::head() * p.v_stride_h * C.unit_bytes() +
                       part_of<C, Work>() * C.row_bytes(C.dvo);
    copy_keys<C, C.dvo>(v, head, &of->v, count);
    if constexpr (C.fp4())
      copy_scales<C, C.dvo>(v_scales, p.v_sf + Work::head() * p.v_sf_stride_h, scale_offsets<kKeys>(of) + kKeys, count);
  };
  copy_k(offsets, end - first);
  commit_async();
  copy_v(offsets, end - first);
  commit_async();
  ahead(false);
  RowFactors* of_rows = reinterpret_cast<RowFactors*>(shared() + C.state_at());
  if constexpr (C.narrow())
    store_queries<C>(q, of_rows, pp, p, seq, t, Work::head(), group);  // while the copies are under way
  const LaneRow<pitch_of(C.q_row_bytes())> q_row(q, at.row + lane() % 16, lane() / 16);
  // Of 16-bit elements two pieces of 8 or 16 keys, of 8-bit ones a piece of 32 keys.
  const uint32_t l = lane(), k_key = C.narrow() ? l : l / 16 * 8 + l % 8, v_key = C.narrow() ? l : l % 16;
  const LaneRow<pitch_of(C.row_bytes(C.dqk))> k_row(k, at.key + k_key, C.narrow() ? 0 : l / 8 % 2);
  const LaneRow<pitch_of(C.row_bytes(C.dvo))> v_row(v, at.key + v_key, C.narrow() ? 0 : l / 16);
  const auto transform_queries = [&] {
    if constexpr (H::kQuery) transform_own<C, C.rows()>(q, [&](float x) { return hooks.query(x); });
  };
  HeldQueries<C> held;
  if constexpr (C.held > 0) {
    wait_async<2>();  // K and V are under way
    transform_queries();
    sync_threads();
    held.load(q_row);
  }
  Pack<float, 1> factor{};
  if constexpr (kKeepsFactor<C, H>) {
    factor[0] = needs_exponent(p) ? 1.0f : p.scale * kLog2e;
    forget(factor);
  }
  // Computed where it is needed, for tiles with keys that some row does not see: what follows from it would take
  // registers from one tile to the next. With 32 rows a warp a persistent launch has none for the rows themselves.
  const auto of_mine = [&] {
    if constexpr (C.wide != 0 && !kSame<Work, OfGrid>) {
      const AttentionTile again = tile_of<Work>(pp);
      return RowsOfRequest<Work>{{again, at.row, kTiles, pp.group}, sequence(p, again.request)};
    } else {
      RowsOfRequest<Work> again = mine;
      if constexpr (C.wide == 0 && (C.narrow() || H::kCustom)) return again;
      Pack<int32_t, 1> index{{seq.index}};
      forget(again.rows.behind), forget(index);
      again.seq.index = index[0];
      return again;
    }
  };
  Outputs<C> o = {};
  uint32_t turn = 0;
  for (int32_t key = first; key < end; key += kKeys) {
    const int32_t next = key + kKeys;
    turn ^= kKeys;
    KeyOffsets* of_next = offsets + turn;
    rows.store(offsets + turn, next);
    Acc s[kTiles][kBlocks];
    wait_async<1>();
    if (C.held == 0 && key == first) transform_queries();
    if constexpr (H::kKey) transform_own<C, kKeys>(reinterpret_cast<T*>(k), [&](float x) { return hooks.key(x); });
    sync_threads();
    if constexpr (C.fp4())
      nvfp4_logits<C>(s, held, q_row, k_row, k_scales + at.key * C.scale_pitch(C.dqk));
    else if constexpr (C.e4m3 != 0)
      e4m3_logits<C>(s, held, q_row, k_row);
    else if constexpr (C.narrow())
      narrow_logits<C>(s, held, q_row, k_row);
    else
      logits<C, kBlocks, T>(s, held, q_row, k_row);
    sync_threads();
    if (next < end) copy_k(of_next, end - next);
    commit_async();
    const bool check = next > end || next > range.all_end || key < range.all_first;
    Weights<C, kBlocks> w;
#pragma unroll
    for (uint32_t i = 0; i < kTiles; ++i) {
      if constexpr (C.narrow()) {
#pragma unroll
        for (uint32_t h = 0; h < 2; ++h) {
          const Pack<float, 2> x = load_shared<2>(&of_rows[at.row + l / 4 + 16 * i + 8 * h].factor);
          st[i].factor[h] = x[0], st[i].slope[h] = x[1];
        }
      }
      softmax_step<C>(s[i], o[i], st[i], of_mine, i, factor[0], p, hooks, key + static_cast<int32_t>(at.key), end,
                      check);
      w.template set<T>(i, s[i]);
    }
    wait_async<1>();
    sync_threads();
    if constexpr (C.fp4())
      add_nvfp4_values<C>(o, w, v_row, v_scales + at.key * C.scale_pitch(C.dvo));
    else if constexpr (C.e4m3 == 2)
      add_e4m3_values<C>(o, w, [&](uint32_t r, uint32_t h) { return st[r].old[h]; }, v_row);
    else if constexpr (C.narrow())
      add_narrow_values<C>(o, w, v_row);
    else
      add_values<C, kBlocks, T>(o, w, v_row);
    sync_threads();
    if (next < end) copy_v(of_next, end - next);
    commit_async();
  }
  wait_async<0>();  // of an empty range: Q and an unused tile
  sync_threads();
  const AttentionTile same = to_write(tile_of<Work>(pp));
  write_rows<C, Work>(o, st, p, hooks, sequence<(C.warps_k > 1)>(p, same.request), same, Work::head(), group);
  using O = scalar_of_t<C.o>;
  if constexpr (C.wide != 0)
    call_merge_last<O, C.dvo * C.parts(), C.threads, H, Work>(pp, p, C.parts());
  else
    merge_last<O, C.dvo * C.parts(), C.threads, H, Work>(pp, p, C.parts());
}
}  // namespace attn

template <AttentionCudaConfig C>
FI_GLOBAL_FN void attention(const AttentionCudaParams& p) {
  depend_wait();
  attn::run_tile<C, attn::NoHooks>(p, p.a);
  depend_launch();
}

}  // namespace flashinfer::cu
