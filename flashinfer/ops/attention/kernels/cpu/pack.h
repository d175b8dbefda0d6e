// SPDX-License-Identifier: Apache-2.0
// Packing for the tile kernel: q rows, K blocks (transposed: lanes are keys) and V blocks (lanes are dims), as 4-byte
// cells that hold one f32 or, with a BF16 dot product, two bf16 of neighbouring dims (q, K) or neighbouring keys (P,
// V).
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cpu/narrow.h"
#include "flashinfer/ops/attention/kernels/params.h"

namespace flashinfer::cpu::attention {
using namespace flashinfer::attention;

/// One row of an NVFP4 cache: two values a byte, and an e4m3 scale for every 16. Products of the two have 6 significant
/// bits, so they are exact in bf16. Vectors start at multiples of their length.
struct Fp4Row {
  const uint8_t *x, *scales;
  int64_t at = 0;
  Fp4Row operator+(int64_t d) const { return {x, scales, at + d}; }
};
using cpu::load;
using cpu::load_n;
FI_VEC_INLINE Vec load(Fp4Row r) {
  e4m3_t scale;
  scale.bits = r.scales[r.at / 16];
  return load_e2m1(r.x + r.at / 2) * splat(to_f32(scale));
}
FI_VEC_INLINE Vec load_n(Fp4Row r, int64_t n) {  // a cache's dims are a multiple of 16
  return n > 0 ? load(r) : zero();
}

/// Address arithmetic of a cache of type D: elements, or bytes of NVFP4, and the row type.
template <DType D>
struct Cache {
  using Element = scalar_of_t<D>;
  using Row = const Element*;
  static Row row(const Element* x, const uint8_t*) { return x; }
};
template <>
struct Cache<DType::kF4E2M1x2> {
  using Element = uint8_t;
  using Row = Fp4Row;
  static Row row(const uint8_t* x, const uint8_t* scales) { return {x, scales}; }
};

/// `Elements`: q and K are transformed element by element while packing, so they pass through f32.
template <AttentionConfig C, bool Elements = false>
struct Types {
  using Q = scalar_of_t<C.q>;
  using KV = typename Cache<C.kv>::Element;
  using Row = typename Cache<C.kv>::Row;
  using O = scalar_of_t<C.o>;
#if defined(__AVX512BF16__)
  // 8 and 4 bit values are exact in bf16.
  static constexpr bool kPairs =
      C.q == DType::kBF16 && C.kv != DType::kF16 && C.kv != DType::kF32 && !C.rope && !Elements;
#else
  static constexpr bool kPairs = false;  // two FMAs a pair would cost more than f32 cells
#endif
  static constexpr int kPerCell = kPairs ? 2 : 1;
};

/// Rows of the next block. A few of their lines are prefetched between register tiles: bursts would fill the miss queue
/// and stall. Into L2 (T1), as L1 is full of packed cells.
struct Prefetcher {
  const char* rows[2 * kTileKeys];
  int64_t bytes = 0, at = 0, d = 0, count = 0;
  /// Lines to prefetch in each of `parts` calls.
  int64_t each(int64_t parts) const { return count * ceil_div(bytes, 64) / parts + 1; }
  void issue_prefetch(int64_t lines) {
    for (; lines > 0 && at < count; --lines) {
      __builtin_prefetch(rows[at] + d, 0, 2);
      d += 64;
      if (d >= bytes) d = 0, ++at;
    }
  }
};

/// Number of cells of a row of `dim` elements.
template <class T>
constexpr int64_t cells(int64_t dim) {
  return ceil_div(dim, T::kPerCell);
}

template <class R>
inline void copy_row(R x, int64_t dim, float* out) {
  int64_t i = 0;
  for (; i + Vec::kLanes <= dim; i += Vec::kLanes) store(out + i, load(x + i));
  if (i < dim) store_n(out + i, load_n(x + i, dim - i), dim - i);
}

/// x[0..dim) rotated by half split: (x[i], x[i + dim/2]) by the angle whose cos and sin are table[i], table[dim/2 + i].
inline void rotate(float* x, const float* table, int64_t dim) {
  const int64_t half = dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[i], b = x[i + half], c = table[i], s = table[half + i];
    x[i] = a * c - b * s;
    x[i + half] = b * c + a * s;
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
template <class T, class R>
FI_VEC_INLINE __m512i load_cells(R x, int64_t n) {
  if constexpr (!T::kPairs) {
    return _mm512_castps_si512((n >= 16 ? load(x) : load_n(x, n)).r);
  } else if constexpr (__is_same(R, const bf16_t*)) {
    return n >= 32 ? load_pairs(x).r : load_pairs_n(x, n).r;
  } else {
#if defined(__AVX512BF16__)
    const Vec low = n >= 16 ? load(x) : load_n(x, n), high = n >= 32  ? load(x + 16)
                                                             : n > 16 ? load_n(x + 16, n - 16)
                                                                      : zero();
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.r, low.r));
#endif
  }
}

/// out[cell][kBlockKeys] = K rows transposed; whole groups of 16 keys, of which `keys` are needed.
template <class T, class R>
inline void pack_k(const R* rows, int64_t keys, int64_t dim, uint32_t* out) {
  constexpr int64_t kElems = 16 * T::kPerCell;
  for (int64_t g = 0; g < keys; g += 16) {
    for (int64_t d = 0; d < dim; d += kElems) {
      __m512i r[16];
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
template <class T, class R>
inline void pack_k(const R* rows, int64_t keys, int64_t dim, uint32_t* out) {
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

/// One q row as cells, zero past `dim`; `out` has padded(dim) / kPerCell cells.
template <class T>
inline void pack_q(const typename T::Q* x, int64_t dim, uint32_t* out) {
  if constexpr (T::kPairs) {
#if defined(__AVX512BF16__)
    for (int64_t d = 0; d < padded(dim); d += 32) _mm512_store_si512(out + d / 2, load_cells<T>(x + d, dim - d));
#endif
  } else {
    float* f = reinterpret_cast<float*>(out);
    for (int64_t i = 0; i < padded(dim); i += Vec::kLanes) {
      const int64_t n = dim - i;
      store(f + i, n >= Vec::kLanes ? load(x + i) : n > 0 ? load_n(x + i, n) : zero());
    }
  }
}

/// out[key / kPerCell][padded(dim)]: a cell holds dim d of one key, or of two neighbouring keys. Returns false when a
/// value is infinite or NaN, found by multiplying the loaded values by 0.
template <class T, class R>
inline bool pack_v(const R* rows, int64_t keys, int64_t dim, uint32_t* out) {
  const int64_t width = padded(dim);
  Vec odd = zero();
  if constexpr (T::kPairs) {
#if defined(__AVX512BF16__)
    alignas(64) uint16_t low[32], high[32];
    for (int i = 0; i < 16; ++i) {
      low[2 * i] = static_cast<uint16_t>(i), low[2 * i + 1] = static_cast<uint16_t>(32 + i);
      high[2 * i] = static_cast<uint16_t>(16 + i), high[2 * i + 1] = static_cast<uint16_t>(48 + i);
    }
    const __m512i lo = _mm512_load_si512(low), hi = _mm512_load_si512(high);
    const Pairs none{_mm512_setzero_si512()};
    for (int64_t j = 0; j < keys; j += 2, out += width)
      for (int64_t d = 0; d < dim; d += 32) {
        const __m512i a = load_cells<T>(rows[j] + d, dim - d), b = load_cells<T>(rows[j + 1] + d, dim - d);
        odd = dot_pairs(dot_pairs(odd, {a}, none), {b}, none);
        _mm512_store_si512(out + d, _mm512_permutex2var_epi16(a, lo, b));
        _mm512_store_si512(out + d + 16, _mm512_permutex2var_epi16(a, hi, b));
      }
#endif
  } else {
    float* f = reinterpret_cast<float*>(out);
    for (int64_t j = 0; j < keys; ++j, f += width) {
      for (int64_t d = 0; d < width; d += Vec::kLanes) {
        const int64_t n = dim - d;
        const Vec x = n >= Vec::kLanes ? load(rows[j] + d) : n > 0 ? load_n(rows[j] + d, n) : zero();
        odd = fma(x, zero(), odd);
        store(f + d, x);
      }
    }
  }
  return !any(is_nan(odd));
}

/// Copies packed V with the values of masked keys (bits of 0) set to 0.
template <class T>
inline void hide_v(const uint32_t* v, int64_t keys, int64_t width, const uint64_t* visible, uint32_t* out) {
  for (int64_t j = 0; j < keys; j += T::kPerCell, v += width, out += width) {
    uint32_t keep = visible[j / 64] >> (j % 64) & 1 ? (T::kPairs ? 0xffffu : ~0u) : 0u;
    if (T::kPairs && visible[j / 64] >> (j % 64) & 2) keep |= 0xffff0000u;
    for (int64_t d = 0; d < width; ++d) out[d] = v[d] & keep;
  }
}

}  // namespace flashinfer::cpu::attention
