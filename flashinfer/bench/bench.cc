// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/bench/bench.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "flashinfer/bench/gpu.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/device.h"
#include "flashinfer/op/observer.h"
#include "flashinfer/op/select.h"

namespace flashinfer::bench {
namespace {

struct Traffic {
  double bytes = 0;
  int64_t widest_input = 0;  // bytes of an element
};

Traffic traffic(const op::Op& op, const cases::Built& b) {
  Traffic t;
  op::for_each_tensor(op, b.block.data(), [&](const op::Field& f, const TensorView& v) {
    const bool both = f.role == op::Role::kInOut || f.role == op::Role::kPagedInOut;
    t.bytes += static_cast<double>(v.nbytes()) * (both ? 2 : 1);
    if (f.role == op::Role::kIn && is_floating(v.dtype())) t.widest_input = std::max(t.widest_input, v.item_size());
  });
  return t;
}
op::Cost cost_of(const op::Op& op, const cases::Built& b, const Traffic& t) {
  return op.cost ? op.cost(b.block.data()) : op::Cost{.bytes = t.bytes};
}

double copy_rate(Device device) {
  return device.type == DeviceType::kCUDA ? gpu_copy_bandwidth(device.index) : copy_bandwidth();
}

/// Rows that move less are over before the memory matters.
constexpr double kLeastBytesInTurns = 16 << 20;

/// The calls, each after a flush if they are to be cold, in turns with a copy of as many bytes where the row has many.
Samples time_on_host(const op::Op& op, const cases::Built& b, const Options& options, Row& row) {
  Samples samples, copies;
  std::optional<Copier> copier;
  if (row.cost.bytes >= kLeastBytesInTurns) copier.emplace(static_cast<int64_t>(row.cost.bytes / 2)).seconds();
  const Tensor evicted = options.cold ? Tensor::zeros({2 * last_level_cache()}, DType::kU8) : Tensor();
  const int64_t budget = static_cast<int64_t>(options.seconds * 1e9), begin = op::detail::monotonic_ns();
  while (samples.seconds.size() < 5 || op::detail::monotonic_ns() - begin < budget) {
    if (copier) copies.seconds.push_back(copier->seconds());
    if (options.cold)
      std::memset(evicted.data_as<char>(), static_cast<int>(samples.seconds.size() & 1),
                  static_cast<size_t>(evicted.nbytes()));
    const int64_t start = op::detail::monotonic_ns();
    op::run(op, b.block.data());
    samples.seconds.push_back(static_cast<double>(op::detail::monotonic_ns() - start) * 1e-9);
    if (samples.seconds.size() >= 100000) break;
  }
  std::sort(samples.seconds.begin(), samples.seconds.end());
  std::sort(copies.seconds.begin(), copies.seconds.end());
  if (copier) row.copy_bandwidth = copier->moved() / copies.median();
  return samples;
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
  cases::Built b = cases::build(op, c.args, {.device = options.device, .keep_bytes = false});
  const op::Selection s = op::explain(op, b.block.data());
  row.candidate = s.candidate ? s.candidate->name : "";
  FI_CHECK(s.candidate, ValueError, op.name, " ", c.name, ": no candidate supports it on ", to_string(options.device),
           s.rejections.empty() ? "" : ": " + s.rejections.front().why);
  const cases::Outputs keep = cases::run_block(b);  // compiles; afterwards all outputs have memory
  const Traffic t = traffic(op, b);
  row.cost = cost_of(op, b, t);
  const bool in_turns = !gpu && row.cost.bytes >= kLeastBytesInTurns;
  if (!in_turns) row.copy_bandwidth = copy_rate(options.device);
  row.samples =
      gpu ? time_on_gpu(options.device.index, {options.seconds, options.cold}, [&] { op::run(op, b.block.data()); })
          : time_on_host(op, b, options, row);
  if (!in_turns) row.copy_bandwidth = std::min(row.copy_bandwidth, copy_rate(options.device));
  if (row.cost.flops > 0 && !gpu) row.peak = t.widest_input <= 2 ? dot_peak() : fma_peak();
  return row;
}

}  // namespace flashinfer::bench
