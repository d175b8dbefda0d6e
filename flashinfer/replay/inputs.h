// SPDX-License-Identifier: Apache-2.0
// From a dump back to a call: tensors in the caller's layout, values, the receiver with its plan.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flashinfer/op/call.h"
#include "flashinfer/replay/session.h"

#pragma GCC visibility push(default)

namespace flashinfer::replay {

using Tensors = std::map<std::string, Tensor, std::less<>>;

/// Decodes a value of metadata; tensors are looked up by their key. Text of an unknown value stays an OpaqueValue.
/// ValueError: a missing tensor, nesting beyond 64.
op::Value decode(const Json& j, const Tensors& tensors);

/// Memory that the argument `key` shall be (comm::share, [ranks, bytes]).
struct Shared {
  std::string key;
  Tensor memory;
};

/// Restores stored tensors to the layout in their details: true strides, views of one memory share memory again, pages
/// at their place in the pool, workspaces with arbitrary content. `device`: the target; absent: the recorded device.
/// `shared`: that argument and all tensors that lay in its memory are placed there, on any device.
/// ValueError: inconsistent details, a device that this machine lacks.
Tensors place(const std::vector<formats::StoredTensor>& stored, const Json& details, std::optional<Device> device,
              const Shared* shared = nullptr);

/// The key of the argument of this name, as metadata and tensors have it.
std::string key_of(const Call& call, const std::string& name);

/// The elements of `v` on the pages of dimension `dim` named by `pages` (int64), compact. ValueError: a page outside.
Tensor take_pages(const TensorView& v, int dim, const TensorView& pages);

/// Inputs of one execution; each execution needs its own, since calls write to their arguments.
struct Inputs {
  Inputs(const Session& session, const Call& call, const op::Op& op, std::optional<Device> device,
         const Shared* shared = nullptr);
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;
  /// Another value for the argument of this name, if the call has it.
  void replace(const Call& call, const std::string& name, const op::Value& value);

  Tensors tensors;  // by key
  op::Passed passed;
  std::unique_ptr<op::Object> self;  // of a method

 private:
  op::Value argument(const std::string& key, const Json& values) const;
  void bind(const Call& call, const op::Op& op, const Json& values, std::optional<Device> device);
  void restore_self(const Call& call, const op::Op& op, const Json& values);
};

}  // namespace flashinfer::replay

#pragma GCC visibility pop
