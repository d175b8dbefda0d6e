// SPDX-License-Identifier: Apache-2.0
// An op that lives in this file alone: schema checks and their messages, selection, outputs, calls by name, log
// arguments.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "flashinfer/cases/run.h"
#include "flashinfer/op/call.h"
#include "flashinfer/op/registry.h"

namespace flashinfer {
namespace {

/// out = alpha * x + y
struct Axpy {
  TensorView x, y;
  double alpha = 1;
  std::string mode = "exact";
  std::optional<TensorView> out;
};
void launch(const Axpy& a) {
  const int64_t d = a.x.size(-1), rows = d ? a.x.numel() / d : 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < d; ++i)
      a.out->data_as<float>()[r * a.out->stride(0) + i] =
          static_cast<float>(a.alpha) * a.x.data_as<float>()[r * a.x.stride(0) + i] + a.y.data_as<float>()[i];
}
constexpr op::Field kFields[] = {
    op::in<&Axpy::x>("x", "n d", DType::kF32),
    op::in<&Axpy::y>("y", "d", op::same_as("x")),
    op::attr<&Axpy::alpha>("alpha", op::literal("1")),
    op::attr<&Axpy::mode>("mode", op::choices("exact|fast", ErrorKind::kKeyError)),
    op::out<&Axpy::out>("out", "n d", op::same_as("x"), op::may_alias("x")),
};
op::Prepared prepare_even(const Axpy& a) {
  if (a.x.size(-1) % 2) return op::Unsupported{str("d is ", a.x.size(-1), ", but this one takes even d")};
  return [&a] { launch(a); };
}
constexpr op::Candidate kCandidates[] = {op::cpu<prepare_even>(), op::reference<launch>()};
constexpr op::Case kRows[] = {{"even", "x=f32:3x4 y=f32:4 alpha=2.5"}, {"in_place", "x=f32:3x4 y=f32:4 out=@x"}};
std::span<const op::Case> rows() { return kRows; }
constinit const op::Op kAxpy = op::define<Axpy>("test_axpy", "tests.op", "alpha * x + y", kFields, kCandidates, rows);

std::vector<float> g_x(12, 2.0f), g_y(4, 1.0f);
Axpy good() { return {.x = {g_x.data(), {3, 4}}, .y = {g_y.data(), {4}}}; }

std::string message(const Axpy& a) {
  try {
    op::call(kAxpy, a);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Call, MakesTheOutputAndReturnsIt) {
  Axpy a = good();
  a.alpha = 3;
  const Tensor out = op::call(kAxpy, a);
  EXPECT_EQ(to_string(out.view()), "float32[3, 4]");
  EXPECT_EQ(out.data_as<float>()[11], 7.0f);
}
TEST(Call, WritesIntoTheGivenOutput) {
  std::vector<float> mine(12);
  Axpy a = good();
  a.out = TensorView(mine.data(), {3, 4});
  const Tensor out = op::call(kAxpy, a);
  EXPECT_EQ(out.data(), mine.data());
  EXPECT_EQ(mine[0], 3.0f);
}
TEST(Check, MessagesNameArgumentAndBothValues) {
  Axpy a = good();
  a.y = TensorView(g_y.data(), {3});
  EXPECT_EQ(message(a), "ValueError: test_axpy: y.shape[0] is 3, but d is 4 (from x.shape[1])");
  a = good();
  a.x = TensorView(g_x.data(), {12});
  EXPECT_EQ(message(a), "ValueError: test_axpy: x has rank 1 (float32[12]), but must be [n d]");
  a = good();
  a.x = TensorView(g_x.data(), DType::kF16, {3, 4});
  EXPECT_EQ(message(a), "ValueError: test_axpy: x.dtype is float16, but must be float32");
  a = good();
  a.x = TensorView(nullptr, DType::kF32, {3, 4});
  EXPECT_NE(message(a).find("x is float32[3, 4], but its data pointer is null"), std::string::npos) << message(a);
  a = good();
  a.mode = "quick";
  EXPECT_EQ(message(a), "KeyError: test_axpy: mode is 'quick', but must be one of exact, fast");
  a = good();
  a.x = {};
  EXPECT_EQ(message(a), "ValueError: test_axpy: x is missing");
}
TEST(Check, RejectsStridedLastDimension) {
  Axpy a = good();
  const int64_t shape[] = {2, 2}, stride[] = {4, 2};
  a.x = TensorView(g_x.data(), DType::kF32, shape, stride);
  a.y = TensorView(g_y.data(), {2});
  EXPECT_NE(message(a).find("x.stride(-1) is 2, but the last dimension must be contiguous"), std::string::npos)
      << message(a);
}
TEST(Check, OutputsMayAliasOnlyAsDeclared) {
  Axpy a = good();
  a.out = a.x;
  EXPECT_EQ(message(a), "no error");
  a.out = TensorView(g_x.data() + 0, {3, 4});
  a.x = TensorView(g_x.data() + 4, {2, 4});
  a.out = TensorView(g_x.data(), {2, 4});
  EXPECT_NE(message(a).find("may only be exactly the same view"), std::string::npos) << message(a);
  a = good();
  a.x = TensorView(g_x.data() + 4, {2, 4});
  a.y = TensorView(g_x.data(), {4});
  a.out = TensorView(g_x.data(), {2, 4});
  EXPECT_NE(message(a).find("shares memory"), std::string::npos) << message(a);
  std::fill(g_x.begin(), g_x.end(), 2.0f);
}
TEST(Check, SlicesOfOneBufferDoNotOverlap) {
  std::vector<float> fused(3 * 12);
  const int64_t shape[] = {3, 4}, stride[] = {12, 1};
  Axpy a = good();
  a.x = TensorView(fused.data(), DType::kF32, shape, stride);
  a.out = TensorView(fused.data() + 4, DType::kF32, shape, stride);
  EXPECT_EQ(message(a), "no error");
  a.out = TensorView(fused.data() + 3, DType::kF32, shape, stride);
  EXPECT_NE(message(a).find("may only be exactly the same view"), std::string::npos) << message(a);
}
TEST(Select, FirstThatSupportsTheCall) {
  Axpy a = good();
  EXPECT_STREQ(op::explain(kAxpy, &a).candidate->name, "cpu");
  a.x = TensorView(g_x.data(), {4, 3});
  a.y = TensorView(g_y.data(), {3});
  const op::Selection s = op::explain(kAxpy, &a);
  EXPECT_STREQ(s.candidate->name, "reference");
  ASSERT_EQ(s.rejections.size(), 1u);
  EXPECT_STREQ(s.rejections[0].candidate->name, "cpu");
  EXPECT_EQ(s.rejections[0].why, "d is 3, but this one takes even d");
  op::ForceCandidate force("cpu");
  EXPECT_NE(message(a).find("NotImplementedError: test_axpy: no implementation supports this call; cpu: d is 3"),
            std::string::npos);
}
TEST(CallValues, BindsAsPythonDoes) {
  const op::Value x = TensorView(g_x.data(), {3, 4}), y = TensorView(g_y.data(), {4});
  const op::Value out = op::call_values(kAxpy, {{x, y}, {{"alpha", 2}}});
  ASSERT_TRUE(out.tensor());
  EXPECT_EQ(out.tensor()->data_as<float>()[0], 5.0f);
  auto error = [&](const op::Passed& p) -> std::string {
    try {
      op::call_values(kAxpy, p);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error({{x}, {}}), "TypeError: test_axpy() missing required arguments: 'y'");
  EXPECT_EQ(error({{x, y}, {{"beta", 2}}}), "TypeError: test_axpy() got an unexpected keyword argument 'beta'");
  EXPECT_EQ(error({{x, y}, {{"x", x}}}), "TypeError: test_axpy() got multiple values for argument 'x'");
  EXPECT_EQ(error({{x, y, 1, "exact", {}, 7}, {}}),
            "TypeError: test_axpy() takes 5 positional arguments but 6 were given");
  EXPECT_EQ(error({{x, y}, {{"alpha", "two"}}}), "TypeError: test_axpy: alpha must be a number, but is str 'two'");
}
TEST(Schema, SignatureKeepsPythonsLiterals) {
  EXPECT_EQ(op::signature(kAxpy), "(x, y, alpha=1, mode='exact', out=None)");
}

/// total = first + the rest
struct Sum {
  TensorView x;
  op::Value args{};
  bool negate = false;
  std::optional<TensorView> out{};
};
void launch_sum(const Sum& a) {
  float total = a.x.data_as<float>()[0];
  if (const auto* items = op::sequence_items(a.args))
    for (const op::Value& v : *items) total += static_cast<float>(*v.as<int64_t>());
  a.out->data_as<float>()[0] = a.negate ? -total : total;
}
constexpr op::Field sum_fields[] = {
    op::in<&Sum::x>("x", "n", DType::kF32),
    op::attr<&Sum::args>("args", op::varargs),
    op::attr<&Sum::negate>("negate", op::keyword_only),
    op::result<&Sum::out>("out", "n", op::same_as("x")),
};
constexpr op::Candidate sum_candidates[] = {op::host<launch_sum>()};
constinit const op::Op kSum =
    op::define<Sum>("test_sum", "tests", "x plus the rest.", sum_fields, sum_candidates, nullptr);

TEST(Rest, TakesFurtherPositionalArguments) {
  EXPECT_EQ(op::signature(kSum), "(x, *args, negate=False)");
  const op::Value x = TensorView(g_x.data(), {1});
  const float first = g_x[0];
  EXPECT_EQ(op::call_values(kSum, {{x}, {}}).tensor()->data_as<float>()[0], first);
  EXPECT_EQ(op::call_values(kSum, {{x, 2, 3}, {{"negate", true}}}).tensor()->data_as<float>()[0], -(first + 5));
  EXPECT_THROW(op::call_values(kSum, {{}, {{"negate", true}}}), TypeError);
}
/// By either way of calling, the log and a recording have them one by one, so that a replay passes them as the caller
/// did.
TEST(Rest, IsSeenElementByElement) {
  struct Keep final : op::Observer {
    std::vector<std::string> lines;
    void before(op::Invocation& c) override {
      std::string s;
      for (const op::Arg& a : c.args())
        s += str(a.name, a.how == op::Arg::kPositional ? "! " : a.how == op::Arg::kKeyword ? "= " : "~ ");
      lines.push_back(s);
    }
    void after(op::Invocation&, const op::Value&) override {}
    void failed(op::Invocation&, const std::exception&) override {}
  } keep;
  op::Observer* before = op::set_observer(&keep);
  const TensorView x(g_x.data(), {1});
  op::call_values(kSum, {{x, 2, 3}, {{"negate", true}}});
  op::call(kSum, Sum{.x = x, .args = op::ListValue{{2, 3}}, .negate = true});
  op::set_observer(before);
  EXPECT_EQ(keep.lines, (std::vector<std::string>{"x! args! args! negate= ", "x! args! args! negate= "}));
}
TEST(Registry, AnOpInOneFileIsAnOpLikeTheOthers) {
  EXPECT_EQ(op::find_op("test_axpy"), nullptr);
  {
    op::Registration r(kAxpy);
    EXPECT_EQ(op::find_op("test_axpy"), &kAxpy);
    EXPECT_THROW(op::Registration again(kAxpy), ValueError);
    for (const op::Case& c : kAxpy.cases()) {
      const cases::CaseResult result = cases::run_case(kAxpy, c);
      EXPECT_TRUE(result.passed) << result.failure;
    }
  }
  EXPECT_EQ(op::find_op("test_axpy"), nullptr);
}

/// Collects what an observer sees.
struct Spy final : op::Observer {
  std::vector<std::string> lines;
  void before(op::Invocation& c) override {
    std::string s = std::string(c.name) + ":";
    for (const op::Arg& a : c.args())
      s += str(" ", a.name, a.how == op::Arg::kPositional ? "!" : a.how == op::Arg::kKeyword ? "=" : "~");
    lines.push_back(s);
  }
  void after(op::Invocation& c, const op::Value&) override {
    lines.push_back(str("after ", c.candidate, " depth ", c.depth));
  }
  void failed(op::Invocation&, const std::exception& e) override { lines.push_back(std::string("failed ") + e.what()); }
};
TEST(Observer, SeesArgumentsAsTheContractSplitsThem) {
  Spy spy;
  op::Observer* before = op::set_observer(&spy);
  Axpy a = good();
  a.alpha = 2;
  op::call(kAxpy, a);
  a.y = TensorView(g_y.data(), {3});
  EXPECT_THROW(op::call(kAxpy, a), ValueError);
  op::set_observer(before);
  ASSERT_EQ(spy.lines.size(), 4u);
  EXPECT_EQ(spy.lines[0], "test_axpy: x! y! alpha= mode~ out~");
  EXPECT_EQ(spy.lines[1], "after cpu depth 0");
  EXPECT_EQ(spy.lines[3], "failed ValueError: test_axpy: y.shape[0] is 3, but d is 4 (from x.shape[1])");
}
TEST(Values, PrintAsPythonPrints) {
  EXPECT_EQ(op::python_repr(1e-6), "1e-06");
  EXPECT_EQ(op::python_repr(0.1), "0.1");
  EXPECT_EQ(op::python_repr(10000.0), "10000.0");
  EXPECT_EQ(op::python_repr(1e16), "1e+16");
  EXPECT_EQ(op::python_repr(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(op::python_repr(0.0001), "0.0001");
  EXPECT_EQ(op::python_repr(-0.0), "-0.0");
  EXPECT_EQ(op::python_repr(std::string("it's")), "\"it's\"");
  EXPECT_EQ(op::python_repr(op::Value(op::Complex{1, 1})), "(1+1j)");
}

/// Else the recorder keeps a pool whole: no array says which pages a call uses.
TEST(Registry, WhoTakesAPoolSaysWhichPages) {
  // Slots or lists of tokens, not pages; scale factors of a cache that is no pool; a cache that may have no axis of
  // pages.
  const std::set<std::string_view> without = {"nvfp4_quantize_append_paged_kv_cache_with_slot_mapping",
                                              "single_prefill_with_kv_cache", "trtllm_batch_decode_with_kv_cache_mla",
                                              "xqa_mla"};
  for (const op::Op* o : op::all_ops()) {
    bool pool = false, pages = false;
    for (const op::Field& f : o->fields) {
      pool = pool || f.role == op::Role::kPaged || f.role == op::Role::kPagedInOut;
      pages = pages || f.page_ids;
    }
    for (const op::Field& f : o->state ? o->state->fields : std::span<const op::Field>()) pages = pages || f.page_ids;
    EXPECT_EQ(pages && pool, pool && !without.contains(o->name)) << o->name;
  }
}

}  // namespace
}  // namespace flashinfer
