// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/kernels/common/fast_divisor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace flashinfer {
namespace {

TEST(FastDivisor, GivesTheQuotient) {
  std::vector<uint32_t> numbers = {0,  1,   2,    3,     5,     6,       7,          10,
                                   17, 641, 1000, 65535, 65537, 6700417, 0x7fffffff, 0xfffffffe};
  for (int bit = 0; bit < 32; ++bit)
    for (const int near : {-1, 0, 1}) numbers.push_back((uint32_t{1} << bit) + static_cast<uint32_t>(near));
  for (uint32_t x = 1; numbers.size() < 400; x = x * 1664525 + 1013904223) numbers.push_back(x >> x % 31);
  for (const uint32_t by : numbers) {
    if (by == 0) continue;
    const FastDivisor d(by);
    for (const uint32_t x : numbers)
      for (const uint32_t at : {x, x / by * by, x / by * by - 1}) ASSERT_EQ(d.divide(at), at / by) << at << " / " << by;
    ASSERT_EQ(d.divide(UINT32_MAX), UINT32_MAX / by) << by;
  }
  EXPECT_EQ(FastDivisor().divide(UINT32_MAX), UINT32_MAX);
}

}  // namespace
}  // namespace flashinfer
