// SPDX-License-Identifier: Apache-2.0
// Products through cuBLASLt: the arguments passed to it, the results, what is unsupported and why.
#include <dlfcn.h>
#include <sys/stat.h>

#include <cstring>
#include <tuple>

#include "fake_cublaslt.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/cublaslt.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/op/call.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/gemm/op.h"
#include "flashinfer/ops/gemm/scaled/scaled.h"
#include "lt_products.h"
#include "test_paths.h"

namespace flashinfer {
namespace {

TEST_F(CublasLt, MmBf16OfEveryLayout) {
  const Tensor a = numbers<bf16_t>({5, 24}, DType::kBF16), at = numbers<bf16_t>({24, 5}, DType::kBF16),
               b = numbers<bf16_t>({24, 40}, DType::kBF16), bt = numbers<bf16_t>({40, 24}, DType::kBF16),
               bias = numbers<bf16_t>({40}, DType::kBF16);
  const Tensor ga = to_device(a.view(), kGpu), gat = to_device(at.view(), kGpu), gb = to_device(b.view(), kGpu),
               gbt = to_device(bt.view(), kGpu), gbias = to_device(bias.view(), kGpu);
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const DType out : {DType::kBF16, DType::kF16, DType::kF32}) {
        MmBf16 cpu{.a = ta ? transposed(at) : a.view(),
                   .b = tb ? transposed(bt) : b.view(),
                   .bias = bias.view(),
                   .out_dtype = out};
        MmBf16 gpu{.a = ta ? transposed(gat) : ga.view(),
                   .b = tb ? transposed(gbt) : gb.view(),
                   .bias = gbias.view(),
                   .out_dtype = out};
        expect_same(mm_bf16(gpu), mm_bf16(cpu));
        cpu.bias = gpu.bias = std::nullopt;
        expect_same(mm_bf16(gpu), mm_bf16(cpu));
      }
  // The last one: both transposed, f32, no bias.
  const fake::LtCall& c = lt_->calls.back();
  EXPECT_EQ(c.description.compute, cublaslt::kCompute32F);
  EXPECT_EQ(c.description.epilogue, cublaslt::kEpilogueDefault);
  EXPECT_EQ(c.pa, gbt.data());
  EXPECT_EQ(c.a.type, cublaslt::kR16BF);
  EXPECT_EQ(std::tuple(c.a.rows, c.a.columns, c.a.ld, c.description.transposed_a),
            std::tuple(24u, 40u, 24, cublaslt::kOpT));
  EXPECT_EQ(std::tuple(c.b.rows, c.b.columns, c.b.ld, c.description.transposed_b),
            std::tuple(5u, 24u, 5, cublaslt::kOpT));
  EXPECT_EQ(std::tuple(c.d.type, c.d.rows, c.d.columns, c.d.ld), std::tuple(int{cublaslt::kR32F}, 40u, 5u, 40));
  EXPECT_EQ(c.stream, stream_->get());
  const fake::LtCall& biased = lt_->calls[lt_->calls.size() - 2];
  EXPECT_EQ(biased.description.epilogue, cublaslt::kEpilogueBias);
  EXPECT_EQ(biased.description.bias, gbias.data());
  EXPECT_EQ(biased.description.bias_type, cublaslt::kR16BF);
}

TEST_F(CublasLt, BmmOfBothElementTypes) {
  const Tensor a = numbers<bf16_t>({3, 5, 24}, DType::kBF16), b = numbers<bf16_t>({3, 24, 16}, DType::kBF16);
  const Tensor there_a = to_device(a.view(), kGpu), there_b = to_device(b.view(), kGpu);
  expect_same(bmm_bf16({.A = there_a, .B = there_b}), bmm_bf16({.A = a, .B = b}));
  EXPECT_EQ(lt_->calls.back().d.batch, 3);
  EXPECT_EQ(lt_->calls.back().b.batch_offset, 5 * 24);
  const Tensor x = numbers<e4m3_t>({3, 5, 32}, DType::kF8E4M3), w = numbers<e5m2_t>({3, 16, 32}, DType::kF8E5M2);
  const Tensor sa = Tensor::empty({1}, DType::kF32), sb = Tensor::empty({1}, DType::kF32);
  sa.data_as<float>()[0] = 0.5f, sb.data_as<float>()[0] = 4;
  const Tensor gx = to_device(x.view(), kGpu), gw = to_device(w.view(), kGpu), gsa = to_device(sa.view(), kGpu),
               gsb = to_device(sb.view(), kGpu);
  for (const DType out : {DType::kBF16, DType::kF16}) {
    expect_same(bmm_fp8({.A = gx, .B = transposed(gw), .A_scale = gsa, .B_scale = gsb, .dtype = out}),
                bmm_fp8({.A = x, .B = transposed(w), .A_scale = sa, .B_scale = sb, .dtype = out}));
    const fake::LtCall& c = lt_->calls.back();
    EXPECT_EQ(c.description.scale_a, gsb.data());  // its A is our B
    EXPECT_EQ(c.description.scale_b, gsa.data());
    EXPECT_EQ(c.description.fast, 0);
    EXPECT_EQ(c.a.type, cublaslt::kR8FE5M2);
  }
}

TEST_F(CublasLt, MmFp8TakesAPlainWeight) {
  const Tensor a = numbers<e4m3_t>({4, 48}, DType::kF8E4M3), b = numbers<e4m3_t>({32, 48}, DType::kF8E4M3),
               alpha = Tensor::empty({1}, DType::kF32);
  alpha.data_as<float>()[0] = 0.25f;
  const Tensor ga = to_device(a.view(), kGpu), gb = to_device(b.view(), kGpu), galpha = to_device(alpha.view(), kGpu);
  expect_same(mm_fp8({.a = ga, .b = gb, .alpha = galpha.view()}), mm_fp8({.a = a, .b = b, .alpha = alpha.view()}));
  expect_same(mm_fp8({.a = ga, .b = gb}), mm_fp8({.a = a, .b = b}));
}

/// The heuristic runs once for each shape, layout and alignment; a later call only launches.
TEST_F(CublasLt, TheAlgorithmIsKept) {
  const Tensor a = to_device(numbers<bf16_t>({7, 24}, DType::kBF16).view(), kGpu),
               b = to_device(numbers<bf16_t>({24, 40}, DType::kBF16).view(), kGpu),
               out = Tensor::zeros({7, 40}, DType::kBF16, kGpu);
  for (int i = 0; i < 3; ++i) mm_bf16({.a = a, .b = b, .out = out.view()});
  EXPECT_EQ(lt_->heuristics, 1);
  EXPECT_EQ(lt_->calls.size(), 3u);
  EXPECT_EQ(lt_->calls[0].workspace, lt_->calls[2].workspace);
  mm_bf16({.a = a.view().slice(0, 1, 7), .b = b, .out = out.view().slice(0, 1, 7)});  // 48 bytes further
  EXPECT_EQ(lt_->heuristics, 2);
  EXPECT_EQ(lt_->calls.back().alignment[1], 16u);
  cuda::synchronize(0, stream_->get());
}

/// One product whose algorithms take what `lt_->ms` says; each call returns which of them ran, and how many products
/// ran.
class CublasLtSearch : public CublasLt {
 protected:
  void SetUp() override {
    CublasLt::SetUp();
    want_ = mm_bf16({.a = a_, .b = b_});
  }
  std::pair<size_t, size_t> call() {
    const size_t before = lt_->calls.size();
    expect_same(mm_bf16({.a = ga_, .b = gb_}), want_);
    return {lt_->calls.back().algorithm, lt_->calls.size() - before};
  }
  /// As another process: nothing but the file is known.
  std::pair<size_t, size_t> call_of_another_process() {
    cublaslt::detail::forget();
    return call();
  }
  std::string entry() {
    const std::string environment = folder_ + "/v2/" + fs::list_dir(folder_ + "/v2").at(0) + "/entries";
    return environment + "/" + fs::list_dir(environment).at(0);
  }
  const Tensor a_ = numbers<bf16_t>({9, 24}, DType::kBF16), b_ = numbers<bf16_t>({24, 40}, DType::kBF16);
  Tensor want_, ga_, gb_;
};

TEST_F(CublasLtSearch, TheFastestIsUsedAndKeptForOtherProcesses) {
  ga_ = to_device(a_.view(), kGpu), gb_ = to_device(b_.view(), kGpu);
  lt_->ms = {3, 2, 1, 2.5};
  const auto [algorithm, products] = call();
  EXPECT_EQ(algorithm, 2u);
  EXPECT_GT(products, 4u * 3);
  using Served = std::pair<size_t, size_t>;
  EXPECT_EQ(call(), Served(2, 1));
  lt_->ms = {1, 2, 3, 4};  // not measured again
  EXPECT_EQ(call_of_another_process(), Served(2, 1));
  EXPECT_NE(fs::read_file(entry()).value().find("a type 14 40x24 ld 40 step 0 at 256; b type 14 24x9"),
            std::string::npos)
      << *fs::read_file(entry());
  // On another GPU times are others; a file that is torn, or names an algorithm that the heuristic does not, is
  // not used.
  gpu().minor = 3;
  again();
  ga_ = to_device(a_.view(), kGpu), gb_ = to_device(b_.view(), kGpu);
  EXPECT_EQ(call_of_another_process().first, 0u);
  gpu().minor = 0;
  again();
  ga_ = to_device(a_.view(), kGpu), gb_ = to_device(b_.view(), kGpu);
  lt_->ms = {5, 1};
  EXPECT_EQ(call_of_another_process().first, 1u);
  for (const std::string& e : fs::list_dir(folder_ + "/v2"))
    for (const std::string& f : fs::list_dir(folder_ + "/v2/" + e + "/entries"))
      fs::write_atomic(folder_ + "/v2/" + e + "/entries/" + f, "{\"key\":");
  lt_->ms = {5, 9, 2};
  EXPECT_EQ(call_of_another_process().first, 2u);
}

TEST_F(CublasLtSearch, AFailureIsLeftOutAndNoiseDoesNotChoose) {
  ga_ = to_device(a_.view(), kGpu), gb_ = to_device(b_.view(), kGpu);
  lt_->ms = {3, -1, 2.99};
  EXPECT_EQ(call().first, 0u);
  fs::remove_tree(folder_);
  lt_->ms = {-1, 3, 2};
  EXPECT_EQ(call_of_another_process().first, 2u);
}

TEST_F(CublasLtSearch, SwitchedOffTheFirstIsUsedAndNothingIsTimed) {
  ga_ = to_device(a_.view(), kGpu), gb_ = to_device(b_.view(), kGpu);
  set("FLASHINFER_CUBLASLT_SEARCH", "0");
  lt_->ms = {3, 1};
  EXPECT_EQ(call(), (std::pair<size_t, size_t>(0, 1)));
  EXPECT_TRUE(fs::list_dir(folder_).empty());
}

TEST_F(CublasLtSearch, ACaptureTakesWhatIsKnownAndTimesNothing) {
  ga_ = to_device(a_.view(), kGpu), gb_ = to_device(b_.view(), kGpu);
  const Tensor out = Tensor::zeros({9, 40}, DType::kBF16, kGpu);
  const auto captured = [&] {
    cuda::synchronize(0, stream_->get());
    gpu().begin_capture(stream_->get());
    const size_t before = lt_->calls.size();
    mm_bf16({.a = ga_, .b = gb_, .out = out.view()});
    EXPECT_EQ(lt_->calls.size(), before + 1);
    EXPECT_GT(gpu().end_capture(stream_->get()), 0);  // not invalidated
    return lt_->calls.back().algorithm;
  };
  lt_->ms = {3, 1};
  EXPECT_EQ(captured(), 0u);
  EXPECT_EQ(call().first, 1u);
  EXPECT_EQ(captured(), 1u);
  cublaslt::detail::forget();
  EXPECT_EQ(captured(), 1u);  // from the file
}

TEST_F(CublasLtSearch, AFolderThatOthersCanWriteIsNotUsed) {
  ga_ = to_device(a_.view(), kGpu), gb_ = to_device(b_.view(), kGpu);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  lt_->ms = {3, 1};
  EXPECT_EQ(call().first, 1u);
  EXPECT_TRUE(fs::list_dir(folder_).empty());
}

/// A later stream may get the handle of one that was destroyed, and must not get its workspace, which may be in use.
TEST_F(CublasLt, AWorkspaceEndsWithItsStream) {
  const Tensor a = to_device(numbers<bf16_t>({6, 24}, DType::kBF16).view(), kGpu),
               b = to_device(numbers<bf16_t>({24, 40}, DType::kBF16).view(), kGpu),
               out = Tensor::zeros({6, 40}, DType::kBF16, kGpu);
  auto own = std::make_unique<cuda::Stream>(0);
  const auto multiply = [&](cuda::Stream& stream) {
    Context context = Context::current();
    context.stream = stream.get();
    const ContextScope scope(context);
    mm_bf16({.a = a, .b = b, .out = out.view()});
    cuda::synchronize(0, stream.get());
  };
  const size_t before = gpu().allocated;
  multiply(*own);
  const size_t with = gpu().allocated;
  EXPECT_GT(with, before);
  multiply(*own);
  EXPECT_EQ(gpu().allocated, with);  // the same again
  own.reset();
  cuda::synchronize_device(0);
  EXPECT_EQ(gpu().allocated, before);
  EXPECT_TRUE(gpu().faults.empty());
}

TEST_F(CublasLt, IsCapturedWithAWorkspaceOfTheGraph) {
  const Tensor a = to_device(numbers<bf16_t>({6, 24}, DType::kBF16).view(), kGpu),
               b = to_device(numbers<bf16_t>({24, 40}, DType::kBF16).view(), kGpu),
               out = Tensor::zeros({6, 40}, DType::kBF16, kGpu);
  cuda::synchronize(0, stream_->get());
  gpu().begin_capture(stream_->get());
  mm_bf16({.a = a, .b = b, .out = out.view()});
  EXPECT_GT(gpu().end_capture(stream_->get()), 0);  // not invalidated
  EXPECT_EQ(lt_->calls.size(), 1u);
}

TEST_F(CublasLt, ReasonsSayWhatToDo) {
  const Tensor a = to_device(numbers<bf16_t>({4, 24}, DType::kBF16).view(), kGpu),
               b = to_device(numbers<bf16_t>({24, 40}, DType::kBF16).view(), kGpu);
  const auto mm = [&] { return why_not("mm_bf16", MmBf16{.a = a, .b = b}); };
  const auto run = [&] { return error([&] { mm_bf16({.a = a, .b = b}); }); };
  const auto expect = [&](const std::string& part, const std::string& text) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  gpu().version = 12040;
  again();
  expect("the driver is for CUDA 12.4, but cuBLASLt is 13.1: update the driver, or install an nvidia-cublas 12.x",
         mm());
  gpu().version = 13000;
  gpu().major = 7, gpu().minor = 5;
  again();
  expect("bfloat16 products need compute capability 8.0, but Fake GPU has 7.5", mm());
  gpu().major = 9, gpu().minor = 0;
  again();
  set("FLASHINFER_CUBLASLT", "/nowhere/libcublasLt.so");
  cublaslt::detail::forget();
  expect("libcublasLt was not found; searched FLASHINFER_CUBLASLT=/nowhere/libcublasLt.so", mm());
  expect("pip install nvidia-cublas, or set FLASHINFER_CUBLASLT", mm());
  set("FLASHINFER_CUBLASLT", FI_TEST_LIBRARY("fake_libcuda"));
  cublaslt::detail::forget();
  expect("has no cublasLtCreate", mm());
  set("FLASHINFER_CUBLASLT", FI_TEST_LIBRARY("fake_cublaslt"));
  cublaslt::detail::forget();
  lt_->version = 110900;
  expect("cuBLASLt is 11.x", mm());
  lt_->version = 130100;
  cublaslt::detail::forget();
  lt_->workspace = size_t{1} << 40;
  const Tensor wide = to_device(numbers<bf16_t>({4, 25}, DType::kBF16).view(), kGpu),
               tall = to_device(numbers<bf16_t>({25, 8}, DType::kBF16).view(), kGpu);
  expect("cuBLASLt 13.1 has no algorithm for these types, layouts and alignments (CUBLAS_STATUS_NOT_SUPPORTED)",
         why_not("mm_bf16", MmBf16{.a = wide, .b = tall}));
  lt_->workspace = 0;
  // fp8: along k, at 16 bytes.
  const Tensor x = to_device(numbers<e4m3_t>({2, 4, 32}, DType::kF8E4M3).view(), kGpu),
               w = to_device(numbers<e4m3_t>({2, 32, 16}, DType::kF8E4M3).view(), kGpu),
               one = to_device(Tensor::zeros({1}, DType::kF32).view(), kGpu);
  expect("fp8 products of cuBLASLt read both matrices along k",
         why_not("bmm_fp8", BmmFp8{.A = x, .B = w, .A_scale = one, .B_scale = one, .dtype = DType::kBF16}));
  const Tensor odd = to_device(numbers<e4m3_t>({4, 40}, DType::kF8E4M3).view(), kGpu),
               weight = to_device(numbers<e4m3_t>({32, 40}, DType::kF8E4M3).view(), kGpu);
  expect("fp8 rows of a must begin at 16 bytes", why_not("mm_fp8", MmFp8{.a = odd, .b = weight}));
  // Gaps in both dimensions.
  const std::vector<int64_t> shape{2, 12}, strides{48, 2};
  expect("cuBLASLt needs one of a matrix's dimensions without gaps",
         why_not("mm_bf16",
                 MmBf16{.a = TensorView(a.data(), DType::kBF16, shape, strides, kGpu), .b = b.view().slice(0, 0, 12)}));
  lt_->fail = 14;
  expect("cublasLt: cublasLtMatmul failed: CUBLAS_STATUS_OF_THE_TEST (14)", run());
  EXPECT_EQ(run(), "");
  const Tensor ca = numbers<bf16_t>({4, 24}, DType::kBF16), cb = numbers<bf16_t>({24, 40}, DType::kBF16);
  mm_bf16({.a = ca, .b = cb});  // the CPU as before
  cuda::synchronize(0, stream_->get());
}

}  // namespace
}  // namespace flashinfer
