// SPDX-License-Identifier: Apache-2.0
// Every row of every op's case table, recorded, replays to the same bits: in plain files and from the chunk store.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "flashinfer/cases/run.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/record/record.h"
#include "flashinfer/replay/replay.h"

namespace flashinfer {
namespace {

class RecordReplay : public testing::TestWithParam<bool> {};

TEST_P(RecordReplay, EveryCaseGivesTheSameBits) {
  char name[] = "/tmp/flashinfer-cases-XXXXXX";
  ASSERT_TRUE(mkdtemp(name));
  const std::filesystem::path folder = std::filesystem::path(name) / "dump";
  const record::Settings before = record::settings();
  record::Settings s = before;
  s.level = 10;
  s.destination = "/dev/null";
  s.dump_dir = folder.string();
  s.max_count = 1'000'000;
  s.dedup = GetParam();
  record::configure(s);
  size_t calls = 0;
  for (const op::Op* op : op::all_ops())
    for (const op::Case& c : op->cases()) {
      if (c.tags == op::kBench) continue;
      cases::Built b = cases::build(*op, c.args);
      cases::run_block(b);
      ++calls;
    }
  record::configure(before);
  const replay::Report report = replay::replay(folder, {.bitwise = true});
  EXPECT_GE(report.calls.size(), calls);  // and the __init__ and plan of methods
  for (const replay::CallResult& r : report.calls) {
    const bool nothing = r.outcome == replay::Outcome::kNotCompared && r.function.ends_with(".__init__");
    EXPECT_TRUE(r.outcome == replay::Outcome::kPassed || nothing)
        << r.function << " (" << r.folder.filename().string() << "): " << replay::name(r.outcome) << ": " << r.message;
  }
  std::filesystem::remove_all(name);
}
INSTANTIATE_TEST_SUITE_P(Layouts, RecordReplay, testing::Bool(), [](const auto& i) { return i.param ? "Chunks" : "Files"; });

}  // namespace
}  // namespace flashinfer
