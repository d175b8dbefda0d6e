// SPDX-License-Identifier: Apache-2.0
// Constants and sizes shared by the decode kernel and its scheduler. Freestanding.
#pragma once
#include "flashinfer/ops/attention/kernels/params.h"

namespace flashinfer::attention {

/// Keys of a block. With 32 instead of 64, a block and the next (256 KB of 8 heads) leave half of L2 free: 0.86 instead
/// of 0.82 of the bandwidth of a plain page sum at G = 1, 0.82 instead of 0.75 at G = 4, 0.74 instead of 0.67 at G = 8.
inline constexpr int kDecodeKeys = 32;
static_assert(kDecodeKeys <= kBlockKeys);
/// States are stored and folded every so many keys, whatever the threads. 512 keys of 8 heads of 128 in bf16 are 2 MB;
/// the states of their 32 query heads (D + 2 floats each) are 17 KB.
inline constexpr int kDecodeChunkKeys = 512;
/// Rows of a work item, all its KV heads together: their f32 outputs (64 KB at D 128) stay in L2.
inline constexpr int kDecodeRows = 128;
/// Requests with more query tokens use the tile kernel, which packs a block of K once for all of them.
inline constexpr int kMaxDecodeQueryTokens = 8;
/// K and V of one block and all heads of a work item: this block and the next fit in L2 together.
inline constexpr int64_t kDecodeBlockBytes = 128 * 1024;

/// Widths of the passes over the G heads of a token: 16 as long as possible, then whatever covers the rest with the
/// fewest dot products (a pass of 8 costs eight passes of one).
constexpr int pass_width(int64_t left) {
  return left > 12 ? 16 : left > 5 ? 8 : left == 5 ? 4 : left > 2 ? 4 : static_cast<int>(left);
}
/// Rows for the G heads of a token when every pass is full.
constexpr int64_t pass_rows(int64_t group) {
  int64_t rows = 0;
  for (int64_t left = group; left > 0;) {
    const int width = pass_width(left);
    rows += width, left -= width;
  }
  return rows;
}

}  // namespace flashinfer::attention
