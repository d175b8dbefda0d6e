// SPDX-License-Identifier: Apache-2.0
// How much memory the selection of kernels/cpu/select.h needs, for launchers.
#pragma once
#include <stdint.h>

namespace flashinfer::cpu {

inline constexpr int64_t kSelectGroup = 64;  // elements behind one maximum
inline constexpr int64_t kSelectLanes = 64;  // groups that run side by side
/// 64-bit words for a row of n elements: a key each, and the maxima of the groups.
inline int64_t select_scratch(int64_t n) { return n + (n / (kSelectGroup * kSelectLanes) + 1) * kSelectLanes; }

}  // namespace flashinfer::cpu
