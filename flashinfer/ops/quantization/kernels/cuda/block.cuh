// SPDX-License-Identifier: Apache-2.0
// Rows to NVFP4, MXFP4 and MXFP8 on a GPU: one read, codes and scales written in their layout, both in full sectors. A
// warp takes a unit of 32 scales (kernels/common/scale_units.h). Codes and scales are the CPU's, bit for bit (gated:
// of silu(x) as this GPU computes it).
#pragma once
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/factor.h"
#include "flashinfer/kernels/cuda/rows.h"
#include "flashinfer/ops/activation/kernels/cuda/activation.cuh"
#include "flashinfer/ops/quantization/kernels/cuda/four_over_six.h"
#include "flashinfer/ops/quantization/kernels/cuda_params.h"

namespace flashinfer::cu {

/// Source row of row `to` (kernels/cpu/block.h, shuffled_from).
FI_GLOBAL_FN uint32_t shuffled_row(uint32_t to, int32_t block) {
  if (block == 0) return to;
  const uint32_t size = static_cast<uint32_t>(block), inside = to % size;
  return to - inside + inside % 8 * (size / 8) + inside / 8;
}
FI_GLOBAL_FN int64_t row_offset(uint32_t row, uint32_t inner, const int64_t (&stride)[2]) {
  if (inner <= 1) return row * stride[0];
  return row / inner * stride[0] + row % inner * stride[1];
}

/// Elements of a piece in f32, as they are quantised.
template <BlockQuantCudaConfig C, class T, int N>
FI_GLOBAL_FN void block_values(const BlockQuantCudaParams& p, const Pack<T, N>& x, const Pack<T, N>& with, float encode,
                               float (&v)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    v[i] = to_f32(x[i]);
    if constexpr (C.input == BlockInput::kGated)
      v[i] = to_f32(from_f32<T>(activate<Activation::kSilu>(v[i]) * to_f32(with[i])));
    else if constexpr (C.input == BlockInput::kSmoothed)
      v[i] = to_f32(from_f32<T>(v[i] * to_f32(with[i])));
    else if constexpr (C.dtype == DType::kF8E4M3)
      v[i] = to_f32(from_f32<f16_t>(mul_rn(v[i], 6.0f / encode)));
  }
}

template <BlockQuantCudaConfig C>
FI_GLOBAL_FN void block_quantize(const BlockQuantCudaParams& p) {
  using T = scalar_of_t<C.dtype>;
  using Steps = BlockSteps<C.block, sizeof(T)>;
  constexpr int N = Steps::kElements, kBytes = C.fp8 ? N : N / 2;
  constexpr bool kTwo = C.input == BlockInput::kGated || C.input == BlockInput::kSmoothed;
  constexpr bool kInto = C.input == BlockInput::kInto;
  depend_wait();
  const uint32_t turn = block_x() * (C.threads / 32) + warp();
  if (turn < p.batches * p.units.units) {  // whole warps
    const uint32_t batch = p.batches == 1 ? 0 : turn / p.units.units;
    const ScaleUnit unit = scale_unit(p.units, turn - batch * p.units.units);
    const int64_t wanted = p.mask ? p.mask[batch * p.mask_stride] : p.rows;  // the host has not checked it
    const uint32_t valid = wanted < 0 ? 0 : wanted < p.rows ? static_cast<uint32_t>(wanted) : p.rows;
    const T* const x = static_cast<const T*>(p.x) + batch * p.batch_stride;
    uint8_t* const codes = p.codes + batch * p.code_batch_stride;
    Pack<T, N> piece[Steps::kSteps], with[kTwo ? Steps::kSteps : 1];
    // A lane finds one block, with its divisions, and asks others for those of its pieces. Rows in front of the first
    // one become larger than any.
    ScaleCell own = scale_cell(p.units, unit, lane());
    if constexpr (kInto) own.row -= p.first_row;
    const bool has_data = own.row < valid && own.column < p.blocks;
    const uint32_t own_source = has_data ? shuffled_row(own.row, p.shuffle) : 0, run = kInto ? own.column / p.inner : 0,
                   first = (own.column - (kInto ? run * p.inner : 0)) * C.block;
    const int64_t own_from = kInto ? own.row * p.row_stride[0] + run * p.row_stride[1]
                                   : row_offset(own_source, p.inner, p.row_stride),
                  own_to =
                      own.row * p.code_row_stride + (kInto ? run * p.code_batch_stride : 0) + first / (C.fp8 ? 1 : 2);
    const uint32_t with_data = ballot(has_data), with_codes = ballot(own.row < p.rows && own.column < p.units.columns);
#pragma unroll
    for (int s = 0; s < Steps::kSteps; ++s) {
      const uint32_t block = Steps::block(s);
      const bool some = with_data >> block & 1;
      const int64_t at = shuffle(own_from + first, block) + Steps::element();
      piece[s] = load_block_piece < C.aligned != 0, N > (some, x + at);
      if constexpr (C.input == BlockInput::kGated)
        with[s] = load_block_piece < C.aligned != 0, N > (some, x + p.second + at);
      if constexpr (C.input == BlockInput::kSmoothed)
        with[s] = load_block_piece < C.aligned != 0,
        N > (some, static_cast<const T*>(p.column_scale) + shuffle_bits(first, block) + Steps::element());
    }
    const bool each_row = p.encode.row != 0;
    float encode = each_row ? 1.0f : factor_at(p.encode, batch, 0);
    float decode = C.ue8m0 ? 1.0f : 1.0f / encode;
    LaneScales<Steps> bytes;
#pragma unroll
    for (int s = 0; s < Steps::kSteps; ++s) {
      const uint32_t block = Steps::block(s), source = shuffle_bits(own_source, block);
      const bool data = with_data >> block & 1;
      if (each_row) encode = factor_at(p.encode, batch, source), decode = C.ue8m0 ? 1.0f : 1.0f / encode;
      float v[N];
      block_values<C>(p, piece[s], with[kTwo ? s : 0], encode, v);
      const float most = block_magnitude<Steps::kSteps>(v);
      uint32_t words[ceil_div(kBytes, 4)];
      BlockScale scale;
      if constexpr (C.four_over_six != 0) {
        const float amax = p.row_most ? p.row_most[source] : 0.0f;
        scale = four_over_six_codes<C.four_over_six>({encode, decode, amax, amax > 0 ? p.token_most : 0.0f}, v, most,
                                                     words[0]);
      } else {
        scale = block_scale < C.ue8m0 != 0, C.fp8 != 0 > (most, C.ue8m0 ? encode : mul_rn(encode, 1.0f / 6.0f), decode);
        block_codes<C.fp8 != 0>(v, scale, words);
      }
      if (!data) {
#pragma unroll
        for (uint32_t& w : words) w = 0;
      }
      uint8_t* const to = codes + shuffle(own_to, block) + Steps::element() / (C.fp8 ? 1 : 2);
      if (with_codes >> block & 1) store_codes<C.aligned != 0, kBytes>(to, words);
      bytes.set(s, data ? scale.byte : 0u);
    }
    const uint32_t byte = bytes.of_lane();
    bool stored =
        p.units.layout != SfLayout::kLinear || unit.index * kScaleUnit + lane() < p.units.rows * p.units.columns;
    if constexpr (kInto) stored = has_data;
    if (stored)
      p.scales[batch * p.scale_batch_stride + unit.index * static_cast<int64_t>(kScaleUnit) + lane()] =
          static_cast<uint8_t>(byte);
  }
  depend_launch();
}

/// A block a row: its largest magnitude, and the factor and the scale that follow from it.
template <RowFactorConfig C>
FI_GLOBAL_FN void row_factors(const RowFactorParams& p) {
  using T = scalar_of_t<C.dtype>;
  constexpr int N = kPiece<T>;
  depend_wait();
  const uint32_t row = block_x();
  const T* const x = static_cast<const T*>(p.x) + row_offset(row, p.inner, p.row_stride);
  float most = 0.0f;
  for (int64_t at = static_cast<int64_t>(thread_x()) * N; at < p.k; at += C.threads * N) {
    float v[N];
    load_piece<C.aligned != 0, N>(x, at, p.k, v);
#pragma unroll
    for (int i = 0; i < N; ++i) most = max_magnitude(most, v[i]);
  }
  struct Most {
    FI_GLOBAL_FN float operator()(float a, float b) const { return max_magnitude(a, b); }
  };
  most = block_reduce<C.threads>(most, Most{}, reinterpret_cast<float*>(shared()));
  if (thread_x() == 0) {
    const float ratio = p.token_most / most, encode = !(most > 0) ? 1.0f : ratio < kFltMax ? ratio : kFltMax;
    p.most[row] = most;
    p.encode[row] = encode;
    p.scale[row] = mul_rn(most > 0 ? 1.0f / encode : most, p.out ? *p.out : 1.0f);
  }
  depend_launch();
}

}  // namespace flashinfer::cu
