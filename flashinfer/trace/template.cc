// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/trace/template.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "flashinfer/core/check.h"
#include "flashinfer/op/glossary.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/trace/terms.h"

namespace flashinfer::trace {
namespace {

using op::Field;
using op::Role;

/// Splits at `separator` outside brackets; blanks around the parts and empty parts go.
std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  std::string part;
  int depth = 0;
  const auto flush = [&] {
    const auto first = part.find_first_not_of(' ');
    if (first != part.npos) out.push_back(part.substr(first, part.find_last_not_of(' ') - first + 1));
    part.clear();
  };
  for (const char c : text) {
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (c == separator && depth == 0)
      flush();
    else
      part += c;
  }
  flush();
  return out;
}

/// Takes what is between `open` and `close` out of `text`; nullopt when there is none.
std::optional<std::string> bracketed(std::string& text, char open, char close) {
  const auto begin = text.find(open);
  if (begin == text.npos) return std::nullopt;
  const auto end = text.find(close, begin);
  FI_CHECK(end != text.npos, InternalError, "no ", std::string(1, close), " in ", text);
  std::string inside = text.substr(begin + 1, end - begin - 1);
  text.erase(begin, end - begin + 1);
  return inside;
}

/// Takes `mark` and the name after it out of `text`.
std::optional<std::string> marked(std::string& text, std::string_view mark) {
  const auto begin = text.find(mark);
  if (begin == text.npos) return std::nullopt;
  const auto end = std::min(text.find_first_of("<>@:?!~^", begin + mark.size()), text.size());
  std::string name = text.substr(begin + mark.size(), end - begin - mark.size());
  text.erase(begin, end - begin);
  return name;
}

bool take(std::string& text, char mark) {
  const auto at = text.find(mark);
  if (at != text.npos) text.erase(at, 1);
  return at != text.npos;
}

int64_t number_of(std::string_view text) {
  int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  FI_CHECK(error == std::errc() && end == text.data() + text.size(), InternalError, "not a number: ", text);
  return v;
}

/// The extents of a table's text: "... 2*d b+1" -> {"...", "2*d", "b+1"}.
std::vector<std::string> extents(const op::Dims& dims) { return split(dims.text, ' '); }

/// Builds one template: keeps which axis stands for which extent.
class Builder {
 public:
  Builder(const op::Op& op, const op::TraceEntry& entry) : op_(op), entry_(entry) {}

  Template build() {
    t_.op = &op_;
    t_.op_type = entry_.op_type;
    t_.prefix = entry_.prefix ? entry_.prefix : "";
    t_.description = op_.doc;
    t_.api = entry_.api ? entry_.api : str(op_.module, ".", op_.name);
    t_.tags = split(entry_.tags, ' ');
    t_.constraints = split(entry_.constraints, ';');
    if (entry_.helpers) t_.reference = str(entry_.helpers, "\n\n");
    if (entry_.reference) t_.reference += entry_.reference;
    if (entry_.init) t_.init = entry_.init;
    for (std::string& item : split(entry_.axes, ' ')) add_axis(std::move(item));
    const auto inputs = split(entry_.inputs, ' ');
    for (const std::string& item : inputs) t_.inputs.push_back(input(item));
    if (inputs.empty()) all_inputs();
    const auto outputs = split(entry_.outputs, ' ');
    for (const std::string& item : outputs) t_.outputs.push_back(output(item));
    if (outputs.empty()) all_outputs();
    return std::move(t_);
  }

 private:
  void add_axis(std::string text) {
    Axis a;
    const auto stands_for = bracketed(text, '(', ')');
    if (const auto value = marked(text, ":")) a.value = number_of(*value);
    const auto equals = text.find('=');
    a.constant = equals != text.npos;
    a.name = text.substr(0, equals);
    if (a.constant) a.abbreviation = text.substr(equals + 1);
    a.description = axis_meaning(a.name);
    for (const std::string& extent : split(stands_for.value_or(a.name), ' ')) axis_of_[extent] = a.name;
    t_.axes.push_back(std::move(a));
  }

  /// The axis of an extent; one that no axis of the entry stands for becomes a variable axis of that name.
  std::string axis_of(const std::string& extent) {
    const auto [it, added] = axis_of_.try_emplace(extent);
    if (!added) return it->second;
    std::string& name = it->second;
    if (extent == "...") {
      name = "rows";
    } else if (std::isdigit(static_cast<unsigned char>(extent[0])) && extent.find('*') == extent.npos) {
      name = "size_" + extent;
    } else {
      for (const char c : extent)
        name += c == '*' ? "_times_" : c == '+' ? "_plus_" : c == '-' ? "_minus_" : std::string(1, c);
      if (std::isdigit(static_cast<unsigned char>(name[0]))) name = "axis_" + name;
    }
    if (t_.axis(name)) return name;
    Axis a{.name = name, .description = axis_meaning(name)};
    if (name.starts_with("size_")) {
      a.constant = true;
      a.value = number_of(extent);
    }
    t_.axes.push_back(std::move(a));
    return name;
  }

  void shape_of(Item& item, const Field& f) {
    item.paged = f.role == Role::kPaged || f.role == Role::kPagedInOut;
    if (!f.tensors && f.type != std::string_view("object")) {
      item.scalar = true;
      const std::string_view type = f.type;
      if (item.dtype.empty())
        item.dtype = type == "float"                   ? "float32"
                     : type == "int" || type == "bool" ? "int32"
                     : type == "str"                   ? "string"
                                                       : "dtype";
      if (type == "bool") item.description = "Bool: " + item.description;
      return;
    }
    if (f.dims.count < 0 || !f.tensors) {
      item.any_shape = true;
      return;
    }
    item.from_end = f.dims.ellipsis;
    for (const std::string& extent : extents(f.dims)) item.dims.push_back(axis_of(extent));
  }

  void describe(Item& item, const Field& f) {
    if (const char* text = op::meaning(op_, f)) item.description = text;
    if (item.dtype.empty() && std::has_single_bit(f.dtypes.bits))
      item.dtype = name(static_cast<DType>(std::countr_zero(f.dtypes.bits)));
  }

  const Field& field(const std::string& name) {
    const Field* f = op::find_field(op_, name);
    FI_CHECK(f, InternalError, "trace of ", op_.name, ": there is no argument ", name);
    return *f;
  }

  Item input(std::string text) {
    Item item;
    const auto dims = bracketed(text, '[', ']');
    if (const auto dtype = marked(text, ":")) item.dtype = *dtype;
    const bool optional = take(text, '?'), required = take(text, '!'), plain = take(text, '~');
    item.strict_only = take(text, '^');
    const auto param = marked(text, "<");
    item.key = text;
    item.param = param.value_or(text);
    if (const auto dot = item.param.rfind('.'); dot != item.param.npos) {
      item.element = static_cast<int>(number_of(std::string_view(item.param).substr(dot + 1)));
      item.param.erase(dot);
    }
    const Field* f = op::find_field(op_, item.param);
    if (f) {
      item.optional = !f->required;
      describe(item, *f);
    } else {
      item.optional = true;  // set by a plan
      item.description = plan_meaning(item.key);
    }
    if (optional || required) item.optional = optional;
    if (plain) {
      item.scalar = true;
      if (item.dtype.empty()) item.dtype = "float32";
    } else if (dims) {
      item.dims = split(*dims, ' ');
      item.from_end = f && f->dims.ellipsis;
      item.paged = f && (f->role == Role::kPaged || f->role == Role::kPagedInOut);
    } else if (f) {
      shape_of(item, *f);
      if (item.any_shape && f->type == std::string_view("ScalarOrTensor")) {
        item.any_shape = false;
        item.scalar = true;
        if (item.dtype.empty()) item.dtype = "float32";
      }
    } else {
      item.scalar = true;
    }
    return item;
  }

  void all_inputs() {
    for (const Field& f : op_.fields) {
      const bool tensor =
          f.role == Role::kIn || f.role == Role::kInOut || f.role == Role::kPaged || f.role == Role::kPagedInOut;
      if (f.internal || !(tensor || f.role == Role::kAttr)) continue;
      const std::string_view type = f.type;
      if (!tensor && (type == "object" || type == "device" || type == "Generator" || type == "ints" || f.backends))
        continue;
      if (type == "Tensors") continue;
      if (type == "PagedKv") {
        for (int i = 0; i < 2; ++i) {
          const bool cache = f.role == Role::kPaged || f.role == Role::kPagedInOut;
          const std::string key = cache ? (i ? "v_cache" : "k_cache") : str(f.name, "_", i);
          Item item = input(str(key, "<", f.name, ".", i));
          t_.inputs.push_back(std::move(item));
        }
        continue;
      }
      t_.inputs.push_back(input(f.name));
    }
  }

  void dtype_rule(Item& item, const Field& f) {
    if (f.dtype_from) item.dtype_from_scalar = f.dtype_from;
    if (f.same_as) item.dtype_from = f.same_as;
    if (item.dtype.empty() && std::has_single_bit(f.dtypes.bits))
      item.dtype = name(static_cast<DType>(std::countr_zero(f.dtypes.bits)));
  }

  Item output(std::string text) {
    Item item;
    const auto dims = bracketed(text, '[', ']');
    const auto scalar = marked(text, "@@");
    const auto from = marked(text, "@");
    const auto dtype = marked(text, ":");
    const bool optional = take(text, '?');
    const auto param = marked(text, ">");
    item.key = text;
    item.param = param.value_or("");
    item.optional = optional;
    const Field* f = op::find_field(op_, param.value_or(text));
    if (f) {
      if (const char* meaning = op::meaning(op_, *f)) item.description = meaning;
      if (!scalar && !from && !dtype) dtype_rule(item, *f);
    }
    if (dtype) item.dtype = *dtype;
    if (from) item.dtype_from = *from;
    if (scalar) item.dtype_from_scalar = *scalar;
    if (dims) {
      item.dims = split(*dims, ' ');
    } else {
      FI_CHECK(f, InternalError, "trace of ", op_.name, ": the output ", item.key, " has no shape");
      shape_of(item, *f);
    }
    return item;
  }

  void all_outputs() {
    for (const Field& f : op_.fields)
      if ((f.role == Role::kOut || f.role == Role::kResult) && f.tensors && !f.not_returned && !f.internal) {
        t_.outputs.push_back(output(f.name));
        t_.outputs.back().optional = f.when != nullptr;
      }
    for (const Field& f : op_.fields)
      if ((f.role == Role::kInOut || f.role == Role::kPagedInOut || (f.role == Role::kOut && f.not_returned)) &&
          f.tensors && f.type != std::string_view("PagedKv")) {
        Item item = output(str(f.name, ">", f.name, "@", f.name));
        item.optional = !f.required;
        t_.outputs.push_back(std::move(item));
      }
  }

  const op::Op& op_;
  const op::TraceEntry& entry_;
  Template t_;
  std::map<std::string, std::string> axis_of_;
};

}  // namespace

const Axis* Template::axis(std::string_view name) const {
  for (const Axis& a : axes)
    if (a.name == name) return &a;
  return nullptr;
}

std::vector<const op::TraceEntry*> entries_of(const op::Op& op) {
  std::vector<const op::TraceEntry*> out;
  for (const auto table : op::trace_tables())
    for (const op::TraceEntry& e : table)
      if (e.op == std::string_view(op.name)) out.push_back(&e);
  return out;
}

Template make_template(const op::Op& op, const op::TraceEntry& entry) {
  try {
    return Builder(op, entry).build();
  } catch (const Error& e) {
    throw InternalError(str("trace entry of ", op.name, ": ", e.message()));
  }
}

const op::TraceEntry* choose(const op::Op& op, const Facts& facts) {
  for (const op::TraceEntry* e : entries_of(op)) {
    if (!e->op_type) return nullptr;
    const auto holds = [&](const std::string& condition) {
      const auto equals = condition.find('=');
      const bool negated = condition[equals - 1] == '!';
      const std::string name = condition.substr(0, equals - negated), want = condition.substr(equals + 1);
      Fact fact;
      if (const Fact* passed = find(facts, name)) {
        fact = *passed;
      } else if (const op::Field* f = op::find_field(op, name)) {
        fact = fact_of(f->get(op::default_block(op)));
      }
      if (want == "given") return fact.kind != Fact::kNone;
      if (want == "positive") return fact.kind == Fact::kNumber && fact.number > 0;
      if (want.starts_with("rank")) return fact.is_tensor() && str(fact.shape.size()) == want.substr(4);
      return ((fact.is_tensor() && want != "Tensor" ? fact.text : fact.str()) == want) != negated;
    };
    if (std::ranges::all_of(split(e->when, ' '), holds)) return e;
  }
  return nullptr;
}

namespace {
std::string text_or(const Json& j, const char* key) {
  return j.contains(key) && j[key].is_string() ? j[key].get<std::string>() : std::string();
}

Item item_from_json(const std::string& key, const Json& j, bool is_input) {
  Item item{.key = key, .param = text_or(j, "param")};
  if (is_input && item.param.empty()) item.param = key;
  item.scalar = !j.contains("dims") || j["dims"].is_null();
  if (!item.scalar) item.dims = j["dims"].get<std::vector<std::string>>();
  if (j.contains("tuple_idx") && j["tuple_idx"].is_number()) item.element = j["tuple_idx"].get<int>();
  item.optional = j.value("optional", false);
  item.dtype = text_or(j, "dtype");
  item.dtype_from = text_or(j, "dtype_from");
  item.dtype_from_scalar = text_or(j, "dtype_from_scalar");
  item.description = text_or(j, "description");
  return item;
}

Json to_json(const Item& item) {
  Json j = {{"dims", item.scalar ? Json() : Json(item.dims)}};
  const auto text = [&](const char* key, const std::string& value) {
    if (!value.empty()) j[key] = value;
  };
  text("param", item.param);
  if (item.element >= 0) j["tuple_idx"] = item.element;
  text("dtype", item.dtype);
  text("dtype_from", item.dtype_from);
  text("dtype_from_scalar", item.dtype_from_scalar);
  if (item.optional) j["optional"] = true;
  if (item.any_shape) j["any_shape"] = true;
  text("description", item.description);
  return j;
}
}  // namespace

Template template_from_json(const Json& j) {
  Template t;
  t.api = text_or(j, "api");
  t.op_type = text_or(j, "op_type");
  t.prefix = text_or(j, "name_prefix");
  t.description = text_or(j, "description");
  t.reference = text_or(j, "reference");
  t.check = text_or(j, "check");
  t.init = text_or(j, "init");
  if (j.contains("tags")) t.tags = j["tags"].get<std::vector<std::string>>();
  if (j.contains("constraints")) t.constraints = j["constraints"].get<std::vector<std::string>>();
  for (const auto& [name, axis] : j.at("axes").items()) {
    Axis a{.name = name, .constant = axis.at("type") == "const", .description = text_or(axis, "description")};
    if (a.constant)
      a.abbreviation = axis.contains("abbrev") && axis["abbrev"].is_string() ? axis["abbrev"].get<std::string>() : name;
    if (axis.contains("value") && axis["value"].is_number()) a.value = axis["value"].get<int64_t>();
    t.axes.push_back(std::move(a));
  }
  for (const auto& [key, item] : j.at("inputs").items()) t.inputs.push_back(item_from_json(key, item, true));
  for (const auto& [key, item] : j.at("outputs").items()) t.outputs.push_back(item_from_json(key, item, false));
  return t;
}

Json to_json(const Template& t) {
  Json j = {{"api", t.api}, {"op_type", t.op_type}};
  if (!t.prefix.empty()) j["name_prefix"] = t.prefix;
  j["description"] = t.description;
  j["tags"] = t.tags;
  j["constraints"] = t.constraints;
  j["axes"] = Json::object();
  for (const Axis& a : t.axes) {
    Json& axis = j["axes"][a.name] = {{"type", a.constant ? "const" : "var"}};
    if (a.constant) axis["abbrev"] = a.abbreviation;
    if (a.value) axis["value"] = *a.value;
  }
  for (const char* list : {"inputs", "outputs"}) {
    j[list] = Json::object();
    for (const Item& item : list[0] == 'i' ? t.inputs : t.outputs) j[list][item.key] = to_json(item);
  }
  return j;
}

}  // namespace flashinfer::trace
