// SPDX-License-Identifier: Apache-2.0
// Converts values between TVM-FFI and this library.
#pragma once
#include <tvm/ffi/any.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/object.h>

#include <memory>
#include <string>

#include "flashinfer/ffi/call.h"

namespace flashinfer::ffi {

namespace tvm = ::tvm::ffi;

/// Handle of an object with state in the other language.
class Handle : public tvm::Object {
 public:
  std::unique_ptr<op::Object> object;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("flashinfer.Object", Handle, tvm::Object);
};
class HandleRef : public tvm::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(HandleRef, tvm::ObjectRef, Handle);
};

/// A value that TVM-FFI has no type for, made by "flashinfer.value.<kind>": a generator, an enum member, a list that is
/// not a tuple, a tensor with properties that DLPack lacks, ...
class Boxed : public tvm::Object {
 public:
  op::Value value;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("flashinfer.Value", Boxed, tvm::Object);
};
class BoxedRef : public tvm::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(BoxedRef, tvm::ObjectRef, Boxed);
};

/// TypeError, ValueError: not a supported value. With `own` the value keeps tensors passed as objects alive: a plan or
/// a recorder may read them after the caller dropped them.
op::Value from_tvm(tvm::AnyView v, bool own = true, int depth = 0);
tvm::Any to_tvm(const op::Value& v);
tvm::Any to_tvm(const Tensor& t);

/// Runs f; our errors become TVM-FFI's of the same kind, which Python raises as its own exceptions.
template <class F>
void translated(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    throw tvm::Error(std::string(name(e.kind())), e.message(), "");
  }
}

}  // namespace flashinfer::ffi
