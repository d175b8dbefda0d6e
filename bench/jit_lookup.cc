// SPDX-License-Identifier: Apache-2.0
// The JIT's three costs: hot lookup (goal 50 ns), warm load from disk (1 ms) and cold compile (2 s) of a real kernel.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "flashinfer/core/env.h"
#include "flashinfer/jit/engine.h"
#include "flashinfer/ops/norm/kernels/params.h"

namespace {
using namespace flashinfer;

inline constexpr jit::Kernel kRmsNorm{"flashinfer/ops/norm/kernels/cpu/norm.h", "flashinfer::cpu::rmsnorm",
                                      "flashinfer::NormParams"};
constexpr NormConfig kConfig{.dtype = DType::kBF16, .weight = DType::kBF16, .gemma = 0, .fused_add = 0};

void hot_lookup(benchmark::State& state) {
  jit::cpu_kernel<kRmsNorm>(kConfig);
  for (auto _ : state) {
    NormConfig config = kConfig;
    benchmark::DoNotOptimize(config);  // known at run time only, as on the launch path
    benchmark::DoNotOptimize(jit::cpu_kernel<kRmsNorm>(config).fn);
  }
}
BENCHMARK(hot_lookup);
BENCHMARK(hot_lookup)->Threads(2);

/// The first lookup of a process whose artifact is on disk: key (headers hashed anew), checks, dlopen.
void warm_load(benchmark::State& state) {
  jit::cpu_kernel<kRmsNorm>(kConfig);
  for (auto _ : state) {
    state.PauseTiming();
    jit::reset();
    state.ResumeTiming();
    benchmark::DoNotOptimize(jit::cpu_kernel<kRmsNorm>(kConfig).fn);
  }
}
BENCHMARK(warm_load)->Unit(benchmark::kMicrosecond);

void cold_compile(benchmark::State& state) {
  const std::string was = env::text("FLASHINFER_WORKSPACE_BASE");
  std::string folder = (std::filesystem::temp_directory_path() / "jit-bench-XXXXXX").string();
  for (auto _ : state) {
    state.PauseTiming();
    std::string fresh = folder;
    ::setenv("FLASHINFER_WORKSPACE_BASE", ::mkdtemp(fresh.data()), 1);
    env::reload();
    jit::reset();
    state.ResumeTiming();
    benchmark::DoNotOptimize(jit::cpu_kernel<kRmsNorm>(kConfig).fn);
    state.PauseTiming();
    std::filesystem::remove_all(fresh);
    state.ResumeTiming();
  }
  if (was.empty())
    ::unsetenv("FLASHINFER_WORKSPACE_BASE");
  else
    ::setenv("FLASHINFER_WORKSPACE_BASE", was.c_str(), 1);
  env::reload();
  jit::reset();
}
BENCHMARK(cold_compile)->Unit(benchmark::kMillisecond)->Iterations(3)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
