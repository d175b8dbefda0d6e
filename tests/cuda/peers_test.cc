// SPDX-License-Identifier: Apache-2.0
// All-reduces of several processes' GPUs on the fake driver: what they exchange, launch and give back.
#include "flashinfer/comm/peer_memory.h"
#include "flashinfer/core/cuda/device.h"
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
  template <class F>
  std::vector<Outcome> on_two_after_a_call(F f);
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
      require(p.meet.rank == rank && p.row.last == 1 && p.elements == 256, "rank and sizes");
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

template <class Done>
bool in_five_seconds(Done done) {
  for (int i = 0; i < 500 && !done(); ++i) usleep(10'000);
  return done();
}
/// A call whose kernel waits until the host ends that. When the other rank was gone before it could begin, it says so.
bool waits_until_ended(fake::Gpu& gpu, AllReduceFusionWorkspace& w, const Tensor& x, const std::string& text) {
  gpu.kernel = [](const fake::Launched& l) {
    const auto& p = *reinterpret_cast<const AllReduceCudaParams*>(l.params);
    require(in_five_seconds([&] { return std::atomic_ref<uint32_t>(p.meet.report->stop).load() != 0; }),
            "the host ends the wait");
  };
  const Outcome call = outcome_of([&] { allreduce_fusion({.input = x, .workspace = w, .output = x}); });
  FI_CHECK(call.empty() || call.find(text) != call.npos, RuntimeError, call);
  return call.empty();
}
/// What a wait of the library for the GPU throws, then a call.
void expect_both_say(AllReduceFusionWorkspace& w, const Tensor& x, const std::string& text) {
  const Outcome wait = outcome_of([] { cuda::synchronize(0, Context::current().stream); }),
                call = outcome_of([&] { allreduce_fusion({.input = x, .workspace = w, .output = x}); });
  FI_CHECK(wait.find(text) != wait.npos, RuntimeError, "the wait: ", wait);
  FI_CHECK(call.find(text) != call.npos, RuntimeError, "the call: ", call);
}

/// f(workspace, tensor, rank) on two processes, after a call that both have made.
template <class F>
std::vector<Outcome> Peers::on_two_after_a_call(F f) {
  const std::string group = fresh_name();
  return run_processes(2, [&](int r) {
    again();
    AllReduceFusionWorkspace w({.group = group,
                                .rank = r,
                                .world_size = 2,
                                .max_token_num = 4,
                                .hidden_dim = 64,
                                .dtype = DType::kF32,
                                .device = "cuda:0"});
    const Tensor x = Tensor::zeros({4, 64}, DType::kF32, kGpu);
    allreduce_fusion({.input = x, .workspace = w, .output = x});
    cuda::synchronize(0, Context::current().stream);
    f(w, x, r);
  });
}

/// The kernel of a rank waits; the other one's process ends.
TEST_F(Peers, AnEndedRankEndsTheWaitsForIt) {
  const auto outcomes = on_two_after_a_call([&](AllReduceFusionWorkspace& w, const Tensor& x, int r) {
    if (r == 1) {
      usleep(300'000);
      raise(SIGKILL);
    }
    if (waits_until_ended(gpu(), w, x, ") has ended")) expect_both_say(w, x, ") has ended");
  });
  EXPECT_EQ(outcomes[0], "");
  EXPECT_EQ(outcomes[1], "killed");
}

/// A kernel reports; the other rank's kernel, which waits for this one, is ended.
TEST_F(Peers, WhatAKernelReportsReachesEveryRank) {
  const char* const text = "allreduce_fusion(pattern=0, input=[4, 64] float32, one shot): rank 1 did not arrive";
  for (const Outcome& o : on_two_after_a_call([&](AllReduceFusionWorkspace& w, const Tensor& x, int r) {
         if (r == 1) {
           if (waits_until_ended(gpu(), w, x, text)) expect_both_say(w, x, str("rank 0 failed: ", text));
           return;
         }
         usleep(300'000);
         gpu().kernel = [&](const fake::Launched& l) {
           const MeetCudaParams& p = reinterpret_cast<const AllReduceCudaParams*>(l.params)->meet;
           MeetReport& report = *p.report;
           report.rank = 1, report.call = p.call, report.kind = static_cast<uint32_t>(MeetFailure::kLate);
         };
         allreduce_fusion({.input = x, .workspace = w, .output = x});
         expect_both_say(w, x, text);
       }))
    EXPECT_EQ(o, "");
}

/// An error before the launch, for which the other rank's kernel waits.
TEST_F(Peers, ARankThatRaisesEndsTheWaitsForIt) {
  const std::string text = "raised ValueError: allreduce_fusion: residual_in is required";
  for (const Outcome& o : on_two_after_a_call([&](AllReduceFusionWorkspace& w, const Tensor& x, int r) {
         if (r == 0) {
           if (waits_until_ended(gpu(), w, x, text)) expect_both_say(w, x, text);
           return;
         }
         usleep(300'000);
         EXPECT_HAS(outcome_of([&] { allreduce_fusion({.input = x, .workspace = w, .pattern = 1}); }), "residual_in");
         const Outcome next = outcome_of([&] { allreduce_fusion({.input = x, .workspace = w, .output = x}); });
         require(next.find("this rank raised ValueError: ") != next.npos, "the group stays failed");
       }))
    EXPECT_EQ(o, "");
}

/// Exchanges through memory of the host name themselves and the tensor's device; none reads its memory.
TEST_F(Peers, TensorsOfAGpuNeedAWorkspaceThere) {
  on_processes(2, [&](AllReduceFusionWorkspace&, int rank) {
    const Tensor x = Tensor::zeros({4, 64}, DType::kBF16, kGpu), heads = Tensor::zeros({4, 2, 32}, DType::kBF16, kGpu),
                 lse = Tensor::zeros({4, 2}, DType::kF32, kGpu), stats = Tensor::zeros({4, 2, 2}, DType::kF32, kGpu),
                 ids = Tensor::zeros({4, 2}, DType::kI32, kGpu);
    const Tensor shared = comm::share(comm::Group::connect(str("host-memory-", getppid()), rank, 2), 1 << 16);
    const Tensor info = moe_a2a_initialize({.workspace = shared, .ep_rank = rank, .ep_size = 2, .max_num_tokens = 4});
    const int64_t extents[] = {2, shared.size(1) / 8}, strides[] = {shared.view().stride(0) / 8, 1};
    const std::pair<const char*, std::function<void()>> calls[] = {
        {"decode_cp_a2a_alltoall",
         [&] {
           decode_cp_a2a_alltoall({.partial_o = heads,
                                   .softmax_stats = stats,
                                   .workspace = TensorView(shared.data(), DType::kI64, extents, strides),
                                   .cp_rank = rank,
                                   .cp_size = 2});
         }},
        {"decode_cp_a2a_lse_reduce",
         [&] {
           decode_cp_a2a_lse_reduce(
               {.partial_o = heads, .partial_lse = lse, .workspace = shared, .cp_rank = rank, .cp_size = 2});
         }},
        {"moe_a2a_dispatch",
         [&] {
           moe_a2a_dispatch({.token_selected_experts = ids,
                             .input_payloads = {x},
                             .workspace = shared,
                             .metainfo = info,
                             .runtime_max_tokens_per_rank = 4,
                             .ep_rank = rank,
                             .ep_size = 2,
                             .top_k = 2,
                             .num_experts = 2},
                            shared);
         }},
    };
    for (const auto& [name, call] : calls) {
      const std::string said = outcome_of(call);
      FI_CHECK(said.find(name) != said.npos && said.find("cuda:0") != said.npos, RuntimeError, name, ": ", said);
    }
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
