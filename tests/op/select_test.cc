// SPDX-License-Identifier: Apache-2.0
// Which candidate runs a call: by where its tensors are, by what prepare() says; what a prepared launch holds; whose
// name an error carries.
#include "flashinfer/op/select.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "flashinfer/core/transfer.h"
#include "flashinfer/op/call.h"

namespace flashinfer {
namespace {

constexpr Device kEmu{DeviceType::kEmu, 0};

struct Pair {
  TensorView x, y;  // [n]
  std::optional<TensorView> workspace = {};
};
constexpr op::Field kFields[] = {op::in<&Pair::x>("x", "n", DType::kF32), op::in<&Pair::y>("y", "n", DType::kF32),
                                 op::scratch<&Pair::workspace>("workspace", nullptr)};
constexpr op::Op define(const char* name, std::span<const op::Candidate> candidates) {
  return op::define<Pair>(name, "tests.op", "", kFields, candidates, nullptr);
}

/// What ran last and what it saw.
struct Seen {
  std::string who;
  Device device, x, workspace;
  float first = 0;
} g_seen;
op::Prepared prepare_on_gpu(const Pair&, const op::Call& call) {
  return [device = call.device] { g_seen = {.who = "cuda", .device = device}; };
}
op::Prepared prepare_never(const Pair&) { return op::Unsupported{"it never does"}; }
void launch_on_cpu(const Pair&) { g_seen = {.who = "cpu"}; }
void launch_on_host(const Pair& a) {
  g_seen = {.who = "host", .x = a.x.device(), .workspace = a.workspace ? a.workspace->device() : kCpu};
  if (a.x.device() == kCpu) g_seen.first = a.x.data_as<float>()[0];
}
constexpr op::Candidate kBoth[] = {op::cuda<prepare_on_gpu>(), op::cpu<prepare_never>(),
                                   op::reference<launch_on_cpu>()};
constinit const op::Op kOnBoth = define("on_both", kBoth);
constexpr op::Candidate kHostOnly[] = {op::cpu<launch_on_cpu>()};
constinit const op::Op kOnHost = define("on_host", kHostOnly);

class Candidates : public testing::Test {
 protected:
  const Tensor host = Tensor::zeros({3}, DType::kF32), gpu = to_device(host, kEmu);
};

std::string error_of(const op::Op& op, const Pair& a) {
  try {
    op::call(op, a);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST_F(Candidates, CandidatesOfAnotherPlaceArePassedOver) {
  op::call(kOnBoth, Pair{.x = gpu, .y = gpu});
  EXPECT_EQ(g_seen.who, "cuda");
  EXPECT_EQ(g_seen.device, kEmu);
  op::call(kOnBoth, Pair{.x = host, .y = host});
  EXPECT_EQ(g_seen.who, "cpu");  // the reference
  const Pair a{.x = host, .y = host};
  const op::Selection s = op::explain(kOnBoth, &a);
  EXPECT_EQ(s.candidate->backend, op::Backend::kReference);
  ASSERT_EQ(s.rejections.size(), 1u) << "the candidate for GPUs needs no reason";
  EXPECT_EQ(s.rejections[0].why, "it never does");
}

TEST_F(Candidates, TensorsOfOneCallAreInOnePlace) {
  EXPECT_EQ(
      error_of(kOnBoth, {.x = gpu, .y = host}),
      "NotImplementedError: on_both: no implementation supports this call; cuda: y is in host memory, but this "
      "implementation runs on GPUs; cpu: x is on emu:0, but this implementation runs on the CPU; reference: x is on "
      "emu:0, but this implementation runs on the CPU");
  EXPECT_EQ(
      error_of(kOnHost, {.x = host, .y = gpu}),
      "NotImplementedError: on_host: no implementation supports this call; this op has no kernel for GPUs yet, and "
      "a tensor is on emu:0: copy it to the host; cpu: y is on emu:0, but this implementation runs on the CPU");
  const Pair mixed{.x = gpu, .y = host};
  const op::Placement at = op::placement_of(kOnBoth, &mixed);
  EXPECT_EQ(at.device, kEmu);
  EXPECT_STREQ(at.on_device->name, "x");
  EXPECT_STREQ(at.on_host->name, "y");
  EXPECT_EQ(at.elsewhere, nullptr);
}

TEST_F(Candidates, AForcedCandidateIsTheOnlyOne) {
  const op::ForceCandidate force("cpu");
  EXPECT_EQ(
      error_of(kOnBoth, {.x = host, .y = host}),
      "NotImplementedError: on_both: no implementation supports this call; cuda: only 'cpu' is requested; cpu: it "
      "never does; reference: only 'cpu' is requested");
}

TEST_F(Candidates, HostCodeReadsCopiesOfArraysElsewhereButKeepsScratch) {
  static constexpr op::Candidate candidates[] = {op::host_arrays<launch_on_host>()};
  static constinit const op::Op plan = define("plan", candidates);
  const Tensor x = Tensor::zeros({3}, DType::kF32);
  x.view().data_as<float>()[0] = 7;
  const Tensor on_gpu = to_device(x, kEmu);
  op::call(plan, Pair{.x = on_gpu, .y = gpu, .workspace = gpu.view()});
  EXPECT_EQ(g_seen.x, kCpu);
  EXPECT_EQ(g_seen.first, 7);
  EXPECT_EQ(g_seen.workspace, kEmu);
  static constexpr op::Candidate anywhere[] = {op::host<launch_on_host>()};
  static constinit const op::Op init = define("init", anywhere);
  op::call(init, Pair{.x = on_gpu, .y = host});
  EXPECT_EQ(g_seen.x, kEmu);
}

TEST(Prepared, HoldsLaunchesOfAnySizeAndDestroysThem) {
  const auto counter = std::make_shared<int>(0);
  struct Large {
    std::shared_ptr<int> counter;
    char bytes[4 * op::Prepared::kInline] = {};
    void operator()() { ++*counter; }
  };
  {
    op::Prepared small = [counter] { ++*counter; };
    op::Prepared large = Large{counter};
    op::Prepared none = op::Unsupported{"no"};
    EXPECT_TRUE(small.supported() && large.supported() && !none.supported());
    EXPECT_EQ(none.why_not(), "no");
    small.run(), large.run(), large.run();
    EXPECT_EQ(counter.use_count(), 3);
  }
  EXPECT_EQ(*counter, 3);
  EXPECT_EQ(counter.use_count(), 1);
}

void launch_odd(const Pair&) { throw ValueError("x is odd"); }
constexpr op::Candidate kInner[] = {op::cpu<launch_odd>()};
constinit const op::Op kInnerOp = define("inner", kInner);
void launch_outer(const Pair& a) { op::call(kInnerOp, a); }
constexpr op::Candidate kOuter[] = {op::cpu<launch_outer>()};
constinit const op::Op kOuterOp = define("outer", kOuter);

TEST_F(Candidates, AnErrorCarriesTheNameOfTheInnermostOpOnce) {
  try {
    op::call(kOuterOp, Pair{.x = host, .y = host});
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "ValueError: inner: x is odd");
    EXPECT_EQ(e.message(), "inner: x is odd");
  }
}

}  // namespace
}  // namespace flashinfer
