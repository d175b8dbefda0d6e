// SPDX-License-Identifier: Apache-2.0
// mm and bmm on the CPU: a task is some rows by some panels of 16 columns. The engine is kernels/cpu/gemm.h.
#pragma once
#include "flashinfer/kernels/cpu/gemm.h"
#include "flashinfer/ops/gemm/params.h"

namespace flashinfer::cpu {
namespace detail {

inline constexpr int64_t kBlockPairs = 128;   // k pairs of B packed on the way: 24 KB for three panels, in L1
inline constexpr int64_t kScratchRows = 128;  // rows whose sums wait between k blocks: 24 KB for three panels

/// Where B's k pairs [k, k + pairs) of panels [panel, panel + count) lie: in place, or packed into `buffer`.
template <GemmConfig C>
FI_VEC_INLINE void find_b(const GemmParams& p, int64_t batch, int64_t panel, int64_t count, int64_t k, int64_t pairs,
                          bf16_t* buffer, TileInput& in) {
  in.pairs = pairs;
  if constexpr (C.packed_b) {
    in.b = static_cast<const bf16_t*>(p.b) + batch * p.b_batch + panel * p.b_panel + k * 2 * kPanelColumns;
    in.panel = p.b_panel;
  } else {
    using S = scalar_of_t<C.b>;
    in.b = buffer;
    in.panel = pairs * 2 * kPanelColumns;
    const int64_t next = 2 * (k + pairs);  // the block of k after this one, or the first of the panels after these
    const int64_t ahead = next < p.k ? 2 * kBlockPairs : count * kPanelColumns * p.b_n - 2 * k;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t column = (panel + i) * kPanelColumns, left = p.n - column;
      const S* from = static_cast<const S*>(p.b) + batch * p.b_batch + column * p.b_n;
      pack_lines<kPanelColumns>(Lines<S>{from, p.b_n, p.b_k, ahead}, left < kPanelColumns ? left : kPanelColumns, 2 * k,
                                2 * (k + pairs), p.k, buffer + i * in.panel);
    }
  }
}

template <GemmConfig C, int Panels>
void multiply_panels(const GemmParams& p, const RowsOfA& a, int64_t batch, int64_t begin, int64_t end, int64_t panel) {
  using T = scalar_of_t<C.out>;
  alignas(64) bf16_t buffer[C.packed_b ? 1 : Panels * kBlockPairs * 2 * kPanelColumns];
  alignas(64) float sums[kScratchRows * Panels * kPanelColumns];
  const int64_t column = panel * kPanelColumns, all = (p.k + 1) / 2;
  const int64_t block = C.packed_b ? p.pairs_per_block : kBlockPairs;
  const int64_t rows_at_once = block >= all ? end - begin : kScratchRows;
  const Output out{.out = static_cast<T*>(p.out) + batch * p.out_batch + column,
                   .row = p.out_row,
                   .bias = p.bias ? static_cast<const bf16_t*>(p.bias) + column : nullptr,
                   .scale_a = p.scale_a,
                   .scale_b = p.scale_b,
                   .columns = p.n - column};
  for (int64_t r = begin; r < end; r += rows_at_once) {
    const int64_t r_end = end - r < rows_at_once ? end : r + rows_at_once;
    for (int64_t k = 0; k == 0 || k < all; k += block) {
      const int64_t pairs = all - k < block ? all - k : block;
      TileInput in{};
      find_b<C>(p, batch, panel, Panels, k, pairs, buffer, in);
      multiply_rows<T, Panels>(a, r, r_end, {.k = k, .first = k == 0, .last = k + block >= all}, in, sums, out);
    }
  }
}

}  // namespace detail

template <GemmConfig C>
void gemm(const GemmParams& p, int64_t task) {
  const int64_t panels = (p.n + kPanelColumns - 1) / kPanelColumns;
  const int64_t panel_tasks = (panels + p.panels_per_task - 1) / p.panels_per_task;
  const int64_t row_tasks = (p.m + p.rows_per_task - 1) / p.rows_per_task;
  const int64_t batch = task / (panel_tasks * row_tasks), begin = task / panel_tasks % row_tasks * p.rows_per_task;
  const int64_t end = p.m - begin < p.rows_per_task ? p.m : begin + p.rows_per_task;
  int64_t panel = task % panel_tasks * p.panels_per_task;
  const int64_t last = panels - panel < p.panels_per_task ? panels : panel + p.panels_per_task;
  const RowsOfA a{.blocks = static_cast<const bf16_t*>(p.a_blocks) + batch * p.a_batch_blocks,
                  .block = p.a_block,
                  .packed_rows = p.packed_rows,
                  .rows = static_cast<const bf16_t*>(p.a) + batch * p.a_batch,
                  .row = p.a_row};
  for (; panel + kTilePanels <= last; panel += kTilePanels)
    detail::multiply_panels<C, kTilePanels>(p, a, batch, begin, end, panel);
  for (; panel < last; ++panel) detail::multiply_panels<C, 1>(p, a, batch, begin, end, panel);
}

/// A: task i of a batch is rows [8 i, 8 i + 8), blocks first, the rest as plain rows of 2 * ceil(k / 2) elements after
/// them. B: task i is panel i, its header line first.
template <GemmPackConfig C>
void gemm_pack(const GemmPackParams& p, int64_t task) {
  using S = scalar_of_t<C.from>;
  constexpr int kWidth = C.rows ? kBlockRows : kPanelColumns;
  const int64_t batch = task / p.tasks_per_batch, first = task % p.tasks_per_batch * kWidth, pairs = (p.k + 1) / 2;
  const int64_t lines = p.lines - first < kWidth ? p.lines - first : kWidth;
  const Lines<S> from{static_cast<const S*>(p.from) + batch * p.batch_stride + first * p.line, p.line, p.step};
  bf16_t* to = static_cast<bf16_t*>(p.to) + batch * p.to_batch;
  if constexpr (C.rows) {
    to += first * 2 * pairs;
    if (lines == kWidth) return pack_lines<kWidth>(from, lines, 0, 2 * pairs, p.k, to);
    for (int64_t i = 0; i < lines; ++i)
      pack_lines<1>(Lines<S>{from.p + i * p.line, p.line, p.step}, 1, 0, 2 * pairs, p.k, to + i * 2 * pairs);
  } else {
    to += task % p.tasks_per_batch * (pairs + 1) * kPackedWidth;
    write_packed_header(to, lines, p.k);
    pack_lines<kWidth>(from, lines, 0, 2 * pairs, p.k, to + kPackedWidth);
  }
}

}  // namespace flashinfer::cpu
