// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/layer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/quantization/block/four_over_six.h"
#include "flashinfer/ops/quantization/block/launch.h"
#include "flashinfer/ops/quantization/kernels/group8_params.h"

namespace flashinfer::moe {
namespace {
inline constexpr jit::Kernel kActivate{"flashinfer/ops/moe/kernels/cpu/moe.h", "flashinfer::cpu::moe_activate",
                                       "flashinfer::MoeActParams"};
inline constexpr jit::Kernel kCast{"flashinfer/ops/moe/kernels/cpu/moe.h", "flashinfer::cpu::moe_cast",
                                   "flashinfer::MoeCastParams"};
inline constexpr jit::Kernel kSum{"flashinfer/ops/moe/kernels/cpu/moe.h", "flashinfer::cpu::moe_sum",
                                  "flashinfer::MoeSumParams"};

// ---- rows sorted by expert ----
struct Permutation {
  std::vector<int32_t> row_of;               // [tokens * top_k], -1: not of this rank
  std::vector<int32_t> token_of, expert_of;  // [rows]
  std::vector<gemm::Group> groups;
  int64_t rows() const { return static_cast<int64_t>(token_of.size()); }
};
Permutation permute(const Layer& l) {
  Permutation p;
  std::vector<int64_t> next(static_cast<size_t>(l.experts) + 1, 0);
  for (const int32_t e : l.ids)
    if (e >= 0) ++next[static_cast<size_t>(e) + 1];
  for (size_t e = 0; e < static_cast<size_t>(l.experts); ++e) {
    if (next[e + 1])
      p.groups.push_back({.row = next[e], .rows = next[e + 1], .weight = static_cast<int64_t>(e), .sf_first = next[e]});
    next[e + 1] += next[e];
  }
  p.row_of.assign(l.ids.size(), -1);
  p.token_of.resize(static_cast<size_t>(next.back()));
  p.expert_of.resize(p.token_of.size());
  for (size_t i = 0; i < l.ids.size(); ++i) {
    if (l.ids[i] < 0) continue;
    const auto row = static_cast<size_t>(next[static_cast<size_t>(l.ids[i])]++);
    p.row_of[i] = static_cast<int32_t>(row);
    p.token_of[row] = static_cast<int32_t>(static_cast<int64_t>(i) / l.top_k);
    p.expert_of[row] = l.ids[i];
  }
  return p;
}
/// Rows token_of[r] of x.
Tensor gather(const TensorView& x, const std::vector<int32_t>& token_of) {
  const auto rows = static_cast<int64_t>(token_of.size());
  const int64_t bytes = x.size(1) * x.item_size();
  Tensor out = Tensor::empty({rows, x.size(1)}, x.dtype());
  ops::for_rows(rows, ops::rows_per_task(rows, 2 * bytes), [&](int64_t r) {
    std::memcpy(out.data_as<char>() + r * bytes,
                x.data_as<char>() + token_of[static_cast<size_t>(r)] * x.stride(0) * x.item_size(),
                static_cast<size_t>(bytes));
  });
  return out;
}

// ---- rows into the format of the products ----
Group8Config group_config(DType t) { return {t, DType::kF8E4M3}; }
Rows quantise(const Layer& l, const TensorView& x, float encode, jit::CpuFn fn) {
  const int64_t rows = x.size(0), k = x.size(1), block = scale_block(l.format);
  Rows out = empty_rows(l, x);
  if (l.format == RowFormat::kFp8Blocks) {
    Group8Params p{};
    p.x = x.data(), p.q = out.keep.data(), p.scales = out.scales.data_as<float>();
    p.rows = rows, p.k = k, p.group = block;
    p.x_stride = x.stride(0), p.q_stride = k, p.scale_row_stride = k / block, p.scale_group_stride = 1;
    p.eps = 1e-4f;
    p.rows_per_task = ops::rows_per_task(rows, k * 3);
    ops::run_rows(fn, p, rows, p.rows_per_task);
    return out;
  }
  BlockQuantParams p{};
  p.x = x.data(), p.codes = static_cast<uint8_t*>(out.keep.data()), p.scales = out.scales.data_as<uint8_t>();
  p.batches = 1, p.rows = p.padded_rows = rows, p.k = p.padded_k = k;
  p.row_stride = x.stride(0), p.code_row_stride = out.data.size(1);
  p.layout = SfLayout::kLinear;
  if (l.format == RowFormat::kNvfp4) p.encode = &encode;
  ops::run_block_quantize(fn, quant_config(l.format, x.dtype()), p);
  return out;
}

/// A tensor as contiguous f32; null when absent.
struct Floats {
  Tensor keep;
  const float* p = nullptr;
  explicit Floats(const std::optional<TensorView>& t) {
    if (!t) return;
    if (t->dtype() == DType::kF32 && t->is_contiguous()) {
      p = t->data_as<float>();
      return;
    }
    keep = Tensor::empty(t->shape(), DType::kF32);
    if (t->dtype() == DType::kBF16)
      convert<bf16_t>(*t);
    else if (t->dtype() == DType::kF16)
      convert<f16_t>(*t);
    else
      convert<float>(*t);
    p = keep.data_as<float>();
  }
  template <class T>
  void convert(const TensorView& t) {
    int64_t at = 0;
    ref::for_each_row(t, [&](const ref::Index& row) {
      const T* from = t.data_as<T>() + ref::offset_of(t, row);
      for (int64_t i = 0; i < t.size(-1); ++i) keep.data_as<float>()[at++] = static_cast<float>(from[i * t.stride(-1)]);
    });
  }
};
Rows cast_rows(const TensorView& x, const TensorView& scale, jit::CpuFn fn) {
  const Floats factor(scale);
  Rows out;
  out.keep = Tensor::empty(x.shape(), DType::kF8E4M3);
  out.data = out.keep.view();
  MoeCastParams p{.x = x.data(),
                  .y = out.keep.data_as<e4m3_t>(),
                  .scale = factor.p,
                  .rows = x.size(0),
                  .k = x.size(1),
                  .x_stride = x.stride(0),
                  .scale_step = scale.numel() > 1,
                  .rows_per_task = 1};
  p.rows_per_task = ops::rows_per_task(p.rows, p.k * 3);
  ops::run_rows(fn, p, p.rows, p.rows_per_task);
  return out;
}
Rows tokens_of(const Layer& l, jit::CpuFn convert) {
  if (l.x_cast) return cast_rows(l.x, *l.x_cast, convert);
  if (is_narrow(l.x) || !has_scales(l.format)) return {l.x, l.x_scales, {}};
  return quantise(l, l.x, number_or(l.x_encode, 1), convert);
}
/// Positions of the logical columns of a product; empty: in order.
std::vector<int32_t> columns_of(const Weights& w, int64_t n) {
  std::vector<int32_t> out;
  if (!w.shuffle && !w.interleaved) return out;
  out.reserve(static_cast<size_t>(n));
  const int64_t stride = w.shuffle / 8;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = !w.interleaved ? i
                       : i < n / 2    ? 2 * i
                                      : 2 * (i - n / 2) + 1,
                  in = w.shuffle ? at % w.shuffle : 0;
    out.push_back(static_cast<int32_t>(w.shuffle ? at - in + in % stride * 8 + in / stride : at));
  }
  return out;
}
const int32_t* pointer(const std::vector<int32_t>& v) { return v.empty() ? nullptr : v.data(); }

/// What is added to each row of product 1, f32 [rows, width].
Tensor deltas_of(const Layer& l, const Permutation& p) {
  const int64_t choices = l.delta->size(1);
  Tensor out = Tensor::empty({p.rows(), l.width}, DType::kF32);
  const Floats from(l.delta);
  ops::for_rows(l.tokens * l.top_k, ops::rows_per_task(l.tokens * l.top_k, l.width * 8), [&](int64_t i) {
    const int64_t token = i / l.top_k, choice = i % l.top_k, row = p.row_of[static_cast<size_t>(i)];
    if (row < 0) return;
    float* to = out.data_as<float>() + row * l.width;
    if (choice < choices)
      std::copy_n(from.p + (token * choices + choice) * l.width, l.width, to);
    else
      std::fill_n(to, l.width, 0.0f);
  });
  return out;
}
/// The activations of the rows that product 1 gave.
Tensor activate(const Layer& l, jit::CpuFn fn, const Permutation& p, const Tensor& h,
                const std::vector<float>& row_weight) {
  Tensor inter = Tensor::empty({p.rows(), l.inter}, inter_dtype(l));
  const Floats bias(l.first.bias), factor(l.first.column_factor), alpha(l.alpha), beta(l.beta), limit(l.limit),
      sb(l.situ_beta), sl(l.situ_linear);
  const std::vector<int32_t> column = columns_of(l.first, l.width);
  std::vector<float> row_factor, scale;
  const Tensor delta = l.delta ? deltas_of(l, p) : Tensor();
  if (l.row_factor || l.weights_on_input)
    for (size_t r = 0; r < p.token_of.size(); ++r)
      row_factor.push_back((l.row_factor ? number(*l.row_factor, p.token_of[r]) : 1.0f) *
                           (l.weights_on_input ? row_weight[r] : 1.0f));
  if (l.inter_factor)
    for (int64_t e = 0; e < l.experts; ++e) scale.push_back(number(*l.inter_factor, e));
  MoeActParams act{};
  act.x = h.data_as<float>(), act.y = inter.data(), act.rows = p.rows(), act.inter = l.inter,
  act.expert = p.expert_of.data();
  act.column = pointer(column);
  act.row_factor = row_factor.empty() ? nullptr : row_factor.data(), act.scale = scale.empty() ? nullptr : scale.data();
  act.delta = delta.defined() ? delta.data_as<float>() : nullptr;
  act.factor = factor.p, act.bias = bias.p, act.alpha = alpha.p, act.beta = beta.p, act.limit = limit.p,
  act.situ_beta = sb.p, act.situ_linear = sl.p;
  act.kind = l.kind, act.relu2_limit = number_or(l.relu2_limit, 0);
  act.rows_per_task = ops::rows_per_task(act.rows, l.width * 4 + l.inter * 2);
  ops::run_rows(fn, act, act.rows, act.rows_per_task);
  return inter;
}
void keep_activations(const Layer& l, const Tensor& inter) {
  const int64_t rows = l.inter_out.size(0), bytes = l.inter * inter.view().item_size();
  for (int64_t r = 0; r < rows; ++r) {
    char* to = l.inter_out.data_as<char>() + r * l.inter_out.stride(0) * l.inter_out.item_size();
    if (r < inter.size(0))
      std::memcpy(to, inter.data_as<char>() + r * bytes, static_cast<size_t>(bytes));
    else
      std::memset(to, 0, static_cast<size_t>(bytes));
  }
}
/// `out` from rows of product 2: weighted sums, or the rows themselves.
void finish(const Layer& l, jit::CpuFn fn, const Permutation& p, const Tensor& y) {
  const Floats bias(l.add_second_bias ? l.second.bias : std::nullopt), factor(l.second.column_factor);
  const std::vector<int32_t> column = columns_of(l.second, rows_of_second(l));
  std::vector<int32_t> rows = p.row_of;
  std::vector<float> weights = l.weights;
  const bool sums = l.out.defined();
  const TensorView& out = sums ? l.out : l.rows_out;
  if (l.weights_on_input || !sums) std::fill(weights.begin(), weights.end(), 1.0f);
  if (!sums)
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = static_cast<int64_t>(i) < p.rows() ? static_cast<int32_t>(i) : -1;
  MoeSumParams sum{};
  sum.y = y.data_as<float>(), sum.out = out.data(), sum.row = rows.data(), sum.expert = p.expert_of.data(),
  sum.column = pointer(column);
  sum.scales = weights.data(), sum.factor = factor.p, sum.bias = bias.p;
  sum.tokens = out.size(0), sum.top_k = sums ? l.top_k : 1, sum.hidden = l.hidden, sum.width = rows_of_second(l),
  sum.out_stride = out.stride(0);
  sum.rows_per_task = ops::rows_per_task(sum.tokens, l.hidden * (4 * sum.top_k + 2));
  ops::run_rows(fn, sum, sum.tokens, sum.rows_per_task);
  for (size_t i = 0; l.row_of.defined() && i < rows.size(); ++i)
    ref::put(l.row_of, {static_cast<int64_t>(i)}, p.row_of[i]);
}
}  // namespace

BlockQuantConfig quant_config(RowFormat f, DType t) {
  if (f != RowFormat::kNvfp4) return {t, 32, 1, 1, 0};
  return {t, 16, 0, 0, 0, ops::four_over_six(op::Value(-1)).config()};
}
Rows empty_rows(const Layer& l, const TensorView& x) {
  const int64_t rows = x.size(0), k = x.size(1);
  const bool fp4 = l.format == RowFormat::kNvfp4;
  Rows out;
  out.keep = Tensor::empty({rows, fp4 ? k / 2 : k}, fp4 ? DType::kU8 : DType::kF8E4M3, x.device());
  out.data = out.keep.view();
  out.scales = Tensor::empty({rows, k / scale_block(l.format)},
                             l.format == RowFormat::kFp8Blocks ? DType::kF32 : DType::kU8, x.device());
  return out;
}
gemm::GroupedWork product(const Layer& l, int which, const Rows& rows, const TensorView& out,
                          std::vector<gemm::Group> groups) {
  static constexpr float kOne = 1;
  const Weights& w = which == 1 ? l.first : l.second;
  const int64_t depth = depth_of(l, which) / (l.format == RowFormat::kNvfp4 ? 2 : 1);
  gemm::GroupedWork work{.a = rows.data.slice(1, 0, depth),
                         .b = w.data,
                         .out = out,
                         .a_fp4 = l.format == RowFormat::kNvfp4,
                         .b_fp4 = w.fp4,
                         .b_int4 = w.int4};
  work.b_panels = w.panels, work.b_block_k = w.block_k;
  work.b_sf = w.sf, work.b_grid = w.grid, work.grid_k = w.grid_k;
  if (l.format == RowFormat::kFp8Blocks)
    work.a_grid = {.p = rows.scales.data_as<float>(), .lines = 1, .line_stride = rows.scales.size(1), .k_stride = 1};
  else if (w.grid_k)
    work.a_grid = {.p = &kOne, .lines = std::numeric_limits<int32_t>::max()};
  if (l.format == RowFormat::kMxFp8 || l.format == RowFormat::kNvfp4)
    work.a_sf = {.bytes = rows.scales.data_as<uint8_t>(),
                 .columns = rows.scales.size(1),
                 .block = static_cast<int32_t>(scale_block(l.format)),
                 .layout = SfLayout::kLinear,
                 .e8m0 = l.format == RowFormat::kMxFp8};
  if (w.factor)
    for (gemm::Group& g : groups) g.alpha = number(*w.factor, g.weight);
  work.groups = std::move(groups);
  return work;
}

void run(const Layer& l, const Kernels& kernels) {
  const Permutation p = permute(l);
  const Tensor h = Tensor::empty({p.rows(), l.width}, DType::kF32),
               y = Tensor::empty({p.rows(), rows_of_second(l)}, DType::kF32);
  std::vector<float> row_weight(p.token_of.size());
  for (size_t i = 0; i < p.row_of.size(); ++i)
    if (p.row_of[i] >= 0) row_weight[static_cast<size_t>(p.row_of[i])] = l.weights[i];
  const Rows tokens = tokens_of(l, kernels.convert_x);
  Rows rows;
  rows.keep = gather(tokens.data, p.token_of);
  rows.data = rows.keep.view();
  if (tokens.scales.defined()) rows.scales = gather(tokens.scales.view(), p.token_of);
  gemm::run(product(l, 1, rows, h.view(), p.groups), kernels.first);
  const Tensor inter = activate(l, kernels.activate, p, h, row_weight);
  if (l.inter_out.defined()) keep_activations(l, inter);
  rows = has_scales(l.format) ? quantise(l, inter.view(), number_or(l.inter_encode, 1), kernels.convert_inter)
         : l.inter_cast       ? cast_rows(inter.view(), *l.inter_cast, kernels.convert_inter)
                              : Rows{inter.view(), {}, inter};
  gemm::run(product(l, 2, rows, y.view(), p.groups), kernels.second);
  finish(l, kernels.sum, p, y);
}

Kernels find_kernels(const Layer& l, ops::Lookup& lookup) {
  const bool f16 = l.x.dtype() == DType::kF16 && l.first.data.dtype() == DType::kF16;
  if (l.format == RowFormat::kPlain && l.x.dtype() != DType::kBF16 && !f16)
    lookup.unsupported(str("input is ", name(l.x.dtype()), " with weights of ", name(l.first.data.dtype()),
                           ", but the kernels multiply bfloat16, or float16 by float16"));
  const bool nvfp4 = l.format == RowFormat::kNvfp4;
  gemm::Operand rows{.format = GemmFormat::kE4M3, .step = 1};
  if (l.format == RowFormat::kPlain) rows.format = gemm::format_of(l.x.dtype());
  if (nvfp4) rows.format = GemmFormat::kFp4, rows.sf.block = static_cast<int32_t>(scale_block(l.format));
  const auto product = [&](const Weights& w, int64_t n, int64_t k) {
    const GemmFormat b = w.int4 ? GemmFormat::kInt4 : gemm::format_of(w.data.dtype());
    return gemm::find_kernels({.m = 9,
                               .n = n,
                               .k = k,
                               .a = rows,
                               .b = {.format = b, .step = 1, .sf = w.sf},
                               .packed = w.panels,
                               .grid_k = w.grid_k,
                               .grouped = true},
                              lookup);
  };
  const auto converter = [&](DType t, bool cast) -> jit::CpuFn {
    if (cast) return lookup.kernel<kCast>(MoeConfig{t});
    if (!has_scales(l.format)) return nullptr;
    return l.format == RowFormat::kFp8Blocks ? lookup.kernel<ops::kGroup8>(group_config(t))
                                             : lookup.kernel<ops::kBlockQuantize>(quant_config(l.format, t));
  };
  return {.first = product(l.first, l.width, l.hidden),
          .second = product(l.second, rows_of_second(l), depth_of(l, 2)),
          .activate = lookup.kernel<kActivate>(MoeConfig{inter_dtype(l)}),
          .sum = lookup.kernel<kSum>(MoeConfig{l.out.defined() ? l.out.dtype() : DType::kBF16}),
          .convert_x = is_narrow(l.x) && !l.x_cast ? nullptr : converter(l.x.dtype(), l.x_cast.has_value()),
          .convert_inter = converter(inter_dtype(l), l.inter_cast.has_value())};
}

op::Cost cost(const Layer& l) {
  std::vector<char> used(static_cast<size_t>(l.experts), 0);
  int64_t rows = 0;
  for (const int32_t e : l.ids)
    if (e >= 0) ++rows, used[static_cast<size_t>(e)] = 1;
  const double weights =
      static_cast<double>(std::count(used.begin(), used.end(), 1)) *
      static_cast<double>((l.first.data.nbytes() + l.second.data.nbytes()) / std::max<int64_t>(l.experts, 1));
  return {.bytes = weights + 2.0 * static_cast<double>(l.x.nbytes()),
          .flops = 2.0 * static_cast<double>(rows * (l.width * l.hidden + l.hidden * l.inter))};
}

}  // namespace flashinfer::moe
