// SPDX-License-Identifier: Apache-2.0
// The replayer's reader and comparer, for Python code that runs the calls itself.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/reflection/registry.h>

#include "flashinfer/ffi/tvm/rows.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/record/format.h"
#include "flashinfer/replay/compare.h"

namespace flashinfer::ffi {
namespace {

using formats::Json;
using replay::Session;

std::optional<Device> device_named(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const auto d = parse_device(name);
  FI_CHECK(d, ValueError, "replay: there is no device '", name, "'");
  return d;
}

/// The folders of a session's calls in the order of the recording, and the problems found.
tvm::String list(const tvm::String& folder) {
  const Session s = replay::open_session(std::string(folder));
  Json out{{"single", s.single}, {"notes", s.notes}, {"calls", Json::array()}};
  for (const replay::CallEntry& c : s.calls)
    out["calls"].push_back({{"folder", c.folder.string()}, {"error", c.error}});
  return formats::dump_json(out);
}

struct Opened {
  Session session;
  replay::Call call;
  const Json& details() const { return replay::object_of(call.record, record::kTensorDetails); }
};
Opened open_one(const std::string& folder) {
  Opened o{replay::open_session(folder), {}};
  const bool unrecorded = o.session.single && o.session.calls.empty() && !o.session.notes.empty();
  const std::string why = unrecorded ? ": " + o.session.notes.back() : " is not the dump of one call";
  FI_CHECK(o.session.single && o.session.calls.size() == 1, ValueError, folder, why);
  o.call = o.session.read(0);
  FI_CHECK(o.call.error.empty(), ValueError, folder, ": ", o.call.error);
  return o;
}

/// key, tensor, requires_grad, key, tensor, ...
tvm::Array<tvm::Any> tensors_of(const replay::Tensors& placed, const std::vector<formats::StoredTensor>& stored) {
  tvm::Array<tvm::Any> out;
  for (const auto& [key, tensor] : placed) {
    bool grad = false;
    for (const auto& s : stored) grad = grad || (s.key == key && s.requires_grad);
    out.push_back(tvm::String(key));
    out.push_back(to_tvm(tensor));
    out.push_back(grad);
  }
  return out;
}

/// load(folder, device, with outputs): the record as JSON, the inputs, the outputs.
tvm::Any load(const std::string& folder, const std::string& device, bool outputs) {
  const Opened o = open_one(folder);
  const auto where = device_named(device);
  tvm::Array<tvm::Any> out{tvm::String(formats::dump_json(o.call.record))};
  const auto stored = replay::load_tensors(o.session, o.call.folder, record::kInputsStem, o.details());
  out.push_back(tensors_of(replay::place(stored, o.details(), where), stored));
  if (outputs) {
    const auto want = replay::load_tensors(o.session, o.call.folder, record::kOutputsStem, o.details());
    replay::Tensors by_key;
    for (const auto& t : want) by_key[t.key] = t.tensor;
    out.push_back(tensors_of(by_key, want));
  }
  return out;
}

/// The receiver of a recorded method, with its recorded plan.
tvm::Any restore(const std::string& folder, const std::string& device) {
  const Opened o = open_one(folder);
  auto handle = tvm::make_object<Handle>();
  replay::Inputs inputs(o.session, o.call, op_named(o.call.function()), device_named(device));
  handle->object = std::move(inputs.self);
  return HandleRef(std::move(handle));
}

std::optional<double> number(tvm::AnyView v) {
  return v.type_index() == kTVMFFINone ? std::nullopt : std::optional<double>(v.cast<double>());
}

/// compare(folder, rtol, atol, keys, codes, result, receiver or None, the tensors called `keys`...)
tvm::String compare(tvm::PackedArgs args) {
  const std::string folder(args[0].cast<tvm::String>());
  const Opened o = open_one(folder);
  const auto codes = args[4].cast<tvm::String>();
  Row row(args, 5, {codes.data(), codes.size()});
  const op::Value result = row.next(), self = row.next();
  replay::Tensors arguments;
  for (const tvm::Any& key : args[3].cast<tvm::Array<tvm::Any>>()) {
    const op::Value v = row.next();
    const auto* t = v.as<op::TensorValue>();
    if (t) arguments[std::string(key.cast<tvm::String>())] = Tensor(t->view, nullptr);
  }
  const auto stored = replay::load_tensors(o.session, o.call.folder, record::kOutputsStem, o.details());
  const auto* receiver = self.as<op::ObjectValue>();
  const replay::Tolerances tolerances{number(args[1]), number(args[2]), op::find_op(o.call.function()), false};
  const replay::Comparison c =
      replay::compare_outputs(result, arguments, receiver ? receiver->object : nullptr, stored,
                              replay::object_of(o.call.record, record::kOutputMetadata), o.details(), tolerances);
  Json out{{"compared", c.compared}, {"differences", Json::array()}, {"notes", c.notes}};
  for (const replay::Difference& d : c.differences) out["differences"].push_back(d.text);
  return formats::dump_json(out);
}

template <class F>
void set(const char* name, F f) {
  tvm::Function::SetGlobal(std::string("flashinfer.replay.") + name,
                           tvm::Function::FromPacked(
                               [f](tvm::PackedArgs args, tvm::Any* result) { translated([&] { *result = f(args); }); }),
                           true);
}
std::string text(tvm::AnyView v) { return std::string(v.cast<tvm::String>()); }

TVM_FFI_STATIC_INIT_BLOCK() {
  set("list", [](tvm::PackedArgs a) -> tvm::Any { return list(a[0].cast<tvm::String>()); });
  set("load", [](tvm::PackedArgs a) -> tvm::Any { return load(text(a[0]), text(a[1]), a[2].cast<bool>()); });
  set("restore", [](tvm::PackedArgs a) -> tvm::Any { return restore(text(a[0]), text(a[1])); });
  set("compare", [](tvm::PackedArgs a) -> tvm::Any { return compare(a); });
}

}  // namespace
}  // namespace flashinfer::ffi
