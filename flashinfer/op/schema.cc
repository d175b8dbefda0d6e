// SPDX-License-Identifier: Apache-2.0
// Members of argument blocks as Values and back.
#include "flashinfer/op/schema.h"

#include <cmath>
#include <cstdlib>

#include "flashinfer/op/object.h"

namespace flashinfer::op {
namespace {
[[noreturn]] void wrong_type(const Field& f, const char* want, const Value& v) {
  throw TypeError(str(f.name, " must be ", want, ", but is ", type_name(v), " ", python_repr(v)));
}
Value pair_value(const TensorView& a, const TensorView& b) {
  TupleValue t;
  t.items.emplace_back(a);
  t.items.emplace_back(b);
  return t;
}
}  // namespace

Value to_value(const TensorView& v) { return v.defined() ? Value(v) : Value(); }
Value to_value(const Tensor& v) { return v.defined() ? Value(v) : Value(); }
Value to_value(const PagedKv& v) {
  if (!v.first.defined()) return Value();
  return v.stacked ? Value(v.first) : pair_value(v.first, v.second);
}
Value to_value(const ScalarOrTensor& v) {
  return std::visit([](const auto& x) { return Value(x); }, v.value);
}
Value to_value(const std::vector<TensorView>& v) {
  ListValue l;
  for (const auto& t : v) l.items.emplace_back(t);
  return l;
}
Value to_value(Object* v) {
  if (!v) return Value();
  return ObjectValue{v, v->class_name, v->module, v->id};
}

void from_value(TensorView& out, const Value& v, const Field& f) {
  const TensorView* t = v.tensor();
  if (!t) wrong_type(f, "a tensor", v);
  out = *t;
}
void from_value(Tensor& out, const Value& v, const Field& f) {
  if (v.is_none()) {
    out = Tensor();
    return;
  }  // a plan without a mask
  const auto* t = v.as<TensorValue>();
  if (!t) wrong_type(f, "a tensor", v);
  out = t->owner ? Tensor(t->view, t->owner) : Tensor::clone(t->view);
}
void from_value(PagedKv& out, const Value& v, const Field& f) {
  if (const TensorView* t = v.tensor()) {
    out = PagedKv(*t);
    return;
  }
  const auto* pair = v.as<TupleValue>();  // a list is an error, as in FlashInfer
  if (!pair || pair->items.size() != 2 || !pair->items[0].tensor() || !pair->items[1].tensor())
    throw KeyError(str(f.name, " must be a stacked tensor or a tuple (k_cache, v_cache), but is ", type_name(v), " ",
                       python_repr(v)));
  out = PagedKv(*pair->items[0].tensor(), *pair->items[1].tensor());
}
void from_value(ScalarOrTensor& out, const Value& v, const Field& f) {
  if (const TensorView* t = v.tensor())
    out = ScalarOrTensor(*t);
  else if (const auto* i = v.as<int64_t>())
    out = ScalarOrTensor(*i);
  else if (const auto* d = v.as<double>())
    out = ScalarOrTensor(*d);
  else
    wrong_type(f, "a number or a tensor", v);
}
void from_value(std::vector<TensorView>& out, const Value& v, const Field& f) {
  const auto* items = sequence_items(v);
  if (!items) wrong_type(f, "a list of tensors", v);
  out.clear();
  for (const auto& x : *items) {
    if (!x.tensor()) wrong_type(f, "a list of tensors", v);
    out.push_back(*x.tensor());
  }
}
void from_value(std::vector<int64_t>& out, const Value& v, const Field& f) {
  const auto* items = sequence_items(v);
  if (!items) wrong_type(f, "a list of integers", v);
  out.clear();
  for (const auto& x : *items) {
    if (!x.as<int64_t>()) wrong_type(f, "a list of integers", v);
    out.push_back(*x.as<int64_t>());
  }
}
void from_value(Object*& out, const Value& v, const Field& f) {
  const auto* o = v.as<ObjectValue>();
  if (!o || !o->object) wrong_type(f, "an object of this library", v);
  out = o->object;
}
void from_value(bool& out, const Value& v, const Field& f) {
  if (const auto* b = v.as<bool>())
    out = *b;
  else if (const auto* i = v.as<int64_t>())
    out = *i != 0;
  else
    wrong_type(f, "a bool", v);
}
void from_value(int64_t& out, const Value& v, const Field& f) {
  if (const auto* i = v.as<int64_t>())
    out = *i;
  else if (const auto* b = v.as<bool>())
    out = *b ? 1 : 0;
  else if (const auto* d = v.as<double>(); d && std::trunc(*d) == *d && std::abs(*d) < 9e15)
    out = static_cast<int64_t>(*d);
  else if (const auto* e = v.as<EnumValue>(); e && e->numeric)
    out = std::strtoll(e->value.c_str(), nullptr, 10);
  else
    wrong_type(f, "an integer", v);
}
void from_value(double& out, const Value& v, const Field& f) {
  if (const auto* d = v.as<double>())
    out = *d;
  else if (const auto* i = v.as<int64_t>())
    out = static_cast<double>(*i);
  else
    wrong_type(f, "a number", v);
}
void from_value(std::string& out, const Value& v, const Field& f) {
  if (const auto* s = v.as<std::string>())
    out = *s;
  else
    wrong_type(f, "a string", v);
}
void from_value(DType& out, const Value& v, const Field& f) {
  if (const auto* t = v.as<DType>()) {
    out = *t;
    return;
  }
  const auto* s = v.as<std::string>();
  const auto t = s ? parse_dtype(*s) : std::nullopt;
  if (!t) wrong_type(f, "a dtype or the name of one", v);
  out = *t;
}
void from_value(Device& out, const Value& v, const Field& f) {
  if (const auto* d = v.as<Device>()) {
    out = *d;
    return;
  }
  const auto* s = v.as<std::string>();
  const auto d = s ? parse_device(*s) : std::nullopt;
  if (!d) wrong_type(f, "a device", v);
  out = *d;
}
void from_value(Generator& out, const Value& v, const Field& f) {
  if (const auto* g = v.as<Generator>())
    out = *g;
  else
    wrong_type(f, "a generator", v);
}

}  // namespace flashinfer::op
