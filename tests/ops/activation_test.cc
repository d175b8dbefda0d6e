// SPDX-License-Identifier: Apache-2.0
// Gated activations, beyond the case tables: elements on their own, special values, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "flashinfer/ops/activation/op.h"

namespace flashinfer {
namespace {

TEST(Activation, TheFirstHalfIsTheGate) {
  const std::vector<float> x = {1, 2, 10, 100};
  const Tensor y = silu_and_mul({.input = TensorView(x.data(), {1, 4})});
  EXPECT_NEAR(y.data_as<float>()[0], 10 / (1 + std::exp(-1.0)), 1e-5);
  EXPECT_NEAR(y.data_as<float>()[1], 200 / (1 + std::exp(-2.0)), 1e-4);
}

TEST(Activation, AnElementDoesNotDependOnItsNeighbours) {
  std::mt19937 g(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> x(2 * 203);
  for (float& v : x) v = normal(g);
  for (auto* f : {&silu_and_mul, &gelu_and_mul, &gelu_tanh_and_mul}) {
    const Tensor all = (*f)({.input = TensorView(x.data(), {1, 406})});
    for (size_t i = 0; i < 203; ++i) {
      const float pair[] = {x[i], x[203 + i]};
      const Tensor one = (*f)({.input = TensorView(pair, {2})});
      EXPECT_EQ(std::memcmp(one.data(), all.data_as<float>() + i, 4), 0) << i;
    }
  }
}

TEST(Activation, SpecialValues) {
  const float inf = HUGE_VALF;
  const std::vector<float> x = {NAN, inf, 0.0f, -1e30f, 1, 1, 1, 1};
  for (auto* f : {&silu_and_mul, &gelu_and_mul, &gelu_tanh_and_mul}) {
    const Tensor y = (*f)({.input = TensorView(x.data(), {8})});
    EXPECT_TRUE(std::isnan(y.data_as<float>()[0]));
    EXPECT_EQ(y.data_as<float>()[1], inf);
    EXPECT_EQ(y.data_as<float>()[2], 0);
    EXPECT_EQ(y.data_as<float>()[3], 0);
  }
}

TEST(Activation, ErrorsNameTheArgument) {
  const std::vector<float> x(12);
  try {
    silu_and_mul({.input = TensorView(x.data(), {4, 3})});
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(e.message().find("silu_and_mul: input.shape[1] is 3"), std::string::npos) << e.what();
    EXPECT_NE(e.message().find("must be even"), std::string::npos) << e.what();
  }
  const TensorView in(x.data(), {2, 6});
  EXPECT_THROW(gelu_and_mul({.input = in, .out = TensorView(x.data(), {2, 3})}), ValueError);
  Tensor wrong = Tensor::empty({2, 2}, DType::kF32);
  EXPECT_THROW(gelu_tanh_and_mul({.input = in, .out = wrong}), ValueError);
}

}  // namespace
}  // namespace flashinfer
