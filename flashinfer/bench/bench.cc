// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/bench/bench.h"

#include <algorithm>

#include "flashinfer/op/observer.h"

namespace flashinfer::bench {
namespace {

struct Traffic {
  double bytes = 0;
  int64_t widest_input = 0;  // bytes of an element
};

void add_traffic(void* ctx, const op::Field& f, const TensorView& v) {
  auto& t = *static_cast<Traffic*>(ctx);
  const bool both = f.role == op::Role::kInOut || f.role == op::Role::kPagedInOut;
  t.bytes += static_cast<double>(v.nbytes()) * (both ? 2 : 1);
  if (f.role == op::Role::kIn && is_floating(v.dtype())) t.widest_input = std::max(t.widest_input, v.item_size());
}

Traffic traffic(const op::Op& op, const cases::Built& b) {
  Traffic t;
  op::for_each_tensor(op, b.block.data(), add_traffic, &t);
  return t;
}
op::Cost cost_of(const op::Op& op, const cases::Built& b, const Traffic& t) {
  return op.cost ? op.cost(b.block.data()) : op::Cost{.bytes = t.bytes};
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
  if (options.refcheck) {
    const cases::CaseResult r = cases::run_case(op, c);
    row.check = r.passed ? "ok" : r.failure;
  }
  cases::Built b = cases::build(op, c.args, {.keep_bytes = false});
  const op::Selection s = op::explain(op, b.block.data());
  row.candidate = s.candidate ? s.candidate->name : "";
  const cases::Outputs keep = cases::run_block(b);  // compiles; from here outputs have their memory
  const Traffic t = traffic(op, b);
  row.cost = cost_of(op, b, t);
  row.copy_bandwidth = copy_bandwidth();
  const int64_t budget = static_cast<int64_t>(options.seconds * 1e9), begin = op::detail::monotonic_ns();
  while (row.samples.seconds.size() < 5 || op::detail::monotonic_ns() - begin < budget) {
    const int64_t start = op::detail::monotonic_ns();
    op::run(op, b.block.data());
    row.samples.seconds.push_back(static_cast<double>(op::detail::monotonic_ns() - start) * 1e-9);
    if (row.samples.seconds.size() >= 100000) break;
  }
  std::sort(row.samples.seconds.begin(), row.samples.seconds.end());
  row.copy_bandwidth = std::min(row.copy_bandwidth, copy_bandwidth());
  if (row.cost.flops > 0) row.peak = t.widest_input <= 2 ? dot_peak() : fma_peak();
  return row;
}

}  // namespace flashinfer::bench
