// SPDX-License-Identifier: Apache-2.0
// Block formats (NVFP4, MXFP4, MXFP8) from their definitions, an element at a time, each step in f32 rounded
// once.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/common/scale_layout.h"
#include "flashinfer/ops/common/nvfp4_ref.h"

namespace flashinfer::ref {

struct BlockRule {
  int64_t block;
  bool power;  // ue8m0 scales
  bool fp8;    // e4m3 codes
};

/// Place of scale (r, c) of a matrix with `columns` columns, from the definitions of the 128x4 and 8x4 tiles.
inline int64_t scale_place(SfLayout layout, int64_t r, int64_t c, int64_t columns) {
  const int64_t padded = round_up(columns, 4);
  if (layout == SfLayout::k128x4)
    return (r / 128) * (128 * padded) + (c / 4) * 512 + (r % 32) * 16 + ((r % 128) / 32) * 4 + c % 4;
  if (layout == SfLayout::k8x4) return (r / 8) * (8 * padded) + (c / 4) * 32 + (r % 8) * 4 + c % 4;
  return r * columns + c;
}
/// Row that a shuffle of blocks of 16 or 32 rows brings to row r: out[map[i]] = in[i].
inline int64_t shuffle_source(int64_t r, int64_t block) {
  constexpr int kMap16[] = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
  constexpr int kMap32[] = {0, 8,  16, 24, 1, 9,  17, 25, 2, 10, 18, 26, 3, 11, 19, 27,
                            4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31};
  const int* map = block == 16 ? kMap16 : kMap32;
  return r / block * block + (std::find(map, map + block, r % block) - map);
}

inline void clear(const TensorView& t) {
  for_each_row(t, [&](const Index& row) {
    for (int64_t i = 0; i < t.size(-1); ++i) set(t, row, i, 0);
  });
}
/// Row (index...) of x as f32.
inline std::vector<float> floats_of(const TensorView& x, std::initializer_list<int64_t> index) {
  TensorView row = x;
  for (int64_t i : index) row = row.select(0, i);
  std::vector<float> out(static_cast<size_t>(row.size(0)));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(get(row, static_cast<int64_t>(i)));
  return out;
}
inline float magnitude(const float* x, int64_t n) {
  float most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::isnan(x[i]) || std::isnan(most) ? NAN : std::max(most, std::fabs(x[i]));
  return most;
}
/// The byte (exponent + 127) of the least power of two >= s, by comparisons instead of bits.
inline int power_byte(float s) {
  if (!std::isfinite(s)) return 255;
  if (s <= 0x1p-127f) return 0;
  for (int byte = 1; byte < 254; ++byte)
    if (s <= std::ldexp(1.0, byte - 127)) return byte;
  return 254;
}

/// Value of a ue8m0 byte.
inline double power_value(int byte) { return byte == 255 ? NAN : std::ldexp(1.0, byte - 127); }

/// One row to codes (u8 [k/2] or [k]) and its scales in a matrix at `row`. `half`: values are e4m3 and pass through
/// f16.
inline void quantize_row(const BlockRule& rule, std::vector<float> x, float encode, const TensorView& codes,
                         const TensorView& scales, SfLayout layout, int64_t row, bool half = false,
                         int64_t columns = 0) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const auto k = static_cast<int64_t>(x.size());
  if (!columns) columns = k / rule.block;
  if (half)
    for (float& v : x) v = static_cast<float>(f16_t(v * (6.0f / encode)));
  for (int64_t b = 0; b < k / rule.block; ++b) {
    const float* v = x.data() + b * rule.block;
    const float amax = magnitude(v, rule.block);
    float factor;
    int byte;
    if (rule.power) {
      const float wanted = amax / (rule.fp8 ? 448.0f : 6.0f) * encode;
      byte = rule.fp8 && std::isinf(wanted) ? 254 : power_byte(wanted);  // an infinite e4m3 block saturates
      factor = byte == 0 || byte == 255 ? 0.0f : static_cast<float>(std::ldexp(1.0, 127 - byte)) * encode;
    } else {
      byte = e4m3_saturated(amax * (encode * (1.0f / 6.0f)));
      e4m3_t scale;
      scale.bits = static_cast<uint8_t>(byte);
      factor = byte == 0 || byte == 0x7f ? 0.0f : std::min(1.0f / (static_cast<float>(scale) * (1.0f / encode)), kMax);
    }
    scales.data_as<uint8_t>()[scale_place(layout, row, b, columns)] = static_cast<uint8_t>(byte);
    const bool none = rule.power ? byte == 255 : factor == 0;
    for (int64_t i = 0; i < rule.block; ++i) {
      const int64_t at = b * rule.block + i;
      if (rule.fp8) {
        put(codes, {at}, 0);
        codes.data_as<uint8_t>()[at * codes.stride(0)] = e4m3_saturated(v[i] * factor);
        continue;
      }
      uint8_t& byte_of = codes.data_as<uint8_t>()[at / 2 * codes.stride(0)];
      const int code = none ? 0 : e2m1_code(v[i] * factor);
      byte_of = static_cast<uint8_t>(at % 2 ? (byte_of & 15) | code << 4 : code);
    }
  }
}

}  // namespace flashinfer::ref
