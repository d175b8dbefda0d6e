// SPDX-License-Identifier: Apache-2.0
// Scale factors that are packed four to a number, as tensors of cases.
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/common/fill.h"

namespace flashinfer::ops::moe {
namespace {

/// i32 of four ue8m0 bytes, each in [a, b).
void fill_ue8m0(const TensorView& t, const op::FillRule& rule, uint64_t seed) {
  const auto from = static_cast<uint64_t>(rule.a), count = static_cast<uint64_t>(rule.b - rule.a);
  if (t.dtype() != DType::kI32 || rule.a < 0 || rule.b > 256 || rule.b <= rule.a)
    throw ValueError("case: ue8m0(a, b) needs i32 and 0 <= a < b <= 256");
  each(t, [&](int64_t i, int64_t o) {
    uint32_t packed = 0;
    for (uint64_t j = 0; j < 4; ++j)
      packed |= static_cast<uint32_t>(from + mix(seed + static_cast<uint64_t>(i) * 4 + j) % count) << (8 * j);
    t.data_as<int32_t>()[o] = static_cast<int32_t>(packed);
  });
}
constexpr op::Fill kFills[] = {{"ue8m0", fill_ue8m0}};

}  // namespace
extern const std::span<const op::Fill> fills;
constinit const std::span<const op::Fill> fills = kFills;
}  // namespace flashinfer::ops::moe
