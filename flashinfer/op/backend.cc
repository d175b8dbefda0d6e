// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/backend.h"

#include <mutex>
#include <set>
#include <utility>

#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/warn.h"
#include "flashinfer/op/call.h"

namespace flashinfer::op {
namespace {

/// fn(name, where its tensors are) for each legal name, those of the table first, until it returns true.
template <class F>
bool any_backend(const Op& op, const Field& f, F&& fn) {
  std::string_view rest = f.backends;
  while (!rest.empty()) {
    const size_t bar = rest.find('|');
    const std::string_view item = rest.substr(0, bar);
    const size_t colon = item.find(':');
    const std::string_view device = colon == std::string_view::npos ? std::string_view() : item.substr(colon + 1);
    const Place where = device == "cpu" ? Place::kHost : device == "cuda" ? Place::kGpu : Place::kAnywhere;
    if (fn(item.substr(0, colon), where)) return true;
    rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
  }
  for (const Candidate& c : op.candidates)
    if (fn(std::string_view(c.name), place(c.backend))) return true;
  return false;
}

/// The place of the first tensor.
Place place_of(const Op& op, const void* block) {
  for (const Field& f : op.fields) {
    const Views v = f.tensors ? f.tensors(block) : Views();
    if (!v.empty()) return v[0].device().type == DeviceType::kCPU ? Place::kHost : Place::kGpu;
  }
  return Place::kHost;
}

/// "cpu" or "cuda", as users write devices.
const char* device_name(Place p) { return p == Place::kGpu ? "cuda" : "cpu"; }

[[noreturn]] void unknown(const Op& op, const Field& f, std::string_view value) {
  std::string names;
  for (const BackendName& b : backend_names(op, f)) names += (names.empty() ? "" : ", ") + std::string(b.name);
  throw_error(f.choice_error, str(f.name, " is ", python_repr(std::string(value)), ", but must be one of ", names));
}

void warn_other_device(const Op& op, const Field& f, std::string_view value, Place wants, Place has) {
  static constinit ForkMutex mutex(ForkLayer::kOp);
  static std::set<std::pair<const Op*, std::string>> warned;
  {
    std::lock_guard lock(mutex);
    if (!warned.insert({&op, std::string(value)}).second) return;
  }
  warn(str(op.name, ": ", f.name, "='", value, "' exists for ", device_name(wants), " tensors only; these are on the ",
           device_name(has), ", where the default implementation runs"));
}

}  // namespace

std::vector<BackendName> backend_names(const Op& op, const Field& f) {
  std::vector<BackendName> out;
  any_backend(op, f, [&](std::string_view name, Place where) {
    bool listed = false;
    for (const BackendName& b : out) listed = listed || b.name == name;
    if (!listed) out.push_back({name, where});
    return false;
  });
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
  const char* candidate = nullptr;
  const bool known = any_backend(op, *f, [&](std::string_view name, Place where) {
    if (name != *value) return false;
    const Place has = place_of(op, block);
    if (where != Place::kAnywhere && where != has) {
      if (const Value standard = f->get(default_block(op)); !same_value(v, standard))
        warn_other_device(op, *f, *value, where, has);
      return true;
    }
    for (const Candidate& c : op.candidates)
      if (!candidate && name == c.name) candidate = c.name;
    return true;
  });
  if (!known) unknown(op, *f, *value);
  return candidate;
}

std::string backend_unsupported_reason(const Op& op, std::string_view backend, int cc) {
  Place where = Place::kAnywhere;
  const auto take = [&](std::string_view name, Place its) { return name == backend && (where = its, true); };
  const Field* f = backend_field(op);
  bool known = f && any_backend(op, *f, take);
  for (const Candidate& c : op.candidates) known = known || take(c.name, place(c.backend));
  if (!known) return str(op.name, " has no back end '", backend, "'");
  if (cc && where == Place::kHost)
    return str("'", backend, "' runs on the CPU, not on a GPU of compute capability ", cc / 10, ".", cc % 10);
  const Place want = cc ? Place::kGpu : where;
  for (const Candidate& c : op.candidates)
    if (want == Place::kAnywhere || place(c.backend) == Place::kAnywhere || place(c.backend) == want) return {};
  return str(op.name, " has no implementation for ", device_name(want), " devices in this library");
}

}  // namespace flashinfer::op
