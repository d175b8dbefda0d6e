// SPDX-License-Identifier: Apache-2.0
#include <deque>

#include "flashinfer/core/context.h"
#include "flashinfer/core/cuda/libraries.h"
#include "flashinfer/core/transfer.h"
#include "flashinfer/core/version.h"
#include "flashinfer/ffi/call.h"
#include "flashinfer/ffi/describe.h"
#include "flashinfer/ffi/flashinfer_c.h"
#include "flashinfer/jit/cache.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/record/record.h"
#include "flashinfer/trace/trace.h"

using namespace flashinfer;

struct flashinfer_object {
  std::unique_ptr<op::Object> object;
};
struct flashinfer_generator {
  op::Generator generator;
};

/// A result as C sees it: a tree of values that owns its tensors and extents.
struct flashinfer_result {
  explicit flashinfer_result(op::Value v) : source(std::move(v)) { root = convert(source); }

  op::Value source;
  flashinfer_value root;
  std::deque<Tensor> tensors;
  std::deque<DLTensor> views;
  std::deque<std::array<int64_t, 2 * TensorView::kMaxRank>> extents;
  std::deque<std::vector<flashinfer_value>> lists;

 private:
  flashinfer_value convert(const op::Value& v) {
    if (const auto* t = v.as<op::TensorValue>()) return convert_tensor(*t);
    if (const auto* t = v.as<op::TupleValue>()) return convert_items(t->items, FLASHINFER_TUPLE);
    if (const auto* l = v.as<op::ListValue>()) return convert_items(l->items, FLASHINFER_LIST);
    if (const auto* b = v.as<bool>()) return flashinfer_bool(*b);
    if (const auto* i = v.as<int64_t>()) return flashinfer_int(*i);
    if (const auto* d = v.as<double>()) return flashinfer_float(*d);
    if (const auto* s = v.as<std::string>()) return flashinfer_string(s->c_str());
    return flashinfer_none();
  }
  flashinfer_value convert_tensor(const op::TensorValue& t) {
    const TensorView& v = t.view;
    auto& e = extents.emplace_back();
    std::copy(v.shape().begin(), v.shape().end(), e.begin());
    std::copy(v.strides().begin(), v.strides().end(), e.begin() + TensorView::kMaxRank);
    tensors.emplace_back(v, t.owner);
    views.push_back({v.data(), to_dlpack(v.device()), v.rank(), to_dlpack(v.dtype()), e.data(),
                     e.data() + TensorView::kMaxRank, 0});
    return flashinfer_tensor(&views.back());
  }
  flashinfer_value convert_items(const std::vector<op::Value>& items, flashinfer_kind kind) {
    std::vector<flashinfer_value> out;
    for (const op::Value& v : items) out.push_back(convert(v));
    const auto& kept = lists.emplace_back(std::move(out));
    flashinfer_value v = flashinfer_tuple(kept.data(), static_cast<int32_t>(kept.size()));
    v.kind = kind;
    return v;
  }
};

namespace {

thread_local std::string t_error;

flashinfer_status status_of(ErrorKind kind) { return static_cast<flashinfer_status>(static_cast<int>(kind) + 1); }
static_assert(static_cast<int>(ErrorKind::kInternalError) + 1 == FLASHINFER_INTERNAL_ERROR);

/// Runs f; an exception becomes the thread's last error.
template <class F>
flashinfer_status guarded(F&& f) noexcept {
  try {
    f();
    return FLASHINFER_OK;
  } catch (const Error& e) {
    t_error = e.what();
    return status_of(e.kind());
  } catch (const std::exception& e) {
    t_error = std::string("RuntimeError: ") + e.what();
  } catch (...) {
    t_error = "RuntimeError: an exception that is no std::exception";
  }
  return FLASHINFER_RUNTIME_ERROR;
}

op::Value to_value(const flashinfer_value& v, int depth = 0) {
  FI_CHECK(depth < 8, ValueError, "lists are nested deeper than 8");
  const auto items = [&] {
    FI_CHECK(v.count == 0 || (v.count > 0 && v.as.items), ValueError, "a list has ", v.count,
             " items at a null pointer");
    std::vector<op::Value> out;
    for (int32_t i = 0; i < v.count; ++i) out.push_back(to_value(v.as.items[i], depth + 1));
    return out;
  };
  switch (v.kind) {
    case FLASHINFER_NONE: return {};
    case FLASHINFER_BOOL: return v.as.integer != 0;
    case FLASHINFER_INT: return v.as.integer;
    case FLASHINFER_FLOAT: return v.as.number;
    case FLASHINFER_LIST: return op::ListValue{items()};
    case FLASHINFER_TUPLE: return op::TupleValue{items()};
    case FLASHINFER_STRING: FI_CHECK(v.as.string, ValueError, "a string is a null pointer"); return v.as.string;
    case FLASHINFER_TENSOR:
      FI_CHECK(v.as.tensor, ValueError, "a tensor is a null pointer");
      return TensorView(*v.as.tensor);
    case FLASHINFER_OBJECT:
      FI_CHECK(v.as.object, ValueError, "an object is a null pointer");
      return ffi::self_value(*v.as.object->object);
    case FLASHINFER_GENERATOR:
      FI_CHECK(v.as.generator, ValueError, "a generator is a null pointer");
      return v.as.generator->generator;
  }
  throw ValueError(str("a value has kind ", static_cast<int>(v.kind), ", which does not exist"));
}

op::Passed passed_from(std::string_view function, const char* const* names, const flashinfer_value* values, int32_t n) {
  FI_CHECK(n >= 0 && (n == 0 || values), ValueError, function, ": ", n, " arguments at a null pointer");
  op::Passed passed;
  for (int32_t i = 0; i < n; ++i) {
    const char* name = names ? names[i] : nullptr;
    const std::string which = name ? str("'", name, "'") : str("number ", i);
    FI_CHECK(name || passed.keyword.empty(), TypeError, function, "(): positional argument number ", i,
             " follows a named one");
    try {
      if (name)
        passed.keyword.emplace_back(name, to_value(values[i]));
      else
        passed.positional.push_back(to_value(values[i]));
    } catch (const Error& e) {
      throw_error(e.kind(), str(function, ": argument ", which, ": ", e.message()));
    }
  }
  return passed;
}

}  // namespace

extern "C" {

const char* flashinfer_last_error(void) { return t_error.c_str(); }
const char* flashinfer_version(void) { return build::version(); }
const char* flashinfer_commit(void) { return build::commit(); }
void flashinfer_set_python_prefix(const char* prefix) { flashinfer::cuda::set_python_prefix(prefix); }
void flashinfer_add_precompiled_folder(const char* folder) { flashinfer::jit::add_aot_folder(folder); }
int flashinfer_observed(void) { return flashinfer::op::observed() ? 1 : 0; }
const char* flashinfer_describe_ops(void) {
  static const std::string text = flashinfer::ffi::describe_ops();
  return text.c_str();
}

flashinfer_status flashinfer_call(const char* name, const char* const* names, const flashinfer_value* values, int32_t n,
                                  flashinfer_result** result) {
  if (result) *result = nullptr;
  return guarded([&] {
    FI_CHECK(name, ValueError, "flashinfer_call: the op's name is a null pointer");
    const op::Op& op = ffi::op_named(name);
    op::Value value = op::call_values(op, passed_from(name, names, values, n));
    if (result) *result = new flashinfer_result(std::move(value));
  });
}

const flashinfer_value* flashinfer_result_value(const flashinfer_result* result) {
  return result ? &result->root : nullptr;
}

DLManagedTensorVersioned* flashinfer_result_dlpack(const flashinfer_result* result, int32_t index) {
  if (!result || index < 0 || static_cast<size_t>(index) >= result->tensors.size()) return nullptr;
  DLManagedTensorVersioned* capsule = nullptr;
  guarded([&] { capsule = result->tensors[static_cast<size_t>(index)].to_dlpack(); });
  return capsule;
}

void flashinfer_result_free(flashinfer_result* result) { delete result; }

flashinfer_status flashinfer_object_new(const char* class_name, const char* const* names,
                                        const flashinfer_value* values, int32_t n, flashinfer_object** object) {
  if (object) *object = nullptr;
  return guarded([&] {
    FI_CHECK(class_name && object, ValueError, "flashinfer_object_new: a null pointer");
    auto made = ffi::make_object(class_name, passed_from(class_name, names, values, n));
    *object = new flashinfer_object{std::move(made)};
  });
}

void flashinfer_object_free(flashinfer_object* object) { delete object; }

flashinfer_generator* flashinfer_generator_new(uint64_t seed, uint64_t offset) {
  flashinfer_generator* generator = nullptr;
  guarded([&] { generator = new flashinfer_generator{op::Generator(seed, offset)}; });
  return generator;
}
void flashinfer_generator_free(flashinfer_generator* generator) { delete generator; }

int32_t flashinfer_op_count(void) { return static_cast<int32_t>(op::all_ops().size()); }

const char* flashinfer_op_name(int32_t index) {
  const std::vector<const op::Op*> ops = op::all_ops();
  return index < 0 || static_cast<size_t>(index) >= ops.size() ? nullptr : ops[static_cast<size_t>(index)]->name;
}

const char* flashinfer_op_signature(const char* name) {
  thread_local std::string text;
  const op::Op* op = name ? op::find_op(name) : nullptr;
  if (!op) return nullptr;
  text = op::signature(*op);
  return text.c_str();
}

flashinfer_status flashinfer_record_start(int32_t level, const char* dump_dir) {
  return guarded([&] {
    FI_CHECK(level > 0, ValueError, "flashinfer_record_start: level is ", level, ", but must be positive");
    record::Settings s = record::settings();
    s.level = level;
    if (dump_dir) s.dump_dir = dump_dir;
    record::configure(s);
  });
}

flashinfer_status flashinfer_record_stop(void) {
  return guarded([] { record::stop(); });
}

int32_t flashinfer_record_level(void) { return record::settings().level; }

flashinfer_status flashinfer_record_restart(void) {
  return guarded([] {
    record::restart_from_env();
    trace::restart_from_env();
  });
}

int64_t flashinfer_flush_graph_dumps(int32_t synchronize, uint64_t graph) {
  int64_t n = -1;
  guarded([&] { n = record::flush_graph_dumps(synchronize != 0, graph); });
  return n;
}
int64_t flashinfer_clear_graph_dumps(void) { return record::clear_graph_dumps(); }

flashinfer_status flashinfer_add_version(const char* name, const char* version) {
  return guarded([&] {
    FI_CHECK(name && version, ValueError, "flashinfer_add_version: name or version is a null pointer");
    record::add_version(name, version);
  });
}

flashinfer_status flashinfer_record_set(const char* setting) {
  return guarded([&] {
    FI_CHECK(setting, ValueError, "flashinfer_record_set: the setting is a null pointer");
    record::Settings s = record::settings();
    record::apply(s, setting);
    record::configure(s);
  });
}

void flashinfer_set_executor(flashinfer_run_tasks run, void* self, int32_t threads) {
  thread_local Context context;
  thread_local std::unique_ptr<ContextScope> scope;
  scope.reset();
  if (!run) return;
  context = Context::current();
  context.executor = {self, threads, run};
  scope = std::make_unique<ContextScope>(context);
}

}  // extern "C"
