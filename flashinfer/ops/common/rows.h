// SPDX-License-Identifier: Apache-2.0
// How row-wise kernels are launched: rows are grouped into tasks large enough to be worth a thread.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/op/prepared.h"

namespace flashinfer::ops {

/// Waking a spinning thread costs 1.1-1.5 us, in which one core moves about 32 KB: a smaller call runs inline in the
/// caller. Larger tasks stop paying at 256 KB.
inline constexpr int64_t kMinTaskBytes = 32768, kMaxTaskBytes = 262144;

/// `row_bytes` is what a row reads and writes. The grouping never changes results: rows are computed alone.
inline int64_t rows_per_task(int64_t rows, int64_t row_bytes) {
  row_bytes = std::max<int64_t>(row_bytes, 1);
  const int64_t share = rows / (16 * Context::current().executor.threads);
  return std::max<int64_t>(1, std::clamp(share, kMinTaskBytes / row_bytes, kMaxTaskBytes / row_bytes));
}

/// The same for a number of rows that is not known: the smallest task worth a thread.
inline int64_t rows_per_task(int64_t row_bytes) { return rows_per_task(0, row_bytes); }

/// fn(row) for all rows, `per_task` at a time.
template <class F>
void for_rows(int64_t rows, int64_t per_task, const F& fn) {
  const int64_t tasks = ceil_div(rows, per_task);
  auto task = [&](int64_t i) {
    for (int64_t r = i * per_task; r < std::min(rows, (i + 1) * per_task); ++r) fn(r);
  };
  if (tasks == 1) return task(0);
  if (tasks > 1) parallel_for(tasks, task);
}

/// fn(&params, task) for all tasks of `per_task` rows.
template <class Params>
void run_rows(jit::CpuFn fn, const Params& params, int64_t rows, int64_t per_task) {
  const int64_t tasks = ceil_div(rows, per_task);
  if (tasks == 1) return fn(&params, 0);
  if (tasks > 1) parallel_for(tasks, [&](int64_t task) { fn(&params, task); });
}

/// launch(fn), with the CPU kernel K for `config`, when there is one: for launches that need more than Params (scratch,
/// several passes).
template <const jit::Kernel& K, class Config, class F>
op::Prepared with_kernel(const Config& config, F launch) {
  const jit::Loaded& kernel = jit::cpu_kernel<K>(config);
  if (!kernel.fn) return op::Unsupported{kernel.why_not};
  return [fn = kernel.fn, launch = std::move(launch)]() mutable { launch(fn); };
}

/// A launch of the CPU kernel K for `config` over all tasks of `per_task` rows.
template <const jit::Kernel& K, class Config, class Params>
op::Prepared prepare_rows(const Config& config, const Params& params, int64_t rows, int64_t per_task) {
  const jit::Loaded& kernel = jit::cpu_kernel<K>(config);
  if (!kernel.fn) return op::Unsupported{kernel.why_not};
  return [fn = kernel.fn, params, rows, per_task] { run_rows(fn, params, rows, per_task); };
}

}  // namespace flashinfer::ops
