// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts by numbers written out, slices over ranks, rows that do not depend on their neighbours, and what
// is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "flashinfer/ops/moe/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

template <class T>
TensorView of(const std::vector<double>& v, std::initializer_list<int64_t> shape) {
  std::vector<T> x;
  for (double f : v) {
    if constexpr (std::is_same_v<T, int32_t>)
      x.push_back(static_cast<T>(f));
    else
      x.push_back(static_cast<T>(static_cast<float>(f)));
  }
  return held(Tensor::copy_of(std::span<const T>(x), shape));
}
std::vector<float> values(const Tensor& t) { return {t.data_as<float>(), t.data_as<float>() + t.numel()}; }

TEST(Moe, TheFirstHalfOfFc1IsLinearAndTheSecondTheGate) {
  // x 2; linear 3 * 2, gate 0.5 * 2: silu(1) * 6 = 4.386351, in bf16 4.375; times fc2 2 and the token's scale 0.5, and
  // again with 0.25.
  const TensorView x = of<bf16_t>({2}, {1, 1}), fc1 = of<bf16_t>({3, 0.5}, {1, 2, 1}), fc2 = of<bf16_t>({2}, {1, 1, 1});
  const Tensor y = cutlass_fused_moe({.input = x,
                                      .token_selected_experts = of<int32_t>({0, 0}, {1, 2}),
                                      .token_final_scales = of<float>({0.5, 0.25}, {1, 2}),
                                      .fc1_expert_weights = fc1,
                                      .fc2_expert_weights = fc2,
                                      .output_dtype = DType::kF32});
  EXPECT_EQ(values(y), std::vector<float>{4.375f * 1.5f});
}

/// 40 tokens, 3 of 8 experts each.
struct Layer {
  TensorView x = pattern<bf16_t>({40, 48}, 1), fc1 = pattern<bf16_t>({8, 64, 48}, 0.3),
             fc2 = pattern<bf16_t>({8, 48, 32}, 0.3), ids, scales;
  Layer() {
    std::vector<double> e, s;
    for (int t = 0; t < 40; ++t)
      for (int j = 0; j < 3; ++j) e.push_back((t * 5 + j * 3) % 8), s.push_back(0.1 + 0.2 * ((t + j) % 4));
    ids = of<int32_t>(e, {40, 3});
    scales = of<float>(s, {40, 3});
  }
  Tensor run(int64_t first, int64_t last, int64_t rank = 0, int64_t ranks = 1) const {
    const int64_t n = 8 / ranks;
    return cutlass_fused_moe({.input = x.slice(0, first, last),
                              .token_selected_experts = ids.slice(0, first, last),
                              .token_final_scales = scales.slice(0, first, last),
                              .fc1_expert_weights = fc1.slice(0, rank * n, rank * n + n),
                              .fc2_expert_weights = fc2.slice(0, rank * n, rank * n + n),
                              .output_dtype = DType::kF32,
                              .ep_size = ranks,
                              .ep_rank = rank});
  }
};
TEST(Moe, ATokenDoesNotDependOnItsNeighbours) {
  const Layer layer;
  const std::vector<float> all = values(layer.run(0, 40));
  for (int64_t t : {0, 7, 39}) {
    const std::vector<float> alone = values(layer.run(t, t + 1));
    EXPECT_EQ(alone, std::vector<float>(all.begin() + t * 48, all.begin() + (t + 1) * 48)) << t;
  }
}
/// Weights of several blocks of k, columns that fill no panels, an odd k: up to 8 rows of an expert and more take
/// different kernels.
TEST(Moe, ATokenAmongFewAndAmongManyIsTheSame) {
  const TensorView x = pattern<bf16_t>({64, 600}, 1), fc1 = pattern<bf16_t>({4, 626, 600}, 0.05),
                   fc2 = pattern<bf16_t>({4, 600, 313}, 0.05);
  std::vector<double> e, s;
  for (int t = 0; t < 64; ++t)
    for (int j = 0; j < 2; ++j) e.push_back((t + j) % 4), s.push_back(0.3 + 0.4 * j);
  const TensorView ids = of<int32_t>(e, {64, 2}), scales = of<float>(s, {64, 2});
  const auto run = [&](int64_t first, int64_t last) {
    return values(cutlass_fused_moe({.input = x.slice(0, first, last),
                                     .token_selected_experts = ids.slice(0, first, last),
                                     .token_final_scales = scales.slice(0, first, last),
                                     .fc1_expert_weights = fc1,
                                     .fc2_expert_weights = fc2,
                                     .output_dtype = DType::kF32}));
  };
  const std::vector<float> all = run(0, 64);          // 32 rows an expert
  for (const int64_t tokens : {1, 2, 7, 16, 18, 20})  // 16: 8 rows, 18 and 20: 9 and 10
    for (const int64_t first : {int64_t{0}, 64 - tokens})
      EXPECT_EQ(run(first, first + tokens),
                std::vector<float>(all.begin() + first * 600, all.begin() + (first + tokens) * 600))
          << tokens;
}
TEST(Moe, RanksOfExpertsAddUp) {
  const Layer layer;
  const std::vector<float> all = values(layer.run(0, 40));
  std::vector<float> sum(all.size(), 0.0f);
  for (int64_t rank = 0; rank < 4; ++rank) {
    const std::vector<float> part = values(layer.run(0, 40, rank, 4));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], all[i], 1e-5) << i;
}
TEST(Moe, RanksOfTensorsAddUp) {
  const Layer layer;
  const std::vector<float> all = values(layer.run(0, 40));
  std::vector<float> sum(all.size(), 0.0f);
  for (int64_t rank = 0; rank < 2; ++rank) {  // half of the intermediate columns: rows of both halves of fc1
    const Tensor fc1 = Tensor::empty({8, 32, 48}, DType::kBF16);
    for (int64_t e = 0; e < 8; ++e)
      for (int64_t r = 0; r < 32; ++r)
        for (int64_t c = 0; c < 48; ++c)
          fc1.data_as<bf16_t>()[(e * 32 + r) * 48 + c] =
              layer.fc1.data_as<bf16_t>()[(e * 64 + r / 16 * 32 + rank * 16 + r % 16) * 48 + c];
    const std::vector<float> part =
        values(cutlass_fused_moe({.input = layer.x,
                                  .token_selected_experts = layer.ids,
                                  .token_final_scales = layer.scales,
                                  .fc1_expert_weights = fc1,
                                  .fc2_expert_weights = layer.fc2.slice(2, rank * 16, rank * 16 + 16),
                                  .output_dtype = DType::kF32,
                                  .tp_size = 2,
                                  .tp_rank = rank}));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], all[i], 1e-5) << i;
}

TEST(Moe, DeepSeekChoosesGroupsThenExperts) {
  // Groups of two: sums of s + bias are 1.0, 1.15 and 0.9. The best expert, 5, is in the worst group.
  const auto logit = [](double s) { return std::log(s / (1 - s)); };
  const TensorView logits =
      of<float>({logit(0.5), logit(0.5), logit(0.7), logit(0.3), logit(0.05), logit(0.85)}, {1, 6});
  const TensorView bias = of<float>({0, 0, 0, 0.15, 0, 0}, {6});
  const auto [ids, weights] = moe_routing({.routing_logits = logits,
                                           .routing_method = 2,
                                           .top_k = 2,
                                           .routing_bias = bias,
                                           .n_group = 3,
                                           .topk_group = 2,
                                           .routed_scaling_factor = 3});
  EXPECT_EQ(ids.data_as<int32_t>()[0], 2);
  EXPECT_EQ(ids.data_as<int32_t>()[1], 0);  // 0.5, before expert 1 of the same
  EXPECT_NEAR(weights.data_as<float>()[0], 3 * 0.7 / 1.2, 1e-6);
  EXPECT_NEAR(weights.data_as<float>()[1], 3 * 0.5 / 1.2, 1e-6);
}
TEST(Moe, NegativeLogitsDoNotLoseToPadding) {
  const auto [ids, weights] =
      moe_routing({.routing_logits = of<float>({-9, -7, -8}, {1, 3}), .routing_method = 1, .top_k = 2});
  EXPECT_EQ(ids.data_as<int32_t>()[0], 1);
  EXPECT_EQ(ids.data_as<int32_t>()[1], 2);
  EXPECT_NEAR(weights.data_as<float>()[0], 1 / (1 + std::exp(-1.0)), 1e-6);
}

TEST(Moe, Errors) {
  const TensorView x = pattern<bf16_t>({2, 32}, 1), fc1 = pattern<bf16_t>({4, 32, 32}, 1),
                   fc2 = pattern<bf16_t>({4, 32, 16}, 1), ids = of<int32_t>({0, 1, 2, 4}, {2, 2}),
                   scales = of<float>({1, 1, 1, 1}, {2, 2});
  CutlassFusedMoe a{.input = x,
                    .token_selected_experts = ids,
                    .token_final_scales = scales,
                    .fc1_expert_weights = fc1,
                    .fc2_expert_weights = fc2};
  EXPECT_REFUSED("token_selected_experts[1][1] is 4, but must be in [0, 4)", cutlass_fused_moe(a));
  a.enable_alltoall = true;
  EXPECT_EQ(message_of([&] { cutlass_fused_moe(a); }), "no error");
  a.fc2_expert_weights = fc1;
  EXPECT_REFUSED("fc2_expert_weights is bfloat16[4, 32, 32], but must be [4, 32, 16]", cutlass_fused_moe(a));
  a.fc2_expert_weights = fc2;
  a.min_latency_mode = true;
  EXPECT_REFUSED("NotImplementedError: cutlass_fused_moe: min_latency_mode is True", cutlass_fused_moe(a));
  a.min_latency_mode = false;
  a.activation_type = 12;
  EXPECT_REFUSED("clamped_relu2_limit is None", cutlass_fused_moe(a));
  a.activation_type = 3;
  a.quant_scales = std::vector<TensorView>{scales};
  EXPECT_REFUSED("quant_scales has 1 tensors, but weights of bfloat16 with these flags need 0", cutlass_fused_moe(a));
  a.use_w4_group_scaling = true;
  EXPECT_REFUSED("use_w4_group_scaling is True, but fc1_expert_weights.dtype is bfloat16, not uint8",
                 cutlass_fused_moe(a));
  a.use_w4_group_scaling = false;
  const Tensor w1 = Tensor::empty({4, 64, 32}, DType::kF8E4M3), w2 = Tensor::empty({4, 32, 32}, DType::kF8E4M3);
  a.fc1_expert_weights = w1, a.fc2_expert_weights = w2, a.use_deepseek_fp8_block_scale = true;
  a.quant_scales = std::vector<TensorView>{scales, scales};
  EXPECT_REFUSED("rows must have a multiple of 128 elements", cutlass_fused_moe(a));
  EXPECT_REFUSED("top_k is 5, but must be in [1, 4]",
                 moe_routing({.routing_logits = of<float>({1, 2, 3, 4}, {1, 4}), .top_k = 5}));
  EXPECT_REFUSED("Llama4 routes to one expert",
                 moe_routing({.routing_logits = of<float>({1, 2, 3, 4}, {1, 4}), .routing_method = 3, .top_k = 2}));
}

}  // namespace
}  // namespace flashinfer
