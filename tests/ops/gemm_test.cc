// SPDX-License-Identifier: Apache-2.0
// The matrix products as a caller sees them: one order of accumulation whatever m, threads and form of the weight;
// packed weights as tensors; messages of refused calls. Correctness over shapes is in the case tables.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "flashinfer/core/context.h"
#include "flashinfer/ops/gemm/kernels/params.h"
#include "flashinfer/ops/gemm/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

constexpr int64_t kK = 576, kN = 200;

TEST(MmBf16, RowsDoNotDependOnOtherRows) {
  const Tensor a = random_tensor<bf16_t>({512, kK}, 1), weight = random_tensor<bf16_t>({kN, kK}, 2),
               bias = random_tensor<bf16_t>({kN}, 3);
  const TensorView b = weight.view().transpose(0, 1);
  const Tensor packed = prepare_mm_weights({.b = b});
  for (const DType out : {DType::kF32, DType::kBF16}) {
    const Tensor all = mm_bf16({.a = a, .b = packed, .bias = bias, .out_dtype = out});
    for (const int64_t m : {1, 2, 3, 5, 7, 8, 9, 16, 17, 64, 129, 512}) {
      const TensorView some = a.view().slice(0, 512 - m, 512), want = all.view().slice(0, 512 - m, 512);
      EXPECT_TRUE(same_bytes(mm_bf16({.a = some, .b = packed, .bias = bias, .out_dtype = out}), want))
          << m << " rows, packed";
      EXPECT_TRUE(same_bytes(mm_bf16({.a = some, .b = b, .bias = bias, .out_dtype = out}), want))
          << m << " rows, plain";
    }
  }
}

TEST(MmBf16, ResultsDoNotDependOnThreads) {
  const Tensor a = random_tensor<bf16_t>({70, kK}, 4), weight = random_tensor<bf16_t>({kN, kK}, 5),
               packed = prepare_mm_weights({.b = weight.view().transpose(0, 1)});
  const Tensor want = mm_bf16({.a = a, .b = packed});
  for (const int threads : {1, 2, 3, 7}) {
    const auto pool = make_thread_pool(threads);
    Context context = Context::current();
    context.executor = *pool;
    ContextScope scope(context);
    EXPECT_TRUE(same_bytes(mm_bf16({.a = a, .b = packed}), want)) << threads << " threads";
    EXPECT_TRUE(same_bytes(mm_bf16({.a = a, .b = weight.view().transpose(0, 1)}), want))
        << threads << " threads, plain";
  }
}

TEST(MmBf16, LayoutsOfBAgree) {
  const Tensor a = random_tensor<bf16_t>({9, kK}, 6), weight = random_tensor<bf16_t>({kN, kK}, 7);
  const TensorView columns = weight.view().transpose(0, 1);
  const Tensor rows = Tensor::clone(columns);  // [k, n] row-major
  const Tensor want = mm_bf16({.a = a, .b = columns});
  EXPECT_TRUE(same_bytes(mm_bf16({.a = a, .b = rows}), want));
  EXPECT_TRUE(same_bytes(prepare_mm_weights({.b = rows}), prepare_mm_weights({.b = columns})));
}

TEST(MmBf16, SpecialValuesGoThrough) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor a = Tensor::zeros({2, 3}, DType::kBF16), b = Tensor::zeros({3, 17}, DType::kBF16);
  a.data_as<bf16_t>()[0] = bf16_t(inf);
  a.data_as<bf16_t>()[5] = bf16_t(std::nanf(""));
  for (bf16_t& x : b.span<bf16_t>()) x = bf16_t(1.0f);
  const Tensor out = mm_bf16({.a = a, .b = b, .out_dtype = DType::kF32});
  for (int j = 0; j < 17; ++j) {
    EXPECT_EQ(out.data_as<float>()[j], inf);
    EXPECT_TRUE(std::isnan(out.data_as<float>()[17 + j]));
  }
}

TEST(PackedWeight, SaysWhatItIs) {
  const Tensor weight = random_tensor<bf16_t>({40, 31}, 8);
  const Tensor packed = prepare_mm_weights({.b = weight.view().transpose(0, 1)});
  ASSERT_EQ(packed.rank(), 3);
  EXPECT_EQ(packed.size(0), 3);
  EXPECT_EQ(packed.size(1), 17);
  EXPECT_EQ(packed.size(2), 32);
  for (const bf16_t x : packed.span<bf16_t>()) EXPECT_TRUE(std::isfinite(static_cast<float>(x)));
  // A copy is as good, and so is a slice of panels: the columns it holds.
  const Tensor a = random_tensor<bf16_t>({5, 31}, 9), copy = Tensor::clone(packed),
               want = mm_bf16({.a = a, .b = packed});
  EXPECT_EQ(want.size(1), 40);
  EXPECT_TRUE(same_bytes(mm_bf16({.a = a, .b = copy}), want));
  EXPECT_TRUE(same_bytes(mm_bf16({.a = a, .b = packed.view().slice(0, 1, 3)}), want.view().slice(1, 16, 40)));
}

TEST(PackedWeight, AWrongOneIsRejected) {
  const Tensor weight = random_tensor<bf16_t>({64, 40}, 10), packed = prepare_mm_weights({.b = weight});
  const Tensor a = random_tensor<bf16_t>({2, 64}, 11), short_a = random_tensor<bf16_t>({2, 62}, 12),
               same_lines = random_tensor<bf16_t>({2, 63}, 13);
  EXPECT_NE(message_of([&] {
              mm_bf16({.a = short_a, .b = packed});
            }).find("ValueError: mm_bf16: b is packed for k = 64, but k is 62"),
            std::string::npos);
  EXPECT_NE(message_of([&] { mm_bf16({.a = same_lines, .b = packed}); }).find("k = 64, but k is 63"),
            std::string::npos);
  const Tensor not_packed = random_tensor<bf16_t>({3, 33, 32}, 14),
               wrong_shape = random_tensor<bf16_t>({3, 33, 31}, 15);
  EXPECT_NE(message_of([&] { mm_bf16({.a = a, .b = not_packed}); }).find("header that prepare_mm_weights writes"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              mm_bf16({.a = a, .b = wrong_shape});
            }).find("bfloat16[3, 33, 31], but must be [k, n], or a packed weight"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              mm_bf16({.a = a, .b = packed.view().slice(1, 0, 32)});
            }).find("b.shape[1] is 32, but a panel of bfloat16 with k = 64 has 33 lines"),
            std::string::npos);
  EXPECT_NE(message_of([&] { mm_bf16({.a = a, .b = packed.view().slice(1, 1, 33)}); }).find("header"),
            std::string::npos);
}

TEST(MmBf16, MessagesNameBothValues) {
  const Tensor a = random_tensor<bf16_t>({2, 64}, 16), b = random_tensor<bf16_t>({62, 40}, 17),
               good = random_tensor<bf16_t>({64, 40}, 18), bias = random_tensor<bf16_t>({39}, 19);
  const Tensor f32 = Tensor::zeros({2, 64}, DType::kF32), out = Tensor::zeros({2, 41}, DType::kBF16),
               f32_out = Tensor::zeros({2, 40}, DType::kF32);
  const auto expect = [](const std::string& got, const std::string& want) {
    EXPECT_EQ(got.substr(0, want.size()), want);
  };
  expect(message_of([&] { mm_bf16({.a = a, .b = b}); }),
         "ValueError: mm_bf16: b.shape[0] is 62, but k is 64 (from a.shape[1])");
  expect(message_of([&] { mm_bf16({.a = f32, .b = good}); }),
         "ValueError: mm_bf16: a.dtype is float32, but must be bfloat16");
  expect(message_of([&] { mm_bf16({.a = a, .b = good, .bias = bias}); }),
         "ValueError: mm_bf16: bias.shape[0] is 39, but n is 40 (from b)");
  expect(message_of([&] { mm_bf16({.a = a, .b = good, .out = out}); }),
         "ValueError: mm_bf16: out is bfloat16[2, 41], but must be bfloat16[2, 40]");
  expect(message_of([&] { mm_bf16({.a = a, .b = good, .out = f32_out}); }),
         "ValueError: mm_bf16: out.dtype is float32, but out_dtype is bfloat16");
  expect(message_of([&] { mm_bf16({.a = a, .b = good, .out_dtype = DType::kF8E4M3}); }),
         "ValueError: mm_bf16: out_dtype is float8_e4m3fn, but must be");
  expect(message_of([&] { mm_bf16({.a = a, .b = good, .backend = "mystery"}); }),
         "ValueError: mm_bf16: backend is 'mystery', but must be one of auto, ");
  expect(message_of([&] { mm_bf16({.a = a, .b = good, .out = a.view()}); }), "ValueError: mm_bf16: out ");
}

TEST(BmmFp8, RejectsTwoE5m2AndVectorsOfScales) {
  const Tensor a = Tensor::zeros({1, 2, 16}, DType::kF8E5M2), b = Tensor::zeros({1, 16, 4}, DType::kF8E5M2);
  const Tensor b4 = Tensor::zeros({1, 16, 4}, DType::kF8E4M3), one = Tensor::zeros({1}, DType::kF32),
               two = Tensor::zeros({2}, DType::kF32);
  EXPECT_NE(message_of([&] { bmm_fp8({.A = a, .B = b, .A_scale = one, .B_scale = one}); }).find("both float8_e5m2"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              bmm_fp8({.A = a, .B = b4, .A_scale = two, .B_scale = one});
            }).find("A_scale is float32[2], but must hold one value"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              bmm_fp8({.A = a, .B = b4, .A_scale = one, .B_scale = one, .dtype = DType::kF32});
            }).find("dtype is float32"),
            std::string::npos);
}

TEST(BmmBf16, EqualsAProductPerBatch) {
  const Tensor a = random_tensor<bf16_t>({3, 10, 66}, 20), b = random_tensor<bf16_t>({3, 66, 30}, 21);
  const Tensor all = bmm_bf16({.A = a, .B = b});
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(same_bytes(mm_bf16({.a = a.view().select(0, i), .b = b.view().select(0, i)}), all.view().select(0, i)));
}

}  // namespace
}  // namespace flashinfer
