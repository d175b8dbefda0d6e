// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/bench/bench.h"

#include <algorithm>
#include <optional>

#include "flashinfer/bench/gpu.h"
#include "flashinfer/bench/turns.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/op/observer.h"
#include "flashinfer/op/select.h"

namespace flashinfer::bench {
namespace {

struct Traffic {
  double bytes = 0;
  int64_t largest = 0;               // bytes of the largest input
  DType largest_type = DType::kF32;  // its elements
};

Traffic traffic(const op::Op& op, const cases::Built& b) {
  Traffic t;
  op::for_each_tensor(op, b.block.data(), [&](const op::Field& f, const TensorView& v) {
    const bool both = f.role == op::Role::kInOut || f.role == op::Role::kPagedInOut;
    t.bytes += static_cast<double>(v.nbytes()) * (both ? 2 : 1);
    if ((f.role == op::Role::kIn || f.role == op::Role::kPaged) && v.nbytes() > t.largest)
      t.largest = v.nbytes(), t.largest_type = v.dtype();
  });
  return t;
}
op::Cost cost_of(const op::Op& op, const cases::Built& b, const Traffic& t) {
  return op.cost ? op.cost(b.block.data()) : op::Cost{.bytes = t.bytes};
}

double copy_rate(Device device) {
  return device.type == DeviceType::kCUDA ? gpu_copy_bandwidth(device.index) : copy_bandwidth();
}

}  // namespace

CountedRow count(const op::Op& op, const op::Case& c) {
  CountedRow row{op.name, c.name, c.args, 0, {}};
  cases::Built b = cases::build(op, c.args, {.device = {DeviceType::kEmu, 0}, .keep_bytes = false});
  const jit::Emulation emulation(0, /*count=*/true);
  const cases::Outputs keep = cases::run_block(b);
  row.least_bytes = cost_of(op, b, traffic(op, b)).bytes;
  row.launches = emulation.launches();
  return row;
}

Row run(const op::Op& op, const op::Case& c, const Options& options) {
  Row row;
  row.op = op.name;
  row.name = c.name;
  row.args = c.args;
  const bool gpu = options.device.type == DeviceType::kCUDA;
  std::optional<cuda::Stream> stream;
  Context context = Context::current();
  if (gpu) context.stream = stream.emplace(options.device.index).get();
  const ContextScope scope(context);
  if (options.refcheck && options.candidate != "reference") {
    op::Case checked = c;
    if (!options.candidate.empty()) checked.candidate = options.candidate.c_str();
    const cases::CaseResult r = cases::run_case(op, checked, {.device = options.device});
    row.check = !r.passed ? r.failure : r.unsupported.empty() ? "ok" : r.unsupported;
  }
  const op::ForceCandidate forced(options.candidate);
  Calls calls(op, c.args, gpu ? 0 : options.threads, gpu ? 0 : options.rotate, options.device);
  const ContextScope on_threads(calls.context());
  row.threads = calls.context().executor.threads;
  cases::Built& b = calls.block();
  const op::Selection s = op::explain(op, b.block.data());
  row.candidate = s.candidate ? s.candidate->name : "";
  FI_CHECK(s.candidate, ValueError, op.name, " ", c.name, ": no candidate supports it on ", to_string(options.device),
           s.rejections.empty() ? "" : ": " + s.rejections.front().why);
  calls.first();
  const Traffic t = traffic(op, b);
  row.cost = cost_of(op, b, t);
  const bool in_turns = !gpu && row.cost.bytes >= kLeastBytesInTurns;
  if (!in_turns) row.copy_bandwidth = copy_rate(options.device);
  // CPUs multiply f16 as f32; what is narrower than 16 bits becomes bf16.
  row.dots = size_of(t.largest_type) <= 2 && t.largest_type != DType::kF16;
  const auto peak = [&] { return row.dots ? dot_peak() : fma_peak(); };
  const bool has_peak = row.cost.flops > 0 && !gpu;
  if (has_peak) row.peak = peak();
  if (gpu)
    row.samples =
        time_on_gpu(options.device.index, {options.seconds, options.cold}, [&] { op::run(op, b.block.data()); });
  else
    time_in_turns(op, c, calls, options, row);
  if (!in_turns) row.copy_bandwidth = std::min(row.copy_bandwidth, copy_rate(options.device));
  if (has_peak) row.peak = std::max(row.peak, peak());
  return row;
}

}  // namespace flashinfer::bench
