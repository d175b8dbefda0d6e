// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/collective.h"

#include <map>
#include <mutex>

#include "flashinfer/comm/share.h"
#include "flashinfer/core/fork_mutex.h"

namespace flashinfer::op {
namespace {
constinit ForkMutex g_mutex(ForkLayer::kOp);
std::map<const StateType*, Abandon>& registered() {
  static std::map<const StateType*, Abandon> all;
  return all;
}
Abandon registered_for(const StateType& type) {
  std::lock_guard lock(g_mutex);
  const auto found = registered().find(&type);
  return found == registered().end() ? nullptr : found->second;
}
/// `v`: a workspace, as an object or as the memory that ranks share.
void abandon_object(const Value& v, const std::exception& error) {
  if (const TensorView* t = v.tensor())
    if (const auto window = comm::window_at(t->data())) return window->abandon(error.what());
  const auto* o = v.as<ObjectValue>();
  if (!o || !o->object) return;
  if (const Abandon abandon = registered_for(*o->object->type)) abandon(*o->object, error.what());
}
}  // namespace

void on_abandoned(const StateType& type, Abandon abandon) {
  std::lock_guard lock(g_mutex);
  registered()[&type] = abandon;
}

void detail::abandon(const Op& op, const void* block, const std::exception& error) noexcept try {
  for (const Field& f : op.fields)
    if ((f.role == Role::kAttr || f.role == Role::kSelf || f.role == Role::kScratch) && f.get)
      abandon_object(f.get(block), error);
} catch (...) {  // the caller's error is the one that counts; the others meet their time limit
}
void detail::abandon(const Passed& passed, const std::exception& error) noexcept try {
  for (const Value& v : passed.positional) abandon_object(v, error);
  for (const auto& [name, v] : passed.keyword) abandon_object(v, error);
} catch (...) {
}

}  // namespace flashinfer::op
