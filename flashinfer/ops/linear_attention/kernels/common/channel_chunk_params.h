// SPDX-License-Identifier: Apache-2.0
// Memory of a head in common/channel_chunk.h.
#pragma once
#include <stdint.h>

#include "flashinfer/core/int_math.h"

namespace flashinfer {

/// Tokens of a chunk; the end of a sequence, of fewer tokens, goes through the rows of the state one by one.
inline constexpr int64_t kChannelChunk = 16;

/// Floats: three states, and what a chunk needs.
inline int64_t channel_chunk_floats(int64_t width, int64_t rows) {
  const int64_t k = round_up(width, 32), v = round_up(rows, 32), c = kChannelChunk;
  return 3 * k * v + k + c * (4 * k + 2 * v) + c * (3 * k + 2 * v) + 2 * c * c;
}

}  // namespace flashinfer
