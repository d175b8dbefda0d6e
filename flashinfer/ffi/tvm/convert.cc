// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ffi/tvm/convert.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/list.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <array>

#include "flashinfer/core/transfer.h"

namespace flashinfer::ffi {
namespace {

constexpr int kMaxDepth = 8;

template <class Sequence>
std::vector<op::Value> items_of(const Sequence& sequence, bool own, int depth) {
  FI_CHECK(depth < kMaxDepth, ValueError, "lists are nested deeper than ", kMaxDepth);
  std::vector<op::Value> out;
  for (const tvm::Any& item : sequence) out.push_back(from_tvm(item, own, depth + 1));
  return out;
}

DType dtype_from(DLDataType t) {
  const auto type = from_dlpack(t);
  FI_CHECK(type.has_value(), ValueError, "element type (code ", int{t.code}, ", bits ", int{t.bits},
           ") is not one this library knows");
  return *type;
}

op::Value from_tensor(tvm::AnyView v, bool own) {
  if (!own) return TensorView(*TVMFFITensorGetDLTensorPtr(v.CopyToTVMFFIAny().v_obj));
  const auto t = v.cast<tvm::Tensor>();
  return op::TensorValue{TensorView(*t.GetDLTensorPtr()), std::make_shared<tvm::Tensor>(t), false};
}

op::Value object_from_tvm(tvm::AnyView v) {
  if (const auto boxed = v.as<BoxedRef>()) return (*boxed)->value;
  if (const auto handle = v.as<HandleRef>()) {
    const auto& object = const_cast<Handle*>(handle->get())->object;
    FI_CHECK(object, TypeError, "an object of this library that was copied or never made has no state");
    return self_value(*object);
  }
  throw TypeError(str("a value of type ", v.GetTypeKey(), " is not one this library takes"));
}

template <class F>
void maker(const char* kind, F make) {
  tvm::Function::SetGlobal(std::string("flashinfer.value.") + kind,
                           tvm::Function::FromPacked([make](tvm::PackedArgs args, tvm::Any* result) {
                             translated([&] {
                               auto boxed = tvm::make_object<Boxed>();
                               boxed->value = make(args);
                               *result = BoxedRef(std::move(boxed));
                             });
                           }),
                           true);
}

std::vector<op::Value> values_of(tvm::PackedArgs args, int from = 0) {
  std::vector<op::Value> out;
  for (int i = from; i < args.size(); ++i) out.push_back(from_tvm(args[i]));
  return out;
}
std::string text(tvm::AnyView v) { return std::string(v.cast<tvm::String>()); }

/// (tensor, requires_grad, strides...): strides in elements, where DLPack's differ from the framework's.
op::Value described_tensor(tvm::PackedArgs args) {
  op::Value v = from_tvm(args[0]);
  auto* t = std::get_if<op::TensorValue>(static_cast<op::Value::Base*>(&v));
  FI_CHECK(t, TypeError, "a tensor is needed");
  t->requires_grad = args[1].cast<bool>();
  if (args.size() > 2) {
    std::vector<int64_t> strides;
    for (int i = 2; i < args.size(); ++i) strides.push_back(args[i].cast<int64_t>());
    t->view = TensorView(t->view.data(), t->view.dtype(), t->view.shape(), strides, t->view.device());
  }
  return v;
}
/// (dtype, content, rank, extents..., strides...): a tensor of which only the type matters. Its memory holds zeros
/// (content 0) or 0, 1, 2, ... (content 1), so that a shape that depends on values is noticed. It is 64 KiB, whatever
/// the extents.
op::Value typed_tensor(tvm::PackedArgs args) {
  static const auto zeros = std::make_unique<std::array<int64_t, 8192>>();
  static const auto ramps = [] {
    auto r = std::make_unique<std::array<std::array<int64_t, 8192>, 2>>();
    for (int64_t i = 0; i < 8192; ++i) (*r)[0][static_cast<size_t>(i)] = i;
    auto* narrow = reinterpret_cast<int32_t*>((*r)[1].data());
    for (int32_t i = 0; i < 16384; ++i) narrow[i] = i;
    return r;
  }();
  const auto type = parse_dtype(text(args[0]));
  FI_CHECK(type, ValueError, "element type ", text(args[0]), " is not one this library knows");
  const int rank = args[2].cast<int>();
  std::vector<int64_t> extents, strides;
  for (int i = 0; i < rank; ++i) {
    extents.push_back(args[3 + i].cast<int64_t>());
    strides.push_back(args[3 + rank + i].cast<int64_t>());
  }
  const void* memory =
      args[1].cast<int>() == 0 ? static_cast<const void*>(zeros->data()) : (*ramps)[size_of(*type) == 8 ? 0 : 1].data();
  return TensorView(memory, *type, extents, strides);
}
op::Value dict_of(tvm::PackedArgs args) {
  op::DictValue d;
  for (int i = 0; i + 1 < args.size(); i += 2) d.items.emplace_back(from_tvm(args[i]), from_tvm(args[i + 1]));
  return d;
}
op::Value object_of(tvm::PackedArgs args) {
  return op::ObjectValue{nullptr, text(args[0]), text(args[1]), static_cast<uint64_t>(args[2].cast<int64_t>())};
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::reflection::ObjectDef<Boxed>();  // NOLINT(bugprone-unused-raii): its constructor registers the type
  maker("tensor", described_tensor);
  maker("type", typed_tensor);
  maker("list", [](tvm::PackedArgs a) -> op::Value { return op::ListValue{values_of(a)}; });
  maker("tuple", [](tvm::PackedArgs a) -> op::Value { return op::TupleValue{values_of(a, 1), text(a[0])}; });
  maker("dict", dict_of);
  maker("enum",
        [](tvm::PackedArgs a) -> op::Value { return op::EnumValue{text(a[0]), text(a[1]), a[2].cast<bool>()}; });
  maker("generator", [](tvm::PackedArgs a) -> op::Value {
    return op::Generator(static_cast<uint64_t>(a[0].cast<int64_t>()), static_cast<uint64_t>(a[1].cast<int64_t>()));
  });
  maker("object", object_of);
  maker("opaque", [](tvm::PackedArgs a) -> op::Value { return op::OpaqueValue{text(a[0]), text(a[1])}; });
  maker("complex",
        [](tvm::PackedArgs a) -> op::Value { return op::Complex{a[0].cast<double>(), a[1].cast<double>()}; });
}

}  // namespace

op::Value from_tvm(tvm::AnyView v, bool own, int depth) {
  switch (v.type_index()) {
    case kTVMFFINone: return {};
    case kTVMFFIBool: return v.cast<bool>();
    case kTVMFFIInt: return v.cast<int64_t>();
    case kTVMFFIFloat: return v.cast<double>();
    case kTVMFFIDataType: return dtype_from(v.cast<DLDataType>());
    case kTVMFFIDevice: return from_dlpack(v.cast<DLDevice>());
    case kTVMFFIDLTensorPtr: return TensorView(*v.cast<DLTensor*>());
    case kTVMFFITensor: return from_tensor(v, own);
    case kTVMFFIRawStr:
    case kTVMFFISmallStr:
    case kTVMFFIStr: return std::string(v.cast<tvm::String>());
    case kTVMFFIArray: return op::TupleValue{items_of(v.cast<tvm::Array<tvm::Any>>(), own, depth)};
    case kTVMFFIList: return op::ListValue{items_of(v.cast<tvm::List<tvm::Any>>(), own, depth)};
    default: return object_from_tvm(v);
  }
}

tvm::Any to_tvm(const Tensor& t) { return tvm::Tensor::FromDLPackVersioned(t.to_dlpack()); }

tvm::Any to_tvm(const op::Value& v) {
  if (const auto* t = v.as<op::TensorValue>()) return to_tvm(Tensor(t->view, t->owner));
  if (const auto* b = v.as<bool>()) return *b;
  if (const auto* i = v.as<int64_t>()) return *i;
  if (const auto* d = v.as<double>()) return *d;
  if (const auto* s = v.as<std::string>()) return tvm::String(*s);
  if (const auto* t = v.as<DType>()) return tvm::String(std::string(name(*t)));
  if (const auto* items = op::sequence_items(v)) {
    tvm::Array<tvm::Any> out;
    for (const op::Value& item : *items) out.push_back(to_tvm(item));
    return out;
  }
  return nullptr;
}

}  // namespace flashinfer::ffi
