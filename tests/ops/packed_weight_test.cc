// SPDX-License-Identifier: Apache-2.0
// Weights from prepare_quantized_weights: the same bits as with the unpacked weight, whatever the number of rows is;
// what is an error.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "flashinfer/ops/gemm/op.h"
#include "flashinfer/ops/moe/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

constexpr int64_t kN = 117, kK = 1440;  // seven panels and a part; steps of 128, 64 and 32 and a rest

/// Every code; NaN in one column only.
Tensor e4m3_weight() {
  const Tensor b = random_bytes({kN, kK}, 2, 0, 256, DType::kF8E4M3);
  for (int64_t i = 0; i < b.numel(); ++i)
    if (auto& x = static_cast<uint8_t*>(b.data())[i]; (x & 127) == 127 && i / kK != 5) x = 1;
  return b;
}
/// product(rows, packed): both forms of the weight, 1 to 21 rows.
void expect_the_same(const std::function<Tensor(int64_t, bool)>& product) {
  for (const int64_t m : {1, 2, 8, 21}) {
    const Tensor want = product(m, false), got = product(m, true);
    EXPECT_TRUE(same_bytes(got, want)) << m << " rows";
    bool some = false;
    for (int64_t i = 0; i < want.nbytes(); ++i) some |= static_cast<const uint8_t*>(want.data())[i] != 0;
    EXPECT_TRUE(some);
  }
}

TEST(PackedWeights, Fp8) {
  const Tensor a = random_bytes({21, kK}, 1, 0, 0x60, DType::kF8E4M3), b = e4m3_weight(),
               packed = prepare_quantized_weights({.b = b}).first;
  expect_the_same([&](int64_t m, bool p) { return mm_fp8({.a = a.view().slice(0, 0, m), .b = p ? packed : b}); });
}
TEST(PackedWeights, Fp8BlockScales) {
  const Tensor a = random_bytes({21, kK}, 1, 0, 0x60, DType::kF8E4M3), b = e4m3_weight(),
               packed = prepare_quantized_weights({.b = b}).first;
  const Tensor of_a = random_scales({21, 12}, 3), of_blocks = random_scales({1, 12}, 4),
               of_columns = random_scales({kN, 12}, 5);
  for (const bool fine : {false, true})
    expect_the_same([&](int64_t m, bool p) {
      return gemm_fp8_nt_groupwise({.a = a.view().slice(0, 0, m),
                                    .b = p ? packed : b,
                                    .a_scale = of_a.view().slice(0, 0, m),
                                    .b_scale = fine ? of_columns : of_blocks,
                                    .scale_major_mode = "K",
                                    .scale_granularity_mnk = {1, fine ? 1 : 128, 128}});
    });
}
/// Scales that the kernel multiplies into units of its sums; some, or all, out of their range.
TEST(PackedWeights, Mxfp8) {
  const Tensor a = random_bytes({21, kK}, 1, 0, 0x60, DType::kF8E4M3), b = e4m3_weight(),
               of_a = random_bytes({128 * 48}, 3, 120, 130);
  for (const int kind : {0, 1, 2}) {
    SCOPED_TRACE(kind);
    const Tensor of_b = random_bytes({128 * 48}, 4, kind == 2 ? 0 : 105, kind == 2 ? 256 : 149);
    if (kind == 1)
      of_b.data_as<uint8_t>()[2000] = 60, of_b.data_as<uint8_t>()[3001] = 0, of_b.data_as<uint8_t>()[1111] = 255;
    const auto [packed, scales] = prepare_quantized_weights({.b = b, .b_descale = of_b});
    const Tensor &w = packed, &s = scales;
    expect_the_same([&](int64_t m, bool p) {
      return p ? mm_mxfp8({.a = a.view().slice(0, 0, m), .b = w, .a_descale = of_a, .b_descale = s})
               : mm_mxfp8({.a = a.view().slice(0, 0, m),
                           .b = b.view().transpose(0, 1),
                           .a_descale = of_a,
                           .b_descale = of_b});
    });
  }
}
TEST(PackedWeights, Fp4) {
  for (const bool nvfp4 : {true, false}) {
    SCOPED_TRACE(nvfp4);
    const int64_t k = nvfp4 ? 1456 : kK, columns = nvfp4 ? 92 : 48;  // NVFP4: half a block of 32 is left
    const Tensor a = random_bytes({21, k / 2}, 1, 0, 256), b = random_bytes({kN, k / 2}, 2, 0, 256);
    const DType type = nvfp4 ? DType::kF8E4M3 : DType::kU8;
    const Tensor of_a = random_bytes({128, columns}, 4, nvfp4 ? 0x30 : 120, nvfp4 ? 0x40 : 130, type);
    const Tensor of_b = random_bytes({128, columns}, 3, 0, nvfp4 ? 127 : 140, type);
    const auto [packed, scales] = prepare_quantized_weights({.b = b, .b_descale = of_b, .block_size = nvfp4 ? 16 : 32});
    const Tensor &w = packed, &s = scales;
    expect_the_same([&](int64_t m, bool p) {
      return mm_fp4({.a = a.view().slice(0, 0, m),
                     .b = p ? w : b.view().transpose(0, 1),
                     .a_descale = of_a,
                     .b_descale = p ? s : of_b,
                     .block_size = nvfp4 ? 16 : 32,
                     .use_nvfp4 = nvfp4});
    });
  }
}
/// Two experts for each token, stacks of packed weights.
struct Mixture {
  bool nvfp4;
  int64_t hidden = 416, inter = 144;
  Tensor fc1 = random_bytes({3, 2 * inter, hidden / 2}, 1, 0, 256),
         fc2 = random_bytes({3, hidden, inter / 2}, 2, 0, 256);
  Tensor weights = random_scales({21, 2}, 5);
  Tensor ids = Tensor::empty({21, 2}, DType::kI32), x = Tensor::empty({21, hidden}, DType::kBF16),
         one = random_scales({1}, 6);
  Tensor s1 =
      nvfp4 ? random_bytes({3, 384, 28}, 3, 0x20, 0x30) : random_bytes({3, 2 * inter, hidden / 32}, 3, 105, 140);
  Tensor s2 = nvfp4 ? random_bytes({3, 512, 12}, 4, 0x20, 0x30) : random_bytes({3, hidden, inter / 32}, 4, 105, 140);
  std::pair<Tensor, Tensor> p1, p2;

  explicit Mixture(bool nv) : nvfp4(nv), inter(nv ? 144 : 160) {
    for (int64_t i = 0; i < 42; ++i) ids.data_as<int32_t>()[i] = static_cast<int32_t>((i / 2 + i % 2) % 3);
    std::mt19937 rng(7);
    std::normal_distribution<float> normal;
    for (bf16_t& v : x.span<bf16_t>()) v = bf16_t(normal(rng));
    const auto prepare = [&](const Tensor& w, const Tensor& s) {
      return prepare_quantized_weights(
          {.b = w, .b_descale = s, .block_size = nvfp4 ? 16 : 32, .is_sf_swizzled_layout = nvfp4});
    };
    p1 = prepare(fc1, s1), p2 = prepare(fc2, s2);
  }
  Tensor run(int64_t tokens, bool packed) const {
    CutlassFusedMoe layer{.input = x.view().slice(0, 0, tokens),
                          .token_selected_experts = ids.view().slice(0, 0, tokens),
                          .token_final_scales = weights.view().slice(0, 0, tokens),
                          .fc1_expert_weights = packed ? p1.first : fc1,
                          .fc2_expert_weights = packed ? p2.first : fc2,
                          .output_dtype = DType::kF32};
    const Tensor &a = packed ? p1.second : s1, &b = packed ? p2.second : s2;
    if (nvfp4)
      layer.quant_scales = std::vector<TensorView>{one, a, one, one, b, one};
    else
      layer.quant_scales = std::vector<TensorView>{a, b}, layer.use_w4_group_scaling = true;
    return cutlass_fused_moe(layer);
  }
};
TEST(PackedWeights, Experts) {
  for (const bool nvfp4 : {true, false}) {
    SCOPED_TRACE(nvfp4);
    const Mixture mixture(nvfp4);
    expect_the_same([&](int64_t tokens, bool packed) { return mixture.run(tokens, packed); });
  }
}

/// A few panels of a packed weight are one of fewer columns.
TEST(PackedWeights, PanelsAloneAreAWeight) {
  const Tensor a = random_bytes({3, kK}, 1, 0, 0x60, DType::kF8E4M3),
               b = random_bytes({kN, kK}, 2, 0, 0x70, DType::kF8E4M3);
  const Tensor packed = prepare_quantized_weights({.b = b}).first, all = mm_fp8({.a = a, .b = b});
  const Tensor some = mm_fp8({.a = a, .b = packed.view().slice(0, 6, 8)});
  ASSERT_EQ(some.size(1), kN - 96);
  EXPECT_TRUE(same_bytes(some, Tensor::clone(all.view().slice(1, 96, kN))));
}

TEST(PackedWeights, RejectsWhatDoesNotFit) {
  const Tensor a = random_bytes({2, 160}, 1, 0, 0x60, DType::kF8E4M3),
               b = random_bytes({40, 160}, 2, 0, 0x70, DType::kF8E4M3), sf = random_bytes({128 * 8}, 3, 120, 130);
  const auto [packed, scales] = prepare_quantized_weights({.b = b, .b_descale = sf});
  const Tensor &w = packed, &s = scales;
  const Tensor k128 = random_bytes({2, 128}, 1, 0, 0x60, DType::kF8E4M3),
               k150 = random_bytes({2, 150}, 1, 0, 0x60, DType::kF8E4M3);
  const Tensor zeros = Tensor::zeros({3, 41, 64}, DType::kF8E4M3);
  expect_refused("ValueError: mm_fp8: b is packed for k = 160, but k is 128", [&] { mm_fp8({.a = k128, .b = w}); });
  expect_refused("mm_fp8: b is packed for k = 160, but k is 150", [&] { mm_fp8({.a = k150, .b = w}); });
  expect_refused("mm_fp8: b.shape[1] is 40, but a panel of float8_e4m3fn with k = 160 has 41 lines",
                 [&] { mm_fp8({.a = a, .b = w.view().slice(1, 0, 40)}); });
  expect_refused("does not start with the header that prepare_quantized_weights writes",
                 [&] { mm_fp8({.a = a, .b = zeros}); });
  const Tensor wide = Tensor::zeros({3, 41, 128}, DType::kF8E4M3);
  expect_refused("the panels of a packed weight must be contiguous",
                 [&] { mm_fp8({.a = a, .b = wide.view().slice(2, 0, 64)}); });
  expect_refused("b_descale is uint8[1024], but beside a packed weight of 40 columns and k = 160 must be [3, 8, 16]",
                 [&] { mm_mxfp8({.a = a, .b = w, .a_descale = sf, .b_descale = sf}); });
  expect_refused("b_descale is",
                 [&] { mm_mxfp8({.a = a, .b = b.view().transpose(0, 1), .a_descale = sf, .b_descale = s}); });
  expect_refused("mm_mxfp8: b is float8_e4m3fn[40, 160], but must be [160, n] (from a.shape[1] = 160)",
                 [&] { mm_mxfp8({.a = a, .b = b, .a_descale = sf, .b_descale = sf}); });
  const Tensor codes = random_bytes({40, 80}, 2, 0, 256), row = random_bytes({2, 80}, 2, 0, 256),
               sf16 = random_bytes({128, 12}, 3, 0x30, 0x40);
  const Tensor sf32 = random_bytes({128, 8}, 1, 120, 130), k42 = random_bytes({3, 21}, 1, 0, 9);
  const auto [w4, s4] = prepare_quantized_weights({.b = codes, .b_descale = sf16});
  const Tensor &p4 = w4, &f4 = s4;
  expect_refused(
      "mm_fp4: b_descale is uint8[3, 12, 16], but beside a packed weight of 40 columns and k = 160 must be [3, 8, "
      "16]",
      [&] { mm_fp4({.a = row, .b = p4, .a_descale = sf32, .b_descale = f4, .block_size = 32, .use_nvfp4 = false}); });
  expect_refused("with strides (1, 160), but k must be contiguous: the [n, k] weight, not its transposed view",
                 [&] { prepare_quantized_weights({.b = b.view().transpose(0, 1)}); });
  expect_refused("block_size is 16, but must be 32 (MXFP8)",
                 [&] { prepare_quantized_weights({.b = b, .b_descale = sf, .block_size = 16}); });
  expect_refused("block_size is 16, but there is no b_descale",
                 [&] { prepare_quantized_weights({.b = codes, .block_size = 16}); });
  expect_refused(
      "b_descale is uint8[128, 12], 1536 scale factors, but 40 x 5 of them need b_descale to contain 1024 elements in "
      "the 128x4 layout",
      [&] { prepare_quantized_weights({.b = codes, .b_descale = sf16, .block_size = 32}); });
  expect_refused("k is 42 (from b.shape[1]), but must be a multiple of 16",
                 [&] { prepare_quantized_weights({.b = k42, .b_descale = sf16}); });
  const Mixture mixture(true);
  CutlassFusedMoe layer{.input = mixture.x,
                        .token_selected_experts = mixture.ids,
                        .token_final_scales = mixture.weights,
                        .fc1_expert_weights = mixture.p1.first,
                        .fc2_expert_weights = mixture.fc2};
  layer.quant_scales =
      std::vector<TensorView>{mixture.one, mixture.p1.second, mixture.one, mixture.one, mixture.s2, mixture.one};
  expect_refused("both or none must be packed", [&] { cutlass_fused_moe(layer); });
  layer.fc2_expert_weights = mixture.p2.first;
  expect_refused(
      "quant_scales, gemm2 weights block scales, is uint8[3, 512, 12], but beside a packed weight of 416 columns and "
      "k = 144 must be [3, 26, 12, 16]",
      [&] { cutlass_fused_moe(layer); });
  layer.fc2_expert_weights = mixture.p1.first;
  expect_refused("fc2_expert_weights is packed for k = 416, but k is 144", [&] { cutlass_fused_moe(layer); });
  expect_refused("b is uint8[80], but must be [n, k]",
                 [&] { prepare_quantized_weights({.b = codes.view().select(0, 0)}); });
}

/// One header for all kinds of packed weights: a weight that another op packed is recognised, whatever its dtype says.
TEST(PackedWeights, AnotherFormatIsNamed) {
  const Tensor of_bf16 = random_tensor<bf16_t>({160, 40}, 1),
               of_e4m3 = random_bytes({40, 160}, 2, 0, 0x70, DType::kF8E4M3),
               of_fp4 = random_bytes({40, 80}, 3, 0, 256), of_q8 = random_bytes({40, 5 * 34}, 4, 0, 60);
  const Tensor bf16 = prepare_mm_weights({.b = of_bf16}), e4m3 = prepare_quantized_weights({.b = of_e4m3}).first,
               fp4 = prepare_quantized_weights({.b = of_fp4}).first,
               q8 = prepare_gguf_weights({.b_blocks = of_q8, .format = "Q8_0"});
  const auto as = [](const Tensor& t, DType dtype, int64_t width) {
    return TensorView(t.data(), dtype, {t.size(0), t.size(1), width}, t.device());
  };
  const Tensor rows = random_tensor<bf16_t>({2, 160}, 5), narrow = random_bytes({2, 160}, 6, 0, 0x60, DType::kF8E4M3),
               codes = random_bytes({2, 80}, 7, 0, 256), sf = random_bytes({128, 12}, 8, 0x30, 0x40);
  const auto refused_by_mm_fp4 = [&](const char* message, const TensorView& b) {
    expect_refused(message, [&] { mm_fp4({.a = codes, .b = b, .a_descale = sf, .b_descale = sf}); });
  };
  expect_refused(
      "ValueError: mm_bf16: b is a packed weight of float8_e4m3fn, but must be one of bfloat16 (from "
      "prepare_mm_weights)",
      [&] { mm_bf16({.a = rows, .b = as(e4m3, DType::kBF16, 32)}); });
  expect_refused("mm_bf16: b is a packed weight of Q8_0, but must be one of bfloat16",
                 [&] { mm_bf16({.a = rows, .b = as(q8, DType::kBF16, 32)}); });
  expect_refused(
      "mm_fp8: b is a packed weight of bfloat16, but must be one of float8_e4m3fn (from "
      "prepare_quantized_weights)",
      [&] { mm_fp8({.a = narrow, .b = as(bf16, DType::kF8E4M3, 64)}); });
  expect_refused("mm_fp8: b is a packed weight of FP4, but must be one of float8_e4m3fn",
                 [&] { mm_fp8({.a = narrow, .b = as(fp4, DType::kF8E4M3, 64)}); });
  refused_by_mm_fp4("mm_fp4: b is a packed weight of Q8_0, but must be one of FP4", q8);
  refused_by_mm_fp4("mm_fp4: b is a packed weight of float8_e4m3fn, but must be one of FP4", as(e4m3, DType::kU8, 64));
  expect_refused("mm_gguf: b_blocks is a packed weight of FP4, but must be one of Q8_0 (from prepare_gguf_weights)",
                 [&] { mm_gguf({.a = rows, .b_blocks = fp4, .format = "Q8_0"}); });
  expect_refused("mm_gguf: b_blocks is a packed weight of Q8_0, but must be one of Q4_1",
                 [&] { mm_gguf({.a = rows, .b_blocks = q8, .format = "Q4_1"}); });
}

}  // namespace
}  // namespace flashinfer
