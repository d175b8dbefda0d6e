// SPDX-License-Identifier: Apache-2.0
// Collectives with NCCL on the fake driver: what is enqueued on which stream, and in which order.
#include "tests/comm/fake_nccl.h"

#include "flashinfer/core/fs.h"
#include "flashinfer/flashinfer.h"
#include "machine.h"
#include "test_paths.h"
#include "tests/comm/ranks.h"

namespace flashinfer {
namespace {

constexpr Device kGpu{DeviceType::kCUDA, 0};
void require(bool ok, const std::string& what) { FI_CHECK(ok, RuntimeError, "not so: ", what); }

struct NcclOrder : Machine {
  void SetUp() override {
    Machine::SetUp();
    folder_ = fs::make_temp_dir("/tmp", "flashinfer-cuda-test-");
    set("FLASHINFER_WORKSPACE_BASE", folder_);
    set("FLASHINFER_NCCL", FI_TEST_LIBRARY("fake_nccl"));
    comm::nccl::detail::forget();
  }
  void TearDown() override {
    fs::remove_tree(folder_);
    Machine::TearDown();
    comm::nccl::detail::forget();
  }
  /// f(workspace) on two processes, with a machine and a library of NCCL each, on a stream of its own.
  template <class F>
  void on_processes(const std::string& backend, F f) {
    const std::string group = fresh_name();
    for (const Outcome& o : run_processes(2, [&](int r) {
           again();
           fake::Nccl& nccl = *fake::fake_nccl_of(FI_TEST_LIBRARY("fake_nccl"));
           nccl.alone = true;
           nccl.enqueue = [this](comm::nccl::Handle stream, const std::string& call) {
             return gpu().enqueue(stream, call.c_str(), [] {});
           };
           if (backend == "auto" && r == 1) gpu().fail["cuIpcOpenMemHandle_v2"] = 217;
           cuda::Stream stream(0);
           Context context = Context::current();
           context.stream = stream.get();
           const ContextScope scope(context);
           AllReduceFusionWorkspace w({.group = group,
                                       .rank = r,
                                       .world_size = 2,
                                       .max_token_num = 8,
                                       .hidden_dim = 64,
                                       .dtype = DType::kF32,
                                       .backend = backend,
                                       .device = "cuda:0"});
           f(w, stream);
           w.destroy();
           require(gpu().faults.empty(), gpu().faults.empty() ? "" : gpu().faults.front());
         }))
      EXPECT_EQ(o, "");
  }
  /// What has run on the stream since the last question, without copies and the pool's operations.
  std::string ran(const cuda::Stream& stream) {
    gpu().order.clear();
    cuda::synchronize(0, stream.get());
    std::string all;
    for (const std::string& o : gpu().order) {
      require(o.starts_with("stream 1: ") || o.find("nccl") == std::string::npos, "all is on the context's stream");
      for (const char* name : {"nccl", "launch"})
        if (const size_t at = o.find(name); at != std::string::npos) all += o.substr(at) + "; ";
    }
    return all;
  }
  std::string folder_;
};
struct Tensors {
  Tensor x = Tensor::zeros({8, 64}, DType::kF32, kGpu), y = Tensor::empty({8, 64}, DType::kF32, kGpu);
};

TEST_F(NcclOrder, ACallsPartsFollowEachOtherOnItsStream) {
  on_processes("nccl", [this](AllReduceFusionWorkspace& w, const cuda::Stream& stream) {
    const Tensors t;
    ran(stream);
    allreduce_fusion({.input = t.x, .workspace = w, .output = t.y});
    require(gpu().pending(stream.get()) > 0, "the call does not wait");
    const std::string one = ran(stream);
    require(one == "ncclAllGather 2048; launch; ", one);
    allreduce_fusion({.input = t.x, .workspace = w, .output = t.y, .use_oneshot = false});
    const std::string two = ran(stream);
    require(two == "ncclSend 1024; ncclSend 1024; ncclRecv 1024; ncclRecv 1024; launch; ncclAllGather 1024; launch; ",
            two);
    const Tensor wide = Tensor::empty({8, 128}, DType::kF32, kGpu), half = Tensor::empty({4, 64}, DType::kF32, kGpu);
    all_gather({.input = t.x, .workspace = w, .columns = {64, 64}, .out = wide});
    const std::string gather = ran(stream);
    require(gather == "ncclAllGather 2048; launch; ", gather);
    reduce_scatter({.input = t.x, .workspace = w, .out = half});
    const std::string scatter = ran(stream);
    require(scatter == "ncclSend 1024; ncclSend 1024; ncclRecv 1024; ncclRecv 1024; launch; ", scatter);
  });
}

TEST_F(NcclOrder, ACallIsCaptured) {
  on_processes("nccl", [this](AllReduceFusionWorkspace& w, const cuda::Stream& stream) {
    const Tensors t;
    allreduce_fusion({.input = t.x, .workspace = w, .output = t.y});
    ran(stream);
    gpu().begin_capture(stream.get());
    allreduce_fusion({.input = t.x, .workspace = w, .output = t.y});
    require(gpu().end_capture(stream.get()) >= 2, "the capture is whole");
    require(ran(stream).empty(), "nothing ran");
    gpu().launch_graph(gpu().last_graph(), stream.get());
    const std::string replayed = ran(stream);
    require(replayed == "ncclAllGather 2048; launch; ", replayed);
  });
}

TEST_F(NcclOrder, RanksWhoseGpusHaveNoLinkUseNccl) {
  on_processes("auto", [this](AllReduceFusionWorkspace& w, const cuda::Stream& stream) {
    const Tensors t;
    ran(stream);
    allreduce_fusion({.input = t.x, .workspace = w, .output = t.y});
    const std::string one = ran(stream);
    require(one == "ncclAllGather 2048; launch; ", one);
  });
}

}  // namespace
}  // namespace flashinfer
