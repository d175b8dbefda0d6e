// SPDX-License-Identifier: Apache-2.0
// Norms with quantised results on a GPU: one read of the row, one write of the codes (norm.cuh). Scales of a row of
// block formats are written by the row's group: a sector of 128x4 tiles holds eight rows, whose writes L2 joins.
#pragma once
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/factor.h"
#include "flashinfer/ops/norm/kernels/cuda/norm.cuh"
#include "flashinfer/ops/norm/kernels/quant_cuda_params.h"

namespace flashinfer::cu {

FI_GLOBAL_FN float silu_of(float x) { return x / (1.0f + exp_fast(-x)); }

/// Codes of N values at y + at; those from `d` on are not written.
template <class Q, bool kAligned, int N>
FI_GLOBAL_FN void store_piece8(void* y, int64_t at, int64_t d, const float (&v)[N]) {
  uint32_t words[N / 4];
  narrow<Q>(v, words);
  uint8_t* const to = static_cast<uint8_t*>(y) + at;
  if constexpr (kAligned) {
    store_codes<true, N>(to, words);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      if (at + i < d) to[i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
  }
}

/// 8-bit floats, or `dtype` after silu.
template <NormQuantCudaConfig C>
FI_GLOBAL_FN void rmsnorm_quant(const NormQuantCudaParams& q) {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  using Y = scalar_of_t<C.out>;
  constexpr int N = kPiece<T>;
  depend_wait();
  const NormRow row = norm_row<C.group, C.threads>(q.norm);
  Y* const y = static_cast<Y*>(q.norm.out) + row.out;
  const float inverse = 1.0f / factor_at(q.scale, 0, 0);
  rms_pieces<C, false>(q.norm, row, [&](int64_t at, float(&v)[N], const RawPiece<W, N>& g, float scale) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      v[i] = mul_rn(mul_rn(v[i], scale), g[i]);
      v[i] = C.silu ? silu_of(v[i]) : mul_rn(v[i], inverse);
    }
    if constexpr (C.out == C.dtype)
      store_piece<C.aligned != 0, N>(y, at, q.norm.d, v);
    else
      store_piece8<Y, C.aligned != 0>(y, at, q.norm.d, v);
  });
  depend_launch();
}

/// Element i of a layernorm is rounded to T, as layernorm's result would be, before the division.
template <NormQuantCudaConfig C>
FI_GLOBAL_FN void layernorm_quant(const NormQuantCudaParams& q) {
  using T = scalar_of_t<C.dtype>;
  using Y = scalar_of_t<C.out>;
  constexpr int N = kPiece<T>;
  depend_wait();
  const NormRow row = norm_row<C.group, C.threads>(q.norm);
  Y* const y = static_cast<Y*>(q.norm.out) + row.out;
  const Divisor d = divisor_of(factor_at(q.scale, 0, 0));
  layer_pieces<C>(q.norm, row, [&](int64_t at, float(&v)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = divide(to_f32(from_f32<T>(v[i])), d);
    store_piece8<Y, C.aligned != 0>(y, at, q.norm.d, v);
  });
  depend_launch();
}

/// 128 columns share a scale: rounded to `normed`, from there to e4m3. Their pieces are in neighbouring lanes.
template <NormQuantCudaConfig C>
FI_GLOBAL_FN void rmsnorm_fp8_blocks(const NormQuantCudaParams& q) {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  constexpr int N = kPiece<T>, kLanes = 128 / N;
  depend_wait();
  const NormRow row = norm_row<C.group, C.threads>(q.norm);
  const int64_t r = static_cast<int64_t>(block_x()) * (C.threads / C.group) + thread_x() / C.group;
  T* const normed = static_cast<T*>(q.normed) + r * q.normed_stride[0];
  e4m3_t* const y = static_cast<e4m3_t*>(q.norm.out) + row.out;
  rms_pieces<C, true>(q.norm, row, [&](int64_t at, float(&v)[N], const RawPiece<W, N>& g, float scale) {
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = to_f32(from_f32<T>(mul_rn(mul_rn(v[i], scale), g[i])));
    const float largest = block_magnitude<kLanes>(v), most = largest < 1e-4f ? 1e-4f : largest;
    if (!row.in_range || at >= q.norm.d) return;
    store_piece<C.aligned != 0, N>(normed, at, q.norm.d, v);
    if (at % 128 == 0) q.block_scale[at / 128 * q.block_scale_stride + r] = most / 448.0f;
    const float factor = 448.0f / most;
#pragma unroll
    for (int i = 0; i < N; ++i) v[i] = mul_rn(v[i], factor);
    store_piece8<e4m3_t, C.aligned != 0>(y, at, q.norm.d, v);
  });
  depend_launch();
}

/// e2m1 codes with block scales; the row is not rounded between f32 and its codes.
template <NormQuantCudaConfig C>
FI_GLOBAL_FN void rmsnorm_fp4(const NormQuantCudaParams& q) {
  using T = scalar_of_t<C.dtype>;
  using W = scalar_of_t<C.weight>;
  constexpr int N = kPiece<T>, kLanes = C.block / N;
  const NormParams& p = q.norm;
  depend_wait();
  const NormRow row = norm_row<C.group, C.threads>(p);
  const int64_t r = static_cast<int64_t>(block_x()) * (C.threads / C.group) + thread_x() / C.group;
  const int64_t columns = p.d / C.block, padded = sf_padded_columns(q.layout, columns);
  uint8_t* const codes = static_cast<uint8_t*>(p.out) + row.out;
  uint8_t* const scales = q.scales + sf_row_offset(q.layout, r, columns);
  const float encode = factor_at(q.scale, 0, 0), a = C.ue8m0 ? encode : mul_rn(encode, 1.0f / 6.0f),
              b = C.ue8m0 ? 1.0f : 1.0f / encode;
  rms_pieces<C, true>(p, row, [&](int64_t at, float(&v)[N], const RawPiece<W, N>& g, float scale) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      v[i] = mul_rn(mul_rn(v[i], scale), g[i]);
      if constexpr (C.silu != 0) v[i] = silu_of(v[i]);
    }
    const BlockScale s = block_scale < C.ue8m0 != 0, false > (block_magnitude<kLanes>(v), a, b);
    if (!row.in_range || at >= p.d) return;
    if (q.normed)
      store_piece<C.aligned != 0, N>(static_cast<T*>(q.normed) + row_at(r, p.inner, q.normed_stride), at, p.d, v);
    uint32_t words[1];
    block_codes<false>(v, s, words);
    store_codes<C.aligned != 0, N / 2>(codes + at / 2, words);
    if (at % C.block == 0) {
      const int64_t column = at / C.block;
      scales[sf_column_offset(q.layout, column)] = static_cast<uint8_t>(s.byte);
      if (q.linear_scales) q.linear_scales[r * columns + column] = static_cast<uint8_t>(s.byte);
    }
  });
  // The padding: all columns of rows behind the last one, else the columns behind the last one.
  if (r < q.padded_rows)
    for (int64_t c = (row.in_range ? columns : 0) + row.rank; c < padded; c += C.group)
      scales[sf_column_offset(q.layout, c)] = 0;
  depend_launch();
}

}  // namespace flashinfer::cu
