// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/printable.h"

#include <gtest/gtest.h>

namespace flashinfer {
namespace {

TEST(Printable, KeepsTextOfAnyLanguage) {
  for (const std::string text : {"rmsnorm", "naïve \\n", "日本語", "✅ ⚠️  ➖ ❌", "\U0001f600", ""})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatATerminalActsOn) {
  EXPECT_EQ(printable("\x1b[2J\x07"), "\\x1b[2J\\x07");
  EXPECT_EQ(printable("a\r\nb\tc\x7f"), "a\\r\\nb\\tc\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\u009b31m"), "\\x9b31m");  // C1: the one-character form of ESC [
  EXPECT_EQ(printable("\u202e\u2066\ufeff"), "\\u202e\\u2066\\ufeff");
  EXPECT_EQ(printable("\U000e0041"), "\\U000e0041");
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff\x80"), "\\xff\\x80");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("caf\xc3"), "caf\\xc3");  // cut off
  EXPECT_EQ(printable("\xe2\x82"
                      "a"),
            "\\xe2\\x82a");
}

TEST(Printable, LinesKeepNewlinesAndTabs) {
  EXPECT_EQ(printable_lines("a\n\tb\x1b\n"), "a\n\tb\\x1b\n");
  EXPECT_EQ(printable_lines("a\nb\n", "  "), "a\n  b\n");
}

/// The answers of Python's str.isprintable() at the ends of each kind of range.
TEST(Printable, CategoriesArePythons) {
  for (uint32_t c :
       {0x20u, 0x7eu, 0xa1u, 0xacu, 0xaeu, 0x2010u, 0x2027u, 0x2030u, 0x3001u, 0xd7fbu, 0xf900u, 0xfe0fu, 0xe01efu})
    EXPECT_TRUE(is_printable(c)) << c;
  for (uint32_t c : {0x0u, 0x1fu, 0x7fu, 0xa0u, 0xadu, 0x600u, 0x2000u, 0x200fu, 0x2028u, 0x202fu, 0x205fu, 0x3000u,
                     0xd800u, 0xe000u, 0xf8ffu, 0xfeffu, 0xe0001u, 0xf0000u, 0x10ffffu})
    EXPECT_FALSE(is_printable(c)) << c;
}

}  // namespace
}  // namespace flashinfer
