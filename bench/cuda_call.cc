// SPDX-License-Identifier: Apache-2.0
// What a call on a GPU costs the host beside the driver's launch: the bare cuLaunchKernelEx, the same through core/cuda, and a whole rmsnorm
// (check, selection, two lookups of the kernel, launch). Without a GPU, FLASHINFER_LIBCUDA may name the driver of tests/cuda.
#include <benchmark/benchmark.h>

#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/module.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/jit/nvrtc.h"

namespace flashinfer {
namespace {

constexpr int kBeforeWait = 1000;  // launches that a driver keeps

struct Gpu {
  cuda::Stream stream{0};
  Context context = Context::current();
  Tensor x, w, y;
  cuda::Function empty;
  Gpu() {
    context.stream = stream.get();
    const ContextScope scope(context);
    x = Tensor::zeros({4, 64}, DType::kBF16, {DeviceType::kCUDA, 0});
    w = Tensor::zeros({64}, DType::kBF16, {DeviceType::kCUDA, 0});
    y = Tensor::zeros({4, 64}, DType::kBF16, {DeviceType::kCUDA, 0});
    const cuda::DeviceInfo& i = cuda::device_info(0);
    const std::string arch = str("sm_", i.major, i.minor);
    empty = cuda::load(jit::nvrtc_compile("extern \"C\" __global__ void flashinfer_kernel(long p) {}", arch), "flashinfer_kernel", 0);
  }
};
Gpu* gpu() {
  static Gpu* const g = cuda::device_refusal(0).empty() ? new Gpu : nullptr;
  return g;
}

template <class F>
void measure(benchmark::State& state, F launch) {
  Gpu* g = gpu();
  if (g == nullptr) return state.SkipWithError(cuda::device_refusal(0).c_str());
  const ContextScope scope(g->context);
  launch(*g);  // compiles
  int n = 0;
  for (auto _ : state) {
    launch(*g);
    if (++n % kBeforeWait != 0) continue;
    state.PauseTiming();
    cuda::synchronize(0, g->stream.get());
    state.ResumeTiming();
  }
  cuda::synchronize(0, g->stream.get());
}

void BareLaunch(benchmark::State& state) {
  measure(state, [](Gpu& g) {
    static const cuda::Current current(0);  // the context stays current
    long p = 0;
    void* arguments[] = {&p};
    const cuda::LaunchConfig c{{1, 1, 1}, {128, 1, 1}, 0, g.stream.get(), nullptr, 0};
    cuda::check(cuda::api().cuLaunchKernelEx(&c, g.empty.handle, arguments, nullptr), "cuLaunchKernelEx");
  });
}
void LaunchOfOurs(benchmark::State& state) {
  measure(state, [](Gpu& g) {
    const long p = 0;
    cuda::Launch l;
    l.block[0] = 128;
    cuda::launch(g.empty, &p, l, g.stream.get(), "empty");
  });
}
void RmsNorm4x64(benchmark::State& state) {
  measure(state, [](Gpu& g) { benchmark::DoNotOptimize(rmsnorm({.input = g.x, .weight = g.w, .out = g.y.view()})); });
}
BENCHMARK(BareLaunch)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(LaunchOfOurs)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(RmsNorm4x64)->Repetitions(5)->ReportAggregatesOnly();

}  // namespace
}  // namespace flashinfer

BENCHMARK_MAIN();
