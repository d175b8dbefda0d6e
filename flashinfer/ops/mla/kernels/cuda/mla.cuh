// SPDX-License-Identifier: Apache-2.0
// Latent attention on tensor cores: one latent row serves a key's logits and its values, so a tile of keys is loaded
// into shared memory once and multiplied twice.
//
//   K0 in flight | wait, barrier, K1 in flight | S = Q K, maxima | barrier | P to shared memory | barrier | O += P V |
//   ..
//
// Logits: a warp has 16 rows and 8 or 16 keys of the tile, and multiplies over all channels. Outputs: a warp has all
// rows and a part of the latent columns, so that the f32 sums of 64 x 512 fit in the registers of eight warps.
#pragma once
#include "flashinfer/kernels/cuda/lane_row.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/ops/attention/kernels/cuda/merge.cuh"
#include "flashinfer/ops/mla/kernels/cuda/tiles.cuh"

namespace flashinfer::cu {
namespace latent {

/// Sizes of a warp's work.
template <MlaCudaConfig C>
struct Work {
  static constexpr int kRowGroups = C.row_groups(), kKeyGroups = C.key_groups(), kKeys = C.keys / kKeyGroups;
  static constexpr int kBlocks = kKeys / 8, kColumns = C.ckv / C.warps() / 8;  // blocks of 8
  static_assert((kKeys == 8 || kKeys == 16) && kColumns % 2 == 0 && C.ckv % 64 == 0 && C.kpe % 32 == 0);
  using Logits = Acc[kBlocks];
  using Outputs = Acc[kRowGroups][kColumns];
};

/// S += Q K over `groups` pieces of 8 elements from `first` on (multiples of 8, but for the last group of 4).
template <MlaCudaConfig C, uint32_t kFirst, uint32_t kEnd, class T, class Row>
FI_GLOBAL_FN void add_logits(typename Work<C>::Logits& s, const Row& q, const Row& k) {
  constexpr int kUnroll = C.rows == 64 ? 1 : 2;
  if constexpr (Work<C>::kBlocks == 2) {
#pragma unroll kUnroll
    for (uint32_t group = kFirst; group < kEnd; group += 8) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        if (group + 2 * i >= kEnd) continue;
        const Frag4 a = load_matrix4(q.at(0, group, i)), b = load_matrix4(k.at(0, group, i));
        s[0] = mma<T>(a, {{b.r[0], b.r[1]}}, s[0]);
        s[1] = mma<T>(a, {{b.r[2], b.r[3]}}, s[1]);
      }
    }
  } else {  // eight keys: two steps with one load, and two sums, so that products do not wait for each other
    Acc odd = {};
#pragma unroll kUnroll
    for (uint32_t group = kFirst; group < kEnd; group += 8) {
#pragma unroll
      for (uint32_t i = 0; i < 4; i += 2) {
        if (group + 2 * i >= kEnd) continue;
        const Frag4 b = load_matrix4(k.at(0, group, i));
        s[0] = mma<T>(load_matrix4(q.at(0, group, i)), {{b.r[0], b.r[1]}}, s[0]);
        odd = mma<T>(load_matrix4(q.at(0, group, i + 1)), {{b.r[2], b.r[3]}}, odd);
      }
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) s[0].r[e] += odd.r[e];
  }
}

/// The rows g and g + 8 of a lane's 16 in the products of logits.
struct RowState {
  float m[2] = {-kInf, -kInf}, l[2] = {0.0f, 0.0f};  // l: this lane's share of its warp's keys
  int32_t end[2];                                    // keys from here on are not visible
};

/// The maxima of this warp's keys go to `top` [key group][row].
template <MlaCudaConfig C>
FI_GLOBAL_FN void mask_and_top(typename Work<C>::Logits& s, const RowState& st, int32_t first, float special,
                               bool check, float* top) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float most = -kInf;
#pragma unroll
    for (int n = 0; n < Work<C>::kBlocks; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& x = s[n].r[2 * h + e];
        x *= special;
        if (check && first + n * 8 + static_cast<int32_t>(lane() % 4) * 2 + e >= st.end[h]) x = -kInf;
        most = Top{}(x, most);
      }
    most = warp_reduce<4>(most, Top{});
    if (lane() % 4 == 0) top[lane() / 4 + 8 * h] = most;
  }
}

/// S becomes weights in shared memory, rounded to T; `old`: the factors of earlier sums.
template <MlaCudaConfig C, class T>
FI_GLOBAL_FN void store_weights(T* to, const typename Work<C>::Logits& s, RowState& st, const float* top, float* old,
                                uint32_t row, uint32_t key, float factor) {
  using W = Work<C>;
  constexpr uint32_t kRowPieces = C.keys / 8;
#pragma unroll
  for (uint32_t h = 0; h < 2; ++h) {
    const uint32_t r = row + lane() / 4 + 8 * h;
    float most = -kInf;
#pragma unroll
    for (int k = 0; k < W::kKeyGroups; ++k) most = Top{}(top[k * C.rows + r], most);
    most = Top{}(most * factor, st.m[h]);
    const float shift = most == -kInf ? 0.0f : most;
    const float earlier = exp2_fast(st.m[h] - shift);
    if (key == 0 && lane() % 4 == 0) old[r] = earlier;
    st.l[h] *= earlier, st.m[h] = most;
#pragma unroll
    for (uint32_t n = 0; n < W::kBlocks; ++n) {
      const float x = exp2_fast(fmaf(s[n].r[2 * h], factor, -shift)),
                  y = exp2_fast(fmaf(s[n].r[2 * h + 1], factor, -shift));
      st.l[h] += x + y;
      store_shared(reinterpret_cast<uint32_t*>(to) + swizzle<kRowPieces>(r, key / 8 + n) * 4 + lane() % 4,
                   Pack<uint32_t, 1>{{pack2<T>(x, y)}});
    }
  }
}

/// O += P V for this warp's columns, after O has been scaled to the new maxima.
template <MlaCudaConfig C, class T, class Row>
FI_GLOBAL_FN void add_values(typename Work<C>::Outputs& o, const T* weights, const float* old, const Row& v,
                             uint32_t first) {
  using W = Work<C>;
  constexpr uint32_t kRowPieces = C.keys / 8;
  float factor[2 * W::kRowGroups];
  bool rescale = false;
#pragma unroll
  for (uint32_t i = 0; i < 2 * W::kRowGroups; ++i) {
    factor[i] = old[8 * i + lane() / 4];
    rescale = rescale || factor[i] != 1.0f;
  }
  // Most tiles have no new maximum, and multiplying by 1 changes no bit.
  if (ballot(rescale) != 0) {
#pragma unroll
    for (uint32_t i = 0; i < W::kRowGroups; ++i)
#pragma unroll
      for (uint32_t d = 0; d < W::kColumns; ++d)
#pragma unroll
        for (uint32_t e = 0; e < 4; ++e) o[i][d].r[e] *= factor[2 * i + e / 2];
  }
#pragma unroll
  for (uint32_t n = 0; n < C.keys / 8; n += 2) {
    Frag4 a[W::kRowGroups];
#pragma unroll
    for (uint32_t i = 0; i < W::kRowGroups; ++i)
      a[i] = load_matrix4(weights + swizzle<kRowPieces>(i * 16 + lane() % 16, n + lane() / 16) * 8);
#pragma unroll
    for (uint32_t d = 0; d < W::kColumns; d += 2) {
      const uint32_t piece = first + d;
      const Frag4 b = load_matrix4_transposed(v.at(n * 8, piece / 8 * 8, piece / 2 % 4));
#pragma unroll
      for (uint32_t i = 0; i < W::kRowGroups; ++i) {
        o[i][d] = mma<T>(a[i], {{b.r[0], b.r[1]}}, o[i][d]);
        o[i][d + 1] = mma<T>(a[i], {{b.r[2], b.r[3]}}, o[i][d + 1]);
      }
    }
  }
}

/// f32 outputs through shared memory, so that rows are written in whole sectors; groups of 32 bytes of a row are
/// permuted by the row, so that neither side has bank conflicts. `state`: denominators of the key groups, then maxima.
template <MlaCudaConfig C>
FI_GLOBAL_FN void write_rows(const typename Work<C>::Outputs& o, const RowState& st, const AttentionParams& p,
                             const attn::Seq& seq, const AttentionTile& t, uint32_t row_group, uint32_t key_group,
                             uint32_t first, float* state) {
  using W = Work<C>;
  float *outputs = reinterpret_cast<float*>(shared()), *tops = state + W::kKeyGroups * C.rows;
  const uint32_t g = lane() / 4;
  const float l[2] = {warp_reduce<4>(st.l[0], Sum{}), warp_reduce<4>(st.l[1], Sum{})};  // by all lanes
#pragma unroll
  for (uint32_t h = 0; h < 2; ++h) {
    const uint32_t row = row_group * 16 + g + 8 * h;
    if (lane() % 4 == 0) state[key_group * C.rows + row] = l[h];
    if (lane() % 4 == 0 && key_group == 0) tops[row] = st.m[h];
  }
#pragma unroll
  for (uint32_t i = 0; i < 2 * W::kRowGroups; ++i)
#pragma unroll
    for (uint32_t d = 0; d < W::kColumns; ++d) {
      const Acc& x = o[i / 2][d];
      store_shared(outputs + (8 * i + g) * C.ckv + ((first + d) ^ g) * 8 + lane() % 4 * 2,
                   Pack<float, 2>{{x.r[i % 2 * 2], x.r[i % 2 * 2 + 1]}});
    }
  sync_threads();
  constexpr uint32_t kQuads = C.ckv / 4;
  for (uint32_t i = thread_x(); i < static_cast<uint32_t>(t.rows) * kQuads; i += C.threads) {
    const uint32_t row = i / kQuads, quad = i % kQuads;
    float l = 0.0f, sum[4];
#pragma unroll
    for (int k = 0; k < W::kKeyGroups; ++k) l += state[k * C.rows + row];
    const Pack<float, 4> x = load_shared<4>(outputs + row * C.ckv + (quad / 2 ^ (row & 7)) * 8 + quad % 2 * 4);
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[e] = x[e];
    attn::write_quad<scalar_of_t<C.o>, C.ckv>(p, attn::NoHooks(p, 0), seq, t, 0, static_cast<uint32_t>(p.num_qo_heads),
                                              row, quad, tops[row], l, sum);
  }
}

template <MlaCudaConfig C>
FI_GLOBAL_FN void run_tile(const MlaCudaParams& pp) {
  using T = scalar_of_t<C.q>;
  using W = Work<C>;
  using Row = LaneRow<kPieces<C>>;
  const AttentionParams& p = pp.base.a;
  const AttentionTile t = attn::tile_of(pp.base);
  if (t.rows == 0) return;  // spare, in a captured grid
  const attn::Seq seq = attn::sequence(p, t.request);
  const int32_t heads = p.num_qo_heads;
  T* const q = reinterpret_cast<T*>(shared());
  char* const tile = shared() + C.query_bytes();
  char* const codes = tile + C.tile_bytes();  // 8-bit keys; else the second tile
  T* const weights = reinterpret_cast<T*>(shared() + C.tiles_end());
  float* const state = reinterpret_cast<float*>(shared() + C.state_at());
  float* const old = state + W::kKeyGroups * C.rows;
  auto* const places = reinterpret_cast<attn::KeyOffsets*>(shared() + C.places_at());  // of two tiles, in turns

  const uint32_t row_group = warp() % W::kRowGroups, key_group = warp() / W::kRowGroups,
                 first_column = warp() * W::kColumns;
  const attn::KeyRange range = attn::key_range(p, seq, t.row_begin / heads, (t.row_begin + t.rows - 1) / heads);
  const int32_t end = range.end < t.key_end ? range.end : t.key_end;
  RowState st;
#pragma unroll
  for (uint32_t h = 0; h < 2; ++h) {
    const uint32_t row = row_group * 16 + lane() / 4 + 8 * h;
    const int32_t token = (t.row_begin + static_cast<int32_t>(row)) / heads;
    st.end[h] = p.causal && token + seq.offset + 1 < end ? token + seq.offset + 1 : end;
  }
  const float scale = pp.scale ? p.scale * *pp.scale : p.scale;
  // Nearly always an exponent of 2 is the product times a positive constant, which is fused with the subtraction of the
  // maximum into one instruction.
  const float factor = scale > 0.0f ? scale * kLog2e : 1.0f, special = scale > 0.0f ? 1.0f : scale * kLog2e;
  typename W::Outputs o = {};

  attn::KeyRows<C.keys, C.narrow() ? 1 : 2> rows(pp.base, p, seq, t.key_begin, end);
  copy_queries<C>(q, pp, seq, t);
  rows.store(places, t.key_begin);
  sync_threads();
  copy_keys<C>(C.narrow() ? codes : tile, p, places, end - t.key_begin);
  commit_async();
  const Row q_row(q, row_group * 16 + lane() % 16, lane() / 16);
  uint32_t turn = 0;
  for (int32_t key = t.key_begin; key < end; key += C.keys) {
    const int32_t next = key + C.keys;
    T* const now = reinterpret_cast<T*>(C.narrow() || turn == 0 ? tile : codes);
    turn ^= 1;
    attn::KeyOffsets* const of_next = places + turn * C.keys;
    rows.store(of_next, next);
    wait_async<0>();
    sync_threads();
    if constexpr (C.narrow()) {
      widen_keys<C>(now, codes);
      sync_threads();
    }
    if (next < end) copy_keys<C>(C.narrow() || turn == 1 ? codes : tile, p, of_next, end - next);
    commit_async();

    typename W::Logits s = {};
    const uint32_t mine = key_group * W::kKeys;
    const Row k_row = W::kBlocks == 2 ? Row(now, mine + lane() / 16 * 8 + lane() % 8, lane() / 8 % 2)
                                      : Row(now, mine + lane() % 8, lane() / 8);
    if constexpr (C.kpe != 0) {
      add_logits<C, C.ckv / 8, (C.ckv + C.kpe) / 8, T>(s, q_row, k_row);
#pragma unroll
      for (int n = 0; n < W::kBlocks; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) s[n].r[e] *= pp.kpe_ratio;
    }
    add_logits<C, 0, C.ckv / 8, T>(s, q_row, k_row);
    const bool check = next > end || next > range.all_end;
    mask_and_top<C>(s, st, key + static_cast<int32_t>(mine), special, check,
                    state + key_group * C.rows + row_group * 16);
    sync_threads();
    store_weights<C>(weights, s, st, state, old, row_group * 16, mine, factor);
    sync_threads();
    add_values<C>(o, weights, old, Row(now, lane() % 16, lane() / 16), first_column);
  }
  wait_async<0>();  // of an empty range: queries and an unused tile
  sync_threads();
  const AttentionTile same = attn::to_write(attn::tile_of(pp.base));
  write_rows<C>(o, st, p, attn::sequence(p, same.request), same, row_group, key_group, first_column, state);
  attn::merge_last<scalar_of_t<C.o>, C.ckv, C.threads, attn::NoHooks>(pp.base, p);
  depend_launch();
}
}  // namespace latent

template <MlaCudaConfig C>
FI_GLOBAL_FN void mla(const MlaCudaParams& p) {
  depend_wait();
  latent::run_tile<C>(p);
}

}  // namespace flashinfer::cu
