// SPDX-License-Identifier: Apache-2.0
// The op that new ones are copied from (flashinfer/ops/skeleton), where it stands. new_op_test.py copies it.
#include <gtest/gtest.h>

#include <limits>

#include "flashinfer/cases/run.h"
#include "flashinfer/op/call.h"
#include "flashinfer/op/glossary.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/skeleton/op.h"

namespace flashinfer {
namespace ops::skeleton {
extern const std::span<const op::Op* const> all;
extern const std::span<const op::Term> terms;
}  // namespace ops::skeleton
namespace {

TEST(Skeleton, PassesItsRows) {
  for (const op::Op* o : ops::skeleton::all) {
    ASSERT_GT(o->cases().size(), 5u);
    for (const op::Case& c : o->cases()) {
      if (c.tags == op::kBench) continue;
      const cases::CaseResult r = cases::run_case(*o, c);
      EXPECT_TRUE(r.passed) << c.name << ": " << r.failure;
    }
  }
}

TEST(Skeleton, PassesItsRowsOnTheEmulator) {
  for (const op::Op* o : ops::skeleton::all)
    for (const op::Case& c : o->cases()) {
      if (c.tags == op::kBench) continue;
      const cases::CaseResult r = cases::run_case(*o, c, {.device = {DeviceType::kEmu, 0}});
      EXPECT_TRUE(r.passed) << c.name << ": " << r.failure;
      EXPECT_EQ(r.unsupported, "") << c.name;
    }
}

TEST(Skeleton, IsCalledByNameOnceItIsRegistered) {
  const op::Registration registration(*ops::skeleton::all[0]);
  const op::Op* o = op::find_op("skeleton");
  ASSERT_TRUE(o);
  EXPECT_EQ(op::signature(*o), "(input, peak=1.0, out=None)");
  EXPECT_STREQ(ops::skeleton::terms[0].name, "peak");
}

TEST(Skeleton, SaysWhatIsWrong) {
  const Tensor x = Tensor::empty({2, 4}, DType::kF32);
  const auto error = [&](const Skeleton& args) -> std::string {
    try {
      skeleton(args);
    } catch (const std::exception& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_EQ(error({.input = x, .peak = -1}), "ValueError: skeleton: peak is -1, but must be finite and at least 0");
  EXPECT_EQ(error({.input = x, .peak = std::numeric_limits<double>::infinity()}),
            "ValueError: skeleton: peak is inf, but must be finite and at least 0");
  const Tensor words = Tensor::empty({2, 4}, DType::kI32);
  EXPECT_NE(error({.input = words}), "none");
}

}  // namespace
}  // namespace flashinfer
