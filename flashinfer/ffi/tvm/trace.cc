// SPDX-License-Identifier: Apache-2.0
// Trace definitions for the Python package: "flashinfer.trace.<name>". Templates, facts and definitions are JSON texts
// (trace/template.h, trace/facts.h).
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include "flashinfer/ffi/tvm/convert.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/op/tracer.h"
#include "flashinfer/trace/trace.h"
#include "flashinfer/trace/workloads.h"

namespace flashinfer::ffi {
namespace {

using trace::Json;

std::string text(tvm::AnyView v) { return std::string(v.cast<tvm::String>()); }

/// (op, facts, strict, name, receiver or None): the definition; "{}" when there is none.
std::string define_op(tvm::PackedArgs args) {
  const op::Op& op = op_named(text(args[0]));
  trace::Facts facts = trace::facts_from_json(Json::parse(text(args[1])));
  const op::Value self = from_tvm(args[4]);
  if (const auto* object = self.as<op::ObjectValue>(); object && object->object)
    trace::add_state(facts, *object->object);
  return trace::define(op, facts, {.name = text(args[3]), .strict = args[2].cast<bool>()}).dump();
}

/// The templates of an op, in order; those of calls of some form have "when". None: it is in no table.
tvm::Any templates(tvm::PackedArgs args) {
  const op::Op& op = op_named(text(args[0]));
  const auto entries = trace::entries_of(op);
  if (entries.empty()) return nullptr;
  Json out = Json::array();
  for (const op::TraceEntry* e : entries) {
    if (!e->op_type) continue;
    out.push_back(trace::to_json(trace::make_template(op, *e)));
    if (e->when[0]) out.back()["when"] = e->when;
  }
  return tvm::String(out.dump());
}

thread_local std::unique_ptr<Json> t_described;  // of the thread between describe_begin and describe_end

/// The tracer meanwhile: describes that thread's outermost calls.
class Describer final : public op::Observer {
 public:
  void before(op::Invocation& call) override {
    if (!t_described || !call.op || call.depth > 0) return;
    trace::Described d;
    try {
      d = trace::describe(*call.op, call.block);
    } catch (const std::exception& e) {
      d.why = e.what();
    }
    t_described->push_back(
        {{"function", call.name}, {"definition", d.definition}, {"workload", d.workload}, {"why", d.why}});
  }
  void after(op::Invocation&, const op::Value&) override {}
  void failed(op::Invocation&, const std::exception&) override {}
};
constinit Describer g_describer;

template <class F>
void global(const char* name, F f) {
  tvm::Function::SetGlobal(std::string("flashinfer.trace.") + name,
                           tvm::Function::FromPacked(
                               [f](tvm::PackedArgs args, tvm::Any* result) { translated([&] { *result = f(args); }); }),
                           true);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  global("define", [](tvm::PackedArgs args) { return tvm::Any(tvm::String(define_op(args))); });
  global("templates", templates);
  global("define_template", [](tvm::PackedArgs args) {  // (template, facts, strict, name)
    const trace::Template t = trace::template_from_json(Json::parse(text(args[0])));
    const trace::Facts facts = trace::facts_from_json(Json::parse(text(args[1])));
    return tvm::Any(
        tvm::String(trace::define(t, facts, {.name = text(args[3]), .strict = args[2].cast<bool>()}).dump()));
  });
  global("write", [](tvm::PackedArgs args) {  // (definition, folder, only once)
    const Json definition = Json::parse(text(args[0]));
    args[2].cast<bool>() ? trace::write_once(definition, text(args[1])) : trace::write(definition, text(args[1]));
    return tvm::Any(nullptr);
  });
  global("problems", [](tvm::PackedArgs args) {
    return tvm::Any(tvm::String(Json(trace::problems(Json::parse(text(args[0])))).dump()));
  });
  global("describe_begin", [](tvm::PackedArgs) {
    trace::settings();  // the environment is read before
    t_described = std::make_unique<Json>(Json::array());
    op::set_tracer(&g_describer);
    return tvm::Any(nullptr);
  });
  global("describe_end", [](tvm::PackedArgs) {
    trace::configure(trace::settings());
    const std::unique_ptr<Json> calls = std::move(t_described);
    return tvm::Any(tvm::String(calls ? calls->dump() : "[]"));
  });
  global("configure", [](tvm::PackedArgs args) {  // (on, strict, folder)
    trace::configure({.on = args[0].cast<bool>(), .strict = args[1].cast<bool>(), .dir = text(args[2])});
    return tvm::Any(nullptr);
  });
}

}  // namespace
}  // namespace flashinfer::ffi
