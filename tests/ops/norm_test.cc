// SPDX-License-Identifier: Apache-2.0
// Norms, beyond the case tables: rows that must be equal bit by bit, offsets beyond 2^31, the rounding of
// the sum, errors.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "flashinfer/ops/common/reference.h"
#include "flashinfer/ops/norm/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

TEST(Norm, ARowDoesNotDependOnOtherRows) {
  for (int64_t d : {1, 15, 111, 576, 4097}) {
    const Tensor x = random_tensor<bf16_t>({33, d}, 1), w = random_tensor<bf16_t>({d}, 2);
    const Tensor all = rmsnorm({.input = x, .weight = w});
    for (int64_t r : {0, 7, 32}) {
      const TensorView row = x.view().slice(0, r, r + 1);
      const Tensor alone = rmsnorm({.input = row, .weight = w});
      EXPECT_EQ(std::memcmp(alone.data(), all.data_as<bf16_t>() + r * d, static_cast<size_t>(d) * 2), 0)
          << d << " " << r;
    }
  }
}

TEST(Norm, StridesBeyond31Bits) {
  constexpr int64_t kStride = (int64_t{1} << 31) + 64, kD = 64;
  const size_t bytes = static_cast<size_t>(kStride + kD) * sizeof(bf16_t);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const Tensor x = random_tensor<bf16_t>({2, kD}, 3), w = random_tensor<bf16_t>({kD}, 4);
  for (int r = 0; r < 2; ++r)
    std::memcpy(static_cast<bf16_t*>(memory) + r * kStride, x.data_as<bf16_t>() + r * kD, kD * 2);
  const int64_t shape[] = {2, kD}, stride[] = {kStride, 1};
  const TensorView far(memory, DType::kBF16, shape, stride);
  const Tensor want = rmsnorm({.input = x, .weight = w}), got = rmsnorm({.input = far, .weight = w});
  EXPECT_EQ(std::memcmp(got.data(), want.data(), 2 * kD * 2), 0);
  rmsnorm({.input = far, .weight = w, .out = far});
  EXPECT_EQ(std::memcmp(static_cast<bf16_t*>(memory) + kStride, want.data_as<bf16_t>() + kD, kD * 2), 0);
  munmap(memory, bytes);
}

TEST(Norm, FusedAddNormalisesTheSumBeforeItsRounding) {
  constexpr int64_t kRows = 16, kD = 512;
  const Tensor x = random_tensor<bf16_t>({kRows, kD}, 5), r = random_tensor<bf16_t>({kRows, kD}, 6);
  Tensor w = Tensor::empty({kD}, DType::kF32);
  for (float& v : w.span<float>()) v = 1;
  const Tensor input = Tensor::clone(x.view()), residual = Tensor::clone(r.view());
  fused_add_rmsnorm({.input = input, .residual = residual, .weight = w});
  int exact = 0, rounded = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    double squares = 0;
    for (int64_t j = 0; j < kD; ++j) squares += std::pow(ref::at(x, {i, j}) + ref::at(r, {i, j}), 2);
    const double scale = 1 / std::sqrt(squares / kD + 1e-6);
    for (int64_t j = 0; j < kD; ++j) {
      const double s = ref::at(x, {i, j}) + ref::at(r, {i, j}),
                   s_rounded = static_cast<float>(bf16_t(static_cast<float>(s)));
      EXPECT_EQ(ref::at(residual, {i, j}), s_rounded);
      const double got = ref::at(input, {i, j});
      exact += got == static_cast<double>(static_cast<float>(bf16_t(static_cast<float>(s * scale))));
      rounded += got == static_cast<double>(static_cast<float>(bf16_t(static_cast<float>(s_rounded * scale))));
    }
  }
  EXPECT_GT(exact, kRows * kD * 99 / 100);
  EXPECT_LT(rounded, kRows * kD * 95 / 100);
}

TEST(Norm, ErrorsNameTheArgument) {
  const Tensor x = random_tensor<bf16_t>({3, 64}, 1), w = random_tensor<bf16_t>({63}, 2),
               h = random_tensor<f16_t>({64}, 2), ok = random_tensor<bf16_t>({64}, 2),
               deep = random_tensor<bf16_t>({2, 2, 2, 64}, 2);
  EXPECT_EQ(message_of([&] { rmsnorm({.input = x, .weight = w}); }),
            "ValueError: rmsnorm: weight.shape[0] is 63, but d is 64 (from input.shape[1])");
  EXPECT_EQ(message_of([&] { rmsnorm({.input = x, .weight = h}); }),
            "ValueError: rmsnorm: weight.dtype is float16, but must be bfloat16 (as input) or float32");
  EXPECT_NE(message_of([&] { rmsnorm({.input = deep, .weight = ok}); }).find("input has rank 4"), std::string::npos);
  EXPECT_NE(
      message_of([&] { gemma_rmsnorm({.input = x, .weight = ok, .eps = NAN}); }).find("gemma_rmsnorm: eps is nan"),
      std::string::npos);
  const int64_t shape[] = {3, 32}, stride[] = {64, 2};
  EXPECT_NE(message_of([&] {
              rmsnorm({.input = TensorView(x.data(), DType::kBF16, shape, stride), .weight = ok});
            }).find("stride(-1) is 2"),
            std::string::npos);
  const TensorView shifted(x.data_as<bf16_t>() + 64, {2, 64});
  EXPECT_NE(message_of([&] {
              rmsnorm({.input = x.view().slice(0, 0, 2), .weight = ok, .out = shifted});
            }).find("shares memory"),
            std::string::npos);
  EXPECT_NE(message_of([&] { fused_add_rmsnorm({.input = x, .residual = x, .weight = ok}); }).find("shares memory"),
            std::string::npos);
}

// Products with NaN or infinities reach only their own block; the fast conversion to FP4 does not test for NaN and so
// must not be taken then.
TEST(RmsNormFp4Quant, NanSpoilsItsBlockAlone) {
  constexpr int64_t kD = 512, kBad = 37, kBlock = kBad / 16;
  const Tensor x = random_tensor<bf16_t>({2, kD}, 5), w = random_tensor<bf16_t>({kD}, 6),
               gs = Tensor::zeros({1}, DType::kF32);
  gs.data_as<float>()[0] = 500;
  const auto quantised = [&](const Tensor& in, const Tensor& weight, const Tensor& scales) {
    const Tensor codes = Tensor::zeros({2, kD / 2}, DType::kU8);
    rmsnorm_fp4quant({.input = in, .weight = weight, .y_fp4 = codes, .block_scale = scales, .global_scale = gs});
    return codes;
  };
  const auto scales_of = [] { return Tensor::zeros({2, kD / 16}, DType::kF8E4M3); };
  const Tensor scales = scales_of(), bad_scales = scales_of(), codes = quantised(x, w, scales),
               bad_w = Tensor::clone(w);
  bad_w.data_as<bf16_t>()[kBad] = bf16_t(std::nanf(""));
  const Tensor bad_codes = quantised(x, bad_w, bad_scales);
  for (int64_t r = 0; r < 2; ++r)
    for (int64_t b = 0; b < kD / 16; ++b) {
      const int64_t at = r * (kD / 16) + b;
      EXPECT_EQ(bad_scales.data_as<uint8_t>()[at], b == kBlock ? 0x7f : scales.data_as<uint8_t>()[at]) << r << " " << b;
      for (int64_t i = 8 * at; i < 8 * at + 8; ++i)
        EXPECT_EQ(bad_codes.data_as<uint8_t>()[i], b == kBlock ? 0 : codes.data_as<uint8_t>()[i]) << i;
    }
  const Tensor infinite = Tensor::clone(x);  // mean square inf: all but inf times 0 is 0
  infinite.data_as<bf16_t>()[kBad] = bf16_t(std::numeric_limits<float>::infinity());
  quantised(infinite, w, bad_scales);
  for (int64_t b = 0; b < kD / 16; ++b) EXPECT_EQ(bad_scales.data_as<uint8_t>()[b], b == kBlock ? 0x7f : 0) << b;
}

}  // namespace
}  // namespace flashinfer
