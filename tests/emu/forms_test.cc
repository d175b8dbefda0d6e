// SPDX-License-Identifier: Apache-2.0
// Planted bugs of the families in other forms: found under every schedule, with their line, and nothing is said of the
// same kernels without them.
#include <string>
#include <vector>

#include "planted.h"
#include "test_paths.h"

namespace flashinfer::emu {
namespace {

const Bug kBugs[] = {
    {"counted_relaxed", launch(1, 64, 512), "data race at shared+0x0"},
    {"release_cut_off", launch(1, 96, 512), "data race at shared+0x0"},
    {"late_fence", launch(4, 32, 0), "global memory"},
    {"early_fence", launch(1, 64, 512), "data race at shared+0x0"},
    {"one_of_two", launch(1, 96, 512), "shared+0x"},
    {"one_of_two_added", launch(1, 96, 512), "shared+0x"},
    {"one_of_two_swapped", launch(1, 96, 512), "shared+0x"},
    {"number_of_writer", launch(1, 64, 512), "data race at shared+0x0"},
    {"last_two_sum", launch(4, 32, 0), "data race at global memory"},
    {"half_locked", launch(1, 64, 512), "data race at global memory"},
    {"own_lock", launch(1, 64, 512), "data race at global memory"},
    {"lock_relaxed", launch(1, 64, 512), "data race at shared+0x0"},
    {"both_wait", launch(1, 64, 512), "reads the same again and again"},
    {"counted_tries", launch(1, 64, 512), "made no progress"},
    {"endless_search", launch(1, 32, 0), "made no progress"},
    {"crossed_locks", launch(1, 64, 512), "reads the same again and again"},
    {"block_skips_grid", launch(2, 64, 0, 1, true), "wait for the grid's barrier"},
    {"written_after_arrive", launch(2, 128, 512, 2), "shared+0x"},
    {"read_before_wait", launch(2, 128, 512, 2), "return"},
    {"block_barrier_for_cluster", launch(2, 128, 1024, 2), "shared+0x"},
    {"peer_refilled", launch(2, 128, 512, 2), "data race at shared+0x"},
    {"written_to_returned", launch(2, 128, 512, 2), "return"},
    {"rank_too_large", launch(2, 128, 512, 2), "block 2 of a cluster of 2"},
    {"warp_without_arrival", launch(2, 128, 0, 2), "without having arrived there"},
    {"copy_before_wait", behind(launch(1, 64, 512)), "before depend_wait()"},
    {"atomic_before_wait", behind(launch(1, 64, 0)), "before depend_wait()"},
    {"wait_by_shuffle", behind(launch(1, 64, 0)), "before depend_wait()"},
    {"warp_not_told", behind(launch(1, 96, 0)), "before depend_wait()"},
    {"no_work_no_wait", behind(launch(2, 32, 0)), "no thread calls depend_wait()"},
    {"source_added_to", launch(1, 128, 512), "while the cp.async"},
    {"end_of_source", launch(1, 64, 1024), "while the cp.async"},
    {"target_copied_twice", launch(1, 128, 512), "while a cp.async to it is in flight"},
    {"group_not_closed", launch(1, 128, 512), "while a cp.async to it is in flight"},
    {"zeros_in_flight", launch(1, 128, 512), "while a cp.async to it is in flight"},
    {"wrong_stage", launch(1, 64, 512), "while a cp.async to it is in flight"},
    {"refilled_too_early", launch(1, 64, 256), "shared+0x"},
    {"idle_block", launch(4, 32, 0), "which nothing has written"},
    {"flag_not_set_up", launch(1, 32, 0), "which nothing has written"},
    {"half_a_word", launch(1, 32, 0), "which nothing has written"},
    {"row_not_filled", launch(1, 32, 512), "which were never written"},
    {"peer_not_filled", launch(2, 128, 512, 2), "which were never written"},
    {"barriers_by_turns", launch(1, 128, 1024), "in the barrier's phase before"},
    {"pairs_overlap", launch(1, 96, 512), "barrier 1"},
    {"handed_back_early", launch(1, 64, 128), "data race at shared+0x"},
    {"lane_left_out", launch(1, 32, 128), "shared+0x"},
    {"halves_apart", launch(1, 32, 128), "shared+0x"},
    {"vote_for_barrier", launch(1, 32, 128), "shared+0x"},
    {"barrier_in_loop", launch(1, 64, 256), "sync_threads"},
    {"wide_load_of_local", launch(1, 32, 0), "outside the variable that it belongs to"},
    {"backwards", launch(1, 32, 0), "out"},
    {"copied_to_others", launch(1, 64, 512), "data race at shared+0x"},
    {"copied_past_the_end", launch(1, 2, 0), "4 bytes past the end of an allocation"},
    {"cleared_by_one", launch(1, 64, 512), "which were never written"},
    {"number_not_tested", launch(1, 64, 512), "shared+0x0"},
    {"number_of_block", launch(2, 32, 0), "data race at global memory"},
    {"number_of_block_before", launch(2, 32, 0), "data race at global memory"},
};

struct Form : Planted {
  Form() { module_file = FI_TEST_LIBRARY("libemu_forms"), options.idle_seconds = 0.2, forget_output(); }
};

TEST(Forms, EachBugIsFoundUnderEverySchedule) { expect_found<Form>(kBugs, "forms.cc:"); }

TEST(Forms, NothingIsSaidOfTheSameKernelsWithoutTheBug) {
  for (const Bug& b : kBugs)
    for (const uint64_t seed : kSeeds)
      EXPECT_EQ(Form().run((std::string("right_") + b.name).c_str(), b.launch, seed).error, "")
          << b.name << ", seed " << seed;
}

}  // namespace
}  // namespace flashinfer::emu
