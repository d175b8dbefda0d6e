// SPDX-License-Identifier: Apache-2.0
// NVFP4 from its definition, one element at a time: for the references of the operators that quantise, and for tests of
// everything that reads such caches.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "flashinfer/ops/common/paged_kv.h"
#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ref {

/// Value of one of the sixteen codes.
inline double e2m1_value(int code) {
  constexpr double kGrid[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -kGrid[code & 7] : kGrid[code & 7];
}
/// Nearest code, ties to the even one, +-6 beyond; by the seven thresholds between neighbours.
inline int e2m1_code(double x) {
  const double a = std::fabs(x);
  const int code = (a > 0.25) + (a >= 0.75) + (a > 1.25) + (a >= 1.75) + (a > 2.5) + (a >= 3.5) + (a > 5);
  return code | (std::signbit(x) ? 8 : 0);
}
inline uint8_t e4m3_saturated(float x) {
  if (std::isnan(x)) return 0x7f;
  return e4m3_t(std::clamp(x, -448.0f, 448.0f)).bits;
}

/// Codes and scale of one block of 16 as kernels/cpu/nvfp4.h defines them: every step in f32, rounded once.
struct Nvfp4Block {
  uint8_t scale = 0, data[8] = {};
};
inline Nvfp4Block quantize_nvfp4_block(const float* x, float global) {
  constexpr float kMax = std::numeric_limits<float>::max();
  Nvfp4Block out;
  float amax = 0;
  for (int i = 0; i < 16; ++i) amax = std::isnan(x[i]) || std::isnan(amax) ? NAN : std::max(amax, std::fabs(x[i]));
  const float six = 6.0f * global, to_scale = std::min(1.0f / six, kMax);
  out.scale = e4m3_saturated(amax * to_scale);
  if (out.scale == 0 || out.scale == 0x7f) return out;
  e4m3_t scale;
  scale.bits = out.scale;
  const float step = static_cast<float>(scale) * global, factor = std::min(1.0f / step, kMax);
  for (int i = 0; i < 16; ++i) {
    const float y = x[i] * factor;
    out.data[i / 2] = static_cast<uint8_t>(out.data[i / 2] | e2m1_code(y) << (i % 2 ? 4 : 0));
  }
  return out;
}

/// Element d of a row of packed codes with its linear e4m3 scales: e2m1 * scale * global, in double.
inline double nvfp4_element(const uint8_t* data, const uint8_t* scale, int64_t d, double global) {
  e4m3_t s;
  s.bits = scale[d / 16];
  return e2m1_value(d % 2 ? data[d / 2] >> 4 : data[d / 2] & 15) * static_cast<double>(static_cast<float>(s)) * global;
}

/// A paged NVFP4 cache's K or V plane (data bytes and e4m3 scales of the same pages) as f32 [pages, page_size, heads,
/// dim]: what the attention over such a cache must agree with.
inline Tensor dequantize_nvfp4_plane(const ops::KvPlane& data, const ops::KvPlane& scale, double global) {
  Tensor out = Tensor::empty({data.pages, data.page_size, data.heads, data.dim * 2}, DType::kF32);
  float* to = out.data_as<float>();
  for (int64_t p = 0; p < data.pages; ++p)
    for (int64_t n = 0; n < data.page_size; ++n)
      for (int64_t h = 0; h < data.heads; ++h) {
        const auto* q =
            static_cast<const uint8_t*>(data.data) + p * data.stride_page + n * data.stride_n + h * data.stride_h;
        const auto* s =
            static_cast<const uint8_t*>(scale.data) + p * scale.stride_page + n * scale.stride_n + h * scale.stride_h;
        for (int64_t d = 0; d < data.dim * 2; ++d) *to++ = static_cast<float>(nvfp4_element(q, s, d, global));
      }
  return out;
}

}  // namespace flashinfer::ref
