// SPDX-License-Identifier: Apache-2.0
// Shared by the C interface and TVM-FFI: objects with state, constructed and called by name.
#pragma once
#include <memory>
#include <string_view>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer::ffi {

/// The op of this public name. ValueError that names the closest one: "there is no op 'rmsnrom'; did you mean
/// 'rmsnorm'?"
const op::Op& op_named(std::string_view name);

/// Constructs an object of the class and runs its `__init__` with these arguments (self excluded).
std::unique_ptr<op::Object> make_object(std::string_view class_name, op::Passed passed);

/// The value of `self` for a method of `object`.
op::Value self_value(op::Object& object);

}  // namespace flashinfer::ffi

#pragma GCC visibility pop
