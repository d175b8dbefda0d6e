// SPDX-License-Identifier: Apache-2.0
// Rows of GGUF blocks as operands: quants are converted to bf16 exactly (at most 8 bits and a sign), scales stay f32
// factors of the sums over a block.
#pragma once
#include "flashinfer/kernels/cpu/gemm.h"
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"

namespace flashinfer::cpu {

FI_VEC_INLINE float gguf_half(const uint8_t* p) {
  f16_t h;
  memcpy(&h.bits, p, 2);
  return static_cast<float>(h);
}

/// The value of an element is scale * q + minimum.
struct GgufScale {
  float scale, minimum;
};

/// One block format: quants of elements [k % block, + 32) as integers in float, and the scale of its group number g of
/// 32 (Q6_K: 16).
template <GemmFormat F>
struct Gguf;
template <>
struct Gguf<GemmFormat::kQ4_0> {
  static FI_VEC_INLINE void quants(const uint8_t* p, int64_t, float* y) {
    for (int i = 0; i < 16; ++i)
      y[i] = static_cast<float>((p[2 + i] & 15) - 8), y[i + 16] = static_cast<float>((p[2 + i] >> 4) - 8);
  }
  static FI_VEC_INLINE GgufScale scale(const uint8_t* p, int64_t) { return {gguf_half(p), 0.0f}; }
};
template <>
struct Gguf<GemmFormat::kQ4_1> {
  static FI_VEC_INLINE void quants(const uint8_t* p, int64_t, float* y) {
    for (int i = 0; i < 16; ++i)
      y[i] = static_cast<float>(p[4 + i] & 15), y[i + 16] = static_cast<float>(p[4 + i] >> 4);
  }
  static FI_VEC_INLINE GgufScale scale(const uint8_t* p, int64_t) { return {gguf_half(p), gguf_half(p + 2)}; }
};
template <>
struct Gguf<GemmFormat::kQ8_0> {
  static FI_VEC_INLINE void quants(const uint8_t* p, int64_t, float* y) {
    for (int i = 0; i < 32; ++i) y[i] = static_cast<float>(static_cast<int8_t>(p[2 + i]));
  }
  static FI_VEC_INLINE GgufScale scale(const uint8_t* p, int64_t) { return {gguf_half(p), 0.0f}; }
};
/// f16 d, f16 dmin, 12 bytes of eight 6-bit scales and eight 6-bit minima, 128 bytes: 32 j .. 32 j + 31 hold group 2 j
/// in the low and 2 j + 1 in the high nibbles.
template <>
struct Gguf<GemmFormat::kQ4_K> {
  static FI_VEC_INLINE void quants(const uint8_t* p, int64_t k, float* y) {
    const uint8_t* q = p + 16 + k / 64 * 32;
    const int shift = k / 32 % 2 ? 4 : 0;
    for (int i = 0; i < 32; ++i) y[i] = static_cast<float>(q[i] >> shift & 15);
  }
  static FI_VEC_INLINE GgufScale scale(const uint8_t* p, int64_t g) {
    const uint8_t* s = p + 4;
    const int scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | s[g - 4] >> 6 << 4;
    const int minimum = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | s[g] >> 6 << 4;
    return {gguf_half(p) * static_cast<float>(scale), -gguf_half(p + 2) * static_cast<float>(minimum)};
  }
};
/// 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, f16 d. Element 128 h + 32 j + i: nibble of byte 64
/// h + 32 (j % 2) + i, high when j >= 2; bits 2 j of byte 32 h + i; minus 32.
template <>
struct Gguf<GemmFormat::kQ6_K> {
  static FI_VEC_INLINE void quants(const uint8_t* p, int64_t k, float* y) {
    const int64_t h = k / 128, j = k / 32 % 4;
    const uint8_t *low = p + 64 * h + 32 * (j % 2), *high = p + 128 + 32 * h;
    const int shift = j >= 2 ? 4 : 0;
    for (int i = 0; i < 32; ++i)
      y[i] = static_cast<float>(((low[i] >> shift & 15) | (high[i] >> (2 * j) & 3) << 4) - 32);
  }
  static FI_VEC_INLINE GgufScale scale(const uint8_t* p, int64_t g) {
    return {gguf_half(p + 208) * static_cast<float>(static_cast<int8_t>(p[192 + g])), 0.0f};
  }
};

/// Rows of blocks, as a source of pack_lines.
template <GemmFormat F>
struct GgufLines {
  static constexpr GgufFormat kFormat = *gguf_format(F);
  const uint8_t* p;
  int64_t line;  // bytes

  FI_VEC_INLINE void gather(int64_t i, int64_t k, int64_t, bf16_t* to) const {
    float y[32];
    Gguf<F>::quants(p + i * line + k / kFormat.elements * kFormat.bytes, k % kFormat.elements, y);
    for (int64_t v = 0; v < 32; v += 2 * Vec::kLanes) write_pair(to + v, load(y + v), load(y + v + Vec::kLanes));
  }
  template <int>
  FI_VEC_INLINE bool pack(int64_t, int64_t, int64_t, int, bf16_t*) const {
    return false;
  }
  /// Of group `g` of the row.
  FI_VEC_INLINE GgufScale scale(int64_t i, int64_t g) const {
    constexpr int64_t kGroups = kFormat.elements / kFormat.grid;
    return Gguf<F>::scale(p + i * line + g / kGroups * kFormat.bytes, g % kGroups);
  }
};

// ---- panels ----

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
#define FI_GGUF_PAIRS 1
struct GgufMagnitudes {
  alignas(64) uint8_t low[128], high[128];
};
constexpr GgufMagnitudes gguf_magnitudes() {
  GgufMagnitudes t{};
  for (uint32_t i = 0; i < 128; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, static_cast<float>(i)) >> 16;
    t.low[i] = static_cast<uint8_t>(bits), t.high[i] = static_cast<uint8_t>(bits >> 8);
  }
  return t;
}
inline constexpr GgufMagnitudes kMagnitudes = gguf_magnitudes();

/// The 16 k pairs of a block of a panel: f(pair, 16 columns).
template <GemmFormat F, class Fn>
FI_VEC_INLINE void each_pair(const uint8_t* q, Fn f) {
  if constexpr (F == GemmFormat::kQ8_0) {
    // Both bytes of the bf16 value are looked up by magnitude; only -128 is not in the table.
    const __m512i low0 = _mm512_load_si512(kMagnitudes.low), low1 = _mm512_load_si512(kMagnitudes.low + 64);
    const __m512i high0 = _mm512_load_si512(kMagnitudes.high), high1 = _mm512_load_si512(kMagnitudes.high + 64);
    const __m512i sign = _mm512_set1_epi8(-128), least = _mm512_set1_epi8(static_cast<char>(0xc3));
#pragma GCC unroll 8
    for (int line = 0; line < 8; ++line) {
      const __m512i x = _mm512_loadu_si512(q + line * 64), magnitude = _mm512_abs_epi8(x);
      const __m512i low = _mm512_permutex2var_epi8(low0, magnitude, low1);
      const __m512i high =
          _mm512_ternarylogic_epi32(_mm512_permutex2var_epi8(high0, magnitude, high1), x, sign, 0xf8);  // a | (b & c)
      const __m512i right = _mm512_mask_mov_epi8(high, _mm512_cmpeq_epi8_mask(x, sign), least);
      f(2 * line, Pairs{_mm512_unpacklo_epi8(low, right)});
      f(2 * line + 1, Pairs{_mm512_unpackhi_epi8(low, right)});
    }
  } else {
    // The look-up uses five bits of a word; the fifth belongs to another element, so the table holds everything twice.
    alignas(64) static constexpr uint16_t kPlain[32] = {0,      0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0,
                                                        0x4100, 0x4110, 0x4120, 0x4130, 0x4140, 0x4150, 0x4160, 0x4170,
                                                        0,      0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0,
                                                        0x4100, 0x4110, 0x4120, 0x4130, 0x4140, 0x4150, 0x4160, 0x4170};
    alignas(64) static constexpr uint16_t kMinus8[32] = {
        0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040, 0xc000, 0xbf80, 0,      0x3f80, 0x4000,
        0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0xc100, 0xc0e0, 0xc0c0, 0xc0a0, 0xc080, 0xc040,
        0xc000, 0xbf80, 0,      0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0};
    const __m512i table = _mm512_load_si512(F == GemmFormat::kQ4_0 ? kMinus8 : kPlain);
#pragma GCC unroll 4
    for (int line = 0; line < 4; ++line) {
      const __m512i w = _mm512_loadu_si512(q + line * 64);
      f(4 * line, Pairs{_mm512_permutexvar_epi16(w, table)});
      f(4 * line + 1, Pairs{_mm512_permutexvar_epi16(_mm512_srli_epi16(w, 4), table)});
      f(4 * line + 2, Pairs{_mm512_permutexvar_epi16(_mm512_srli_epi16(w, 8), table)});
      f(4 * line + 3, Pairs{_mm512_permutexvar_epi16(_mm512_srli_epi16(w, 12), table)});
    }
  }
}
#endif

template <GemmFormat F>
struct GgufPanel {
  static constexpr int64_t kQuants = gguf_quant_bytes(F);
  const uint8_t* quants;  // of block 0
  const uint8_t* scales;

  GgufPanel(const uint8_t* panel, int64_t k)
      : quants(panel + kPanelLine), scales(panel + kPanelLine + k / 32 * kQuants), blocks_(k / 32) {}
  FI_VEC_INLINE const f16_t* scale(int64_t block) const { return reinterpret_cast<const f16_t*>(scales + block * 32); }
  FI_VEC_INLINE const f16_t* minimum(int64_t block) const { return scale(blocks_ + block); }

  /// Prefetches 16 KB further on, into L2; panels are contiguous. The scales are between the quants of two panels, so
  /// the prefetch advances by the lines of a block including its scales. (Advancing by a block's quants alone, 8 KB on,
  /// missed a fifth of the lines: 0.76 of the read bandwidth over the weights of a small model where this gives 0.88; 8
  /// and 32 KB 0.86, 4 KB 0.76. Into L1: 1 to 4 KB 0.70-0.73, 8 KB 0.83.)
  FI_VEC_INLINE void prefetch_ahead(int64_t block) const {
    constexpr int64_t kAhead = 16384, kBytes = kQuants + gguf_scale_bytes(F);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kBytes; i += 64) __builtin_prefetch(quants + block * kBytes + kAhead + i, 0, 2);
  }

  /// to[16 pairs][16 columns][2] of a block.
  FI_VEC_INLINE void unpack(int64_t block, bf16_t* to) const {
    const uint8_t* q = quants + block * kQuants;
#if defined(FI_GGUF_PAIRS)
    each_pair<F>(q, [&](int pair, Pairs w) { _mm512_storeu_si512(to + pair * 32, w.r); });
#else
    unpack_one_by_one(q, to);
#endif
  }

 private:
  static void unpack_one_by_one(const uint8_t* q, bf16_t* to) {
    float y[32];
    for (int pair = 0; pair < 16; ++pair, to += 32) {
      if constexpr (F == GemmFormat::kQ8_0) {
        for (int i = 0; i < 32; ++i) y[i] = static_cast<float>(static_cast<int8_t>(q[gguf_byte_place(pair, i)]));
      } else {
        constexpr int kZero = F == GemmFormat::kQ4_0 ? 8 : 0;
        const uint8_t* words = q + pair / 4 * 64 + pair % 4 / 2;
        const int shift = pair % 2 * 4;
        for (int i = 0; i < 32; ++i) y[i] = static_cast<float>((words[2 * i] >> shift & 15) - kZero);
      }
      for (int64_t v = 0; v < 32; v += 2 * Vec::kLanes) write_pair(to + v, load(y + v), load(y + v + Vec::kLanes));
    }
  }

  int64_t blocks_;
};

/// Few rows times a panel, with quants converted as they are used: bound by reading them. Accumulates in the order of
/// the tiles. `sums_of_a`: [row][block].
template <GemmFormat F, int Rows>
__attribute__((noinline)) void multiply_gguf_panel(const GgufPanel<F>& panel, int64_t blocks, const TileInput& in,
                                                   const float* sums_of_a, int64_t sums_row, float* sums) {
  Vec acc[Rows][kPanelVecs];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < kPanelVecs; ++v) acc[r][v] = zero();
  const bf16_t* a = in.a;
  for (int64_t b = 0; b < blocks; ++b, a += 16 * in.pair) {
    Vec part[Rows][kPanelVecs];
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < kPanelVecs; ++v) part[r][v] = zero();
    panel.prefetch_ahead(b);
#if defined(FI_GGUF_PAIRS)
    each_pair<F>(panel.quants + b * GgufPanel<F>::kQuants, [&](int pair, Pairs w) {
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) part[r][0] = dot_pairs(part[r][0], w, splat_pair(a + r * in.row + pair * in.pair));
    });
#else
    alignas(64) bf16_t w[16 * 32];
    panel.unpack(b, w);
    for (int pair = 0; pair < 16; ++pair)
      for (int r = 0; r < Rows; ++r)
        for (int v = 0; v < kPanelVecs; ++v)
          part[r][v] = dot_pairs(part[r][v], splat_pair(a + r * in.row + pair * in.pair),
                                 load_pairs(w + pair * 32 + v * 2 * Vec::kLanes));
#endif
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < kPanelVecs; ++v) {
        acc[r][v] = fma(part[r][v], load(panel.scale(b) + v * Vec::kLanes), acc[r][v]);
        if constexpr (GgufLines<F>::kFormat.minimum)
          acc[r][v] = fma(splat(sums_of_a[r * sums_row + b]), load(panel.minimum(b) + v * Vec::kLanes), acc[r][v]);
      }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < kPanelVecs; ++v) store(sums + r * kPanelColumns + v * Vec::kLanes, acc[r][v]);
}
template <GemmFormat F, int Rows = kBlockRows>
void multiply_gguf_rows(int64_t rows, const GgufPanel<F>& panel, int64_t blocks, const TileInput& in,
                        const float* sums_of_a, int64_t sums_row, float* sums) {
  if (rows == Rows) return multiply_gguf_panel<F, Rows>(panel, blocks, in, sums_of_a, sums_row, sums);
  if constexpr (Rows > 1) return multiply_gguf_rows<F, Rows - 1>(rows, panel, blocks, in, sums_of_a, sums_row, sums);
}

#undef FI_GGUF_PAIRS
}  // namespace flashinfer::cpu
