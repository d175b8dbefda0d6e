// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/norm/quant.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/layout_error.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/nvfp4_ref.h"
#include "flashinfer/ops/norm/cases.h"
#include "flashinfer/ops/norm/kernels/quant_params.h"
#include "flashinfer/ops/norm/launch.h"
#include "flashinfer/ops/norm/ops.h"
#include "flashinfer/ops/norm/quant_cuda.h"
#include "flashinfer/ops/norm/ref.h"

namespace flashinfer {
namespace {
namespace family = ops::norm;

inline constexpr jit::Kernel kRms{"flashinfer/ops/norm/kernels/cpu/quant.h", "flashinfer::cpu::rmsnorm_quant",
                                  "flashinfer::NormQuantParams"};
inline constexpr jit::Kernel kLayer{"flashinfer/ops/norm/kernels/cpu/quant.h", "flashinfer::cpu::layernorm_quant",
                                    "flashinfer::NormQuantParams"};
inline constexpr jit::Kernel kBlocks{"flashinfer/ops/norm/kernels/cpu/quant.h", "flashinfer::cpu::rmsnorm_fp8_blocks",
                                     "flashinfer::NormQuantParams"};

inline constexpr jit::Kernel kLayerCuda{"flashinfer/ops/norm/kernels/cuda/quant.cuh", "flashinfer::cu::layernorm_quant",
                                        "flashinfer::NormQuantCudaParams"};
inline constexpr jit::Kernel kBlocksCuda{"flashinfer/ops/norm/kernels/cuda/quant.cuh",
                                         "flashinfer::cu::rmsnorm_fp8_blocks", "flashinfer::NormQuantCudaParams"};

using Rms = RmsNormQuant;
using Add = FusedAddRmsNormQuant;
using Layer = LayerNormQuant;
using Blocks = FusedAddRmsNormFp8BlockQuant;
template <class B>
constexpr const char* kName = "";
template <>
constexpr const char* kName<Rms> = "rmsnorm_quant";
template <>
constexpr const char* kName<Add> = "fused_add_rmsnorm_quant";
template <>
constexpr const char* kName<Layer> = "layernorm_quant";
template <>
constexpr const char* kName<Blocks> = "fused_add_rmsnorm_fp8_block_quant";

// ---- checks ----
float scale_of(const op::ScalarOrTensor& s) {
  return s.tensor() ? s.tensor()->data_as<float>()[0] : static_cast<float>(s.number());
}

void check_scale(const op::ScalarOrTensor& s) {
  if (const TensorView* t = s.tensor()) {
    FI_CHECK(t->numel() == 1 && t->rank() <= 1, ValueError, "scale must be a scalar tensor or of shape [1], but is ",
             to_string(*t));
    FI_CHECK(t->dtype() == DType::kF32, ValueError, "scale.dtype is ", name(t->dtype()), ", but must be float32");
    if (t->device() != kCpu) return;
  }
  const float v = scale_of(s);
  FI_CHECK(v != 0 && std::isfinite(v), ValueError, "scale is ", v, ", but must be a finite number other than 0");
}
void check_eps(double eps) { FI_CHECK(eps >= 0, ValueError, "eps is ", eps, ", but must be at least 0"); }
void check_weight(const TensorView& weight, const TensorView& input) {
  FI_CHECK(weight.dtype() == input.dtype() || weight.dtype() == DType::kF32, ValueError, "weight.dtype is ",
           name(weight.dtype()), ", but must be ", name(input.dtype()), " (as input) or float32");
}
template <class B>
void validate_rms(const B& a) {
  check_eps(a.eps);
  check_weight(a.weight, a.input);
  check_scale(a.scale);
}
void validate_layer(const Layer& a) {
  FI_CHECK(a.input.dtype() == DType::kBF16, RuntimeError, "input must be bfloat16, but is ", name(a.input.dtype()));
  FI_CHECK(a.input.is_contiguous(), LayoutErrorOf<RuntimeError>, "input must be contiguous, but is ",
           to_string(a.input));
  check_eps(a.eps);
  check_scale(a.scale);
}
void validate_blocks(const Blocks& a) {
  check_eps(a.eps);
  check_weight(a.weight, a.input);
  const int64_t d = a.input.size(1), n = a.input.size(0), step = d <= 8192 ? 256 : 512;
  FI_CHECK(d % step == 0 && d <= 16384, ValueError, "input.shape[1] is ", d,
           ", but must be a multiple of 256 up to 8192 or a multiple of 512 up to 16384");
  FI_CHECK(a.block_scale.size(0) == d / 128 && a.block_scale.size(1) == round_up(n, 4), ValueError, "block_scale is ",
           to_string(a.block_scale), ", but must be [", d / 128, ", ", round_up(n, 4),
           "] (d / 128, rows rounded up to 4)");
}

// ---- launches ----
NormQuantConfig config_of(const Rms& a) { return {a.input.dtype(), a.weight.dtype(), a.out.dtype(), 0, 0}; }
NormQuantConfig config_of(const Add& a) { return {a.input.dtype(), a.weight.dtype(), a.out.dtype(), 1, 0}; }
NormQuantConfig config_of(const Layer& a) { return {a.input.dtype(), DType::kF32, a.out.dtype(), 0, 0}; }
NormQuantConfig config_of(const Blocks& a) { return {a.input.dtype(), a.weight.dtype(), DType::kF8E4M3, 1, 0}; }

template <const jit::Kernel& K, class B>
op::Prepared prepare(const B& a, const NormQuantParams& q) {
  return ops::prepare_rows<K>(config_of(a), q, q.norm.rows, q.norm.rows_per_task);
}
template <class B>
NormQuantParams rms_params(const B& a) {
  NormQuantParams q{.norm = ops::norm::params_of(a.input, a.out, a.eps, 2)};
  q.norm.weight = a.weight.data();
  if constexpr (std::is_same_v<B, Add>) {
    q.norm.residual = a.residual.data();
    ops::norm::row_strides(a.residual, q.norm.residual_stride);
  }
  return q;
}
template <class B>
op::Prepared prepare_rms(const B& a) {
  NormQuantParams q = rms_params(a);
  q.scale = scale_of(a.scale);
  return prepare<kRms>(a, q);
}
NormQuantParams layer_params(const Layer& a) {
  NormQuantParams q{.norm = ops::norm::params_of(a.input, a.out, a.eps, 2)};
  q.norm.weight = a.gemma.data();
  q.norm.beta = a.beta.data();
  return q;
}
op::Prepared prepare_layer(const Layer& a) {
  NormQuantParams q = layer_params(a);
  q.scale = scale_of(a.scale);
  return prepare<kLayer>(a, q);
}
NormQuantParams block_params(const Blocks& a) {
  NormQuantParams q{.norm = ops::norm::params_of(a.input, a.out, a.eps, 4)};
  q.norm.weight = a.weight.data();
  q.norm.residual = a.residual.data();
  ops::norm::row_strides(a.residual, q.norm.residual_stride);
  q.block_scale = a.block_scale.data_as<float>();
  q.block_scale_stride = a.block_scale.stride(0);
  q.normed = a.normed_out.data();
  ops::norm::row_strides(a.normed_out, q.normed_stride);
  return q;
}
op::Prepared prepare_blocks(const Blocks& a) { return prepare<kBlocks>(a, block_params(a)); }

// ---- on a GPU ----
template <class B>
NormQuantCudaConfig cuda_config(const B& a, int block = 0) {
  const NormQuantConfig c = config_of(a);
  return {.dtype = c.dtype,
          .weight = c.weight,
          .out = c.out,
          .fused_add = c.fused_add,
          .silu = c.silu,
          .block = static_cast<unsigned char>(block)};
}
template <class B>
op::Prepared prepare_rms_cuda(const B& a, const op::Call& call) {
  return ops::norm::prepare_quant_cuda<ops::norm::kRmsQuantCuda>(
      cuda_config(a), ops::norm::quant_cuda_params(rms_params(a), ops::norm::scale_source(a.scale)), 8, call.device,
      ops::wants_pdl(a.enable_pdl));
}
op::Prepared prepare_layer_cuda(const Layer& a, const op::Call& call) {
  return ops::norm::prepare_quant_cuda<kLayerCuda>(
      cuda_config(a), ops::norm::quant_cuda_params(layer_params(a), ops::norm::scale_source(a.scale)), 8, call.device,
      true);
}
op::Prepared prepare_blocks_cuda(const Blocks& a, const op::Call& call) {
  return ops::norm::prepare_quant_cuda<kBlocksCuda>(
      cuda_config(a, 128), ops::norm::quant_cuda_params(block_params(a), {.value = 1}), 8, call.device, true);
}

// ---- references ----
/// Saturating cast, NaN to NaN.
void put_fp8(const TensorView& out, int64_t r, int64_t i, double v) {
  const double most = out.dtype() == DType::kF8E4M3 ? 448 : 57344;
  ref::put(out, {r, i}, std::isnan(v) ? v : std::clamp(v, -most, most));
}
void reference_rms(const Rms& a) {
  const Tensor y = Tensor::empty(a.input.shape(), DType::kF64);
  ref::rmsnorm(a.input, a.weight, a.eps, 0, y.view());
  for (int64_t r = 0; r < a.input.size(0); ++r)
    for (int64_t i = 0; i < a.input.size(1); ++i) put_fp8(a.out, r, i, ref::at(y.view(), {r, i}) / scale_of(a.scale));
}
/// input + residual, never rounded; residual gets it rounded.
Tensor added(const TensorView& input, const TensorView& residual) {
  const Tensor s = Tensor::empty(input.shape(), DType::kF64);
  for (int64_t r = 0; r < input.size(0); ++r)
    for (int64_t i = 0; i < input.size(1); ++i) {
      const double v = ref::at(input, {r, i}) + ref::at(residual, {r, i});
      ref::put(s.view(), {r, i}, v);
      ref::put(residual, {r, i}, v);
    }
  return s;
}
void reference_add(const Add& a) {
  const Tensor s = added(a.input, a.residual);
  ref::rmsnorm(s.view(), a.weight, a.eps, 0, s.view());
  for (int64_t r = 0; r < a.input.size(0); ++r)
    for (int64_t i = 0; i < a.input.size(1); ++i) put_fp8(a.out, r, i, ref::at(s.view(), {r, i}) / scale_of(a.scale));
}
void reference_layer(const Layer& a) {
  const Tensor y = Tensor::empty(a.input.shape(), a.input.dtype());
  ref::layernorm(a.input, a.gemma, a.beta, a.eps, y.view());
  for (int64_t r = 0; r < a.input.size(0); ++r)
    for (int64_t i = 0; i < a.input.size(1); ++i) put_fp8(a.out, r, i, ref::at(y.view(), {r, i}) / scale_of(a.scale));
}
void reference_blocks(const Blocks& a) {
  const Tensor s = added(a.input, a.residual);
  ref::rmsnorm(s.view(), a.weight, a.eps, 0, a.normed_out);
  for (int64_t r = 0; r < a.input.size(0); ++r)
    for (int64_t b = 0; b < a.input.size(1) / 128; ++b) {
      double amax = 1e-4;
      for (int64_t i = b * 128; i < (b + 1) * 128; ++i) amax = std::max(amax, std::fabs(ref::at(a.normed_out, {r, i})));
      ref::put(a.block_scale, {b, r}, amax / 448);
      for (int64_t i = b * 128; i < (b + 1) * 128; ++i)
        put_fp8(a.out, r, i, ref::at(a.normed_out, {r, i}) * 448 / amax);
    }
}

template <class B>
op::Cost cost(const B& a) {
  const double n = static_cast<double>(a.input.numel()), item = static_cast<double>(a.input.item_size());
  const double streams = std::is_same_v<B, Add> ? 3 : std::is_same_v<B, Blocks> ? 4 : 1;
  return {.bytes = n * (streams * item + 1), .flops = 5 * n};
}
// ---- tables ----
constexpr op::Field rms_fields[] = {
    op::out<&Rms::out>("out", "n d", op::fp8, op::required, op::not_returned),
    op::in<&Rms::input>("input", "n d", op::floats),
    op::in<&Rms::weight>("weight", "d", op::floats),
    op::in<&Rms::scale>("scale", nullptr, op::required),
    op::attr<&Rms::eps>("eps"),
    op::attr<&Rms::enable_pdl>("enable_pdl"),
};
constexpr op::Field add_fields[] = {
    op::out<&Add::out>("out", "n d", op::fp8, op::required, op::not_returned),
    op::in<&Add::input>("input", "n d", op::floats),
    op::inout<&Add::residual>("residual", "n d", op::same_as("input")),
    op::in<&Add::weight>("weight", "d", op::floats),
    op::in<&Add::scale>("scale", nullptr, op::required),
    op::attr<&Add::eps>("eps"),
    op::attr<&Add::enable_pdl>("enable_pdl"),
};
constexpr op::Field layer_fields[] = {
    op::out<&Layer::out>("out", "n d", op::fp8, op::required, op::not_returned),
    op::in<&Layer::input>("input", "n d", op::floats),
    op::in<&Layer::gemma>("gemma", "d", DType::kF32),
    op::in<&Layer::beta>("beta", "d", DType::kF32),
    op::in<&Layer::scale>("scale", nullptr, op::required),
    op::attr<&Layer::eps>("eps"),
};
constexpr op::Field block_fields[] = {
    op::out<&Blocks::out>("out", "n d", DType::kF8E4M3, op::required, op::not_returned),
    op::inout<&Blocks::block_scale>("block_scale", "groups rows", DType::kF32),
    op::out<&Blocks::normed_out>("normed_out", "n d", op::same_as("input"), op::required, op::not_returned),
    op::in<&Blocks::input>("input", "n d", DTypeSet(DType::kF16) | DType::kBF16),
    op::inout<&Blocks::residual>("residual", "n d", op::same_as("input")),
    op::in<&Blocks::weight>("weight", "d", op::floats),
    op::attr<&Blocks::eps>("eps"),
    op::attr<&Blocks::enable_pdl>("enable_pdl"),
};
constexpr op::Candidate rms_candidates[] = {op::cuda<prepare_rms_cuda<Rms>>(), op::cpu<prepare_rms<Rms>>(),
                                            op::reference<reference_rms>()};
constexpr op::Candidate add_candidates[] = {op::cuda<prepare_rms_cuda<Add>>(), op::cpu<prepare_rms<Add>>(),
                                            op::reference<reference_add>()};
constexpr op::Candidate layer_candidates[] = {op::cuda<prepare_layer_cuda>(), op::cpu<prepare_layer>(),
                                              op::reference<reference_layer>()};
constexpr op::Candidate block_candidates[] = {op::cuda<prepare_blocks_cuda>(), op::cpu<prepare_blocks>(),
                                              op::reference<reference_blocks>()};
constexpr const char* kModule = "flashinfer.norm";
}  // namespace

namespace ops::norm {
constinit const op::Op rmsnorm_quant_op =
    op::define<Rms, validate_rms<Rms>, cost<Rms>>(kName<Rms>, kModule, "rmsnorm divided by a scale, as 8-bit floats.",
                                                  rms_fields, rms_candidates, rmsnorm_quant_cases);
constinit const op::Op fused_add_quant_op = op::define<Add, validate_rms<Add>, cost<Add>>(
    kName<Add>, kModule, "residual += input, then rmsnorm of the sum divided by a scale, as 8-bit floats.", add_fields,
    add_candidates, fused_add_quant_cases);
constinit const op::Op layernorm_quant_op = op::define<Layer, validate_layer, cost<Layer>>(
    kName<Layer>, kModule, "layernorm rounded to bf16 and divided by a scale, as 8-bit floats.", layer_fields,
    layer_candidates, layernorm_quant_cases);
// A rounding of normed_out that falls the other way moves its block's scale by one step of the element type.
constinit const op::Op fp8_block_op = op::define<Blocks, validate_blocks, cost<Blocks>>(
    kName<Blocks>, kModule, "residual += input, its rmsnorm, and that as e4m3 with a scale for 128 columns of a row.",
    block_fields, block_candidates, fp8_block_cases, {8e-3, 1e-6});
}  // namespace ops::norm

void rmsnorm_quant(const Rms& a) { op::call(family::rmsnorm_quant_op, a); }
void fused_add_rmsnorm_quant(const Add& a) { op::call(family::fused_add_quant_op, a); }
void layernorm_quant(const Layer& a) { op::call(family::layernorm_quant_op, a); }
void fused_add_rmsnorm_fp8_block_quant(const Blocks& a) { op::call(family::fp8_block_op, a); }

}  // namespace flashinfer
