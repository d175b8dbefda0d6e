// SPDX-License-Identifier: Apache-2.0
// The f32, bf16 or f16 scales of blocks of k of a tile's lines (BlockScales), and GGUF's scales and minima: loaded into
// registers a step ahead, and from there to shared memory. Where a thread's scales begin is computed once, before the
// loop along k.
#pragma once
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/ops/gemm/kernels/cuda/gguf.cuh"
#include "flashinfer/ops/gemm/kernels/cuda_params.h"

namespace flashinfer::cu {

template <GemmCudaConfig C>
struct ScaleTile {
  static constexpr int kRows = C.rows, kColumns = C.columns, kBlocks = C.grid_blocks();
  static constexpr int kScales = kBlocks * (kRows + kColumns),
                       kPer = C.grid == 0 ? 1 : ceil_div(kScales, int{C.threads});

  const char* at[kPer];  // the line's first scale (GGUF: its first block); null: none
  float scales[kPer], minima[kPer];

  FI_GLOBAL_FN static int32_t number(int i) { return static_cast<int32_t>(thread_x()) + i * C.threads; }
  FI_GLOBAL_FN static bool of_a(int i) { return number(i) < kBlocks * kRows; }
  /// Block of the step. Both quotients, each by a constant: a selected divisor would be divided by at run time.
  FI_GLOBAL_FN static int32_t block_of(int i) {
    const int32_t a = number(i) / kRows, b = (number(i) - kBlocks * kRows) / kColumns;
    return of_a(i) ? a : b;
  }
  FI_GLOBAL_FN static int32_t line_of(int i) {
    const int32_t a = number(i) % kRows, b = (number(i) - kBlocks * kRows) % kColumns;
    return of_a(i) ? a : b;
  }

  FI_GLOBAL_FN static const char* first_of(const GemmCudaOperand& o, int64_t batch, int32_t line) {
    const int64_t row = o.grid_tiles != 0 ? sf_row_offset(SfLayout::k128x4, line, o.grid_tiles)
                                          : line / o.grid_lines * o.grid_line_stride;
    return static_cast<const char*>(o.grid) + (batch * o.grid_batch + row) * (o.grid_dtype == DType::kF32 ? 4 : 2);
  }
  /// The lines of A's and B's scales that are lines of the tile; -1: there is none.
  template <class RowOf, class ColumnOf>
  FI_GLOBAL_FN void begin(const GemmCudaParams& p, int64_t batch, int64_t matrix, RowOf row_of, ColumnOf column_of) {
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      at[i] = nullptr;
      if (number(i) >= kScales) continue;
      const auto line = static_cast<int32_t>(of_a(i) ? row_of(line_of(i)) : column_of(line_of(i)));
      if (line < 0) continue;
      if (of_a(i)) {
        if (p.a.grid != nullptr) at[i] = first_of(p.a, batch, line);
      } else if constexpr (is_gguf(C.b)) {
        at[i] = static_cast<const char*>(p.b.data) + matrix * p.b.batch + line * p.b.line;
      } else {
        at[i] = first_of(p.b, matrix, line);
      }
    }
  }

  FI_GLOBAL_FN static float scale_at(const GemmCudaOperand& o, const char* first, int32_t block) {
    const int64_t at = (block >> 2) * o.grid_quad + (block & 3) * o.grid_k_stride;
    if (o.grid_dtype == DType::kF32) return reinterpret_cast<const float*>(first)[at];
    if (o.grid_dtype == DType::kBF16) return to_f32(reinterpret_cast<const bf16_t*>(first)[at]);
    return to_f32(reinterpret_cast<const f16_t*>(first)[at]);
  }
  /// Those of step k0. A without scales: 1.
  FI_GLOBAL_FN void load(const GemmCudaParams& p, int32_t k0) {
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      const int32_t block = k0 / C.grid + block_of(i);
      scales[i] = of_a(i) && p.a.grid == nullptr ? 1.0f : 0.0f, minima[i] = 0.0f;
      if (at[i] == nullptr || block * C.grid >= p.k) continue;
      if constexpr (is_gguf(C.b)) {
        if (!of_a(i)) {
          const GgufScale s = gguf_scale<C.b, int{C.b_wide}>(at[i], block);
          scales[i] = s.scale, minima[i] = s.minimum;
          continue;
        }
      }
      scales[i] = scale_at(of_a(i) ? p.a : p.b, at[i], block);
    }
  }
  /// To [kBlocks][kRows], then [kBlocks][kColumns], then the minima of the columns.
  FI_GLOBAL_FN void store(float* to) const {
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      if (number(i) >= kScales) continue;
      to[number(i)] = scales[i];
      if constexpr (C.minima())
        if (!of_a(i)) to[number(i) + kBlocks * kColumns] = minima[i];
    }
  }
};

}  // namespace flashinfer::cu
