// SPDX-License-Identifier: Apache-2.0
// sampling_from_logits.
#include "flashinfer/ops/sampling/cases.h"
#include "flashinfer/ops/sampling/cuda_run.h"
#include "flashinfer/ops/sampling/op.h"
#include "flashinfer/ops/sampling/sampler.h"

namespace flashinfer {
namespace {
using namespace ops::sampling;
using Block = SamplingFromLogits;

inline constexpr jit::Kernel kGumbel{"flashinfer/ops/sampling/kernels/cpu/gumbel.h", "flashinfer::cpu::gumbel",
                                     "flashinfer::GumbelParams"};
inline constexpr jit::Kernel kGumbelCuda{"flashinfer/ops/sampling/kernels/cuda/gumbel.cuh", "flashinfer::cu::gumbel",
                                         "flashinfer::SampleCudaParams"};
inline constexpr jit::Kernel kGumbelLastCuda{"flashinfer/ops/sampling/kernels/cuda/gumbel.cuh",
                                             "flashinfer::cu::gumbel_last", "flashinfer::SampleCudaParams"};
constexpr const char* kName = "sampling_from_logits";

uint64_t used(const Block& a) {
  return static_cast<uint64_t>(outputs_of(a, a.logits)) * static_cast<uint64_t>(a.logits.size(1));
}
void validate(const Block& a) {
  check_rows("logits", a.logits, a.indices, a.check_nan);
  check_seeds(a.seed, a.offset, outputs_of(a, a.logits));
}
SamplingConfig config_of(const Block& a) { return {.dtype = a.logits.dtype()}; }
SampleCudaConfig cuda_config(const Block& a) { return cuda::sample_config(a.logits.dtype(), a.logits.size(1)); }
/// The second launch reads no logits: one kernel is for all element types.
constexpr SampleCudaConfig kLast{.dtype = DType::kF32, .threads = 128};
/// `last` is the kernel of the second launch, null when one launch sees a whole row.
void launch_cuda(const Block& a, const jit::CudaLoaded& kernel, const jit::CudaLoaded* last) {
  SampleCudaParams p = sample_cuda_params(a, a.logits, used(a));
  const Tensor best =
      last ? Tensor::empty({p.rows * cpu::stats_chunks(p.v)}, DType::kU64, a.logits.device()) : Tensor();
  if (last) p.best = best.data_as<uint64_t>();
  ops::launch_unless_empty(kernel, p, cuda::gumbel_launch(cuda_config(a), p.rows, p.v, false));
  if (last) ops::launch_unless_empty(*last, p, cuda::gumbel_launch(kLast, p.rows, p.v, true));
}
op::Prepared prepare_cuda(const Block& a, const op::Call& call) {
  if (std::string why = too_many_tokens(a.logits, "logits"); !why.empty()) return op::Unsupported{std::move(why)};
  const jit::CudaLoaded& kernel = jit::cuda_kernel<kGumbelCuda>(cuda_config(a), call.device);
  const jit::CudaLoaded* last =
      cpu::stats_chunks(a.logits.size(1)) > 1 ? &jit::cuda_kernel<kGumbelLastCuda>(kLast, call.device) : nullptr;
  if (!kernel.why_not.empty()) return op::Unsupported{kernel.why_not};
  if (last && !last->why_not.empty()) return op::Unsupported{last->why_not};
  return [&a, &kernel, last] { launch_cuda(a, kernel, last); };
}

void launch_cpu(const Block& a, jit::CpuFn kernel) {
  const Randomness random = randomness(a, used(a));
  GumbelParams p{};
  p.logits = a.logits.data();
  p.rows = outputs_of(a, a.logits);
  p.v = a.logits.size(1);
  p.logits_stride = a.logits.stride(0);
  set_rows_and_samples(p, a);
  p.random = random.params();
  p.rows_per_task = ops::rows_per_task(p.rows, p.v * a.logits.item_size());
  if (!ops::worth_splitting(p.rows, p.v * a.logits.item_size()))
    return ops::run_rows(kernel, p, p.rows, p.rows_per_task);
  const Tensor best = Tensor::empty({p.rows * cpu::stats_chunks(p.v)}, DType::kU64);
  p.best = best.data_as<uint64_t>();
  p.phase = 1;
  parallel_for(best.numel(), [&](int64_t task) { kernel(&p, task); });
  p.phase = 2;
  p.rows_per_task = p.rows;
  kernel(&p, 0);
}

op::Prepared prepare_cpu(const Block& a) {
  return ops::with_kernel<kGumbel>(config_of(a), [&a](jit::CpuFn kernel) { launch_cpu(a, kernel); });
}

void launch_reference(const Block& a) {
  const Randomness random = randomness(a, used(a));
  for (int64_t r = 0; r < outputs_of(a, a.logits); ++r) {
    const int64_t mapped = a.indices ? op::index_at(*a.indices, r) : r;
    ref::put(*a.samples, {r}, static_cast<double>(ref::gumbel_max(a.logits, mapped, random.of_row(r))));
  }
}

op::Cost cost(const Block& a) {
  const double n = static_cast<double>(used(a));
  return {.bytes = n * static_cast<double>(a.logits.item_size()), .flops = 60 * n};
}
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda>(), op::cpu<prepare_cpu>(),
                                        op::reference<launch_reference>()};
}  // namespace

namespace ops::sampling {
constinit const op::Op sampling_from_logits_op = op::define<Block, validate, cost, prepare<Block>>(
    kName, "flashinfer.sampling", "One token of each row of logits, drawn from their softmax by Gumbel noise.",
    kSamplerFields<Block>.span(), candidates, sampling_from_logits_cases);
}

Tensor sampling_from_logits(const Block& a) { return op::call(sampling_from_logits_op, a); }

}  // namespace flashinfer
