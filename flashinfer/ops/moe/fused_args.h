// SPDX-License-Identifier: Apache-2.0
// What the arguments of cutlass_fused_moe say, for its checks, its launch and its reference.
#pragma once
#include <vector>

#include "flashinfer/ops/gemm/grouped_work.h"
#include "flashinfer/ops/moe/op.h"
#include "flashinfer/ops/moe/params.h"

namespace flashinfer::moe {

using Moe = CutlassFusedMoe;
using gemm::GroupedWork;
inline constexpr const char* kName = "cutlass_fused_moe";

enum class Mode { kPlain, kFp8, kNvfp4 };
inline bool is_bytes(const TensorView& t) { return t.dtype() == DType::kU8 || t.dtype() == DType::kF4E2M1x2; }
inline Mode mode_of(const Moe& a) {
  return is_bytes(a.fc1_expert_weights) ? Mode::kNvfp4 : a.fc1_expert_weights.dtype() == DType::kF8E4M3 ? Mode::kFp8 : Mode::kPlain;
}
inline MoeActivation kind_of(const Moe& a) { return static_cast<MoeActivation>(a.activation_type); }
struct Extents {
  int64_t tokens, top_k, experts, hidden, inter, width;  // width: rows of fc1
};
inline Extents extents_of(const Moe& a) {
  const int64_t per = mode_of(a) == Mode::kNvfp4 ? 2 : 1, width = a.fc1_expert_weights.size(1);
  return {a.input.size(0), a.token_selected_experts.size(1), a.fc1_expert_weights.size(0), a.fc1_expert_weights.size(2) * per,
          has_gate(kind_of(a)) ? width / 2 : width, width};
}
inline float number(const TensorView& t, int64_t i = 0) {
  return t.data_as<float>()[t.numel() == 1 || t.rank() == 0 ? 0 : i * t.stride(0)];
}
inline GemmSf weight_sf(const Moe& a, size_t which, int64_t rows, int64_t columns) {
  const TensorView& t = (*a.quant_scales)[which];
  return {.bytes = static_cast<const uint8_t*>(t.data()), .columns = columns, .batch = sf_bytes(SfLayout::k128x4, rows, columns), .block = 16,
          .layout = SfLayout::k128x4};
}
/// The factor behind product 1 or 2 of expert e.
inline float factor_of(const Moe& a, int product, int64_t e) {
  switch (mode_of(a)) {
    case Mode::kFp8: return number((*a.quant_scales)[product == 1 ? 0 : 2], e);
    case Mode::kNvfp4: return number((*a.quant_scales)[product == 1 ? 2 : 5], e);
    default: return 1;
  }
}
/// The local number of an expert, or -1.
inline int64_t local_expert(const Moe& a, int64_t t, int64_t j) {
  const TensorView& ids = a.token_selected_experts;
  const int64_t at = t * ids.stride(0) + j * ids.stride(1), experts = a.fc1_expert_weights.size(0);
  const int64_t e = (ids.dtype() == DType::kI32 ? ids.data_as<int32_t>()[at] : ids.data_as<int64_t>()[at]) - a.ep_rank * experts;
  return e >= 0 && e < experts ? e : -1;
}

/// NVFP4 of activations, with linear scale factors.
struct Fp4 {
  Tensor codes, scales;
};
/// Scale factors of a packed input as linear rows.
inline Tensor linear_input_sf(const Moe& a, const Extents& x) {
  const int64_t columns = x.hidden / 16;
  Tensor out = Tensor::empty({x.tokens, columns}, DType::kU8);
  const SfLayout layout = a.swizzled_input_sf ? SfLayout::k128x4 : SfLayout::kLinear;
  for (int64_t t = 0; t < x.tokens; ++t)
    for (int64_t c = 0; c < columns; ++c)
      out.data_as<uint8_t>()[t * columns + c] = a.input_sf->data_as<uint8_t>()[sf_offset(layout, t, c, columns)];
  return out;
}

inline GemmSf linear_sf(const Tensor& scales) {
  return {.bytes = scales.data_as<uint8_t>(), .columns = scales.size(1), .block = 16, .layout = SfLayout::kLinear};
}
inline GroupedWork product(const Moe& a, const Extents& x, int which, const TensorView& rows, const Tensor* scales, const TensorView& out,
                    std::vector<gemm::Group> groups) {
  GroupedWork w{.a = rows, .b = which == 1 ? a.fc1_expert_weights : a.fc2_expert_weights, .out = out};
  if (mode_of(a) == Mode::kNvfp4) {
    w.a_fp4 = w.b_fp4 = true;
    w.a_sf = linear_sf(*scales);
    w.b_sf = which == 1 ? weight_sf(a, 1, x.width, x.hidden / 16) : weight_sf(a, 4, x.hidden, x.inter / 16);
  }
  for (gemm::Group& g : groups) g.alpha = factor_of(a, which, g.weight);
  w.groups = std::move(groups);
  return w;
}
inline DType inter_dtype(const Moe& a) { return mode_of(a) == Mode::kFp8 ? DType::kF8E4M3 : DType::kBF16; }

/// fused_check.cc: throws for what the table cannot say.
void validate(const Moe& a);
/// fused_ref.cc: a token and an expert at a time, in double precision.
void reference(const Moe& a);

}  // namespace flashinfer::moe
