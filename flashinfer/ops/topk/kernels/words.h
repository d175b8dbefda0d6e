// SPDX-License-Identifier: Apache-2.0
// Scratch size of one task of the top-k kernel. Freestanding.
#pragma once
#include "flashinfer/kernels/common/select_scratch.h"

namespace flashinfer::cpu {

inline constexpr int64_t kTopKRoom = 256;
/// 4-byte words for rows of up to n elements: keys, space to rank few of them, collected elements, the statistics.
inline int64_t top_k_words(int64_t n) { return 2 * (n + kTopKRoom) + collect_words(n) + stats_words(n); }

}  // namespace flashinfer::cpu
