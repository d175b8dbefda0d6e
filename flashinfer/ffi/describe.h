// SPDX-License-Identifier: Apache-2.0
// The registry as text, from which other languages generate their functions.
#pragma once
#include <string>

namespace flashinfer::ffi {

/// Every op as one JSON array, in the registry's order:
///   {"name", "module", "doc", "version", "alias" (where there is one), "aliases" (methods),
///    "candidates": ["cpu", ...],
///    "fields": [{"name", "role", "type", "optional", "required", "default" (as Python shows it), "dims",
///                "dtypes": [...], "same_as", "dtype_from", "may_alias", "choices": [...],
///                "backends": {name: kind of device or ""}, "enumeration", "structure", "doc", "keyword_only",
///                "was_positional", "varargs", "not_returned", "internal", "as_numbers", "unstacked",
///                "tuple_with_previous", "conditional"}]}
/// Keys of a field that do not apply are left out, and so are false flags. "doc" is op::meaning().
std::string describe_ops();

}  // namespace flashinfer::ffi
