// SPDX-License-Identifier: Apache-2.0
// Operands of the matrix product that carry scale factors of a byte (GemmSf): the elements that pack_lines puts into blocks and
// panels are the scaled ones, exact in bf16.
#pragma once
#include "flashinfer/kernels/cpu/gemm_pack.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/gemm/params.h"

namespace flashinfer::cpu {

template <GemmFormat F>
struct gemm_scalar { using type = uint8_t; };
template <>
struct gemm_scalar<GemmFormat::kBF16> { using type = bf16_t; };
template <>
struct gemm_scalar<GemmFormat::kE4M3> { using type = e4m3_t; };
template <>
struct gemm_scalar<GemmFormat::kE5M2> { using type = e5m2_t; };
/// What strides count: bytes for FP4, which has two elements in one, and for GGUF.
template <GemmFormat F>
using gemm_scalar_t = typename gemm_scalar<F>::type;

FI_VEC_INLINE float scale_of_byte(uint8_t byte, bool e8m0) {
  if (e8m0) return e8m0_to_f32(byte);
  const uint32_t magnitude = byte & 127u, sign = byte & 128u;
  const uint32_t u = (detail::kE4m3Bytes.high[magnitude] << 8 | detail::kE4m3Bytes.low[magnitude]) << 16 | sign << 24;
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

/// Lines with contiguous k, a multiple of the block of the scale factors; line i has row `first + i` of them.
template <GemmFormat F>
struct ScaledLines {
  const gemm_scalar_t<F>* p;
  int64_t line;
  GemmSf sf;
  const uint8_t* scales;  // of the batch
  int64_t first;

  static FI_VEC_INLINE Vec load_from(const gemm_scalar_t<F>* from, int64_t k) {
    if constexpr (F == GemmFormat::kFp4)
      return load_e2m1(from + k / 2);
    else
      return load(from + k);
  }
  FI_VEC_INLINE void gather(int64_t i, int64_t k, int64_t k_end, bf16_t* to) const {
    constexpr int64_t n = 2 * kPackPairs, L = Vec::kLanes;
    const gemm_scalar_t<F>* const from = p + i * line;
    const uint8_t* const row = scales + sf_row_offset(sf.layout, first + i, sf.columns);
    const int64_t have = k_end - k < n ? k_end - k : n;  // a multiple of 16
    int64_t j = 0;
    for (; j < have; j += 16) {
      const float scale = scale_of_byte(row[sf_column_offset(sf.layout, (k + j) / sf.block)], sf.e8m0);
#pragma GCC unroll 4
      for (int64_t v = 0; v < 16; v += L) write_tail(to + j + v, load_from(from, k + j + v) * splat(scale), L);
    }
    for (; j < n; ++j) to[j].bits = 0;
  }
  template <int>
  FI_VEC_INLINE bool pack(int64_t, int64_t, int64_t, int, bf16_t*) const {
    return false;
  }
};

/// Columns of a weight in the layout [k / 128, n, 128] of prepare_low_latency_gemm_weights, k a multiple of 128; rows of each 32 are
/// dealt out in four turns: column c lies at row 8 * (c % 4) + c % 32 / 4 of its 32.
struct LowLatencyLines {
  const e4m3_t* p;
  int64_t k128, first;

  FI_VEC_INLINE void gather(int64_t i, int64_t k, int64_t, bf16_t* to) const {
    const int64_t c = first + i, row = c / 32 * 32 + c % 4 * 8 + c % 32 / 4;
    widen_row(p + k / 128 * k128 + row * 128 + k % 128, 2 * kPackPairs, to);
  }
  template <int>
  FI_VEC_INLINE bool pack(int64_t, int64_t, int64_t, int, bf16_t*) const {
    return false;
  }
};

}  // namespace flashinfer::cpu
