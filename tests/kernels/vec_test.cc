// SPDX-License-Identifier: Apache-2.0
// Every function of kernels/cpu/vec.h and exp.h, on every ISA this machine has, against double and against
// core/scalar.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "isa.h"
#include "vec_entry.h"

namespace flashinfer::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

class VecTest : public IsaTest<VecEntry> {
 protected:
  const VecEntry& v = *GetParam();
  std::vector<float> map(Unary f, const std::vector<float>& x) {
    std::vector<float> y(x.size() + 1, -7.0f);  // a guard after the tail
    v.map(f, x.data(), y.data(), static_cast<int64_t>(x.size()));
    EXPECT_EQ(y.back(), -7.0f);
    y.pop_back();
    return y;
  }
};

/// Distance in units of the last place of the exact value, subnormal spacing below 2^-126.
double ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  if (std::fabs(want) > 3.4028235677973366e38) return std::isinf(got) && (got > 0) == (want > 0) ? 0 : 1e9;
  if (std::isnan(got) || std::isinf(got)) return 1e9;
  int e;
  std::frexp(want, &e);
  return std::fabs(got - want) / std::ldexp(1.0, std::max(e - 24, -149));
}

std::vector<float> grid(float lo, float hi, int n = 100003) {
  std::vector<float> x(n);
  for (int i = 0; i < n; ++i) x[i] = static_cast<float>(lo + (static_cast<double>(hi) - lo) * i / (n - 1));
  for (float tiny : {0.0f, -0.0f, 1e-3f, -1e-3f, 1e-10f, -1e-10f, 1e-38f, 1e-42f}) x.push_back(tiny);
  return x;
}

struct Curve {
  Unary f;
  const char* name;
  std::function<double(double)> exact;
  float lo, hi;
  double bound;    // ulp
  double unfused;  // the same on targets whose fma() rounds twice
};
const Curve kCurves[] = {
    {Unary::kExp2, "exp2", [](double x) { return std::exp2(x); }, -152, 130, 1.3, 1.3},
    {Unary::kExp2Falling, "exp2_falling", [](double x) { return std::exp2(x); }, -152, 0, 2.3, 2.3},
    {Unary::kExp, "exp", [](double x) { return std::exp(x); }, -106, 90, 1.3, 1.6},
    {Unary::kExp, "exp near 0", [](double x) { return std::exp(x); }, -1, 1, 1.3, 1.6},
    {Unary::kSigmoid, "sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 30, 2.5, 3},
    {Unary::kSilu, "silu", [](double x) { return x / (1 + std::exp(-x)); }, -80, 30, 2.5, 3.5},
    // Less than a tenth of the rounding that follows.
    {Unary::kSiluBf16, "silu to bf16", [](double x) { return x / (1 + std::exp(-x)); }, -80, 30, 2400, 2400},
    {Unary::kSiluF16, "silu to f16", [](double x) { return x / (1 + std::exp(-x)); }, -18, 30, 16, 16},
    {Unary::kTanh, "tanh", [](double x) { return std::tanh(x); }, -12, 12, 2, 2.5},
    {Unary::kTanh, "tanh near 0", [](double x) { return std::tanh(x); }, -0.7f, 0.7f, 2, 2.5},
    {Unary::kErf, "erf", [](double x) { return std::erf(x); }, -11, 11, 2, 2.5},
    {Unary::kErf, "erf near 0", [](double x) { return std::erf(x); }, -0.6f, 0.6f, 2.2, 2.5},
    // In the tail of the tanh form the rounding error of the argument is multiplied by the argument.
    {Unary::kGeluErf, "gelu_erf", [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }, -4, 11, 4, 10},
    {Unary::kGeluErf, "gelu_erf tail", [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }, -12.9f, -4,
     10, 100},
    {Unary::kGeluTanh, "gelu_tanh",
     [](double x) { return x / (1 + std::exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x))); }, -4, 11, 20, 24},
};

TEST_P(VecTest, CurvesFollowDouble) {
  for (const Curve& c : kCurves) {
    const std::vector<float> x = grid(c.lo, c.hi), y = map(c.f, x);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < x.size(); ++i)
      if (const double e = ulps(y[i], c.exact(x[i])); e > worst) worst = e, at = i;
    EXPECT_LE(worst, &v == &kVecPortable ? c.unfused : c.bound)
        << c.name << "(" << x[at] << ") is " << y[at] << ", exact " << c.exact(x[at]);
  }
}

TEST_P(VecTest, ExponentialsAtTheEnds) {
  for (Unary f : {Unary::kExp, Unary::kExp2}) {
    const std::vector<float> y = map(f, {-kInf, kInf, kNaN, 0.0f, -0.0f, 1e30f, -1e30f});
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_EQ(y[1], kInf);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 1.0f);
    EXPECT_EQ(y[4], 1.0f);
    EXPECT_EQ(y[5], kInf);
    EXPECT_EQ(y[6], 0.0f);
  }
  const std::vector<float> falling = map(Unary::kExp2Falling, {-kInf, kNaN, -1e30f, -200.0f});
  EXPECT_EQ(falling[0], 0.0f);
  EXPECT_TRUE(std::isnan(falling[1]));
  EXPECT_EQ(falling[2], 0.0f);
  EXPECT_EQ(falling[3], 0.0f);
  for (Unary f : {Unary::kTanh, Unary::kErf}) {
    const std::vector<float> y = map(f, {-kInf, kInf, kNaN, 30.0f, -30.0f});
    EXPECT_EQ(y[0], -1.0f);
    EXPECT_EQ(y[1], 1.0f);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 1.0f);
    EXPECT_EQ(y[4], -1.0f);
  }
  for (Unary f : {Unary::kSilu, Unary::kSiluBf16, Unary::kGeluErf, Unary::kGeluTanh}) {
    const std::vector<float> y = map(f, {kInf, kNaN, 0.0f, 100.0f, -200.0f});
    EXPECT_EQ(y[0], kInf);
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[3], 100.0f);
    EXPECT_EQ(y[4], -0.0f);
  }
}

TEST_P(VecTest, Simple) {
  const std::vector<float> x = {2.5f, 3.5f, -2.5f, 0.49999997f, 8388609.0f, -0.0f, 1e20f, kInf, 0.25f, 7.0f, -1.5f};
  const std::vector<float> root = map(Unary::kSqrt, {4.0f, 2.0f, 0.0f, kInf, 0.01f});
  EXPECT_EQ(root[1], std::sqrt(2.0f));
  EXPECT_EQ(root[4], std::sqrt(0.01f));
  const std::vector<float> rounded = map(Unary::kRound, x), mag = map(Unary::kAbs, x), neg = map(Unary::kNeg, x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(rounded[i], std::nearbyint(x[i])) << x[i];
    EXPECT_EQ(mag[i], std::fabs(x[i]));
    EXPECT_EQ(std::signbit(neg[i]), !std::signbit(x[i]));
    EXPECT_EQ(neg[i], -x[i]);
  }
}

template <class S>
void check_widen(const VecEntry& v, DType type, int patterns) {
  std::vector<S> x(patterns);
  for (int i = 0; i < patterns; ++i) x[i].bits = static_cast<decltype(S::bits)>(i);
  for (int cut : {0, 1, 3}) {  // a tail of 0, ... lanes
    std::vector<float> y(patterns + 1, -7.0f);
    v.widen(type, x.data(), y.data(), patterns - cut);
    for (int i = 0; i < patterns - cut; ++i) {
      const float want = static_cast<float>(x[i]);
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(y[i])) << i;
      else
        ASSERT_EQ(std::memcmp(&y[i], &want, 4), 0) << "pattern " << i << ": " << y[i] << ", want " << want;
    }
    ASSERT_EQ(y[patterns - cut], -7.0f);
  }
}
TEST_P(VecTest, WidensEveryPattern) {
  check_widen<bf16_t>(v, DType::kBF16, 65536);
  check_widen<f16_t>(v, DType::kF16, 65536);
  check_widen<e4m3_t>(v, DType::kF8E4M3, 256);
  check_widen<e5m2_t>(v, DType::kF8E5M2, 256);
}

template <class S>
void check_narrow(const VecEntry& v, DType type) {
  std::vector<float> x;
  for (uint32_t hi = 0; hi < 65536; ++hi)
    for (uint32_t lo : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      x.push_back(scalar_detail::from_bits(hi << 16 | lo));
  std::vector<S> y(x.size());
  v.narrow(type, x.data(), y.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]))
      ASSERT_TRUE(std::isnan(static_cast<float>(y[i])));
    else
      ASSERT_EQ(y[i].bits, S(x[i]).bits) << x[i];
  }
  std::vector<S> tail(2 * v.lanes, S(3.0f));
  for (int n = 0; n < v.lanes; ++n) {
    std::fill(tail.begin(), tail.end(), S(3.0f));
    v.narrow(type, std::vector<float>(v.lanes, 1.0f).data(), tail.data(), n);
    for (int i = 0; i < 2 * v.lanes; ++i) ASSERT_EQ(static_cast<float>(tail[i]), i < n ? 1.0f : 3.0f) << n << " " << i;
  }
}
TEST_P(VecTest, NarrowsToNearestEven) {
  check_narrow<bf16_t>(v, DType::kBF16);
  check_narrow<f16_t>(v, DType::kF16);
}

TEST_P(VecTest, FusedAndOrder) {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal;
  const int n = 4096;
  std::vector<float> a(n), b(n), c(n), y(2 * n);
  for (int i = 0; i < n; ++i) a[i] = normal(rng), b[i] = normal(rng), c[i] = normal(rng);
  v.fused(a.data(), b.data(), c.data(), y.data(), n);
  for (int i = 0; i < n; ++i) {
    const double p = static_cast<double>(a[i]) * b[i], slack = 1.2e-7 * (std::fabs(p) + std::fabs(c[i]));
    ASSERT_NEAR(y[i], p + c[i], slack);
    ASSERT_NEAR(y[n + i], c[i] - p, slack);
  }
  a[0] = kNaN, b[1] = kNaN;
  v.order(a.data(), b.data(), y.data(), n);
  EXPECT_EQ(y[0], b[0]);
  EXPECT_EQ(y[n], b[0]);
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[n + 1]));
  for (int i = 2; i < n; ++i) {
    ASSERT_EQ(y[i], std::min(a[i], b[i]));
    ASSERT_EQ(y[n + i], std::max(a[i], b[i]));
  }
}

TEST_P(VecTest, ReducesAsTheDocumentedTree) {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 100; ++round) {
    std::vector<float> x(v.lanes);
    for (float& e : x) e = normal(rng) * std::exp(normal(rng) * 3);
    float y[3];
    v.reduce(x.data(), y);
    std::vector<float> t = x;
    for (int half = v.lanes / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) t[i] = t[i] + t[i + half];
    EXPECT_EQ(y[0], t[0]);
    EXPECT_EQ(y[1], *std::max_element(x.begin(), x.end()));
    EXPECT_EQ(y[2], *std::min_element(x.begin(), x.end()));
  }
}

TEST_P(VecTest, LdexpRoundsOnce) {
  std::vector<float> x, e;
  for (int k = -252; k <= 252; ++k)
    for (float m : {1.0f, 1.9999999f, 0.70710677f, -1.3333334f, 1.0000001f, 0.0f, kInf}) x.push_back(m), e.push_back(k);
  while (x.size() % 16) x.push_back(1.0f), e.push_back(0.0f);
  std::vector<float> y(x.size());
  v.scale(x.data(), e.data(), y.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(y[i], std::ldexp(x[i], static_cast<int>(e[i]))) << x[i] << " " << e[i];
}

TEST_P(VecTest, DotOfPairs) {
  std::mt19937 rng(13);
  std::normal_distribution<float> normal;
  for (int n : {0, 1, 2, 7, 8, 31, 32, 33, 128, 1023}) {
    std::vector<bf16_t> a(n), b(n);  // exact size: the sanitizer build sees a read past the end
    double want = 0, size = 0;
    for (int i = 0; i < n; ++i) {
      a[i] = bf16_t(normal(rng)), b[i] = bf16_t(normal(rng));
      const double p = static_cast<double>(static_cast<float>(a[i])) * static_cast<float>(b[i]);
      want += p, size += std::fabs(p);
    }
    EXPECT_NEAR(v.dot(a.data(), b.data(), n), want, 1e-6 * size) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, VecTest, testing::Values(&kVecPortable, &kVecV3, &kVecV4, &kVecBf16), isa_name<VecEntry>);

}  // namespace
}  // namespace flashinfer::test
