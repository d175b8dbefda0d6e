// SPDX-License-Identifier: Apache-2.0
// Two recordings of what should be the same program, call by call.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "flashinfer/replay/compare.h"

#pragma GCC visibility push(default)

namespace flashinfer::replay {

/// Calls of two recordings by their index, -1 where only the other recording has one.
struct Pair {
  int64_t first = -1, second = -1;
};
/// Pairs calls of the same function in order. Where the recordings differ it goes on at the nearest place, at most 200
/// calls away in both together, from which they agree again; calls before it are in one recording only.
std::vector<Pair> align(const std::vector<std::string>& first, const std::vector<std::string>& second);

enum class Agreement : uint8_t {
  kEqual,     // the recorded bits
  kClose,     // within the tolerances
  kDiffers,   // a tensor or a plain value beyond them, or one that only one recording has
  kNotKnown,  // nothing was recorded, or a file cannot be read
};

struct CallDiff {
  Agreement inputs = Agreement::kNotKnown, outputs = Agreement::kNotKnown;
  std::vector<Difference> differences;  // inputs first
  double max_abs = 0, max_rel = 0;      // of all tensors, also of those within the tolerances
  std::string note;                     // why something is not known, or that only one of the calls returned
};
/// Compares tensors by their recorded checksums, and where these differ by content, as replay does. Never throws.
CallDiff compare_calls(const Session& first, const Call& a, const Session& second, const Call& b,
                       const Tolerances& tolerances);

}  // namespace flashinfer::replay

#pragma GCC visibility pop
