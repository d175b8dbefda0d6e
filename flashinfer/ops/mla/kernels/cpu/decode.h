// SPDX-License-Identifier: Apache-2.0
// Few rows times a block of unpacked keys: memory is the bottleneck, packing would cost more than the products. Logits:
// lanes are dims, four keys at a time, sums across lanes at the end. Values: lanes are dims; with a BF16 dot product
// two keys at a time.
#pragma once
#include "flashinfer/ops/mla/kernels/cpu/tile.h"

namespace flashinfer::cpu::mla {

inline constexpr int kFewRows = 4;

/// Sums of the lanes of four vectors, each by the same tree.
FI_VEC_INLINE void sums_of_four(const Vec (&x)[4], float* out) {
#if defined(__AVX512F__)
  const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(x[0].r, x[1].r), _mm512_unpackhi_ps(x[0].r, x[1].r));
  const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(x[2].r, x[3].r), _mm512_unpackhi_ps(x[2].r, x[3].r));
  const __m512d lo = _mm512_unpacklo_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
  const __m512d hi = _mm512_unpackhi_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd));
  const __m512 all = _mm512_add_ps(_mm512_castpd_ps(lo), _mm512_castpd_ps(hi));
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
  _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
#else
  for (int i = 0; i < 4; ++i) out[i] = reduce_add(x[i]);
#endif
}

template <class T>
struct FewRows {
  using Row = typename T::Row;
  static constexpr bool kPairs = T::kPairs;
  static constexpr int64_t kStep = kPairs ? 2 * Vec::kLanes : Vec::kLanes;  // elements of a line of registers
  const MlaParams& p;
  const Rows<Row>& block;
  const uint32_t* q;
  int64_t q_cells;
  const uint32_t* probabilities;
  float* o;
  int64_t width;
  const Row* zeros;

  /// acc += <q, key> over one part (kpe or ckv) of four keys.
  template <int R>
  FI_VEC_INLINE void dots(const uint32_t* qr, const Row* const* keys, int64_t dim, Vec (&acc)[R][4],
                          Prefetcher& ahead) const {
    for (int64_t d = 0; d < dim; d += kStep) {
      const int64_t left = dim - d;
      ahead.issue_prefetch();
      ahead.issue_prefetch();
      if constexpr (kPairs) {
        Pairs y[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) y[j] = left >= kStep ? load_pairs(keys[j] + d) : load_pairs_n(keys[j] + d, left);
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i) {
          const Pairs x = load_pairs(reinterpret_cast<const bf16_t*>(qr + i * q_cells) + d);
#pragma GCC unroll 4
          for (int j = 0; j < 4; ++j) acc[i][j] = dot_pairs(acc[i][j], x, y[j]);
        }
      } else {
        Vec y[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) y[j] = left >= kStep ? load(keys[j] + d) : load_n(keys[j] + d, left);
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i) {
          const Vec x = load(reinterpret_cast<const float*>(qr + i * q_cells) + d);
#pragma GCC unroll 4
          for (int j = 0; j < 4; ++j) acc[i][j] = fma(x, y[j], acc[i][j]);
        }
      }
    }
  }
  template <int R>
  void logits_of(int64_t i, float* out, Prefetcher& ahead) const {
    const uint32_t* pe = q + i * q_cells;
    const uint32_t* nope = pe + padded(p.dim_kpe) / T::kPerCell;
    for (int64_t j = 0; j < kBlockKeys; j += 4) {
      Vec acc[R][4];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int x = 0; x < 4; ++x) acc[r][x] = zero();
      if (p.dim_kpe) {
        dots<R>(pe, block.kpe + j, p.dim_kpe, acc, ahead);
        if (p.kpe_ratio != 1) {
#pragma GCC unroll 4
          for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int x = 0; x < 4; ++x) acc[r][x] *= splat(p.kpe_ratio);
        }
      }
      dots<R>(nope, block.ckv + j, p.dim_ckv, acc, ahead);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sums_of_four(acc[r], out + r * kBlockKeys + j);
      // 2 lines a step here and 1 for every 2 of the values prefetch 1088 of a block's 1152 lines; the rest are cache
      // misses.
      for (int x = 0; x < 4; ++x) ahead.issue_prefetch();
    }
  }
  /// out[n][kBlockKeys] = logits of rows [i, i + n).
  void logits(int64_t i, int64_t n, float* out, Prefetcher& ahead) const {
    switch (n) {
      case 4: return logits_of<4>(i, out, ahead);
      case 3: return logits_of<3>(i, out, ahead);
      case 2: return logits_of<2>(i, out, ahead);
      default: return logits_of<1>(i, out, ahead);
    }
  }

  /// o[R][d .. d + L * kStep) += P * V over `keys`; `left`: dims that exist from d on.
  template <int R, int L>
  FI_VEC_INLINE void columns(int64_t i, int64_t d, int64_t left, int64_t keys, Prefetcher& ahead) const {
    constexpr int kVecs = kPairs ? 2 * L : L, kL = Vec::kLanes;
    Vec acc[R][kVecs];
    float* to = o + i * width + d;
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) acc[r][v] = load(to + r * width + v * kL);
    if constexpr (kPairs) {
#if defined(__AVX512BF16__)
      alignas(64) uint16_t low[32], high[32];
      for (int x = 0; x < 16; ++x) {
        low[2 * x] = static_cast<uint16_t>(x), low[2 * x + 1] = static_cast<uint16_t>(32 + x);
        high[2 * x] = static_cast<uint16_t>(16 + x), high[2 * x + 1] = static_cast<uint16_t>(48 + x);
      }
      const __m512i lo = _mm512_load_si512(low), hi = _mm512_load_si512(high);
      for (int64_t j = 0; j < keys; j += 2) {
        const Row *a = block.ckv[j] + d, *b = j + 1 < keys ? block.ckv[j + 1] + d : zeros;
        Pairs x[R];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
          x[r] = splat_pair(reinterpret_cast<const bf16_t*>(probabilities + (i + r) * (kBlockKeys / 2)) + j);
#pragma GCC unroll 8
        for (int y = 0; y < L; ++y) {
          ahead.issue_prefetch();
          const int64_t n = left - y * kStep;
          const __m512i ya = n >= kStep ? load_pairs(a + y * kStep).r : load_pairs_n(a + y * kStep, n).r;
          const __m512i yb = n >= kStep ? load_pairs(b + y * kStep).r : load_pairs_n(b + y * kStep, n).r;
          const Pairs even{_mm512_permutex2var_epi16(ya, lo, yb)}, odd{_mm512_permutex2var_epi16(ya, hi, yb)};
#pragma GCC unroll 4
          for (int r = 0; r < R; ++r) {
            acc[r][2 * y] = dot_pairs(acc[r][2 * y], x[r], even);
            acc[r][2 * y + 1] = dot_pairs(acc[r][2 * y + 1], x[r], odd);
          }
        }
      }
#endif
    } else {
      for (int64_t j = 0; j < keys; ++j) {
        const Row* a = block.ckv[j] + d;
#pragma GCC unroll 16
        for (int y = 0; y < L; ++y) {
          ahead.issue_prefetch();
          const int64_t n = left - y * kStep;
          const Vec v = n >= kStep ? load(a + y * kStep) : load_n(a + y * kStep, n);
#pragma GCC unroll 4
          for (int r = 0; r < R; ++r)
            acc[r][y] =
                fma(splat(reinterpret_cast<const float*>(probabilities + (i + r) * kBlockKeys)[j]), v, acc[r][y]);
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) store(to + r * width + v * kL, acc[r][v]);
  }
  template <int R>
  void values_of(int64_t i, int64_t keys, Prefetcher& ahead) const {
    // 16 accumulators with AVX-512, half as many where there are 16 registers.
    constexpr int kRegisters = Vec::kLanes == 16 ? 16 : 8, kVecs = R == 1   ? kRegisters
                                                                   : R == 2 ? kRegisters / 2
                                                                            : kRegisters / 4;
    constexpr int kLines = kPairs ? kVecs / 2 : kVecs;
    int64_t d = 0;
    for (; d + kLines * kStep <= p.dim_ckv; d += kLines * kStep) columns<R, kLines>(i, d, p.dim_ckv - d, keys, ahead);
    for (; d < p.dim_ckv; d += kStep) columns<R, 1>(i, d, p.dim_ckv - d, keys, ahead);
  }
  /// Accumulates rows [i, i + n) over the first `keys` keys of the block; no other key is read.
  void values(int64_t i, int64_t n, int64_t keys, Prefetcher& ahead) const {
    switch (n) {
      case 4: return values_of<4>(i, keys, ahead);
      case 3: return values_of<3>(i, keys, ahead);
      case 2: return values_of<2>(i, keys, ahead);
      default: return values_of<1>(i, keys, ahead);
    }
  }
};

}  // namespace flashinfer::cpu::mla
