// SPDX-License-Identifier: Apache-2.0
// Rows of N elements, one for each channel, as states and filters are stored: split into f32 vectors of channels, and
// moved by a token, in registers, with AVX-512. Two and four elements are words of 32 bits or pairs of them; where N is
// 3, element k has different places in the vectors of a block, so that it is blended from them and ordered by one
// permutation of one vector.
#pragma once
#include "flashinfer/ops/linear_attention/kernels/common/word_lanes.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define FI_CONV_TAP_ROWS 1

namespace flashinfer::cpu {

template <class T, int N>
struct TapRows {
  static_assert(N >= 1 && N <= 4);
  using Lanes = WordLanes<sizeof(T)>;
  using Places = typename Lanes::Places;
  static constexpr int kChannels = Lanes::kLanes;  // of a block, which is N vectors
  static constexpr int kVecs = kChannels / Vec::kLanes;

  static FI_VEC_INLINE void widen(__m512i v, Vec (&to)[kVecs]) {
    if constexpr (sizeof(T) == 4)
      to[0] = {_mm512_castsi512_ps(v)};
    else
      to[0] = widen(_mm512_castsi512_si256(v)), to[1] = widen(_mm512_extracti64x4_epi64(v, 1));
  }
  /// tap[k][i]: elements k of channels [i Vec::kLanes, (i + 1) Vec::kLanes) of a block, of which the first `count` are.
  static FI_VEC_INLINE void split(const T* rows, int64_t count, Vec (&tap)[N][kVecs]) {
    __m512i v[N];
#pragma GCC unroll 4
    for (int m = 0; m < N; ++m) v[m] = Lanes::load(rows + m * kChannels, count * N - m * kChannels);
    if constexpr (N == 1) {
      widen(v[0], tap[0]);
    } else if constexpr (N == 3) {
      constexpr uint64_t kOf[N][2] = {{Lanes::every(N, 0), Lanes::every(N, -kChannels)},
                                      {Lanes::every(N, 1), Lanes::every(N, 1 - kChannels)},
                                      {Lanes::every(N, 2), Lanes::every(N, 2 - kChannels)}};
#pragma GCC unroll 3
      for (int k = 0; k < N; ++k) order(k, Lanes::blend(kOf[k][0], v[0], Lanes::blend(kOf[k][1], v[1], v[2])), tap[k]);
    } else if constexpr (sizeof(T) == 4) {
      __m512i even[N / 2], odd[N / 2];
#pragma GCC unroll 2
      for (int m = 0; m < N / 2; ++m) halve(v[2 * m], v[2 * m + 1], even[m], odd[m]);
      if constexpr (N == 4) {
        __m512i part[N];
        halve(even[0], even[1], part[0], part[2]);
        halve(odd[0], odd[1], part[1], part[3]);
#pragma GCC unroll 4
        for (int k = 0; k < N; ++k) tap[k][0] = {_mm512_castsi512_ps(part[k])};
      } else {
        tap[0][0] = {_mm512_castsi512_ps(even[0])};
        tap[1][0] = {_mm512_castsi512_ps(odd[0])};
      }
    } else {
#pragma GCC unroll 2
      for (int i = 0; i < kVecs; ++i) {
        if constexpr (N == 4) {
          __m512i even, odd;
          halve(v[2 * i], v[2 * i + 1], even, odd);
          pair(even, tap[0][i], tap[1][i]);
          pair(odd, tap[2][i], tap[3][i]);
        } else {
          pair(v[i], tap[0][i], tap[1][i]);
        }
      }
    }
  }
  /// The rows move by an element; those of x come last.
  static FI_VEC_INLINE void push(const T* x, int64_t count, T* rows) {
    const __m512i in = Lanes::load(x, count);
    if constexpr (N == 1) {
      Lanes::store(rows, in, count);
    } else {
      static constexpr Places kFrom[3] = {of_x(0), of_x(1), of_x(2)};
      constexpr uint64_t kLast[3] = {Lanes::every(N, N - 1), Lanes::every(N, N - 1 - kChannels),
                                     Lanes::every(N, N - 1 - 2 * kChannels)};
      __m512i next[N];
#pragma GCC unroll 4
      for (int m = 0; m < N; ++m)  // from the next word on, but nothing behind the rows
        next[m] = Lanes::load(rows + m * kChannels + 1, count * N - 1 - m * kChannels);
#pragma GCC unroll 4
      for (int m = 0; m < N; ++m)
        Lanes::store(rows + m * kChannels, Lanes::blend(kLast[m], Lanes::permute(kFrom[m], in), next[m]),
                     count * N - m * kChannels);
    }
  }

  /// The low and the high halves of words of 32 bits.
  static FI_VEC_INLINE void pair(__m512i v, Vec& low, Vec& high) {
    if constexpr (__is_same(T, bf16_t)) {
      low = {_mm512_castsi512_ps(_mm512_slli_epi32(v, 16))};
      high = {_mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
    } else {
      low = widen(_mm512_cvtepi32_epi16(v));
      high = widen(_mm512_cvtepi32_epi16(_mm512_srli_epi32(v, 16)));
    }
  }

 private:
  static FI_VEC_INLINE Vec widen(__m256i v) {
    if constexpr (__is_same(T, bf16_t))
      return detail::widen_bf16(v);
    else
      return detail::widen_f16(v);
  }
  /// Even and odd words of 32 bits of two vectors.
  static FI_VEC_INLINE void halve(__m512i a, __m512i b, __m512i& even, __m512i& odd) {
    static constexpr WordLanes<4>::Places kEven = WordLanes<4>::places([](int j) { return 2 * j; }),
                                          kOdd = WordLanes<4>::places([](int j) { return 2 * j + 1; });
    even = _mm512_permutex2var_epi32(a, kEven.vector(), b);
    odd = _mm512_permutex2var_epi32(a, kOdd.vector(), b);
  }
  /// Element k of channel c is word 3 c + k of the block, which blending keeps at its place in a vector.
  static constexpr Places of_channels(int k) {
    return Lanes::places([=](int j) { return (3 * j + k) % kChannels; });
  }
  static constexpr Places of_half(int k, int half) {  // words of 32 bits with the element above
    return Lanes::places([=](int j) { return (3 * (j / 2 + half * Vec::kLanes) + k) % kChannels; });
  }
  /// For vector m of the rows.
  static constexpr Places of_x(int m) {
    return Lanes::places([=](int j) { return (m * kChannels + j) / N % kChannels; });
  }
  static FI_VEC_INLINE void order(int k, __m512i v, Vec (&to)[kVecs]) {
    if constexpr (__is_same(T, bf16_t)) {
      static constexpr Places kOf[3][2] = {
          {of_half(0, 0), of_half(0, 1)}, {of_half(1, 0), of_half(1, 1)}, {of_half(2, 0), of_half(2, 1)}};
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) to[i] = {_mm512_castsi512_ps(Lanes::permute_odd(kOf[k][i], v))};
    } else {
      static constexpr Places kOf[3] = {of_channels(0), of_channels(1), of_channels(2)};
      widen(Lanes::permute(kOf[k], v), to);
    }
  }
};

}  // namespace flashinfer::cpu
#endif
