// SPDX-License-Identifier: Apache-2.0
// top_p_renorm_probs, top_k_renorm_probs, top_k_mask_logits.
#include "flashinfer/ops/sampling/filters.h"

#include "flashinfer/ops/sampling/cases.h"
#include "flashinfer/ops/sampling/cuda_run.h"

namespace flashinfer {
namespace {
using namespace ops::sampling;

inline constexpr jit::Kernel kFilter{"flashinfer/ops/sampling/kernels/cpu/filter.h", "flashinfer::cpu::filter",
                                     "flashinfer::FilterParams"};
inline constexpr jit::Kernel kFilterCuda{"flashinfer/ops/sampling/kernels/cuda/sample.cuh", "flashinfer::cu::filter",
                                         "flashinfer::FilterCudaParams"};
template <class B>
inline constexpr bool kTopP = std::is_same_v<B, TopPRenormProbs>;
template <class B>
inline constexpr bool kMask = std::is_same_v<B, TopKMaskLogits>;
template <class B>
const op::Op& op_of() {
  return kTopP<B> ? top_p_renorm_op : kMask<B> ? top_k_mask_op : top_k_renorm_op;
}
template <class B>
const TensorView& input_of(const B& a) {
  if constexpr (kMask<B>)
    return a.logits;
  else
    return a.probs;
}
template <class B>
const TensorView& output_of(const B& a) {
  if constexpr (kMask<B>)
    return *a.masked_logits;
  else
    return *a.renorm_probs;
}

template <class B>
void validate(const B& a) {
  const char* name = kMask<B> ? "logits" : "probs";
  check_rows(name, input_of(a), {}, false);
  if constexpr (kTopP<B>)
    check_threshold("top_p", a.top_p, a.probs.size(0), name);
  else
    check_integer_threshold("top_k", a.top_k, input_of(a).size(0), name);
}

/// What both back ends take.
template <class P, class B>
P filter_params(const B& a) {
  const TensorView &in = input_of(a), &out = output_of(a);
  P p{};
  p.input = in.data();
  p.out = out.data();
  p.rows = in.size(0);
  p.v = in.size(1);
  p.input_stride = in.stride(0);
  p.out_stride = out.stride(0);
  p.mask = kMask<B>;
  return p;
}

template <class B>
op::Prepared prepare_cuda(const B& a, const op::Call& call) {
  const TensorView& in = input_of(a);
  if (std::string why = too_many_tokens(in, kMask<B> ? "logits" : "probs"); !why.empty())
    return op::Unsupported{std::move(why)};
  FilterCudaParams p = filter_params<FilterCudaParams>(a);
  if constexpr (kTopP<B>)
    p.top_p = column(a.top_p);
  else
    p.top_k = column(a.top_k);
  const SampleCudaConfig c = cuda::sample_config(in.dtype(), p.v);
  return ops::prepare_cuda<kFilterCuda>(c, p, call.device, cuda::sample_launch(c, p.rows, p.v, call.device));
}

template <class B>
void launch_cpu(const B& a, jit::CpuFn kernel) {
  const TensorView &in = input_of(a), &out = output_of(a);
  Numbers<int64_t> k;
  Numbers<float> top_p;
  if constexpr (kTopP<B>)
    top_p = numbers<float>(a.top_p);
  else
    k = numbers<int64_t>(a.top_k);
  FilterParams p = filter_params<FilterParams>(a);
  p.top_k = k.data;
  p.top_k_stride = k.stride;
  p.top_p = top_p.data;
  p.top_p_stride = top_p.stride;
  p.rows_per_task = ops::rows_per_task(p.rows, p.v * (in.item_size() + out.item_size()));
  ops::run_rows_with_scratch(kernel, p, p.rows, p.rows_per_task, cpu::filter_scratch(p.v).words);
}
template <class B>
op::Prepared prepare_cpu(const B& a) {
  return ops::with_kernel<kFilter>(SamplingConfig{.dtype = input_of(a).dtype()},
                                   [&a](jit::CpuFn kernel) { launch_cpu(a, kernel); });
}

template <class B>
void launch_reference(const B& a) {
  const TensorView &in = input_of(a), &out = output_of(a);
  for (int64_t r = 0; r < in.size(0); ++r) {
    if constexpr (kTopP<B>) {
      const Numbers<float> p = numbers<float>(a.top_p);
      ref::renorm_row(in, r, in.size(1), static_cast<double>(p.data[r * p.stride]), out);
    } else {
      const Numbers<int64_t> k = numbers<int64_t>(a.top_k);
      if constexpr (kMask<B>)
        ref::mask_row(in, r, k.data[r * k.stride], out);
      else
        ref::renorm_row(in, r, k.data[r * k.stride], 1, out);
    }
  }
}

template <class B>
op::Cost cost(const B& a) {
  const double n = static_cast<double>(input_of(a).numel());
  return {.bytes = n * static_cast<double>(input_of(a).item_size() + (kTopP<B> ? 4 : input_of(a).item_size())),
          .flops = 2 * n};
}

using TopP = TopPRenormProbs;
using TopKOnly = TopKRenormProbs;
using Mask = TopKMaskLogits;
constexpr op::Field top_p_fields[] = {op::in<&TopP::probs>("probs", "n v", op::floats),
                                      op::in<&TopP::top_p>("top_p", nullptr, kReals, op::required),
                                      op::attr<&TopP::is_deterministic>("is_deterministic"),
                                      op::result<&TopP::renorm_probs>("renorm_probs", "n v", DType::kF32)};
constexpr op::Field top_k_fields[] = {op::in<&TopKOnly::probs>("probs", "n v", op::floats),
                                      op::in<&TopKOnly::top_k>("top_k", nullptr, op::required),
                                      op::attr<&TopKOnly::is_deterministic>("is_deterministic"),
                                      op::result<&TopKOnly::renorm_probs>("renorm_probs", "n v", op::same_as("probs"))};
constexpr op::Field mask_fields[] = {op::in<&Mask::logits>("logits", "n v", op::floats),
                                     op::in<&Mask::top_k>("top_k", nullptr, op::required),
                                     op::result<&Mask::masked_logits>("masked_logits", "n v", op::same_as("logits"))};
template <class B>
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda<B>>(), op::cpu<prepare_cpu<B>>(),
                                        op::reference<launch_reference<B>>()};
template <class B>
constexpr op::Op define(const char* name, const char* doc, std::span<const op::Field> fields, op::CaseTable cases) {
  return op::define<B, validate<B>, cost<B>>(name, "flashinfer.sampling", doc, fields, candidates<B>, cases);
}
}  // namespace

namespace ops::sampling {
constinit const op::Op top_p_renorm_op =
    define<TopP>("top_p_renorm_probs",
                 "Keeps the smallest set of largest probabilities whose mass reaches top_p, divided by its sum.",
                 top_p_fields, top_p_renorm_cases);
constinit const op::Op top_k_renorm_op =
    define<TopKOnly>("top_k_renorm_probs", "Keeps the k largest probabilities and their ties, divided by their sum.",
                     top_k_fields, top_k_renorm_cases);
constinit const op::Op top_k_mask_op =
    define<Mask>("top_k_mask_logits", "Keeps the k largest logits and their ties; the others become -inf.", mask_fields,
                 top_k_mask_cases);
}  // namespace ops::sampling

Tensor top_p_renorm_probs(const TopP& a) { return op::call(top_p_renorm_op, a); }
Tensor top_k_renorm_probs(const TopKOnly& a) { return op::call(top_k_renorm_op, a); }
Tensor top_k_mask_logits(const Mask& a) { return op::call(top_k_mask_op, a); }

}  // namespace flashinfer
