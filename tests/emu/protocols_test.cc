// SPDX-License-Identifier: Apache-2.0
// Planted bugs of flags, waits and wrappers: found under every schedule, with their line, and nothing is said of the
// same kernels without them.
#include <string>

#include "planted.h"
#include "test_paths.h"

namespace flashinfer::emu {
namespace {

const Bug kBugs[] = {
    {"flag_not_tested", launch(1, 64, 512), "data race at shared+0x0"},
    {"flag_of_block_not_tested", launch(2, 32, 0), "global memory"},
    {"other_flag", launch(1, 64, 512), "data race at shared+0x0"},
    {"handed_on", launch(1, 96, 512), "data race at shared+0x0"},
    {"both_enter", launch(1, 64, 512), "data race at global memory"},
    {"failed_swap", launch(1, 64, 512), "data race at shared+0x0"},
    {"mixed_sizes", launch(1, 96, 0), "data race at global memory"},
    {"own_counter", launch(2, 32, 512), "global memory"},
    {"block_before", launch(2, 32, 0), "at the same time only in a cluster or a cooperative launch"},
    {"blocks_before", launch(4, 32, 0), "at the same time only in a cluster or a cooperative launch"},
    {"endless_votes", launch(1, 32, 0), "goes on and on: its block meets"},
    {"endless_barriers", launch(1, 64, 0), "goes on and on: its block meets"},
    {"endless_parameter", launch(1, 32, 0), "goes on and on: its block meets"},
    {"barrier_zero", launch(1, 128, 512), "barrier 0 for 64 threads"},
    {"barrier_for_none", launch(1, 128, 0), "barrier 3 for 0 threads"},
    {"half_warps", launch(1, 128, 0), "only 16 lanes of the warp"},
    {"arrival_left", launch(1, 64, 0), "ends with 32 of 64 threads at barrier 2"},
    {"arrive_without_wait", launch(2, 64, 0, 2), "without having waited at the cluster's barrier"},
    {"grid_counter_in_use", launch(2, 64, 0, 1, true), "with a counter of"},
    {"two_grid_counters", launch(2, 64, 0, 1, true), "counter"},
    {"apart_at_product", launch(1, 32, 0), "is at mma ("},
    {"apart_in_halves", launch(1, 32, 512), "is at ldmatrix ("},
    {"apart_at_barrier", launch(1, 64, 512), "is at sync_threads ("},
    {"apart_behind_shuffle", launch(1, 32, 0), "for warps that are together"},
    {"computed_address", launch(2, 128, 512, 2), "but the block has 512 bytes of shared memory"},
    {"copy_to_neighbour", launch(2, 128, 512, 2), "cp.async to of another block's shared memory"},
    {"matrix_of_neighbour", launch(2, 32, 512, 2), "ldmatrix of another block's shared memory"},
    {"matrix_of_global", launch(1, 32, 512), "ldmatrix of memory that is not shared"},
    {"more_than_a_copy", launch(1, 32, 512), "cp.async reads 20 bytes for 16"},
    {"load_of_shared", launch(1, 32, 512), "taken for one of global memory"},
    {"store_to_shared", launch(1, 32, 512), "taken for one of global memory"},
    {"taken_for_shared", launch(1, 32, 512), "taken for one of shared memory"},
    {"taken_for_global", launch(1, 32, 512), "taken for one of global memory"},
    {"lane_out_of_mask", launch(1, 32, 0), "a shuffle from a lane that is not in its mask"},
    {"lane_32", launch(1, 32, 0), "a shuffle from a lane that is not in its mask"},
    {"through_pointer", launch(1, 32, 0), "outside the variable that it belongs to"},
    {"byte_of_words", launch(1, 32, 0), "outside the variable that it belongs to"},
};

struct Protocol : Planted {
  Protocol() { module_file = FI_TEST_LIBRARY("libemu_protocols"), forget_output(); }
};

TEST(Protocols, EachBugIsFoundUnderEverySchedule) { expect_found<Protocol>(kBugs, "protocols.cc:"); }

TEST(Protocols, NothingIsSaidOfTheSameKernelsWithoutTheBug) {
  for (const Bug& b : kBugs)
    for (const uint64_t seed : kSeeds)
      EXPECT_EQ(Protocol().run((std::string("right_") + b.name).c_str(), b.launch, seed).error, "")
          << b.name << ", seed " << seed;
}

}  // namespace
}  // namespace flashinfer::emu
