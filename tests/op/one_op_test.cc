// SPDX-License-Identifier: Apache-2.0
// One op, declared here and nowhere else, gets what the library's ops get: check, log, record, replay, JIT, cases,
// bench, calls by name and the listing.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "flashinfer/bench/bench.h"
#include "flashinfer/cases/run.h"
#include "flashinfer/cases/warmup.h"
#include "flashinfer/core/context.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/op/call.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/common/reference.h"
#include "flashinfer/record/record.h"
#include "flashinfer/replay/replay.h"
#include "tests/op/one_op_kernel.h"

namespace flashinfer {
namespace {

struct Scale {
  TensorView x;
  double factor = 2;
  std::optional<TensorView> out;
};
inline constexpr jit::Kernel kScale{"tests/op/one_op_kernel.h", "one_op::scale", "one_op::Params"};
op::Prepared prepare(const Scale& a) {
  const jit::Loaded& kernel = jit::cpu_kernel<kScale>(one_op::Config{a.x.dtype()});
  if (!kernel.fn) return op::Unsupported{kernel.why_not};
  const one_op::Params p{.x = a.x.data(),
                         .out = a.out->data(),
                         .rows = a.x.size(0),
                         .d = a.x.size(1),
                         .x_stride = a.x.stride(0),
                         .out_stride = a.out->stride(0),
                         .factor = static_cast<float>(a.factor)};
  return [fn = kernel.fn, p] { parallel_for(p.rows, [&](int64_t row) { fn(&p, row); }); };
}
void reference(const Scale& a) {
  ref::for_each_row(a.x, [&](const ref::Index& row) {
    for (int64_t i = 0; i < a.x.size(1); ++i) ref::set(*a.out, row, i, a.factor * ref::get(a.x, row, i));
  });
}
constexpr op::Field kFields[] = {op::in<&Scale::x>("x", "n d", op::floats), op::attr<&Scale::factor>("factor"),
                                 op::out<&Scale::out>("out", "n d", op::same_as("x"), op::may_alias("x"))};
constexpr op::Candidate kCandidates[] = {op::cpu<prepare>(), op::reference<reference>()};
constexpr op::Case kRows[] = {{"odd", "x=bf16:3x37 factor=0.5"},
                              {"in_place", "x=f32:2x16 out=@x"},
                              {"empty", "x=f16:0x8"},
                              {"bench", "x=f32:64x1024", "cpu", op::kBench}};
std::span<const op::Case> rows() { return kRows; }
constinit const op::Op kOp =
    op::define<Scale>("one_op_scale", "tests.one_op", "factor * x", kFields, kCandidates, rows);

class OneOp : public testing::Test {
 protected:
  op::Registration registration_{kOp};
};

TEST_F(OneOp, CasesCheckAndJit) {
  for (const op::Case& c : kOp.cases()) {
    const cases::CaseResult r = cases::run_case(kOp, c);
    EXPECT_TRUE(r.passed) << r.failure;
  }
  EXPECT_THROW(op::call(kOp, Scale{.x = TensorView(nullptr, DType::kI32, {0, 4})}), ValueError);
}
TEST_F(OneOp, WarmUpAndAvailability) {
  const WarmupReport r = warmup({{"one_op_scale", "x=f16:2x8"}});
  EXPECT_EQ(r.kernels, 1);
  EXPECT_TRUE(r.problems.empty());
  EXPECT_EQ(is_available("one_op_scale", "x=f16:2x8").candidate, "cpu");
}
TEST_F(OneOp, CallByNameAndListing) {
  const Tensor x = Tensor::zeros({2, 3}, DType::kF32);
  const op::Value out = op::call_values(*op::find_op("one_op_scale"), {{op::Value(x)}, {{"factor", 3}}});
  ASSERT_TRUE(out.tensor());
  EXPECT_EQ(op::signature(kOp), "(x, factor=2.0, out=None)");
  bool listed = false;
  for (const op::Op* op : op::all_ops()) listed |= op == &kOp;
  EXPECT_TRUE(listed);
}
TEST_F(OneOp, Bench) {
  const bench::Row row = bench::run(kOp, kOp.cases().back(), {.seconds = 0.001});
  EXPECT_GE(row.samples.seconds.size(), 5u);
  EXPECT_EQ(row.cost.bytes, 2.0 * 64 * 1024 * 4);
  EXPECT_EQ(row.candidate, "cpu");
}
TEST_F(OneOp, LogRecordReplay) {
  char name[] = "/tmp/flashinfer-one-op-XXXXXX";
  ASSERT_TRUE(mkdtemp(name));
  const std::filesystem::path folder(name), log = folder / "log.txt";
  const record::Settings before = record::settings();
  record::Settings s = before;
  s.level = 10;
  s.destination = log.string();
  s.dump_dir = (folder / "dump").string();
  record::configure(s);
  const Tensor x = Tensor::zeros({2, 3}, DType::kF32);
  op::call(kOp, Scale{.x = x, .factor = 0.25});
  record::configure(before);
  std::ifstream in(log);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_NE(text.find("FlashInfer API Call: one_op_scale\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  factor=\n    0.25\n"), std::string::npos) << text;
  const replay::Report r = replay::replay(folder / "dump", {.bitwise = true});
  ASSERT_EQ(r.calls.size(), 1u);
  EXPECT_EQ(r.passed(), 1) << r.calls[0].message;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace flashinfer
