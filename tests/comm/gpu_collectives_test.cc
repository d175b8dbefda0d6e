// SPDX-License-Identifier: Apache-2.0
// Collectives of GPU tensors on the emulator with a GPU a rank, through the ranks' memory and with NCCL (whose library
// is one of the tests, in which ranks are threads): the bytes of the CPU's ranks, whose tests compare with definitions.
#include <gtest/gtest.h>

#include "flashinfer/core/check.h"
#include "tests/comm/all_reduce_call.h"
#include "tests/comm/gpu_collectives.h"

namespace flashinfer {
namespace {

TEST_F(GpuCollectives, AllReducesWithNcclHaveTheBitsOfTheCpu) {
  for (const int64_t pattern : {0, 1, 3, 11})
    for (const bool one_shot : {true, false}) {
      const Call c{.pattern = pattern, .shape = {7, 160}, .ranks = 3, .one_shot = one_shot};
      const Setting s(c);
      fake_->calls.clear();
      EXPECT_TRUE(run(c, s, kEmu, 1, "nccl") == run(c, s)) << "pattern " << pattern << ", one shot " << one_shot;
      for (const auto& calls : fake_->calls) {
        EXPECT_EQ(calls.size(), one_shot ? 3u : 3 * 7u);  // three calls
        EXPECT_EQ(calls.back(), one_shot ? "ncclAllGather 2240" : "ncclAllGather 960");
      }
    }
  for (const Call& c : {Call{.pattern = 0, .shape = {5, 3}, .ranks = 2, .one_shot = false},  // parts of 18 and 12 bytes
                        Call{.pattern = 0, .shape = {8, 12}, .dtype = DType::kF16, .ranks = 3, .one_shot = false},
                        Call{.pattern = 4, .shape = {3, 64}, .dtype = DType::kF32, .ranks = 1},
                        Call{.pattern = 1, .shape = {4, 2048}, .ranks = 4, .fp32_acc = true}}) {
    const Setting s(c);
    EXPECT_TRUE(run(c, s, kEmu, 2, "nccl") == run(c, s)) << "pattern " << c.pattern << ", " << c.ranks << " ranks";
  }
}

TEST_F(GpuCollectives, AllGather) {
  struct Gather {
    std::vector<int64_t> columns;
    int64_t tokens, more;  // columns behind each row
    DType dtype;
  };
  for (const Gather& g :
       {Gather{{8, 8}, 5, 0, DType::kF32}, Gather{{8, 8}, 1, 3, DType::kBF16}, Gather{{3, 0, 9, 1}, 6, 1, DType::kF16},
        Gather{{12, 40, 4}, 4, 4, DType::kF32}, Gather{{70000, 30000}, 2, 0, DType::kF16},
        Gather{{5}, 3, 1, DType::kF32}, Gather{{2, 3}, 0, 0, DType::kF32}}) {
    const int ranks = static_cast<int>(g.columns.size());
    expect_cpus_bytes(
        ranks, str(ranks, " ranks, ", g.tokens, " tokens"), [&](int r, AllReduceFusionWorkspace& w, Device d) {
          const int64_t own = g.columns[static_cast<size_t>(r)];
          int64_t all = 0;
          for (const int64_t n : g.columns) all += n;
          const Tensor in = on(random_tensor({g.tokens, own + g.more}, g.dtype, 5 + static_cast<unsigned>(r)), d),
                       out = on(random_tensor({g.tokens, all + g.more}, g.dtype, 3), d);
          all_gather({.input = in.view().slice(1, 0, own),
                      .workspace = w,
                      .columns = g.columns,
                      .out = out.view().slice(1, 0, all)});
          return bytes_of(out);
        });
  }
}

TEST_F(GpuCollectives, ReduceScatter) {
  struct Scatter {
    int ranks;
    int64_t rows, d;
    DType dtype;
    bool fp32_acc;
  };
  for (const Scatter& s : {Scatter{2, 4, 8, DType::kF32, false}, Scatter{3, 2, 7, DType::kBF16, false},
                           Scatter{4, 3, 96, DType::kF16, true}, Scatter{2, 1, 40000, DType::kBF16, false},
                           Scatter{3, 0, 5, DType::kF32, false}, Scatter{1, 3, 5, DType::kBF16, false}})
    expect_cpus_bytes(
        s.ranks, str(s.ranks, " ranks of ", s.rows, " rows"), [&](int r, AllReduceFusionWorkspace& w, Device d) {
          const Tensor in = on(random_tensor({s.rows * s.ranks, s.d}, s.dtype, 5 + static_cast<unsigned>(r)), d);
          const Tensor out = Tensor::empty({s.rows, s.d}, s.dtype, d);
          reduce_scatter({.input = in, .workspace = w, .fp32_acc = s.fp32_acc, .out = out});
          return bytes_of(out);
        });
}

TEST_F(GpuCollectives, Ulysses) {
  struct Shapes {
    int ranks;
    int64_t batch, positions, heads, d;  // positions and heads of a rank
    DType dtype;
  };
  for (const Shapes& s :
       {Shapes{2, 1, 3, 2, 8, DType::kBF16}, Shapes{4, 2, 2, 1, 7, DType::kF16}, Shapes{3, 2, 3, 2, 4, DType::kF32},
        Shapes{2, 1, 300, 3, 64, DType::kBF16}, Shapes{1, 2, 2, 2, 4, DType::kF32}})
    expect_cpus_bytes(s.ranks, str(s.ranks, " ranks"), [&](int r, AllReduceFusionWorkspace& w, Device d) {
      const Tensor flat =
          random_tensor({s.batch * s.positions, s.heads * s.ranks * s.d}, s.dtype, 9 + static_cast<unsigned>(r));
      const Tensor x = to_device(flat.view().view({s.batch, s.positions, s.heads * s.ranks, s.d}), d);
      const Tensor whole = ulysses_scatter_heads({.x = x, .workspace = w}),
                   back = ulysses_gather_heads({.x = whole, .workspace = w});
      EXPECT_EQ(bytes_of(back) == bytes_of(x), true);
      return bytes_of(whole);
    });
}

TEST_F(GpuCollectives, MixedCollectives) {
  struct Mixed {
    int64_t op, local_tp, local_dp, inter_tp, inter_dp, rows, d;
    int ranks() const { return static_cast<int>(local_tp * local_dp * inter_tp * inter_dp); }
  };
  for (const Mixed& m : {Mixed{0, 2, 1, 1, 1, 3, 7}, Mixed{1, 1, 2, 1, 2, 2, 16}, Mixed{2, 1, 3, 1, 1, 6, 8},
                         Mixed{3, 2, 1, 1, 2, 3, 40}, Mixed{4, 2, 2, 1, 1, 4, 24000}, Mixed{3, 1, 1, 1, 1, 2, 8}})
    expect_cpus_bytes(m.ranks(), str("op ", m.op), [&](int r, AllReduceFusionWorkspace& w, Device d) {
      const Tensor x = on(random_tensor({m.rows, m.d}, DType::kBF16, 5 + static_cast<unsigned>(r)), d);
      const Tensor out = mixed_comm({.x_in = x,
                                     .workspace = w,
                                     .op = m.op,
                                     .local_tp_size = m.local_tp,
                                     .local_dp_size = m.local_dp,
                                     .inter_tp_size = m.inter_tp,
                                     .inter_dp_size = m.inter_dp});
      return bytes_of(out);
    });
}

TEST_F(GpuCollectives, SumsOfCodes) {
  struct Sum {
    int ranks;
    int64_t rows, d, group;
  };
  for (const Sum& s : {Sum{3, 5, 40, 64}, Sum{2, 9, 2400, 512}, Sum{1, 2, 24, 8}})
    expect_cpus_bytes(s.ranks, str(s.ranks, " ranks"), [&](int r, AllReduceFusionWorkspace& w, Device d) {
      const Tensor x = on(random_tensor({s.rows, s.d}, DType::kBF16, 5 + static_cast<unsigned>(r)), d);
      const Tensor out = quantized_all_reduce({.inp = x, .workspace = w, .scale_group = s.group});
      return bytes_of(out);
    });
}

TEST_F(GpuCollectives, AnErrorOfARankEndsTheCallsOfAll) {
  const std::string group = fresh_name();
  const auto outcomes = run_threads(2, [&](int r) {
    AllReduceFusionWorkspace w(workspace(group, r, 2, "nccl"));
    const Tensor x = Tensor::zeros({1, 8}, DType::kF32, kEmu);
    const std::vector<int64_t> right = {8, 8}, wrong = {8};
    all_gather({.input = x, .workspace = w, .columns = r ? wrong : right});
  });
  EXPECT_HAS(outcomes[0], ", rank 0: all_gather: rank 1 raised ValueError: all_gather: columns has 1 numbers");
  EXPECT_HAS(outcomes[1], "columns has 1 numbers, but the group has 2 ranks");
  EXPECT_EQ(fake_->aborted, 2);
}

/// Nothing on the host waits for the rank that is gone; what waits for it on the GPU ends when the communicator does.
TEST_F(GpuCollectives, ACommunicatorIsAbortedWhileTheHostDoesSomethingElse) {
  const std::string group = fresh_name();
  const auto outcomes = run_threads(2, [&](int r) {
    AllReduceFusionWorkspace w(workspace(group, r, 2, "nccl"));
    const Tensor x = Tensor::zeros({1, 8}, DType::kF32, kEmu);
    if (r == 1) {
      EXPECT_HAS(outcome_of([&] { all_gather({.input = x, .workspace = w, .columns = {8}}); }),
                 "columns has 1 numbers");
      return;
    }
    for (int i = 0; i < 200; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const std::scoped_lock lock(fake_->mutex);
      if (fake_->aborted == 2) break;
    }
    EXPECT_EQ(fake_->aborted, 2);
    EXPECT_HAS(outcome_of([&] { all_gather({.input = x, .workspace = w, .columns = {8, 8}}); }),
               "all_gather: failed before: rank 1 raised ValueError: all_gather: columns has 1 numbers");
  });
  for (const Outcome& o : outcomes) EXPECT_EQ(o, "");
}

TEST_F(GpuCollectives, WorkspacesOfOtherDevicesAndBackEnds) {
  const std::string group = fresh_name();
  const auto outcomes = run_threads(2, [&](int r) {
    AllReduceFusionWorkspaceInit init = workspace(group, r, 2, "");
    init.backend = "nccl";
    EXPECT_HAS(outcome_of([&] { AllReduceFusionWorkspace w(init); }),
               "rank 0: backend is 'nccl', but must be auto, shm, tcp or mpi for device 'cpu'");
    AllReduceFusionWorkspace w(workspace(group, r, 2, "peers"));
    const Tensor host = Tensor::zeros({2, 4, 2, 2}, DType::kF32);
    EXPECT_HAS(outcome_of([&] { ulysses_scatter_heads({.x = host, .workspace = w}); }),
               "x is on cpu, but the workspace was made for emu");
  });
  for (const Outcome& o : outcomes) EXPECT_EQ(o, "");
  use("/no/such/libnccl.so.2");
  for (const Outcome& o : run_threads(2, [&](int r) { AllReduceFusionWorkspace w(workspace(group, r, 2, "nccl")); }))
    EXPECT_HAS(o, "rank 0: libnccl was not found");
}

}  // namespace
}  // namespace flashinfer
