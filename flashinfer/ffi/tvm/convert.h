// SPDX-License-Identifier: Apache-2.0
// Values of TVM-FFI as ours and back.
#pragma once
#include <tvm/ffi/any.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/object.h>

#include <memory>
#include <string>

#include "flashinfer/ffi/call.h"

namespace flashinfer::ffi {

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

/// What TVM-FFI has no type for, made by "flashinfer.value.<kind>": a generator, an enum member, a list that is no
/// tuple, a tensor with what DLPack does not say, ...
class Boxed : public tvm::Object {
 public:
  op::Value value;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("flashinfer.Value", Boxed, tvm::Object);
};
class BoxedRef : public tvm::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(BoxedRef, tvm::ObjectRef, Boxed);
};

/// TypeError, ValueError: not something the library takes. Tensors that come as objects are kept alive by the value
/// when `own`: a plan or a recorder may look at them after the caller let go.
op::Value from_tvm(tvm::AnyView v, bool own = true, int depth = 0);
tvm::Any to_tvm(const op::Value& v);
tvm::Any to_tvm(const Tensor& t);

/// Runs f; our errors become TVM-FFI's of the same kind, which Python turns into its own exceptions.
template <class F>
void translated(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    throw tvm::Error(std::string(name(e.kind())), e.message(), "");
  }
}

}  // namespace flashinfer::ffi
