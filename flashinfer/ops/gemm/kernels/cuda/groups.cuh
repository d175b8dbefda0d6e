// SPDX-License-Identifier: Apache-2.0
// Which rows a block computes. Numbers come from arrays of the caller that no host has checked: they are cut to what
// exists, so that a wrong one gives wrong rows but no access outside the tensors.
#pragma once
#include "flashinfer/kernels/cuda/warp.h"
#include "flashinfer/ops/gemm/kernels/cuda_params.h"

namespace flashinfer::cu {

/// Rows of one matrix of B, at most those of a tile.
struct GemmRows {
  int32_t first = 0, count = 0;  // of A and of the result, in their batch
  int32_t batch = 0;             // of A and of the result
  int32_t matrix = -1;           // of B; -1: the rows become 0
  int32_t group = 0;
  int32_t factor_row = 0;  // of A's scales
};

FI_GLOBAL_FN int32_t gemm_index(const void* p, bool wide, int64_t i, int32_t least, int32_t most) {
  const int64_t x = wide ? static_cast<const int64_t*>(p)[i] : static_cast<const int32_t*>(p)[i];
  return static_cast<int32_t>(x < least ? least : x > most ? most : x);
}
/// The matrix `i`, or what `weights` names in its place.
FI_GLOBAL_FN int32_t gemm_matrix(const GemmCudaParams& p, int32_t i) {
  const int32_t matrix = p.weights ? gemm_index(p.weights, p.weights_wide, i, -1, p.matrices) : i;
  return matrix < p.matrices ? matrix : -1;
}

/// Inclusive sums over the lanes.
FI_GLOBAL_FN int32_t lane_sums(int32_t x) {
#pragma unroll
  for (uint32_t d = 1; d < 32; d *= 2) {
    const auto before = static_cast<int32_t>(shuffle_bits(static_cast<uint32_t>(x), lane() < d ? lane() : lane() - d));
    if (lane() >= d) x += before;
  }
  return x;
}
FI_GLOBAL_FN int32_t from_lane(int32_t x, uint32_t source) {
  return static_cast<int32_t>(shuffle_bits(static_cast<uint32_t>(x), source));
}

/// Tile `tile` of all groups, each of which begins a new one; each warp looks for itself. Before the first group and
/// behind the last one are rows of none, as groups without a matrix. False: there is no such tile.
template <GemmCudaConfig C>
FI_GLOBAL_FN bool find_tile(const GemmCudaParams& p, int32_t tile, GemmRows& r) {
  int32_t tiles_before = 0, rows_before = 0;
  for (int32_t base = 0; base < p.groups + 2; base += 32) {
    const int32_t v = base + static_cast<int32_t>(lane()), g = v - 1;
    int32_t first = 0, end = 0;
    if constexpr (C.groups == GemmGroups::kOffsets) {
      if (v <= p.groups + 1) {
        first = v == 0 ? 0 : gemm_index(p.index, p.index_wide, g, 0, p.m);
        end = v > p.groups ? p.m : gemm_index(p.index, p.index_wide, g + 1, 0, p.m);
      }
    } else {
      const int32_t rows = v >= 1 && v <= p.groups ? gemm_index(p.index, p.index_wide, g, 0, p.m) : 0;
      const int32_t sum = lane_sums(rows) + rows_before;  // m is below 2^26
      first = v > p.groups + 1 || sum - rows > p.m ? p.m : sum - rows;
      end = v > p.groups || sum > p.m ? p.m : sum;
      const int32_t all = from_lane(sum, 31);
      rows_before = all < p.m ? all : p.m;
    }
    const int32_t tiles = end > first ? ceil_div(end - first, static_cast<int32_t>(C.rows)) : 0;
    const int32_t sum = lane_sums(tiles) + tiles_before;
    const uint32_t found = ballot(tile >= sum - tiles && tile < sum);
    if (found != 0) {
      uint32_t source = 0;
      while ((found >> source & 1u) == 0) ++source;
      const int32_t of_group = (tile - from_lane(sum - tiles, source)) * C.rows;
      const int32_t start = from_lane(first, source), stop = from_lane(end, source);
      r.group = base + static_cast<int32_t>(source) - 1;
      r.first = start + of_group;
      r.count = stop - r.first < C.rows ? stop - r.first : C.rows;
      const bool none = r.group < 0 || r.group >= p.groups;
      r.matrix = none ? -1 : gemm_matrix(p, r.group);
      const int32_t pad = p.factor_pad;
      r.factor_row = pad != 0 && !none ? (start + (pad - 1) * r.group) / pad * pad + of_group : r.first;
      if (none) r.group = 0;
      return true;
    }
    tiles_before = from_lane(sum, 31);
  }
  return false;
}

}  // namespace flashinfer::cu
