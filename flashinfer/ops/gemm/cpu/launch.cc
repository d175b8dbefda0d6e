// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/cpu/launch.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/gemm/cpu/launch_int8.h"
#include "flashinfer/ops/gemm/cpu/launch_parts.h"
#include "flashinfer/ops/gemm/kernels/gguf_layout.h"

namespace flashinfer::gemm {
namespace {

inline constexpr jit::Kernel kGemm{"flashinfer/ops/gemm/kernels/cpu/gemm.h", "flashinfer::cpu::gemm",
                                   "flashinfer::GemmParams"};
inline constexpr jit::Kernel kSums{"flashinfer/ops/gemm/kernels/cpu/gemm.h", "flashinfer::cpu::gemm_sums",
                                   "flashinfer::GemmSumsParams"};
inline constexpr jit::Kernel kPack{"flashinfer/ops/gemm/kernels/cpu/gemm.h", "flashinfer::cpu::gemm_pack",
                                   "flashinfer::GemmPackParams"};

constexpr int64_t kBlockRows = 8;  // as kernels/cpu/gemm_pack.h

/// Packing is memory traffic: below 32 KB a task, waking a thread costs more than the copy.
void run_pack(jit::CpuFn fn, std::span<const Part<GemmPackParams>> parts, int64_t tasks, int64_t task_elements) {
  run_parts(fn, parts, tasks, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, task_elements)));
}

int64_t item_of(GemmFormat f) { return f == GemmFormat::kBF16 || f == GemmFormat::kF16 ? 2 : 1; }
const void* advance(const void* p, int64_t bytes) { return static_cast<const char*>(p) + bytes; }

/// A is read in place when its rows are bf16 with k contiguous and even.
bool direct_a(const Product& x) { return x.a.format == GemmFormat::kBF16 && x.a.step == 1 && x.k % 2 == 0; }

GemmConfig config_of(const Product& p) { return {.b = p.b.format, .packed_b = p.packed, .grid = p.grid_k > 0}; }
GemmPackConfig pack_config_of(const Product& p) { return {.from = p.a.format, .rows = 1}; }

/// Whether a kernel on AMX takes the product (uses_amx() of kernels/cpu/gemm.h).
bool amx_takes(const Product& x) {
  return x.grid_k == 0 && (x.b.format == GemmFormat::kBF16 || x.b.format == GemmFormat::kF16);
}
/// Rows that lie a multiple of 4 KB apart: 16 of them share 12 lines of the L1 cache (512 x 4096 x 4096 on AMX, one
/// core: 476 GFLOP/s; copied, 718).
bool rows_collide(int64_t elements) { return elements * 2 % 4096 == 0; }

/// Elements between the copied rows of A.
int64_t copied_row(const Product& x, bool plain_rows) {
  const int64_t even = round_up(x.k, 2);
  return plain_rows && rows_collide(even) ? even + 32 : even;
}

/// The parameters of one group, without A's packed form.
GemmParams params_of(const Product& x, const Group& g, const Blocks& blocks) {
  GemmParams p{.packed_rows = blocks.packed_rows,
               .a = advance(x.a.data, g.row * x.a.line * item_of(x.a.format)),
               .a_row = x.a.line,
               .a_batch = x.a.batch,
               .b = advance(x.b.data, g.weight * x.b.batch * item_of(x.b.format)),
               .bias = x.bias,
               .out = static_cast<char*>(x.out) + g.row * x.out_row * size_of(x.out_dtype),
               .out_row = x.out_row,
               .out_batch = x.out_batch,
               .batch = x.batch,
               .m = g.rows,
               .n = x.n,
               .k = x.k,
               .rows_per_task = blocks.rows_per_task,
               .panels_per_task = blocks.panels_per_task,
               .pairs_per_block = ceil_div(x.k, 2) + 1,
               .scale_a = x.scale_a,
               .scale_b = x.scale_b * g.alpha,
               .out_dtype = x.out_dtype,
               .b_block_k = x.b.block_k,
               .b_block_stride = x.b.block_stride,
               .split_k = x.split_k,
               .b_interleaved = x.b.interleaved,
               .b_sf = x.b.sf,
               .a_grid = x.a_grid,
               .b_grid = x.b_grid,
               .grid_pairs = x.grid_k / 2};
  if (p.b_sf.bytes) p.b_sf.bytes += g.weight * p.b_sf.batch;
  if (p.b_grid.p) p.b_grid.p += g.weight * p.b_grid.batch;
  p.a_grid.first += g.row;
  if (x.packed && is_gguf(x.b.format)) {
    p.b_panel = x.b.line;
  } else if (x.packed) {
    p.b = advance(p.b, kPanelLine);  // after the header line of the first panel
    p.b_panel = x.b.line;
  } else {
    p.b_k = x.b.step;
    p.b_n = x.b.line;
    p.b_batch = x.b.batch;
  }
  return p;
}

bool has_minima(const Product& x) { return is_gguf(x.b.format) && gguf_format(x.b.format)->minimum; }
double bytes_of_element(const Product& x) {
  if (!is_gguf(x.b.format))
    return !x.packed ? 2 : x.b.format == GemmFormat::kFp4 ? 0.5 : static_cast<double>(item_of(x.b.format));
  const GgufFormat& f = *gguf_format(x.b.format);
  return static_cast<double>(f.bytes) / static_cast<double>(f.elements);
}
/// The factors of minima; GGUF weights come in products of one part only.
Tensor sums_of_rows(const Product& x, jit::CpuFn fn, GemmParams& p) {
  if (!has_minima(x)) return {};
  const Tensor out = Tensor::empty({x.m, x.k / 32}, DType::kF32);
  const GemmSumsParams s{.from = static_cast<const bf16_t*>(x.a.data),
                         .line = x.a.line,
                         .step = x.a.step,
                         .k = x.k,
                         .to = out.data_as<float>()};
  const int64_t at_once = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, x.k));
  parallel_for(ceil_div(x.m, at_once), [&](int64_t i) {
    for (int64_t t = i * at_once; t < std::min(x.m, (i + 1) * at_once); ++t) fn(&s, t);
  });
  p.a_sums = out.data_as<float>();
  return out;
}

int64_t tasks_of(const GemmParams& p) {
  return ceil_div(ceil_div(p.n, 16), p.panels_per_task) * ceil_div(p.m, p.rows_per_task) * p.batch;
}

/// How one group's rows of A get into `to`: per batch the blocks, then the rest as plain rows of even length. Points p
/// at them.
GemmPackParams pack_params(const Product& x, const Group& g, const Blocks& blocks, int64_t row, bf16_t* to,
                           GemmParams& p) {
  const int64_t rows = blocks.copy_rest ? g.rows : blocks.packed_rows;
  GemmPackParams pack{.from = p.a,
                      .line = x.a.line,
                      .step = x.a.step,
                      .batch_stride = x.a.batch,
                      .to = to,
                      .to_batch = rows * row,
                      .lines = rows,
                      .k = x.k,
                      .tasks_per_batch = ceil_div(rows, kBlockRows),
                      .sf = x.a.sf,
                      .split_k = x.split_k,
                      .plain_row = blocks.packed_rows == 0 ? row : 0};
  pack.sf.first += g.sf_first;
  p.a_blocks = to;
  p.a_block = kBlockRows * row;
  p.a_batch_blocks = rows * row;
  if (blocks.copy_rest) {
    p.a = to;
    p.a_row = row;
    p.a_batch = rows * row;
  }
  return pack;
}

void run_groups(const Product& x, const Kernels& kernels, std::span<const Group> groups) {
  const bool direct = direct_a(x), plain_rows = kernels.plain_rows;
  const int64_t row = copied_row(x, plain_rows);
  const int threads = Context::current().executor.threads;
  int64_t busy = 0, rows = 0;
  for (const Group& g : groups) busy += g.rows > 0, rows += g.rows;
  std::vector<Part<GemmParams>> parts;
  std::vector<Part<GemmPackParams>> packs;
  parts.reserve(static_cast<size_t>(busy));
  Tensor scratch;
  bf16_t* to = nullptr;
  int64_t tasks = 0, pack_tasks = 0;
  for (const Group& g : groups) {
    if (g.rows == 0) continue;
    Blocks blocks =
        choose_blocks(x.batch * busy, g.rows, x.n, x.k, direct, threads, bytes_of_element(x), plain_rows ? 900 : 220);
    if (plain_rows) {
      blocks.packed_rows = 0;
      blocks.copy_rest |= g.rows > kBlockRows && rows_collide(x.a.line);
    }
    parts.push_back({params_of(x, g, blocks), tasks});
    GemmParams& p = parts.back().params;
    tasks += tasks_of(p);
    if (!blocks.packed_rows && !blocks.copy_rest) continue;
    if (!to) {
      scratch = Tensor::empty({x.batch * rows * row}, DType::kBF16);
      to = scratch.data_as<bf16_t>();
    }
    packs.push_back({pack_params(x, g, blocks, row, to, p), pack_tasks});
    pack_tasks += x.batch * packs.back().params.tasks_per_batch;
    to += x.batch * g.rows * row;
  }
  const Tensor sums = parts.empty() ? Tensor() : sums_of_rows(x, kernels.sums, parts.front().params);
  if (pack_tasks) run_pack(kernels.rows, packs, pack_tasks, kBlockRows * x.k);
  run_parts<GemmParams>(kernels.product, parts, tasks, 1, x.packed && x.m <= busy * kBlockRows);
}

}  // namespace

GemmFormat format_of(DType t) {
  switch (t) {
    case DType::kBF16: return GemmFormat::kBF16;
    case DType::kF16: return GemmFormat::kF16;
    case DType::kF8E4M3: return GemmFormat::kE4M3;
    case DType::kF8E5M2: return GemmFormat::kE5M2;
    default: return GemmFormat::kFp4;
  }
}
Operand rows_of(const TensorView& a) {
  return {.data = a.data(),
          .format = format_of(a.dtype()),
          .line = a.stride(-2),
          .step = a.stride(-1),
          .batch = a.rank() == 3 ? a.stride(0) : 0};
}
Operand columns_of(const TensorView& b) {
  return {.data = b.data(),
          .format = format_of(b.dtype()),
          .line = b.stride(-1),
          .step = b.stride(-2),
          .batch = b.rank() == 3 ? b.stride(0) : 0};
}
void Product::set_out(const TensorView& t) {
  batch = t.rank() == 3 ? t.size(0) : 1;
  m = t.size(-2);
  n = t.size(-1);
  out = t.data();
  out_row = t.stride(-2);
  out_batch = t.rank() == 3 ? t.stride(0) : 0;
  out_dtype = t.dtype();
}

namespace {
/// The size in [least, most] of tasks of `batch` times `groups` units with which the thread that has most of them has
/// the fewest units; the largest such size. (64 units in tasks of 5 are 13: two threads take 35 and 29 units.)
int64_t even_tasks(int64_t groups, int64_t batch, int64_t most, int64_t least, int threads) {
  int64_t best = most, fewest = std::numeric_limits<int64_t>::max();
  for (int64_t size = most; size >= std::max<int64_t>(least, 1); --size) {
    const int64_t tasks = ceil_div(groups, size) * batch;
    if (const int64_t units = ceil_div(tasks, std::max(threads, 1)) * size; units < fewest) fewest = units, best = size;
  }
  return best;
}
}  // namespace

Blocks choose_blocks(int64_t batch, int64_t m, int64_t n, int64_t k, bool direct, int threads, double bytes_of_element,
                     double gflops) {
  Blocks out{};
  // Up to 8 rows are read in place: packing them costs a pass and saves nothing, as every line is used at once.
  // Where they are copied anyway, full blocks come packed.
  out.packed_rows = m > kBlockRows || !direct ? m / kBlockRows * kBlockRows : 0;
  out.copy_rest = !direct;
  // The unit is three panels, one register tile wide. Its time, from 30 GB/s of weights or `gflops` a core:
  const int64_t panels = ceil_div(n, 16), groups = ceil_div(panels, 3);
  const double bytes = 48.0 * bytes_of_element * static_cast<double>(k),
               flops = 96.0 * static_cast<double>(k) * static_cast<double>(m);
  const double group_ns = std::max(bytes / 30.0, flops / gflops);
  // A task takes at least 4 us (a wake-up is 1.5 us when the pool spins), and every thread gets six, so that a core
  // that is slower or busy takes fewer. Rejected: 16 tasks a thread (1 row, k 576: 3 % slower), 2 (uneven cores: up to
  // 30 %).
  const double least = std::max(1.0, 4000.0 / std::max(group_ns, 1.0));
  const int64_t wanted = 6LL * std::max(threads, 1);
  const int64_t even = std::max<int64_t>(1, groups * batch / wanted);
  int64_t per_task = std::clamp<int64_t>(static_cast<int64_t>(least), 1, std::max<int64_t>(groups, 1));
  // Few tasks are as many for each thread: 12 groups of 7 on two threads would be 7 and 5.
  const int64_t rounds = ceil_div(groups * batch, per_task * std::max(threads, 1));
  if (rounds <= 2)
    per_task =
        std::clamp<int64_t>(ceil_div(groups * batch, rounds * std::max(threads, 1)), 1, std::max<int64_t>(groups, 1));
  per_task = std::max(per_task, std::min(even, std::max<int64_t>(1, groups)));
  per_task = even_tasks(groups, batch, per_task, std::max<int64_t>(static_cast<int64_t>(least), per_task / 2), threads);
  out.panels_per_task = 3 * per_task;
  // One row of panels too few for all threads: rows are cut too, in whole blocks of at least 32.
  const int64_t tasks = batch * std::max<int64_t>(1, ceil_div(panels, out.panels_per_task));
  int64_t cuts = 1;
  if (tasks < wanted && group_ns * static_cast<double>(out.panels_per_task / 3) > 8000.0)
    cuts = std::clamp<int64_t>(ceil_div(wanted, tasks), 1, std::max<int64_t>(1, m / 32));
  out.rows_per_task = std::max<int64_t>(kBlockRows, round_up(ceil_div(m, cuts), kBlockRows));
  return out;
}

Kernels find_kernels(const Product& p, ops::Lookup& lookup) {
  if (p.quantize_a) return find_int8_kernels(p, lookup);
  if (is_fp4_product(p)) return find_fp4_kernels(p, lookup);
  if (p.grid_k % 2 != 0 || (p.grid_k > 0 && 256 % p.grid_k != 0))
    lookup.unsupported(
        str("scales for blocks of ", p.grid_k, " along k, but the kernel takes powers of two from 2 to 256"));
  const jit::Loaded& product = lookup.loaded<kGemm>(config_of(p));
  Kernels out{.product = product.fn, .plain_rows = product.uses_tiles && amx_takes(p)};
  if (has_minima(p)) out.sums = lookup.kernel<kSums>(pack_config_of(p));
  if (!direct_a(p) || (p.m > kBlockRows && (!out.plain_rows || rows_collide(p.a.line))))
    out.rows = lookup.kernel<kPack>(pack_config_of(p));
  return out;
}

void run(const Product& product, const Kernels& kernels) {
  if (product.batch * product.m * product.n == 0) return;
  Product x = product;
  if (x.alpha_a) x.scale_a *= *x.alpha_a;
  if (x.alpha_b) x.scale_b *= *x.alpha_b;
  if (x.quantize_a) return run_int8(x, kernels);
  const std::array<Group, 1> all = {{{.rows = x.m}}};
  const std::span<const Group> groups = x.grouped ? x.groups : std::span<const Group>(all);
  if (is_fp4_product(x)) return run_fp4(x, kernels, groups);
  run_groups(x, kernels, groups);
}

op::Prepared prepare(const Product& p) {
  ops::Lookup lookup;
  const Kernels kernels = find_kernels(p, lookup);
  return lookup.prepared([p, kernels] { run(p, kernels); });
}

op::Prepared prepare_pack_weights(const TensorView& b, const TensorView& out) {
  ops::Lookup lookup;
  const jit::CpuFn fn = lookup.kernel<kPack>(GemmPackConfig{.from = format_of(b.dtype()), .rows = 0});
  const int64_t k = b.size(0), n = b.size(1), panels = packed_panels(n);
  const GemmPackParams p{.from = b.data(),
                         .line = b.stride(1),
                         .step = b.stride(0),
                         .to = out.data(),
                         .lines = n,
                         .k = k,
                         .tasks_per_batch = panels};
  return lookup.prepared([fn, p] {
    const std::array<Part<GemmPackParams>, 1> all = {{{p, 0}}};
    run_pack(fn, all, p.tasks_per_batch, 16 * p.k);
  });
}

}  // namespace flashinfer::gemm
