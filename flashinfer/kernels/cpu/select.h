// SPDX-License-Identifier: Apache-2.0
// Exact selection of the largest elements of a row with defined tie-breaking. An element becomes a 64-bit key: its
// value in the high half, in an order that integers compare (NaN lowest, -0 as +0), and its index in the low half. All
// keys differ and ties are decided by the index: the smaller one wins, or the larger one on request. Results do not
// depend on how a row is split.
#pragma once
#include "flashinfer/kernels/cpu/block_stats.h"

namespace flashinfer::cpu {

/// The k-th largest of n different keys (1 <= k <= n) by radix selection, a byte at a time from the top; stops once a
/// bucket holds one key.
inline uint64_t kth_key(const uint64_t* keys, int64_t n, int64_t k) {
  uint64_t prefix = 0, mask = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    int64_t count[256] = {};
    for (int64_t i = 0; i < n; ++i)
      if ((keys[i] & mask) == prefix) ++count[keys[i] >> shift & 255];
    int b = 255;
    while (count[b] < k) k -= count[b--];
    prefix |= static_cast<uint64_t>(b) << shift;
    mask |= uint64_t{255} << shift;
    if (count[b] > 1) continue;
    for (int64_t i = 0; i < n; ++i)
      if ((keys[i] & mask) == prefix) return keys[i];
  }
  return prefix;
}

inline void sort_descending(uint64_t* a, int64_t n) {  // heapsort: no allocation, no bad input
  const auto sift = [a](int64_t i, int64_t end) {
    const uint64_t v = a[i];
    for (int64_t c; (c = 2 * i + 1) < end; i = c) {
      if (c + 1 < end && a[c + 1] < a[c]) ++c;
      if (v <= a[c]) break;
      a[i] = a[c];
    }
    a[i] = v;
  };
  for (int64_t i = n / 2 - 1; i >= 0; --i) sift(i, n);
  for (int64_t end = n - 1; end > 0; --end) {
    const uint64_t v = a[0];
    a[0] = a[end];
    a[end] = v;
    sift(0, end);
  }
}

/// Moves the k largest of n keys to the start of `keys`: largest first, or in their present order. `room` has n words.
/// Up to 256 keys are ranked by counting, which vectorises: 60 keys take 0.2 us where radix passes and a heap took 2.
inline void keep_largest(uint64_t* keys, int64_t n, int64_t k, bool sorted, uint64_t* room) {
  constexpr int64_t kFew = 256;
  if (n <= kFew) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t key = keys[i];
      int64_t rank = 0;
      for (int64_t j = 0; j < n; ++j) rank += keys[j] > key;
      if (rank < k) room[sorted ? rank : kept++] = key;
    }
    for (int64_t i = 0; i < k; ++i) keys[i] = room[i];
    return;
  }
  if (k < n) {
    const uint64_t least = kth_key(keys, n, k);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i)
      if (keys[i] >= least) keys[kept++] = keys[i];
  }
  if (sorted) sort_descending(keys, k);
}

/// Index of the largest element; the first of equal ones, or the last when `large`. One pass computes maxima of blocks
/// of 4096, then only the block with the answer is searched (49152 logits: 48 KB more at most, all in L1).
template <class T>
FI_VEC_INLINE int64_t arg_max(const T* x, int64_t n, bool large) {
  constexpr int64_t kBlock = 4096;
  float best = -__builtin_inff();
  int64_t at = -1;
  for (int64_t b = 0; b < n; b += kBlock) {
    const float m = max_row(x + b, n - b < kBlock ? n - b : kBlock);
    if (m > best || (large && m == best)) {
      best = m;
      at = b;
    }
  }
  int64_t begin = 0, end = n;  // nothing above -inf: search everywhere
  if (best > -__builtin_inff()) begin = at, end = n - at < kBlock ? n : at + kBlock;
  int64_t found = -1, i = begin;
  const Vec want = splat(best);
  for (; i + Vec::kLanes <= end; i += Vec::kLanes) {
    if (!any(load(x + i) == want)) continue;
    for (int j = 0; j < Vec::kLanes; ++j) {
      if (to_f32(x[i + j]) != best) continue;
      found = i + j;
      if (!large) return found;
    }
  }
  for (; i < end; ++i) {
    if (to_f32(x[i]) != best) continue;
    found = i;
    if (!large) return found;
  }
  return found >= 0 ? found : large ? n - 1 : 0;  // a row of NaN
}

}  // namespace flashinfer::cpu
