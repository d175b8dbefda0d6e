// SPDX-License-Identifier: Apache-2.0
// Memory access of the decode kernel: the rows of a block, the prefetches issued while another block is processed, and
// the conversion of rows to bf16 in scratch before they are multiplied.
#pragma once
#include "flashinfer/ops/attention/kernels/cpu/decode/convert.h"
#include "flashinfer/ops/attention/kernels/cpu/decode/prefetch.h"
#include "flashinfer/ops/attention/kernels/cpu/decode/types.h"

namespace flashinfer::cpu::attention {

template <AttentionConfig C>
struct DecodeReader {
  using T = DecodeTypes<C>;
  using KV = typename T::KV;
  using Cell = typename T::Cell;
  using Block = Rows<KV>;
  const AttentionParams& p;
  const AttentionWorkItem& w;
  const DecodeScratch& s;
  Lines ahead;

  DecodeReader(const AttentionParams& params, const AttentionWorkItem& work, const DecodeScratch& scratch)
      : p(params), w(work), s(scratch) {}

  /// Finds the rows of keys [first, first + kDecodeKeys) that are in [lo, hi).
  void find(Block& at, int64_t first, int64_t lo, int64_t hi) const {
    at.find(p, w.request, first, lo, first + kDecodeKeys < hi ? first + kDecodeKeys : hi);
  }

  bool heads_adjacent() const {
    const int64_t item = static_cast<int64_t>(sizeof(KV));
    return p.k_stride_h * item == T::bytes(p.head_dim_qk) && p.v_stride_h * item == T::bytes(p.head_dim_vo);
  }
  /// Lists the prefetches for part `part` of `parts` of a block, where the heads of a token are adjacent in memory: as
  /// large a part of the next block's tokens, in memory order.
  void plan_prefetch(const Block* next, int64_t part, int64_t parts) {
    ahead.clear();
    if (next) {
      const int64_t n = next->count;
      add_rows(*next, next->first + n * part / parts, next->first + n * (part + 1) / parts, w.head_begin,
               w.head_end - w.head_begin);
    }
    ahead.start(s.zeros);
  }
  /// The same while head `h` of `current` is processed, where heads are not adjacent: the next head's rows.
  void plan_head_prefetch(const Block& current, const Block* next, int64_t h) {
    ahead.clear();
    const bool last = h + 1 == w.head_end;
    if (const Block* block = last ? next : &current)
      add_rows(*block, block->first, block->first + block->count, last ? w.head_begin : h + 1, 1);
    ahead.start(s.zeros);
  }
  void add_rows(const Block& block, int64_t begin, int64_t end, int64_t head, int64_t many) {
    for (int64_t j = begin; j < end; ++j) ahead.add(block.k[j] + head * p.k_stride_h, many * T::bytes(p.head_dim_qk));
    for (int64_t j = begin; j < end; ++j) ahead.add(block.v[j] + head * p.v_stride_h, many * T::bytes(p.head_dim_vo));
    if constexpr (T::kFp4) {
      ahead.list();
      for (int64_t j = begin; j < end; ++j)
        ahead.add(block.k_sf[j] + head * p.k_sf_stride_h, many * p.head_dim_qk / 16);
      for (int64_t j = begin; j < end; ++j)
        ahead.add(block.v_sf[j] + head * p.v_sf_stride_h, many * p.head_dim_vo / 16);
    }
  }

  /// Prefetches one line of every 4 KB page that holds rows, so that the page walks of a block overlap: a prefetch does
  /// not retire before its translation. One line of every row (of 2 KB) instead fills the miss queue: 5 to 10 % slower
  /// on one core.
  void touch(const Block& block) const {
    uintptr_t k = 0, v = 0;
    for (int64_t j = block.first; j < block.first + block.count; ++j) {
      touch_page(block.k[j] + w.head_begin * p.k_stride_h, k);
      touch_page(block.v[j] + w.head_begin * p.v_stride_h, v);
    }
  }
  static void touch_page(const KV* row, uintptr_t& last) {
    const uintptr_t page = reinterpret_cast<uintptr_t>(row) >> 12;
    if (page != last) __builtin_prefetch(row, 0, 2);
    last = page;
  }

  /// Rows of one head; zeros for masked keys.
  template <class E>
  void head_rows(const E* const* rows, int64_t offset, const Shown& seen, const E** out) const {
    if (seen.lo == 0 && seen.hi == kDecodeKeys) {
      for (int64_t j = 0; j < kDecodeKeys; ++j) out[j] = rows[j] + offset;
      return;
    }
    for (int64_t j = 0; j < kDecodeKeys; ++j)
      out[j] = j >= seen.lo && j < seen.hi ? rows[j] + offset : reinterpret_cast<const E*>(s.zeros);
  }
  /// The unconverted row of key j of one head.
  template <bool Values>
  FI_VEC_INLINE const KV* row_of(const Block& at, int64_t head, int64_t j) const {
    return Values ? at.v[j] + head * p.v_stride_h : at.k[j] + head * p.k_stride_h;
  }
  /// Destination of its conversion.
  template <bool Values>
  FI_VEC_INLINE Cell* scratch_of(int64_t j) const {
    return reinterpret_cast<Cell*>(Values ? s.v : s.k) + j * padded(Values ? p.head_dim_vo : p.head_dim_qk);
  }
  /// Its cells: unconverted or, converted, in scratch.
  template <bool Values>
  FI_VEC_INLINE const Cell* cells(const Block& at, int64_t head, int64_t j) const {
    if constexpr (!T::kConvert)
      return row_of<Values>(at, head, j);
    else
      return scratch_of<Values>(j);
  }
  template <bool Values>
  void convert(const Block& at, int64_t head, int64_t begin, int64_t end) {
    const int64_t dim = Values ? p.head_dim_vo : p.head_dim_qk;
    for (int64_t j = begin; j < end; ++j) {
      const KV* row = row_of<Values>(at, head, j);
      Cell* to = scratch_of<Values>(j);
      ahead.issue_prefetch<1>();
      if constexpr (!T::kFp4)
        widen_row(row, dim, to);
      else
        widen_row(row, Values ? at.v_sf[j] + head * p.v_sf_stride_h : at.k_sf[j] + head * p.k_sf_stride_h, dim, to);
    }
  }
};

}  // namespace flashinfer::cpu::attention
