// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/moe/cases.h"
#include "flashinfer/ops/moe/cuda/layer.h"
#include "flashinfer/ops/moe/fused_args.h"
#include "flashinfer/ops/moe/ops.h"
#include "flashinfer/ops/moe/sm90_order.h"

namespace flashinfer {
namespace moe {
TensorView as_bytes(const TensorView& t) {
  if (t.dtype() != DType::kI64 || t.rank() == 0) return t;
  std::vector<int64_t> shape(t.shape().begin(), t.shape().end()), strides(t.strides().begin(), t.strides().end());
  for (int64_t& s : strides) s *= 8;
  shape.back() *= 8, strides.back() = 1;
  return {t.data(), DType::kU8, shape, strides, t.device()};
}

namespace {
void set_weights(const Moe& a, Weights& w, const TensorView& data, int64_t n, int64_t k, Scale sf, Scale grid,
                 Scale factor) {
  const Mode mode = mode_of(a);
  w.data = data, w.fp4 = has_fp4_weights(mode), w.int4 = mode == Mode::kInt4, w.panels = has_panels(a);
  if (w.int4) w.grid_k = 128;  // values: routed
  if (const TensorView* t = scale_of(a, sf)) {
    const int64_t columns = k / weight_block(mode);
    const SfLayout layout = w.panels ? SfLayout::kPanels : weight_sf_layout(mode);
    w.sf = {.bytes = static_cast<const uint8_t*>(t->data()),
            .columns = columns,
            .batch = sf_bytes(layout, n, columns),
            .block = weight_block(mode),
            .layout = layout,
            .e8m0 = mode != Mode::kNvfp4};
  }
  if (const TensorView* t = scale_of(a, grid))
    w.grid = gemm::check_grid("quant_scales", *t, false, t->size(0), n, k, 128, 128), w.grid_k = 128;
  if (const TensorView* t = scale_of(a, factor)) w.factor = *t;
}
/// Scale factors of a packed input as linear rows.
Tensor linear_input_sf(const Moe& a, const Layer& l) {
  const int64_t columns = l.hidden / scale_block(l.format);
  Tensor out = Tensor::empty({l.tokens, columns}, DType::kU8);
  const SfLayout layout = a.swizzled_input_sf ? SfLayout::k128x4 : SfLayout::kLinear;
  for (int64_t t = 0; t < l.tokens; ++t)
    for (int64_t c = 0; c < columns; ++c)
      out.data_as<uint8_t>()[t * columns + c] =
          static_cast<const uint8_t*>(a.input_sf->data())[sf_offset(layout, t, c, columns)];
  return out;
}
/// The layer with the tokens' experts.
Layer with_choices(const Moe& a) {
  Layer l = layer_of(a);
  const TensorView& ids = a.token_selected_experts;
  for (int64_t t = 0; t < l.tokens; ++t)
    for (int64_t j = 0; j < l.top_k; ++j) {
      const int64_t at = t * ids.stride(0) + j * ids.stride(1);
      const int64_t e = (ids.dtype() == DType::kI32 ? ids.data_as<int32_t>()[at] : ids.data_as<int64_t>()[at]) -
                        a.ep_rank * l.experts;
      l.ids.push_back(e >= 0 && e < l.experts ? static_cast<int32_t>(e) : -1);
      l.weights.push_back(a.token_final_scales.data_as<float>()[t * a.token_final_scales.stride(0) +
                                                                j * a.token_final_scales.stride(1)]);
    }
  return l;
}
/// f32 scales [E, n, k / 128] of the experts that are used.
Tensor group_scales(const TensorView& t, std::span<const char> used, Weights& w) {
  Tensor out = Tensor::empty(t.shape(), DType::kF32);
  const int64_t n = t.size(1), columns = t.size(2), rows = t.size(0) * n;
  const auto convert = [&]<class T>(const T*) {
    ops::for_rows(rows, ops::rows_per_task(rows, columns * 6), [&](int64_t row) {
      if (!used[static_cast<size_t>(row / n)]) return;
      const T* from = t.data_as<T>() + row / n * t.stride(0) + row % n * t.stride(1);
      for (int64_t c = 0; c < columns; ++c)
        out.data_as<float>()[row * columns + c] = static_cast<float>(from[c * t.stride(2)]);
    });
  };
  if (t.dtype() == DType::kBF16)
    convert(static_cast<const bf16_t*>(nullptr));
  else if (t.dtype() == DType::kF16)
    convert(static_cast<const f16_t*>(nullptr));
  else
    convert(static_cast<const float*>(nullptr));
  w.grid = {.p = out.data_as<float>(), .lines = 1, .line_stride = columns, .k_stride = 1, .batch = n * columns};
  return out;
}
/// What one weight is read from instead of the call's tensors, of the experts that are used.
struct Kept {
  Tensor codes, scales, group_scales;
};
Kept keep_values(const Moe& a, Scale sf, Scale groups, int64_t n, int64_t k, std::span<const char> used, Weights& w) {
  Kept keep;
  const bool int4 = mode_of(a) == Mode::kInt4;
  const TensorView* scales = int4 ? scale_of(a, groups) : scale_of(a, sf);
  if (has_sm90_order(a)) {
    keep.codes = codes_in_plain_order(w.data, !int4, used), w.data = keep.codes.view();
    keep.scales =
        scales_in_plain_order(*scales, int4 ? DType::kBF16 : DType::kU8, n, k / (int4 ? 128 : 32), int4 ? 1 : 4, used);
    w.sf.bytes = keep.scales.data_as<uint8_t>();
  }
  if (int4) keep.group_scales = group_scales(has_sm90_order(a) ? keep.scales.view() : *scales, used, w);
  return keep;
}
/// The whole layer; `keep` holds what it points to.
Layer routed(const Moe& a, Kept (&keep)[2]) {
  Layer l = with_choices(a);
  if (a.input_sf) l.x_scales = linear_input_sf(a, l);
  if (mode_of(a) != Mode::kInt4 && !has_sm90_order(a)) return l;
  std::vector<char> used(static_cast<size_t>(l.experts), 0);
  for (const int32_t e : l.ids)
    if (e >= 0) used[static_cast<size_t>(e)] = 1;
  keep[0] = keep_values(a, Scale::kSf1, Scale::kGroups1, l.width, l.hidden, used, l.first);
  keep[1] = keep_values(a, Scale::kSf2, Scale::kGroups2, l.hidden, l.inter, used, l.second);
  return l;
}
op::Prepared prepare(const Moe& a) {
  ops::Lookup lookup;
  const Kernels kernels = find_kernels(layer_of(a), lookup);
  return lookup.prepared([&a, kernels] {
    Kept keep[2];
    run(routed(a, keep), kernels);
  });
}
op::Prepared prepare_gpu(const Moe& a, const op::Call& call) {
  Layer l = layer_of(a);
  const auto groups = [&](Scale s) {
    const TensorView& t = *scale_of(a, s);
    return BlockScales{.p = static_cast<const float*>(t.data()),
                       .line_stride = t.stride(1),
                       .k_stride = t.stride(2),
                       .batch = t.stride(0),
                       .dtype = t.dtype()};
  };
  const bool int4 = mode_of(a) == Mode::kInt4, sm90 = has_sm90_order(a);
  GpuCall gpu;
  if (sm90)
    gpu.sm90_scales[0] = *scale_of(a, int4 ? Scale::kGroups1 : Scale::kSf1),
    gpu.sm90_scales[1] = *scale_of(a, int4 ? Scale::kGroups2 : Scale::kSf2);
  else if (int4)
    l.first.grid = groups(Scale::kGroups1), l.second.grid = groups(Scale::kGroups2);
  if (a.input_sf)
    l.x_sf = {.bytes = static_cast<const uint8_t*>(a.input_sf->data()),
              .columns = l.hidden / scale_block(l.format),
              .block = static_cast<int32_t>(scale_block(l.format)),
              .layout = a.swizzled_input_sf ? SfLayout::k128x4 : SfLayout::kLinear,
              .e8m0 = l.format == RowFormat::kMxFp8};
  gpu.choices = {.from = numbers_of(a.token_selected_experts),
                 .from_weights = numbers_of(a.token_final_scales),
                 .offset = a.ep_rank * l.experts,
                 .given = static_cast<int32_t>(l.top_k),
                 .local = static_cast<int32_t>(l.experts)};
  return prepare_cuda(l, gpu, call.device);
}
void reference(const Moe& a) {
  Layer l = layer_of(a);
  set_experts_for_reference(a, l);
  reference(l, elements_of(a, l));
}

// ---- selection and tables ----
op::Cost cost_of(const Moe& a) {
  if (a.input.device() != kCpu) {  // ids of a GPU are not read: each entry another expert
    Layer l = layer_of(a);
    for (int64_t i = 0; i < l.tokens * l.top_k; ++i) l.ids.push_back(static_cast<int32_t>(i % l.experts));
    return cost(l);
  }
  return cost(with_choices(a));
}

op::Shape output_shape(const Moe& a) { return {2, {a.input.size(0), extents_of(a).hidden}}; }
inline constexpr DTypeSet kWeights = op::floats | DType::kF8E4M3 | DType::kU8 | DType::kF4E2M1x2;
constexpr op::Field fields[] = {
    op::in<&Moe::input>("input", "t columns", kWeights),
    op::in<&Moe::token_selected_experts>("token_selected_experts", "t k", op::indices),
    op::in<&Moe::token_final_scales>("token_final_scales", "t k", DType::kF32),
    op::in<&Moe::fc1_expert_weights>("fc1_expert_weights", nullptr, kWeights | DType::kI64),
    op::in<&Moe::fc2_expert_weights>("fc2_expert_weights", nullptr, kWeights | DType::kI64),
    op::attr<&Moe::output_dtype>("output_dtype", op::required),
    op::attr<&Moe::quant_scales>("quant_scales", op::required),
    op::in<&Moe::fc1_expert_biases>("fc1_expert_biases", nullptr, op::floats),
    op::in<&Moe::fc2_expert_biases>("fc2_expert_biases", nullptr, op::floats),
    op::in<&Moe::input_sf>("input_sf", nullptr),
    op::in<&Moe::swiglu_alpha>("swiglu_alpha", nullptr),
    op::in<&Moe::swiglu_beta>("swiglu_beta", nullptr),
    op::in<&Moe::swiglu_limit>("swiglu_limit", nullptr),
    op::attr<&Moe::tp_size>("tp_size"),
    op::attr<&Moe::tp_rank>("tp_rank"),
    op::attr<&Moe::ep_size>("ep_size"),
    op::attr<&Moe::ep_rank>("ep_rank"),
    op::attr<&Moe::cluster_size>("cluster_size"),
    op::attr<&Moe::cluster_rank>("cluster_rank"),
    op::out<&Moe::output>("output", nullptr, op::floats, op::dtype_from("output_dtype"), op::shape<output_shape>),
    op::attr<&Moe::enable_alltoall>("enable_alltoall"),
    op::attr<&Moe::use_deepseek_fp8_block_scale>("use_deepseek_fp8_block_scale"),
    op::attr<&Moe::use_w4_group_scaling>("use_w4_group_scaling"),
    op::attr<&Moe::use_mxfp8_act_scaling>("use_mxfp8_act_scaling"),
    op::attr<&Moe::min_latency_mode>("min_latency_mode"),
    op::attr<&Moe::use_packed_weights>("use_packed_weights"),
    op::attr<&Moe::use_wfp4afp8_humming>("use_wfp4afp8_humming"),
    op::attr<&Moe::tune_max_num_tokens>("tune_max_num_tokens"),
    op::attr<&Moe::enable_pdl>("enable_pdl"),
    op::attr<&Moe::activation_type>(
        "activation_type", op::literal("ActivationType.Swiglu"),
        op::enumeration("ActivationType: Gelu=0|Relu=1|Silu=2|Swiglu=3|Geglu=4|SwigluBias=5|Relu2=6|SwigluStep=7|"
                        "GegluTanh=8|Identity=9|Situ=10|InvalidType=11|ClampedRelu2=12")),
    op::attr<&Moe::swizzled_input_sf>("swizzled_input_sf"),
    op::attr<&Moe::use_fused_finalize>("use_fused_finalize"),
    op::attr<&Moe::profile_ids>("profile_ids"),
    op::scratch<&Moe::workspace_buffer>("workspace_buffer", nullptr),
    op::in<&Moe::clamped_relu2_limit>("clamped_relu2_limit", nullptr, op::keyword_only),
    op::in<&Moe::situ_beta>("situ_beta", nullptr),
    op::in<&Moe::situ_linear_beta>("situ_linear_beta", nullptr),
    op::attr<&Moe::backend>("backend", op::backends("cutlass:cuda|cake:cuda")),
};
constexpr op::Candidate candidates[] = {op::cuda<prepare_gpu>(), op::cpu<prepare>(), op::reference<reference>()};
}  // namespace

Layer extents_of(const Moe& a) {
  const Mode mode = mode_of(a);
  const TensorView fc1 = first_weights(a);
  Layer l;
  l.format = rows_of(mode), l.kind = static_cast<MoeActivation>(a.activation_type);
  l.tokens = a.input.size(0), l.top_k = a.token_selected_experts.size(1), l.experts = fc1.size(0);
  if (has_panels(a)) {
    l.hidden = a.input.size(1) * (is_bytes(a.input) ? 2 : 1);
    l.width = op::inferring() ? 0 : gemm::packed_columns("fc1_expert_weights", fc1, l.hidden);
  } else {
    l.hidden = fc1.size(2) * (has_four_bits(mode) ? 2 : 1), l.width = fc1.size(1);
  }
  l.inter = has_gate(l.kind) ? l.width / 2 : l.width;
  l.x = a.input;
  return l;
}
Layer layer_of(const Moe& a) {
  const Mode mode = mode_of(a);
  Layer l = extents_of(a);
  set_weights(a, l.first, first_weights(a), l.width, l.hidden, Scale::kSf1, Scale::kGrid1, Scale::kFactor1);
  set_weights(a, l.second, second_weights(a), l.hidden, l.inter, Scale::kSf2, Scale::kGrid2, Scale::kFactor2);
  l.first.bias = a.fc1_expert_biases, l.second.bias = a.fc2_expert_biases, l.add_second_bias = a.tp_rank == 0;
  if (mode == Mode::kNvfp4)
    l.x_encode = *scale_of(a, Scale::kInput), l.inter_encode = *scale_of(a, Scale::kInter);
  else if (const TensorView* t = scale_of(a, Scale::kInter))
    l.inter_factor = *t;
  if (mode == Mode::kInt4) {
    const auto numbers = [&](Scale s) {  // in the order of SM90, 16 bits are bfloat16 whatever their dtype says
      const TensorView& t = *scale_of(a, s);
      return has_sm90_order(a) && t.dtype() == DType::kF16
                 ? TensorView(t.data(), DType::kBF16, t.shape(), t.strides(), t.device())
                 : t;
    };
    l.x_cast = numbers(Scale::kCast1), l.inter_cast = numbers(Scale::kCast2);
  }
  l.alpha = a.swiglu_alpha, l.beta = a.swiglu_beta, l.limit = a.swiglu_limit, l.situ_beta = a.situ_beta,
  l.situ_linear = a.situ_linear_beta;
  l.relu2_limit = a.clamped_relu2_limit;
  if (a.output) l.out = *a.output;
  return l;
}
}  // namespace moe

namespace ops::moe {
constinit const op::Op fused_op = op::define<flashinfer::moe::Moe, flashinfer::moe::validate, flashinfer::moe::cost_of>(
    "cutlass_fused_moe", "flashinfer.fused_moe",
    "A mixture of experts: both GEMMs, the activation between them and the weighted sum.", flashinfer::moe::fields,
    flashinfer::moe::candidates, fused_cases);
}  // namespace ops::moe

Tensor cutlass_fused_moe(const CutlassFusedMoe& a) { return op::call(ops::moe::fused_op, a); }

}  // namespace flashinfer
