// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/hex.h"

#include <gtest/gtest.h>

namespace flashinfer {
namespace {

TEST(Hex, NumbersHaveThePrefixAndNoLeadingZeros) {
  EXPECT_EQ(hex(0), "0x0");
  EXPECT_EQ(hex(0x1f), "0x1f");
  EXPECT_EQ(hex(~uint64_t{0}), "0xffffffffffffffff");
}

TEST(Hex, WordsHaveAllDigits) {
  EXPECT_EQ(hex_word(0), "0000000000000000");
  EXPECT_EQ(hex_word(0x0123456789abcdef), "0123456789abcdef");
}

TEST(Hex, BytesAreInTheirOrder) {
  const unsigned char bytes[] = {0x00, 0xff, 0x1a};
  EXPECT_EQ(hex_bytes(bytes, sizeof bytes), "00ff1a");
  EXPECT_EQ(hex_bytes(nullptr, 0), "");
}

}  // namespace
}  // namespace flashinfer
