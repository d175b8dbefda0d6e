// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/record/filter.h"

#include <algorithm>

namespace flashinfer::record {
namespace {

/// Length of the class that starts at pattern[0] == '['; 0 when it is never closed.
size_t class_length(std::string_view pattern) {
  size_t i = 1;
  if (i < pattern.size() && pattern[i] == '!') ++i;
  if (i < pattern.size() && pattern[i] == ']') ++i;  // a leading ] is literal
  while (i < pattern.size() && pattern[i] != ']') ++i;
  return i < pattern.size() ? i + 1 : 0;
}

bool in_class(std::string_view cls, char c) {  // cls includes its brackets
  cls = cls.substr(1, cls.size() - 2);
  const bool negated = !cls.empty() && cls[0] == '!';
  if (negated) cls.remove_prefix(1);
  bool found = false;
  for (size_t i = 0; i < cls.size(); ++i) {
    if (i + 2 < cls.size() && cls[i + 1] == '-') {
      found |= cls[i] <= c && c <= cls[i + 2];
      i += 2;
    } else {
      found |= cls[i] == c;
    }
  }
  return found != negated;
}

/// Length of the one-character piece at the front of `pattern` if it matches `c`, else 0.
size_t match_one(std::string_view pattern, char c) {
  if (pattern[0] == '?') return 1;
  if (pattern[0] == '[')
    if (const size_t n = class_length(pattern)) return in_class(pattern.substr(0, n), c) ? n : 0;
  return pattern[0] == c ? 1 : 0;
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
      continue;
    }
    if (const size_t n = p < pattern.size() ? match_one(pattern.substr(p), text[t]) : 0) {
      p += n;
      ++t;
      continue;
    }
    if (star == std::string_view::npos) return false;
    p = star + 1;  // the last star takes one character more
    t = ++star_text;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool passes(const std::vector<std::string>& include, const std::vector<std::string>& exclude, std::string_view name) {
  const auto matches = [name](const std::string& pattern) { return glob_match(pattern, name); };
  if (!include.empty() && std::ranges::none_of(include, matches)) return false;
  return std::ranges::none_of(exclude, matches);
}

}  // namespace flashinfer::record
