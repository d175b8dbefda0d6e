// SPDX-License-Identifier: Apache-2.0
// Objects with a plan, generators, and what a foreign callable may pass: what a recording holds of them.
#include "tests/record/probe.h"

namespace flashinfer::probe {
namespace {

using formats::Json;

struct State {
  std::string layout = "NHD";
  int64_t planned_for = 0;
  Tensor indices;
};
constexpr op::Field kStateFields[] = {op::attr<&State::layout>("layout"), op::attr<&State::planned_for>("planned_for"),
                                      op::in<&State::indices>("indices", nullptr, op::page_ids)};
constexpr op::StateType kState = op::state_type<State>(kStateFields);

struct PlanArgs {
  op::Object* self = nullptr;
  TensorView indices;
};
void launch_plan(const PlanArgs& a) {
  State s = a.self->as<State>();
  s.planned_for = a.indices.size(0);
  s.indices = Tensor::clone(a.indices);
  a.self->set(std::move(s));
  a.self->planned = true;
}
struct RunArgs {
  op::Object* self = nullptr;
  TensorView pool;
  op::Generator generator;
  std::optional<TensorView> out = {};
};
void launch_run(const RunArgs& a) {
  a.out->data_as<float>()[0] =
      a.pool.data_as<float>()[a.self->as<State>().indices.data_as<int32_t>()[0] * a.pool.stride(0)];
}
op::Shape one_number(const RunArgs&) { return {1, {1}}; }

constexpr op::Field kPlanFields[] = {op::self<&PlanArgs::self>(),
                                     op::in<&PlanArgs::indices>("indices", "n", DType::kI32)};
constexpr op::Field kRunFields[] = {op::self<&RunArgs::self>(),
                                    op::paged<&RunArgs::pool>("pool", nullptr, op::required),
                                    op::attr<&RunArgs::generator>("generator"),
                                    op::out<&RunArgs::out>("out", nullptr, op::same_as("pool"), op::shape<one_number>)};
constexpr op::Candidate kPlanCandidates[] = {op::host<launch_plan>()};
constexpr op::Candidate kRunCandidates[] = {op::host<launch_run>()};
constinit const op::Op kPlanOp = op::define<PlanArgs>("ProbeWrapper.plan", "tests.record", "plans", kPlanFields,
                                                      kPlanCandidates, no_cases, {}, &kState);
constinit const op::Op kRunOp =
    op::define<RunArgs>("ProbeWrapper.run", "tests.record", "runs", kRunFields, kRunCandidates, no_cases, {}, &kState);

TEST_F(RecordTest, ARunCarriesItsPlan) {
  auto s = recording(folder);
  s.dedup = true;
  record::configure(s);
  op::Object object("ProbeWrapper", "tests.record", kState);
  const std::vector<int32_t> indices = {5, 2};
  op::call(kPlanOp, PlanArgs{&object, TensorView(indices.data(), {2})});
  std::vector<float> pool(100 * 8);
  for (size_t i = 0; i < pool.size(); ++i) pool[i] = static_cast<float>(i);
  op::call(kRunOp, RunArgs{&object, TensorView(pool.data(), {100, 8}), op::Generator(7, 12)});
  const auto all = dumps(folder / "dumps");
  ASSERT_EQ(all.size(), 2u);
  const Json plan = lines(all[0] / "metadata.jsonl").at(1), run = lines(all[1] / "metadata.jsonl").at(1);
  EXPECT_EQ(plan["self_id"], object.id);
  EXPECT_EQ(run["self_id"], object.id);
  EXPECT_EQ(run["self_class"], "ProbeWrapper");
  EXPECT_EQ(run["arg_names"].dump(), R"(["self","pool"])");
  EXPECT_EQ(plan["input_metadata"]["self__plan__planned_for"], 0);
  EXPECT_EQ(plan["output_metadata"]["after__self__plan__planned_for"], 2);
  EXPECT_EQ(run["input_metadata"]["self__plan__planned_for"], 2);
  EXPECT_EQ(run["input_metadata"]["self__plan__layout"], "NHD");
  EXPECT_EQ(run["input_metadata"]["arg_0"]["type"], "ProbeWrapper");
  EXPECT_EQ(run["input_metadata"]["arg_0"]["object_id"], object.id);
  EXPECT_FALSE(run["output_metadata"].contains("after__self__plan__planned_for"));  // run changed nothing
  const auto planned = formats::read_chunks(all[0] / "outputs.chunks");
  ASSERT_EQ(planned.size(), 1u);
  EXPECT_EQ(planned[0].key, "after__self__plan__indices");
  const auto in = formats::read_chunks(all[1] / "inputs.chunks");
  ASSERT_EQ(in.size(), 3u);
  EXPECT_EQ(in[0].key, "arg_1");
  EXPECT_EQ(in[0].tensor.size(0), 2);  // pages 2 and 5, named by the plan
  EXPECT_EQ(in[0].tensor.data_as<float>()[0], 16.0f);
  EXPECT_EQ(in[1].key, "arg_1__pages");
  EXPECT_EQ(in[2].key, "self__plan__indices");
  EXPECT_EQ(in[2].tensor.data_as<int32_t>()[0], 5);
  const std::string log = read(folder / "log");
  EXPECT_EQ(count(log, "API Call: ProbeWrapper.run"), 1);
  EXPECT_EQ(count(log, "    <flashinfer.ProbeWrapper object at 0x"), 2);
}

TEST_F(RecordTest, AGeneratorKeepsSeedAndOffset) {
  record::configure(recording(folder));
  op::Object object("ProbeWrapper", "tests.record", kState);
  State state;
  const std::vector<int32_t> indices = {0};
  state.indices = Tensor::clone(TensorView(indices.data(), {1}));
  object.set(std::move(state));
  std::vector<float> pool(16);
  op::Generator g(0xfedcba9876543210ull, 12);
  op::call(kRunOp, RunArgs{&object, TensorView(pool.data(), {2, 8}), g});
  const Json m = lines(dumps(folder / "dumps").at(0) / "metadata.jsonl").at(0)["input_metadata"]["kwarg_generator"];
  EXPECT_EQ(m["type"], "Generator");
  EXPECT_EQ(m["seed"].get<uint64_t>(), 0xfedcba9876543210ull);
  EXPECT_EQ(m["offset"], 12);
}

TEST_F(RecordTest, ValuesAreStrictJson) {
  record::configure(recording(folder));
  op::Invocation call;
  call.name = "values";
  call.module = "tests";
  call.foreign_signature = "(*xs)";
  const double inf = HUGE_VAL;
  for (const op::Value& v : {op::Value(inf), op::Value(-inf), op::Value(std::nan("")), op::Value(op::Complex{inf, 1}),
                             op::Value("quote\" back\\ \xff")})
    call.foreign_args.push_back({"", op::Arg::kPositional, v, nullptr, nullptr});
  {
    op::detail::ObservedCall observed(*op::observer(), call);
    observed.after(op::Value());
  }
  const std::string text = read(folder / "dumps/session.jsonl");
  EXPECT_EQ(count(text, "Infinity") + count(text, "NaN"), 0);
  for (const char c : text) ASSERT_TRUE(c == '\n' || (c >= 32 && c < 127)) << int{c};
  const Json m = nlohmann::ordered_json::parse(text.substr(0, text.find('\n')))["input_metadata"];
  EXPECT_EQ(m["arg_0"].dump(), R"({"type":"float","value":"inf"})");
  EXPECT_EQ(m["arg_1"].dump(), R"({"type":"float","value":"-inf"})");
  EXPECT_EQ(m["arg_2"].dump(), R"({"type":"float","value":"nan"})");
  EXPECT_EQ(m["arg_3"]["type"], "complex");
}

}  // namespace
}  // namespace flashinfer::probe
