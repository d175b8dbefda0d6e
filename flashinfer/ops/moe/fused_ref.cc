// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "flashinfer/ops/activation/ref.h"
#include "flashinfer/ops/moe/fused_args.h"
#include "flashinfer/ops/quantization/block_ref.h"

namespace flashinfer::moe {
namespace {

Fp4 quantise_reference(const TensorView& x, float gs) {
  Fp4 out{Tensor::empty({x.size(0), x.size(1) / 2}, DType::kU8), Tensor::empty({x.size(0), x.size(1) / 16}, DType::kU8)};
  for (int64_t r = 0; r < x.size(0); ++r)
    ref::quantize_row({16, false, false}, ref::floats_of(x, {r}), gs, out.codes.view().select(0, r), out.scales.view(), SfLayout::kLinear, r);
  return out;
}
double activated(const Moe& a, int64_t e, double u, double g) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto of = [e](const std::optional<TensorView>& t, double otherwise) { return t ? ref::at(*t, {e}) : otherwise; };
  switch (kind_of(a)) {
    case MoeActivation::kGelu: return ref::gelu(u);
    case MoeActivation::kRelu: return std::max(u, 0.0);
    case MoeActivation::kSilu: return ref::silu(u);
    case MoeActivation::kIdentity: return u;
    case MoeActivation::kRelu2: return std::max(u, 0.0) * std::max(u, 0.0);
    case MoeActivation::kClampedRelu2: {
      const double limit = number(*a.clamped_relu2_limit);
      return std::pow(limit * std::tanh(std::max(u, 0.0) / limit), 2);
    }
    case MoeActivation::kGeglu: return ref::gelu(g) * u;
    case MoeActivation::kGegluTanh: return ref::gelu_tanh(g) * u;
    case MoeActivation::kSwigluStep: return std::min(ref::silu(g), 7.0) * std::clamp(u, -7.0, 7.0);
    case MoeActivation::kSitu: {
      const double b = of(a.situ_beta, 4), l = of(a.situ_linear_beta, 25);
      return b * std::tanh(g / b) * sigmoid(g) * l * std::tanh(u / l);
    }
    default: {
      const double limit = of(a.swiglu_limit, HUGE_VAL), clipped = std::min(g, limit);
      return clipped * sigmoid(of(a.swiglu_alpha, 1) * clipped) * (std::clamp(u, -limit, limit) + of(a.swiglu_beta, 0));
    }
  }
}
/// One row through product `which` of expert e.
Tensor one_product(const Moe& a, const Extents& x, int which, const TensorView& row, const Tensor* scales, int64_t e) {
  const Tensor out = Tensor::empty({1, which == 1 ? x.width : x.hidden}, DType::kF64);
  gemm::reference(product(a, x, which, row, scales, out.view(), {{.row = 0, .rows = 1, .weight = e, .sf_first = 0}}));
  return out;
}
}  // namespace

void reference(const Moe& a) {
  const Extents x = extents_of(a);
  const Mode mode = mode_of(a);
  Fp4 tokens;
  if (mode == Mode::kNvfp4) {
    if (is_bytes(a.input)) tokens.scales = linear_input_sf(a, x);
    else tokens = quantise_reference(a.input, number((*a.quant_scales)[0]));
  }
  for (int64_t t = 0; t < x.tokens; ++t) {
    std::vector<double> sum(static_cast<size_t>(x.hidden), 0.0);
    for (int64_t j = 0; j < x.top_k; ++j) {
      const int64_t e = local_expert(a, t, j);
      if (e < 0) continue;
      const TensorView row = (tokens.codes.defined() ? tokens.codes.view() : a.input).slice(0, t, t + 1);
      Tensor scales = tokens.scales.defined() ? Tensor::clone(tokens.scales.view().slice(0, t, t + 1)) : Tensor();
      const Tensor h = one_product(a, x, 1, row, &scales, e);
      const auto linear = [&](int64_t i) { return h.data_as<double>()[i] + (a.fc1_expert_biases ? ref::at(*a.fc1_expert_biases, {e, i}) : 0.0); };
      Tensor inter = Tensor::empty({1, x.inter}, mode == Mode::kPlain ? a.input.dtype() : inter_dtype(a));
      for (int64_t i = 0; i < x.inter; ++i) {
        const double v = activated(a, e, linear(i), has_gate(kind_of(a)) ? linear(x.inter + i) : 0.0);
        ref::put(inter.view(), {0, i}, mode == Mode::kFp8 ? std::clamp(v * number((*a.quant_scales)[1]), -448.0, 448.0) : v);
      }
      if (mode == Mode::kNvfp4) {
        Fp4 q = quantise_reference(inter.view(), number((*a.quant_scales)[3]));
        inter = q.codes, scales = q.scales;
      }
      const Tensor y = one_product(a, x, 2, inter.view(), &scales, e);
      for (int64_t i = 0; i < x.hidden; ++i) {
        const double bias = a.fc2_expert_biases && a.tp_rank == 0 ? ref::at(*a.fc2_expert_biases, {e, i}) : 0.0;
        sum[static_cast<size_t>(i)] += ref::at(a.token_final_scales, {t, j}) * (y.data_as<double>()[i] + bias);
      }
    }
    for (int64_t i = 0; i < x.hidden; ++i) ref::put(*a.output, {t, i}, sum[static_cast<size_t>(i)]);
  }
}

}  // namespace flashinfer::moe
