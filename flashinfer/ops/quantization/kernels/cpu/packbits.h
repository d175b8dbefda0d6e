// SPDX-License-Identifier: Apache-2.0
// Packing of booleans on the CPU. Eight bytes are read for each byte written: 64 (32) elements a step by the
// instruction that turns bytes into a mask, elsewhere eight by a multiplication.
#pragma once
#include "flashinfer/kernels/cpu/vec.h"
#include "flashinfer/ops/quantization/kernels/params.h"

namespace flashinfer::cpu {

/// Eight elements as one byte. Their lowest bits, at multiples of 8, are moved side by side into the top byte; no two
/// terms of the product share a bit.
template <bool kBig>
FI_VEC_INLINE uint8_t pack_eight(const uint8_t* x) {
  uint64_t u;
  memcpy(&u, x, 8);  // little-endian: element i is byte i
  const uint64_t low = 0x7f7f7f7f7f7f7f7full;
  const uint64_t ones = (((u & low) + low) | u) >> 7 & 0x0101010101010101ull;  // 1 where a byte is not 0
  return static_cast<uint8_t>(ones * (kBig ? 0x8040201008040201ull : 0x0102040810204080ull) >> 56);
}

/// n elements to ceil(n / 8) bytes.
template <bool kBig>
FI_VEC_INLINE void pack_row(const uint8_t* x, uint8_t* y, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512BW__)
  const __m512i reverse = _mm512_broadcast_i32x4(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
  for (; i + 64 <= n; i += 64) {
    __m512i v = _mm512_loadu_si512(x + i);
    if (kBig) v = _mm512_shuffle_epi8(v, reverse);
    const uint64_t bits = _mm512_test_epi8_mask(v, v);
    memcpy(y + i / 8, &bits, 8);
  }
#elif defined(__AVX2__)
  const __m256i reverse =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
  for (; i + 32 <= n; i += 32) {
    __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    if (kBig) v = _mm256_shuffle_epi8(v, reverse);
    const uint32_t bits = ~static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_setzero_si256())));
    memcpy(y + i / 8, &bits, 4);
  }
#endif
  for (; i + 8 <= n; i += 8) y[i / 8] = pack_eight<kBig>(x + i);
  if (i < n) {
    uint8_t last[8] = {};
    memcpy(last, x + i, static_cast<size_t>(n - i));
    y[i / 8] = pack_eight<kBig>(last);
  }
}

template <PackBitsConfig C>
void pack_bits(const PackBitsParams& p, int64_t task) {
  const int64_t begin = task * p.bytes_per_task, total = p.to[p.segments];
  const int64_t end = begin + p.bytes_per_task < total ? begin + p.bytes_per_task : total;
  int64_t s = 0;
  for (int64_t high = p.segments; high - s > 1;) {  // the last segment that starts at or before `begin`
    const int64_t middle = (s + high) / 2;
    (p.to[middle] <= begin ? s : high) = middle;
  }
  for (int64_t at = begin; at < end; ++s) {
    const int64_t stop = p.to[s + 1] < end ? p.to[s + 1] : end;
    if (stop <= at) continue;
    const int64_t first = p.from[s] + (at - p.to[s]) * 8, left = p.from[s + 1] - first, whole = (stop - at) * 8;
    pack_row<C.big != 0>(p.x + first, p.y + at, left < whole ? left : whole);
    at = stop;
  }
}

}  // namespace flashinfer::cpu
