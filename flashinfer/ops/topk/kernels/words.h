// SPDX-License-Identifier: Apache-2.0
// Scratch of one task of the top-k kernel. Freestanding.
#pragma once
#include "flashinfer/kernels/common/select_scratch.h"

namespace flashinfer::cpu {

inline constexpr int64_t kTopKRoom = 256;
/// Where the parts of the scratch for rows of up to n elements begin, in 4-byte words: 64-bit keys, space to rank few
/// of them, collected elements, the statistics.
struct TopKScratch {
  int64_t keys, room, values, positions, row, words;
};
constexpr TopKScratch top_k_scratch(int64_t n) {
  TopKScratch s{};
  ScratchWords at;
  s.keys = at.next(2 * n), s.room = at.next(2 * kTopKRoom);
  s.values = at.next(collect_words(n) / 2), s.positions = at.next(collect_words(n) / 2);
  s.row = at.next(stats_words(n));
  s.words = at.words;
  return s;
}

}  // namespace flashinfer::cpu
