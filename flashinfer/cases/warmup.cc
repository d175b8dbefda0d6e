// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/cases/warmup.h"

#include <chrono>

#include "flashinfer/cases/parse.h"
#include "flashinfer/cases/run.h"
#include "flashinfer/jit/targets.h"
#include "flashinfer/op/call.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/record/stats.h"

namespace flashinfer {
namespace {

const op::Op& find(const std::string& name) {
  const op::Op* op = op::find_op(name);
  FI_CHECK(op != nullptr, ValueError, "there is no op named '", name, "'; `flashinfer list-ops` prints them");
  return *op;
}

/// Selects without launching, so that candidates look up their kernels.
op::Selection select(const op::Op& op, std::string_view args, Device device = kCpu) {
  cases::BuildOptions options;
  options.device = device;
  options.keep_bytes = false;
  options.random_floats = false;
  const cases::Built built = cases::build(op, args, options);
  return op::explain(op, built.block.data());
}

}  // namespace

WarmupReport warmup(std::span<const WarmupItem> items, const std::function<void(const jit::Progress&)>& progress,
                    int jobs) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<jit::Request> requests = cases::kernels(items);
  WarmupReport report;
  report.kernels = static_cast<int64_t>(requests.size());
  for (const jit::Prefetched& r : jit::prefetch(requests, jobs, progress)) {
    report.compiled += r.outcome == jit::Outcome::kCompiled;
    report.loaded +=
        r.outcome == jit::Outcome::kMemory || r.outcome == jit::Outcome::kDisk || r.outcome == jit::Outcome::kAot;
    if (!r.message.empty()) report.problems.push_back(r.message);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

std::string Availability::why() const {
  std::string text;
  for (const auto& [name, why] : unsupported) text += (text.empty() ? "" : "; ") + name + ": " + why;
  return text;
}

Availability is_available(const std::string& name, const std::string& args) {
  const op::Selection s = select(find(name), args);
  Availability a;
  if (s.candidate != nullptr) a.candidate = s.candidate->name;
  a.available = s.candidate != nullptr && s.candidate->backend != op::Backend::kReference;
  for (const auto& [candidate, why] : s.rejections) a.unsupported.emplace_back(candidate->name, why);
  return a;
}

namespace cases {

namespace {
std::vector<jit::Request> listed(std::span<const op::Op* const> ops, unsigned tags, Device device,
                                 std::vector<std::string>* problems) {
  jit::KernelCollector recording;
  for (const op::Op* op : ops)
    for (const op::Case& c : op->cases()) {
      if (!supports(*op, device)) continue;
      if (tags != 0 && (c.tags & tags) == 0) continue;
      try {
        select(*op, c.args, device);
      } catch (const std::exception& e) {
        if (problems != nullptr) problems->push_back(str(op->name, " ", c.name, ": ", e.what()));
      }
    }
  return recording.take();
}
}  // namespace

std::vector<jit::Request> kernels(std::span<const WarmupItem> items, Device device) {
  jit::KernelCollector recording;
  for (const WarmupItem& item : items) select(find(item.op), item.args, device);
  return recording.take();
}

std::vector<jit::Request> kernels(std::span<const op::Op* const> ops, unsigned tags,
                                  std::vector<std::string>* problems) {
  return listed(ops, tags, kCpu, problems);
}

std::vector<jit::Request> cuda_kernels(std::span<const op::Op* const> ops, unsigned tags, int arch,
                                       std::vector<std::string>* problems) {
  const jit::EmulatedArch emulated(arch);
  return listed(ops, tags, {DeviceType::kEmu, 0}, problems);
}

std::vector<jit::Request> cuda_kernels_beside_cases(int arch) {
  const jit::EmulatedArch emulated(arch);
  const Device device{DeviceType::kEmu, 0};
  jit::KernelCollector recording;
  for (const op::Family& family : op::families())
    for (const op::LookUp look_up : family.lookups) look_up(device);
  record::prepare_graph_statistics(device);
  return recording.take();
}

}  // namespace cases
}  // namespace flashinfer
