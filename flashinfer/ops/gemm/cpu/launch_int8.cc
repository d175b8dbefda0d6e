// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/cpu/launch_int8.h"

#include <algorithm>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/ordered_ranges.h"
#include "flashinfer/ops/gemm/cpu/launch_parts.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"
#include "flashinfer/ops/gemm/kernels/int8_params.h"

namespace flashinfer::gemm {
namespace {

inline constexpr jit::Kernel kGemmBytes{"flashinfer/ops/gemm/kernels/cpu/int8_gemm.h", "flashinfer::cpu::gemm_bytes",
                                        "flashinfer::ByteGemmParams"};
inline constexpr jit::Kernel kGemmFp4{"flashinfer/ops/gemm/kernels/cpu/fp4_gemm.h", "flashinfer::cpu::gemm_fp4",
                                      "flashinfer::ByteGemmParams"};
inline constexpr jit::Kernel kPackFp4{"flashinfer/ops/gemm/kernels/cpu/fp4_gemm.h", "flashinfer::cpu::pack_fp4_rows",
                                      "flashinfer::Fp4RowsParams"};
inline constexpr jit::Kernel kQuantize{"flashinfer/ops/gemm/kernels/cpu/int8_gemm.h", "flashinfer::cpu::quantize_rows",
                                       "flashinfer::QuantizeRowsParams"};

constexpr int64_t kFewRows = 8;  // one group of rows

/// Groups of rows to quantise in one task: a thread is woken for 16384 elements at least (some 4 us).
int64_t groups_at_once(int64_t k, int64_t width) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, k * width));
}

/// Memory for A: integers, then (at a line of 64 bytes) the factors. k is a multiple of 32.
struct QuantizedRows {
  int64_t width, groups;  // of up to 8 rows
  Tensor memory;
  int8_t* quads;
  ByteRow* rows;

  QuantizedRows(int64_t m, int64_t k, int64_t blocks_per_32)
      : width(std::min<int64_t>(m, 8)), groups(ceil_div(m, width)) {
    const int64_t integers = round_up(groups * width * k, 64);
    memory = Tensor::empty(
        {integers + groups * width * (k / 32) * blocks_per_32 * static_cast<int64_t>(sizeof(ByteRow))}, DType::kU8);
    quads = memory.data_as<int8_t>();
    rows = reinterpret_cast<ByteRow*>(quads + integers);
  }
  template <class F>
  void each(int64_t k, F fn) const {  // fn(group) for all
    const int64_t at_once = groups_at_once(k, width);
    parallel_for(ceil_div(groups, at_once), [&](int64_t i) {
      for (int64_t t = i * at_once; t < std::min(groups, (i + 1) * at_once); ++t) fn(t);
    });
  }
};
QuantizedRows quantize(const Product& x, jit::CpuFn fn) {
  const auto per_32 = static_cast<int32_t>(32 / x.grid_k);
  QuantizedRows out(x.m, x.k, per_32);
  const QuantizeRowsParams p{.from = static_cast<const bf16_t*>(x.a.data),
                             .line = x.a.line,
                             .step = x.a.step,
                             .m = x.m,
                             .k = x.k,
                             .width = out.width,
                             .to = out.quads,
                             .rows = out.rows,
                             .zero = byte_zero(x.b.format),
                             .groups_per_32 = per_32};
  out.each(x.k, [&](int64_t t) { fn(&p, t); });
  return out;
}

/// Few rows are bound by reading B: panels a task for ranges of tasks in order, about 1.5 us of 15 GB/s or 300
/// GFLOP/s a core, at most 32 tasks a thread.
int64_t panels_of_piece(int64_t groups, int64_t m, int64_t n, int64_t k, double bytes_of_element) {
  const double panel_ns =
      std::max(16.0 * bytes_of_element / 15.0, 32.0 * static_cast<double>(m) / 300.0) * static_cast<double>(k);
  const int64_t panels = ceil_div(n, 16),
                least = ceil_div(groups * panels, 32LL * std::max(Context::current().executor.threads, 1));
  return std::clamp<int64_t>(std::max(least, static_cast<int64_t>(1500.0 / std::max(panel_ns, 1.0))), 1,
                             std::max<int64_t>(panels, 1));
}

/// What all these products share; `groups` of them run at a time.
ByteGemmParams params_of(const Product& x, const QuantizedRows& a, int64_t m, int64_t k, double bytes_of_element,
                         int64_t groups = 1) {
  const Blocks blocks = choose_blocks(groups, m, x.n, k, true, Context::current().executor.threads, bytes_of_element);
  return {
      .a = a.quads,
      .a_rows = a.rows,
      .width = a.width,
      .b = static_cast<const uint8_t*>(x.b.data),
      .b_line = x.b.line,
      .out = x.out,
      .out_row = x.out_row,
      .m = m,
      .n = x.n,
      .k = k,
      .rows_per_task = blocks.rows_per_task,
      .panels_per_task = m <= kFewRows ? panels_of_piece(groups, m, x.n, k, bytes_of_element) : blocks.panels_per_task,
      .out_dtype = x.out_dtype};
}
int64_t tasks_of(const ByteGemmParams& p) {
  return ceil_div(ceil_div(p.n, 16), p.panels_per_task) * ceil_div(p.m, p.rows_per_task);
}

Fp4GemmConfig fp4_config_of(const Product& p, bool packed) {
  return {.groups = static_cast<unsigned char>(32 / p.b.sf.block), .packed_b = packed};
}

}  // namespace

Kernels find_int8_kernels(const Product& p, ops::Lookup& lookup) {
  const ByteGemmConfig product{.b = p.b.format, .packed_b = p.packed};
  const QuantizeRowsConfig rows{.nibbles = nibble_order(p.b.format)};
  return {.product = lookup.kernel<kGemmBytes>(product), .rows = lookup.kernel<kQuantize>(rows)};
}

void run_int8(const Product& x, const Kernels& kernels) {
  const QuantizedRows a = quantize(x, kernels.rows);
  const GgufFormat& f = *gguf_format(x.b.format);
  const ByteGemmParams p = params_of(x, a, x.m, x.k, static_cast<double>(f.bytes) / static_cast<double>(f.elements));
  const auto one = [&](int64_t t) { kernels.product(&p, t); };
  if (x.m <= kFewRows)
    parallel_for_ordered(tasks_of(p), one);
  else
    parallel_for(tasks_of(p), one);
}

bool is_fp4_product(const Product& p) {
  return p.a.format == GemmFormat::kFp4 && p.b.format == GemmFormat::kFp4 && p.k > 0 && p.a.sf.block > 0 &&
         p.a.sf.block == p.b.sf.block && p.a.step == 1 && p.b.step == 1 && p.batch == 1 && p.grid_k == 0 &&
         p.bias == nullptr;
}
Kernels find_fp4_kernels(const Product& p, ops::Lookup& lookup) {
  return {.product = lookup.kernel<kGemmFp4>(fp4_config_of(p, p.packed)),
          .rows = lookup.kernel<kPackFp4>(fp4_config_of(p, false))};
}
void run_fp4(const Product& x, const Kernels& kernels, std::span<const Group> groups) {
  const int64_t k = round_up(x.k, 32);
  int64_t busy = 0, width = 1, pack_tasks = 0, tasks = 0;
  for (const Group& g : groups) busy += g.rows > 0, width = std::max(width, std::min<int64_t>(g.rows, 8));
  std::vector<QuantizedRows> rows;
  std::vector<Part<Fp4RowsParams>> packs;
  std::vector<Part<ByteGemmParams>> parts;
  rows.reserve(static_cast<size_t>(busy)), packs.reserve(static_cast<size_t>(busy)),
      parts.reserve(static_cast<size_t>(busy));
  for (const Group& g : groups) {
    if (g.rows == 0) continue;
    const QuantizedRows& a = rows.emplace_back(g.rows, k, 32 / x.b.sf.block);
    packs.push_back({{.from = static_cast<const uint8_t*>(x.a.data) + g.row * x.a.line,
                      .line = x.a.line,
                      .m = g.rows,
                      .k = x.k,
                      .width = a.width,
                      .to = a.quads,
                      .rows = a.rows,
                      .sf = x.a.sf},
                     pack_tasks});
    packs.back().params.sf.first += g.sf_first;
    pack_tasks += a.groups;
    ByteGemmParams p = params_of(x, a, g.rows, k, 0.5, busy);
    p.b += g.weight * x.b.batch + (x.packed ? kPanelLine : 0);
    p.out = static_cast<char*>(p.out) + g.row * x.out_row * size_of(x.out_dtype);
    p.b_k = x.k;
    p.b_sf = x.b.sf;
    p.b_sf.bytes += g.weight * x.b.sf.batch;
    p.scale = x.scale_a * (x.scale_b * g.alpha);
    parts.push_back({p, tasks});
    tasks += tasks_of(p);
  }
  run_parts<Fp4RowsParams>(kernels.rows, packs, pack_tasks, groups_at_once(k, width));
  run_parts<ByteGemmParams>(kernels.product, parts, tasks, 1, x.m <= busy * kFewRows);
}

}  // namespace flashinfer::gemm
