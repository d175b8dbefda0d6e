// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "flashinfer/cases/compare.h"
#include "flashinfer/core/check.h"
#include "flashinfer/record/encode.h"
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

TensorView on_host(const TensorView& v) { return TensorView(v.data(), v.dtype(), v.shape(), v.strides()); }

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
  Comparer(const Tensors& arguments, const op::Object* self, const std::vector<formats::StoredTensor>& stored,
           const Json& values, const Json& details, const Tolerances& tolerances)
      : arguments_(arguments), self_(self), values_(values), details_(details), tolerances_(tolerances) {
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
      if (key.starts_with(record::kAfterPrefix) && !want_.contains(key) && want != want_.end())
        after(key, want->second);
    }
    return std::move(out_);
  }

 private:
  void tensor(const std::string& key, const TensorView& have, const TensorView& want) {
    ++out_.compared;
    if (auto d = compare_tensors(key, have, want, tolerances_, &out_.largest))
      out_.differences.push_back(std::move(*d));
  }
  void differs(const std::string& key, std::string text) {
    out_.differences.push_back(difference(key, std::move(text)));
  }

  /// The top level of a result: a tensor, a tuple whose tensors have their own keys, or a value of metadata.
  void results(const Value& result) {
    if (const auto* tuple = result.as<op::TupleValue>(); tuple && !record::stands_for_object(*tuple)) {
      for (size_t i = 0; i < tuple->items.size(); ++i) result_at(str(record::kResult, "_", i), tuple->items[i]);
    } else {
      result_at(record::kResult, result);
    }
    for (const auto& [key, want] : want_)
      if (key.starts_with(record::kResult) && key.find("__") == key.npos && !seen_.contains(key))
        differs(key,
                str(key, " was recorded (", to_string(want.view()), "), but the call returns nothing in its place"));
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

  /// Compares seed and state of a torch.Generator; the text contains an address.
  void generators(const std::string& key, const op::TupleValue& have, const op::TupleValue& want) {
    for (size_t i = 1; i < std::min(have.items.size(), want.items.size()); ++i)
      tree(str(key, i == 1 ? ".seed" : ".state"), have.items[i], want.items[i]);
  }

  template <class L>
  void items(const std::string& key, const L& have, const L& want) {
    if (have.items.size() != want.items.size())
      return differs(key, str(key, " has ", have.items.size(), " items instead of ", want.items.size()));
    for (size_t i = 0; i < have.items.size(); ++i) tree(str(key, "[", i, "]"), have.items[i], want.items[i]);
  }

  void tree(const std::string& key, const Value& have, const Value& want) {
    if (have.tensor() && want.tensor()) return tensor(key, *have.tensor(), *want.tensor());
    if (have.as<op::ListValue>() && want.as<op::ListValue>())
      return items(key, *have.as<op::ListValue>(), *want.as<op::ListValue>());
    if (have.as<op::TupleValue>() && want.as<op::TupleValue>())
      return have.as<op::TupleValue>()->type == record::kTypeTorchGenerator &&
                     want.as<op::TupleValue>()->type == record::kTypeTorchGenerator
                 ? generators(key, *have.as<op::TupleValue>(), *want.as<op::TupleValue>())
                 : items(key, *have.as<op::TupleValue>(), *want.as<op::TupleValue>());
    if (have.as<op::DictValue>() && want.as<op::DictValue>()) {
      const auto &a = have.as<op::DictValue>()->items, &b = want.as<op::DictValue>()->items;
      if (a.size() != b.size()) return differs(key, str(key, " has ", a.size(), " entries instead of ", b.size()));
      for (size_t i = 0; i < a.size(); ++i) {
        tree(str(key, ".key[", i, "]"), a[i].first, b[i].first);
        tree(str(key, "[", op::python_repr(b[i].first), "]"), a[i].second, b[i].second);
      }
      return;
    }
    if (have.is_none() && want.is_none()) return;  // equal, but proves nothing
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
    const auto have = arguments_.find(argument);
    if (argument.starts_with(record::kPlanPrefix)) return plan_tensor(key, argument, want);
    if (have == arguments_.end()) return out_.notes.push_back(str(key, " was recorded, but not the argument itself"));
    const auto pages = want_.find(key + record::kPagesSuffix);
    if (pages == want_.end()) return tensor(key, have->second.view(), want.view());
    const int dim = static_cast<int>(integer_of(object_of(details_, key.c_str()), record::kPageDim));
    const Tensor used = take_pages(on_host(have->second.view()), dim, pages->second.view());
    tensor(key, used.view(), want.view());
  }

  /// The member of the receiver's state after the call; None when there is no such member.
  Value member(const std::string& argument) const {
    const std::string name = argument.substr(std::strlen(record::kPlanPrefix));
    if (self_)
      for (const op::Field& f : self_->type->fields)
        if (name == f.name) return f.get(self_->state.get());
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

  const Tensors& arguments_;
  const op::Object* self_;
  const Json &values_, &details_;
  const Tolerances& tolerances_;
  Tensors want_;
  std::set<std::string> seen_;
  Comparison out_;
};

}  // namespace

std::optional<Difference> compare_tensors(const std::string& key, const TensorView& have, const TensorView& want,
                                          const Tolerances& tolerances, Largest* largest) {
  if (have.dtype() != want.dtype() || !std::ranges::equal(have.shape(), want.shape()))
    return difference(key, str(key, " is ", to_string(have), ", but ", to_string(want), " was recorded"));
  const op::Tolerance tol = tolerance(tolerances, want.dtype());
  const cases::Comparison c =
      tolerances.bitwise ? cases::compare_bits(have, want) : cases::compare(have, want, tol.rtol, tol.atol);
  if (largest) *largest = {std::max(largest->abs, c.max_abs), std::max(largest->rel, c.max_rel)};
  if (c.equal) return std::nullopt;
  Difference d = difference(key, str(key, " ", c.text));
  d.mismatches = c.mismatches;
  d.elements = want.numel();
  d.max_abs = c.max_abs, d.max_rel = c.max_rel;
  d.index = c.index;
  return d;
}

Comparison compare_outputs(const Value& result, const Tensors& arguments, const op::Object* self,
                           const std::vector<formats::StoredTensor>& stored, const Json& values, const Json& details,
                           const Tolerances& tolerances) {
  return Comparer(arguments, self, stored, values, details, tolerances).run(result);
}

}  // namespace flashinfer::replay
