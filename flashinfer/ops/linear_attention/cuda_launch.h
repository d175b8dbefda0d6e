// SPDX-License-Identifier: Apache-2.0
// How the family's CUDA kernels are launched: pure functions of the call.
#pragma once
#include <cstdint>
#include <string>

#include "flashinfer/core/check.h"
#include "flashinfer/core/cuda_launch.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/linear_attention/kernels/common/delta_config.h"

namespace flashinfer::ops::linear_attention {

/// Whether rows along the last axis begin at multiples of 16 bytes.
inline bool rows_aligned(const TensorView& t) {
  uint64_t all = reinterpret_cast<uintptr_t>(t.data());
  for (int i = 0; i + 1 < t.rank(); ++i)
    if (t.size(i) > 1) all |= static_cast<uint64_t>(t.stride(i) * t.item_size());
  return all % 16 == 0 && (t.size(-1) <= 1 || t.stride(-1) == 1);
}
/// `aligned`: of the states' rows. 128 threads hold 16 to 64 rows in registers, 64 bytes a thread in flight: with 6
/// such blocks an SM more than latency times bandwidth needs (about 40 KB an SM at 4.8 TB/s and 1 us).
inline DeltaCudaConfig delta_config(DType state, int64_t width, bool aligned, bool channels = false,
                                    bool keys = false) {
  const bool whole = aligned && (width == 64 || width == 128);
  return {state, channels, whole ? static_cast<short>(width) : short{0}, static_cast<short>(keys), 128};
}
/// Empty, or why a kernel with rows of K in registers does not support the call.
inline std::string delta_unsupported(int64_t width) {
  if (width <= kDeltaCudaMaxWidth) return {};
  return str("K is ", width, ", but on a GPU it may be at most ", kDeltaCudaMaxWidth);
}
/// A block for each of `items` and each tile of `tile` of the V rows.
inline cuda::Launch delta_launch(int64_t items, int64_t rows, int64_t tile, int threads) {
  cuda::Launch l;
  l.block[0] = static_cast<unsigned>(threads);
  l.grid[0] = cuda::grid_size(items * ceil_div(rows, tile));
  l.pdl = true;
  return l;
}
/// Empty, or why there are too many blocks.
inline std::string grid_unsupported(int64_t items, int64_t rows, int64_t tile) {
  const int64_t blocks = items * ceil_div(rows, tile);
  if (blocks < int64_t{1} << 31) return {};
  return str("the call needs ", blocks, " blocks, but a GPU's grid has fewer than 2^31");
}

}  // namespace flashinfer::ops::linear_attention
