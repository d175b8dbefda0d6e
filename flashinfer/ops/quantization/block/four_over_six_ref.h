// SPDX-License-Identifier: Apache-2.0
// NVFP4 with the recipe "4 over 6" from its definition (block/four_over_six.h), an element at a time, each step in f32
// rounded once.
#pragma once
#include "flashinfer/ops/quantization/block/four_over_six.h"
#include "flashinfer/ops/quantization/block/ref.h"

namespace flashinfer::ref {

/// A block of 16 under one of the two scales.
struct FourOverSixTry {
  uint8_t scale = 0, code[16] = {};
  float error = 0;
};
/// `amax`: the largest magnitude of the row where it has a scale of its own, else 0.
inline FourOverSixTry try_scale(const ops::FourOverSix& recipe, const float* x, float wanted, float encode,
                                float amax) {
  FourOverSixTry t;
  t.scale = e4m3_saturated(wanted);
  e4m3_t small;
  small.bits = t.scale;
  const float scale = static_cast<float>(small), decode = 1.0f / encode;
  const float factor = std::min(1.0f / (scale * decode), std::numeric_limits<float>::max());
  for (int i = 0; i < 16; ++i) {
    if (t.scale != 0 && t.scale != 0x7f) t.code[i] = static_cast<uint8_t>(e2m1_code(x[i] * factor));
    float value = static_cast<float>(e2m1_value(t.code[i])) * scale, given = x[i];
    if (recipe.fast)
      given = given * encode;
    else if (amax > 0)
      value = value * amax / (6.0f * recipe.e4m3_max());
    else
      value = value * decode;
    const float d = value - given;
    t.error += recipe.squares ? d * d : std::fabs(d);
  }
  return t;
}
/// As quantize_row of ref.h.
inline void quantize_row(const ops::FourOverSix& recipe, const std::vector<float>& x, float encode, float amax,
                         const TensorView& codes, const TensorView& scales, SfLayout layout, int64_t row) {
  const auto columns = static_cast<int64_t>(x.size()) / 16;
  for (int64_t b = 0; b < columns; ++b) {
    const float* v = x.data() + b * 16;
    const float six = magnitude(v, 16) / 6.0f * encode;
    FourOverSixTry best = try_scale(recipe, v, six, encode, amax);
    const FourOverSixTry four = try_scale(recipe, v, six * 1.5f, encode, amax);
    if (four.error < best.error) best = four;
    scales.data_as<uint8_t>()[scale_place(layout, row, b, columns)] = best.scale;
    for (int64_t i = 0; i < 8; ++i)
      codes.data_as<uint8_t>()[(b * 8 + i) * codes.stride(0)] =
          static_cast<uint8_t>(best.code[2 * i] | best.code[2 * i + 1] << 4);
  }
}

}  // namespace flashinfer::ref
