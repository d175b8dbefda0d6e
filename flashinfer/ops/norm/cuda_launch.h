// SPDX-License-Identifier: Apache-2.0
// How the norm kernels of kernels/cuda/norm.cuh are launched: pure functions of the call.
#pragma once
#include <cstdint>

#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/norm/kernels/params.h"

namespace flashinfer::cuda {

constexpr int norm_item_size(DType t) { return t == DType::kF32 ? 4 : 2; }

/// Threads of a row: the fewest of 8, 32, 256, 512 that keep it in registers (4 pieces of 16 bytes each). 8 and 32 need
/// no shared memory and no barrier; 128 between them would save nothing: a row of 33 to 128 pieces is 4 loads a lane
/// either way.
constexpr int norm_group(DType t, int64_t d) {
  const int64_t pieces = ceil_div(d * norm_item_size(t), 16);
  return pieces <= 8 * 4 ? 8 : pieces <= 32 * 4 ? 32 : pieces <= 256 * 4 ? 256 : 512;
}

/// Every row of every tensor begins at a multiple of 16 bytes and d is whole pieces.
inline bool norm_aligned(const NormParams& p, DType dtype, DType weight, bool fused_add) {
  const int64_t size = norm_item_size(dtype);
  uint64_t all = reinterpret_cast<uintptr_t>(p.input) | reinterpret_cast<uintptr_t>(p.out) |
                 reinterpret_cast<uintptr_t>(p.weight) | reinterpret_cast<uintptr_t>(p.beta) |
                 static_cast<uint64_t>(p.d * size) | static_cast<uint64_t>(p.d * norm_item_size(weight));
  for (int i = 0; i < (p.inner > 1 ? 2 : 1); ++i) {
    all |= static_cast<uint64_t>(p.input_stride[i] * size) | static_cast<uint64_t>(p.out_stride[i] * size);
    if (fused_add) all |= static_cast<uint64_t>(p.residual_stride[i] * size);
  }
  if (fused_add) all |= reinterpret_cast<uintptr_t>(p.residual);
  return all % 16 == 0;
}

inline NormCudaConfig norm_config(const NormConfig& c, const NormParams& p) {
  const int group = norm_group(c.dtype, p.d);
  return {.dtype = c.dtype,
          .weight = c.weight,
          .gemma = c.gemma,
          .fused_add = c.fused_add,
          .aligned = norm_aligned(p, c.dtype, c.weight, c.fused_add),
          .group = group,
          .threads = group <= 32 ? 128 : group};
}
inline LayerNormCudaConfig norm_config(const LayerNormConfig& c, const NormParams& p) {
  const int group = norm_group(c.dtype, p.d);
  return {.dtype = c.dtype,
          .aligned = norm_aligned(p, c.dtype, DType::kF32, false),
          .group = static_cast<short>(group),
          .threads = group <= 32 ? 128 : group};
}

/// Bits of all addresses and of all strides in bytes of the rows of `data` (null: none).
inline uint64_t row_bits(const void* data, const int64_t (&stride)[2], int64_t inner, int64_t size) {
  if (!data) return 0;
  return reinterpret_cast<uintptr_t>(data) | static_cast<uint64_t>(stride[0] * size) |
         static_cast<uint64_t>(inner > 1 ? stride[1] * size : 0);
}

/// One group a row; no block when there are no rows.
template <class Config>
Launch norm_launch(const Config& c, const NormParams& p, bool pdl) {
  Launch l;
  const int64_t rows = c.threads / c.group;
  l.grid[0] = grid_size(ceil_div(p.rows, rows));
  l.block[0] = static_cast<unsigned>(c.threads);
  l.shared_bytes = c.group > 32 ? static_cast<unsigned>(c.threads / 32 * 4) : 0;
  l.pdl = pdl;
  return l;
}

}  // namespace flashinfer::cuda
