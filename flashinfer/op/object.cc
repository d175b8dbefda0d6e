// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/object.h"

#include <atomic>

namespace flashinfer::op {

Object::Object(const char* cls, const char* mod, const StateType& t) : class_name(cls), module(mod), type(&t), state(t.make()) {
  static std::atomic<uint64_t> next{1};
  id = next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace flashinfer::op
