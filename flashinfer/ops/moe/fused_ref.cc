// SPDX-License-Identifier: Apache-2.0
// The reference of cutlass_fused_moe: weights, scales and the tokens' experts as the table in op.h describes them, read
// from the tensors of the call.
#include "flashinfer/ops/gemm/grouped/ref.h"
#include "flashinfer/ops/moe/fused_args.h"

namespace flashinfer::moe {
namespace {

/// Places in quant_scales of a weight's scales and factor; -1: none.
struct Places {
  int scales, factor;
};
Places first_places(Mode m) {
  switch (m) {
    case Mode::kPlain: return {-1, -1};
    case Mode::kFp8: return {-1, 0};
    case Mode::kFp8Blocks: return {0, -1};
    case Mode::kNvfp4: return {1, 2};
    case Mode::kMxfp4: return {0, -1};
    case Mode::kInt4: return {0, 6};
    default: return {0, 1};
  }
}
Places second_places(Mode m) {
  switch (m) {
    case Mode::kPlain: return {-1, -1};
    case Mode::kFp8: return {-1, 2};
    case Mode::kFp8Blocks: return {1, -1};
    case Mode::kNvfp4: return {4, 5};
    case Mode::kMxfp4: return {1, -1};
    case Mode::kInt4: return {1, 7};
    case Mode::kMxfp4Fp8: return {3, 4};
    default: return {2, 3};
  }
}

/// Element (row, k) of expert e of a weight whose matrices are n x depth, with its scale and the expert's factor.
Elements::Weight weight_of(const Moe& a, const TensorView& data, Places at, int64_t n, int64_t depth) {
  const Mode mode = mode_of(a);
  const bool packed = data.rank() == 4, fp4 = mode >= Mode::kNvfp4 && mode != Mode::kInt4;
  const TensorView* const scales = at.scales < 0 ? nullptr : &(*a.quant_scales)[static_cast<size_t>(at.scales)];
  const TensorView* const factor = at.factor < 0 ? nullptr : &(*a.quant_scales)[static_cast<size_t>(at.factor)];
  const SfLayout layout = packed ? SfLayout::kPanels : mode == Mode::kMxfp4 ? SfLayout::kLinear : SfLayout::k128x4;
  return [=](int64_t e, int64_t row, int64_t k) {
    const TensorView matrix = data.select(0, e);
    double v = mode == Mode::kInt4 ? ref::int4_at(matrix, row, k) : ref::weight_at(matrix, packed, fp4, row, k);
    if (mode == Mode::kFp8Blocks) {
      v *= ref::at(*scales, {e, row / 128, k / 128});
    } else if (mode == Mode::kInt4) {
      v *= ref::at(*scales, {e, row, k / 128});
    } else if (scales) {
      const bool nvfp4 = mode == Mode::kNvfp4;
      v *= ref::ByteScales{*scales, layout, !nvfp4, n, depth, nvfp4 ? 16 : 32}.at(e, row, k);
    }
    if (factor) v *= factor->numel() == 1 ? ref::get(factor->view({1}), 0) : ref::at(*factor, {e});
    return v;
  };
}

}  // namespace

void set_experts_for_reference(const Moe& a, Layer& l) {
  l.ids.clear(), l.weights.clear();
  for (int64_t t = 0; t < a.input.size(0); ++t)
    for (int64_t j = 0; j < a.token_selected_experts.size(1); ++j) {
      const double e =
          ref::at(a.token_selected_experts, {t, j}) - static_cast<double>(a.ep_rank * a.fc1_expert_weights.size(0));
      const bool here = e >= 0 && e < static_cast<double>(a.fc1_expert_weights.size(0));
      l.ids.push_back(here ? static_cast<int32_t>(e) : -1);
      l.weights.push_back(static_cast<float>(ref::at(a.token_final_scales, {t, j})));
    }
}

Elements elements_of(const Moe& a, const Layer& l) {
  const Mode mode = mode_of(a);
  Elements out{.first = weight_of(a, first_weights(a), first_places(mode), l.width, l.hidden),
               .second = weight_of(a, second_weights(a), second_places(mode), l.hidden, l.inter)};
  if (!a.input_sf) return out;
  const bool fp4 = mode == Mode::kNvfp4;
  const ref::ByteScales scales{
      *a.input_sf, a.swizzled_input_sf ? SfLayout::k128x4 : SfLayout::kLinear, !fp4, l.tokens, l.hidden, fp4 ? 16 : 32};
  out.x = [&a, scales, fp4](int64_t t, int64_t k) { return ref::narrow_at(a.input, fp4, t, k) * scales.at(0, t, k); };
  return out;
}

}  // namespace flashinfer::moe
