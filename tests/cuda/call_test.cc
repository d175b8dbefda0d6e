// SPDX-License-Identifier: Apache-2.0
// A whole call on cuda:0: check, select, NVRTC, launch, log, recording; over a driver that only keeps what it was
// asked, and a host function in place of the GPU's arithmetic.
#include <algorithm>

#include "call.h"
#include "flashinfer/bench/bench.h"
#include "flashinfer/op/registry.h"

namespace flashinfer {
namespace {

TEST_F(Call, RunsOnTheGpuOfItsTensors) {
  const Tensor y = rmsnorm({.input = input_, .weight = weight_, .enable_pdl = true});
  EXPECT_EQ(y.device(), kGpu);
  ASSERT_EQ(gpu().launches.size(), 1u);
  const fake::Launched& l = gpu().launches[0];
  EXPECT_EQ(l.config.stream, stream_->get());
  ASSERT_EQ(l.attributes.size(), 1u);
  EXPECT_EQ(l.attributes[0].name, cuda::LaunchAttribute::kProgrammaticStreamSerialization);
  EXPECT_EQ(reinterpret_cast<const NormParams*>(l.params)->input, input_.data());
  EXPECT_EQ(gpu().pending(stream_->get()), 1);  // not synchronized
  expect_right(y.view());
  ASSERT_FALSE(jit::modules().empty());
  EXPECT_EQ(jit::modules()[0].target, "sm_90a");
  EXPECT_NE(jit::modules()[0].path.find("/sm_90a/norm.rmsnorm-"), std::string::npos);
  EXPECT_TRUE(jit::modules()[0].path.ends_with("/kernel.cubin"));
  // Another process would find it on disk.
  jit::reset();
  rmsnorm({.input = input_, .weight = weight_});
  EXPECT_EQ(jit::modules()[0].origin, "disk");
  cuda::synchronize(0, stream_->get());
}

/// The driver says 1.5 ms between any two events.
TEST_F(Call, BenchTimesByEvents) {
  const op::Op& op = *op::find_op("rmsnorm");
  const op::Case row{.name = "given", .args = "input=f32:3x8 weight=f32:8", .candidate = "cuda"};
  const bench::Row warm = bench::run(op, row, {.seconds = 0, .device = kGpu});
  EXPECT_EQ(warm.candidate, "cuda");
  EXPECT_EQ(warm.samples.seconds, std::vector<double>(5, 1.5e-3));
  EXPECT_NEAR(warm.copy_bandwidth, 2.0 * static_cast<double>(gpu().memory / 16) / 1.5e-3, 1);
  EXPECT_EQ(warm.peak, 0);
  const int fills = gpu().calls["cuMemsetD8Async"];
  const bench::Row cold = bench::run(op, row, {.seconds = 0, .device = kGpu, .cold = true});
  EXPECT_EQ(cold.samples.seconds.size(), 5u);
  EXPECT_EQ(gpu().calls["cuMemsetD8Async"] - fills, 5 + 2);  // before each call, and what the two copies read
  const op::Case other{.name = "given", .args = "b_blocks=u8:3x54:Q4_0 format='Q4_0'", .candidate = ""};
  EXPECT_NE(error([&] {
              bench::run(*op::find_op("prepare_gguf_weights"), other, {.device = kGpu});
            }).find("no candidate supports it on cuda:0"),
            std::string::npos);
}

TEST_F(Call, TensorsOfTwoDevicesAreRejectedByName) {
  const std::string e = error([&] { rmsnorm({.input = input_, .weight = w_}); });
  EXPECT_NE(e.find("rmsnorm"), std::string::npos);
  EXPECT_NE(e.find("weight is in host memory, but this implementation runs on GPUs"), std::string::npos) << e;
  EXPECT_TRUE(gpu().launches.empty());
}

TEST_F(Call, AGpuWithoutTargetIsASentence) {
  gpu().major = 7, gpu().minor = 0;
  again();
  const std::string e = error([&] { rmsnorm({.input = input_, .weight = weight_}); });
  EXPECT_NE(e.find("Fake GPU (compute capability 7.0) is older than 7.5"), std::string::npos) << e;
}

TEST_F(Call, AnOlderDriverThanTheCompilerIsASentence) {
  gpu().version = 12040;
  again();
  const std::string e = error([&] { rmsnorm({.input = input_, .weight = weight_}); });
  EXPECT_NE(e.find("the driver is for CUDA 12.4, but NVRTC is 13."), std::string::npos) << e;
  EXPECT_NE(e.find("install an NVRTC 12.x"), std::string::npos) << e;
}

TEST_F(Call, TheArchListChooses) {
  set("FLASHINFER_CUDA_ARCH_LIST", "8.0");
  again();
  EXPECT_NE(error([&] {
              rmsnorm({.input = input_, .weight = weight_});
            }).find("FLASHINFER_CUDA_ARCH_LIST holds nothing that runs on Fake GPU"),
            std::string::npos);
}

TEST_F(Call, LevelsUpToThreeWaitForNothing) {
  for (const int level : {1, 3}) {
    observe(level);
    const Tensor y = rmsnorm({.input = input_, .weight = weight_});
    EXPECT_EQ(waits(), 0) << level;
    expect_right(y.view());
  }
  EXPECT_NE(log().find("device=cuda:0"), std::string::npos) << log();
}

TEST_F(Call, StatisticsAreOfTheStreamsOrder) {
  observe(5);
  const Tensor y = rmsnorm({.input = input_, .weight = weight_});
  EXPECT_NE(log().find("min=-5.000000"), std::string::npos) << log();
  EXPECT_NE(log().find("max=18.000000"), std::string::npos) << log();
  EXPECT_GT(waits(), 0);
  expect_right(y.view());
}

TEST_F(Call, ARecordingCopiesInTheOrderOfTheStream) {
  observe(10);
  const Tensor y = rmsnorm({.input = input_, .weight = weight_});
  expect_right(y.view());
  std::vector<std::string> got;  // what matters of the order
  for (const std::string& o : gpu().order)
    if (o == "stream 1: launch")
      got.push_back("kernel");
    else if (o.find("to host") != o.npos)
      got.push_back(o);
  ASSERT_GE(got.size(), 4u);
  const auto kernel = std::ranges::find(got, "kernel");
  EXPECT_GE(kernel - got.begin(), 2);  // input and weight before it
  EXPECT_GE(got.end() - kernel, 2);    // the result behind it
  for (const std::string& o : gpu().order) EXPECT_TRUE(o.starts_with("stream 1: ")) << o;
  EXPECT_NE(session().find("\"execution_status\": \"completed\""), std::string::npos) << session();
  EXPECT_NE(session().find("\"device\": \"cuda:0\""), std::string::npos);
  EXPECT_NE(session().find("Fake GPU"), std::string::npos);
}

TEST_F(Call, AFaultIsChargedToItsCallWhenAsked) {
  rmsnorm({.input = input_, .weight = weight_});
  cuda::synchronize(0, stream_->get());
  gpu().kernel_status = cuda::kIllegalAddress;
  observe(10, /*sync=*/true);
  const std::string e = error([&] { rmsnorm({.input = input_, .weight = weight_}); });
  EXPECT_NE(e.find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos) << e;
  EXPECT_NE(session().find("\"execution_status\": \"failed\""), std::string::npos) << session();
  EXPECT_EQ(session().find("\"execution_status\": \"completed\""), std::string::npos) << session();
}

}  // namespace
}  // namespace flashinfer
