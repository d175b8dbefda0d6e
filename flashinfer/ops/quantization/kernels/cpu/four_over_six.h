// SPDX-License-Identifier: Apache-2.0
// Blocks of 16 to NVFP4 with the better of two scales (block/four_over_six.h has the rule).
#pragma once
#include "flashinfer/kernels/cpu/block_quantize.h"

namespace flashinfer::cpu {

/// What the blocks of a row share. `denominator` is 0 without a scale for each row.
struct FourOverSixRow {
  float encode, decode, amax, denominator;
};

/// Codes of a block under the scale `byte`, whose factor of the elements is `factor`; errors[16] of its elements.
template <unsigned char kRecipe, class T>
FI_VEC_INLINE void four_over_six_candidate(const FourOverSixRow& row, const T* x, uint8_t byte, float factor,
                                           uint8_t* codes, float* errors) {
  if (has_no_codes<BlockFormat{}>(byte))
    memset(codes, 0, 8);
  else
    store_e2m1_16(codes, [&](int64_t i) { return load(x + i) * splat(factor); });
  e4m3_t small;
  small.bits = byte;
  const Vec scale = splat(static_cast<float>(small));
  for (int64_t i = 0; i < 16; i += Vec::kLanes) {
    Vec value = load_e2m1(codes + i / 2) * scale, wanted = load(x + i);
    if constexpr ((kRecipe & 4) != 0)
      wanted = wanted * splat(row.encode);
    else if (row.denominator != 0)
      value = value * splat(row.amax) / splat(row.denominator);
    else
      value = value * splat(row.decode);
    const Vec d = value - wanted;
    store(errors + i, (kRecipe & 2) != 0 ? d * d : abs(d));
  }
}

/// As quantize_blocks; n <= kBlockChunk.
template <unsigned char kRecipe, class T>
FI_VEC_INLINE void quantize_blocks_4over6(const FourOverSixRow& row, const T* x, uint8_t* codes, uint8_t* scale,
                                          int64_t n) {
  constexpr BlockFormat kFormat{};
  T amax[kBlockChunk];
  uint8_t four[kBlockChunk];
  block_magnitudes<16>(x, amax, n);
  for (int64_t i = n; i % Vec::kLanes; ++i) memset(amax + i, 0, sizeof(T));
  for (int64_t i = 0; i < n; i += Vec::kLanes) {
    const Vec s = load(amax + i) / splat(6.0f) * splat(row.encode);
    store_saturated(reinterpret_cast<e4m3_t*>(scale) + i, s);
    store_saturated(reinterpret_cast<e4m3_t*>(four) + i, s * splat(1.5f));
  }
  float factor6[kBlockChunk], factor4[kBlockChunk];
  block_factors<kFormat>(scale, n, 1.0f, row.decode, factor6);
  block_factors<kFormat>(four, n, 1.0f, row.decode, factor4);
  for (int64_t k = 0; k < n; ++k) {
    float error6[16], error4[16], sum6 = 0, sum4 = 0;
    uint8_t codes4[8];
    four_over_six_candidate<kRecipe>(row, x + k * 16, scale[k], factor6[k], codes + k * 8, error6);
    four_over_six_candidate<kRecipe>(row, x + k * 16, four[k], factor4[k], codes4, error4);
    for (int i = 0; i < 16; ++i) sum6 += error6[i], sum4 += error4[i];
    if (sum4 < sum6) {
      scale[k] = four[k];
      memcpy(codes + k * 8, codes4, 8);
    }
  }
}

}  // namespace flashinfer::cpu
