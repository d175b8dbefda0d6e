// SPDX-License-Identifier: Apache-2.0
// sampling_from_logits.
#include "flashinfer/ops/sampling/cases.h"
#include "flashinfer/ops/sampling/cuda_run.h"
#include "flashinfer/ops/sampling/op.h"

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
/// The second launch reads no logits: one kernel serves all element types.
constexpr SampleCudaConfig kLast{.dtype = DType::kF32, .threads = 128};
op::Refusal refuse_cuda(const Block& a) {
  op::Refusal r = ops::refuse_cuda<kGumbelCuda>(sampling_from_logits_op, &a, [&] { return cuda_config(a); });
  if (r.empty()) r = refuse_tokens(a.logits, "logits");
  if (!r.empty() || cpu::survey_chunks(a.logits.size(1)) == 1) return r;
  return jit::cuda_kernel<kGumbelLastCuda>(kLast, a.logits.device()).refusal;
}
void launch_cuda(const Block& a) {
  SampleCudaParams p = sample_cuda_params(a, a.logits, used(a));
  const int64_t chunks = cpu::survey_chunks(p.v);
  Tensor best;
  if (chunks > 1) {
    best = Tensor::empty({p.rows * chunks}, DType::kU64, a.logits.device());
    p.best = best.data_as<uint64_t>();
  }
  const SampleCudaConfig c = cuda_config(a);
  ops::launch_cuda<kGumbelCuda>(c, p, a.logits.device(), cuda::gumbel_launch(c, p.rows, p.v, false));
  if (chunks > 1)
    ops::launch_cuda<kGumbelLastCuda>(kLast, p, a.logits.device(), cuda::gumbel_launch(kLast, p.rows, p.v, true));
}

op::Refusal refuse_cpu(const Block& a) { return jit::cpu_kernel<kGumbel>(config_of(a)).refusal; }

void launch_cpu(const Block& a) {
  const Randomness random = randomness(a, used(a));
  GumbelParams p{};
  p.logits = a.logits.data();
  p.rows = outputs_of(a, a.logits);
  p.v = a.logits.size(1);
  p.logits_stride = a.logits.stride(0);
  set_rows_and_samples(p, a);
  p.random = random.params();
  p.rows_per_task = ops::rows_per_task(p.rows, p.v * a.logits.item_size());
  const jit::CpuFn kernel = jit::cpu_kernel<kGumbel>(config_of(a)).fn;
  if (!ops::worth_splitting(p.rows, p.v * a.logits.item_size()))
    return ops::run_rows(kernel, p, p.rows, p.rows_per_task);
  const Tensor best = Tensor::empty({p.rows * cpu::survey_chunks(p.v)}, DType::kU64);
  p.best = best.data_as<uint64_t>();
  p.phase = 1;
  parallel_for(best.numel(), [&](int64_t task) { kernel(&p, task); });
  p.phase = 2;
  p.rows_per_task = p.rows;
  kernel(&p, 0);
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
op::Shape sample_shape(const Block& a) { return {.rank = 1, .size = {outputs_of(a, a.logits)}}; }

constexpr op::Field fields[] = {op::in<&Block::logits>("logits", "n v", op::floats),
                                op::in<&Block::indices>("indices", "b", op::indices),
                                op::attr<&Block::deterministic>("deterministic"),
                                op::attr<&Block::generator>("generator"),
                                op::attr<&Block::check_nan>("check_nan"),
                                op::in<&Block::seed>("seed", nullptr, kSeeds),
                                op::in<&Block::offset>("offset", nullptr, kSeeds),
                                op::result<&Block::samples>("samples", nullptr, op::indices, op::contiguous,
                                                            op::shape<sample_shape>, op::dtype<sample_dtype<Block>>),
                                op::attr<&Block::implied_generator>("implied_generator", op::hidden)};
constexpr op::Candidate candidates[] = {op::candidate<refuse_cuda, launch_cuda>("cuda"),
                                        op::candidate<refuse_cpu, launch_cpu>("cpu"),
                                        op::reference<launch_reference>()};
}  // namespace

namespace ops::sampling {
constinit const op::Op sampling_from_logits_op = op::define<Block, validate, cost, prepare<Block>>(
    kName, "flashinfer.sampling", "One token of each row of logits, drawn from their softmax by Gumbel noise.", fields,
    candidates, sampling_from_logits_cases);
}

Tensor sampling_from_logits(const Block& a) { return op::call(sampling_from_logits_op, a); }

}  // namespace flashinfer
