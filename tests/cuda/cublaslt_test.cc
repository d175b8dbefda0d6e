// SPDX-License-Identifier: Apache-2.0
// Products through cuBLASLt: the arguments passed to it, the results, what is unsupported and why.
#include <dlfcn.h>
#include <sys/stat.h>

#include <cstring>
#include <random>
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
#include "lt_machine.h"
#include "test_paths.h"

namespace flashinfer {
namespace {

constexpr Device kGpu{DeviceType::kCUDA, 0};

class CublasLt : public LtMachine {
 protected:
  void SetUp() override {
    LtMachine::SetUp();
    stream_ = std::make_unique<cuda::Stream>(0);
    context_.stream = stream_->get();
    scope_ = std::make_unique<ContextScope>(context_);
  }
  void TearDown() override {
    scope_.reset();
    stream_.reset();
    LtMachine::TearDown();
  }
  /// Small whole numbers, so that every sum is exact in every type.
  template <class T>
  Tensor numbers(const std::vector<int64_t>& shape, DType dtype) {
    Tensor t = Tensor::empty(shape, dtype);
    for (int64_t i = 0; i < t.numel(); ++i)
      static_cast<T*>(t.data())[i] = T(static_cast<float>(static_cast<int>(random_() % 5) - 2));
    return t;
  }
  static TensorView transposed(const Tensor& t) {
    std::vector<int64_t> shape(t.shape().begin(), t.shape().end()),
        strides(t.view().strides().begin(), t.view().strides().end());
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]),
        std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
    return TensorView(t.data(), t.dtype(), shape, strides, t.device());
  }
  void expect_same(const Tensor& got, const Tensor& want) {
    EXPECT_EQ(got.device(), kGpu);
    const Tensor here = to_device(got.view(), kCpu);
    ASSERT_EQ(here.nbytes(), want.nbytes());
    EXPECT_EQ(std::memcmp(here.data(), want.data(), static_cast<size_t>(want.nbytes())), 0);
  }

  std::mt19937 random_{1};
  std::unique_ptr<cuda::Stream> stream_;
  Context context_ = Context::current();
  std::unique_ptr<ContextScope> scope_;
};

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

/// Why cuBLASLt does not run the call, for which there is another kernel.
template <class Block>
std::string why_not(const char* op, const Block& block) {
  for (const auto& [candidate, why] : op::explain(*op::find_op(op), &block).rejections)
    if (candidate->backend == op::Backend::kCublasLt) return why;
  return {};
}

/// Products with scales of blocks, on a GPU that has them. The library's own kernel takes no time on this clock.
class CublasLtBlocks : public CublasLt {
 protected:
  void SetUp() override {
    CublasLt::SetUp();
    on(10, 0);
    lt_->ms = {0};  // as fast as the own kernel: the first way is kept
  }
  void on(int major, int minor) {
    gpu().major = major, gpu().minor = minor;
    again();
    cublaslt::detail::forget();
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
