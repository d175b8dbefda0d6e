// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/bench/gpu.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/cuda/memory.h"
#include "flashinfer/op/observer.h"

namespace flashinfer::bench {
namespace {

constexpr size_t kLeastSamples = 5, kMostSamples = 2000;

/// Two events around `work` on the current stream; the time is available once the second is done.
struct Span {
  cuda::Event start, end;
  explicit Span(int index) : start(index, true), end(index, true) {}
  template <class F>
  void around(F&& work) {
    void* const stream = Context::current().stream;
    start.record(stream);
    work();
    end.record(stream);
  }
  double seconds() const {
    end.wait();
    return end.seconds_since(start);
  }
};

}  // namespace

Samples time_on_gpu(int index, const GpuTiming& how, const std::function<void()>& call) {
  void* const stream = Context::current().stream;
  Tensor flush;
  const Device device{DeviceType::kCUDA, static_cast<int16_t>(index)};
  if (how.cold)
    flush = Tensor::empty({2 * std::max<int64_t>(cuda::device_info(index).l2_bytes, 1 << 20)}, DType::kU8, device);
  call(), call();
  Span once(index);
  once.around(call);
  const double estimate = std::max(once.seconds(), 1e-6);
  // Cold calls follow the overwriting, warm ones each other: the host runs ahead of the GPU, so its own time does not
  // count.
  const int calls = how.cold ? 1 : static_cast<int>(std::clamp(1e-3 / estimate, 1.0, 1000.0));
  constexpr size_t kInFlight = 8;
  std::deque<Span> flying;
  Samples samples;
  const auto take = [&] {
    samples.seconds.push_back(flying.front().seconds() / calls);
    flying.pop_front();
  };
  const int64_t begin = op::detail::monotonic_ns(), budget = static_cast<int64_t>(how.seconds * 1e9);
  while (samples.seconds.size() + flying.size() < kLeastSamples ||
         (op::detail::monotonic_ns() - begin < budget && samples.seconds.size() + flying.size() < kMostSamples)) {
    if (how.cold) cuda::fill(flush.data(), 0x5a, static_cast<size_t>(flush.nbytes()), index, stream);
    flying.emplace_back(index).around([&] {
      for (int i = 0; i < calls; ++i) call();
    });
    if (flying.size() == kInFlight) take();
  }
  while (!flying.empty()) take();
  std::sort(samples.seconds.begin(), samples.seconds.end());
  return samples;
}

double gpu_copy_bandwidth(int index, int64_t bytes, int repeats) {
  bytes = std::min(bytes, static_cast<int64_t>(cuda::device_info(index).memory / 16));
  const Device device{DeviceType::kCUDA, static_cast<int16_t>(index)};
  const Tensor from = Tensor::empty({bytes}, DType::kU8, device), to = Tensor::empty({bytes}, DType::kU8, device);
  void* const stream = Context::current().stream;
  cuda::fill(from.data(), 0x5a, static_cast<size_t>(bytes), index, stream);
  const auto copy = [&] { cuda::copy(to.data(), from.data(), static_cast<size_t>(bytes), index, stream); };
  copy();
  double best = HUGE_VAL;
  for (int i = 0; i < repeats; ++i) {
    Span span(index);
    span.around(copy);
    best = std::min(best, span.seconds());
  }
  return 2.0 * static_cast<double>(bytes) / best;
}

}  // namespace flashinfer::bench
