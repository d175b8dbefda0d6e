// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/topk/op.h"

#include "flashinfer/ops/topk/cases.h"
#include "flashinfer/ops/topk/launch.h"
#include "flashinfer/ops/topk/ref.h"

namespace flashinfer {
namespace {
using namespace ops::topk;

void validate(const TopK& a) {
  const int64_t d = a.input.size(1);
  FI_CHECK(a.k >= 1 && a.k <= d, ValueError, "k is ", a.k, ", but must be in [1, ", d, "] (d, from input.shape[1])");
  FI_CHECK(d < (int64_t{1} << 32), ValueError, "input.shape[1] is ", d, ", but must be below 2^32");
  check_common(a);
}

void launch_cpu(const TopK& a, jit::CpuFn kernel) {
  TopKParams p = params_of(a);
  p.values = a.values->data();
  p.indices = a.indices->data_as<int64_t>();
  p.values_stride = a.values->stride(0);
  p.indices_stride = a.indices->stride(0);
  p.sorted = a.sorted;
  if (p.k == 1) return ops::run_rows(kernel, p, p.rows, p.rows_per_task);
  Tensor stats;
  if (ops::worth_splitting(p.rows, p.d * a.input.item_size())) {
    stats = Tensor::empty({p.rows * cpu::stats_words(p.d)}, DType::kF32);
    p.stats = stats.data_as<float>();
    p.compute_stats = 1;
    parallel_for(p.rows * cpu::stats_chunks(p.d), [&](int64_t task) { kernel(&p, task); });
    p.compute_stats = 0;
  }
  ops::run_rows_with_scratch(kernel, p, p.rows, p.rows_per_task, cpu::top_k_scratch(p.d).words);
}

op::Prepared prepare_cpu(const TopK& a) {
  return ops::with_kernel<kTopK>(config_of(a), [&a](jit::CpuFn kernel) { launch_cpu(a, kernel); });
}

op::Prepared prepare_cuda(const TopK& a, const op::Call& call) {
  TopKCudaParams p = cuda_params_of(a.input, a.k, a.tie_break);
  p.values = a.values->data(), p.values_stride = a.values->stride(0);
  p.indices = a.indices->data_as<int64_t>(), p.indices_stride = a.indices->stride(0);
  p.sorted = a.sorted;
  return prepare_top_k_cuda(a.input, p, call.device);
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
    op::attr<&TopK::tie_break>("tie_break", op::literal("TopKTieBreak.NONE"),
                               op::enumeration("TopKTieBreak: NONE=0|SMALL=1|LARGE=2")),
    op::attr<&TopK::dsa_graph_safe>("dsa_graph_safe"),
    op::result<&TopK::values>("values", "n k", op::same_as("input")),
    op::result<&TopK::indices>("indices", "n k", DType::kI64),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare_cpu>(),
                                        op::reference<launch_reference>()};
constinit const op::Op top_k_op = op::define<TopK, validate, cost>(
    "top_k", "flashinfer.topk", "The k largest elements of each row and their indices, exactly.", fields, candidates,
    ops::topk::top_k_cases);

constexpr const op::Op* kOps[] = {&top_k_op, &page_table_op, &ragged_op, &varlen_op};
}  // namespace

std::pair<Tensor, Tensor> top_k(const TopK& a) { return op::call(top_k_op, a); }

namespace ops::topk {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::topk

}  // namespace flashinfer
