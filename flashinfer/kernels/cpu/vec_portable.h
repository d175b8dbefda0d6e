// SPDX-License-Identifier: Apache-2.0
// Vec on the compiler's generic 16-byte vectors: SSE2, NEON and others. Included by vec.h only. fma() is a multiply and
// an add (two roundings) unless the target fuses them: a libm call per lane would be 20 times slower.
#pragma once
#include <math.h>

namespace flashinfer::cpu {
inline namespace portable {

typedef float F32x4 __attribute__((vector_size(16)));
typedef int32_t I32x4 __attribute__((vector_size(16)));
typedef uint32_t U32x4 __attribute__((vector_size(16)));

struct Vec {
  static constexpr int kLanes = 4;
  F32x4 r;
};
struct Mask {
  I32x4 r;
};

FI_VEC_INLINE Mask first_n(int64_t n) {
  const int32_t m = static_cast<int32_t>(n);
  return {I32x4{0, 1, 2, 3} < I32x4{m, m, m, m}};
}
FI_VEC_INLINE Vec zero() { return {F32x4{0, 0, 0, 0}}; }
FI_VEC_INLINE Vec splat(float x) { return {F32x4{x, x, x, x}}; }

FI_VEC_INLINE Mask operator<(Vec a, Vec b) { return {a.r < b.r}; }
FI_VEC_INLINE Mask operator<=(Vec a, Vec b) { return {a.r <= b.r}; }
FI_VEC_INLINE Mask operator==(Vec a, Vec b) { return {a.r == b.r}; }
FI_VEC_INLINE Mask is_nan(Vec a) { return {a.r != a.r}; }  // NOLINT(misc-redundant-expression)
FI_VEC_INLINE Mask operator&(Mask a, Mask b) { return {a.r & b.r}; }
FI_VEC_INLINE Mask operator|(Mask a, Mask b) { return {a.r | b.r}; }
FI_VEC_INLINE Mask operator!(Mask a) { return {~a.r}; }
FI_VEC_INLINE bool any(Mask a) { return (a.r[0] | a.r[1] | a.r[2] | a.r[3]) != 0; }
FI_VEC_INLINE Vec select(Mask m, Vec a, Vec b) {
  return {reinterpret_cast<F32x4>((m.r & reinterpret_cast<I32x4>(a.r)) | (~m.r & reinterpret_cast<I32x4>(b.r)))};
}

FI_VEC_INLINE Vec operator+(Vec a, Vec b) { return {a.r + b.r}; }
FI_VEC_INLINE Vec operator-(Vec a, Vec b) { return {a.r - b.r}; }
FI_VEC_INLINE Vec operator*(Vec a, Vec b) { return {a.r * b.r}; }
FI_VEC_INLINE Vec operator/(Vec a, Vec b) { return {a.r / b.r}; }
FI_VEC_INLINE Vec operator-(Vec a) { return {-a.r}; }
FI_VEC_INLINE Vec fma(Vec a, Vec b, Vec c) { return {a.r * b.r + c.r}; }
FI_VEC_INLINE Vec fnma(Vec a, Vec b, Vec c) { return {c.r - a.r * b.r}; }
FI_VEC_INLINE Vec min(Vec a, Vec b) { return select(a < b, a, b); }
FI_VEC_INLINE Vec max(Vec a, Vec b) { return select(b < a, a, b); }
FI_VEC_INLINE Vec sqrt(Vec a) {
  return {F32x4{__builtin_sqrtf(a.r[0]), __builtin_sqrtf(a.r[1]), __builtin_sqrtf(a.r[2]), __builtin_sqrtf(a.r[3])}};
}
FI_VEC_INLINE Vec abs(Vec a) {
  const U32x4 m = {0x7fffffffu, 0x7fffffffu, 0x7fffffffu, 0x7fffffffu};
  return {reinterpret_cast<F32x4>(reinterpret_cast<U32x4>(a.r) & m)};
}
// Adding 1.5 * 2^23 rounds off the fraction; larger magnitudes are integers already.
FI_VEC_INLINE Vec round(Vec a) {
  const Vec magic = splat(12582912.0f);
  return select(abs(a) < splat(4194304.0f), (a + magic) - magic, a);
}

namespace detail {
FI_VEC_INLINE F32x4 power_of_two(I32x4 n) { return reinterpret_cast<F32x4>((reinterpret_cast<U32x4>(n) + 127u) << 23); }
}  // namespace detail
// Two factors of half the exponent each: both are normal for |n| <= 252, and only the second product can round when
// x| is near 1.
FI_VEC_INLINE Vec ldexp(Vec x, Vec n) {
  const I32x4 i = __builtin_convertvector(n.r, I32x4), a = i >> 1, b = i - a;
  return {x.r * detail::power_of_two(a) * detail::power_of_two(b)};
}

template <class T>
FI_VEC_INLINE Vec load(const T* p) {
  return {
      F32x4{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]), static_cast<float>(p[3])}};
}
template <class T>
FI_VEC_INLINE Vec load_n(const T* p, int64_t n) {
  Vec v = zero();
  for (int64_t i = 0; i < n; ++i) v.r[i] = static_cast<float>(p[i]);
  return v;
}
FI_VEC_INLINE Vec load(const bf16_t* p) {
  return {reinterpret_cast<F32x4>(U32x4{p[0].bits, p[1].bits, p[2].bits, p[3].bits} << 16)};
}
template <class T>
FI_VEC_INLINE void store(T* p, Vec v) {
  for (int i = 0; i < Vec::kLanes; ++i) p[i] = T(v.r[i]);
}
template <class T>
FI_VEC_INLINE void store_n(T* p, Vec v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = T(v.r[i]);
}

namespace detail {
template <class F>
FI_VEC_INLINE float reduce(Vec v, F f) {
  v = f(v, Vec{F32x4{v.r[2], v.r[3], v.r[0], v.r[1]}});
  v = f(v, Vec{F32x4{v.r[1], v.r[0], v.r[3], v.r[2]}});
  return v.r[0];
}
}  // namespace detail
FI_VEC_INLINE float reduce_add(Vec v) {
  return detail::reduce(v, [](Vec a, Vec b) { return a + b; });
}
FI_VEC_INLINE float reduce_max(Vec v) {
  return detail::reduce(v, [](Vec a, Vec b) { return max(a, b); });
}
FI_VEC_INLINE float reduce_min(Vec v) {
  return detail::reduce(v, [](Vec a, Vec b) { return min(a, b); });
}

struct Pairs {
  U32x4 r;
};
FI_VEC_INLINE Pairs load_pairs(const bf16_t* p) {
  Pairs v;
  memcpy(&v.r, p, sizeof v.r);
  return v;
}
FI_VEC_INLINE Pairs load_pairs_n(const bf16_t* p, int64_t n) {
  Pairs v = {U32x4{0, 0, 0, 0}};
  memcpy(&v.r, p, static_cast<size_t>(n) * sizeof(bf16_t));
  return v;
}
FI_VEC_INLINE Pairs splat_pair(const bf16_t* p) {
  uint32_t u;
  memcpy(&u, p, sizeof u);
  return {U32x4{u, u, u, u}};
}
// Little-endian: the even element is the low half of a lane.
FI_VEC_INLINE Vec dot_pairs(Vec acc, Pairs a, Pairs b) {
  const U32x4 high = {0xffff0000u, 0xffff0000u, 0xffff0000u, 0xffff0000u};
  const Vec a1{reinterpret_cast<F32x4>(a.r & high)}, b1{reinterpret_cast<F32x4>(b.r & high)};
  const Vec a0{reinterpret_cast<F32x4>(a.r << 16)}, b0{reinterpret_cast<F32x4>(b.r << 16)};
  return fma(a0, b0, fma(a1, b1, acc));
}

}  // namespace portable
}  // namespace flashinfer::cpu
