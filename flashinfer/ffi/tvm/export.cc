// SPDX-License-Identifier: Apache-2.0
// Every op of the registry as a TVM-FFI global function "flashinfer.<name>", and every class as one that makes an
// object:
//
//   rmsnorm = tvm_ffi.get_global_func("flashinfer.rmsnorm")
//   y = rmsnorm(x, w, 1e-5)                              # arguments in the order of the signature
//   y = rmsnorm(x, w, {"eps": 1e-5, "out": out})         # a dict at the end holds arguments by name
//   decode = tvm_ffi.get_global_func("flashinfer.BatchDecodeWithPagedKVCacheWrapper")(workspace, "NHD")
//   tvm_ffi.get_global_func("flashinfer.BatchDecodeWithPagedKVCacheWrapper.run")(decode, q, (k_cache, v_cache))
//
// One function serves them all: the schema binds the arguments.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include "flashinfer/core/version.h"
#include "flashinfer/ffi/call.h"
#include "flashinfer/op/registry.h"
#include "flashinfer/record/record.h"

namespace flashinfer::ffi {
namespace {

namespace tvm = ::tvm::ffi;

/// What the other language holds of an object with state.
class Handle : public tvm::Object {
 public:
  std::unique_ptr<op::Object> object;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("flashinfer.Object", Handle, tvm::Object);
};
class HandleRef : public tvm::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(HandleRef, tvm::ObjectRef, Handle);
};

op::Value from_tvm(tvm::AnyView v, int depth = 0);

/// Tensors that come as objects are kept alive by the value: a plan or a recorder may look at them after the caller let
/// go.
op::Value from_tensor(const tvm::Tensor& t) {
  return op::TensorValue{TensorView(*t.GetDLTensorPtr()), std::make_shared<tvm::Tensor>(t), false};
}

template <class Sequence>
std::vector<op::Value> items_of(const Sequence& sequence, int depth) {
  FI_CHECK(depth < 8, ValueError, "lists are nested deeper than 8");
  std::vector<op::Value> out;
  for (const tvm::Any& item : sequence) out.push_back(from_tvm(item, depth + 1));
  return out;
}

DType dtype_from(DLDataType t) {
  const auto type = from_dlpack(t);
  FI_CHECK(type.has_value(), ValueError, "element type (code ", int{t.code}, ", bits ", int{t.bits},
           ") is not one this library knows");
  return *type;
}

op::Value from_tvm(tvm::AnyView v, int depth) {
  switch (v.type_index()) {
    case kTVMFFINone: return {};
    case kTVMFFIBool: return v.cast<bool>();
    case kTVMFFIInt: return v.cast<int64_t>();
    case kTVMFFIFloat: return v.cast<double>();
    case kTVMFFIDataType: return dtype_from(v.cast<DLDataType>());
    case kTVMFFIDevice: {
      const DLDevice d = v.cast<DLDevice>();
      return Device{d.device_type == kDLCUDA ? DeviceType::kCUDA : DeviceType::kCPU, static_cast<int16_t>(d.device_id)};
    }
    case kTVMFFIDLTensorPtr: return TensorView(*v.cast<DLTensor*>());
    case kTVMFFITensor: return from_tensor(v.cast<tvm::Tensor>());
    case kTVMFFIRawStr:
    case kTVMFFISmallStr:
    case kTVMFFIStr: return std::string(v.cast<tvm::String>());
    case kTVMFFIArray: return op::TupleValue{items_of(v.cast<tvm::Array<tvm::Any>>(), depth)};
    default: break;
  }
  if (const auto handle = v.as<HandleRef>()) return self_value(*const_cast<Handle*>(handle->get())->object);
  throw TypeError(str("a value of type ", v.GetTypeKey(), " is not one this library takes"));
}

tvm::Any to_tvm(const op::Value& v) {
  if (const auto* t = v.as<op::TensorValue>())
    return tvm::Tensor::FromDLPackVersioned(Tensor(t->view, t->owner).to_dlpack());
  if (const auto* b = v.as<bool>()) return *b;
  if (const auto* i = v.as<int64_t>()) return *i;
  if (const auto* d = v.as<double>()) return *d;
  if (const auto* s = v.as<std::string>()) return tvm::String(*s);
  if (const auto* t = v.as<op::TupleValue>()) {
    tvm::Array<tvm::Any> out;
    for (const op::Value& item : t->items) out.push_back(to_tvm(item));
    return out;
  }
  return nullptr;
}

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

/// Runs f; our errors become TVM-FFI's of the same kind, which Python turns into its own exceptions.
template <class F>
void translated(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    throw tvm::Error(std::string(name(e.kind())), e.message(), "");
  }
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
  tvm::Function::SetGlobal("flashinfer.version", tvm::Function::FromTyped([] { return tvm::String(build::version()); }),
                           true);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::reflection::ObjectDef<Handle>();
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
