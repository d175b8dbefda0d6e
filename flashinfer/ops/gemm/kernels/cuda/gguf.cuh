// SPDX-License-Identifier: Apache-2.0
// GGUF blocks on a GPU: quants as they are, exact in bf16 and f16, and the scale and minimum of each block of k
// (gguf_layout.h has the formats). All blocks begin at even bytes; lines of odd length are read byte by byte.
#pragma once
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"

namespace flashinfer::cu {

/// Words that hold what 16 elements are made of; Q6_K: four of low and four of high bits, then where both are.
constexpr int gguf_words(GemmFormat f) { return f == GemmFormat::kQ6_K ? 9 : f == GemmFormat::kQ8_0 ? 4 : 5; }

template <bool kEven>
FI_GLOBAL_FN uint32_t gguf_half(const uint8_t* p) {
  if constexpr (kEven)
    return *reinterpret_cast<const uint16_t*>(p);
  else
    return static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8;
}
template <bool kEven>
FI_GLOBAL_FN void gguf_bytes(bool some, const uint8_t* p, uint32_t* to) {
#pragma unroll
  for (int w = 0; w < 4; ++w) to[w] = some ? gguf_half<kEven>(p + 4 * w) | gguf_half<kEven>(p + 4 * w + 2) << 16 : 0u;
}

/// The 16 elements from k on, a multiple of 16, of a line.
template <GemmFormat F, bool kEven, int kWords>
FI_GLOBAL_FN void gguf_load(bool some, const char* line, int32_t k, uint32_t (&to)[kWords]) {
  const auto* const row = reinterpret_cast<const uint8_t*>(line);
  if constexpr (F == GemmFormat::kQ8_0) {
    gguf_bytes<kEven>(some, row + k / 32 * 34 + 2 + k % 32, to);
  } else if constexpr (F == GemmFormat::kQ4_0 || F == GemmFormat::kQ4_1) {
    constexpr int kBytes = F == GemmFormat::kQ4_0 ? 18 : 20;
    gguf_bytes<kEven>(some, row + k / 32 * kBytes + kBytes - 16, to);
    to[4] = k % 32 / 16 * 4;
  } else if constexpr (F == GemmFormat::kQ4_K) {
    const int32_t e = k % 256;
    gguf_bytes<kEven>(some, row + k / 256 * 144 + 16 + e / 64 * 32 + e % 32, to);
    to[4] = e / 32 % 2 * 4;
  } else {
    const int32_t e = k % 256, half = e / 128, quarter = e % 128 / 32;
    const uint8_t* const block = row + k / 256 * 210;
    gguf_bytes<kEven>(some, block + 64 * half + quarter % 2 * 32 + e % 32, to);
    gguf_bytes<kEven>(some, block + 128 + 32 * half + e % 32, to + 4);
    to[8] = static_cast<uint32_t>(quarter);
  }
}
/// The numbers that the scales multiply.
template <GemmFormat F, int kWords>
FI_GLOBAL_FN void gguf_quants(const uint32_t (&raw)[kWords], float (&x)[16]) {
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const uint32_t byte = raw[i / 4] >> (8 * (i % 4)) & 0xffu;
    if constexpr (F == GemmFormat::kQ8_0) {
      x[i] = static_cast<float>(static_cast<int32_t>(byte ^ 0x80u) - 128);
    } else if constexpr (F == GemmFormat::kQ6_K) {
      const uint32_t high = raw[4 + i / 4] >> (8 * (i % 4)) & 0xffu, quarter = raw[8];
      const uint32_t low = byte >> (quarter / 2 * 4) & 15u;
      x[i] = static_cast<float>(static_cast<int32_t>(low | (high >> (2 * quarter) & 3u) << 4) - 32);
    } else {
      x[i] = static_cast<float>(static_cast<int32_t>(byte >> raw[4] & 15u) - (F == GemmFormat::kQ4_0 ? 8 : 0));
    }
  }
}

struct GgufScale {
  float scale, minimum;
};
/// Of block `block` of a line: 32 elements, Q6_K 16.
template <GemmFormat F, bool kEven>
FI_GLOBAL_FN GgufScale gguf_scale(const char* line, int32_t block) {
  const auto* const row = reinterpret_cast<const uint8_t*>(line);
  const auto half_at = [](const uint8_t* p) {
    f16_t h;
    h.bits = static_cast<uint16_t>(gguf_half<kEven>(p));
    return to_f32(h);
  };
  if constexpr (F == GemmFormat::kQ4_K) {
    const uint8_t *const p = row + block / 8 * 144, *const packed = p + 4;
    const int32_t s = block % 8, i = s % 4;
    int32_t scale = packed[i] & 63, minimum = packed[4 + i] & 63;
    if (s >= 4) {
      scale = (packed[8 + i] & 15) | packed[i] >> 6 << 4;
      minimum = packed[8 + i] >> 4 | packed[4 + i] >> 6 << 4;
    }
    return {half_at(p) * static_cast<float>(scale), -half_at(p + 2) * static_cast<float>(minimum)};
  } else if constexpr (F == GemmFormat::kQ6_K) {
    const uint8_t* const p = row + block / 16 * 210;
    const auto scale = static_cast<int32_t>(p[192 + block % 16] ^ 0x80u) - 128;
    return {half_at(p + 208) * static_cast<float>(scale), 0.0f};
  } else {
    constexpr int kBytes = F == GemmFormat::kQ4_0 ? 18 : F == GemmFormat::kQ4_1 ? 20 : 34;
    const uint8_t* const p = row + static_cast<int64_t>(block) * kBytes;
    return {half_at(p), F == GemmFormat::kQ4_1 ? half_at(p + 2) : 0.0f};
  }
}

}  // namespace flashinfer::cu
