// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cases/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/value.h"
#include "flashinfer/ops/common/reference.h"

namespace flashinfer::cases {
namespace {

std::vector<int64_t> unravel(int64_t i, std::span<const int64_t> shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0; i /= shape[d]) index[d] = i % shape[d];
  return index;
}

std::string index_text(const std::vector<int64_t>& index) {
  std::string s = "[";
  for (int64_t i : index) s += (s.size() > 1 ? ", " : "") + std::to_string(i);
  return s + "]";
}

/// With all digits, so that a difference in the last bit is visible.
std::string element(const TensorView& v, int64_t i) { return op::python_repr(ref::load_element(v, i)); }

TensorView on_host(const TensorView& v) { return TensorView(v.data(), v.dtype(), v.shape(), v.strides()); }

/// `excess(i, x, y, diff)` of a pair that is not bitwise equal: 0 or less when it is within tolerance.
template <class Excess>
Comparison elements(const TensorView& got, const TensorView& want, bool exact, const std::string& how, Excess excess) {
  Comparison c;
  if (got.dtype() != want.dtype() || !std::ranges::equal(got.shape(), want.shape())) {
    c.equal = false;
    c.text = str("is ", to_string(got), " instead of ", to_string(want));
    return c;
  }
  if (got.numel() == 0) return c;
  const Tensor host_got = host_readable(got), host_want = host_readable(want);
  const Tensor a = Tensor::clone(on_host(host_got.view())), b = Tensor::clone(on_host(host_want.view()));
  const size_t item = static_cast<size_t>(a.view().item_size());
  const auto *p = a.data_as<const uint8_t>(), *q = b.data_as<const uint8_t>();
  if (std::memcmp(p, q, static_cast<size_t>(a.nbytes())) == 0) return c;
  double worst = -1;
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (std::memcmp(p + static_cast<size_t>(i) * item, q + static_cast<size_t>(i) * item, item) == 0) continue;
    const double x = ref::load_element(a.view(), i), y = ref::load_element(b.view(), i), diff = std::abs(x - y);
    if (std::isfinite(diff)) {
      c.max_abs = std::max(c.max_abs, diff);
      if (y != 0) c.max_rel = std::max(c.max_rel, diff / std::abs(y));
    }
    const double over = excess(x, y, diff);
    if (over <= 0) continue;
    ++c.mismatches;
    if (c.worst < 0 || (!exact && over > worst)) {
      worst = over;
      c.worst = i;
    }
  }
  if (!c.mismatches) return c;
  c.equal = false;
  c.index = unravel(c.worst, a.shape());
  c.text = str("differs in ", c.mismatches, " of ", a.numel(), " elements, ", exact ? "first" : "worst", " at ",
               index_text(c.index), ": ", element(a.view(), c.worst), " instead of ", element(b.view(), c.worst),
               " (max abs ", c.max_abs, ", max rel ", c.max_rel, "; ", how, ")");
  return c;
}

}  // namespace

Comparison compare_bits(const TensorView& got, const TensorView& want) {
  return elements(got, want, true, "compared exactly", [](double, double, double) { return 1.0; });
}

Comparison compare(const TensorView& got, const TensorView& want, double rtol, double atol) {
  if (!is_floating(want.dtype()) || want.dtype() == DType::kF4E2M1x2) return compare_bits(got, want);
  return elements(got, want, false, str("rtol ", rtol, ", atol ", atol), [rtol, atol](double x, double y, double diff) {
    if (x == y || (std::isnan(x) && std::isnan(y))) return 0.0;
    if (!std::isfinite(y) || !std::isfinite(diff)) return HUGE_VAL;  // an infinity equals only itself
    return diff - (atol + rtol * std::abs(y));
  });
}

op::Tolerance default_tolerance(DType t) {
  switch (t) {
    case DType::kF64: return {1e-12, 1e-12};
    case DType::kF32: return {1e-5, 1e-5};
    case DType::kF16: return {1e-3, 1e-3};
    case DType::kBF16: return {1e-2, 1e-2};
    case DType::kF8E4M3:
    case DType::kF8E5M2: return {0.125, 0.002};
    default: return {0, 0};
  }
}

}  // namespace flashinfer::cases
