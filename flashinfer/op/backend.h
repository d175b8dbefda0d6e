// SPDX-License-Identifier: Apache-2.0
// Back ends that a caller names (`backend="cublas"`). Names of other libraries' GPU kernels are legal everywhere, so
// that programs run unchanged; a name that belongs to another kind of device than the tensors' is a warning, once per
// op and name.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/op/op.h"

#pragma GCC visibility push(default)

namespace flashinfer::op {

struct BackendName {
  std::string_view name;
  Place place;  // where its tensors are
};
/// The legal names of a field with `backends`: those of the table, then those of the op's candidates.
std::vector<BackendName> backend_names(const Op& op, const Field& f);

/// The field of `op` that names a back end, or null.
const Field* backend_field(const Op& op);

/// Checks the name in `block` (ValueError or the field's error when it is unknown), warns when it is for another kind
/// of device and is not the default. Returns the one candidate that the caller named, or null.
const char* named_backend(const Op& op, const void* block);

/// Why `op` has no implementation `backend` for compute capability `cc` (0: any device of this machine); empty: it has
/// one.
std::string backend_unsupported_reason(const Op& op, std::string_view backend, int cc);

}  // namespace flashinfer::op

#pragma GCC visibility pop
