// SPDX-License-Identifier: Apache-2.0
// Numbers of state-space models: softplus, and rounding with random bits.
#pragma once
#include "flashinfer/kernels/cpu/exp.h"
#include "flashinfer/ops/linear_attention/kernels/common/random_rounding.h"

namespace flashinfer::cpu {

FI_VEC_INLINE float first_lane(Vec v) {
  float x[Vec::kLanes];
  store(x, v);
  return x[0];
}
inline float exp_of(float x) { return first_lane(exp(splat(x))); }
inline float sigmoid_of(float x) { return first_lane(sigmoid(splat(x))); }

/// x above 20, else ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|); ln(1 + u) is the series of 2 atanh(u / (2 + u)). To 2e-7
/// of its value; NaN passes through.
FI_VEC_INLINE Vec softplus(Vec x) {
  constexpr float kC[] = {1.0f, 1.0f / 3, 1.0f / 5, 1.0f / 7, 1.0f / 9, 1.0f / 11, 1.0f / 13};
  const Vec u = exp(-abs(x)), t = u / (u + splat(2.0f));
  return select(x > splat(20.0f), x, fma(t + t, detail::horner(t * t, kC), max(zero(), x)));
}
inline float softplus(float x) { return first_lane(softplus(splat(x))); }

/// A run-time choice of the element type: of the few numbers that a head has.
FI_VEC_INLINE float element(const void* p, DType dtype, int64_t i) {
  if (dtype == DType::kF32) return static_cast<const float*>(p)[i];
  if (dtype == DType::kBF16) return to_f32(static_cast<const bf16_t*>(p)[i]);
  return to_f32(static_cast<const f16_t*>(p)[i]);
}

/// Philox4x32 of `kBlocks` consecutive counters (kernels/common/philox.h with a free number of rounds), lanes side by
/// side so that the compiler uses vectors: out[4 * i + w] is word w of counter `block + i`.
inline constexpr int kPhiloxBlocks = 16;
inline void philox_words(uint64_t seed, uint64_t block, int64_t rounds, uint32_t (&out)[4 * kPhiloxBlocks]) {
  uint32_t c0[kPhiloxBlocks], c1[kPhiloxBlocks], c2[kPhiloxBlocks] = {}, c3[kPhiloxBlocks] = {};
  for (int i = 0; i < kPhiloxBlocks; ++i) {
    c0[i] = static_cast<uint32_t>(block + static_cast<uint64_t>(i));
    c1[i] = static_cast<uint32_t>((block + static_cast<uint64_t>(i)) >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int64_t round = 0; round < rounds; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
    for (int i = 0; i < kPhiloxBlocks; ++i) {
      const uint64_t a = uint64_t{0xD2511F53u} * c0[i], b = uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<uint32_t>(b >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<uint32_t>(b);
      c2[i] = static_cast<uint32_t>(a >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<uint32_t>(a);
    }
  for (int i = 0; i < kPhiloxBlocks; ++i)
    out[4 * i] = c0[i], out[4 * i + 1] = c1[i], out[4 * i + 2] = c2[i], out[4 * i + 3] = c3[i];
}

/// to[i] = by * from[i] as f16 or e4m3, rounded with the random numbers of elements [e, e + n): word (e + i) % 4 of
/// counter (e + i) / 4.
template <class T>
inline void store_randomly(T* to, const float* from, float by, int64_t n, uint64_t e, uint64_t seed, int64_t rounds) {
  alignas(64) uint32_t words[4 * kPhiloxBlocks];
  for (int64_t i = 0; i < n;) {
    const uint64_t at = e + static_cast<uint64_t>(i);
    philox_words(seed, at / 4, rounds, words);
    for (int64_t w = static_cast<int64_t>(at % 4); w < 4 * kPhiloxBlocks && i < n; ++w, ++i) {
      if constexpr (sizeof(T) == 1)
        to[i] = round_e4m3_randomly(from[i] * by, words[w]);
      else
        to[i] = round_randomly(from[i] * by, words[w]);
    }
  }
}

/// to[i] = clamp(round(from[i] * 32767 / amax), +-32767); returns the factor that undoes it.
inline float store_int16(int16_t* to, const float* from, int64_t n) {
  float amax = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float a = from[i] < 0 ? -from[i] : from[i];
    amax = a > amax ? a : amax;
  }
  const float enc = amax > 0 ? 32767.0f / amax : 1.0f;
  for (int64_t i = 0; i < n; ++i) {
    float y = from[i] * enc;
    y = y > 32767.0f ? 32767.0f : (y < -32767.0f ? -32767.0f : (y == y ? y : 0.0f));
    to[i] = static_cast<int16_t>((y + 12582912.0f) - 12582912.0f);  // to nearest even: |y| < 2^22
  }
  return 1.0f / enc;
}

}  // namespace flashinfer::cpu
