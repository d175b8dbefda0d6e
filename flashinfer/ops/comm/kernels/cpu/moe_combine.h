// SPDX-License-Identifier: Apache-2.0
// Sums of the rows that the ranks of a token's experts computed, read where those ranks wrote them.
#pragma once
#include "flashinfer/kernels/cpu/block_quantize.h"
#include "flashinfer/ops/comm/kernels/moe_a2a_params.h"

namespace flashinfer::cpu {

/// The rows of token t, in the order of its experts; returns how many.
template <class T>
FI_VEC_INLINE int moe_rows_of(const MoeCombineParams& p, int64_t t, const T** row) {
  int n = 0;
  for (int64_t k = 0; k < p.top_k; ++k) {
    const uint32_t place = p.places[t * p.top_k + k];
    if (place == kMoeNoPlace) continue;
    const auto* rows = static_cast<const char*>(p.source[place >> kMoePlaceBits]);
    row[n++] = reinterpret_cast<const T*>(rows + (place & ((1u << kMoePlaceBits) - 1)) * p.row_bytes);
  }
  return n;
}
template <class T, class U>
FI_VEC_INLINE void sum_moe_rows(const T* const* row, int n, int64_t d, U* to) {
  const auto sum = [&](auto at) {
    Vec v = zero();
    for (int k = 0; k < n; ++k) v = v + at(row[k]);
    return v;
  };
  int64_t i = 0;
  for (; i + Vec::kLanes <= d; i += Vec::kLanes) store(to + i, sum([&](const T* x) { return load(x + i); }));
  if (i < d) store_n(to + i, sum([&](const T* x) { return load_n(x + i, d - i); }), d - i);
}

template <MoeCombineQuant Q>
FI_VEC_INLINE void quantize_moe_row(const MoeCombineParams& p, const float* x, int64_t t) {
  constexpr BlockFormat kFormat = Q == MoeCombineQuant::kNvfp4   ? BlockFormat{16, 0, 0}
                                  : Q == MoeCombineQuant::kMxfp4 ? BlockFormat{32, 1, 0}
                                                                 : BlockFormat{32, 1, 1};
  constexpr bool kNv = Q == MoeCombineQuant::kNvfp4;
  constexpr int64_t kBytes = kFormat.fp8 ? kFormat.block : kFormat.block / 2;
  BlockRule<kFormat, float> rule;
  make_block_rule(rule, kNv ? p.scale * (1.0f / 6.0f) : 1.0f, kNv ? 1.0f / p.scale : 1.0f);
  const int64_t blocks = p.d / kFormat.block;
  uint8_t* codes = static_cast<uint8_t*>(p.out) + t * blocks * kBytes;
  uint8_t* scales = static_cast<uint8_t*>(p.scales) + sf_row_offset(p.layout, t, blocks);
  for (int64_t b = 0; b < blocks; b += kBlockChunk) {
    const int64_t left = blocks - b, n = left < kBlockChunk ? left : kBlockChunk;
    uint8_t bytes[kBlockChunk + 16];
    quantize_blocks(rule, x + b * kFormat.block, codes + b * kBytes, bytes, n);
    store_scales(p.layout, scales, b, bytes, n);
  }
}

template <MoeCombineConfig C>
void moe_combine(const MoeCombineParams& p, int64_t task) {
  using T = scalar_of_t<C.payload>;
  constexpr bool kQuantises = C.quant != MoeCombineQuant::kNone;
  const int64_t all = kQuantises ? p.padded_rows : p.tokens;
  const int64_t begin = task * p.rows_per_task, end = begin + p.rows_per_task < all ? begin + p.rows_per_task : all;
  for (int64_t t = begin; t < end; ++t) {
    const T* row[kMoeA2aRanks];
    const int n = t < p.tokens ? moe_rows_of(p, t, row) : 0;
    if constexpr (!kQuantises) {
      sum_moe_rows(row, n, p.d, static_cast<scalar_of_t<C.out>*>(p.out) + t * p.d);
    } else if (t < p.tokens) {
      sum_moe_rows(row, n, p.d, p.scratch);
      quantize_moe_row<C.quant>(p, p.scratch, t);
    } else {
      const int64_t blocks = p.d / (C.quant == MoeCombineQuant::kNvfp4 ? 16 : 32);
      clear_scales(p.layout, static_cast<uint8_t*>(p.scales) + sf_row_offset(p.layout, t, blocks), 0,
                   sf_padded_columns(p.layout, blocks));
    }
  }
}

template <MoeNarrowConfig C>
void moe_narrow(const MoeNarrowParams& p, int64_t task) {
  using T = scalar_of_t<C.payload>;
  const int64_t begin = task * p.rows_per_task,
                end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const T* x = reinterpret_cast<const T*>(static_cast<const char*>(p.from) + r * p.row_bytes);
    e4m3_t* y = reinterpret_cast<e4m3_t*>(static_cast<char*>(p.to) + r * p.row_bytes);
    int64_t i = 0;
    for (; i + Vec::kLanes <= p.d; i += Vec::kLanes) store_saturated(y + i, load(x + i));
    if (i < p.d) store_saturated_n(y + i, load_n(x + i, p.d - i), p.d - i);
  }
}

}  // namespace flashinfer::cpu
