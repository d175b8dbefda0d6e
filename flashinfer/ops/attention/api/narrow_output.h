// SPDX-License-Identifier: Apache-2.0
// Operators whose result may have 8 bits: attention writes f32 and the result is rounded from that.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "flashinfer/ops/attention/api/checks.h"
#include "flashinfer/ops/common/rows.h"

namespace flashinfer::attention {

/// The dtype that attention writes for a result of that one.
inline DType computed_dtype(DType output) { return output == DType::kF8E4M3 ? DType::kF32 : output; }

/// `o_scale` is the value of one unit of an 8-bit result, by which the caller has divided the factor of the output: it
/// has no effect. ValueError unless it is positive and finite; NotImplementedError for another result.
inline void check_output_scale(double o_scale, DType output) {
  FI_CHECK(o_scale > 0 && std::isfinite(o_scale), ValueError, "o_scale is ", o_scale,
           ", but must be positive and finite");
  throw_if_given("o_scale", o_scale != 1.0 && output != DType::kF8E4M3, "it belongs to an 8-bit output");
}

/// Rounds contiguous f32 to e4m3, saturating; NaN is 0x7f.
inline void round_to_e4m3(const TensorView& from, const TensorView& to) {
  const int64_t d = to.size(-1), rows = d ? to.numel() / d : 0;
  ops::for_rows(rows, ops::rows_per_task(rows, 5 * d), [&](int64_t row) {
    int64_t at = 0, left = row;
    for (int axis = to.rank() - 2; axis >= 0; left /= to.size(axis), --axis)
      at += left % to.size(axis) * to.stride(axis);
    const float* x = from.data_as<float>() + row * d;
    auto* y = to.data_as<e4m3_t>() + at;
    for (int64_t i = 0; i < d; ++i) {
      y[i] = e4m3_t(std::clamp(x[i], -448.0f, 448.0f));
      if (std::isnan(x[i])) y[i].bits = 0x7f;
    }
  });
}

/// The candidates `Of` of a block whose result is the member `Out`, for f32 and 16-bit results, and for e4m3. That of
/// GPUs, if there is one, rounds to e4m3 itself.
template <class Block, class Of, std::optional<TensorView> Block::* Out>
struct NarrowOutput {
  struct Widened {  // the same call with an f32 result of its own
    explicit Widened(const Block& a) : block(a), output(Tensor::empty((a.*Out)->shape(), DType::kF32)) {
      block.*Out = output.view();
    }
    Block block;
    Tensor output;
  };
  static bool is_narrow(const Block& a) { return (a.*Out)->dtype() == DType::kF8E4M3; }
  static op::Prepared cpu(const Block& a) {
    if (!is_narrow(a)) return Of::cpu(a);
    const auto wide = std::make_shared<Widened>(a);
    const std::shared_ptr<op::Prepared> launch(new op::Prepared(Of::cpu(wide->block)));
    if (!launch->supported()) return op::Unsupported{launch->why_not()};
    return [wide, launch, to = *(a.*Out)] {
      launch->run();
      round_to_e4m3(wide->output, to);
    };
  }
  static void reference(const Block& a) {
    if (!is_narrow(a)) return Of::reference(a);
    const Widened wide(a);
    Of::reference(wide.block);
    round_to_e4m3(wide.output, *(a.*Out));
  }
  static constexpr auto candidates = [] {
    if constexpr (requires(const Block& a) { Of::cuda(a); })
      return std::array{op::cuda<Of::cuda>(), op::cpu<cpu>(), op::reference<reference>()};
    else
      return std::array{op::cpu<cpu>(), op::reference<reference>()};
  }();
};

/// A plan for computed_dtype() of its result.
template <class Block, PlanRef (*PlanOf)(const Block&)>
PlanRef computed_plan(const Block& a) {
  PlanRef p = PlanOf(a);
  if (p->o_data_type == computed_dtype(p->o_data_type)) return p;
  Plan wide = *p;
  wide.o_data_type = computed_dtype(p->o_data_type);
  return owned(std::move(wide));
}
/// PlanRun for plans whose result may be e4m3.
template <class Block, PlanRef (*PlanOf)(const Block&), Call (*CallOf)(const Block&)>
using NarrowPlanRun = NarrowOutput<Block, PlanRun<Block, computed_plan<Block, PlanOf>, CallOf, PlanOf>, &Block::out>;

}  // namespace flashinfer::attention
