// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/record/record.h"

namespace flashinfer::record {
namespace {

std::string_view strip(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t' || s.front() == '\r')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

int clamp_level(int64_t level) { return static_cast<int>(std::clamp<int64_t>(level, -1, 1000)); }

int64_t integer(std::string_view line, std::string_view text) {
  int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  FI_CHECK(error == std::errc() && end == text.data() + text.size(), ValueError, "record: \"", line, "\": \"", text,
           "\" is not an integer");
  return v;
}

double number(std::string_view line, std::string_view text) {
  double v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  FI_CHECK(error == std::errc() && end == text.data() + text.size(), ValueError, "record: \"", line, "\": \"", text,
           "\" is not a number");
  return v;
}

bool choice(std::string_view line, std::string_view text, std::string_view off, std::string_view on) {
  FI_CHECK(text == off || text == on, ValueError, "record: \"", line, "\": the value is \"", text, "\", but must be ",
           off, " or ", on);
  return text == on;
}

std::vector<std::string> list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (const auto entry = strip(text.substr(0, comma)); !entry.empty()) out.emplace_back(entry);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

// A member from its variable of the environment, and from the text of "name=value" (`line`, for errors).
void read(int& level, const char* variable) { level = clamp_level(env::integer(variable)); }
void read(int64_t& v, const char* variable) { v = env::integer(variable); }
void read(double& v, const char* variable) { v = env::number(variable); }
void read(bool& v, const char* variable) { v = env::flag(variable); }
void read(std::string& v, const char* variable) { v = env::text(variable); }
void read(std::vector<std::string>& v, const char* variable) { v = env::list(variable); }
void read(Settings::Pages& v, const char* variable) {
  const std::string& text = env::text(variable);
  v = text == "used" ? Settings::Pages::kUsed : text == "full" ? Settings::Pages::kFull : Settings::Pages::kDefault;
}
void parse(int& level, std::string_view line, std::string_view text) { level = clamp_level(integer(line, text)); }
void parse(int64_t& v, std::string_view line, std::string_view text) { v = integer(line, text); }
void parse(double& v, std::string_view line, std::string_view text) { v = number(line, text); }
void parse(bool& v, std::string_view line, std::string_view text) { v = choice(line, text, "0", "1"); }
void parse(std::string& v, std::string_view, std::string_view text) { v = text; }
void parse(std::vector<std::string>& v, std::string_view, std::string_view text) { v = list(text); }
void parse(Settings::Pages& v, std::string_view line, std::string_view text) {
  v = choice(line, text, "full", "used") ? Settings::Pages::kUsed : Settings::Pages::kFull;
}

struct Setting {
  const char* name;      // of "name=value"; null: only the environment sets it
  const char* variable;  // of the environment
  bool of_recording;     // a recorder does not go on when it changes
  void (*read)(Settings& s, const char* variable);
  void (*parse)(Settings& s, std::string_view line, std::string_view text);
  bool (*same)(const Settings& a, const Settings& b);
};
template <auto M>
constexpr Setting setting(const char* name, const char* variable, bool of_recording) {
  return {name,
          variable,
          of_recording,
          [](Settings& s, const char* v) { read(s.*M, v); },
          [](Settings& s, std::string_view line, std::string_view text) { parse(s.*M, line, text); },
          [](const Settings& a, const Settings& b) { return a.*M == b.*M; }};
}
constexpr Setting destination() {
  Setting s = setting<&Settings::destination>("dest", "FLASHINFER_LOGDEST", true);
  s.parse = [](Settings& to, std::string_view, std::string_view text) {
    to.destination = text.empty() ? "stdout" : text;
  };
  return s;
}
constexpr Setting keep() {
  Setting s = setting<&Settings::keep_last>("keep", "FLASHINFER_DUMP_KEEP", true);
  s.read = [](Settings& to, const char* variable) { to.keep_last = env::text(variable) == "last"; };
  s.parse = [](Settings& to, std::string_view line, std::string_view text) {
    to.keep_last = choice(line, text, "first", "last");
  };
  return s;
}

/// Every member of Settings, once.
constexpr Setting kSettings[] = {
    setting<&Settings::level>("level", "FLASHINFER_LOGLEVEL", false),
    destination(),
    setting<&Settings::dump_dir>("dir", "FLASHINFER_DUMP_DIR", true),
    setting<&Settings::max_size_gb>("max_size_gb", "FLASHINFER_DUMP_MAX_SIZE_GB", true),
    setting<&Settings::max_count>("max_count", "FLASHINFER_DUMP_MAX_COUNT", true),
    setting<&Settings::include>("include", "FLASHINFER_DUMP_INCLUDE", false),
    setting<&Settings::exclude>("exclude", "FLASHINFER_DUMP_EXCLUDE", false),
    setting<&Settings::safetensors>("safetensors", "FLASHINFER_DUMP_SAFETENSORS", true),
    keep(),
    setting<&Settings::dedup>("dedup", "FLASHINFER_DUMP_DEDUP", true),
    setting<&Settings::pages>("pages", "FLASHINFER_DUMP_PAGES", true),
    setting<&Settings::sync>("sync", "FLASHINFER_DUMP_SYNC", true),
    setting<&Settings::control>(nullptr, "FLASHINFER_RECORD_CONTROL", false),
};

/// How many members an aggregate has: as many initializers as it takes.
struct AnyValue {
  template <class T>
  operator T() const;
};
template <class T, class... V>
consteval size_t members_of() {
  if constexpr (requires { T{V{}..., AnyValue{}}; })
    return members_of<T, V..., AnyValue>();
  else
    return sizeof...(V);
}
static_assert(std::size(kSettings) == members_of<Settings>(), "a member of Settings is missing in kSettings");

}  // namespace

Settings settings_from_env() {
  Settings s;
  for (const Setting& x : kSettings) x.read(s, x.variable);
  return s;
}

bool same_recording(const Settings& a, const Settings& b) {
  return std::ranges::all_of(kSettings, [&](const Setting& x) { return !x.of_recording || x.same(a, b); });
}

std::vector<std::string_view> setting_names() {
  std::vector<std::string_view> names;
  for (const Setting& x : kSettings)
    if (x.name) names.emplace_back(x.name);
  return names;
}

void apply(Settings& s, std::string_view line) {
  const std::string_view all = strip(line);
  if (all.empty() || all[0] == '#') return;
  if (all == "start" || all == "stop") {
    s.level = all == "stop" ? 0 : std::max(s.level, 10);
    return;
  }
  const size_t equal = all.find('=');
  FI_CHECK(equal != all.npos, ValueError, "record: \"", all, "\" is neither start, stop nor name=value");
  const std::string_view name = strip(all.substr(0, equal)), value = strip(all.substr(equal + 1));
  for (const Setting& x : kSettings)
    if (x.name && name == x.name) return x.parse(s, all, value);
  throw ValueError(str("record: \"", all, "\": there is no setting ", name));
}

}  // namespace flashinfer::record
