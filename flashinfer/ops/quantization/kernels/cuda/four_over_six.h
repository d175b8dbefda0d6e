// SPDX-License-Identifier: Apache-2.0
// Blocks of 16 to NVFP4 with the better of two scales (block/four_over_six.h has the rule); two lanes have a block, and
// its errors are added in the order of its elements, as on the CPU.
#pragma once
#include "flashinfer/kernels/cuda/block_quantize.h"

namespace flashinfer::cu {

/// `denominator` is 0 without a scale for each row.
struct FourOverSixRow {
  float encode, decode, amax, denominator;
};

template <unsigned char kRecipe>
FI_GLOBAL_FN float four_over_six_error(const FourOverSixRow& row, const float (&x)[8], const BlockScale& scale,
                                       uint32_t codes) {
  const float s = e4m3_value(scale.byte);
  float error[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float value = mul_rn(e2m1_value(codes >> (4 * i)), s), wanted = x[i];
    if constexpr ((kRecipe & 4) != 0)
      wanted = mul_rn(wanted, row.encode);
    else if (row.denominator != 0)
      value = mul_rn(value, row.amax) / row.denominator;
    else
      value = mul_rn(value, row.decode);
    const float d = add_rn(value, -wanted);
    error[i] = (kRecipe & 2) != 0 ? mul_rn(d, d) : fabsf(d);
  }
  float sum = 0.0f;
#pragma unroll
  for (float e : error) sum = add_rn(sum, e);
  const bool second = (lane() & 1u) != 0;
  const float first_half = shuffle_xor(sum, 1);
  if (second) {
    sum = first_half;
#pragma unroll
    for (float e : error) sum = add_rn(sum, e);
  }
  const float whole = shuffle_xor(sum, 1);
  return second ? sum : whole;
}

/// Codes of this lane's half of the block.
template <unsigned char kRecipe>
FI_GLOBAL_FN BlockScale four_over_six_codes(const FourOverSixRow& row, const float (&x)[8], float most,
                                            uint32_t& codes) {
  const float wanted = mul_rn(most / 6.0f, row.encode);
  const BlockScale six = e4m3_scale(wanted, row.decode), four = e4m3_scale(mul_rn(wanted, 1.5f), row.decode);
  uint32_t codes6, codes4;
  block_codes<false>(x, six, &codes6);
  block_codes<false>(x, four, &codes4);
  const float error6 = four_over_six_error<kRecipe>(row, x, six, codes6),
              error4 = four_over_six_error<kRecipe>(row, x, four, codes4);
  codes = error4 < error6 ? codes4 : codes6;
  return error4 < error6 ? four : six;
}

}  // namespace flashinfer::cu
