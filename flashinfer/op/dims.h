// SPDX-License-Identifier: Apache-2.0
// Symbolic extents of a tensor argument, parsed at compile time: "... d", "n h d", "2*d", "b+1", "4".
#pragma once
#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// mul * symbol + add, or the literal `add` when there is no symbol.
struct Dim {
  char symbol[16] = {};
  int64_t mul = 1;
  int64_t add = 0;
  constexpr bool literal() const { return symbol[0] == 0; }
  constexpr std::string_view name() const { return std::string_view(symbol); }
};

struct Dims {
  static constexpr int kMax = 6;
  Dim dim[kMax] = {};
  int8_t count = -1;      // without the ellipsis; -1: not described, any shape
  bool ellipsis = false;  // any number of leading extents, the same for every argument that has "..."
  char text[40] = {};     // as written, for messages
};

/// A syntax error is a compile error.
consteval Dims parse_dims(const char* s) {
  Dims out;
  if (!s) return out;
  out.count = 0;
  int t = 0;
  for (const char* c = s; *c; ++c) {
    if (t >= 39) throw "dims too long";
    out.text[t++] = *c;
  }
  const char* p = s;
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  auto is_name = [&](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); };
  while (*p) {
    if (*p == ' ') {
      ++p;
      continue;
    }
    if (p[0] == '.' && p[1] == '.' && p[2] == '.') {
      if (out.count) throw "the ellipsis comes first";
      out.ellipsis = true;
      p += 3;
      continue;
    }
    if (out.count == Dims::kMax) throw "too many dims";
    Dim& d = out.dim[static_cast<int>(out.count++)];
    int64_t number = 0;
    bool has_number = false;
    while (is_digit(*p)) {
      number = number * 10 + (*p++ - '0');
      has_number = true;
    }
    if (has_number && *p != '*') {
      d.add = number;
      continue;
    }
    if (has_number) {
      d.mul = number;
      ++p;
    }
    int n = 0;
    while (is_name(*p)) {
      if (n >= 15) throw "symbol too long";
      d.symbol[n++] = *p++;
    }
    if (!n) throw "expected a symbol";
    if (*p == '+' || *p == '-') {
      const int64_t sign = *p++ == '+' ? 1 : -1;
      int64_t add = 0;
      while (is_digit(*p)) add = add * 10 + (*p++ - '0');
      d.add = sign * add;
    }
    if (*p && *p != ' ') throw "unexpected character in dims";
  }
  return out;
}

}  // namespace flashinfer::op

#pragma GCC visibility pop
