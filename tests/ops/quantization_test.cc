// SPDX-License-Identifier: Apache-2.0
// Block formats by numbers written out, every layout of scales back to the same values, and what is an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include "flashinfer/ops/norm/op.h"
#include "flashinfer/ops/quantization/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

template <class T>
TensorView of(const std::vector<float>& v, std::initializer_list<int64_t> shape) {
  std::vector<T> x;
  for (float f : v) x.push_back(static_cast<T>(f));
  return held(Tensor::copy_of(std::span<const T>(x), shape));
}
TensorView one(float v) { return of<float>({v}, {1}); }
/// Values of many magnitudes.
TensorView mixed(int64_t m, int64_t k) {
  std::vector<float> v;
  for (int64_t i = 0; i < m * k; ++i)
    v.push_back(std::ldexp(static_cast<float>((i * 2654435761u) % 2047) - 1023.0f, static_cast<int>(i / 16 % 9) - 12));
  return of<bf16_t>(v, {m, k});
}
std::vector<int> bytes(const Tensor& t) {
  const auto* p = t.data_as<const uint8_t>();
  return {p, p + t.nbytes()};
}

TEST(Quantization, AnNvfp4BlockWrittenOut) {
  // amax 12, gs 1: scale 2, half of x is rounded: ties to even, saturation's neighbour, small values of either sign.
  const std::vector<float> x = {12, -12, 0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10, -0.5f, -1.5f, 0.51f, 9.9f, 0.1f, -0.1f, 11};
  const auto [q, sf] =
      fp4_quantize({.input = of<bf16_t>(x, {1, 16}), .global_scale = one(1), .is_sf_swizzled_layout = false});
  EXPECT_EQ(bytes(sf), std::vector<int>{0x40});
  EXPECT_EQ(bytes(q), (std::vector<int>{0xf7, 0x20, 0x42, 0x64, 0x86, 0x1a, 0x06, 0x78}));
  // gs 2 doubles the scale and its decoding halves it; an inversed 0.5 is the same.
  const auto [q2, sf2] = fp4_quantize({.input = of<bf16_t>(x, {1, 16}),
                                       .global_scale = one(0.5f),
                                       .is_sf_swizzled_layout = false,
                                       .is_global_scale_inversed = true});
  EXPECT_EQ(bytes(sf2), std::vector<int>{0x48});
  EXPECT_EQ(bytes(q2), bytes(q));
}

/// Magnitudes at, below and above all middles of neighbouring codes, for scales of every mantissa and many exponents.
template <class T>
void check_steps(float global, int lowest) {
  constexpr float kMiddle[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
  std::vector<T> x;
  for (int s = 0; s < 64; ++s)
    for (int side = -2; side <= 2; ++side) {
      const float scale = std::ldexp(1.0f + static_cast<float>(s % 8) / 8, lowest + s / 8) / global;
      x.push_back(T(6 * scale));
      for (int i = 0; i < 15; ++i) {
        T v(kMiddle[i % 7] * scale);
        v.bits = static_cast<uint16_t>(v.bits + side);
        if (i >= 7) v.bits ^= 0x8000;
        x.push_back(i == 14 ? T(0.01f * scale) : v);
      }
    }
  const int64_t n = static_cast<int64_t>(x.size());
  const TensorView a = held(Tensor::copy_of(std::span<const T>(x), {n / 320, 320}));
  const op::Results r = nvfp4_quantize({.a = a, .a_global_sf = one(global), .sfLayout = 2});
  for (int64_t i = 0; i < n; ++i) {
    e4m3_t scale;
    scale.bits = r[1].template data_as<uint8_t>()[i / 16];
    const float factor = 1.0f / (static_cast<float>(scale) * (1.0f / global)),
                p = static_cast<float>(x[static_cast<size_t>(i)]) * factor;
    int want = 0;
    while (want < 7 && (want % 2 ? std::fabs(p) >= kMiddle[want] : std::fabs(p) > kMiddle[want])) ++want;
    if (std::signbit(p)) want |= 8;
    const int byte = r[0].template data_as<uint8_t>()[i / 2], code = i % 2 ? byte >> 4 : byte & 15;
    ASSERT_EQ(code, want) << p << " element " << i << " global " << global;
  }
}
TEST(Quantization, CodesChangeWhereTheRoundedProductPassesAMiddle) {
  for (float global : {1.0f, 600.0f, 0.37f, 1234.567f, 3e9f}) {
    check_steps<bf16_t>(global, -6);
    if (global < 1e4f) check_steps<f16_t>(global, -3);
  }
}

/// All patterns of 16 bits, in rows of 512, each code against the rounded quotient; NaN is 0x7f, what is too large
/// saturates.
template <class T>
TensorView patterns() {
  std::vector<T> x(65536);
  for (size_t i = 0; i < x.size(); ++i)
    x[i].bits = static_cast<uint16_t>(i * 40503u);  // neighbours differ in magnitude
  return held(Tensor::copy_of(std::span<const T>(x), {128, 512}));
}
template <class T>
void check_e4m3(const TensorView& x, const Tensor& q, const std::function<float(int64_t)>& scale) {
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float v = static_cast<float>(x.data_as<T>()[i]) / scale(i);
    const int want = std::isnan(v) ? 0x7f : e4m3_t(std::min(448.0f, std::max(-448.0f, v))).bits;
    ASSERT_EQ(q.data_as<uint8_t>()[i], want) << v << " element " << i << " bits " << x.data_as<T>()[i].bits;
  }
}
template <class T>
void check_e4m3_of_all() {
  const TensorView x = patterns<T>();
  for (float scale : {1.0f, 0.37f, 3e-3f, 1000.0f, 1e-20f, 1e25f}) {
    const auto [q, s] = per_tensor_quant_fp8({.x = x, .scale = one(scale)});
    check_e4m3<T>(x, q, [&](int64_t) { return scale; });
  }
  std::vector<T> tame(static_cast<size_t>(x.numel()));  // groups without NaN and infinities
  for (size_t i = 0; i < tame.size(); ++i) {
    tame[i] = x.data_as<T>()[i];
    if (!std::isfinite(static_cast<float>(tame[i]))) tame[i] = T(0.0f);
    if (i / 512 % 2)
      tame[i] = T(std::remainder(static_cast<float>(tame[i]), 1000.0f));  // rows of a scale that reaches small values
  }
  const TensorView y = held(Tensor::copy_of(std::span<const T>(tame), {128, 512}));
  for (int group : {128, 64, 32}) {
    const auto [q, s] = per_token_group_quant_8bit({.x = y, .group_size = group});
    check_e4m3<T>(y, q, [&](int64_t i) { return s.template data_as<float>()[i / group]; });
  }
  const auto [q, s] = mxfp8_quantize({.input = y, .is_sf_swizzled_layout = false});
  check_e4m3<T>(y, q, [&](int64_t i) { return std::ldexp(1.0f, s.template data_as<uint8_t>()[i / 32] - 127); });
}
TEST(Quantization, EveryPatternToTheNearestE4m3) {
  check_e4m3_of_all<bf16_t>();
  check_e4m3_of_all<f16_t>();
}

TEST(Quantization, MxScalesRoundUp) {
  // 448 and 6 are the largest values of the formats: their blocks have scale 1, the next larger numbers scale 2.
  std::vector<float> v(128, 0.0f);
  v[0] = 448, v[32] = -450, v[64] = 6, v[96] = 6.03125f;
  const auto [q8, sf8] = mxfp8_quantize({.input = of<bf16_t>(v, {1, 128}), .is_sf_swizzled_layout = false});
  EXPECT_EQ(bytes(sf8), (std::vector<int>{127, 128, 121, 121}));
  EXPECT_EQ(bytes(q8)[0], 0x7e);          // 448
  EXPECT_EQ(bytes(q8)[32], 0x80 | 0x76);  // -225: the nearest is -224
  const auto [q4, sf4] = mxfp4_quantize({.a = of<bf16_t>(v, {1, 128}), .sfLayout = 2});
  EXPECT_EQ(bytes(sf4), (std::vector<int>{134, 134, 127, 128}));
  EXPECT_EQ(bytes(q4)[32], 7);  // 6
  EXPECT_EQ(bytes(q4)[48], 5);  // 3.015625
}

TEST(Quantization, GlobalScalesMakeTheLargestMagnitudeTheLargestElement) {
  const auto scale = [](const MakeNvfp4GlobalScale& a) { return make_nvfp4_global_scale(a).data_as<float>()[0]; };
  const TensorView x = of<bf16_t>({1, -3, 2, 0}, {2, 2});
  EXPECT_EQ(scale({.input_tensor = x}), 896);
  EXPECT_EQ(scale({.input_tensor = of<float>({0, 0}, {2})}), 3.40282347e+38f);
  EXPECT_EQ(scale({.input_tensor = x, .global_scale = 2.5}), 2.5f);
  const float token = scale({.input_tensor = x, .per_token_activation = true});
  EXPECT_EQ(token, 1 / 2688.0f);
  nvfp4_quantize({.a = mixed(4, 64), .a_global_sf = one(token), .per_token_activation = true});  // takes it
  // 4 rows of 5000 in several tasks, the largest in the last.
  std::vector<float> many(20000, 0.5f);
  many.back() = -7;
  EXPECT_EQ(scale({.input_tensor = of<bf16_t>(many, {4, 5000})}), 384);
}

TEST(Quantization, SubnormalQuotientsGiveByteZero) {
  std::vector<float> v(32, 448 * 0x1p-127f);
  EXPECT_EQ(bytes(mxfp8_quantize({.input = of<float>(v, {1, 32}), .is_sf_swizzled_layout = false}).second),
            std::vector<int>{0});
  v[3] = 449 * 0x1p-127f;
  EXPECT_EQ(bytes(mxfp8_quantize({.input = of<float>(v, {1, 32}), .is_sf_swizzled_layout = false}).second),
            std::vector<int>{1});
}

TEST(Quantization, EveryLayoutComesBackTheSame) {
  const TensorView x = mixed(131, 208);
  std::vector<float> first;
  for (int layout = 0; layout < 3; ++layout) {
    const op::Results r = nvfp4_quantize({.a = x, .a_global_sf = one(40), .sfLayout = layout});
    const Tensor back = e2m1_and_ufp8sf_scale_to_float({.e2m1_tensor = r[0],
                                                        .ufp8_scale_tensor = r[1],
                                                        .global_scale_tensor = one(1.0f / 40),
                                                        .is_sf_swizzled_layout = layout != 2,
                                                        .is_sf_8x4_layout = layout == 1});
    const std::vector<float> values(back.data_as<float>(), back.data_as<float>() + back.numel());
    if (layout == 0) first = values;
    EXPECT_EQ(values, first) << layout;
    for (size_t b = 0; b < values.size() / 16; ++b) {  // a step of e2m1 at most, of the block's largest value
      float amax = 0;
      const auto at = [&](size_t i) { return static_cast<float>(x.data_as<bf16_t>()[b * 16 + i]); };
      for (size_t i = 0; i < 16; ++i) amax = std::max(amax, std::fabs(at(i)));
      for (size_t i = 0; i < 16; ++i) ASSERT_NEAR(values[b * 16 + i], at(i), amax * 0.2f + 1e-4f) << b << " " << i;
    }
    const auto [q, sf] = mxfp8_quantize({.input = x.slice(1, 0, 192), .sf_swizzle_layout = layout});
    const Tensor back8 = mxfp8_dequantize_host({.input = q, .scale_tensor = sf, .sf_swizzle_layout = layout});
    for (int64_t i = 0; i < back8.numel(); ++i) {
      const float want = static_cast<float>(x.data_as<bf16_t>()[i / 192 * 208 + i % 192]);
      ASSERT_NEAR(back8.data_as<float>()[i], want, std::fabs(want) / 16 + 1e-2f) << i;
    }
  }
}

TEST(Quantization, InterleavedLinearScalesAreTheTiledOnes) {
  const TensorView x = mixed(131, 208);
  const auto [q, linear] = fp4_quantize({.input = x, .global_scale = one(40), .is_sf_swizzled_layout = false});
  const auto [q2, tiles] = fp4_quantize({.input = x, .global_scale = one(40)});
  EXPECT_EQ(bytes(nvfp4_block_scale_interleave({.unswizzled_sf = linear})), bytes(tiles));
}

TEST(Quantization, ShuffledWeightsAreShuffledThenInterleaved) {
  const TensorView x = mixed(128, 64);
  const op::Results plain = nvfp4_quantize({.a = x, .a_global_sf = one(40), .sfLayout = 2});
  const op::Results shuffled = nvfp4_quantize({.a = x, .a_global_sf = one(40), .do_shuffle = true});
  EXPECT_EQ(bytes(shuffle_matrix_a({.input_tensor = plain[0], .epilogue_tile_m = 128})), bytes(shuffled[0]));
  EXPECT_EQ(bytes(shuffle_matrix_sf_a({.input_tensor = plain[1], .epilogue_tile_m = 128})), bytes(shuffled[1]));
}

TEST(Quantization, ATokensScaleIsItsLargestValue) {
  const TensorView x = mixed(3, 64);
  const op::Results r = nvfp4_quantize({.a = x, .a_global_sf = 1.0 / 2688, .per_token_activation = true});
  ASSERT_EQ(r.size(), 3);
  for (int64_t row = 0; row < 3; ++row) {
    float amax = 0;
    for (int64_t i = 0; i < 64; ++i)
      amax = std::max(amax, std::fabs(static_cast<float>(x.data_as<bf16_t>()[row * 64 + i])));
    EXPECT_EQ(r[2].data_as<float>()[row], amax * static_cast<float>(1.0 / 2688));
  }
}

TEST(Quantization, NormsRoundTheirQuotientsOnce) {
  // The comparison with the reference allows a step of e4m3; here every byte follows from the norm's own result.
  const TensorView x = mixed(3, 256), residual = held(Tensor::zeros({3, 256}, DType::kBF16)),
                   weight = of<bf16_t>(std::vector<float>(256, 1.5f), {256});
  const TensorView out = held(Tensor::zeros({3, 256}, DType::kF8E4M3)),
                   scales = held(Tensor::zeros({2, 4}, DType::kF32)),
                   normed = held(Tensor::zeros({3, 256}, DType::kBF16));
  fused_add_rmsnorm_fp8_block_quant(
      {.out = out, .block_scale = scales, .normed_out = normed, .input = x, .residual = residual, .weight = weight});
  const auto saturated = [](float v) { return e4m3_t(std::min(448.0f, std::max(-448.0f, v))).bits; };
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t b = 0; b < 2; ++b) {
      const bf16_t* y = normed.data_as<bf16_t>() + r * 256 + b * 128;
      float amax = 1e-4f;
      for (int i = 0; i < 128; ++i) amax = std::max(amax, std::fabs(static_cast<float>(y[i])));
      EXPECT_EQ(scales.data_as<float>()[b * 4 + r], amax / 448);
      for (int i = 0; i < 128; ++i)
        ASSERT_EQ(out.data_as<uint8_t>()[r * 256 + b * 128 + i], saturated(static_cast<float>(y[i]) * (448.0f / amax)))
            << r << " " << b << " " << i;
    }
}

TEST(Quantization, OutputsForGroupedProductsAreViewsWithTheExpertLast) {
  const TensorView a = held(Tensor::zeros({2, 5, 32}, DType::kBF16)), mask = held(Tensor::zeros({2}, DType::kI32));
  const auto [q, sf] = scaled_fp4_grouped_quantize({.a = a, .mask = mask, .a_global_sf = one(1)});
  EXPECT_EQ(std::vector<int64_t>(q.view().strides().begin(), q.view().strides().end()),
            (std::vector<int64_t>{16, 1, 80}));
  EXPECT_EQ(std::vector<int64_t>(sf.shape().begin(), sf.shape().end()), (std::vector<int64_t>{32, 4, 1, 4, 1, 2}));
  EXPECT_EQ(std::vector<int64_t>(sf.view().strides().begin(), sf.view().strides().end()),
            (std::vector<int64_t>{16, 4, 512, 1, 512, 512}));
  const auto [x_q, x_s] = per_token_group_quant_8bit(
      {.x = mixed(5, 256), .group_size = 128, .column_major_scales = true, .scale_tma_aligned = true});
  EXPECT_EQ(x_s.view().stride(0), 1);
  EXPECT_EQ(x_s.view().stride(1), 8);
}

/// The first byte of codes and of scales of one row under a recipe, global scale 448.
std::pair<int, int> first_bytes(const TensorView& x, const op::Value& recipe) {
  const auto [q, sf] = fp4_quantize({.input = x, .global_scale = one(448), .nvfp4_4over6 = recipe});
  return {bytes(q)[0], bytes(sf)[0]};
}
TEST(Quantization, ABlockTakesTheBetterOfTwoScales) {
  // 4 and 3 are codes under the scale amax / 4; under amax / 6 the threes are 4.5 and lose a third.
  std::vector<float> values(16, 3.0f);
  values[0] = 4;
  const TensorView x = of<bf16_t>(values, {1, 16}), y = of<bf16_t>(std::vector<float>(16, 6.0f), {1, 16});
  using Bytes = std::pair<int, int>;
  EXPECT_EQ(first_bytes(x, 1), Bytes(0x56, 0x7e));   // scale 448
  EXPECT_EQ(first_bytes(x, {}), Bytes(0x67, 0x79));  // 288, next to 448 * 4 / 6
  EXPECT_EQ(first_bytes(y, 1),
            Bytes(0x77, 0x7e));  // both scales saturate at 448 and have no error: that of six is kept
  for (const int fast : {0, 16}) EXPECT_EQ(first_bytes(x, 5 + fast), Bytes(0x56, 0x7e));
  op::DictValue members;
  members.items = {{op::Value("e4m3_max"), op::Value(256)},
                   {op::Value("err_mode"), op::EnumValue{"NVFP44Over6ErrMode.MSE", "1"}}};
  EXPECT_EQ(first_bytes(x, members), Bytes(0x56, 0x7e));
  setenv("FLASHINFER_NVFP4_4OVER6", "1", 1);  // read at each call that is to read it
  EXPECT_EQ(first_bytes(x, -1), Bytes(0x56, 0x7e));
  EXPECT_EQ(first_bytes(x, {}), Bytes(0x67, 0x79));
  setenv("FLASHINFER_NVFP4_4OVER6_ERR_MODE", "MAX", 1);
  EXPECT_REFUSED("the error mode of NVFP4 4over6 is 'MAX', but must be MAE or MSE", first_bytes(x, -1));
  unsetenv("FLASHINFER_NVFP4_4OVER6"), unsetenv("FLASHINFER_NVFP4_4OVER6_ERR_MODE");
  EXPECT_EQ(first_bytes(x, -1), Bytes(0x67, 0x79));
}

TEST(Quantization, Errors) {
  const TensorView x = mixed(4, 64), short_rows = mixed(4, 24);
  EXPECT_REFUSED("fp4_quantize: the last dimension is 24, but must be a multiple of 16",
                 fp4_quantize({.input = short_rows}));
  EXPECT_REFUSED("NotImplementedError: fp4_quantize: sf_vec_size is 24", fp4_quantize({.input = x, .sf_vec_size = 24}));
  EXPECT_REFUSED("fp4_quantize: global_scale is 0, but must be a positive normal f32 number",
                 fp4_quantize({.input = x, .global_scale = one(0)}));
  EXPECT_REFUSED("is_sf_8x4_layout is True, but is_sf_swizzled_layout is False",
                 fp4_quantize({.input = x, .is_sf_swizzled_layout = false, .is_sf_8x4_layout = true}));
  EXPECT_REFUSED("nvfp4_4over6 is 32, but a recipe as a number is -1", fp4_quantize({.input = x, .nvfp4_4over6 = 32}));
  EXPECT_REFUSED("nvfp4_4over6 is 9, but its error mode", fp4_quantize({.input = x, .nvfp4_4over6 = 9}));
  EXPECT_REFUSED("TypeError: fp4_quantize: nvfp4_4over6 must be an NVFP44Over6Config or None (or omitted); got str",
                 fp4_quantize({.input = x, .nvfp4_4over6 = "MAE"}));
  EXPECT_REFUSED("nvfp4_4over6 is on, but MXFP4 (ue8m0 scales or blocks of 32) has no recipe 4 over 6",
                 fp4_quantize({.input = x, .sf_vec_size = 32, .sf_use_ue8m0 = true, .nvfp4_4over6 = 1}));
  EXPECT_REFUSED(
      "nvfp4_4over6 is on, but float8_e4m3fn input has no recipe 4 over 6",
      nvfp4_quantize({.a = held(Tensor::zeros({4, 64}, DType::kF8E4M3)), .a_global_sf = one(1), .nvfp4_4over6 = 1}));
  EXPECT_REFUSED(
      "with per_token_activation must be 1 / (256 * 6)",
      nvfp4_quantize({.a = x, .a_global_sf = one(1.0f / 2688), .per_token_activation = true, .nvfp4_4over6 = 3}));
  EXPECT_REFUSED("nvfp4_quantize: sfLayout is 3, but must be",
                 nvfp4_quantize({.a = x, .a_global_sf = one(1), .sfLayout = 3}));
  EXPECT_REFUSED("sfLayout is 2, but scales of shuffled weights (do_shuffle) must be in 128x4 (0)",
                 nvfp4_quantize({.a = x, .a_global_sf = one(1), .sfLayout = 2, .do_shuffle = true}));
  EXPECT_REFUSED("do_shuffle needs a multiple of 128 rows, but there are 4",
                 nvfp4_quantize({.a = x, .a_global_sf = one(1), .do_shuffle = true}));
  EXPECT_REFUSED("a_global_sf is 1, but with per_token_activation must be 1 / (448 * 6)",
                 nvfp4_quantize({.a = x, .a_global_sf = one(1), .per_token_activation = true}));
  EXPECT_REFUSED("make_nvfp4_global_scale: global_scale is 0, but must be a positive normal f32 number",
                 make_nvfp4_global_scale({.input_tensor = x, .global_scale = 0.0}));
  EXPECT_REFUSED("global_scale is 2, but with per_token_activation it is 1 / (448 * 6)",
                 make_nvfp4_global_scale({.input_tensor = x, .per_token_activation = true, .global_scale = 2.0}));
  EXPECT_REFUSED("input_tensor is bfloat16[0, 16], but must have at least one dimension and one element",
                 make_nvfp4_global_scale({.input_tensor = held(Tensor::zeros({0, 16}, DType::kBF16))}));
  EXPECT_REFUSED("alignment is 48, but must be a multiple of 32", mxfp8_quantize({.input = x, .alignment = 48}));
  const TensorView codes = held(Tensor::zeros({4, 32}, DType::kU8)), scales = held(Tensor::zeros({4, 4}, DType::kU8));
  EXPECT_REFUSED("ufp8_scale_tensor has 16 bytes, but 4 rows of 64 elements need 512",
                 e2m1_and_ufp8sf_scale_to_float({.e2m1_tensor = codes, .ufp8_scale_tensor = scales}));
  EXPECT_REFUSED("input_tensor.shape[0] is 4, but must be a multiple of 32",
                 shuffle_matrix_a({.input_tensor = codes, .epilogue_tile_m = 128}));
  const TensorView batch = held(Tensor::zeros({1, 4, 32}, DType::kBF16)),
                   mask = held(Tensor::copy_of(std::span<const int32_t>(std::vector<int32_t>{5}), {1}));
  EXPECT_REFUSED("mask[0] is 5, but must be in [0, 5)",
                 scaled_fp4_grouped_quantize({.a = batch, .mask = mask, .a_global_sf = one(1)}));
  EXPECT_REFUSED("group_size is 48", per_token_group_quant_8bit({.x = x, .group_size = 48}));
  EXPECT_REFUSED("scale_tma_aligned is True, but column_major_scales is False",
                 per_token_group_quant_8bit({.x = x, .group_size = 32, .scale_tma_aligned = true}));
  const TensorView out = held(Tensor::zeros({4, 64}, DType::kF8E4M3)), weight = held(Tensor::zeros({64}, DType::kBF16)),
                   two = of<float>({1, 2}, {2});
  EXPECT_REFUSED("ValueError: rmsnorm_quant: scale must be a scalar tensor",
                 rmsnorm_quant({.out = out, .input = x, .weight = weight, .scale = two}));
  const TensorView f32 = of<float>(std::vector<float>(64, 1.0f), {64}),
                   halves = of<f16_t>(std::vector<float>(256, 1.0f), {4, 64});
  EXPECT_REFUSED("RuntimeError: layernorm_quant: input must be bfloat16",
                 layernorm_quant({.out = out, .input = halves, .gemma = f32, .beta = f32, .scale = one(1)}));
}

}  // namespace
}  // namespace flashinfer
