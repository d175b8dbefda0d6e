// SPDX-License-Identifier: Apache-2.0
// The emulator finds each planted bug, says where, and reports nothing for the same kernel without it; and its counts
// are those computed by hand.
#include <cmath>
#include <numeric>

#include "flashinfer/core/check.h"
#include "flashinfer/core/scalar.h"
#include "planted.h"

namespace flashinfer::emu {
namespace {

const Bug kBugs[] = {
    {"missing_sync", launch(1, 128, 512), "data race at shared+0x"},
    {"missing_sync_warp", launch(1, 128, 512), "data race at shared+0x"},
    {"shuffle_as_barrier", launch(1, 128, 512), "data race at shared+0x"},
    {"missing_second_sync", launch(1, 128, 512), "data race at shared+0x"},
    {"missing_async_wait", launch(1, 128, 512), "while a cp.async to it is in flight"},
    {"wrong_pending_count", launch(1, 128, 1024), "while a cp.async to it is in flight"},
    {"wait_without_sync", launch(1, 128, 512), "at shared+0x"},
    {"never_waited", launch(1, 128, 512), "was in flight: it was never waited for"},
    {"store_into_flight", launch(1, 128, 512), "while a cp.async to it is in flight"},
    {"one_too_far", launch(8, 128, 0),
     "write of 4 bytes of global memory out of bounds, 4 bytes past the end of an allocation of 4000 bytes"},
    {"before_the_start", launch(8, 128, 0),
     "read of 4 bytes of global memory out of bounds, 4 bytes before an allocation of 4000 bytes"},
    {"past_shared", launch(1, 128, 512),
     "write of 4 bytes at shared+0x200, but the block has 512 bytes of shared memory"},
    {"write_parameter", launch(1, 32, 0), "write of 8 bytes to parameters or constants"},
    {"skipped_barrier", launch(1, 128, 512), "threads of its block"},
    {"diverged_barrier", launch(1, 128, 512), "diverged sync_threads"},
    {"deadlock", launch(1, 64, 0), "deadlock: 32 threads wait for a named barrier"},
    {"barrier_counts", launch(1, 96, 0), "barrier 1 is used for"},
    {"uninitialised", launch(1, 128, 512), "at shared+0x14, which were never written"},
    {"misaligned", launch(1, 128, 0), "misaligned read of 16 bytes of global memory"},
    {"misaligned_async", launch(1, 128, 2048), "cp.async"},
    {"shuffle_after_exit", launch(1, 128, 0), "returned"},
    {"shuffle_in_a_branch", launch(1, 128, 0), "diverged warp"},
    {"mask_without_self", launch(1, 32, 0), "with a mask that leaves it out"},
    {"blocks_race", launch(4, 32, 0), "by a thread of another block"},
    {"global_race", launch(1, 128, 0), "data race at global memory"},
    {"count_without_atomic", launch(4, 32, 0), "by a thread of another block"},
    {"last_block", launch(4, 32, 0), "by a thread of another block"},
    {"cluster_race", launch(2, 128, 512, 2), "at shared+"},
    {"grid_barrier", launch(4, 64, 0, 1, true), "data race at global memory"},
    {"grid_barrier_alone", launch(4, 64, 0), "a barrier of the whole grid in a launch that is not cooperative"},
    {"read_too_early", behind(launch(1, 128, 0)), "read of 4 bytes of global memory before depend_wait()"},
};

TEST(Emu, FindsEachPlantedBugUnderEverySchedule) { expect_found<Planted>(kBugs, "planted.cc:"); }

TEST(Emu, HasNothingToSayOfTheSameKernelsWithoutTheBug) {
  for (const Bug& b : kBugs)
    for (const uint64_t seed : kSeeds)
      EXPECT_EQ(Planted()
                    .run((std::string("right_") + b.name).c_str(),
                         b.name == std::string("grid_barrier_alone") ? launch(1, 32, 0) : b.launch, seed)
                    .error,
                "")
          << b.name << ", seed " << seed;
}

TEST(Emu, ARaceIsReportedWithBothLinesWhateverTheNumbers) {
  // In order of threads the numbers come out right: only the detector sees it.
  Planted p;
  const Report r = p.run("bug_missing_sync", launch(1, 128, 512), 0);
  ASSERT_FALSE(r.errors.empty());
  const std::string& e = r.errors[0];
  const size_t first = e.find("planted.cc:");
  ASSERT_NE(first, std::string::npos) << e;
  EXPECT_NE(e.find("planted.cc:", first + 1), std::string::npos) << e;
}

/// The product of the planted kernel in double.
double worst_error(Planted& p) {
  const float* in = p.first(p.in);
  const float* out = p.first(p.out);
  double worst = 0;
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      double sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += static_cast<double>(static_cast<float>(bf16_t(in[16 * i + k]))) *
               static_cast<double>(static_cast<float>(bf16_t(in[256 + 8 * k + j])));
      worst = std::fmax(worst,
                        std::isnan(out[8 * i + j]) ? INFINITY : std::fabs(sum - static_cast<double>(out[8 * i + j])));
    }
  return worst;
}

TEST(Emu, MatrixProductsAgreeAndWrongLayoutsDoNot) {
  for (const uint64_t seed : kSeeds) {
    Planted right;
    EXPECT_EQ(right.run("product", launch(1, 32, 1024), seed).error, "");
    EXPECT_EQ(worst_error(right), 0.0);
    // These touch only what they may: nothing but the comparison shows them.
    for (const char* name : {"product_swizzle", "product_transposed", "product_lane"}) {
      Planted wrong;
      EXPECT_EQ(wrong.run(name, launch(1, 32, 1024), seed).error, "") << name;
      EXPECT_GT(worst_error(wrong), 0.5) << name;
    }
    EXPECT_NE(Planted().run("product_store", launch(1, 32, 1024), seed).error.find("data race at shared+0x"),
              std::string::npos);
  }
}

TEST(Emu, CountsBankConflicts) {
  const auto worst = [](const char* name, unsigned shared_bytes) {
    const Report r = Planted().run(name, launch(1, 32, shared_bytes), 0, true);
    EXPECT_EQ(r.error, "") << name;
    double most = 0;
    for (const LineCount& l : r.counts.lines)
      if (l.shared) most = std::fmax(most, static_cast<double>(l.units) / static_cast<double>(l.least));
    return most;
  };
  EXPECT_EQ(worst("column_32", 32 * 32 * 4), 32.0);  // all lanes in one bank
  EXPECT_EQ(worst("column_33", 32 * 33 * 4), 1.0);
  EXPECT_EQ(worst("rows_plain", 2048), 8.0);  // 8 rows of 128 bytes: the same 4 banks
  EXPECT_EQ(worst("rows_swizzled", 2048), 1.0);
}

TEST(Emu, ASumThatIsNotSetIsFarOff) {
  for (const uint64_t seed : kSeeds)
    for (const bool bug : {false, true}) {
      Planted p;
      EXPECT_EQ(p.run(bug ? "bug_sum_not_set" : "right_sum_not_set", launch(1, 32, 0), seed).error, "");
      const float* const in = p.first(p.in);
      const double want = std::accumulate(in, in + 16, 0.0);
      for (size_t i = 0; i < 32; ++i) {
        const double error = std::abs(p.first(p.out)[i] - want);
        EXPECT_TRUE(bug ? !(error < 1e30) : error == 0) << "seed " << seed << ", element " << i << ": " << error;
      }
    }
}

TEST(Emu, CountsSectors) {
  const auto counts = [](const char* name) {
    const Report r = Planted().run(name, launch(1, 32, 0), 0, true);
    EXPECT_EQ(r.error, "") << name;
    return r.counts;
  };
  Counts c = counts("stride_1");
  EXPECT_EQ(c.global_load_bytes, 128u);
  EXPECT_EQ(c.least_load_sectors, 4u);
  EXPECT_LE(c.global_load_sectors, 5u);  // 5 when the memory does not begin at 32 bytes
  c = counts("stride_8");
  EXPECT_EQ(c.global_load_sectors, 32u);
  EXPECT_EQ(c.least_load_sectors, 4u);
  c = counts("wide");
  EXPECT_EQ(c.global_requests, 2u);
  EXPECT_EQ(c.global_load_bytes, 512u);
  EXPECT_EQ(c.global_store_bytes, 512u);
  EXPECT_LE(c.global_load_sectors, 17u);
  c = counts("uneven");
  EXPECT_EQ(c.global_requests, 5u);  // 4 rounds and the store
  EXPECT_EQ(c.global_load_bytes, 4u * (32 + 24 + 16 + 8));
}

TEST(Emu, RejectsWhatNoMachineCanLaunch) {
  EXPECT_THROW(Planted().run("wide", launch(1, 1025, 0), 0), ValueError);
  EXPECT_THROW(Planted().run("wide", launch(1, 32, 300000), 0), ValueError);
  EXPECT_THROW(Planted().run("wide", launch(3, 32, 0, 2), 0), ValueError);
  EXPECT_EQ(Planted().run("wide", launch(0, 32, 0), 0).error, "");
}

}  // namespace
}  // namespace flashinfer::emu
