// SPDX-License-Identifier: Apache-2.0
// NCCL between ranks that are threads, over a fake library and a fake driver.
#include "flashinfer/comm/nccl.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "flashinfer/comm/nccl_group.h"
#include "flashinfer/core/check.h"
#include "test_paths.h"
#include "tests/comm/nccl_machine.h"
#include "tests/comm/ranks.h"

namespace flashinfer::comm {
namespace {

struct NcclTest : NcclMachine {
  /// f(rank, group) on every rank; the group's ranks meet by TCP, which notices who leaves.
  static std::vector<Outcome> run(int ranks, const std::function<void(int, NcclGroup&)>& f) {
    const std::string name = Group::invite();
    return run_threads(
        ranks, [&](int r) { f(r, *NcclGroup::connect(Group::connect(name, r, ranks), {DeviceType::kCUDA, 0})); });
  }
  static void expect_no_errors(const std::vector<Outcome>& outcomes) {
    for (size_t r = 0; r < outcomes.size(); ++r) EXPECT_EQ(outcomes[r], "") << "rank " << r;
  }
};
float value(int rank, int64_t i) { return static_cast<float>(rank * 100 + i % 17); }
void check(float is, float want, const char* what) {
  if (is != want) throw RuntimeError(str(what, ": ", is, " is not ", want));
}

TEST_F(NcclTest, MovesWhatTheRanksGive) {
  constexpr int64_t kN = 300;
  for (const int ranks : {1, 2, 4}) {
    fake_->calls.clear();
    expect_no_errors(run(ranks, [&](int me, NcclGroup& group) {
      std::vector<float> in(static_cast<size_t>(ranks * kN)), out(in.size());
      for (size_t i = 0; i < in.size(); ++i) in[i] = value(me, static_cast<int64_t>(i));
      group.all_gather(in.data(), out.data(), kN * 4, nullptr);
      for (int r = 0; r < ranks; ++r)
        for (int64_t i = 0; i < kN; ++i) check(out[static_cast<size_t>(r * kN + i)], value(r, i), "all_gather");
      group.all_to_all(in.data(), out.data(), kN * 4, nullptr);
      for (int r = 0; r < ranks; ++r)
        for (int64_t i = 0; i < kN; ++i)
          check(out[static_cast<size_t>(r * kN + i)], value(r, me * kN + i), "all_to_all");
      const auto sum = [&](int64_t i) {
        float total = 0;
        for (int r = 0; r < ranks; ++r) total += value(r, i);
        return total;
      };
      group.reduce_scatter(in.data(), out.data(), kN, DType::kF32, nullptr);
      for (int64_t i = 0; i < kN; ++i) check(out[static_cast<size_t>(i)], sum(me * kN + i), "reduce_scatter");
      group.all_reduce(in.data(), in.data(), kN, DType::kF32, nullptr);
      for (int64_t i = 0; i < kN; ++i) check(in[static_cast<size_t>(i)], sum(i), "all_reduce");
      group.synchronize(nullptr);
      if (group.calls() != 4) throw RuntimeError(str(group.calls(), " calls"));
    }));
    ASSERT_EQ(fake_->calls.size(), static_cast<size_t>(ranks));
    for (const auto& calls : fake_->calls) EXPECT_EQ(calls, fake_->calls[0]);  // one order on all ranks
    EXPECT_EQ(fake_->calls[0].front(), "ncclAllGather 1200");
    EXPECT_EQ(fake_->calls[0].back(), "ncclAllReduce 300");
  }
  EXPECT_EQ(fake_->aborted, 0);
  EXPECT_EQ(fake_->finalised, 7);
}

TEST_F(NcclTest, PartsOfAnySize) {
  expect_no_errors(run(3, [&](int me, NcclGroup& group) {
    // Rank r sends r + 1 bytes to the next rank, and nothing to the one after it.
    const int next = (me + 1) % 3, before = (me + 2) % 3;
    std::string in(static_cast<size_t>(me + 1), static_cast<char>('a' + me)), out(static_cast<size_t>(before + 1), ' ');
    const NcclGroup::Part sends[] = {{next, in.data(), in.size()}, {before, in.data(), 0}};
    const NcclGroup::Part receives[] = {{before, out.data(), out.size()}, {next, nullptr, 0}};
    group.exchange(sends, receives, nullptr);
    if (out != std::string(out.size(), static_cast<char>('a' + before))) throw RuntimeError(out);
    if (group.register_memory(in.data(), in.size())) throw RuntimeError("the fake library has no windows");
  }));
}

TEST_F(NcclTest, RanksThatDifferGetAnError) {
  const auto outcomes = run(2, [&](int me, NcclGroup& group) {
    float x[4] = {}, y[8] = {};
    group.all_gather(x, y, me ? 8 : 16, nullptr);
  });
  for (int r = 0; r < 2; ++r) {
    EXPECT_HAS(outcomes[static_cast<size_t>(r)], str(", rank ", r, ": all_gather: "));
    EXPECT_HAS(outcomes[static_cast<size_t>(r)], "ranks made different calls");
  }
  EXPECT_EQ(fake_->aborted, 2);
}

TEST_F(NcclTest, ARankThatLeavesOrIsLateIsNamedAndTheCommunicatorAborted) {
  const auto calls = [](int me, NcclGroup& group, bool leaves) {
    float x[4] = {}, y[8] = {};
    if (me == 1 && leaves) return;
    if (me == 1) std::this_thread::sleep_for(std::chrono::milliseconds(4000));
    for (int i = 0; i < 2; ++i) {
      const Outcome first = outcome_of([&] { group.all_gather(x, y, 16, nullptr); });
      if (!i && me == 0) {
        EXPECT_HAS(outcome_of([&] { group.all_gather(x, y, 16, nullptr); }), "failed before: ");
      }
      if (!first.empty()) throw RuntimeError(first);
    }
  };
  const auto left = run(2, [&](int me, NcclGroup& group) { calls(me, group, true); });
  EXPECT_HAS(left[0], "all_gather: rank 1 (process ");
  EXPECT_HAS(left[0], "has ended or left the group");
  EXPECT_EQ(fake_->aborted, 1);
  patience("2");
  const auto late = run(2, [&](int me, NcclGroup& group) { calls(me, group, false); });
  EXPECT_HAS(late[0], "all_gather: another rank did not arrive within 2 s (FLASHINFER_COMM_TIMEOUT_S)");
  EXPECT_NE(late[1], "");
}

TEST_F(NcclTest, AnErrorThatNcclReportsLater) {
  fake_->fail_rank_0 = nccl::kRemoteError;
  const auto outcomes = run(2, [&](int, NcclGroup& group) {
    float x[4] = {}, y[8] = {};
    group.all_gather(x, y, 16, nullptr);
    group.synchronize(nullptr);
  });
  EXPECT_HAS(outcomes[0], ", rank 0: all_gather: ");
  EXPECT_HAS(outcomes[0], "remote process exited (ncclResult_t 6): the wire broke");
}

TEST_F(NcclTest, ALibraryThatIsMissingOrTooOldIsAnErrorOfAllRanks) {
  use("/no/such/libnccl.so.2");
  for (const Outcome& o : run(2, [](int, NcclGroup&) {}))
    EXPECT_HAS(o, "rank 0: libnccl was not found; searched FLASHINFER_NCCL=/no/such/libnccl.so.2");
  use(FI_TEST_LIBRARY("fake_nccl"));
  fake_->version = 21205;
  for (const Outcome& o : run(2, [](int, NcclGroup&) {})) EXPECT_HAS(o, "NCCL is 2.12 (");
}

/// The library at FLASHINFER_TEST_NCCL (tools/nccl_versions.py), else the one that is installed beside the tests'
/// Python.
TEST(Nccl, TheRealLibraryHasAllNames) {
  const char* const path = std::getenv("FLASHINFER_TEST_NCCL");
  const std::string python = FI_TEST_PYTHON;
  setenv(path ? "FLASHINFER_NCCL" : "VIRTUAL_ENV", path ? path : python.substr(0, python.rfind("/bin/")).c_str(), 1);
  env::reload();
  nccl::detail::forget();
  const nccl::Library& l = nccl::library();
  unsetenv(path ? "FLASHINFER_NCCL" : "VIRTUAL_ENV");
  env::reload();
  nccl::detail::forget();
  if (l.path.empty() && !path) GTEST_SKIP() << l.why_not;
  ASSERT_EQ(l.why_not, "");
#define FI_EXPECT_NAME(result, name, arguments) EXPECT_NE(l.name, nullptr) << #name;
  FI_NCCL_API(FI_EXPECT_NAME)
#undef FI_EXPECT_NAME
  EXPECT_GE(l.version, 21800);
  EXPECT_EQ(l.ncclCommWindowRegister != nullptr, l.version >= 22700);
  EXPECT_EQ(l.ncclCommWindowDeregister != nullptr, l.version >= 22700);
  EXPECT_HAS(l.ncclGetErrorString(nccl::kInvalidUsage), "invalid usage");  // the numbers mean what they are called
  EXPECT_HAS(l.ncclGetErrorString(nccl::kRemoteError), "remote process exited");
  EXPECT_HAS(l.ncclGetErrorString(nccl::kInProgress), "in progress");
}

}  // namespace
}  // namespace flashinfer::comm
