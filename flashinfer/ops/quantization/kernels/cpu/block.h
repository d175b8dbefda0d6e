// SPDX-License-Identifier: Apache-2.0
// Rows to block formats and back on the CPU. Scales are written in their layout along with the codes. In 128x4 tiles
// that would be four bytes in each 512, lines of eight sets of L1 that 16 rows share (0.34 of memcpy where linear
// scales gave 0.56, one thread), so the scales of a tile's 128 rows are collected first.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cpu/block_quantize.h"
#include "flashinfer/ops/activation/kernels/cpu/activation.h"
#include "flashinfer/ops/quantization/kernels/block_params.h"
#include "flashinfer/ops/quantization/kernels/cpu/four_over_six.h"

namespace flashinfer::cpu {

/// Source row of row `to` when blocks of 16 or 32 rows are shuffled: row i of a block moves to i % parts * 8 + i /
/// parts, parts = block / 8. GPU kernels that multiply in tiles read weights in this order.
FI_VEC_INLINE int64_t shuffled_from(int64_t to, int32_t block) {
  const int64_t inside = to % block, parts = block / 8;
  return to - inside + inside % 8 * parts + inside / 8;
}

/// Element type that is quantised: e4m3 input is converted to f16.
template <DType T>
struct Quantised {
  using type = scalar_of_t<T>;
};
template <>
struct Quantised<DType::kF8E4M3> {
  using type = f16_t;
};

/// Elements [at, at + n) of row x, n a multiple of 16, in memory: the row itself, or computed in `buffer`.
template <BlockQuantConfig C>
FI_VEC_INLINE const typename Quantised<C.dtype>::type* chunk_of(const scalar_of_t<C.dtype>* x, int64_t k, int64_t at,
                                                                int64_t n, float encode,
                                                                typename Quantised<C.dtype>::type* buffer) {
  if constexpr (C.gated) {
    const auto *gate = x + at, *up = x + k + at;
    const auto value = [&](int64_t i) {
      __builtin_prefetch(gate + i + n, 0, 2);  // prefetch the next chunk, as act_and_mul does
      __builtin_prefetch(up + i + n, 0, 2);
      return activate<ActConfig{C.dtype, Activation::kSilu}>(load(gate + i)) * load(up + i);
    };
    write_row(buffer, n, value, [&](int64_t i, int64_t) { return value(i); });
    return buffer;
  } else if constexpr (C.dtype == DType::kF8E4M3) {
    const Vec f = splat(6.0f / encode);
    for (int64_t i = 0; i < n; i += Vec::kLanes) store(buffer + i, load(x + at + i) * f);
    return buffer;
  } else {
    return x + at;
  }
}

FI_VEC_INLINE uint32_t order_of(float magnitude) { return scalar_detail::bits(magnitude); }
template <class T>
FI_VEC_INLINE uint32_t order_of(T magnitude) {
  return magnitude.bits;
}
/// The largest magnitude of a row; NaN beats all numbers.
template <class T>
FI_VEC_INLINE float row_magnitude(const T* x, int64_t k) {
  T most;
  memset(&most, 0, sizeof most);
  for (int64_t i = 0; i < k; i += 16) {
    const T one = block_magnitude(x + i, 16);
    if (order_of(one) > order_of(most)) most = one;
  }
  return to_f32(most);
}

template <BlockQuantConfig C>
using RowRule = BlockRule<BlockFormat{C.block, C.ue8m0, C.fp8}, typename Quantised<C.dtype>::type>;

template <BlockQuantConfig C>
FI_VEC_INLINE void quantize_row(const BlockQuantParams& p, const RowRule<C>& rule, const scalar_of_t<C.dtype>* x,
                                uint8_t* codes, SfLayout layout, uint8_t* scales, float encode, float amax) {
  constexpr int64_t kPerByte = C.fp8 ? 1 : 2;
  using Q = typename Quantised<C.dtype>::type;
  constexpr bool kMade = C.gated || C.dtype == DType::kF8E4M3;
  Q buffer[kMade ? kBlockChunk * C.block : 1];
  uint8_t scale[kBlockChunk];
  const int64_t blocks = p.k / C.block, columns = p.padded_k / C.block;
  for (int64_t first = 0; first < blocks; first += kBlockChunk) {
    const int64_t n = blocks - first < kBlockChunk ? blocks - first : kBlockChunk, at = first * C.block;
    const Q* from = chunk_of<C>(x, p.k, at, n * C.block, encode, buffer);
    if constexpr (C.four_over_six != 0)
      quantize_blocks_4over6<C.four_over_six>({encode, rule.b, amax, amax > 0 ? p.token_most : 0.0f}, from,
                                              codes + at / kPerByte, scale, n);
    else
      quantize_blocks(rule, from, codes + at / kPerByte, scale, n);
    store_scales(layout, scales, first, scale, n);
  }
  if (columns > blocks) memset(codes + p.k / kPerByte, 0, static_cast<size_t>((p.padded_k - p.k) / kPerByte));
  const int64_t done = layout == SfLayout::kLinear ? blocks : round_up(blocks, 4);
  clear_scales(layout, scales, done, sf_padded_columns(layout, columns));
}

/// Row `row` of a batch; reuses the previous row's rule where the factor is the same.
template <BlockQuantConfig C>
__attribute__((noinline)) void quantize_source(const BlockQuantParams& p, RowRule<C>& rule, float& ruled, int64_t batch,
                                               int64_t row, SfLayout layout, uint8_t* scales) {
  const int64_t source = p.shuffle ? shuffled_from(row, p.shuffle) : row;
  const auto* x = static_cast<const scalar_of_t<C.dtype>*>(p.x) + batch * p.batch_stride + source * p.row_stride;
  float encode = p.encode ? p.encode[batch * p.encode_batch + source * p.encode_row] : 1.0f;
  float amax = 0;  // of the row, where it has a scale of its own
  if constexpr (C.dtype != DType::kF8E4M3 && !C.gated) {
    if (p.token_scale) {
      amax = row_magnitude(x, p.k);
      const float most = p.token_most / amax;
      encode = !(amax > 0) ? 1.0f : most < kFltMax ? most : kFltMax;
      p.token_scale[row] = (amax > 0 ? 1.0f / encode : amax) * p.token_out;
    }
  }
  if (!(encode == ruled)) {
    make_block_rule(rule, C.ue8m0 ? encode : encode * (1.0f / 6.0f), C.ue8m0 ? 1.0f : 1.0f / encode);
    ruled = encode;
  }
  quantize_row<C>(p, rule, x, p.codes + batch * p.code_batch_stride + row * p.code_row_stride, layout, scales, encode,
                  amax);
}

/// Scales of the 128 rows of one tile; columns <= kTileColumns.
constexpr int64_t kTileColumns = 512;
template <class Row>
FI_VEC_INLINE void quantize_tile(uint8_t* scales, int64_t columns, Row row) {
  alignas(64) uint8_t kept[128][kTileColumns];
  const int64_t padded = round_up(columns, 4);
  for (int64_t r = 0; r < 128; ++r) {
    row(r, kept[r]);
    memset(kept[r] + columns, 0, static_cast<size_t>(padded - columns));
  }
  for (int64_t c = 0; c < padded; c += 4)
    for (int64_t r = 0; r < 32; ++r)
      for (int64_t i = 0; i < 4; ++i) memcpy(scales + c * 128 + r * 16 + i * 4, kept[r + 32 * i] + c, 4);
}

template <BlockQuantConfig C>
void block_quantize(const BlockQuantParams& p, int64_t task) {
  const int64_t total = p.batches * p.padded_rows, begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < total ? begin + p.rows_per_task : total;
  const int64_t columns = p.padded_k / C.block, padded = sf_padded_columns(p.layout, columns);
  const bool tiles = p.layout == SfLayout::k128x4 && !p.mask && padded <= kTileColumns;
  RowRule<C> rule;
  float ruled = -1;  // the factor of `rule`
  for (int64_t i = begin; i < end; ++i) {
    const int64_t batch = i / p.padded_rows, row = i - batch * p.padded_rows;
    uint8_t* scales = p.scales + batch * p.scale_batch_stride + sf_row_offset(p.layout, row, columns);
    if (tiles && row % 128 == 0 && row + 128 <= p.rows && i + 128 <= end) {
      quantize_tile(scales, columns, [&](int64_t r, uint8_t* line) {
        quantize_source<C>(p, rule, ruled, batch, row + r, SfLayout::kLinear, line);
      });
      i += 127;
    } else if (row >= p.rows) {
      clear_scales(p.layout, scales, 0, padded);
    } else if (p.mask && row >= p.mask[batch]) {
      clear_scales(p.layout, scales, 0, padded);
      memset(p.codes + batch * p.code_batch_stride + row * p.code_row_stride, 0,
             static_cast<size_t>(C.fp8 ? p.padded_k : p.padded_k / 2));
    } else {
      quantize_source<C>(p, rule, ruled, batch, row, p.layout, scales);
    }
  }
}

/// y = code * scale * global: the first product is exact (unless a subnormal), the second rounded.
template <BlockDequantConfig C>
void block_dequantize(const BlockDequantParams& p, int64_t task) {
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  const int64_t blocks = p.k / p.block;
  const Vec global = splat(p.global);
  for (int64_t r = begin; r < end; ++r) {
    const uint8_t* codes = p.codes + r * p.code_stride;
    const bool linear = p.layout == SfLayout::kLinear;
    const uint8_t* scales = p.scales + (linear ? r * p.scale_row_stride : sf_row_offset(p.layout, r, blocks));
    float* y = p.y + r * p.y_stride;
    for (int64_t b = 0; b < blocks; ++b) {
      const uint8_t byte = scales[linear ? b * p.scale_column_stride : sf_column_offset(p.layout, b)];
      e4m3_t small;
      small.bits = byte;
      const Vec scale = splat(C.ue8m0 ? e8m0_to_f32(byte) : static_cast<float>(small));
      for (int64_t i = b * p.block; i < (b + 1) * p.block; i += Vec::kLanes) {
        const Vec code = C.fp8 ? load(reinterpret_cast<const e4m3_t*>(codes) + i) : load_e2m1(codes + i / 2);
        store(y + i, code * scale * global);
      }
    }
  }
}

}  // namespace flashinfer::cpu
