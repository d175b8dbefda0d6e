// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>

#include "flashinfer/core/scalar.h"

namespace flashinfer {
namespace {

TEST(DType, NamesAndDlpackCodesGoThereAndBack) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(t)), t) << name(t);
    EXPECT_EQ(parse_dtype("torch." + std::string(name(t))), t) << name(t);
    EXPECT_EQ(from_dlpack(to_dlpack(t)), t) << name(t);
    const DLDataType d = to_dlpack(t);
    EXPECT_EQ(d.bits * d.lanes, 8 * size_of(t)) << name(t);
  }
  EXPECT_EQ(parse_dtype("half"), DType::kF16);
  EXPECT_EQ(parse_dtype("torch.long"), DType::kI64);
  EXPECT_EQ(parse_dtype("float17"), std::nullopt);
  EXPECT_EQ(from_dlpack({kDLFloat, 16, 2}), std::nullopt);
}

TEST(DType, SetsPrintAsASentence) {
  EXPECT_EQ(to_string(DTypeSet(DType::kF32)), "float32");
  EXPECT_EQ(to_string(DTypeSet(DType::kF16) | DType::kBF16), "float16 or bfloat16");
  EXPECT_EQ(to_string(DTypeSet(DType::kF16) | DType::kBF16 | DType::kF32), "float32, float16 or bfloat16");
}

TEST(Device, PrintsAndParses) {
  EXPECT_EQ(to_string(kCpu), "cpu");
  EXPECT_EQ(to_string(Device{DeviceType::kCUDA, 3}), "cuda:3");
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceType::kCUDA, 0}));
  EXPECT_EQ(parse_device("emu:1"), (Device{DeviceType::kEmu, 1}));
  EXPECT_EQ(parse_device("cpu:0"), kCpu);
  for (const char* bad : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:99999"})
    EXPECT_EQ(parse_device(bad), std::nullopt) << bad;
}

// Every value of a narrow type becomes a float and the same bits again; halfway cases go to even, checked against
// nearbyint.
template <class T, class Bits, int kMantissa, int kMinExponent>
void check_narrow() {
  for (uint32_t b = 0; b < (1ull << (8 * sizeof(Bits))); ++b) {
    T v;
    v.bits = static_cast<Bits>(b);
    const float f = static_cast<float>(v);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(T(f))));
      continue;
    }
    ASSERT_EQ(T(f).bits, v.bits) << b;
    if (std::isinf(f)) continue;
    const int exponent = f == 0 ? kMinExponent : std::max(std::ilogb(f), kMinExponent);
    const float unit = std::ldexp(1.0f, exponent - kMantissa);
    for (const float part : {0.25f, 0.5f, 0.75f}) {
      const float x = f + std::copysign(part * unit, f);
      const float expected = std::nearbyint(x / unit) * unit;  // no carry problem: the next binade starts on this grid
      const float got = static_cast<float>(T(x));
      if (std::isfinite(got)) {
        ASSERT_EQ(got, expected) << b << " + " << part;
      }
    }
  }
}
TEST(Scalar, Bf16) { check_narrow<bf16_t, uint16_t, 7, -126>(); }
TEST(Scalar, F16) { check_narrow<f16_t, uint16_t, 10, -14>(); }
TEST(Scalar, E4m3) { check_narrow<e4m3_t, uint8_t, 3, -6>(); }
TEST(Scalar, E5m2) { check_narrow<e5m2_t, uint8_t, 2, -14>(); }

}  // namespace
}  // namespace flashinfer
