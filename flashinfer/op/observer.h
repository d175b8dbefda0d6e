// SPDX-License-Identifier: Apache-2.0
// The one hook for observation: log, recorder, trace. `call()` notifies the observer, if any, before and after.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/op/op.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

/// One argument as the caller passed it.
struct Arg {
  /// kImplied: a hidden plain value that the call took from the process; recorded, not printed.
  enum How : uint8_t { kPositional, kKeyword, kDefault, kImplied };
  std::string name;
  How how = kPositional;
  Value value;
  const char* literal = nullptr;  // defaults: the text Python shows, when it differs from the value's
  const Field* field = nullptr;   // null for a foreign callable
};

/// Arguments passed by another language, in the caller's own split.
struct Passed {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
};

/// A running call. For an op `op` and `block` are set; a foreign callable (a decorated Python function) provides its
/// arguments itself.
struct Invocation {
  std::string_view name;
  std::string_view module;
  const Op* op = nullptr;
  const void* block = nullptr;     // outputs are filled in once they are allocated
  const Passed* passed = nullptr;  // null: a C++ call
  std::vector<Arg> foreign_args;
  std::string foreign_signature;
  uint64_t self_id = 0;              // 0: not a method
  uint64_t sequence = 0;             // over all functions and threads of the process, from 1; set when observed
  int depth = 0;                     // 0 for a call that is not inside another observed call of this thread
  int64_t start_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC around the kernel
  const char* candidate = nullptr;   // the selected one
  std::string config;                // the kernel's Config as text, when the candidate reports it (report_config)
  std::shared_ptr<void> state;       // the observer's own

  /// Arguments in public order: positional, then keywords, then defaults. Built at each call of this function.
  std::vector<Arg> args() const;
  std::string signature() const;
};

class Observer {
 public:
  virtual ~Observer() = default;
  /// Called before checks and launch. call() swallows exceptions: observing never breaks a call.
  virtual void before(Invocation& call) = 0;
  virtual void after(Invocation& call, const Value& result) = 0;
  virtual void failed(Invocation& call, const std::exception& error) = 0;
};

namespace detail {
extern std::atomic<Observer*> g_observer;  // initially a sentinel: environment not read
/// Replaces the sentinel by the effective observer (null: none), reading the environment once.
Observer* resolve_observer(Observer* o);
int64_t monotonic_ns();
}  // namespace detail
/// The relaxed load that a call at level 0 pays.
inline Observer* observer() { return detail::g_observer.load(std::memory_order_relaxed); }
/// Installs `o` (null: none); returns the previous one. The caller keeps both alive until no call can be inside them.
Observer* set_observer(Observer* o);

/// `changed` is called after every set_observer, on the calling thread (null: no notification), for languages that have
/// a fast path for unobserved calls.
void listen_to_observer(void (*changed)());
/// True when an observer is installed; reads the environment if that was not done yet.
bool observed();

/// Called once, at the first call of any op; record/ defines it and installs its observer if the environment says so
/// one.
void start_observing();

namespace detail {
/// One observed call: notifies the observer, maintains depth and sequence, and never lets observing break the call.
class ObservedCall {
 public:
  ObservedCall(Observer& o, const Op& op, const void* block, const Passed* passed);
  ObservedCall(Observer& o, Invocation foreign);  // a callable that is not an op of ours
  ~ObservedCall();
  ObservedCall(const ObservedCall&) = delete;
  ObservedCall& operator=(const ObservedCall&) = delete;
  void after(const Value& result);
  void failed(const std::exception& e);
  Invocation invocation;

 private:
  void begin();
  Observer& observer_;
  std::string name_;
  Invocation* outer_;
};
}  // namespace detail

/// Candidates may report their chosen Config; stored only when an observer is installed.
void report_config(const std::string& text);
/// True when report_config has a listener in this thread, so that the text is built only then.
bool config_wanted();

}  // namespace flashinfer::op

#pragma GCC visibility pop
