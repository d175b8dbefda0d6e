// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/comm/group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>

#include "flashinfer/comm/window.h"
#include "flashinfer/core/check.h"
#include "tests/comm/ranks.h"

namespace flashinfer::comm {
namespace {
using Clock = std::chrono::steady_clock;

/// FLASHINFER_COMM_TIMEOUT_S for a test.
std::string describe(const Signature& s) { return str("call ", s.number[0]); }

void expect_no_errors(const std::vector<Outcome>& outcomes) {
  for (size_t r = 0; r < outcomes.size(); ++r) EXPECT_EQ(outcomes[r], "") << "rank " << r;
}
void expect_errors(const std::vector<Outcome>& outcomes, const std::string& text) {
  for (size_t r = 0; r < outcomes.size(); ++r) EXPECT_HAS(outcomes[r], text) << "rank " << r;
}

/// Every rank writes to its window, and reads all others' words, `calls` times; the two halves are used in turn.
void exchange_words(Group& group, int calls) {
  const auto window = group.window(2 * 4096);
  for (int call = 0; call < calls; ++call) {
    const int64_t at = call % 2 * 4096;
    for (int i = 0; i < 1024; ++i) reinterpret_cast<int32_t*>(window->own() + at)[i] = call * 1000 + group.rank() + i;
    window->put_to_all(at, 4096);
    window->wait(window->publish({{7, call}}), describe);
    for (int r = 0; r < group.size(); ++r)
      for (int i = 0; i < 1024; ++i) {
        const int32_t word = reinterpret_cast<const int32_t*>(window->of(r) + at)[i];
        if (word != call * 1000 + r + i) throw RuntimeError(str("call ", call, ", rank ", r, ": ", word));
      }
  }
}

TEST(Group, ThreadsAndProcessesExchangeBytesByRank) {
  for (const bool threads : {true, false})
    for (const int n : {1, 2, 4}) {
      const std::string name = fresh_name();
      const auto rank = [&](int r) {
        const auto group = Group::connect(name, r, n);
        for (int i = 0; i < 20; ++i) {
          const auto all = group->exchange("words", std::string(static_cast<size_t>(r * 100), 'a') + std::to_string(i));
          for (int p = 0; p < n; ++p)
            if (all[static_cast<size_t>(p)] != std::string(static_cast<size_t>(p * 100), 'a') + std::to_string(i))
              throw RuntimeError(str("rank ", p, ": ", all[static_cast<size_t>(p)]));
        }
        group->barrier();
      };
      expect_no_errors(threads ? run_threads(n, rank) : run_processes(n, rank));
    }
}

TEST(Group, ANameMayBeUsedAgainAtOnce) {
  const std::string name = fresh_name();
  expect_no_errors(run_threads(3, [&](int r) {
    for (int i = 0; i < 10; ++i) Group::connect(name, r, 3)->barrier();
  }));
}

TEST(Group, SplitOrdersMembersByKeyThenRank) {
  const std::string name = fresh_name();
  expect_no_errors(run_threads(4, [&](int r) {
    const auto group = Group::connect(name, r, 4), part = group->split(r % 2, -r);
    const auto all = part->exchange("rank", std::to_string(r));
    const std::string first = std::to_string(r % 2 + 2), second = std::to_string(r % 2);
    if (all.size() != 2 || all[0] != first || all[1] != second) throw RuntimeError(str(all[0], " ", all[1]));
  }));
}

TEST(Group, RanksThatDisagreeAllGetAnErrorThatNamesBoth) {
  const std::string name = fresh_name();
  const auto late = [](int rank) {  // rank 1 comes when rank 0 has failed already
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  };
  expect_errors(run_processes(3,
                              [&](int r) {
                                late(r);
                                Group::connect(name, r, r == 2 ? 4 : 3);
                              }),
                "expects 4 ranks, but rank 0 expects 3");
  expect_errors(run_threads(3, [&](int r) { Group::connect(name, r, 3)->exchange(r == 1 ? "gather" : "scatter", {}); }),
                "calls gather, but rank 0 calls scatter");
  expect_errors(run_processes(3, [&](int r) { Group::connect(name, r == 0 ? 0 : 1, 3); }), "both are rank 1");
}

TEST(Group, ArgumentsAreChecked) {
  EXPECT_THROW(Group::connect("", 0, 1), ValueError);
  EXPECT_THROW(Group::connect("a", 0, 65), ValueError);
  EXPECT_THROW(Group::connect("a", 2, 2), ValueError);
  EXPECT_THROW(Group::connect(std::string(200, 'a'), 0, 2), ValueError);
}

TEST(Group, ARankThatEndsBeforeItConnectsIsNamedAtOnce) {
  constexpr int kRanks = 3;
  const Timeout timeout("60");
  const auto begin = std::chrono::steady_clock::now();
  for (int missing = 0; missing < kRanks; ++missing) {
    const std::string name = fresh_name();
    const Process victim([] { pause(); });
    std::vector<int> processes(kRanks);  // 0: not known
    processes[static_cast<size_t>(missing)] = victim.id();
    std::vector<Process> others;
    for (int r = 0; r < kRanks; ++r)
      if (r != missing)
        others.emplace_back([&, r] {
          Group::expect(name, processes);
          Group::connect(name, r, kRanks);
        });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    victim.kill();
    for (Process& p : others) EXPECT_HAS(p.wait(), str("rank ", missing, " (process ", victim.id(), ") has ended"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(Group, ARankThatNeverArrivesIsNamed) {
  const Timeout timeout("0.3");
  const std::string name = fresh_name();
  EXPECT_HAS(outcome_of([&] { Group::connect(name, 0, 3); }), "rank 1, 2 did not connect within 0.3 s");
  EXPECT_HAS(outcome_of([&] { Group::connect(name, 1, 3); }), "rank 0 did not connect within 0.3 s");
  expect_errors(run_threads(2,
                            [&](int r) {
                              const auto group = Group::connect(name, r, 2);
                              if (r == 0) group->barrier("gather");
                              std::this_thread::sleep_for(std::chrono::milliseconds(400));
                              group->barrier("gather");
                            }),
                "gather: rank 1 (process ");
}

TEST(Window, ThreadsAndProcessesSeeEachOthersWords) {
  for (const bool threads : {true, false})
    for (const int n : {1, 2, 4}) {
      const std::string name = fresh_name();
      const auto rank = [&](int r) { exchange_words(*Group::connect(name, r, n), 1000); };
      expect_no_errors(threads ? run_threads(n, rank) : run_processes(n, rank));
    }
}

TEST(Window, RanksOfOtherCallsGetAnErrorThatNamesBoth) {
  const std::string name = fresh_name();
  const auto outcomes = run_threads(3, [&](int r) {
    const auto window = Group::connect(name, r, 3)->window(64);
    window->wait(window->publish({{1}}), describe);
    window->wait(window->publish({{r == 2 ? 9 : 2}}), describe);
  });
  EXPECT_HAS(outcomes[0], "rank 2 calls call 9, but rank 0 calls call 2");
  EXPECT_HAS(outcomes[2], "calls call 2, but rank 2 calls call 9");
}

TEST(Window, AFailedWindowStaysFailedOnAllRanks) {
  const std::string name = fresh_name();
  const auto outcomes = run_threads(3, [&](int r) {
    const auto window = Group::connect(name, r, 3)->window(64);
    EXPECT_NE(outcome_of([&] { window->wait(window->publish({{r}}), describe); }), "");
    window->publish({{5}});
  });
  expect_errors(outcomes, "failed before: ");
}

TEST(Window, AnAbandonedPhaseIsAnErrorOfTheOthersAndTheNextOneWorks) {
  const std::string name = fresh_name();
  const auto outcomes = run_threads(3, [&](int r) {
    const auto window = Group::connect(name, r, 3)->window(64);
    const auto word = [&](int rank) -> int64_t& { return *reinterpret_cast<int64_t*>(window->of(rank)); };
    for (int64_t i = 0; i < 40; ++i) {
      if (r == i % 3 && i % 4) {  // one after another of them, and in some rounds none
        for (int k = 0; k < 7; ++k) window->abandon(str("ValueError: ", i));
      } else if (i % 4) {
        for (int k = 0; k < 7; ++k) {
          const std::string error = outcome_of([&] { window->wait(window->publish({{i}}), describe); });
          if (error.find(str("rank ", i % 3, " raised ValueError: ", i)) == std::string::npos)
            throw RuntimeError(error);
        }
      }
      window->phase();  // all have read the word of the round before
      window->wait(window->publish({{-2 * i}}), describe);
      word(r) = 10 * i + r;
      window->put_to_all(0, sizeof(int64_t));
      window->wait(window->publish({{-2 * i - 1}}), describe);
      for (int p = 0; p < 3; ++p)
        if (word(p) != 10 * i + p) throw RuntimeError(str("round ", i, ", rank ", p, ": ", word(p)));
    }
  });
  expect_no_errors(outcomes);
}

TEST(Window, ARankThatLeavesOrNeverArrivesIsNamed) {
  const std::string name = fresh_name();
  auto outcomes = run_threads(3, [&](int r) {
    const auto window = Group::connect(name, r, 3)->window(64);
    if (r != 1) window->wait(window->publish({{1}}), describe);
  });
  for (const int r : {0, 2}) EXPECT_HAS(outcomes[static_cast<size_t>(r)], "rank 1 has left the group");

  const Timeout timeout("0.3");
  const std::string late = fresh_name();
  outcomes = run_threads(2, [&](int r) {
    const auto window = Group::connect(late, r, 2)->window(64);
    if (r == 1) std::this_thread::sleep_for(std::chrono::milliseconds(900));
    for (int i = 0; i < 2; ++i) window->wait(window->publish({{i}}), describe);
  });
  EXPECT_HAS(outcomes[0], "rank 1 did not arrive within 0.3 s");
  EXPECT_HAS(outcomes[1], "rank 0 failed: rank 1 did not arrive");
}

TEST(Window, ARankKilledAtAnyMomentIsAnErrorOfAllOthers) {
  const Timeout timeout("1");
  std::mt19937 random(11);
  for (int batch = 0; batch < 10; ++batch) {
    constexpr int kGroups = 10, kRanks = 3;
    std::vector<std::vector<Process>> groups(kGroups);
    for (auto& ranks : groups) {
      const std::string name = fresh_name();
      for (int r = 0; r < kRanks; ++r)
        ranks.emplace_back([&, r] { exchange_words(*Group::connect(name, r, kRanks), 100'000'000); });
    }
    const auto begin = Clock::now();
    std::vector<size_t> victims;
    for (auto& ranks : groups) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
      victims.push_back(random() % kRanks);
      ranks[victims.back()].kill();
    }
    for (size_t g = 0; g < kGroups; ++g)
      for (size_t r = 0; r < kRanks; ++r) {
        const Outcome outcome = groups[g][r].wait();
        // A rank that is killed before it connects is one that never arrives. So is one that a busy machine starts
        // late, and then the victim may have said so before it was killed.
        if (r != victims[g] || outcome != "killed") {
          EXPECT_HAS(outcome, "rank ");
        }
      }
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
  }
}

TEST(Window, AForkedChildMayNotUseItsParentsGroup) {
  const auto group = Group::connect(fresh_name(), 0, 1);
  const auto window = group->window(64);
  EXPECT_HAS(Process([&] { window->publish({{1}}); }).wait(), "a forked child connects a group of its own");
  EXPECT_HAS(Process([&] { group->barrier(); }).wait(), "a forked child connects a group of its own");
  window->wait(window->publish({{1}}), describe);  // the parent's still works
}

TEST(Window, NothingIsLeftOnDisk) {
  const std::string name = fresh_name();
  run_processes(2, [&](int r) {
    const auto window = Group::connect(name, r, 2)->window(1 << 20);
    std::memset(window->own(), 1, 1 << 20);
    raise(SIGKILL);
  });
  for (const Outcome& o : run_processes(2, [&](int r) { exchange_words(*Group::connect(name, r, 2), 3); }))
    EXPECT_EQ(o, "");  // the next start
  Process look([&] {
    const int found = std::system(("ls -A /dev/shm | grep -q " + name).c_str());
    if (found == 0) throw RuntimeError("/dev/shm has a file of the group");
  });
  EXPECT_EQ(look.wait(), "");
}

}  // namespace
}  // namespace flashinfer::comm
