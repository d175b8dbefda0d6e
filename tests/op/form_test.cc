// SPDX-License-Identifier: Apache-2.0
// What a table says of the conversion back to Python (op::unstacked, as_numbers, joined) and of arguments that once
// were positional.
#include <gtest/gtest.h>

#include "flashinfer/core/warn.h"
#include "flashinfer/op/call.h"

namespace flashinfer {
namespace {

struct Forms {
  int64_t n = 0;
  double scale = 1;
  int64_t window = -1, extra = 0;
  std::string mode = "a";
  bool both = false;
  std::optional<TensorView> pair{}, numbers{}, out{}, lse{};
};
op::Shape pair_shape(const Forms& a) { return {2, {2, a.n}}; }
op::Shape two(const Forms&) { return {1, {2}}; }
op::Shape one_row(const Forms& a) { return {1, {a.n}}; }
void launch(const Forms& a) {
  for (int64_t i = 0; i < 2 * a.n; ++i) a.pair->data_as<int32_t>()[i] = static_cast<int32_t>(i);
  a.numbers->data_as<float>()[0] = static_cast<float>(a.scale);
  a.numbers->data_as<float>()[1] = static_cast<float>(a.window);
}
constexpr op::Field kFields[] = {
    op::attr<&Forms::n>("n", op::required),
    op::attr<&Forms::scale>("scale", op::was_positional),
    op::attr<&Forms::extra>("extra"),
    op::attr<&Forms::window>("window", op::was_positional),
    op::attr<&Forms::mode>("mode"),
    op::attr<&Forms::both>("both"),
    op::result<&Forms::pair>("pair", nullptr, DType::kI32, op::shape<pair_shape>, op::unstacked),
    op::result<&Forms::numbers>("numbers", nullptr, DType::kF32, op::shape<two>, op::as_numbers),
    op::result<&Forms::out>("out", nullptr, DType::kF32, op::shape<one_row>),
    op::result<&Forms::lse>("lse", nullptr, DType::kF32, op::shape<one_row>, op::when<&Forms::both>,
                            op::tuple_with_previous),
};
constexpr op::Candidate kCandidates[] = {op::reference<launch>()};
constinit const op::Op kForms = op::define<Forms>("test_forms", "tests.op", "", kFields, kCandidates, nullptr);

std::vector<std::string> g_warnings;
class Form : public ::testing::Test {
 protected:
  void SetUp() override {
    g_warnings.clear();
    set_warning_handler([](const std::string& message, WarningKind kind) {
      if (kind == WarningKind::kDeprecation) g_warnings.push_back(message);
    });
  }
  void TearDown() override { set_warning_handler(nullptr); }
};
std::string error_of(const op::Passed& passed) {
  try {
    op::call_values(kForms, passed);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
const std::vector<op::Value>& items(const op::Value& v) { return v.as<op::TupleValue>()->items; }

TEST_F(Form, OfResultsIsThatOfTheTable) {
  const op::Value plain = op::call_values(kForms, {{3}, {}});
  ASSERT_EQ(items(plain).size(), 4u);
  ASSERT_EQ(items(items(plain)[0]).size(), 2u);
  const TensorView second = *items(items(plain)[0])[1].tensor();
  EXPECT_EQ(to_string(second), "int32[3]");
  EXPECT_EQ(second.data_as<int32_t>()[2], 5);
  EXPECT_EQ(*items(plain)[1].as<double>(), 1.0);
  EXPECT_EQ(*items(plain)[2].as<double>(), -1.0);
  EXPECT_TRUE(items(plain)[3].tensor());
  const op::Value joined = op::call_values(kForms, {{3}, {{"both", true}}});
  ASSERT_EQ(items(joined).size(), 4u);
  ASSERT_EQ(items(items(joined)[3]).size(), 2u);
  EXPECT_TRUE(items(items(joined)[3])[1].tensor());
  const op::Results flat = op::call(kForms, Forms{.n = 3, .both = true});  // C++ gets the tensors
  EXPECT_EQ(flat.size(), 4);
  EXPECT_EQ(to_string(flat[0].view()), "int32[2, 3]");
}

TEST_F(Form, OlderPositionsAreBoundInTheTablesOrder) {
  EXPECT_EQ(op::signature(kForms),
            "(n, *deprecated_positional_args, scale=1.0, extra=0, window=-1, mode='a', both=False)");
  const op::Value r = op::call_values(kForms, {{3, 2.5, 7}, {}});
  EXPECT_EQ(*items(r)[1].as<double>(), 2.5);
  EXPECT_EQ(*items(r)[2].as<double>(), 7.0);
  ASSERT_EQ(g_warnings.size(), 1u);
  EXPECT_EQ(g_warnings[0], "test_forms() takes 'scale' and what follows it by name; by position they are deprecated");
  EXPECT_EQ(error_of({{3, 2.5, 7, 1}, {}}),
            "TypeError: test_forms() takes 1 positional arguments and 2 deprecated ones but 4 were given");
  EXPECT_EQ(error_of({{3, 2.5}, {{"scale", 2.5}}}), "TypeError: test_forms() got multiple values for argument 'scale'");
  EXPECT_EQ(error_of({{3}, {{"scale", 2.5}, {"extra", 1}}}), "no error");
  EXPECT_EQ(g_warnings.size(), 1u);
}

TEST_F(Form, DeprecationsAreForWhoeverListens) {
  set_warning_handler(nullptr);
  testing::internal::CaptureStderr();
  deprecated("an older way");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace flashinfer
