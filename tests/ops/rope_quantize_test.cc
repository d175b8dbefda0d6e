// SPDX-License-Identifier: Apache-2.0
// RoPE with a cast to FP8: parts that are only cast bit for bit, rotation against apply_rope_with_cos_sin_cache,
// scales, padding, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "flashinfer/ops/rope/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

Tensor table(int64_t positions, int64_t rd) {
  Tensor t = Tensor::empty({positions, rd}, DType::kF32);
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t i = 0; i < rd / 2; ++i) {
      const double phi =
          static_cast<double>(p) * std::pow(1e4, -2.0 * static_cast<double>(i) / static_cast<double>(rd));
      t.data_as<float>()[p * rd + i] = static_cast<float>(std::cos(phi));
      t.data_as<float>()[p * rd + rd / 2 + i] = static_cast<float>(std::sin(phi));
    }
  return t;
}
/// The cast's definition, by the scalar conversion.
uint8_t cast(DType t, float x) {
  if (std::isnan(x)) return 0x7f;
  const float most = t == DType::kF8E4M3 ? 448.0f : 57344.0f, y = std::fmin(std::fmax(x, -most), most);
  return t == DType::kF8E4M3 ? e4m3_t(y).bits : e5m2_t(y).bits;
}

struct Inputs {
  Tensor q = random_tensor<bf16_t>({4, 3, 64}, 1), k = random_tensor<bf16_t>({4, 64}, 2),
         qn = random_tensor<bf16_t>({4, 3, 128}, 3, 300), kn = random_tensor<bf16_t>({4, 128}, 4, 300),
         cs = table(50, 64), pos = ints<int32_t>({0, 49, 7, 7});
  RopeQuantizeFp8 args() {
    return {.q_rope = q, .k_rope = k, .q_nope = qn, .k_nope = kn, .cos_sin_cache = cs, .pos_ids = pos};
  }
};

TEST(RopeQuantize, PartsWithoutRotationAreCastExactly) {
  Inputs in;
  for (DType t : {DType::kF8E4M3, DType::kF8E5M2}) {
    RopeQuantizeFp8 a = in.args();
    a.quantize_dtype = t;
    a.quant_scale_q = 1.7, a.quant_scale_kv = 300;  // K saturates
    const RopeQuantizeFp8Result r = rope_quantize_fp8(a);
    int64_t largest = 0;
    for (int64_t i = 0; i < in.qn.numel(); ++i)
      ASSERT_EQ(r.q_nope.data_as<uint8_t>()[i], cast(t, static_cast<float>(in.qn.data_as<bf16_t>()[i]) * 1.7f)) << i;
    for (int64_t i = 0; i < in.kn.numel(); ++i) {
      ASSERT_EQ(r.k_nope.data_as<uint8_t>()[i], cast(t, static_cast<float>(in.kn.data_as<bf16_t>()[i]) * 300.0f)) << i;
      largest += (r.k_nope.data_as<uint8_t>()[i] & 0x7f) == (t == DType::kF8E4M3 ? 0x7e : 0x7b);
    }
    EXPECT_GT(largest, 10) << "values that saturate were meant to be among them";
  }
}
TEST(RopeQuantize, RotatesAsThePlainOperatorDoes) {
  Inputs in;
  for (bool neox : {true, false}) {
    RopeQuantizeFp8 a = in.args();
    a.is_neox = neox;
    a.quant_scale_q = 16;
    const RopeQuantizeFp8Result r = mla_rope_quantize_fp8(a);
    const int64_t shape[] = {4, 192}, stride[] = {192, 1};
    const TensorView flat(in.q.data(), DType::kBF16, shape, stride);
    std::vector<float> wide;
    for (int64_t i = 0; i < in.q.numel(); ++i) wide.push_back(static_cast<float>(in.q.data_as<bf16_t>()[i]));
    const Tensor f32 = Tensor::copy_of(std::span<const float>(wide), {4, 192});
    const auto [q, k] = apply_rope_with_cos_sin_cache(
        {.positions = in.pos, .query = f32, .key = f32, .head_size = 64, .cos_sin_cache = in.cs, .is_neox = neox});
    int64_t different = 0;
    for (int64_t i = 0; i < q.numel(); ++i)
      different += r.q_rope.data_as<uint8_t>()[i] != cast(DType::kF8E4M3, q.data_as<float>()[i] * 16.0f);
    EXPECT_EQ(different, 0) << "the same f32 operations, then the cast";
  }
}
// flashinfer#1023, #4979: scales that were accepted and ignored.
TEST(RopeQuantize, ScalesChangeTheOutput) {
  Inputs in;
  const RopeQuantizeFp8Result one = rope_quantize_fp8(in.args());
  RopeQuantizeFp8 a = in.args();
  a.quant_scale_q = 2;
  const RopeQuantizeFp8Result two = rope_quantize_fp8(a);
  const auto value = [](const Tensor& t, int64_t i) { return static_cast<float>(t.data_as<e4m3_t>()[i]); };
  for (int64_t i = 0; i < one.q_rope.numel(); ++i)
    if (std::fabs(value(one.q_rope, i)) > 0.02f) {
      ASSERT_EQ(value(two.q_rope, i), 2 * value(one.q_rope, i)) << i;
    }
  EXPECT_EQ(std::memcmp(one.k_rope.data(), two.k_rope.data(), static_cast<size_t>(one.k_rope.nbytes())), 0)
      << "the other scale";
}
TEST(RopeQuantize, AbsentPartsGiveRowsOfNothing) {
  Inputs in;
  RopeQuantizeFp8 a = in.args();
  a.q_nope.reset(), a.k_nope.reset();
  const RopeQuantizeFp8Result r = rope_quantize_fp8(a);
  EXPECT_EQ(r.q_nope.size(-1), 0);
  EXPECT_EQ(r.k_nope.size(-1), 0);
  EXPECT_EQ(r.k_nope.size(0), 4);
  EXPECT_EQ(r.q_rope.numel(), in.q.numel());
}
TEST(RopeQuantize, TheFormatFollowsTheGivenMemory) {
  Inputs in;
  const Tensor out = Tensor::zeros({4, 64}, DType::kF8E5M2);
  RopeQuantizeFp8 a = in.args();
  a.k_rope_out = out;
  const RopeQuantizeFp8Result r = rope_quantize_fp8(a);
  EXPECT_EQ(r.q_rope.dtype(), DType::kF8E5M2);
  EXPECT_EQ(r.k_rope.data(), out.data());
}

struct Paged : Inputs {
  Tensor ckv = Tensor::zeros({2, 4, 128}, DType::kF8E4M3), kpe = Tensor::zeros({2, 4, 64}, DType::kF8E4M3);
  Tensor indices = ints<int32_t>({1}), indptr = ints<int32_t>({0, 1}), batch = ints<int32_t>({0, 0, -1, 0}),
         at = ints<int32_t>({0, 1, 77, 3});
  RopeQuantizeFp8Append append() {
    return {.q_rope = q,
            .k_rope = k,
            .q_nope = qn,
            .k_nope = kn,
            .cos_sin_cache = cs,
            .pos_ids = pos,
            .paged_kv_cache = op::PagedKv(ckv, kpe),
            .kv_indices = indices,
            .kv_indptr = indptr,
            .batch_indices = batch,
            .positions = at,
            .page_size = 4};
  }
};
TEST(RopeQuantize, AppendWritesWhatThePlainFormReturns) {
  Paged p;
  p.pos = ints<int32_t>({0, 49, -1000, 7});  // the padding's id is not read
  const auto [q, qn] = rope_quantize_fp8_append_paged_kv_cache(p.append());
  p.pos = ints<int32_t>({0, 49, 7, 7});
  const RopeQuantizeFp8Result r = rope_quantize_fp8(p.args());
  for (int64_t t : {0, 1, 3}) {
    const int64_t entry = t;  // positions 0, 1, 3 of page 1
    EXPECT_EQ(std::memcmp(p.kpe.data_as<uint8_t>() + (4 + entry) * 64, r.k_rope.data_as<uint8_t>() + t * 64, 64), 0)
        << t;
    EXPECT_EQ(std::memcmp(p.ckv.data_as<uint8_t>() + (4 + entry) * 128, r.k_nope.data_as<uint8_t>() + t * 128, 128), 0)
        << t;
    EXPECT_EQ(std::memcmp(q.data_as<uint8_t>() + t * 192, r.q_rope.data_as<uint8_t>() + t * 192, 192), 0) << t;
    EXPECT_EQ(std::memcmp(qn.data_as<uint8_t>() + t * 384, r.q_nope.data_as<uint8_t>() + t * 384, 384), 0) << t;
  }
  const std::vector<uint8_t> zero(384, 0);
  EXPECT_EQ(std::memcmp(q.data_as<uint8_t>() + 2 * 192, zero.data(), 192), 0) << "padding";
  EXPECT_EQ(std::memcmp(p.kpe.data_as<uint8_t>() + 6 * 64, zero.data(), 64), 0)
      << "an entry that nothing was appended to";
  EXPECT_EQ(std::memcmp(p.kpe.data(), zero.data(), 4 * 64), 0) << "the other page";
}

TEST(RopeQuantize, ErrorsNameTheArgument) {
  Paged p;
  const auto plain = [&](const std::function<void(RopeQuantizeFp8&)>& change) {
    RopeQuantizeFp8 a = p.args();
    change(a);
    return message_of([&] { rope_quantize_fp8(a); });
  };
  const Tensor half_table = Tensor::zeros({50, 64}, DType::kBF16), narrow = table(50, 62),
               far = ints<int32_t>({0, 50, 7, 7});
  // vllm PR#21126, flashinfer#5025: 16-bit tables of cos and sin.
  EXPECT_TRUE(holds(plain([&](auto& a) { a.cos_sin_cache = half_table; }),
                    "cos_sin_cache.dtype is bfloat16, but must be float32"));
  EXPECT_TRUE(holds(plain([&](auto& a) { a.cos_sin_cache = narrow; }), "cos_sin_cache.shape[1] is 62, but rd is 64"));
  EXPECT_TRUE(holds(plain([&](auto& a) { a.pos_ids = far; }), "pos_ids[1] is 50"));
  EXPECT_TRUE(holds(plain([&](auto& a) { a.quantize_dtype = DType::kF16; }), "quantize_dtype is float16"));
  EXPECT_TRUE(holds(plain([&](auto& a) { a.quant_scale_q = INFINITY; }), "quant_scale_q is inf"));
  EXPECT_TRUE(holds(plain([&](auto& a) { a.k_nope = p.qn; }), "k_nope has rank 3, but k_rope has rank 2"));
  const auto append = [&](const std::function<void(RopeQuantizeFp8Append&)>& change) {
    RopeQuantizeFp8Append a = p.append();
    change(a);
    return message_of([&] { rope_quantize_fp8_append_paged_kv_cache(a); });
  };
  const Tensor v = random_tensor<bf16_t>({4, 1, 64}, 9), e5 = Tensor::zeros({2, 4, 128}, DType::kF8E5M2),
               slots = ints<int32_t>({0, 4, 0, 0});
  EXPECT_EQ(append([](auto&) {}), "no error");
  EXPECT_TRUE(
      holds(append([&](auto& a) { a.v = v; }), "ValueError: rope_quantize_fp8_append_paged_kv_cache: v is given"));
  EXPECT_TRUE(holds(append([&](auto& a) { a.page_size = 16; }), "page_size is 16, but paged_kv_cache has pages of 4"));
  EXPECT_TRUE(holds(append([&](auto& a) { a.quantize_dtype = DType::kF8E5M2; }),
                    "paged_kv_cache[0].dtype is float8_e4m3fn, but quantize_dtype"));
  EXPECT_TRUE(
      holds(append([&](auto& a) { a.positions = slots; }), "positions[1] is 4, but request 0 has 1 pages of 4 tokens"));
  EXPECT_TRUE(holds(append([&](auto& a) { a.pos_ids = far; }), "pos_ids[1] is 50"));
  EXPECT_TRUE(
      holds(append([&](auto& a) { a.k_nope.reset(); }), "paged_kv_cache[0] has rows of 128 elements, but must have 0"));
}

}  // namespace
}  // namespace flashinfer
