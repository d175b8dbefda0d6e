// SPDX-License-Identifier: Apache-2.0
// Every row of every op's case table, recorded, replays to the same bits: in plain files and from the chunk store.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "flashinfer/cases/fill.h"
#include "flashinfer/cases/run.h"
#include "flashinfer/core/version.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/ops/sampling/op.h"
#include "flashinfer/record/record.h"
#include "flashinfer/replay/replay.h"

namespace flashinfer {
namespace {

/// Records until stop() into a folder that goes with it.
class Recording {
 public:
  explicit Recording(bool dedup) {
    record::Settings s = before_;
    s.level = 10;
    s.destination = "/dev/null";
    s.dump_dir = folder().string();
    s.max_count = 1'000'000;
    s.dedup = dedup;
    record::configure(s);
  }
  ~Recording() {
    stop();
    std::filesystem::remove_all(name_);
  }
  void stop() const { record::configure(before_); }
  std::filesystem::path folder() const { return std::filesystem::path(name_) / "dump"; }

 private:
  const record::Settings before_ = record::settings();
  std::string name_ = [] {
    std::string s = "/tmp/flashinfer-cases-XXXXXX";
    return mkdtemp(s.data()) ? s : throw std::runtime_error("mkdtemp failed");
  }();
};

class RecordReplay : public testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() { contents_ = std::make_unique<cases::FillCache>(); }
  static void TearDownTestSuite() { contents_.reset(); }

 private:
  static inline std::unique_ptr<cases::FillCache> contents_;  // both layouts record the same tensors
};

TEST_P(RecordReplay, EveryCaseGivesTheSameBits) {
  const Recording recording(GetParam());
  size_t calls = 0, rows = 0;
  for (const op::Op* op : op::all_ops())
    for (const op::Case& c : op->cases()) {
      if (c.tags == op::kBench) continue;
      // Under a sanitizer all rows in chunks, every third in files: tensors' bytes are all that the layouts write
      // differently.
      if (*build::sanitizer_flags() && !GetParam() && rows++ % 3) continue;
      cases::Built b = cases::build(*op, c.args);
      cases::run_block(b);
      ++calls;
    }
  recording.stop();
  const replay::Report report = replay::replay(recording.folder(), {.bitwise = true});
  EXPECT_GE(report.calls.size(), calls);  // and the __init__ and plan of methods
  for (const replay::CallResult& r : report.calls) {
    const bool nothing = r.outcome == replay::Outcome::kNotCompared && r.function.ends_with(".__init__");
    EXPECT_TRUE(r.outcome == replay::Outcome::kPassed || nothing)
        << r.function << " (" << r.folder.filename().string() << "): " << replay::name(r.outcome) << ": " << r.message;
  }
}
INSTANTIATE_TEST_SUITE_P(Layouts, RecordReplay, testing::Bool(),
                         [](const auto& i) { return i.param ? "Chunks" : "Files"; });

/// A draw without a seed uses the process's generator: the recording holds its state, or the replay would draw others.
TEST(RecordReplayState, UnseededDrawsAreRepeated) {
  const Recording recording(false);
  const std::vector<float> probs(64 * 1000, 1e-3f);
  const Samples first = sampling_from_probs({.probs = TensorView(probs.data(), {64, 1000})});
  const Samples second = sampling_from_probs({.probs = TensorView(probs.data(), {64, 1000})});
  recording.stop();
  EXPECT_FALSE(std::ranges::equal(first.samples.span<int32_t>(), second.samples.span<int32_t>()));
  const replay::Report report = replay::replay(recording.folder(), {.bitwise = true});
  ASSERT_EQ(report.calls.size(), 2u);
  EXPECT_EQ(report.passed(), 2) << report.calls[1].message;
}

}  // namespace
}  // namespace flashinfer
