// SPDX-License-Identifier: Apache-2.0
// Ops that fuse two steps, against the steps and against numbers written out; their errors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "flashinfer/ops/gemm/op.h"
#include "flashinfer/ops/moe/moe_gemm.h"
#include "flashinfer/ops/moe/workspace.h"
#include "flashinfer/ops/norm/op.h"
#include "flashinfer/ops/quantization/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

template <class T>
TensorView made(const std::vector<T>& v, std::initializer_list<int64_t> shape) {
  return held(Tensor::copy_of(std::span<const T>(v), shape));
}

/// 3 experts with 1, 0 and 6 rows; scales of expert 2 begin at column (1 + 6) / 4 * 4 = 4.
struct Groups {
  static constexpr int64_t kRows = 7, kDepth = 256, kColumns = 160, kBlocks = 2;
  TensorView a = pattern<e4m3_t>({kRows, kDepth}, 4, 1), b = pattern<e4m3_t>({3, kColumns, kDepth}, 4, 2),
             indptr = made<int32_t>({0, 1, 1, 7}, {4}), rows = pattern<float>({kBlocks, kRows}, 0.1, 3),
             matrices = pattern<float>({3, kBlocks, 2}, 0.1, 4), padded;
  Groups() {
    std::vector<float> p(static_cast<size_t>(kBlocks * 16), 1e30f);  // padding must not count
    for (int64_t k = 0; k < kBlocks; ++k)
      for (int64_t r = 0; r < kRows; ++r)
        p[static_cast<size_t>(k * 16 + (r == 0 ? 0 : r + 3))] = rows.data_as<float>()[k * kRows + r];
    padded = made(p, {kBlocks, 16});
  }
};
TEST(MoeGemm, PaddedScalesGiveTheBitsOfPlainOnes) {
  const Groups g;
  const Tensor want =
      group_gemm_fp8_nt_groupwise({.a = g.a, .b = g.b, .a_scale = g.rows, .b_scale = g.matrices, .m_indptr = g.indptr});
  const Tensor y =
      moe_gemm_fp8_nt_groupwise({.a = g.a, .b = g.b, .a_scale = g.padded, .b_scale = g.matrices, .m_indptr = g.indptr});
  ASSERT_EQ(y.nbytes(), want.nbytes());
  EXPECT_EQ(std::memcmp(y.data(), want.data(), static_cast<size_t>(want.nbytes())), 0);
}
TEST(MoeGemm, TheSecondHalfGatesTheFirst) {
  const Groups g;
  const Tensor plain =
      moe_gemm_fp8_nt_groupwise({.a = g.a, .b = g.b, .a_scale = g.padded, .b_scale = g.matrices, .m_indptr = g.indptr});
  const Tensor y = moe_gemm_fp8_nt_groupwise(
      {.a = g.a, .b = g.b, .a_scale = g.padded, .b_scale = g.matrices, .m_indptr = g.indptr, .is_gated = true});
  for (int64_t r = 0; r < Groups::kRows; ++r)
    for (int64_t i = 0; i < 80; ++i) {
      const auto h = [&](int64_t c) {
        return static_cast<double>(static_cast<float>(plain.data_as<bf16_t>()[r * 160 + c]));
      };
      const double want = h(80 + i) / (1 + std::exp(-h(80 + i))) * h(i);
      ASSERT_NEAR(static_cast<float>(y.data_as<bf16_t>()[r * 80 + i]), want, 0.02 * std::fabs(want) + 1e-3)
          << r << " " << i;
    }
}
TEST(MoeGemm, PackedPowersOfTwoAreReadByByte) {
  // One row, k = 256: the first 128 are scaled by 2^0 * 2^1, the second by 2^-1 * 2^2.
  std::vector<e4m3_t> ones(256, e4m3_t(1.0f));
  const TensorView a = made(ones, {1, 256}), b = made(ones, {1, 1, 256});
  const TensorView a_scale = made<int32_t>({127 | 126 << 8, 0, 0, 0}, {4, 1}),
                   b_scale = made<int32_t>({128 | 129 << 8}, {1, 1, 1});
  const Tensor y = moe_gemm_mxfp8_nt_groupwise(
      {.a = a, .b = b, .a_scale = a_scale, .b_scale = b_scale, .m_indptr = made<int32_t>({0, 1}, {2})});
  EXPECT_EQ(static_cast<float>(y.data_as<bf16_t>()[0]), 128 * 2 + 128 * 2);
}
TEST(MoeGemm, Errors) {
  const Groups g;
  MoeGemmFp8NtGroupwise a{.a = g.a, .b = g.b, .a_scale = g.rows, .b_scale = g.matrices, .m_indptr = g.indptr};
  expect_refused("a_scale is float32[2, 7], but must be [2, 16]", [&] { moe_gemm_fp8_nt_groupwise(a); });
  a.a_scale = g.padded, a.m_indptr = made<int32_t>({0, 1, 1, 6}, {4});
  expect_refused("m_indptr goes from 0 to 6, but must go from 0 to 7", [&] { moe_gemm_fp8_nt_groupwise(a); });
  a.m_indptr = g.indptr, a.scale_granularity_mnk = {1, 1, 128};
  expect_refused("but must be (1, 128, 128)", [&] { moe_gemm_fp8_nt_groupwise(a); });
}

TEST(GatedNorm, NumbersWrittenOut) {
  const TensorView x = made<float>({3, 4}, {1, 2});
  rmsnorm_sigmoid_gate({.input = x, .gate = made<float>({0, std::log(3.0f)}, {1, 2}), .eps = 0});
  EXPECT_NEAR(x.data_as<float>()[0], 3 / std::sqrt(12.5) * 0.5, 1e-6);
  EXPECT_NEAR(x.data_as<float>()[1], 4 / std::sqrt(12.5) * 0.75, 1e-6);
  // The gain comes before the statistics: branch * (weight + 1) = (3, 4).
  const TensorView branch = made<float>({1, 2}, {1, 2}), residual = made<float>({10, 20}, {1, 2}),
                   one = made<float>({1, 0.5}, {2});
  const GatedResidualRmsNorm a{.branch = branch,
                               .residual = residual,
                               .weight = made<float>({2, 1}, {2}),
                               .alpha = one,
                               .beta = made<float>({2, 2}, {2}),
                               .eps = 0,
                               .gain_center = 1};
  const Tensor y = gated_residual_rmsnorm(a);
  EXPECT_NEAR(y.data_as<float>()[0], 10 + 2 * 3 / std::sqrt(12.5), 1e-5);
  EXPECT_NEAR(y.data_as<float>()[1], 10 + 2 * 4 / std::sqrt(12.5), 1e-5);
  const auto [stream, ffn] = gated_residual_next_rmsnorm({.branch = branch,
                                                          .residual = residual,
                                                          .next_weight = one,
                                                          .alpha = one,
                                                          .beta = a.beta,
                                                          .post_eps = 0,
                                                          .next_eps = 0,
                                                          .post_weight = a.weight,
                                                          .post_gain_center = 1});
  const double p = y.data_as<float>()[0], q = y.data_as<float>()[1], rms = std::sqrt((p * p + q * q) / 2);
  EXPECT_EQ(stream.data_as<float>()[0], y.data_as<float>()[0]);
  EXPECT_NEAR(ffn.data_as<float>()[1], q / rms * 0.5, 1e-6);
}
TEST(GatedNorm, Errors) {
  const TensorView x = made<float>({3, 4}, {1, 2}), gate = made<float>({1, 1}, {1, 2});
  expect_refused("eps is -1, but must be at least 0",
                 [&] { rmsnorm_sigmoid_gate({.input = x, .gate = gate, .eps = -1}); });
  expect_refused("shares memory with gate", [&] { rmsnorm_sigmoid_gate({.input = x, .gate = x}); });
  expect_refused("input is float32[2], but must be [rows, d]",
                 [&] { rmsnorm_sigmoid_gate({.input = x.select(0, 0), .gate = gate.select(0, 0)}); });
  expect_refused("alpha is float32[1], but must be a number or float32[2]", [&] {
    gated_residual_next_rmsnorm({.branch = x,
                                 .residual = x,
                                 .next_weight = x.select(0, 0),
                                 .alpha = made<float>({1}, {1}),
                                 .beta = x.select(0, 0)});
  });
}

TEST(SwigluMxfp8, ColumnsAreTheRowsOfTheTransposed) {
  constexpr int64_t m = 128, k = 256;
  std::vector<bf16_t> x(static_cast<size_t>(m * 2 * k)), turned(x.size());
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < k; ++c)
      for (int64_t half = 0; half < 2; ++half) {
        const bf16_t v(static_cast<float>(3 * noise(r * 2 * k + half * k + c, 5)));
        x[static_cast<size_t>(r * 2 * k + half * k + c)] = v;
        turned[static_cast<size_t>(c * 2 * m + half * m + r)] = v;
      }
  const op::Results columns =
      silu_and_mul_mxfp8_quantize({.gated_input = made(x, {m, 2 * k}), .rowwise = false, .colwise = true});
  const op::Results rows = silu_and_mul_mxfp8_quantize({.gated_input = made(turned, {k, 2 * m})});
  ASSERT_EQ(columns[0].numel(), 0);
  ASSERT_EQ(columns[1].view().stride(1), m);
  EXPECT_EQ(std::memcmp(columns[1].data(), rows[0].data(), static_cast<size_t>(m * k)), 0);
  EXPECT_EQ(std::memcmp(columns[3].data(), rows[2].data(), static_cast<size_t>(m * k / 32)), 0);
}
TEST(SwigluMxfp8, Errors) {
  const TensorView x = pattern<bf16_t>({64, 256}, 1, 1), y = pattern<bf16_t>({128, 256}, 1, 1);
  expect_refused("gated_input is bfloat16[64, 256], but must be [m, 2k] with m and k multiples of 128",
                 [&] { silu_and_mul_mxfp8_quantize({.gated_input = x}); });
  expect_refused("grad_output is bfloat16[128, 256], but must be [128, 128]",
                 [&] { silu_and_mul_mxfp8_quantize_backward({.gated_input = y, .grad_output = y}); });
}
TEST(SmoothedNvfp4, ScalesOfOneChangeNothing) {
  const TensorView x = pattern<bf16_t>({9, 64}, 2, 7), gs = made<float>({900}, {1});
  const std::vector<bf16_t> ones(64, bf16_t(1.0f));
  const auto [codes, sf] = nvfp4_quantize_smooth({.x = x, .pre_quant_scale = made(ones, {64}), .global_scale = gs});
  const op::Results want = nvfp4_quantize({.a = x, .a_global_sf = gs});
  EXPECT_EQ(std::memcmp(codes.data(), want[0].data(), static_cast<size_t>(codes.nbytes())), 0);
  ASSERT_EQ(sf.nbytes(), want[1].nbytes());
  EXPECT_EQ(std::memcmp(sf.data(), want[1].data(), static_cast<size_t>(sf.nbytes())), 0);
}

// Programs compare with the plain quantiser of x * scale, which is a tensor of x's type.
TEST(SmoothedNvfp4, ProductsAreRoundedBeforeTheyAreQuantised) {
  const TensorView x = pattern<bf16_t>({9, 64}, 2, 7), scale = pattern<bf16_t>({64}, 1.5, 3),
                   gs = made<float>({900}, {1});
  std::vector<bf16_t> products;
  for (int64_t i = 0; i < 9 * 64; ++i)
    products.emplace_back(float(x.data_as<bf16_t>()[i]) * float(scale.data_as<bf16_t>()[i % 64]));
  const auto [codes, sf] = nvfp4_quantize_smooth({.x = x, .pre_quant_scale = scale, .global_scale = gs});
  const op::Results want = nvfp4_quantize({.a = made(products, {9, 64}), .a_global_sf = gs});
  EXPECT_EQ(std::memcmp(codes.data(), want[0].data(), static_cast<size_t>(codes.nbytes())), 0);
  EXPECT_EQ(std::memcmp(sf.data(), want[1].data(), static_cast<size_t>(sf.nbytes())), 0);
}

TEST(BatchedGemm, NumbersAndErrors) {
  const TensorView a = made<bf16_t>({bf16_t(1.0f), bf16_t(2.0f)}, {1, 2}),
                   b = made<bf16_t>({bf16_t(3.0f), bf16_t(4.0f)}, {1, 2}), c = made<float>({5}, {1, 1});
  gemm_alpha_beta({.a = a, .b = b, .c = c, .alpha = 2, .beta = 3});
  EXPECT_EQ(c.data_as<float>()[0], 2 * 11 + 3 * 5);
  const TensorView nan = made<float>({NAN}, {1, 1});
  gemm_alpha_beta({.a = a, .b = b, .c = nan});
  EXPECT_EQ(nan.data_as<float>()[0], 11);
  expect_refused("c is float32[1, 1], but must be [2, 2]",
                 [&] { gemm_alpha_beta({.a = a, .b = b, .c = c, .trans_a = true, .trans_b = false}); });
  const TensorView batch = pattern<bf16_t>({2, 3, 4}, 1, 1), weights = pattern<bf16_t>({2, 4, 5}, 1, 2);
  expect_refused("masked_m[1] is 4, but must be in [0, 3]",
                 [&] { masked_bmm({.a = batch, .b = weights, .masked_m = made<int32_t>({0, 4}, {2})}); });
  expect_refused("m_indptr makes segment 0 3 rows long, but max_m is 2", [&] {
    ragged_bmm({.a = batch.select(0, 0),
                .b = weights,
                .m_indptr = made<int32_t>({0, 3, 3}, {3}),
                .max_m = 2,
                .transpose_b = false});
  });
}
TEST(MoeWorkspace, GrowsWithTokensAndRejects) {
  CutlassFusedMoeWorkspaceSize a{
      .max_num_tokens = 8, .hidden_size = 64, .intermediate_size = 32, .num_experts_total = 8, .top_k = 2};
  const int64_t few = cutlass_fused_moe_workspace_size(a);
  EXPECT_GE(few, 8 * 2 * (64 + 64) * 4);  // both products in f32
  a.max_num_tokens = 16;
  EXPECT_GT(cutlass_fused_moe_workspace_size(a), few);
  a.ep_size = 3;
  expect_refused("num_experts_total is 8, but must be a multiple of ep_size, 3",
                 [&] { cutlass_fused_moe_workspace_size(a); });
}

}  // namespace
}  // namespace flashinfer
