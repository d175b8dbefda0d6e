// SPDX-License-Identifier: Apache-2.0
// Page tables of requests that share a prefix, as tensors of cases.
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/common/fill.h"
#include "flashinfer/ops/common/reference.h"

namespace flashinfer::ops::attention {
namespace {

/// shared(a, b): each request has the pages 0 to a - 1, then b of its own.
void fill_shared(const TensorView& t, const op::FillRule& rule, uint64_t) {
  const auto common = static_cast<int64_t>(rule.a), own = static_cast<int64_t>(rule.b), each_has = common + own;
  if (t.rank() != 1 || common < 0 || own < 0 || each_has == 0 || t.numel() % each_has != 0)
    throw ValueError("case: shared(a, b) needs a vector of (a + b) elements for each request");
  each(t, [&](int64_t i, int64_t o) {
    const int64_t request = i / each_has, page = i % each_has;
    ref::store_element(t, o, static_cast<double>(page < common ? page : common + request * own + page - common));
  });
}
constexpr op::Fill kFills[] = {{"shared", fill_shared}};

}  // namespace
extern const std::span<const op::Fill> fills;
constinit const std::span<const op::Fill> fills = kFills;
}  // namespace flashinfer::ops::attention
