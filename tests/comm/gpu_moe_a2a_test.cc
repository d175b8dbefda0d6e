// SPDX-License-Identifier: Apache-2.0
// The all-to-all of experts between GPUs, on the emulator, against its contract.
#include <gtest/gtest.h>

#include "flashinfer/jit/emulator.h"
#include "tests/comm/moe_a2a_ranks.h"

namespace flashinfer {
namespace {

using namespace moe_a2a_test;
constexpr Device kEmu{DeviceType::kEmu, 0};
constexpr uint64_t kSeeds[] = {0, 1, 2, 3};

/// f(rank) on the emulator, under each schedule; the ranks' errors are failures.
template <class F>
void on_ranks(Setting s, F f) {
  s.device = kEmu;
  for (const uint64_t seed : kSeeds) {
    const std::string name = fresh_name();
    const auto outcomes = run_threads(s.ranks, [&](int rank) {
      const jit::Emulation emulation(seed);
      Rank r(s, name, rank);
      f(r);
    });
    for (const Outcome& o : outcomes) ASSERT_EQ(o, "") << s.ranks << " ranks, seed " << seed;
  }
}

TEST(GpuMoeA2a, EachTokenReachesEachOwnerOnceAndComesBackSummed) {
  for (const Setting& s : {Setting{.ranks = 1}, Setting{.ranks = 2}, Setting{.ranks = 4, .experts = 6, .top_k = 8},
                           Setting{.ranks = 3, .experts = 10, .hidden = 33, .most = 30}})
    on_ranks(s, check_rounds);
}
TEST(GpuMoeA2a, LowPrecisionAndQuantisedSums) {
  on_ranks({.ranks = 3, .experts = 9, .top_k = 4, .hidden = 160}, check_low_precision);
  on_ranks({.ranks = 2, .experts = 4, .top_k = 2, .hidden = 160, .most = 9}, [](Rank& r) {
    check_quantised(r, DType::kF8E4M3, DType::kU8, 0);
    check_quantised(r, DType::kU8, DType::kU8, 1);
    check_quantised(r, DType::kU8, DType::kF8E4M3, 2);
  });
}
TEST(GpuMoeA2a, RanksThatTheMaskLeavesOutAreNotWaitedFor) {
  on_ranks({.ranks = 3, .experts = 9, .top_k = 4, .active = 0b101}, [](Rank& r) {
    if (r.rank != 1) {
      for (int round = 0; round < 2; ++round) {
        r.dispatch();
        check_received(r);
        const Tensor y = r.computed();
        check_combined(r, moe_a2a_combine(r.combine_args(y)).view());
      }
      check_that_none_comes_back(r);
    }
    r.group->barrier();
  });
}
TEST(GpuMoeA2a, StatisticsOnTheHostAreAnError) {
  on_ranks({.ranks = 1}, [](Rank& r) {
    MoeA2aDispatch a = r.dispatch_args();
    const Tensor host = to_device(r.stats, kCpu);
    a.eplb_local_stats = host;
    const std::string said = outcome_of([&] { moe_a2a_dispatch(a, r.memory); });
    check(said.find("eplb_local_stats is on cpu, but the workspace was made for emu") != said.npos, said);
  });
}
TEST(GpuMoeA2a, DispatchesInAnyOrder) {
  on_ranks({.ranks = 2}, [](Rank& r) {
    for (int round = 0; round < 4; ++round) {
      r.dispatch();
      check_received(r);
      if (round % 2 == 0) continue;
      const Tensor y = r.computed();
      check_combined(r, moe_a2a_combine(r.combine_args(y)).view());
    }
  });
}

}  // namespace
}  // namespace flashinfer
