// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/backend.h"

#include <mutex>
#include <set>
#include <utility>

#include "flashinfer/core/fork_lock.h"
#include "flashinfer/core/warn.h"
#include "flashinfer/op/call.h"

namespace flashinfer::op {
namespace {

std::string_view device_of(const Candidate& c) { return std::string_view(c.name).starts_with("cuda") ? "cuda" : "cpu"; }

std::string_view device_of(const Op& op, const void* block) {
  for (const Field& f : op.fields) {
    const TensorView* v[2];
    if (f.tensors && f.tensors(block, v) > 0) return v[0]->device().type == DeviceType::kCPU ? "cpu" : "cuda";
  }
  return "cpu";
}

[[noreturn]] void unknown(const Op& op, const Field& f, std::string_view value) {
  std::string names;
  for (const BackendName& b : backend_names(op, f)) names += (names.empty() ? "" : ", ") + std::string(b.name);
  throw_error(f.choice_error,
              str(op.name, ": ", f.name, " is ", python_repr(std::string(value)), ", but must be one of ", names));
}

void warn_other_device(const Op& op, const Field& f, std::string_view value, std::string_view wants,
                       std::string_view has) {
  static std::set<std::pair<const Op*, std::string>> warned;
  {
    std::lock_guard lock(fork_lock(ForkLock::kWarnedOps));
    if (!warned.insert({&op, std::string(value)}).second) return;
  }
  warn(str(op.name, ": ", f.name, "='", value, "' exists for ", wants, " tensors only; these are on the ", has,
           ", where the default implementation runs"));
}

}  // namespace

std::vector<BackendName> backend_names(const Op& op, const Field& f) {
  std::vector<BackendName> out;
  std::string_view rest = f.backends;
  while (!rest.empty()) {
    const size_t bar = rest.find('|');
    const std::string_view item = rest.substr(0, bar);
    const size_t colon = item.find(':');
    out.push_back(
        {item.substr(0, colon), colon == std::string_view::npos ? std::string_view() : item.substr(colon + 1)});
    rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
  }
  for (const Candidate& c : op.candidates) {
    bool listed = false;
    for (const BackendName& b : out) listed = listed || b.name == c.name;
    if (!listed) out.push_back({c.name, device_of(c)});
  }
  return out;
}

const Field* backend_field(const Op& op) {
  for (const Field& f : op.fields)
    if (f.backends) return &f;
  return nullptr;
}

const char* named_backend(const Op& op, const void* block) {
  const Field* f = backend_field(op);
  if (!f) return nullptr;
  const Value v = f->get(block);
  const auto* value = v.as<std::string>();
  if (!value) return nullptr;
  for (const BackendName& b : backend_names(op, *f)) {
    if (b.name != *value) continue;
    const std::string_view has = device_of(op, block);
    if (!b.device.empty() && b.device != has) {
      if (const Value standard = f->get(default_block(op)); !same_value(v, standard))
        warn_other_device(op, *f, *value, b.device, has);
      return nullptr;
    }
    for (const Candidate& c : op.candidates)
      if (*value == c.name) return c.name;
    return nullptr;
  }
  unknown(op, *f, *value);
}

std::string backend_refusal(const Op& op, std::string_view backend, int cc) {
  const Field* f = backend_field(op);
  std::string_view device;
  bool known = false;
  if (f)
    for (const BackendName& b : backend_names(op, *f))
      if (b.name == backend) known = true, device = b.device;
  for (const Candidate& c : op.candidates)
    if (!known && backend == c.name) known = true, device = device_of(c);
  if (!known) return str(op.name, " has no back end '", backend, "'");
  if (cc && device == "cpu")
    return str("'", backend, "' runs on the CPU, not on a GPU of compute capability ", cc / 10, ".", cc % 10);
  const std::string_view want = cc ? "cuda" : device;
  for (const Candidate& c : op.candidates)
    if (want.empty() || device_of(c) == want) return {};
  return str(op.name, " has no implementation for ", want, " devices in this library");
}

}  // namespace flashinfer::op
