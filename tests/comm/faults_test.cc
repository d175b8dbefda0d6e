// SPDX-License-Identifier: Apache-2.0
// Every op of an all-reduce workspace, and those of a spread context, when ranks die, stay away or call something else:
// an error on each rank that names op, rank and reason, in time.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <vector>

#include "flashinfer/core/check.h"
#include "flashinfer/flashinfer.h"
#include "tests/comm/ranks.h"

namespace flashinfer {
namespace {

constexpr int kRanks = 3;
constexpr int64_t kHidden = 96;

/// A rank with a call of each op; `rows` are those of its inputs.
struct Rank {
  Rank(const std::string& name, int rank)
      : workspace(
            {.group = name, .rank = rank, .world_size = kRanks, .max_token_num = 8 * kRanks, .hidden_dim = kHidden}),
        shared(comm::share(comm::Group::connect(name + "-memory", rank, kRanks), 1 << 16)),
        rank(rank) {}
  void call(int op, int64_t rows = kRanks, DType dtype = DType::kBF16) {
    const Tensor x = Tensor::zeros({rows, kHidden}, dtype);
    const TensorView heads = x.view().view({1, rows, kRanks * 4, kHidden / (kRanks * 4)});
    switch (op) {
      case 0: allreduce_fusion({.input = x, .workspace = workspace, .pattern = 0}); return;
      case 1:
        all_gather({.input = x, .workspace = workspace, .columns = std::vector<int64_t>(kRanks, kHidden)});
        return;
      case 2: reduce_scatter({.input = x, .workspace = workspace}); return;
      case 3: mixed_comm({.x_in = x, .workspace = workspace, .op = 0, .local_tp_size = kRanks}); return;
      case 4: ulysses_scatter_heads({.x = heads, .workspace = workspace}); return;
      case 5: ulysses_gather_heads({.x = heads, .workspace = workspace}); return;
      case 6: quantized_all_reduce({.inp = x, .workspace = workspace, .scale_group = 64}); return;
      default: call_with_memory(op, x.view().view({rows, kRanks, kHidden / kRanks})); return;
    }
  }
  void call_with_memory(int op, const TensorView& slices) {
    const int64_t rows = slices.size(0);
    const Tensor stats = Tensor::zeros({rows, kRanks, 2}, DType::kF32),
                 lse = Tensor::zeros({rows, kRanks}, DType::kF32);
    const TensorView& memory = shared.view();
    const int64_t extents[] = {kRanks, memory.size(1) / 8}, strides[] = {memory.stride(0) / 8, 1};
    if (op == 7)
      decode_cp_a2a_alltoall({.partial_o = slices,
                              .softmax_stats = stats,
                              .workspace = TensorView(memory.data(), DType::kI64, extents, strides),
                              .cp_rank = rank,
                              .cp_size = kRanks});
    else
      decode_cp_a2a_lse_reduce(
          {.partial_o = slices, .partial_lse = lse, .workspace = memory, .cp_rank = rank, .cp_size = kRanks});
  }
  AllReduceFusionWorkspace workspace;
  Tensor shared;
  int rank;
};
constexpr const char* kOps[] = {
    "allreduce_fusion",        "all_gather",           "reduce_scatter",       "mixed_comm",
    "ulysses_scatter_heads",   "ulysses_gather_heads", "quantized_all_reduce", "decode_cp_a2a_alltoall",
    "decode_cp_a2a_lse_reduce"};
constexpr int kCount = 9, kOfWorkspace = 7;
/// Another call with the same memory.
int other_than(int op) { return op < kOfWorkspace ? (op + 1) % kOfWorkspace : kOfWorkspace + kCount - 1 - op; }

TEST(Faults, OtherCallsOnOtherRanksAreNamedOnAll) {
  for (int op = 0; op < kCount; ++op) {
    const std::string name = fresh_name();
    const int other = other_than(op);
    const auto outcomes = run_threads(kRanks, [&](int r) { Rank(name, r).call(r == 1 ? other : op); });
    for (size_t r = 0; r < kRanks; ++r) {
      EXPECT_HAS(outcomes[r], str(kOps[op], "(")) << "rank " << r;
      EXPECT_HAS(outcomes[r], str(kOps[other], "(")) << "rank " << r;
    }
  }
}

TEST(Faults, OtherShapesAndTypesAreNamedOnAll) {
  for (int op = 0; op < kCount; ++op)
    for (const bool type : {false, true}) {
      if (type && op == 6) continue;  // takes one type
      const std::string name = fresh_name();
      const auto outcomes = run_threads(kRanks, [&](int r) {
        Rank(name, r).call(op, r == 2 && !type ? 2 * kRanks : kRanks, r == 2 && type ? DType::kF16 : DType::kBF16);
      });
      for (size_t r = 0; r < kRanks; ++r) EXPECT_HAS(outcomes[r], str(kOps[op], "(")) << "rank " << r;
      EXPECT_HAS(outcomes[0], type ? "float16" : kOps[op]);
    }
}

TEST(Faults, ARankThatIsWrongAloneEndsTheCallOfAllAndTheNextOneWorks) {
  for (int op = 2; op < kCount; ++op) {
    const std::string name = fresh_name();
    const auto outcomes = run_threads(kRanks, [&](int r) {
      Rank rank(name, r);
      const std::string error = outcome_of([&] { rank.call(op, kRanks, r == 1 ? DType::kI32 : DType::kBF16); });
      EXPECT_HAS(error, r == 1 ? "Error: " : "rank 1 raised ");
      EXPECT_HAS(error, kOps[op]);
      rank.call(op);
    });
    for (const auto& o : outcomes) EXPECT_EQ(o, "");
  }
}

TEST(Faults, ARankThatNeverArrivesIsNamedInTime) {
  const Timeout timeout("0.3");
  for (int op = 2; op < kCount; ++op) {
    const std::string name = fresh_name();
    const auto begin = std::chrono::steady_clock::now();
    const auto outcomes = run_threads(kRanks, [&](int r) {
      Rank rank(name, r);
      rank.call(op);
      if (r == 2) std::this_thread::sleep_for(std::chrono::milliseconds(700));
      rank.call(op);
    });
    EXPECT_HAS(outcomes[0], "rank 2 did not arrive within 0.3 s") << kOps[op];
    EXPECT_HAS(outcomes[1], "rank 2 did not arrive within 0.3 s") << kOps[op];
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  }
}

/// A group for each op at a time: what waits until its time limit waits while others do.
TEST(Faults, ARankKilledAtAnyMomentIsAnErrorOfAllOthers) {
  const Timeout timeout("1");
  std::mt19937 random(3);
  for (int killed = 0; killed < 100; killed += kCount) {
    std::vector<std::vector<Process>> groups(kCount);
    for (int op = 0; op < kCount; ++op) {
      const std::string name = fresh_name();
      for (int r = 0; r < kRanks; ++r)
        groups[static_cast<size_t>(op)].emplace_back([&, op, r] {
          Rank rank(name, r);
          for (;;) rank.call(op, 8 * kRanks);
        });
    }
    std::vector<size_t> victims;
    for (auto& ranks : groups) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
      victims.push_back(random() % kRanks);
      ranks[victims.back()].kill();
    }
    for (size_t op = 0; op < kCount; ++op)
      for (size_t r = 0; r < kRanks; ++r) {
        const Outcome outcome = groups[op][r].wait();
        // On a busy machine a rank may start late; then the victim may have said so before it was killed.
        if (r != victims[op] || outcome != "killed") {
          EXPECT_HAS(outcome, "rank ") << kOps[op];
        }
      }
  }
}

}  // namespace
}  // namespace flashinfer
