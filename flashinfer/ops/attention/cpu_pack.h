// SPDX-License-Identifier: Apache-2.0
// Packing for the CPU kernel: q rows, K blocks (transposed: lanes are keys) and V blocks (lanes are dims), as 4-byte cells that
// hold one f32 or, with a BF16 dot product, two bf16 of neighbouring dims (q, K) or neighbouring keys (P, V).
#pragma once
#include "flashinfer/kernels/cpu/vec.h"
#include "flashinfer/ops/attention/params.h"

namespace flashinfer::cpu::attention {
using namespace flashinfer::attention;

/// `Elements`: q and K are changed one by one on the way, so they go through f32.
template <AttentionConfig C, bool Elements = false>
struct Types {
  using Q = scalar_of_t<C.q>;
  using KV = scalar_of_t<C.kv>;
  using O = scalar_of_t<C.o>;
#if defined(__AVX512BF16__)
  static constexpr bool kPairs = C.q == DType::kBF16 && C.kv == DType::kBF16 && !C.rope && !Elements;
#else
  static constexpr bool kPairs = false;  // two FMAs a pair would cost more than f32 cells
#endif
  static constexpr int kPerCell = kPairs ? 2 : 1;
};

/// Rows that the next block will read. Their lines are asked for two at a time, spread over packing and both products, as many
/// as are read meanwhile: in bursts they would fill the miss queue and stall, and memory would idle between. To L2 (T1), as L1
/// is full of packed cells.
struct Ahead {
  const char* rows[2 * kBlockKeys];
  int64_t bytes = 0, at = 0, d = 0, count = 0;
  FI_VEC_INLINE void two() {
    if (at >= count) return;
    __builtin_prefetch(rows[at] + d, 0, 2);
    __builtin_prefetch(rows[at] + d + 64, 0, 2);
    d += 128;
    if (d >= bytes) d = 0, ++at;
  }
};

/// Cells of a row of `dim` elements.
template <class T>
constexpr int64_t cells(int64_t dim) { return (dim + T::kPerCell - 1) / T::kPerCell; }

template <class S>
inline void copy_row(const S* x, int64_t dim, float* out) {
  for (int64_t i = 0; i < dim; ++i) out[i] = to_f32(x[i]);
}

/// x[0..dim) rotated by half split: (x[i], x[i + dim/2]) by the angle whose cos and sin are table[i], table[dim/2 + i].
template <class S>
inline void rotate(const S* x, const float* table, int64_t dim, float* out) {
  const int64_t half = dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float a = to_f32(x[i]), b = to_f32(x[i + half]), c = table[i], s = table[half + i];
    out[i] = a * c - b * s;
    out[i + half] = b * c + a * s;
  }
}

/// One q row as cells, zero past `dim`; `out` has padded(dim) / kPerCell cells.
template <class T>
inline void pack_q(const typename T::Q* x, int64_t dim, uint32_t* out) {
  if constexpr (T::kPairs) {
    memset(out, 0, static_cast<size_t>(padded(dim)) * 2);
    memcpy(out, x, static_cast<size_t>(dim) * 2);
  } else {
    float* f = reinterpret_cast<float*>(out);
    for (int64_t i = 0; i < padded(dim); i += Vec::kLanes) {
      const int64_t n = dim - i;
      store(f + i, n >= Vec::kLanes ? load(x + i) : n > 0 ? load_n(x + i, n) : zero());
    }
  }
}

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
/// 16 vectors of 16 cells, transposed in place: 64 shuffles.
FI_VEC_INLINE void transpose16(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

/// 16 cells from `x`, of which `n` elements exist.
template <class T, class S>
FI_VEC_INLINE __m512i load_cells(const S* x, int64_t n) {
  if constexpr (T::kPairs) {
    return n >= 32 ? load_pairs(x).r : load_pairs_n(x, n).r;
  } else {
    return _mm512_castps_si512((n >= 16 ? load(x) : load_n(x, n)).r);
  }
}

/// out[cell][kBlockKeys] = K rows transposed; whole groups of 16 keys, `keys` of them wanted.
template <class T, class S>
inline void pack_k(const S* const* rows, int64_t keys, int64_t dim, uint32_t* out, Ahead& ahead) {
  constexpr int64_t kElems = 16 * T::kPerCell;
  for (int64_t g = 0; g < keys; g += 16) {
    for (int64_t d = 0; d < dim; d += kElems) {
      __m512i r[16];
      for (int i = 0; i < 4; ++i) ahead.two();
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) r[i] = load_cells<T>(rows[g + i] + d, dim - d);
      transpose16(r);
      uint32_t* to = out + d / T::kPerCell * kBlockKeys + g;
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * kBlockKeys, r[i]);
    }
  }
}
#else
template <class T, class S>
inline void pack_k(const S* const* rows, int64_t keys, int64_t dim, uint32_t* out, Ahead&) {
  float* f = reinterpret_cast<float*>(out);
  for (int64_t j = 0; j < keys; ++j) {
    float row[Vec::kLanes];
    for (int64_t d = 0; d < dim; d += Vec::kLanes) {
      const int64_t n = dim - d < Vec::kLanes ? dim - d : Vec::kLanes;
      store(row, n == Vec::kLanes ? load(rows[j] + d) : load_n(rows[j] + d, n));
      for (int64_t i = 0; i < n; ++i) f[(d + i) * kBlockKeys + j] = row[i];
    }
  }
}
#endif

/// out[key / kPerCell][padded(dim)]: a cell holds dim d of one key, or of two neighbouring keys.
template <class T>
inline void pack_v(const typename T::KV* const* rows, int64_t keys, int64_t dim, uint32_t* out, Ahead& ahead) {
  const int64_t width = padded(dim);
  if constexpr (T::kPairs) {
#if defined(__AVX512BF16__)
    alignas(64) uint16_t low[32], high[32];
    for (int i = 0; i < 16; ++i) {
      low[2 * i] = static_cast<uint16_t>(i), low[2 * i + 1] = static_cast<uint16_t>(32 + i);
      high[2 * i] = static_cast<uint16_t>(16 + i), high[2 * i + 1] = static_cast<uint16_t>(48 + i);
    }
    const __m512i lo = _mm512_load_si512(low), hi = _mm512_load_si512(high);
    for (int64_t j = 0; j < keys; j += 2, out += width)
      for (int64_t d = 0; d < dim; d += 32) {
        ahead.two();
        const __m512i a = load_cells<T>(rows[j] + d, dim - d), b = load_cells<T>(rows[j + 1] + d, dim - d);
        _mm512_store_si512(out + d, _mm512_permutex2var_epi16(a, lo, b));
        _mm512_store_si512(out + d + 16, _mm512_permutex2var_epi16(a, hi, b));
      }
#endif
  } else {
    float* f = reinterpret_cast<float*>(out);
    for (int64_t j = 0; j < keys; ++j, f += width) {
      for (int64_t d = 0; d < width; d += Vec::kLanes) {
        if (d % 32 == 0) ahead.two();
        const int64_t n = dim - d;
        store(f + d, n >= Vec::kLanes ? load(rows[j] + d) : n > 0 ? load_n(rows[j] + d, n) : zero());
      }
    }
  }
}

}  // namespace flashinfer::cpu::attention
