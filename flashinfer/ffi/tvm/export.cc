// SPDX-License-Identifier: Apache-2.0
// Every op of the registry as a TVM-FFI global function "flashinfer.<name>", and every class as one that constructs an
// object:
//
//   rmsnorm = tvm_ffi.get_global_func("flashinfer.rmsnorm")
//   y = rmsnorm(x, w, 1e-5)                              # arguments in the order of the signature
//   y = rmsnorm(x, w, {"eps": 1e-5, "out": out})         # a dict at the end holds arguments by name
//   decode = tvm_ffi.get_global_func("flashinfer.BatchDecodeWithPagedKVCacheWrapper")(workspace, "NHD")
//   tvm_ffi.get_global_func("flashinfer.BatchDecodeWithPagedKVCacheWrapper.run")(decode, q, (k_cache, v_cache))
//
// One function implements them all: the schema binds the arguments.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include "flashinfer/core/cuda/device.h"
#include "flashinfer/core/version.h"
#include "flashinfer/ffi/tvm/convert.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/record/record.h"

namespace flashinfer::ffi {
namespace {

op::Passed passed_from(tvm::PackedArgs args) {
  op::Passed passed;
  for (int i = 0; i < args.size(); ++i) {
    try {
      if (i + 1 == args.size() && args[i].type_index() == kTVMFFIMap) {
        for (const auto& [name, value] : args[i].cast<tvm::Map<tvm::String, tvm::Any>>())
          passed.keyword.emplace_back(std::string(name), from_tvm(value));
        break;
      }
      passed.positional.push_back(from_tvm(args[i]));
    } catch (const Error& e) {
      throw_error(e.kind(), str("argument ", i, ": ", e.message()));
    }
  }
  return passed;
}

void export_op(const op::Op& op) {
  tvm::Function::SetGlobal("flashinfer." + std::string(op.name),
                           tvm::Function::FromPacked([&op](tvm::PackedArgs args, tvm::Any* result) {
                             translated([&] { *result = to_tvm(op::call_values(op, passed_from(args))); });
                           }),
                           true);
}

void export_class(const std::string& class_name) {
  tvm::Function::SetGlobal("flashinfer." + class_name,
                           tvm::Function::FromPacked([class_name](tvm::PackedArgs args, tvm::Any* result) {
                             translated([&] {
                               auto handle = tvm::make_object<Handle>();
                               handle->object = make_object(class_name, passed_from(args));
                               *result = HandleRef(std::move(handle));
                             });
                           }),
                           true);
}

void export_recorder() {
  tvm::Function::SetGlobal("flashinfer.record_start", tvm::Function::FromTyped([](int64_t level, tvm::String dump_dir) {
                             translated([&] {
                               record::Settings s = record::settings();
                               s.level = static_cast<int>(level);
                               if (!dump_dir.empty()) s.dump_dir = std::string(dump_dir);
                               record::configure(s);
                             });
                           }),
                           true);
  tvm::Function::SetGlobal("flashinfer.record_stop", tvm::Function::FromTyped([] { record::stop(); }), true);
  tvm::Function::SetGlobal("flashinfer.record_set", tvm::Function::FromTyped([](tvm::String setting) {
                             translated([&] {
                               record::Settings s = record::settings();
                               record::apply(s, std::string(setting));
                               record::configure(s);
                             });
                           }),
                           true);
  tvm::Function::SetGlobal(
      "flashinfer.record_flush", tvm::Function::FromTyped([](bool synchronize, int64_t graph) {
        int64_t n = 0;
        translated([&] { n = record::flush_graph_dumps(synchronize, static_cast<uint64_t>(graph)); });
        return n;
      }),
      true);
  tvm::Function::SetGlobal("flashinfer.record_clear",
                           tvm::Function::FromTyped([] { return record::clear_graph_dumps(); }), true);
  tvm::Function::SetGlobal(
      "flashinfer.record_capture", tvm::Function::FromTyped([](int64_t device, int64_t stream) {
        uint64_t id = 0;
        translated([&] { id = cuda::capture_id(static_cast<int>(device), reinterpret_cast<cuda::Handle>(stream)); });
        return static_cast<int64_t>(id);
      }),
      true);
  tvm::Function::SetGlobal("flashinfer.version", tvm::Function::FromTyped([] { return tvm::String(build::version()); }),
                           true);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::reflection::ObjectDef<Handle>();  // NOLINT(bugprone-unused-raii): its constructor registers the type
  constexpr std::string_view kInit = ".__init__";
  for (const op::Op* op : op::all_ops()) {
    export_op(*op);
    const std::string_view name = op->name;
    if (name.ends_with(kInit)) export_class(std::string(name.substr(0, name.size() - kInit.size())));
  }
  export_recorder();
}

}  // namespace
}  // namespace flashinfer::ffi
