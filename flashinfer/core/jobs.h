// SPDX-License-Identifier: Apache-2.0
// Long, independent jobs (compilers, replayed calls) on threads of their own; for kernels' tasks there is the executor
// of the context.
#pragma once
#include <cstdint>
#include <functional>

#pragma GCC visibility push(default)

namespace flashinfer {

/// Runs `job(i)` for i in [0, n), begun in this order, at most `jobs` at a time (0: MAX_JOBS, else one per core). The
/// calling thread is one of them. When all have ended, the first error of any is thrown. `around`, if given, is called
/// in each thread with the loop that takes jobs, and must call it once.
void for_each_job(int64_t n, int jobs, const std::function<void(int64_t i)>& job,
                  const std::function<void(const std::function<void()>& loop)>& around = {});

}  // namespace flashinfer

#pragma GCC visibility pop
