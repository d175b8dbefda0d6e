// SPDX-License-Identifier: Apache-2.0
// Objects with state (`plan`/`run` wrappers). The state is a value: a plain struct with a table of members, so that a
// recorded `run` carries it (keys `self__plan__<member>`) and replays alone.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "flashinfer/op/schema.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// The type of an object's state.
struct StateType {
  std::span<const Field> fields;
  std::shared_ptr<void> (*make)();  // default constructed
  /// Older names of methods, for languages that have them: "begin_forward=plan; run_return_lse=run(return_lse=True);
  /// end_forward=": another name, one with another default, and one that does nothing. Those of methods that a class
  /// lacks do not count.
  const char* aliases = "";
};
template <class State>
constexpr StateType state_type(std::span<const Field> fields, const char* aliases = "") {
  return {fields, []() -> std::shared_ptr<void> { return std::make_shared<State>(); }, aliases};
}

/// What a wrapper class holds: the name that logs print, an id that is never used again in this process, and the state.
/// `state` is replaced, never changed in place, so a `run` in another thread keeps the plan it started with.
struct Object {
  Object(const char* class_name, const char* module, const StateType& type);
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  const char* class_name;
  const char* module;
  const StateType* type;
  uint64_t id;
  std::shared_ptr<const void> state;
  bool planned = false;  // run() before plan() is an error of the caller

  template <class State>
  const State& as() const {
    return *static_cast<const State*>(state.get());
  }
  template <class State>
  void set(State s) {
    state = std::make_shared<const State>(std::move(s));
  }
};

/// A copy of `name` that lives as long as the program (for objects made from recorded names).
const char* intern_class(const std::string& name);

}  // namespace flashinfer::op

#pragma GCC visibility pop
