// SPDX-License-Identifier: Apache-2.0
// SwiGLU and its gradient, quantised to MXFP8 by rows and by columns from one read of the input; and rows scaled by
// columns.
#pragma once
#include "flashinfer/kernels/cpu/block_quantize.h"
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/ops/quantization/kernels/swiglu_params.h"

namespace flashinfer::cpu {

inline constexpr int64_t kSwigluRows = 32, kSwigluColumns = 128;
inline constexpr BlockFormat kMxfp8{32, 1, 1};

/// The codes and scales of a tile of 32 x 128 values at (row, column) of [m, w].
FI_VEC_INLINE void quantize_tile(const SwigluMxfp8Params& p, const BlockRule<kMxfp8, float>& rule, const float* tile,
                                 int64_t row, int64_t column, int64_t w) {
  uint8_t scale[kBlockChunk];
  if (p.rows)
    for (int64_t r = 0; r < kSwigluRows; ++r) {
      quantize_blocks(rule, tile + r * kSwigluColumns, p.rows + (row + r) * w + column, scale, kSwigluColumns / 32);
      memcpy(p.row_scales + (row + r) * (w / 32) + column / 32, scale, kSwigluColumns / 32);
    }
  if (!p.columns) return;
  alignas(64) float turned[kBlockChunk * kSwigluRows];
  alignas(64) uint8_t codes[kBlockChunk * kSwigluRows];
  for (int64_t first = 0; first < kSwigluColumns; first += kBlockChunk) {
    for (int64_t r = 0; r < kSwigluRows; ++r)
      for (int64_t c = 0; c < kBlockChunk; ++c) turned[c * kSwigluRows + r] = tile[r * kSwigluColumns + first + c];
    quantize_blocks(rule, turned, codes, scale, kBlockChunk);
    for (int64_t c = 0; c < kBlockChunk; ++c) {
      const int64_t at = column + first + c;
      memcpy(p.columns + at * p.m + row, codes + c * kSwigluRows, kSwigluRows);
      p.column_scales[at * (p.m / 32) + row / 32] = scale[c];
    }
  }
}

template <SwigluMxfp8Config C>
void swiglu_mxfp8(const SwigluMxfp8Params& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const int64_t across = p.k / kSwigluColumns, row = task / across * kSwigluRows,
                column = task % across * kSwigluColumns;
  alignas(64) float first[kSwigluRows * kSwigluColumns];
  alignas(64) float second[C.backward ? kSwigluRows * kSwigluColumns : 1];
  const Vec one = splat(1.0f);
  BlockRule<kMxfp8, float> rule;
  make_block_rule(rule, 1.0f, 1.0f);
  for (int64_t r = 0; r < kSwigluRows; ++r) {
    const T* x = static_cast<const T*>(p.x) + (row + r) * p.x_stride + column;
    for (int64_t c = 0; c < kSwigluColumns; c += Vec::kLanes) {
      const Vec g = load(x + c), u = load(x + p.k + c);
      float* const to = first + r * kSwigluColumns + c;
      if constexpr (!C.backward) {
        store(to, silu(g) * u);
      } else {
        const Vec d = load(static_cast<const T*>(p.grad) + (row + r) * p.grad_stride + column + c), s = sigmoid(g);
        store(to, d * u * (s * fma(g, one - s, one)));
        store(second + r * kSwigluColumns + c, d * (g * s));
      }
    }
  }
  quantize_tile(p, rule, first, row, column, C.backward ? 2 * p.k : p.k);
  if constexpr (C.backward) quantize_tile(p, rule, second, row, p.k + column, 2 * p.k);
}

template <SmoothConfig C>
void smooth_row(const SmoothParams& p, int64_t row) {
  using T = scalar_of_t<C.dtype>;
  const T *x = static_cast<const T*>(p.x) + row * p.x_stride, *s = static_cast<const T*>(p.scale);
  T* const y = static_cast<T*>(p.y) + row * p.y_stride;
  int64_t i = 0;
  for (; i + Vec::kLanes <= p.k; i += Vec::kLanes) store(y + i, load(x + i) * load(s + i));
  if (i < p.k) store_n(y + i, load_n(x + i, p.k - i) * load_n(s + i, p.k - i), p.k - i);
}

}  // namespace flashinfer::cpu
