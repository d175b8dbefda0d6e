// SPDX-License-Identifier: Apache-2.0
// Weights in GGUF blocks times activations in 8-bit blocks: quantising the rows, and the product. The tile is in
// kernels/cpu/int8_tile.h.
#pragma once
#include "flashinfer/ops/gemm/kernels/cpu/gguf_sources.h"
#include "flashinfer/ops/gemm/kernels/cpu/int8_tile.h"
#include "flashinfer/ops/gemm/kernels/int8_params.h"

namespace flashinfer::cpu {
namespace detail {

/// 32 quantised elements, their scale, and the sums of both halves.
struct QuantizedBlock {
  alignas(32) int8_t q[32];  // in the order of the quads
  float scale;
  int32_t sums[2];
};

template <bool Nibbles>
FI_VEC_INLINE void quantize_block(const bf16_t* x, QuantizedBlock& out) {
  constexpr int kVecs = 32 / Vec::kLanes;
  Vec v[kVecs], most = zero();
  Mask nan = is_nan(most);
#pragma GCC unroll 8
  for (int i = 0; i < kVecs; ++i) {
    v[i] = load(x + i * Vec::kLanes);
    most = max(abs(v[i]), most);
    nan = nan | is_nan(v[i]);
  }
  const float amax = reduce_max(most);
  const bool bad = any(nan) || !(amax < __builtin_inff());
  out.scale = bad ? __builtin_nanf("") : amax < 1e-36f ? 0.0f : amax / 127.0f;
  const Vec inverse = splat(bad || amax < 1e-36f ? 0.0f : 127.0f / amax);
#if FI_VNNI
  const __m512i zeros = _mm512_setzero_si512();  // 0 times infinity cannot be converted to an integer
  const __m512i low = bad ? zeros : _mm512_cvtps_epi32(round(v[0] * inverse).r),
                high = bad ? zeros : _mm512_cvtps_epi32(round(v[1] * inverse).r);
  out.sums[0] = _mm512_reduce_add_epi32(low), out.sums[1] = _mm512_reduce_add_epi32(high);
  __m128i a = _mm512_cvtepi32_epi8(low), b = _mm512_cvtepi32_epi8(high);
  if constexpr (Nibbles) {
    const __m128i order = _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    a = _mm_shuffle_epi8(a, order), b = _mm_shuffle_epi8(b, order);
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out.q), a);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out.q + 16), b);
#else
  float y[32];
  for (int i = 0; i < kVecs; ++i) store(y + i * Vec::kLanes, bad ? zero() : round(v[i] * inverse));
  out.sums[0] = out.sums[1] = 0;
  for (int i = 0; i < 32; ++i) {
    const int q = static_cast<int>(y[i]);
    out.q[byte_order(Nibbles, i)] = static_cast<int8_t>(q);
    out.sums[i / 16] += q;
  }
#endif
}

/// Blocks of a panel of prepare_gguf_weights, read in place. `Prefetch`: also prefetches.
template <GemmFormat F, bool Prefetch>
struct GgufPanelBytes {
  static constexpr int kGroups = 1;
  static constexpr bool kMinima = GgufLines<F>::kFormat.minimum;
  GgufPanel<F> panel;

  FI_VEC_INLINE Vec scale(int64_t block, int, int v) const { return load(panel.scale(block) + v * Vec::kLanes); }
  FI_VEC_INLINE Vec minimum(int64_t block, int, int v) const { return load(panel.minimum(block) + v * Vec::kLanes); }
#if FI_VNNI
  template <class Fn>
  FI_VEC_INLINE void each_quad(int64_t block, int, Fn f) const {
    constexpr int kLines = static_cast<int>(GgufPanel<F>::kQuants / 64);
    const uint8_t* const q = panel.quants + block * GgufPanel<F>::kQuants;
    if constexpr (Prefetch) panel.prefetch_ahead(block);
#pragma GCC unroll 8
    for (int line = 0; line < kLines; ++line) {
      const __m512i x = _mm512_loadu_si512(q + line * 64);
      if constexpr (F == GemmFormat::kQ8_0) {
        // A quarter holds two pairs of four columns, one after the other: put them side by side, and flip the sign bit,
        // so that values start at -128.
        const __m512i order =
            _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
        f(line, _mm512_xor_si512(_mm512_shuffle_epi8(x, order), _mm512_set1_epi8(-128)));
      } else {
        const __m512i nibble = _mm512_set1_epi8(15);
        f(2 * line, _mm512_and_si512(x, nibble));
        f(2 * line + 1, _mm512_and_si512(_mm512_srli_epi16(x, 4), nibble));
      }
    }
  }
#elif FI_AVX_VNNI
  template <class Fn>
  FI_VEC_INLINE void each_half(int64_t block, int, int half, Fn f) const {
    constexpr int kLines = static_cast<int>(GgufPanel<F>::kQuants / 64);
    const uint8_t* const q = panel.quants + block * GgufPanel<F>::kQuants + half * 32;
    if constexpr (Prefetch)
      if (half == 0) panel.prefetch_ahead(block);
#pragma GCC unroll 8
    for (int line = 0; line < kLines; ++line) {
      const __m256i x = load_bytes(q + line * 64);
      if constexpr (F == GemmFormat::kQ8_0) {  // as above
        const __m256i order =
            _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
        f(line, _mm256_xor_si256(_mm256_shuffle_epi8(x, order), _mm256_set1_epi8(-128)));
      } else {
        const __m256i nibble = _mm256_set1_epi8(15);
        f(2 * line, _mm256_and_si256(x, nibble));
        f(2 * line + 1, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble));
      }
    }
  }
#endif
  void bytes(int64_t block, uint8_t* w) const {
    const uint8_t* const q = panel.quants + block * GgufPanel<F>::kQuants;
    for (int i = 0; i < 512; ++i) {
      const int quad = i / 64, at = i % 64;
      if constexpr (F == GemmFormat::kQ8_0)
        w[i] = static_cast<uint8_t>(q[gguf_byte_place(2 * quad + at % 4 / 2, at / 4 * 2 + at % 2)] ^ 128);
      else
        w[i] = static_cast<uint8_t>(q[quad / 2 * 64 + at] >> (quad % 2 * 4) & 15);
    }
  }
};

/// Some blocks of 16 unpacked rows, as quads.
template <GemmFormat F>
struct GgufByteBlocks {
  static constexpr int kBlocks = 16, kGroups = static_cast<int>(32 / GgufLines<F>::kFormat.grid);
  static constexpr bool kMinima = GgufLines<F>::kFormat.minimum;
  alignas(64) uint8_t quads[kBlocks * 512];
  alignas(64) float scales[kBlocks * kGroups * kPanelColumns], minima[kMinima ? kBlocks * kPanelColumns : 1];

  /// Blocks [first, first + count) of `columns` rows from `lines` on; missing rows are 0.
  void fill(const GgufLines<F>& lines, int64_t columns, int64_t first, int64_t count) {
    memset(quads, 0, sizeof quads), memset(scales, 0, sizeof scales), memset(minima, 0, sizeof minima);
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t b = 0; b < count; ++b) {
        float y[32];
        const int64_t k = (first + b) * 32;
        Gguf<F>::quants(lines.p + c * lines.line + k / lines.kFormat.elements * lines.kFormat.bytes,
                        k % lines.kFormat.elements, y);
        for (int i = 0; i < 32; ++i) {
          const int at = byte_order(nibble_order(F), i);
          quads[b * 512 + at / 4 * 64 + c * 4 + at % 4] = static_cast<uint8_t>(static_cast<int>(y[i]) + byte_zero(F));
        }
        for (int g = 0; g < kGroups; ++g) {
          const GgufScale s = lines.scale(c, (first + b) * kGroups + g);
          scales[(b * kGroups + g) * kPanelColumns + c] = s.scale;
          if constexpr (kMinima) minima[b * kPanelColumns + c] = s.minimum;
        }
      }
  }
};

template <GemmFormat F>
void multiply_byte_panel(const ByteGemmParams& p, int64_t begin, int64_t end, int64_t panel, const Output& out) {
  const GgufPanel<F> at(p.b + panel * p.b_line, p.k);
  alignas(64) float sums[kBlockRows * kPanelColumns];
  each_group(p, 1, begin, end, [&](int64_t r, int64_t rows, const BytesOfA& a) {
    // Prefetching once is enough: doing it for each of 64 groups of rows cost up to 8 %.
    if (r > begin && rows == kBlockRows)
      multiply_bytes<kBlockRows>(GgufPanelBytes<F, false>{at}, p.k / 32, a, sums, true);
    else
      multiply_byte_rows(rows, GgufPanelBytes<F, true>{at}, p.k / 32, a, sums, true);
    finish_rows(out, sums, kPanelColumns, r, rows);
  });
}

/// Unpacked rows, as in the file.
template <GemmFormat F>
void multiply_byte_lines(const ByteGemmParams& p, int64_t begin, int64_t end, int64_t panel, const Output& out) {
  using Blocks = GgufByteBlocks<F>;
  Blocks some;
  const ByteBlocks<Blocks::kGroups, Blocks::kMinima> b{some.quads, some.scales, some.minima};
  const GgufLines<F> lines{p.b + panel * kPanelColumns * p.b_line, p.b_line};
  const int64_t left = p.n - panel * kPanelColumns;
  multiply_filled(p, b, Blocks::kBlocks, begin, end, out, [&](int64_t first, int64_t count) {
    some.fill(lines, left < kPanelColumns ? left : int64_t{kPanelColumns}, first, count);
  });
}

}  // namespace detail

template <ByteGemmConfig C>
void gemm_bytes(const ByteGemmParams& p, int64_t task) {
  detail::each_panel(p, task, [&](int64_t panel, int64_t begin, int64_t end, const Output& out) {
    if constexpr (C.packed_b)
      detail::multiply_byte_panel<C.b>(p, begin, end, panel, out);
    else
      detail::multiply_byte_lines<C.b>(p, begin, end, panel, out);
  });
}

template <QuantizeRowsConfig C>
void quantize_rows(const QuantizeRowsParams& p, int64_t task) {
  const int64_t first = task * p.width, rows = p.m - first < p.width ? p.m - first : p.width, blocks = p.k / 32;
  int8_t* const to = p.to + task * p.width * p.k;
  ByteRow* const factors = p.rows + task * p.width * blocks * p.groups_per_32;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t block = 0; block < blocks; ++block) {
      alignas(64) bf16_t x[32];
      detail::gather_line(p.from + (first + r) * p.line, p.step, 32 * block, p.k, x);
      detail::QuantizedBlock q;
      detail::quantize_block<C.nibbles>(x, q);
      int8_t* const quads = to + block * 32 * p.width + r * 4;
      for (int i = 0; i < 8; ++i) memcpy(quads + i * 4 * p.width, q.q + 4 * i, 4);
      for (int g = 0; g < p.groups_per_32; ++g) {
        const int32_t sum = p.groups_per_32 == 2 ? q.sums[g] : q.sums[0] + q.sums[1];
        factors[(block * p.groups_per_32 + g) * p.width + r] = {q.scale, -p.zero * sum,
                                                                q.scale * static_cast<float>(sum)};
      }
    }
}

}  // namespace flashinfer::cpu
