// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/trace/definition.h"

#include <algorithm>

#include "flashinfer/core/check.h"
#include "flashinfer/op/call.h"
#include "flashinfer/op/registry.h"

namespace flashinfer::trace {
namespace {

constexpr const char* kUnknown = "unknown";

/// One half of a cache that is one tensor [pages, 2, ...].
Fact half_of(Fact f) {
  if (f.shape.size() > 1) f.shape.erase(f.shape.begin() + 1);
  return f;
}

/// dims with heads in front of the tokens of a page, as an HND cache has them: an entry's shapes are NHD.
std::vector<std::string> dims_of(const Item& item, const Facts& facts) {
  auto dims = item.dims;
  if (item.paged && dims.size() >= 4 && is_hnd(facts)) {
    const auto page = std::ranges::find(dims, "page_size");
    if (page != dims.end() && page + 1 != dims.end() && (page + 1)->ends_with("heads")) std::swap(*page, *(page + 1));
  }
  return dims;
}

/// The extent of `axis` in a tensor, at the place where `item` has it first.
std::optional<int64_t> extent(const Item& item, const Facts& facts, const std::string& axis) {
  const auto f = passed(item, facts);
  if (!f || !f->is_tensor()) return std::nullopt;
  const auto dims = dims_of(item, facts);
  auto at = std::ranges::find(dims, axis) - dims.begin();
  if (at == static_cast<std::ptrdiff_t>(dims.size())) return std::nullopt;
  const auto rank = static_cast<std::ptrdiff_t>(f->shape.size()), listed = static_cast<std::ptrdiff_t>(dims.size());
  if (item.from_end && rank > listed) {
    if (at == 0) {  // leading extents folded
      int64_t product = 1;
      for (std::ptrdiff_t i = 0; i <= rank - listed; ++i) product *= f->shape[static_cast<size_t>(i)];
      return product;
    }
    at += rank - listed;
  }
  if (at >= rank) return std::nullopt;
  return f->shape[static_cast<size_t>(at)];
}

std::optional<int64_t> value_of(const Template& t, const Axis& a, const Facts& facts) {
  if (a.value) return a.value;
  const auto of_tensors = [&](bool optional) -> std::optional<int64_t> {
    for (const Item& item : t.inputs)
      if (!item.scalar && item.optional == optional)
        if (const auto n = extent(item, facts, a.name)) return n;
    return std::nullopt;
  };
  if (const auto n = of_tensors(false)) return n;
  for (const Item& item : t.inputs)
    if (item.scalar && item.key == a.name)
      if (const Fact* f = find(facts, item.param); f && f->integer()) return f->integer();
  if (const auto n = of_tensors(true)) return n;
  const Fact* f = find(facts, a.name);
  return f ? f->integer() : std::nullopt;
}

std::string input_dtype(const Item& item, const Facts& facts) {
  if (item.scalar) {
    const auto f = passed(item, facts);
    return item.dtype.empty() ? (f && f->is_tensor() ? f->text : kUnknown) : item.dtype;
  }
  if (const auto f = passed(item, facts); f && f->is_tensor()) return f->text;
  return item.dtype.empty() || !item.optional ? kUnknown : item.dtype;
}

/// The element type of an argument, which the name of an input's key may stand for too.
std::optional<std::string> dtype_of_argument(const Template& t, const std::string& name, const Facts& facts) {
  for (const Item& item : t.inputs)
    if (!item.scalar && (item.param == name || item.key == name))
      if (const auto f = passed(item, facts); f && f->is_tensor()) return f->text;
  if (const Fact* f = find(facts, name); f && f->is_tensor()) return f->text;
  return std::nullopt;
}

std::string output_dtype(const Template& t, const Item& item, const Facts& facts) {
  if (!item.dtype_from.empty())
    if (const auto d = dtype_of_argument(t, item.dtype_from, facts)) return *d;
  if (!item.dtype_from_scalar.empty())
    if (const Fact* f = find(facts, item.dtype_from_scalar); f && (f->kind == Fact::kDType || f->kind == Fact::kText)) {
      const auto dot = f->text.rfind('.');
      return dot == f->text.npos ? f->text : f->text.substr(dot + 1);
    }
  if (!item.dtype.empty()) return item.dtype;
  if (item.dtype_from.empty() && item.dtype_from_scalar.empty())
    for (const Item& in : t.inputs) {
      const bool shares =
          std::ranges::any_of(in.dims, [&](const std::string& d) { return std::ranges::count(item.dims, d) > 0; });
      const auto f = shares ? passed(in, facts) : std::nullopt;
      if (f && f->is_tensor()) return f->text;
    }
  return kUnknown;
}

Json item_json(const Item& item, const std::string& dtype, const Facts& facts, bool is_output) {
  Json j = {{"shape", item.scalar ? Json() : Json(dims_of(item, facts))}, {"dtype", dtype}};
  if (item.optional) j["optional"] = true;
  if (is_output && !item.param.empty()) j["param"] = item.param;
  if (!item.description.empty()) j["description"] = item.description;
  return j;
}

op::Value value_of(const Fact& fact, std::string_view type) {
  alignas(64) static char memory[64];  // inferring outputs reads no content
  switch (fact.kind) {
    case Fact::kNone: return {};
    case Fact::kTensor: {
      const auto dtype = parse_dtype(fact.text);
      FI_CHECK(dtype, TypeError, fact.text, " is no element type of this library");
      return op::Value(TensorView(memory, *dtype, fact.shape));
    }
    case Fact::kNumber:
      if (type == "bool") return op::Value(fact.number != 0);
      return fact.integer() && type != "float" ? op::Value(*fact.integer()) : op::Value(fact.number);
    case Fact::kText: return op::Value(fact.text);
    case Fact::kDType: {
      const auto dtype = parse_dtype(fact.text);
      return dtype ? op::Value(*dtype) : op::Value(fact.text);
    }
    case Fact::kSequence: {
      op::TupleValue tuple;
      for (const Fact& item : fact.items) tuple.items.push_back(value_of(item, type));
      return tuple;
    }
  }
  return {};
}

/// A block of arguments that the facts tell, whose tensors have no content of their own. False: some do not fit.
bool fill(const op::Block& block, const Facts& facts) {
  try {
    for (const op::Field& f : block.op().fields)
      if (const Fact* fact = find(facts, f.name)) f.set(block.data(), value_of(*fact, f.type), f);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

bool is_hnd(const Facts& facts) {
  for (const char* name : {"kv_layout", "self.kv_layout"})
    if (const Fact* f = find(facts, name)) return f->text == "HND";
  return false;
}

Facts with_state(const Template& t, Facts facts) {
  for (const Item& item : t.inputs)
    if (const Fact* f = find(facts, "self." + item.param); f && !find(facts, item.param)) facts[item.param] = Fact(*f);
  return facts;
}

std::optional<Fact> passed(const Item& item, const Facts& facts) {
  const Fact* f = find(facts, item.param);
  if (!f) return std::nullopt;
  if (item.element < 0) return *f;
  const auto i = static_cast<size_t>(item.element);
  if (f->kind == Fact::kSequence) {
    if (i >= f->items.size() || f->items[i].kind == Fact::kNone) return std::nullopt;
    return f->items[i];
  }
  if (item.paged && f->is_tensor()) return half_of(*f);
  return std::nullopt;
}

Template resolved(Template t, const Facts& facts) {
  for (auto* items : {&t.inputs, &t.outputs})
    for (Item& item : *items) {
      if (!item.any_shape) continue;
      const auto f = passed(item, facts);
      item.any_shape = false;
      if (!f || !f->is_tensor()) {
        if (f && f->kind == Fact::kNumber) item.scalar = true;
        continue;
      }
      for (size_t i = 0; i < f->shape.size(); ++i) {
        const std::string name = str(item.key, "_", i);
        item.dims.push_back(name);
        if (t.axis(name)) continue;
        t.axes.push_back({.name = name});
        if (items == &t.outputs) t.axes.back().value = f->shape[i];  // in no input
      }
    }
  return t;
}

std::vector<std::pair<std::string, int64_t>> axis_values(const Template& t, const Facts& facts) {
  std::vector<std::pair<std::string, int64_t>> out;
  for (const Axis& a : t.axes)
    if (const auto n = value_of(t, a, facts)) out.emplace_back(a.name, *n);
  return out;
}

Template with_unlisted(Template t, const Facts& facts) {
  if (!t.op || !t.reference.empty()) return t;
  for (const op::Field& f : t.op->fields) {
    if (f.internal || (f.role != op::Role::kIn && f.role != op::Role::kPaged)) continue;
    const Fact* fact = find(facts, f.name);
    const auto has_name = [&](const Item& item) { return item.param == f.name || item.key == f.name; };
    if (!fact || !fact->is_tensor() || std::ranges::any_of(t.inputs, has_name)) continue;
    Item item;
    item.key = item.param = f.name;
    item.any_shape = item.optional = true;
    item.description = "Not in FlashInfer's template.";
    t.inputs.push_back(std::move(item));
  }
  return t;
}

Json define(const Template& open, const Facts& call, const Options& options) {
  const Facts facts = options.strict ? with_state(open, call) : call;
  Template t = resolved(options.strict ? with_unlisted(open, facts) : open, facts);
  if (!options.strict) std::erase_if(t.inputs, [](const Item& item) { return item.strict_only; });
  Json j = {
      {"name", ""}, {"description", t.description}, {"op_type", t.op_type}, {"tags", Json::array({"fi_api:" + t.api})}};
  for (const std::string& tag : t.tags) j["tags"].push_back(tag);
  std::string name = t.prefix.empty() ? t.op_type : t.prefix;
  Json& axes = j["axes"] = Json::object();
  for (const Axis& a : t.axes) {
    Json& axis = axes[a.name] = {{"type", a.constant ? "const" : "var"}};
    const auto value = a.constant ? value_of(t, a, facts) : std::nullopt;
    if (value) {
      axis["value"] = *value;
      if (!a.abbreviation.empty()) name += str("_", a.abbreviation, *value);
    }
    if (!a.description.empty()) axis["description"] = a.description;
  }
  j["name"] = options.name.empty() ? name : options.name;
  if (!t.constraints.empty()) j["constraints"] = t.constraints;
  j["inputs"] = Json::object();
  j["outputs"] = Json::object();
  for (const Item& item : t.inputs) j["inputs"][item.key] = item_json(item, input_dtype(item, facts), facts, false);
  for (const Item& item : t.outputs)
    j["outputs"][item.key] = item_json(item, output_dtype(t, item, facts), facts, true);
  if (options.strict) make_strict(j, t, facts, options.block);
  const auto text = [&](const char* key, std::string value) {
    if (!value.empty()) j[key] = std::move(value);
  };
  if (!options.strict) text("reference", reference_text(t));
  text("check", t.check.empty() ? check_text(t) : t.check);
  text("init", t.init.empty() ? init_text(t, j) : t.init);
  return j;
}

Json define(const op::Op& op, const Facts& facts, const Options& options) {
  const op::TraceEntry* entry = choose(op, facts);
  if (!entry) return Json::object();
  if (!options.strict || options.block) return define(make_template(op, *entry), facts, options);
  const op::Block block(op);
  const bool complete = fill(block, facts);
  Options with_block = options;
  if (complete) with_block.block = block.data();
  return define(make_template(op, *entry), facts, with_block);
}

}  // namespace flashinfer::trace
