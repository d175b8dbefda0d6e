// SPDX-License-Identifier: Apache-2.0
// Block formats to f32 rows on a GPU: code * scale * global, the first product exact, the second rounded. A warp takes
// a unit of 32 scales; in each step a lane writes 16 bytes, four elements of one block.
#pragma once
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/factor.h"
#include "flashinfer/ops/quantization/kernels/cuda_params.h"

namespace flashinfer::cu {

template <BlockDequantCudaConfig C>
FI_GLOBAL_FN float dequantize_scale(const BlockDequantCudaParams& p, const ScaleUnit& unit) {
  const ScaleCell c = scale_cell(p.units, unit, lane());
  if (c.row >= p.units.rows || c.column >= p.units.columns) return 0.0f;
  const int64_t at = p.units.layout == SfLayout::kLinear ? c.row * p.scale_row_stride + c.column * p.scale_column_stride
                                                         : unit.index * static_cast<int64_t>(kScaleUnit) + lane();
  return C.ue8m0 ? e8m0_value(p.scales[at]) : e4m3_value(p.scales[at]);
}
/// Four codes of row bytes, from element `at` on.
template <BlockDequantCudaConfig C>
FI_GLOBAL_FN Pack<float, 4> dequantize_codes(const uint8_t* row, int64_t at) {
  Pack<float, 4> y;
  if constexpr (C.fp8 != 0) {
    Pack<uint8_t, 4> codes;
    if constexpr (C.aligned != 0) {
      codes = load<4, Hint::kOnce>(row + at);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) codes[i] = row[at + i];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) y[i] = e4m3_value(codes[i]);
  } else {
    uint32_t codes;
    if constexpr (C.aligned != 0)
      codes = *reinterpret_cast<const uint16_t*>(row + at / 2);
    else
      codes = static_cast<uint32_t>(row[at / 2] | row[at / 2 + 1] << 8);
#pragma unroll
    for (int i = 0; i < 4; ++i) y[i] = e2m1_value(codes >> (4 * i));
  }
  return y;
}

template <BlockDequantCudaConfig C>
FI_GLOBAL_FN void block_dequantize(const BlockDequantCudaParams& p) {
  depend_wait();
  const uint32_t turn = block_x() * (C.threads / 32) + warp();
  if (turn < p.units.units) {  // whole warps
    const ScaleUnit unit = scale_unit(p.units, turn);
    const float own = dequantize_scale<C>(p, unit), global = factor_at(p.global, 0, 0);
    const uint32_t lanes = p.block / 4;  // of a block: a multiple of 4, the same for all lanes
    for (uint32_t i = lane(); i < kScaleUnit * lanes; i += 32) {
      const uint32_t b = i / lanes;
      const ScaleCell c = scale_cell(p.units, unit, b);
      const float scale = shuffle(own, b);
      if (c.row >= p.units.rows || c.column >= p.units.columns) continue;
      const int64_t at = static_cast<int64_t>(c.column) * p.block + (i - b * lanes) * 4;
      Pack<float, 4> y = dequantize_codes<C>(p.codes + c.row * p.code_stride, at);
#pragma unroll
      for (int k = 0; k < 4; ++k) y[k] = mul_rn(mul_rn(y[k], scale), global);
      float* const to = p.y + c.row * p.y_stride + at;
      if constexpr (C.aligned != 0) {
        store(to, y);
      } else {
#pragma unroll
        for (int k = 0; k < 4; ++k) to[k] = y[k];
      }
    }
  }
  depend_launch();
}

}  // namespace flashinfer::cu
