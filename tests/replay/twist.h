// SPDX-License-Identifier: Apache-2.0
// Ops whose results a test can bend between recording and replay, and a class with a plan.
#pragma once
#include "flashinfer/op/registry.h"
#include "flashinfer/record/record.h"
#include "flashinfer/replay/replay.h"
#include "tests/record/probe.h"

namespace flashinfer::twist {

inline std::atomic<float> g_bend{0};     // added to every result
inline std::atomic<bool> g_fail{false};  // RuntimeError instead of a result
inline std::atomic<int> g_calls{0};

/// out = scale * x + bend; counter[0] += 1; count[i] = i. Takes views with any strides.
struct Twist {
  TensorView x;  // [n] f32
  double scale = 1;
  std::string action = "compute";  // throw: ValueError; kill: SIGKILL
  std::optional<TensorView> counter = {}, kv_indices = {}, workspace = {};
  std::optional<op::PagedKv> pool = {};
  std::optional<TensorView> out = {}, count = {};
};
inline void run(const Twist& a) {
  ++g_calls;
  if (a.action == "throw") throw ValueError("twist: asked to fail");
  if (a.action == "kill") raise(SIGKILL);
  if (g_fail) throw RuntimeError("twist: broken now");
  for (int64_t i = 0; i < a.x.size(0); ++i) {
    const float x = a.x.data_as<float>()[i * a.x.stride(0)];
    a.out->data_as<float>()[i * a.out->stride(0)] = static_cast<float>(a.scale) * x + g_bend;
    if (a.count) a.count->data_as<int64_t>()[i] = i + static_cast<int64_t>(g_bend);
  }
  if (a.counter) a.counter->data_as<float>()[0] += 1 + g_bend;
  if (a.pool) {
    const TensorView page = a.pool->first.select(0, op::index_at(*a.kv_indices, 0));
    for (int64_t i = 0; i < page.numel(); ++i) page.data_as<float>()[i] += static_cast<float>(a.scale) + g_bend;
  }
}
inline constexpr op::Field kFields[] = {
    op::in<&Twist::x>("x", "n", DType::kF32, op::any_layout),
    op::attr<&Twist::scale>("scale"),
    op::attr<&Twist::action>("action"),
    op::inout<&Twist::counter>("counter", nullptr),
    op::in<&Twist::kv_indices>("kv_indices", nullptr, op::page_ids),
    op::scratch<&Twist::workspace>("workspace", nullptr),
    op::paged_inout<&Twist::pool>("pool", nullptr),
    op::out<&Twist::out>("out", "n", op::same_as("x"), op::may_alias("x"), op::any_layout),
    op::out<&Twist::count>("count", "n", DType::kI64),
};
inline constexpr op::Candidate kCandidates[] = {op::host<run>()};
inline constinit const op::Op kOp =
    op::define<Twist>("twist", "tests.replay", "scale * x", kFields, kCandidates, nullptr);

/// TwistWrapper: plan(indices) keeps the sum of the indices and a copy; run(x) returns x * sum.
struct State {
  int64_t sum = 0;
  Tensor indices;
};
inline constexpr op::Field kStateFields[] = {op::attr<&State::sum>("sum"), op::in<&State::indices>("indices", nullptr)};
inline constexpr op::StateType kState = op::state_type<State>(kStateFields);
struct Plan {
  op::Object* self = nullptr;
  TensorView indices;  // [n] i64
};
inline void plan(const Plan& a) {
  State s;
  for (int64_t i = 0; i < a.indices.size(0); ++i) s.sum += op::index_at(a.indices, i) + static_cast<int64_t>(g_bend);
  s.indices = Tensor::clone(a.indices);
  a.self->set(std::move(s));
  a.self->planned = true;
}
struct RunPlanned {
  op::Object* self = nullptr;
  TensorView x;
  std::optional<TensorView> out = {};
};
inline void run_planned(const RunPlanned& a) {
  FI_CHECK(a.self->planned, RuntimeError, "run before plan");
  for (int64_t i = 0; i < a.x.size(0); ++i)
    a.out->data_as<float>()[i] = a.x.data_as<float>()[i] * static_cast<float>(a.self->as<State>().sum);
}
inline constexpr op::Field kPlanFields[] = {op::self<&Plan::self>(),
                                            op::in<&Plan::indices>("indices", "n", DType::kI64)};
inline constexpr op::Field kRunFields[] = {op::self<&RunPlanned::self>(), op::in<&RunPlanned::x>("x", "n", DType::kF32),
                                           op::out<&RunPlanned::out>("out", "n", op::same_as("x"))};
inline constexpr op::Candidate kPlanCandidates[] = {op::host<plan>()};
inline constexpr op::Candidate kRunCandidates[] = {op::host<run_planned>()};
inline constinit const op::Op kPlanOp =
    op::define<Plan>("TwistWrapper.plan", "tests.replay", "", kPlanFields, kPlanCandidates, nullptr, {}, &kState);
inline constinit const op::Op kRunOp =
    op::define<RunPlanned>("TwistWrapper.run", "tests.replay", "", kRunFields, kRunCandidates, nullptr, {}, &kState);

class ReplayTest : public ::testing::Test {
 protected:
  void TearDown() override {
    record::configure({});
    g_bend = 0;
    g_fail = false;
  }
  /// Records what `f` does.
  void record(const std::function<void()>& f, const std::function<void(record::Settings&)>& change = {}) {
    record::Settings s = probe::recording(folder);
    if (change) change(s);
    record::configure(s);
    f();
    record::configure({});
  }
  std::filesystem::path session() const { return folder / "dumps"; }
  /// The only dump, or the one at `i`.
  std::filesystem::path dump(size_t i = 0) const { return probe::dumps(session()).at(i); }
  replay::CallResult replay_one(const replay::Options& o = {}) {
    const auto report = replay::replay(session(), o);
    EXPECT_EQ(report.calls.size(), 1u);
    return report.calls.at(0);
  }
  probe::Folder folder;

 private:
  op::Registration op_{kOp}, plan_{kPlanOp}, run_{kRunOp};
};

inline void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}
/// Rewrites the last metadata record.
inline void edit(const std::filesystem::path& dump, const std::function<void(formats::Json&)>& change) {
  auto records = probe::lines(dump / "metadata.jsonl");
  change(records.back());
  std::string text;
  for (const auto& r : records) text += formats::dump_json(r) + "\n";
  write(dump / "metadata.jsonl", text);
}

}  // namespace flashinfer::twist
