// SPDX-License-Identifier: Apache-2.0
// What the arguments of cutlass_fused_moe say.
#pragma once
#include "flashinfer/ops/moe/layer.h"
#include "flashinfer/ops/moe/op.h"

namespace flashinfer::moe {

using Moe = CutlassFusedMoe;

/// Weights and rows, in this order; the header's table.
enum class Mode { kPlain, kFp8, kFp8Blocks, kMxFp8, kNvfp4, kMxfp4, kMxfp4Fp8, kMxfp4MxFp8, kInt4 };
inline bool is_bytes(const TensorView& t) { return t.dtype() == DType::kU8 || t.dtype() == DType::kF4E2M1x2; }
/// `t`, of int64 as its bytes: eight in an element.
TensorView as_bytes(const TensorView& t);
inline TensorView first_weights(const Moe& a) { return as_bytes(a.fc1_expert_weights); }
inline TensorView second_weights(const Moe& a) { return as_bytes(a.fc2_expert_weights); }
/// Weights of prepare_quantized_weights.
inline bool has_panels(const Moe& a) { return a.fc1_expert_weights.rank() == 4; }
inline Mode mode_of(const Moe& a) {
  if (is_bytes(a.fc1_expert_weights) || a.fc1_expert_weights.dtype() == DType::kI64)
    return a.use_w4_group_scaling    ? (a.quant_scales && a.quant_scales->size() == 8 ? Mode::kInt4 : Mode::kMxfp4)
           : a.use_mxfp8_act_scaling ? Mode::kMxfp4MxFp8
           : a.quant_scales && a.quant_scales->size() == 5 ? Mode::kMxfp4Fp8
                                                           : Mode::kNvfp4;
  if (a.fc1_expert_weights.dtype() != DType::kF8E4M3) return Mode::kPlain;
  return a.use_deepseek_fp8_block_scale ? Mode::kFp8Blocks : a.use_mxfp8_act_scaling ? Mode::kMxFp8 : Mode::kFp8;
}
inline bool has_four_bits(Mode m) { return m >= Mode::kNvfp4; }
inline bool has_fp4_weights(Mode m) { return has_four_bits(m) && m != Mode::kInt4; }
inline RowFormat rows_of(Mode m) {
  switch (m) {
    case Mode::kFp8:
    case Mode::kMxfp4Fp8:
    case Mode::kInt4: return RowFormat::kFp8;
    case Mode::kFp8Blocks: return RowFormat::kFp8Blocks;
    case Mode::kMxFp8:
    case Mode::kMxfp4MxFp8: return RowFormat::kMxFp8;
    case Mode::kNvfp4: return RowFormat::kNvfp4;
    default: return RowFormat::kPlain;
  }
}
/// Scale factors of a byte along k in the weights: their block, or 0.
inline int32_t weight_block(Mode m) {
  return m == Mode::kNvfp4 ? 16 : m == Mode::kMxFp8 || has_fp4_weights(m) ? 32 : 0;
}
inline SfLayout weight_sf_layout(Mode m) { return m == Mode::kMxfp4 ? SfLayout::kLinear : SfLayout::k128x4; }

/// What each of quant_scales is.
enum class Scale {
  kSf1,
  kSf2,
  kGrid1,
  kGrid2,
  kGroups1,
  kGroups2,
  kCast1,
  kCast2,
  kZeros,
  kFactor1,
  kFactor2,
  kInput,
  kInter,
  kUnused
};
inline std::span<const Scale> scales_of(Mode m) {
  using enum Scale;
  static constexpr Scale kFp8[] = {kFactor1, kInter, kFactor2, kUnused}, kBlocks[] = {kGrid1, kGrid2},
                         kFp4[] = {kInput, kSf1, kFactor1, kInter, kSf2, kFactor2}, kW4[] = {kSf1, kSf2},
                         kMxInter[] = {kSf1, kFactor1, kInter, kSf2, kFactor2},
                         kMx[] = {kSf1, kFactor1, kSf2, kFactor2},
                         kInt4[] = {kGroups1, kGroups2, kCast1, kCast2, kZeros, kZeros, kFactor1, kFactor2};
  switch (m) {
    case Mode::kPlain: return {};
    case Mode::kFp8: return kFp8;
    case Mode::kFp8Blocks: return kBlocks;
    case Mode::kNvfp4: return kFp4;
    case Mode::kInt4: return kInt4;
    case Mode::kMxfp4: return kW4;
    case Mode::kMxfp4Fp8: return kMxInter;
    default: return kMx;
  }
}
inline const TensorView* scale_of(const Moe& a, Scale s) {
  const auto names = scales_of(mode_of(a));
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == s) return &(*a.quant_scales)[i];
  return nullptr;
}

/// Extents, the format and the activation alone, which need no checked scales.
Layer extents_of(const Moe& a);
/// Everything but the tokens' experts and the input's scale factors.
Layer layer_of(const Moe& a);
/// fused_ref.cc: what the reference reads instead of what `layer_of` and the kernels' launch read.
Elements elements_of(const Moe& a, const Layer& l);
void set_experts_for_reference(const Moe& a, Layer& l);
/// fused_check.cc: throws for what the table cannot say.
void validate(const Moe& a);

}  // namespace flashinfer::moe
