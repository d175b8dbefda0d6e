// SPDX-License-Identifier: Apache-2.0
// One token of 16 rows of a bf16 delta-rule state (delta_token.h), in two passes: the products of all rows, then their
// update, which finds the rows in the L1 cache. In one pass a row stays in registers while it waits for its sums, and
// the core has registers for little more than two rows in flight. Elements are widened within the vector, the
// even ones by a shift and the odd ones by a mask, and k, kd, qd and decay have the same order: half the instructions
// of widening two half vectors. Both together take 45 cycles a row of 128 instead of 53 (Intel, vcvtne2ps2bf16 of 4
// uops).
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/delta_token.h"

namespace flashinfer::cpu::linear {

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
template <class S>
inline constexpr bool kStrips = __is_same(S, bf16_t);

/// Word i of the first half and word i of the second one, side by side.
alignas(64) inline constexpr uint16_t kInterleave[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                         8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
alignas(64) inline constexpr uint32_t kEvens[16] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};

/// Lanes i and i + 8, then i + 4, of four vectors: four lanes for each of them.
FI_VEC_INLINE Vec quarters4(const Vec (&x)[4]) {
  const __m512 a =
      _mm512_add_ps(_mm512_shuffle_f32x4(x[0].r, x[1].r, 0x44), _mm512_shuffle_f32x4(x[0].r, x[1].r, 0xee));
  const __m512 b =
      _mm512_add_ps(_mm512_shuffle_f32x4(x[2].r, x[3].r, 0x44), _mm512_shuffle_f32x4(x[2].r, x[3].r, 0xee));
  return {_mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd))};
}
/// Lane 4 g + m is the sum of lanes 4 g to 4 g + 3 of x[m].
FI_VEC_INLINE Vec sums16(const Vec (&x)[4]) {
  const __m512 a = _mm512_add_ps(_mm512_shuffle_ps(x[0].r, x[1].r, 0x44), _mm512_shuffle_ps(x[0].r, x[1].r, 0xee));
  const __m512 b = _mm512_add_ps(_mm512_shuffle_ps(x[2].r, x[3].r, 0x44), _mm512_shuffle_ps(x[2].r, x[3].r, 0xee));
  return {_mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd))};
}

template <int K, bool Channels, bool Corrections>
class DeltaStrips {
  static constexpr int kRows = 16, L = 16, kPairs = K / (2 * L);

 public:
  /// The new rows go to one place, which may be that of the old ones: token.after or state.out.
  DeltaStrips(const DeltaState<bf16_t>& state, const DeltaToken<bf16_t>& token) : s(state), t(token) {
    sort(t.k, k), sort(t.kd, kd), sort(t.qd, qd);
    if constexpr (Channels) sort(t.decay, decay);
  }
  /// The first row that is left.
  int64_t run() const {
    int64_t v = 0;
    for (; v + kRows <= s.rows; v += kRows) {
      Vec with_k, with_q;
      products(s.in + v * s.in_row, with_k, with_q);
      const Vec d = splat(t.beta) * (load(t.v + v) - with_k);
      store(t.o + v, with_q + d * splat(t.kq));
      if constexpr (Corrections) store(t.d + v, d);
      alignas(64) float ds[kRows];
      store(ds, d);
      if (t.after)
        update(s.in + v * s.in_row, t.after + v * t.after_row, t.after_row, ds);
      else if (s.out)
        update(s.in + v * s.in_row, s.out + v * s.out_row, s.out_row, ds);
    }
    return v;
  }

 private:
  /// In blocks of 32 the even elements, then the odd ones.
  static void sort(const float* from, float* to) {
    const __m512i evens = _mm512_load_si512(kEvens), odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
    for (int i = 0; i < K; i += 2 * L) {
      const Vec a = load(from + i), b = load(from + i + L);
      store(to + i, Vec{_mm512_permutex2var_ps(a.r, evens, b.r)});
      store(to + i + L, Vec{_mm512_permutex2var_ps(a.r, odds, b.r)});
    }
  }
  FI_VEC_INLINE static void read(const bf16_t* from, Vec& even, Vec& odd) {
    const __m512i x = _mm512_loadu_si512(from);
    even.r = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
    odd.r = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  /// S[v] . kd and S[v] . qd of the rows.
  FI_VEC_INLINE void products(const bf16_t* rows, Vec& with_k, Vec& with_q) const {
    Vec ks[4], qs[4];
    for (int m = 0; m < 4; ++m) {
      const bf16_t* row[4];
      Vec a[4], b[4];
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) row[g] = rows + (4 * g + m) * s.in_row, a[g] = b[g] = zero();
#pragma GCC unroll 4
      for (int j = 0; j < kPairs; ++j) {
        const float *const ke = kd + 2 * j * L, *const qe = qd + 2 * j * L;
        const Vec k0 = load(ke), k1 = load(ke + L), q0 = load(qe), q1 = load(qe + L);
#pragma GCC unroll 4
        for (int g = 0; g < 4; ++g) {
          Vec even, odd;
          read(row[g] + 2 * j * L, even, odd);
          a[g] = fma(odd, k1, fma(even, k0, a[g])), b[g] = fma(odd, q1, fma(even, q0, b[g]));
        }
      }
      ks[m] = quarters4(a), qs[m] = quarters4(b);
    }
    with_k = sums16(ks), with_q = sums16(qs);
  }
  /// decay S[v] + d k of the rows. The prefetch is in this pass and to L2: 8 and 64 MB of states took 12 % less than
  /// with prefetches to L1 in the first pass.
  FI_VEC_INLINE void update(const bf16_t* from, bf16_t* to, int64_t to_row, const float* d) const {
    const Vec alpha = splat(t.alpha);
    const __m512i interleave = _mm512_load_si512(kInterleave);
    for (int r = 0; r < kRows; ++r, from += s.in_row, to += to_row) {
      const Vec by = splat(d[r]);
#pragma GCC unroll 4
      for (int j = 0; j < kPairs; ++j) {
        const int e = 2 * j * L, o = e + L;
        Vec even, odd;
        read(from + e, even, odd);
        __builtin_prefetch(reinterpret_cast<const char*>(from + e) + kStateBytesAhead, 0, 2);
        even = fma(by, load(k + e), even * (Channels ? load(decay + e) : alpha));
        odd = fma(by, load(k + o), odd * (Channels ? load(decay + o) : alpha));
        const __m512i both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd.r, even.r));
        _mm512_storeu_si512(to + e, _mm512_permutexvar_epi16(interleave, both));
      }
    }
  }

  const DeltaState<bf16_t>& s;
  const DeltaToken<bf16_t>& t;
  alignas(64) float k[K], kd[K], qd[K], decay[Channels ? K : 1];
};
#else
template <class S>
inline constexpr bool kStrips = false;
template <int K, bool Channels, bool Corrections>
class DeltaStrips;
#endif

}  // namespace flashinfer::cpu::linear
