// SPDX-License-Identifier: Apache-2.0
// MLA on the CPU. A task is a tile of rows of one request over a range of its keys. For each block of 64 keys: with
// many rows, pack K once, multiply, softmax row by row, pack V once, multiply; with few heads, dot products with
// unpacked keys (kernels/cpu/decode.h). The summation order of an output is that of params.h and depends on nothing
// else.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/mla/kernels/cpu/decode.h"
#include "flashinfer/ops/mla/kernels/cpu/scratch.h"
#include "flashinfer/ops/mla/kernels/cpu/tile.h"

namespace flashinfer::cpu {
namespace mla {

template <MlaConfig C>
struct Tile {
  using T = Types<C>;
  using KV = typename T::KV;
  using Row = typename T::Row;
  static constexpr int64_t kPCells = kBlockKeys / T::kPerCell;

  const MlaParams& p;
  const AttentionWorkItem& w;
  Scratch s;
  int64_t q_first, offset, kv_len, rows, width, q_cells;
  float factor;
  bool plain;             // logits need no transformation: the scale is applied in the exponent
  int32_t hi[kTileRows];  // keys [0, hi) are visible
  Rows<KV> current, next;
  const float *current_scales[kBlockKeys], *next_scales[kBlockKeys];
  Rows<Row> block;
  Prefetcher ahead;

  Tile(const MlaParams& params, const AttentionWorkItem& work)
      : p(params),
        w(work),
        s(params.scratch, params.dim_ckv, params.dim_kpe),
        rows(work.row_end - work.row_begin),
        width(padded(params.dim_ckv)),
        q_cells((width + padded(params.dim_kpe)) / T::kPerCell) {
    q_first = p.qo_indptr[w.request];
    kv_len = p.kv_len[w.request];
    offset = kv_len - (p.qo_indptr[w.request + 1] - q_first);
    plain = p.scale > 0;
    factor = plain ? p.scale * 1.44269504f : 1.0f;
    memset(s.zeros, 0, static_cast<size_t>(4 * (width + padded(p.dim_kpe))));
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = token(i) + offset + 1, n = p.causal && at < kv_len ? at : kv_len;
      hi[i] = static_cast<int32_t>(n > 0 ? n : 0);
      const auto* pe = static_cast<const typename T::Q*>(p.q_pe) + (q_first + token(i)) * p.q_pe_stride_n +
                       head(i) * p.q_pe_stride_h;
      const auto* nope = static_cast<const typename T::Q*>(p.q_nope) + (q_first + token(i)) * p.q_nope_stride_n +
                         head(i) * p.q_nope_stride_h;
      uint32_t* to = s.q + i * q_cells;
      if (p.dim_kpe) packing::pack_q<typename T::Pack>(pe, p.dim_kpe, to);
      packing::pack_q<typename T::Pack>(nope, p.dim_ckv, to + padded(p.dim_kpe) / T::kPerCell);
    }
  }
  int64_t token(int64_t i) const { return (w.row_begin + i) / p.num_heads; }
  int64_t head(int64_t i) const { return (w.row_begin + i) % p.num_heads; }

  /// Converts the block's rows to the type that is multiplied.
  void stage(int64_t keys) {
    if constexpr (T::kStaged) {
      Row* to = static_cast<Row*>(s.staged);
      const int64_t stride = width + padded(p.dim_kpe);
      for (int64_t j = 0; j < keys; ++j, to += stride) {
        stage_row(current.ckv[j], p.dim_ckv, p.ckv_scales ? current_scales[j] : nullptr, to);
        if (p.dim_kpe) stage_row(current.kpe[j], p.dim_kpe, nullptr, to + width);
        block.ckv[j] = to, block.kpe[j] = to + width;
      }
      for (int64_t j = keys; j < kBlockKeys; ++j) block.ckv[j] = block.kpe[j] = static_cast<const Row*>(s.zeros);
    } else {
      block = current;
    }
  }

  /// Turns the logits `row` of row i of the block at `first` into probabilities.
  void softmax(int64_t i, int64_t first, float* row) {
    if (!plain)
      for (int64_t j = 0; j < kBlockKeys; j += Vec::kLanes)
        store(row + j, load(row + j) * splat(p.scale * 1.44269504f));
    const uint64_t visible = low_bits(hi[i] - first);
    packing::softmax_row<T::kPairs>(row, visible == ~0ull ? nullptr : &visible, factor, s.m[i], s.l + i * 32,
                                    s.o + i * width, width, s.p + i * kPCells);
  }

  /// Rows of [i, end) in the next register tile: nearly equal parts, as 6 + 6 + 4 is slower than 6 + 5 + 5.
  static int64_t part(int64_t rest, int64_t most) {
    const int64_t parts = ceil_div(rest, most);
    return ceil_div(rest, parts);
  }

  void logits_packed(int64_t a, int64_t first) {
    const int64_t pe_cells = padded(p.dim_kpe) / T::kPerCell;
    if (p.dim_kpe) packing::pack_k<typename T::Pack>(block.kpe, kBlockKeys, p.dim_kpe, s.k);
    packing::pack_k<typename T::Pack>(block.ckv, kBlockKeys, p.dim_ckv, s.k + pe_cells * kBlockKeys);
    for (int64_t i = a, n; i < rows; i += n) {
      n = part(rows - i, kMaxRows);
      const uint32_t* q = s.q + i * q_cells;
      if (p.dim_kpe)
        product_rows<T::kPairs>(n, q, q_cells, s.k, s.s, kBlockKeys, packing::cells<typename T::Pack>(p.dim_kpe),
                                kBlockKeys, 0.0f, ahead);
      product_rows<T::kPairs>(n, q + pe_cells, q_cells, s.k + pe_cells * kBlockKeys, s.s, kBlockKeys,
                              packing::cells<typename T::Pack>(p.dim_ckv), kBlockKeys, p.dim_kpe ? p.kpe_ratio : 0.0f,
                              ahead);
      for (int64_t x = 0; x < n; ++x) softmax(i + x, first, s.s + x * kBlockKeys);
    }
  }

  /// Rows [i, end) times the values of the first `keys` keys of the block. Masked keys are packed as zeros: 0 * NaN
  /// would be NaN.
  void values_packed(int64_t i, int64_t end, int64_t keys) {
    const Row* v[kBlockKeys];
    for (int64_t d = 0; d < p.dim_ckv; d += 64) {
      const int64_t dims = p.dim_ckv - d < 64 ? p.dim_ckv - d : 64, columns = padded(dims);
      for (int64_t j = 0; j < kBlockKeys; ++j) v[j] = j < keys ? block.ckv[j] + d : static_cast<const Row*>(s.zeros);
      packing::pack_v<typename T::Pack>(v, keys, dims, s.v);
      for (int64_t x = i, n; x < end; x += n) {
        n = part(end - x, kMaxRows);
        product_rows<T::kPairs>(n, s.p + x * kPCells, kPCells, s.v, s.o + x * width + d, width,
                                packing::cells<typename T::Pack>(keys), columns, 1.0f, ahead);
      }
    }
  }

  void multiply_block(int64_t first, int64_t keys) {
    int64_t a = 0;
    while (a < rows && hi[a] <= first) ++a;  // tokens ascend, and so do their visible keys
    stage(keys);
    const FewRows<T> few{p, block, s.q, q_cells, s.p, s.o, width, static_cast<const Row*>(s.zeros)};
    if constexpr (C.few) {
      for (int64_t i = a, n; i < rows; i += n) {
        n = part(rows - i, kFewRows);
        few.logits(i, n, s.s, ahead);
        for (int64_t x = 0; x < n; ++x) softmax(i + x, first, s.s + x * kBlockKeys);
      }
    } else {
      logits_packed(a, first);
    }
    while (a < rows) {  // rows with equally many visible keys
      const int64_t seen = hi[a] - first < keys ? hi[a] - first : keys;
      int64_t end = a + 1;
      while (end < rows && (hi[end] - first < keys ? hi[end] - first : keys) == seen) ++end;
      if constexpr (C.few) {
        for (int64_t i = a, n; i < end; i += n) few.values(i, n = part(end - i, kFewRows), seen, ahead);
      } else {
        values_packed(a, end, seen);
      }
      a = end;
    }
  }

  void run_chunk(int64_t chunk) {
    for (int64_t i = 0; i < rows; ++i) s.m[i] = -INFINITY;
    memset(s.l, 0, static_cast<size_t>(rows) * 128);
    memset(s.o, 0, static_cast<size_t>(rows * width) * 4);
    const int64_t begin = chunk * kChunkKeys, last = hi[rows - 1],
                  end = last < begin + kChunkKeys ? last : begin + kChunkKeys;
    auto count = [&](int64_t first) { return end - first < kBlockKeys ? end - first : kBlockKeys; };
    if (begin >= end) return;
    find_rows(p, w.request, begin, count(begin), s.zeros, current, current_scales);
    for (int64_t first = begin; first < end; first += kBlockKeys) {
      const int64_t then = first + kBlockKeys;
      ahead.clear();
      if (then < last && then / kChunkKeys < w.chunk_end) {  // the next block, possibly of the next chunk
        const int64_t keys = last - then < kBlockKeys ? last - then : kBlockKeys;
        find_rows(p, w.request, then, keys, s.zeros, next, next_scales);
        ahead.set(next, keys, p.dim_ckv, p.dim_kpe);
      }
      multiply_block(first, count(first));
      if (then >= end) break;
      current = next;
      memcpy(current_scales, next_scales, sizeof current_scales);
    }
  }

  State state(int64_t i) const {
    const float* l = s.l + i * 32;
    const float sum = reduce_add(load(l));
    return {s.m[i], sum, T::kPairs ? reduce_add(load(l + 16)) : sum};
  }

  void finish_row(int64_t i, const float* o, State st) {
    finish<typename T::O>(p, q_first + token(i), head(i), o, st, factor);
  }

  void run() { packing::run_chunks(*this, factor); }
};

/// After all work items: folds the states of the chunks of one merge, in ascending order.
template <MlaConfig C>
void merge_chunks(const MlaParams& p, const SplitKvReduction& g) {
  const Scratch s(p.scratch, p.dim_ckv, p.dim_kpe);
  const int64_t width = padded(p.dim_ckv);
  const float factor = p.scale > 0 ? p.scale * 1.44269504f : 1.0f;
  for (int64_t i = 0; i < g.row_end - g.row_begin; ++i) {
    State total{-INFINITY, 0, 0};
    for (int64_t c = 0; c < g.chunks; ++c) {
      const int64_t at = g.partial + c * g.stride + i;
      fold(s.total, total, p.partial_o + at * width, reinterpret_cast<const State*>(p.softmax_state)[at], factor,
           width);
    }
    const int64_t row = g.row_begin + i;
    finish<typename Types<C>::O>(p, p.qo_indptr[g.request] + row / p.num_heads, row % p.num_heads, s.total, total,
                                 factor);
  }
}
}  // namespace mla

/// Task i >= 0: works[i]; then, when all are done, task -1 - i: merges[i].
template <MlaConfig C>
void mla_task(const MlaParams& p, int64_t task) {
#if defined(FI_CPU_AMX)
  const TileScope tiles;
#endif
  if (task >= 0)
    mla::Tile<C>(p, p.work[task]).run();
  else
    mla::merge_chunks<C>(p, p.merges[-1 - task]);
}

}  // namespace flashinfer::cpu
