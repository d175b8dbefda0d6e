// SPDX-License-Identifier: Apache-2.0
// All-reduces of several processes' GPUs on the fake driver: what they exchange, launch and give back.
#include "flashinfer/comm/peer_memory.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/ops/comm/kernels/cuda_params.h"
#include "machine.h"
#include "tests/comm/ranks.h"

namespace flashinfer {
namespace {

constexpr Device kGpu{DeviceType::kCUDA, 0};

struct Peers : Machine {
  void SetUp() override {
    Machine::SetUp();
    folder_ = fs::make_temp_dir("/tmp", "flashinfer-cuda-test-");
    set("FLASHINFER_WORKSPACE_BASE", folder_);
  }
  void TearDown() override {
    fs::remove_tree(folder_);
    Machine::TearDown();
  }
  /// f(workspace, rank) on `ranks` processes, with a machine each; then the workspace's end.
  template <class F>
  void on_processes(int ranks, F f) {
    const std::string group = fresh_name();
    for (const Outcome& o : run_processes(ranks, [&](int r) {
           again();
           AllReduceFusionWorkspace w({.group = group,
                                       .rank = r,
                                       .world_size = ranks,
                                       .max_token_num = 4,
                                       .hidden_dim = 64,
                                       .dtype = DType::kF32,
                                       .device = "cuda:0"});
           f(w, r);
           w.destroy();
           FI_CHECK(gpu().faults.empty(), RuntimeError, gpu().faults.front());
           FI_CHECK(gpu().allocated == 0, RuntimeError, gpu().allocated, " bytes are left");
         }))
      EXPECT_EQ(o, "");
  }
  std::string folder_;
};
void require(bool ok, const char* what) { FI_CHECK(ok, RuntimeError, "not so: ", what); }

TEST_F(Peers, ALaunchHasTheMemoryOfAllRanks) {
  on_processes(3, [&](AllReduceFusionWorkspace& w, int rank) {
    require(gpu().calls["cuIpcGetMemHandle"] == 1, "one handle is made");
    require(gpu().calls["cuIpcOpenMemHandle_v2"] == 2, "two are opened");
    const Tensor x = Tensor::zeros({4, 64}, DType::kF32, kGpu), y = Tensor::empty({4, 64}, DType::kF32, kGpu);
    int launches = 0;
    gpu().kernel = [&](const fake::Launched& l) {
      require(l.bytes == sizeof(AllReduceCudaParams), "the parameters are the kernel's");
      const auto& p = *reinterpret_cast<const AllReduceCudaParams*>(l.params);
      require(p.rank == rank && p.row.last == 1 && p.elements == 256, "rank and sizes");
      for (int r = 0; r < 3; ++r)
        for (int64_t i = 0; i < kAllReduceFlagBytes; ++i)
          require(p.row.source[r] != nullptr &&
                      (r != rank || static_cast<const char*>(fake::host(p.row.source[r]))[i] == 0),
                  "all ranks have memory, whose flags are 0");
      bool cooperative = false;
      for (const auto& a : l.attributes) cooperative = cooperative || a.name == cuda::LaunchAttribute::kCooperative;
      require(cooperative, "all blocks run at once");
      ++launches;
    };
    allreduce_fusion({.input = x, .workspace = w, .output = y});
    require(gpu().calls["cuStreamSynchronize"] == 1, "the call does not wait");  // the workspace's zeros alone
    cuda::synchronize_device(0);
    require(launches == 1, "it was launched once");
  });
}

/// Nothing that a call holds changes from call to call: the phase is the kernels' business.
TEST_F(Peers, ACallIsCaptured) {
  on_processes(2, [&](AllReduceFusionWorkspace& w, int) {
    cuda::Stream stream(0);
    Context context = Context::current();
    context.stream = stream.get();
    const ContextScope scope(context);
    const Tensor x = Tensor::zeros({4, 64}, DType::kF32, kGpu), y = Tensor::empty({4, 64}, DType::kF32, kGpu);
    allreduce_fusion({.input = x, .workspace = w, .output = y});
    gpu().begin_capture(stream.get());
    allreduce_fusion({.input = x, .workspace = w, .output = y});
    require(gpu().end_capture(stream.get()) == 1, "one operation is captured");
    const auto& l = gpu().launches;
    require(l.size() == 2 && std::memcmp(l[0].params, l[1].params, l[0].bytes) == 0, "both launches are the same");
  });
}

TEST_F(Peers, AGpuWithoutALinkIsAnErrorOnEveryRank) {
  const std::string group = fresh_name();
  for (const Outcome& o : run_processes(2, [&](int r) {
         again();
         if (r == 1) gpu().fail["cuIpcOpenMemHandle_v2"] = 217;
         AllReduceFusionWorkspace w({.group = group, .rank = r, .world_size = 2, .device = "cuda:0"});
       }))
    EXPECT_NE(o.find("rank 1: cuda: cuIpcOpenMemHandle failed"), std::string::npos) << o;
}

}  // namespace
}  // namespace flashinfer
