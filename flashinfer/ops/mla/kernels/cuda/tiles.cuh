// SPDX-License-Identifier: Apache-2.0
// Queries and latent rows in shared memory. A row is latent channels, then kpe, swizzled as in attention/tiles.cuh.
// 16-bit keys are copied there by cp.async; 8-bit ones go to a place of their own, as they are in memory, and are
// widened from there.
#pragma once
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/ops/attention/kernels/cuda/tiles.cuh"
#include "flashinfer/ops/mla/kernels/cuda_params.h"

namespace flashinfer::cu::latent {

/// 16-byte pieces of a row in shared memory.
template <MlaCudaConfig C>
inline constexpr uint32_t kPieces = C.pitch() / 8;

/// Calls f(row, piece) for the pieces of kRows rows of kBytes that this thread copies.
template <MlaCudaConfig C, int kRows, int kBytes, class F>
FI_GLOBAL_FN void own_pieces(F f) {
  attn::own_pieces<C, kRows, attn::pitch_of(kBytes), kBytes / 16>(f);
}

/// Eight elements as T, rounded, in a piece of a tile.
template <MlaCudaConfig C, class T>
FI_GLOBAL_FN void store_piece(T* tile, uint32_t row, uint32_t piece, const float* x) {
  Pack<T, 8> y;
#pragma unroll
  for (int e = 0; e < 8; ++e) y[e] = from_f32<T>(x[e]);
  store_shared(tile + swizzle<kPieces<C>>(row, piece) * 8, y);
}

/// One part (latent: kFirst 0, or kpe) of a tile's queries. Rows that are not there are zeros.
template <MlaCudaConfig C, int kDim, int kFirst, class T>
FI_GLOBAL_FN void copy_query_part(T* to, const void* from, int64_t stride_n, int64_t stride_h, const attn::Seq& s,
                                  const AttentionTile& t, uint32_t heads) {
  using Q = scalar_of_t<C.query>;
  own_pieces<C, C.rows, kDim * 2>([&](uint32_t row, uint32_t piece) {
    const bool there = row < static_cast<uint32_t>(t.rows);
    const uint32_t packed = static_cast<uint32_t>(t.row_begin) + (there ? row : 0);
    const Q* q = static_cast<const Q*>(from) + (s.q_first + packed / heads) * stride_n +
                 static_cast<int64_t>(packed % heads) * stride_h + piece * 8;
    const uint32_t at = kFirst / 8 + piece;
    if constexpr (sizeof(Q) == sizeof(T)) {
      copy_async<16>(to + swizzle<kPieces<C>>(row, at) * 8, q, there ? 16u : 0u);
    } else {
      float x[8];
      widen<8>(load_if<8>(there, q).v, x);
      store_piece<C>(to, row, at, x);
    }
  });
}
template <MlaCudaConfig C, class T>
FI_GLOBAL_FN void copy_queries(T* to, const MlaCudaParams& pp, const attn::Seq& s, const AttentionTile& t) {
  const AttentionParams& p = pp.base.a;
  const uint32_t heads = static_cast<uint32_t>(p.num_qo_heads);
  copy_query_part<C, C.ckv, 0>(to, p.q, p.q_stride_n, p.q_stride_h, s, t, heads);
  if constexpr (C.kpe != 0)
    copy_query_part<C, C.kpe, C.ckv>(to, pp.q_pe, pp.q_pe_stride_n, pp.q_pe_stride_h, s, t, heads);
}

/// A tile's keys, of which `count` are there; the others are zeros. `to`: the tile, or the place of 8-bit codes, whose
/// rows are code_bytes(). `places`: offsets of each key's latent row and kpe.
template <MlaCudaConfig C>
FI_GLOBAL_FN void copy_keys(char* to, const AttentionParams& p, const attn::KeyOffsets* places, int32_t count) {
  constexpr int kItem = C.narrow() ? 1 : 2;
  const auto copy = [&](uint32_t row, uint32_t piece, uint32_t first, const void* from, const int64_t* place) {
    const char* x = static_cast<const char*>(from) + load_shared<1>(place)[0] + piece * 16;
    char* const at = C.narrow() ? to + row * C.code_bytes() + (first + piece) * 16
                                : to + swizzle<kPieces<C>>(row, first + piece) * 16;
    const uint32_t bytes = static_cast<int32_t>(row) < count ? C.copied : 0;
#pragma unroll
    for (int i = 0; i < 16; i += C.copied) copy_async<C.copied>(at + i, x + i, bytes);
  };
  own_pieces<C, C.keys, C.ckv * kItem>([&](uint32_t row, uint32_t piece) { copy(row, piece, 0, p.k, &places[row].k); });
  if constexpr (C.packed != 0)  // behind the codes: scales and kpe
    own_pieces<C, C.keys, C.code_bytes() - C.ckv>(
        [&](uint32_t row, uint32_t piece) { copy(row, C.ckv / 16 + piece, 0, p.k, &places[row].k); });
  else if constexpr (C.kpe != 0)
    own_pieces<C, C.keys, C.kpe * kItem>(
        [&](uint32_t row, uint32_t piece) { copy(row, piece, C.ckv * kItem / 16, p.v, &places[row].v); });
}

/// Widens the 8-bit keys: products with scales of packed rows are rounded.
template <MlaCudaConfig C, class T>
FI_GLOBAL_FN void widen_keys(T* tile, const char* codes) {
  using K = scalar_of_t<C.kv>;
  const auto convert = [&](uint32_t row, uint32_t piece) {
    const char* const key = codes + row * C.code_bytes();
    const Pack<K, 16> x = load_shared<16>(reinterpret_cast<const K*>(key) + piece * 16);
    float y[16], z[8];
    widen<16>(x.v, y);
    if constexpr (C.packed != 0) {
      const uint32_t group = piece * 16 / flashinfer::mla::kScaleGroup;
      const float scale = load_shared<1>(reinterpret_cast<const float*>(key + C.ckv) + group)[0];
#pragma unroll
      for (int e = 0; e < 16; ++e) y[e] *= scale;
    }
    // Lanes 4 apart begin with the other half, so that eight stores fall into eight different groups of banks.
    const uint32_t turn = piece / 4 & 1;
#pragma unroll
    for (uint32_t half = 0; half < 2; ++half) {
      const uint32_t which = turn ^ half;
#pragma unroll
      for (int e = 0; e < 8; ++e) z[e] = which ? y[8 + e] : y[e];
      store_piece<C>(tile, row, piece * 2 + which, z);
    }
  };
  own_pieces<C, C.keys, C.ckv>(convert);
  if constexpr (C.packed != 0)
    own_pieces<C, C.keys, C.kpe * 2>([&](uint32_t row, uint32_t piece) {
      const char* const from = codes + row * C.code_bytes() + C.ckv + flashinfer::mla::kPackedScales;
      store_shared(tile + swizzle<kPieces<C>>(row, C.ckv / 8 + piece) * 8,
                   load_shared<8>(reinterpret_cast<const T*>(from) + piece * 8));
    });
  else if constexpr (C.kpe != 0)
    own_pieces<C, C.keys, C.kpe>([&](uint32_t row, uint32_t piece) { convert(row, C.ckv / 16 + piece); });
}

}  // namespace flashinfer::cu::latent
