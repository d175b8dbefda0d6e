// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/trace/facts.h"

#include <cmath>

#include "flashinfer/core/check.h"

namespace flashinfer::trace {

std::optional<int64_t> Fact::integer() const {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (kind != kNumber || std::trunc(number) != number || std::abs(number) > kExact) return std::nullopt;
  return static_cast<int64_t>(number);
}

std::string Fact::str() const {
  switch (kind) {
    case kNone: return "None";
    case kTensor: return "Tensor";
    case kNumber: return op::python_repr(integer() ? op::Value(*integer()) : op::Value(number));
    case kText:
    case kDType: return text;
    case kSequence: return "sequence";
  }
  return {};
}

Fact fact_of(const op::Value& v) {
  Fact f;
  if (const auto* t = v.as<op::TensorValue>()) {
    if (!t->view.defined()) return f;
    f.kind = Fact::kTensor;
    f.shape.assign(t->view.shape().begin(), t->view.shape().end());
    f.text = t->bytes_of.empty() ? std::string(name(t->view.dtype())) : t->bytes_of;
    if (!t->bytes_of.empty()) f.shape.pop_back();
    return f;
  }
  const auto number = [&](double x) {
    f.kind = Fact::kNumber;
    f.number = x;
    return f;
  };
  const auto text = [&](Fact::Kind kind, std::string s) {
    f.kind = kind;
    f.text = std::move(s);
    return f;
  };
  if (const auto* b = v.as<bool>()) return number(*b);
  if (const auto* i = v.as<int64_t>()) return number(static_cast<double>(*i));
  if (const auto* d = v.as<double>()) return number(*d);
  if (const auto* s = v.as<std::string>()) return text(Fact::kText, *s);
  if (const auto* d = v.as<DType>()) return text(Fact::kDType, std::string(name(*d)));
  if (const auto* e = v.as<op::EnumValue>()) {
    if (e->numeric) return number(std::strtod(e->value.c_str(), nullptr));
    return text(Fact::kText, e->value);
  }
  if (const auto* items = op::sequence_items(v)) {
    f.kind = Fact::kSequence;
    for (const op::Value& x : *items) f.items.push_back(fact_of(x));
  }
  return f;
}

void add_state(Facts& facts, const op::Object& self) {
  if (!self.state) return;
  for (const op::Field& f : self.type->fields) facts[std::string("self.") + f.name] = fact_of(f.get(self.state.get()));
}

Facts facts_of(const op::Op& op, const void* block) {
  Facts facts;
  for (const op::Field& f : op.fields) {
    const op::Value v = f.get(block);
    if (f.role != op::Role::kSelf) {
      facts[f.name] = fact_of(v);
    } else if (const auto* self = v.as<op::ObjectValue>(); self && self->object) {
      add_state(facts, *self->object);
    }
  }
  return facts;
}

namespace {
Fact fact_from_json(const std::string& name, const Json& j) {
  Fact f;
  if (j.is_null()) return f;
  if (j.is_boolean() || j.is_number()) {
    f.kind = Fact::kNumber;
    f.number = j.is_boolean() ? j.get<bool>() : j.get<double>();
  } else if (j.is_string()) {
    f.kind = Fact::kText;
    f.text = j.get<std::string>();
  } else if (j.is_object() && j.contains("shape") && j.contains("dtype")) {
    f.kind = Fact::kTensor;
    f.shape = j["shape"].get<std::vector<int64_t>>();
    f.text = j["dtype"].get<std::string>();
  } else if (j.is_object() && j.contains("items") && j["items"].is_array()) {
    f.kind = Fact::kSequence;
    for (const Json& item : j["items"]) f.items.push_back(fact_from_json(name, item));
  } else if (j.is_object() && j.contains("dtype")) {
    f.kind = Fact::kDType;
    f.text = j["dtype"].get<std::string>();
  } else {
    throw ValueError(str("fi_trace: ", name, " is ", j.dump(), ", but must be a tensor's shape and dtype or a value"));
  }
  return f;
}
}  // namespace

Facts facts_from_json(const Json& j) {
  Facts facts;
  for (const auto& [name, value] : j.items()) facts[name] = fact_from_json(name, value);
  return facts;
}

const Fact* find(const Facts& facts, std::string_view name) {
  const auto it = facts.find(name);
  return it == facts.end() || it->second.kind == Fact::kNone ? nullptr : &it->second;
}

}  // namespace flashinfer::trace
