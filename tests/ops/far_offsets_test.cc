// SPDX-License-Identifier: Apache-2.0
// Rows more than 2^31 elements apart, of which only the rows themselves are touched: the same bits as rows that lie
// together.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "flashinfer/ops/activation/op.h"
#include "flashinfer/ops/gemm/op.h"
#include "flashinfer/ops/moe/op.h"
#include "flashinfer/ops/quantization/op.h"
#include "flashinfer/ops/sampling/op.h"
#include "flashinfer/ops/topk/op.h"
#include "tests/ops/data.h"

namespace flashinfer {
namespace {

/// The rows of a tensor [rows, n] in memory of their own, far apart.
class Far {
 public:
  explicit Far(const TensorView& x)
      : bytes_(static_cast<size_t>((kStride * (x.size(0) - 1) + x.size(1)) * x.item_size())) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(memory_, MAP_FAILED);
    const int64_t shape[] = {x.size(0), x.size(1)}, stride[] = {kStride, 1};
    view = TensorView(memory_, x.dtype(), shape, stride);
    for (int64_t r = 0; r < x.size(0); ++r)
      std::memcpy(static_cast<char*>(memory_) + r * kStride * x.item_size(),
                  static_cast<const char*>(x.data()) + r * x.size(1) * x.item_size(),
                  static_cast<size_t>(x.size(1) * x.item_size()));
  }
  ~Far() { munmap(memory_, bytes_); }
  Far(const Far&) = delete;
  TensorView view;

 private:
  static constexpr int64_t kStride = (int64_t{1} << 31) + 64;
  size_t bytes_;
  void* memory_;
};

TEST(FarOffsets, DenseProducts) {
  const Tensor a = random_tensor<bf16_t>({3, 96}, 1), b = random_tensor<bf16_t>({5, 96}, 2),
               out = Tensor::zeros({3, 5}, DType::kBF16);
  const Far fa(a), fb(b), far_out(out);
  const Tensor want = mm_bf16({.a = a, .b = b.view().transpose(0, 1)});
  EXPECT_TRUE(same_bytes(mm_bf16({.a = fa.view, .b = fb.view.transpose(0, 1)}), want));
  mm_bf16({.a = a, .b = b.view().transpose(0, 1), .out = far_out.view});
  EXPECT_TRUE(same_bytes(far_out.view, want));
  const Tensor one = mm_bf16({.a = a.view().slice(0, 0, 1), .b = fb.view.transpose(0, 1)});  // the GEMV kernel
  EXPECT_TRUE(same_bytes(one, want.view().slice(0, 0, 1)));
  const Tensor packed = prepare_mm_weights({.b = fb.view.transpose(0, 1)});
  EXPECT_TRUE(same_bytes(mm_bf16({.a = fa.view, .b = packed}), want));
}

TEST(FarOffsets, NarrowAndGroupedProducts) {
  const TensorView a = pattern<e4m3_t>({3, 128}, 2), b = pattern<e4m3_t>({5, 128}, 2, 7),
                   sa = pattern<float>({3, 1}, 1, 3), sb = pattern<float>({1, 1}, 1, 5);
  const Far fa(a), fb(b), fsa(sa);
  EXPECT_TRUE(same_bytes(mm_fp8({.a = fa.view, .b = fb.view}), mm_fp8({.a = a, .b = b})));
  EXPECT_TRUE(same_bytes(
      gemm_fp8_nt_groupwise({.a = fa.view, .b = fb.view, .a_scale = fsa.view, .b_scale = sb, .scale_major_mode = "K"}),
      gemm_fp8_nt_groupwise({.a = a, .b = b, .a_scale = sa, .b_scale = sb, .scale_major_mode = "K"})));
  const Tensor x = random_tensor<bf16_t>({4, 64}, 3), w = random_tensor<bf16_t>({2, 10 * 64}, 4),
               indptr = ints({0, 1, 4});
  const Far fx(x), fw(w);  // matrices far apart
  const int64_t shape[] = {2, 10, 64}, stride[] = {fw.view.stride(0), 64, 1};
  EXPECT_TRUE(same_bytes(
      grouped_mm_bf16({.a = fx.view, .b = TensorView(fw.view.data(), DType::kBF16, shape, stride), .m_indptr = indptr}),
      grouped_mm_bf16({.a = x, .b = w.view().view({2, 10, 64}), .m_indptr = indptr})));
}

TEST(FarOffsets, Quantisers) {
  const Tensor x = random_tensor<bf16_t>({3, 128}, 5);
  const Far far(x);
  const auto same = [](const op::Results& a, const op::Results& b) {
    ASSERT_EQ(a.size(), b.size());
    for (int i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bytes(a[i], b[i])) << i;
  };
  const auto pair = [](const std::pair<Tensor, Tensor>& a, const std::pair<Tensor, Tensor>& b) {
    EXPECT_TRUE(same_bytes(a.first, b.first) && same_bytes(a.second, b.second));
  };
  const std::vector<float> gs = {40};
  const TensorView scale(std::span<const float>(gs.data(), 1));
  same(nvfp4_quantize({.a = far.view, .a_global_sf = scale}), nvfp4_quantize({.a = x, .a_global_sf = scale}));
  pair(mxfp8_quantize({.input = far.view}), mxfp8_quantize({.input = x}));
  pair(mxfp4_quantize({.a = far.view}), mxfp4_quantize({.a = x}));
  pair(per_token_group_quant_8bit({.x = far.view, .group_size = 32}),
       per_token_group_quant_8bit({.x = x, .group_size = 32}));
  EXPECT_TRUE(same_bytes(silu_and_mul({.input = far.view}), silu_and_mul({.input = x})));
}

TEST(FarOffsets, SamplingAndTopK) {
  Tensor probs = Tensor::empty({3, 200}, DType::kF32);
  int64_t i = 0;
  for (float& p : probs.span<float>()) p = static_cast<float>(1 + noise(i++)) / 200;
  const Far far(probs);
  const auto same_ids = [](const Samples& a, const Samples& b) { EXPECT_TRUE(same_bytes(a.samples, b.samples)); };
  same_ids(sampling_from_probs({.probs = far.view, .seed = 7, .offset = 0}),
           sampling_from_probs({.probs = probs, .seed = 7, .offset = 0}));
  same_ids(top_k_top_p_sampling_from_probs({.probs = far.view, .top_k = 20, .top_p = 0.7, .seed = 7, .offset = 0}),
           top_k_top_p_sampling_from_probs({.probs = probs, .top_k = 20, .top_p = 0.7, .seed = 7, .offset = 0}));
  EXPECT_TRUE(same_bytes(softmax({.logits = far.view}), softmax({.logits = probs})));
  EXPECT_TRUE(same_bytes(top_p_renorm_probs({.probs = far.view, .top_p = 0.7}),
                         top_p_renorm_probs({.probs = probs, .top_p = 0.7})));
  EXPECT_TRUE(same_bytes(top_k_mask_logits({.logits = far.view, .top_k = 5}),
                         top_k_mask_logits({.logits = probs, .top_k = 5})));
  EXPECT_TRUE(same_bytes(top_k({.input = far.view, .k = 9, .sorted = true}).second,
                         top_k({.input = probs, .k = 9, .sorted = true}).second));
}

TEST(FarOffsets, Experts) {
  const Tensor x = random_tensor<bf16_t>({3, 64}, 6), fc1 = random_tensor<bf16_t>({2, 64, 64}, 7, 0.1f),
               fc2 = random_tensor<bf16_t>({2, 64, 32}, 8, 0.1f),
               ids = Tensor::clone(ints({0, 1, 1, 0, 1, 0}).view().view({3, 2})),
               out = Tensor::zeros({3, 64}, DType::kBF16);
  const Tensor weights = random_tensor<float>({3, 2}, 9);
  const Far far(x), far_out(out);
  const auto call = [&](const TensorView& input, std::optional<TensorView> to) {
    return cutlass_fused_moe({.input = input,
                              .token_selected_experts = ids,
                              .token_final_scales = weights,
                              .fc1_expert_weights = fc1,
                              .fc2_expert_weights = fc2,
                              .output_dtype = DType::kBF16,
                              .output = to});
  };
  const Tensor want = call(x, std::nullopt);
  EXPECT_TRUE(same_bytes(call(far.view, std::nullopt), want));
  call(x, far_out.view);
  EXPECT_TRUE(same_bytes(far_out.view, want));
}

}  // namespace
}  // namespace flashinfer
