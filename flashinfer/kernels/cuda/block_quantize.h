// SPDX-License-Identifier: Apache-2.0
// Blocks of 16 or 32 elements that share a scale byte, on a GPU: the arithmetic of kernels/cpu/block_quantize.h, bit
// for bit. A warp processes 32 blocks (kernels/common/scale_units.h). A block's pieces of 16 bytes belong to
// neighbouring lanes, so that loads and codes are full sectors; the lanes of a block exchange their largest magnitudes.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cuda/convert.h"
#include "flashinfer/kernels/cuda/exact.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/narrow.h"
#include "flashinfer/kernels/cuda/warp.h"

namespace flashinfer::cu {

inline constexpr float kFltMax = 3.402823466e38f;

/// Byte of the least power of two >= s; NaN and infinity: 255 (flashinfer/kernels/common/scale_layout.h).
FI_GLOBAL_FN uint32_t e8m0_code(float s) {
  const uint32_t u = bits_of(s), exponent = u >> 23 & 0xffu, mantissa = u & 0x7fffffu;
  const uint32_t least = exponent == 0 ? 0x400000u : 0u;
  return exponent + (mantissa > least && exponent < 254 ? 1u : 0u);
}
FI_GLOBAL_FN float e8m0_value(uint32_t byte) {
  return float_of(byte == 0 ? 0x00400000u : byte == 255 ? 0x7fc00000u : byte << 23);
}
FI_GLOBAL_FN float e4m3_value(uint32_t byte) {
  e4m3_t x;
  x.bits = static_cast<uint8_t>(byte);
  return to_f32(x);
}

/// x / s rounded as a division: with r = 1 / s, one correction of x * r by the remainder (kernels/cpu/group8.h), for s
/// in [2^-60, 2^60].
struct Divisor {
  float s, r;
  bool safe;
};
FI_GLOBAL_FN Divisor divisor_of(float s) { return {s, 1.0f / s, s >= 0x1p-60f && s <= 0x1p60f}; }
FI_GLOBAL_FN float divide(float x, const Divisor& d) {
  if (!d.safe) return x / d.s;
  const float q = fminf(fmaxf(mul_rn(x, d.r), -0x1p60f), 0x1p60f);
  return fmaf(-fmaf(q, d.s, -x), d.r, q);
}

/// A block's scale byte and what multiplies its elements; `none`: its codes are all 0.
struct BlockScale {
  uint32_t byte;
  float factor;
  bool none;
};
FI_GLOBAL_FN BlockScale e4m3_scale(float wanted, float b) {
  BlockScale r;
  r.byte = narrow_e4m3(wanted);
  const float reciprocal = 1.0f / mul_rn(e4m3_value(r.byte), b);
  r.factor = reciprocal < kFltMax ? reciprocal : kFltMax;
  r.none = r.byte == 0 || r.byte == 0x7fu;
  return r;
}
/// `a` and `b` as in kernels/cpu/block_quantize.h.
template <bool kUe8m0, bool kFp8>
FI_GLOBAL_FN BlockScale block_scale(float amax, float a, float b) {
  if constexpr (!kUe8m0) return e4m3_scale(mul_rn(amax, a), b);
  BlockScale r;
  float wanted = mul_rn(amax / (kFp8 ? 448.0f : 6.0f), a);
  if (kFp8 && wanted > kFltMax) wanted = kFltMax;
  r.byte = e8m0_code(wanted);
  const bool zero = r.byte == 0 || r.byte == 255;
  r.factor = mul_rn(zero ? 0.0f : r.byte == 254 ? 0x1p-127f : float_of((254 - r.byte) << 23), a);
  r.none = !kFp8 && r.byte == 255;
  return r;
}

/// N elements from x + at if `in_range`, else zeros; unaligned rows element by element.
template <bool kAligned, int N, class T>
FI_GLOBAL_FN Pack<T, N> load_block_piece(bool in_range, const T* x) {
  if constexpr (kAligned) return load_if<N, Hint::kOnce>(in_range, x);
  Pack<T, N> y{};
  if (in_range) {
#pragma unroll
    for (int i = 0; i < N; ++i) y[i] = x[i];
  }
  return y;
}
/// `n` bytes of words, 2 to 16.
template <bool kAligned, int n>
FI_GLOBAL_FN void store_codes(uint8_t* to, const uint32_t* words) {
  Pack<uint8_t, n> y;
#pragma unroll
  for (int i = 0; i < n; ++i) y[i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
  if constexpr (kAligned) {
    store(to, y);
  } else {
#pragma unroll
    for (int i = 0; i < n; ++i) to[i] = y[i];
  }
}
/// Codes of N elements times `factor`.
template <bool kFp8, int N>
FI_GLOBAL_FN void block_codes(const float (&x)[N], const BlockScale& scale, uint32_t* words) {
  constexpr int kPerWord = kFp8 ? 4 : 8;
#pragma unroll
  for (int i = 0; i < N; i += kPerWord) {
    float y[kPerWord];
#pragma unroll
    for (int j = 0; j < kPerWord; ++j) y[j] = i + j < N ? mul_rn(x[i + j < N ? i + j : 0], scale.factor) : 0.0f;
    if constexpr (kFp8)
      words[i / 4] = narrow_four<e4m3_t>(y[0], y[1], y[2], y[3]);
    else
      words[i / 8] = scale.none ? 0u : narrow_e2m1(y);
  }
}

/// The largest magnitude of a block whose pieces `kLanes` neighbouring lanes have.
template <int kLanes, int N>
FI_GLOBAL_FN float block_magnitude(const float (&x)[N]) {
  float most = 0.0f;
#pragma unroll
  for (int i = 0; i < N; ++i) most = max_magnitude(most, x[i]);
#pragma unroll
  for (uint32_t d = kLanes / 2; d > 0; d /= 2) most = max_magnitude(most, shuffle_xor(most, d));
  return most;
}

/// What a warp's pieces of 32 blocks of kBlock elements of kItem bytes are: step s has `kBlocks` blocks.
template <int kBlock, int kItem>
struct BlockSteps {
  static constexpr int kElements = 16 / kItem;  // of a piece
  static constexpr int kSteps = kBlock / kElements, kBlocks = 32 / kSteps;
  /// The block of step s, 0 to 31, to which this lane's piece belongs, and the piece's first element.
  FI_GLOBAL_FN static uint32_t block(int s) { return static_cast<uint32_t>(s * kBlocks) + lane() / kSteps; }
  FI_GLOBAL_FN static uint32_t element() { return lane() % kSteps * kElements; }
};
/// Scale bytes by step to scale bytes by lane: lane i gets that of block i.
template <class Steps>
struct LaneScales {
  uint32_t word[ceil_div(Steps::kSteps, 4)] = {};
  FI_GLOBAL_FN void set(int s, uint32_t byte) { word[s / 4] |= byte << (8 * (s % 4)); }
  FI_GLOBAL_FN uint32_t of_lane() const {
    const uint32_t step = lane() / Steps::kBlocks, from = lane() % Steps::kBlocks * Steps::kSteps;
    uint32_t y = shuffle_bits(word[0], from);
    if constexpr (Steps::kSteps > 4) {
      const uint32_t second = shuffle_bits(word[1], from);
      y = step < 4 ? y : second;
    }
    return y >> (8 * (step % 4)) & 0xffu;
  }
};

}  // namespace flashinfer::cu
