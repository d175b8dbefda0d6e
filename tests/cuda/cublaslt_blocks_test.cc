// SPDX-License-Identifier: Apache-2.0
// MXFP8 and NVFP4 through cuBLASLt: the scales of blocks, the own kernel beside its algorithms, and what is refused.
#include <tuple>

#include "fake_cublaslt.h"
#include "flashinfer/core/cuda/cublaslt.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/gemm/scaled/scaled.h"
#include "lt_products.h"

namespace flashinfer {
namespace {

/// Products with scales of blocks, on a GPU that has them. The library's own kernel takes no time on this clock.
class CublasLtBlocks : public CublasLt {
 protected:
  void SetUp() override {
    CublasLt::SetUp();
    on(10, 0);
    lt_->ms = {0};  // as fast as the own kernel: the first way is kept
  }
  Tensor bytes(std::vector<int64_t> shape, const std::vector<int>& of, DType dtype = DType::kU8) {
    Tensor t = Tensor::empty(shape, dtype);
    for (int64_t i = 0; i < t.numel(); ++i)
      t.data_as<uint8_t>()[i] =
          static_cast<uint8_t>(of.empty() ? random_() % 256 : static_cast<size_t>(of[random_() % of.size()]));
    return t;
  }
  static constexpr int64_t kRows = 6, kColumns = 160, kDepth = 192;
  const std::vector<int> powers_ = {125, 126, 127, 128, 129}, halves_ = {0x30, 0x38, 0x3c, 0x40};
  const Tensor x_ = numbers<e4m3_t>({kRows, kDepth}, DType::kF8E4M3),
               w_ = numbers<e4m3_t>({kColumns, kDepth}, DType::kF8E4M3), sx_ = bytes({128 * 8}, powers_),
               sw_ = bytes({256 * 8}, powers_);
  const Tensor x4_ = bytes({kRows, kDepth / 2}, {}), w4_ = bytes({kColumns, kDepth / 2}, {}),
               sx4_ = bytes({128, 12}, halves_), sw4_ = bytes({256, 12}, halves_),
               alpha_ = numbers<float>({1}, DType::kF32);
  MmMxfp8 mxfp8(const Tensor& x, const Tensor& w, const Tensor& sx, const Tensor& sw) {
    return {.a = x, .b = transposed(w), .a_descale = sx, .b_descale = sw};
  }
  MmFp4 nvfp4(const Tensor& x, const Tensor& w, const Tensor& sx, const Tensor& sw) {
    return {.a = x, .b = transposed(w), .a_descale = sx, .b_descale = sw, .alpha = alpha_.view()};
  }
};

TEST_F(CublasLtBlocks, Mxfp8AndNvfp4GiveWhatTheCpuGives) {
  const Tensor x = to_device(x_.view(), kGpu), w = to_device(w_.view(), kGpu), sx = to_device(sx_.view(), kGpu),
               sw = to_device(sw_.view(), kGpu);
  expect_same(mm_mxfp8(mxfp8(x, w, sx, sw)), mm_mxfp8(mxfp8(x_, w_, sx_, sw_)));
  fake::LtCall c = lt_->calls.back();
  EXPECT_EQ(std::tuple(c.description.scale_mode_a, c.description.scale_mode_b),
            std::tuple(int{cublaslt::kVec32UE8M0}, int{cublaslt::kVec32UE8M0}));
  EXPECT_EQ(std::tuple(c.description.scale_a, c.description.scale_b),
            std::tuple(sw.data(), sx.data()));  // its A is our b
  EXPECT_EQ(std::tuple(c.a.type, c.a.rows, c.a.columns, c.a.ld), std::tuple(int{cublaslt::kR8FE4M3}, 192u, 160u, 192));
  EXPECT_EQ(c.alpha, nullptr);

  alpha_.data_as<float>()[0] = 0.5f;
  const Tensor x4 = to_device(x4_.view(), kGpu), w4 = to_device(w4_.view(), kGpu), sx4 = to_device(sx4_.view(), kGpu),
               sw4 = to_device(sw4_.view(), kGpu), alpha = to_device(alpha_.view(), kGpu);
  MmFp4 there = nvfp4(x4, w4, sx4, sw4);
  there.alpha = alpha.view();
  expect_same(mm_fp4(there), mm_fp4(nvfp4(x4_, w4_, sx4_, sw4_)));
  c = lt_->calls.back();
  EXPECT_EQ(std::tuple(c.description.scale_mode_a, c.description.scale_mode_b),
            std::tuple(int{cublaslt::kVec16UE4M3}, int{cublaslt::kVec16UE4M3}));
  EXPECT_EQ(std::tuple(c.a.type, c.a.rows, c.a.columns, c.a.ld), std::tuple(int{cublaslt::kR4FE2M1}, 192u, 160u, 192));
  EXPECT_EQ(std::tuple(c.b.type, c.b.rows, c.b.columns, c.b.ld), std::tuple(int{cublaslt::kR4FE2M1}, 192u, 6u, 192));
  EXPECT_EQ(c.alpha, alpha.data());
  EXPECT_EQ(*static_cast<const float*>(fake::host(c.beta)), 0.0f);
  there.alpha = std::nullopt;
  MmFp4 here = nvfp4(x4_, w4_, sx4_, sw4_);
  here.alpha = std::nullopt;
  expect_same(mm_fp4(there), mm_fp4(here));
  EXPECT_EQ(lt_->calls.back().alpha, nullptr);
}

/// The scales of a batch are one tensor, tiles of each matrix behind the last one's.
TEST_F(CublasLtBlocks, ABatchOfMxfp8GivesWhatTheCpuGives) {
  set("FLASHINFER_CUBLASLT_SEARCH", "0");  // one product a call
  const Tensor x = numbers<e4m3_t>({3, 128, 256}, DType::kF8E4M3), w = numbers<e4m3_t>({3, 256, 256}, DType::kF8E4M3),
               sx = bytes({3 * 128 * 8}, powers_), sw = bytes({3 * 256 * 8}, powers_);
  const Tensor x_gpu = to_device(x.view(), kGpu), w_gpu = to_device(w.view(), kGpu),
               sx_gpu = to_device(sx.view(), kGpu), sw_gpu = to_device(sw.view(), kGpu);
  const auto call = [](const Tensor& a, const Tensor& b, const Tensor& sa, const Tensor& sb) {
    return BmmMxfp8{.A = a, .B = transposed(b), .A_scale = sa, .B_scale = sb};
  };
  expect_same(bmm_mxfp8(call(x_gpu, w_gpu, sx_gpu, sw_gpu)), bmm_mxfp8(call(x, w, sx, sw)));
  const fake::LtCall& c = lt_->calls.back();
  EXPECT_EQ(std::tuple(c.a.batch, c.a.batch_offset, c.b.batch_offset, c.d.batch_offset),
            std::tuple(3, 256 * 256, 128 * 256, 128 * 256));
  EXPECT_EQ(std::tuple(c.description.scale_mode_a, c.description.scale_a, c.description.scale_b),
            std::tuple(int{cublaslt::kVec32UE8M0}, sw_gpu.data(), sx_gpu.data()));
}

/// Of matrices that do not fill their tiles only one is passed on.
TEST_F(CublasLtBlocks, ABatchOfMxfp8NeedsWholeTiles) {
  const auto reason = [&](int64_t batch, int64_t m, int64_t n, int64_t k) {
    const auto scales = [&](int64_t lines) {
      return to_device(bytes({batch * round_up(lines, 128) * round_up(k / 32, 4)}, powers_).view(), kGpu);
    };
    const Tensor x = to_device(numbers<e4m3_t>({batch, m, k}, DType::kF8E4M3).view(), kGpu),
                 w = to_device(numbers<e4m3_t>({batch, n, k}, DType::kF8E4M3).view(), kGpu), sx = scales(m),
                 sw = scales(n);
    return why_not("bmm_mxfp8", BmmMxfp8{.A = x, .B = transposed(w), .A_scale = sx, .B_scale = sw});
  };
  EXPECT_EQ(reason(2, 256, 128, 128), "");
  EXPECT_EQ(reason(1, 6, 160, 96), "");
  const std::string need = "scales of blocks of a batch need whole tiles, m and n multiples of 128 and k of 128, but ";
  EXPECT_EQ(reason(2, 6, 128, 128), need + "m is 6, n 128 and k 128");
  EXPECT_EQ(reason(2, 128, 160, 128), need + "m is 128, n 160 and k 128");
  EXPECT_EQ(reason(2, 128, 128, 96), need + "m is 128, n 128 and k 96");
}

TEST_F(CublasLtBlocks, TheOwnKernelIsTakenWhereItIsFaster) {
  const Tensor x = to_device(x_.view(), kGpu), w = to_device(w_.view(), kGpu), sx = to_device(sx_.view(), kGpu),
               sw = to_device(sw_.view(), kGpu), out = Tensor::zeros({kRows, kColumns}, DType::kBF16, kGpu);
  const auto products = [&] {  // of cuBLASLt in one call
    const size_t before = lt_->calls.size();
    MmMxfp8 call = mxfp8(x, w, sx, sw);
    call.out = out.view();
    mm_mxfp8(call);
    return lt_->calls.size() - before;
  };
  const auto launches = [&] { return gpu().launches.size(); };
  lt_->ms = {3, 2};
  EXPECT_GT(products(), 2u);  // timed
  size_t before = launches();
  EXPECT_EQ(products(), 0u);
  EXPECT_GT(launches(), before);
  cublaslt::detail::forget();  // another process
  before = launches();
  EXPECT_EQ(products(), 0u);
  EXPECT_GT(launches(), before);
  fs::remove_tree(folder_);
  cublaslt::detail::forget();
  lt_->ms = {3, 0};
  EXPECT_GT(products(), 2u);
  before = launches();
  EXPECT_EQ(products(), 1u);
  EXPECT_EQ(lt_->calls.back().algorithm, 1u);
  EXPECT_EQ(launches(), before);
  // Without a search, and before one while the stream is captured, cuBLASLt's first.
  fs::remove_tree(folder_);
  set("FLASHINFER_CUBLASLT_SEARCH", "0");
  cublaslt::detail::forget();
  lt_->ms = {3, 2};
  EXPECT_EQ(products(), 1u);
  EXPECT_EQ(lt_->calls.back().algorithm, 0u);
  set("FLASHINFER_CUBLASLT_SEARCH", "1");
  cublaslt::detail::forget();
  cuda::synchronize(0, stream_->get());
  gpu().begin_capture(stream_->get());
  EXPECT_EQ(products(), 1u);
  EXPECT_GT(gpu().end_capture(stream_->get()), 0);
}

TEST_F(CublasLtBlocks, ACallThatItCannotComputeSaysWhy) {
  const Tensor x = to_device(x_.view(), kGpu), w = to_device(w_.view(), kGpu), sx = to_device(sx_.view(), kGpu),
               sw = to_device(sw_.view(), kGpu), x4 = to_device(x4_.view(), kGpu), w4 = to_device(w4_.view(), kGpu),
               sx4 = to_device(sx4_.view(), kGpu), sw4 = to_device(sw4_.view(), kGpu);
  const auto expect = [&](const std::string& part, const std::string& text) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const auto fp4 = [&](auto change) {
    MmFp4 a = nvfp4(x4, w4, sx4, sw4);
    a.alpha = std::nullopt;
    change(a);
    return why_not("mm_fp4", a);
  };
  EXPECT_EQ(fp4([](MmFp4&) {}), "");
  const Tensor eight = to_device(bytes({8, 12}, halves_).view(), kGpu);
  expect("the scales of a have the layout 8x4, but cuBLASLt reads 128x4",
         fp4([&](MmFp4& a) { a.use_8x4_sf_layout = true, a.a_descale = eight.view(); }));
  expect("backend 'trtllm' takes shuffled rows of b", fp4([](MmFp4& a) { a.backend = "trtllm"; }));
  const Tensor half = to_device(bytes({128 * 8}, powers_).view(), kGpu),
               other = to_device(bytes({256 * 8}, powers_).view(), kGpu);
  expect("cuBLASLt has products of NVFP4, but none of MXFP4", fp4([&](MmFp4& a) {
           a.use_nvfp4 = false, a.block_size = 32, a.a_descale = half.view(), a.b_descale = other.view();
         }));
  expect("fp4 rows of a must begin at 16 bytes", fp4([&](MmFp4& a) {
           a.a = x4.view().slice(1, 0, 88), a.b = transposed(w4).slice(0, 0, 88);
           a.a = TensorView(static_cast<const char*>(x4.data()) + 8, a.a.dtype(), a.a.shape(), a.a.strides(), kGpu);
         }));
  const auto mx = [&] { return why_not("mm_mxfp8", mxfp8(x, w, sx, sw)); };
  EXPECT_EQ(mx(), "");
  lt_->version = 120600;
  cublaslt::detail::forget();
  expect("products with scales of blocks need cuBLASLt 12.8, but it is 12.6", mx());
  lt_->version = 130100;
  on(9, 0);
  expect("products with scales of blocks need compute capability 10.0, but Fake GPU has 9.0", mx());
}

}  // namespace
}  // namespace flashinfer
