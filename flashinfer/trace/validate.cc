// SPDX-License-Identifier: Apache-2.0
// flashinfer-bench's data model of a definition, rule by rule.
#include <algorithm>
#include <set>

#include "flashinfer/core/check.h"
#include "flashinfer/trace/trace.h"

namespace flashinfer::trace {
namespace {

class Validator {
 public:
  explicit Validator(const Json& j) : j_(j) {}

  std::vector<std::string> run() {
    if (!j_.is_object()) {
      problem("not a JSON object");
      return std::move(problems_);
    }
    for (const char* key : {"name", "op_type"})
      if (!j_.contains(key) || !j_[key].is_string() || j_[key].get<std::string>().empty())
        problem(key, " must be a text that is not empty");
    for (const char* key : {"axes", "inputs", "outputs"})
      if (!j_.contains(key) || !j_[key].is_object()) problem(key, " must be an object");
    list_of_texts("tags");
    list_of_texts("constraints");
    if (!problems_.empty()) return std::move(problems_);
    axes();
    for (const char* key : {"inputs", "outputs"})
      for (const auto& [name, item] : j_[key].items()) tensor(str(key, ".", name), item, key[0] == 'i');
    for (const auto& [name, item] : j_["outputs"].items())
      if (j_["inputs"].contains(name)) problem("outputs.", name, " has the name of an input");
    for (const auto& [name, axis] : j_["axes"].items())
      if (axis.value("type", "") == "var" && !bound_.contains(name))
        problem("axes.", name, " is variable, but in no input's shape");
    reference();
    return std::move(problems_);
  }

 private:
  template <class... T>
  void problem(const T&... parts) {
    problems_.push_back(str(parts...));
  }

  void list_of_texts(const char* key) {
    if (!j_.contains(key)) return;
    const bool texts = j_[key].is_array() && std::ranges::all_of(j_[key], [](const Json& x) { return x.is_string(); });
    if (!texts) problem(key, " must be a list of texts");
  }

  void axes() {
    for (const auto& [name, axis] : j_["axes"].items()) {
      const std::string type = axis.is_object() ? axis.value("type", "") : "";
      if (type != "const" && type != "var") problem("axes.", name, ".type must be const or var");
      if (type == "const" &&
          !(axis.contains("value") && axis["value"].is_number_integer() && axis["value"].get<int64_t>() >= 0))
        problem("axes.", name, ".value must be an integer of at least 0");
    }
  }

  void tensor(const std::string& where, const Json& item, bool is_input) {
    static const std::set<std::string, std::less<>> kDTypes = {
        "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1",
        "int64",   "int32",   "int16",    "int8",          "bool"};
    if (!item.is_object() || !item.contains("shape")) return problem(where, " must have a shape");
    if (const std::string dtype = item.value("dtype", ""); !kDTypes.contains(dtype))
      problem(where, ".dtype is \"", dtype, "\", which the model has not");
    if (item["shape"].is_null()) return;
    if (!item["shape"].is_array()) return problem(where, ".shape must be a list of axes or null");
    for (const auto& axis : item["shape"]) {
      if (!axis.is_string() || !j_["axes"].contains(axis.get<std::string>()))
        problem(where, ".shape has ", axis.dump(), ", which is not an axis");
      else if (is_input)
        bound_.insert(axis.get<std::string>());
    }
  }

  /// A function `run` at the first column. Whether Python accepts the text, Python says (`flashinfer.trace.validate`).
  void reference() {
    if (!j_.contains("reference") || !j_["reference"].is_string())
      return problem("reference must be Python with a function run");
    const std::string text = "\n" + j_["reference"].get<std::string>();
    if (text.find("\ndef run(") == text.npos) problem("reference has no function run");
  }

  const Json& j_;
  std::vector<std::string> problems_;
  std::set<std::string> bound_;
};

}  // namespace

std::vector<std::string> problems(const Json& definition) { return Validator(definition).run(); }

}  // namespace flashinfer::trace
