// SPDX-License-Identifier: Apache-2.0
// A tile of one operand, lines x depth: loaded from global memory into registers as it is stored there, and written to
// shared memory as bf16 or f16. A thread takes pieces of 8 elements of 16 bits, or of 16 narrower ones, which share at
// most one scale factor. The registers are loaded a step ahead, while the tile before is multiplied.
#pragma once
#include "flashinfer/kernels/cuda/block_quantize.h"
#include "flashinfer/kernels/cuda/halves.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/kernels/cuda/mma.h"
#include "flashinfer/ops/gemm/kernels/cuda/gguf.cuh"
#include "flashinfer/ops/gemm/kernels/cuda_params.h"

namespace flashinfer::cu {

constexpr int format_bits(GemmFormat f) {
  return f == GemmFormat::kBF16 || f == GemmFormat::kF16                              ? 16
         : f == GemmFormat::kE4M3 || f == GemmFormat::kE5M2 || f == GemmFormat::kQ8_0 ? 8
                                                                                      : 4;
}

/// Where the elements of pair j of eight are. In order, or, where an operand has four bits an element, apart by four:
/// so one shift brings both nibbles into place. Both operands of a product have the same order.
template <bool kApart>
FI_GLOBAL_FN constexpr int pair_first(int j) {
  return kApart ? j : 2 * j;
}
template <bool kApart>
FI_GLOBAL_FN constexpr int pair_second(int j) {
  return kApart ? j + 4 : 2 * j + 1;
}
/// Four words of neighbouring pairs with their elements four apart.
FI_GLOBAL_FN void pairs_apart(uint32_t (&x)[4]) {
  const uint32_t a = x[0], b = x[1], c = x[2], d = x[3];
  x[0] = pick_bytes(a, c, 0x5410), x[1] = pick_bytes(a, c, 0x7632);
  x[2] = pick_bytes(b, d, 0x5410), x[3] = pick_bytes(b, d, 0x7632);
}

FI_GLOBAL_FN uint32_t shifted(uint32_t x, int left) { return left >= 0 ? x << left : x >> -left; }
/// Nibbles j and j + 4 of eight, as T: e2m1 or int4 times `factor`, whose halves are one number. e2m1 has the bits of a
/// number of T that is smaller by a power of two; int4 those of the last places of a larger one.
template <GemmFormat F, bool kFactor, class T>
FI_GLOBAL_FN uint32_t nibble_pair(uint32_t codes, int j, uint32_t factor) {
  constexpr bool kHalf = kSame<T, f16_t>;
  uint32_t y;
  if constexpr (F == GemmFormat::kFp4) {
    constexpr int kMantissa = kHalf ? 10 : 7;
    constexpr uint32_t kMagnitude = 0x70007u << (kMantissa - 1), kPower = kHalf ? 0x74007400u : 0x7e807e80u;
    y = (shifted(codes, kMantissa - 1 - 4 * j) & kMagnitude) | (shifted(codes, 12 - 4 * j) & 0x80008000u);
    y = mul_pairs<T>(y, kPower);
  } else {
    constexpr uint32_t kOne = kHalf ? 0x3c003c00u : 0x3f803f80u, kLarge = kHalf ? 0x64006400u : 0x43004300u;
    y = fma_pairs<T>((codes >> (4 * j) & 0xf000fu) ^ 0x80008u ^ kLarge, kOne, kLarge ^ 0x80088008u);
  }
  return kFactor ? mul_pairs<T>(y, factor) : y;
}
/// A scale factor in both halves; exact, but for powers of two that f16 does not have.
template <GemmFactor kFactor, class T>
FI_GLOBAL_FN uint32_t factor_pair(uint32_t byte) {
  if constexpr (kFactor == GemmFactor::kNone)
    return 0;
  else if constexpr (kFactor == GemmFactor::kUE8M0)
    return (bits_of(e8m0_value(byte)) >> 16) * 0x10001u;
  else if constexpr (kSame<T, f16_t>)
    return e4m3_halves(byte * 0x101u);
  else
    return (bits_of(e4m3_value(byte)) >> 16) * 0x10001u;
}

/// 16 narrow elements as 8 pairs of T, times `factor`.
template <GemmFormat F, GemmFactor kFactor, bool kApart, class T, int kWords>
FI_GLOBAL_FN void convert_piece(const uint32_t (&raw)[kWords], uint32_t factor, uint32_t (&to)[8]) {
  constexpr bool kHalf = kSame<T, f16_t>, kFp8 = F == GemmFormat::kE4M3 || F == GemmFormat::kE5M2;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  constexpr bool kPairs = false;
#else
  constexpr bool kPairs = !(kHalf && kFactor == GemmFactor::kUE8M0);
#endif
  if constexpr (kFp8 && kFactor == GemmFactor::kNone && kHalf) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t first = i / 4 * 2, j = i % 4;
      const uint32_t codes =
          kApart ? pick_bytes(raw[first], raw[first + 1], j | (4 + j) << 4) : raw[i / 2] >> (16 * (i % 2)) & 0xffffu;
      to[i] = F == GemmFormat::kE4M3 ? e4m3_halves(codes & 0xffffu) : e5m2_halves(codes);
    }
  } else if constexpr ((F == GemmFormat::kFp4 || F == GemmFormat::kInt4) && kPairs) {
    static_assert(kApart);
    const uint32_t by = factor_pair<kFactor, T>(factor);
#pragma unroll
    for (int i = 0; i < 8; ++i) to[i] = nibble_pair < F, kFactor != GemmFactor::kNone, T > (raw[i / 4], i % 4, by);
  } else if constexpr (is_gguf(F) && kPairs) {
    static_assert(!kApart && kFactor == GemmFactor::kNone);
    gguf_pairs<F, T>(raw, to);
  } else {
    float x[16];
    if constexpr (kFp8) {
      using S = typename scalar_of<F == GemmFormat::kE4M3 ? DType::kF8E4M3 : DType::kF8E5M2>::type;
      S codes[16];
#pragma unroll
      for (int i = 0; i < 16; ++i) codes[i].bits = static_cast<uint8_t>(raw[i / 4] >> (8 * (i % 4)));
      widen(codes, x);
    } else if constexpr (is_gguf(F)) {
      gguf_quants<F>(raw, x);
    } else {
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const uint32_t code = raw[i / 8] >> (4 * (i % 8)) & 15u;
        x[i] = F == GemmFormat::kFp4 ? e2m1_value(code) : static_cast<float>(static_cast<int32_t>(code ^ 8u) - 8);
      }
    }
    if constexpr (kFactor != GemmFactor::kNone) {
      const float by = kFactor == GemmFactor::kE4M3 ? e4m3_value(factor) : e8m0_value(factor);
#pragma unroll
      for (int i = 0; i < 16; ++i) x[i] *= by;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
      to[i] = pair_of<T>(x[i / 4 * 8 + pair_first<kApart>(i % 4)], x[i / 4 * 8 + pair_second<kApart>(i % 4)]);
  }
}

/// Lines in the order in which eight neighbours share a sector of scale factors of tiles of 128 lines, where the tile
/// has `kParts` parts of lines r to r + 31: 0, 1, then 0, 1 of the next part, and so on; then 2, 3. Neighbouring pairs
/// stay, so that their pieces fall into different banks.
template <int kLines, int kParts>
FI_GLOBAL_FN constexpr int32_t gemm_spread(int32_t line) {
  return line % 2 + line / 2 % kParts * (kLines / kParts) + line / (2 * kParts) * 2;
}

/// `kLoads` is GemmCudaConfig's a_wide or b_wide, kParts the number of 32 lines of the matrix among which kLines are.
template <GemmFormat F, GemmFactor kFactor, int kLoads, bool kApart, int kLines, int kParts, int kDepth, int kThreads,
          class T>
struct OperandTile {
  static constexpr bool kWide = kLoads != 0;
  static constexpr int kBits = format_bits(F), kPiece = kBits == 16 ? 8 : 16;
  static constexpr int kWords = is_gguf(F) ? gguf_words(F) : kPiece * kBits / 32;
  static constexpr int kAcross = kDepth / kPiece, kPieces = kLines * kAcross;
  static constexpr int kPer = ceil_div(kPieces, kThreads);
  static_assert(kDepth % kPiece == 0);

  const char* at[kPer];          // the line's first element; null: behind the last line
  const uint8_t* factors[kPer];  // of the line
  uint32_t raw[kPer][kWords];
  uint32_t factor[kPer];

  /// Neighbouring threads load neighbouring pieces of a line, or, element by element, neighbouring lines.
  FI_GLOBAL_FN static int32_t piece_number(int i) { return static_cast<int32_t>(thread_x()) + i * kThreads; }
  FI_GLOBAL_FN static int32_t line_of(int i) {
    const int32_t line = kWide ? piece_number(i) / kAcross : piece_number(i) % kLines;
    return kFactor != GemmFactor::kNone && kWide ? gemm_spread<kLines, kParts>(line) : line;
  }
  FI_GLOBAL_FN static int32_t across_of(int i) { return kWide ? piece_number(i) % kAcross : piece_number(i) / kLines; }
  FI_GLOBAL_FN static bool within(int i) {
    if constexpr (kPieces % kThreads == 0) return true;
    return piece_number(i) < kPieces;
  }
  /// Bytes from the first element to element k of a contiguous line.
  FI_GLOBAL_FN static int64_t bytes(int64_t elements) { return elements * kBits / 8; }

  /// Line `line` of the tile is line_of_matrix(line) of the matrix whose elements begin at `data`; -1: there is none.
  template <class LineOf, class FactorLineOf>
  FI_GLOBAL_FN void begin(const GemmCudaOperand& o, int64_t batch, LineOf line_of_matrix, FactorLineOf factor_line_of) {
    constexpr int kItem = kBits == 16 ? 2 : 1;
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      const int32_t line = line_of(i);
      at[i] = nullptr, factors[i] = nullptr;
      if (!within(i)) continue;
      int64_t l = line_of_matrix(line);
      if (l < 0) continue;
      if (o.interleaved) l = interleaved_line(l);
      at[i] = static_cast<const char*>(o.data) + (batch * o.batch + l * o.line) * kItem;
      if constexpr (kFactor != GemmFactor::kNone)
        factors[i] =
            o.factors + batch * o.factor_batch + sf_row_offset(o.factor_layout, factor_line_of(line), o.factor_columns);
    }
  }

  /// Elements [k0, k0 + kDepth), of which those behind `depth` are zeros.
  FI_GLOBAL_FN void load(const GemmCudaOperand& o, int32_t k0, int32_t depth) {
    // Of a thread's pieces in a line only the line differs: places along k are computed once.
    static_assert(!kWide || kThreads % kAcross == 0);
    const int32_t same = k0 + across_of(0) * kPiece;
    const int64_t place = bytes(place_of(o, same));
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      const int32_t k = kWide ? same : k0 + across_of(i) * kPiece;
      const bool some = at[i] != nullptr && k < depth;
      if constexpr (is_gguf(F)) {
        gguf_load<F, kLoads>(some, at[i], k, raw[i]);
      } else if constexpr (kWide) {
        const auto x = load_if<kWords, Hint::kKeep>(some, reinterpret_cast<const uint32_t*>(at[i] + place));
#pragma unroll
        for (int w = 0; w < kWords; ++w) raw[i][w] = x[w];
      } else {
        load_elements(o, some, at[i], k, depth, raw[i]);
      }
      if constexpr (kFactor != GemmFactor::kNone) factor[i] = factor_at(o, some, factors[i], k >> o.factor_shift);
    }
  }
  FI_GLOBAL_FN static int64_t place_of(const GemmCudaOperand& o, int32_t k) {
    return (k >> o.block_shift) * o.block_stride + (k & ~(-1 << o.block_shift));
  }
  FI_GLOBAL_FN static uint32_t factor_at(const GemmCudaOperand& o, bool some, const uint8_t* line, int32_t column) {
    return some ? line[(column >> 2) * o.factor_quad + (column & 3)] : 0u;
  }
  FI_GLOBAL_FN static void load_elements(const GemmCudaOperand& o, bool some, const char* line, int32_t k,
                                         int32_t depth, uint32_t (&to)[kWords]) {
    constexpr int kUnit = kBits == 16 ? 2 : 1, kIn = kUnit * 8 / kBits;  // bytes of a storage element, numbers in it
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      to[w] = 0;
#pragma unroll
      for (int u = 0; u < 4 / kUnit; ++u) {
        const int32_t e = k + (w * (4 / kUnit) + u) * kIn;
        if (!some || e >= depth) continue;
        const int64_t place = o.block_stride == 0 ? e / kIn * o.step : place_of(o, e) / kIn;
        uint32_t x;
        if constexpr (kUnit == 2)
          x = reinterpret_cast<const uint16_t*>(line)[place];
        else
          x = reinterpret_cast<const uint8_t*>(line)[place];
        to[w] |= x << (8 * kUnit * u);
      }
    }
  }

  /// Writes what load() brought to a tile [kLines][kDepth] of T.
  FI_GLOBAL_FN void store(T* tile) const {
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      if (!within(i)) continue;
      const uint32_t line = static_cast<uint32_t>(line_of(i)), across = static_cast<uint32_t>(across_of(i));
      if constexpr (kBits == 16) {
        uint32_t x[4] = {raw[i][0], raw[i][1], raw[i][2], raw[i][3]};
        if constexpr (kApart) pairs_apart(x);
        put(tile, line, across, x[0], x[1], x[2], x[3]);
      } else {
        uint32_t y[8];
        convert_piece<F, kFactor, kApart, T>(raw[i], kFactor == GemmFactor::kNone ? 0u : factor[i], y);
        // Rows of 16 pieces and more: half of the threads begin with the second piece, so that a store of eight threads
        // covers all banks.
        const uint32_t turn = kAcross >= 8 ? across / 4 % 2 : 0u;
#pragma unroll
        for (uint32_t h = 0; h < 2; ++h) {
          const bool second = (h ^ turn) != 0;
          put(tile, line, 2 * across + (h ^ turn), second ? y[4] : y[0], second ? y[5] : y[1], second ? y[6] : y[2],
              second ? y[7] : y[3]);
        }
      }
    }
  }
  FI_GLOBAL_FN static void put(T* tile, uint32_t line, uint32_t piece, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    store_shared(reinterpret_cast<uint32_t*>(tile) + swizzle<kDepth / 8>(line, piece) * 4,
                 Pack<uint32_t, 4>{{a, b, c, d}});
  }
};

}  // namespace flashinfer::cu
