// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/norm/op.h"

#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/norm/cases.h"
#include "flashinfer/ops/norm/cuda_launch.h"
#include "flashinfer/ops/norm/kernels/params.h"
#include "flashinfer/ops/norm/launch.h"
#include "flashinfer/ops/norm/ops.h"
#include "flashinfer/ops/norm/ref.h"

namespace flashinfer {
namespace {

inline constexpr jit::Kernel kRmsNorm{"flashinfer/ops/norm/kernels/cpu/norm.h", "flashinfer::cpu::rmsnorm",
                                      "flashinfer::NormParams"};
inline constexpr jit::Kernel kRmsNormCuda{"flashinfer/ops/norm/kernels/cuda/norm.cuh", "flashinfer::cu::rmsnorm",
                                          "flashinfer::NormParams"};
inline constexpr jit::Kernel kLayerNormCuda{"flashinfer/ops/norm/kernels/cuda/norm.cuh", "flashinfer::cu::layernorm",
                                            "flashinfer::NormParams"};
inline constexpr jit::Kernel kLayerNorm{"flashinfer/ops/norm/kernels/cpu/norm.h", "flashinfer::cpu::layernorm",
                                        "flashinfer::NormParams"};

template <int kGemma>
NormConfig config_of(const RmsNorm& a) {
  return {.dtype = a.input.dtype(), .weight = a.weight.dtype(), .gemma = kGemma, .fused_add = 0};
}
template <int kGemma>
NormConfig config_of(const FusedAddRmsNorm& a) {
  return {.dtype = a.input.dtype(), .weight = a.weight.dtype(), .gemma = kGemma, .fused_add = 1};
}
LayerNormConfig config_of(const LayerNorm& a) { return {.dtype = a.input.dtype()}; }

template <class Block>
void check_input(const Block& a) {
  FI_CHECK(a.input.rank() == 2 || a.input.rank() == 3, ValueError, "input has rank ", a.input.rank(), " (",
           to_string(a.input), "), but must be [rows, d] or [rows, heads, d]");
  FI_CHECK(a.eps >= 0, ValueError, "eps is ", a.eps, ", but must be at least 0");
}
template <class Block>
void check_weight(const Block& a) {
  check_input(a);
  FI_CHECK(a.weight.dtype() == a.input.dtype() || a.weight.dtype() == DType::kF32, ValueError, "weight.dtype is ",
           name(a.weight.dtype()), ", but must be ", name(a.input.dtype()), " (as input) or float32");
}

/// `streams`: tensors of input's size that move.
template <int kStreams, class Block>
op::Cost cost(const Block& a) {
  const double n = static_cast<double>(a.input.numel());
  return {.bytes = kStreams * n * static_cast<double>(a.input.item_size()), .flops = 4 * n};
}

NormParams params_of(const RmsNorm& a) {
  NormParams p = ops::norm::params_of(a.input, *a.out, a.eps, 2);
  p.weight = a.weight.data();
  return p;
}
NormParams params_of(const FusedAddRmsNorm& a) {
  NormParams p = ops::norm::params_of(a.input, a.input, a.eps, 4);
  p.weight = a.weight.data();
  p.residual = a.residual.data();
  ops::norm::row_strides(a.residual, p.residual_stride);
  return p;
}
NormParams params_of(const LayerNorm& a) {
  NormParams p = ops::norm::params_of(a.input, *a.out, a.eps, 2);
  p.weight = a.gemma.data();
  p.beta = a.beta.data();
  return p;
}

template <const jit::Kernel& K, class Block, class Config>
op::Prepared prepare_cpu(const Block& a, const Config& config) {
  const NormParams p = params_of(a);
  return ops::prepare_rows<K>(config, p, p.rows, p.rows_per_task);
}
template <int kGemma, class Block>
op::Prepared prepare_rms(const Block& a) {
  return prepare_cpu<kRmsNorm>(a, config_of<kGemma>(a));
}
op::Prepared prepare_layer(const LayerNorm& a) { return prepare_cpu<kLayerNorm>(a, config_of(a)); }

/// `config` is that of the CPU kernel: dtypes and kind.
template <const jit::Kernel& K, class Block, class Config>
op::Prepared prepare_cuda(const Block& a, const Config& config, const op::Call& call, bool pdl) {
  const NormParams p = params_of(a);
  const auto c = cuda::norm_config(config, p);
  return ops::prepare_cuda<K>(c, p, call.device, p.d ? cuda::norm_launch(c, p, pdl) : ops::kNoBlocks);
}
template <int kGemma, class Block>
op::Prepared prepare_rms_cuda(const Block& a, const op::Call& call) {
  return prepare_cuda<kRmsNormCuda>(a, config_of<kGemma>(a), call, ops::wants_pdl(a.enable_pdl));
}
op::Prepared prepare_layer_cuda(const LayerNorm& a, const op::Call& call) {
  return prepare_cuda<kLayerNormCuda>(a, config_of(a), call, true);
}

template <int kGemma>
void reference_rms(const RmsNorm& a) {
  ref::rmsnorm(a.input, a.weight, a.eps, kGemma, *a.out);
}
template <int kGemma>
void reference_fused(const FusedAddRmsNorm& a) {
  ref::fused_add_rmsnorm(a.input, a.residual, a.weight, a.eps, kGemma);
}
void reference_layer(const LayerNorm& a) { ref::layernorm(a.input, a.gemma, a.beta, a.eps, *a.out); }

constexpr op::Field rms_fields[] = {
    op::in<&RmsNorm::input>("input", "... d", op::floats),
    op::in<&RmsNorm::weight>("weight", "d", op::floats),
    op::attr<&RmsNorm::eps>("eps"),
    op::out<&RmsNorm::out>("out", "... d", op::same_as("input"), op::may_alias("input")),
    op::attr<&RmsNorm::enable_pdl>("enable_pdl"),
};
constexpr op::Field fused_fields[] = {
    op::inout<&FusedAddRmsNorm::input>("input", "... d", op::floats),
    op::inout<&FusedAddRmsNorm::residual>("residual", "... d", op::same_as("input")),
    op::in<&FusedAddRmsNorm::weight>("weight", "d", op::floats),
    op::attr<&FusedAddRmsNorm::eps>("eps"),
    op::attr<&FusedAddRmsNorm::enable_pdl>("enable_pdl"),
};
constexpr op::Field layer_fields[] = {
    op::in<&LayerNorm::input>("input", "... d", op::floats),
    op::in<&LayerNorm::gemma>("gemma", "d", DType::kF32),
    op::in<&LayerNorm::beta>("beta", "d", DType::kF32),
    op::attr<&LayerNorm::eps>("eps"),
    op::result<&LayerNorm::out>("out", "... d", op::same_as("input"), op::may_alias("input")),
};
template <int kGemma>
constexpr op::Candidate rms_candidates[] = {op::cuda<prepare_rms_cuda<kGemma, RmsNorm>>(),
                                            op::cpu<prepare_rms<kGemma, RmsNorm>>(),
                                            op::reference<reference_rms<kGemma>>()};
template <int kGemma>
constexpr op::Candidate fused_candidates[] = {op::cuda<prepare_rms_cuda<kGemma, FusedAddRmsNorm>>(),
                                              op::cpu<prepare_rms<kGemma, FusedAddRmsNorm>>(),
                                              op::reference<reference_fused<kGemma>>()};
constexpr op::Candidate layer_candidates[] = {op::cuda<prepare_layer_cuda>(), op::cpu<prepare_layer>(),
                                              op::reference<reference_layer>()};

constinit const op::Op rmsnorm_op = op::define<RmsNorm, check_weight<RmsNorm>, cost<2, RmsNorm>>(
    "rmsnorm", "flashinfer.norm", "Root mean square normalisation: input / sqrt(mean(input^2) + eps) * weight.",
    rms_fields, rms_candidates<0>, ops::norm::rmsnorm_cases);
constinit const op::Op gemma_rmsnorm_op = op::define<RmsNorm, check_weight<RmsNorm>, cost<2, RmsNorm>>(
    "gemma_rmsnorm", "flashinfer.norm",
    "Gemma's root mean square normalisation: input / sqrt(mean(input^2) + eps) * (1 + weight).", rms_fields,
    rms_candidates<1>, ops::norm::gemma_rmsnorm_cases);
constinit const op::Op fused_add_rmsnorm_op = op::define<FusedAddRmsNorm, check_weight<FusedAddRmsNorm>,
                                                         cost<4, FusedAddRmsNorm>>(
    "fused_add_rmsnorm", "flashinfer.norm",
    "residual += input, then input = rmsnorm of the sum before its rounding: sum / sqrt(mean(sum^2) + eps) * weight.",
    fused_fields, fused_candidates<0>, ops::norm::fused_add_rmsnorm_cases);
constinit const op::Op gemma_fused_add_rmsnorm_op =
    op::define<FusedAddRmsNorm, check_weight<FusedAddRmsNorm>, cost<4, FusedAddRmsNorm>>(
        "gemma_fused_add_rmsnorm", "flashinfer.norm",
        "residual += input, then input = Gemma rmsnorm of the sum before its rounding: sum / sqrt(mean(sum^2) + eps) * "
        "(1 + weight).",
        fused_fields, fused_candidates<1>, ops::norm::gemma_fused_add_rmsnorm_cases);
constinit const op::Op layernorm_op = op::define<LayerNorm, check_input<LayerNorm>, cost<2, LayerNorm>>(
    "layernorm", "flashinfer.norm",
    "Layer normalisation: (input - mean) / sqrt(var + eps) * gemma + beta, population variance.", layer_fields,
    layer_candidates, ops::norm::layernorm_cases);

constexpr const op::Op* kOps[] = {&rmsnorm_op,
                                  &gemma_rmsnorm_op,
                                  &fused_add_rmsnorm_op,
                                  &gemma_fused_add_rmsnorm_op,
                                  &layernorm_op,
                                  &ops::norm::rmsnorm_quant_op,
                                  &ops::norm::fused_add_quant_op,
                                  &ops::norm::layernorm_quant_op,
                                  &ops::norm::fp8_block_op,
                                  &ops::norm::rmsnorm_fp4_op,
                                  &ops::norm::add_rmsnorm_fp4_op,
                                  &ops::norm::rmsnorm_silu_op,
                                  &ops::norm::sigmoid_gate_op,
                                  &ops::norm::gated_residual_op,
                                  &ops::norm::gated_next_op,
                                  &ops::norm::dit_gamma_op,
                                  &ops::norm::dit_gate_op,
                                  &ops::norm::dit_scale_op,
                                  &ops::norm::qk_norm_rope_op};
}  // namespace

Tensor rmsnorm(const RmsNorm& a) { return op::call(rmsnorm_op, a); }
Tensor gemma_rmsnorm(const RmsNorm& a) { return op::call(gemma_rmsnorm_op, a); }
void fused_add_rmsnorm(const FusedAddRmsNorm& a) { op::call(fused_add_rmsnorm_op, a); }
void gemma_fused_add_rmsnorm(const FusedAddRmsNorm& a) { op::call(gemma_fused_add_rmsnorm_op, a); }
Tensor layernorm(const LayerNorm& a) { return op::call(layernorm_op, a); }

namespace ops::norm {
extern const std::span<const op::Op* const> all;
constinit const std::span<const op::Op* const> all = kOps;
}  // namespace ops::norm

}  // namespace flashinfer
