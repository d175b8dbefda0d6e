// SPDX-License-Identifier: Apache-2.0
// Linear matrices of block scales to tiles of 128 rows x 4 columns, and booleans to bits, on a GPU.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/page_table.h"
#include "flashinfer/ops/quantization/kernels/layout_params.h"

namespace flashinfer::cu {

/// A warp moves eight units (8 rows x 32 columns): a lane reads eight columns of one row, 32 bytes of four lanes, and
/// writes four and four, eight lanes a unit. Rows and columns of the padding get 0.
template <InterleaveCudaConfig C>
FI_GLOBAL_FN void interleave_scales(const InterleaveParams& p) {
  depend_wait();
  const uint32_t groups = ceil_div(p.tiles, 8u);  // of eight tiles
  const uint32_t turn = block_x() * (C.threads / 32) + warp();
  if (turn < p.matrices * p.row_units * groups) {
    const uint32_t matrix = turn / (p.row_units * groups), rest = turn - matrix * (p.row_units * groups);
    const uint32_t across = rest / groups, slot = lane() / 4;
    const uint32_t row = across / 16 * 128 + across % 16 * 2 + slot % 4 * 32 + slot / 4;
    const uint32_t column = rest % groups * 32 + lane() % 4 * 8;
    char* const to = p.to + matrix * p.to_matrix_stride;
    uint32_t source = row;
    if (p.shuffle) {
      const uint32_t inside = row % p.shuffle;
      source = row - inside + inside % 8 * (p.shuffle / 8) + inside / 8;
    }
    const char* const from = p.from + (matrix * p.matrix_stride + source * p.row_stride + column) * C.item;
    const uint32_t left = row < p.rows && column < p.columns ? p.columns - column : 0;
    Pack<char, 8 * C.item> x{};
    if (C.aligned && left >= 8) {
      x = load<8 * C.item, Hint::kOnce>(from);
    } else {
#pragma unroll
      for (uint32_t i = 0; i < 8 * C.item; ++i)
        if (i < left * C.item) x[i] = from[i];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t tile = column / 4 + half;
      if (tile >= p.tiles) continue;
      Pack<char, 4 * C.item> y;
#pragma unroll
      for (int i = 0; i < 4 * C.item; ++i) y[i] = x[half * 4 * C.item + i];
      const int64_t unit = (static_cast<int64_t>(across / 16) * p.tiles + tile) * 16 + across % 16;
      store(to + (unit * 32 + slot * 4) * C.item, y);
    }
  }
  depend_launch();
}

/// A lane makes two bytes of 16 elements; the low or high bit of a byte is the first.
template <PackBitsCudaConfig C>
FI_GLOBAL_FN void pack_bits(const PackBitsCudaParams& p) {
  depend_wait();
  const int64_t at = (static_cast<int64_t>(block_x()) * C.threads + thread_x()) * 16;
  if (at < p.n) {
    Pack<uint8_t, 16> x{};
    if (C.aligned && at + 16 <= p.n) {
      x = load<16, Hint::kOnce>(p.x + at);
    } else {
#pragma unroll
      for (int i = 0; i < 16; ++i)
        if (at + i < p.n) x[i] = p.x[at + i];
    }
    Pack<uint8_t, 2> y;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      uint32_t bits = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i) bits |= (x[8 * k + i] != 0 ? 1u : 0u) << (C.big ? 7 - i : i);
      y[k] = static_cast<uint8_t>(bits);
    }
    if (C.aligned && at + 16 <= p.n) {
      store(p.y + at / 8, y);
    } else {
      p.y[at / 8] = y[0];
      if (at + 8 < p.n) p.y[at / 8 + 1] = y[1];
    }
  }
  depend_launch();
}

/// A thread makes a byte.
template <PackBitsCudaConfig C>
FI_GLOBAL_FN void pack_segments(const PackSegmentsCudaParams& p) {
  depend_wait();
  const int64_t at = static_cast<int64_t>(block_x()) * C.threads + thread_x();
  if (at < p.bytes) {
    int64_t s = 0, high = p.segments;  // the last segment that begins at or before the byte; empty ones begin there too
    while (high - s > 1) {
      const int64_t middle = (s + high) / 2;
      (strided_index(p.to, middle) <= at ? s : high) = middle;
    }
    const int64_t first = strided_index(p.from, s) + 8 * (at - strided_index(p.to, s)),
                  left = strided_index(p.from, s + 1) - first;
    uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i < left) bits |= (p.x[first + i] != 0 ? 1u : 0u) << (C.big ? 7 - i : i);
    p.y[at] = static_cast<uint8_t>(bits);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
