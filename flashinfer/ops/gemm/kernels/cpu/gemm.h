// SPDX-License-Identifier: Apache-2.0
// mm and bmm on the CPU: a task is some rows by some panels of 16 columns. The inner loops are in kernels/cpu/gemm.h.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/kernels/cpu/gemm.h"
#include "flashinfer/kernels/cpu/gemm_amx.h"
#include "flashinfer/ops/gemm/kernels/cpu/gemv.h"
#include "flashinfer/ops/gemm/kernels/cpu/gguf_sources.h"
#include "flashinfer/ops/gemm/kernels/cpu/pack_sources.h"
#include "flashinfer/ops/gemm/kernels/cpu/packed_unpack.h"
#include "flashinfer/ops/gemm/kernels/packed_layout.h"
#include "flashinfer/ops/gemm/kernels/params.h"

namespace flashinfer::cpu {
namespace detail {

inline constexpr int64_t kBlockPairs = 128;  // k pairs of B packed at a time: 24 KB for three panels, in L1
/// The same for up to 8 rows of a plain bf16 weight, which is memory-bound: blocks of one transposition spread the
/// reads evenly over the products. With long blocks memory idles while the processor multiplies.
inline constexpr int64_t kFewRowsPairs = kPackPairs;
/// Up to this size B is packed whole, once for all rows of a task: 61 KB for three panels, in L2.
inline constexpr int64_t kWholePairs = 320;
/// Rows whose sums are kept between k blocks: 48 KB for three panels. B is packed again for each group of this size.
inline constexpr int64_t kScratchRows = 256;
/// Bytes of A's rows that AMX multiplies by all panels of a task: half of the L2 cache of CPUs that have it.
inline constexpr int64_t kAmxBytesOfA = int64_t{1} << 20;

/// f(source) with the lines of a panel or a block: line 0 is line `first` of `batch` at `p`.
template <GemmFormat F, class Fn>
FI_VEC_INLINE void with_lines(const void* p, int64_t line, int64_t step, int64_t ahead, const ScaleFactors& sf,
                              int64_t split_k, bool of_b, int64_t batch, int64_t first, Fn f) {
  using S = gemm_scalar_t<F>;
  const S* const from = static_cast<const S*>(p) + first * line;
  if constexpr (is_gguf(F)) return f(GgufLines<F>{from, line});
  if constexpr (F == GemmFormat::kInt4) return f(Int4Lines{from, line});
  if constexpr (F == GemmFormat::kF16) return f(SplitLines{from, line, step, split_k, of_b});
  if constexpr (F == GemmFormat::kFp4 || F == GemmFormat::kE4M3 || F == GemmFormat::kE5M2)
    if (sf.bytes) return f(ScaledLines<F>(from, line, sf, batch, first));
  if constexpr (F == GemmFormat::kBF16 || F == GemmFormat::kE4M3 || F == GemmFormat::kE5M2)
    f(Lines<S>{from, line, step, ahead});
}

/// Whether the packed B has panels of bytes (packed_layout.h), which are converted to bf16 on the fly.
template <GemmConfig C>
constexpr bool has_byte_panels() {
  return C.packed_b && (C.b == GemmFormat::kE4M3 || C.b == GemmFormat::kFp4);
}
template <GemmConfig C>
constexpr bool kInPlace = C.packed_b && C.b == GemmFormat::kBF16;
/// Whether products are those of gemm_amx.h. The other formats' GEMV sums as vdpbf16ps does.
template <GemmConfig C>
constexpr bool uses_amx() {
#if defined(FI_CPU_AMX)
  return !C.grid && (C.b == GemmFormat::kBF16 || C.b == GemmFormat::kF16);
#else
  return false;
#endif
}
/// Panels multiplied at a time.
template <GemmConfig C>
constexpr int kPanelsAtOnce = uses_amx<C>() ? 2 : kTilePanels;

/// Points `in` at B's k pairs [k, k + pairs) of panels [panel, panel + count): in place, or packed into `buffer`.
template <GemmConfig C>
FI_VEC_INLINE void find_b(const GemmParams& p, int64_t batch, int64_t panel, int64_t count, int64_t k, int64_t pairs,
                          bf16_t* buffer, TileInput& in) {
  in.pairs = pairs;
  if constexpr (C.packed_b && is_gguf(C.b)) {
    in.b = buffer;
    in.panel = pairs * 2 * kPanelColumns;
    for (int64_t i = 0; i < count; ++i) {
      const GgufPanel<C.b> from(static_cast<const uint8_t*>(p.b) + (panel + i) * p.b_panel, p.k);
      for (int64_t at = 0; at < pairs; at += 16)
        from.unpack((k + at) / 16, buffer + i * in.panel + at * 2 * kPanelColumns);
    }
  } else if constexpr (has_byte_panels<C>()) {
    in.b = buffer;
    in.panel = pairs * 2 * kPanelColumns;
    for (int64_t i = 0; i < count; ++i) {
      const ScaleFactors& sf = p.b_sf;
      const uint8_t* const scales =
          sf.bytes ? sf.bytes + sf_row_offset(SfLayout::kPanels, (panel + i) * kPanelColumns, sf.columns) : nullptr;
      PackedPanel<C.b>{static_cast<const uint8_t*>(p.b) + (panel + i) * p.b_panel, scales, sf.block, sf.e8m0 != 0}
          .unpack(k, pairs, buffer + i * in.panel);
    }
  } else if constexpr (C.packed_b) {
    in.b = static_cast<const bf16_t*>(p.b) + batch * p.b_batch + panel * p.b_panel + k * 2 * kPanelColumns;
    in.panel = p.b_panel;
  } else {
    in.b = buffer;
    in.panel = pairs * 2 * kPanelColumns;
    // 256 k further on, or as many into the next panels.
    const int64_t ahead = 2 * kBlockPairs - (2 * k + 2 * kBlockPairs < p.k ? 0 : p.k - count * kPanelColumns * p.b_n);
    const void* const b = static_cast<const gemm_scalar_t<C.b>*>(p.b) + batch * p.b_batch;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t column = (panel + i) * kPanelColumns, left = p.n - column;
      if constexpr (C.b == GemmFormat::kE4M3 || C.b == GemmFormat::kBF16) {
        if (p.b_block_k) {
          const BlockedLines<gemm_scalar_t<C.b>> lines{static_cast<const gemm_scalar_t<C.b>*>(b), p.b_block_k,
                                                       p.b_block_stride, column, p.b_interleaved != 0};
          pack_lines<kPanelColumns>(lines, left < kPanelColumns ? left : kPanelColumns, 2 * k, 2 * (k + pairs), p.k,
                                    buffer + i * in.panel);
          continue;
        }
      }
      if constexpr (C.b == GemmFormat::kInt4) {
        if (p.b_block_k) {
          const Int4Lines lines{static_cast<const uint8_t*>(b) + column * p.b_block_k, p.b_block_k, p.b_block_k,
                                p.b_block_stride};
          pack_lines<kPanelColumns>(lines, left < kPanelColumns ? left : kPanelColumns, 2 * k, 2 * (k + pairs), p.k,
                                    buffer + i * in.panel);
          continue;
        }
      }
      with_lines<C.b>(b, p.b_n, p.b_k, ahead, p.b_sf, p.split_k, true, batch, column, [&](const auto& lines) {
        pack_lines<kPanelColumns>(lines, left < kPanelColumns ? left : kPanelColumns, 2 * k, 2 * (k + pairs), p.k,
                                  buffer + i * in.panel);
      });
    }
  }
}

FI_VEC_INLINE float grid_at(const BlockScales& g, int64_t batch, int64_t line, int64_t block) {
  return g.p[batch * g.batch + (g.first + line) / g.lines * g.line_stride + block * g.k_stride];
}

/// Scales and minima of the columns of `Panels` panels in one K block of the scale grid.
template <GemmConfig C, int Panels>
FI_VEC_INLINE void column_factors(const GemmParams& p, int64_t batch, int64_t panel, int64_t block, float* scales,
                                  float* minima) {
  if constexpr (is_gguf(C.b) && C.packed_b) {
    for (int64_t i = 0; i < Panels; ++i) {
      const GgufPanel<C.b> from(static_cast<const uint8_t*>(p.b) + (panel + i) * p.b_panel, p.k);
      for (int64_t c = 0; c < kPanelColumns; c += Vec::kLanes) {
        store(scales + i * kPanelColumns + c, load(from.scale(block) + c));
        if (GgufLines<C.b>::kFormat.minimum) store(minima + i * kPanelColumns + c, load(from.minimum(block) + c));
      }
    }
  } else {
    if constexpr (!is_gguf(C.b)) {
      if (p.b_grid.lines % kPanelColumns == 0 &&
          p.b_grid.first % kPanelColumns == 0) {  // one scale for a panel; columns past n are not stored
        for (int64_t i = 0; i < Panels; ++i) {
          const Vec scale = splat(grid_at(p.b_grid, batch, (panel + i) * kPanelColumns, block));
          for (int64_t c = 0; c < kPanelColumns; c += Vec::kLanes) store(scales + i * kPanelColumns + c, scale);
        }
        return;
      }
    }
    for (int64_t c = 0; c < Panels * kPanelColumns; ++c) {
      const int64_t n = panel * kPanelColumns + c;
      if constexpr (is_gguf(C.b)) {
        const GgufScale s =
            n < p.n ? GgufLines<C.b>{static_cast<const uint8_t*>(p.b), p.b_n}.scale(n, block) : GgufScale{0.0f, 0.0f};
        scales[c] = s.scale, minima[c] = s.minimum;
      } else {
        scales[c] = n < p.n ? grid_at(p.b_grid, batch, n, block) : 0.0f;
      }
    }
  }
}
template <GemmConfig C>
constexpr bool has_minima() {
  if constexpr (is_gguf(C.b)) return GgufLines<C.b>::kFormat.minimum;
  return false;
}

/// Rows [begin, end) times the k pairs of `in`, which start at pair k: one scaled sum for each block of the scale grid.
template <GemmConfig C, int Panels>
void multiply_grid(const GemmParams& p, const RowsOfA& a, int64_t batch, int64_t begin, int64_t end, int64_t panel,
                   int64_t k, const TileInput& in, float* sums) {
  constexpr Scales kScales = !is_gguf(C.b)     ? Scales::kBoth
                             : has_minima<C>() ? Scales::kColumnsAndMinima
                                               : Scales::kColumns;
  for (int64_t at = 0; at < in.pairs; at += p.grid_pairs) {
    const int64_t block = (k + at) / p.grid_pairs, left = in.pairs - at;
    alignas(64) float columns[Panels * kPanelColumns], minima[Panels * kPanelColumns];
    column_factors<C, Panels>(p, batch, panel, block, columns, minima);
    TileInput part = in;
    part.b += at * 2 * kPanelColumns;
    part.pairs = left < p.grid_pairs ? left : p.grid_pairs;
    multiply_scaled_rows<Panels, kScales>(
        a, begin, end, {.k = k + at, .first = block == 0, .last = false}, part,
        [&](int64_t r) {
          return RowFactors{is_gguf(C.b) ? 1.0f : grid_at(p.a_grid, batch, r, block),
                            has_minima<C>() ? p.a_sums[r * (p.k / 32) + block] : 0.0f};
        },
        columns, minima, sums);
  }
}

/// Rows of A that AMX keeps in L2, a multiple of 32.
inline int64_t rows_in_cache(int64_t k) {
  const int64_t rows = kAmxBytesOfA / (k > 0 ? 2 * k : 1) / 32 * 32;
  return rows < 32 ? 32 : rows;
}

/// Output of one batch from `column` on.
inline Output output_of(const GemmParams& p, int64_t batch, int64_t column) {
  const int64_t item = p.out_dtype == DType::kF32 ? 4 : 2;
  return {.out = static_cast<char*>(p.out) + (batch * p.out_batch + column) * item,
          .row = p.out_row,
          .bias = p.bias ? static_cast<const bf16_t*>(p.bias) + column : nullptr,
          .scale_a = p.scale_a,
          .scale_b = p.scale_b,
          .columns = p.n - column,
          .dtype = p.out_dtype};
}

template <GemmConfig C, int Panels>
void multiply_panels(const GemmParams& p, const RowsOfA& a, int64_t batch, int64_t begin, int64_t end, int64_t panel) {
  constexpr int64_t kBytesOfPair = Panels * kPanelColumns * 4,
                    kPackBytes = kInPlace<C> ? 0 : kBlockPairs * kBytesOfPair;
  alignas(64) unsigned char room[kPackBytes + kScratchRows * kBytesOfPair];  // packed pairs, then sums
  static_assert(kInPlace<C> || (kWholePairs + kBlockRows) * kBytesOfPair <= static_cast<int64_t>(sizeof room));
  const int64_t column = panel * kPanelColumns, all = ceil_div(p.k, 2);
  const bool few = C.b == GemmFormat::kBF16 && !C.grid && end - begin <= kBlockRows,
             whole = !C.grid && all <= kWholePairs;
  const int64_t block = kInPlace<C> ? (uses_amx<C>() ? round_up(p.pairs_per_block, kAmxPairs) : p.pairs_per_block)
                        : few       ? kFewRowsPairs
                        : whole     ? (all > 0 ? all : 1)
                                    : kBlockPairs;
  bf16_t* const buffer = reinterpret_cast<bf16_t*>(room);
  float* const sums = reinterpret_cast<float*>(room + (kInPlace<C> ? 0 : block * kBytesOfPair));
  const int64_t rows_at_once = block >= all && !C.grid ? end - begin : kScratchRows;
  const Output out = output_of(p, batch, column);
  for (int64_t r = begin; r < end; r += rows_at_once) {
    const int64_t r_end = end - r < rows_at_once ? end : r + rows_at_once;
    if (C.grid && all == 0) memset(sums, 0, kScratchRows * kBytesOfPair);
    for (int64_t k = 0; k == 0 || k < all; k += block) {
      const int64_t pairs = all - k < block ? all - k : block;
      TileInput in{};
      find_b<C>(p, batch, panel, Panels, k, pairs, buffer, in);
      [[maybe_unused]] const KBlock of_k{.k = k, .first = k == 0, .last = k + block >= all};
#if defined(FI_CPU_AMX)
      if constexpr (uses_amx<C>()) {
        multiply_rows_amx<Panels>(a, r, r_end, of_k, in, sums, out);
        continue;
      }
#endif
      if constexpr (C.grid)
        multiply_grid<C, Panels>(p, a, batch, r, r_end, panel, k, in, sums);
      else
        multiply_rows<Panels>(a, r, r_end, of_k, in, sums, out);
    }
    if constexpr (C.grid) finish_rows(out, sums, Panels * kPanelColumns, r, r_end - r);
  }
}

/// Rows times packed GGUF panels, 8 rows at a time: converting the quants again for each 8 rows costs less than a
/// buffer of bf16 (128 rows, k 576, one core: 194 against 165 GFLOP/s).
template <GemmConfig C>
void multiply_gguf_panels(const GemmParams& p, const RowsOfA& a, int64_t begin, int64_t end, int64_t panel,
                          int64_t last) {
  alignas(64) float sums[kBlockRows * kPanelColumns];
  const int64_t blocks = p.k / 32;
  for (; panel < last; ++panel) {
    const GgufPanel<C.b> from(static_cast<const uint8_t*>(p.b) + panel * p.b_panel, p.k);
    const Output out = output_of(p, 0, panel * kPanelColumns);
    for (int64_t r = begin; r < end; r += kBlockRows) {
      const int64_t rows = end - r < kBlockRows ? end - r : kBlockRows;
      const bool packed = r + kBlockRows <= a.packed_rows;
      const TileInput in{.a = packed ? a.blocks + r / kBlockRows * a.block : a.rows + r * a.row,
                         .row = packed ? 2 : a.row,
                         .pair = packed ? 2 * kBlockRows : 2,
                         .b = nullptr,
                         .panel = 0,
                         .pairs = 0};
      multiply_gguf_rows<C.b>(rows, from, blocks, in, p.a_sums ? p.a_sums + r * blocks : nullptr, blocks, sums);
      finish_rows(out, sums, kPanelColumns, r, rows);
    }
  }
}

#if FI_GEMV
template <GemmConfig C>
constexpr bool has_gemv() {
  if (has_byte_panels<C>()) return C.b == GemmFormat::kE4M3 || !C.grid;
  return !C.packed_b && (C.b == GemmFormat::kBF16 || C.b == GemmFormat::kE4M3 || C.b == GemmFormat::kE5M2 ||
                         (C.b == GemmFormat::kFp4 && !C.grid));
}
/// Whether kernels/cpu/gemv.h supports the product.
template <GemmConfig C>
bool gemv_supports(const GemmParams& p, const bf16_t* a) {
  if ((!C.packed_b && (p.b_k != 1 || p.b_block_k != 0)) || p.k == 0) return false;
  if (C.grid) return !p.b_sf.bytes && 2 * p.grid_pairs % (16 * PackedPairs<C.b>::kElements) == 0;
  if (!p.b_sf.bytes) return C.b != GemmFormat::kFp4;
  return (C.b == GemmFormat::kE4M3 || C.b == GemmFormat::kFp4) && p.b_sf.e8m0 && p.b_sf.layout != SfLayout::k8x4 &&
         p.b_sf.first % kPanelColumns == 0 && row_in_range(a, p.k);
}
/// Unpacked row `row` times panels [panel, panel + P).
template <GemmConfig C, int P>
void gemv_panels(const GemmParams& p, const bf16_t* a, int64_t row, int64_t batch, int64_t panel, bool more) {
  alignas(64) bf16_t buffer[P * kBlockPairs * 2 * kPanelColumns];
  alignas(64) float sums[P * kPanelColumns], totals[P * kPanelColumns] = {};
  using S = gemm_scalar_t<C.b>;
  const int64_t column = panel * kPanelColumns;
  const auto slow = [&](int64_t k, int64_t elements, float* to) {
    TileInput in{.a = a + k, .row = 0, .pair = 2, .b = nullptr, .panel = 0, .pairs = 0};
    find_b<C>(p, batch, panel, P, k / 2, ceil_div(elements, 2), buffer, in);
#if defined(FI_CPU_AMX)
    if constexpr (uses_amx<C>()) {
      const RowsOfA rest{.blocks = nullptr, .block = 0, .packed_rows = 0, .rows = a + k, .row = 0};
      for (int i = 0; i < P; ++i, in.b += in.panel)
        multiply_amx<1, false>(rest, 0, 1, 0, in, to + i * kPanelColumns, P * kPanelColumns, false);
      return;
    }
#endif
    run_tile<1, P, false>(in, to, P * kPanelColumns, false);
  };
  const auto close = [&](int64_t begin, int64_t, const float* from) {
    if constexpr (C.grid) {
      const int64_t block = begin / 2 / p.grid_pairs;
      alignas(64) float factors[P * kPanelColumns];
      column_factors<C, P>(p, batch, panel, block, factors, nullptr);
      const Vec of_row = splat(grid_at(p.a_grid, batch, row, block));
      for (int64_t c = 0; c < P * kPanelColumns; c += Vec::kLanes)
        store(totals + c, fma(load(from + c), of_row * load(factors + c), load(totals + c)));
    }
  };
  const bool linear = p.b_sf.layout == SfLayout::kLinear, scaled = p.b_sf.bytes != nullptr;
  const uint8_t* sf[P] = {};
  for (int64_t i = 0; scaled && i < P; ++i)
    sf[i] = p.b_sf.bytes + batch * p.b_sf.batch +
            sf_row_offset(p.b_sf.layout, p.b_sf.first + column + i * kPanelColumns, p.b_sf.columns);
  const GemvOperands x{.a = a,
                       .b = reinterpret_cast<const char*>(static_cast<const S*>(p.b) + batch * p.b_batch +
                                                          (C.packed_b ? panel * p.b_panel : column * p.b_n)),
                       .stride = (C.packed_b ? p.b_panel : p.b_n) * static_cast<int64_t>(sizeof(S)),
                       .k = p.k,
                       .span = C.grid ? 2 * p.grid_pairs : p.k,
                       .sf = sf,
                       .sf_stride = linear ? p.b_sf.columns : 16,
                       .sf_step = linear ? 4 : 512,
                       .more = more};
  if constexpr (C.b == GemmFormat::kFp4) {
    gemv<C.b, C.packed_b, true, P>(x, sums, slow, close);
  } else {
    if constexpr (C.b == GemmFormat::kE4M3 && !C.grid)
      if (scaled) gemv<C.b, C.packed_b, true, P>(x, sums, slow, close);
    if (!scaled) gemv<C.b, C.packed_b, false, P>(x, sums, slow, close);
  }
  finish_rows(output_of(p, batch, column), C.grid ? totals : sums, P * kPanelColumns, row, 1);
}
#endif

}  // namespace detail

template <GemmConfig C>
void gemm(const GemmParams& p, int64_t task) {
  const int64_t panels = ceil_div(p.n, kPanelColumns);
  const int64_t panel_tasks = ceil_div(panels, p.panels_per_task);
  const int64_t row_tasks = ceil_div(p.m, p.rows_per_task);
  const int64_t batch = task / (panel_tasks * row_tasks), begin = task / panel_tasks % row_tasks * p.rows_per_task;
  const int64_t end = p.m - begin < p.rows_per_task ? p.m : begin + p.rows_per_task;
  int64_t panel = task % panel_tasks * p.panels_per_task;
#if defined(FI_CPU_AMX)
  const TileScope tiles;
#endif
  const int64_t last = panels - panel < p.panels_per_task ? panels : panel + p.panels_per_task;
  const RowsOfA a{.blocks = static_cast<const bf16_t*>(p.a_blocks) + batch * p.a_batch_blocks,
                  .block = p.a_block,
                  .packed_rows = p.packed_rows,
                  .rows = static_cast<const bf16_t*>(p.a) + batch * p.a_batch,
                  .row = p.a_row};
  if constexpr (is_gguf(C.b) &&
                C.packed_b)  // Q8_0 costs more to convert: many rows use a buffer of bf16 (169 against 149 GFLOP/s)
    if (C.b != GemmFormat::kQ8_0 || end - begin <= kBlockRows)
      return detail::multiply_gguf_panels<C>(p, a, begin, end, panel, last);
#if FI_GEMV
  if constexpr (detail::has_gemv<C>()) {
    const bf16_t* const row = a.rows + begin * a.row;
    if (end - begin == 1 && begin >= a.packed_rows && detail::gemv_supports<C>(p, row)) {
      const int64_t whole = last < p.n / kPanelColumns ? last : p.n / kPanelColumns;
      for (; panel + kTilePanels <= whole; panel += kTilePanels)
        detail::gemv_panels<C, kTilePanels>(p, row, begin, batch, panel, panel + 2 * kTilePanels <= whole);
      for (; panel < whole; ++panel) detail::gemv_panels<C, 1>(p, row, begin, batch, panel, panel + 1 < whole);
    }
  }
#endif
  constexpr int kAtOnce = detail::kPanelsAtOnce<C>;
  const int64_t rows_at_once = detail::uses_amx<C>() ? detail::rows_in_cache(p.k) : end - begin;
  for (int64_t r = begin; r < end; r += rows_at_once) {
    const int64_t r_end = end - r < rows_at_once ? end : r + rows_at_once;
    int64_t at = panel;
    for (; at + kAtOnce <= last; at += kAtOnce) detail::multiply_panels<C, kAtOnce>(p, a, batch, r, r_end, at);
    for (; at < last; ++at) detail::multiply_panels<C, 1>(p, a, batch, r, r_end, at);
  }
}

/// A: task i of a batch is rows [8 i, 8 i + 8), blocks first, then the remaining rows unpacked, with 2 * ceil(k / 2)
/// elements each; or all unpacked (`plain_row`). B: task i is panel i, starting with its header line.
template <GemmPackConfig C>
void gemm_pack(const GemmPackParams& p, int64_t task) {
  constexpr int kWidth = C.rows ? kBlockRows : kPanelColumns;
  const int64_t batch = task / p.tasks_per_batch, first = task % p.tasks_per_batch * kWidth, pairs = ceil_div(p.k, 2);
  const int64_t lines = p.lines - first < kWidth ? p.lines - first : kWidth;
  const void* const from = static_cast<const gemm_scalar_t<C.from>*>(p.from) + batch * p.batch_stride;
  const auto pack = [&]<int Width>(int64_t line, int64_t count, bf16_t* to) {
    detail::with_lines<C.from>(from, p.line, p.step, 0, p.sf, p.split_k, !C.rows, batch, line,
                               [&](const auto& l) { pack_lines<Width>(l, count, 0, 2 * pairs, p.k, to); });
  };
  bf16_t* to = static_cast<bf16_t*>(p.to) + batch * p.to_batch;
  if constexpr (C.rows) {
    const int64_t row = p.plain_row ? p.plain_row : 2 * pairs;
    to += first * row;
    if (lines == kWidth && !p.plain_row) return pack.template operator()<kWidth>(first, lines, to);
    for (int64_t i = 0; i < lines; ++i) pack.template operator()<1>(first + i, 1, to + i * row);
  } else {
    to += task % p.tasks_per_batch * (pairs + 1) * kPackedWidth;
    write_packed_header(to, {.columns = lines, .k = p.k, .format = GemmFormat::kBF16});
    pack.template operator()<kWidth>(first, lines, to + kPackedWidth);
  }
}

/// Sums over blocks of 32 along k, each by the same tree whatever the strides.
template <GemmPackConfig C>
void gemm_sums(const GemmSumsParams& p, int64_t row) {
  static_assert(C.from == GemmFormat::kBF16);
  for (int64_t block = 0; block < p.k / 32; ++block) {
    bf16_t x[32];
    detail::gather_line(p.from + row * p.line, p.step, 32 * block, p.k, x);
    Vec sum = load(x);
    for (int64_t i = Vec::kLanes; i < 32; i += Vec::kLanes) sum += load(x + i);
    p.to[row * (p.k / 32) + block] = reduce_add(sum);
  }
}

/// y[i] = scale * q + minimum of the blocks of row `task`, rounded once.
template <GgufConfig C>
void gguf_dequantize(const GgufParams& p, int64_t task) {
  using T = scalar_of_t<C.to>;
  const GgufLines<C.from> lines{p.blocks, p.row};
  constexpr int64_t kGrid = GgufLines<C.from>::kFormat.grid;
  T* y = static_cast<T*>(p.to) + task * p.to_row;
  for (int64_t k = 0; k < p.k; k += 32) {
    bf16_t q[32];
    lines.gather(task, k, p.k, q);
    for (int64_t g = 0; g < 32; g += kGrid) {
      const GgufScale s = lines.scale(task, (k + g) / kGrid);
      for (int64_t i = g; i < g + kGrid; i += Vec::kLanes)
        store(y + k + i, fma(load(q + i), splat(s.scale), splat(s.minimum)));
    }
  }
}

}  // namespace flashinfer::cpu
