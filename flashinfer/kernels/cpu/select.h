// SPDX-License-Identifier: Apache-2.0
// Exact selection of the largest elements of a row. An element becomes a 64-bit key, its value in the high half in an
// order that integers compare (NaN lowest, -0 as +0) and its index in the low half, so all keys differ and ties are
// settled by the index: the smaller one wins, or the larger one when asked. Results never depend on how a row is cut.
#pragma once
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/kernels/cpu/select_scratch.h"

namespace flashinfer::cpu {

inline uint32_t value_key(float v) {
  if (v != v) return 0;
  const uint32_t u = scalar_detail::bits(v + 0.0f);
  return u >> 31 ? ~u : u | 0x80000000u;
}
inline float key_value(uint32_t k) {
  return k == 0 ? __builtin_nanf("") : scalar_detail::from_bits(k >> 31 ? k & 0x7fffffffu : ~k);
}
inline uint64_t element_key(float v, int64_t index, bool large) {
  const uint32_t i = static_cast<uint32_t>(index);
  return uint64_t{value_key(v)} << 32 | (large ? i : ~i);
}
inline int64_t key_index(uint64_t key, bool large) {
  const uint32_t i = static_cast<uint32_t>(key);
  return large ? i : static_cast<uint32_t>(~i);
}

/// The k-th largest of n keys (1 <= k <= n), a byte at a time from the top; stops once a bucket holds one key.
template <class U>
inline U kth_key(const U* keys, int64_t n, int64_t k) {
  U prefix = 0, mask = 0;
  for (int shift = 8 * static_cast<int>(sizeof(U)) - 8; shift >= 0; shift -= 8) {
    int64_t count[256] = {};
    for (int64_t i = 0; i < n; ++i)
      if ((keys[i] & mask) == prefix) ++count[keys[i] >> shift & 255];
    int b = 255;
    while (count[b] < k) k -= count[b--];
    prefix |= static_cast<U>(b) << shift;
    mask |= static_cast<U>(255) << shift;
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

/// Index of the largest element; the first of equal ones, or the last when `large`. One pass: maxima of blocks of 4096,
/// then a look into the one block that holds the answer (49152 logits: 48 KB more at most, all in L1).
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
  int64_t begin = 0, end = n;  // nothing above -inf: look everywhere
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

/// A value that at least k elements reach: the k-th largest of the maxima of groups (a lane over 64 steps). -inf when
/// there are too few groups for the bound to be of use.
template <class T>
FI_VEC_INLINE float reached_by(const T* x, int64_t n, int64_t k, uint32_t* maxima) {
  constexpr int64_t kSpan = kSelectGroup * kRowLanes;
  static_assert(kRowLanes == kSelectLanes);
  const int64_t groups = n / kSpan * kRowLanes;
  if (k > groups / 2) return -__builtin_inff();
  for (int64_t b = 0; b < groups / kRowLanes; ++b) {
    const T* p = x + b * kSpan;
    for (int j = 0; j < kRowVecs; ++j) {
      Vec m = splat(-__builtin_inff());
      for (int64_t i = 0; i < kSelectGroup; ++i) m = max(load(p + i * kRowLanes + j * Vec::kLanes), m);
      float lane[Vec::kLanes];
      store(lane, m);
      for (int l = 0; l < Vec::kLanes; ++l) *maxima++ = value_key(lane[l]);
    }
  }
  return key_value(kth_key(maxima - groups, groups, k));
}

/// The keys of the k largest elements of x[0..n), in order of position; `scratch` has select_scratch(n) words and holds
/// them at its start. 1 <= k <= n.
template <class T>
FI_VEC_INLINE void top_keys(const T* x, int64_t n, int64_t k, bool large, uint64_t* scratch) {
  const float bound = reached_by(x, n, k, reinterpret_cast<uint32_t*>(scratch + n));
  int64_t found = 0;
  if (bound > -__builtin_inff()) {
    const Vec low = splat(bound);
    int64_t i = 0;
    for (; i + Vec::kLanes <= n; i += Vec::kLanes) {
      if (!any(low <= load(x + i))) continue;
      for (int j = 0; j < Vec::kLanes; ++j)
        if (to_f32(x[i + j]) >= bound) scratch[found++] = element_key(to_f32(x[i + j]), i + j, large);
    }
    for (; i < n; ++i)
      if (to_f32(x[i]) >= bound) scratch[found++] = element_key(to_f32(x[i]), i, large);
  } else {
    for (int64_t i = 0; i < n; ++i) scratch[i] = element_key(to_f32(x[i]), i, large);
    found = n;
  }
  if (found == k) return;
  const uint64_t least = kth_key(scratch, found, k);
  int64_t kept = 0;
  for (int64_t i = 0; i < found; ++i)
    if (scratch[i] >= least) scratch[kept++] = scratch[i];
}

}  // namespace flashinfer::cpu
