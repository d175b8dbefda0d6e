// SPDX-License-Identifier: Apache-2.0
// FP8 with f32 scales of blocks through cuBLASLt: scales that it reads as they are, those that are copied before, the
// own kernel beside its algorithms, and what is refused.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "fake_cublaslt.h"
#include "flashinfer/core/cuda/cublaslt.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/gemm/kernels/grid_layout_params.h"
#include "flashinfer/ops/gemm/scaled/scaled.h"
#include "lt_products.h"

namespace flashinfer {
namespace {

/// The kernel that copies scales, on the host.
void copy_scales(const fake::Launched& l) {
  if (l.bytes != sizeof(GridLayoutParams)) return;
  const auto& p = *reinterpret_cast<const GridLayoutParams*>(l.params);
  for (unsigned i = 0; i < l.config.grid[2]; ++i) {
    const GridLayoutParams::Operand& o = p.of[i];
    const auto* from = static_cast<const float*>(fake::host(o.from));
    auto* to = static_cast<float*>(fake::host(o.to));
    for (int64_t line = 0; line < o.lines; ++line)
      for (int64_t block = 0; block < o.padded; ++block)
        to[line * o.to_line + block * o.to_block] =
            block < o.blocks ? from[line / o.share * o.from_line + block * o.from_block] : 0;
  }
}

/// On a GPU of compute capability 9.0. The library's own kernel takes no time on this clock.
class CublasLtGrids : public CublasLt {
 protected:
  void SetUp() override {
    CublasLt::SetUp();
    gpu().kernel = copy_scales;
  }
  /// Powers of two, so that every sum is exact.
  Tensor scales(const std::vector<int64_t>& shape) {
    Tensor t = Tensor::empty(shape, DType::kF32);
    for (float& x : t.span<float>()) x = std::ldexp(1.0f, static_cast<int>(random_() % 5) - 2);
    return t;
  }
  int64_t copies() {
    return std::ranges::count_if(gpu().launches,
                                 [](const fake::Launched& l) { return l.bytes == sizeof(GridLayoutParams); });
  }
  static constexpr int64_t kRows = 260, kColumns = 144;  // 3 and 2 blocks of 128
  Tensor x(int64_t k) { return numbers<e4m3_t>({kRows, k}, DType::kF8E4M3); }
  Tensor w(int64_t k) { return numbers<e4m3_t>({kColumns, k}, DType::kF8E4M3); }
};

TEST_F(CublasLtGrids, GroupwiseGivesWhatTheCpuGives) {
  set("FLASHINFER_CUBLASLT_SEARCH", "0");  // one product a call
  struct Case {
    const char* name;
    int64_t k;
    std::vector<int64_t> of_a, of_b;  // shapes of the scales
    std::optional<std::string> major;
    std::vector<int64_t> granularity;
    bool squares, copies_a, copies_b;
    bool transposed_a = false;
  };
  constexpr int64_t kL = 4;  // blocks of k
  const Case cases[] = {
      {"MN", 512, {kL, kRows}, {kL, 2}, "MN", {1, 128, 128}, true, false, true},
      {"K", 512, {kRows, kL}, {2, kL}, "K", {1, 128, 128}, true, true, false},
      {"K, rows contiguous", 512, {kL, kRows}, {2, kL}, "K", {1, 128, 128}, true, false, false, true},
      {"trtllm", 512, {kL, kRows}, {kL, 2}, {}, {1, 128, 128}, true, false, true, true},
      {"three blocks of k", 384, {kRows, 3}, {2, 3}, "K", {1, 128, 128}, true, true, true},
      {"a part of a block", 400, {kL, kRows}, {kL, 2}, "MN", {1, 128, 128}, true, false, true},
      {"a scale for each column", 512, {kL, kRows}, {kL, kColumns}, "MN", {1, 1, 128}, false, false, false},
      {"K, a scale for each column", 512, {kRows, kL}, {kColumns, kL}, "K", {1, 1, 128}, false, true, true},
      {"2 rows, 16 columns", 512, {kRows / 2, kL}, {kColumns / 16, kL}, "K", {2, 16, 128}, false, true, true}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Tensor a = x(c.k), b = w(c.k), sa = scales(c.of_a), sb = scales(c.of_b);
    const Tensor a_gpu = to_device(a.view(), kGpu), b_gpu = to_device(b.view(), kGpu),
                 sa_gpu = to_device(sa.view(), kGpu), sb_gpu = to_device(sb.view(), kGpu);
    const auto call = [&](const Tensor& p, const Tensor& q, const Tensor& sp, const Tensor& sq) {
      GemmFp8NtGroupwise g{.a = p, .b = q, .a_scale = c.transposed_a ? transposed(sp) : sp.view(), .b_scale = sq};
      g.scale_major_mode = c.major, g.scale_granularity_mnk = c.granularity;
      g.backend = c.major ? "cutlass" : "trtllm";
      return g;
    };
    gpu().launches.clear(), lt_->calls.clear();
    expect_same(gemm_fp8_nt_groupwise(call(a_gpu, b_gpu, sa_gpu, sb_gpu)), gemm_fp8_nt_groupwise(call(a, b, sa, sb)));
    ASSERT_FALSE(lt_->calls.empty());
    const fake::LtDescription& d = lt_->calls.back().description;
    EXPECT_EQ(d.scale_mode_a, int{c.squares ? cublaslt::kBlock128F32 : cublaslt::kVec128F32});  // its A is our b
    EXPECT_EQ(d.scale_mode_b, int{cublaslt::kVec128F32});
    EXPECT_EQ(d.scale_b != sa_gpu.data(), c.copies_a);
    EXPECT_EQ(d.scale_a != sb_gpu.data(), c.copies_b);
    EXPECT_EQ(copies() > 0, c.copies_a || c.copies_b);
  }
}

/// Blocks of 128 x 128 on both sides, which cuBLASLt does not take: those of rows become a scale for each row.
TEST_F(CublasLtGrids, BlockscaledGivesWhatTheCpuGives) {
  set("FLASHINFER_CUBLASLT_SEARCH", "0");  // one product a call
  const Tensor a = x(512), b = w(512), a_gpu = to_device(a.view(), kGpu), b_gpu = to_device(b.view(), kGpu);
  for (const char* major : {"MN", "K"}) {
    const bool mn = major == std::string("MN");
    const Tensor sa = scales(mn ? std::vector<int64_t>{4, 3} : std::vector<int64_t>{3, 4}),
                 sb = scales(mn ? std::vector<int64_t>{4, 2} : std::vector<int64_t>{2, 4}),
                 sa_gpu = to_device(sa.view(), kGpu), sb_gpu = to_device(sb.view(), kGpu);
    const auto call = [&](const Tensor& p, const Tensor& q, const Tensor& sp, const Tensor& sq) {
      GemmFp8NtBlockscaled g{.a = p, .b = q, .a_scale = sp, .b_scale = sq};
      g.scale_major_mode = major, g.out_dtype = DType::kF16;
      return g;
    };
    expect_same(gemm_fp8_nt_blockscaled(call(a_gpu, b_gpu, sa_gpu, sb_gpu)),
                gemm_fp8_nt_blockscaled(call(a, b, sa, sb)));
    const fake::LtDescription& d = lt_->calls.back().description;
    EXPECT_EQ(std::tuple(d.scale_mode_a, d.scale_mode_b),
              std::tuple(int{cublaslt::kBlock128F32}, int{cublaslt::kVec128F32}));
    EXPECT_EQ(d.scale_a == sb_gpu.data(), !mn);
  }
}

/// The call's quantisers write the scales of rows where cuBLASLt reads them.
TEST_F(CublasLtGrids, BlockscaleOfSm90Quantises) {
  set("FLASHINFER_CUBLASLT_SEARCH", "0");  // one product a call
  const Tensor a = x(512), b = numbers<e4m3_t>({192, 512}, DType::kF8E4M3), sa = scales({kRows, 4}),
               sb = scales({2, 4});
  const Tensor a_gpu = to_device(a.view(), kGpu), b_gpu = to_device(b.view(), kGpu),
               sa_gpu = to_device(sa.view(), kGpu), sb_gpu = to_device(sb.view(), kGpu);
  const auto call = [&](const Tensor& p, const Tensor& q, const Tensor& sp, const Tensor& sq) {
    return Fp8BlockscaleGemmSm90{.input = p, .weight = q, .input_scale = sp.view(), .weight_scale = sq.view()};
  };
  expect_same(fp8_blockscale_gemm_sm90(call(a_gpu, b_gpu, sa_gpu, sb_gpu)),
              fp8_blockscale_gemm_sm90(call(a, b, sa, sb)));
  EXPECT_EQ(lt_->calls.back().description.scale_a, sb_gpu.data());
  EXPECT_EQ(copies(), static_cast<int64_t>(lt_->calls.size()));  // of the input's [m, k / 128]
  gpu().launches.clear(), lt_->calls.clear();
  const Tensor wide = Tensor::zeros({kRows, 512}, DType::kBF16, kGpu),
               weight = Tensor::zeros({192, 512}, DType::kBF16, kGpu);
  fp8_blockscale_gemm_sm90({.input = wide, .weight = weight});
  EXPECT_EQ(copies(), 0);
  const fake::LtDescription& d = lt_->calls.back().description;
  EXPECT_EQ(std::tuple(d.scale_mode_a, d.scale_mode_b),
            std::tuple(int{cublaslt::kVec128F32}, int{cublaslt::kVec128F32}));
}

/// What the copies take counts in the search; where the own kernel is kept nothing is copied.
TEST_F(CublasLtGrids, TheOwnKernelIsTakenWhereItIsFaster) {
  const Tensor a = to_device(numbers<e4m3_t>({8, 512}, DType::kF8E4M3).view(), kGpu),
               b = to_device(numbers<e4m3_t>({16, 512}, DType::kF8E4M3).view(), kGpu),
               sa = to_device(scales({8, 4}).view(), kGpu), sb = to_device(scales({1, 4}).view(), kGpu),
               as_it_is = to_device(scales({4, 8}).view(), kGpu);
  const auto products = [&](const TensorView& of_rows) {
    gpu().launches.clear(), lt_->calls.clear();
    GemmFp8NtGroupwise g{.a = a, .b = b, .a_scale = of_rows, .b_scale = sb};
    g.scale_major_mode = "K";
    gemm_fp8_nt_groupwise(g);
    return std::pair(static_cast<int64_t>(lt_->calls.size()), copies());
  };
  lt_->ms = {3, 2};
  const auto [timed, copied] = products(sa);
  EXPECT_GT(timed, 2);
  EXPECT_EQ(copied, timed);
  EXPECT_EQ(products(sa), std::pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(gpu().launches.size(), 1u);
  lt_->ms = {3, 0};
  EXPECT_EQ(products(sa), std::pair(int64_t{0}, int64_t{0}));  // kept
  EXPECT_GT(products(transposed(as_it_is)).first, 2);          // without copies it is another product
  EXPECT_EQ(products(transposed(as_it_is)), std::pair(int64_t{1}, int64_t{0}));
  EXPECT_EQ(lt_->calls.back().algorithm, 1u);
}

/// A graph has memory of its own for the copies, and makes them anew at each replay.
TEST_F(CublasLtGrids, IsCapturedWithItsCopies) {
  const Tensor a = numbers<e4m3_t>({8, 512}, DType::kF8E4M3), b = numbers<e4m3_t>({16, 512}, DType::kF8E4M3),
               sa = scales({8, 4}), sb = scales({1, 4}), other = scales({8, 4});
  const Tensor a_gpu = to_device(a.view(), kGpu), b_gpu = to_device(b.view(), kGpu),
               sa_gpu = to_device(sa.view(), kGpu), sb_gpu = to_device(sb.view(), kGpu),
               out = Tensor::zeros({8, 16}, DType::kBF16, kGpu);
  const auto call = [&](const Tensor& p, const Tensor& q, const Tensor& sp, const Tensor& sq) {
    GemmFp8NtGroupwise g{.a = p, .b = q, .a_scale = sp, .b_scale = sq};
    g.scale_major_mode = "K";
    return g;
  };
  GemmFp8NtGroupwise captured = call(a_gpu, b_gpu, sa_gpu, sb_gpu);
  captured.out = out.view();
  cuda::synchronize(0, stream_->get());
  gpu().begin_capture(stream_->get());
  gemm_fp8_nt_groupwise(captured);
  EXPECT_GT(gpu().end_capture(stream_->get()), 0);  // not invalidated
  EXPECT_EQ(copies(), 1);
  for (const Tensor& now : {sa, other}) {
    std::memcpy(fake::host(sa_gpu.data()), now.data(), static_cast<size_t>(now.nbytes()));
    gpu().replay();
    expect_same(out, gemm_fp8_nt_groupwise(call(a, b, now, sb)));
  }
}

TEST_F(CublasLtGrids, ACallThatItCannotComputeSaysWhy) {
  const auto reason = [&](int64_t m, int64_t n, int64_t k, std::vector<int64_t> granularity) {
    const Tensor a = to_device(numbers<e4m3_t>({m, k}, DType::kF8E4M3).view(), kGpu),
                 b = to_device(numbers<e4m3_t>({n, k}, DType::kF8E4M3).view(), kGpu),
                 sa = to_device(scales({ceil_div(m, granularity[0]), ceil_div(k, granularity[2])}).view(), kGpu),
                 sb = to_device(scales({ceil_div(n, granularity[1]), ceil_div(k, granularity[2])}).view(), kGpu);
    GemmFp8NtGroupwise g{.a = a, .b = b, .a_scale = sa, .b_scale = sb};
    g.scale_major_mode = "K", g.scale_granularity_mnk = granularity;
    return why_not("gemm_fp8_nt_groupwise", g);
  };
  const std::vector<int64_t> usual = {1, 128, 128};
  EXPECT_EQ(reason(8, 16, 256, usual), "");
  const std::string fours = "products with f32 scales of blocks need m and n that are multiples of 4, but m is ";
  EXPECT_EQ(reason(6, 16, 256, usual), fours + "6 and n 16");
  EXPECT_EQ(reason(8, 18, 256, usual), fours + "8 and n 18");
  EXPECT_EQ(reason(8, 16, 256, {1, 128, 64}), "cuBLASLt has f32 scales of 128 along k, but these are of 64");
  EXPECT_NE(reason(8, 16, 200, usual).find("fp8 rows of a must begin at 16 bytes"), std::string::npos);
  lt_->version = 120800;
  cublaslt::detail::forget();
  EXPECT_EQ(reason(8, 16, 256, usual), "products with f32 scales of blocks need cuBLASLt 12.9, but it is 12.8");
  lt_->version = 130100;
  on(10, 0);
  EXPECT_EQ(reason(8, 16, 256, usual),
            "products with f32 scales of blocks need compute capability 9.0, but Fake GPU has 10.0");
}

}  // namespace
}  // namespace flashinfer
