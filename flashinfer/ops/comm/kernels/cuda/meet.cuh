// SPDX-License-Identifier: Apache-2.0
// Phases of kernels that wait for other ranks' GPUs. Blocks with the same index on all ranks meet, the others do not.
// Every launch of a rank counts two phases.
//
// A wait that fails (MeetReport) ends the rank's part in this and all later calls: its blocks write NaN where their
// results were to be, tell the others in their next phase, and write nothing that others read. Nothing is ended by
// force: the context lives, and the host says what happened.
#pragma once
#include "flashinfer/kernels/cuda/peers.h"
#include "flashinfer/ops/comm/kernels/cuda_params.h"

namespace flashinfer::cu {

/// A block's part in a launch. memory[r]: that of rank r; kRanks: how many there are at most, and threads of a block at
/// least.
template <int kRanks>
class Meeting {
 public:
  /// All threads; before the block's first barrier.
  FI_GLOBAL_FN Meeting(const void* const* memory, const MeetCudaParams& p)
      : memory_(memory), p_(p), phase_(p.words[block_x()]), ok_(true) {
    if constexpr (kRanks > 1) {
      ok_ = p.words[kFailedWord + turn()] == 0;
      if (thread_x() == 0) {
        *block_failed() = 0;
        if (!ok_) store_relaxed(failed_next(), 1u);
      }
    }
  }

  /// No wait has failed, in this launch of this block and in those before of any: its others' memory may be read and
  /// its own written. The same in all threads.
  FI_GLOBAL_FN bool ok() const { return ok_; }
  /// Of the two slots for inputs.
  FI_GLOBAL_FN int64_t slot() const { return turn(); }

  /// Tells the other ranks' blocks with this index that phase `n` (1, 2) of the call is written, and waits until they
  /// have told theirs.
  FI_GLOBAL_FN void meet(uint32_t n) {
    if constexpr (kRanks > 1) {
      sync_threads();
      const uint32_t r = thread_x();
      if (r < kRanks && static_cast<int>(r) != p_.rank && (p_.among >> r & 1) != 0) {
        const uint64_t call = ok_ ? p_.call : 0;
        store_release_system(flag_of(static_cast<int>(r), p_.rank), call << 32 | (phase_ + n));
        if (ok_ && !wait_for(r, phase_ + n)) {
          store_relaxed(block_failed(), 1u);
          store_relaxed(failed_next(), 1u);
        }
      }
      sync_threads();
      ok_ = ok_ && *block_failed() == 0;
    }
  }

  /// The end: all blocks of the rank have passed the call's phases, whether this launch has them or not.
  FI_GLOBAL_FN void end(uint32_t threads) const {
    sync_threads();
    if (thread_x() == 0) p_.words[block_x()] = phase_ + 2;
    if (block_x() == 0)
      for (uint32_t b = blocks_x() + thread_x(); b < kAllReduceBlocks; b += threads) p_.words[b] = phase_ + 2;
  }

 private:
  FI_GLOBAL_FN uint32_t turn() const { return phase_ / 2 % 2; }
  FI_GLOBAL_FN static uint32_t* block_failed() {
    return reinterpret_cast<uint32_t*>(shared() + kMeetSharedBytes - sizeof(uint32_t));
  }
  /// What the next launch reads; in this one, that another block has failed.
  FI_GLOBAL_FN uint32_t* failed_next() const { return p_.words + kFailedWord + (1 - turn()); }
  /// The flag in `at`'s memory that `from` sets.
  FI_GLOBAL_FN uint64_t* flag_of(int at, int from) const {
    auto* const flags = static_cast<uint64_t*>(const_cast<void*>(memory_[at]));
    return flags + (block_x() * 2 + turn()) * kAllReduceRanks + static_cast<uint32_t>(from);
  }

  /// False: why is in the report.
  FI_GLOBAL_FN bool wait_for(uint32_t rank, uint32_t epoch) const {
    uint64_t* const flag = flag_of(p_.rank, static_cast<int>(rank));
    WaitTime time;
    for (uint32_t round = 1;; ++round) {
      const uint64_t seen = load_acquire_system(flag);
      if (static_cast<int32_t>(static_cast<uint32_t>(seen) - epoch) >= 0) {
        const uint32_t call = static_cast<uint32_t>(seen >> 32);
        if (call == p_.call) return true;
        return report(call == 0 ? MeetFailure::kFailed : MeetFailure::kOther, rank, call);
      }
      if (round % 4096 != 0) continue;
      if (load_relaxed(failed_next()) != 0) return false;
      if (load_relaxed_system(&p_.report->stop) != 0) return report(MeetFailure::kStopped, rank, 0);
      if (time.is_over(p_.limit, round)) return report(MeetFailure::kLate, rank, 0);
    }
  }
  /// The first one counts.
  FI_GLOBAL_FN bool report(MeetFailure kind, uint32_t rank, uint32_t other) const {
    if (atomic_cas(p_.words + kReportedWord, 0u, 1u) != 0) return false;
    MeetReport& to = *p_.report;
    store_relaxed_system(&to.rank, rank);
    store_relaxed_system(&to.call, p_.call);
    store_relaxed_system(&to.other, other);
    store_release_system(&to.kind, static_cast<uint32_t>(kind));
    return false;
  }

  const void* const* memory_;
  const MeetCudaParams& p_;
  uint32_t phase_;
  bool ok_;
};

}  // namespace flashinfer::cu
