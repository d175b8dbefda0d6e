// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/topk/op.h"

#include "flashinfer/kernels/cpu/select_scratch.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/topk/cases.h"
#include "flashinfer/ops/topk/params.h"
#include "flashinfer/ops/topk/ref.h"

namespace flashinfer {
namespace {

inline constexpr jit::Kernel kTopK{"flashinfer/ops/topk/cpu.h", "flashinfer::cpu::top_k", "flashinfer::TopKParams"};

TopKConfig config_of(const TopK& a) { return {.dtype = a.input.dtype()}; }

void validate(const TopK& a) {
  const int64_t d = a.input.size(1);
  FI_CHECK(a.k >= 1 && a.k <= d, ValueError, "top_k: k is ", a.k, ", but must be in [1, ", d,
           "] (d, from input.shape[1])");
  FI_CHECK(d < (int64_t{1} << 32), ValueError, "top_k: input.shape[1] is ", d, ", but must be below 2^32");
  FI_CHECK(a.tie_break >= 0 && a.tie_break <= 2, ValueError, "top_k: tie_break is ", a.tie_break,
           ", but must be 0 (any), 1 (smaller index) or 2 (larger index)");
}

op::Refusal refuse_cpu(const TopK& a);

void launch_cpu(const TopK& a) {
  TopKParams p{};
  p.input = a.input.data();
  p.values = a.values->data();
  p.indices = a.indices->data_as<int64_t>();
  p.rows = a.input.size(0);
  p.d = a.input.size(1);
  p.k = a.k;
  p.input_stride = a.input.stride(0);
  p.values_stride = a.values->stride(0);
  p.indices_stride = a.indices->stride(0);
  p.sorted = a.sorted;
  p.large = a.tie_break == 2;
  p.rows_per_task = ops::rows_per_task(p.rows, p.d * a.input.item_size());
  Tensor scratch;
  if (p.k > 1) {
    // Few tasks: each has scratch of the size of a row.
    p.rows_per_task = std::max(p.rows_per_task, (p.rows + 4 * Context::current().executor.threads - 1) /
                                                    (4 * Context::current().executor.threads));
    p.scratch_words = cpu::select_scratch(p.d);
    scratch = Tensor::empty({(p.rows + p.rows_per_task - 1) / p.rows_per_task * p.scratch_words}, DType::kU64);
    p.scratch = scratch.data_as<uint64_t>();
  }
  ops::run_rows(jit::cpu_kernel<kTopK>(config_of(a)).fn, p, p.rows, p.rows_per_task);
}

void launch_reference(const TopK& a) { ref::top_k(a.input, a.k, a.sorted, a.tie_break == 2, *a.values, *a.indices); }

op::Cost cost(const TopK& a) {
  return {.bytes = static_cast<double>(a.input.nbytes()), .flops = static_cast<double>(a.input.numel())};
}

constexpr op::Field fields[] = {
    op::in<&TopK::input>("input", "n d", op::floats),
    op::attr<&TopK::k>("k", op::required),
    op::attr<&TopK::sorted>("sorted"),
    op::attr<&TopK::deterministic>("deterministic"),
    op::attr<&TopK::tie_break>("tie_break", op::literal("TopKTieBreak.NONE"), op::enumeration("TopKTieBreak: NONE=0|SMALL=1|LARGE=2")),
    op::attr<&TopK::dsa_graph_safe>("dsa_graph_safe"),
    op::result<&TopK::values>("values", "n k", op::same_as("input")),
    op::result<&TopK::indices>("indices", "n k", DType::kI64),
};
constexpr op::Candidate candidates[] = {op::candidate<refuse_cpu, launch_cpu>("cpu"),
                                        op::reference<launch_reference>()};
constinit const op::Op top_k_op = op::define<TopK, validate, cost>(
    "top_k", "flashinfer.topk", "The k largest elements of each row and their indices, exactly.", fields, candidates,
    ops::topk::top_k_cases);

op::Refusal refuse_cpu(const TopK& a) {
  if (op::Refusal r = op::refuse_unless_cpu(top_k_op, &a); !r.empty()) return r;
  return jit::cpu_kernel<kTopK>(config_of(a)).refusal;
}

constexpr const op::Op* kOps[] = {&top_k_op};
}  // namespace

std::pair<Tensor, Tensor> top_k(const TopK& a) { return op::call(top_k_op, a); }

namespace ops::topk {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::topk

}  // namespace flashinfer
