// SPDX-License-Identifier: Apache-2.0
// allreduce_fusion of GPU tensors, on the emulator with a GPU a rank: the bits of the CPU's ranks, whose test compares
// with the contract in double precision.
#include <gtest/gtest.h>

#include "flashinfer/core/check.h"
#include "flashinfer/kernels/emu/emu.h"
#include "flashinfer/ops/comm/kernels/cuda_params.h"
#include "flashinfer/ops/comm/workspace.h"
#include "tests/comm/all_reduce_call.h"
#include "tests/comm/ranks.h"

namespace flashinfer {
namespace {

constexpr Device kEmu{DeviceType::kEmu, 0};
constexpr uint64_t kSeeds[] = {0, 1, 2, 3};  // of schedules

void expect_same(const Outputs& got, const Outputs& want, const std::string& what) {
  EXPECT_TRUE(got.result == want.result) << what << ": result";
  EXPECT_TRUE(got.residual == want.residual) << what << ": residual_out";
  EXPECT_TRUE(got.norm == want.norm) << what << ": norm_out";
  EXPECT_TRUE(got.codes == want.codes) << what << ": quant_out";
  EXPECT_TRUE(got.scales == want.scales) << what << ": scale_out";
}
/// Under two of the schedules, other ones call by call.
void expect_cpus_bits(const Call& c, const std::string& what) {
  static uint64_t next = 0;
  const Setting s(c);
  const Outputs want = run(c, s);
  for (int i = 0; i < 2; ++i, ++next) {
    const uint64_t seed = kSeeds[next % std::size(kSeeds)];
    expect_same(run(c, s, kEmu, seed), want, str(what, ", seed ", seed));
  }
}

TEST(GpuAllReduce, EveryPatternGivesTheBitsOfTheCpu) {
  for (const int64_t pattern : {0, 1, 2, 3, 4, 5, 8, 9, 10, 11})
    for (const bool one_shot : {true, false}) {  // of three ranks, as in other tests: a kernel more is seconds
      const Call c{.pattern = pattern, .shape = {7, 320}, .ranks = 3, .one_shot = one_shot};
      expect_cpus_bits(c, str("pattern ", pattern, one_shot ? ", one shot" : ", two shots"));
    }
}
TEST(GpuAllReduce, OtherNumbersOfRanks) {
  for (const int ranks : {2, 4})
    expect_cpus_bits({.pattern = 1, .shape = {7, 320}, .ranks = ranks, .one_shot = ranks == 2}, str(ranks, " ranks"));
}
TEST(GpuAllReduce, OtherShapesAndTypes) {
  for (const DType dtype : {DType::kF16, DType::kF32})
    expect_cpus_bits({.pattern = 5, .shape = {5, 96}, .dtype = dtype, .one_shot = true}, str(name(dtype)));
  for (const bool one_shot : {true, false})  // rows that are not aligned
    expect_cpus_bits({.pattern = one_shot ? 0 : 11, .shape = {9, 131}, .ranks = 3, .one_shot = one_shot, .bias = 1},
                     str("131 columns, ", one_shot ? "one shot" : "two shots"));
  expect_cpus_bits({.pattern = 1, .shape = {1, 2048}, .fp32_acc = true}, "one row, rounded once");
  expect_cpus_bits({.pattern = 0, .shape = {3, 4000}, .ranks = 4, .fp32_acc = true}, "rounded once");
  expect_cpus_bits({.pattern = 1, .shape = {2, 64}, .ranks = 1}, "one rank");
  for (const int64_t layout : {1, 2})
    expect_cpus_bits({.pattern = 3, .shape = {7, 320}, .ranks = 3, .one_shot = true, .layout = layout},
                     str("layout ", layout));
}

const std::shared_ptr<ops::comm::AllReduceGpu>& gpu_of(AllReduceFusionWorkspace& w) {
  return ops::comm::all_reduce_gpu_of(w);
}

/// A GPU may be in one call while another one is still in the call before: launches are kept until all are there.
TEST(GpuAllReduce, CallsFollowEachOtherWithoutWaiting) {
  const Shape shapes[] = {{6, 64}, {1, 64}, {9, 64}, {2, 64}, {12, 64}, {3, 64}};
  constexpr int kRanks = 3;
  for (const uint64_t seed : kSeeds) {
    std::vector<std::vector<Tensor>> out(kRanks);
    std::vector<std::optional<AllReduceFusionWorkspace>> workspaces(kRanks);
    const std::string group = fresh_name();
    for (const Outcome& o : run_threads(kRanks, [&](int r) {
           workspaces[static_cast<size_t>(r)].emplace(AllReduceFusionWorkspaceInit{.group = group,
                                                                                   .rank = r,
                                                                                   .world_size = kRanks,
                                                                                   .max_token_num = 12,
                                                                                   .hidden_dim = 64,
                                                                                   .dtype = DType::kF32,
                                                                                   .device = "emu"});
         }))
      ASSERT_EQ(o, "");
    jit::HeldLaunches held(*gpu_of(*workspaces[0])->emulated);
    for (int r = 0; r < kRanks; ++r) {
      const jit::Emulation emulation(seed);
      for (int i = 0; i < 6; ++i) {
        const Tensor x = Tensor::empty({shapes[i].tokens, 64}, DType::kF32);
        for (int64_t k = 0; k < x.numel(); ++k) x.data_as<float>()[k] = static_cast<float>(k * (r + 1) + i);
        const Tensor in = to_device(x, kEmu), y = Tensor::empty({shapes[i].tokens, 64}, DType::kF32, kEmu);
        AllReduceFusion call{.input = in, .workspace = *workspaces[static_cast<size_t>(r)], .output = y};
        if (shapes[i].tokens > kRanks) call.use_oneshot = i % 4 == 0;
        allreduce_fusion(call);
        out[static_cast<size_t>(r)].push_back(y), out[static_cast<size_t>(r)].push_back(in);
      }
    }
    held.run();
    for (int r = 0; r < kRanks; ++r)
      for (int i = 0; i < 6; ++i) {
        const Tensor& y = out[static_cast<size_t>(r)][static_cast<size_t>(2 * i)];
        for (int64_t k = 0; k < y.numel(); ++k)
          ASSERT_EQ(y.data_as<float>()[k], static_cast<float>(6 * k + 3 * i)) << "rank " << r << ", call " << i;
      }
  }
}

/// What crosses the links: one shot reads each other rank's input, two shots twice the part of the others.
TEST(GpuAllReduce, MovesNoMoreThanTheOtherRanksParts) {
  for (const int ranks : {2, 3, 4})
    for (const bool one_shot : {true, false}) {
      if (ranks != 3 && one_shot != (ranks == 2)) continue;  // kernels of other tests
      const int64_t rows = 4 * ranks;
      const Call c{.pattern = 1, .shape = {rows, 512}, .ranks = ranks, .one_shot = one_shot};
      const Setting s(c);
      const std::string group = fresh_name();
      std::shared_ptr<const emu::Counts> counts;
      for (const Outcome& o : run_threads(ranks, [&](int r) {
             const jit::Emulation emulation(0, true);
             AllReduceFusionWorkspace w({.group = group,
                                         .rank = r,
                                         .world_size = ranks,
                                         .max_token_num = rows,
                                         .hidden_dim = 512,
                                         .dtype = c.dtype,
                                         .device = "emu"});
             Arguments a(c, s.inputs[static_cast<size_t>(r)], s.residual, s.gamma_row(), kEmu);
             a.block.workspace = w;
             allreduce_fusion(a.block);
             if (r == 0) counts = emulation.launches().back().counts;
           }))
        ASSERT_EQ(o, "");
      const uint64_t bytes = static_cast<uint64_t>(rows) * 512 * 2, n = static_cast<uint64_t>(ranks);
      EXPECT_EQ(counts->remote_load_bytes, one_shot ? n * (n - 1) * bytes : 2 * (n - 1) * bytes) << ranks << " ranks";
      const uint64_t blocks = 4;  // the emulator's most, and the rows of a part
      EXPECT_EQ(counts->remote_store_bytes, n * (n - 1) * 8 * blocks * (one_shot ? 1 : 2)) << ranks << " ranks";
      EXPECT_EQ(counts->bank_conflicts(), 0u);
    }
}

TEST(GpuAllReduce, ErrorsReachEveryRank) {
  const std::string group = fresh_name();
  const auto outcomes = run_threads(2, [&](int r) {
    AllReduceFusionWorkspace w({.group = group,
                                .rank = r,
                                .world_size = 2,
                                .max_token_num = 4,
                                .hidden_dim = 64,
                                .dtype = DType::kF32,
                                .device = "emu"});
    const Tensor host = Tensor::zeros({4, 64}, DType::kF32), half = Tensor::zeros({4, 64}, DType::kF16),
                 x = Tensor::zeros({4, 64}, DType::kF32, kEmu);
    EXPECT_HAS(outcome_of([&] { allreduce_fusion({.input = host, .workspace = w}); }),
               "input is on cpu, but the workspace was made for emu");
    const Outcome other =
        outcome_of([&] { allreduce_fusion({.input = x, .workspace = w, .pattern = r == 0 ? 0 : 1}); });
    EXPECT_HAS(other, r == 0 ? "rank 1 raised" : "residual_in is required");
    allreduce_fusion({.input = x, .workspace = w});  // all have left the same call
    EXPECT_HAS(outcome_of([&] { mixed_comm({.x_in = half, .workspace = w, .local_tp_size = 2}); }),
               "x_in is on cpu, but the workspace was made for emu");
  });
  for (const Outcome& o : outcomes) EXPECT_EQ(o, "");
}

TEST(GpuAllReduce, TheEmulatorsMemoryIsThatOfOneProcess) {
  const std::string group = fresh_name();
  for (const Outcome& o : run_processes(2, [&](int r) {
         AllReduceFusionWorkspace w({.group = group, .rank = r, .world_size = 2, .device = "emu"});
       }))
    EXPECT_HAS(o, "is another process: run the ranks as threads");
}

}  // namespace
}  // namespace flashinfer
