// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "flashinfer/cases/run.h"
#include "flashinfer/core/check.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/record/format.h"

namespace flashinfer::replay {
namespace {

using op::Value;

Difference difference(const std::string& key, std::string text) {
  Difference d;
  d.key = key;
  d.text = std::move(text);
  return d;
}

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

TensorView on_host(const TensorView& v) { return TensorView(v.data(), v.dtype(), v.shape(), v.strides()); }

/// With all digits: a difference in the last bit must show.
std::string element(const TensorView& v, int64_t i) { return op::python_repr(ref::load_element(v, i)); }

/// Integers, bool and packed types, and everything with --bitwise: the bytes of each element. Both are compact.
Difference compare_bytes(const std::string& key, const TensorView& a, const TensorView& b) {
  const size_t item = static_cast<size_t>(a.item_size());
  const auto *p = a.data_as<const uint8_t>(), *q = b.data_as<const uint8_t>();
  Difference d = difference(key, "");
  d.elements = a.numel();
  int64_t first = -1;
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (std::memcmp(p + static_cast<size_t>(i) * item, q + static_cast<size_t>(i) * item, item) == 0) continue;
    if (first < 0) first = i;
    ++d.mismatches;
    const double x = ref::load_element(a, i), y = ref::load_element(b, i), diff = std::fabs(x - y);
    if (std::isfinite(diff)) d.max_abs = std::max(d.max_abs, diff);
    if (std::isfinite(diff) && y != 0) d.max_rel = std::max(d.max_rel, diff / std::fabs(y));
  }
  d.index = unravel(first, a.shape());
  d.text = str(key, " differs in ", d.mismatches, " of ", d.elements, " elements, first at ", index_text(d.index), ": ",
               element(a, first), " instead of ", element(b, first), " (max abs ", d.max_abs, ", max rel ",
               d.max_rel, "; compared exactly)");
  return d;
}

op::Tolerance tolerance(const Tolerances& t, DType dtype) {
  op::Tolerance tol = cases::default_tolerance(dtype);
  if (t.op) {
    tol.rtol = std::max(tol.rtol, t.op->tolerance.rtol);
    tol.atol = std::max(tol.atol, t.op->tolerance.atol);
  }
  if (t.rtol) tol.rtol = *t.rtol;
  if (t.atol) tol.atol = *t.atol;
  return tol;
}

class Comparer {
 public:
  Comparer(const Inputs& inputs, const std::vector<formats::StoredTensor>& stored, const Json& values, const Json& details,
           const Tolerances& tolerances)
      : inputs_(inputs), values_(values), details_(details), tolerances_(tolerances) {
    for (const auto& t : stored) want_[t.key] = t.tensor;
  }

  Comparison run(const Value& result) {
    results(result);
    for (const auto& [key, want] : want_)
      if (key.starts_with(record::kAfterPrefix) && !key.ends_with(record::kPagesSuffix)) after(key, want);
    for (const auto& [key, want] : values_.items())
      if (key.starts_with(record::kAfterPrefix)) after_value(key, want);
    for (const auto& [key, d] : details_.items()) {  // an argument that is also returned is stored once
      const auto want = want_.find(string_of(d, record::kSameAs));
      if (key.starts_with(record::kAfterPrefix) && !want_.contains(key) && want != want_.end()) after(key, want->second);
    }
    return std::move(out_);
  }

 private:
  void tensor(const std::string& key, const TensorView& have, const TensorView& want) {
    ++out_.compared;
    if (auto d = compare_tensors(key, have, want, tolerances_)) out_.differences.push_back(std::move(*d));
  }
  void differs(const std::string& key, std::string text) { out_.differences.push_back(difference(key, std::move(text))); }

  /// The top level of a result: a tensor, a tuple whose tensors have keys of their own, or a value of metadata.
  void results(const Value& result) {
    if (const auto* tuple = result.as<op::TupleValue>()) {
      for (size_t i = 0; i < tuple->items.size(); ++i) result_at(str(record::kResult, "_", i), tuple->items[i]);
    } else {
      result_at(record::kResult, result);
    }
    for (const auto& [key, want] : want_)
      if (key.starts_with(record::kResult) && key.find("__") == key.npos && !seen_.contains(key))
        differs(key, str(key, " was recorded (", to_string(want.view()), "), but the call returns nothing in its place"));
  }

  void result_at(const std::string& key, const Value& have) {
    seen_.insert(key);
    const auto want = want_.find(key);
    const auto value = values_.find(key);
    if (want != want_.end()) {
      if (have.tensor()) return tensor(key, *have.tensor(), want->second.view());
      return differs(key, str(key, " is ", op::python_repr(have), ", but a tensor was recorded"));
    }
    if (value != values_.end()) return tree(key, have, decode(*value, want_));
    if (!have.is_none()) out_.notes.push_back(str(key, " was not recorded"));
  }

  template <class L>
  void items(const std::string& key, const L& have, const L& want) {
    if (have.items.size() != want.items.size())
      return differs(key, str(key, " has ", have.items.size(), " items instead of ", want.items.size()));
    for (size_t i = 0; i < have.items.size(); ++i) tree(str(key, "[", i, "]"), have.items[i], want.items[i]);
  }

  void tree(const std::string& key, const Value& have, const Value& want) {
    if (have.tensor() && want.tensor()) return tensor(key, *have.tensor(), *want.tensor());
    if (have.as<op::ListValue>() && want.as<op::ListValue>()) return items(key, *have.as<op::ListValue>(), *want.as<op::ListValue>());
    if (have.as<op::TupleValue>() && want.as<op::TupleValue>())
      return items(key, *have.as<op::TupleValue>(), *want.as<op::TupleValue>());
    if (have.as<op::DictValue>() && want.as<op::DictValue>()) {
      const auto &a = have.as<op::DictValue>()->items, &b = want.as<op::DictValue>()->items;
      if (a.size() != b.size()) return differs(key, str(key, " has ", a.size(), " entries instead of ", b.size()));
      for (size_t i = 0; i < a.size(); ++i) {
        tree(str(key, ".key[", i, "]"), a[i].first, b[i].first);
        tree(str(key, "[", op::python_repr(b[i].first), "]"), a[i].second, b[i].second);
      }
      return;
    }
    if (have.is_none() && want.is_none()) return;  // agrees, but shows nothing
    ++out_.compared;
    if (!plain_equal(have, want))
      differs(key, str(key, " is ", op::python_repr(have), ", but ", op::python_repr(want), " was recorded"));
  }

  static bool plain_equal(const Value& a, const Value& b) {
    const double *x = a.as<double>(), *y = b.as<double>();
    if (x && y) return *x == *y || (std::isnan(*x) && std::isnan(*y));
    return op::same_value(a, b);
  }

  void after(const std::string& key, const Tensor& want) {
    const std::string argument = key.substr(std::strlen(record::kAfterPrefix));
    const auto have = inputs_.tensors.find(argument);
    if (argument.starts_with(record::kPlanPrefix)) return plan_tensor(key, argument, want);
    if (have == inputs_.tensors.end()) return out_.notes.push_back(str(key, " was recorded, but not the argument itself"));
    const auto pages = want_.find(key + record::kPagesSuffix);
    if (pages == want_.end()) return tensor(key, have->second.view(), want.view());
    const int dim = static_cast<int>(integer_of(object_of(details_, key.c_str()), record::kPageDim));
    const Tensor used = take_pages(on_host(have->second.view()), dim, pages->second.view());
    tensor(key, used.view(), want.view());
  }

  /// The member of the receiver's state after the call; None when there is no such member.
  Value member(const std::string& argument) const {
    const std::string name = argument.substr(std::strlen(record::kPlanPrefix));
    if (inputs_.self)
      for (const op::Field& f : inputs_.self->type->fields)
        if (name == f.name) return f.get(inputs_.self->state.get());
    return Value();
  }

  void plan_tensor(const std::string& key, const std::string& argument, const Tensor& want) {
    const Value have = member(argument);
    if (have.tensor()) return tensor(key, *have.tensor(), want.view());
    differs(key, str(key, " was recorded, but the plan now has no such tensor"));
  }

  void after_value(const std::string& key, const Json& want) {
    const std::string argument = key.substr(std::strlen(record::kAfterPrefix));
    if (argument.starts_with(record::kPlanPrefix)) tree(key, member(argument), decode(want, want_));
  }

  const Inputs& inputs_;
  const Json &values_, &details_;
  const Tolerances& tolerances_;
  Tensors want_;
  std::set<std::string> seen_;
  Comparison out_;
};

}  // namespace

std::optional<Difference> compare_tensors(const std::string& key, const TensorView& have, const TensorView& want,
                                          const Tolerances& tolerances) {
  if (have.dtype() != want.dtype() || !std::ranges::equal(have.shape(), want.shape()))
    return difference(key, str(key, " is ", to_string(have), ", but ", to_string(want), " was recorded"));
  if (want.numel() == 0) return std::nullopt;
  const Tensor a = Tensor::clone(on_host(have)), b = Tensor::clone(on_host(want));
  if (std::memcmp(a.data(), b.data(), static_cast<size_t>(a.nbytes())) == 0) return std::nullopt;
  if (tolerances.bitwise || !is_floating(want.dtype()) || want.dtype() == DType::kF4E2M1x2)
    return compare_bytes(key, a.view(), b.view());
  const op::Tolerance tol = tolerance(tolerances, want.dtype());
  const cases::Comparison c = cases::compare(a.view(), b.view(), tol.rtol, tol.atol);
  if (c.equal) return std::nullopt;
  Difference d = difference(key, "");
  d.mismatches = c.mismatches;
  d.elements = a.numel();
  d.max_abs = c.max_abs, d.max_rel = c.max_rel;
  d.index = unravel(c.worst, a.shape());
  d.text = str(key, " differs in ", d.mismatches, " of ", d.elements, " elements, worst at ", index_text(d.index), ": ",
               element(a.view(), c.worst), " instead of ", element(b.view(), c.worst), " (max abs ",
               d.max_abs, ", max rel ", d.max_rel, "; rtol ", tol.rtol, ", atol ", tol.atol, ")");
  return d;
}

Comparison compare_outputs(const Value& result, const Inputs& inputs, const std::vector<formats::StoredTensor>& stored,
                           const Json& values, const Json& details, const Tolerances& tolerances) {
  return Comparer(inputs, stored, values, details, tolerances).run(result);
}

}  // namespace flashinfer::replay
