// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "tests/record/probe.h"

namespace flashinfer::probe {
namespace {

using formats::Json;

std::vector<float> ramp(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i);
  return v;
}

std::vector<std::string> keys_of(const Json& j) {
  std::vector<std::string> out;
  for (const auto& [key, value] : j.items()) out.push_back(key);
  return out;
}

TEST_F(RecordTest, ACallLeavesTwoRecordsInTwoFiles) {
  record::configure(recording(folder));
  const auto x = ramp(6);
  call({.x = TensorView(x.data(), {6}), .alpha = 2});
  const auto all = dumps(folder / "dumps");
  ASSERT_EQ(all.size(), 1u);
  const std::string name = all[0].filename();
  EXPECT_NE(name.find(str("_pid", ::getpid(), "_probe_call0001")), std::string::npos) << name;
  EXPECT_EQ(name.size() - name.find("_pid"), str("_pid", ::getpid(), "_probe_call0001").size());
  EXPECT_EQ(name.find("_pid"), std::string("20261121_102524_265").size());
  const auto records = lines(all[0] / "metadata.jsonl");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(read(all[0] / "metadata.jsonl"), read(folder / "dumps/session.jsonl"));
  const std::vector<std::string> upstream = {
      "function_name",      "module",          "call_sequence",    "timestamp",      "process_id",
      "input_metadata",     "output_metadata", "tensor_info",      "tensor_details", "tensor_format",
      "function_signature", "versions",        "execution_status", "graph_capture",  "dump_dir"};
  for (const Json& r : records) {
    auto keys = keys_of(r);
    keys.resize(upstream.size());
    EXPECT_EQ(keys, upstream);
  }
  const Json& last = records[1];
  EXPECT_EQ(records[0]["execution_status"], "inputs_saved");
  EXPECT_EQ(last["execution_status"], "completed");
  EXPECT_EQ(last["input_metadata"].dump(), R"({"kwarg_alpha":2.0})");
  EXPECT_EQ(
      last["tensor_info"].dump(),
      R"({"input_tensor_keys":["arg_0"],"output_tensor_keys":["result"],"input_size_bytes":24,"input_size_mb":2.288818359375e-05,)"
      R"("output_size_bytes":24,"output_size_mb":2.288818359375e-05,"total_size_bytes":48,"total_size_mb":4.57763671875e-05})");
  EXPECT_EQ(last["function_signature"],
            "(x, alpha=1.0, action='compute', counter=None, kv_indices=None, workspace=None, pool=None, out=None)");
  EXPECT_EQ(last["arg_names"].dump(), R"(["x"])");
  EXPECT_EQ(last["backend"], "cpu");
  EXPECT_GT(last["end_ns"].get<int64_t>(), 0);
  EXPECT_GE(last["end_ns"].get<int64_t>(), last["start_ns"].get<int64_t>());
  const auto in = formats::read_pt(all[0] / "inputs.pt"), out = formats::read_pt(all[0] / "outputs.pt");
  ASSERT_EQ(in.size(), 1u);
  EXPECT_EQ(in[0].key, "arg_0");
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].key, "result");
  EXPECT_EQ(out[0].tensor.data_as<float>()[5], 10.0f);
  EXPECT_EQ(last["tensor_details"]["result"]["checksum"],
            formats::checksum_text(formats::checksum(out[0].tensor.view())));
}

TEST_F(RecordTest, FilesAreTheUsersOwn) {
  const mode_t old = ::umask(0);
  record::configure(recording(folder));
  const auto x = ramp(6);
  for (int i = 0; i < 2; ++i) call({.x = TensorView(x.data(), {6})});
  ::umask(old);
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder / "dumps")) {
    struct stat st;
    ASSERT_EQ(::stat(e.path().c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, e.is_directory() ? 0700u : 0600u) << e.path();
  }
}

TEST_F(RecordTest, WhatACallWritesIsRecordedAfterIt) {
  record::configure(recording(folder));
  const auto x = ramp(4);
  std::vector<float> counter = {7}, out(4, -1.0f);
  call({.x = TensorView(x.data(), {4}),
        .alpha = 3,
        .counter = TensorView(counter.data(), {1}),
        .out = TensorView(out.data(), {4})});
  const auto dump = dumps(folder / "dumps").at(0);
  const auto before = formats::read_pt(dump / "inputs.pt"), after = formats::read_pt(dump / "outputs.pt");
  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(before[1].key, "kwarg_counter");
  EXPECT_EQ(before[1].tensor.data_as<float>()[0], 7.0f);
  EXPECT_EQ(before[2].key, "kwarg_out");
  EXPECT_EQ(before[2].tensor.data_as<float>()[1], -1.0f);
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].key, "result");
  EXPECT_EQ(after[1].key, "after__kwarg_counter");
  EXPECT_EQ(after[1].tensor.data_as<float>()[0], 8.0f);
  const Json details = lines(dump / "metadata.jsonl").at(1)["tensor_details"];
  EXPECT_EQ(details["after__kwarg_out"]["same_as"], "result");
  EXPECT_EQ(details["kwarg_out"]["storage"], details["result"]["storage"]);
  EXPECT_NE(details["arg_0"]["storage"], details["result"]["storage"]);
}

TEST_F(RecordTest, AViewKeepsItsLayoutAndWritesOnlyItself) {
  record::configure(recording(folder));
  const std::vector<float> big = ramp(1 << 20);
  const int64_t shape[] = {4}, stride[] = {2};
  call({.x = TensorView(big.data() + 3, DType::kF32, shape, stride)});
  const auto dump = dumps(folder / "dumps").at(0);
  EXPECT_LT(std::filesystem::file_size(dump / "inputs.pt"), 4000u);
  const Json d = lines(dump / "metadata.jsonl").at(0)["tensor_details"]["arg_0"];
  EXPECT_EQ(d["stride"].dump(), "[2]");
  EXPECT_EQ(formats::read_pt(dump / "inputs.pt").at(0).tensor.data_as<float>()[0], 3.0f);
}

TEST_F(RecordTest, AFailedCallSaysWhatItThrew) {
  record::configure(recording(folder));
  const auto x = ramp(4);
  EXPECT_THROW(call({.x = TensorView(x.data(), {4}), .action = "throw"}), ValueError);
  const auto records = lines(dumps(folder / "dumps").at(0) / "metadata.jsonl");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1]["execution_status"], "failed");
  EXPECT_EQ(records[1]["error"].dump(), R"({"type":"ValueError","message":"probe: asked to fail"})");
  const std::string log = read(folder / "log");
  EXPECT_EQ(count(log, "Output value:"), 0);
}

TEST_F(RecordTest, ACallThatKillsTheProcessLeavesItsInputs) {
  const auto x = ramp(4);
  for (const char* how : {"kill", "segv", "exit"}) {
    Folder here;
    const int status = in_child([&] {
      record::configure(recording(here));
      call({.x = TensorView(x.data(), {4}), .alpha = 5});
      call({.x = TensorView(x.data(), {4}), .alpha = 6, .action = how});
    });
    EXPECT_TRUE(how == std::string("exit") ? WEXITSTATUS(status) == 3 : WIFSIGNALED(status)) << how;
    const auto all = dumps(here / "dumps");
    ASSERT_EQ(all.size(), 2u) << how;
    const auto records = lines(all[1] / "metadata.jsonl");
    ASSERT_EQ(records.size(), 1u) << how;
    EXPECT_EQ(records[0]["execution_status"], "inputs_saved");
    EXPECT_EQ(records[0]["input_metadata"]["kwarg_alpha"], 6.0);
    EXPECT_EQ(formats::read_pt(all[1] / "inputs.pt").at(0).tensor.data_as<float>()[3], 3.0f);
    EXPECT_EQ(lines(here / "dumps/session.jsonl").size(), 3u);
  }
}

TEST_F(RecordTest, CountLimitKeepsTheFirstAndWarnsOnce) {
  auto s = recording(folder);
  s.max_count = 2;
  record::configure(s);
  const auto x = ramp(4);
  for (int i = 2; i < 7; ++i) call({.x = TensorView(x.data(), {4}), .alpha = static_cast<double>(i)});
  const auto all = dumps(folder / "dumps");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(lines(all[1] / "metadata.jsonl")[0]["input_metadata"]["kwarg_alpha"], 3.0);
  const std::string log = read(folder / "log");
  EXPECT_EQ(
      count(log,
            "Dump limit reached (2 dumps). Skipping dump for probe. Increase FLASHINFER_DUMP_MAX_COUNT if needed.\n"),
      1);
  EXPECT_EQ(count(log, "API Call: probe"), 5);
  EXPECT_EQ(record::totals().skipped, 3u);
}

TEST_F(RecordTest, SizeLimitCountsInputsAndOutputs) {
  auto s = recording(folder);
  s.max_size_gb = 100000.0 / (1 << 30);
  record::configure(s);
  const auto x = ramp(8000);  // 32,000 bytes in, as many out: the second call's outputs are too much
  for (int i = 0; i < 4; ++i) call({.x = TensorView(x.data(), {8000})});
  const auto all = dumps(folder / "dumps");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(lines(all[0] / "metadata.jsonl")[1].contains("outputs_lost"), false);
  EXPECT_EQ(lines(all[1] / "metadata.jsonl")[1]["execution_status"], "completed");
  EXPECT_TRUE(lines(all[1] / "metadata.jsonl")[1].contains("outputs_lost"));
  EXPECT_FALSE(std::filesystem::exists(all[1] / "outputs.pt"));
  EXPECT_LE(record::totals().bytes, 100000u);
  EXPECT_EQ(count(read(folder / "log"), "Dump size limit reached"), 1);
}

TEST_F(RecordTest, NoCapAtInfinityAndNothingBelowZero) {
  const auto x = ramp(4);
  for (const double gb : {HUGE_VAL, std::nan(""), -1.0}) {
    Folder here;
    auto s = recording(here);
    s.max_size_gb = gb;
    record::configure(s);
    call({.x = TensorView(x.data(), {4})});
    EXPECT_EQ(dumps(here / "dumps").size(), gb == -1.0 ? 0u : 1u) << gb;
  }
}

TEST_F(RecordTest, TheRingKeepsTheLastCalls) {
  auto s = recording(folder);
  s.keep_last = true;
  s.max_count = 3;
  record::configure(s);
  const auto x = ramp(4);
  for (int i = 0; i < 200; ++i) call({.x = TensorView(x.data(), {4}), .alpha = static_cast<double>(i)});
  const auto all = dumps(folder / "dumps");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(lines(all[0] / "metadata.jsonl")[0]["input_metadata"]["kwarg_alpha"], 197.0);
  EXPECT_EQ(lines(all[2] / "metadata.jsonl")[0]["input_metadata"]["kwarg_alpha"], 199.0);
  EXPECT_LT(lines(folder / "dumps/session.jsonl").size(), 2u * 80);
  EXPECT_EQ(record::totals().bytes, 3u * 32);
}

TEST_F(RecordTest, ARingOfBytes) {
  auto s = recording(folder);
  s.keep_last = true;
  s.max_size_gb = 100000.0 / (1 << 30);
  record::configure(s);
  const auto x = ramp(4000);
  for (int i = 0; i < 20; ++i) call({.x = TensorView(x.data(), {4000}), .alpha = static_cast<double>(i)});
  const auto all = dumps(folder / "dumps");
  ASSERT_EQ(all.size(), 3u);  // 32,000 bytes each
  EXPECT_EQ(lines(all[2] / "metadata.jsonl")[1]["input_metadata"]["kwarg_alpha"], 19.0);
}

TEST_F(RecordTest, OneUnchangedTensorIsStoredOnce) {
  auto s = recording(folder);
  s.dedup = true;
  record::configure(s);
  const auto weight = ramp(1 << 20);  // 4 MB
  std::vector<float> out(1 << 20);
  for (int i = 0; i < 50; ++i)
    call({.x = TensorView(weight.data(), {1 << 20}), .out = TensorView(out.data(), {1 << 20})});
  const uint64_t tensors = bytes_under(folder / "dumps", [](const std::string& n) { return n.ends_with(".pack"); });
  const uint64_t metadata = bytes_under(folder / "dumps", [](const std::string& n) { return !n.ends_with(".pack"); });
  const double unique = 4.0 * (1 << 20) + 65536;  // x; the result equals it; one chunk of zeros
  EXPECT_LE(static_cast<double>(tensors), 1.05 * unique);
  EXPECT_LE(metadata, 50u * 16384);
  const auto dump = dumps(folder / "dumps").at(49);
  const auto in = formats::read_chunks(dump / "inputs.chunks"), after = formats::read_chunks(dump / "outputs.chunks");
  EXPECT_EQ(std::memcmp(in[0].tensor.data(), weight.data(), 4 << 20), 0);
  EXPECT_EQ(std::memcmp(after[0].tensor.data(), weight.data(), 4 << 20), 0);
}

TEST_F(RecordTest, AChangedPageCostsThatPage) {
  auto s = recording(folder);
  s.dedup = true;
  s.pages = record::Settings::Pages::kFull;
  record::configure(s);
  const auto x = ramp(4);
  auto pool = ramp(256 * 4096);  // 256 pages of 16 KB
  std::vector<int32_t> page = {200};
  const op::PagedKv kv(TensorView(pool.data(), {256, 4096}));
  const Probe probe{.x = TensorView(x.data(), {4}), .kv_indices = TensorView(page.data(), {1}), .pool = kv};
  const auto packs = [&] {
    return bytes_under(folder / "dumps", [](const std::string& n) { return n.ends_with(".pack"); });
  };
  call(probe);
  const uint64_t first = packs();
  EXPECT_GT(first, 256u * 16384);
  page[0] = 7;
  call(probe);
  EXPECT_LT(packs() - first, 2u * 16384 + 4 * 5000);  // the page before is known, the page after is new, and its nodes
  const auto after = formats::read_chunks(dumps(folder / "dumps").at(1) / "outputs.chunks");
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[1].key, "after__kwarg_pool");
  EXPECT_EQ(after[1].tensor.data_as<float>()[7 * 4096 + 5], 1.0f);
  EXPECT_EQ(after[1].tensor.data_as<float>()[8 * 4096], 8.0f * 4096);
}

TEST_F(RecordTest, OnlyUsedPagesAreStored) {
  for (const bool dedup : {false, true}) {
    Folder here;
    auto s = recording(here);
    s.dedup = dedup;
    s.pages = dedup ? record::Settings::Pages::kDefault : record::Settings::Pages::kUsed;
    record::configure(s);
    const auto x = ramp(4);
    auto k = ramp(1000 * 64), v = ramp(1000 * 64);
    std::vector<int32_t> pages = {700, 3, 3, 5000};  // what lies outside the pool names nothing
    call({.x = TensorView(x.data(), {4}),
          .kv_indices = TensorView(pages.data(), {4}),
          .pool = op::PagedKv(TensorView(k.data(), {1000, 64}), TensorView(v.data(), {1000, 64}))});
    const auto dump = dumps(here / "dumps").at(0);
    const auto in = dedup ? formats::read_chunks(dump / "inputs.chunks") : formats::read_pt(dump / "inputs.pt");
    std::vector<std::string> keys;
    for (const auto& t : in) keys.push_back(t.key);
    EXPECT_EQ(keys, (std::vector<std::string>{"arg_0", "kwarg_kv_indices", "kwarg_pool__0", "kwarg_pool__0__pages",
                                              "kwarg_pool__1", "kwarg_pool__1__pages"}));
    EXPECT_EQ(in[2].tensor.size(0), 2);
    EXPECT_EQ(in[2].tensor.data_as<float>()[64], 700.0f * 64);
    EXPECT_EQ(in[3].tensor.data_as<int64_t>()[0], 3);
    EXPECT_EQ(in[3].tensor.data_as<int64_t>()[1], 700);
    const Json d = lines(dump / "metadata.jsonl").at(0)["tensor_details"]["kwarg_pool__0"];
    EXPECT_EQ(d["shape"].dump(), "[1000,64]");
    EXPECT_EQ(d["stored"], "pages");
    const auto out = dedup ? formats::read_chunks(dump / "outputs.chunks") : formats::read_pt(dump / "outputs.pt");
    ASSERT_EQ(out.size(), 5u);
    EXPECT_EQ(out[1].key, "after__kwarg_pool__0");
    EXPECT_EQ(out[1].tensor.data_as<float>()[64], 1.0f);  // the kernel filled page 700
  }
}

TEST_F(RecordTest, AWorkspaceIsOnlyDescribed) {
  record::configure(recording(folder));
  const auto x = ramp(4);
  std::vector<uint8_t> workspace(1 << 20);
  call({.x = TensorView(x.data(), {4}), .workspace = TensorView(workspace.data(), {1 << 20})});
  const auto dump = dumps(folder / "dumps").at(0);
  EXPECT_EQ(formats::read_pt(dump / "inputs.pt").size(), 1u);
  const Json r = lines(dump / "metadata.jsonl").at(0);
  EXPECT_EQ(r["tensor_details"]["kwarg_workspace"]["stored"], "description");
  EXPECT_EQ(r["tensor_details"]["kwarg_workspace"]["shape"].dump(), "[1048576]");
  EXPECT_EQ(r["tensor_info"]["input_tensor_keys"].dump(), R"(["arg_0"])");
}

TEST_F(RecordTest, ARingWithDedupLetsPacksGo) {
  auto s = recording(folder);
  s.keep_last = true;
  s.dedup = true;
  s.max_size_gb = 8.0 * (1 << 20) / (1 << 30);
  record::configure(s);
  std::vector<float> x(1 << 18);  // 1 MB, new content each time
  std::vector<float> out(1 << 18);
  for (int i = 0; i < 40; ++i) {
    for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(i * 1000) + static_cast<float>(k % 977) * 0.125f;
    call({.x = TensorView(x.data(), {1 << 18}),
          .alpha = static_cast<double>(i + 2),
          .out = TensorView(out.data(), {1 << 18})});
  }
  EXPECT_LE(bytes_under(folder / "dumps/chunks", [](const std::string&) { return true; }), 8u << 20);
  const auto all = dumps(folder / "dumps");
  ASSERT_GE(all.size(), 2u);
  const auto last = lines(all.back() / "metadata.jsonl").back();
  EXPECT_EQ(last["input_metadata"]["kwarg_alpha"], 41.0);
  for (const auto& d : all)
    EXPECT_NO_THROW(formats::read_chunks(d / "inputs.chunks")) << d;  // nothing they need is gone
}

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

TEST_F(RecordTest, FiltersDecideBeforeAnythingIsWritten) {
  auto s = recording(folder);
  s.exclude = {"pro*"};
  record::configure(s);
  const auto x = ramp(4);
  call({.x = TensorView(x.data(), {4})});
  EXPECT_FALSE(std::filesystem::exists(folder / "dumps"));
  EXPECT_EQ(count(read(folder / "log"), "API Call: probe"), 0);
  s.level = 1;  // level 1 is not filtered
  record::configure(s);
  call({.x = TensorView(x.data(), {4})});
  EXPECT_EQ(count(read(folder / "log"), "API Call: probe"), 1);
}

TEST_F(RecordTest, SafetensorsHoldTheSameKeys) {
  auto s = recording(folder);
  s.safetensors = true;
  record::configure(s);
  const auto x = ramp(4);
  call({.x = TensorView(x.data(), {4})});
  const auto dump = dumps(folder / "dumps").at(0);
  EXPECT_EQ(formats::read_safetensors(dump / "inputs.safetensors").at(0).key, "arg_0");
  EXPECT_EQ(formats::read_safetensors(dump / "outputs.safetensors").at(0).tensor.data_as<float>()[3], 3.0f);
  EXPECT_EQ(lines(dump / "metadata.jsonl")[0]["tensor_format"], "safetensors");
}

TEST_F(RecordTest, NestedCallsHaveADepthAndOneSequence) {
  record::configure(recording(folder));
  const auto x = ramp(4);
  op::Observer* o = op::observer();
  op::Invocation outer;
  outer.name = "outer";
  outer.module = "tests";
  outer.foreign_signature = "()";
  {
    op::detail::ObservedCall observed(*o, outer);
    call({.x = TensorView(x.data(), {4})});
    observed.after(op::Value());
  }
  const auto all = dumps(folder / "dumps");
  ASSERT_EQ(all.size(), 2u);
  const Json first = lines(all[0] / "metadata.jsonl")[1], second = lines(all[1] / "metadata.jsonl")[1];
  EXPECT_EQ(first["function_name"], "outer");
  EXPECT_EQ(first["depth"], 0);
  EXPECT_EQ(second["depth"], 1);
  EXPECT_EQ(second["sequence"].get<int64_t>(), first["sequence"].get<int64_t>() + 1);
  EXPECT_EQ(first["output_metadata"].dump(), R"({"result":null})");
  EXPECT_FALSE(std::filesystem::exists(all[0] / "inputs.pt"));
}

}  // namespace
}  // namespace flashinfer::probe
