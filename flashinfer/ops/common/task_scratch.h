// SPDX-License-Identifier: Apache-2.0
// Row kernels whose tasks need memory of their own: each runs with a copy of the parameters that points to its
// thread's.
#pragma once
#include "flashinfer/core/int_math.h"
#include "flashinfer/ops/common/rows.h"
#include "flashinfer/ops/common/thread_scratch.h"

namespace flashinfer::ops {

/// fn(&params, task) for all tasks of `per_task` rows, with `words` 4-byte words at params.scratch.
template <class Params>
void run_rows_with_scratch(jit::CpuFn fn, const Params& params, int64_t rows, int64_t per_task, int64_t words) {
  const int64_t tasks = ceil_div(rows, per_task);
  const auto run = [&](int64_t task) {
    Params p = params;
    p.scratch = static_cast<decltype(p.scratch)>(thread_scratch(4 * words));
    fn(&p, task);
  };
  if (tasks == 1) return run(0);
  if (tasks > 1) parallel_for(tasks, run);
}

/// Whether rows of `bytes` each are too few for the threads, so that each is worth cutting.
inline bool worth_splitting(int64_t rows, int64_t bytes) {
  const int64_t threads = Context::current().executor.threads;
  return threads > 1 && rows > 0 && rows < 2 * threads && rows % threads != 0 && bytes >= 2 * kMinTaskBytes;
}

}  // namespace flashinfer::ops
