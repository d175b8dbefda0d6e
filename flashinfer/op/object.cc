// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/object.h"

#include <atomic>
#include <mutex>
#include <set>

#include "flashinfer/core/fork_mutex.h"

namespace flashinfer::op {

Object::Object(const char* cls, const char* mod, const StateType& t)
    : class_name(cls), module(mod), type(&t), state(t.make()) {
  static std::atomic<uint64_t> next{1};
  id = next.fetch_add(1, std::memory_order_relaxed);
}

const char* intern_class(const std::string& name) {
  static constinit ForkMutex mutex(ForkLayer::kOp);
  static std::set<std::string> names;
  std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

}  // namespace flashinfer::op
