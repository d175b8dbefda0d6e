// SPDX-License-Identifier: Apache-2.0
// What can go wrong outside: full disks, folders that vanish, torn lines, other processes, taken names.
#include <sys/resource.h>

#include <barrier>
#include <chrono>
#include <thread>

#include "tests/record/probe.h"

namespace flashinfer::probe {
namespace {

using formats::Json;

TEST_F(RecordTest, AFileSizeLimitCostsOnlyWhatDoesNotFit) {
  const auto x = ramp(4), large = ramp(1 << 20);
  for (const bool dedup : {false, true}) {
    Folder here;
    const int status = in_child([&] {
      auto s = recording(here);
      s.dedup = dedup;
      record::configure(s);
      call({.x = TensorView(x.data(), {4})});
      const rlimit limit{1 << 20, 1 << 20};
      setrlimit(RLIMIT_FSIZE, &limit);
      for (int i = 0; i < 3; ++i) {
        const Tensor y = call({.x = TensorView(large.data(), {1 << 20}), .alpha = 2});
        if (y.data_as<float>()[9] != 18.0f) _exit(1);
      }
      call({.x = TensorView(x.data(), {4}), .alpha = 4});
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    const auto all = dumps(here / "dumps");
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(lines(all[1] / "metadata.jsonl")[1]["execution_status"], "completed");
    EXPECT_EQ(lines(all[1] / "metadata.jsonl")[1]["input_metadata"]["kwarg_alpha"], 4.0);
    for (const auto& d : all)
      EXPECT_NO_THROW(dedup ? formats::read_chunks(d / "inputs.chunks") : formats::read_pt(d / "inputs.pt"));
    EXPECT_EQ(count(read(here / "log"), "[DUMP ERROR (inputs) in probe]: cannot write"), 1);
  }
}

TEST_F(RecordTest, AFolderThatCannotBeWrittenStopsNothing) {
  std::ofstream(folder / "file") << "x";
  for (const std::string& dir : {std::string("/proc/nope"), (folder / "file/dumps").string()}) {
    Folder here;
    auto s = recording(here);
    s.dump_dir = dir;
    record::configure(s);
    const auto x = ramp(4);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(call({.x = TensorView(x.data(), {4}), .alpha = 2}).data_as<float>()[3], 6.0f);
    EXPECT_EQ(count(read(here / "log"), "[DUMP ERROR (inputs) in probe]"), 1) << dir;
    EXPECT_EQ(count(read(here / "log"), "Output value:"), 3);
    EXPECT_EQ(record::totals().lost, 3u);
  }
}

TEST_F(RecordTest, AFolderThatVanishesComesBack) {
  for (const bool dedup : {false, true}) {
    Folder here;
    auto s = recording(here);
    s.dedup = dedup;
    record::configure(s);
    const auto x = ramp(1000);
    call({.x = TensorView(x.data(), {1000})});
    std::filesystem::remove_all(here / "dumps");
    call({.x = TensorView(x.data(), {1000}), .alpha = 2});
    const auto all = dumps(here / "dumps");
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(lines(here / "dumps/session.jsonl").size(), 2u);
    const auto in = dedup ? formats::read_chunks(all[0] / "inputs.chunks") : formats::read_pt(all[0] / "inputs.pt");
    EXPECT_EQ(in[0].tensor.data_as<float>()[999], 999.0f);
  }
}

TEST_F(RecordTest, ATornLineCostsOnlyItself) {
  record::configure(recording(folder));
  const auto x = ramp(4);
  call({.x = TensorView(x.data(), {4})});
  std::ofstream(folder / "dumps/session.jsonl", std::ios::app) << R"({"function_name": "pro)";
  call({.x = TensorView(x.data(), {4})});
  std::istringstream in(read(folder / "dumps/session.jsonl"));
  int whole = 0, torn = 0;
  for (std::string line; std::getline(in, line);) {
    try {
      formats::parse_json(line);
      ++whole;
    } catch (const ValueError&) {
      ++torn;
    }
  }
  EXPECT_EQ(whole, 4);
  EXPECT_EQ(torn, 1);
}

TEST_F(RecordTest, TwoProcessesAndTheirThreadsShareAFolder) {
  const auto x = ramp(64);
  for (const bool dedup : {false, true}) {
    Folder here;
    auto s = recording(here);
    s.dedup = dedup;
    record::configure(s);
    call({.x = TensorView(x.data(), {64})});
    const auto work = [&] {
      std::vector<std::thread> threads;
      for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
          for (int i = 0; i < 20; ++i)
            call({.x = TensorView(x.data(), {64}), .alpha = static_cast<double>(t * 20 + i + 2)});
        });
      for (auto& t : threads) t.join();
    };
    const pid_t child = ::fork();  // after a recorded call: the child has counters and a pid of its own
    if (child == 0) {
      work();
      _exit(record::totals().calls == 60 ? 0 : 1);
    }
    work();
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(record::totals().calls, 61u);
    const auto all = dumps(here / "dumps");
    EXPECT_EQ(all.size(), 121u);
    std::set<int> pids;
    std::set<std::pair<int, uint64_t>> calls;
    const auto records = lines(here / "dumps/session.jsonl");
    EXPECT_EQ(records.size(), 2u * 121);
    for (const Json& r : records) {
      pids.insert(r["process_id"].get<int>());
      calls.emplace(r["process_id"].get<int>(), r["call_sequence"].get<uint64_t>());
    }
    EXPECT_EQ(pids, (std::set<int>{::getpid(), child}));
    EXPECT_EQ(calls.size(), 121u);
    for (const auto& d : all)
      EXPECT_NO_THROW(dedup ? formats::read_chunks(d / "outputs.chunks") : formats::read_pt(d / "outputs.pt"));
  }
}

TEST_F(RecordTest, ThreadsOfAForkedChildBeginTogether) {
  const auto x = ramp(4);
  constexpr int kThreads = 4, kChildren = 50;
  record::configure(recording(folder));
  call({.x = TensorView(x.data(), {4})});
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::barrier together(kThreads);
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&] {
          together.arrive_and_wait();
          call({.x = TensorView(x.data(), {4})});
        });
      for (auto& t : threads) t.join();
      _exit(static_cast<int>(record::totals().calls));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), kThreads) << "child " << i;
  }
  std::set<std::pair<int, uint64_t>> calls;
  for (const Json& r : lines(folder / "dumps/session.jsonl"))
    calls.emplace(r["process_id"].get<int>(), r["call_sequence"].get<uint64_t>());
  EXPECT_EQ(calls.size(), 1u + kChildren * kThreads);
  EXPECT_EQ(record::totals().calls, 1u);
}

TEST_F(RecordTest, AForkedChildCountsFromNothing) {
  record::configure(recording(folder));
  const auto x = ramp(4);
  call({.x = TensorView(x.data(), {4})});
  const pid_t child = ::fork();
  if (child == 0) _exit(static_cast<int>(record::totals().calls));
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(RecordTest, TakenNamesAreLeftAlone) {
  // Folders for 300 milliseconds, as another host with our process id would have made them, and a call within that
  // time; a machine too busy for that gets more tries.
  const auto x = ramp(4);
  for (int attempt = 0; attempt < 20; ++attempt) {
    Folder here;
    record::configure(recording(here));
    const auto begin = std::chrono::system_clock::now() + std::chrono::milliseconds(500 + 500 * attempt);
    std::filesystem::create_directories(here / "dumps");
    for (int ms = 0; ms < 300; ++ms) {
      const auto t = std::chrono::duration_cast<std::chrono::milliseconds>(begin.time_since_epoch()).count() + ms;
      const time_t second = t / 1000;
      tm local;
      localtime_r(&second, &local);
      char text[64];
      strftime(text, sizeof text, "%Y%m%d_%H%M%S", &local);
      char name[128];
      std::snprintf(name, sizeof name, "dumps/%s_%03d_pid%d_probe_call0001", text, static_cast<int>(t % 1000),
                    static_cast<int>(::getpid()));
      std::filesystem::create_directory(here / name);
    }
    if (std::chrono::system_clock::now() > begin) continue;
    std::this_thread::sleep_until(begin + std::chrono::milliseconds(100));
    call({.x = TensorView(x.data(), {4})});
    if (std::chrono::system_clock::now() > begin + std::chrono::milliseconds(290)) continue;
    const auto records = lines(here / "dumps/session.jsonl");
    ASSERT_EQ(records.size(), 2u);
    EXPECT_TRUE(records[0]["dump_dir"].get<std::string>().ends_with("_call0001_2"));
    return;
  }
  FAIL() << "no call came in time";
}

}  // namespace
}  // namespace flashinfer::probe
