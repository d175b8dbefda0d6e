// SPDX-License-Identifier: Apache-2.0
// SwiGLU and its gradient to MXFP8 by rows and by columns on a GPU, from one read of the input: a block has a tile of
// 32 rows x 128 columns. Columns pass through shared memory, in an order without bank conflicts both ways.
#pragma once
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/math.h"
#include "flashinfer/ops/quantization/kernels/swiglu_cuda_params.h"

namespace flashinfer::cu {

/// Floats from one row of the tile to the next. Column c of it is at c % 8 * 16 + c / 8, so that half a warp writes 16
/// neighbours; its other half writes 16 rows later, 16 banks further.
inline constexpr int kSwigluStride = 129;

/// The tile's values of this thread: eight of row `row` and of row `row` + 8.
struct SwigluPlace {
  int64_t row, column;  // of the tile
  uint32_t first;       // row in the tile
  uint32_t piece;       // of 16 in a row
};

/// Codes and scales by rows; a block of 32 columns belongs to four lanes.
FI_GLOBAL_FN void swiglu_rows(const SwigluMxfp8Params& p, const SwigluPlace& at, const float (&v)[2][8], int64_t shift,
                              int64_t w) {
#pragma unroll
  for (int t = 0; t < 2; ++t) {
    const BlockScale scale = block_scale<true, true>(block_magnitude<4>(v[t]), 1.0f, 1.0f);
    uint32_t words[2];
    block_codes<true>(v[t], scale, words);
    const int64_t row = at.row + at.first + 8 * t, column = at.column + shift + at.piece * 8;
    store_codes<true, 8>(p.rows + row * w + column, words);
    if (at.piece % 4 == 0) p.row_scales[row * (w / 32) + column / 32] = static_cast<uint8_t>(scale.byte);
  }
}
/// The same by columns; a block of 32 rows belongs to two lanes.
FI_GLOBAL_FN void swiglu_columns(const SwigluMxfp8Params& p, const SwigluPlace& at, const float (&v)[2][8],
                                 int64_t shift) {
  float* const tile = reinterpret_cast<float*>(shared());
  sync_threads();  // the other half's columns were read
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int i = 0; i < 8; ++i) tile[(at.first + 8 * t) * kSwigluStride + i * 16 + at.piece] = v[t][i];
  sync_threads();
  const uint32_t place = thread_x() / 2, half = thread_x() % 2;
  float x[16];
#pragma unroll
  for (int j = 0; j < 16; ++j) x[j] = tile[(half * 16 + j) * kSwigluStride + place];
  const BlockScale scale = block_scale<true, true>(block_magnitude<2>(x), 1.0f, 1.0f);
  uint32_t words[4];
  block_codes<true>(x, scale, words);
  const int64_t column = at.column + shift + place % 16 * 8 + place / 16;
  store_codes<true, 16>(p.columns + column * p.m + at.row + half * 16, words);
  if (half == 0) p.column_scales[column * (p.m / 32) + at.row / 32] = static_cast<uint8_t>(scale.byte);
}

template <SwigluMxfp8CudaConfig C>
FI_GLOBAL_FN void swiglu_mxfp8(const SwigluMxfp8Params& p) {
  using T = scalar_of_t<C.dtype>;
  depend_wait();
  const uint32_t across = static_cast<uint32_t>(p.k / 128);
  // Warp w has rows w, w + 8 and, in its upper half, w + 16, w + 24.
  const SwigluPlace at{static_cast<int64_t>(block_x() / across) * 32, static_cast<int64_t>(block_x() % across) * 128,
                       warp() + lane() / 16 * 16, lane() % 16};
  float first[2][8], second[2][8];
#pragma unroll
  for (int t = 0; t < 2; ++t) {
    const int64_t row = at.row + at.first + 8 * t, column = at.column + at.piece * 8;
    const T* const x = static_cast<const T*>(p.x) + row * p.x_stride + column;
    const Pack<T, 8> gates = load_block_piece < C.aligned != 0, 8 > (true, x), ups = load_block_piece < C.aligned != 0,
                     8 > (true, x + p.k);
    Pack<T, 8> grads{};
    if constexpr (C.backward != 0)
      grads = load_block_piece < C.aligned != 0,
      8 > (true, static_cast<const T*>(p.grad) + row * p.grad_stride + column);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float g = to_f32(gates[i]), u = to_f32(ups[i]), s = 1.0f / (1.0f + exp_fast(-g));
      if constexpr (C.backward != 0) {
        const float d = to_f32(grads[i]);
        first[t][i] = d * u * (s * fmaf(g, 1.0f - s, 1.0f));
        second[t][i] = d * (g * s);
      } else {
        first[t][i] = g * s * u;
      }
    }
  }
  const int64_t w = C.backward ? 2 * p.k : p.k;
  if (p.rows) swiglu_rows(p, at, first, 0, w);
  if (p.columns) swiglu_columns(p, at, first, 0);
  if constexpr (C.backward != 0) {
    if (p.rows) swiglu_rows(p, at, second, p.k, w);
    if (p.columns) swiglu_columns(p, at, second, p.k);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
