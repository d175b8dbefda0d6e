// SPDX-License-Identifier: Apache-2.0
// What a call costs beside its kernel: schema check, selection, launch of an empty kernel, one thread. The second row
// is the same without the observer's load ("recorder compiled out"); the third looks up a loaded kernel in the JIT.
// OnEmu: an empty CUDA kernel on the emulator; the call's time less the launch's is what a launch on a GPU costs beyond
// the driver's.
#include <benchmark/benchmark.h>

#include <vector>

#include "bench/empty_params.h"
#include "flashinfer/flashinfer.h"
#include "flashinfer/op/call.h"
#include "flashinfer/ops/common/cuda.h"

namespace flashinfer {
namespace {

struct Empty {
  TensorView input, weight;
  double eps = 1e-6;
  std::optional<TensorView> out;
  std::optional<bool> enable_pdl;
};
void nothing(const Empty&) {}
constexpr op::Field kFields[] = {
    op::in<&Empty::input>("input", "... d", op::floats),
    op::in<&Empty::weight>("weight", "d", op::same_as("input")),
    op::attr<&Empty::eps>("eps"),
    op::out<&Empty::out>("out", "... d", op::same_as("input"), op::may_alias("input")),
    op::attr<&Empty::enable_pdl>("enable_pdl"),
};
constexpr op::Candidate kCandidates[] = {op::cpu<nothing>()};
constinit const op::Op kEmpty = op::define<Empty>("empty", "bench", "", kFields, kCandidates, nullptr);

inline constexpr jit::Kernel kKernel{"bench/empty.cuh", "bench_empty::empty", "bench_empty::Params"};
bench_empty::Params params_of(const Empty& a) { return {a.input.data(), a.weight.data(), a.out->data(), a.eps}; }
cuda::Launch one_warp() {
  cuda::Launch l;
  l.block[0] = 32;
  return l;
}
op::Prepared prepare_cuda(const Empty& a, const op::Call& call) {
  return ops::prepare_cuda<kKernel>(bench_empty::Config{32}, params_of(a), call.device, one_warp());
}
constexpr op::Candidate kCudaCandidates[] = {op::cuda<prepare_cuda>()};
constinit const op::Op kEmptyCuda = op::define<Empty>("empty_cuda", "bench", "", kFields, kCudaCandidates, nullptr);
std::vector<bf16_t> g_x(4 * 64), g_w(64), g_y(4 * 64);
Empty block() {
  return {.input = {g_x.data(), {4, 64}},
          .weight = {g_w.data(), {64}},
          .eps = 1e-5,
          .out = TensorView(g_y.data(), {4, 64}),
          .enable_pdl = {}};
}

void EmptyOp(benchmark::State& state) {
  const Empty b = block();
  for (auto _ : state) benchmark::DoNotOptimize(op::call(kEmpty, b).size());
}
void EmptyOpUnobserved(benchmark::State& state) {
  const Empty b = block();
  for (auto _ : state) {
    Empty copy = b;
    benchmark::DoNotOptimize(op::detail::run_unobserved(kEmpty, &copy).size());
  }
}
void EmptyOpAllocating(benchmark::State& state) {
  Empty b = block();
  b.out.reset();
  for (auto _ : state) benchmark::DoNotOptimize(op::call(kEmpty, b).size());
}
void RmsNorm4x64(benchmark::State& state) {
  const RmsNorm b{.input = {g_x.data(), {4, 64}},
                  .weight = {g_w.data(), {64}},
                  .eps = 1e-5,
                  .out = TensorView(g_y.data(), {4, 64}),
                  .enable_pdl = {}};
  for (auto _ : state) benchmark::DoNotOptimize(rmsnorm(b));
}
/// Tensors on the emulator, alive as long as the program.
const Empty& block_on_emu() {
  static const Tensor x = to_device(block().input, {DeviceType::kEmu, 0}),
                      w = to_device(block().weight, {DeviceType::kEmu, 0}), y = Tensor::clone(x.view());
  static const Empty b{.input = x, .weight = w, .eps = 1e-5, .out = y.view(), .enable_pdl = {}};
  return b;
}
void EmptyLaunchOnEmu(benchmark::State& state) {
  const Empty& b = block_on_emu();
  const jit::CudaLoaded& kernel = jit::cuda_kernel<kKernel>(bench_empty::Config{32}, b.input.device());
  if (!kernel.why_not.empty()) return state.SkipWithError(kernel.why_not.c_str());
  const bench_empty::Params p = params_of(b);
  for (auto _ : state) jit::launch(kernel, p, one_warp());
}
void EmptyOpOnEmu(benchmark::State& state) {
  const Empty& b = block_on_emu();
  for (auto _ : state) benchmark::DoNotOptimize(op::call(kEmptyCuda, b).size());
}
BENCHMARK(EmptyOp)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(EmptyOpUnobserved)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(EmptyOpAllocating)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(RmsNorm4x64)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(EmptyLaunchOnEmu)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(EmptyOpOnEmu)->Repetitions(5)->ReportAggregatesOnly();

}  // namespace
}  // namespace flashinfer

BENCHMARK_MAIN();
