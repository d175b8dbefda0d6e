// SPDX-License-Identifier: Apache-2.0
// The layer over libcuda: what it says when something is missing, what it enqueues and in which order.
#include <numeric>

#include "flashinfer/core/context.h"
#include "flashinfer/core/transfer.h"
#include "machine.h"

namespace flashinfer {
namespace {

using Driver = Machine;
using Memory = Machine;
using Launch = Machine;

constexpr char kCubin[] = "\177ELF and more";

TEST_F(Driver, WithoutOneIsASentence) {
  set("FLASHINFER_LIBCUDA", "/nonexistent/libcuda.so");
  again();
  EXPECT_NE(cuda::driver().why_not.find("FLASHINFER_LIBCUDA is /nonexistent/libcuda.so, which cannot be loaded"),
            std::string::npos);
  EXPECT_NE(error([] {
              Tensor::empty({4}, DType::kF32, {DeviceType::kCUDA, 0});
            }).find("NotImplementedError: cuda: FLASHINFER_LIBCUDA"),
            std::string::npos);
  EXPECT_EQ(Tensor::zeros({4}, DType::kF32).numel(), 4);  // the CPU goes on
}

TEST_F(Driver, TooOldIsASentence) {
  gpu().version = 11080;
  again();
  EXPECT_EQ(cuda::driver().why_not, "the NVIDIA driver is for CUDA 11.8, but 12.0 or newer is needed: update it");
}

TEST_F(Driver, WithoutGpuIsASentence) {
  gpu().init_status = cuda::kNoDevice;
  again();
  EXPECT_EQ(cuda::why_no_device(0), "the NVIDIA driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it)");
  gpu().init_status = cuda::kSystemDriverMismatch;
  again();
  EXPECT_NE(cuda::why_no_device(0).find("restart the machine"), std::string::npos);
  gpu().init_status = 0, gpu().devices = 0;
  again();
  EXPECT_NE(cuda::why_no_device(0).find("finds no GPU"), std::string::npos);
}

TEST_F(Driver, DevicesAreAskedOnceAndByNumber) {
  const cuda::DeviceInfo& i = cuda::device_info(0);
  EXPECT_EQ(i.name, "Fake GPU");
  EXPECT_EQ(i.major * 10 + i.minor, 90);
  EXPECT_EQ(i.sms, 132);
  EXPECT_EQ(i.shared_per_block, 232448);
  EXPECT_TRUE(i.clusters && i.memory_pools);
  EXPECT_EQ(gpu().calls["cuDevicePrimaryCtxRetain"], 0);  // asking costs no context
  {
    const cuda::Current once(0);
  }
  {
    const cuda::Current again(0);
  }
  EXPECT_EQ(gpu().calls["cuDevicePrimaryCtxRetain"], 1);
  EXPECT_EQ(cuda::why_no_device(3), "cuda:3 is not there: the driver finds 1 GPU (cuda:0)");
}

TEST_F(Driver, TheThreadsContextComesBack) {
  cuda::Handle now = nullptr;
  {
    const cuda::Current outer(0);
    const cuda::Current inner(0);  // the same: nothing is pushed
    cuda::api().cuCtxGetCurrent(&now);
    EXPECT_NE(now, nullptr);
  }
  cuda::api().cuCtxGetCurrent(&now);
  EXPECT_EQ(now, nullptr);
}

TEST_F(Driver, AFaultIsKeptAndSaid) {
  const cuda::Function f = cuda::load(kCubin, "flashinfer_kernel", 0);
  gpu().kernel_status = cuda::kIllegalAddress;
  const uint64_t params = 0;
  cuda::launch(f, &params, {}, nullptr, "probe");  // asynchronous: nothing yet
  EXPECT_EQ(cuda::sticky_error(0), "");
  const std::string first = error([] { cuda::synchronize(0, nullptr); });
  EXPECT_NE(first.find("CUDA_ERROR_ILLEGAL_ADDRESS (700): as the driver says it; a kernel launched earlier faulted"),
            std::string::npos)
      << first;
  EXPECT_NE(first.find("FLASHINFER_DUMP_SYNC=1 names the call"), std::string::npos);
  EXPECT_NE(cuda::why_no_device(0).find("the GPU faulted earlier in this process (cuStreamSynchronize: "),
            std::string::npos);
  EXPECT_NE(
      error([] { Tensor::empty({4}, DType::kF32, {DeviceType::kCUDA, 0}); }).find("(first seen at cuStreamSynchronize"),
      std::string::npos);
}

TEST_F(Driver, AFaultIsOfItsGpu) {
  gpu().devices = 2;
  again();
  EXPECT_EQ(cuda::why_no_device(1), "");
  const cuda::Function f = cuda::load(kCubin, "flashinfer_kernel", 0);
  gpu().kernel_status = cuda::kIllegalAddress;
  const uint64_t params = 0;
  cuda::launch(f, &params, {}, nullptr, "probe");
  EXPECT_NE(error([] { cuda::synchronize(0, nullptr); }), "");
  EXPECT_NE(cuda::why_no_device(0), "");
  EXPECT_EQ(cuda::why_no_device(1), "");
}

TEST_F(Memory, OutOfItSaysHowMuchIsFree) {
  gpu().memory = 1 << 20;
  const std::string e = error([] { Tensor::empty({2 << 20}, DType::kU8, {DeviceType::kCUDA, 0}); });
  EXPECT_EQ(e, "RuntimeError: out of memory on cuda:0: 2097152 bytes were requested, 1048576 of 1048576 are free");
}

TEST_F(Memory, GoesBackInTheOrderOfItsStream) {
  cuda::Stream stream(0);
  Context context = Context::current();
  context.stream = stream.get();
  {
    const ContextScope scope(context);
    Tensor t = Tensor::zeros({100}, DType::kF32, {DeviceType::kCUDA, 0});
    EXPECT_EQ(gpu().allocated, 400u);
  }
  EXPECT_EQ(gpu().allocated, 400u);  // freed behind the fill
  cuda::synchronize(0, stream.get());
  EXPECT_EQ(gpu().allocated, 0u);
  EXPECT_EQ(gpu().order, (std::vector<std::string>{"stream 1: fill", "stream 1: free"}));
}

TEST_F(Memory, WithoutPoolsIsAllocatedPlainly) {
  gpu().pools = false;
  {
    const Tensor t = Tensor::empty({100}, DType::kF32, {DeviceType::kCUDA, 0});
  }
  EXPECT_EQ(gpu().calls["cuMemAlloc_v2"], 1);
  EXPECT_EQ(gpu().calls["cuMemFree_v2"], 1);
  EXPECT_EQ(gpu().allocated, 0u);
}

/// More than two pieces of the staging, not a whole number of them.
TEST_F(Memory, CopiesGoThroughPinnedPieces) {
  std::vector<int32_t> values(5'000'001);
  std::iota(values.begin(), values.end(), 7);
  const Tensor there = to_device(TensorView(std::span<const int32_t>(values)), {DeviceType::kCUDA, 0});
  EXPECT_EQ(there.device().type, DeviceType::kCUDA);
  const Tensor copy = Tensor::clone(there.view());
  const Tensor back = to_device(copy.view(), kCpu);
  EXPECT_TRUE(std::ranges::equal(back.span<int32_t>(), values));
  EXPECT_EQ(gpu().calls["cuMemHostAlloc"], 2);
  EXPECT_EQ(gpu().calls["cuMemcpyHtoDAsync_v2"], 5);
}

/// Allocated on one stream, read on another, freed: the memory is the pool's only after both.
TEST_F(Memory, IsFreeAfterItsUseOnAnotherStream) {
  cuda::Stream owner(0), other(0);
  Context context = Context::current();
  context.stream = owner.get();
  const ContextScope scope(context);
  Tensor t = Tensor::zeros({100}, DType::kF32, {DeviceType::kCUDA, 0});
  bool used = false;
  gpu().enqueue(other.get(), "use", [&] { used = true; });
  cuda::used_on(t.data(), 0, other.get());
  t = Tensor();
  cuda::synchronize(0, owner.get());
  EXPECT_EQ(gpu().allocated, 0u);
  EXPECT_TRUE(used);
}

/// The fake driver finds every use of a stream that is destroyed.
TEST_F(Memory, OutlivesItsStream) {
  auto owner = std::make_unique<cuda::Stream>(0);
  Context context = Context::current();
  context.stream = owner->get();
  const ContextScope scope(context);
  cuda::Stream other(0);
  Tensor a = Tensor::zeros({100}, DType::kF32, {DeviceType::kCUDA, 0}),
         b = Tensor::zeros({100}, DType::kF32, {DeviceType::kCUDA, 0});
  cuda::used_on(a.data(), 0, other.get());
  context.stream = other.get();
  const ContextScope later(context);
  Tensor c = Tensor::zeros({100}, DType::kF32, {DeviceType::kCUDA, 0});
  cuda::used_on(c.data(), 0, owner->get());
  bool done = false;
  gpu().enqueue(owner->get(), "use", [&] { done = true; });
  gpu().order.clear();
  owner.reset();
  EXPECT_EQ(gpu().order.back(), "stream 1: event");  // behind the use: what frees wait for
  a = b = c = Tensor();
  EXPECT_GT(gpu().allocated, 0u);  // in the order of a stream: nothing was waited for
  cuda::synchronize_device(0);
  EXPECT_EQ(gpu().allocated, 0u);
  EXPECT_TRUE(done);
}

/// Asynchronous copies: the content at the time of the call, in the order of the stream.
TEST_F(Memory, EnqueuedUploadsDoNotWait) {
  cuda::Stream stream(0);
  Context context = Context::current();
  context.stream = stream.get();
  const ContextScope scope(context);
  const Tensor t = Tensor::zeros({300'000}, DType::kU8, {DeviceType::kCUDA, 0});
  std::vector<uint8_t> seen;
  for (uint8_t round = 1; round <= 40; ++round) {
    std::vector<uint8_t> bytes(300'000, round);
    cuda::enqueue_upload(t.data(), bytes.data(), bytes.size(), 0, stream.get());
    gpu().enqueue(stream.get(), "look", [&] {
      seen.push_back(static_cast<const uint8_t*>(fake::host(t.data()))[0]);
      seen.push_back(static_cast<const uint8_t*>(fake::host(t.data()))[299'999]);
    });
    std::ranges::fill(bytes, uint8_t{99});
  }
  EXPECT_EQ(gpu().calls["cuEventSynchronize"] + gpu().calls["cuStreamSynchronize"], 0);
  EXPECT_LE(gpu().calls["cuMemHostAlloc"], 64);
  cuda::synchronize(0, stream.get());
  ASSERT_EQ(seen.size(), 80u);
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i / 2 + 1);
  gpu().begin_capture(stream.get());
  const std::string e = error([&] { cuda::enqueue_upload(t.data(), seen.data(), 1, 0, stream.get()); });
  EXPECT_NE(e.find("host memory cannot be copied to the device while the stream is being captured"), std::string::npos)
      << e;
  gpu().end_capture(stream.get());
}

TEST_F(Memory, StridesComeAlong) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0f);
  const TensorView v = TensorView(values.data(), {4, 6}).slice(1, 1, 4).transpose(0, 1);
  const Tensor back = to_device(to_device(v, {DeviceType::kCUDA, 0}).view(), kCpu);
  ASSERT_TRUE(std::ranges::equal(back.view().strides(), v.strides()));
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 4; ++j)
      EXPECT_EQ(back.view().select(0, i).select(0, j).data_as<float>()[0], values[static_cast<size_t>(j * 6 + i + 1)]);
}

TEST_F(Memory, IsNotReadWhileTheStreamIsCaptured) {
  const Tensor t = Tensor::zeros({4}, DType::kF32, {DeviceType::kCUDA, 0});
  gpu().begin_capture(nullptr);
  const std::string e = error([&] { to_device(t.view(), kCpu); });
  EXPECT_NE(e.find("device memory cannot be read while the stream is being captured"), std::string::npos) << e;
  EXPECT_EQ(gpu().end_capture(nullptr), 0);  // and the capture is still good
}

TEST_F(Memory, OfBeforeACaptureMayGoDuringIt) {
  cuda::Stream stream(0);
  Context context = Context::current();
  context.stream = stream.get();
  const ContextScope scope(context);
  Tensor t = Tensor::empty({100}, DType::kF32, {DeviceType::kCUDA, 0});
  gpu().begin_capture(stream.get());
  t = Tensor();
  EXPECT_EQ(gpu().end_capture(stream.get()), 0);  // still good, and no part of it
  EXPECT_EQ(gpu().allocated, 0u);
}

TEST_F(Memory, PoolKeepsWhatWaitsWouldGiveBack) {
  {
    const cuda::Current first(0);
  }
  EXPECT_EQ(gpu().pool_threshold, uint64_t{1} << 30);
  again();
  gpu().pool_threshold = uint64_t{3} << 30;  // of another library in the process
  {
    const cuda::Current first(0);
  }
  EXPECT_EQ(gpu().pool_threshold, uint64_t{3} << 30);
  gpu().pools = false, gpu().pool_threshold = 0;
  again();
  {
    const cuda::Current first(0);
  }
  EXPECT_EQ(gpu().pool_threshold, 0u);
}

TEST_F(Launch, OldDriversHaveNoDependentLaunchInGraphs) {
  for (const int version : {12020, 12030}) {
    gpu().version = version;
    again();
    const cuda::Function f = cuda::load(kCubin, "flashinfer_kernel", 0);
    cuda::Stream stream(0);
    const uint64_t params = 0;
    const cuda::Launch l{.pdl = true};
    for (const bool captured : {false, true}) {
      gpu().launches.clear();
      if (captured) gpu().begin_capture(stream.get());
      cuda::launch(f, &params, l, stream.get(), "probe");
      if (captured) {
        EXPECT_EQ(gpu().end_capture(stream.get()), 1);
      }
      ASSERT_EQ(gpu().launches.size(), 1u);
      EXPECT_EQ(gpu().launches[0].attributes.size(), captured && version < 12030 ? 0u : 1u) << version << captured;
    }
  }
}
TEST_F(Launch, AGridBeyond32BitsDoesNotWrapAround) {
  EXPECT_EQ(cuda::grid_size(7), 7u);
  cuda::Launch l;
  l.grid[0] = cuda::grid_size((int64_t{1} << 32) + 5);
  EXPECT_THROW(cuda::check_launch(l, true, 232448, "probe"), ValueError);
}

TEST_F(Launch, GivesTheDriverWhatItWasGiven) {
  const cuda::Function f = cuda::load(kCubin, "flashinfer_kernel", 0);
  EXPECT_EQ(f.registers, 32);
  cuda::Stream stream(0);
  const uint64_t params = 0x1122334455667788;
  const cuda::Launch l{.grid = {12, 3, 2},
                       .block = {64, 2, 1},
                       .cluster = {4, 1, 1},
                       .shared_bytes = 100000,
                       .cooperative = true,
                       .pdl = true};
  cuda::launch(f, &params, l, stream.get(), "probe");
  ASSERT_EQ(gpu().launches.size(), 1u);
  const fake::Launched& got = gpu().launches[0];
  EXPECT_EQ(std::vector<unsigned>(got.config.grid, got.config.grid + 6), (std::vector<unsigned>{12, 3, 2, 64, 2, 1}));
  EXPECT_EQ(got.config.shared_bytes, 100000u);
  EXPECT_EQ(got.config.stream, stream.get());
  EXPECT_EQ(*reinterpret_cast<const uint64_t*>(got.params), params);
  ASSERT_EQ(got.attributes.size(), 3u);
  EXPECT_EQ(got.attributes[0].name, cuda::LaunchAttribute::kClusterDimension);
  EXPECT_EQ(got.attributes[0].dim[0], 4u);
  EXPECT_EQ(got.attributes[1].name, cuda::LaunchAttribute::kCooperative);
  EXPECT_EQ(got.attributes[2].name, cuda::LaunchAttribute::kProgrammaticStreamSerialization);
  EXPECT_EQ(got.attributes[2].on, 1);
}

TEST_F(Launch, OldGpusGetNoNewAttributes) {
  gpu().major = 8;
  const cuda::Function f = cuda::load(kCubin, "flashinfer_kernel", 0);
  const uint64_t params = 0;
  cuda::launch(f, &params, {.pdl = true}, nullptr, "probe");
  EXPECT_TRUE(gpu().launches.at(0).attributes.empty());
  EXPECT_NE(error([&] {
              cuda::launch(f, &params, {.grid = {2, 1, 1}, .cluster = {2, 1, 1}}, nullptr, "probe");
            }).find("ValueError: probe: a cluster has 2 blocks, but this GPU has no clusters"),
            std::string::npos);
}

TEST_F(Launch, LimitsAreSaidWithBothNumbers) {
  const cuda::Function f = cuda::load(kCubin, "flashinfer_kernel", 0);
  const uint64_t params = 0;
  const auto says = [&](const cuda::Launch& l, const char* text) {
    const std::string e = error([&] { cuda::launch(f, &params, l, nullptr, "probe"); });
    EXPECT_NE(e.find(text), std::string::npos) << e;
  };
  says({.grid = {1, 70000, 1}}, "grid.y is 70000, but must be in [1, 65535]");
  says({.grid = {0, 1, 1}}, "grid.x is 0, but must be in [1, 2147483647]");
  says({.block = {1, 1, 65}}, "block.z is 65, but must be in [1, 64]");
  says({.block = {512, 4, 1}}, "a block has 2048 threads, but at most 1024 are possible");
  says({.grid = {3, 1, 1}, .cluster = {2, 1, 1}}, "cluster.x is 2, but must divide grid.x, which is 3");
  says({.shared_bytes = 300000}, "a block needs 300000 bytes of shared memory, but this GPU gives at most 232448");
  EXPECT_TRUE(gpu().launches.empty());
}

TEST_F(Launch, ModulesLoadBesideACapture) {
  cuda::Stream stream(0);
  gpu().begin_capture(stream.get());
  const cuda::Function f = cuda::load(kCubin, "flashinfer_kernel", 0);
  const uint64_t params = 0;
  cuda::launch(f, &params, {}, stream.get(), "probe");
  EXPECT_EQ(gpu().pending(stream.get()), 0);
  EXPECT_EQ(gpu().end_capture(stream.get()), 1);
}

TEST_F(Launch, EventsOrderStreams) {
  cuda::Stream a(0), b(0);
  cuda::Event e(0);
  const Tensor t = Tensor::empty({64}, DType::kU8, {DeviceType::kCUDA, 0});
  cuda::fill(t.data(), 3, 64, 0, a.get());
  e.record(a.get());
  e.wait_on(b.get());
  cuda::fill(t.data(), 4, 64, 0, b.get());
  cuda::synchronize(0, b.get());
  EXPECT_EQ(gpu().order,
            (std::vector<std::string>{"stream 2: wait", "stream 1: fill", "stream 1: event", "stream 2: fill"}));
  EXPECT_TRUE(e.done());
  EXPECT_EQ(static_cast<const uint8_t*>(fake::host(t.data()))[63], 4);
}

TEST_F(Launch, OtherStreamsAreWaitedForBesideACapture) {
  cuda::Stream captured(0), other(0);
  cuda::Event first(0), second(0);
  const Tensor t = Tensor::empty({64}, DType::kU8, {DeviceType::kCUDA, 0});
  gpu().begin_capture(
      captured.get());  // in mode "global" the driver takes the calls below for mistakes, and ends the capture
  cuda::fill(t.data(), 3, 64, 0, other.get());
  first.record(other.get());
  EXPECT_FALSE(first.done());
  EXPECT_TRUE(first.done());
  second.record(other.get());
  second.wait();
  cuda::synchronize(0, other.get());
  EXPECT_EQ(gpu().end_capture(captured.get()), 0);
}

}  // namespace
}  // namespace flashinfer
