// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/task_scratch.h"
#include "flashinfer/ops/sampling/cases.h"
#include "flashinfer/ops/sampling/cuda_launch.h"
#include "flashinfer/ops/sampling/launch.h"
#include "flashinfer/ops/sampling/op.h"

namespace flashinfer {
namespace {

inline constexpr jit::Kernel kSoftmax{"flashinfer/ops/sampling/kernels/cpu/softmax.h", "flashinfer::cpu::softmax",
                                      "flashinfer::SoftmaxParams"};

inline constexpr jit::Kernel kSoftmaxCuda{"flashinfer/ops/sampling/kernels/cuda/sampling.cuh",
                                          "flashinfer::cu::softmax", "flashinfer::SoftmaxCudaParams"};

SamplingConfig config_of(const Softmax& a) { return {.dtype = a.logits.dtype()}; }

void validate(const Softmax& a) {
  if (!a.temperature) return;
  ops::sampling::check_length("temperature", *a.temperature, a.logits.size(0), "logits");
  const TensorView* t = a.temperature->tensor();
  if (!t)
    FI_CHECK(a.temperature->number() >= 0, ValueError, "softmax: temperature is ", a.temperature->number(),
             ", but must not be negative");
  for (int64_t i = 0; t && t->device() == kCpu && i < t->size(0); ++i)
    FI_CHECK(ref::get(*t, i) >= 0 || ref::get(*t, i) == -1, ValueError, "softmax: temperature[", i, "] is ",
             ref::get(*t, i), ", but must not be negative (-1 marks a row whose token is chosen otherwise)");
}

/// 1 / T in f32; T = 0, or -1 of a row, makes all logits equal.
float inverse(double t) { return t == 0 || t == -1 ? 0.0f : 1.0f / static_cast<float>(t); }

/// One value a row, or one for all.
Tensor inverses(const Softmax& a) {
  const TensorView* t = a.temperature ? a.temperature->tensor() : nullptr;
  Tensor out = Tensor::empty({t ? std::max<int64_t>(t->size(0), 1) : 1}, DType::kF32);
  float* f = out.data_as<float>();
  if (!t) *f = a.temperature ? inverse(a.temperature->number()) : 1.0f;
  for (int64_t i = 0; t && i < t->size(0); ++i) f[i] = inverse(ref::get(*t, i));
  return out;
}

const TensorView* temperatures(const Softmax& a) { return a.temperature ? a.temperature->tensor() : nullptr; }
SoftmaxCudaParams cuda_params(const Softmax& a) {
  const TensorView* t = temperatures(a);
  return {.logits = a.logits.data(),
          .out = a.out->data_as<float>(),
          .temperature = t ? t->data() : nullptr,
          .temperature_stride = t && t->size(0) > 1 ? t->stride(0) : 0,
          .rows = a.logits.size(0),
          .v = a.logits.size(1),
          .logits_stride = a.logits.stride(0),
          .out_stride = a.out->stride(0),
          .part = 0,
          .kept = 0,
          .inverse = a.temperature && !t ? inverse(a.temperature->number()) : 1.0f};
}

op::Prepared prepare_cuda(const Softmax& a, const op::Call& call) {
  SoftmaxCudaParams p = cuda_params(a);
  const jit::Arch& arch = jit::arch_of_number(jit::arch_number(call.device));
  const TensorView* t = temperatures(a);
  const SoftmaxCudaConfig c = cuda::softmax_config(config_of(a), t ? t->dtype() : DType::kF32, p, arch);
  const cuda::Launch l = cuda::softmax_launch(c, p, ops::wants_pdl(a.enable_pdl), arch);
  return ops::prepare_cuda<kSoftmaxCuda>(c, p, call.device, l);
}

void launch_cpu(const Softmax& a, jit::CpuFn kernel) {
  const Tensor inverse_temperature = inverses(a);
  SoftmaxParams p{};
  p.logits = a.logits.data();
  p.out = a.out->data_as<float>();
  p.inverse_temperature = inverse_temperature.data_as<float>();
  p.inverse_stride = inverse_temperature.numel() > 1;
  p.rows = a.logits.size(0);
  p.v = a.logits.size(1);
  p.logits_stride = a.logits.stride(0);
  p.out_stride = a.out->stride(0);
  const int64_t row_bytes = p.v * (a.logits.item_size() + 4);
  p.rows_per_task = ops::rows_per_task(p.rows, row_bytes);
  const int64_t words = 2 * cpu::stats_blocks(p.v);
  if (!ops::worth_splitting(p.rows, row_bytes))
    return ops::run_rows_with_scratch(kernel, p, p.rows, p.rows_per_task, words);
  const Tensor blocks = Tensor::empty({p.rows * words}, DType::kF32);
  p.blocks = blocks.data_as<float>();
  for (p.phase = 1; p.phase <= 2; ++p.phase)
    parallel_for(p.rows * cpu::stats_chunks(p.v), [&](int64_t task) { kernel(&p, task); });
}

op::Prepared prepare_cpu(const Softmax& a) {
  return ops::with_kernel<kSoftmax>(config_of(a), [&a](jit::CpuFn kernel) { launch_cpu(a, kernel); });
}

void launch_reference(const Softmax& a) {
  const Tensor inverse_temperature = inverses(a);
  for (int64_t r = 0; r < a.logits.size(0); ++r)
    ref::softmax_row(a.logits, r, inverse_temperature.data_as<float>()[inverse_temperature.numel() > 1 ? r : 0],
                     *a.out);
}

op::Cost cost(const Softmax& a) {
  const double n = static_cast<double>(a.logits.numel());
  return {.bytes = n * static_cast<double>(a.logits.item_size() + 4), .flops = 10 * n};
}

constexpr op::Field fields[] = {
    op::in<&Softmax::logits>("logits", "n v", op::floats),
    op::in<&Softmax::temperature>("temperature", nullptr, ops::sampling::kReals),
    op::attr<&Softmax::enable_pdl>("enable_pdl"),
    op::result<&Softmax::out>("out", "n v", DType::kF32),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare_cpu>(),
                                        op::reference<launch_reference>()};
}  // namespace
namespace ops::sampling {
constinit const op::Op softmax_op = op::define<Softmax, validate, cost>(
    "softmax", "flashinfer.sampling", "exp(logits / temperature) over the sum of its row, in f32.", fields, candidates,
    softmax_cases);
}  // namespace ops::sampling
Tensor softmax(const Softmax& a) { return op::call(ops::sampling::softmax_op, a); }

}  // namespace flashinfer
