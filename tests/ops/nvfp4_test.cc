// SPDX-License-Identifier: Apache-2.0
// NVFP4 by numbers written out, to codes and back, the interleaved scales of V, and what is an error.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "flashinfer/ops/common/nvfp4_ref.h"
#include "flashinfer/ops/page/op.h"
#include "flashinfer/ops/quantization/op.h"
#include "tests/ops/data.h"
#include "tests/ops/errors.h"

namespace flashinfer {
namespace {

template <class T>
Tensor of(const std::vector<T>& v, std::initializer_list<int64_t> shape) {
  return Tensor::copy_of(std::span<const T>(v), shape);
}
/// Keeps a tensor to the end: arguments are views.
TensorView scale(float g) { return held(of<float>({g}, {1})); }
TensorView halves(const std::vector<float>& v, std::initializer_list<int64_t> shape) {
  std::vector<bf16_t> x;
  for (float f : v) x.emplace_back(f);
  return held(of(x, shape));
}

TEST(Nvfp4, ABlockWrittenOut) {
  // amax 12, g 1: scale 2 (0x40). Twice the ties of the format, then saturation's neighbour, a tiny value of either
  // sign and -0.
  const std::vector<float> x = {12, -12,   0.5f,  1.5f,  2.5f, 3.5f, 5,     7,
                                10, -0.5f, -1.5f, 0.51f, 9.9f, 0.1f, -0.1f, -0.0f};
  const auto [data, sf] = nvfp4_kv_quantize({.input = halves(x, {1, 16}), .global_scale = scale(1)});
  EXPECT_EQ(sf.data_as<uint8_t>()[0], 0x40);
  const int codes[16] = {7, 15, 0, 2, 2, 4, 4, 6, 6, 8, 10, 1, 6, 0, 8, 8};
  for (int i = 0; i < 16; ++i) {
    const uint8_t byte = data.data_as<uint8_t>()[i / 2];
    EXPECT_EQ(i % 2 ? byte >> 4 : byte & 15, codes[i]) << i << ": " << x[static_cast<size_t>(i)];
  }
  const Tensor back = nvfp4_kv_dequantize(
      {.fp4_data = data, .block_scales = sf, .global_scale = scale(3), .output_dtype = DType::kF32});
  const float values[16] = {36, -36, 0, 6, 6, 12, 12, 24, 24, -0.0f, -6, 3, 24, 0, -0.0f, -0.0f};
  for (int i = 0; i < 16; ++i) EXPECT_EQ(back.data_as<float>()[i], values[i]) << i;
}

/// Scale and first code of a block that holds `x` and zeros.
std::pair<int, int> quantized(float x, float g) {
  std::vector<float> v(16, 0.0f);
  v[0] = x;
  const auto [data, sf] = nvfp4_kv_quantize({.input = halves(v, {1, 16}), .global_scale = scale(g)});
  return {sf.data_as<uint8_t>()[0], data.data_as<uint8_t>()[0] & 15};
}
TEST(Nvfp4, ScalesAtTheEnds) {
  EXPECT_EQ(quantized(0.0f, 1), std::pair(0, 0));
  EXPECT_EQ(quantized(-0.0f, 1), std::pair(0, 0)) << "a block of zeros has codes 0";
  EXPECT_EQ(quantized(0x1p-10f * 6, 1), std::pair(0, 0)) << "half the smallest scale is a tie, and goes to 0";
  EXPECT_EQ(quantized(0x1.02p-10f * 6, 1), std::pair(1, 5)) << "just above it goes up; the code is that of 3.02 scales";
  EXPECT_EQ(quantized(0x1p-9f * 6, 1), std::pair(1, 7));
  EXPECT_EQ(quantized(0x1p-9f * 7 * 6, 1), std::pair(7, 7)) << "the largest subnormal scale";
  EXPECT_EQ(quantized(448 * 6, 1), std::pair(0x7e, 7));
  EXPECT_EQ(quantized(1e30f, 1), std::pair(0x7e, 7)) << "scale and code saturate";
  EXPECT_EQ(quantized(-INFINITY, 1), std::pair(0x7e, 15));
  EXPECT_EQ(quantized(NAN, 1), std::pair(0x7f, 0)) << "a NaN is kept, by the scale";
  EXPECT_EQ(quantized(6, 1e-30f), std::pair(0x7e, 7));
}

TEST(Nvfp4, EveryScaleTimesEveryCodeComesBack) {
  // What the format can hold exactly must survive: blocks of code * scale with 6 * scale among them.
  for (int s = 1; s < 127; ++s) {
    e4m3_t e;
    e.bits = static_cast<uint8_t>(s);
    std::vector<float> x(16);
    for (int c = 0; c < 16; ++c)
      x[static_cast<size_t>(c)] = static_cast<float>(ref::e2m1_value(c)) * static_cast<float>(e);
    const auto [data, sf] = nvfp4_kv_quantize({.input = halves(x, {1, 16}), .global_scale = scale(1)});
    ASSERT_EQ(sf.data_as<uint8_t>()[0], s);
    for (int c = 0; c < 16; ++c) {
      const uint8_t byte = data.data_as<uint8_t>()[c / 2];
      ASSERT_EQ(c % 2 ? byte >> 4 : byte & 15, c) << "scale " << s;
    }
  }
}

TEST(Nvfp4, TheErrorIsThatOfTheFormat) {
  std::mt19937 g(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(64 * 128);
  for (float& v : x) v = normal(g);
  const TensorView in = halves(x, {64, 128});
  for (float global : {1.0f, 0.013f, 2e-3f}) {
    const auto [data, sf] = nvfp4_kv_quantize({.input = in, .global_scale = scale(global)});
    const Tensor back = nvfp4_kv_dequantize(
        {.fp4_data = data, .block_scales = sf, .global_scale = scale(global), .output_dtype = DType::kF32});
    for (int64_t b = 0; b < in.numel() / 16; ++b) {
      float amax = 0, worst = 0;
      for (int64_t i = b * 16; i < b * 16 + 16; ++i) {
        const float v = static_cast<float>(in.data_as<bf16_t>()[i]);
        amax = std::max(amax, std::fabs(v));
        worst = std::max(worst, std::fabs(v - back.data_as<float>()[i]));
      }
      // Half the largest step (2 of 6), and what rounding the scale by up to 1/16 adds.
      ASSERT_LE(worst, amax * (1.0f / 6 * 17 / 16 + 0.01f)) << b << " " << global;
    }
  }
}

TEST(Nvfp4, VScalesAreInterleavedByFourTokens) {
  // One page of 8 tokens and one head of 64: four scales a token, each block's scale identifies its (token, column).
  std::vector<float> x(8 * 64);
  for (int t = 0; t < 8; ++t)
    for (int i = 0; i < 64; ++i)
      x[static_cast<size_t>(t * 64 + i)] = 6 * std::ldexp(1.0f + static_cast<float>(i / 16) / 8, t - 4);
  for (const char* layout : {"HND", "NHD"}) {
    const bool hnd = layout[0] == 'H';
    const TensorView c = hnd ? halves(x, {1, 1, 8, 64}) : halves(x, {1, 8, 1, 64});
    const auto [data, sf, g] = nvfp4_quantize_paged_kv_cache(
        {.k_cache = c, .v_cache = c, .kv_layout = layout, .k_global_sf = scale(1), .v_global_sf = scale(1)});
    const uint8_t *k = sf.data_as<uint8_t>(), *v = k + 32;
    for (int t = 0; t < 8; ++t)
      for (int s = 0; s < 4; ++s)
        EXPECT_EQ(v[t / 4 * 16 + s * 4 + t % 4], k[t * 4 + s]) << layout << " " << t << " " << s;
    EXPECT_NE(v[1], k[1]);
    EXPECT_EQ(std::memcmp(data.data(), data.data_as<uint8_t>() + 256, 256), 0) << "the codes are not moved";
    EXPECT_EQ(g.data_as<float>()[0], 1.0f);
  }
}
TEST(Nvfp4, TheScaleOfACacheIsFound) {
  std::vector<float> x(4 * 64, 0.25f);
  x[70] = -7;
  const TensorView k = halves(x, {1, 1, 4, 64});
  const auto [data, sf, g] = nvfp4_quantize_paged_kv_cache({.k_cache = k, .v_cache = k});
  EXPECT_FLOAT_EQ(g.data_as<float>()[0], 7.0f / 448);
  x[3] = INFINITY;
  const TensorView bad = halves(x, {1, 1, 4, 64});
  EXPECT_TRUE(holds(message_of([&] { nvfp4_quantize_paged_kv_cache({.k_cache = k, .v_cache = bad}); }),
                    "v_cache holds an infinity or NaN"));
}

TEST(Nvfp4, PagedRowsComeBackAndTheRestIsLeftAlone) {
  // Pages past a request's length are not read: their ids may be anything.
  const Tensor fp4 = Tensor::zeros({2, 2, 4, 1, 8}, DType::kU8), sf = Tensor::zeros({2, 2, 4, 1, 1}, DType::kU8);
  std::memset(fp4.data(), 0x22, static_cast<size_t>(fp4.nbytes()));  // 1, 1, ...
  std::memset(sf.data(), 0x38, static_cast<size_t>(sf.nbytes()));    // 1
  const Tensor tables = of<int32_t>({1, -9, 0, 12345}, {2, 2}), lens = of<int32_t>({3, 0}, {2});
  const Tensor k = Tensor::zeros({2, 5, 1, 16}, DType::kF32), v = Tensor::zeros({2, 5, 1, 16}, DType::kF32);
  std::memset(k.data(), 0x7f, static_cast<size_t>(k.nbytes()));
  nvfp4_kv_dequantize_paged({.paged_kv_cache = fp4,
                             .kv_cache_sf = sf,
                             .block_tables = tables,
                             .seq_lens = lens,
                             .k_scale = 2.0,
                             .v_scale = scale(0.5f),
                             .output_k = k,
                             .output_v = v});
  for (int64_t i = 0; i < k.numel(); ++i) {
    EXPECT_EQ(v.data_as<float>()[i], i < 48 ? 0.5f : 0.0f) << i;
    EXPECT_EQ(k.data_as<uint32_t>()[i], i < 48 ? 0x40000000u : 0x7f7f7f7fu) << i;  // 2, or what was there
  }
}

TEST(Nvfp4, ErrorsNameTheArgument) {
  const Tensor x = Tensor::zeros({2, 1, 48}, DType::kBF16), idx = of<int32_t>({0, 0}, {2}),
               pos = of<int32_t>({0, 1}, {2}), pages = of<int32_t>({0}, {1}), ptr = of<int32_t>({0, 1}, {2}),
               last = of<int32_t>({2}, {1});
  const Tensor fp4 = Tensor::zeros({1, 2, 2, 1, 24}, DType::kU8), sf = Tensor::zeros({1, 2, 2, 1, 3}, DType::kF8E4M3);
  const auto message = [&](const TensorView& data, const TensorView& scales, double ks) {
    return message_of([&] {
      nvfp4_quantize_append_paged_kv_cache({.append_key = x,
                                            .append_value = x,
                                            .batch_indices = idx,
                                            .positions = pos,
                                            .paged_kv_cache = data,
                                            .kv_cache_sf = scales,
                                            .kv_indices = pages,
                                            .kv_indptr = ptr,
                                            .kv_last_page_len = last,
                                            .k_scale = ks,
                                            .v_scale = 1});
    });
  };
  EXPECT_EQ(message(fp4, sf, 1), "no error");
  for (double bad : {0.0, -1.0, static_cast<double>(INFINITY), static_cast<double>(NAN), 1e-300})
    EXPECT_TRUE(holds(message(fp4, sf, bad), "ValueError: nvfp4_quantize_append_paged_kv_cache: k_scale is")) << bad;
  const Tensor wide = Tensor::zeros({1, 2, 2, 1, 48}, DType::kU8), few = Tensor::zeros({1, 2, 2, 1, 2}, DType::kF8E4M3),
               pages2 = Tensor::zeros({2, 2, 2, 1, 3}, DType::kF8E4M3);
  EXPECT_TRUE(holds(message(wide, sf, 1), "paged_kv_cache has 48 bytes a row, but must have 24"));
  EXPECT_TRUE(holds(message(fp4, few, 1), "kv_cache_sf has 2 scales a row, but must have 3"));
  EXPECT_TRUE(holds(message(fp4, pages2, 1),
                    "kv_cache_sf has 2 pages of 2 tokens and 1 heads, but paged_kv_cache has 1, 2 and 1"));
  const Tensor odd = Tensor::zeros({2, 24}, DType::kBF16);
  EXPECT_TRUE(
      holds(message_of([&] { nvfp4_kv_quantize({.input = odd, .global_scale = scale(1)}); }), "input.shape[1] is 24"));
  EXPECT_TRUE(holds(message_of([&] { nvfp4_kv_quantize({.input = x.view().select(1, 0), .global_scale = scale(0)}); }),
                    "global_scale is 0"));
  const Tensor lens = of<int32_t>({5}, {1}), table = of<int32_t>({0, 1}, {1, 2}),
               out = Tensor::zeros({1, 9, 1, 48}, DType::kBF16), out2 = Tensor::zeros({1, 9, 1, 48}, DType::kBF16);
  const auto gather = [&](const TensorView& n) {
    return message_of([&] {
      nvfp4_kv_dequantize_paged({.paged_kv_cache = fp4,
                                 .kv_cache_sf = sf,
                                 .block_tables = table,
                                 .seq_lens = n,
                                 .k_scale = 1.0,
                                 .v_scale = 1.0,
                                 .output_k = out,
                                 .output_v = out2});
    });
  };
  EXPECT_TRUE(holds(gather(lens), "block_tables column count insufficient: seq_lens[0] is 5, but it has 2 pages of 2"));
  const Tensor three = of<int32_t>({3}, {1});
  EXPECT_TRUE(holds(gather(three), "block_tables[0][1] is 1, but the pool has 1 pages"));
}

}  // namespace
}  // namespace flashinfer
