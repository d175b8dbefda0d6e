// SPDX-License-Identifier: Apache-2.0
// Ranks of different versions of the library: each gets an error that names both. A rank of another version is played
// by its messages: what it says first has kept its form (rank, size, process, 52 bytes of version; then a token).
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "flashinfer/comm/group_state.h"
#include "flashinfer/comm/tcp.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/core/version.h"
#include "tests/comm/ranks.h"

namespace flashinfer::comm {
namespace {

constexpr const char* kOther = "0.0.1";
constexpr int32_t kProcess = 4711;

/// The names at which ranks meet: over a Unix socket (and then shared memory), by TCP, by a file.
std::vector<std::string> names(const std::string& folder) {
  return {fresh_name(), str("tcp://127.0.0.1:", port_of(listen_tcp({.hosts = {"127.0.0.1"}}))),
          "file://" + folder + "/meet"};
}

/// Connects as another rank of another version; throws what it is answered.
void play_rank(const std::string& name, int32_t rank, int32_t size) {
  const Meeting meeting = meeting_of(name);
  const Deadline soon = after(20);
  Fd fd;
  while (!(fd = meeting.connect()) && std::chrono::steady_clock::now() < soon)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const int32_t numbers[] = {rank, size, kProcess};
  char hello[64] = {};
  std::memcpy(hello, numbers, sizeof numbers);
  std::strcpy(hello + sizeof numbers, kOther);
  std::string bytes(hello, sizeof hello);
  append(bytes, *meeting.token);
  append(bytes, "a-host");
  Frame answer;
  send_frame(fd.get(), FrameKind::kData, bytes, {}, soon);
  receive_frame(fd.get(), answer, soon);
  throw RuntimeError(answer.bytes);
}
/// Listens as rank 0 of another version and answers the first rank; returns the version that it was told.
std::string play_root(const std::string& name, FrameKind kind, const std::string& text) {
  const Meeting meeting = meeting_of(name);
  const Fd listener = meeting.listen();
  const Deadline soon = after(20);
  Frame hello;
  while (wait_readable(listener.get(), soon)) {
    const Fd fd = meeting.accept(listener.get());
    if (!fd || receive_frame(fd.get(), hello, soon) != Received::kFrame) continue;
    send_frame(fd.get(), kind, text, {}, soon);
    return hello.bytes.substr(12).c_str();
  }
  return {};
}

class Version : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { folder_ = fs::make_temp_dir("/tmp", "flashinfer-comm-"); }
  void TearDown() override { fs::remove_tree(folder_); }
  std::string name() const { return names(folder_)[static_cast<size_t>(GetParam())]; }
  std::string folder_;
  Timeout timeout_{"20"};
};
INSTANTIATE_TEST_SUITE_P(Names, Version, testing::Range(0, 3));

TEST_P(Version, AnotherRankHasAnother) {
  for (const int late : {1, 2}) {  // the rank of the same version, or the other one
    const std::string name = this->name();
    for (const Outcome& o : run_threads(3, [&](int r) {
           if (r == late) std::this_thread::sleep_for(std::chrono::milliseconds(100));
           r == 2 ? play_rank(name, 2, 3) : static_cast<void>(Group::connect(name, r, 3));
         }))
      EXPECT_HAS(o,
                 str("rank 2 (process ", kProcess, ") has flashinfer ", kOther, ", but rank 0 has ", build::version()));
  }
}

TEST_P(Version, RankZeroHasAnother) {
  const std::string name = this->name(), refusal = str("rank 1 has flashinfer 7, but rank 0 has ", kOther);
  std::string told;
  const auto outcomes = run_threads(2, [&](int r) {
    r == 0 ? static_cast<void>(told = play_root(name, FrameKind::kError, refusal))
           : static_cast<void>(Group::connect(name, 1, 2));
  });
  EXPECT_EQ(told, build::version());
  EXPECT_HAS(outcomes[1], refusal);
}

TEST_P(Version, RankZeroAnswersInAnotherForm) {
  for (const std::string& text : {std::string("welcome"), std::string(64, '\0'), std::string(8, '\xff')}) {
    const std::string name = this->name();
    const auto outcomes = run_threads(2, [&](int r) {
      r == 0 ? static_cast<void>(play_root(name, FrameKind::kData, text))
             : static_cast<void>(Group::connect(name, 1, 2));
    });
    EXPECT_HAS(outcomes[1], "rank 0 answers in a form that this version does not know");
  }
}

}  // namespace
}  // namespace flashinfer::comm
