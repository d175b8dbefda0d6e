// SPDX-License-Identifier: Apache-2.0
// What a recording holds: records, files, layouts, failures, nesting.
#include <sys/stat.h>

#include "tests/record/probe.h"

namespace flashinfer::probe {
namespace {

using formats::Json;

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
