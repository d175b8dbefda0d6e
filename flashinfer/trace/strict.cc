// SPDX-License-Identifier: Apache-2.0
// What strict mode changes: the rules of flashinfer-bench's data model that compat mode, which follows FlashInfer's own
// files, leaves out.
#include <algorithm>
#include <map>
#include <set>

#include "flashinfer/core/check.h"
#include "flashinfer/op/call.h"
#include "flashinfer/trace/definition.h"

namespace flashinfer::trace {
namespace {

/// An element type of the data model; `note` says what changed.
std::string legal_dtype(const std::string& dtype, std::string& note) {
  static const std::set<std::string, std::less<>> kLegal = {"float32",     "float16",     "bfloat16", "float8_e4m3fn",
                                                            "float8_e5m2", "float4_e2m1", "int64",    "int32",
                                                            "int16",       "int8",        "bool"};
  static const std::map<std::string, const char*, std::less<>> kInstead = {
      {"uint8", "int8"},      {"uint32", "int32"},        {"uint16", "int16"},          {"uint64", "int64"},
      {"float64", "float32"}, {"float8_e8m0fnu", "int8"}, {"float4_e2m1fn_x2", "int8"}, {"unknown", "float32"}};
  if (kLegal.contains(dtype)) return dtype;
  const auto it = kInstead.find(dtype);
  if (it == kInstead.end()) return {};
  note = dtype == "unknown" ? "element type not known" : "bytes of " + dtype;
  return it->second;
}

void add_note(Json& item, const std::string& note) {
  if (note.empty()) return;
  const std::string text = item.value("description", "");
  item["description"] = text.empty() ? note : text + " (" + note + ")";
}

/// Extents of the outputs that the call has, by key, as the op infers them; empty when the call's block is not known or
/// not complete. Outputs have the table's names, or are those that no name fits, in order.
std::map<std::string, std::vector<int64_t>> output_shapes(const Template& t, const void* block) {
  std::map<std::string, std::vector<int64_t>> out;
  if (!t.op || !block) return out;
  try {
    std::vector<op::OutputType> inferred = op::infer_outputs(*t.op, block);
    const auto take = [&](const Item& item, auto which) {
      if (which == inferred.end()) return;
      const auto shape = which->shape.span();
      out[item.key].assign(shape.begin(), shape.end());
      inferred.erase(which);
    };
    const auto named = [&](const Item& item) {
      const std::string& name = item.param.empty() ? item.key : item.param;
      return std::ranges::find_if(inferred, [&](const op::OutputType& o) { return o.field->name == name; });
    };
    for (const Item& item : t.outputs) take(item, named(item));
    for (const Item& item : t.outputs)
      if (!out.contains(item.key) && item.param.empty()) take(item, inferred.begin());
  } catch (const std::exception&) {
    out.clear();
  }
  return out;
}

class Strict {
 public:
  Strict(Json& j, const Template& t, const Facts& facts, const void* block)
      : j_(j), t_(t), facts_(facts), shapes_(output_shapes(t, block)) {}

  void apply() {
    inputs();
    outputs();
    axes();
    constraints();
    if (std::string text = run_text(t_, j_, facts_, kept_); !text.empty()) j_["reference"] = std::move(text);
  }

 private:
  /// Absent inputs go, and so do texts, which the model has no type for.
  void inputs() {
    Json kept = Json::object();
    for (const Item& item : t_.inputs) {
      const auto fact = passed(item, facts_);
      Json entry = std::move(j_["inputs"][item.key]);
      const bool is_number = fact && fact->kind == Fact::kNumber;
      if (!fact && (item.optional || is_object(item))) continue;
      if (!item.scalar && fact && !fact->is_tensor() && !is_number) continue;
      if (is_number) entry["shape"] = Json();
      std::string note;
      std::string dtype = legal_dtype(entry["dtype"], note);
      if (dtype.empty()) {
        fixed_ += str(fixed_.empty() ? "" : ", ", item.key, " = ", fact ? fact->str() : "its default");
        continue;
      }
      if (item.scalar && fact && fact->is_tensor()) shape_as_passed(item, *fact, entry);
      if (!item.scalar && fact && fact->is_tensor()) same_rank(item, *fact, entry);
      entry["dtype"] = std::move(dtype);
      entry.erase("optional");
      add_note(entry, note);
      kept[item.key] = std::move(entry);
      kept_.emplace_back(item.key, item.param);
    }
    j_["inputs"] = std::move(kept);
    if (!fixed_.empty()) j_["description"] = j_["description"].get<std::string>() + " With " + fixed_ + ".";
  }

  /// Such as a workspace, which is neither a tensor nor a plain value.
  bool is_object(const Item& item) const {
    const op::Field* f = t_.op ? op::find_field(*t_.op, item.param) : nullptr;
    return f && f->type == std::string_view("self");
  }
  void add_axis(const std::string& name) {
    if (!j_["axes"].contains(name)) j_["axes"][name] = {{"type", "var"}};
  }
  void shape_as_passed(const Item& item, const Fact& fact, Json& entry) {
    entry["shape"] = Json::array();
    entry["dtype"] = fact.text;
    for (size_t i = 0; i < fact.shape.size(); ++i) {
      const std::string axis = str(item.key, "_", i);
      entry["shape"].push_back(axis);
      add_axis(axis);
    }
  }
  /// A tensor of another rank than the entry says has axes of its own in front, or all of its own.
  void same_rank(const Item& item, const Fact& fact, Json& entry) {
    const size_t listed = entry["shape"].size(), rank = fact.shape.size();
    if (listed == rank) return;
    Json shape = Json::array();
    for (size_t i = 0; i < rank; ++i) {
      if (rank > listed && i > rank - listed) {
        shape.push_back(entry["shape"][i - (rank - listed)]);
        continue;
      }
      const std::string axis = str(item.key, "_", i);
      shape.push_back(axis);
      add_axis(axis);
    }
    entry["shape"] = std::move(shape);
  }

  void outputs() {
    Json kept = Json::object();
    for (const Item& item : t_.outputs) {
      const bool changed = t_.op && op::find_field(*t_.op, item.key) == nullptr && item.param.empty() && !item.optional;
      if (item.param.empty() && !changed && !shapes_.empty() && !shapes_.contains(item.key))
        continue;  // not of this call
      if (!item.param.empty() && item.optional && !find(facts_, item.param)) continue;
      Json entry = std::move(j_["outputs"][item.key]);
      std::string key = item.key, note;
      while (j_["inputs"].contains(key)) key += "_out";
      std::string dtype = legal_dtype(entry["dtype"], note);
      entry["dtype"] = dtype.empty() ? "float32" : dtype;
      entry.erase("optional");
      add_note(entry, note);
      if (const auto it = shapes_.find(item.key); it != shapes_.end() && it->second.size() != entry["shape"].size()) {
        entry["shape"] = Json::array();
        for (size_t i = 0; i < it->second.size(); ++i) entry["shape"].push_back(str(key, "_", i));
      }
      if (const auto it = shapes_.find(item.key); it != shapes_.end()) shape_of_key_[key] = it->second;
      kept[key] = std::move(entry);
    }
    j_["outputs"] = std::move(kept);
  }

  /// Each axis of a shape is declared; a variable one is in an input; the others are constants.
  void axes() {
    std::set<std::string> bound;
    for (const auto& [key, entry] : j_["inputs"].items())
      if (!entry["shape"].is_null())
        for (const auto& axis : entry["shape"]) {
          const auto name = axis.get<std::string>();
          const bool number = !name.empty() && name.find_first_not_of("0123456789") == name.npos;
          if (!j_["axes"].contains(name)) {
            if (number)
              j_["axes"][name] = {{"type", "const"}, {"value", std::stoll(name)}};
            else
              j_["axes"][name] = {{"type", "var"}};
          }
          bound.insert(name);
        }
    std::map<std::string, int64_t> known;
    for (const auto& [key, entry] : j_["outputs"].items()) {
      const auto it = shape_of_key_.find(key);
      for (size_t i = 0; i < entry["shape"].size(); ++i) {
        const auto name = entry["shape"][i].get<std::string>();
        if (bound.contains(name)) continue;
        if (!j_["axes"].contains(name)) j_["axes"][name] = {{"type", "const"}};
        if (it != shape_of_key_.end() && i < it->second.size() && it->second[i] >= 0) known[name] = it->second[i];
      }
    }
    const auto values = axis_values(t_, facts_);
    Json kept = Json::object();
    for (auto& [name, axis] : j_["axes"].items()) {
      const bool used = bound.contains(name) || in_outputs(name);
      if (!used) continue;
      if (axis["type"] == "const" && axis.contains("value")) {
        kept[name] = axis;
        continue;
      }
      const auto value = std::ranges::find(values, name, &std::pair<std::string, int64_t>::first);
      if (axis["type"] == "var" && bound.contains(name)) {
        kept[name] = axis;
        continue;
      }
      Json constant = {{"type", "const"}};
      if (known.contains(name))
        constant["value"] = known[name];
      else if (value != values.end())
        constant["value"] = value->second;
      else if (bound.contains(name))
        constant["type"] = "var";
      if (axis.contains("description")) constant["description"] = axis["description"];
      kept[name] = std::move(constant);
    }
    j_["axes"] = std::move(kept);
  }
  bool in_outputs(const std::string& name) const {
    for (const auto& [key, entry] : j_["outputs"].items())
      for (const auto& axis : entry["shape"])
        if (axis == name) return true;
    return false;
  }

  /// Constraints that name an axis or input that is not there any more go.
  void constraints() {
    if (!j_.contains("constraints")) return;
    Json kept = Json::array();
    for (const auto& c : j_["constraints"]) {
      const auto text = c.get<std::string>();
      const bool all_there = std::ranges::all_of(
          names_in(text), [&](const std::string& n) { return j_["axes"].contains(n) || j_["inputs"].contains(n); });
      if (all_there) kept.push_back(text);
    }
    if (kept.empty())
      j_.erase("constraints");
    else
      j_["constraints"] = std::move(kept);
  }
  /// Names in a Python expression, without attributes and words of the language.
  static std::vector<std::string> names_in(const std::string& text) {
    std::vector<std::string> out;
    const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (size_t i = 0; i < text.size();) {
      size_t end = i;
      while (end < text.size() && is_name(text[end])) ++end;
      if (end > i) {
        const std::string word = text.substr(i, end - i);
        const bool attribute = i > 0 && text[i - 1] == '.', number = std::isdigit(static_cast<unsigned char>(word[0]));
        if (!attribute && !number && word != "in" && word != "and" && word != "or" && word != "not" && word != "None")
          out.push_back(word);
      }
      i = std::max(end, i + 1);
    }
    return out;
  }

  Json& j_;
  const Template& t_;
  const Facts& facts_;
  std::map<std::string, std::vector<int64_t>> shapes_, shape_of_key_;
  std::vector<std::pair<std::string, std::string>> kept_;  // key and argument of the inputs that stay
  std::string fixed_;
};

}  // namespace

void make_strict(Json& definition, const Template& t, const Facts& facts, const void* block) {
  Strict(definition, t, facts, block).apply();
}

}  // namespace flashinfer::trace
