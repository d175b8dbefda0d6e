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

/// 16 narrow elements as 8 pairs of T, times `factor`.
template <GemmFormat F, GemmFactor kFactor, class T, int kWords>
FI_GLOBAL_FN void convert_piece(const uint32_t (&raw)[kWords], uint32_t factor, uint32_t (&to)[8]) {
  if constexpr ((F == GemmFormat::kE4M3 || F == GemmFormat::kE5M2) && kFactor == GemmFactor::kNone && kSame<T, f16_t>) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t codes = raw[i / 2] >> (16 * (i % 2));
      to[i] = F == GemmFormat::kE4M3 ? e4m3_halves(codes & 0xffffu) : e5m2_halves(codes);
    }
  } else {
    float x[16];
    if constexpr (F == GemmFormat::kE4M3 || F == GemmFormat::kE5M2) {
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
    for (int i = 0; i < 8; ++i) to[i] = pair_of<T>(x[2 * i], x[2 * i + 1]);
  }
}

template <GemmFormat F, GemmFactor kFactor, bool kWide, int kLines, int kDepth, int kThreads, class T>
struct OperandTile {
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
  FI_GLOBAL_FN static int32_t line_of(int i) { return kWide ? piece_number(i) / kAcross : piece_number(i) % kLines; }
  FI_GLOBAL_FN static int32_t across_of(int i) { return kWide ? piece_number(i) % kAcross : piece_number(i) / kLines; }
  FI_GLOBAL_FN static bool within(int i) {
    if constexpr (kPieces % kThreads == 0) return true;
    return piece_number(i) < kPieces;
  }
  /// Bytes from the first element to element k of a contiguous line.
  FI_GLOBAL_FN static int64_t bytes(int64_t elements) { return elements * kBits / 8; }

  /// Lines [0, count) of the tile are line_of_matrix(line) of the matrix whose elements begin at `data`.
  template <class LineOf, class FactorLineOf>
  FI_GLOBAL_FN void begin(const GemmCudaOperand& o, int64_t batch, int32_t count, LineOf line_of_matrix,
                          FactorLineOf factor_line_of) {
    constexpr int kItem = kBits == 16 ? 2 : 1;
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      const int32_t line = line_of(i);
      at[i] = nullptr, factors[i] = nullptr;
      if (!within(i) || line >= count) continue;
      int64_t l = line_of_matrix(line);
      if (o.interleaved) l = l / 32 * 32 + l % 4 * 8 + l % 32 / 4;
      at[i] = static_cast<const char*>(o.data) + (batch * o.batch + l * o.line) * kItem;
      if constexpr (kFactor != GemmFactor::kNone)
        factors[i] =
            o.factors + batch * o.factor_batch + sf_row_offset(o.factor_layout, factor_line_of(line), o.factor_columns);
    }
  }

  /// Elements [k0, k0 + kDepth), of which those behind `depth` are zeros.
  FI_GLOBAL_FN void load(const GemmCudaOperand& o, int32_t k0, int32_t depth) {
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      const int32_t k = k0 + across_of(i) * kPiece;
      const bool some = at[i] != nullptr && k < depth;
      if constexpr (is_gguf(F))
        gguf_load<F, kWide>(some, at[i], k, raw[i]);
      else if constexpr (kWide)
        load_wide(o, some, at[i], k, raw[i]);
      else
        load_elements(o, some, at[i], k, depth, raw[i]);
      if constexpr (kFactor != GemmFactor::kNone)
        factor[i] = some ? factors[i][sf_column_offset(o.factor_layout, k >> o.factor_shift)] : 0u;
    }
  }
  FI_GLOBAL_FN static void load_wide(const GemmCudaOperand& o, bool some, const char* line, int32_t k,
                                     uint32_t (&to)[kWords]) {
    const int64_t place =
        o.block_shift == 0 ? k : (k >> o.block_shift) * o.block_stride + (k & ((1 << o.block_shift) - 1));
    const Pack<uint32_t, kWords> x =
        load_if<kWords, Hint::kKeep>(some, reinterpret_cast<const uint32_t*>(line + bytes(place)));
#pragma unroll
    for (int w = 0; w < kWords; ++w) to[w] = x[w];
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
        const int64_t place = o.block_shift == 0
                                  ? e / kIn * o.step
                                  : (e >> o.block_shift) * o.block_stride + (e & ((1 << o.block_shift) - 1));
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
        put(tile, line, across, raw[i][0], raw[i][1], raw[i][2], raw[i][3]);
      } else {
        uint32_t y[8];
        convert_piece<F, kFactor, T>(raw[i], kFactor == GemmFactor::kNone ? 0u : factor[i], y);
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
