// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/printable.h"

#include <algorithm>
#include <cstdio>

namespace flashinfer {
namespace {

struct Range {
  uint32_t first, last;
};
/// Unicode 15: categories Cc, Cf, Zs (without the space), Zl, Zp, Cs, Co and the noncharacters at the end of a plane.
constexpr Range kUnprintable[] = {{0x00, 0x1f},       {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},
                                  {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
                                  {0x8e2, 0x8e2},     {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},
                                  {0x2028, 0x202f},   {0x205f, 0x206f},   {0x3000, 0x3000},   {0xd800, 0xf8ff},
                                  {0xfeff, 0xfeff},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd},
                                  {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
                                  {0xe0000, 0xe00ff}, {0xe01f0, 0x10ffff}};

std::string escape_all(std::string_view text, bool keep_lines, std::string_view indent) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    if (keep_lines && c.code == '\n') {
      out += '\n';
      if (i + 1 < text.size()) out += indent;
    } else if ((keep_lines && c.code == '\t') || (c.valid && is_printable(c.code))) {
      out += text.substr(i, c.bytes);
    } else {
      out += escaped(c.code);
    }
    i += c.bytes;
  }
  return out;
}

}  // namespace

Character character_at(std::string_view text, size_t offset) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[offset + i]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const uint32_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  const Character invalid = {lead, 1, false};
  if (lead < 0xc2 || lead > 0xf4 || offset + bytes > text.size()) return invalid;
  uint32_t code = lead & (0x7fu >> bytes);
  for (uint32_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return invalid;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const uint32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < least || code > 0x10ffff || surrogate) return invalid;
  return {code, bytes, true};
}

bool is_printable(uint32_t code) {
  const auto after = std::ranges::upper_bound(kUnprintable, code, {}, &Range::first);
  return after == std::begin(kUnprintable) || code > std::prev(after)->last;
}

std::string escaped(uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  char text[12];
  std::snprintf(text, sizeof text, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
  return text;
}

std::string printable(std::string_view text) { return escape_all(text, false, ""); }

std::string printable_lines(std::string_view text, std::string_view indent) { return escape_all(text, true, indent); }

}  // namespace flashinfer
