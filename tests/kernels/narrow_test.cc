// SPDX-License-Identifier: Apache-2.0
// kernels/cpu/narrow.h on every ISA of this machine: every half of a float's bits with awkward low halves, against the
// nearest value of the target found by search in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "isa.h"
#include "vec_entry.h"

namespace flashinfer::test {
namespace {

class NarrowTest : public IsaTest<VecEntry> {
 protected:
  const VecEntry& v = *GetParam();
};

/// Every exponent and seven mantissa bits, with low halves around the ties of one to three kept bits; every code and
/// every midpoint of two codes with their float neighbours are among them.
std::vector<float> awkward() {
  std::vector<float> x;
  for (uint32_t hi = 0; hi < 65536; ++hi)
    for (uint32_t lo : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu}) x.push_back(scalar_detail::from_bits(hi << 16 | lo));
  return x;
}

/// The code in `values` (ascending, index = code) nearest to |x|, ties to the even one.
int nearest(const std::vector<double>& values, double x) {
  int best = 0;
  for (size_t c = 1; c < values.size(); ++c) {
    const double d = std::fabs(values[c] - x), e = std::fabs(values[static_cast<size_t>(best)] - x);
    if (d < e || (d == e && c % 2 == 0)) best = static_cast<int>(c);
  }
  return best;
}

template <int E, int M>
std::vector<double> magnitudes(int codes) {
  std::vector<double> values;
  const int bias = (1 << (E - 1)) - 1;
  for (int c = 0; c < codes; ++c) {
    const int e = c >> M, m = c & ((1 << M) - 1);
    values.push_back(e ? std::ldexp(1 + std::ldexp(m, -M), e - bias) : std::ldexp(m, 1 - bias - M));
  }
  return values;
}
template <int E, int M, class S>
void check_fp8(const VecEntry& v, DType type, int codes) {
  const std::vector<double> values = magnitudes<E, M>(codes);
  const std::vector<float> x = awkward();
  std::vector<S> y(x.size());
  v.narrow(type, x.data(), y.data(), static_cast<int64_t>(x.size()));
  int last = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {
      ASSERT_EQ(y[i].bits, 0x7f) << x[i];
      continue;
    }
    // Magnitudes ascend within a sign: the nearest code is looked for near the last one.
    const double a = std::min(std::fabs(static_cast<double>(x[i])), 1e6);
    if (i && std::signbit(x[i]) != std::signbit(x[i - 1])) last = 0;
    while (last + 1 < codes && values[static_cast<size_t>(last + 1)] <= a) ++last;
    int want = last;
    if (last + 1 < codes) {
      const double middle = (values[static_cast<size_t>(last)] + values[static_cast<size_t>(last + 1)]) / 2;
      if (a > middle || (a == middle && last % 2 == 1)) want = last + 1;
    }
    ASSERT_EQ(y[i].bits, want | (std::signbit(x[i]) ? 0x80 : 0)) << x[i];
  }
  for (int n = 0; n < v.lanes; ++n) {  // tails write n bytes
    std::vector<S> tail(static_cast<size_t>(2 * v.lanes), S(3.0f));
    v.narrow(type, std::vector<float>(static_cast<size_t>(v.lanes), 1.0f).data(), tail.data(), n);
    for (int i = 0; i < 2 * v.lanes; ++i)
      ASSERT_EQ(static_cast<float>(tail[static_cast<size_t>(i)]), i < n ? 1.0f : 3.0f) << n << " " << i;
  }
}
TEST_P(NarrowTest, E4m3RoundsToNearestEvenAndSaturates) { check_fp8<4, 3, e4m3_t>(v, DType::kF8E4M3, 127); }
TEST_P(NarrowTest, E5m2RoundsToNearestEvenAndSaturates) { check_fp8<5, 2, e5m2_t>(v, DType::kF8E5M2, 124); }

TEST_P(NarrowTest, E2m1RoundsToNearestEvenAndSaturates) {
  const std::vector<double> values = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::vector<float> x = awkward();
  for (float tie : {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f})
    for (float sign : {1.0f, -1.0f})
      for (float toward : {0.0f, tie, 10.0f}) x.push_back(sign * std::nextafter(tie, toward));
  while (x.size() % 16) x.push_back(-0.0f);
  std::vector<uint8_t> y(x.size() / 2 + 1, 0xee);
  v.to_e2m1(x.data(), y.data(), static_cast<int64_t>(x.size()));
  ASSERT_EQ(y.back(), 0xee);
  for (size_t i = 0; i < x.size(); ++i) {
    const int code = i % 2 ? y[i / 2] >> 4 : y[i / 2] & 15;
    const int want = std::isnan(x[i]) ? 7 : nearest(values, std::min(std::fabs(static_cast<double>(x[i])), 100.0));
    ASSERT_EQ(code & 7, want) << x[i];
    if (!std::isnan(x[i])) {
      ASSERT_EQ(code >> 3, std::signbit(x[i])) << x[i];
    }
  }
  const int wants[] = {0, 2, 2, 4, 4, 6, 6};  // the ties of the format's definition, written out
  const float ties[16] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  uint8_t packed[8];
  v.to_e2m1(ties, packed, 16);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(i % 2 ? packed[i / 2] >> 4 : packed[i / 2] & 15, wants[i]) << ties[i];
}

TEST_P(NarrowTest, E2m1WidensEveryByte) {
  std::vector<uint8_t> x(256);
  for (int i = 0; i < 256; ++i) x[static_cast<size_t>(i)] = static_cast<uint8_t>(i);
  std::vector<float> y(513, -7.0f);
  v.from_e2m1(x.data(), y.data(), 512);
  const float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (int i = 0; i < 512; ++i) {
    const int code = i % 2 ? i / 2 >> 4 : i / 2 & 15;
    const float want = code & 8 ? -values[code & 7] : values[code];
    ASSERT_EQ(scalar_detail::bits(y[static_cast<size_t>(i)]), scalar_detail::bits(want)) << i;
  }
  EXPECT_EQ(y[512], -7.0f);
}

INSTANTIATE_TEST_SUITE_P(Isa, NarrowTest, testing::Values(&kVecPortable, &kVecV3, &kVecV4, &kVecBf16),
                         isa_name<VecEntry>);

}  // namespace
}  // namespace flashinfer::test
