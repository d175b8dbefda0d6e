// SPDX-License-Identifier: Apache-2.0
// The reference of the trtllm_*_moe ops: elements of weights and hidden states with their scales, read from the tensors
// of the call.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/gemm/grouped/ref.h"
#include "flashinfer/ops/moe/trtllm_layer.h"

namespace flashinfer::moe::trtllm {

/// Stored row `row` of expert e of a weight whose matrices are n x depth. Scales: DeepSeek's blocks f32 [E, n / 128,
/// depth / 128]; MXINT4 bf16 for 32 in the order of 128x4; else bytes for 16 (e4m3) or 32 (ue8m0).
template <class B>
Elements::Weight weight_of(const B& a, const TensorView& data, const std::optional<TensorView>& scale,
                           const std::optional<TensorView>& factor, int64_t n, int64_t depth) {
  const bool blocks = deepseek(a), plain_order = !shuffled(a);
  const int64_t block = weight_block(a), columns = depth / 32, matrix = round_up(n, 128) * round_up(columns, 4);
  return [=, by_blocks = by_blocks(a)](int64_t e, int64_t row, int64_t k) {
    const TensorView m = data.select(0, e);
    constexpr bool kInt4 = B::kFormat == MoeFormat::kMxint4;
    double v = kInt4 && by_blocks ? ref::int4_at(m.select(0, k / 256), row, k % 256)
               : kInt4            ? ref::int4_at(m, row, k)
               : by_blocks        ? ref::at(m, {k / m.size(2), row, k % m.size(2)})
                                  : ref::narrow_at(m, B::kFormat == MoeFormat::kFp4Block, row, k);
    if (blocks) {
      v *= ref::at(*scale, {e, row / 128, k / 128});
    } else if (B::kFormat == MoeFormat::kMxint4) {
      const int64_t at = e * matrix + ref::scale_place(SfLayout::k128x4, row, k / 32, columns);
      v *= static_cast<double>(static_cast<float>(scale->template data_as<bf16_t>()[at]));
    } else if (block) {
      const SfLayout layout = plain_order ? SfLayout::kLinear : SfLayout::k128x4;
      v *= ref::ByteScales{*scale, layout, block == 32, n, depth, block}.at(e, row, k);
    }
    if (factor) v *= factor->numel() == 1 ? ref::get(factor->view({1}), 0) : ref::at(*factor, {e});
    return v;
  };
}

template <class B>
Elements elements_of(const B& a, const Layer& l) {
  const int64_t inter = a.intermediate_size, width = gated(a) ? 2 * inter : inter, hidden = hidden_of(a),
                rows = second_rows(a);
  Elements out{
      .first = weight_of(a, a.gemm1_weights, a.gemm1_weights_scale, a.output1_scale_gate_scalar, width, hidden),
      .second = weight_of(a, a.gemm2_weights, a.gemm2_weights_scale, a.output2_scale_scalar, rows, inter)};
  if (!a.hidden_states_scale || !has_scales(l.format)) return out;
  const TensorView x = a.hidden_states, scale = *a.hidden_states_scale;
  if (l.format == RowFormat::kFp8Blocks) {  // f32 [hidden / 128, tokens]
    out.x = [=](int64_t t, int64_t k) { return ref::at(x, {t, k}) * ref::at(scale, {k / 128, t}); };
    return out;
  }
  const bool fp4 = l.format == RowFormat::kNvfp4;
  const ref::ByteScales scales{scale, SfLayout::kLinear, !fp4, x.size(0), hidden, fp4 ? 16 : 32};
  out.x = [=](int64_t t, int64_t k) { return ref::narrow_at(x, fp4, t, k) * scales.at(0, t, k); };
  return out;
}

}  // namespace flashinfer::moe::trtllm
