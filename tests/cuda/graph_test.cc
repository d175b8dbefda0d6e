// SPDX-License-Identifier: Apache-2.0
// Calls on a stream that is being captured: what the graph holds, what the log says, and what is recorded when the
// graph has run.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "call.h"
#include "flashinfer/formats/json.h"
#include "flashinfer/formats/pt.h"
#include "flashinfer/ops/attention/cuda/launch.h"
#include "flashinfer/ops/attention/op.h"
#include "flashinfer/ops/common/kernels/statistics_params.h"
#include "flashinfer/record/stats.h"
#include "flashinfer/replay/replay.h"

namespace flashinfer {
namespace {

using formats::Json;

class Graph : public Call {
 protected:
  void SetUp() override {
    Call::SetUp();
    out_ = Tensor::zeros({3, 8}, DType::kF32, kGpu);
    rmsnorm(
        {.input = input_, .weight = weight_, .out = out_.view()});  // compiled, as everybody warms up before a capture
    cuda::synchronize(0, stream_->get());
  }
  void TearDown() override {
    record::clear_graph_dumps();
    out_ = Tensor();
    Call::TearDown();
  }
  /// One call, captured; returns the number of operations in the graph.
  int capture() {
    gpu().calls.clear();
    gpu().begin_capture(stream_->get());
    rmsnorm({.input = input_, .weight = weight_, .out = out_.view()});
    return gpu().end_capture(stream_->get());
  }
  void launch(float value) {
    for (float& v : x_.span<float>()) v = value;
    x_.span<float>()[0] = 2 * value;
    copy_bytes(const_cast<void*>(input_.data()), kGpu, x_.data(), kCpu, static_cast<size_t>(x_.nbytes()));
    gpu().launch_graph(gpu().last_graph(), stream_->get());
  }
  static std::vector<Json> lines(const std::string& path) {
    std::vector<Json> out;
    const std::string text = fs::read_file(path).value_or("");
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      out.push_back(formats::parse_json(text.substr(at, end - at)));
      at = end + 1;
    }
    return out;
  }
  /// The folder of the one recorded call.
  std::string dump() const {
    for (const std::string& name : fs::list_dir(folder_ + "/dumps"))
      if (fs::is_dir(folder_ + "/dumps/" + name)) return folder_ + "/dumps/" + name;
    return {};
  }
  static float first(const std::string& file, const std::string& key) {
    for (const auto& t : formats::read_pt(file))
      if (t.key == key) return t.tensor.data_as<float>()[0];
    return -1;
  }
  /// Of the first row, by the formula.
  float expected() {
    double sum = 0;
    for (int i = 0; i < 8; ++i) sum += static_cast<double>(x_.span<float>()[i]) * x_.span<float>()[i];
    return static_cast<float>(x_.span<float>()[0] / std::sqrt(sum / 8 + 1e-6) * 2);
  }

  Tensor out_;
};

/// The first call under capture compiles and loads beside it; what the capture holds is the kernels alone.
TEST_F(Graph, NothingIsCopiedOrWaitedFor) {
  for (const int level : {0, 3, 5, 10}) {
    observe(level);
    jit::reset();
    EXPECT_EQ(capture(), level >= 5 ? 5 : 1)
        << level;  // statistics of three arguments, the kernel, statistics of the result
    EXPECT_EQ(waits() + gpu().calls["cuCtxSynchronize"], 0) << level;
    for (const auto& [name, n] : gpu().calls) EXPECT_FALSE(name.starts_with("cuMemcpy") && n > 0) << name;
  }
  launch(3);
  expect_right(out_.view());
}

TEST_F(Graph, StatisticsArePrintedByTheGraph) {
  observe(5);
  capture();
  std::vector<StatisticsParams> launched;
  for (const fake::Launched& l : gpu().launches)
    if (l.bytes == sizeof(StatisticsParams)) {
      launched.push_back(*reinterpret_cast<const StatisticsParams*>(l.params));
      EXPECT_EQ(l.config.grid[0], 1u);
      EXPECT_EQ(l.config.block[0], 256u);
      EXPECT_EQ(l.config.stream, stream_->get());
    }
  ASSERT_GE(launched.size(), 4u);
  EXPECT_EQ(launched[0].data, input_.data());
  EXPECT_EQ(launched[0].numel, 24);
  EXPECT_EQ(launched[1].data, weight_.data());
  EXPECT_EQ(launched.back().data, out_.data());
  for (const StatisticsParams& p : launched) {
    const std::string id = std::to_string(p.id);
    EXPECT_NE(log().find("[stats deferred to GPU kernel: id=" + id + "; look for '[flashinfer stats] id=" + id +
                         " ...' in graph replay output]\n"),
              std::string::npos)
        << log();
  }
  EXPECT_EQ(log().find("min="), std::string::npos) << log();
}

TEST_F(Graph, TheStatisticsKernelCompilesForEveryGpu) {
  for (const auto& [major, minor] : {std::pair(7, 5), {8, 0}, {9, 0}, {10, 0}, {12, 0}}) {
    gpu().major = major, gpu().minor = minor;
    again();
    EXPECT_GT(record::print_statistics(input_.view()), 0) << major;
  }
  cuda::synchronize(0, stream_->get());
}

/// Element types without a kernel, and gaps between elements.
TEST_F(Graph, WhatTheKernelCannotReadIsSkipped) {
  const Tensor wide = Tensor::zeros({3, 16}, DType::kF32, kGpu);
  cuda::synchronize(0, stream_->get());
  observe(5);
  gpu().begin_capture(stream_->get());
  const std::vector<int64_t> shape{3, 8}, strides{16, 1};
  rmsnorm({.input = TensorView(wide.data(), DType::kF32, shape, strides, kGpu), .weight = weight_, .out = out_.view()});
  EXPECT_GT(gpu().end_capture(stream_->get()), 0);
  EXPECT_NE(log().find("is_contiguous=False\n      [statistics skipped: CUDA graph capture in progress]\n"),
            std::string::npos)
      << log();
  EXPECT_NE(log().find("[stats deferred to GPU kernel: id="), std::string::npos);
}

TEST_F(Graph, RecordsWaitForAFlush) {
  observe(10);
  capture();
  const std::string folder = dump();
  EXPECT_EQ(fs::list_dir(folder), std::vector<std::string>{"metadata.jsonl"});
  for (const Json& r : lines(folder + "/metadata.jsonl")) {
    EXPECT_EQ(r["execution_status"], "graph_capture_pending_flush");
    EXPECT_EQ(r["graph_capture"], true);
    EXPECT_FALSE(r.contains("graph_capture_flushed"));
  }
  EXPECT_NE(log().find(" MB, total: 1/1000 dumps, graph-deferred)\nInputs dumped to: " + folder + "\n"),
            std::string::npos)
      << log();
  EXPECT_NE(log().find(" MB, graph-deferred)\nOutputs dumped to: " + folder + "\n"), std::string::npos) << log();
  const replay::Report pending = replay::replay(folder_ + "/dumps");
  ASSERT_EQ(pending.calls.size(), 1u);
  EXPECT_EQ(pending.calls[0].outcome, replay::Outcome::kNeverCompleted);
  EXPECT_NE(pending.calls[0].message.find("never flushed"), std::string::npos);

  launch(3);
  EXPECT_EQ(record::flush_graph_dumps(), 2);
  EXPECT_GT(gpu().calls["cuCtxSynchronize"], 0);
  const float first_result = expected();
  EXPECT_EQ(first(folder + "/inputs.pt", "arg_0"), 6);
  EXPECT_NEAR(first(folder + "/outputs.pt", "result"), first_result, 1e-5);
  launch(5);
  EXPECT_EQ(record::flush_graph_dumps(), 2);
  // The call's folder has the latest values, each snapshot its own.
  EXPECT_EQ(first(folder + "/inputs.pt", "arg_0"), 10);
  EXPECT_EQ(first(folder + "/graph_flushes/flush_0001/inputs.pt", "arg_0"), 6);
  EXPECT_EQ(first(folder + "/graph_flushes/flush_0002/inputs.pt", "arg_0"), 10);
  EXPECT_NEAR(first(folder + "/graph_flushes/flush_0001/outputs.pt", "result"), first_result, 1e-5);

  EXPECT_EQ(lines(folder + "/metadata.jsonl").size(), 6u);
  EXPECT_EQ(lines(folder + "/graph_flushes/flush_0001/metadata.jsonl").size(), 2u);
  EXPECT_EQ(lines(folder_ + "/dumps/session.jsonl").size(), 10u);
  const Json base = lines(folder + "/metadata.jsonl").back(),
             snapshot = lines(folder + "/graph_flushes/flush_0002/metadata.jsonl").back();
  EXPECT_EQ(base["execution_status"], "completed");
  EXPECT_EQ(lines(folder + "/metadata.jsonl")[4]["execution_status"], "inputs_saved");
  EXPECT_EQ(base["graph_capture_flushed"], true);
  EXPECT_EQ(base["graph_capture_flush_index"], 2);
  EXPECT_EQ(base["graph_capture_snapshot_dir"], folder + "/graph_flushes/flush_0002");
  EXPECT_EQ(base["dump_dir"], folder);
  EXPECT_FALSE(base.contains("graph_capture_base_dump_dir"));
  EXPECT_EQ(snapshot["dump_dir"], folder + "/graph_flushes/flush_0002");
  EXPECT_EQ(snapshot["graph_capture_base_dump_dir"], folder);
  EXPECT_EQ(snapshot["tensor_details"]["arg_0"]["device"], "cuda:0");
  std::vector<std::string> keys;
  for (const auto& [key, value] : snapshot.items()) keys.push_back(key);
  const auto at = [&](const char* key) { return std::ranges::find(keys, key) - keys.begin(); };
  EXPECT_EQ(at("graph_capture_flushed"), at("dump_dir") + 1);
  EXPECT_EQ(at("graph_capture_base_dump_dir"), at("dump_dir") + 4);

  for (const std::string& where : {folder_ + "/dumps", folder, folder + "/graph_flushes/flush_0001"}) {
    replay::Options options;
    options.device = kCpu;
    const replay::Report report = replay::replay(where, options);
    ASSERT_EQ(report.calls.size(), 1u) << where;
    EXPECT_EQ(report.calls[0].outcome, replay::Outcome::kPassed) << where << ": " << report.calls[0].message;
    EXPECT_TRUE(report.notes.empty()) << report.notes[0];
  }
}

TEST_F(Graph, ARecordingWithDedupKeepsWhatEachReplayChanged) {
  record::Settings s = before_;
  s.level = 10, s.dedup = true, s.destination = folder_ + "/log.txt", s.dump_dir = folder_ + "/dumps";
  record::configure(s);
  capture();
  for (const float v : {3.f, 5.f}) {
    launch(v);
    EXPECT_EQ(record::flush_graph_dumps(), 2);
  }
  replay::Options options;
  options.device = kCpu;
  for (const std::string& where : {dump(), dump() + "/graph_flushes/flush_0001"}) {
    const replay::Report report = replay::replay(where, options);
    ASSERT_EQ(report.calls.size(), 1u);
    EXPECT_EQ(report.calls[0].outcome, replay::Outcome::kPassed) << where << ": " << report.calls[0].message;
  }
}

/// One capture's calls, and forgetting.
TEST_F(Graph, FlushesOneGraphOrForgets) {
  observe(10);
  capture();
  const uint64_t first_graph = gpu().last_graph();
  capture();
  EXPECT_NE(gpu().last_graph(), first_graph);
  launch(3);
  EXPECT_EQ(record::flush_graph_dumps(false, first_graph), 2);
  EXPECT_EQ(gpu().calls["cuCtxSynchronize"], 0);
  EXPECT_EQ(record::flush_graph_dumps(true, 1000), 0);
  EXPECT_EQ(record::clear_graph_dumps(), 4);
  EXPECT_EQ(record::flush_graph_dumps(), 0);
}

TEST_F(Graph, TheNumberOfACaptureIsTheDrivers) {
  EXPECT_EQ(cuda::capture_id(0, stream_->get()), 0u);
  gpu().begin_capture(stream_->get());
  EXPECT_EQ(cuda::capture_id(0, stream_->get()), gpu().last_graph());
  gpu().end_capture(stream_->get());
}

/// What the call wrote over its own input cannot be replayed, and says so.
TEST_F(Graph, AnInputThatTheCallOverwroteIsNotCompared) {
  observe(10);
  gpu().begin_capture(stream_->get());
  rmsnorm({.input = input_, .weight = weight_, .out = input_.view()});
  gpu().end_capture(stream_->get());
  launch(3);
  EXPECT_EQ(record::flush_graph_dumps(), 2);
  EXPECT_EQ(lines(dump() + "/metadata.jsonl").back()["graph_capture_overwritten"], Json::array({"arg_0"}));
  replay::Options options;
  options.device = kCpu;
  const replay::Report report = replay::replay(folder_ + "/dumps", options);
  ASSERT_EQ(report.calls.size(), 1u);
  EXPECT_EQ(report.calls[0].outcome, replay::Outcome::kNotCompared) << report.calls[0].message;
  EXPECT_NE(report.calls[0].message.find("had overwritten arg_0"), std::string::npos) << report.calls[0].message;
}

TEST_F(Graph, MemoryThatWasFreedIsNotRead) {
  observe(10);
  capture();
  launch(3);
  cuda::synchronize(0, stream_->get());
  input_ = Tensor();
  cuda::synchronize(0, stream_->get());
  EXPECT_EQ(record::flush_graph_dumps(), 1);  // the outputs
  EXPECT_NE(log().find("[DUMP ERROR (inputs) in rmsnorm]: ValueError: the memory of arg_0 was freed"),
            std::string::npos)
      << log();
  EXPECT_EQ(record::flush_graph_dumps(), 1);
  input_ = to_device(x_.view(), kGpu);
}

TEST_F(Graph, SnapshotsCountAgainstTheLimit) {
  record::Settings s = before_;
  s.level = 10, s.max_size_gb = 500.0 / (1 << 30), s.destination = folder_ + "/log.txt",
  s.dump_dir = folder_ + "/dumps";
  record::configure(s);
  capture();
  launch(3);
  EXPECT_EQ(record::flush_graph_dumps(), 2);
  EXPECT_EQ(record::flush_graph_dumps(), 1);
  EXPECT_EQ(record::flush_graph_dumps(), 0);
  EXPECT_LE(record::totals().bytes, 500u);
  const std::string text = log();
  EXPECT_NE(text.find("Dump size limit reached"), std::string::npos) << text;
  EXPECT_EQ(text.find("Dump size limit reached"), text.rfind("Dump size limit reached"));
}

/// A captured decode reads what later plans write, at the addresses that it was captured with; a flush records the plan
/// that the replay used.
TEST_F(Graph, ACapturedDecodeFollowsThePlan) {
  const auto ints = [](std::vector<int32_t> v) {
    return Tensor::copy_of(std::span<const int32_t>(v), {static_cast<int64_t>(v.size())});
  };
  const Tensor indptr_buf = Tensor::zeros({3}, DType::kI32, kGpu), indices_buf = Tensor::zeros({90}, DType::kI32, kGpu),
               last_buf = Tensor::zeros({2}, DType::kI32, kGpu), workspace = Tensor::empty({0}, DType::kU8, kGpu),
               q = Tensor::zeros({2, 8, 64}, DType::kBF16, kGpu),
               cache = Tensor::zeros({90, 2, 16, 2, 64}, DType::kBF16, kGpu),
               out = Tensor::zeros({2, 8, 64}, DType::kBF16, kGpu);
  BatchDecodeWithPagedKVCacheWrapper decode({.float_workspace_buffer = workspace,
                                             .use_cuda_graph = true,
                                             .paged_kv_indptr_buffer = indptr_buf,
                                             .paged_kv_indices_buffer = indices_buf,
                                             .paged_kv_last_page_len_buffer = last_buf});
  const auto plan = [&](const std::vector<int32_t>& indptr, const std::vector<int32_t>& last) {
    std::vector<int32_t> pages;
    for (int32_t i = 0; i < indptr.back(); ++i) pages.push_back(89 - i);
    const Tensor a = ints(indptr), b = ints(pages), c = ints(last);
    decode.plan({.indptr = a,
                 .indices = b,
                 .last_page_len = c,
                 .num_qo_heads = 8,
                 .num_kv_heads = 2,
                 .head_dim = 64,
                 .page_size = 16,
                 .q_data_type = DType::kBF16,
                 .data_type = DType::kBF16});
    return pages;
  };
  gpu().kernel = nullptr;
  plan({0, 2, 5}, {9, 16});
  const auto run = [&] { decode.run({.q = q, .paged_kv_cache = op::PagedKv(cache.view()), .out = out.view()}); };
  run();
  cuda::synchronize(0, stream_->get());
  observe(10);
  gpu().launches.clear();
  gpu().begin_capture(stream_->get());
  run();
  EXPECT_NE(error([&] { plan({0, 2, 5}, {9, 16}); }).find("while the stream is being captured"), std::string::npos);
  EXPECT_GT(gpu().end_capture(stream_->get()), 0);
  const auto captured = std::ranges::find_if(
      gpu().launches, [](const fake::Launched& l) { return l.bytes == sizeof(AttentionCudaParams); });
  ASSERT_NE(captured, gpu().launches.end());
  const auto& params = *reinterpret_cast<const AttentionCudaParams*>(captured->params);
  EXPECT_EQ(params.a.kv_indices, indices_buf.data());

  const std::vector<int32_t> pages = plan({0, 80, 83}, {4, 1});
  cuda::synchronize(0, stream_->get());
  const auto* lengths = static_cast<const int32_t*>(fake::host(params.a.kv_len));
  EXPECT_EQ(std::pair(lengths[0], lengths[1]), std::pair(79 * 16 + 4, 2 * 16 + 1));
  EXPECT_EQ(std::memcmp(fake::host(params.a.kv_indices), pages.data(), pages.size() * 4), 0);
  const std::vector<cuda::AttentionShape> shapes{{1, 79 * 16 + 4}, {1, 33}};
  const cuda::AttentionWorkList want = cuda::attention_tiles(shapes, 4, 16, true);
  ASSERT_LE(want.tiles.size(), captured->config.grid[0]);
  ASSERT_EQ(want.cuts, 1u);
  EXPECT_EQ(std::memcmp(fake::host(params.tiles), want.tiles.data(), want.tiles.size() * sizeof(AttentionTile)), 0);
  for (size_t i = want.tiles.size(); i < captured->config.grid[0]; ++i)
    EXPECT_EQ(static_cast<const AttentionTile*>(fake::host(params.tiles))[i].rows, 0) << i;
  EXPECT_EQ(want.tiles[0].chunks, 5);

  gpu().launch_graph(gpu().last_graph(), stream_->get());
  EXPECT_EQ(record::flush_graph_dumps(), 2);
  std::string folder;
  for (const std::string& name : fs::list_dir(folder_ + "/dumps"))
    if (name.find(".run_call") != name.npos) folder = folder_ + "/dumps/" + name;
  const auto recorded = formats::read_pt(folder + "/inputs.pt");
  const auto found = std::ranges::find_if(recorded, [](const auto& t) { return t.key == "self__plan__kv_len"; });
  ASSERT_NE(found, recorded.end());
  EXPECT_EQ(found->tensor.template data_as<int32_t>()[0], 79 * 16 + 4);
  EXPECT_EQ(lines(folder + "/metadata.jsonl").back()["input_metadata"]["self__plan__max_page"], 89);
}

/// Ends a child with something still to flush; its exit status.
template <class End>
int end_of_child(const End& end) {
  const pid_t child = ::fork();
  if (child == 0) {
    end();
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(Graph, ExitFlushesAndSigtermDoesAndKills) {
  observe(10);
  for (const bool signal : {false, true}) {
    fs::remove_tree(folder_ + "/dumps");
    const int status = end_of_child([&] {
      record::Settings s = record::settings();
      s.dump_dir = folder_ + "/dumps", s.level = 10;
      record::configure({});
      record::configure(s);
      capture();
      launch(3);
      if (!signal) std::exit(7);
      ::raise(SIGTERM);
      for (;;) ::pause();
    });
    if (signal)
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
    else
      EXPECT_TRUE(WIFEXITED(status))
          << status;  // a leak checker may have its own status for what a forked child leaves
    EXPECT_TRUE(fs::is_file(dump() + "/graph_flushes/flush_0001/outputs.pt")) << signal;
    EXPECT_NE(log().find(signal ? "flush_graph_dumps (SIGTERM): wrote 2 pending entries\n"
                                : "flush_graph_dumps (atexit): wrote 2 pending entries\n"),
              std::string::npos)
        << log();
  }
}

}  // namespace
}  // namespace flashinfer
