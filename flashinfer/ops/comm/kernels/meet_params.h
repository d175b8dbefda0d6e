// SPDX-License-Identifier: Apache-2.0
// How launches on the GPUs of several ranks meet: what a rank's memory begins with, and what its host learns of a call
// that fails. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/ops/comm/kernels/params.h"

namespace flashinfer {

/// Blocks of a launch, at most: each has its flags.
inline constexpr int kAllReduceBlocks = 64;
/// A rank's memory begins with flags, u64 [kAllReduceBlocks][2][kAllReduceRanks]: below, how many phases the block of
/// that rank has told; above, MeetCudaParams::call of the launch, or 0: that rank has failed. Calls use the two in
/// turn, so that what a rank told of a call stands until all have seen it. Then two slots for its input, used in turn
/// likewise, and one for the sums of its part of the rows.
inline constexpr int64_t kAllReduceFlagBytes = int64_t{kAllReduceBlocks} * 2 * kAllReduceRanks * 8;
inline constexpr int kAllReduceInputSlots = 2, kAllReduceGpuSlots = 3;
/// Of this rank alone, u32: phases that each block has passed; by the turn of a call, whether one before it has failed;
/// whether a block has reported that.
inline constexpr int kFailedWord = kAllReduceBlocks, kReportedWord = kAllReduceBlocks + 2,
                     kPhaseWords = kAllReduceBlocks + 3;
/// Bytes of shared memory that launches which meet begin with. The last word: whether the block has failed.
inline constexpr unsigned kMeetSharedBytes = 128;

enum class MeetFailure : uint32_t {
  kNone,
  kLate,     // `rank` has not come within the limit
  kOther,    // `rank` has made the call `other`
  kFailed,   // `rank` has failed before
  kStopped,  // the host said so
};
/// In host memory, which the GPU accesses. The GPU writes it once, `kind` last.
struct MeetReport {
  uint32_t stop;  // of the host: waits end
  uint32_t kind;  // MeetFailure
  uint32_t rank, call, other;
};

struct MeetCudaParams {
  uint32_t* words;     // [kPhaseWords]
  MeetReport* report;  // null with one rank
  uint64_t limit;      // nanoseconds that a block waits for another rank
  uint64_t among;      // bit r: rank r takes part
  uint32_t call;       // of what all ranks must pass alike; not 0
  int rank;
};

}  // namespace flashinfer
