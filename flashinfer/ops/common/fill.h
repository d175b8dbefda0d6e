// SPDX-License-Identifier: Apache-2.0
// Numbers for the tensors of cases (op::Fill): element i depends on (seed, i) alone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/core/tensor.h"

namespace flashinfer::ops {

inline uint64_t mix(uint64_t x) {  // splitmix64's finaliser
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
double uniform(uint64_t seed, int64_t i);  // in (0, 1)
double normal(uint64_t seed, int64_t i);

/// Calls f(linear index, offset in elements) for every element, rows in parallel.
template <class F>
void each(const TensorView& t, F&& f) {
  const int64_t n = t.numel();
  if (!n) return;
  const int64_t d = t.rank() ? t.size(-1) : 1, rows = n / d, block = std::max<int64_t>(1, 65536 / d);
  parallel_for(ceil_div(rows, block), [&](int64_t task) {
    for (int64_t r = task * block; r < std::min(rows, (task + 1) * block); ++r) {
      int64_t rest = r, offset = 0;
      for (int a = t.rank() - 2; a >= 0; --a) {
        offset += rest % t.size(a) * t.stride(a);
        rest /= t.size(a);
      }
      for (int64_t i = 0; i < d; ++i) f(r * d + i, offset + (t.rank() ? i * t.stride(-1) : 0));
    }
  });
}

}  // namespace flashinfer::ops
