// SPDX-License-Identifier: Apache-2.0
// Reference of packed weights: byte by byte, by division, from the description in kernels/packed_layout.h.
#pragma once
#include "flashinfer/ops/gemm/kernels/params.h"
#include "flashinfer/ops/gemm/scaled/ref.h"

namespace flashinfer::ref {

/// Byte i of a panel's header.
inline uint8_t packed_header_byte(GemmFormat f, int64_t columns, int64_t k, int64_t i) {
  const int64_t word = i / 2;
  if (i % 2) return 1;
  if (word < 8) return static_cast<uint8_t>("FImmW1\x10\x02"[word]);
  if (word == 8) return static_cast<uint8_t>(columns);
  if (word < 17) return static_cast<uint8_t>(k >> (8 * (word - 9)) & 255);
  return word == 17 ? static_cast<uint8_t>(f) : uint8_t{0};
}

/// Where byte `i` (of four) of column c is in a line of e4m3 or FP4.
inline int64_t packed_narrow_place(bool fp4, int64_t c, int64_t i) {
  if (fp4) return 4 * c + i;
  const int64_t quarter = c / 4, half = i / 2;
  return 16 * quarter + 8 * half + 2 * (c - 4 * quarter) + (i - 2 * half);
}

/// Byte `at` behind the header of panel p of b [n, bytes]; 0 where there is none.
inline uint8_t packed_narrow_byte(const TensorView& b, bool fp4, int64_t p, int64_t at) {
  for (int64_t c = 0; c < 16; ++c)
    for (int64_t i = 0; i < 4; ++i) {
      if (packed_narrow_place(fp4, c, i) != at % 64) continue;
      const int64_t n = 16 * p + c, byte = at / 64 * 4 + i;
      if (n >= b.size(0) || byte >= b.size(1)) return 0;
      return static_cast<const uint8_t*>(b.data())[n * b.stride(0) + byte * b.stride(1)];
    }
  return 0;
}

/// Element (n, k) of a packed weight [panels, lines, 64] of e4m3 or FP4.
inline double packed_narrow_at(const TensorView& b, bool fp4, int64_t n, int64_t k) {
  const int64_t per = fp4 ? 8 : 4, byte = fp4 ? k % per / 2 : k % per;
  const int64_t place = packed_narrow_place(fp4, n % 16, byte);
  if (!fp4) return at(b, {n / 16, 1 + k / per, place});
  const TensorView one = b.select(0, n / 16).select(0, 1 + k / per).slice(0, place, place + 1).view({1, 1});
  return narrow_at(one, true, 0, k % 2);
}

/// Element (n, k) of a weight [n, k] (FP4: bytes) or of a packed one.
inline double weight_at(const TensorView& b, bool packed, bool fp4, int64_t n, int64_t k) {
  return packed ? packed_narrow_at(b, fp4, n, k) : narrow_at(b, fp4, n, k);
}

}  // namespace flashinfer::ref
