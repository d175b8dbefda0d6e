// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "flashinfer/ops/activation/ref.h"
#include "flashinfer/ops/gemm/scaled/ref.h"
#include "flashinfer/ops/moe/layer.h"
#include "flashinfer/ops/quantization/block/four_over_six_ref.h"

namespace flashinfer::moe {
namespace {

Rows quantise_reference(const Layer& l, const TensorView& x, float encode) {
  const int64_t rows = x.size(0), k = x.size(1), block = scale_block(l.format);
  const bool fp4 = l.format == RowFormat::kNvfp4, groups = l.format == RowFormat::kFp8Blocks;
  const ops::FourOverSix recipe = fp4 ? ops::four_over_six(op::Value(-1)) : ops::FourOverSix{};
  Rows out = empty_rows(l, x);
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<float> v = ref::floats_of(x, {r});
    if (recipe.on) {
      ref::quantize_row(recipe, v, encode, 0, out.data.select(0, r), out.scales.view(), SfLayout::kLinear, r);
      continue;
    }
    if (!groups) {
      ref::quantize_row({block, !fp4, !fp4}, v, fp4 ? encode : 1.0f, out.data.select(0, r), out.scales.view(),
                        SfLayout::kLinear, r);
      continue;
    }
    for (int64_t g = 0; g < k / block; ++g) {
      const float scale = std::max(ref::magnitude(v.data() + g * block, block), 1e-4f) / 448.0f;
      ref::put(out.scales.view(), {r, g}, scale);
      for (int64_t i = g * block; i < (g + 1) * block; ++i)
        ref::put(out.data, {r, i}, std::clamp(v[static_cast<size_t>(i)] / scale, -448.0f, 448.0f));
    }
  }
  return out;
}
Tensor cast_reference(const TensorView& x, const TensorView& scale) {
  Tensor out = Tensor::empty(x.shape(), DType::kF8E4M3);
  for (int64_t r = 0; r < x.size(0); ++r)
    for (int64_t i = 0; i < x.size(1); ++i) {
      const float s =
          static_cast<float>(scale.numel() > 1 ? ref::get(scale.view({x.size(1)}), i) : ref::get(scale.view({1}), 0));
      ref::put(out.view(), {r, i}, std::clamp(static_cast<float>(ref::at(x, {r, i})) * s, -448.0f, 448.0f));
    }
  return out;
}
double activated(const Layer& l, int64_t e, double u, double g) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto of = [e](const std::optional<TensorView>& t, double otherwise) {
    return t ? ref::at(*t, {e}) : otherwise;
  };
  switch (l.kind) {
    case MoeActivation::kGelu: return ref::gelu(u);
    case MoeActivation::kRelu: return std::max(u, 0.0);
    case MoeActivation::kSilu: return ref::silu(u);
    case MoeActivation::kIdentity: return u;
    case MoeActivation::kRelu2: return std::max(u, 0.0) * std::max(u, 0.0);
    case MoeActivation::kClampedRelu2: {
      const double limit = static_cast<double>(number_or(l.relu2_limit, 0));
      return std::pow(limit * std::tanh(std::max(u, 0.0) / limit), 2);
    }
    case MoeActivation::kGeglu: return ref::gelu(g) * u;
    case MoeActivation::kGegluTanh: return ref::gelu_tanh(g) * u;
    case MoeActivation::kSwigluStep:
      return std::min(ref::silu(g), of(l.limit, 7)) * std::clamp(u, -of(l.limit, 7), of(l.limit, 7));
    case MoeActivation::kSitu: {
      const double b = of(l.situ_beta, 4), linear = of(l.situ_linear, 25), limit = of(l.limit, HUGE_VAL),
                   clipped = std::min(g, limit);
      return b * std::tanh(clipped / b) * sigmoid(clipped) * linear * std::tanh(std::clamp(u, -limit, limit) / linear);
    }
    default: {
      const double limit = of(l.limit, HUGE_VAL), clipped = std::min(g, limit);
      return clipped * sigmoid(of(l.alpha, 1) * clipped) * (std::clamp(u, -limit, limit) + of(l.beta, 0));
    }
  }
}
/// The stored row of logical row i of n.
int64_t stored(const Weights& w, int64_t i, int64_t n) {
  if (w.interleaved) i = i % (n / 2) * 2 + i / (n / 2);
  if (!w.shuffle) return i;
  for (int64_t r = i / w.shuffle * w.shuffle;; ++r)
    if (ref::shuffle_source(r, w.shuffle) == i) return r;
}
/// One row through product `which` of expert e, logical columns, with the factor and bias of each.
std::vector<double> one_product(const Layer& l, int which, const std::vector<double>& row, const Elements& elements,
                                int64_t e, double factor) {
  const Weights& w = which == 1 ? l.first : l.second;
  const Elements::Weight& weight = which == 1 ? elements.first : elements.second;
  const int64_t n = which == 1 ? l.width : rows_of_second(l);
  std::vector<double> out;
  for (int64_t i = 0; i < (which == 1 ? n : l.hidden); ++i) {
    const int64_t at = stored(w, i, n);
    double v = 0;
    for (int64_t k = 0; k < depth_of(l, which); ++k) v += row[static_cast<size_t>(k)] * weight(e, at, k);
    v *= factor;
    if (w.column_factor) v *= ref::at(*w.column_factor, {e, at});
    if (w.bias && (which == 1 || l.add_second_bias)) v += ref::at(*w.bias, {e, at});
    out.push_back(v);
  }
  return out;
}
/// Row r of quantised rows, with their scales.
std::vector<double> values_of(const Layer& l, const Rows& rows, int64_t r) {
  const bool fp4 = l.format == RowFormat::kNvfp4;
  const int64_t k = rows.data.size(1) * (fp4 ? 2 : 1), block = scale_block(l.format);
  std::vector<double> out;
  for (int64_t i = 0; i < k; ++i) {
    const double scale = !rows.scales.defined() ? 1.0
                         : l.format == RowFormat::kFp8Blocks
                             ? ref::at(rows.scales.view(), {r, i / block})
                             : ref::scale_of_byte(rows.scales.data_as<uint8_t>()[r * (k / block) + i / block], !fp4);
    out.push_back(ref::narrow_at(rows.data, fp4, r, i) * scale);
  }
  return out;
}
/// What expert e, token t's choice `choice`, makes of the token, which is `row`, with `weight` on the input;
/// its activations also go to inter_row, if there is one.
std::vector<double> expert_of(const Layer& l, const Elements& elements, const std::vector<double>& row, int64_t t,
                              int64_t e, double weight, int64_t choice, const TensorView& inter_row) {
  const double factor = (l.row_factor ? static_cast<double>(number(*l.row_factor, t)) : 1.0) * weight;
  std::vector<double> h = one_product(l, 1, row, elements, e, factor);
  if (l.delta && choice < l.delta->size(1))
    for (size_t i = 0; i < h.size(); ++i) h[i] += ref::at(*l.delta, {t, choice, static_cast<int64_t>(i)});
  const Tensor inter = Tensor::empty({1, l.inter}, inter_dtype(l));
  for (int64_t i = 0; i < l.inter; ++i) {
    double v = activated(l, e, h[static_cast<size_t>(i)], has_gate(l.kind) ? h[static_cast<size_t>(l.inter + i)] : 0.0);
    if (l.inter_factor) v *= static_cast<double>(number(*l.inter_factor, e));
    ref::put(inter.view(), {0, i}, inter_dtype(l) == DType::kF8E4M3 ? std::clamp(v, -448.0, 448.0) : v);
  }
  for (int64_t i = 0; inter_row.defined() && i < l.inter; ++i) ref::put(inter_row, {i}, ref::at(inter.view(), {0, i}));
  const Tensor cast = l.inter_cast ? cast_reference(inter.view(), *l.inter_cast) : inter;
  const Rows second = has_scales(l.format) ? quantise_reference(l, inter.view(), number_or(l.inter_encode, 1))
                                           : Rows{cast.view(), {}, {}};
  return one_product(l, 2, values_of(l, second, 0), elements, e, 1.0);
}
}  // namespace

void reference(const Layer& l, const Elements& elements) {
  const Tensor cast = l.x_cast ? cast_reference(l.x, *l.x_cast) : Tensor();
  const Rows tokens = l.x_cast                                  ? Rows{cast.view(), {}, {}}
                      : is_narrow(l.x) || !has_scales(l.format) ? Rows{l.x, {}, {}}
                                                                : quantise_reference(l, l.x, number_or(l.x_encode, 1));
  std::vector<int64_t> first(static_cast<size_t>(l.experts) + 1, 0);  // row of product 2 of each expert's first token
  for (const int32_t e : l.ids)
    for (auto i = static_cast<size_t>(e + 1); e >= 0 && i < first.size(); ++i) ++first[i];
  if (!l.out.defined()) ref::clear(l.rows_out);
  if (l.inter_out.defined()) ref::clear(l.inter_out);
  for (int64_t t = 0; t < l.tokens; ++t) {
    std::vector<double> sum(static_cast<size_t>(l.hidden), 0.0), row;
    for (int64_t k = 0; elements.x && k < l.hidden; ++k) row.push_back(elements.x(t, k));
    if (!elements.x) row = values_of(l, tokens, t);
    for (int64_t j = 0; j < l.top_k; ++j) {
      const auto at = static_cast<size_t>(t * l.top_k + j);
      const int32_t e = l.ids[at];
      if (l.row_of.defined())
        ref::put(l.row_of, {static_cast<int64_t>(at)},
                 e < 0 ? -1.0 : static_cast<double>(first[static_cast<size_t>(e)]));
      if (e < 0) continue;
      const double weight = static_cast<double>(l.weights[at]);
      const TensorView inter_row =
          l.inter_out.defined() ? l.inter_out.select(0, first[static_cast<size_t>(e)]) : TensorView();
      const std::vector<double> y = expert_of(l, elements, row, t, e, l.weights_on_input ? weight : 1.0, j, inter_row);
      for (size_t i = 0; i < y.size(); ++i) sum[i] += (l.weights_on_input ? 1.0 : weight) * y[i];
      for (int64_t i = 0; !l.out.defined() && i < l.hidden; ++i)
        ref::put(l.rows_out, {first[static_cast<size_t>(e)], i}, y[static_cast<size_t>(i)]);
      ++first[static_cast<size_t>(e)];
    }
    for (int64_t i = 0; l.out.defined() && i < l.hidden; ++i) ref::put(l.out, {t, i}, sum[static_cast<size_t>(i)]);
  }
}

}  // namespace flashinfer::moe
