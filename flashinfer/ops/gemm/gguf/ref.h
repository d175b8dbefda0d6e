// SPDX-License-Identifier: Apache-2.0
// Reference of GGUF blocks: one element at a time, in double, from the definition of each format.
#pragma once
#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"

namespace flashinfer::ref {

struct GgufElement {
  int quant;
  double scale, minimum;
  double value() const { return scale * quant + minimum; }
};

inline double half_of(const uint8_t* p) {
  f16_t h;
  h.bits = static_cast<uint16_t>(p[0] | p[1] << 8);
  return static_cast<float>(h);
}

/// Element k of a row of blocks.
inline GgufElement gguf_at(GemmFormat format, const uint8_t* row, int64_t k) {
  const int64_t size = format == GemmFormat::kQ4_K || format == GemmFormat::kQ6_K ? 256 : 32;
  const int e = static_cast<int>(k % size), i = e % 16;
  const int64_t block = k / size;
  switch (format) {
    case GemmFormat::kQ4_0: {
      const uint8_t* p = row + block * 18;
      return {(e < 16 ? p[2 + i] % 16 : p[2 + i] / 16) - 8, half_of(p), 0};
    }
    case GemmFormat::kQ4_1: {
      const uint8_t* p = row + block * 20;
      return {e < 16 ? p[4 + i] % 16 : p[4 + i] / 16, half_of(p), half_of(p + 2)};
    }
    case GemmFormat::kQ8_0: {
      const uint8_t* p = row + block * 34;
      return {p[2 + e] < 128 ? p[2 + e] : p[2 + e] - 256, half_of(p), 0};
    }
    case GemmFormat::kQ4_K: {
      const uint8_t *p = row + block * 144, *packed = p + 4;
      const int s = e / 32;
      int scale = packed[s % 4] % 64, minimum = packed[4 + s % 4] % 64;
      if (s >= 4) {
        scale = packed[8 + s % 4] % 16 + packed[s % 4] / 64 * 16;
        minimum = packed[8 + s % 4] / 16 + packed[4 + s % 4] / 64 * 16;
      }
      const int byte = p[16 + e / 64 * 32 + e % 32];
      return {e / 32 % 2 ? byte / 16 : byte % 16, half_of(p) * scale, -half_of(p + 2) * minimum};
    }
    default: {  // Q6_K
      const uint8_t* p = row + block * 210;
      const int half = e / 128, quarter = e % 128 / 32, at = e % 32;
      const int low = p[64 * half + 32 * (quarter % 2) + at], high = p[128 + 32 * half + at];
      const int q = (quarter < 2 ? low % 16 : low / 16) + (high >> (2 * quarter)) % 4 * 16 - 32;
      const int scale = p[192 + e / 16];
      return {q, half_of(p + 208) * (scale < 128 ? scale : scale - 256), 0};
    }
  }
}

/// Element (n, k) of a packed weight, from the places that gguf_layout.h gives.
inline GgufElement gguf_panel_at(GemmFormat format, const TensorView& b, int64_t depth, int64_t n, int64_t k) {
  const uint8_t* panel = b.data_as<uint8_t>() + n / 16 * b.stride(0) + kPanelLine;
  const int64_t block = k / 32, pair = k % 32 / 2, word = n % 16 * 2 + k % 2, blocks = depth / 32,
                quants = gguf_quant_bytes(format);
  const uint8_t *q = panel + block * quants, *scales = panel + blocks * quants + (block * 16 + n % 16) * 2;
  GgufElement out{0, half_of(scales), format == GemmFormat::kQ4_1 ? half_of(scales + blocks * 32) : 0.0};
  if (format == GemmFormat::kQ8_0) {
    const int byte = q[pair / 2 * 64 + word / 8 * 16 + pair % 2 * 8 + word % 8];
    out.quant = byte < 128 ? byte : byte - 256;
  } else {
    const int value = q[pair / 4 * 64 + word * 2] | q[pair / 4 * 64 + word * 2 + 1] << 8;
    out.quant = (value >> (pair % 4 * 4)) % 16 - (format == GemmFormat::kQ4_0 ? 8 : 0);
  }
  return out;
}

/// Row i of a in 8-bit blocks of 32: largest magnitude / 127 times an integer, ties to even.
inline std::vector<double> quantized_row(const TensorView& a, int64_t i) {
  std::vector<double> out(static_cast<size_t>(a.size(1)));
  for (size_t block = 0; block < out.size(); block += 32) {
    float largest = 0;
    bool finite = true;
    for (size_t j = block; j < block + 32; ++j) {
      const auto x = static_cast<float>(at(a, {i, static_cast<int64_t>(j)}));
      finite = finite && std::isfinite(x);
      largest = std::max(largest, std::fabs(x));
    }
    for (size_t j = block; j < block + 32; ++j) {
      const auto x = static_cast<float>(at(a, {i, static_cast<int64_t>(j)}));
      if (!finite)
        out[j] = std::nan("");
      else
        out[j] =
            largest < 1e-36f ? 0.0 : static_cast<double>(largest / 127.0f) * std::nearbyint(x * (127.0f / largest));
    }
  }
  return out;
}

}  // namespace flashinfer::ref
