// SPDX-License-Identifier: Apache-2.0
// Code shared by both MLA kernels: addresses of the keys of a block, prefetching of the next block, conversion of 8-bit
// caches, the register-tiled product of packed cells, states of rows.
#pragma once
#include <math.h>

#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cpu/fp8_rows.h"
#include "flashinfer/ops/attention/kernels/cpu/tile.h"
#include "flashinfer/ops/mla/kernels/params.h"

namespace flashinfer::cpu::mla {
using namespace flashinfer::mla;
namespace packing = flashinfer::cpu::attention;  // pack_q, pack_k, pack_v, softmax_row, run_chunks, fold

/// 8-bit caches are converted once a block: for a bf16 q to bf16, which holds every e4m3 and e5m2 value, else to f32.
/// Scales of groups are applied then, in f32.
template <MlaConfig C>
struct Types {
  static constexpr bool kStaged = C.grouped || C.kv == DType::kF8E4M3 || C.kv == DType::kF8E5M2;
  static constexpr DType kRow = !kStaged ? C.kv : C.q == DType::kBF16 && !C.grouped ? DType::kBF16 : DType::kF32;
  using Pack = packing::Types<AttentionConfig{C.q, kRow, C.o, false}>;
  using Q = typename Pack::Q;
  using KV = scalar_of_t<C.kv>;
  using Row = typename Pack::KV;
  using O = typename Pack::O;
  static constexpr bool kPairs = Pack::kPairs;
  static constexpr int kPerCell = Pack::kPerCell;
};

static_assert(kBlockKeys == packing::kBlockKeys);  // softmax_row and pack_k work on whole blocks
using packing::fold, packing::State, packing::low_bits;

/// Row addresses of one block; slots without a key point to `zeros`, so that unused slots of a page are never read.
template <class T>
struct Rows {
  const T *ckv[kBlockKeys], *kpe[kBlockKeys];
};

/// Rows of keys [start, start + count) of request b. `scales`: of each key, or null.
template <class T>
inline void find_rows(const MlaParams& p, int64_t b, int64_t start, int64_t count, const void* zeros, Rows<T>& out,
                      const float** scales) {
  int64_t page = p.kv_indptr[b] + start / p.page_size, entry = start % p.page_size, j = 0;
  const int64_t groups = ceil_div(p.dim_ckv, kScaleGroup);
  for (; j < count; ++page, entry = 0) {
    const int64_t pool = p.kv_indices[page];
    const T* ckv = static_cast<const T*>(p.ckv) + pool * p.ckv_stride_page;
    const T* kpe = static_cast<const T*>(p.kpe) + pool * p.kpe_stride_page;
    for (; j < count && entry < p.page_size; ++j, ++entry) {
      out.ckv[j] = ckv + entry * p.ckv_stride_n;
      out.kpe[j] = kpe + entry * p.kpe_stride_n;
      if (p.ckv_scales) scales[j] = p.ckv_scales + (pool * p.page_size + entry) * groups;
    }
  }
  for (; j < kBlockKeys; ++j) out.ckv[j] = out.kpe[j] = static_cast<const T*>(zeros);
}

/// Lines of the next block, prefetched a few at a time while the current one is processed: bursts would fill the miss
/// queue and stall, and memory would idle between them. Into L2 (T1): the block alone is larger than L1.
struct Prefetcher {
  const char *rows[2 * kBlockKeys], *at = nullptr, *end = nullptr;
  int32_t bytes[2];  // of a ckv and of a kpe row
  int row = 0, count = 0;

  template <class T>
  void set(const Rows<T>& next, int64_t keys, int64_t dim_ckv, int64_t dim_kpe) {
    bytes[0] = static_cast<int32_t>(dim_ckv * static_cast<int64_t>(sizeof(T)));
    bytes[1] = static_cast<int32_t>(dim_kpe * static_cast<int64_t>(sizeof(T)));
    count = static_cast<int>(2 * keys);
    for (int64_t j = 0; j < keys; ++j) {
      rows[2 * j] = reinterpret_cast<const char*>(next.ckv[j]);
      rows[2 * j + 1] = reinterpret_cast<const char*>(next.kpe[j]);
    }
    row = 0;
    at = end = nullptr;
    advance();
  }
  void clear() { row = count = 0, at = end = nullptr; }
  void advance() {
    while (row < count && at >= end) {
      at = rows[row];
      end = at + bytes[row % 2];
      ++row;
    }
  }
  FI_VEC_INLINE void issue_prefetch() {
    if (at >= end) return;
    __builtin_prefetch(at, 0, 2);
    at += 64;
    if (at >= end) advance();
  }
};

/// A row in f32, times its scales.
template <class S>
inline void stage_row(const S* from, int64_t dim, const float* scales, float* to) {
  for (int64_t d = 0; d < dim; d += Vec::kLanes) {
    const int64_t n = dim - d;
    Vec x = n >= Vec::kLanes ? load(from + d) : load_n(from + d, n);
    if (scales) x = x * splat(scales[d / kScaleGroup]);
    if (n >= Vec::kLanes)
      store(to + d, x);
    else
      store_n(to + d, x, n);
  }
}
template <class S>
inline void stage_row(const S* from, int64_t dim, const float*, bf16_t* to) {
  widen_row(from, dim, to);
}

using packing::kMaxCols;
using packing::kMaxRows;

/// Rows of a register tile of `rows` <= kMaxRows over `columns` (32 or 64) of a packed block.
template <bool Pairs, int MR = kMaxRows>
inline void product_rows(int64_t rows, const uint32_t* a, int64_t lda, const uint32_t* b, float* c, int64_t ldc,
                         int64_t n, int64_t columns, float keep, Prefetcher& ahead) {
#if defined(FI_CPU_AMX)
  if constexpr (Pairs) {
    for (int64_t k = 0; k < n; ++k) ahead.issue_prefetch();
    if (keep != 0 && keep != 1)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; j += Vec::kLanes) store(c + i * ldc + j, load(c + i * ldc + j) * splat(keep));
    return tile_product(rows, a, lda, b, columns, c, ldc, n, columns, keep != 0);
  }
#endif
  if constexpr (MR > 1)
    if (rows < MR) return product_rows<Pairs, MR - 1>(rows, a, lda, b, c, ldc, n, columns, keep, ahead);
  constexpr int64_t kWide = kMaxCols * Vec::kLanes, kSlim = 2 * Vec::kLanes;
  const auto line = [&ahead]() { ahead.issue_prefetch(); };
  int64_t j = 0;
  for (; j + kWide <= columns; j += kWide)
    packing::product<Pairs, MR, kMaxCols>(a, lda, b + j, columns, c + j, ldc, n, keep, line);
  if constexpr (kWide != kSlim)
    for (; j < columns; j += kSlim) packing::product<Pairs, MR, 2>(a, lda, b + j, columns, c + j, ldc, n, keep, line);
}

/// o / l in the output's dtype; zeros and -inf for a row without visible keys. A sink adds its weight to the
/// denominator only.
template <class O>
inline void finish(const MlaParams& p, int64_t token, int64_t head, const float* o, State s, float factor) {
  O* out = static_cast<O*>(p.o) + token * p.o_stride_n + head * p.o_stride_h;
  const bool empty = s.m == -INFINITY;
  float top = s.m * factor, weight = 1, l = s.l, exact = s.lse;  // top in log2 units
  if (p.sinks) {
    const float sink = p.sinks[head] * 1.44269504f, keys = top;
    top = empty || sink > keys ? sink : keys;
    weight = empty ? 0.0f : packing::exp2(keys - top);
    const float extra = packing::exp2(sink - top);
    l = (empty ? 0.0f : l * weight) + extra, exact = (empty ? 0.0f : exact * weight) + extra;
  }
  const Vec inv = splat(empty ? 0.0f : p.v_scale * weight / l);
  const int64_t dim = p.dim_ckv;
  int64_t d = 0;
  for (; d + Vec::kLanes <= dim; d += Vec::kLanes) store(out + d, fma(load(o + d), inv, zero()));
  if (d < dim) store_n(out + d, fma(load(o + d), inv, zero()), dim - d);
  if (p.lse)
    p.lse[token * p.lse_stride_n + head * p.lse_stride_h] =
        empty && !p.sinks ? -INFINITY : (top + log2f(exact)) * p.lse_factor;
}

}  // namespace flashinfer::cpu::mla
