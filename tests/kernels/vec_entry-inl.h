// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/kernels/cpu/silu16.h"
#include "vec_entry.h"

namespace flashinfer::test {
namespace {

using cpu::Vec;

cpu::Vec apply(Unary f, Vec x) {
  switch (f) {
    case Unary::kExp2: return cpu::exp2(x);
    case Unary::kExp: return cpu::exp(x);
    case Unary::kSigmoid: return cpu::sigmoid(x);
    case Unary::kSilu: return cpu::silu(x);
    case Unary::kTanh: return cpu::tanh(x);
    case Unary::kGeluTanh: return cpu::gelu_tanh(x);
    case Unary::kErf: return cpu::erf(x);
    case Unary::kGeluErf: return cpu::gelu_erf(x);
    case Unary::kSqrt: return sqrt(x);
    case Unary::kRound: return round(x);
    case Unary::kAbs: return abs(x);
    case Unary::kNeg: return -x;
    case Unary::kSiluBf16: return cpu::silu_to<bf16_t>(x);
    case Unary::kSiluF16: return cpu::silu_to<f16_t>(x);
    case Unary::kExp2Falling: return cpu::exp2_falling(x);
  }
  return cpu::zero();
}

/// Calls f(i) for full vectors and f(i, count) for the rest.
template <class F, class T>
void each(int64_t n, F full, T tail) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= n; i += Vec::kLanes) full(i);
  if (i < n) tail(i, n - i);
}

void map(Unary f, const float* x, float* y, int64_t n) {
  each(
      n, [=](int64_t i) { store(y + i, apply(f, cpu::load(x + i))); },
      [=](int64_t i, int64_t c) { store_n(y + i, apply(f, cpu::load_n(x + i, c)), c); });
}

template <class S>
void widen_from(const void* from, float* y, int64_t n) {
  const S* x = static_cast<const S*>(from);
  each(
      n, [=](int64_t i) { store(y + i, cpu::load(x + i)); },
      [=](int64_t i, int64_t c) { store_n(y + i, cpu::load_n(x + i, c), c); });
}
void widen(DType from, const void* x, float* y, int64_t n) {
  if (from == DType::kF32) widen_from<float>(x, y, n);
  if (from == DType::kBF16) widen_from<bf16_t>(x, y, n);
  if (from == DType::kF16) widen_from<f16_t>(x, y, n);
  if (from == DType::kF8E4M3) widen_from<e4m3_t>(x, y, n);
  if (from == DType::kF8E5M2) widen_from<e5m2_t>(x, y, n);
}

template <class S>
void narrow_to(const float* x, void* to, int64_t n) {
  S* y = static_cast<S*>(to);
  each(
      n, [=](int64_t i) { store(y + i, cpu::load(x + i)); },
      [=](int64_t i, int64_t c) { store_n(y + i, cpu::load_n(x + i, c), c); });
}
template <class S>
void saturate_to(const float* x, void* to, int64_t n) {
  S* y = static_cast<S*>(to);
  each(
      n, [=](int64_t i) { cpu::store_saturated(y + i, cpu::load(x + i)); },
      [=](int64_t i, int64_t c) { cpu::store_saturated_n(y + i, cpu::load_n(x + i, c), c); });
}
void narrow(DType to, const float* x, void* y, int64_t n) {
  if (to == DType::kF32) narrow_to<float>(x, y, n);
  if (to == DType::kBF16) narrow_to<bf16_t>(x, y, n);
  if (to == DType::kF16) narrow_to<f16_t>(x, y, n);
  if (to == DType::kF8E4M3) saturate_to<e4m3_t>(x, y, n);
  if (to == DType::kF8E5M2) saturate_to<e5m2_t>(x, y, n);
}
void to_e2m1(const float* x, uint8_t* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) cpu::store_e2m1_16(y + i / 2, [=](int64_t j) { return cpu::load(x + i + j); });
}
void from_e2m1(const uint8_t* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += Vec::kLanes) store(y + i, cpu::load_e2m1(x + i / 2));
}

void fused(const float* a, const float* b, const float* c, float* y, int64_t n) {
  each(
      n,
      [=](int64_t i) {
        store(y + i, fma(cpu::load(a + i), cpu::load(b + i), cpu::load(c + i)));
        store(y + n + i, fnma(cpu::load(a + i), cpu::load(b + i), cpu::load(c + i)));
      },
      [](int64_t, int64_t) {});
}
void order(const float* a, const float* b, float* y, int64_t n) {
  each(
      n,
      [=](int64_t i) {
        store(y + i, min(cpu::load(a + i), cpu::load(b + i)));
        store(y + n + i, max(cpu::load(a + i), cpu::load(b + i)));
      },
      [](int64_t, int64_t) {});
}
void reduce(const float* x, float* y) {
  const Vec v = cpu::load(x);
  y[0] = reduce_add(v);
  y[1] = reduce_max(v);
  y[2] = reduce_min(v);
}
void scale(const float* x, const float* e, float* y, int64_t n) {
  each(n, [=](int64_t i) { store(y + i, ldexp(cpu::load(x + i), cpu::load(e + i))); }, [](int64_t, int64_t) {});
}
float dot(const bf16_t* a, const bf16_t* b, int64_t n) {
  constexpr int kStep = 2 * Vec::kLanes;
  Vec acc = cpu::zero();
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) acc = dot_pairs(acc, cpu::load_pairs(a + i), cpu::load_pairs(b + i));
  if (i < n) acc = dot_pairs(acc, cpu::load_pairs_n(a + i, n - i), cpu::load_pairs_n(b + i, n - i));
  return reduce_add(acc);
}

}  // namespace

#define FI_VEC_ENTRY(variable, label)                                          \
  extern const VecEntry variable;                                              \
  const VecEntry variable = {label, Vec::kLanes, map,   widen, narrow,  fused, \
                             order, reduce,      scale, dot,   to_e2m1, from_e2m1}

}  // namespace flashinfer::test
