// SPDX-License-Identifier: Apache-2.0
// Pieces of a call with parameters of their own, e.g. its groups, in one parallel loop.
#pragma once
#include <algorithm>
#include <iterator>
#include <span>

#include "flashinfer/core/int_math.h"
#include "flashinfer/core/ordered_ranges.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/ops/gemm/cpu/launch.h"

namespace flashinfer::gemm {

/// Tasks [first, first of the next) are its.
template <class Params>
struct Part {
  Params params;
  int64_t first;
};
/// fn(params, task of the part) for all tasks, `at_once` a time; in ordered ranges where reading a weight is what takes
/// time.
template <class Params>
void run_parts(jit::CpuFn fn, std::span<const Part<Params>> parts, int64_t tasks, int64_t at_once,
               bool ordered = false) {
  if (tasks == 0) return;
  const auto some = [&](int64_t i) {
    int64_t t = i * at_once;
    const int64_t end = std::min(tasks, t + at_once);
    auto part = std::prev(
        std::upper_bound(parts.begin(), parts.end(), t, [](int64_t x, const auto& p) { return x < p.first; }));
    for (; t < end; ++t) {
      while (part + 1 != parts.end() && (part + 1)->first <= t) ++part;
      fn(&part->params, t - part->first);
    }
  };
  const int64_t pieces = ceil_div(tasks, at_once);
  if (ordered)
    parallel_for_ordered(pieces, some);
  else
    parallel_for(pieces, some);
}

}  // namespace flashinfer::gemm
