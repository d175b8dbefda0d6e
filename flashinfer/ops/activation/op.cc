// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/activation/op.h"

#include "flashinfer/op/call.h"
#include "flashinfer/ops/activation/cases.h"
#include "flashinfer/ops/activation/cuda_launch.h"
#include "flashinfer/ops/activation/kernels/params.h"
#include "flashinfer/ops/activation/ref.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer {
namespace {

inline constexpr jit::Kernel kActAndMul{"flashinfer/ops/activation/kernels/cpu/activation.h",
                                        "flashinfer::cpu::act_and_mul", "flashinfer::ActParams"};
inline constexpr jit::Kernel kActAndMulCuda{"flashinfer/ops/activation/kernels/cuda/activation.cuh",
                                            "flashinfer::cu::act_and_mul", "flashinfer::ActParams"};

template <Activation K>
ActConfig config_of(const ActAndMul& a) {
  return {.dtype = a.input.dtype(), .kind = K};
}

/// The leading axes, neighbours merged where both tensors step evenly across them.
void set_outer(ActParams& p, const TensorView& in, const TensorView& out) {
  p.size[0] = 1;
  p.outer = 1;
  for (int i = 0; i + 1 < in.rank(); ++i) {
    const int32_t last = p.outer - 1;
    if (in.size(i) == 1) continue;
    const bool even = p.size[last] == 1 || (p.input_stride[last] == in.size(i) * in.stride(i) &&
                                            p.out_stride[last] == in.size(i) * out.stride(i));
    const int32_t at = even ? last : p.outer++;
    p.size[at] = (even ? p.size[last] : 1) * in.size(i);
    p.input_stride[at] = in.stride(i);
    p.out_stride[at] = out.stride(i);
  }
}

ActParams params_of(const ActAndMul& a) {
  const TensorView& out = *a.out;
  ActParams p{};
  p.input = a.input.data();
  p.out = out.data();
  p.d = out.size(-1);
  p.rows = p.d ? out.numel() / p.d : 0;
  set_outer(p, a.input, out);
  p.rows_per_task = ops::rows_per_task(p.rows, 3 * p.d * out.item_size());
  return p;
}

template <Activation K>
op::Prepared prepare_cpu(const ActAndMul& a) {
  const ActParams p = params_of(a);
  return ops::prepare_rows<kActAndMul>(config_of<K>(a), p, p.rows, p.rows_per_task);
}
template <Activation K>
op::Prepared prepare_cuda(const ActAndMul& a, const op::Call& call) {
  const ActParams p = params_of(a);
  const auto c = cuda::act_config(config_of<K>(a), p);
  return ops::prepare_cuda<kActAndMulCuda>(c, p, call.device, cuda::act_launch(c, p, ops::wants_pdl(a.enable_pdl)));
}
template <double (*Act)(double)>
void launch_reference(const ActAndMul& a) {
  ref::act_and_mul(a.input, *a.out, Act);
}

op::Cost cost(const ActAndMul& a) {
  const double n = static_cast<double>(a.input.numel()) / 2;
  return {.bytes = 3 * n * static_cast<double>(a.input.item_size()), .flops = 10 * n};
}

constexpr op::Field fields[] = {
    op::in<&ActAndMul::input>("input", "... 2*d", op::floats),
    op::out<&ActAndMul::out>("out", "... d", op::same_as("input")),
    op::attr<&ActAndMul::enable_pdl>("enable_pdl"),
};
template <Activation K, double (*Act)(double)>
constexpr op::Candidate candidates[] = {op::cuda<prepare_cuda<K>>(), op::cpu<prepare_cpu<K>>(),
                                        op::reference<launch_reference<Act>>()};

constinit const op::Op silu_op = op::define<ActAndMul, nullptr, cost>(
    "silu_and_mul", "flashinfer.activation", "silu(input[..., :d]) * input[..., d:], silu(x) = x / (1 + exp(-x)).",
    fields, candidates<Activation::kSilu, ref::silu>, ops::activation::silu_cases);
constinit const op::Op gelu_op = op::define<ActAndMul, nullptr, cost>(
    "gelu_and_mul", "flashinfer.activation",
    "gelu(input[..., :d]) * input[..., d:], gelu(x) = x / 2 * (1 + erf(x / sqrt(2))).", fields,
    candidates<Activation::kGelu, ref::gelu>, ops::activation::gelu_cases);
constinit const op::Op gelu_tanh_op = op::define<ActAndMul, nullptr, cost>(
    "gelu_tanh_and_mul", "flashinfer.activation",
    "gelu(input[..., :d]) * input[..., d:], gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).", fields,
    candidates<Activation::kGeluTanh, ref::gelu_tanh>, ops::activation::gelu_tanh_cases);

constexpr const op::Op* kOps[] = {&silu_op, &gelu_op, &gelu_tanh_op};
}  // namespace

Tensor silu_and_mul(const ActAndMul& a) { return op::call(silu_op, a); }
Tensor gelu_and_mul(const ActAndMul& a) { return op::call(gelu_op, a); }
Tensor gelu_tanh_and_mul(const ActAndMul& a) { return op::call(gelu_tanh_op, a); }

namespace ops::activation {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::activation

}  // namespace flashinfer
