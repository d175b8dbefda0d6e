// SPDX-License-Identifier: Apache-2.0
// Text of unknown origin (recordings, cache entries, control files) made safe to print: a terminal acts on control
// characters, and bidirectional or invisible characters make a line read as something else.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace flashinfer {

/// One character of `text` at a byte offset. Bytes that are no UTF-8 (also overlong forms and surrogates) come one by
/// one.
struct Character {
  uint32_t code = 0;   // code point, or the byte's value when !valid
  uint32_t bytes = 1;  // length in `text`
  bool valid = true;
};
Character character_at(std::string_view text, size_t offset);

/// Whether Python's str.isprintable() holds for it, by Unicode's categories: false for controls (Cc), format characters
/// (Cf), separators other than the space (Zs, Zl, Zp), surrogates and private use. Unassigned code points pass.
bool is_printable(uint32_t code);

/// "\n", "\x1b", "\u202e" or "\U000e0001", as Python's repr() writes an unprintable character.
std::string escaped(uint32_t code);

/// `text` with every character that is not printable, and every byte that is no UTF-8, escaped. Backslashes stay.
std::string printable(std::string_view text);
/// The same for text of several lines: newlines and tabs stay; each newline is followed by `indent`.
std::string printable_lines(std::string_view text, std::string_view indent = "");

}  // namespace flashinfer

#pragma GCC visibility pop
