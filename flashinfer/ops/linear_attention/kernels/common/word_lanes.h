// SPDX-License-Identifier: Apache-2.0
// Vectors of 64 bytes as words of 16 or 32 bits, with AVX-512: permuted, blended, loaded and stored in part. On Intel's
// cores vpermb (VBMI) is one micro-operation, vpermw two and vpermt2w three.
#pragma once
#include "flashinfer/kernels/cpu/vec.h"

namespace flashinfer::cpu {

/// The word of this size.
template <int Bytes>
struct WordOf {
  using type = uint32_t;
};
template <>
struct WordOf<2> {
  using type = uint16_t;
};

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
/// 64 bytes as words of 2 or 4 bytes.
template <int Bytes>
struct WordLanes {
  static constexpr int kLanes = 64 / Bytes;
  using Word = typename WordOf<Bytes>::type;
  struct Places {
    alignas(64) Word at[kLanes];
    FI_VEC_INLINE __m512i vector() const { return _mm512_load_si512(at); }
  };
  /// Word j of a permutation is word from(j).
  template <class From>
  static constexpr Places places(From from) {
    Places p{};
    for (int j = 0; j < kLanes; ++j) {
      const int at = from(j);
      p.at[j] = static_cast<Word>(at);
#if defined(__AVX512VBMI__)
      if (Bytes == 2) p.at[j] = static_cast<Word>(2 * at | (2 * at + 1) << 8);  // of bytes
#endif
    }
    return p;
  }
  static FI_VEC_INLINE __m512i permute(const Places& p, __m512i v) {
    if constexpr (Bytes == 4) return _mm512_permutexvar_epi32(p.vector(), v);
#if defined(__AVX512VBMI__)
    return _mm512_permutexvar_epi8(p.vector(), v);
#else
    return _mm512_permutexvar_epi16(p.vector(), v);
#endif
  }
  /// 16 bits: odd words as permute(), even ones 0.
  static FI_VEC_INLINE __m512i permute_odd(const Places& p, __m512i v) {
#if defined(__AVX512VBMI__)
    return _mm512_maskz_permutexvar_epi8(0xccccccccccccccccu, p.vector(), v);
#else
    return _mm512_maskz_permutexvar_epi16(0xaaaaaaaau, p.vector(), v);
#endif
  }
  /// The bytes of words j with (j - rest) % n == 0, as blend() takes them.
  static constexpr uint64_t every(int n, int rest) {
    uint64_t m = 0;
    for (int i = 0; i < 64; ++i)
      if ((i / Bytes - rest) % n == 0) m |= uint64_t{1} << i;
    return m;
  }
  static FI_VEC_INLINE __m512i blend(uint64_t bytes, __m512i where_set, __m512i elsewhere) {
    return _mm512_mask_blend_epi8(bytes, elsewhere, where_set);
  }
  /// The first `count` words of a vector; others are 0, and stay as they are in memory.
  static FI_VEC_INLINE __m512i load(const void* p, int64_t count) {
    return count >= kLanes ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi8(first(count), p);
  }
  static FI_VEC_INLINE void store(void* p, __m512i v, int64_t count) {
    if (count >= kLanes)
      _mm512_storeu_si512(p, v);
    else
      _mm512_mask_storeu_epi8(p, first(count), v);
  }

 private:
  static FI_VEC_INLINE __mmask64 first(int64_t count) { return count <= 0 ? 0 : ~uint64_t{0} >> (64 - count * Bytes); }
};

/// Word i of the first half of x and word i of the second one, side by side.
FI_VEC_INLINE __m512i interleave_halves(__m512i x) {
  static constexpr WordLanes<2>::Places kInTurn = WordLanes<2>::places([](int j) { return j % 2 * 16 + j / 2; });
  return WordLanes<2>::permute(kInTurn, x);
}
#endif

}  // namespace flashinfer::cpu
