// SPDX-License-Identifier: Apache-2.0
// How ranks meet by an address, and windows whose bytes go through sockets. All other tests of this folder run over
// them too: ctest's comm.tcp.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <random>

#include "flashinfer/comm/group.h"
#include "flashinfer/comm/tcp.h"
#include "flashinfer/comm/window.h"
#include "flashinfer/core/check.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fs.h"
#include "tests/comm/ranks.h"

namespace flashinfer::comm {
namespace {

/// A variable of the environment for a test.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    if (const char* was = getenv(name)) was_ = was;
    setenv(name, value, 1);
    env::reload();
  }
  ~Setting() {
    was_ ? setenv(name_, was_->c_str(), 1) : unsetenv(name_);
    env::reload();
  }

 private:
  const char* name_;
  std::optional<std::string> was_{};
};
std::string describe(const Signature& s) { return str("call ", s.number[0]); }
void expect_no_errors(const std::vector<Outcome>& outcomes) {
  for (size_t r = 0; r < outcomes.size(); ++r) EXPECT_EQ(outcomes[r], "") << "rank " << r;
}
void expect_errors(const std::vector<Outcome>& outcomes, const std::string& text) {
  for (size_t r = 0; r < outcomes.size(); ++r) EXPECT_HAS(outcomes[r], text) << "rank " << r;
}
/// A port that nothing listens at.
std::string free_address() { return str("tcp://127.0.0.1:", port_of(listen_tcp({.hosts = {"127.0.0.1"}}))); }

/// Each rank sends every other one `bytes` of its own memory, and a word into the other's; `calls` times.
void exchange_parts(Group& group, int64_t bytes, int calls, const std::string& transport) {
  const auto window = group.window(4 * bytes + 4096, transport);
  const auto value = [](int call, int from, int64_t i) { return static_cast<uint8_t>(call * 7 + from * 31 + i); };
  for (int call = 0; call < calls; ++call) {
    const int64_t at = window->phase() % 2 * 2 * bytes;
    auto* own = reinterpret_cast<uint8_t*>(window->own() + at);
    for (int64_t i = 0; i < bytes; ++i) own[i] = value(call, group.rank(), i);
    window->put_to_all(at, bytes);
    for (int r = 0; r < group.size(); ++r) {
      const int64_t word = 4 * bytes + 8 * (call % 2 * 64 + group.rank()), sent = call * 100 + group.rank();
      std::memcpy(window->of(r) + word, &sent, 8);
      window->put(r, r, word, 8);
    }
    window->wait(window->publish({{7, call}}), describe);
    for (int r = 0; r < group.size(); ++r) {
      const auto* theirs = reinterpret_cast<const uint8_t*>(window->of(r) + at);
      for (int64_t i = 0; i < bytes; ++i)
        if (theirs[i] != value(call, r, i)) throw RuntimeError(str("call ", call, ", rank ", r, ", byte ", i));
      int64_t word = 0;
      std::memcpy(&word, window->own() + 4 * bytes + 8 * (call % 2 * 64 + r), 8);
      if (word != call * 100 + r) throw RuntimeError(str("call ", call, ", rank ", r, " sent ", word));
    }
  }
}

TEST(Meeting, AddressesAreReadAndWritten) {
  const auto a = parse_tcp("tcp://10.1.2.3,[fe80::1],host-7:4711/0xabc");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->hosts, (std::vector<std::string>{"10.1.2.3", "fe80::1", "host-7"}));
  EXPECT_EQ(a->port, 4711);
  EXPECT_EQ(a->token, "0xabc");
  EXPECT_EQ(a->text(), "tcp://10.1.2.3,[fe80::1],host-7:4711/0xabc");
  EXPECT_FALSE(parse_tcp("a-name"));
  for (const char* bad : {"tcp://", "tcp://host", "tcp://host:0", "tcp://host:65536", "tcp://host:x", "tcp://:1",
                          "tcp://a,,b:1", "file://relative"})
    EXPECT_HAS(outcome_of([&] { Group::connect(bad, 0, 2); }), "must be ");
}

TEST(Meeting, RanksMeetAtAnAddressAnInvitationOrAFile) {
  const std::string folder = fs::make_temp_dir("/tmp", "flashinfer-comm-");
  const std::string names[] = {free_address(), "", "file://" + folder + "/meet"};
  for (const std::string& given : names)
    for (const int n : {1, 2, 4}) {
      const std::string name = given.empty() ? Group::invite() : given;
      expect_no_errors(run_threads(n, [&](int r) {
        const auto group = Group::connect(name, r, n);
        const auto all = group->exchange("word", std::to_string(r));
        for (int p = 0; p < n; ++p)
          if (all[static_cast<size_t>(p)] != std::to_string(p)) throw RuntimeError(all[static_cast<size_t>(p)]);
        exchange_parts(*group, 3000, 20, "");  // shared memory: all are on this machine
        exchange_parts(*group, 3000, 20, "tcp");
        const auto part = group->split(r % 2, -r);
        if (part->size() != (n + 1 - r % 2) / 2) throw RuntimeError(str("a part of ", part->size()));
        exchange_parts(*part, 100, 5, "tcp");
      }));
      EXPECT_FALSE(fs::is_file(folder + "/meet"));
    }
  fs::remove_tree(folder);
}

TEST(Meeting, ARankAloneKeepsNoListener) {
  const auto open_files = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto make = [] { Group::connect(Group::invite(), 0, 1)->split(0, 0); };
  make();
  const auto before = open_files();
  for (int i = 0; i < 10; ++i) make();
  EXPECT_EQ(open_files(), before);
}

TEST(Meeting, AFileOfARunThatWasKilledDoesNotDisturb) {
  const std::string folder = fs::make_temp_dir("/tmp", "flashinfer-comm-");
  fs::write_atomic(folder + "/meet", free_address() + "/0x1");
  expect_no_errors(run_processes(2, [&](int r) {
    if (r == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    Group::connect("file://" + folder + "/meet", r, 2)->barrier();
  }));
  fs::remove_tree(folder);
}

TEST(Meeting, StrangersAtThePort) {
  const Setting timeout("FLASHINFER_COMM_TIMEOUT_S", "20");
  const std::string name = Group::invite();
  const TcpAddress address = *parse_tcp(name);
  const auto outcomes = run_threads(3, [&](int r) {
    if (r == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the strangers come first
    if (r < 2) return Group::connect(name, r, 2)->barrier();
    for (const std::string& bytes : {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(200, 'x')}) {
      const Fd fd = connect_tcp(address, std::chrono::steady_clock::now() + std::chrono::seconds(5));
      if (fd) send_frame(fd.get(), FrameKind::kData, bytes, {}, std::chrono::steady_clock::now());
    }
  });
  expect_no_errors(outcomes);
}

TEST(TcpWindow, ThreadsAndProcessesSeeEachOthersBytes) {
  for (const bool threads : {true, false})
    for (const int n : {1, 2, 4})
      for (const int64_t bytes : {int64_t{64}, int64_t{100'000}, int64_t{3} << 20}) {
        const std::string name = fresh_name();
        const auto rank = [&](int r) {
          exchange_parts(*Group::connect(name, r, n), bytes, bytes > 1'000'000 ? 6 : 100, "tcp");
        };
        expect_no_errors(threads ? run_threads(n, rank) : run_processes(n, rank));
      }
}

TEST(TcpWindow, RanksThatCannotShareMemoryUseSockets) {
  if (getuid() != 0) GTEST_SKIP() << "a rank of another user needs root";
  const Setting transport("FLASHINFER_COMM_TRANSPORT", "auto");
  const std::string name = Group::invite();
  expect_no_errors(run_processes(3, [&](int r) {
    if (r == 1 && setuid(65534) != 0) throw RuntimeError("setuid");
    const auto group = Group::connect(name, r, 3);
    if (group->window(64)->is_shared()) throw RuntimeError("memory of two users is shared");
    exchange_parts(*group, 5000, 50, "");
    const auto part = group->split(r == 1, 0);
    if (part->window(64)->is_shared() != (part->size() == 2 || r == 1)) throw RuntimeError("the part of one user");
  }));
  const std::string other = Group::invite();
  expect_errors(run_processes(2,
                              [&](int r) {
                                if (r == 1 && setuid(65534) != 0) throw RuntimeError("setuid");
                                Group::connect(other, r, 2)->window(64, "shm");
                              }),
                "transport shm needs ranks of one machine and user");
}

TEST(TcpWindow, RanksThatWantOtherTransportsOrCannotUseThemGetAnError) {
  const std::string name = fresh_name();
  expect_errors(run_threads(2, [&](int r) { Group::connect(name, r, 2)->window(64, r ? "tcp" : "shm"); }),
                "calls window(64, tcp), but rank 0 calls window(64)");
  EXPECT_HAS(outcome_of([&] { Group::connect(name, 0, 1)->window(64, "pigeons"); }),
             "transport is 'pigeons', but must be auto, shm, tcp or mpi");
  const Setting library("FLASHINFER_MPI", "/no/such/libmpi.so");
  expect_errors(run_processes(2, [&](int r) { Group::connect(name, r, 2)->window(64, "mpi"); }),
                "cannot open Open MPI (/no/such/libmpi.so");
}

TEST(Mpi, ProcessesThatMpirunDidNotStartGetAnError) {
  // Open MPI forks in such a process, so it may hold no mutex that fork() takes.
  const auto together = run_processes(2, [&](int r) { Group::connect(kMpiName, r, 2); });
  if (together[0].find("cannot open Open MPI") != std::string::npos) GTEST_SKIP() << together[0];
  for (const Outcome& o : together)
    EXPECT_TRUE(o.ends_with("and size 2, but this process is rank 0 of 1 of MPI_COMM_WORLD")) << o;
  const std::string name = fresh_name();
  expect_errors(run_processes(2, [&](int r) { Group::connect(name, r, 2)->window(64, "mpi"); }),
                "the first group that uses MPI has 2 ranks, but must have all 1 of MPI_COMM_WORLD");
}

TEST(TcpWindow, ARankThatLeavesIsLateOrCallsSomethingElseIsNamed) {
  const std::string name = fresh_name();
  auto outcomes = run_threads(3, [&](int r) {
    const auto window = Group::connect(name, r, 3)->window(64, "tcp");
    if (r != 1) window->wait(window->publish({{1}}), describe);
  });
  for (const int r : {0, 2}) EXPECT_HAS(outcomes[static_cast<size_t>(r)], "rank 1 has left the group");
  outcomes = run_threads(3, [&](int r) {
    const auto window = Group::connect(name, r, 3)->window(64, "tcp");
    window->wait(window->publish({{r == 2 ? 9 : 2}}), describe);
  });
  EXPECT_HAS(outcomes[0], "rank 2 calls call 9, but rank 0 calls call 2");
  EXPECT_HAS(outcomes[2], "calls call 2, but rank 2 calls call 9");

  const Setting timeout("FLASHINFER_COMM_TIMEOUT_S", "0.3");
  outcomes = run_threads(2, [&](int r) {
    const auto window = Group::connect(name, r, 2)->window(64, "tcp");
    if (r == 1) std::this_thread::sleep_for(std::chrono::milliseconds(900));
    for (int i = 0; i < 2; ++i) window->wait(window->publish({{i}}), describe);
  });
  EXPECT_HAS(outcomes[0], "rank 1 did not arrive within 0.3 s");
  EXPECT_HAS(outcomes[1], "rank 0 failed: rank 1 did not arrive");
}

TEST(TcpWindow, ARankKilledAtAnyMomentIsAnErrorOfAllOthers) {
  const Setting timeout("FLASHINFER_COMM_TIMEOUT_S", "60");
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    const std::string name = round % 2 ? Group::invite() : fresh_name();
    std::vector<Process> ranks;
    const Arrivals connected;  // one that is killed before is a rank that never arrives
    for (int r = 0; r < 3; ++r)
      ranks.emplace_back([&, r] {
        const auto group = Group::connect(name, r, 3);
        connected.arrive();
        exchange_parts(*group, 50'000, 1 << 30, "tcp");
      });
    connected.wait_for(3);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    const size_t victim = 1 + random() % 2;
    ranks[victim].kill();
    const auto begin = std::chrono::steady_clock::now();
    for (size_t r = 0; r < 3; ++r) {
      const Outcome outcome = ranks[r].wait();
      if (r == victim)
        EXPECT_EQ(outcome, "killed");
      else
        EXPECT_HAS(outcome, str("rank ", victim));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  }
}

}  // namespace
}  // namespace flashinfer::comm
