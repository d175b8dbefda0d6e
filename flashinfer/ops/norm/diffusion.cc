// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/norm/diffusion.h"

#include <algorithm>

#include "flashinfer/core/int_math.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/lookup.h"
#include "flashinfer/ops/norm/cases.h"
#include "flashinfer/ops/norm/cuda_launch.h"
#include "flashinfer/ops/norm/diffusion_ref.h"
#include "flashinfer/ops/norm/kernels/diffusion_params.h"
#include "flashinfer/ops/norm/kernels/gated_cuda_params.h"
#include "flashinfer/ops/norm/launch.h"
#include "flashinfer/ops/norm/ops.h"
#include "flashinfer/ops/quantization/block/launch.h"

namespace flashinfer {
namespace {
using GammaBeta = DitGateGammaBeta;
using GateScale = DitGateScaleShift;
using Scale = DitScaleShift;
inline constexpr jit::Kernel kDit{"flashinfer/ops/norm/kernels/cpu/diffusion.h", "flashinfer::cpu::dit_norm",
                                  "flashinfer::DitNormParams"};

// ---- the three LayerNorms ----
DitRows rows_of(const TensorView& t) {
  DitRows r{t.data(), {}};
  ops::norm::row_strides(t, r.stride);
  return r;
}
DitRows rows_of(const std::optional<TensorView>& t) { return t ? rows_of(*t) : DitRows{}; }
const float* vector_of(const std::optional<TensorView>& t) { return t ? t->data_as<float>() : nullptr; }
template <class B>
DitNormParams dit_params(const B& a, const TensorView& norm_out) {
  DitNormParams p{};
  p.input = rows_of(a.input), p.residual = rows_of(a.residual);
  if constexpr (requires { a.gate; }) p.gate = rows_of(a.gate), p.gate_bias = vector_of(a.gate_bias);
  if constexpr (requires { a.gamma; }) {
    p.gamma = a.gamma.template data_as<float>(), p.beta = a.beta.template data_as<float>();
  } else {
    p.scale = rows_of(a.scale), p.shift = rows_of(a.shift);
    p.scale_bias = vector_of(a.scale_bias), p.shift_bias = vector_of(a.shift_bias);
  }
  p.residual_out = rows_of(*a.residual_out), p.norm_out = rows_of(norm_out);
  p.input_factor = 1.0f;
  p.eps = static_cast<float>(a.epsilon);
  p.d = a.input.size(2), p.rows = p.d ? a.input.numel() / p.d : 0, p.inner = std::max<int64_t>(a.input.size(1), 1);
  p.rows_per_task = ops::rows_per_task(p.rows, 6 * p.d * a.input.item_size());
  return p;
}
/// With the input's factor, which is in host memory.
template <class B>
DitNormParams host_params(const B& a, const TensorView& norm_out) {
  DitNormParams p = dit_params(a, norm_out);
  if (a.input_global_scaling_factor) p.input_factor = *a.input_global_scaling_factor->template data_as<float>();
  return p;
}
template <class B>
bool quantises(const B& a) {
  return a.use_nvfp4 || a.use_mxfp8;
}
BlockQuantConfig quant_config(DType t, bool nvfp4) {
  return nvfp4 ? BlockQuantConfig{t, 16, 0, 0, 0} : BlockQuantConfig{t, 32, 1, 1, 0};
}
/// Quantises normed rows into norm_out, and their scales into sf_out or scratch memory.
template <class B>
void quantise_dit(const B& a, const TensorView& normed, jit::CpuFn fn) {
  const int64_t d = a.input.size(2), rows = a.input.size(0) * a.input.size(1), block = a.use_nvfp4 ? 16 : 32;
  const TensorView& out = *a.norm_out;
  const Tensor codes = out.is_contiguous() ? Tensor() : Tensor::empty(out.shape(), out.dtype());
  const Tensor unread = a.sf_out ? Tensor() : Tensor::empty({sf_bytes(SfLayout::k128x4, rows, d / block)}, DType::kU8);
  BlockQuantParams p{};
  p.x = normed.data(), p.codes = static_cast<uint8_t*>(codes.defined() ? codes.data() : out.data());
  p.scales = static_cast<uint8_t*>(a.sf_out ? a.sf_out->data() : unread.data());
  p.batches = 1, p.rows = rows, p.k = p.padded_k = d, p.row_stride = d;
  p.code_row_stride = a.use_nvfp4 ? d / 2 : d;
  p.layout = SfLayout::k128x4, p.padded_rows = sf_padded_rows(p.layout, rows);
  if (a.use_nvfp4) p.encode = a.global_scaling_factor->template data_as<float>();
  ops::run_block_quantize(fn, quant_config(normed.dtype(), a.use_nvfp4), p);
  if (codes.defined()) ops::copy_strided(codes.view(), out);
}
template <class B>
op::Prepared prepare_dit(const B& a) {
  const DitNormConfig config{a.input.dtype(), static_cast<unsigned char>(requires { a.gamma; })};
  if (!quantises(a)) {
    const DitNormParams p = host_params(a, *a.norm_out);
    return ops::prepare_rows<kDit>(config, p, p.rows, p.rows_per_task);
  }
  ops::Lookup lookup;
  const jit::CpuFn norm = lookup.kernel<kDit>(config),
                   quantise = lookup.kernel<ops::kBlockQuantize>(quant_config(a.input.dtype(), a.use_nvfp4));
  return lookup.prepared([&a, norm, quantise] {
    const Tensor normed = Tensor::empty(a.input.shape(), a.input.dtype());
    const DitNormParams p = host_params(a, normed.view());
    ops::run_rows(norm, p, p.rows, p.rows_per_task);
    quantise_dit(a, normed.view(), quantise);
  });
}

// ---- on a GPU ----
inline constexpr jit::Kernel kDitCuda{"flashinfer/ops/norm/kernels/cuda/gated.cuh", "flashinfer::cu::dit_norm",
                                      "flashinfer::DitNormCudaParams"};
DitNormCudaConfig dit_cuda_config(DType t, bool affine, const DitNormParams& p) {
  const int64_t size = cuda::norm_item_size(t);
  uint64_t bits = static_cast<uint64_t>(p.d * size);
  for (const DitRows* r : {&p.input, &p.residual, &p.gate, &p.scale, &p.shift, &p.residual_out, &p.norm_out})
    bits |= cuda::row_bits(r->data, r->stride, p.inner, size);
  for (const float* column : {p.gate_bias, p.scale_bias, p.shift_bias, p.gamma, p.beta})
    bits |= reinterpret_cast<uintptr_t>(column);
  const int group = cuda::norm_group(t, p.d);
  return {
      .dtype = t, .affine = affine, .aligned = bits % 16 == 0, .group = group, .threads = group <= 32 ? 128 : group};
}
template <class B>
op::Prepared prepare_dit_cuda(const B& a, const op::Call& call) {
  if (quantises(a))
    return op::Unsupported{
        "norm_out in block formats (use_nvfp4, use_mxfp8) has no kernel for GPUs: quantise it with nvfp4_quantize or "
        "mxfp8_quantize"};
  const DitNormCudaParams p{dit_params(a, *a.norm_out), vector_of(a.input_global_scaling_factor)};
  const DitNormCudaConfig c = dit_cuda_config(a.input.dtype(), requires { a.gamma; }, p.norm);
  NormParams rows{};
  rows.rows = p.norm.rows;
  return ops::prepare_cuda<kDitCuda>(c, p, call.device, p.norm.d ? cuda::norm_launch(c, rows, true) : ops::kNoBlocks);
}
void check_bias(const char* name, const std::optional<TensorView>& t, int64_t d) {
  FI_CHECK(!t || (t->numel() == d && t->size(-1) == d && t->rank() <= 2), ValueError, name, " is ", to_string(*t),
           ", but must be [", d, "] or [1, ", d, "] (from input.shape[2])");
}
template <class B>
void check_quantised(const B& a) {
  const int64_t d = a.input.size(2), block = a.use_nvfp4 ? 16 : 32;
  FI_CHECK(a.input.dtype() != DType::kF32, ValueError, "input is ", to_string(a.input),
           ", but quantised outputs need float16 or bfloat16");
  ops::check_columns(d, block);
  if (a.use_nvfp4) ops::global_scale("global_scaling_factor", *a.global_scaling_factor);
  const int64_t bytes = sf_bytes(SfLayout::k128x4, a.input.size(0) * a.input.size(1), d / block);
  FI_CHECK(!a.sf_out || (a.sf_out->nbytes() == bytes && a.sf_out->is_contiguous()), ValueError, "sf_out is ",
           to_string(*a.sf_out), ", but must be ", bytes, " bytes, contiguous (tiles of 128x4)");
}
// Of a norm_out that is given these two throw FlashInfer's words, which its callers match.
template <class B>
DType norm_dtype(const B& a) {
  const DType want = quantises(a) ? DType::kI32 : a.input.dtype();
  FI_CHECK(!a.norm_out || a.norm_out->dtype() == want, ValueError, "norm_out dtype is ", name(a.norm_out->dtype()),
           ", but must be ", name(want));
  return want;
}
template <class B>
op::Shape norm_shape(const B& a) {
  const int64_t d = a.input.size(2);
  const op::Shape want{3, {a.input.size(0), a.input.size(1), a.use_nvfp4 ? d / 8 : a.use_mxfp8 ? d / 4 : d}};
  if (a.norm_out)
    FI_CHECK(std::ranges::equal(a.norm_out->shape(), want.span()), ValueError, "norm_out shape mismatch: it is ",
             to_string(*a.norm_out), ", but must be ",
             to_string(TensorView(nullptr, a.norm_out->dtype(), want.span())));
  return want;
}
template <class B>
bool has_scales(const B& a) {
  return quantises(a) && a.sf_out.has_value();
}
template <class B>
void validate_dit(const B& a) {
  FI_CHECK(!a.use_nvfp4 || !a.use_mxfp8, ValueError, "Cannot use both use_nvfp4 and use_mxfp8");
  FI_CHECK(!a.use_nvfp4 || a.global_scaling_factor, ValueError,
           "global_scaling_factor is missing: use_nvfp4=True needs it");
  FI_CHECK(a.epsilon >= 0, ValueError, "epsilon is ", a.epsilon, ", but must be at least 0");
  const int64_t d = a.input.size(2);
  if (quantises(a)) check_quantised(a);
  if constexpr (requires { a.gate_bias; }) check_bias("gate_bias", a.gate_bias, d);
  if constexpr (requires { a.scale_bias; }) {
    check_bias("scale_bias", a.scale_bias, d);
    check_bias("shift_bias", a.shift_bias, d);
  }
  const auto& factor = a.input_global_scaling_factor;
  FI_CHECK(!factor || factor->numel() == 1, ValueError, "input_global_scaling_factor is ", to_string(*factor),
           ", but must be one float32");
}
template <class B>
op::Cost cost_dit(const B& a) {
  return {.bytes = 6.0 * static_cast<double>(a.input.nbytes()), .flops = 12.0 * static_cast<double>(a.input.numel())};
}

// ---- tables ----
template <class B>
constexpr auto gate_of() {
  return op::in<&B::gate>("gate", "b n d", op::same_as("input"), op::doc("factor of input"));
}
#define FI_BIAS(B, name) op::in<&B::name>(#name, nullptr, DType::kF32, op::contiguous)
#define FI_TAIL(B)                                                                                                \
  op::attr<&B::epsilon>("epsilon"), op::attr<&B::use_nvfp4>("use_nvfp4"), op::attr<&B::use_mxfp8>("use_mxfp8"),   \
      op::in<&B::global_scaling_factor>("global_scaling_factor", nullptr, DType::kF32),                           \
      op::in<&B::input_global_scaling_factor>("input_global_scaling_factor", nullptr, DType::kF32),               \
      op::out<&B::residual_out>("residual_out", "b n d", op::same_as("input"), op::may_alias("residual")),        \
      op::out<&B::norm_out>("norm_out", nullptr, op::shape<norm_shape<B>>, op::dtype<norm_dtype<B>>),             \
      op::out<&B::sf_out>("sf_out", nullptr, DTypeSet(DType::kU8) | DType::kF8E4M3 | DType::kI32, op::contiguous, \
                          op::when<has_scales<B>>, op::not_returned)
constexpr op::Field gamma_beta_fields[] = {
    op::in<&GammaBeta::input>("input", "b n d", op::floats),
    op::in<&GammaBeta::residual>("residual", "b n d", op::same_as("input")),
    gate_of<GammaBeta>(),
    op::in<&GammaBeta::gamma>("gamma", "d", DType::kF32),
    op::in<&GammaBeta::beta>("beta", "d", DType::kF32),
    op::in<&GammaBeta::gate_bias>("gate_bias", nullptr, DType::kF32, op::contiguous, op::keyword_only),
    FI_TAIL(GammaBeta),
};
constexpr op::Field gate_scale_fields[] = {
    op::in<&GateScale::input>("input", "b n d", op::floats),
    op::in<&GateScale::residual>("residual", "b n d", op::same_as("input")),
    gate_of<GateScale>(),
    op::in<&GateScale::scale>("scale", "b n d", op::same_as("input"), op::doc("1 + scale is the factor of the norm")),
    op::in<&GateScale::shift>("shift", "b n d", op::same_as("input")),
    op::in<&GateScale::gate_bias>("gate_bias", nullptr, DType::kF32, op::contiguous, op::keyword_only),
    FI_BIAS(GateScale, scale_bias),
    FI_BIAS(GateScale, shift_bias),
    FI_TAIL(GateScale),
};
constexpr op::Field scale_fields[] = {
    op::in<&Scale::input>("input", "b n d", op::floats),
    op::in<&Scale::scale>("scale", "b n d", op::same_as("input"), op::doc("1 + scale is the factor of the norm")),
    op::in<&Scale::shift>("shift", "b n d", op::same_as("input")),
    op::in<&Scale::residual>("residual", "b n d", op::same_as("input"), op::keyword_only),
    FI_BIAS(Scale, scale_bias),
    FI_BIAS(Scale, shift_bias),
    FI_TAIL(Scale),
};
#undef FI_BIAS
#undef FI_TAIL
template <class B>
constexpr op::Candidate dit_candidates[] = {op::cuda<prepare_dit_cuda<B>>(), op::cpu<prepare_dit<B>>(),
                                            op::reference<ref::dit_norm<B>>()};
}  // namespace

namespace ops::norm {
constinit const op::Op dit_gamma_op = op::define<GammaBeta, validate_dit<GammaBeta>, cost_dit<GammaBeta>>(
    "fused_dit_gate_residual_layernorm_gamma_beta", "flashinfer.norm",
    "residual_out = residual + input * (gate + gate_bias); norm_out = its LayerNorm * gamma + beta.", gamma_beta_fields,
    dit_candidates<GammaBeta>, dit_gamma_cases);
constinit const op::Op dit_gate_op = op::define<GateScale, validate_dit<GateScale>, cost_dit<GateScale>>(
    "fused_dit_gate_residual_layernorm_scale_shift", "flashinfer.norm",
    "residual_out = residual + input * (gate + gate_bias); norm_out = its LayerNorm * (1 + scale + scale_bias) + shift "
    "+ shift_bias.",
    gate_scale_fields, dit_candidates<GateScale>, dit_gate_cases);
constinit const op::Op dit_scale_op = op::define<Scale, validate_dit<Scale>, cost_dit<Scale>>(
    "fused_dit_residual_layernorm_scale_shift", "flashinfer.norm",
    "residual_out = residual + input; norm_out = its LayerNorm * (1 + scale + scale_bias) + shift + shift_bias.",
    scale_fields, dit_candidates<Scale>, dit_scale_cases);
}  // namespace ops::norm

std::pair<Tensor, Tensor> fused_dit_gate_residual_layernorm_gamma_beta(const GammaBeta& a) {
  return op::call(ops::norm::dit_gamma_op, a);
}
std::pair<Tensor, Tensor> fused_dit_gate_residual_layernorm_scale_shift(const GateScale& a) {
  return op::call(ops::norm::dit_gate_op, a);
}
std::pair<Tensor, Tensor> fused_dit_residual_layernorm_scale_shift(const Scale& a) {
  return op::call(ops::norm::dit_scale_op, a);
}

}  // namespace flashinfer
