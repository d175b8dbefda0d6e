// SPDX-License-Identifier: Apache-2.0
// All ops. Each folder flashinfer/ops/<family> defines `constinit const std::span<const op::Op* const>
// flashinfer::ops::<family>::all` in its op.cc (any file of it); CMake writes the list of families from the folder
// names. No static constructors.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "flashinfer/op/op.h"

namespace flashinfer::op {

/// The table that CMake writes: one span per family, in the order of the folder names.
std::span<const std::span<const Op* const>> families();
/// Every op: the library's, then those added at run time.
std::vector<const Op*> all_ops();
/// By public name ("rmsnorm", "BatchDecodeWithPagedKVCacheWrapper.run"), or null.
const Op* find_op(std::string_view name);

/// False for a required field, and for an optional one before a required one (None must be written).
bool has_default(const Op& op, const Field& f);

/// Adds an op of the program's own (it gets check, log, record, replay, cases, bench and CLI listing like the
/// library's) for as long as this lives. ValueError when the name is taken.
class Registration {
 public:
  explicit Registration(const Op& op);
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

 private:
  const Op* op_;
};

}  // namespace flashinfer::op
