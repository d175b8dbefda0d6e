// SPDX-License-Identifier: Apache-2.0
// The trtllm family against cutlass_fused_moe: the same experts, whose weights went through the public functions that
// shuffle, interleave and block them, give the same bits. And what is an error.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "flashinfer/ops/moe/op.h"
#include "flashinfer/ops/moe/trtllm.h"
#include "flashinfer/ops/quantization/layout/layout.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

/// MXFP4 codes or scales: powers of two from 2^-9 to 2^-4 as ue8m0.
TensorView bytes(std::initializer_list<int64_t> shape, uint32_t salt) {
  Tensor t = Tensor::empty(shape, DType::kU8);
  int64_t i = 0;
  for (uint8_t& x : t.span<uint8_t>())
    x = static_cast<uint8_t>(118 + static_cast<int>(std::fabs(255 * noise(i++, salt))) % 6);
  return held(std::move(t));
}
/// f of each expert, stacked again.
template <class F>
TensorView each(const TensorView& w, F f) {
  std::vector<Tensor> all;
  for (int64_t e = 0; e < w.size(0); ++e) all.push_back(f(w.select(0, e)));
  std::vector<int64_t> shape = {w.size(0)};
  for (int64_t n : all[0].view().shape()) shape.push_back(n);
  Tensor out = Tensor::empty(shape, w.dtype());
  for (size_t e = 0; e < all.size(); ++e)
    std::memcpy(out.data_as<char>() + static_cast<int64_t>(e) * all[e].nbytes(), all[e].data(),
                static_cast<size_t>(all[e].nbytes()));
  return held(std::move(out));
}
TensorView prepared(const TensorView& w, bool gated) {
  return each(w, [&](const TensorView& x) {
    if (!gated) return shuffle_matrix_a({.input_tensor = x, .epilogue_tile_m = 128});
    const Tensor pairs = reorder_rows_for_gated_act_gemm({.x = x});
    return shuffle_matrix_a({.input_tensor = pairs, .epilogue_tile_m = 128});
  });
}
TensorView blocked(const TensorView& w) {
  return each(w, [&](const TensorView& x) {
    return convert_to_block_layout({.input_tensor = x, .blockK = 128 / w.item_size()});
  });
}
std::vector<float> floats(const Tensor& t) {
  std::vector<float> out;
  for (int64_t i = 0; i < t.numel(); ++i) out.push_back(static_cast<float>(t.data_as<bf16_t>()[i]));
  return out;
}

constexpr int64_t kTokens = 7, kExperts = 4, kHidden = 128, kInter = 64;
/// Ids and weights in both forms; the weights are bf16 numbers.
struct Routing {
  TensorView ids, weights, packed;
  Routing() {
    std::vector<int32_t> e, both;
    std::vector<float> w;
    for (int64_t i = 0; i < kTokens * 2; ++i) {
      e.push_back(static_cast<int32_t>(i * 5 % kExperts));
      w.push_back(0.25f + 0.125f * static_cast<float>(i % 5));
      both.push_back(e.back() << 16 | bf16_t(w.back()).bits);
    }
    ids = held(Tensor::copy_of(std::span<const int32_t>(e), {kTokens, 2}));
    weights = held(Tensor::copy_of(std::span<const float>(w), {kTokens, 2}));
    packed = held(Tensor::copy_of(std::span<const int32_t>(both), {kTokens, 2}));
  }
};
template <class B>
B sized(B a) {
  a.num_experts = a.local_num_experts = kExperts;
  a.top_k = 2;
  a.intermediate_size = kInter;
  return a;
}

TEST(TrtllmMoe, PreparedBf16WeightsGiveTheBitsOfPlainOnes) {
  const Routing r;
  const TensorView x = pattern<bf16_t>({kTokens, kHidden}, 1, 1),
                   w1 = pattern<bf16_t>({kExperts, 2 * kInter, kHidden}, 0.2, 2),
                   w2 = pattern<bf16_t>({kExperts, kHidden, kInter}, 0.2, 3);
  const Tensor want = cutlass_fused_moe({.input = x,
                                         .token_selected_experts = r.ids,
                                         .token_final_scales = r.weights,
                                         .fc1_expert_weights = w1,
                                         .fc2_expert_weights = w2});
  const TensorView p1 = prepared(w1, true), p2 = prepared(w2, false);
  for (const op::PagedKv& ids : {op::PagedKv(r.packed), op::PagedKv(r.ids, r.weights)}) {
    const Tensor y = trtllm_bf16_routed_moe(sized(TrtllmBf16RoutedMoe{
        .topk_ids = ids, .hidden_states = x, .gemm1_weights = blocked(p1), .gemm2_weights = blocked(p2)}));
    EXPECT_EQ(floats(y), floats(want));
  }
  const Tensor major_k = trtllm_bf16_routed_moe(sized(TrtllmBf16RoutedMoe{
      .topk_ids = {r.packed}, .hidden_states = x, .gemm1_weights = p1, .gemm2_weights = p2, .weight_layout = 0}));
  EXPECT_EQ(floats(major_k), floats(want));
}

TEST(TrtllmMoe, RanksOfExpertsAddUpAndRowsApartMakeTheSum) {
  const Routing r;
  const TensorView x = pattern<bf16_t>({kTokens, kHidden}, 1, 1),
                   w1 = pattern<bf16_t>({kExperts, 2 * kInter, kHidden}, 0.2, 2),
                   w2 = pattern<bf16_t>({kExperts, kHidden, kInter}, 0.2, 3);
  TrtllmBf16RoutedMoe a = sized(TrtllmBf16RoutedMoe{.topk_ids = {r.packed},
                                                    .hidden_states = x,
                                                    .gemm1_weights = w1,
                                                    .gemm2_weights = w2,
                                                    .use_shuffled_weight = false,
                                                    .weight_layout = 0});
  const std::vector<float> whole = floats(trtllm_bf16_routed_moe(a));
  a.do_finalize = false;
  const op::Results apart = trtllm_bf16_routed_moe(a);
  ASSERT_EQ(apart.size(), 3);
  const std::vector<float> rows = floats(apart[0]), weights = floats(apart[1]);
  for (int64_t t = 0; t < kTokens; ++t)
    for (int64_t i = 0; i < kHidden; ++i) {
      float sum = 0;
      for (int64_t j = 0; j < 2; ++j) {
        const int64_t at = t * 2 + j;
        sum +=
            weights[static_cast<size_t>(at)] * rows[static_cast<size_t>(apart[2].data_as<int32_t>()[at] * kHidden + i)];
      }
      ASSERT_NEAR(sum, whole[static_cast<size_t>(t * kHidden + i)], 0.05);
    }
  a.do_finalize = true;
  std::vector<float> sum(whole.size(), 0.0f);
  a.local_num_experts = 2;
  for (int64_t rank = 0; rank < 2; ++rank) {
    a.local_expert_offset = 2 * rank;
    a.gemm1_weights = w1.slice(0, 2 * rank, 2 * rank + 2), a.gemm2_weights = w2.slice(0, 2 * rank, 2 * rank + 2);
    const std::vector<float> part = floats(trtllm_bf16_routed_moe(a));
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], whole[i], 0.05) << i;
}

/// MXFP4 weights and their scales through the shuffles; rows stay bf16 on one side and on the other.
TEST(TrtllmMoe, PreparedFp4WeightsGiveTheBitsOfPlainOnes) {
  const Routing r;
  const int64_t inter = 128;
  const TensorView x = pattern<bf16_t>({kTokens, kHidden}, 1, 1), w1 = bytes({kExperts, 2 * inter, kHidden / 2}, 2),
                   w2 = bytes({kExperts, kHidden, inter / 2}, 3), s1 = bytes({kExperts, 2 * inter, kHidden / 32}, 5),
                   s2 = bytes({kExperts, kHidden, inter / 32}, 7);
  const Tensor want = cutlass_fused_moe({.input = x,
                                         .token_selected_experts = r.ids,
                                         .token_final_scales = r.weights,
                                         .fc1_expert_weights = w1,
                                         .fc2_expert_weights = w2,
                                         .quant_scales = std::vector<TensorView>{s1, s2},
                                         .use_w4_group_scaling = true});
  const auto scales = [&](const TensorView& s, bool gated) {
    return each(s, [&](const TensorView& one) {
      const Tensor pairs = gated ? reorder_rows_for_gated_act_gemm({.x = one}) : Tensor::clone(one);
      return shuffle_matrix_sf_a({.input_tensor = pairs, .epilogue_tile_m = 128, .num_elts_per_sf = 32});
    });
  };
  TrtllmFp4BlockScaleRoutedMoe a = sized(TrtllmFp4BlockScaleRoutedMoe{.topk_ids = {r.packed},
                                                                      .hidden_states = x,
                                                                      .gemm1_weights = prepared(w1, true),
                                                                      .gemm1_weights_scale = scales(s1, true),
                                                                      .gemm2_weights = prepared(w2, false),
                                                                      .gemm2_weights_scale = scales(s2, false)});
  a.intermediate_size = inter;
  EXPECT_EQ(floats(trtllm_fp4_block_scale_routed_moe(a)), floats(want));
}

TEST(TrtllmMoe, RoutesAsMoeRoutingDoes) {
  const Routing r;
  const TensorView x = pattern<bf16_t>({kTokens, kHidden}, 1, 1),
                   w1 = pattern<bf16_t>({kExperts, 2 * kInter, kHidden}, 0.2, 2),
                   w2 = pattern<bf16_t>({kExperts, kHidden, kInter}, 0.2, 3),
                   logits = pattern<float>({kTokens, kExperts}, 3, 9);
  const Tensor replay = Tensor::empty({kTokens + 1, 2}, DType::kI16);
  const Tensor y = trtllm_bf16_moe(sized(TrtllmBf16Moe{.routing_logits = logits,
                                                       .hidden_states = x,
                                                       .gemm1_weights = w1,
                                                       .gemm2_weights = w2,
                                                       .routing_method_type = 6,
                                                       .use_shuffled_weight = false,
                                                       .weight_layout = 0,
                                                       .routing_replay_out = replay.view()}));
  const auto [ids, weights] = moe_routing({.routing_logits = logits, .routing_method = 6, .top_k = 2});
  const Tensor want = cutlass_fused_moe({.input = x,
                                         .token_selected_experts = ids,
                                         .token_final_scales = weights,
                                         .fc1_expert_weights = w1,
                                         .fc2_expert_weights = w2});
  EXPECT_EQ(floats(y), floats(want));
  for (int64_t i = 0; i < kTokens * 2; ++i) EXPECT_EQ(replay.data_as<int16_t>()[i], ids.data_as<int32_t>()[i]);
}

TEST(TrtllmMoe, Errors) {
  const Routing r;
  const TensorView x = pattern<bf16_t>({kTokens, kHidden}, 1, 1),
                   w1 = pattern<bf16_t>({kExperts, 2 * kInter, kHidden}, 0.2, 2),
                   w2 = pattern<bf16_t>({kExperts, kHidden, kInter}, 0.2, 3),
                   logits = pattern<float>({kTokens, kExperts}, 3, 9);
  const TrtllmBf16Moe good = sized(TrtllmBf16Moe{
      .routing_logits = logits, .hidden_states = x, .gemm1_weights = w1, .gemm2_weights = w2, .weight_layout = 0});
  const auto refused = [&](const char* part, auto change) {
    TrtllmBf16Moe a = good;
    change(a);
    expect_refused(part, [&] { trtllm_bf16_moe(a); });
  };
  refused("gemm1_weights is bfloat16[4, 128, 128], but must be [4, 2, 128, 64]", [](auto& a) { a.weight_layout = 2; });
  refused("weight_layout is 1, but must be MajorK (0) or BlockMajorK (2)", [](auto& a) { a.weight_layout = 1; });
  refused("local_expert_offset is 2 and local_num_experts 4", [](auto& a) { a.local_expert_offset = 2; });
  refused("top_k is 5, but must be in [1, 4]", [](auto& a) { a.top_k = 5; });
  refused("valid_hidden_size is 129, but must be in [1, 128]", [](auto& a) { a.valid_hidden_size = 129; });
  refused("valid_intermediate_size is 0, but must be in [1, ", [](auto& a) { a.valid_intermediate_size = 0; });
  refused("valid_hidden_size is 64 of 128 and do_finalize False",
          [](auto& a) { a.valid_hidden_size = 64, a.do_finalize = false; });
  refused("activation_type is 12, ClampedRelu2, but this op has no argument for its limit",
          [](auto& a) { a.activation_type = 12; });
  const TensorView four = pattern<float>({kExperts}, 1);
  refused("gemm1_clamp_limit is float32[7, 4], but must be [4]",
          [&](auto& a) { a.activation_type = 7, a.gemm1_clamp_limit = logits; });
  refused("gemm1_clamp_limit is given, but belongs to Swiglu 3",
          [&](auto& a) { a.activation_type = 4, a.gemm1_clamp_limit = four; });
  refused("gemm1_alpha is given, but belongs to Swiglu 3, SwigluBias 5 and Situ 10",
          [&](auto& a) { a.activation_type = 7, a.gemm1_alpha = four; });
  refused("but must be finite and positive for Situ", [&](auto& a) { a.activation_type = 10, a.gemm1_beta = four; });
  refused("gemm1_weights_scale is given, but weights of this format have none",
          [&](auto& a) { a.gemm1_weights_scale = logits; });
  refused("num_fused_shared_experts is 1, but this format has none", [](auto& a) { a.num_fused_shared_experts = 1; });
  const Tensor out = Tensor::empty({kTokens, kHidden}, DType::kBF16);
  refused("output is given, but do_finalize is False", [&](auto& a) { a.output = out.view(), a.do_finalize = false; });
  const int32_t far[] = {4 << 16, 0};
  TrtllmBf16RoutedMoe given = sized(TrtllmBf16RoutedMoe{.topk_ids = {TensorView(far, {1, 2})},
                                                        .hidden_states = x.slice(0, 0, 1),
                                                        .gemm1_weights = w1,
                                                        .gemm2_weights = w2,
                                                        .weight_layout = 0});
  expect_refused("topk_ids[0][0] names expert 4, but must name one of 4", [&] { trtllm_bf16_routed_moe(given); });
}

}  // namespace
}  // namespace flashinfer
