// SPDX-License-Identifier: Apache-2.0
// Weights of experts and their scales from the order of FlashInfer's kernels for SM90 (sm90_order.h) to plain order,
// for experts that have rows. A block of threads has 16 rows of a matrix, whose words lie in pairs of rows r and r + 8.
#pragma once
#include "flashinfer/kernels/cuda/cluster.h"
#include "flashinfer/kernels/cuda/memory.h"
#include "flashinfer/ops/moe/kernels/cuda_params.h"

namespace flashinfer::cu {

/// The 16-bit word i of a line of 64 columns.
FI_GLOBAL_FN uint32_t half_word(const Pack<uint32_t, 8>& line, int i) {
  return line[i / 2] >> (16 * (i % 2)) & 0xffffu;
}

/// Bits C012 B012 A012 C3 D12 B3 D0 D3 A3 from bit 0 on to a byte each of A, B, C, D.
FI_GLOBAL_FN uint32_t sm90_codes(uint32_t w) {
  const uint32_t a = (w >> 6 & 7u) | (w >> 15 & 1u) << 3, b = (w >> 3 & 7u) | (w >> 12 & 1u) << 3,
                 c = (w & 7u) | (w >> 9 & 1u) << 3, d = (w >> 13 & 1u) | (w >> 10 & 3u) << 1 | (w >> 14 & 1u) << 3;
  return a | b << 8 | c << 16 | d << 24;
}
/// Lines of 64 columns of rows r and r + 8, from the lines that hold both.
FI_GLOBAL_FN void restore_fp4(const Pack<uint32_t, 8> (&from)[2], Pack<uint32_t, 8> (&to)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      uint32_t word[4] = {};  // of A, B, C, D: four bytes of two columns each
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        const int at = 8 * u + 2 * pair;
        const uint32_t both = sm90_codes(half_word(from[h], at)) | sm90_codes(half_word(from[h], at + 1)) << 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) word[i] |= (both >> (8 * i) & 0xffu) << (8 * pair);
      }
      to[0][4 * u + 2 * h] = word[0], to[1][4 * u + 2 * h] = word[1];
      to[0][4 * u + 2 * h + 1] = word[2], to[1][4 * u + 2 * h + 1] = word[3];
    }
}
FI_GLOBAL_FN void restore_int4(const Pack<uint32_t, 8> (&from)[2], Pack<uint32_t, 8> (&to)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int u = 0; u < 2; ++u)
#pragma unroll
      for (int two = 0; two < 2; ++two)  // two words of a row
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          const int at = 8 * u + 4 * two + s;
          to[s][4 * u + 2 * h + two] = half_word(from[h], at) | half_word(from[h], at + 2) << 16;
        }
}

template <MoeCudaConfig C>
FI_GLOBAL_FN void moe_restore(const MoeRestoreParams& p) {
  depend_wait();
  const int64_t group = block_x(), row = group * 16;
  const auto e = static_cast<int32_t>(row / p.n);
  if (p.offsets[e] != p.offsets[e + 1]) {
    const int32_t lines = p.words / 16;  // of a row
    for (int32_t i = static_cast<int32_t>(thread_x()); i < 8 * lines; i += C.threads) {
      const int64_t at = 2 * ((row + i / lines) * p.words + int64_t{16} * (i % lines)), next = int64_t{16} * p.words;
      Pack<uint32_t, 8> from[2], to[2];
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const auto half = load<4, Hint::kOnce>(reinterpret_cast<const uint32_t*>(p.codes + at + h * next) + 4 * j);
#pragma unroll
          for (int k = 0; k < 4; ++k) from[h][4 * j + k] = half[k];
        }
      if (p.fp4)
        restore_fp4(from, to);
      else
        restore_int4(from, to);
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int j = 0; j < 2; ++j)
          store(reinterpret_cast<uint32_t*>(p.codes_to + at + h * next) + 4 * j,
                Pack<uint32_t, 4>{{to[h][4 * j], to[h][4 * j + 1], to[h][4 * j + 2], to[h][4 * j + 3]}});
    }
    // A line of scales: 128 columns of a row. Of 64 rows those that are `apart` lie in 16 bytes.
    const int32_t apart = 4 * p.line, step = p.line / 2;  // 64 / (16 / line); in words of 16 bits
    for (int32_t i = static_cast<int32_t>(thread_x()); i < 16 * p.groups; i += C.threads) {
      const int64_t r = row + i / p.groups;
      const int32_t g = i % p.groups, in = static_cast<int32_t>(r % 64);
      const uint16_t* const from = p.scales +
                                   (r / 64 * 64 * p.groups * p.line + in % apart * 16 + in / apart * p.line) / 2 +
                                   int64_t{g} * 64 * step;
      uint16_t* const to = p.scales_to + (r * p.groups + g) * step;
      for (int32_t k = 0; k < step; ++k) to[k] = from[k];
    }
  }
  depend_launch();
}

}  // namespace flashinfer::cu
