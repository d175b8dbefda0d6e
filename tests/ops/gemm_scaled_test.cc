// SPDX-License-Identifier: Apache-2.0
// Products with scales, of groups and of GGUF blocks: one order of accumulation whatever m, threads, groups and form of
// the weight; what is an error. Correctness over shapes is in the case tables.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/ops/gemm/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

Tensor random_bytes(std::initializer_list<int64_t> shape, unsigned seed, int from = 0, int to = 256,
                    DType type = DType::kU8) {
  std::mt19937 rng(seed);
  const Tensor t = Tensor::empty(shape, type);
  auto* bytes = static_cast<uint8_t*>(t.data());
  for (int64_t i = 0; i < t.nbytes(); ++i)
    bytes[i] = static_cast<uint8_t>(from + static_cast<int>(rng() % static_cast<unsigned>(to - from)));
  return t;
}
Tensor random_floats(std::initializer_list<int64_t> shape, unsigned seed, DType type) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  const Tensor t = Tensor::empty(shape, type);
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (type == DType::kBF16)
      t.data_as<bf16_t>()[i] = bf16_t(normal(rng));
    else if (type == DType::kF32)
      t.data_as<float>()[i] = 0.1f + std::fabs(normal(rng));
    else
      t.data_as<e4m3_t>()[i] = e4m3_t(normal(rng));
  }
  return t;
}
/// Rows of Q4_1 or Q8_0 blocks with modest scales.
Tensor blocks(int64_t n, int64_t per_row, int64_t bytes, unsigned seed) {
  const Tensor t = random_bytes({n, per_row * bytes}, seed);
  const f16_t scale(0.01f);
  for (int64_t i = 0; i < n * per_row; ++i)
    for (int64_t half = 0; half < (bytes == 20 ? 2 : 1); ++half)
      std::memcpy(t.data_as<uint8_t>() + i * bytes + 2 * half, &scale.bits, 2);
  return t;
}

TEST(MmGguf, RowsDoNotDependOnOtherRowsNorOnTheForm) {
  const int64_t n = 100, k = 192;
  const Tensor a = random_floats({150, k}, 1, DType::kBF16);
  const std::pair<const char*, int64_t> formats[] = {{"Q4_0", 18}, {"Q4_1", 20}, {"Q8_0", 34}};
  for (const auto& [format, bytes] : formats) {
    const Tensor rows = blocks(n, k / 32, bytes, 2),
                 panels = prepare_gguf_weights({.b_blocks = rows, .format = format});
    const Tensor all = mm_gguf({.a = a, .b_blocks = panels, .format = format, .out_dtype = DType::kF32});
    for (const int64_t m : {1, 2, 5, 8, 9, 17, 150}) {
      const TensorView some = a.view().slice(0, 150 - m, 150), want = all.view().slice(0, 150 - m, 150);
      EXPECT_TRUE(
          same_bytes(mm_gguf({.a = some, .b_blocks = panels, .format = format, .out_dtype = DType::kF32}), want))
          << format << " " << m;
      EXPECT_TRUE(same_bytes(mm_gguf({.a = some, .b_blocks = rows, .format = format, .out_dtype = DType::kF32}), want))
          << format << " " << m << " as in the file";
    }
    const auto pool = make_thread_pool(3);
    Context context = Context::current();
    context.executor = *pool;
    ContextScope scope(context);
    EXPECT_TRUE(same_bytes(mm_gguf({.a = a, .b_blocks = panels, .format = format, .out_dtype = DType::kF32}), all))
        << format;
  }
}

/// The same invariances with rows in 8-bit blocks.
TEST(MmGguf, QuantisedRowsDoNotDependOnOtherRowsNorOnTheForm) {
  const int64_t n = 100, k = 192;
  const Tensor a = random_floats({150, k}, 1, DType::kBF16);
  const std::pair<const char*, int64_t> formats[] = {{"Q4_0", 18}, {"Q4_1", 20}, {"Q8_0", 34}};
  for (const auto& [format, bytes] : formats) {
    const auto multiply = [&](const TensorView& x, const TensorView& b, bool quantize) {
      return mm_gguf({.a = x, .b_blocks = b, .format = format, .out_dtype = DType::kF32, .quantize_a = quantize});
    };
    const Tensor rows = blocks(n, k / 32, bytes, 2),
                 panels = prepare_gguf_weights({.b_blocks = rows, .format = format});
    const Tensor all = multiply(a, panels, true), exact = multiply(a, panels, false);
    for (const int64_t m : {1, 2, 5, 8, 9, 17, 150}) {
      const TensorView some = a.view().slice(0, 150 - m, 150), want = all.view().slice(0, 150 - m, 150);
      EXPECT_TRUE(same_bytes(multiply(some, panels, true), want)) << format << " " << m;
      EXPECT_TRUE(same_bytes(multiply(some, rows, true), want)) << format << " " << m << " as in the file";
    }
    double error = 0, size = 0;
    for (int64_t i = 0; i < 150 * n; ++i) {
      error += std::pow(all.data_as<float>()[i] - exact.data_as<float>()[i], 2);
      size += std::pow(exact.data_as<float>()[i], 2);
    }
    EXPECT_LT(error, 0.01 * 0.01 * size) << format;  // 0.004 expected of rounding to amax / 254
    EXPECT_GT(error, 0) << format;
    const auto pool = make_thread_pool(3);
    Context context = Context::current();
    context.executor = *pool;
    ContextScope scope(context);
    EXPECT_TRUE(same_bytes(multiply(a, panels, true), all)) << format;
  }
}

TEST(MmGguf, QuantisedRowsKeepZerosAndNanApart) {
  const Tensor b = blocks(20, 2, 34, 4), a = Tensor::zeros({4, 64}, DType::kBF16);
  bf16_t* x = a.data_as<bf16_t>();
  x[64 + 40] = bf16_t(std::nanf(""));
  x[128 + 5] = bf16_t(-std::numeric_limits<float>::infinity());
  x[192 + 7] = bf16_t(1e-38f);  // 127 / x is infinite
  const Tensor out = mm_gguf({.a = a, .b_blocks = b, .format = "Q8_0", .out_dtype = DType::kF32, .quantize_a = true});
  for (int64_t j = 0; j < 20; ++j) {
    EXPECT_EQ(out.data_as<float>()[j], 0.0f);
    EXPECT_TRUE(std::isnan(out.data_as<float>()[20 + j]) && std::isnan(out.data_as<float>()[40 + j]));
    EXPECT_EQ(out.data_as<float>()[60 + j], 0.0f);
  }
}

TEST(MmGguf, RejectsWhatDoesNotFit) {
  const Tensor a = random_floats({2, 64}, 3, DType::kBF16), b = blocks(20, 2, 20, 4),
               packed = prepare_gguf_weights({.b_blocks = b, .format = "Q4_1"});
  const Tensor longer = random_floats({2, 96}, 3, DType::kBF16), k40 = random_floats({2, 40}, 3, DType::kBF16);
  expect_refused(
      "ValueError: mm_gguf: b_blocks.shape[1] is 40, which is 64 elements of Q4_1, but k is 96 (from a.shape[1])",
      [&] { mm_gguf({.a = longer, .b_blocks = b, .format = "Q4_1"}); });
  expect_refused("b_blocks.shape[1] is 40, but rows of Q8_0 are blocks of 34 bytes",
                 [&] { mm_gguf({.a = a, .b_blocks = b, .format = "Q8_0"}); });
  expect_refused("a.shape[1] is 40, but k must be a multiple of 32",
                 [&] { mm_gguf({.a = k40, .b_blocks = b, .format = "Q4_1"}); });
  expect_refused("b_blocks is packed for k = 64, but k is 96",
                 [&] { mm_gguf({.a = longer, .b_blocks = packed, .format = "Q4_1"}); });
  expect_refused("b_blocks is a packed weight of Q4_1, but must be one of Q4_0 (from prepare_gguf_weights)",
                 [&] { mm_gguf({.a = a, .b_blocks = packed, .format = "Q4_0"}); });
  expect_refused("multiple of 256", [&] { mm_gguf({.a = a, .b_blocks = packed, .format = "Q4_K"}); });
  expect_refused("format", [&] { mm_gguf({.a = a, .b_blocks = b, .format = "Q5_0"}); });
}

TEST(ScaledProducts, RowsDoNotDependOnOtherRows) {
  const int64_t n = 70, k = 256;
  const Tensor a = random_floats({40, k}, 5, DType::kF8E4M3), b = random_floats({n, k}, 6, DType::kF8E4M3),
               sa = random_floats({40, 2}, 7, DType::kF32), sb = random_floats({1, 2}, 8, DType::kF32);
  const Tensor all = gemm_fp8_nt_groupwise({.a = a, .b = b, .a_scale = sa, .b_scale = sb, .scale_major_mode = "K"});
  const Tensor plain = mm_fp8({.a = a, .b = b});
  const Tensor fa = random_bytes({40, k / 2}, 9), fb = random_bytes({n, k / 2}, 10),
               fsa = random_bytes({128, 16}, 11, 0x30, 0x40), fsb = random_bytes({128, 16}, 12, 0x30, 0x40);
  const auto fp4 = [&](int64_t m) {  // rows 0 .. m: the scales of a start with row 0
    return mm_fp4({.a = fa.view().slice(0, 0, m), .b = fb.view().transpose(0, 1), .a_descale = fsa, .b_descale = fsb});
  };
  const Tensor all_fp4 = fp4(40);
  for (const int64_t m : {1, 3, 8, 9, 33}) {
    const TensorView some = a.view().slice(0, 0, m);
    EXPECT_TRUE(same_bytes(
        gemm_fp8_nt_groupwise(
            {.a = some, .b = b, .a_scale = sa.view().slice(0, 0, m), .b_scale = sb, .scale_major_mode = "K"}),
        all.view().slice(0, 0, m)))
        << m;
    EXPECT_TRUE(same_bytes(mm_fp8({.a = some, .b = b}), plain.view().slice(0, 0, m))) << m;
    EXPECT_TRUE(same_bytes(fp4(m), all_fp4.view().slice(0, 0, m))) << m;
  }
}

TEST(ScaledProducts, GroupsEqualProductsOfTheirOwn) {
  const Tensor a = random_floats({30, 66}, 13, DType::kBF16), b = random_floats({3, 40, 66}, 14, DType::kBF16);
  const std::vector<int32_t> indptr = {0, 9, 9, 30};
  const Tensor out = grouped_mm_bf16({.a = a, .b = b, .m_indptr = TensorView(std::span<const int32_t>(indptr))});
  for (size_t e = 0; e < 3; ++e) {
    const TensorView rows = a.view().slice(0, indptr[e], indptr[e + 1]);
    EXPECT_TRUE(same_bytes(mm_bf16({.a = rows, .b = b.view().select(0, static_cast<int64_t>(e)).transpose(0, 1)}),
                           out.view().slice(0, indptr[e], indptr[e + 1])));
  }
}

TEST(ScaledProducts, RejectScalesThatDoNotFit) {
  const Tensor a = random_bytes({9, 64}, 15), b = random_bytes({40, 64}, 16),
               good = random_bytes({128, 8}, 17, 0x30, 0x40), small = random_bytes({64, 8}, 18),
               two = random_floats({2}, 19, DType::kF32);
  const TensorView bt = b.view().transpose(0, 1);
  expect_refused(
      "ValueError: mm_fp4: a_descale is uint8[64, 8], 512 scale factors, but 9 x 8 of them need a_descale to contain "
      "1024 elements in the 128x4 "
      "layout (128 x 8)",
      [&] { mm_fp4({.a = a, .b = bt, .a_descale = small, .b_descale = good}); });
  expect_refused("alpha is float32[2], but must hold one value",
                 [&] { mm_fp4({.a = a, .b = bt, .a_descale = good, .b_descale = good, .alpha = two}); });
  expect_refused("block_size is 32, but NVFP4 has one scale for 16",
                 [&] { mm_fp4({.a = a, .b = bt, .a_descale = good, .b_descale = good, .block_size = 32}); });
  const Tensor row_major = Tensor::clone(bt);
  expect_refused("b is uint8[64, 40] with strides 40 and 1, but the product needs b to be column-major",
                 [&] { mm_fp4({.a = a, .b = row_major, .a_descale = good, .b_descale = good}); });
  const Tensor x = random_floats({3, 256}, 20, DType::kF8E4M3), y = random_floats({129, 256}, 21, DType::kF8E4M3),
               sx = random_floats({3, 2}, 22, DType::kF32);
  expect_refused(
      "gemm_fp8_nt_groupwise: b_scale is float32[3, 2], but must be [2, 2] (one scale for 128 of 129 by 128 of k = "
      "256)",
      [&] { gemm_fp8_nt_groupwise({.a = x, .b = y, .a_scale = sx, .b_scale = sx, .scale_major_mode = "K"}); });
  expect_refused("scale_major_mode is None",
                 [&] { gemm_fp8_nt_groupwise({.a = x, .b = y, .a_scale = sx, .b_scale = sx}); });
  const std::vector<int32_t> falls = {0, 2, 1};
  const Tensor w = random_floats({2, 20, 64}, 23, DType::kBF16), z = random_floats({4, 64}, 24, DType::kBF16);
  expect_refused(
      "grouped_mm_bf16: m_indptr[1] and the next are 2 and 1, but must not decrease and must be within 4 rows",
      [&] { grouped_mm_bf16({.a = z, .b = w, .m_indptr = TensorView(std::span<const int32_t>(falls))}); });
  const Tensor workspace = Tensor::zeros({16}, DType::kU8);
  SegmentGEMMWrapper segments(workspace);
  const std::vector<int32_t> lens = {1, 3}, weights = {0, 5};
  expect_refused("seg_lens and seg_indptr are both None",
                 [&] { segments.run({.x = z, .weights = w, .batch_size = 2, .weight_column_major = true}); });
  expect_refused("segment 1 takes weight 5, but there are 2", [&] {
    segments.run({.x = z,
                  .weights = w,
                  .batch_size = 2,
                  .weight_column_major = true,
                  .seg_lens = TensorView(std::span<const int32_t>(lens)),
                  .weight_indices = TensorView(std::span<const int32_t>(weights))});
  });
}

}  // namespace
}  // namespace flashinfer
