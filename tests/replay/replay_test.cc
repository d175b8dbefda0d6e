// SPDX-License-Identifier: Apache-2.0
// What a replay says of calls that the recorder wrote: each outcome, each kind of argument.
#include "flashinfer/core/context.h"
#include "flashinfer/replay/compare.h"
#include "flashinfer/replay/inputs.h"
#include "tests/replay/twist.h"

namespace flashinfer::twist {
namespace {

using replay::Outcome;

const std::vector<float> kX = {1, 2, 3, 4, 5, 6};
TensorView x_of(const std::vector<float>& v) { return TensorView(v.data(), {static_cast<int64_t>(v.size())}); }

TEST_F(ReplayTest, PassesWhatItRecorded) {
  record([] { op::call(kOp, Twist{.x = x_of(kX), .scale = 2}); });
  const auto r = replay_one();
  EXPECT_EQ(r.outcome, Outcome::kPassed) << r.message;
  EXPECT_EQ(r.compared, 2);  // out and count
  EXPECT_EQ(r.function, "twist");
  EXPECT_GT(r.sequence, 0u);
  EXPECT_EQ(replay::replay(dump()).exit_code(), 0);
  EXPECT_TRUE(replay::replay(dump()).single);
}

TEST_F(ReplayTest, ReportsEveryDifference) {
  record([] { op::call(kOp, Twist{.x = x_of(kX)}); });
  g_bend = 2;
  const auto r = replay_one();
  ASSERT_EQ(r.outcome, Outcome::kMismatch);
  ASSERT_EQ(r.differences.size(), 2u);
  EXPECT_EQ(r.differences[0].key, "result_0");
  EXPECT_EQ(r.differences[0].mismatches, 6);
  EXPECT_EQ(r.differences[0].max_abs, 2);
  EXPECT_EQ(r.differences[0].max_rel, 2);
  EXPECT_EQ(r.differences[1].key, "result_1");
  EXPECT_EQ(
      r.differences[1].text,
      "result_1 differs in 6 of 6 elements, first at [0]: 2.0 instead of 0.0 (max abs 2, max rel 2; compared exactly)");
  EXPECT_EQ(replay::replay(session()).exit_code(), 1);
}

TEST_F(ReplayTest, TolerancesAndBits) {
  record([] { op::call(kOp, Twist{.x = x_of(kX)}); });
  g_bend = 4e-6f;  // count, an integer, is not moved by it
  EXPECT_EQ(replay_one().outcome, Outcome::kPassed);
  EXPECT_EQ(replay_one({.bitwise = true}).outcome, Outcome::kMismatch);
  EXPECT_EQ(replay_one({.rtol = 0, .atol = 1e-7}).outcome, Outcome::kMismatch);
  g_bend = 0.5f;
  EXPECT_EQ(replay_one().outcome, Outcome::kMismatch);
  EXPECT_EQ(replay_one({.atol = 1}).outcome, Outcome::kPassed);
  g_bend = 1;  // within the tolerance for floats, but an integer differs
  EXPECT_EQ(replay_one({.rtol = 1, .atol = 2}).differences.at(0).key, "result_1");
}

TEST_F(ReplayTest, NaNEqualsNaN) {
  const std::vector<float> x = {1, std::nanf(""), HUGE_VALF, -HUGE_VALF};
  record([&] { op::call(kOp, Twist{.x = x_of(x)}); });
  EXPECT_EQ(replay_one().outcome, Outcome::kPassed);
  g_bend = 1e-6f;  // other bits in the finite element only
  EXPECT_EQ(replay_one().outcome, Outcome::kPassed);
}

TEST_F(ReplayTest, ErrorsOfThenAndNow) {
  record([] {
    EXPECT_THROW(op::call(kOp, Twist{.x = x_of(kX), .action = "throw"}), ValueError);
    op::call(kOp, Twist{.x = x_of(kX)});
  });
  auto report = replay::replay(session());
  EXPECT_EQ(report.calls[0].outcome, Outcome::kPassed);
  EXPECT_EQ(report.calls[0].message, "fails as recorded: ValueError");
  g_fail = true;
  report = replay::replay(session());
  EXPECT_EQ(report.calls[1].outcome, Outcome::kError);
  EXPECT_EQ(report.calls[1].message, "Execution failed: RuntimeError: twist: broken now");
  edit(dump(0), [](formats::Json& j) { j["error"]["type"] = "KeyError"; });
  EXPECT_EQ(replay::replay(session()).calls[0].outcome, Outcome::kMismatch);
  g_fail = false;
  edit(dump(0), [](formats::Json& j) { j["input_metadata"]["kwarg_action"] = "compute"; });
  EXPECT_EQ(replay::replay(session()).calls[0].message,
            "failed with KeyError (twist: asked to fail) when recorded, but succeeds now");
}

TEST_F(ReplayTest, AKilledCallIsListedAndCanBeRun) {
  const int status = probe::in_child([&] {
    record::configure(probe::recording(folder));
    op::call(kOp, Twist{.x = x_of(kX), .action = "kill"});
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  const int before = g_calls;
  auto r = replay_one();
  EXPECT_EQ(r.outcome, Outcome::kNeverCompleted);
  EXPECT_EQ(r.message, "inputs saved, never completed");
  EXPECT_EQ(g_calls, before);
  EXPECT_EQ(replay::replay(session()).exit_code(), 1);
  edit(dump(), [](formats::Json& j) { j["input_metadata"]["kwarg_action"] = "compute"; });
  r = replay_one({.run_incomplete = true});
  EXPECT_EQ(g_calls, before + 1);
  EXPECT_EQ(r.outcome, Outcome::kNeverCompleted);
  EXPECT_EQ(r.message, "inputs saved, never completed; it runs to its end now");
}

TEST_F(ReplayTest, InPlaceAndGivenOutputsAreCompared) {
  std::vector<float> x = kX, counter = {7}, mine(6);
  record([&] {
    op::call(kOp, Twist{.x = x_of(x), .counter = x_of(counter), .out = x_of(x)});  // in place
    op::call(kOp, Twist{.x = x_of(x), .scale = 3, .out = x_of(mine)});
  });
  auto report = replay::replay(session());
  EXPECT_EQ(report.passed(), 2) << report.calls[0].message << report.calls[1].message;
  EXPECT_EQ(report.calls[0].compared, 4);  // results, counter after, out after
  g_bend = 0.25f;
  report = replay::replay(session());
  std::set<std::string> keys;
  for (const auto& d : report.calls[0].differences) keys.insert(d.key);
  EXPECT_TRUE(keys.contains("after__kwarg_counter")) << report.calls[0].message;
  EXPECT_TRUE(keys.contains("after__kwarg_out"));
}

TEST_F(ReplayTest, StridesAndAliasesAreRestored) {
  std::vector<float> buffer(12, 1);
  const int64_t shape[] = {6}, stride[] = {2};
  const TensorView view(buffer.data(), DType::kF32, shape, stride);
  for (const bool dedup : {false, true}) {
    record([&] { op::call(kOp, Twist{.x = view, .out = view}); }, [&](record::Settings& s) { s.dedup = dedup; });
    EXPECT_EQ(replay_one().outcome, Outcome::kPassed) << replay_one().message;
    const replay::Session s = replay::open_session(session());
    const replay::Call call = s.read(0);
    const replay::Json& details = replay::object_of(call.record, "tensor_details");
    const auto t = replay::place(replay::load_tensors(s, s.calls[0].folder, "inputs", details), details, std::nullopt);
    EXPECT_EQ(t.at("arg_0").view().stride(0), 2);
    EXPECT_EQ(t.at("arg_0").data(), t.at("kwarg_out").data());
    std::filesystem::remove_all(session());
  }
}

TEST_F(ReplayTest, ViewsKeepTheirDistance) {
  const Tensor a = Tensor::copy_of<float>(std::vector<float>{1, 2, 3}, {3}),
               b = Tensor::copy_of<float>(std::vector<float>{7}, {1});
  const auto details = formats::parse_json(
      R"({"a": {"shape": [3], "dtype": "torch.float32", "stride": [4], "device": "cpu", "storage": 5, "storage_offset": 100},
          "b": {"shape": [1], "dtype": "torch.float32", "stride": [1], "device": "cpu", "storage": 5, "storage_offset": 101},
          "w": {"shape": [2, 3], "dtype": "torch.int8", "stride": [3, 1], "device": "cpu", "stored": "description"}})");
  const auto t = replay::place({{"a", a}, {"b", b}}, details, std::nullopt);
  EXPECT_EQ(t.at("a").data_as<float>() + 1, t.at("b").data_as<float>());
  EXPECT_EQ(t.at("a").data_as<float>()[8], 3);
  EXPECT_EQ(t.at("a").data_as<float>()[1], 7);
  EXPECT_EQ(to_string(t.at("w").view()), "int8[2, 3]");
}

TEST_F(ReplayTest, PoolsByPageAndWorkspacesByShape) {
  std::vector<float> pool(100 * 32, 5), workspace(1 << 16);
  const std::vector<int64_t> pages = {42, 3};
  record(
      [&] {
        op::call(kOp, Twist{.x = x_of(kX),
                            .scale = 2,
                            .kv_indices = TensorView(pages.data(), {2}),
                            .workspace = x_of(workspace),
                            .pool = op::PagedKv(TensorView(pool.data(), {100, 2, 16}))});
      },
      [](record::Settings& s) { s.pages = record::Settings::Pages::kUsed; });
  const auto stored = formats::read_pt(dump() / "inputs.pt");
  for (const auto& t : stored) {
    EXPECT_NE(t.key, "kwarg_workspace");
    EXPECT_TRUE(t.key != "kwarg_pool" || t.tensor.size(0) == 2);
  }
  auto r = replay_one();
  EXPECT_EQ(r.outcome, Outcome::kPassed) << r.message;
  g_bend = 1;
  r = replay_one({.rtol = 0, .atol = 1.5});  // the pool is within it
  EXPECT_EQ(r.differences.size(), 1u);       // count
  r = replay_one();
  bool pool_differs = false;
  for (const auto& d : r.differences)
    pool_differs |= d.key == "after__kwarg_pool" && d.index == std::vector<int64_t>{1, 0, 0};
  EXPECT_TRUE(pool_differs) << r.message;  // page 42 is the second of the two that are stored
}

/// What two replays saved, compared call by call; one call's outputs are as many as the recorder writes.
TEST_F(ReplayTest, SavedOutputsCompareAsRecordings) {
  std::vector<float> pool(100 * 32, 5), counter = {1};
  const std::vector<int64_t> pages = {42, 3};
  op::Object object("TwistWrapper", "tests.replay", kState);
  record(
      [&] {
        op::call(kOp, Twist{.x = x_of(kX),
                            .scale = 2,
                            .counter = x_of(counter),
                            .kv_indices = TensorView(pages.data(), {2}),
                            .pool = op::PagedKv(TensorView(pool.data(), {100, 2, 16}))});
        op::call(kPlanOp, Plan{.self = &object, .indices = TensorView(pages.data(), {2})});
        EXPECT_THROW(op::call(kOp, Twist{.x = x_of(kX), .action = "throw"}), ValueError);
      },
      [](record::Settings& s) { s.pages = record::Settings::Pages::kUsed; });
  EXPECT_EQ(replay::replay(session(), {.save = folder / "a"}).passed(), 3);
  EXPECT_EQ(replay::replay(session(), {.first = 1, .count = 1, .save = folder / "one"}).calls.size(), 1u);
  EXPECT_EQ(probe::dumps(folder / "one").size(), 1u);
  EXPECT_THROW(replay::replay(session(), {.candidate = "warp"}), ValueError);
  g_bend = 1;
  replay::replay(session(), {.save = folder / "b"});
  const auto recorded = replay::open_session(session()), a = replay::open_session(folder / "a"),
             b = replay::open_session(folder / "b");
  ASSERT_EQ(b.calls.size(), 3u);
  EXPECT_EQ(replay::string_of(b.read(2).record, "execution_status"), "failed");
  const auto keys = [&](const replay::Session& have, const replay::Session& want, size_t i) {
    const auto c = replay::compare_recorded(have, have.read(i), want, want.read(i), {.bitwise = true});
    std::set<std::string> differ;
    for (const auto& d : c.differences) differ.insert(d.key);
    return std::pair(c.compared, differ);
  };
  using Keys = std::set<std::string>;
  EXPECT_EQ(keys(a, recorded, 0), std::pair(4, Keys{}));
  EXPECT_EQ(keys(recorded, a, 0), std::pair(4, Keys{}));
  EXPECT_EQ(keys(b, a, 0), std::pair(4, Keys{"result_0", "result_1", "after__kwarg_counter", "after__kwarg_pool"}));
  EXPECT_EQ(keys(a, recorded, 1), std::pair(2, Keys{}));
  EXPECT_EQ(keys(b, a, 1), std::pair(2, Keys{"after__self__plan__sum"}));
}

TEST_F(ReplayTest, MethodsReplayAlone) {
  op::Object object("TwistWrapper", "tests.replay", kState);
  const std::vector<int64_t> indices = {1, 2, 3};
  record([&] {
    op::call(kPlanOp, Plan{.self = &object, .indices = TensorView(indices.data(), {3})});
    op::call(kRunOp, RunPlanned{.self = &object, .x = x_of(kX)});
  });
  auto report = replay::replay(session());
  EXPECT_EQ(report.passed(), 2) << report.calls[0].message << report.calls[1].message;
  EXPECT_EQ(replay::replay(dump(1)).passed(), 1);  // run without plan
  EXPECT_EQ(replay::replay(session(), {.filter = "*.run"}).calls.size(), 1u);
  g_bend = 1;  // a plan that comes out differently
  report = replay::replay(session());
  ASSERT_EQ(report.calls[0].outcome, Outcome::kMismatch);
  EXPECT_EQ(report.calls[0].message, "after__self__plan__sum is 9, but 6 was recorded");
}

TEST_F(ReplayTest, JobsKeepTheOrder) {
  record([] {
    for (int i = 0; i < 40; ++i) op::call(kOp, Twist{.x = x_of(kX), .scale = double(i)});
  });
  std::vector<size_t> order;
  uint64_t last = 0;
  replay::Options o{.repeat = 2, .jobs = 4};
  o.on_result = [&](const replay::CallResult& r, size_t i, size_t total) {
    order.push_back(i);
    EXPECT_EQ(total, 40u);
    EXPECT_GT(r.sequence, last);
    last = r.sequence;
  };
  EXPECT_EQ(replay::replay(session(), o).passed(), 40);
  ASSERT_EQ(order.size(), 40u);
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(order[i], i);
}

TEST_F(ReplayTest, ExportMakesPlainFiles) {
  std::vector<float> big(100000, 3);
  record(
      [&] {
        for (int i = 0; i < 3; ++i) op::call(kOp, Twist{.x = x_of(big), .scale = 2});
      },
      [](record::Settings& s) { s.dedup = true; });
  EXPECT_TRUE(std::filesystem::exists(dump() / "inputs.chunks"));
  EXPECT_EQ(replay::replay(session()).passed(), 3);
  EXPECT_EQ(replay::export_session(session(), folder / "plain"), std::vector<std::string>{});
  EXPECT_FALSE(std::filesystem::exists(folder / "plain/chunks"));
  for (const auto& d : probe::dumps(folder / "plain")) {
    EXPECT_EQ(formats::read_pt(d / "inputs.pt").at(0).tensor.numel(), 100000);
    EXPECT_EQ(probe::lines(d / "metadata.jsonl").back()["tensor_format"], "torch");
  }
  EXPECT_EQ(replay::replay(folder / "plain").passed(), 3);
  EXPECT_THROW(replay::export_session(session(), folder / "plain"), ValueError);
}

}  // namespace
}  // namespace flashinfer::twist
