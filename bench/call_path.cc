// SPDX-License-Identifier: Apache-2.0
// What a call costs beside its kernel: schema check, selection, launch of an empty kernel, one thread. The second row is the same
// without the observer's load ("recorder compiled out"); the third asks the JIT for a kernel that is there.
#include <benchmark/benchmark.h>

#include <vector>

#include "flashinfer/flashinfer.h"
#include "flashinfer/op/call.h"

namespace flashinfer {
namespace {

struct Empty {
  TensorView input, weight;
  double eps = 1e-6;
  std::optional<TensorView> out;
  std::optional<bool> enable_pdl;
};
op::Refusal accept(const Empty& a);
void nothing(const Empty&) {}
constexpr op::Field kFields[] = {
    op::in<&Empty::input>("input", "... d", op::floats),
    op::in<&Empty::weight>("weight", "d", op::same_as("input")),
    op::attr<&Empty::eps>("eps"),
    op::out<&Empty::out>("out", "... d", op::same_as("input"), op::may_alias("input")),
    op::attr<&Empty::enable_pdl>("enable_pdl"),
};
constexpr op::Candidate kCandidates[] = {op::candidate<accept, nothing>("cpu")};
constinit const op::Op kEmpty = op::define<Empty>("empty", "bench", "", kFields, kCandidates, nullptr);
op::Refusal accept(const Empty& a) { return op::refuse_unless_cpu(kEmpty, &a); }

std::vector<bf16_t> g_x(4 * 64), g_w(64), g_y(4 * 64);
Empty block() {
  return {.input = {g_x.data(), {4, 64}}, .weight = {g_w.data(), {64}}, .eps = 1e-5, .out = TensorView(g_y.data(), {4, 64}), .enable_pdl = {}};
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
  const RmsNorm b{.input = {g_x.data(), {4, 64}}, .weight = {g_w.data(), {64}}, .eps = 1e-5, .out = TensorView(g_y.data(), {4, 64}), .enable_pdl = {}};
  for (auto _ : state) benchmark::DoNotOptimize(rmsnorm(b));
}
BENCHMARK(EmptyOp)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(EmptyOpUnobserved)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(EmptyOpAllocating)->Repetitions(5)->ReportAggregatesOnly();
BENCHMARK(RmsNorm4x64)->Repetitions(5)->ReportAggregatesOnly();

}  // namespace
}  // namespace flashinfer

BENCHMARK_MAIN();
