// SPDX-License-Identifier: Apache-2.0
// The samplers of one kernel: from probabilities, and top-k with top-p from logits.
#include "flashinfer/ops/sampling/op.h"

#include "flashinfer/ops/sampling/cases.h"
#include "flashinfer/ops/sampling/cuda_run.h"
#include "flashinfer/ops/sampling/sampler.h"

namespace flashinfer {
namespace {
using namespace ops::sampling;

inline constexpr jit::Kernel kSample{"flashinfer/ops/sampling/kernels/cpu/sampling.h", "flashinfer::cpu::sample",
                                     "flashinfer::SamplingParams"};
inline constexpr jit::Kernel kSampleCuda{"flashinfer/ops/sampling/kernels/cuda/sample.cuh", "flashinfer::cu::sample",
                                         "flashinfer::SampleCudaParams"};

template <class B>
extern const op::Op kOp;

template <class B>
bool joint(const B& a) {
  if constexpr (Is<B>::top_k && Is<B>::top_p)
    return a.filter_apply_order == "joint";
  else
    return Is<B>::filtered;
}
template <class B>
uint64_t used(const B& a) {
  return static_cast<uint64_t>(rows_of(a)) * (Is<B>::filtered ? 32 : 1);
}

template <class B>
void validate(const B& a) {
  const char* name = Is<B>::logits ? "logits" : "probs";
  const TensorView& in = input_of(a);
  check_rows(name, in, a.indices, a.check_nan);
  check_seeds(a.seed, a.offset, rows_of(a));
  if constexpr (Is<B>::top_k) check_integer_threshold("top_k", a.top_k, in.size(0), name);
  if constexpr (Is<B>::top_p) check_threshold("top_p", a.top_p, in.size(0), name);
  if constexpr (Is<B>::min_p) {
    check_threshold("min_p", a.min_p, in.size(0), name);
    if (!readable(a.min_p)) return;
    const Numbers<float> p = numbers<float>(a.min_p);
    for (int64_t i = 0; i < (p.stride ? in.size(0) : 1); ++i)
      FI_CHECK(p.data[i] <= 1, ValueError, "min_p is ", p.data[i], ", but must be at most 1");
  }
}

/// Thresholds as arrays, which live as long as the call.
struct Thresholds {
  Numbers<int64_t> k;
  Numbers<float> p, min;
};
template <class B>
Thresholds thresholds(const B& a) {
  Thresholds t;
  if constexpr (Is<B>::top_k) t.k = numbers<int64_t>(a.top_k);
  if constexpr (Is<B>::top_p) t.p = numbers<float>(a.top_p);
  if constexpr (Is<B>::min_p) t.min = numbers<float>(a.min_p);
  return t;
}

template <class B>
void launch_cuda(const B& a, const jit::CudaLoaded& kernel, const SampleCudaConfig& c) {
  const TensorView& in = input_of(a);
  SampleCudaParams p = sample_cuda_params(a, in, used(a));
  if constexpr (!Is<B>::logits)
    if (a.return_valid) p.valid = a.valid->template data_as<bool>();
  if constexpr (Is<B>::top_k) p.top_k = column(a.top_k);
  if constexpr (Is<B>::top_p) p.top_p = column(a.top_p);
  if constexpr (Is<B>::min_p) p.min_p = column(a.min_p);
  p.joint = joint(a);
  p.logits = Is<B>::logits;
  const cuda::Launch l = cuda::sample_launch(c, p.rows, p.v, in.device());
  const Tensor scratch = Tensor::empty({int64_t{l.grid[0] / l.cluster[0]} * sample_cuda_scratch(p.v, p.logits).words},
                                       DType::kF32, in.device());
  p.scratch = scratch.data_as<float>();
  ops::launch_unless_empty(kernel, p, l);
}
template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  const TensorView& in = input_of(a);
  if (std::string why = too_many_tokens(in, Is<B>::logits ? "logits" : "probs"); !why.empty())
    return op::Unsupported{std::move(why)};
  const SampleCudaConfig c = cuda::sample_config(in.dtype(), in.size(1));
  return ops::with_cuda_kernel<kSampleCuda>(c, call.device,
                                            [&a, c](const jit::CudaLoaded& kernel) { launch_cuda(a, kernel, c); });
}

template <class B>
void launch_cpu(const B& a, jit::CpuFn kernel) {
  const Randomness random = randomness(a, used(a));
  const Thresholds t = thresholds(a);
  const TensorView& in = input_of(a);
  SamplingParams p{};
  p.probs = in.data();
  p.rows = rows_of(a);
  p.v = in.size(1);
  p.probs_stride = in.stride(0);
  set_rows_and_samples(p, a);
  if constexpr (!Is<B>::logits)
    if (a.return_valid) p.valid = a.valid->template data_as<bool>();
  p.random = random.params();
  p.top_k = t.k.data;
  p.top_k_stride = t.k.stride;
  p.top_p = t.p.data;
  p.top_p_stride = t.p.stride;
  p.min_p = t.min.data;
  p.min_p_stride = t.min.stride;
  p.joint = joint(a);
  p.logits = Is<B>::logits;
  p.rows_per_task = ops::rows_per_task(p.rows, p.v * in.item_size());
  Tensor stats;
  if (ops::worth_splitting(p.rows, p.v * in.item_size())) {
    stats = Tensor::empty({p.rows * cpu::stats_words(p.v)}, DType::kF32);
    p.stats = stats.data_as<float>();
    p.compute_stats = 1;
    parallel_for(p.rows * cpu::stats_chunks(p.v), [&](int64_t task) { kernel(&p, task); });
    p.compute_stats = 0;
  }
  ops::run_rows_with_scratch(kernel, p, p.rows, p.rows_per_task, cpu::sampling_scratch(p.v, Is<B>::logits).words);
}
template <class B>
op::Prepared prepare_cpu(const B& a) {
  return ops::with_kernel<kSample>(SamplingConfig{.dtype = input_of(a).dtype()},
                                   [&a](jit::CpuFn kernel) { launch_cpu(a, kernel); });
}

template <class B>
void launch_reference(const B& a) {
  const Randomness random = randomness(a, used(a));
  const Thresholds t = thresholds(a);
  const TensorView& in = input_of(a);
  for (int64_t r = 0; r < rows_of(a); ++r) {
    const int64_t mapped = a.indices ? op::index_at(*a.indices, r) : r;
    ref::Limits limits{in.size(1), HUGE_VAL, 0};
    if (t.k.data) limits.k = t.k.data[mapped * t.k.stride];
    if (t.p.data) limits.p = static_cast<double>(t.p.data[mapped * t.p.stride]);
    if (t.min.data) limits.min = t.min.data[mapped * t.min.stride];
    ref::Sampler s(in, mapped, random.of_row(r));
    const int64_t id = Is<B>::logits     ? s.from_logits(limits, joint(a))
                       : Is<B>::min_p    ? s.min_p(limits.min)
                       : Is<B>::filtered ? s.top_k_top_p(limits, joint(a))
                                         : s.plain();
    ref::put(*a.samples, {r}, static_cast<double>(id < 0 ? 0 : id));
    if constexpr (!Is<B>::logits)
      if (a.return_valid) ref::put(*a.valid, {r}, id >= 0);
  }
}

template <class B>
op::Cost cost(const B& a) {
  const double n = static_cast<double>(rows_of(a) * input_of(a).size(1));
  return {.bytes = n * static_cast<double>(input_of(a).item_size()), .flops = 2 * n};
}
using Plain = SamplingFromProbs;
using TopKOnly = TopKSamplingFromProbs;
using TopP = TopPSamplingFromProbs;
using MinP = MinPSamplingFromProbs;
using Both = TopKTopPSamplingFromProbs;
using Logits = TopKTopPSamplingFromLogits;

template <class B>
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda<B>>(), op::cpu<prepare_cpu<B>>(),
                                        op::reference<launch_reference<B>>()};
template <class B>
constexpr op::Op define(const char* name, const char* doc, op::CaseTable cases) {
  return op::define<B, validate<B>, cost<B>, prepare<B>>(name, "flashinfer.sampling", doc, kSamplerFields<B>.span(),
                                                         candidates<B>, cases);
}
template <>
constinit const op::Op kOp<Plain> =
    define<Plain>("sampling_from_probs",
                  "One token of each row, drawn by inversion of the running sum of its probabilities.", sampling_cases);
template <>
constinit const op::Op kOp<TopKOnly> = define<TopKOnly>(
    "top_k_sampling_from_probs", "One token of each row, drawn among its top k.", top_k_sampling_cases);
template <>
constinit const op::Op kOp<TopP> = define<TopP>(
    "top_p_sampling_from_probs", "One token of each row, drawn among its top p of mass.", top_p_sampling_cases);
template <>
constinit const op::Op kOp<MinP> = define<MinP>(
    "min_p_sampling_from_probs",
    "One token of each row, drawn among those with at least min_p of the largest probability.", min_p_sampling_cases);
template <>
constinit const op::Op kOp<Both> =
    define<Both>("top_k_top_p_sampling_from_probs",
                 "One token of each row, drawn among its top k and its top p of mass.", top_k_top_p_cases);
template <>
constinit const op::Op kOp<Logits> =
    define<Logits>("top_k_top_p_sampling_from_logits",
                   "One token of each row of logits, drawn from their softmax among its top k and its top p of mass.",
                   top_k_top_p_logits_cases);

template <class B>
Samples sampled(const B& a) {
  const op::Results r = op::call(kOp<B>, a);
  return {r[0], r.size() > 1 ? r[1] : Tensor()};
}
constexpr const op::Op* kOps[] = {
    &softmax_op, &kOp<Plain>,  &sampling_from_logits_op, &kOp<TopKOnly>,   &kOp<TopP>,     &kOp<MinP>,
    &kOp<Both>,  &kOp<Logits>, &top_p_renorm_op,         &top_k_renorm_op, &top_k_mask_op, &chain_op};
}  // namespace

Samples sampling_from_probs(const Plain& a) { return sampled(a); }
Samples top_k_sampling_from_probs(const TopKOnly& a) { return sampled(a); }
Samples top_p_sampling_from_probs(const TopP& a) { return sampled(a); }
Samples min_p_sampling_from_probs(const MinP& a) { return sampled(a); }
Samples top_k_top_p_sampling_from_probs(const Both& a) { return sampled(a); }
Tensor top_k_top_p_sampling_from_logits(const Logits& a) { return op::call(kOp<Logits>, a); }

namespace ops::sampling {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::sampling

}  // namespace flashinfer
