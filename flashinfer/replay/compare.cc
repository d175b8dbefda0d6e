// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

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

/// What a call gave.
struct Outputs {
  std::map<std::string, Value> results;                  // by key: result, or result_<i>
  const Tensors& arguments;                              // after the call, by the argument's key
  std::function<Value(const std::string& name)> member;  // of the receiver's state; None when there is no such member
  bool used_pages = false;  // pools among the arguments hold the pages that <key>__pages names
};

/// Of the top level: those inside another one have the keys <parent>__<i>.
bool is_result(const std::string& key) { return key.starts_with(record::kResult) && key.find("__") == key.npos; }

class Comparer {
 public:
  Comparer(const Outputs& have, const std::vector<formats::StoredTensor>& stored, const Json& values,
           const Json& details, const Tolerances& tolerances)
      : have_(have), values_(values), details_(details), tolerances_(tolerances) {
    for (const auto& t : stored) want_[t.key] = t.tensor;
  }

  Comparison run() {
    results();
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

  void results() {
    for (const auto& [key, have] : have_.results) result_at(key, have);
    for (const auto& [key, want] : want_)
      if (is_result(key) && !have_.results.contains(key))
        differs(key, str(key, " ", tolerances_.other, " (", to_string(want.view()),
                         "), but the call returns nothing in its place"));
  }

  void result_at(const std::string& key, const Value& have) {
    const auto want = want_.find(key);
    const auto value = values_.find(key);
    if (want != want_.end()) {
      if (have.tensor()) return tensor(key, *have.tensor(), want->second.view());
      return differs(key, str(key, " is ", op::python_repr(have), ", but a tensor ", tolerances_.other));
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
      differs(key, str(key, " is ", op::python_repr(have), ", but ", op::python_repr(want), " ", tolerances_.other));
  }

  static bool plain_equal(const Value& a, const Value& b) {
    const double *x = a.as<double>(), *y = b.as<double>();
    if (x && y) return *x == *y || (std::isnan(*x) && std::isnan(*y));
    return op::same_value(a, b);
  }

  void after(const std::string& key, const Tensor& want) {
    const std::string argument = key.substr(std::strlen(record::kAfterPrefix));
    const auto have = have_.arguments.find(argument);
    if (argument.starts_with(record::kPlanPrefix)) return plan_tensor(key, argument, want);
    if (have == have_.arguments.end())
      return out_.notes.push_back(str(key, " ", tolerances_.other, ", but not the argument itself"));
    const auto pages = want_.find(key + record::kPagesSuffix);
    if (pages == want_.end()) return tensor(key, have->second.view(), want.view());
    if (const auto own = have_.arguments.find(argument + record::kPagesSuffix);
        have_.used_pages && own != have_.arguments.end()) {
      if (!cases::compare_bits(own->second.view(), pages->second.view()).equal)
        return differs(key, str(key, " has other pages of the pool"));
      return tensor(key, have->second.view(), want.view());
    }
    const int dim = static_cast<int>(integer_of(object_of(details_, key.c_str()), record::kPageDim));
    const Tensor used = take_pages(on_host(have->second.view()), dim, pages->second.view());
    tensor(key, used.view(), want.view());
  }

  Value member(const std::string& argument) const {
    return have_.member(argument.substr(std::strlen(record::kPlanPrefix)));
  }

  void plan_tensor(const std::string& key, const std::string& argument, const Tensor& want) {
    const Value have = member(argument);
    if (have.tensor()) return tensor(key, *have.tensor(), want.view());
    differs(key, str(key, " ", tolerances_.other, ", but the plan now has no such tensor"));
  }

  void after_value(const std::string& key, const Json& want) {
    const std::string argument = key.substr(std::strlen(record::kAfterPrefix));
    if (argument.starts_with(record::kPlanPrefix)) tree(key, member(argument), decode(want, want_));
  }

  const Outputs& have_;
  const Json &values_, &details_;
  const Tolerances& tolerances_;
  Tensors want_;
  Comparison out_;
};

}  // namespace

std::optional<Difference> compare_tensors(const std::string& key, const TensorView& have, const TensorView& want,
                                          const Tolerances& tolerances, Largest* largest) {
  if (have.dtype() != want.dtype() || !std::ranges::equal(have.shape(), want.shape()))
    return difference(key, str(key, " is ", to_string(have), ", but ", to_string(want), " ", tolerances.other));
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
  const auto member = [self](const std::string& name) {
    if (self)
      for (const op::Field& f : self->type->fields)
        if (name == f.name) return f.get(self->state.get());
    return Value();
  };
  // The top level of a result: a tensor, a tuple whose tensors have their own keys, or a value of metadata.
  std::map<std::string, Value> results;
  if (const auto* tuple = result.as<op::TupleValue>(); tuple && !record::stands_for_object(*tuple)) {
    for (size_t i = 0; i < tuple->items.size(); ++i) results.emplace(str(record::kResult, "_", i), tuple->items[i]);
  } else {
    results.emplace(record::kResult, result);
  }
  return Comparer({std::move(results), arguments, member}, stored, values, details, tolerances).run();
}

Comparison compare_recorded(const Session& have_session, const Call& have, const Session& want_session,
                            const Call& want, const Tolerances& tolerances) {
  const auto load = [](const Session& session, const Call& call) {
    return load_tensors(session, call.folder, record::kOutputsStem, object_of(call.record, record::kTensorDetails));
  };
  Tensors tensors, arguments;
  for (const auto& t : load(have_session, have)) tensors[t.key] = t.tensor;
  const Json& values = object_of(have.record, record::kOutputMetadata);
  const auto find = [&](const std::string& key) {
    if (const auto t = tensors.find(key); t != tensors.end()) return Value(t->second);
    const auto v = values.find(key);
    return v != values.end() ? decode(*v, tensors) : Value();
  };
  std::map<std::string, Value> results;
  for (const auto& [key, tensor] : tensors) {
    if (is_result(key)) results.emplace(key, Value(tensor));
    if (key.starts_with(record::kAfterPrefix)) arguments[key.substr(std::strlen(record::kAfterPrefix))] = tensor;
  }
  for (const auto& [key, value] : values.items())
    if (is_result(key)) results.emplace(key, decode(value, tensors));
  for (const auto& [key, d] : object_of(have.record, record::kTensorDetails).items())  // stored once, as a result
    if (const auto t = tensors.find(string_of(d, record::kSameAs));
        t != tensors.end() && key.starts_with(record::kAfterPrefix))
      arguments.emplace(key.substr(std::strlen(record::kAfterPrefix)), t->second);
  const auto member = [&](const std::string& name) {
    return find(str(record::kAfterPrefix, record::kPlanPrefix, name));
  };
  return Comparer({std::move(results), arguments, member, true}, load(want_session, want),
                  object_of(want.record, record::kOutputMetadata), object_of(want.record, record::kTensorDetails),
                  tolerances)
      .run();
}

}  // namespace flashinfer::replay
