// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cli/bench_trace.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "flashinfer/core/version.h"
#include "flashinfer/op/select.h"
#include "flashinfer/record/machine.h"
#include "flashinfer/trace/workloads.h"

namespace flashinfer::cli {
namespace {

using formats::Json;

std::string hardware(Device device) {
  std::string name = record::cpu_model();
  const auto& gpus = record::cuda().gpus;
  if (device.type == DeviceType::kCUDA && static_cast<size_t>(device.index) < gpus.size())
    name = gpus[static_cast<size_t>(device.index)].name;
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string now() {
  const std::time_t t = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&t, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

/// The outputs of one call by a candidate; `ms`: its time.
cases::Outputs outputs(const op::Op& op, const op::Case& c, Device device, const std::string& candidate, double* ms) {
  cases::Built b = cases::build(op, c.args, {.device = device});
  const op::ForceCandidate forced(candidate);
  const auto start = std::chrono::steady_clock::now();
  cases::Outputs out = cases::run_block(b);
  *ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace

Json trace_line(const op::Op& op, const op::Case& c, const bench::Row& row, Device device, std::string* why) {
  const cases::Built b = cases::build(op, c.args, {.keep_bytes = false});
  const trace::Described call = trace::describe(op, b.block.data());
  if (!call.why.empty()) {
    *why = call.why;
    return Json::object();
  }
  double reference_ms = 0, ignored = 0, max_abs = 0, max_rel = 0;
  const cases::Outputs want = outputs(op, c, kCpu, "reference", &reference_ms),
                       have = outputs(op, c, device, row.candidate, &ignored);
  bool passed = want.tensors.size() == have.tensors.size();
  for (size_t i = 0; i < have.tensors.size() && passed; ++i) {
    const op::Tolerance by_type = cases::default_tolerance(want.tensors[i].second.dtype());
    const cases::Comparison result =
        cases::compare(have.tensors[i].second.view(), want.tensors[i].second.view(),
                       std::max(by_type.rtol, op.tolerance.rtol), std::max(by_type.atol, op.tolerance.atol));
    passed &= result.equal;
    max_abs = std::max(max_abs, result.max_abs), max_rel = std::max(max_rel, result.max_rel);
  }
  const double ms = row.samples.median() * 1e3;
  Json evaluation = {
      {"status", passed ? "PASSED" : "INCORRECT_NUMERICAL"},
      {"environment", {{"hardware", hardware(device)}, {"libs", {{"flashinfer-cpp", build::version()}}}}},
      {"timestamp", now()},
      {"log", ""},
      {"correctness", {{"max_relative_error", max_rel}, {"max_absolute_error", max_abs}, {"extra", nullptr}}},
      {"performance", nullptr}};
  if (passed)
    evaluation["performance"] = {
        {"latency_ms", ms}, {"reference_latency_ms", reference_ms}, {"speedup_factor", reference_ms / ms}};
  return {{"definition", call.definition["name"]},
          {"workload", call.workload},
          {"solution", "flashinfer-cpp_" + row.candidate},
          {"evaluation", std::move(evaluation)}};
}

}  // namespace flashinfer::cli
