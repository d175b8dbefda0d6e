// SPDX-License-Identifier: Apache-2.0
// The element type enum, storage types of the narrow floats and their exact conversions. Freestanding (no standard
// header except <stdint.h>): JIT-compiled kernels, references and statistics include it. All roundings are to nearest
// even.
#pragma once
#include <stdint.h>

namespace flashinfer {

enum class DType : unsigned char {
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kF64,
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kBool,
  kF4E2M1x2,  // two FP4 values in a byte, the first in the low nibble; an element is the byte
};
inline constexpr int kNumDTypes = 16;

namespace scalar_detail {
inline uint32_t bits(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float from_bits(uint32_t u) { return __builtin_bit_cast(float, u); }

/// Rounds a finite or non-finite float to a small float with `E` exponent bits (bias 2^(E-1)-1) and `M` mantissa bits.
/// FiniteOnly: e4m3fn style, no infinity, all-ones is NaN; overflow gives NaN (as torch) and never saturates:
/// saturating quantisers clamp first.
template <int E, int M, bool FiniteOnly>
inline uint32_t encode(float x) {
  const uint32_t u = bits(x), sign = (u >> 31) << (E + M), mag = u & 0x7fffffffu;
  constexpr int kBias = (1 << (E - 1)) - 1;
  constexpr uint32_t kInf = ((1u << E) - 1) << M, kNaN = FiniteOnly ? (1u << (E + M)) - 1 : kInf | (1u << (M - 1));
  if (mag > 0x7f800000u) return sign | kNaN;
  if (mag == 0x7f800000u) return sign | (FiniteOnly ? kNaN : kInf);
  const int exp = static_cast<int>(mag >> 23) - 127;
  uint64_t significand;  // in units of 2^-(23 + 1) relative to 2^exp, so that halves stay visible
  int shift;
  if (mag < 0x00800000u) return sign;  // float subnormals are far below every narrow subnormal
  significand = (mag & 0x7fffffu) | 0x800000u;
  if (exp < 1 - kBias) {
    shift = 23 - M + (1 - kBias - exp);
    if (shift > 40) return sign;
    const uint64_t half = 1ull << (shift - 1), rest = significand & ((1ull << shift) - 1);
    uint64_t q = significand >> shift;
    if (rest > half || (rest == half && (q & 1))) ++q;
    return sign | static_cast<uint32_t>(q);
  }
  shift = 23 - M;
  const uint64_t half = 1ull << (shift - 1), rest = significand & ((1ull << shift) - 1);
  uint64_t q = significand >> shift;  // has the implicit bit at M
  if (rest > half || (rest == half && (q & 1))) ++q;
  const uint64_t out = (static_cast<uint64_t>(exp + kBias) << M) + (q - (1ull << M));
  const uint64_t top = FiniteOnly ? kNaN : kInf;
  return sign | static_cast<uint32_t>(out >= top ? top : out);
}

template <int E, int M, bool FiniteOnly>
inline float decode(uint32_t v) {
  const uint32_t sign = (v >> (E + M)) << 31, exp = (v >> M) & ((1u << E) - 1), man = v & ((1u << M) - 1);
  constexpr int kBias = (1 << (E - 1)) - 1;
  if (FiniteOnly ? (exp == (1u << E) - 1 && man == (1u << M) - 1) : exp == (1u << E) - 1)
    return from_bits(sign | 0x7f800000u | (man || FiniteOnly ? 0x400000u | (man << (23 - M)) : 0u));
  if (exp == 0) {
    const float scale = from_bits(static_cast<uint32_t>(127 + 1 - kBias - M) << 23);
    const float f = static_cast<float>(man) * scale;
    return sign ? -f : f;
  }
  return from_bits(sign | ((exp + 127u - kBias) << 23) | (man << (23 - M)));
}
}  // namespace scalar_detail

struct bf16_t {
  uint16_t bits;
  bf16_t() = default;
  explicit bf16_t(float x) {
    const uint32_t u = scalar_detail::bits(x);
    bits = (u & 0x7fffffffu) > 0x7f800000u ? static_cast<uint16_t>((u >> 16) | 0x40u)
                                           : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit operator float() const { return scalar_detail::from_bits(static_cast<uint32_t>(bits) << 16); }
};
struct f16_t {
  uint16_t bits;
  f16_t() = default;
  explicit f16_t(float x) : bits(static_cast<uint16_t>(scalar_detail::encode<5, 10, false>(x))) {}
  explicit operator float() const { return scalar_detail::decode<5, 10, false>(bits); }
};
struct e4m3_t {
  uint8_t bits;
  e4m3_t() = default;
  explicit e4m3_t(float x) : bits(static_cast<uint8_t>(scalar_detail::encode<4, 3, true>(x))) {}
  explicit operator float() const { return scalar_detail::decode<4, 3, true>(bits); }
};
struct e5m2_t {
  uint8_t bits;
  e5m2_t() = default;
  explicit e5m2_t(float x) : bits(static_cast<uint8_t>(scalar_detail::encode<5, 2, false>(x))) {}
  explicit operator float() const { return scalar_detail::decode<5, 2, false>(bits); }
};

/// The C++ type of a stored element of `T`.
template <DType T>
struct scalar_of;
template <>
struct scalar_of<DType::kF32> {
  using type = float;
};
template <>
struct scalar_of<DType::kF64> {
  using type = double;
};
template <>
struct scalar_of<DType::kF16> {
  using type = f16_t;
};
template <>
struct scalar_of<DType::kBF16> {
  using type = bf16_t;
};
template <>
struct scalar_of<DType::kF8E4M3> {
  using type = e4m3_t;
};
template <>
struct scalar_of<DType::kF8E5M2> {
  using type = e5m2_t;
};
template <>
struct scalar_of<DType::kI32> {
  using type = int32_t;
};
template <>
struct scalar_of<DType::kI64> {
  using type = int64_t;
};
template <>
struct scalar_of<DType::kU8> {
  using type = uint8_t;
};
template <>
struct scalar_of<DType::kBool> {
  using type = bool;
};
template <DType T>
using scalar_of_t = typename scalar_of<T>::type;

}  // namespace flashinfer
