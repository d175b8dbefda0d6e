// SPDX-License-Identifier: Apache-2.0
// Every row of every op's case table is a test; a failure prints the command that repeats it.
#include <gtest/gtest.h>

#include "flashinfer/cases/run.h"
#include "flashinfer/core/version.h"
#include "flashinfer/op/registry.h"

namespace flashinfer {
namespace {

class CaseTest : public testing::Test {
 public:
  CaseTest(const op::Op& op, const op::Case& c) : op_(op), case_(c) {}
  void TestBody() override {
    const cases::CaseResult r = cases::run_case(op_, case_);
    EXPECT_TRUE(r.passed) << r.failure << "\n  " << r.repro;
  }

 private:
  const op::Op& op_;
  const op::Case& case_;
};

/// GoogleTest names may not hold dots in the suite part of a filter; '.' of methods becomes '_'.
std::string suite_of(const op::Op& op) {
  std::string s = op.name;
  for (char& c : s)
    if (c == '.') c = '_';
  return s;
}

/// Under a sanitizer every third row of a long table: replay_check_test.cc runs the kernels of all rows there, and the
/// plain build compares all of them.
bool left_out(std::span<const op::Case> rows, const op::Case& row) {
  return *build::sanitizer_flags() && rows.size() > 8 && (&row - rows.data()) % 3;
}

const bool registered = [] {
  for (const op::Op* op : op::all_ops())
    for (const op::Case& c : op->cases()) {
      if (c.tags == op::kBench) continue;  // large and meant for timing
      if (left_out(op->cases(), c)) continue;
      testing::RegisterTest(suite_of(*op).c_str(), c.name, nullptr, nullptr, __FILE__, __LINE__,
                            [op, &c]() -> testing::Test* { return new CaseTest(*op, c); });
    }
  return true;
}();

bool writes_floats(const op::Op& op) {
  for (const op::Field& f : op.fields) {
    const bool output = f.role == op::Role::kOut || f.role == op::Role::kResult || f.role == op::Role::kInOut || f.role == op::Role::kPagedInOut;
    if (output && (f.dtypes.bits & op::floats.bits)) return true;
  }
  return false;
}
TEST(CaseTables, EveryOpHasRowsAndAReference) {
  for (const op::Op* op : op::all_ops()) {
    const std::string_view name = op->name;
    if (name.ends_with("_with_jit_module")) continue;      // compute what their caller wrote
    if (op->is_collective) continue;                       // needs other ranks: tests/comm
    if (op->state && !writes_floats(*op)) continue;  // what __init__, plan, ... leave is checked through run
    EXPECT_FALSE(op->cases().empty()) << name;
    EXPECT_STREQ(op->candidates.back().name, "reference") << name;
  }
}

}  // namespace
}  // namespace flashinfer
