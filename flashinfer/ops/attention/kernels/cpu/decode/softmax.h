// SPDX-License-Identifier: Apache-2.0
// Online softmax over one block for the decode kernel: W rows (query heads of one token) at once, lanes are rows x
// keys.
#pragma once
#include "flashinfer/ops/attention/kernels/cpu/rows.h"

namespace flashinfer::cpu::attention {

/// Lane of logit (row, key) of a block in a pass of W rows: vectors of kLanes / W keys, in a vector row-major. W = 1:
/// just keys.
template <int W>
struct Lanes {
  static constexpr int kKeys = Vec::kLanes / W;      // of one vector
  static constexpr int kVecs = kDecodeKeys / kKeys;  // of a block
  static constexpr int row(int lane) { return lane / kKeys; }
  static constexpr int key(int lane) { return lane % kKeys; }
  /// Cell (two probabilities in bf16) of keys 2 pair, 2 pair + 1 of row 0; the other rows follow at distance kCellStep.
  static constexpr int kCellStep = W == 16 ? 1 : kKeys / 2;
  static constexpr int64_t cell(int64_t pair) { return W == 16 ? pair * 16 : pair / kCellStep * 8 + pair % kCellStep; }
  static constexpr int cell_row(int lane) { return W == 16 ? lane : lane % 8 / kCellStep; }
};

#if defined(__AVX512F__)
template <int W>
FI_VEC_INLINE Vec row_max(Vec v) {  // over the lanes of each row
  constexpr int kKeys = Lanes<W>::kKeys;
  if constexpr (kKeys > 1) v = max(v, Vec{detail::swap_lanes(v.r)});
  if constexpr (kKeys > 2) v = max(v, Vec{detail::swap_pairs(v.r)});
  if constexpr (kKeys > 4) v = max(v, Vec{detail::swap_quarters(v.r)});
  if constexpr (kKeys > 8) v = max(v, Vec{detail::swap_halves(v.r)});
  return v;
}
#else
template <int W>
FI_VEC_INLINE Vec row_max(Vec v) {
  static_assert(W == 1);
  return splat(reduce_max(v));
}
#endif

/// How the rows of one pass turn dot products into logits. Plain: the maximum is taken of the dot products and `factor`
/// is applied in the exponent. Otherwise x = scale * s; x += slope * (key - query); x = cap * tanh(x / cap), and factor
/// is log2 e.
struct LogitsOf {
  float factor, scale, cap;
  bool transformed;
  explicit LogitsOf(const AttentionParams& p)
      : factor(1.44269504f),
        scale(p.scale),
        cap(p.soft_cap),
        transformed(p.soft_cap > 0 || p.alibi_slopes || !(p.scale > 0)) {
    if (!transformed) factor *= p.scale;
  }
};

/// Visible keys [lo, hi) of a block of kDecodeKeys for the rows of a pass. `slopes`: of the rows (null: none);
/// `distance`: first key - query.
struct Shown {
  int64_t lo, hi;
  const float* slopes;
  float distance;
};

/// Transforms logits in place; masked ones become -inf.
template <int W>
inline void shape_logits(const LogitsOf& t, const Shown& b, float* s) {
  using L = Lanes<W>;
  float key[Vec::kLanes], slope[Vec::kLanes];
  for (int i = 0; i < Vec::kLanes; ++i)
    key[i] = static_cast<float>(L::key(i)), slope[i] = b.slopes ? b.slopes[L::row(i)] : 0.0f;
  const Vec lo = splat(static_cast<float>(b.lo)), hi = splat(static_cast<float>(b.hi));
  for (int j = 0; j < L::kVecs; ++j) {
    const Vec at = load(key) + splat(static_cast<float>(j * L::kKeys));
    Vec x = load(s + j * Vec::kLanes);
    if (t.transformed) {
      x = x * splat(t.scale);
      if (b.slopes) x += (at + splat(b.distance)) * load(slope);
      if (t.cap > 0) x = splat(t.cap) * cpu::tanh(x / splat(t.cap));
    }
    store(s + j * Vec::kLanes, select((lo <= at) & (at < hi), x, splat(-INFINITY)));
  }
}

/// Moves the base of rows whose maximum grew by more than 8: rare, so plain loops.
template <int W, bool Cells>
__attribute__((noinline)) void rescale(Running& r, const float* top, float* o, int64_t width) {
  using L = Lanes<W>;
  float down[W];
  for (int i = 0; i < W; ++i) {
    float& m = r.m[i * L::kKeys];
    const float t = top[i * L::kKeys];
    down[i] = 1;
    if (!(t > m) || t - m <= 8.0f) continue;
    down[i] = m == -INFINITY ? 0.0f : exp2(m - t);
    for (int k = 0; k < L::kKeys; ++k) r.m[i * L::kKeys + k] = t;
    for (int64_t d = 0; d < width; d += Vec::kLanes) store(o + i * width + d, load(o + i * width + d) * splat(down[i]));
  }
  for (int i = 0; i < Vec::kLanes; ++i) {
    r.exact[i] *= down[L::row(i)];
    r.l[i] *= down[Cells ? L::cell_row(i) : L::row(i)];
  }
}

/// Logits s[kVecs][kLanes] -> probabilities: cells of bf16 at `cell`, or f32 in place.
template <int W, bool Cells>
inline void softmax(const LogitsOf& t, const Shown& b, float* s, Running& r, float* o, int64_t width,
                    [[maybe_unused]] uint32_t* cell) {
  using L = Lanes<W>;
  constexpr int kL = Vec::kLanes;
  if (t.transformed || b.lo > 0 || b.hi < kDecodeKeys) shape_logits<W>(t, b, s);
  const Vec factor = splat(t.factor);
  constexpr int kTops = L::kVecs < 4 ? L::kVecs : 4;
  Vec tops[4] = {splat(-INFINITY), splat(-INFINITY), splat(-INFINITY), splat(-INFINITY)};
#pragma GCC unroll 1
  for (int j = 0; j < L::kVecs; j += kTops)
#pragma GCC unroll 4
    for (int i = 0; i < kTops; ++i)
      tops[i] = max(load(s + (j + i) * kL), tops[i]);  // a NaN in the first operand is dropped
  const Vec top = row_max<W>(max(max(tops[0], tops[1]), max(tops[2], tops[3]))) * factor;
  const Vec m = load(r.m);
  if (any(m < top & !(top - m <= splat(8.0f)))) {
    float tops_of[kL];
    store(tops_of, top);
    rescale<W, Cells>(r, tops_of, o, width);
  }
  const Vec base = -max(load(r.m), splat(-3e38f));  // no key so far: -inf - -inf would be NaN
  Vec exact = load(r.exact);
#if defined(__AVX512BF16__)
  if constexpr (Cells) {
    __m512 l = _mm512_loadu_ps(r.l);
    const __m512bh ones = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80));
    alignas(64) static constexpr uint16_t kMix[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i mix = _mm512_load_si512(kMix);
    if constexpr (L::kVecs == 1) {
      const Vec a = probability<true>(exponent(load(s), factor, base));
      const __m512i c = _mm512_zextsi256_si512(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a.r)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(cell), _mm512_castsi512_si256(c));
      l = _mm512_dpbf16_ps(l, reinterpret_cast<__m512bh>(c), ones);
      exact += a;
    }
    constexpr int kStep = L::kVecs < 4 ? L::kVecs : 4;
#pragma GCC unroll 1
    for (int j = 0; j + 1 < L::kVecs; j += kStep) {
      Vec a[kStep];
#pragma GCC unroll 4
      for (int i = 0; i < kStep; ++i) a[i] = probability<true>(exponent(load(s + (j + i) * kL), factor, base));
#pragma GCC unroll 2
      for (int i = 0; i < kStep / 2; ++i) {
        __m512i c = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(a[2 * i + 1].r, a[2 * i].r));
        if constexpr (W == 16) c = _mm512_permutexvar_epi16(mix, c);
        _mm512_storeu_si512(cell + (j + 2 * i) * 8, c);
        l = _mm512_dpbf16_ps(l, reinterpret_cast<__m512bh>(c), ones);
        exact += a[2 * i] + a[2 * i + 1];
      }
    }
    _mm512_storeu_ps(r.l, l);
    store(r.exact, exact);
    return;
  }
#endif
#pragma GCC unroll 4
  for (int j = 0; j < L::kVecs; ++j) {
    const Vec e = cpu::exp2(exponent(load(s + j * kL), factor, base));
    store(s + j * kL, e);
    exact += e;
  }
  store(r.exact, exact);
}

/// State of row `i` of a pass. A NaN in q or K must not look like a row without keys.
template <int W, bool Cells>
inline State state_of(const Running& r, int i) {
  using L = Lanes<W>;
  float l = 0, exact = 0;
  for (int k = 0; k < Vec::kLanes; ++k) {
    if (L::row(k) == i) exact += r.exact[k];
    if (Cells && L::cell_row(k) == i) l += r.l[k];
  }
  const float m = r.m[i * L::kKeys];
  return {m == -INFINITY && exact != exact ? 0.0f : m, Cells ? l : exact, exact};
}

}  // namespace flashinfer::cpu::attention
