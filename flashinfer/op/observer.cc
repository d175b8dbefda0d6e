// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/op/observer.h"

#include <time.h>

#include <algorithm>
#include <mutex>

#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/op/tracer.h"

namespace flashinfer::op {
namespace {

struct Unresolved final : Observer {
  void before(Invocation&) override {}
  void after(Invocation&, const Value&) override {}
  void failed(Invocation&, const std::exception&) override {}
};
constinit Unresolved g_unresolved;
std::atomic<uint64_t> g_sequence{0};
thread_local Invocation* t_current = nullptr;  // the innermost observed call
std::atomic<void (*)()> g_changed{nullptr};

std::atomic<Observer*> g_main{nullptr};    // of set_observer
std::atomic<Observer*> g_tracer{nullptr};  // of set_tracer
constinit ForkMutex g_install(ForkLayer::kOp);

/// The tracer, then the log and the recorder. Each sees what was installed when the call began (`Invocation::state` is
/// the log's).
struct Both final : Observer {
  void before(Invocation& call) override {
    if (Observer* tracer = g_tracer.load(std::memory_order_acquire)) tracer->before(call);
    if (Observer* main = g_main.load(std::memory_order_acquire)) main->before(call);
  }
  void after(Invocation& call, const Value& result) override {
    if (Observer* main = g_main.load(std::memory_order_acquire)) main->after(call, result);
  }
  void failed(Invocation& call, const std::exception& error) override {
    if (Observer* main = g_main.load(std::memory_order_acquire)) main->failed(call, error);
  }
};
constinit Both g_both;

Observer* effective() { return g_tracer.load() ? &g_both : g_main.load(); }
void changed() {
  if (auto f = g_changed.load(std::memory_order_acquire)) f();
}

}  // namespace

namespace detail {
constinit std::atomic<Observer*> g_observer{&g_unresolved};

Observer* resolve_observer(Observer* o) {
  if (o != &g_unresolved) return o;
  static std::once_flag once;
  std::call_once(once, [] {
    start_observing();
    start_tracing();
    Observer* marker = &g_unresolved;  // unless start_observing (or a program) installed one
    g_observer.compare_exchange_strong(marker, nullptr);
  });
  o = observer();
  return o == &g_unresolved ? nullptr : o;
}

int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

ObservedCall::ObservedCall(Observer& o, const Op& op, const void* block, const Passed* passed)
    : observer_(o), outer_(t_current) {
  invocation.name = op.name;
  invocation.module = op.module;
  invocation.op = &op;
  invocation.block = block;
  invocation.passed = passed;
  if (op.state && !op.fields.empty() && op.fields[0].role == Role::kSelf) {
    const Value self = op.fields[0].get(block);
    if (const auto* s = self.as<ObjectValue>()) {
      invocation.self_id = s->id;
      const std::string_view method = invocation.name.substr(invocation.name.rfind('.') + 1);
      if (invocation.name.substr(0, invocation.name.size() - method.size() - 1) != s->class_name) {
        name_ = s->class_name + "." + std::string(method);  // a class that derives from the one the op belongs to
        invocation.name = name_;
      }
    }
  }
  begin();
}
ObservedCall::ObservedCall(Observer& o, Invocation foreign)
    : invocation(std::move(foreign)), observer_(o), outer_(t_current) {
  begin();
}

void ObservedCall::begin() {
  invocation.sequence = g_sequence.fetch_add(1, std::memory_order_relaxed) + 1;
  invocation.depth = outer_ ? outer_->depth + 1 : 0;
  t_current = &invocation;
  try {
    observer_.before(invocation);
  } catch (...) {
  }
}
ObservedCall::~ObservedCall() { t_current = outer_; }

void ObservedCall::after(const Value& result) {
  try {
    observer_.after(invocation, result);
  } catch (...) {
  }
}
void ObservedCall::failed(const std::exception& e) {
  try {
    observer_.failed(invocation, e);
  } catch (...) {
  }
}
}  // namespace detail

Observer* set_observer(Observer* o) {
  start_tracing();  // a program that installs an observer before its first call
  Observer* before;
  {
    const std::lock_guard lock(g_install);
    before = g_main.exchange(o);
    detail::g_observer.store(effective(), std::memory_order_release);
  }
  changed();
  return before;
}
void set_tracer(Observer* tracer) {
  {
    const std::lock_guard lock(g_install);
    if (g_tracer.exchange(tracer) == tracer) return;
    detail::g_observer.store(effective(), std::memory_order_release);
  }
  changed();
}
Observer* main_observer() { return g_main.load(std::memory_order_acquire); }

void listen_to_observer(void (*changed)()) { g_changed.store(changed, std::memory_order_release); }
bool observed() {
  Observer* o = observer();
  return o && detail::resolve_observer(o);
}

bool config_wanted() { return t_current != nullptr; }
void report_config(const std::string& text) {
  if (t_current) t_current->config = text;
}

std::string Invocation::signature() const { return op ? op::signature(*op) : foreign_signature; }

std::vector<Arg> Invocation::args() const {
  if (!op) return foreign_args;
  std::vector<Arg> out;
  std::vector<const Field*> used;
  if (passed) {
    const Positional by_position = positional(*op);
    for (size_t i = 0; i < passed->positional.size(); ++i) {
      const Field* f = i < by_position.fields.size() ? by_position.fields[i] : by_position.varargs;
      if (!f) break;  // too many: the call will say so
      out.push_back({f->name, Arg::kPositional, passed->positional[i], nullptr, f});
      used.push_back(f);
    }
    for (const auto& [n, v] : passed->keyword) {
      const Field* f = find_field(*op, n);
      out.push_back({n, Arg::kKeyword, v, nullptr, f});
      used.push_back(f);
    }
  }
  // A C++ call: required arguments are positional where the signature lets them; those after `*`, and optional ones
  // that differ from their default, are keywords.
  const void* defaults = default_block(*op);
  std::vector<Arg> keyword, rest;
  bool by_name = false;
  for (const Field& f : op->fields) {
    by_name |= f.keyword_only;
    if (std::find(used.begin(), used.end(), &f) != used.end()) continue;
    if (f.required) {
      if (!passed)
        (by_name ? keyword : out)
            .push_back({f.name, by_name ? Arg::kKeyword : Arg::kPositional, f.get(block), nullptr, &f});
      continue;
    }
    Value value = f.get(block), standard = f.get(defaults);
    if (f.varargs) {
      if (const auto* items = sequence_items(value); items && !passed)
        for (const Value& item : *items) out.push_back({f.name, Arg::kPositional, item, nullptr, &f});
      continue;
    }
    const bool is_default =
        (passed && !f.internal) || (value.is_none() && standard.is_none()) || same_value(value, standard);
    const bool extra = f.role == Role::kResult || f.internal;  // not in the public signature
    const Arg::How how = f.internal && f.role == Role::kAttr ? Arg::kImplied : Arg::kKeyword;
    if (!is_default)
      keyword.push_back({f.name, how, std::move(value), nullptr, &f});
    else if (!extra)
      rest.push_back({f.name, Arg::kDefault, std::move(standard), f.literal, &f});
  }
  out.insert(out.end(), std::make_move_iterator(keyword.begin()), std::make_move_iterator(keyword.end()));
  out.insert(out.end(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
  return out;
}

}  // namespace flashinfer::op
