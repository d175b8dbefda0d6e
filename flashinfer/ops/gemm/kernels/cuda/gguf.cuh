// SPDX-License-Identifier: Apache-2.0
// GGUF blocks on a GPU: quants as they are, exact in bf16 and f16, and the scale and minimum of each block of k
// (gguf_layout.h has the formats). All blocks begin at even bytes, Q4_K's at multiples of 16; lines of odd length are
// read byte by byte.
#pragma once
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/kernels/cuda/halves.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"

namespace flashinfer::cu {

/// Words that hold what 16 elements are made of; Q6_K: four of low and four of high bits, then where both are.
constexpr int gguf_words(GemmFormat f) { return f == GemmFormat::kQ6_K ? 9 : f == GemmFormat::kQ8_0 ? 4 : 5; }

/// `kWide` (GemmCudaConfig): 0: byte by byte, 1: in halves, 16: Q4_K in pieces of 16 bytes.
template <int kWide>
FI_GLOBAL_FN uint32_t gguf_half(const uint8_t* p) {
  if constexpr (kWide != 0)
    return *reinterpret_cast<const uint16_t*>(p);
  else
    return static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8;
}
template <int kWide>
FI_GLOBAL_FN void gguf_bytes(bool some, const uint8_t* p, uint32_t* to) {
  if constexpr (kWide == 16) {
    const auto x = load_if<4, Hint::kKeep>(some, reinterpret_cast<const uint32_t*>(p));
#pragma unroll
    for (int w = 0; w < 4; ++w) to[w] = x[w];
  } else {
#pragma unroll
    for (int w = 0; w < 4; ++w) to[w] = some ? gguf_half<kWide>(p + 4 * w) | gguf_half<kWide>(p + 4 * w + 2) << 16 : 0u;
  }
}

/// The 16 elements from k on, a multiple of 16, of a line.
template <GemmFormat F, int kWide, int kWords>
FI_GLOBAL_FN void gguf_load(bool some, const char* line, int32_t k, uint32_t (&to)[kWords]) {
  const auto* const row = reinterpret_cast<const uint8_t*>(line);
  if constexpr (F == GemmFormat::kQ8_0) {
    gguf_bytes<kWide>(some, row + k / 32 * 34 + 2 + k % 32, to);
  } else if constexpr (F == GemmFormat::kQ4_0 || F == GemmFormat::kQ4_1) {
    constexpr int kBytes = F == GemmFormat::kQ4_0 ? 18 : 20;
    gguf_bytes<kWide>(some, row + k / 32 * kBytes + kBytes - 16, to);
    to[4] = k % 32 / 16 * 4;
  } else if constexpr (F == GemmFormat::kQ4_K) {
    const int32_t e = k % 256;
    gguf_bytes<kWide>(some, row + k / 256 * 144 + 16 + e / 64 * 32 + e % 32, to);
    to[4] = e / 32 % 2 * 4;
  } else {
    const int32_t e = k % 256, half = e / 128, quarter = e % 128 / 32;
    const uint8_t* const block = row + k / 256 * 210;
    gguf_bytes<kWide>(some, block + 64 * half + quarter % 2 * 32 + e % 32, to);
    gguf_bytes<kWide>(some, block + 128 + 32 * half + e % 32, to + 4);
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

/// The same as pairs of T: a byte below the upper one of 128 (bf16) or 1024 (f16) is that number plus the byte.
template <GemmFormat F, class T, int kWords>
FI_GLOBAL_FN void gguf_pairs(const uint32_t (&raw)[kWords], uint32_t (&to)[8]) {
  constexpr bool kHalf = kSame<T, f16_t>;
  constexpr uint32_t kLarge = kHalf ? 0x64u : 0x43u, kOne = kHalf ? 0x3c003c00u : 0x3f803f80u;
  constexpr uint32_t kLess = F == GemmFormat::kQ8_0   ? (kHalf ? 128u : 0u)
                             : F == GemmFormat::kQ6_K ? 32u
                             : F == GemmFormat::kQ4_0 ? 8u
                                                      : 0u;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    uint32_t bytes, sign = 0;
    if constexpr (F == GemmFormat::kQ8_0) {
      bytes = kHalf ? raw[w] ^ 0x80808080u : raw[w] & 0x7f7f7f7fu;
      sign = raw[w] & 0x80808080u;
    } else if constexpr (F == GemmFormat::kQ6_K) {
      bytes = (raw[w] >> (raw[8] / 2 * 4) & 0x0f0f0f0fu) | (raw[4 + w] >> (2 * raw[8]) & 0x03030303u) << 4;
    } else {
      bytes = raw[w] >> raw[4] & 0x0f0f0f0fu;
    }
#pragma unroll
    for (uint32_t j = 0; j < 2; ++j) {
      const uint32_t selector = 0x4040u | (2 * j + 1) << 8 | 2 * j;
      uint32_t& y = to[2 * w + static_cast<int>(j)];
      y = pick_bytes(bytes, kLarge, selector);
      if constexpr (F == GemmFormat::kQ8_0 && !kHalf)  // bf16 has no room for eight bits below 128's: 128 more by sign
        y = fma_pairs<T>(pick_bytes(sign, kLarge, selector), kOne ^ 0x80008000u, y);
      else
        y = fma_pairs<T>(y, kOne, 0x80008000u | (kLarge << 8 | kLess) * 0x10001u);
    }
  }
}

struct GgufScale {
  float scale, minimum;
};
/// Of block `block` of a line: 32 elements, Q6_K 16.
template <GemmFormat F, int kWide>
FI_GLOBAL_FN GgufScale gguf_scale(const char* line, int32_t block) {
  const auto* const row = reinterpret_cast<const uint8_t*>(line);
  const auto half_at = [](const uint8_t* p) {
    f16_t h;
    h.bits = static_cast<uint16_t>(gguf_half<kWide>(p));
    return to_f32(h);
  };
  if constexpr (F == GemmFormat::kQ4_K) {
    // Two halves, then 12 bytes: of scales 0 to 3, of minima 0 to 3, and low bits of 4 to 7, whose high bits are above
    // those of 0 to 3.
    const uint8_t* const p = row + block / 8 * 144;
    const int32_t s = block % 8, at = 8 * (s % 4);
    uint32_t words[4];
    gguf_bytes<kWide>(true, p, words);
    uint32_t scale = words[1] >> at & 63u, minimum = words[2] >> at & 63u;
    if (s >= 4) {
      scale = (words[3] >> at & 15u) | (words[1] >> (at + 6) & 3u) << 4;
      minimum = (words[3] >> (at + 4) & 15u) | (words[2] >> (at + 6) & 3u) << 4;
    }
    f16_t d, least;
    d.bits = static_cast<uint16_t>(words[0]), least.bits = static_cast<uint16_t>(words[0] >> 16);
    return {to_f32(d) * static_cast<float>(scale), -to_f32(least) * static_cast<float>(minimum)};
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
