// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
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

}  // namespace

Settings settings_from_env() {
  Settings s;
  s.level = clamp_level(env::integer("FLASHINFER_LOGLEVEL"));
  s.destination = env::text("FLASHINFER_LOGDEST");
  s.dump_dir = env::text("FLASHINFER_DUMP_DIR");
  s.max_size_gb = env::number("FLASHINFER_DUMP_MAX_SIZE_GB");
  s.max_count = env::integer("FLASHINFER_DUMP_MAX_COUNT");
  s.include = env::list("FLASHINFER_DUMP_INCLUDE");
  s.exclude = env::list("FLASHINFER_DUMP_EXCLUDE");
  s.safetensors = env::flag("FLASHINFER_DUMP_SAFETENSORS");
  s.keep_last = env::text("FLASHINFER_DUMP_KEEP") == "last";
  s.dedup = env::flag("FLASHINFER_DUMP_DEDUP");
  const std::string& pages = env::text("FLASHINFER_DUMP_PAGES");
  s.pages = pages == "used"   ? Settings::Pages::kUsed
            : pages == "full" ? Settings::Pages::kFull
                              : Settings::Pages::kDefault;
  s.sync = env::flag("FLASHINFER_DUMP_SYNC");
  s.control = env::text("FLASHINFER_RECORD_CONTROL");
  return s;
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
  if (name == "level")
    s.level = clamp_level(integer(all, value));
  else if (name == "dest")
    s.destination = value.empty() ? "stdout" : std::string(value);
  else if (name == "dir")
    s.dump_dir = value;
  else if (name == "max_size_gb")
    s.max_size_gb = number(all, value);
  else if (name == "max_count")
    s.max_count = integer(all, value);
  else if (name == "include")
    s.include = list(value);
  else if (name == "exclude")
    s.exclude = list(value);
  else if (name == "safetensors")
    s.safetensors = choice(all, value, "0", "1");
  else if (name == "keep")
    s.keep_last = choice(all, value, "first", "last");
  else if (name == "dedup")
    s.dedup = choice(all, value, "0", "1");
  else if (name == "pages")
    s.pages = choice(all, value, "full", "used") ? Settings::Pages::kUsed : Settings::Pages::kFull;
  else if (name == "sync")
    s.sync = choice(all, value, "0", "1");
  else
    throw ValueError(str("record: \"", all, "\": there is no setting ", name));
}

}  // namespace flashinfer::record
