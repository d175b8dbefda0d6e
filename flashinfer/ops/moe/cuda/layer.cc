// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/cuda/layer.h"

#include <memory>

#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/cuda_steps.h"
#include "flashinfer/ops/gemm/cuda/product.h"
#include "flashinfer/ops/quantization/block/cuda.h"

namespace flashinfer::moe {
namespace {
inline constexpr jit::Kernel kRoute{"flashinfer/ops/moe/kernels/cuda/routing.cuh", "flashinfer::cu::moe_route",
                                    "flashinfer::MoeRouteParams"};
inline constexpr jit::Kernel kChoices{"flashinfer/ops/moe/kernels/cuda/permute.cuh", "flashinfer::cu::moe_choices",
                                      "flashinfer::MoeChoicesParams"};
inline constexpr jit::Kernel kActivateCuda{"flashinfer/ops/moe/kernels/cuda/layer.cuh", "flashinfer::cu::moe_activate",
                                           "flashinfer::MoeActCudaParams"};
inline constexpr jit::Kernel kCastCuda{"flashinfer/ops/moe/kernels/cuda/layer.cuh", "flashinfer::cu::moe_cast",
                                       "flashinfer::MoeCastCudaParams"};
inline constexpr jit::Kernel kSumCuda{"flashinfer/ops/moe/kernels/cuda/layer.cuh", "flashinfer::cu::moe_sum",
                                      "flashinfer::MoeSumCudaParams"};
inline constexpr jit::Kernel kRestoreCuda{"flashinfer/ops/moe/kernels/cuda/sm90_order.cuh",
                                          "flashinfer::cu::moe_restore", "flashinfer::MoeRestoreParams"};
using Steps = ops::CudaSteps;
constexpr int kThreads = 256;

cuda::Launch launch_of(int threads, int64_t x, int64_t y = 1, int shared = 0) {
  return {.grid = {cuda::grid_size(x), cuda::grid_size(y), 1},
          .block = {static_cast<unsigned>(threads), 1, 1},
          .shared_bytes = static_cast<unsigned>(shared)};
}

/// A thread for each column of a row, or for kMoeElements of them where there are enough rows to fill a GPU.
cuda::Launch launch_of_rows(int64_t rows, int64_t columns) {
  constexpr int64_t kMany = 2048;  // blocks: two rounds of 132 multiprocessors with eight each
  const int64_t across = ceil_div(columns, int64_t{kThreads});
  return launch_of(kThreads, rows, rows * across < kMany ? across : ceil_div(across, int64_t{kMoeElements}));
}

template <const jit::Kernel& K, class Params>
void add(Steps& steps, const Params& params, const cuda::Launch& launch) {
  steps.add([&] {
    return ops::prepare_cuda<K>(MoeCudaConfig{static_cast<int>(launch.block[0])}, params, steps.device(), launch);
  });
}

/// Rows by expert, on the device.
struct Sorted {
  TensorView offsets, row_of, entry_of, expert_of, token_of;
  const float* weights;
  int64_t entries;
};
Sorted sort(Steps& steps, const Layer& l, const GpuCall& call) {
  const int64_t n = l.tokens * l.top_k;
  MoeChoicesParams c = call.choices;
  if (call.route) {
    MoeRouteParams r = *call.route;
    const TensorView ids = steps.scratch({r.tokens, r.top_k}, DType::kI32),
                     weights = steps.scratch({r.tokens, r.top_k}, DType::kF32);
    r.ids = results_of(ids), r.weights = results_of(weights);
    steps.add([&] { return prepare_route(r, steps.device()); });
    c.from = numbers_of(ids), c.from_weights = numbers_of(weights);
  }
  const TensorView ids = steps.scratch({n}, DType::kI32), weights = steps.scratch({n}, DType::kF32);
  c.ids = ids.data_as<int32_t>(), c.weights = weights.data_as<float>();
  c.tokens = static_cast<int32_t>(l.tokens), c.choices = static_cast<int32_t>(l.top_k);
  add<kChoices>(steps, c, launch_of(kThreads, ceil_div(n, int64_t{kThreads})));
  Sorted s{.offsets = steps.scratch({l.experts + 1}, DType::kI32),
           .row_of = steps.scratch({n}, DType::kI32),
           .entry_of = steps.scratch({n}, DType::kI32),
           .expert_of = steps.scratch({n}, DType::kI32),
           .token_of = steps.scratch({n}, DType::kI32),
           .weights = c.weights,
           .entries = n};
  const MoePermuteParams p{.ids = c.ids,
                           .offsets = s.offsets.data_as<int32_t>(),
                           .row_of = s.row_of.data_as<int32_t>(),
                           .entry_of = s.entry_of.data_as<int32_t>(),
                           .expert_of = s.expert_of.data_as<int32_t>(),
                           .row_out = l.row_of.defined() ? results_of(l.row_of) : MoeResults{},
                           .entries = static_cast<int32_t>(n),
                           .experts = static_cast<int32_t>(l.experts),
                           .choices = static_cast<int32_t>(l.top_k),
                           .token_of = s.token_of.data_as<int32_t>()};
  add<kPermuteCuda>(steps, p, permute_launch(l.experts));
  return s;
}

/// Rows in the format of a product.
struct GpuRows {
  TensorView data;
  ScaleFactors sf{};
  BlockScales grid{};
};
GpuRows quantise(Steps& steps, const Layer& l, const TensorView& x, const std::optional<TensorView>& encode) {
  Rows r = empty_rows(l, x);
  steps.hold(r.keep), steps.hold(r.scales);
  GpuRows out{.data = r.data};
  if (l.format == RowFormat::kFp8Blocks) {
    out.grid = {.p = r.scales.data_as<float>(), .lines = 1, .line_stride = r.scales.size(1), .k_stride = 1};
    steps.add([&] {
      return ops::prepare_group8_cuda(x, r.data, r.scales.view(), scale_block(l.format), 1e-4, steps.device());
    });
    return out;
  }
  out.sf = {.bytes = r.scales.data_as<uint8_t>(),
            .columns = r.scales.size(1),
            .block = static_cast<int32_t>(scale_block(l.format)),
            .layout = SfLayout::kLinear,
            .e8m0 = l.format == RowFormat::kMxFp8};
  BlockQuantCudaParams p{};
  p.x = x.data(), p.codes = static_cast<uint8_t*>(r.keep.data()), p.scales = r.scales.data_as<uint8_t>();
  ops::set_block_rows(p, *ops::row_axes(x), x.size(1), x.size(1), scale_block(l.format), SfLayout::kLinear);
  p.code_row_stride = r.keep.size(1);
  p.encode = ops::factor_of(encode);
  steps.add([&] {
    return ops::prepare_block_quantize_cuda(quant_config(l.format, x.dtype()), BlockInput::kPlain, p, steps.device(),
                                            false);
  });
  return out;
}
GpuRows tokens_of(Steps& steps, const Layer& l) {
  if (l.x_cast) {
    const TensorView codes = steps.scratch({l.tokens, l.x.size(1)}, DType::kF8E4M3);
    const MoeCastCudaParams p{.x = numbers_of(l.x),
                              .scale = row_of_numbers(*l.x_cast),
                              .y = static_cast<e4m3_t*>(codes.data()),
                              .rows = static_cast<int32_t>(l.tokens),
                              .k = static_cast<int32_t>(l.x.size(1))};
    add<kCastCuda>(steps, p, launch_of(kThreads, l.tokens, ceil_div(l.x.size(1), int64_t{kThreads})));
    return {.data = codes};
  }
  if (is_narrow(l.x) || !has_scales(l.format)) return {.data = l.x, .sf = l.x_sf, .grid = l.x_grid};
  return quantise(steps, l, l.x, l.x_encode);
}

/// Weights in the order of SM90, of the experts that have rows, in plain order.
Weights in_plain_order(Steps& steps, const Weights& w, const TensorView& scales, const Sorted& s) {
  const int64_t n = w.data.size(1), k = 2 * w.data.size(2), rows = w.data.size(0) * n, groups = k / 128,
                line = w.int4 ? 2 : 4;
  const TensorView codes = steps.scratch({w.data.size(0), n, k / 2}, DType::kU8),
                   plain = steps.scratch({rows * groups * line / 2}, DType::kU16);
  const MoeRestoreParams p{.codes = static_cast<const uint8_t*>(w.data.data()),
                           .codes_to = codes.data_as<uint8_t>(),
                           .scales = static_cast<const uint16_t*>(scales.data()),
                           .scales_to = plain.data_as<uint16_t>(),
                           .offsets = s.offsets.data_as<int32_t>(),
                           .n = n,
                           .words = static_cast<int32_t>(k / 4),
                           .groups = static_cast<int32_t>(groups),
                           .line = static_cast<int32_t>(line),
                           .fp4 = !w.int4};
  add<kRestoreCuda>(steps, p, launch_of(kThreads, rows / 16));
  Weights restored = w;
  restored.data = codes;
  if (w.int4)
    restored.grid = {.p = static_cast<const float*>(plain.data()),
                     .line_stride = groups,
                     .k_stride = 1,
                     .batch = n * groups,
                     .dtype = DType::kBF16};
  else
    restored.sf.bytes = static_cast<const uint8_t*>(plain.data());
  return restored;
}

void multiply(Steps& steps, const Layer& l, const GpuCall& call, int which, const GpuRows& rows, const TensorView& out,
              const Sorted& s) {
  const Weights& given = which == 1 ? l.first : l.second;
  const std::optional<TensorView>& sm90 = call.sm90_scales[which - 1];
  const Weights w = sm90 ? in_plain_order(steps, given, *sm90, s) : given;
  const bool fp4 = l.format == RowFormat::kNvfp4;
  const gemm::GroupedWork work{.a = rows.data,
                               .b = w.data,
                               .out = out,
                               .a_fp4 = fp4,
                               .b_fp4 = w.fp4,
                               .b_int4 = w.int4,
                               .b_panels = w.panels,
                               .b_block_k = w.block_k,
                               .a_sf = rows.sf,
                               .b_sf = w.sf,
                               .a_grid = rows.grid,
                               .b_grid = w.grid,
                               .grid_k = w.grid_k};
  gemm::Product p = work.product();
  p.k = depth_of(l, which);
  if (rows.data.dtype() == DType::kF16) p.split_k = p.k;
  gemm::GroupIndex index{.kind = GemmGroups::kOffsets, .index = s.offsets, .groups = l.experts, .matrices = l.experts};
  if (which == 1) index.gather = s.token_of, index.lines = l.tokens;
  if (w.factor && w.factor->numel() == 1)
    p.alpha_a = w.factor->data_as<float>();
  else
    index.alpha = w.factor;
  steps.add([&] { return gemm::prepare_cuda(p, index, steps.device()); });
}

GpuRows activate(Steps& steps, const Layer& l, const GpuCall& call, const TensorView& h, const Sorted& s) {
  const bool cast = l.inter_cast.has_value();
  const TensorView y = steps.scratch({s.entries, l.inter}, cast ? DType::kF8E4M3 : inter_dtype(l));
  MoeActCudaParams p{.x = h.data_as<float>(),
                     .y = results_of(y),
                     .offsets = s.offsets.data_as<int32_t>(),
                     .entry_of = s.entry_of.data_as<int32_t>(),
                     .expert_of = s.expert_of.data_as<int32_t>(),
                     .entry_weights = l.weights_on_input ? s.weights : nullptr,
                     .token_factor = numbers_of(l.row_factor),
                     .factor = numbers_of(l.first.column_factor),
                     .bias = numbers_of(l.first.bias),
                     .alpha = numbers_of(l.alpha),
                     .beta = numbers_of(l.beta),
                     .limit = numbers_of(l.limit),
                     .limit_factor = factors_of(call.limit_factor),
                     .situ_beta = numbers_of(l.situ_beta),
                     .situ_linear = numbers_of(l.situ_linear),
                     .scale = factors_of(l.inter_factor),
                     .scale_divisor = factors_of(call.inter_divisor),
                     .rounded = inter_dtype(l),
                     .columns = {static_cast<int32_t>(l.width), l.first.shuffle, l.first.interleaved},
                     .rows = static_cast<int32_t>(s.entries),
                     .inter = static_cast<int32_t>(l.inter),
                     .width = static_cast<int32_t>(l.width),
                     .experts = static_cast<int32_t>(l.experts),
                     .choices = static_cast<int32_t>(l.top_k),
                     .kind = l.kind,
                     .relu2_limit = factors_of(l.relu2_limit),
                     .situ_otherwise = {call.situ_beta, call.situ_linear}};
  if (l.inter_out.defined()) p.kept = results_of(l.inter_out), p.kept_rows = static_cast<int32_t>(l.inter_out.size(0));
  if (l.delta) {
    const TensorView& d = *l.delta;
    p.delta_choices = static_cast<int32_t>(d.size(1));
    p.delta = {.p = d.data(), .row = d.stride(1), .column = d.stride(2), .dtype = d.dtype()};
  }
  if (cast) p.cast = row_of_numbers(*l.inter_cast);
  add<kActivateCuda>(steps, p, launch_of_rows(s.entries, l.inter));
  if (has_scales(l.format)) return quantise(steps, l, y, l.inter_encode);
  return {.data = y};
}

void finish(Steps& steps, const Layer& l, const TensorView& y, const Sorted& s) {
  const bool sums = l.out.defined();
  const TensorView& out = sums ? l.out : l.rows_out;
  const MoeSumCudaParams p{.y = y.data_as<float>(),
                           .out = results_of(out),
                           .row_of = sums ? s.row_of.data_as<int32_t>() : nullptr,
                           .expert_of = s.expert_of.data_as<int32_t>(),
                           .offsets = s.offsets.data_as<int32_t>(),
                           .weights = l.weights_on_input || !sums ? nullptr : s.weights,
                           .factor = numbers_of(l.second.column_factor),
                           .bias = l.add_second_bias ? numbers_of(l.second.bias) : MoeNumbers{},
                           .columns = {static_cast<int32_t>(rows_of_second(l)), l.second.shuffle, l.second.interleaved},
                           .tokens = static_cast<int32_t>(out.size(0)),
                           .choices = static_cast<int32_t>(l.top_k),
                           .hidden = static_cast<int32_t>(l.hidden),
                           .width = static_cast<int32_t>(rows_of_second(l)),
                           .experts = static_cast<int32_t>(l.experts)};
  add<kSumCuda>(steps, p, launch_of_rows(out.size(0), l.hidden));
}

/// Why the kernels do not take it.
std::string refusal(const Layer& l, const GpuCall& call) {
  for (const Weights* w : {&l.first, &l.second})
    if (call.sm90_scales[0] && reinterpret_cast<uintptr_t>(w->data.data()) % 16 != 0)
      return "weights in the order of SM90 must begin at 16 bytes";
  if (l.first.panels) return "the weights are packed, but kernels for GPUs read unpacked ones";
  if (l.delta && l.delta->stride(0) != l.delta->size(1) * l.delta->stride(1))
    return "the delta of product 1 is strided";
  if (l.format == RowFormat::kPlain && !is_narrow(l.x) && l.x.dtype() != DType::kBF16 && l.x.dtype() != DType::kF16)
    return str("rows are ", name(l.x.dtype()), ", but kernels for GPUs multiply 16 bits and less");
  if (l.tokens * l.top_k >= int64_t{1} << 30) return str("there are ", l.tokens * l.top_k, " rows, 2^30 or more");
  return {};
}
}  // namespace

cuda::Launch permute_launch(int64_t experts) { return launch_of(kThreads, experts + 1, 1, kThreads / 32 * 4); }

MoeNumbers numbers_of(const TensorView& t) {
  return {.p = t.data(),
          .row = t.rank() >= 1 ? t.stride(0) : 0,
          .column = t.rank() >= 2 ? t.stride(1) : 0,
          .dtype = t.dtype()};
}
MoeNumbers row_of_numbers(const TensorView& t) {
  return {.p = t.data(), .column = t.numel() > 1 ? t.stride(t.rank() - 1) : 0, .dtype = t.dtype()};
}
MoeNumbers factors_of(const std::optional<TensorView>& t) {
  if (!t) return {};
  return {.p = t->data(), .row = t->numel() > 1 ? t->stride(0) : 0, .dtype = t->dtype()};
}
MoeResults results_of(const TensorView& t) {
  return {.p = t.data(),
          .row = t.rank() >= 1 ? t.stride(0) : 0,
          .column = t.rank() >= 2 ? t.stride(1) : 0,
          .dtype = t.dtype()};
}

op::Prepared prepare_route(const MoeRouteParams& p, Device device) {
  if (p.experts > kMostRoutedExperts)
    return op::Unsupported{str("there are ", p.experts, " experts, but a GPU routes to at most ", kMostRoutedExperts)};
  constexpr int kWarps = 4;
  const int words = kWarps * moe_route_words(p.experts, p.groups, p.top_k);
  return ops::prepare_cuda<kRoute>(MoeCudaConfig{32 * kWarps}, p, device,
                                   launch_of(32 * kWarps, ceil_div(p.tokens, kWarps), 1, words * 4));
}

op::Prepared prepare_activation(MoeActivation kind, const TensorView& x, const TensorView& y, Device device) {
  const MoeActCudaParams p{.x = x.data_as<float>(),
                           .y = results_of(y),
                           .columns = {.n = static_cast<int32_t>(x.size(1))},
                           .rows = static_cast<int32_t>(y.size(0)),
                           .inter = static_cast<int32_t>(y.size(1)),
                           .width = static_cast<int32_t>(x.size(1)),
                           .choices = 1,
                           .kind = kind};
  return ops::prepare_cuda<kActivateCuda>(MoeCudaConfig{kThreads}, p, device, launch_of_rows(y.size(0), y.size(1)));
}

op::Prepared prepare_cuda(const Layer& l, const GpuCall& call, Device device) {
  if (std::string why = refusal(l, call); !why.empty()) return op::Unsupported{std::move(why)};
  if (l.tokens == 0) return [] {};
  const auto steps = std::make_shared<Steps>(device);
  const Sorted s = sort(*steps, l, call);
  const TensorView h = steps->scratch({s.entries, l.width}, DType::kF32),
                   y = steps->scratch({s.entries, rows_of_second(l)}, DType::kF32);
  multiply(*steps, l, call, 1, tokens_of(*steps, l), h, s);
  multiply(*steps, l, call, 2, activate(*steps, l, call, h, s), y, s);
  finish(*steps, l, y, s);
  return Steps::prepared(steps);
}

}  // namespace flashinfer::moe
