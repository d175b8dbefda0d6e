// SPDX-License-Identifier: Apache-2.0
// One token of 16 rows of a delta-rule state (delta_token.h), in two passes: the products of all rows, then their
// update, which finds the rows in the L1 cache. In one pass a row stays in registers while it waits for its sums, and
// the core has registers for little more than two rows in flight. Sums have the order of reduce_add, as in one pass.
// bf16 elements are widened within the vector, the even ones by a shift and the odd ones by a mask, and k, kd, qd and
// decay have the same order: half the instructions of widening two half vectors. Where k and q are bf16 too and the
// CPU's dot instruction is fast, products take the rows as they are (DeltaToken::k16).
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/delta_token.h"
#include "flashinfer/ops/linear_attention/kernels/common/word_lanes.h"

namespace flashinfer::cpu::linear {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
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

/// 32 elements of a row as two vectors. Prefetches are this far ahead, in the pass that stores: 1024 heads of bf16 took
/// 0.68 ms with 16 KB, 0.86 with 8 KB and 0.95 with prefetches to L2; f32 does not gain beyond 8 KB (Zen 5).
template <class S>
struct StripBlock {
  static constexpr bool kSorted = false;
  static constexpr int64_t kAhead = 8192;
  Vec a, b;  // the first 16 elements, the others
  FI_VEC_INLINE void read(const S* from) { a = load(from), b = load(from + Vec::kLanes); }
  FI_VEC_INLINE void write(S* to) const { store(to, a), store(to + Vec::kLanes, b); }
};
#if defined(__AVX512BF16__)
template <>
struct StripBlock<bf16_t> {
  static constexpr bool kSorted = true;
  static constexpr int64_t kAhead = 16384;
  Vec a, b;  // the even elements, the odd ones
  FI_VEC_INLINE void read(const bf16_t* from) {
    const __m512i x = _mm512_loadu_si512(from);
    a.r = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
    b.r = _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  FI_VEC_INLINE void write(bf16_t* to) const {
    const __m512i both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.r, a.r));
    _mm512_storeu_si512(to, interleave_halves(both));
  }
};
#endif
template <class S>
inline constexpr bool kStrips = true;
alignas(64) inline constexpr uint32_t kEvens[16] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
/// A row of n elements in the order of StripBlock: `from`, or in `to` blocks of 32 of which the even elements come
/// first.
template <bool Sorted>
inline const float* strip_order(const float* from, int64_t n, float* to) {
  if constexpr (!Sorted) return from;
  constexpr int64_t L = Vec::kLanes;
  const __m512i evens = _mm512_load_si512(kEvens), odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
  for (int64_t i = 0; i < n; i += 2 * L) {
    const Vec a = load(from + i), b = load(from + i + L);
    store(to + i, Vec{_mm512_permutex2var_ps(a.r, evens, b.r)});
    store(to + i + L, Vec{_mm512_permutex2var_ps(a.r, odds, b.r)});
  }
  return to;
}
/// to[r] = decay from[r] + d[r] k for 16 rows of K elements (0: n of them, a multiple of 32), k and decay in the order
/// of StripBlock. Channels: a decay of each element, else *decay.
template <int K, bool Channels, class S>
FI_VEC_INLINE void update_strip(const S* from, int64_t from_row, S* to, int64_t to_row, int64_t n, const float* d,
                                const float* k, const float* decay) {
  constexpr int L = Vec::kLanes, kVecs = K ? K / L : 1;
  const Vec alpha = splat(*decay);
  Vec ks[kVecs], decays[kVecs];
#pragma GCC unroll 8
  for (int j = 0; j < (K ? kVecs : 0); ++j) ks[j] = load(k + j * L), decays[j] = Channels ? load(decay + j * L) : alpha;
  const auto block = [&](const S* x, S* y, Vec by, Vec k0, Vec k1, Vec decay0, Vec decay1) {
    StripBlock<S> row;
    row.read(x);
#pragma GCC unroll 2
    for (int line = 0; line < 2 * L * static_cast<int>(sizeof(S)); line += 64)
      __builtin_prefetch(reinterpret_cast<const char*>(x) + row.kAhead + line, 0, 3);
    row.a = fma(by, k0, row.a * decay0), row.b = fma(by, k1, row.b * decay1);
    row.write(y);
  };
  for (int r = 0; r < 16; ++r, from += from_row, to += to_row) {
    const Vec by = splat(d[r]);
    if constexpr (K != 0) {
#pragma GCC unroll 4
      for (int j = 0; j < kVecs; j += 2)
        block(from + j * L, to + j * L, by, ks[j], ks[j + 1], decays[j], decays[j + 1]);
    } else {
      for (int64_t i = 0; i < n; i += 2 * L)
        block(from + i, to + i, by, load(k + i), load(k + i + L), Channels ? load(decay + i) : alpha,
              Channels ? load(decay + i + L) : alpha);
    }
  }
}

template <class S, int K, bool Channels, bool Corrections>
class DeltaStrips {
  using Block = StripBlock<S>;
  static constexpr int kRows = 16, L = 16, kBlocks = K / (2 * L);
  static constexpr bool kDots = __is_same(S, bf16_t) && !Channels;

 public:
  /// The new rows go to one place, which may be that of the old ones: token.after or state.out.
  DeltaStrips(const DeltaState<S>& state, const DeltaToken<S>& token) : s(state), t(token) {
    k = sorted(t.k, 0);
    if (!kDots || !t.k16) kd = sorted(t.kd, 1), qd = sorted(t.qd, 2);
    if constexpr (Channels) decay = sorted(t.decay, 3);
  }
  /// The first row that is left.
  int64_t run() {
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
  const float* sorted(const float* from, int row) {
    return strip_order<Block::kSorted>(from, K, memory + (Block::kSorted ? row * K : 0));
  }
  /// Two sums over the columns of each row: `weights(j)` loads what `add` multiplies with block j of four rows.
  template <class Weights, class Add>
  FI_VEC_INLINE void sums(const S* rows, Vec& with_k, Vec& with_q, Weights weights, Add add) const {
    Vec ks[4], qs[4];
    for (int m = 0; m < 4; ++m) {
      const S* row[4];
      Vec a[4], b[4];
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) row[g] = rows + (4 * g + m) * s.in_row, a[g] = b[g] = zero();
#pragma GCC unroll 4
      for (int j = 0; j < kBlocks; ++j) {
        const auto w = weights(j);
#pragma GCC unroll 4
        for (int g = 0; g < 4; ++g) add(w, row[g] + 2 * j * L, a[g], b[g]);
      }
      ks[m] = quarters4(a), qs[m] = quarters4(b);
    }
    with_k = sums16(ks), with_q = sums16(qs);
  }
  /// S[v] . kd and S[v] . qd of the rows.
  FI_VEC_INLINE void products(const S* rows, Vec& with_k, Vec& with_q) const {
    if constexpr (kDots)
      if (t.k16) {
        struct Weights {
          Pairs k, q;
        };
        sums(
            rows, with_k, with_q,
            [&](int j) { return Weights{load_pairs(t.k16 + 2 * j * L), load_pairs(t.q16 + 2 * j * L)}; },
            [](const Weights& w, const S* from, Vec& a, Vec& b) {
              const Pairs row = load_pairs(from);
              a = dot_pairs(a, row, w.k), b = dot_pairs(b, row, w.q);
            });
        with_k = splat(t.k16_scale) * with_k, with_q = splat(t.q16_scale) * with_q;
        return;
      }
    struct Weights {
      Vec ka, kb, qa, qb;
    };
    sums(
        rows, with_k, with_q,
        [&](int j) {
          const float *const x = kd + 2 * j * L, *const y = qd + 2 * j * L;
          return Weights{load(x), load(x + L), load(y), load(y + L)};
        },
        [](const Weights& w, const S* from, Vec& a, Vec& b) {
          Block row;
          row.read(from);
          a = fma(row.b, w.kb, fma(row.a, w.ka, a)), b = fma(row.b, w.qb, fma(row.a, w.qa, b));
        });
  }
  FI_VEC_INLINE void update(const S* from, S* to, int64_t to_row, const float* d) const {
    update_strip<K, Channels>(from, s.in_row, to, to_row, K, d, k, Channels ? decay : &t.alpha);
  }

  const DeltaState<S>& s;
  const DeltaToken<S>& t;
  const float *k, *kd = nullptr, *qd = nullptr, *decay = nullptr;
  alignas(64) float memory[Block::kSorted ? (Channels ? 4 : 3) * K : 1];
};
#else
template <class S>
inline constexpr bool kStrips = false;
template <class S, int K, bool Channels, bool Corrections>
class DeltaStrips;
#endif

}  // namespace flashinfer::cpu::linear
