// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/replay/inputs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "flashinfer/core/check.h"
#include "flashinfer/record/format.h"

namespace flashinfer::replay {
namespace {

using op::Value;
constexpr int kMaxDepth = 64;

Value decode_at(const Json& j, const Tensors& tensors, int depth);

std::vector<Value> decode_items(const Json& j, const Tensors& tensors, int depth) {
  std::vector<Value> items;
  if (const auto it = j.find("items"); it != j.end() && it->is_array())
    for (const Json& x : *it) items.push_back(decode_at(x, tensors, depth + 1));
  return items;
}

double parse_float(const std::string& text) {
  if (text == "inf") return HUGE_VAL;
  if (text == "-inf") return -HUGE_VAL;
  return std::nan("");
}

/// "(1+2j)", "-0.5j", "(inf+nanj)", as Python prints complex numbers.
op::Complex parse_complex(const std::string& text) {
  const char* p = text.c_str() + (text.starts_with('(') ? 1 : 0);
  char* end = nullptr;
  const double first = std::strtod(p, &end);
  if (*end == 'j') return {0, first};
  return {first, std::strtod(end, nullptr)};
}

Value decode_dict(const Json& j, const Tensors& tensors, int depth) {
  op::DictValue d;
  if (const auto it = j.find("items"); it != j.end() && it->is_array())
    for (const Json& x : *it)
      if (x.is_object() && x.contains("key") && x.contains("value"))
        d.items.emplace_back(decode_at(x["key"], tensors, depth + 1), decode_at(x["value"], tensors, depth + 1));
  return d;
}

Value decode_tagged(const Json& j, const std::string& type, const Tensors& tensors, int depth) {
  const std::string text = string_of(j, record::kValue, string_of(j, "repr"));
  if (type == record::kTypeTensor) {
    const std::string key = string_of(j, record::kTensorKey);
    const auto it = tensors.find(key);
    FI_CHECK(it != tensors.end(), ValueError, "the tensor ", key, " is not in the dump");
    return Value(it->second);
  }
  if (type == record::kTypeDType || type == "dtype") {
    if (const auto d = parse_dtype(text)) return *d;
  } else if (type == record::kTypeDevice || type == "device") {
    if (const auto d = parse_device(text)) return *d;
  } else if (type == record::kTypeEnum) {
    const auto it = j.find(record::kValue);
    const bool numeric = it != j.end() && it->is_number();
    return op::EnumValue{string_of(j, "name"),
                         it == j.end()     ? ""
                         : it->is_string() ? it->get<std::string>()
                                           : it->dump(),
                         numeric};
  } else if (type == record::kTypeGenerator && j.contains(record::kState)) {
    const Value seed = decode_at(j.value(record::kSeed, Json()), tensors, depth + 1);
    return op::TupleValue{{op::OpaqueValue{type, text}, seed, decode_at(j[record::kState], tensors, depth + 1)},
                          record::kTypeTorchGenerator};
  } else if (type == record::kTypeGenerator && j.contains(record::kOffset)) {
    return op::Generator(static_cast<uint64_t>(integer_of(j, "seed")), static_cast<uint64_t>(integer_of(j, "offset")));
  } else if (type == record::kTypeFloat) {
    return parse_float(text);
  } else if (type == record::kTypeComplex) {
    const auto it = j.find(record::kValue);
    if (it != j.end() && it->is_array() && it->size() == 2) {
      const Value re = decode_at((*it)[0], tensors, depth + 1), im = decode_at((*it)[1], tensors, depth + 1);
      const auto number = [](const Value& v) {
        return v.as<double>() ? *v.as<double>() : v.as<int64_t>() ? double(*v.as<int64_t>()) : 0;
      };
      return op::Complex{number(re), number(im)};
    }
    return parse_complex(text);
  } else if (type == record::kTypeList) {
    return op::ListValue{decode_items(j, tensors, depth)};
  } else if (type == record::kTypeDict) {
    return decode_dict(j, tensors, depth);
  } else if (j.contains("items")) {  // a tuple or a class derived from it
    return op::TupleValue{decode_items(j, tensors, depth), type};
  }
  return op::OpaqueValue{type, text};
}

Value decode_at(const Json& j, const Tensors& tensors, int depth) {
  FI_CHECK(depth <= kMaxDepth, ValueError, "values nest deeper than ", kMaxDepth);
  switch (j.type()) {
    case Json::value_t::null: return Value();
    case Json::value_t::boolean: return j.get<bool>();
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned: return j.get<int64_t>();
    case Json::value_t::number_float: return j.get<double>();
    case Json::value_t::string: return j.get<std::string>();
    case Json::value_t::array: {
      op::ListValue l;
      for (const Json& x : j) l.items.push_back(decode_at(x, tensors, depth + 1));
      return l;
    }
    default: return decode_tagged(j, string_of(j, record::kType), tensors, depth);
  }
}

/// 3 for "arg_3" and "arg_3__0"; -1 for other keys.
int positional_index(const std::string& key) {
  if (!key.starts_with(record::kArgPrefix)) return -1;
  int i = -1;
  const char *begin = key.data() + 4, *end = key.data() + key.size();
  const auto r = std::from_chars(begin, end, i);
  return r.ec == std::errc() && i >= 0 && i < 1024 && (r.ptr == end || *r.ptr == '_') ? i : -1;
}

/// "scale" for "kwarg_scale"; empty for nested and other keys.
std::string keyword_name(const std::string& key) {
  if (!key.starts_with(record::kKwargPrefix)) return "";
  const std::string rest = key.substr(6);
  return rest.find("__") == rest.npos ? rest : "";
}

/// The parameter at position i, or null.
const op::Field* parameter(const op::Op& op, size_t i) {
  for (const op::Field& f : op.fields)
    if (f.role != op::Role::kResult && !f.internal && i-- == 0) return &f;
  return nullptr;
}

void move_devices(Value* v, Device device) {
  if (v->as<Device>()) *v = device;
}

}  // namespace

Value decode(const Json& j, const Tensors& tensors) { return decode_at(j, tensors, 0); }

std::string key_of(const Call& call, const std::string& name) {
  if (const auto names = call.record.find(record::kArgNames); names != call.record.end() && names->is_array())
    for (size_t i = 0; i < names->size(); ++i)
      if ((*names)[i] == name) return record::kArgPrefix + std::to_string(i);
  return record::kKwargPrefix + name;
}

Inputs::Inputs(const Session& session, const Call& call, const op::Op& op, std::optional<Device> device,
               const Shared* shared) {
  const Json& values = object_of(call.record, record::kInputMetadata);
  const Json& details = object_of(call.record, record::kTensorDetails);
  const auto stored = load_tensors(session, call.folder, record::kInputsStem, details);
  tensors = place(stored, details, device, shared);
  const Json& info = object_of(call.record, record::kTensorInfo);
  if (const auto keys = info.find(record::kInputTensorKeys); keys != info.end() && keys->is_array())
    for (const Json& key : *keys) {
      if (!key.is_string() || tensors.contains(key.get<std::string>())) continue;
      const bool file = !tensor_file(call.folder, record::kInputsStem).empty();
      throw ValueError(str(file ? str("the tensor ", key.get<std::string>(), " is not in the file of inputs")
                                : str("the file of inputs (", record::kInputsStem, ".pt or .safetensors) is missing")));
    }
  if (op.state) restore_self(call, op, values);
  bind(call, op, values, device);
}

Value Inputs::argument(const std::string& key, const Json& values) const {
  if (const auto t = tensors.find(key); t != tensors.end()) return Value(t->second);
  const auto v = values.find(key);
  FI_CHECK(v != values.end(), ValueError, key, " is neither among the tensors nor in the metadata");
  return decode(*v, tensors);
}

void Inputs::bind(const Call& call, const op::Op& op, const Json& values, std::optional<Device> device) {
  std::vector<std::string> names;
  if (const auto it = call.record.find(record::kArgNames); it != call.record.end() && it->is_array())
    for (const Json& n : *it) names.push_back(n.is_string() ? n.get<std::string>() : "");
  int count = 0;
  std::vector<std::string> keywords;
  const auto look = [&](const std::string& key) {
    count = std::max(count, positional_index(key) + 1);
    const std::string n = keyword_name(key);
    if (!n.empty() && std::ranges::find(keywords, n) == keywords.end()) keywords.push_back(n);
  };
  for (const auto& [key, v] : values.items()) look(key);
  for (const auto& [key, t] : tensors) look(key);
  const bool has_self = op.fields.size() > 0 && op.fields[0].role == op::Role::kSelf;
  for (int i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(i);
    if (i == 0 && has_self && self) {
      passed.positional.emplace_back(op::ObjectValue{self.get(), self->class_name, self->module, self->id});
      continue;
    }
    Value v = argument(record::kArgPrefix + std::to_string(i), values);
    if (device) move_devices(&v, *device);
    const op::Field* expected = parameter(op, at);
    // The names rule: a parameter that has moved since the recording is passed by keyword.
    const bool moved = at < names.size() && !names[at].empty() && expected && names[at] != expected->name;
    if (moved || passed.positional.size() < at) {
      passed.keyword.emplace_back(at < names.size() ? names[at]
                                  : expected        ? expected->name
                                                    : str("argument ", i),
                                  std::move(v));
    } else {
      passed.positional.push_back(std::move(v));
    }
  }
  for (const std::string& n : keywords) {
    Value v = argument(record::kKwargPrefix + n, values);
    if (device) move_devices(&v, *device);
    passed.keyword.emplace_back(n, std::move(v));
  }
}

void Inputs::replace(const Call& call, const std::string& name, const op::Value& value) {
  if (const auto names = call.record.find(record::kArgNames); names != call.record.end() && names->is_array())
    for (size_t i = 0; i < std::min(names->size(), passed.positional.size()); ++i)
      if ((*names)[i] == name) passed.positional[i] = value;
  for (auto& [n, v] : passed.keyword)
    if (n == name) v = value;
}

void Inputs::restore_self(const Call& call, const op::Op& op, const Json& values) {
  const std::string name = op.name, cls = name.substr(0, name.rfind('.'));
  self = std::make_unique<op::Object>(op::intern_class(cls), op.module, *op.state);
  std::shared_ptr<void> state = op.state->make();
  bool any = false;
  for (const op::Field& f : op.state->fields) {
    const std::string key = std::string(record::kPlanPrefix) + f.name;
    if (!tensors.contains(key) && !values.contains(key)) continue;
    f.set(state.get(), argument(key, values), f);
    any = true;
  }
  const auto planned = call.record.find(record::kPlanned);
  self->planned = planned != call.record.end() && planned->is_boolean() ? planned->get<bool>() : any;
  self->state = std::move(state);
}

}  // namespace flashinfer::replay
