// SPDX-License-Identifier: Apache-2.0
// Scratch sizes of the selection in kernels/cpu/block_stats.h and select.h, for launchers. All sizes are in 4-byte
// words.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"

namespace flashinfer::cpu {

inline constexpr int64_t kStatsBlock = 1024;   // elements behind one sum and one maximum
inline constexpr int64_t kStatsSpan = 4096;    // elements behind 64 maxima of a lane each
inline constexpr int64_t kStatsChunk = 16384;  // elements of one task's chunk when a row is split: whole spans

constexpr int64_t stats_blocks(int64_t n) { return ceil_div(n, kStatsBlock); }
constexpr int64_t stats_groups(int64_t n) { return ceil_div(n, kStatsSpan) * 64; }
constexpr int64_t stats_chunks(int64_t n) { return n > 0 ? ceil_div(n, kStatsChunk) : 1; }
/// Statistics of a row: a sum and a maximum for each block, then the maxima of groups.
constexpr int64_t stats_words(int64_t n) { return 2 * stats_blocks(n) + stats_groups(n); }
/// Values and positions of up to n collected elements; 64 more because compressed stores write a whole vector.
constexpr int64_t collect_words(int64_t n) { return 2 * (n + 64); }

/// Lays arrays out one after another; `words` is the size of all.
struct ScratchWords {
  int64_t words = 0;
  /// Where an array of n words begins.
  constexpr int64_t next(int64_t n) {
    words += n;
    return words - n;
  }
};

}  // namespace flashinfer::cpu
