// SPDX-License-Identifier: Apache-2.0
// The reference of cutlass_fused_moe: weights, scales and the tokens' experts as the table in op.h describes them, read
// from the tensors of the call.
#include <cmath>

#include "flashinfer/ops/gemm/grouped/ref.h"
#include "flashinfer/ops/moe/sm90_order.h"

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

/// Code (row, k) of a matrix in the order that sm90_order.h tells, bit by bit.
int code_at(const TensorView& matrix, bool fp4, int64_t row, int64_t k) {
  const int64_t s = row / 8 % 2, h = k / 16 % 2, d = k % 16, line = row / 16 * 16 + row % 8 + 8 * h;
  const auto bit = [&](int64_t word, int64_t i) {
    const int64_t byte = k / 64 * 32 + k % 64 / 32 * 16 + 2 * word + i / 8;
    return static_cast<int>(ref::at(matrix, {line, byte})) >> i % 8 & 1;
  };
  static constexpr int kBits[4][4] = {{6, 7, 8, 15}, {3, 4, 5, 12}, {0, 1, 2, 9}, {13, 10, 11, 14}};
  int code = 0;
  for (int i = 0; i < 4; ++i)
    code |= (fp4 ? bit(d % 8, kBits[d / 8 * 2 + s][i]) : bit(2 * (d / 4) + s, 4 * (d % 4) + i)) << i;
  return code;
}
/// Element (row, k) of expert e of weights in that order, with its scale and the expert's factor.
Elements::Weight sm90_weight_of(const Moe& a, const TensorView& data, Places at) {
  const bool int4 = mode_of(a) == Mode::kInt4;
  const TensorView& given = (*a.quant_scales)[static_cast<size_t>(at.scales)];
  const TensorView scales(given.data(), int4 ? DType::kBF16 : DType::kU8, {given.nbytes() / (int4 ? 2 : 1)});
  const TensorView* const factor = at.factor < 0 ? nullptr : &(*a.quant_scales)[static_cast<size_t>(at.factor)];
  const int64_t n = data.size(1), parts = data.size(2) / 64;
  return [=](int64_t e, int64_t row, int64_t k) {
    const int64_t tile = (e * n / 64 + row / 64) * parts + k / 128, r = row % 64;
    const int code = code_at(data.select(0, e), !int4, row, k);
    double v;
    if (int4) {
      v = (code < 8 ? code : code - 16) * ref::at(scales, {tile * 64 + r % 8 * 8 + r / 8});
    } else {
      static constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
      const int exponent = static_cast<int>(ref::at(scales, {tile * 256 + r % 16 * 16 + r / 16 * 4 + k % 128 / 32}));
      v = (code < 8 ? 1 : -1) * kValues[code % 8] * (exponent == 255 ? NAN : std::ldexp(1.0, exponent - 127));
    }
    return factor ? v * (factor->numel() == 1 ? ref::get(factor->view({1}), 0) : ref::at(*factor, {e})) : v;
  };
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
  if (has_sm90_order(a))
    return {.first = sm90_weight_of(a, first_weights(a), first_places(mode)),
            .second = sm90_weight_of(a, second_weights(a), second_places(mode))};
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
