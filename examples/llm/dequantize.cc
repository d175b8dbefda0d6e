// SPDX-License-Identifier: Apache-2.0
// Block formats of GGUF tensors. All scales are f16; nibbles hold element i in the low half and element i + 16 in the
// high half of byte i (Q4_0, Q4_1), or the interleavings written at the K formats.
#include <cstring>

#include "flashinfer/core/scalar.h"
#include "gguf.h"

namespace llm {
namespace {

using Bytes = const uint8_t*;

float half_at(Bytes p) {
  flashinfer::f16_t h;
  std::memcpy(&h.bits, p, 2);
  return static_cast<float>(h);
}

void f32_block(Bytes p, float* y) { std::memcpy(y, p, 4); }
void f16_block(Bytes p, float* y) { *y = half_at(p); }
void bf16_block(Bytes p, float* y) {
  flashinfer::bf16_t b;
  std::memcpy(&b.bits, p, 2);
  *y = static_cast<float>(b);
}

/// f16 d, 16 bytes: d * (q - 8).
void q4_0_block(Bytes p, float* y) {
  const float d = half_at(p);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>((p[2 + i] & 15) - 8);
    y[i + 16] = d * static_cast<float>((p[2 + i] >> 4) - 8);
  }
}

/// f16 d, f16 m, 16 bytes: d * q + m.
void q4_1_block(Bytes p, float* y) {
  const float d = half_at(p), m = half_at(p + 2);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>(p[4 + i] & 15) + m;
    y[i + 16] = d * static_cast<float>(p[4 + i] >> 4) + m;
  }
}

/// f16 d, 32 signed bytes: d * q.
void q8_0_block(Bytes p, float* y) {
  const float d = half_at(p);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(static_cast<int8_t>(p[2 + i]));
}

/// f16 d, f16 dmin, 12 bytes with eight 6-bit scales and eight 6-bit minima, 128 bytes. Sub-block s of 32 elements:
/// d * scale[s] * q - dmin * min[s]; bytes 32j .. 32j+31 hold sub-block 2j in their low and 2j+1 in their high halves.
void q4_k_block(Bytes p, float* y) {
  const float d = half_at(p), dmin = half_at(p + 2);
  const Bytes packed = p + 4, quants = p + 16;
  for (int s = 0; s < 8; ++s) {
    int scale, minimum;
    if (s < 4) {
      scale = packed[s] & 63;
      minimum = packed[s + 4] & 63;
    } else {
      scale = (packed[s + 4] & 15) | ((packed[s - 4] >> 6) << 4);
      minimum = (packed[s + 4] >> 4) | ((packed[s] >> 6) << 4);
    }
    const float a = d * static_cast<float>(scale), b = dmin * static_cast<float>(minimum);
    const int shift = s % 2 == 0 ? 0 : 4;
    for (int i = 0; i < 32; ++i) y[32 * s + i] = a * static_cast<float>((quants[32 * (s / 2) + i] >> shift) & 15) - b;
  }
}

/// 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales (one for 16 elements), f16 d: d * scale * (q - 32).
/// Element e = 128 h + 32 k + i: nibble of byte 64 h + 32 (k % 2) + i, high when k >= 2; bits 2k of byte 32 h + i.
void q6_k_block(Bytes p, float* y) {
  const Bytes low = p, high = p + 128, scales = p + 192;
  const float d = half_at(p + 208);
  for (int e = 0; e < 256; ++e) {
    const int h = e / 128, k = e / 32 % 4, i = e % 32;
    const int nibble = (low[64 * h + 32 * (k % 2) + i] >> (k >= 2 ? 4 : 0)) & 15;
    const int q = (nibble | (((high[32 * h + i] >> (2 * k)) & 3) << 4)) - 32;
    y[e] = d * static_cast<float>(static_cast<int8_t>(scales[e / 16])) * static_cast<float>(q);
  }
}

struct Format {
  GgmlType type;
  int64_t elements, bytes;
  const char* name;
  void (*decode)(Bytes, float*);
};
constexpr Format kFormats[] = {
    {GgmlType::kF32, 1, 4, "F32", f32_block},        {GgmlType::kF16, 1, 2, "F16", f16_block},
    {GgmlType::kBF16, 1, 2, "BF16", bf16_block},     {GgmlType::kQ4_0, 32, 18, "Q4_0", q4_0_block},
    {GgmlType::kQ4_1, 32, 20, "Q4_1", q4_1_block},   {GgmlType::kQ8_0, 32, 34, "Q8_0", q8_0_block},
    {GgmlType::kQ4_K, 256, 144, "Q4_K", q4_k_block}, {GgmlType::kQ6_K, 256, 210, "Q6_K", q6_k_block},
};

}  // namespace

BlockSize block_size(GgmlType type) {
  for (const Format& f : kFormats)
    if (f.type == type) return {f.elements, f.bytes, f.name};
  return {0, 0, "type " + std::to_string(static_cast<uint32_t>(type))};
}

void dequantize(GgmlType type, const std::byte* source, int64_t n, float* out) {
  for (const Format& f : kFormats) {
    if (f.type != type) continue;
    auto p = reinterpret_cast<Bytes>(source);
    for (int64_t i = 0; i < n; i += f.elements, p += f.bytes) f.decode(p, out + i);
    return;
  }
}

}  // namespace llm
