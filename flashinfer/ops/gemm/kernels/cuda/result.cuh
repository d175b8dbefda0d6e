// SPDX-License-Identifier: Apache-2.0
// Which elements of a block's tile a thread has, and their way to the result: scale, bias, what the result holds
// before.
#pragma once
#include "flashinfer/kernels/cuda/halves.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/gemm/kernels/cuda/groups.cuh"

namespace flashinfer::cu {

/// Places in the tile, of the layout of mma.h.
template <GemmCudaConfig C>
struct GemmPlaces {
  static constexpr int kTilesM = C.rows / C.warps_m / 16, kTilesN = C.columns / C.warps_n / 8;  // of a warp
  using Sums = Acc[kTilesM][kTilesN];

  FI_GLOBAL_FN static uint32_t warp_m() { return warp() % C.warps_m; }
  FI_GLOBAL_FN static uint32_t warp_n() { return warp() / C.warps_m % C.warps_n; }
  FI_GLOBAL_FN static uint32_t warp_k() { return warp() / (C.warps_m * C.warps_n); }
  FI_GLOBAL_FN static uint32_t row_of(uint32_t i, uint32_t e) {
    return warp_m() * (kTilesM * 16) + 16 * i + lane() / 4 + e / 2 * 8;
  }
  /// The column of the result that is column c of the tile (GemmCudaConfig::spread).
  FI_GLOBAL_FN static int32_t column_at(int32_t n0, int32_t c) {
    return C.spread != 0 ? n0 + c / 8 * 32 + c % 8 : n0 + c;
  }
  FI_GLOBAL_FN static uint32_t column_of(uint32_t j) { return warp_n() * (kTilesN * 8) + 8 * j + 2 * (lane() % 4); }
};

template <GemmCudaConfig C>
struct GemmResult : GemmPlaces<C> {
  using Places = GemmPlaces<C>;
  using Places::kTilesM, Places::kTilesN, Places::row_of, Places::column_of, Places::column_at;

  const GemmCudaParams& p;
  const GemmRows& rows;
  const typename Places::Sums& acc;
  int32_t n0;
  float scale;

  FI_GLOBAL_FN GemmResult(const GemmCudaParams& params, const GemmRows& of, const typename Places::Sums& sums,
                          int32_t column, float by)
      : p(params), rows(of), acc(sums), n0(column), scale(by) {}

  /// Two neighbours of the result in a line of it, whose column c is the first one.
  template <class O>
  FI_GLOBAL_FN Pack<float, 2> result(uint32_t i, uint32_t j, uint32_t h, const O* line, int32_t c) const {
    const bool two = c + 1 < p.n;
    Pack<float, 2> x{{acc[i][j].r[2 * h] * scale, acc[i][j].r[2 * h + 1] * scale}};
    if (p.bias) x[0] += to_f32(p.bias[c]), x[1] += two ? to_f32(p.bias[c + 1]) : 0.0f;
    if (p.beta != 0.0f)
      x[0] = fmaf(p.beta, to_f32(line[c]), x[0]), x[1] = two ? fmaf(p.beta, to_f32(line[c + 1]), x[1]) : 0.0f;
    return x;
  }
  template <class O>
  FI_GLOBAL_FN void write_pair(O* line, int32_t c, Pack<float, 2> x) const {
    const bool two = c + 1 < p.n;
    if (p.aligned >= 2 && two) {
      store(line + c, Pack<O, 2>{{from_f32<O>(x[0]), from_f32<O>(x[1])}});
    } else {
      line[c] = from_f32<O>(x[0]);
      if (two) line[c + 1] = from_f32<O>(x[1]);
    }
  }
  /// Columns of tiles j and j + 1 of 16 bits, four a lane, so that a line's 32 bytes are one sector: neighbouring lanes
  /// exchange a pair.
  template <class O>
  FI_GLOBAL_FN void write_fours(uint32_t i, uint32_t j, uint32_t h, O* line, bool within) const {
    const auto pair = [&](uint32_t of) {
      return pair_of<O>(acc[i][of].r[2 * h] * scale, acc[i][of].r[2 * h + 1] * scale);
    };
    const uint32_t low = pair(j), high = pair(j + 1);
    const bool odd = lane() % 2 != 0;
    const uint32_t other = shuffle_xor_bits(odd ? low : high, 1);
    const auto c = n0 + static_cast<int32_t>(odd ? column_of(j + 1) - 2 : column_of(j));
    if (within && c < p.n)
      store(reinterpret_cast<uint32_t*>(line + c), Pack<uint32_t, 2>{{odd ? other : low, odd ? high : other}});
  }
  template <class O>
  FI_GLOBAL_FN void write() const {
    O* const out = static_cast<O*>(p.out) + rows.batch * p.out_batch;
#pragma unroll
    for (uint32_t i = 0; i < kTilesM; ++i)
#pragma unroll
      for (uint32_t h = 0; h < 2; ++h) {
        const auto row = static_cast<int32_t>(row_of(i, 2 * h));
        const bool within = row < rows.count;
        O* const line = out + (rows.first + row) * p.out_row;
        if constexpr (sizeof(O) == 2 && C.warps_k == 1) {
          if (p.aligned == 4) {
#pragma unroll
            for (uint32_t j = 0; j < kTilesN; j += 2) write_fours(i, j, h, line, within);
            continue;
          }
        }
        if (!within) continue;
#pragma unroll
        for (uint32_t j = 0; j < kTilesN; ++j) {
          const int32_t c = column_at(n0, static_cast<int32_t>(column_of(j)));
          if (c < p.n) write_pair(line, c, result(i, j, h, line, c));
        }
      }
  }
};

}  // namespace flashinfer::cu
