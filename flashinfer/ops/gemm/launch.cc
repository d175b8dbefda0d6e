// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/gemm/launch.h"

#include <algorithm>

#include "flashinfer/core/context.h"
#include "flashinfer/jit/jit.h"

namespace flashinfer::gemm {
namespace {

inline constexpr jit::Kernel kGemm{"flashinfer/ops/gemm/cpu.h", "flashinfer::cpu::gemm", "flashinfer::GemmParams"};
inline constexpr jit::Kernel kPack{"flashinfer/ops/gemm/cpu.h", "flashinfer::cpu::gemm_pack",
                                   "flashinfer::GemmPackParams"};

constexpr int64_t kBlockRows = 8;  // as kernels/cpu/gemm_pack.h

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Packing is memory traffic: below 32 KB a task, waking a thread costs more than the copy.
void run_pack(const GemmPackConfig& config, const GemmPackParams& p, int64_t tasks) {
  const auto fn = jit::cpu_kernel<kPack>(config).fn;
  const int64_t at_once = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, p.k * (config.rows ? 8 : 16)));
  parallel_for(divide_up(tasks, at_once), [&](int64_t i) {
    for (int64_t t = i * at_once; t < std::min(tasks, (i + 1) * at_once); ++t) fn(&p, t);
  });
}

/// Copies what blocks need into scratch: per batch the blocks, then the rest as plain rows of even length.
Tensor pack_a(const TensorView& a, const Blocks& blocks, GemmParams& p) {
  const int64_t row = 2 * divide_up(p.k, 2), rows = blocks.copy_rest ? p.m : blocks.packed_rows;
  const Tensor scratch = Tensor::empty({p.batch, rows, row}, DType::kBF16);
  const int64_t tasks = divide_up(rows, kBlockRows);
  const GemmPackParams pack{.from = a.data(),
                            .line = a.stride(1),
                            .step = a.stride(2),
                            .batch_stride = a.stride(0),
                            .to = scratch.data(),
                            .to_batch = rows * row,
                            .lines = rows,
                            .k = p.k,
                            .tasks_per_batch = tasks};
  run_pack(pack_config_of(a), pack, p.batch * tasks);
  p.a_blocks = scratch.data();
  p.a_block = kBlockRows * row;
  p.a_batch_blocks = rows * row;
  if (blocks.copy_rest) {
    p.a = scratch.data();
    p.a_row = row;
    p.a_batch = rows * row;
  }
  return scratch;
}

void set_b(const Product& x, GemmParams& p) {
  if (x.packed) {
    p.b = x.b.data_as<bf16_t>() + kPackedWidth;  // after the header line of the first panel
    p.b_panel = x.b.stride(0);
    return;
  }
  p.b = x.b.data();
  p.b_k = x.b.stride(1);
  p.b_n = x.b.stride(2);
  p.b_batch = x.b.stride(0);
}

}  // namespace

bool direct_a(const TensorView& a) {
  return a.dtype() == DType::kBF16 && a.last_dim_contiguous() && a.size(-1) % 2 == 0;
}

Blocks choose_blocks(int64_t batch, int64_t m, int64_t n, int64_t k, bool direct, int threads) {
  Blocks out{};
  // Up to 8 rows are read where they lie: packing them costs a pass and saves nothing, as every line is used at once.
  out.packed_rows = m > kBlockRows ? m / kBlockRows * kBlockRows : 0;
  out.copy_rest = !direct;
  // The unit is three panels, one register tile wide. Its time, from 30 GB/s of weights or 220 GFLOP/s a core:
  const int64_t panels = divide_up(n, 16), groups = divide_up(panels, 3);
  const double bytes = 96.0 * static_cast<double>(k), flops = 96.0 * static_cast<double>(k) * static_cast<double>(m);
  const double group_ns = std::max(bytes / 30.0, flops / 220.0);
  // A task takes at least 4 us (a wake-up is 1.5 us when the pool spins), and every thread gets six, so that a core
  // that is slower or busy takes fewer. Rejected: 16 tasks a thread (1 row, k 576: 3 % slower), 2 (uneven cores: up to
  // 30 %).
  const double least = std::max(1.0, 4000.0 / std::max(group_ns, 1.0));
  const int64_t wanted = 6LL * std::max(threads, 1);
  const int64_t even = std::max<int64_t>(1, groups * batch / wanted);
  const int64_t per_task = std::clamp<int64_t>(static_cast<int64_t>(least), 1, std::max<int64_t>(groups, 1));
  out.panels_per_task = 3 * std::max(per_task, std::min(even, std::max<int64_t>(1, groups)));
  // One row of panels too few for all threads: rows are cut too, in whole blocks of at least 32.
  const int64_t tasks = batch * std::max<int64_t>(1, divide_up(panels, out.panels_per_task));
  int64_t cuts = 1;
  if (tasks < wanted && group_ns * static_cast<double>(out.panels_per_task / 3) > 8000.0)
    cuts = std::clamp<int64_t>(divide_up(wanted, tasks), 1, std::max<int64_t>(1, m / 32));
  out.rows_per_task = std::max<int64_t>(kBlockRows, divide_up(divide_up(m, cuts), kBlockRows) * kBlockRows);
  return out;
}

GemmConfig config_of(const Product& p) {
  return {.b = p.b.dtype(), .out = p.out.dtype(), .packed_b = static_cast<unsigned char>(p.packed)};
}
GemmPackConfig pack_config_of(const TensorView& a) { return {.from = a.dtype(), .rows = 1}; }

std::string refuse(const Product& p) {
  // Both are asked for before either answer counts: what is compiled ahead is what is asked for here.
  const std::string& why = jit::cpu_kernel<kGemm>(config_of(p)).refusal;
  if (direct_a(p.a) && p.a.size(1) <= kBlockRows) return why;
  const std::string& pack = jit::cpu_kernel<kPack>(pack_config_of(p.a)).refusal;
  return why.empty() ? pack : why;
}

void run(const Product& x) {
  const int64_t batch = x.out.size(0), m = x.out.size(1), n = x.out.size(2), k = x.a.size(2);
  if (batch * m * n == 0) return;
  const GemmConfig config = config_of(x);
  const Blocks blocks = choose_blocks(batch, m, n, k, direct_a(x.a), Context::current().executor.threads);
  GemmParams p{.a_blocks = nullptr,
               .a_block = 0,
               .a_batch_blocks = 0,
               .packed_rows = blocks.packed_rows,
               .a = x.a.data(),
               .a_row = x.a.stride(1),
               .a_batch = x.a.stride(0),
               .b = nullptr,
               .b_panel = 0,
               .b_k = 0,
               .b_n = 0,
               .b_batch = 0,
               .bias = x.bias.data(),
               .out = x.out.data(),
               .out_row = x.out.stride(1),
               .out_batch = x.out.stride(0),
               .batch = batch,
               .m = m,
               .n = n,
               .k = k,
               .rows_per_task = blocks.rows_per_task,
               .panels_per_task = blocks.panels_per_task,
               .pairs_per_block = divide_up(k, 2) + 1,
               .scale_a = x.scale_a,
               .scale_b = x.scale_b};
  set_b(x, p);
  Tensor scratch;
  if (blocks.packed_rows || blocks.copy_rest) scratch = pack_a(x.a, blocks, p);
  const auto fn = jit::cpu_kernel<kGemm>(config).fn;
  const int64_t tasks = divide_up(divide_up(n, 16), p.panels_per_task) * divide_up(m, p.rows_per_task) * batch;
  parallel_for(tasks, [&](int64_t task) { fn(&p, task); });
}

std::string refuse_pack_weights(const TensorView& b) {
  return jit::cpu_kernel<kPack>(GemmPackConfig{b.dtype(), 0}).refusal;
}

void pack_weights(const TensorView& b, const TensorView& out) {
  const int64_t k = b.size(0), n = b.size(1), panels = packed_panels(n);
  if (panels == 0) return;
  const GemmPackParams p{.from = b.data(),
                         .line = b.stride(1),
                         .step = b.stride(0),
                         .batch_stride = 0,
                         .to = out.data(),
                         .to_batch = 0,
                         .lines = n,
                         .k = k,
                         .tasks_per_batch = panels};
  run_pack({.from = b.dtype(), .rows = 0}, p, panels);
}

}  // namespace flashinfer::gemm
