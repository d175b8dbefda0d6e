// SPDX-License-Identifier: Apache-2.0
// Families of planted bugs: found under every schedule, with their line, and nothing is said of the same kernels
// without them.
#include <string>

#include "flashinfer/core/check.h"
#include "planted.h"
#include "test_paths.h"

namespace flashinfer::emu {
namespace {

// Compilers differ in names of types; clang leaves index -1 to the guarded form.
#if defined(__clang__)
constexpr const char *kLocalIndex = "index 4 is out of bounds of an array of type 'float[4]'",
                     *kPackIndex = "4 bytes before 'x' (16 bytes)";
#else
constexpr const char *kLocalIndex = "index 4 is out of bounds of an array of type 'float [4]'",
                     *kPackIndex = "index -1 is out of bounds of an array of type";
#endif

const Bug kBugs[] = {
    {"relaxed_flag", launch(4, 32, 0), "data race at global memory"},
    {"fence_left_out", launch(4, 32, 0), "data race at global memory"},
    {"narrow_fence", launch(4, 32, 0), "data race at global memory"},
    {"released_too_early", launch(4, 32, 0), "data race at global memory"},
    {"relaxed_load", launch(4, 32, 0), "data race at global memory"},
    {"flag_in_block", launch(1, 64, 512), "data race at shared+0x0"},
    {"endless_spin", launch(1, 64, 0), "reads the same again and again"},
    {"endless_volatile", launch(1, 64, 0), "reads the same again and again"},
    {"endless_rounds", launch(1, 64, 0), "reads the same again and again"},
    {"endless_lock", launch(1, 64, 0), "reads the same again and again"},
    {"endless_poll", launch(1, 64, 0), "reads the same again and again"},
    {"endless_words", launch(1, 64, 0), "reads the same again and again"},
    {"endless_registers", launch(1, 32, 0), "runs on and on without an access"},
    {"endless_plain", launch(1, 64, 0), "runs on and on without an access"},
    {"wait_without_arrive", launch(2, 128, 512, 2), "without having arrived there"},
    {"arrive_twice", launch(2, 128, 0, 2), "arrives at the cluster's barrier twice"},
    {"returned_block", launch(2, 128, 512, 2), "return"},
    {"returned_early", launch(2, 128, 512, 2), "return"},
    {"block_not_begun", launch(2, 128, 512, 2), "which need not have begun"},
    {"broken_chain", behind(launch(2, 32, 0)), "no thread calls depend_wait()"},
    {"launch_without_wait", behind(launch(2, 32, 0)), "no thread calls depend_wait()"},
    {"one_waits", behind(launch(1, 64, 0)), "before depend_wait()"},
    {"source_overwritten", launch(1, 128, 512), "while the cp.async"},
    {"own_source_overwritten", launch(1, 128, 512), "while the cp.async"},
    {"source_between_barriers", launch(1, 128, 1024), "while the cp.async"},
    {"source_after_wait", launch(1, 128, 512), "data race at global memory"},
    {"unwritten", launch(1, 128, 0), "at byte 20 of an allocation of 4000 bytes, which nothing has written"},
    {"unwritten_source", launch(1, 128, 512), "which nothing has written"},
    {"unwritten_sum", launch(1, 32, 0), "which nothing has written"},
    {"half_written", launch(1, 32, 0), "which nothing has written"},
    {"unwritten_count", launch(1, 32, 4), "which were never written"},
    {"two_groups", launch(1, 128, 512), "in the barrier's phase before"},
    {"arrive_ahead", launch(1, 64, 512), "barrier 1"},
    {"left_out_reader", launch(1, 256, 128), "data race at shared+0x"},
    {"left_out_atomic", launch(1, 256, 4), "data race at shared+0x0"},
    {"left_out_block", launch(4, 32, 0), "data race at global memory"},
    {"local_index", launch(1, 32, 0), kLocalIndex},
    {"pack_index", launch(1, 32, 0), kPackIndex},
    {"lent_local", launch(1, 32, 256), "local memory that is not this thread's"},
};

struct Family : Planted {
  Family() { module_file = FI_TEST_LIBRARY("libemu_families"), options.idle_seconds = 0.2, forget_output(); }
};

TEST(Families, EachBugIsFoundUnderEverySchedule) { expect_found<Family>(kBugs, "families.cc:"); }

TEST(Families, NothingIsSaidOfTheSameKernelsWithoutTheBug) {
  for (const Bug& b : kBugs)
    for (const uint64_t seed : kSeeds)
      EXPECT_EQ(Family().run((std::string("right_") + b.name).c_str(), b.launch, seed).error, "")
          << b.name << ", seed " << seed;
}

/// Pages of 80 MB, in pieces of 16 bytes.
TEST(Families, ARaceIsFoundFarIntoMuchMemory) {
  std::vector<float> much(size_t{80} << 18);
  float* const begin = much.data() + (16 - reinterpret_cast<uintptr_t>(much.data()) % 16) / 4;
  for (const char* name : {"bug_far_race", "right_far_race"}) {
    Family f;
    f.run("right_lent_local", launch(1, 32, 256), 0);  // the module is bound
    void* module = ::dlopen(f.module_file, RTLD_NOW | RTLD_LOCAL);
    auto* kernel = reinterpret_cast<void (*)(const void*)>(::dlsym(module, name));
    ASSERT_TRUE(kernel);
    const PlantedParams p{nullptr, begin, nullptr, static_cast<int64_t>(much.size()) - 4};
    const Range all[] = {{much.data(), much.size() * 4}};
    f.options.memory = all;
    const Report r = emu::run(kernel, &p, sizeof(p), launch(1, 64, 0), f.options);
    EXPECT_EQ(r.error.find("data race at global memory") != std::string::npos, name[0] == 'b') << r.error;
  }
}

/// What a GPU's block may have; the smallest of the limits is sm_75's.
TEST(Families, ALaunchBeyondTheTargetIsAnError) {
  Family f;
  f.options.shared_limit = 101376;  // sm_86
  EXPECT_THROW(f.run("right_unwritten", launch(1, 128, 200 << 10), 0), ValueError);
  EXPECT_EQ(f.run("right_unwritten", launch(1, 128, 99 << 10), 0).error, "");
  f.options.clusters = false;
  EXPECT_THROW(f.run("right_arrive_twice", launch(2, 128, 0, 2), 0), ValueError);
  f.options.async_copy = false;
  EXPECT_NE(f.run("right_source_overwritten", launch(1, 128, 512), 0).error.find("it needs sm_80"), std::string::npos);
}

}  // namespace
}  // namespace flashinfer::emu
