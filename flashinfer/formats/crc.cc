// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/formats/crc.h"

#include <libdeflate.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace flashinfer::formats {

#if defined(__x86_64__)
namespace {

/// x^n modulo the polynomial, bit 31 being x^0, shifted as a carry-less product of reflected operands needs it.
uint64_t power(int n) {
  uint32_t r = 0x80000000u;
  for (; n > 0; --n) r = (r >> 1) ^ ((r & 1) ? 0xedb88320u : 0u);
  return static_cast<uint64_t>(r) << 1;
}

/// Multipliers that move a 128-bit lane forward by `bits`: of its low (earlier) and of its high half.
struct Fold {
  explicit Fold(int bits) : low(power(bits + 32)), high(power(bits - 32)) {}
  uint64_t low, high;
};

/// At least 256 bytes: 16 lanes of 128 bits run side by side, then are folded into one, whose 16 bytes and the tail go to
/// libdeflate.
__attribute__((target("avx512f,avx512vl,avx512bw,vpclmulqdq,pclmul"))) uint32_t folded(uint32_t crc, const uint8_t* p, size_t n) {
  static const Fold far(2048), near(128);
  const auto low = static_cast<int64_t>(far.low), high = static_cast<int64_t>(far.high);
  const __m512i by_2048 = _mm512_set_epi64(high, low, high, low, high, low, high, low);
  const __m128i by_128 = _mm_set_epi64x(static_cast<int64_t>(near.high), static_cast<int64_t>(near.low));
  __m512i a[4];
  for (int i = 0; i < 4; ++i) a[i] = _mm512_loadu_si512(p + 64 * i);
  a[0] = _mm512_xor_si512(a[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc))));
  for (p += 256, n -= 256; n >= 256; p += 256, n -= 256)
    for (int i = 0; i < 4; ++i)
      a[i] = _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(a[i], by_2048, 0x00),
                                       _mm512_clmulepi64_epi128(a[i], by_2048, 0x11), _mm512_loadu_si512(p + 64 * i), 0x96);
  alignas(64) uint8_t lanes[256];
  for (int i = 0; i < 4; ++i) _mm512_store_si512(lanes + 64 * i, a[i]);
  __m128i x = _mm_load_si128(reinterpret_cast<const __m128i*>(lanes));
  for (int i = 1; i < 16; ++i)
    x = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, by_128, 0x00), _mm_clmulepi64_si128(x, by_128, 0x11)),
                      _mm_load_si128(reinterpret_cast<const __m128i*>(lanes + 16 * i)));
  uint8_t rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), x);
  return libdeflate_crc32(libdeflate_crc32(0xffffffffu, rest, sizeof rest), p, n);  // ~0: the register starts at zero
}

bool can_fold() {
  static const bool yes = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("vpclmulqdq") &&
                          __builtin_cpu_supports("pclmul");
  return yes;
}

}  // namespace

uint32_t crc32(uint32_t crc, const uint8_t* data, size_t bytes) {
  constexpr size_t kWorthFolding = 1024;
  return bytes >= kWorthFolding && can_fold() ? folded(crc, data, bytes) : libdeflate_crc32(crc, data, bytes);
}
#else
uint32_t crc32(uint32_t crc, const uint8_t* data, size_t bytes) { return libdeflate_crc32(crc, data, bytes); }
#endif

}  // namespace flashinfer::formats
