// SPDX-License-Identifier: Apache-2.0
// Passes calls of functions outside the library (decorated Python functions) to the recorder. The other language
// describes a function once (record.callable), a split of its arguments once (record.form), and then passes values as
// rows (rows.h).
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <atomic>
#include <deque>
#include <mutex>

#include "flashinfer/core/env.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/ffi/tvm/rows.h"
#include "flashinfer/op/observer.h"
#include "flashinfer/record/record.h"

namespace flashinfer::ffi {
namespace {

/// A function under one public name; kept for the life of the process, since records refer to its texts.
struct Callable {
  std::string name, module, signature;
};

/// A split of a function's arguments: which are positional, which are keywords, which are at their default.
struct Form {
  const Callable* callable = nullptr;
  std::vector<op::Arg> args{};  // with the values of constant defaults
  std::vector<size_t> sent{};   // those passed with each call
};

constinit ForkMutex g_mutex(ForkLayer::kFfi);
std::deque<Callable> g_callables;
std::deque<Form> g_forms;

template <class T>
T& entry(std::deque<T>& all, int64_t id) {
  const std::lock_guard lock(g_mutex);
  FI_CHECK(id >= 0 && id < static_cast<int64_t>(all.size()), ValueError, "record: there is no entry ", id);
  return all[static_cast<size_t>(id)];
}

/// The observed foreign calls of this thread that have not returned, innermost last.
thread_local std::vector<std::pair<int64_t, std::unique_ptr<op::detail::ObservedCall>>> t_calls;
thread_local int64_t t_last = 0;

op::Observer* current_observer() {
  op::Observer* o = op::observer();
  return o ? op::detail::resolve_observer(o) : nullptr;
}

/// 0: nothing more to do. 1: the values are needed. 2: and their str(), for a recording.
int64_t begin(int64_t id) {
  op::Observer* o = current_observer();
  if (!o) return 0;
  const Callable& c = entry(g_callables, id);
  const record::Wanted wanted = record::wanted(c.name);
  if (wanted == record::Wanted::kName) {
    op::Invocation call;
    call.name = c.name;
    call.module = c.module;
    op::detail::ObservedCall observed(*o, std::move(call));
  }
  return wanted == record::Wanted::kDump ? 2 : wanted == record::Wanted::kValues ? 1 : 0;
}

/// enter(form, self_id, codes, values...): a number for leave() or fail(); 0 when calls are no longer observed.
int64_t enter(tvm::PackedArgs args) {
  op::Observer* o = current_observer();
  if (!o) return 0;
  const Form& form = entry(g_forms, args[0].cast<int64_t>());
  const auto codes = args[2].cast<tvm::String>();
  op::Invocation call;
  call.name = form.callable->name;
  call.module = form.callable->module;
  call.foreign_signature = form.callable->signature;
  call.self_id = static_cast<uint64_t>(args[1].cast<int64_t>());
  call.foreign_args = form.args;
  Row row(args, 3, {codes.data(), codes.size()});
  for (const size_t i : form.sent) call.foreign_args[i].value = row.next();
  auto observed = std::make_unique<op::detail::ObservedCall>(*o, std::move(call));
  observed->invocation.start_ns = op::detail::monotonic_ns();
  t_calls.emplace_back(++t_last, std::move(observed));
  return t_last;
}

/// Ends the call of this number with f(call), and nested ones that never returned.
template <class F>
void end(int64_t token, int64_t now, F&& f) {
  while (!t_calls.empty() && t_calls.back().first > token) t_calls.pop_back();
  if (t_calls.empty() || t_calls.back().first != token) return;
  const auto call = std::move(t_calls.back().second);
  t_calls.pop_back();
  call->invocation.end_ns = now;
  f(*call);
}

int64_t add_callable(const tvm::String& name, const tvm::String& module, const tvm::String& signature) {
  const std::lock_guard lock(g_mutex);
  g_callables.push_back({std::string(name), std::string(module), std::string(signature)});
  return static_cast<int64_t>(g_callables.size()) - 1;
}

/// form(callable, names of the positional arguments, of the keywords, of the defaults, constant, codes, values...):
/// `constant` has '1' for each default that never changes, whose value follows, and '0' for each that is passed with
/// every call.
int64_t add_form(tvm::PackedArgs args) {
  Form form;
  form.callable = &entry(g_callables, args[0].cast<int64_t>());
  const auto constant = args[4].cast<tvm::String>(), codes = args[5].cast<tvm::String>();
  Row row(args, 6, {codes.data(), codes.size()});
  constexpr op::Arg::How kHow[] = {op::Arg::kPositional, op::Arg::kKeyword, op::Arg::kDefault};
  for (int list = 0; list < 3; ++list) {
    size_t i = 0;
    for (const tvm::Any& name : args[list + 1].cast<tvm::Array<tvm::Any>>()) {
      const bool sent = list < 2 || constant.data()[i++] == '0';
      form.args.push_back(
          {std::string(name.cast<tvm::String>()), kHow[list], sent ? op::Value() : row.next(), nullptr, nullptr});
      if (sent) form.sent.push_back(form.args.size() - 1);
    }
  }
  const std::lock_guard lock(g_mutex);
  g_forms.push_back(std::move(form));
  return static_cast<int64_t>(g_forms.size()) - 1;
}

void leave(tvm::PackedArgs args) {
  const int64_t now = op::detail::monotonic_ns();
  const auto codes = args[1].cast<tvm::String>();
  const op::Value result = Row(args, 2, {codes.data(), codes.size()}).next();  // an error here leaves the call open
  end(args[0].cast<int64_t>(), now, [&](op::detail::ObservedCall& call) { call.after(result); });
}

void fail(int64_t token, tvm::String type, tvm::String message) {
  end(token, op::detail::monotonic_ns(), [&](op::detail::ObservedCall& call) {
    call.failed(record::ForeignError(std::string(type), std::string(message)));
  });
}

void log_error(int64_t callable, const tvm::String& phase, const tvm::String& message) {
  const std::string where(phase), what(message);
  record::log_error(entry(g_callables, callable).name, where, what);
}

/// An id for an object of the other language: never reused, and far from the ids of the library's own (op/object.h).
int64_t object_number() {
  static std::atomic<int64_t> next{int64_t{1} << 32};
  return next.fetch_add(1, std::memory_order_relaxed);
}

template <class F>
void set(const char* name, F&& f) {
  tvm::Function::SetGlobal(std::string("flashinfer.record.") + name, std::forward<F>(f), true);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  set("callable", tvm::Function::FromTyped(add_callable));
  set("object_number", tvm::Function::FromTyped(object_number));
  set("begin", tvm::Function::FromTyped(begin));
  set("fail", tvm::Function::FromTyped(fail));
  set("log_error", tvm::Function::FromTyped(log_error));
  set("form",
      tvm::Function::FromPacked([](tvm::PackedArgs args, tvm::Any* r) { translated([&] { *r = add_form(args); }); }));
  set("enter",
      tvm::Function::FromPacked([](tvm::PackedArgs args, tvm::Any* r) { translated([&] { *r = enter(args); }); }));
  set("leave", tvm::Function::FromPacked([](tvm::PackedArgs args, tvm::Any*) { translated([&] { leave(args); }); }));
}

}  // namespace
}  // namespace flashinfer::ffi
