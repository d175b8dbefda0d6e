// SPDX-License-Identifier: Apache-2.0
// Times what a GPU does, by its own events: what is enqueued on the current context's stream.
#pragma once
#include <functional>

#include "flashinfer/bench/machine.h"
#include "flashinfer/core/dtype.h"

namespace flashinfer::bench {

struct GpuTiming {
  double seconds = 0.5;  // spent measuring, after two calls that warm up; at least 5 samples
  /// Before each call memory of twice the L2 cache is overwritten, and each call has events of its own. Otherwise a
  /// sample is the mean of as many calls in a row as take 1 ms, whose inputs stay in the L2 cache where they fit.
  bool cold = false;
};
/// `call` enqueues on Context::current().stream and waits for nothing.
Samples time_on_gpu(int index, const GpuTiming& how, const std::function<void()>& call);

/// Bytes read and written a second by the driver's copy from device to device, the best of `repeats`. Of `bytes`, or of
/// a sixteenth of the GPU's memory when that is less.
double gpu_copy_bandwidth(int index, int64_t bytes = int64_t{1} << 30, int repeats = 5);

}  // namespace flashinfer::bench
