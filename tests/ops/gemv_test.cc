// SPDX-License-Identifier: Apache-2.0
// A product of one row runs the GEMV kernel for unpacked weights (ops/gemm/kernels/cpu/gemv.h): its bits are those that
// the row has among others.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "flashinfer/ops/gemm/op.h"
#include "flashinfer/ops/moe/op.h"
#include "tests/ops/data.h"

namespace flashinfer {
namespace {

constexpr int64_t kRows = 9, kN = 117, kK = 1440;  // seven panels and a part; tiles and a rest

/// product(first, rows): those rows.
void expect_rows_alone(const std::function<Tensor(int64_t, int64_t)>& product) {
  const Tensor all = product(0, kRows);
  bool some = false;
  for (int64_t i = 0; i < kRows; ++i) {
    EXPECT_TRUE(same_bytes(product(i, 1), all.view().slice(0, i, i + 1))) << "row " << i;
    for (int64_t b = 0; b < all.nbytes(); ++b) some |= static_cast<const uint8_t*>(all.data())[b] != 0;
  }
  EXPECT_TRUE(some);
}

TEST(Gemv, Bf16) {
  const Tensor a = random_tensor<bf16_t>({kRows, kK}, 1, 1), b = random_tensor<bf16_t>({kN, kK}, 2, 1);
  expect_rows_alone([&](int64_t i, int64_t m) {
    return mm_bf16({.a = a.view().slice(0, i, i + m), .b = b.view().transpose(0, 1), .out_dtype = DType::kF32});
  });
}
TEST(Gemv, Fp8WithEveryCode) {
  const Tensor a = random_bytes({kRows, kK}, 1, 0, 0x60, DType::kF8E4M3),
               b = random_bytes({kN, kK}, 2, 0, 256, DType::kF8E4M3);
  for (int64_t i = 0; i < b.numel(); ++i)  // NaN in one column only
    if (auto& x = static_cast<uint8_t*>(b.data())[i]; (x & 127) == 127 && i / kK != 5) x = 1;
  expect_rows_alone([&](int64_t i, int64_t m) { return mm_fp8({.a = a.view().slice(0, i, i + m), .b = b}); });
}
TEST(Gemv, Fp8BlockScales) {
  const Tensor a = random_bytes({kRows, kK}, 1, 0, 0x60, DType::kF8E4M3),
               b = random_bytes({kN, kK}, 2, 0, 0x70, DType::kF8E4M3);
  const Tensor of_a = random_scales({kRows, 12}, 3), of_blocks = random_scales({1, 12}, 4),
               of_columns = random_scales({kN, 12}, 5);
  for (const bool fine : {false, true})
    expect_rows_alone([&](int64_t i, int64_t m) {
      return gemm_fp8_nt_groupwise({.a = a.view().slice(0, i, i + m),
                                    .b = b,
                                    .a_scale = of_a.view().slice(0, i, i + m),
                                    .b_scale = fine ? of_columns : of_blocks,
                                    .scale_major_mode = "K",
                                    .scale_granularity_mnk = {1, fine ? 1 : 128, 128}});
    });
}

/// Scales that gemv.h takes in units of its sums; two far ones in the middle; rows out of its range.
struct Scales {
  const char* name;
  int from, to;
  bool far;
  float size;
};
constexpr Scales kScales[] = {
    {"near", 105, 149, false, 1.0f}, {"far", 120, 130, true, 1.0f}, {"tiny rows", 120, 130, false, 1e-22f}};
void set_far(const Tensor& sf) {
  auto* p = static_cast<uint8_t*>(sf.data());
  p[sf.nbytes() / 3] = 60, p[sf.nbytes() / 2] = 0, p[sf.nbytes() / 5] = 200;
}
TEST(Gemv, Mxfp8) {
  const Tensor b = random_bytes({kN, kK}, 2, 0, 256, DType::kF8E4M3),
               a = random_bytes({kRows, kK}, 1, 0, 0x60, DType::kF8E4M3);
  for (const Scales& s : kScales) {
    SCOPED_TRACE(s.name);
    const Tensor of_b = random_bytes({128 * 48}, 4, s.from, s.to),
                 of_a = random_bytes({128 * 48}, 3, s.size < 1 ? 40 : 120, s.size < 1 ? 60 : 130);
    if (s.far) set_far(of_b);
    expect_rows_alone([&](int64_t i, int64_t m) {
      const Tensor rows = Tensor::empty({128 * 48}, DType::kU8);  // of 128x4 tiles: row r at 16 bytes each
      std::memset(rows.data(), 127, 128 * 48);
      for (int64_t r = 0; r < m; ++r)
        for (int64_t tile = 0; tile < 12; ++tile)
          std::memcpy(rows.data_as<char>() + tile * 512 + r * 16, of_a.data_as<char>() + tile * 512 + (i + r) * 16, 4);
      return mm_mxfp8(
          {.a = a.view().slice(0, i, i + m), .b = b.view().transpose(0, 1), .a_descale = rows, .b_descale = of_b});
    });
  }
}
/// Products of integers; k over several blocks of both kinds, every scale but NaN.
TEST(Gemv, Fp4) {
  const Tensor a = random_bytes({kRows, kK / 2}, 1, 0, 256), b = random_bytes({kN, kK / 2}, 2, 0, 256);
  for (const bool nvfp4 : {true, false}) {
    const int64_t columns = nvfp4 ? 92 : 48;
    const Tensor of_b =
        nvfp4 ? random_bytes({128, columns}, 3, 0, 127, DType::kF8E4M3) : random_bytes({128, columns}, 3, 0, 140);
    const Tensor ones =
        random_bytes({128, columns}, 4, nvfp4 ? 0x38 : 127, nvfp4 ? 0x39 : 128, nvfp4 ? DType::kF8E4M3 : DType::kU8);
    expect_rows_alone([&](int64_t i, int64_t m) {
      return mm_fp4({.a = a.view().slice(0, i, i + m),
                     .b = b.view().transpose(0, 1),
                     .a_descale = ones,
                     .b_descale = of_b,
                     .block_size = nvfp4 ? 16 : 32,
                     .use_nvfp4 = nvfp4});
    });
  }
}
TEST(Gemv, Mxfp4Experts) {
  constexpr int64_t kInter = 160,
                    kHidden = 1408;  // k of the first product: eleven steps; of the second: one and a rest
  const Tensor fc1 = random_bytes({2, kInter, kHidden / 2}, 1, 0, 256),
               fc2 = random_bytes({2, kHidden, kInter / 2}, 2, 0, 256);
  const Tensor w = random_scales({kRows, 2}, 5);
  const Tensor ids = Tensor::empty({kRows, 2}, DType::kI32);
  for (int64_t i = 0; i < kRows; ++i) ids.data_as<int32_t>()[2 * i] = 0, ids.data_as<int32_t>()[2 * i + 1] = 1;
  for (const Scales& s : kScales) {
    SCOPED_TRACE(s.name);
    const Tensor x = random_tensor<bf16_t>({kRows, kHidden}, 6, s.size);
    const Tensor s1 = random_bytes({2, kInter, kHidden / 32}, 3, s.from, s.to),
                 s2 = random_bytes({2, kHidden, kInter / 32}, 4, s.from, s.to);
    if (s.far) set_far(s1), set_far(s2);
    expect_rows_alone([&](int64_t i, int64_t m) {
      CutlassFusedMoe layer{.input = x.view().slice(0, i, i + m),
                            .token_selected_experts = ids.view().slice(0, i, i + m),
                            .token_final_scales = w.view().slice(0, i, i + m),
                            .fc1_expert_weights = fc1,
                            .fc2_expert_weights = fc2,
                            .output_dtype = DType::kF32};
      layer.quant_scales = std::vector<TensorView>{s1, s2};
      layer.use_w4_group_scaling = true;
      layer.activation_type = 9;  // none: small rows stay what they are
      return cutlass_fused_moe(layer);
    });
  }
}

}  // namespace
}  // namespace flashinfer
