// SPDX-License-Identifier: Apache-2.0
// The case runner must find what it is there to find: each row below breaks one promise.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "flashinfer/cases/fill.h"
#include "flashinfer/cases/run.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/layout_error.h"
#include "flashinfer/op/registry.h"

namespace flashinfer {
namespace {

struct Twice {
  TensorView x;
  std::string fault = "none";
  std::optional<TensorView> out;
};
int g_calls = 0;
void double_rows(const Twice& a, float factor) {
  for (int64_t r = 0; r < a.x.size(0); ++r)
    for (int64_t i = 0; i < a.x.size(1); ++i)
      a.out->data_as<float>()[r * a.out->stride(0) + i] = factor * a.x.data_as<float>()[r * a.x.stride(0) + i];
}
void launch(const Twice& a) {
  double_rows(a, 2);
  float* y = a.out->data_as<float>();
  const std::string& f = a.fault;
  if (f == "wrong") y[1] += 0.01f;
  if (f == "past_the_end" && a.x.stride(0) == a.x.size(1)) y[a.out->numel()] = 0;  // only with a guarded `out`
  if (f == "writes_input") a.x.data_as<float>()[0] = 0;
  if (f == "unstable") y[0] += 1e-6f * static_cast<float>(++g_calls);
  if (f == "threads") y[0] += 1e-6f * static_cast<float>(Context::current().executor.threads == 3);
  if (f == "ignores_strides")
    for (int64_t i = 0; i < a.x.numel(); ++i) y[i] = 2 * a.x.data_as<float>()[i];
  if (f == "nan") y[2] = std::nanf("");
  if (f == "padding_throws" && !a.x.is_contiguous()) throw ValueError("x has strides that are not contiguous");
  if (f == "needs_contiguous" && !a.x.is_contiguous()) throw LayoutError("x must be contiguous");
  if (f == "throws") throw RuntimeError("the kernel gave up");
}
op::Prepared prepare(const Twice& a) {
  if (a.fault == "refuses") return op::Unsupported{"it refuses"};
  return [&a] { launch(a); };
}
void reference(const Twice& a) { double_rows(a, 2); }
constexpr op::Field kFields[] = {op::in<&Twice::x>("x", "n d", DType::kF32), op::attr<&Twice::fault>("fault"),
                                 op::out<&Twice::out>("out", "n d", op::same_as("x"))};
constexpr op::Candidate kCandidates[] = {op::cpu<prepare>(), op::reference<reference>()};
constinit const op::Op kTwice = op::define<Twice>("twice", "tests.cases", "2 * x", kFields, kCandidates, nullptr);

std::string run(const std::string& fault, const std::string& more = "") {
  const std::string args = "x=f32:3x5 fault='" + fault + "'" + more;
  return cases::run_case(kTwice, {.name = "row", .args = args.c_str()}).failure;
}
#define EXPECT_FINDS(fault, text) EXPECT_NE(run(fault).find(text), std::string::npos) << run(fault)

TEST(Cases, RangesHaveSteps) {
  for (const auto& [fill, last] : {std::pair{"range(3)", 7.0f}, {"range(3,16)", 67.0f}, {"range(3,-0.5)", 1.0f}}) {
    const cases::Built b = cases::build(kTwice, str("x=f32:5:", fill));
    EXPECT_EQ(b.tensors.front()->tensor.span<float>()[4], last) << fill;
  }
}

TEST(Cases, RowsOfSoftmaxSumToOne) {
  const cases::Built b = cases::build(kTwice, "x=f32:3x5:softmax(3)");
  const std::span<const float> x = b.tensors.front()->tensor.span<float>();
  for (size_t r = 0; r < 3; ++r) EXPECT_NEAR(std::accumulate(&x[5 * r], &x[5 * r] + 5, 0.0), 1, 1e-6);
  EXPECT_NE(x[0], x[5]);
}

TEST(Cases, RandomValuesRepeat) {
  for (const char* text : {"x=f32:3x5", "x=f32:3x5:uniform(2,3)^t"}) {
    const cases::Built whole = cases::build(kTwice, text), b = cases::build(kTwice, text, {.repeat_after = 4});
    const TensorView t = b.tensors.front()->tensor.view(), w = whole.tensors.front()->tensor.view();
    const float* const x = static_cast<const float*>(t.data());
    for (int i = 0; i < 15; ++i) EXPECT_EQ(x[i], x[i % 4]) << i;
    EXPECT_NE(x[0], x[1]);
    EXPECT_EQ(x[0], *static_cast<const float*>(w.data()));
  }
}

TEST(Cases, RequestsSharePages) {
  const cases::Built b = cases::build(kTwice, "x=f32:10:shared(3,2)");
  const std::span<const float> x = b.tensors.front()->tensor.span<float>();
  EXPECT_EQ(std::vector<float>(x.begin(), x.end()), (std::vector<float>{0, 1, 2, 3, 4, 0, 1, 2, 5, 6}));
  EXPECT_THROW(cases::build(kTwice, "x=f32:11:shared(3,2)"), ValueError);
}

TEST(Runner, PassesWhatIsRight) { EXPECT_EQ(run("none"), ""); }
TEST(Runner, FindsWrongNumbers) { EXPECT_FINDS("wrong", "against the reference: out differs in 1 of 15 elements"); }
TEST(Runner, FindsNaN) { EXPECT_FINDS("nan", "against the reference: out differs in 1 of 15 elements"); }
TEST(Runner, FindsWritesPastTheEnd) {
  EXPECT_EQ(run("past_the_end", " out=f32:3x5"),
            "first run: out: byte 60 of float32[3, 5], which is no element, was changed");
}
TEST(Runner, GuardsOutputsItSuppliesItself) {
  const auto g = cases::guarded("out", std::array<int64_t, 2>{3, 5}, DType::kF32);
  EXPECT_EQ(cases::check_guards(*g, true), "");
  g->tensor.data_as<float>()[14] = 1;
  EXPECT_EQ(cases::check_guards(*g, true), "");
  g->tensor.data_as<float>()[-1] = 1;
  EXPECT_EQ(cases::check_guards(*g, true), "out: byte -4 of float32[3, 5], which is no element, was changed");
}
TEST(Runner, FindsWritesToInputs) { EXPECT_FINDS("writes_input", "first run: x: byte 0 of float32[3, 5] was changed"); }
TEST(Runner, FindsUnstableResults) { EXPECT_FINDS("unstable", "second run: out is not bitwise equal"); }
TEST(Runner, FindsDependenceOnThreads) { EXPECT_FINDS("threads", "three threads: out is not bitwise equal"); }
TEST(Runner, FindsIgnoredStrides) { EXPECT_FINDS("ignores_strides", "padded rows"); }
TEST(Runner, FindsErrorsOfPaddedRows) { EXPECT_FINDS("padding_throws", "threw ValueError: twice: x has strides"); }
TEST(Runner, AcceptsThatRowsMustBeContiguous) { EXPECT_EQ(run("needs_contiguous"), ""); }
TEST(Runner, FindsFallingThrough) { EXPECT_FINDS("refuses", "run by reference instead of cpu; cpu: it refuses"); }
TEST(Runner, ReportsExceptions) { EXPECT_FINDS("throws", "threw RuntimeError: twice: the kernel gave up"); }

TEST(Compare, CountsAndLocates) {
  const float a[] = {1, 2, 3, NAN, INFINITY}, b[] = {1, 2.5f, 3, NAN, INFINITY}, c[] = {1, 2, 3, NAN, -INFINITY};
  const cases::Comparison r = cases::compare(TensorView(b, {5}), TensorView(a, {5}), 1e-3, 1e-3);
  EXPECT_EQ(r.mismatches, 1);
  EXPECT_EQ(r.worst, 1);
  EXPECT_DOUBLE_EQ(r.max_abs, 0.5);
  EXPECT_TRUE(cases::compare(TensorView(a, {5}), TensorView(a, {5}), 0, 0).equal);
  EXPECT_FALSE(cases::compare(TensorView(c, {5}), TensorView(a, {5}), 1, 1).equal);
  EXPECT_FALSE(cases::compare(TensorView(a, {4}), TensorView(a, {5}), 1, 1).equal);
}
TEST(Parse, SaysWhatItCannotRead) {
  auto error = [](const char* args) -> std::string {
    try {
      cases::build(kTwice, args);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("x=f31:3x5"), "ValueError: case: unknown dtype: 'f31'");
  EXPECT_EQ(error("x"), "ValueError: case: expected name=value: 'x'");
  EXPECT_EQ(error("y=3"), "TypeError: twice() got an unexpected keyword argument 'y'");
  EXPECT_EQ(error("x=f32:3x5:blue"), "ValueError: case: unknown fill 'blue'");
  EXPECT_EQ(error("x=@z"), "ValueError: case: no earlier argument of that name: 'z'");
  EXPECT_EQ(error("x=f32:3x5^perm(2,0)"), "ValueError: case: not an integer in 0..1: '2'");
  EXPECT_EQ(error("x=f32:3x5^perm(1,1)"), "ValueError: case: perm must name every axis once: 'perm(1,1)'");
  EXPECT_EQ(error("x=f32:3x2.5"), "ValueError: case: not an integer in 0..1099511627776: '2.5'");
  EXPECT_EQ(error("x=f32:-3x5"), "ValueError: case: not an integer in 0..1099511627776: '-3'");
  EXPECT_EQ(error("x=f32:1000000000x1000000000"), "ValueError: case: a tensor has more than 2^56 elements");
}
struct Pair {
  TensorView x, y;
};
TEST(Parse, PadsWhatNeedNotBeContiguous) {
  static constexpr op::Field kPairFields[] = {op::in<&Pair::x>("x", "n d", DType::kF32, op::contiguous),
                                              op::in<&Pair::y>("y", "n d", DType::kF32)};
  static constinit const op::Op kPair =
      op::define<Pair>("pair", "tests.cases", "nothing", kPairFields, kCandidates, nullptr);
  const cases::Built b = cases::build(kPair, "x=f32:3x5 y=f32:3x5", {.pad_inputs = true});
  EXPECT_EQ(b.tensors[0]->tensor.view().stride(0), 5);
  EXPECT_EQ(b.tensors[1]->tensor.view().stride(0), 13);
}
TEST(Parse, FillsOfFamiliesHaveNamesOfTheirOwn) {
  std::set<std::string_view> names = {"literal", "normal", "uniform", "randint", "const",
                                      "range",   "nan",    "probs",   "perm"};
  for (const op::Family& family : op::families())
    for (const op::Fill& f : family.fills) EXPECT_TRUE(names.insert(f.name).second) << family.name << ": " << f.name;
  EXPECT_TRUE(names.contains("packed") && names.contains("Q4_K"));
}

TEST(Parse, LayoutsKeepTheValues) {
  cases::Built plain = cases::build(kTwice, "x=f32:3x5"), padded = cases::build(kTwice, "x=f32:3x5^pad8"),
               turned = cases::build(kTwice, "x=f32:3x5^t");
  const TensorView a = plain.tensors[0]->tensor.view(), b = padded.tensors[0]->tensor.view(),
                   c = turned.tensors[0]->tensor.view();
  EXPECT_EQ(b.stride(0), 13);
  EXPECT_EQ(c.stride(0), 1);
  EXPECT_EQ(c.stride(1), 3);
  EXPECT_TRUE(cases::compare(b, a, 0, 0).equal);
  EXPECT_TRUE(cases::compare(c, a, 0, 0).equal);
}

TEST(Parse, CopiedContentsAreThoseOfTheRule) {
  const char* const kTexts[] = {"x=f32:30x50", "x=f32:50x30", "x=f32:30x50:uniform(2,3)"};
  std::vector<cases::Built> want;
  for (const std::string text : kTexts) want.push_back(cases::build(kTwice, text));
  const cases::FillCache cache;
  for (const char* layout : {"", "", "^pad8", "^t", "^pad8"})
    for (size_t i = 0; i < want.size(); ++i) {
      const cases::Built b = cases::build(kTwice, std::string(kTexts[i]) + layout);
      EXPECT_TRUE(cases::compare_bits(b.tensors[0]->tensor.view(), want[i].tensors[0]->tensor.view()).equal)
          << kTexts[i] << layout;
      EXPECT_EQ(cases::check_guards(b, kTwice), "") << kTexts[i] << layout;
    }
}

}  // namespace
}  // namespace flashinfer
