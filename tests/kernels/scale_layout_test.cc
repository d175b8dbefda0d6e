// SPDX-License-Identifier: Apache-2.0
// kernels/common/scale_layout.h: each byte of a padded matrix is one (row, column), where the formulas of the layouts
// say; values of the narrow types.
#include "flashinfer/kernels/common/scale_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace flashinfer {
namespace {

TEST(ScaleLayout, EveryByteIsOnePlace) {
  for (const SfLayout layout : {SfLayout::kLinear, SfLayout::k8x4, SfLayout::k128x4}) {
    for (const int64_t rows : {1, 8, 100, 128, 300})
      for (const int64_t columns : {1, 3, 4, 9}) {
        const int64_t padded = sf_padded_columns(layout, columns);
        std::vector<int> seen(static_cast<size_t>(sf_bytes(layout, rows, columns)));
        for (int64_t r = 0; r < sf_padded_rows(layout, rows); ++r)
          for (int64_t c = 0; c < padded; ++c) ++seen.at(static_cast<size_t>(sf_offset(layout, r, c, columns)));
        for (const int n : seen) ASSERT_EQ(n, 1) << static_cast<int>(layout) << " " << rows << " " << columns;
      }
  }
}

TEST(ScaleLayout, PlacesOfTheSpecification) {
  EXPECT_EQ(sf_offset(SfLayout::kLinear, 5, 3, 9), 48);
  // (r/128)*(128*12) + (c/4)*512 + (r%32)*16 + ((r%128)/32)*4 + c%4 of r = 170, c = 6
  EXPECT_EQ(sf_offset(SfLayout::k128x4, 170, 6, 9), 1536 + 512 + 160 + 4 + 2);
  // (r/8)*(8*12) + (c/4)*32 + (r%8)*4 + c%4
  EXPECT_EQ(sf_offset(SfLayout::k8x4, 21, 6, 9), 192 + 32 + 20 + 2);
  EXPECT_EQ(sf_bytes(SfLayout::k128x4, 129, 5), 256 * 8);
}

TEST(ScaleLayout, PowersOfTwo) {
  EXPECT_EQ(e8m0_to_f32(0), std::ldexp(1.0f, -127));
  EXPECT_EQ(e8m0_to_f32(127), 1.0f);
  EXPECT_EQ(e8m0_to_f32(254), std::ldexp(1.0f, 127));
  EXPECT_TRUE(std::isnan(e8m0_to_f32(255)));
  for (int b = 1; b < 255; ++b) {
    const float s = e8m0_to_f32(static_cast<uint8_t>(b));
    EXPECT_EQ(e8m0_round_up(s), b);
    EXPECT_EQ(e8m0_round_up(std::nextafter(s, 2 * s)), b < 254 ? b + 1 : 254);
  }
  EXPECT_EQ(e8m0_round_up(0.0f), 0);
  EXPECT_EQ(e8m0_round_up(std::ldexp(1.0f, -127)), 0);
  EXPECT_EQ(e8m0_round_up(std::ldexp(1.5f, -127)), 1);
}

TEST(ScaleLayout, FourBits) {
  EXPECT_EQ(e2m1_to_f32(7), 6.0f);
  EXPECT_EQ(e2m1_to_f32(9), -0.5f);
  EXPECT_TRUE(std::signbit(e2m1_to_f32(8)));
}

}  // namespace
}  // namespace flashinfer
