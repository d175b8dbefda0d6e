// SPDX-License-Identifier: Apache-2.0
// Collectives of GPU tensors when ranks call different things, do not come or come late, on the emulator with a GPU a
// rank: results are right or NaN, nothing waits for ever, every rank's next call says what happened.
#include <gtest/gtest.h>

#include <cmath>

#include "flashinfer/core/check.h"
#include "flashinfer/ops/comm/workspace.h"
#include "flashinfer/ops/common/reference.h"
#include "tests/comm/all_reduce_call.h"
#include "tests/comm/gpu_collectives.h"

namespace flashinfer {
namespace {

constexpr int kRanks = 3;
constexpr uint64_t kSeeds[] = {0, 1, 2, 3};

struct GpuFaults : GpuCollectives {
  static inline thread_local std::vector<Tensor> kept;  // as launches may be
  void TearDown() override {
    kept.clear();
    GpuCollectives::TearDown();
  }
  static AllReduceFusionWorkspaceInit init_of(const std::string& group, int rank, const char* backend = "peers") {
    return {.group = group,
            .rank = rank,
            .world_size = kRanks,
            .max_token_num = 24,
            .hidden_dim = 96,
            .dtype = DType::kF32,
            .backend = backend,
            .device = "emu"};
  }
  static Tensor input(int64_t rows, DType dtype = DType::kF32) {
    const Tensor x = Tensor::zeros({rows, 96}, dtype);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < 96; ++i) ref::put(x.view(), {r, i}, 1.0);
    return to_device(x, kEmu);
  }
  /// Call `op` on inputs of ones; its result, which has 3 or 1 when all is well.
  static Tensor call(int op, AllReduceFusionWorkspace& w, int64_t rows = 6, DType dtype = DType::kF32) {
    kept.push_back(input(rows, dtype));
    const Tensor x = kept.back();
    kept.push_back(result_of(op, x, w));
    return kept.back();
  }
  static Tensor result_of(int op, const Tensor& x, AllReduceFusionWorkspace& w) {
    const TensorView heads = x.view().view({1, x.size(0), 6, 16});
    switch (op) {
      case 0: return allreduce_fusion({.input = x, .workspace = w, .use_oneshot = true});
      case 1: return allreduce_fusion({.input = x, .workspace = w, .use_oneshot = false});
      case 2: return all_gather({.input = x, .workspace = w, .columns = std::vector<int64_t>(kRanks, 96)});
      case 3: return reduce_scatter({.input = x, .workspace = w});
      case 4: return ulysses_scatter_heads({.x = heads, .workspace = w});
      default: return ulysses_gather_heads({.x = heads, .workspace = w});
    }
  }
};
constexpr const char* kCalls[] = {
    "one shot", "two shots", "all_gather", "reduce_scatter", "ulysses_scatter_heads", "ulysses_gather_heads"};
constexpr int kCount = 6;

/// But for what a rank copies from its own input.
void expect_nan(const Tensor& t, int op) {
  int64_t kept = 0;
  for (int64_t i = 0; i < t.numel(); ++i) kept += !std::isnan(t.data_as<float>()[i]);
  EXPECT_EQ(kept, op == 2 || op > 3 ? t.numel() / kRanks : 0) << kCalls[op];
}

TEST_F(GpuFaults, CallsThatDifferAreNamedOnEveryRank) {
  for (int op = 0; op < kCount; ++op)
    for (const uint64_t seed : kSeeds) {
      const int other = (op + 1) % kCount;
      const std::string group = fresh_name();
      const auto outcomes = run_threads(kRanks, [&](int r) {
        const jit::Emulation emulation(seed);
        AllReduceFusionWorkspace w(init_of(group, r));
        for (int i = 0; i < 2; ++i) call(op, w);
        const Outcome outcome = outcome_of([&] { call(r == 1 ? other : op, w); });
        EXPECT_HAS(outcome_of([&] { call(op, w); }), outcome.substr(outcome.find("group '")));  // it stays so
        throw RuntimeError(outcome);
      });
      for (int r = 0; r < kRanks; ++r) {
        EXPECT_HAS(outcomes[static_cast<size_t>(r)], kCalls[op]) << "rank " << r << ", seed " << seed;
        EXPECT_HAS(outcomes[static_cast<size_t>(r)], kCalls[other]) << "rank " << r << ", seed " << seed;
        EXPECT_HAS(outcomes[static_cast<size_t>(r)], str(", but rank ", r, " calls ")) << "seed " << seed;
      }
    }
}

TEST_F(GpuFaults, ShapesAndTypesThatDifferAreNamedOnEveryRank) {
  for (int op = 0; op < kCount; ++op)
    for (const bool type : {false, true})
      for (const char* backend : {"peers", "nccl"}) {
        const std::string group = fresh_name();
        const auto outcomes = run_threads(kRanks, [&](int r) {
          AllReduceFusionWorkspace w(init_of(group, r, backend));
          call(op, w);
          call(op, w, r == 2 && !type ? 12 : 6, r == 2 && type ? DType::kBF16 : DType::kF32);
        });
        for (int r = 0; r < kRanks; ++r) {
          EXPECT_HAS(outcomes[static_cast<size_t>(r)], "group '") << kCalls[op] << ", " << backend << ", rank " << r;
          EXPECT_HAS(outcomes[static_cast<size_t>(r)], "rank 2") << kCalls[op] << ", " << backend << ", rank " << r;
          EXPECT_HAS(outcomes[static_cast<size_t>(r)], type ? "bfloat16" : "12") << kCalls[op] << ", " << backend;
          EXPECT_HAS(outcomes[static_cast<size_t>(r)], type ? "float32" : "6") << kCalls[op] << ", " << backend;
        }
      }
}

/// Workspaces of all ranks in this thread, whose launches are kept.
struct Held {
  explicit Held(const char* seconds) {
    const std::string group = fresh_name();
    for (const Outcome& o :
         run_threads(kRanks, [&](int r) { w[static_cast<size_t>(r)].emplace(GpuFaults::init_of(group, r)); }))
      EXPECT_EQ(o, "");
    limit.emplace(seconds);
    launches.emplace(*ops::comm::all_reduce_gpu_of(*w[0])->emulated);
  }
  AllReduceFusionWorkspace& of(int r) { return *w[static_cast<size_t>(r)]; }
  std::optional<Timeout> limit;  // of the kernels; ranks of a busy machine take longer to meet
  std::optional<AllReduceFusionWorkspace> w[kRanks];
  std::optional<jit::HeldLaunches> launches;
};

TEST_F(GpuFaults, ARankThatDoesNotComeEndsTheOthersWithNan) {
  for (int op = 0; op < kCount; ++op)
    for (const uint64_t seed : kSeeds) {
      const jit::Emulation emulation(seed);
      Held held("0.004");
      std::vector<Tensor> right, lost;
      for (int r = 0; r < kRanks; ++r) right.push_back(call(op, held.of(r)));
      for (int r = 0; r < 2; ++r)
        for (int i = 0; i < 3; ++i) lost.push_back(call((op + i) % kCount, held.of(r)));
      held.launches->run();
      const float want = op == 0 || op == 1 || op == 3 ? 3.0f : 1.0f;
      for (const Tensor& t : right)
        for (int64_t i = 0; i < t.numel(); ++i) ASSERT_EQ(t.data_as<float>()[i], want) << kCalls[op];
      for (size_t i = 0; i < lost.size(); ++i) expect_nan(lost[i], (op + static_cast<int>(i % 3)) % kCount);
      for (int r = 0; r < 2; ++r)
        EXPECT_HAS(outcome_of([&] { call(op, held.of(r)); }), "rank 2 did not arrive within 0.004 s") << kCalls[op];
    }
}

/// Codes, scales and all other results that patterns write.
TEST_F(GpuFaults, EveryResultOfARankThatIsLeftAloneIsNan) {
  for (const int64_t pattern : {0, 1, 2, 3, 4, 5, 8, 9, 10, 11})
    for (const bool one_shot : {true, false}) {
      const Call c{.pattern = pattern, .shape = {8, 64}, .dtype = DType::kBF16, .ranks = kRanks, .one_shot = one_shot};
      const Setting s(c);
      Held held("0.004");
      std::vector<Arguments> all;
      all.reserve(kRanks);
      for (int r = 0; r < kRanks; ++r) {
        all.emplace_back(c, s.inputs[static_cast<size_t>(r)], s.residual, s.gamma_row(), kEmu);
        all.back().block.workspace = held.of(r);
      }
      for (Arguments& a : all) allreduce_fusion(a.block);
      for (int r = 0; r < 2; ++r) allreduce_fusion(all[static_cast<size_t>(r)].block);
      held.launches->run();
      for (int r = 0; r < 2; ++r) {
        const Arguments& a = all[static_cast<size_t>(r)];
        const auto nan = [&](const Tensor& t) {
          for (int64_t i = 0; i < t.size(0); ++i)
            for (int64_t k = 0; k < t.size(1); ++k)
              ASSERT_TRUE(std::isnan(ref::get(t.view(), {i}, k))) << "pattern " << pattern << " at " << i << ", " << k;
        };
        if (pattern == 0) nan(a.output);
        if (pattern != 0) nan(a.h);
        if (has_norm_out(pattern)) nan(a.norm);
        if (is_fp4(pattern)) {
          for (int64_t row = 0; row < 8; ++row)
            for (int64_t k = 0; k < 4; ++k)
              EXPECT_EQ(
                  a.scales.data_as<uint8_t>()[sf_row_offset(SfLayout{}, row, 4) + sf_column_offset(SfLayout{}, k)],
                  0x7f)
                  << "pattern " << pattern;
        } else if (pattern > 1) {
          for (int64_t i = 0; i < a.codes.numel(); ++i)
            ASSERT_EQ(a.codes.data_as<uint8_t>()[i] & 0x7f, 0x7f) << "pattern " << pattern;
        }
      }
    }
}

/// The others have failed when it comes; what they had written for it still stands.
TEST_F(GpuFaults, ARankThatComesLateGetsRightResultsOrNan) {
  for (const int op : {0, 1, 3})
    for (const uint64_t seed : kSeeds) {
      const jit::Emulation emulation(seed);
      Held held("0.004");
      for (int r = 0; r < kRanks; ++r) call(op, held.of(r));
      for (int r = 0; r < 2; ++r)
        for (int i = 0; i < 2; ++i) call(op, held.of(r));
      held.launches->run();
      std::vector<Tensor> late;
      for (int i = 0; i < 3; ++i) late.push_back(call(op, held.of(2)));
      held.launches->run();
      for (int64_t i = 0; i < late[0].numel(); ++i) {
        const float x = late[0].data_as<float>()[i];
        EXPECT_TRUE(x == 3.0f || std::isnan(x)) << kCalls[op] << ": " << x;
      }
      expect_nan(late[1], op);
      expect_nan(late[2], op);
      EXPECT_HAS(outcome_of([&] { call(op, held.of(2)); }), "has failed in an earlier call") << kCalls[op];
      EXPECT_HAS(outcome_of([&] { call(op, held.of(0)); }), "rank 2 did not arrive within") << kCalls[op];
    }
}

/// What the host does when a rank is gone.
TEST_F(GpuFaults, TheHostEndsAWait) {
  Held held("600");
  for (int r = 0; r < kRanks; ++r) call(0, held.of(r));
  std::vector<Tensor> lost;
  for (int r = 0; r < 2; ++r) {
    lost.push_back(call(0, held.of(r)));
    ops::comm::all_reduce_gpu_of(held.of(r))->said->report()->stop = 1;
  }
  held.launches->run();
  for (const Tensor& t : lost) expect_nan(t, 0);
  EXPECT_HAS(outcome_of([&] { call(0, held.of(0)); }), "allreduce_fusion(pattern=0");
}

/// Nothing is computed on another device, nor left undone without a word.
TEST_F(GpuFaults, TensorsOfAnotherDeviceThanTheWorkspaceAreAnError) {
  AllReduceFusionWorkspace w({.group = fresh_name(),
                              .rank = 0,
                              .world_size = 1,
                              .max_token_num = 8,
                              .hidden_dim = 96,
                              .dtype = DType::kBF16,
                              .device = "emu"});
  const Tensor memory = comm::share(comm::Group::connect(fresh_name(), 0, 1), 1 << 16);
  const Tensor slices = Tensor::zeros({6, 1, 96}, DType::kBF16, kEmu), lse = Tensor::zeros({6, 1}, DType::kF32, kEmu);
  const Tensor host = Tensor::zeros({6, 96}, DType::kBF16);
  EXPECT_HAS(outcome_of([&] { quantized_all_reduce({.inp = host, .workspace = w, .scale_group = 64}); }),
             "inp is on cpu, but the workspace was made for emu");
  EXPECT_HAS(outcome_of([&] { mixed_comm({.x_in = host, .workspace = w, .local_tp_size = 1}); }),
             "x_in is on cpu, but the workspace was made for emu");
  EXPECT_HAS(outcome_of([&] {
               decode_cp_a2a_lse_reduce({.partial_o = slices, .partial_lse = lse, .workspace = memory, .cp_size = 1});
             }),
             "workspace is in host memory");
}

}  // namespace
}  // namespace flashinfer
