// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/select.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/core/warn.h"
#include "flashinfer/op/backend.h"

namespace flashinfer::op {
namespace {

thread_local const std::string* t_forced = nullptr;  // empty: none, whatever an outer scope forces

bool fits(Place place, const Placement& at) {
  switch (place) {
    case Place::kHost: return !at.on_device;
    case Place::kGpu: return at.on_device && !at.on_host && !at.elsewhere;
    case Place::kAnywhere: break;
  }
  return true;
}

void warn_reference(const Op& op, const std::vector<Rejection>& rejections) {
  static constinit ForkMutex mutex(ForkLayer::kOp);
  static std::set<const Op*> warned;
  {
    std::lock_guard lock(mutex);
    if (!warned.insert(&op).second) return;
  }
  std::string why;
  for (const Rejection& r : rejections) why += str("; ", r.candidate->name, ": ", r.why);
  warn(str(op.name, " runs on its reference implementation, which is slow", why));
}

}  // namespace

Placement placement_of(const Op& op, const void* block) {
  Placement at;
  for_each_tensor(op, block, [&](const Field& f, const TensorView& v) {
    const Device d = v.device();
    if (d.type == DeviceType::kCPU) {
      // An empty workspace is the default of calls that need none.
      const bool stays = f.host_memory || (f.role == Role::kScratch && v.numel() == 0);
      if (!at.on_host && !stays) at.on_host = &f;
    } else if (!at.on_device) {
      at.on_device = &f;
      at.device = d;
    } else if (!(d == at.device) && !at.elsewhere) {
      at.elsewhere = &f;
      at.elsewhere_device = d;
    }
  });
  return at;
}

Device device_of(const Op& op, const void* block) { return placement_of(op, block).device; }

std::vector<Tensor> detail::copy_arrays_to_host(const Op& op, void* block) {
  std::vector<Tensor> keep;
  for (const Field& f : op.fields) {
    if (!f.assign || f.role == Role::kScratch) continue;
    const Views v = f.tensors(block);
    if (v.empty() || v[0].device().type == DeviceType::kCPU) continue;
    keep.push_back(to_device(v[0], kCpu));
    f.assign(block, keep.back().view());
  }
  return keep;
}

std::string Selector::misplaced(const Candidate& c) const {
  const Placement& at = placement_;
  if (place(c.backend) == Place::kHost)
    return str(at.on_device->name, " is on ", to_string(at.device), ", but this implementation runs on the CPU");
  if (at.on_host) return str(at.on_host->name, " is in host memory, but this implementation runs on GPUs");
  if (!at.on_device) return "no tensor says on which GPU";
  return str(at.elsewhere->name, " is on ", to_string(at.elsewhere_device), ", but ", at.on_device->name, " is on ",
             to_string(at.device));
}

bool Selector::prepare(const Candidate& c) {
  Prepared* p = new (memory_) Prepared(c.prepare({op_, block_, placement_.device}));
  if (p->supported()) {
    candidate_ = &c;
    prepared_ = p;
    return true;
  }
  rejections.push_back({&c, std::move(p->why_not())});
  p->~Prepared();
  return false;
}

bool Selector::find() {
  const char* named = named_backend(op_, block_);
  const char* only = t_forced && !t_forced->empty() ? t_forced->c_str() : named;
  bool passed_over = false;
  for (const Candidate& c : op_.candidates) {
    if (only && std::string_view(only) != c.name)
      rejections.push_back({&c, str("only '", only, "' is requested")});
    else if (!fits(place(c.backend), placement_))
      passed_over = true;
    else if (prepare(c))
      return true;
  }
  if (passed_over)
    for (const Candidate& c : op_.candidates)
      if (!fits(place(c.backend), placement_) && (!only || std::string_view(only) == c.name))
        rejections.push_back({&c, misplaced(c)});
  return false;
}

void Selector::require() {
  if (find()) {
    if (candidate_->backend == Backend::kReference && !rejections.empty() && !t_forced && !named_backend(op_, block_))
      warn_reference(op_, rejections);
    return;
  }
  std::string m = "no implementation supports this call";
  const bool on_gpus = std::any_of(op_.candidates.begin(), op_.candidates.end(),
                                   [](const Candidate& c) { return place(c.backend) != Place::kHost; });
  if (placement_.on_device && !on_gpus)
    m += str("; this op has no kernel for GPUs yet, and a tensor is on ", to_string(placement_.device),
             ": copy it to the host");
  for (const Rejection& r : rejections) m += str("; ", r.candidate->name, ": ", r.why);
  throw NotImplementedError(m);
}

ForceCandidate::ForceCandidate(std::string name) : previous_(t_forced), name_(std::move(name)) { t_forced = &name_; }
ForceCandidate::~ForceCandidate() { t_forced = previous_; }

}  // namespace flashinfer::op
