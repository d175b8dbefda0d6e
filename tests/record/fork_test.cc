// SPDX-License-Identifier: Apache-2.0
// A process that forks while its other threads record: the child finds no mutex held by a thread that it does not have,
// nothing half-made. Not under g++'s AddressSanitizer: its allocator holds no lock of its own over fork(), so that the
// child waits in `new` for ever.
#if !defined(__SANITIZE_ADDRESS__)
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/record/probe.h"

namespace flashinfer::probe {
namespace {

constexpr int kChildren = 20;

/// Forks while three threads do `busy` over and over; the children record a call each. Their exit statuses: 0, or
/// SIGALRM of one that waits.
std::vector<int> children_amid(const std::function<void(int)>& busy, int n) {
  const auto x = ramp(4);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; !stop.load(); ++i) busy(3 * i + t);
    });
  std::vector<int> statuses;
  for (int i = 0; i < n; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      call({.x = TensorView(x.data(), {4}), .alpha = 2});
      _exit(record::totals().calls == 1 ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    statuses.push_back(status);
    if (status != 0) break;
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  return statuses;
}

TEST_F(RecordTest, AChildForkedAmidRecordedCallsRecords) {
  std::vector<float> x(200'000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 1009);
  for (const bool dedup : {false, true}) {
    Folder here;
    auto s = recording(here);
    s.dedup = dedup, s.keep_last = true, s.max_count = 20;
    record::configure(s);
    const auto busy = [&](int i) {
      const size_t n = dedup ? 100'000 : 4, from = static_cast<size_t>(i) % 90'000;
      call({.x = TensorView(x.data() + from, {static_cast<int64_t>(n)}), .alpha = static_cast<double>(i)});
    };
    const auto statuses = children_amid(busy, kChildren);
    EXPECT_EQ(statuses, std::vector<int>(kChildren, 0))
        << (dedup ? "chunks" : "files") << ", status " << statuses.back() << " of child " << statuses.size();
  }
}

TEST_F(RecordTest, AChildForkedAmidAControlFilesReadingRecords) {
  auto s = recording(folder);
  s.control = folder / "control";
  record::configure(s);
  const auto x = ramp(4);
  const auto busy = [&](int i) {
    if (i % 3) return static_cast<void>(record::wanted("probe"));
    std::ofstream(folder / "next") << "include=probe" << std::string(static_cast<size_t>(i / 3 % 2000), '\n');
    std::filesystem::rename(folder / "next", folder / "control");
  };
  EXPECT_EQ(children_amid(busy, kChildren), std::vector<int>(kChildren, 0));
}

}  // namespace
}  // namespace flashinfer::probe
#else
#include <gtest/gtest.h>
TEST(Fork, OfARecordingProcess) { GTEST_SKIP() << "g++'s AddressSanitizer deadlocks in a forked child"; }
#endif
