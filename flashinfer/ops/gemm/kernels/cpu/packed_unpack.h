// SPDX-License-Identifier: Apache-2.0
// Converts panels of prepare_quantized_weights (kernels/packed_layout.h) to bf16: a line of 64 bytes holds one 4-byte
// word of each of 16 columns.
#pragma once
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/gemm/kernels/cpu/pack_sources.h"
#include "flashinfer/ops/gemm/kernels/packed_layout.h"

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__) && defined(__AVX512BW__)
#define FI_GEMV 1
#endif

namespace flashinfer::cpu::detail {

#if FI_GEMV
/// f(i, the 16 columns of k pair i) for the pairs of a line, unscaled.
template <GemmFormat F>
struct PackedPairs {  // bf16
  static constexpr int kUnit = 4, kElements = 2;
  template <class Fn>
  FI_VEC_INLINE void each(__m512i x, Fn f) const {
    f(0, Pairs{x});
  }
};
template <GemmFormat F>
  requires(F == GemmFormat::kE4M3 || F == GemmFormat::kE5M2)
struct PackedPairs<F> {
  static constexpr int kUnit = 2, kElements = 4;
  const Fp8Bytes& t = bytes_of(static_cast<const gemm_scalar_t<F>*>(nullptr));
  const __m512i low0 = _mm512_load_si512(t.low), low1 = _mm512_load_si512(t.low + 64),
                high0 = _mm512_load_si512(t.high), high1 = _mm512_load_si512(t.high + 64),
                sign = _mm512_set1_epi8(-128);

  template <class Fn>
  FI_VEC_INLINE void each(__m512i x, Fn f) const {
    const __m512i low = _mm512_permutex2var_epi8(low0, x, low1);
    const __m512i high =
        _mm512_ternarylogic_epi32(_mm512_permutex2var_epi8(high0, x, high1), x, sign, 0xf8);  // a | (b & c)
    f(0, Pairs{_mm512_unpacklo_epi8(low, high)});
    f(1, Pairs{_mm512_unpackhi_epi8(low, high)});
  }
};
template <>
struct PackedPairs<GemmFormat::kFp4> {
  static constexpr int kUnit = 4, kElements = 8;
  // A look-up uses five bits: a code and one bit of the next.
  const __m512i values = _mm512_broadcast_i64x4(_mm256_setr_epi16(
      0, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40c0, static_cast<short>(0x8000), static_cast<short>(0xbf00),
      static_cast<short>(0xbf80), static_cast<short>(0xbfc0), static_cast<short>(0xc000), static_cast<short>(0xc040),
      static_cast<short>(0xc080), static_cast<short>(0xc0c0)));
  const __m512i bits = _mm512_set1_epi64(0x2424202004040000);  // where the codes of a pair start in each of two columns

  template <class Fn>
  FI_VEC_INLINE void each(__m512i x, Fn f) const {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512i codes =
          _mm512_multishift_epi64_epi8(_mm512_add_epi8(bits, _mm512_set1_epi8(static_cast<char>(8 * i))), x);
      f(i, Pairs{_mm512_permutexvar_epi16(codes, values)});
    }
  }
};
#endif

/// The scale factors of 16 columns.
FI_VEC_INLINE void scales_of_bytes(const uint8_t* from, bool e8m0, float* to) {
#if defined(__AVX512F__)
  store(to, scale_values(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))), e8m0));
#else
  for (int c = 0; c < kPanelColumns; ++c) to[c] = scale_of_byte(from[c], e8m0);
#endif
}

/// One panel; scale factors are multiplied into the elements, as in ScaledLines.
template <GemmFormat F>
struct PackedPanel {
  static constexpr int64_t kElements = F == GemmFormat::kFp4 ? 8 : 4, kLines = 32 / kElements;  // of a word; of 32 k
  const uint8_t* lines;                                                                         // after the header
  const uint8_t* sf;  // of SfLayout::kPanels, or null
  int64_t sf_block;
  bool e8m0;

  /// to[pairs][16][2] = the k pairs from `pair` on, a multiple of 16.
  FI_VEC_INLINE void unpack(int64_t pair, int64_t pairs, bf16_t* to) const {
    for (; pairs >= 16; pair += 16, pairs -= 16, to += 512) unpack_32(pair / 16, to);
    if (pairs <= 0) return;
    alignas(64) bf16_t rest[512];
    unpack_32(pair / 16, rest);
    memcpy(static_cast<void*>(to), rest, static_cast<size_t>(pairs) * 64);
  }

 private:
  FI_VEC_INLINE void unpack_32(int64_t block, bf16_t* to) const {
    const uint8_t* const from = lines + block * kLines * 64;
    alignas(64) float scales[2][kPanelColumns];  // of both halves
    if (sf) {
      const uint8_t* const at = sf + (sf_block == 16 ? 2 * block : block) * kPanelColumns;
      scales_of_bytes(at, e8m0, scales[0]);
      scales_of_bytes(sf_block == 16 ? at + kPanelColumns : at, e8m0, scales[1]);
    }
#if FI_GEMV
    const PackedPairs<F> words;
    const __m512i order = _mm512_setr_epi64(0x0011000100100000, 0x0013000300120002, 0x0015000500140004,
                                            0x0017000700160006, 0x0019000900180008, 0x001b000b001a000a,
                                            0x001d000d001c000c, 0x001f000f001e000e);  // lane c, lane 16 + c
    const __m512i nan = _mm512_set1_epi8(-1), high = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
#pragma GCC unroll 2
    for (int64_t line = 0; line < kLines; ++line, to += kElements * kPanelColumns) {
      __m512i x = _mm512_loadu_si512(from + line * 64);
      if (!sf) {
        words.each(x, [&](int i, Pairs w) { _mm512_storeu_si512(to + i * 32, w.r); });
        continue;
      }
      // A scaled NaN has no sign.
      if constexpr (F == GemmFormat::kE4M3)
        x = _mm512_mask_mov_epi8(x, _mm512_cmpeq_epi8_mask(x, nan), _mm512_set1_epi8(127));
      const __m512 scale = _mm512_load_ps(scales[line >= kLines / 2]);
      words.each(x, [&](int i, Pairs w) {
        const __m512 even = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(w.r, 16)), scale);
        const __m512 odd = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_and_si512(w.r, high)), scale);
        _mm512_storeu_si512(to + i * 32,
                            _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even))));
      });
    }
#else
    for (int64_t k = 0; k < 32; k += 2, to += 32) {
      alignas(64) float y[32], factors[32];
      e4m3_t codes[32];
      const uint8_t* const line = from + k / kElements * 64;
      for (int64_t i = 0; i < 32; ++i) {
        const int64_t c = i / 2, e = k % kElements + i % 2;
        const uint8_t byte = line[packed_place(F, c, F == GemmFormat::kFp4 ? e / 2 : e)];
        if (F == GemmFormat::kFp4)
          y[i] = e2m1_to_f32(byte >> (e % 2 * 4) & 15);
        else
          memcpy(&codes[i], &byte, 1);
        factors[i] = sf ? scales[k >= 16][c] : 1.0f;
      }
      if constexpr (F == GemmFormat::kE4M3) {  // NaNs as in the vector code
        if (!sf) {
          widen_row(codes, 32, to);
          continue;
        }
        for (int64_t v = 0; v < 32; v += Vec::kLanes) store(y + v, load(codes + v));
      }
      for (int64_t v = 0; v < 32; v += Vec::kLanes) store(y + v, load(y + v) * load(factors + v));
      for (int64_t v = 0; v < 32; v += 2 * Vec::kLanes) write_pair(to + v, load(y + v), load(y + v + Vec::kLanes));
    }
#endif
  }
};

}  // namespace flashinfer::cpu::detail
