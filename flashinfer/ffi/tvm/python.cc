// SPDX-License-Identifier: Apache-2.0
// Functions for the Python package (python/flashinfer/_native.py). For every op a function "flashinfer.python.<name>"
// takes all parameters of the public signature by position, then hidden members (is_trailing): Python has already bound
// the call, so this is the fast path. It returns only what the caller does not hold:
//   one output that may be returned:  the new tensor, or None when the caller passed the memory
//   several:                          an array; an integer i stands for the tensor passed for output i
// "flashinfer.python.flat.<name>", for ops whose results have a form (op::as_numbers, ...), returns the plain tensors.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "flashinfer/cases/parse.h"
#include "flashinfer/core/context.h"
#include "flashinfer/core/env.h"
#include "flashinfer/core/fork_mutex.h"
#include "flashinfer/core/openmp.h"
#include "flashinfer/core/thread_pool.h"
#include "flashinfer/core/warn.h"
#include "flashinfer/ffi/tvm/convert.h"
#include "flashinfer/op/backend.h"
#include "flashinfer/op/collective.h"
#include "flashinfer/op/owned_block.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/op/select.h"
#include "flashinfer/op/tracer.h"
#include "flashinfer/record/record.h"

namespace flashinfer::ffi {
namespace {

/// Per-op data shared by all calls.
struct Prepared {
  const op::Op* op;
  std::vector<const op::Field*> parameters;  // in the order of the packed arguments
  std::vector<bool> none_counts;  // of each parameter: None is a value of its own, as the default is another one
  std::vector<const op::Field*> returned;  // outputs that the function returns
  bool formed = false;                     // some of them not as the tensors they are (op::as_numbers, ...)
};

/// Hidden members that Python may set: generators that a call draws from when it names none, and the member that an
/// alias of a method sets. None: not set.
bool is_trailing(const op::Field& f) { return f.internal && f.role == op::Role::kAttr; }

Prepared prepare(const op::Op& op) {
  Prepared p{&op, {}, {}, {}, false};
  for (const op::Field& f : op.fields) {
    if (f.role != op::Role::kResult && !f.internal) p.parameters.push_back(&f);
    if ((f.role == op::Role::kOut || f.role == op::Role::kResult) && !f.not_returned && f.tensors)
      p.returned.push_back(&f);
  }
  for (const op::Field& f : op.fields) {
    if (is_trailing(f)) p.parameters.push_back(&f);
    if (f.role == op::Role::kInOut && f.when) p.returned.push_back(&f);
  }
  for (const op::Field* f : p.parameters)
    p.none_counts.push_back(f->role == op::Role::kAttr && f->optional && !f->internal &&
                            !f->get(op::default_block(op)).is_none());
  for (const op::Field* f : p.returned) p.formed |= f->as_numbers || f->unstacked || f->tuple_with_previous;
  return p;
}

using StackBlock = op::OwnedBlock<3072>;

void set(const op::Op& op, void* block, const op::Field& f, const op::Value& v) {
  try {
    f.set(block, v, f);
  } catch (const Error& e) {
    throw_error(e.kind(), str(op.name, ": ", e.message()));
  }
}

op::Value value_of(const op::Op& op, const op::Field& f, tvm::AnyView v, bool own) {
  try {
    return from_tvm(v, own);
  } catch (const Error& e) {
    throw_error(e.kind(), str(op.name, ": ", f.name, ": ", e.message()));
  }
}

/// The returned outputs that the caller passed: bit i for output i.
unsigned given_outputs(const Prepared& p, const void* block) {
  unsigned bits = 0;
  for (size_t i = 0; i < p.returned.size(); ++i)
    if (!p.returned[i]->tensors(block).empty()) bits |= 1u << i;
  return bits;
}

tvm::Any results_of(const Prepared& p, const op::Results& results, unsigned given, bool flat = false) {
  if (p.returned.size() == 1 && !p.formed) {
    if (given || results.size() == 0) return nullptr;
    return to_tvm(results[0]);
  }
  const auto tensor = [&](int i) -> op::Value {
    const auto n = std::find(p.returned.begin(), p.returned.end(), results.field(i)) - p.returned.begin();
    return given >> n & 1 ? op::Value(int64_t{n}) : op::Value(results[i]);
  };
  if (!flat) return to_tvm(results.value(tensor));
  tvm::Array<tvm::Any> out;
  for (int i = 0; i < results.size(); ++i) out.push_back(to_tvm(tensor(i)));
  return out;
}

void fill(const Prepared& p, void* block, tvm::PackedArgs args) {
  const op::Op& op = *p.op;
  FI_CHECK(args.size() <= static_cast<int>(p.parameters.size()), TypeError, op.name, "() takes ", p.parameters.size(),
           " arguments but ", args.size(), " were given");
  for (int i = 0; i < args.size(); ++i) {
    const op::Field& f = *p.parameters[static_cast<size_t>(i)];
    const tvm::AnyView v = args[i];
    if (v.type_index() == kTVMFFINone && (f.optional || f.internal) && !p.none_counts[static_cast<size_t>(i)])
      continue;  // absent: keep the default
    set(op, block, f, value_of(op, f, v, false));
  }
}

/// A collective call with an argument of a wrong type has ended on all ranks; but with a list, which comes as a tuple,
/// when Python has called again with what makes it a list (_arrays.py: retried).
void abandon(tvm::PackedArgs args, const std::exception& error) {
  op::Passed objects;
  for (int i = 0; i < args.size(); ++i) {
    if (args[i].type_index() == kTVMFFIArray) return;
    const bool is_tensor = args[i].type_index() == kTVMFFITensor || args[i].type_index() == kTVMFFIDLTensorPtr;
    if (is_tensor || args[i].as<HandleRef>()) objects.positional.push_back(from_tvm(args[i]));
  }
  op::detail::abandon(objects, error);
}

void call(const Prepared& p, tvm::PackedArgs args, tvm::Any* result, bool flat = false) {
  const op::Op& op = *p.op;
  StackBlock block(op.block);
  try {
    fill(p, block.data(), args);
  } catch (const std::exception& e) {
    if (op.is_collective) abandon(args, e);
    throw;
  }
  const unsigned given = given_outputs(p, block.data());
  const op::Results results = op::run(op, block.data());
  *result = results_of(p, results, given, flat);
}

/// Arguments as `call`, tensors as "flashinfer.value.type" makes them -> [field, dtype, rank, extents..., strides...]
/// of each output; without strides it is row-major.
void infer(const Prepared& p, tvm::PackedArgs args, tvm::Any* result) {
  StackBlock block(p.op->block);
  fill(p, block.data(), args);
  tvm::Array<tvm::Any> out;
  for (const op::OutputType& t : op::infer_outputs(*p.op, block.data())) {
    tvm::Array<tvm::Any> one{tvm::String(t.field->name), tvm::String(std::string(name(t.dtype))),
                             static_cast<int64_t>(t.shape.rank)};
    for (int64_t n : t.shape.span()) one.push_back(n);
    if (t.field->strides)
      for (int64_t n : t.field->strides(block.data()).span()) one.push_back(n);
    out.push_back(one);
  }
  *result = out;
}

/// (n, positional..., name, value, name, value, ...): the caller's own split, for observers.
void call_observed(const Prepared& p, tvm::PackedArgs args, tvm::Any* result) {
  const op::Op& op = *p.op;
  op::Passed passed;
  const int n = args[0].cast<int>();
  for (int i = 1; i <= n; ++i) passed.positional.push_back(from_tvm(args[i]));
  for (int i = n + 1; i + 1 < args.size(); i += 2)
    passed.keyword.emplace_back(std::string(args[i].cast<tvm::String>()), from_tvm(args[i + 1]));
  op::Block block(op);
  block.bind(passed);
  const unsigned given = given_outputs(p, block.data());
  const op::Results results = op::run(op, block.data(), &passed);
  *result = results_of(p, results, given);
}

template <class F>
void global(const std::string& name, F f) {
  tvm::Function::SetGlobal("flashinfer.python." + name, tvm::Function::FromPacked(std::move(f)), true);
}

void export_op(const op::Op& op) {
  const auto p = std::make_shared<const Prepared>(prepare(op));
  global(op.name, [p](tvm::PackedArgs args, tvm::Any* result) { translated([&] { call(*p, args, result); }); });
  if (p->formed)
    global(std::string("flat.") + op.name,
           [p](tvm::PackedArgs args, tvm::Any* result) { translated([&] { call(*p, args, result, true); }); });
  global(std::string("infer.") + op.name,
         [p](tvm::PackedArgs args, tvm::Any* result) { translated([&] { infer(*p, args, result); }); });
  global(std::string("observed.") + op.name,
         [p](tvm::PackedArgs args, tvm::Any* result) { translated([&] { call_observed(*p, args, result); }); });
}

/// A copy of the value with new tensors, strides included.
tvm::Any copied(const op::Value& v) {
  if (const TensorView* t = v.tensor()) {
    const int64_t bytes = t->span_bytes();
    const Tensor memory = Tensor::empty({bytes}, DType::kU8);
    if (bytes) std::memcpy(memory.data(), t->data(), static_cast<size_t>(bytes));
    return to_tvm(Tensor(TensorView(memory.data(), t->dtype(), t->shape(), t->strides()), memory.owner()));
  }
  if (const auto* g = v.as<op::Generator>()) {
    auto boxed = tvm::make_object<Boxed>();
    boxed->value = *g;
    return BoxedRef(std::move(boxed));
  }
  if (const auto* pair = v.as<op::TupleValue>()) {
    tvm::Array<tvm::Any> out;
    for (const op::Value& x : pair->items) out.push_back(copied(x));
    return out;
  }
  return to_tvm(v);
}

/// The object of a class, before its __init__ runs (which is an ordinary op).
void make_object_of(tvm::PackedArgs args, tvm::Any* result) {
  translated([&] {
    const std::string class_name(args[0].cast<tvm::String>());
    const op::Op& init = op_named(class_name + ".__init__");
    auto handle = tvm::make_object<Handle>();
    handle->object = std::make_unique<op::Object>(op::intern_class(class_name), init.module, *init.state);
    *result = HandleRef(std::move(handle));
  });
}

/// (op, number of a case) -> [name, value, name, value, ...] of its arguments without a method's receiver, or None:
/// there is no such case. Random values of large tensors repeat.
void case_arguments(tvm::PackedArgs args, tvm::Any* result) {
  translated([&] {
    const op::Op& op = op_named(std::string(args[0].cast<tvm::String>()));
    const auto number = static_cast<size_t>(args[1].cast<int64_t>());
    if (number >= op.cases().size()) return;
    const cases::Built built =
        cases::build(op, op.cases()[number].args, {.keep_bytes = false, .repeat_after = int64_t{1} << 16});
    tvm::Array<tvm::Any> out;
    for (const op::Field& f : op.fields) {
      if (f.role == op::Role::kSelf || f.role == op::Role::kResult) continue;
      const op::Value v = f.get(built.block.data());
      if (v.is_none() || (!f.required && op::same_value(v, f.get(op::default_block(op))))) continue;
      if (f.internal) return;  // not a parameter of the public function
      out.push_back(tvm::String(f.name));
      out.push_back(copied(v));
    }
    *result = out;
  });
}

/// The context that set_threads makes current in a thread. Pools of one size are shared by all threads.
struct ThreadContext {
  Context context;
  std::shared_ptr<const Executor> pool;
  ContextScope scope{context};
};
bool g_share_openmp = false;  // set before the first call

/// torch computes in this process: its OpenMP workers run our tasks too (core/openmp.h), even where the runtime
/// has bound this thread to one CPU: as many as there are, but no more than the CPU quota of the process. False when
/// it has none.
bool share_openmp() {
  if (!env::flag("FLASHINFER_SHARE_OPENMP")) return false;
  int threads = default_executor().threads;
  if (env::integer("FLASHINFER_NUM_THREADS") <= 0) {
    const int quota = cpu_quota(), workers = openmp_threads();
    threads = std::max(threads, quota > 0 ? std::min(workers, quota) : workers);
  }
  const Executor e = openmp_executor(threads);
  if (!e.run) return false;
  set_default_executor(e);
  return g_share_openmp = true;
}
std::shared_ptr<const Executor> pool_of(int threads) {
  if (g_share_openmp) return std::make_shared<const Executor>(openmp_executor(threads));
  static constinit ForkMutex mutex(ForkLayer::kFfi);
  static std::map<int, std::shared_ptr<const Executor>> pools;
  std::lock_guard lock(mutex);
  auto& pool = pools[threads];
  if (!pool) pool = make_thread_pool(threads);
  return pool;
}
/// Sets the number of threads for calls of this thread; 0: the library's default. Returns the previous value.
int64_t set_threads(int64_t threads) {
  static thread_local std::unique_ptr<ThreadContext> t_context;
  FI_CHECK(threads >= 0 && threads <= 4096, ValueError, "set_num_threads: ", threads,
           " threads, but 1 to 4096 are possible");
  const int64_t before = t_context ? t_context->context.executor.threads : 0;
  t_context.reset();
  if (!threads) return before;
  t_context = std::make_unique<ThreadContext>();
  t_context->pool = pool_of(static_cast<int>(threads));
  t_context->context.executor = *t_context->pool;
  return before;
}

/// Calls of this thread use only the candidate of this name (op::ForceCandidate); empty: the library chooses. Returns
/// the previous name.
std::string force_candidate(const std::string& name) {
  static thread_local std::string t_name;
  static thread_local std::unique_ptr<op::ForceCandidate> t_forced;
  t_forced.reset();
  if (!name.empty()) t_forced = std::make_unique<op::ForceCandidate>(name);
  return std::exchange(t_name, name);
}

// Python callbacks. Set once, never freed: calls may be in progress while the interpreter ends.
tvm::Function* g_on_observer = nullptr;
tvm::Function* g_on_warning = nullptr;

/// Whether the split into positional and keyword arguments matters: the log's levels 1 and 2 print names only.
bool arguments_wanted() {
  if (!op::observed() || !op::main_observer()) return false;
  const record::Settings s = record::settings();
  return s.level >= 3 || s.level < 1 || !s.control.empty();
}

void listen(tvm::PackedArgs args, tvm::Any*) {
  g_on_observer = new tvm::Function(args[0].cast<tvm::Function>());
  g_on_warning = new tvm::Function(args[1].cast<tvm::Function>());
  op::listen_to_observer([] { (*g_on_observer)(arguments_wanted()); });
  set_warning_handler([](const std::string& message, WarningKind kind) {
    (*g_on_warning)(tvm::String(message), static_cast<int64_t>(kind));
  });
}

TVM_FFI_STATIC_INIT_BLOCK() {
  for (const op::Op* op : op::all_ops()) export_op(*op);
  global("new", make_object_of);
  global("listen", listen);
  global("case_arguments", case_arguments);
  global("set_threads", [](tvm::PackedArgs args, tvm::Any* result) {
    translated([&] { *result = set_threads(args[0].cast<int64_t>()); });
  });
  global("force_candidate", [](tvm::PackedArgs args, tvm::Any* result) {
    translated([&] { *result = tvm::String(force_candidate(std::string(args[0].cast<tvm::String>()))); });
  });
  global("share_openmp", [](tvm::PackedArgs, tvm::Any* result) { *result = share_openmp(); });
  global("threads", [](tvm::PackedArgs, tvm::Any* result) { *result = int64_t{Context::current().executor.threads}; });
  global("arguments_wanted", [](tvm::PackedArgs, tvm::Any* result) { *result = arguments_wanted(); });
  global("backend_unsupported_reason", [](tvm::PackedArgs args, tvm::Any* result) {
    translated([&] {
      *result =
          tvm::String(op::backend_unsupported_reason(op_named(std::string(args[0].cast<tvm::String>())),
                                                     std::string(args[1].cast<tvm::String>()), args[2].cast<int>()));
    });
  });
}

}  // namespace
}  // namespace flashinfer::ffi
