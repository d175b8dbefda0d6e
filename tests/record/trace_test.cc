// SPDX-License-Identifier: Apache-2.0
// Trace definitions of C++ calls, beside the log. tests/python/test_trace_*.py has what a definition says.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "flashinfer/core/fs.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/op/tracer.h"
#include "flashinfer/record/record.h"
#include "flashinfer/trace/trace.h"

namespace flashinfer {
namespace {

class Trace : public ::testing::Test {
 protected:
  void SetUp() override { dir_ = fs::make_temp_dir(::testing::TempDir(), "trace-"); }
  void TearDown() override {
    trace::configure({});
    record::configure({});
    fs::remove_tree(dir_);
  }
  static void call(int64_t d, int64_t weights) {
    const std::vector<float> x(static_cast<size_t>(2 * d), 1.0f), w(static_cast<size_t>(weights), 1.0f);
    rmsnorm({.input = TensorView(const_cast<float*>(x.data()), {2, d}), .weight = std::span(w)});
  }
  std::vector<std::string> files() const { return fs::list_dir(dir_ + "/out"); }
  trace::Json file(const std::string& name) const {
    return formats::parse_json(fs::read_file(dir_ + "/out/" + name).value());
  }
  std::string dir_;
};

TEST_F(Trace, CallsWriteDefinitionsOnce) {
  call(24, 24);
  EXPECT_TRUE(files().empty());
  trace::configure({.on = true, .dir = dir_ + "/out"});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (const int64_t d : {24, 40, 56}) call(d, d);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ((std::vector<std::string>{"rmsnorm_h24.json", "rmsnorm_h40.json", "rmsnorm_h56.json"}), files());
  EXPECT_EQ("float32", file("rmsnorm_h40.json")["inputs"]["hidden_states"]["dtype"]);
  EXPECT_EQ(40, file("rmsnorm_h40.json")["axes"]["hidden_size"]["value"]);
  trace::configure({});
  call(72, 72);
  EXPECT_EQ(3u, files().size());
}

TEST_F(Trace, ACallThatFailsHasADefinition) {
  trace::configure({.on = true, .dir = dir_ + "/out"});
  EXPECT_THROW(call(88, 87), ValueError);
  EXPECT_EQ(std::vector<std::string>{"rmsnorm_h88.json"}, files());
}

/// With the log and the recorder both see each call; either may go while the other stays.
TEST_F(Trace, BesideTheLog) {
  trace::configure({.on = true, .strict = true, .dir = dir_ + "/out"});
  record::configure({.level = 1, .destination = dir_ + "/log"});
  EXPECT_NE(nullptr, op::main_observer());
  call(104, 104);
  EXPECT_EQ(std::vector<std::string>{"rmsnorm_h104.json"}, files());
  EXPECT_TRUE(trace::problems(file("rmsnorm_h104.json")).empty());
  trace::configure({});
  call(120, 120);
  record::configure({});
  EXPECT_EQ(nullptr, op::observer());
  call(136, 136);
  const std::string log = fs::read_file(dir_ + "/log").value();
  size_t calls = 0;
  for (size_t at = log.find("API Call: rmsnorm"); at != log.npos; at = log.find("API Call: rmsnorm", at + 1)) ++calls;
  EXPECT_EQ(2u, calls) << log;
  EXPECT_EQ(1u, files().size());
}

/// What ops/<family>/trace.cc says fits the op's table: make_template throws otherwise.
TEST(TraceEntries, AreOfOpsAndFitThem) {
  for (const auto table : op::trace_tables())
    for (const op::TraceEntry& e : table) {
      const op::Op* found = op::find_op(e.op);
      ASSERT_NE(nullptr, found) << e.op;
      if (!e.op_type) continue;
      EXPECT_NO_THROW(trace::make_template(*found, e)) << e.op;
    }
}

}  // namespace
}  // namespace flashinfer
