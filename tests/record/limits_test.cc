// SPDX-License-Identifier: Apache-2.0
// Limits by count and size, and the ring of the last calls.
#include <cmath>

#include "tests/record/probe.h"

namespace flashinfer::probe {
namespace {

TEST_F(RecordTest, CountLimitKeepsTheFirstAndWarnsOnce) {
  auto s = recording(folder);
  s.max_count = 2;
  record::configure(s);
  const auto x = ramp(4);
  for (int i = 2; i < 7; ++i) call({.x = TensorView(x.data(), {4}), .alpha = static_cast<double>(i)});
  const auto all = dumps(folder / "dumps");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(lines(all[1] / "metadata.jsonl")[0]["input_metadata"]["kwarg_alpha"], 3.0);
  const std::string log = read(folder / "log");
  EXPECT_EQ(
      count(log,
            "Dump limit reached (2 dumps). Skipping dump for probe. Increase FLASHINFER_DUMP_MAX_COUNT if needed.\n"),
      1);
  EXPECT_EQ(count(log, "API Call: probe"), 5);
  EXPECT_EQ(record::totals().skipped, 3u);
}

TEST_F(RecordTest, SizeLimitCountsInputsAndOutputs) {
  auto s = recording(folder);
  s.max_size_gb = 100000.0 / (1 << 30);
  record::configure(s);
  const auto x = ramp(8000);  // 32,000 bytes in, as many out: the second call's outputs are too much
  for (int i = 0; i < 4; ++i) call({.x = TensorView(x.data(), {8000})});
  const auto all = dumps(folder / "dumps");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(lines(all[0] / "metadata.jsonl")[1].contains("outputs_lost"), false);
  EXPECT_EQ(lines(all[1] / "metadata.jsonl")[1]["execution_status"], "completed");
  EXPECT_TRUE(lines(all[1] / "metadata.jsonl")[1].contains("outputs_lost"));
  EXPECT_FALSE(std::filesystem::exists(all[1] / "outputs.pt"));
  EXPECT_LE(record::totals().bytes, 100000u);
  EXPECT_EQ(count(read(folder / "log"), "Dump size limit reached"), 1);
}

TEST_F(RecordTest, NoCapAtInfinityAndNothingBelowZero) {
  const auto x = ramp(4);
  for (const double gb : {HUGE_VAL, std::nan(""), -1.0}) {
    Folder here;
    auto s = recording(here);
    s.max_size_gb = gb;
    record::configure(s);
    call({.x = TensorView(x.data(), {4})});
    EXPECT_EQ(dumps(here / "dumps").size(), gb == -1.0 ? 0u : 1u) << gb;
  }
}

TEST_F(RecordTest, TheRingKeepsTheLastCalls) {
  auto s = recording(folder);
  s.keep_last = true;
  s.max_count = 3;
  record::configure(s);
  const auto x = ramp(4);
  for (int i = 0; i < 200; ++i) call({.x = TensorView(x.data(), {4}), .alpha = static_cast<double>(i)});
  const auto all = dumps(folder / "dumps");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(lines(all[0] / "metadata.jsonl")[0]["input_metadata"]["kwarg_alpha"], 197.0);
  EXPECT_EQ(lines(all[2] / "metadata.jsonl")[0]["input_metadata"]["kwarg_alpha"], 199.0);
  EXPECT_LT(lines(folder / "dumps/session.jsonl").size(), 2u * 80);
  EXPECT_EQ(record::totals().bytes, 3u * 32);
}

TEST_F(RecordTest, ARingOfBytes) {
  auto s = recording(folder);
  s.keep_last = true;
  s.max_size_gb = 100000.0 / (1 << 30);
  record::configure(s);
  const auto x = ramp(4000);
  for (int i = 0; i < 20; ++i) call({.x = TensorView(x.data(), {4000}), .alpha = static_cast<double>(i)});
  const auto all = dumps(folder / "dumps");
  ASSERT_EQ(all.size(), 3u);  // 32,000 bytes each
  EXPECT_EQ(lines(all[2] / "metadata.jsonl")[1]["input_metadata"]["kwarg_alpha"], 19.0);
}

}  // namespace
}  // namespace flashinfer::probe
