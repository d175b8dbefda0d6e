// SPDX-License-Identifier: Apache-2.0
// Masked and ragged products with scales of blocks: the bits of the products that they consist of, and what is an
// error.
#include <gtest/gtest.h>

#include "flashinfer/ops/gemm/op.h"
#include "flashinfer/ops/quantization/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

/// `low` .. `low` + 5 as bytes: scales of about one.
TensorView scales(std::initializer_list<int64_t> shape, int low, uint32_t salt) {
  Tensor t = Tensor::empty(shape, DType::kU8);
  int64_t i = 0;
  for (uint8_t& x : t.span<uint8_t>()) x = static_cast<uint8_t>(low + static_cast<int>(3 + 3 * noise(i++, salt)) % 6);
  return held(std::move(t));
}

TEST(ScaledBatches, EqualProductsOfTheirOwn) {
  const TensorView a = pattern<e4m3_t>({2, 130, 96}, 2), b = pattern<e4m3_t>({2, 20, 96}, 2, 7);
  const TensorView sa = scales({2, 256, 4}, 122, 1), sb = scales({2, 128, 4}, 122, 2);
  const Tensor counts = ints({130, 3});
  const Tensor out = masked_scaled_bmm(
      {.a = a, .b = b, .a_scale = sa, .b_scale = sb, .masked_m = counts, .block_scale_type = "mxfp8"});
  for (int64_t q = 0; q < 2; ++q) {
    const int64_t rows = q ? 3 : 130;
    const Tensor one = mm_mxfp8({.a = a.select(0, q),
                                 .b = b.select(0, q).transpose(0, 1),
                                 .a_descale = sa.select(0, q).view({1024}),
                                 .b_descale = sb.select(0, q).view({512})});
    EXPECT_TRUE(same_bytes(out.view().select(0, q).slice(0, 0, rows), one.view().slice(0, 0, rows))) << q;
    for (int64_t r = rows; r < 130; ++r) EXPECT_EQ(out.data_as<uint16_t>()[(q * 130 + r) * 20], 0);
  }
}

TEST(ScaledBatches, SegmentsEqualProductsOfTheirOwn) {
  const TensorView a = pattern<e4m3_t>({256, 128}, 2), b = pattern<e4m3_t>({2, 20, 128}, 2, 7),
                   sa = scales({256, 4}, 122, 1), sb = scales({2, 128, 4}, 122, 2);
  const Tensor indptr = ints({0, 128, 256});
  const std::vector<float> whole = {0.5f}, each = {2.0f, 8.0f};  // powers of two: no rounding
  const Tensor out = ragged_scaled_bmm({.a = a,
                                        .b = b,
                                        .a_scale = sa,
                                        .b_scale = sb,
                                        .m_indptr = indptr,
                                        .max_m = 128,
                                        .block_scale_type = "mxfp8",
                                        .a_global_scale = TensorView(std::span<const float>(whole.data(), 1)),
                                        .b_global_scale = TensorView(std::span<const float>(each.data(), 2))});
  const TensorView ga = pattern<float>({256, 1}, 1, 3), gb = pattern<float>({2, 1, 1}, 1, 5);
  const Tensor blocks =
      ragged_block_scaled_bmm({.a = a, .b = b, .a_scale = ga, .b_scale = gb, .m_indptr = indptr, .max_m = 128});
  for (int64_t q = 0; q < 2; ++q) {
    const TensorView rows = a.slice(0, q * 128, q * 128 + 128);
    const Tensor one = mm_mxfp8({.a = rows,
                                 .b = b.select(0, q).transpose(0, 1),
                                 .a_descale = sa.slice(0, q * 128, q * 128 + 128).view({512}),
                                 .b_descale = sb.select(0, q).view({512})});
    for (int64_t i = 0; i < 128 * 20; ++i)
      ASSERT_EQ(bf16_t(out.data_as<float>()[q * 128 * 20 + i] / (0.5f * each[static_cast<size_t>(q)])).bits,
                one.data_as<bf16_t>()[i].bits)
          << q << " " << i;
    EXPECT_TRUE(same_bytes(blocks.view().slice(0, q * 128, q * 128 + 128),
                           gemm_fp8_nt_groupwise({.a = rows,
                                                  .b = b.select(0, q),
                                                  .a_scale = ga.slice(0, q * 128, q * 128 + 128),
                                                  .b_scale = gb.select(0, q),
                                                  .scale_major_mode = "K"})));
  }
}

TEST(ScaledBatches, TakeWhatTheGroupedQuantiserMakes) {
  const Tensor x = random_tensor<bf16_t>({2, 10, 64}, 1), w = random_tensor<bf16_t>({2, 20, 64}, 2),
               counts = ints({10, 4}), all = ints({20, 20});
  const std::vector<float> encode = {64, 32}, decode = {1.0f / (64 * 64), 1.0f / (32 * 32)};
  const TensorView gs(std::span<const float>(encode.data(), 2)), alpha(std::span<const float>(decode.data(), 2));
  const auto [xq, xs] = scaled_fp4_grouped_quantize({.a = x, .mask = counts, .a_global_sf = gs});
  const auto [wq, ws] = scaled_fp4_grouped_quantize({.a = w, .mask = all, .a_global_sf = gs});
  const Tensor memory = Tensor::zeros({2, 10, 20}, DType::kF32);
  const TensorView out = memory.view().transpose(0, 1).transpose(1, 2);
  grouped_gemm_nt_masked({.lhs = {xq.view(), xs.view()},
                          .rhs = {wq.view(), ws.view()},
                          .out = out,
                          .masked_m = counts,
                          .ab_dtype = "float4_e2m1fn",
                          .sf_dtype = "float8_e4m3fn",
                          .c_dtype = "float32",
                          .sf_vec_size = 16,
                          .alpha = alpha});
  double error = 0, size = 0;
  for (int64_t q = 0; q < 2; ++q)
    for (int64_t r = 0; r < (q ? 4 : 10); ++r)
      for (int64_t j = 0; j < 20; ++j) {
        double want = 0;
        for (int64_t k = 0; k < 64; ++k)
          want += static_cast<double>(static_cast<float>(x.data_as<bf16_t>()[(q * 10 + r) * 64 + k])) *
                  static_cast<double>(static_cast<float>(w.data_as<bf16_t>()[(q * 20 + j) * 64 + k]));
        const double got = static_cast<double>(memory.data_as<float>()[(q * 10 + r) * 20 + j]);
        error += (got - want) * (got - want), size += want * want;
      }
  EXPECT_LT(error, 0.04 * size);  // two operands of 4 bits
  EXPECT_GT(size, 0);
}

TEST(ScaledBatches, Errors) {
  const TensorView a = pattern<e4m3_t>({2, 9, 64}, 1), b = pattern<e4m3_t>({2, 20, 64}, 1),
                   s = scales({2, 128, 4}, 122, 1);
  const Tensor counts = ints({9, 10}), fine = ints({9, 1});
  MaskedScaledBmm m{.a = a, .b = b, .a_scale = s, .b_scale = s, .masked_m = counts, .block_scale_type = "mxfp8"};
  expect_error(ErrorKind::kValueError, "masked_scaled_bmm: masked_m[1] is 10, but must be in [0, 9]",
               [&] { masked_scaled_bmm(m); });
  m.masked_m = fine;
  m.block_scale_type = "mxfp6";
  EXPECT_REFUSED("block_scale_type", masked_scaled_bmm(m));
  m.block_scale_type = "nvfp4";
  EXPECT_REFUSED("a.dtype is float8_e4m3fn, but block_scale_type 'nvfp4' needs", masked_scaled_bmm(m));
  m.block_scale_type = "mxfp8", m.transpose_b = false;
  EXPECT_REFUSED("only a[.., m, k] and b[q, n, k] exist", masked_scaled_bmm(m));
  m.transpose_b = true, m.out_dtype = DType::kI32;
  EXPECT_REFUSED("out_dtype", masked_scaled_bmm(m));
  m.out_dtype = std::nullopt, m.a_scale = scales({2, 64, 4}, 122, 1);
  EXPECT_REFUSED(
      "a_scale is uint8[2, 64, 4], 512 scale factors, but 2 matrices of 9 x 2 of them need a_scale to contain 1024 "
      "elements",
      masked_scaled_bmm(m));

  const TensorView x = pattern<e4m3_t>({130, 128}, 1), w = pattern<e4m3_t>({2, 20, 128}, 1);
  const TensorView sx = pattern<float>({130, 1}, 1), sw = pattern<float>({2, 1, 1}, 1);
  const Tensor odd = ints({0, 100, 130}), even = ints({0, 128, 128});
  RaggedBlockScaledBmm r{.a = x, .b = w, .a_scale = sx, .b_scale = sw, .m_indptr = odd, .max_m = 128};
  EXPECT_REFUSED("ragged_block_scaled_bmm: m_indptr[1] is 100, but must be a multiple of 128",
                 ragged_block_scaled_bmm(r));
  r.m_indptr = even, r.max_m = 100;
  EXPECT_REFUSED("m_indptr makes segment 0 128 rows long, but max_m is 100", ragged_block_scaled_bmm(r));
  r.max_m = 128, r.a_scale = sw;
  EXPECT_REFUSED("a_scale is float32[2, 1, 1], but must be [130, 1]", ragged_block_scaled_bmm(r));
  r.a_scale = sx, r.segment_alignment = 0;
  EXPECT_REFUSED("segment_alignment is 0", ragged_block_scaled_bmm(r));
  EXPECT_REFUSED("m_indptr[1] is 100, but must be a multiple of 8",
                 group_gemm_fp8_nt_groupwise({.a = x,
                                              .b = w,
                                              .a_scale = sx,
                                              .b_scale = sw,
                                              .m_indptr = odd,
                                              .scale_major_mode = "K",
                                              .segment_alignment = 8}));
}

TEST(ScaledBatches, ExpertsMustBeTheSlowestAxis) {
  const Tensor codes = Tensor::zeros({3, 10, 32}, DType::kU8), counts = ints({10, 0, 3}),
               out = Tensor::zeros({10, 20, 3}, DType::kBF16);
  const Tensor weights = Tensor::zeros({3, 20, 32}, DType::kU8),
               sf = Tensor::zeros({3, 1, 1, 32, 4, 4}, DType::kF8E4M3);
  const auto last = [](const TensorView& t) { return t.transpose(0, 1).transpose(1, 2); };
  TensorView tiles = sf.view();  // [experts, rows, columns, 32, 4, 4] -> [32, 4, rows, 4, columns, experts]
  const int order[] = {3, 4, 1, 5, 2, 0};
  int64_t shape[6], stride[6];
  for (int i = 0; i < 6; ++i) shape[i] = tiles.size(order[i]), stride[i] = tiles.stride(order[i]);
  const TensorView scale(sf.data(), DType::kF8E4M3, shape, stride);
  GroupedGemmNtMasked g{.lhs = {last(codes), scale},
                        .rhs = {last(weights), scale},
                        .out = out,
                        .masked_m = counts,
                        .ab_dtype = "float4_e2m1fn",
                        .sf_dtype = "float8_e4m3fn",
                        .c_dtype = "bfloat16",
                        .sf_vec_size = 16};
  EXPECT_REFUSED(
      "out is bfloat16[10, 20, 3] with strides 60, 3 and 1, but must be the permuted view of contiguous memory [3, 10, "
      "20]",
      grouped_gemm_nt_masked(g));
  const Tensor memory = Tensor::zeros({3, 10, 20}, DType::kBF16);
  g.out = last(memory);
  grouped_gemm_nt_masked(g);
  g.sf_vec_size = 32;
  EXPECT_REFUSED("sf_vec_size is 32, but scales of 'float8_e4m3fn' are for 16", grouped_gemm_nt_masked(g));
  g.sf_vec_size = 16, g.c_dtype = "float16";
  EXPECT_REFUSED("c_dtype is 'float16', but out.dtype is bfloat16", grouped_gemm_nt_masked(g));
  g.c_dtype = "bfloat16", g.lhs.second = sf.view();
  EXPECT_REFUSED("lhs[1] is float8_e4m3fn[3, 1, 1, 32, 4, 4], but must be [32, 4, 1, 4, 1, 3]",
                 grouped_gemm_nt_masked(g));
  g.lhs.second = scale, g.dst_signals = counts.view();
  expect_error(ErrorKind::kNotImplementedError, "dst_signals", [&] { grouped_gemm_nt_masked(g); });
}

TEST(Blockscale, QuantisesBf16AsTheQuantiserDoes) {
  const Tensor x = random_tensor<bf16_t>({5, 256}, 1), w = random_tensor<bf16_t>({64, 256}, 2),
               short_k = random_tensor<bf16_t>({5, 100}, 3);
  const auto [xq, xs] = per_token_group_quant_8bit({.x = x, .group_size = 128});
  const auto [wq, ws] = per_token_group_quant_8bit({.x = w, .group_size = 128});
  const Tensor out = fp8_blockscale_gemm_sm90({.input = x, .weight = w});
  EXPECT_TRUE(
      same_bytes(out, fp8_blockscale_gemm_sm90({.input = xq, .weight = wq, .input_scale = xs, .weight_scale = ws})));
  EXPECT_TRUE(same_bytes(out, fp8_blockscale_gemm_sm90({.input = x, .weight = wq, .weight_scale = ws})));
  EXPECT_REFUSED("a quantised input needs a quantised weight",
                 fp8_blockscale_gemm_sm90({.input = xq, .weight = w, .input_scale = xs}));
  EXPECT_REFUSED("input_scale is given, but input_scale should not be provided for BF16 input",
                 fp8_blockscale_gemm_sm90({.input = x, .weight = w, .input_scale = xs}));
  EXPECT_REFUSED("weight_scale is None, but weight_scale is required when weight is FP8",
                 fp8_blockscale_gemm_sm90({.input = x, .weight = wq}));
  EXPECT_REFUSED("weight_scale is float32[5, 2], but must be [1, 2]",
                 fp8_blockscale_gemm_sm90({.input = x, .weight = wq, .weight_scale = xs}));
  EXPECT_REFUSED("k is 100", fp8_blockscale_gemm_sm90({.input = short_k, .weight = short_k}));
}

TEST(Segments, LengthsAndOffsetsMustAgree) {
  const Tensor x = random_tensor<bf16_t>({4, 64}, 1), w = random_tensor<bf16_t>({2, 20, 64}, 2),
               workspace = Tensor::zeros({16}, DType::kU8);
  const Tensor lens = ints({1, 3}), indptr = ints({0, 2, 4});
  SegmentGEMMWrapper segments(workspace);
  EXPECT_REFUSED("seg_lens[0] is 1, but seg_indptr gives the segment 2 rows", segments.run({.x = x,
                                                                                            .weights = w,
                                                                                            .batch_size = 2,
                                                                                            .weight_column_major = true,
                                                                                            .seg_lens = lens,
                                                                                            .seg_indptr = indptr}));
}

}  // namespace
}  // namespace flashinfer
