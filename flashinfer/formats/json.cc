// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/formats/json.h"

#include <cmath>
#include <set>

#include "flashinfer/core/check.h"

namespace flashinfer::formats {
namespace {

constexpr size_t kMaxDepth = 200;

/// Replaces the literals that Python's json writes for non-finite numbers, outside strings, and checks nesting.
std::string tag_literals(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kLiterals[] = {
      {"-Infinity", R"({"type": "float", "value": "-inf"})"},
      {"Infinity", R"({"type": "float", "value": "inf"})"},
      {"NaN", R"({"type": "float", "value": "nan"})"}};
  std::string out;
  out.reserve(text.size());
  bool quoted = false;
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      out += c;
      if (c == '\\' && i + 1 < text.size()) out += text[++i];
      quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    depth += c == '[' || c == '{';
    depth -= (c == ']' || c == '}') && depth > 0;
    FI_CHECK(depth <= kMaxDepth, ValueError, "JSON: byte ", i, ": nested deeper than ", kMaxDepth);
    bool replaced = false;
    if (c == '-' || c == 'I' || c == 'N')
      for (const auto& [literal, tagged] : kLiterals)
        if (text.substr(i, literal.size()) == literal) {
          out += tagged;
          i += literal.size() - 1;
          replaced = true;
          break;
        }
    if (!replaced) out += c;
  }
  return out;
}

}  // namespace

Json number_to_json(double v) {
  if (std::isfinite(v)) return v;
  return {{"type", "float"}, {"value", std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"}};
}

Json parse_json(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto unique_keys = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      FI_CHECK(keys.back().insert(key).second, ValueError, "JSON: the key \"", key, "\" is there twice");
    }
    return true;
  };
  try {
    return Json::parse(tag_literals(text), unique_keys);
  } catch (const Json::parse_error& e) {
    throw ValueError(str("JSON: byte ", e.byte, ": not a JSON document"));
  } catch (const Json::exception& e) {  // numbers out of range
    throw ValueError(str("JSON: ", e.what()));
  }
}

std::string dump_json(const Json& value) {
  // nlohmann's compact form has no blanks, its indented form line breaks; Python's default separators need our own
  // traversal.
  if (value.is_object()) {
    std::string out = "{";
    for (const auto& [key, item] : value.items())
      (out += out.size() > 1 ? ", " : "") +=
          Json(key).dump(-1, ' ', true, Json::error_handler_t::replace) + ": " + dump_json(item);
    return out + "}";
  }
  if (value.is_array()) {
    std::string out = "[";
    for (const auto& item : value) (out += out.size() > 1 ? ", " : "") += dump_json(item);
    return out + "]";
  }
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    return dump_json(number_to_json(value.get<double>()));
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace flashinfer::formats
