// SPDX-License-Identifier: Apache-2.0
// On the CPU: a task is some rows. Vec (kernels/cpu/vec.h) is 4, 8 or 16 floats, by the instruction set that the kernel
// is compiled for; reductions have one order for all of them (kernels/cpu/lanes.h), so that results do not depend on
// it, on the other rows or on threads.
#pragma once
#include "flashinfer/kernels/cpu/lanes.h"
#include "flashinfer/ops/skeleton/kernels/params.h"

namespace flashinfer::cpu {

/// The largest |x| of a row.
template <class T>
FI_VEC_INLINE float skeleton_largest(const T* x, int64_t d) {
  return reduce_max(fold_row(
      d, zero(), [&](Vec a, int64_t i) { return max(abs(load(x + i)), a); },
      [&](Vec a, int64_t i, int64_t n) { return max(abs(load_n(x + i, n)), a); },  // lanes from n on are zeros
      [](Vec a, Vec b) { return max(a, b); }));
}

template <SkeletonConfig C>
void skeleton(const SkeletonParams& p, int64_t task) {
  using T = scalar_of_t<C.dtype>;
  const int64_t begin = task * p.rows_per_task;
  const int64_t end = begin + p.rows_per_task < p.rows ? begin + p.rows_per_task : p.rows;
  for (int64_t r = begin; r < end; ++r) {
    const T* x = static_cast<const T*>(p.input) + r * p.input_stride;
    const float largest = skeleton_largest(x, p.d);
    const Vec scale = splat(largest > 0 ? p.peak / largest : 0.0f);
    write_row(
        static_cast<T*>(p.out) + r * p.out_stride, p.d, [&](int64_t i) { return load(x + i) * scale; },
        [&](int64_t i, int64_t n) { return load_n(x + i, n) * scale; });
  }
}

}  // namespace flashinfer::cpu
