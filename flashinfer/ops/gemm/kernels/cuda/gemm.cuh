// SPDX-License-Identifier: Apache-2.0
// All products of the family on a GPU: out[rows, n] = scale * A[rows, k] . B[matrix][n, k]^T, operands of any format,
// converted to 16 bits on their way from global to shared memory (operand.cuh), groups of rows (groups.cuh), scales of
// blocks of k. Two stages: while a step is multiplied, the next one is on its way to registers, so that a step needs
// one barrier. Sums are f32 and have one order: along k, where the warps that divide a step keep sums of their own,
// added in ascending order at the end. So results do not change from run to run.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/ops/gemm/kernels/cuda/operand.cuh"
#include "flashinfer/ops/gemm/kernels/cuda/result.cuh"
#include "flashinfer/ops/gemm/kernels/cuda/scales.cuh"

namespace flashinfer::cu {

template <GemmCudaConfig C>
struct Gemm : GemmPlaces<C> {
  using Places = GemmPlaces<C>;
  using Places::kTilesM, Places::kTilesN, Places::warp_m, Places::warp_n, Places::warp_k, Places::row_of,
      Places::column_of, Places::column_at;
  using Sums = typename Places::Sums;
  using T = typename scalar_of<C.half != 0 ? DType::kF16 : DType::kBF16>::type;
  static constexpr int kRows = C.rows, kColumns = C.columns, kDepth = C.depth;
  static constexpr int kSteps = kDepth / 16 / C.warps_k;  // of a warp
  static constexpr int kBlocks = C.grid_blocks();
  /// Steps of a warp that share scales of the grid.
  static constexpr int kShared = C.grid == 0 || C.grid / 16 > kSteps ? kSteps : C.grid / 16;
  static_assert(kTilesM * 16 * C.warps_m == kRows && kTilesN * 8 * C.warps_n == kColumns && kTilesN % 2 == 0);
  static_assert(kSteps * 16 * C.warps_k == kDepth && kSteps % kShared == 0);
  static_assert((C.warps_k - 1) * C.warps_m * C.warps_n * 32 * kTilesM * kTilesN * 16 <= C.tile_bytes());

  static constexpr int parts(int lines) { return lines > 32 ? lines / 32 : 1; }
  using TileA = OperandTile<C.a, C.a_factor, C.a_wide, C.apart(), kRows, parts(kRows), kDepth, C.threads, T>;
  using TileB = OperandTile<C.b, C.b_factor, C.b_wide, C.apart(), kColumns, C.spread != 0 ? 4 : parts(kColumns), kDepth,
                            C.threads, T>;

  const GemmCudaParams& p;
  const GemmRows& rows;
  int32_t n0;
  TileA a;
  TileB b;
  ScaleTile<C> scales;  // where there are blocks of scales
  Sums acc;

  FI_GLOBAL_FN Gemm(const GemmCudaParams& params, const GemmRows& of, int32_t column)
      : p(params), rows(of), n0(column) {}

  FI_GLOBAL_FN static char* stage(uint32_t s) { return shared() + s * C.stage_bytes(); }
  FI_GLOBAL_FN static T* tile_a(uint32_t s) { return reinterpret_cast<T*>(stage(s)); }
  FI_GLOBAL_FN static T* tile_b(uint32_t s) { return tile_a(s) + kRows * kDepth; }
  /// [kBlocks][kRows], then [kBlocks][kColumns], then the minima likewise.
  FI_GLOBAL_FN static float* scales_of(uint32_t s) { return reinterpret_cast<float*>(stage(s) + C.tile_bytes()); }

  FI_GLOBAL_FN int64_t line_of_a(int32_t line) const {
    if constexpr (C.gather != 0) {
      const int32_t at = p.gather[rows.first + line];
      return at < 0 ? 0 : at > p.gather_last ? p.gather_last : at;
    } else {
      return rows.first + line;
    }
  }

  /// Of the scales of A's lines.
  FI_GLOBAL_FN int64_t scale_line_of_a(int32_t line) const {
    return C.gather != 0 ? line_of_a(line) : rows.factor_row + line;
  }
  FI_GLOBAL_FN void begin() {
    const auto row = [&](int32_t line) { return line < rows.count ? line_of_a(line) : int64_t{-1}; };
    const auto row_of_scales = [&](int32_t line) { return line < rows.count ? scale_line_of_a(line) : int64_t{-1}; };
    const auto column = [&](int32_t line) {
      const int32_t c = column_at(n0, line);
      if (c >= p.n) return int64_t{-1};
      return C.shuffled != 0 ? interleaved_line(c) : static_cast<int64_t>(c);
    };
    a.begin(p.a, rows.batch, row, row_of_scales);
    b.begin(p.b, rows.matrix, column, column);
    if constexpr (C.grid != 0) scales.begin(p, rows.batch, rows.matrix, row_of_scales, column);
  }
  FI_GLOBAL_FN void load(int32_t k0) {
    a.load(p.a, k0, p.k);
    b.load(p.b, k0, p.k);
    if constexpr (C.grid != 0) scales.load(p, k0);
  }

  FI_GLOBAL_FN static void clear(Sums& x) {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i)
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) x[i][j] = Acc{};
  }

  /// to += 16 elements along k; `sums` of A's rows, for minima.
  FI_GLOBAL_FN static void multiply(uint32_t s, uint32_t step, Sums& to, Acc (&sums)[kTilesM]) {
    const T *const x = tile_a(s), *const y = tile_b(s);
    if constexpr (C.tensor != 0) {
      Frag4 fa[kTilesM];
#pragma unroll
      for (uint32_t i = 0; i < kTilesM; ++i)
        fa[i] = load_matrix4(
            x + swizzle<kDepth / 8>(warp_m() * (kTilesM * 16) + 16 * i + lane() % 16, 2 * step + lane() / 16) * 8);
      if constexpr (C.minima()) {
        const uint32_t ones = pair_of<T>(1.0f, 1.0f);
#pragma unroll
        for (uint32_t i = 0; i < kTilesM; ++i) sums[i] = mma<T>(fa[i], Frag2{{ones, ones}}, sums[i]);
      }
#pragma unroll
      for (uint32_t j = 0; j < kTilesN; j += 2) {
        const uint32_t line = warp_n() * (kTilesN * 8) + 8 * j + lane() / 16 * 8 + lane() % 8;
        const Frag4 fb = load_matrix4(y + swizzle<kDepth / 8>(line, 2 * step + lane() / 8 % 2) * 8);
#pragma unroll
        for (uint32_t i = 0; i < kTilesM; ++i) {
          to[i][j] = mma<T>(fa[i], Frag2{{fb.r[0], fb.r[1]}}, to[i][j]);
          to[i][j + 1] = mma<T>(fa[i], Frag2{{fb.r[2], fb.r[3]}}, to[i][j + 1]);
        }
      }
    } else {
#pragma unroll
      for (uint32_t pair = 0; pair < 8; ++pair) {
        const auto at = [&](const T* tile, uint32_t line) {
          return reinterpret_cast<const uint32_t*>(tile)[swizzle<kDepth / 8>(line, 2 * step + pair / 4) * 4 + pair % 4];
        };
        float low[kTilesM * 2], high[kTilesM * 2];
#pragma unroll
        for (uint32_t r = 0; r < kTilesM * 2; ++r) halves_to_f32<T>(at(x, row_of(r / 2, r % 2 * 2)), low[r], high[r]);
        if constexpr (C.minima())
#pragma unroll
          for (uint32_t r = 0; r < kTilesM * 2; ++r) sums[r / 2].r[r % 2 * 2] += low[r] + high[r];
#pragma unroll
        for (uint32_t c = 0; c < kTilesN * 2; ++c) {
          float u, v;
          halves_to_f32<T>(at(y, column_of(c / 2) + c % 2), u, v);
#pragma unroll
          for (uint32_t r = 0; r < kTilesM * 2; ++r) {
            float& sum = to[r / 2][c / 2].r[r % 2 * 2 + c % 2];
            sum = fmaf(high[r], v, fmaf(low[r], u, sum));
          }
        }
      }
    }
  }
  /// acc += part * scale of the row * scale of the column, of block `block` of the stage; part becomes 0.
  FI_GLOBAL_FN void promote(uint32_t s, uint32_t block, Sums& part, Acc (&sums)[kTilesM]) {
    const float *const of_a = scales_of(s) + block * kRows, *const of_b =
                                                                scales_of(s) + kBlocks * kRows + block * kColumns;
    float x[kTilesM * 2];
#pragma unroll
    for (uint32_t r = 0; r < kTilesM * 2; ++r) x[r] = of_a[row_of(r / 2, r % 2 * 2)];
#pragma unroll
    for (uint32_t j = 0; j < kTilesN; ++j) {
      const Pack<float, 2> y = load_shared<2>(of_b + column_of(j));
      Pack<float, 2> least{};
      if constexpr (C.minima()) least = load_shared<2>(of_b + kBlocks * kColumns + column_of(j));
#pragma unroll
      for (uint32_t i = 0; i < kTilesM; ++i)
#pragma unroll
        for (uint32_t e = 0; e < 4; ++e) {
          float& sum = acc[i][j].r[e];
          sum = fmaf(part[i][j].r[e], x[2 * i + e / 2] * y[e % 2], sum);
          if constexpr (C.minima()) sum = fmaf(sums[i].r[e / 2 * 2], least[e % 2], sum);
          part[i][j].r[e] = 0.0f;
        }
    }
    if constexpr (C.minima())
#pragma unroll
      for (uint32_t i = 0; i < kTilesM; ++i) sums[i] = Acc{};
  }

  FI_GLOBAL_FN void sum_products() {
    Acc part[C.grid != 0 ? kTilesM : 1][C.grid != 0 ? kTilesN : 1], sums[kTilesM];
    clear(acc);
    if constexpr (C.grid != 0) clear(part);
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) sums[i] = Acc{};
    load(0);
    uint32_t s = 0;
    for (int32_t k0 = 0; k0 < p.k; k0 += kDepth, s ^= 1u) {
      a.store(tile_a(s));
      b.store(tile_b(s));
      if constexpr (C.grid != 0) scales.store(scales_of(s));
      sync_threads();
      const bool last = k0 + kDepth >= p.k;
      if (!last) load(k0 + kDepth);
#pragma unroll
      for (uint32_t i = 0; i < kSteps; ++i) {
        const uint32_t step = warp_k() * kSteps + i;
        if constexpr (C.grid == 0) {
          multiply(s, step, acc, sums);
        } else {
          multiply(s, step, part, sums);
          if ((i + 1) % kShared != 0) continue;
          // A warp's steps are within a block of the grid, which ends in this stage, or in a later one.
          if (C.grid <= kDepth || last || (k0 + kDepth) % C.grid == 0)
            promote(s, C.grid >= kDepth ? 0 : step * 16 / C.grid, part, sums);
        }
      }
    }
  }

  /// The sums of the other warps of a step, in ascending order, to those of the first.
  FI_GLOBAL_FN void add_warps() {
    constexpr uint32_t kFloats = kTilesM * kTilesN * 4, kFirst = C.warps_m * C.warps_n;
    auto* const other = reinterpret_cast<float*>(shared());
    sync_threads();  // the tiles are free
    if (warp_k() != 0)
#pragma unroll
      for (uint32_t i = 0; i < kFloats; ++i)
        other[(warp() - kFirst) * (32 * kFloats) + i * 32 + lane()] = acc[i / 4 / kTilesN][i / 4 % kTilesN].r[i % 4];
    sync_threads();
    if (warp_k() == 0)
#pragma unroll
      for (uint32_t w = 0; w + 1 < C.warps_k; ++w)
#pragma unroll
        for (uint32_t i = 0; i < kFloats; ++i)
          acc[i / 4 / kTilesN][i / 4 % kTilesN].r[i % 4] +=
              other[(w * kFirst + warp()) * (32 * kFloats) + i * 32 + lane()];
  }

  FI_GLOBAL_FN void run() {
    if (rows.matrix >= 0) {
      begin();
      sum_products();
      if constexpr (C.warps_k > 1) add_warps();
    } else {
      clear(acc);
    }
    if (C.warps_k > 1 && warp_k() != 0) return;
    float scale = p.scale;
    if (p.alpha_a) scale *= *p.alpha_a;
    if (p.alpha_b) scale *= *p.alpha_b;
    if (p.alpha_group && rows.matrix >= 0) scale *= p.alpha_group[rows.group * p.alpha_stride];
    const GemmResult<C> result(p, rows, acc, n0, scale);
    if (p.out_dtype == DType::kBF16)
      result.template write<bf16_t>();
    else if (p.out_dtype == DType::kF16)
      result.template write<f16_t>();
    else
      result.template write<float>();
  }
};

/// Block (x, y, z): tile x of the rows, tile y of the columns, matrix z of a batch.
template <GemmCudaConfig C>
FI_GLOBAL_FN void gemm(const GemmCudaParams& p) {
  depend_wait();
  const auto tile = static_cast<int32_t>(block_x()), y = static_cast<int32_t>(block_y());
  const int32_t n0 = C.spread != 0 ? y / 4 * 128 + y % 4 * 8 : y * C.columns;
  GemmRows r;
  if constexpr (C.groups == GemmGroups::kBatch) {
    // Rows that an index leaves out become 0; a tile may have both kinds.
    const auto z = static_cast<int32_t>(block_z());
    const int32_t valid = p.index ? gemm_index(p.index, p.index_wide, z, 0, p.m) : p.m, start = tile * C.rows,
                  end = start + C.rows < p.m ? start + C.rows : p.m;
    r.batch = z, r.group = z;
    for (int32_t first = start; first < end;) {
      const bool some = first < valid;
      const int32_t stop = some && valid < end ? valid : end;
      r.first = first, r.count = stop - first, r.factor_row = first;
      r.matrix = some ? gemm_matrix(p, z) : -1;
      if (first != start) sync_threads();  // shared memory is free again
      Gemm<C>(p, r, n0).run();
      first = stop;
    }
  } else if constexpr (C.groups == GemmGroups::kRows) {
    const int32_t start = tile * C.rows, end = start + C.rows < p.m ? start + C.rows : p.m;
    for (int32_t first = start; first < end;) {
      const int32_t matrix = gemm_index(p.index, p.index_wide, first, -1, p.matrices);
      int32_t stop = first + 1;
      while (stop < end && gemm_index(p.index, p.index_wide, stop, -1, p.matrices) == matrix) ++stop;
      r.first = first, r.count = stop - first, r.factor_row = first;
      r.matrix = matrix < p.matrices ? matrix : -1, r.group = r.matrix < 0 ? 0 : r.matrix;
      if (first != start) sync_threads();
      Gemm<C>(p, r, n0).run();
      first = stop;
    }
  } else {
    if (find_tile<C>(p, tile, r)) Gemm<C>(p, r, n0).run();
  }
  depend_launch();
}

}  // namespace flashinfer::cu
