// SPDX-License-Identifier: Apache-2.0
// Softmax, sampling and top-k, beyond the case tables: distributions, rows without a usable probability
// among others, independence of the batch, generators, ties of greedy decoding, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "flashinfer/kernels/common/philox.h"
#include "flashinfer/ops/sampling/op.h"
#include "flashinfer/ops/sampling/ref.h"
#include "flashinfer/ops/topk/op.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TensorView f32(const std::vector<float>& v, int64_t rows) {
  return TensorView(v.data(), {rows, static_cast<int64_t>(v.size()) / rows});
}
/// Row r of `n` rows: every row the same distribution.
std::vector<float> repeated(const std::vector<float>& p, int64_t n) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) out.insert(out.end(), p.begin(), p.end());
  return out;
}

TEST(Philox, KnownAnswers) {  // of the authors' Random123 library
  const cpu::PhiloxBlock zero = cpu::philox(0, 0, 0);
  EXPECT_EQ(zero.word[0], 0x6627e8d5u);
  EXPECT_EQ(zero.word[3], 0x9b00dbd8u);
  const cpu::PhiloxBlock pi = cpu::philox(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull);
  EXPECT_EQ(pi.word[0], 0xd16cfe09u);
  EXPECT_EQ(pi.word[1], 0x94fdccebu);
  EXPECT_EQ(pi.word[2], 0x5001e420u);
  EXPECT_EQ(pi.word[3], 0x24126ea1u);
  for (uint64_t i = 0; i < 1000; ++i)
    EXPECT_EQ(static_cast<double>(cpu::philox_uniform(7 * i, i, i)), ref::philox_uniform(7 * i, i, i)) << i;
}

TEST(Sampling, FrequenciesFollowTheDistribution) {
  constexpr int64_t kDraws = 40000;
  const std::vector<float> p = {0.5f, 0, 0.25f, 0.125f, 0.0625f, 0.0625f, 0};
  const std::vector<float> probs = repeated(p, kDraws);
  const Samples s = sampling_from_probs({.probs = f32(probs, kDraws), .seed = int64_t{1}, .offset = int64_t{0}});
  std::vector<double> count(p.size());
  for (int32_t id : s.samples.span<int32_t>()) ++count[static_cast<size_t>(id)];
  for (size_t i = 0; i < p.size(); ++i)  // five standard deviations
    EXPECT_NEAR(count[i], kDraws * p[i], 5 * std::sqrt(kDraws * p[i] * (1 - p[i]))) << i;
}

TEST(Sampling, FilteredFrequenciesFollowTheFilteredDistribution) {
  constexpr int64_t kDraws = 20000;
  const std::vector<float> p = {0.05f, 0.3f, 0.1f, 0.25f, 0.2f, 0.1f};
  const std::vector<float> probs = repeated(p, kDraws);
  // top_k_first, k = 3: {.3, .25, .2} / .75; top_p = .7: .4 and .333 above .7 together, so .2/.75 is cut. Joint, k = 3,
  // p = .7: all three.
  for (const auto& [order, allowed] : {std::pair{"top_k_first", std::vector<size_t>{1, 3}}, {"joint", {1, 3, 4}}}) {
    const Samples s = top_k_top_p_sampling_from_probs({.probs = f32(probs, kDraws),
                                                       .top_k = 3,
                                                       .top_p = 0.7,
                                                       .filter_apply_order = order,
                                                       .seed = int64_t{1},
                                                       .offset = int64_t{0}});
    std::vector<double> count(p.size());
    for (int32_t id : s.samples.span<int32_t>()) ++count[static_cast<size_t>(id)];
    double mass = 0, seen = 0;
    for (size_t i : allowed) mass += p[i];
    for (size_t i : allowed) {
      const double q = p[i] / mass;
      EXPECT_NEAR(count[i], kDraws * q, 5 * std::sqrt(kDraws * q * (1 - q))) << order << i;
      seen += count[i];
    }
    EXPECT_EQ(seen, kDraws) << order;
  }
}

TEST(Sampling, ARowWithoutUsableProbabilityLeavesTheOthersAlone) {
  std::vector<float> p = repeated({0.1f, 0.2f, 0.3f, 0.4f}, 6);
  const Samples clean =
      sampling_from_probs({.probs = f32(p, 6), .seed = int64_t{5}, .offset = int64_t{0}, .return_valid = true});
  p[1 * 4 + 3] = NAN;
  for (size_t i = 0; i < 4; ++i) p[3 * 4 + i] = 0;
  p[4 * 4 + 1] = kInf;
  const Samples s =
      sampling_from_probs({.probs = f32(p, 6), .seed = int64_t{5}, .offset = int64_t{0}, .return_valid = true});
  const Samples f = top_k_top_p_sampling_from_probs(
      {.probs = f32(p, 6), .top_k = 4, .top_p = 0.0, .seed = int64_t{5}, .offset = int64_t{0}, .return_valid = true});
  for (int r = 0; r < 6; ++r) {
    const bool usable = r != 1 && r != 3 && r != 4;
    EXPECT_EQ(s.valid.data_as<bool>()[r], usable) << r;
    EXPECT_EQ(s.samples.data_as<int32_t>()[r], usable ? clean.samples.data_as<int32_t>()[r] : 0) << r;
    EXPECT_EQ(f.valid.data_as<bool>()[r], usable) << r;
    EXPECT_EQ(f.samples.data_as<int32_t>()[r], usable ? 3 : 0) << r << ": top_p = 0 is the likeliest token";
  }
}

TEST(Sampling, ASeedOfItsOwnMakesARowIndependentOfItsSlot) {
  std::vector<float> one(500);
  for (size_t i = 0; i < one.size(); ++i) one[i] = 1.0f / 500;
  const std::vector<float> probs = repeated(one, 8);
  const std::vector<int64_t> seeds = {3, 9, 9, 4, 3, 1, 2, 9}, offsets = {0, 0, 0, 4, 0, 0, 0, 32};
  const Samples s = sampling_from_probs({.probs = f32(probs, 8),
                                         .seed = TensorView(std::span<const int64_t>(seeds)),
                                         .offset = TensorView(std::span<const int64_t>(offsets))});
  const int32_t* id = s.samples.data_as<int32_t>();
  EXPECT_EQ(id[0], id[4]);
  EXPECT_EQ(id[1], id[2]);
  EXPECT_NE(id[1], id[7]) << "another offset";
  const Samples alone = sampling_from_probs({.probs = f32(one, 1), .seed = int64_t{9}, .offset = int64_t{0}});
  EXPECT_EQ(alone.samples.data_as<int32_t>()[0], id[1]);
  const Samples shared = sampling_from_probs({.probs = f32(probs, 8), .seed = int64_t{9}, .offset = int64_t{0}});
  const auto ids = shared.samples.span<int32_t>();
  EXPECT_GT(std::set<int32_t>(ids.begin(), ids.end()).size(), 4u) << "rows under one seed have numbers of their own";
}

TEST(Sampling, AGeneratorAdvancesByWhatACallUses) {
  const std::vector<float> probs = repeated(std::vector<float>(100, 0.01f), 5);
  op::Generator g(11);
  const Samples a = sampling_from_probs({.probs = f32(probs, 5), .generator = g});
  EXPECT_EQ(g.offset(), 8u);
  const Samples same = sampling_from_probs({.probs = f32(probs, 5), .seed = int64_t{11}, .offset = int64_t{8}});
  EXPECT_EQ(std::memcmp(a.samples.data(), same.samples.data(), 20), 0);
  const Samples b = sampling_from_probs({.probs = f32(probs, 5), .generator = g});
  EXPECT_NE(std::memcmp(a.samples.data(), b.samples.data(), 20), 0);
  top_k_top_p_sampling_from_probs({.probs = f32(probs, 5), .top_k = 3, .top_p = 0.5, .generator = g});
  EXPECT_EQ(g.offset(), 16u + 160u);
}

TEST(Sampling, ErrorsNameTheArgument) {
  const std::vector<float> probs = repeated({0.5f, 0.5f}, 3);
  const TensorView p = f32(probs, 3);
  const std::vector<int32_t> two = {1, 1}, far = {0, 3};
  const std::vector<int64_t> seeds = {1, 2};
  const std::vector<float> bad_p = {0.5f, NAN, 0.5f};
  const int64_t one = 1;
  EXPECT_NE(
      message_of([&] {
        top_k_top_p_sampling_from_probs({.probs = p, .top_k = TensorView(std::span<const int32_t>(two)), .top_p = 0.5});
      }).find("Sampling parameter top_k batch size mismatch"),
      std::string::npos);
  EXPECT_NE(message_of([&] {
              top_k_top_p_sampling_from_probs({.probs = p, .top_k = TensorView(two.data(), {2, 1}), .top_p = 0.5});
            }).find("Expected a 1D tensor"),
            std::string::npos);
  EXPECT_NE(
      message_of([&] {
        top_k_top_p_sampling_from_probs({.probs = p, .top_k = 1, .top_p = TensorView(std::span<const float>(bad_p))});
      }).find("top_p[1] is nan"),
      std::string::npos);
  EXPECT_NE(message_of([&] {
              top_k_top_p_sampling_from_probs({.probs = p, .top_k = 1, .top_p = 0.5, .filter_apply_order = "both"});
            }).find("filter_apply_order is 'both'"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              sampling_from_probs({.probs = p, .indices = TensorView(std::span<const int32_t>(far))});
            }).find("indices[1] is 3"),
            std::string::npos);
  EXPECT_NE(message_of([&] { sampling_from_probs({.probs = p, .seed = one}); }).find("seed is given without offset"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              sampling_from_probs({.probs = p,
                                   .seed = TensorView(std::span<const int64_t>(seeds)),
                                   .offset = TensorView(std::span<const int64_t>(seeds))});
            }).find("seed tensor length must be 1 or 3"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              sampling_from_probs({.probs = p, .seed = TensorView(&one, {1}), .offset = one});
            }).find("both be integers or both be tensors"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { sampling_from_probs({.probs = p, .check_nan = true}); }), "no error");
  EXPECT_NE(message_of([&] {
              sampling_from_probs({.probs = f32(bad_p, 1), .check_nan = true});
            }).find("contains NaN, the first at [0, 1]"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              softmax({.logits = p, .temperature = TensorView(std::span<const float>(bad_p.data(), 2))});
            }).find("Sampling parameter temperature batch size mismatch"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              softmax({.logits = p, .temperature = -0.5});
            }).find("temperature is -0.5, but must not be negative"),
            std::string::npos);
  const float cold[] = {1, -2, 1}, greedy[] = {1, -1, 1};
  EXPECT_NE(message_of([&] {
              softmax({.logits = p, .temperature = TensorView(std::span<const float>(cold))});
            }).find("temperature[1] is -2"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { softmax({.logits = p, .temperature = TensorView(std::span<const float>(greedy))}); }),
            "no error");
  const int32_t few[] = {3, -7, 0};
  EXPECT_NE(message_of([&] {
              top_k_sampling_from_probs({.probs = p, .top_k = TensorView(std::span<const int32_t>(few))});
            }).find("top_k[1] is -7"),
            std::string::npos);
  EXPECT_NE(
      message_of([&] { top_k_mask_logits({.logits = p, .top_k = -2}); }).find("top_k is -2, but must be positive"),
      std::string::npos);
  EXPECT_EQ(message_of([&] { top_k_mask_logits({.logits = p, .top_k = -1}); }), "no error");
}

TEST(Softmax, MaskedTokensAndZeroTemperature) {
  const std::vector<float> x = {1, -kInf, 3, 2, -kInf, -kInf, -kInf, -kInf};
  for (double temperature : {1.0, 0.0, 1e-30}) {
    const Tensor y = softmax({.logits = f32(x, 2), .temperature = temperature});
    const float* v = y.data_as<float>();
    EXPECT_EQ(v[1], 0) << temperature;
    const double want = temperature == 0 ? 1.0 / 3 : temperature == 1 ? 1 / (1 + std::exp(-1.0) + std::exp(-2.0)) : 1;
    EXPECT_NEAR(v[2], want, 1e-7) << temperature;
    EXPECT_LE(v[2], 1) << temperature;
    for (int i = 4; i < 8; ++i) EXPECT_EQ(v[i], 0) << "a masked row has no NaN";
  }
}

TEST(TopK, GreedyTakesTheSmallestIndexOfEqualLogits) {
  // Positions in the first and last vectors, at block borders (4096) and in the tail.
  constexpr int64_t kV = 3 * 4096 + 37;
  for (int64_t at : {0, 1, 63, 64, 4095, 4096, 8191, 3 * 4096, 3 * 4096 + 36}) {
    std::vector<float> x(kV, -1.0f);
    x[static_cast<size_t>(at)] = 7;
    x[kV - 1] = 7;
    const auto [v, i] = top_k({.input = f32(x, 1), .k = 1});
    EXPECT_EQ(i.data_as<int64_t>()[0], at);
    EXPECT_EQ(v.data_as<float>()[0], 7);
    const auto largest = top_k({.input = f32(x, 1), .k = 1, .tie_break = 2});
    EXPECT_EQ(largest.second.data_as<int64_t>()[0], kV - 1);
    x[static_cast<size_t>(at == 0 ? 1 : 0)] = NAN;
    EXPECT_EQ(top_k({.input = f32(x, 1), .k = 1}).second.data_as<int64_t>()[0], at)
        << "NaN is never chosen before a number";
  }
  const std::vector<float> zeros = {-0.0f, 0.0f, -0.0f};
  EXPECT_EQ(top_k({.input = f32(zeros, 1), .k = 1}).second.data_as<int64_t>()[0], 0);
  const auto two = top_k({.input = f32(zeros, 1), .k = 2, .sorted = true});
  EXPECT_EQ(two.second.data_as<int64_t>()[1], 1) << "-0 equals +0";
  const std::vector<float> masked = {NAN, -kInf, -kInf};
  EXPECT_EQ(top_k({.input = f32(masked, 1), .k = 1}).second.data_as<int64_t>()[0], 1);
}

TEST(TopK, FewerFiniteElementsThanK) {
  const std::vector<float> x = {-kInf, 2, NAN, -kInf, 3};
  const auto [v, i] = top_k({.input = f32(x, 1), .k = 5, .sorted = true});
  const std::vector<int64_t> want = {4, 1, 0, 3, 2};
  EXPECT_EQ(std::vector<int64_t>(i.span<int64_t>().begin(), i.span<int64_t>().end()), want);
  EXPECT_TRUE(std::isnan(v.data_as<float>()[4]));
}

TEST(TopK, ErrorsNameTheArgument) {
  const std::vector<float> x(6);
  EXPECT_EQ(message_of([&] { top_k({.input = f32(x, 2), .k = 4}); }),
            "ValueError: top_k: k is 4, but must be in [1, 3] (d, from input.shape[1])");
  EXPECT_NE(message_of([&] { top_k({.input = f32(x, 2)}); }).find("k is 0"), std::string::npos);
  EXPECT_NE(message_of([&] { top_k({.input = f32(x, 2), .k = 1, .tie_break = 3}); }).find("tie_break is 3"),
            std::string::npos);
}

}  // namespace
}  // namespace flashinfer
