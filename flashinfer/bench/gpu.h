// SPDX-License-Identifier: Apache-2.0
// Times GPU work enqueued on the current context's stream, with GPU events.
#pragma once
#include <functional>

#include "flashinfer/bench/machine.h"
#include "flashinfer/core/dtype.h"

namespace flashinfer::bench {

struct GpuTiming {
  double seconds = 0.5;  // time to measure, after two warm-up calls; at least 5 samples
  /// Cold: memory of twice the L2 cache's size is overwritten before each call, and each call has its own events.
  /// Otherwise a sample is the mean of as many consecutive calls as take 1 ms, whose inputs stay in the L2 cache if
  /// they fit.
  bool cold = false;
};
/// `call` enqueues on Context::current().stream and does not wait.
Samples time_on_gpu(int index, const GpuTiming& how, const std::function<void()>& call);

/// Bytes read and written a second by the driver's device-to-device copy, the best of `repeats`. Copies `bytes`, or a
/// sixteenth of the GPU's memory if that is less.
double gpu_copy_bandwidth(int index, int64_t bytes = int64_t{1} << 30, int repeats = 5);

}  // namespace flashinfer::bench
