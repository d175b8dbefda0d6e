// SPDX-License-Identifier: Apache-2.0
// The statistics that a kernel prints from inside a graph, on the emulator.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "flashinfer/core/scalar.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/record/stats.h"

namespace flashinfer {
namespace {

constexpr Device kEmulator{DeviceType::kEmu, 0};

template <class T>
std::string printed(const std::vector<T>& values, DType dtype) {
  const Tensor host = Tensor::empty({static_cast<int64_t>(values.size())}, dtype);
  std::copy(values.begin(), values.end(), static_cast<T*>(const_cast<void*>(host.data())));
  const Tensor there = to_device(host.view(), kEmulator);
  ::testing::internal::CaptureStdout();
  const int64_t id = record::print_statistics(there.view());
  std::string text = ::testing::internal::GetCapturedStdout();
  const std::string head = "[flashinfer stats] id=" + std::to_string(id) + " ";
  EXPECT_GT(id, 0);
  EXPECT_TRUE(text.starts_with(head)) << text;
  return text.substr(std::min(head.size(), text.size()));
}

TEST(GraphStatistics, AreOfFiniteValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> many(1000);
  for (int i = 0; i < 1000; ++i) many[static_cast<size_t>(i)] = static_cast<float>(i);
  EXPECT_EQ(printed(many, DType::kF32), "numel=1000 min=0.000000 max=999.000000 mean=499.500000 nan=0 inf=0\n");
  // NaN is ignored; Inf counts in min and max, not in the mean.
  EXPECT_EQ(printed<float>({1, kNaN, 2, -kInf}, DType::kF32),
            "numel=4 min=-inf max=2.000000 mean=1.500000 nan=1 inf=1\n");
  EXPECT_EQ(printed<float>({kInf, kNaN, kNaN}, DType::kF32), "numel=3 (all non-finite) nan=2 inf=1\n");
  EXPECT_EQ(printed<float>({}, DType::kF32), "numel=0 (empty tensor)\n");
}

TEST(GraphStatistics, OfEveryElementType) {
  const std::string want = "numel=3 min=-2.000000 max=5.000000 mean=1.000000 nan=0 inf=0\n";
  EXPECT_EQ(printed<f16_t>({f16_t(-2.f), f16_t(0.f), f16_t(5.f)}, DType::kF16), want);
  EXPECT_EQ(printed<bf16_t>({bf16_t(-2.f), bf16_t(0.f), bf16_t(5.f)}, DType::kBF16), want);
  EXPECT_EQ(printed<int32_t>({-2, 0, 5}, DType::kI32), want);
  EXPECT_EQ(printed<int64_t>({-2, 0, 5}, DType::kI64), want);
  EXPECT_EQ(printed<uint8_t>({3, 255, 0}, DType::kU8),
            "numel=3 min=0.000000 max=255.000000 mean=86.000000 nan=0 inf=0\n");
  const Tensor other = to_device(Tensor::zeros({4}, DType::kI8).view(), kEmulator);
  EXPECT_EQ(record::print_statistics(other.view()), 0);
}

}  // namespace
}  // namespace flashinfer
