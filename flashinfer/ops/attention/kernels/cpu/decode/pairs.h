// SPDX-License-Identifier: Apache-2.0
// Products of the decode kernel on bf16 with vdpbf16ps (AVX-512 BF16). K rows are used unpacked: a pass of W query
// heads fills the 16 lanes with W heads x 16/W pairs of dims, and the load broadcasts the matching 32/W elements of K.
// So W heads take the least number of dot products, D/32 * W a key, nothing is transposed, and only 16/W lanes remain
// to be added (none at W = 16). V: rows of two keys are interleaved in registers (vpermt2w) and multiplied by broadcast
// pairs of probabilities.
#pragma once
#if defined(__AVX512BF16__)
#include "flashinfer/kernels/cpu/tile.h"
#include "flashinfer/ops/attention/kernels/cpu/decode/prefetch.h"
#include "flashinfer/ops/attention/kernels/cpu/decode/softmax.h"

namespace flashinfer::cpu::attention {

namespace pairs {

FI_VEC_INLINE __m512 dot(__m512 acc, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(acc, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}
/// dot(acc, a, the pair at `b` in all lanes) as one instruction; g++ 12 makes two. The reorder buffer then holds twice
/// as many products, which hides more memory latency: at 8 heads 111 instead of 117 cycles a key, at 16 up to a tenth
/// less while other programs run.
FI_VEC_INLINE __m512 dot_each(__m512 acc, __m512i a, const void* b) {
  struct Pair {
    uint32_t bits;
  } __attribute__((packed, may_alias));
  const Pair& pair = *static_cast<const Pair*>(b);
#if defined(FI_CPU_TILE_ASM)
  asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(a), "m"(pair));
  return acc;
#else
  return dot(acc, a, _mm512_set1_epi32(static_cast<int>(pair.bits)));
#endif
}
FI_VEC_INLINE __m512i load32(const bf16_t* p) { return _mm512_loadu_si512(p); }
FI_VEC_INLINE __m512i load32_n(const bf16_t* p, int64_t n) {
  return _mm512_maskz_loadu_epi16(_bzhi_u32(0xffffffffu, static_cast<uint32_t>(n)), p);
}

/// 32 / W elements of K for each of W heads.
template <int W>
FI_VEC_INLINE __m512i spread(const bf16_t* k) {
  if constexpr (W == 1) return load32(k);
  if constexpr (W == 2) return _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(k)));
  if constexpr (W == 4) return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(k)));
  if constexpr (W == 8) {
    int64_t x;
    memcpy(&x, k, 8);
    return _mm512_set1_epi64(x);
  }
  int32_t x;
  memcpy(&x, k, 4);
  return _mm512_set1_epi32(x);
}
template <int W>
FI_VEC_INLINE __m512 dot_spread(__m512 acc, __m512i q, const bf16_t* k) {
  if constexpr (W == 16)
    return dot_each(acc, q, k);
  else
    return dot(acc, q, spread<W>(k));
}
/// spread with n < 32 / W elements.
template <int W>
FI_VEC_INLINE __m512i spread_n(const bf16_t* k, int64_t n) {
  if constexpr (W == 1) return load32_n(k, n);
  const __m128i some = _mm_maskz_loadu_epi16(static_cast<__mmask8>(_bzhi_u32(0xff, static_cast<uint32_t>(n & 15))), k);
  if constexpr (W == 2)
    return _mm512_broadcast_i64x4(
        _mm256_maskz_loadu_epi16(static_cast<__mmask16>(_bzhi_u32(0xffff, static_cast<uint32_t>(n))), k));
  if constexpr (W == 4) return _mm512_broadcast_i32x4(some);
  if constexpr (W == 8) return _mm512_broadcastq_epi64(some);
  return _mm512_broadcastd_epi32(some);
}

/// q rows of a pass as vectors of W heads x 32/W elements, zero past `dim` and past `rows`.
template <int W>
inline void pack_q(const bf16_t* const* rows, int count, int64_t dim, uint32_t* out) {
  constexpr int64_t kE = 32 / W;
  bf16_t* to = reinterpret_cast<bf16_t*>(out);
  for (int64_t d = 0; d < padded(dim); d += kE)
    for (int h = 0; h < W; ++h, to += kE)
      for (int64_t i = 0; i < kE; ++i) to[i] = h < count && d + i < dim ? rows[h][d + i] : bf16_t(0.0f);
}

/// Lanes with bit S clear: a[l] + a[l ^ S]; set: b[l] + b[l ^ S].
template <int S>
FI_VEC_INLINE __m512 meet(__m512 a, __m512 b) {
  constexpr __mmask16 kSet = S == 1 ? 0xaaaa : S == 2 ? 0xcccc : 0xf0f0, kClear = static_cast<__mmask16>(~kSet);
  if constexpr (S == 4)
    return _mm512_add_ps(_mm512_mask_shuffle_f32x4(a, kSet, b, b, 0xb1),
                         _mm512_mask_shuffle_f32x4(b, kClear, a, a, 0xb1));
  else
    return _mm512_add_ps(_mm512_mask_permute_ps(a, kSet, b, S == 1 ? 0xb1 : 0x4e),
                         _mm512_mask_permute_ps(b, kClear, a, S == 1 ? 0xb1 : 0x4e));
}
/// Sums of 8 keys from lanes of rows x parts to the logits' order.
template <int W>
FI_VEC_INLINE void add_parts(const __m512 (&acc)[8], float* s) {
  __m512 r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = acc[i];
  if constexpr (W <= 8)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) r[i] = meet<1>(r[2 * i], r[2 * i + 1]);
  if constexpr (W <= 4)
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) r[i] = meet<2>(r[2 * i], r[2 * i + 1]);
  if constexpr (W <= 2) r[0] = meet<4>(r[0], r[1]);
  if constexpr (W == 1) {
    _mm256_storeu_ps(s, _mm256_add_ps(_mm512_castps512_ps256(r[0]), _mm512_extractf32x8_ps(r[0], 1)));
  } else {
    constexpr int kVecs = W / 2;
#pragma GCC unroll 8
    for (int i = 0; i < kVecs; ++i) _mm512_storeu_ps(s + i * 16, r[i]);
  }
}

/// Logits of keys [begin, end), rounded outwards to 8.
template <int W, int Share>
__attribute__((noinline)) void scores(const bf16_t* const* k, int64_t begin, int64_t end, const uint32_t* q,
                                      int64_t dim, float* s, Lines& ahead) {
  constexpr int64_t kE = 32 / W;
  for (int64_t j = begin / 8 * 8; j < end; j += 8) {
    const bf16_t* row[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) row[i] = k[j + i];
    __m512 acc[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) acc[i] = _mm512_setzero_ps();
    const uint32_t* at = q;
    int64_t d = 0;
#pragma GCC unroll 1
    for (; d + kE <= dim; d += kE, at += 16) {
      const __m512i x = _mm512_loadu_si512(at);
      ahead.share<8, W * Share>(d / kE);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) acc[i] = dot_spread<W>(acc[i], x, row[i] + d);
    }
    if (d < dim) {
      const __m512i x = _mm512_loadu_si512(at);
      ahead.share<8, W * Share>(0);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) acc[i] = dot(acc[i], x, spread_n<W>(row[i] + d, dim - d));
    }
    add_parts<W>(acc, s + j * W);
  }
}

struct MixOrder {
  alignas(64) uint16_t low[32], high[32];
  constexpr MixOrder() : low(), high() {
    for (int i = 0; i < 16; ++i) {
      low[2 * i] = static_cast<uint16_t>(i), low[2 * i + 1] = static_cast<uint16_t>(32 + i);
      high[2 * i] = static_cast<uint16_t>(16 + i), high[2 * i + 1] = static_cast<uint16_t>(48 + i);
    }
  }
};
inline constexpr MixOrder kMixOrder;
struct Mix {
  __m512i lo = _mm512_load_si512(kMixOrder.low), hi = _mm512_load_si512(kMixOrder.high);
};

/// o[W][width] += P V for dims [d, d + 32 N) (of the last group only `n` exist when Tail).
template <int W, int N, bool Tail, int Share>
FI_VEC_INLINE void values_tile(const bf16_t* const* v, int64_t begin, int64_t end, int64_t d, int64_t n,
                               const uint32_t* cell, float* o, int64_t width, const Mix& mix, Lines& ahead) {
  __m512 acc[W][2 * N];
#pragma GCC unroll 16
  for (int h = 0; h < W; ++h)
#pragma GCC unroll 8
    for (int i = 0; i < 2 * N; ++i) acc[h][i] = _mm512_loadu_ps(o + h * width + d + i * 16);
#pragma GCC unroll 1
  for (int64_t pair = begin / 2; pair < (end + 1) / 2; ++pair) {
    const bf16_t *a = v[2 * pair] + d, *b = v[2 * pair + 1] + d;
    const uint32_t* p = cell + Lanes<W>::cell(pair);
    ahead.share<2 * N, Share>(pair);
    __m512i y[2 * N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const __m512i x = Tail ? load32_n(a + 32 * i, n) : load32(a + 32 * i),
                    z = Tail ? load32_n(b + 32 * i, n) : load32(b + 32 * i);
      y[2 * i] = _mm512_permutex2var_epi16(x, mix.lo, z), y[2 * i + 1] = _mm512_permutex2var_epi16(x, mix.hi, z);
    }
#pragma GCC unroll 16
    for (int h = 0; h < W; ++h) {
      const uint32_t* weight = p + h * Lanes<W>::kCellStep;
      const __m512i w = _mm512_set1_epi32(static_cast<int>(*weight));
#pragma GCC unroll 8
      for (int i = 0; i < 2 * N; ++i) acc[h][i] = W == 8 ? dot_each(acc[h][i], y[i], weight) : dot(acc[h][i], w, y[i]);
    }
  }
#pragma GCC unroll 16
  for (int h = 0; h < W; ++h)
#pragma GCC unroll 8
    for (int i = 0; i < 2 * N; ++i) _mm512_storeu_ps(o + h * width + d + i * 16, acc[h][i]);
}

/// 16 rows fill the registers with 16 dims: half of what two loads provide, so V is read twice.
template <bool Tail, int Share>
FI_VEC_INLINE void values_half(const bf16_t* const* v, int64_t begin, int64_t end, int64_t d, int64_t n,
                               const uint32_t* cell, float* o, int64_t width, __m512i mix, Lines& ahead) {
  __m512 acc[16];
#pragma GCC unroll 16
  for (int h = 0; h < 16; ++h) acc[h] = _mm512_loadu_ps(o + h * width);
#pragma GCC unroll 1
  for (int64_t pair = begin / 2; pair < (end + 1) / 2; ++pair) {
    const bf16_t *a = v[2 * pair] + d, *b = v[2 * pair + 1] + d;
    const uint32_t* p = cell + pair * 16;
    ahead.share<1, Share>(pair);
    const __m512i x = Tail ? load32_n(a, n) : load32(a), z = Tail ? load32_n(b, n) : load32(b),
                  y = _mm512_permutex2var_epi16(x, mix, z);
#pragma GCC unroll 16
    for (int h = 0; h < 16; ++h) acc[h] = dot_each(acc[h], y, p + h);
  }
#pragma GCC unroll 16
  for (int h = 0; h < 16; ++h) _mm512_storeu_ps(o + h * width, acc[h]);
}

/// o[W][width] += P V over keys [begin, end), rounded outwards to 2.
template <int W, int Share>
__attribute__((noinline)) void values(const bf16_t* const* v, int64_t begin, int64_t end, const uint32_t* cell,
                                      int64_t dim, float* o, int64_t width, Lines& ahead) {
  const Mix mix;
  int64_t d = 0;
  if constexpr (W == 16) {
    for (; d + 32 <= dim; d += 32) {
      values_half<false, Share>(v, begin, end, d, 32, cell, o + d, width, mix.lo, ahead);
      values_half<false, Share>(v, begin, end, d, 32, cell, o + d + 16, width, mix.hi, ahead);
    }
    if (d < dim) values_half<true, Share>(v, begin, end, d, dim - d, cell, o + d, width, mix.lo, ahead);
    if (d + 16 < dim) values_half<true, Share>(v, begin, end, d, dim - d, cell, o + d + 16, width, mix.hi, ahead);
  } else {
    constexpr int kN = W <= 2   ? 4
                       : W == 4 ? 2
                                : 1;  // 16 accumulators (8 of one row), as many groups of 32 dims as that allows
    if constexpr (kN > 1)
      for (; d + 32 * kN <= dim; d += 32 * kN)
        values_tile<W, kN, false, Share>(v, begin, end, d, 0, cell, o, width, mix, ahead);
    if constexpr (kN > 2)
      for (; d + 64 <= dim; d += 64) values_tile<W, 2, false, Share>(v, begin, end, d, 0, cell, o, width, mix, ahead);
    for (; d + 32 <= dim; d += 32) values_tile<W, 1, false, Share>(v, begin, end, d, 0, cell, o, width, mix, ahead);
    if (d < dim) values_tile<W, 1, true, Share>(v, begin, end, d, dim - d, cell, o, width, mix, ahead);
  }
}

}  // namespace pairs
}  // namespace flashinfer::cpu::attention
#endif
