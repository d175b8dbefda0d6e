// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/bench/machine.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include "flashinfer/bench/kernels/peak_params.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/int_math.h"
#include "flashinfer/jit/jit.h"
#include "flashinfer/op/observer.h"

namespace flashinfer::bench {
namespace {

inline constexpr jit::Kernel kPeak{"flashinfer/bench/kernels/cpu/peak.h", "flashinfer::cpu::peak",
                                   "flashinfer::PeakParams"};

double now() { return static_cast<double>(op::detail::monotonic_ns()) * 1e-9; }

template <class F>
double best_seconds(int repeats, F&& f) {
  double best = 1e30;
  for (int i = 0; i < repeats + 1; ++i) {  // the first run touches pages and wakes threads
    const double t = now();
    f();
    if (i) best = std::min(best, now() - t);
  }
  return best;
}

double peak(PeakConfig::Kind kind) {
  const auto& kernel = jit::cpu_kernel<kPeak>(PeakConfig{kind});
  if (!kernel.fn) return 0;
  const int threads = Context::current().executor.threads;
  const Tensor sink = Tensor::zeros({threads * 16}, DType::kF32);
  PeakParams p{.data = nullptr, .bytes_per_task = 0, .iterations = 2'000'000, .sink = sink.data_as<float>()};
  const double s = best_seconds(3, [&] { parallel_for(threads, [&](int64_t t) { kernel.fn(&p, t); }); });
  // Lane counts are not visible here: use the widest vector of the kernels' host build.
#if defined(__x86_64__)
  const double lanes = __builtin_cpu_supports("avx512bw") ? 16 : __builtin_cpu_supports("avx2") ? 8 : 4;
#else
  const double lanes = 4;
#endif
  const double flops = (kind == PeakConfig::kDot ? 4 : 2) * 12.0 * lanes * static_cast<double>(p.iterations) * threads;
  return flops / s;
}

}  // namespace

double Samples::quantile(double q) const {
  if (seconds.empty()) return 0;
  const double at = q * static_cast<double>(seconds.size() - 1);
  const size_t i = static_cast<size_t>(at);
  const double f = at - static_cast<double>(i);
  return i + 1 < seconds.size() ? seconds[i] * (1 - f) + seconds[i + 1] * f : seconds[i];
}

Copier::Copier(int64_t bytes) : from_(Tensor::zeros({bytes}, DType::kU8)), to_(Tensor::zeros({bytes}, DType::kU8)) {}

double Copier::seconds() {
  const int threads = Context::current().executor.threads;
  const int64_t bytes = from_.nbytes(), part = ceil_div(bytes, int64_t{threads});
  const double t = now();
  parallel_for(threads, [&](int64_t i) {
    const int64_t begin = std::min(bytes, i * part), end = std::min(bytes, begin + part);
    std::memcpy(to_.data_as<char>() + begin, from_.data_as<char>() + begin, static_cast<size_t>(end - begin));
  });
  return now() - t;
}

double copy_bandwidth(int64_t bytes, int repeats) {
  Copier copier(bytes);
  copier.seconds();  // the first run touches pages and wakes threads
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) best = std::min(best, copier.seconds());
  return copier.moved() / best;
}

double read_bandwidth(int64_t bytes, int repeats) {
  const auto& kernel = jit::cpu_kernel<kPeak>(PeakConfig{PeakConfig::kRead});
  if (!kernel.fn) return 0;
  const int threads = Context::current().executor.threads;
  const Tensor a = Tensor::zeros({bytes}, DType::kU8), sink = Tensor::zeros({threads * 16}, DType::kF32);
  const int64_t part = bytes / threads / 1024 * 1024;
  PeakParams p{.data = a.data_as<char>(), .bytes_per_task = part, .iterations = 0, .sink = sink.data_as<float>()};
  const double s = best_seconds(repeats, [&] { parallel_for(threads, [&](int64_t t) { kernel.fn(&p, t); }); });
  return static_cast<double>(part * threads) / s;
}

double fma_peak() { return peak(PeakConfig::kFma); }
double dot_peak() { return peak(PeakConfig::kDot); }

int64_t last_level_cache() {
  for (int i = 4; i >= 0; --i) {
    std::ifstream f("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/size");
    int64_t n = 0;
    char unit = 0;
    if (f >> n >> unit) return n * (unit == 'M' ? 1 << 20 : 1 << 10);
  }
  return 32 << 20;
}

}  // namespace flashinfer::bench
