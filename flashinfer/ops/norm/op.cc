// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/norm/op.h"

#include "flashinfer/core/context.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/norm/cases.h"
#include "flashinfer/ops/norm/params.h"
#include "flashinfer/ops/norm/ref.h"

namespace flashinfer {
namespace {

inline constexpr jit::Kernel kRmsNorm{"flashinfer/ops/norm/cpu.h", "flashinfer::cpu::rmsnorm", "flashinfer::NormParams"};

NormConfig config_of(const RmsNorm& a) { return {.dtype = a.input.dtype(), .gemma = 0, .fused_add = 0}; }

/// Strides of the two row axes; an absent axis has extent 1 and stride 0.
void row_strides(const TensorView& t, int64_t out[2]) {
  out[0] = t.rank() > 1 ? t.stride(0) : 0;
  out[1] = t.rank() > 2 ? t.stride(1) : 0;
}

op::Refusal refuse_cpu(const RmsNorm& a);

void launch_cpu(const RmsNorm& a) {
  const int64_t d = a.input.size(-1), rows = d ? a.input.numel() / d : 0;
  if (!rows) return;
  NormParams p{.input = a.input.data(), .residual = nullptr, .weight = a.weight.data(), .out = a.out->data(),
               .rows = rows, .d = d, .inner = a.input.rank() > 2 ? a.input.size(1) : 1,
               .input_stride = {}, .residual_stride = {}, .out_stride = {}, .rows_per_task = 0, .eps = a.eps};
  row_strides(a.input, p.input_stride);
  row_strides(*a.out, p.out_stride);
  // A task is at least 16 KB of input: below that, waking a thread costs more than the rows.
  const int64_t row_bytes = d * a.input.item_size();
  p.rows_per_task = std::max<int64_t>(1, 16384 / std::max<int64_t>(row_bytes, 1));
  const auto fn = jit::cpu_kernel<kRmsNorm>(config_of(a)).fn;
  parallel_for((rows + p.rows_per_task - 1) / p.rows_per_task, [&](int64_t task) { fn(&p, task); });
}

void validate(const RmsNorm& a) {
  FI_CHECK(a.input.rank() == 2 || a.input.rank() == 3, ValueError, "rmsnorm: input has rank ", a.input.rank(), " (",
           to_string(a.input), "), but must be [rows, d] or [rows, heads, d]");
}
op::Cost cost(const RmsNorm& a) {
  const double n = static_cast<double>(a.input.numel());
  return {.bytes = 2 * n * static_cast<double>(a.input.item_size()) + static_cast<double>(a.weight.nbytes()), .flops = 4 * n};
}
void launch_reference(const RmsNorm& a) { ref::rmsnorm(a.input, a.weight, a.eps, 0, *a.out); }

constexpr op::Field fields[] = {
    op::in<&RmsNorm::input>("input", "... d", op::floats),
    op::in<&RmsNorm::weight>("weight", "d", op::same_as("input")),
    op::attr<&RmsNorm::eps>("eps"),
    op::out<&RmsNorm::out>("out", "... d", op::same_as("input"), op::may_alias("input")),
    op::attr<&RmsNorm::enable_pdl>("enable_pdl"),
};
constexpr op::Candidate candidates[] = {
    op::candidate<refuse_cpu, launch_cpu>("cpu"),
    op::reference<launch_reference>(),
};
constinit const op::Op rmsnorm_op = op::define<RmsNorm, validate, cost>(
    "rmsnorm", "flashinfer.norm", "Root mean square normalisation: input / sqrt(mean(input^2) + eps) * weight.", fields, candidates,
    ops::norm::rmsnorm_cases);

op::Refusal refuse_cpu(const RmsNorm& a) {
  if (op::Refusal r = op::refuse_unless_cpu(rmsnorm_op, &a); !r.empty()) return r;
  return jit::cpu_kernel<kRmsNorm>(config_of(a)).refusal;
}

constexpr const op::Op* kOps[] = {&rmsnorm_op};
}  // namespace

Tensor rmsnorm(const RmsNorm& a) { return op::call(rmsnorm_op, a); }

namespace ops::norm {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::norm

}  // namespace flashinfer
