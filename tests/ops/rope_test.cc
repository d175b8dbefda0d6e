// SPDX-License-Identifier: Apache-2.0
// RoPE, beyond the case tables: slices of a fused projection, large positions, in place against copies,
// errors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "flashinfer/ops/rope/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

TensorView ids(const std::vector<int32_t>& v) { return TensorView(std::span<const int32_t>(v)); }

TEST(Rope, SlicesOfAFusedProjectionInPlace) {
  constexpr int64_t kN = 5, kHq = 4, kHk = 2, kD = 64, kRow = (kHq + 2 * kHk) * kD;
  const Tensor qkv = random_tensor<float>({kN, kHq + 2 * kHk, kD}, 1), before = Tensor::clone(qkv.view());
  const TensorView q = qkv.view().slice(1, 0, kHq), k = qkv.view().slice(1, kHq, kHq + kHk);
  const std::vector<int32_t> pos = {0, 5, 17, 300, 4095};
  const auto [qr, kr] = apply_rope_pos_ids({.q = q, .k = k, .pos_ids = ids(pos)});
  EXPECT_EQ(std::memcmp(qkv.data(), before.data(), static_cast<size_t>(qkv.nbytes())), 0)
      << "the plain form wrote to its input";
  apply_rope_pos_ids_inplace({.q = q, .k = k, .pos_ids = ids(pos)});
  for (int64_t t = 0; t < kN; ++t) {
    const float* row = qkv.data_as<float>() + t * kRow;
    EXPECT_EQ(std::memcmp(row, qr.data_as<float>() + t * kHq * kD, kHq * kD * 4), 0);
    EXPECT_EQ(std::memcmp(row + kHq * kD, kr.data_as<float>() + t * kHk * kD, kHk * kD * 4), 0);
    EXPECT_EQ(std::memcmp(row + (kHq + kHk) * kD, before.data_as<float>() + t * kRow + (kHq + kHk) * kD, kHk * kD * 4),
              0)
        << "V";
  }
}

TEST(Rope, LargePositionsKeepThePrecisionOfSmallOnes) {
  constexpr int64_t kD = 128;
  std::vector<float> x(kD, 0.0f);
  for (int64_t i = 0; i < kD / 2; ++i) x[static_cast<size_t>(i)] = 1;
  for (int64_t position : {int64_t{3}, int64_t{999983}, int64_t{1} << 31, (int64_t{1} << 40) + 7}) {
    const std::vector<int64_t> pos = {position};
    const TensorView v(x.data(), {1, 1, kD});
    const auto [q, k] = apply_rope_pos_ids({.q = v, .k = v, .pos_ids = TensorView(std::span<const int64_t>(pos))});
    double worst = 0;
    for (int64_t i = 0; i < kD / 2; ++i) {
      const double f = std::pow(1e4, -2.0 * static_cast<double>(i) / kD), phi = static_cast<double>(position) * f;
      worst = std::max(worst, std::abs(static_cast<double>(q.data_as<float>()[i]) - std::cos(phi)));
      worst = std::max(worst, std::abs(static_cast<double>(q.data_as<float>()[kD / 2 + i]) - std::sin(phi)));
    }
    EXPECT_LT(worst, position < (int64_t{1} << 32) ? 3e-7 : 1e-3) << position;  // 2^40 * f rounds to 2^-13 in double
  }
}

TEST(Rope, ByRequestEqualsByPosition) {
  const Tensor q = random_tensor<float>({7, 2, 64}, 1), k = random_tensor<float>({7, 1, 64}, 2);
  const std::vector<int32_t> indptr = {0, 3, 3, 7}, offsets = {10, 5, 100}, pos = {10, 11, 12, 100, 101, 102, 103};
  for (bool interleave : {false, true}) {
    const auto a =
        apply_llama31_rope({.q = q, .k = k, .indptr = ids(indptr), .offsets = ids(offsets), .interleave = interleave});
    const auto b = apply_llama31_rope_pos_ids({.q = q, .k = k, .pos_ids = ids(pos), .interleave = interleave});
    EXPECT_EQ(std::memcmp(a.first.data(), b.first.data(), static_cast<size_t>(a.first.nbytes())), 0);
    EXPECT_EQ(std::memcmp(a.second.data(), b.second.data(), static_cast<size_t>(a.second.nbytes())), 0);
  }
}

TEST(Rope, ResultsGoWhereTheCallerSays) {
  const Tensor q = random_tensor<float>({2, 2, 64}, 1), k = random_tensor<float>({2, 1, 64}, 2),
               out = Tensor::zeros({2, 2, 64}, DType::kF32);
  const std::vector<int32_t> pos = {1, 2};
  const auto [a, b] = apply_rope_pos_ids({.q = q, .k = k, .pos_ids = ids(pos), .q_rope = out});
  EXPECT_EQ(a.data(), out.data());
  EXPECT_NE(b.data(), k.data());
  EXPECT_NE(out.data_as<float>()[0], 0);
}

TEST(Rope, ErrorsNameTheArgument) {
  const Tensor q = random_tensor<float>({3, 2, 64}, 1), k = random_tensor<float>({3, 1, 64}, 2),
               table = random_tensor<float>({8, 64}, 3), flat = random_tensor<float>({3, 128}, 4);
  const std::vector<int32_t> pos = {0, 1, 8}, indptr = {0, 2}, down = {0, 4, 3}, offset = {0}, offsets = {0, 0};
  auto message = [&](auto&& f) { return message_of(f); };
  EXPECT_NE(message([&] {
              apply_rope_pos_ids({.q = q, .k = k, .pos_ids = ids(pos), .rotary_dim = 63});
            }).find("rotary_dim is 63"),
            std::string::npos);
  EXPECT_NE(
      message([&] { apply_rope_pos_ids({.q = q, .k = k, .pos_ids = ids(pos), .rotary_dim = 66}); }).find("in [2, 64]"),
      std::string::npos);
  EXPECT_NE(message([&] {
              apply_rope_pos_ids({.q = q, .k = k, .pos_ids = ids(pos), .rope_theta = 0.0});
            }).find("rope_theta is 0"),
            std::string::npos);
  EXPECT_NE(message([&] {
              apply_rope({.q = q, .k = k, .indptr = ids(indptr), .offsets = ids(offset)});
            }).find("indptr[1] is 2, but q has 3 tokens"),
            std::string::npos);
  EXPECT_NE(message([&] { apply_rope({.q = q, .k = k, .indptr = ids(down), .offsets = ids(offsets)}); }).find("indptr"),
            std::string::npos);
  EXPECT_NE(message([&] {
              apply_rope_with_cos_sin_cache(
                  {.positions = ids(pos), .query = flat, .key = flat, .head_size = 64, .cos_sin_cache = table});
            }).find("positions[2] is 8"),
            std::string::npos);
  EXPECT_NE(message([&] {
              apply_rope_with_cos_sin_cache(
                  {.positions = ids(pos), .query = flat, .key = flat, .head_size = 32, .cos_sin_cache = table});
            }).find("RuntimeError: apply_rope_with_cos_sin_cache: head_size is 32"),
            std::string::npos);
  EXPECT_NE(message([&] {
              apply_rope_pos_ids_inplace({.q = q, .k = k, .pos_ids = ids(pos), .q_rope = q});
            }).find("q_rope is given"),
            std::string::npos);
}

}  // namespace
}  // namespace flashinfer
