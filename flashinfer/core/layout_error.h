// SPDX-License-Identifier: Apache-2.0
// Errors about an argument's strides. Their kind and text are those of other errors; who runs an op with every layout
// (cases/run.cc) tells by the type that the op supports only some.
#pragma once
#include "flashinfer/core/check.h"

namespace flashinfer {

/// The strides are not supported; the same values in another layout may be.
struct UnsupportedLayout {
  virtual ~UnsupportedLayout() = default;
};
template <class Kind>
struct LayoutErrorOf : Kind, UnsupportedLayout {
  explicit LayoutErrorOf(const std::string& m) : Kind(m) {}
};
using LayoutError = LayoutErrorOf<ValueError>;

/// ValueError unless `values`, LayoutError where these hold and `layout` does not; both of the same text.
#define FI_CHECK_LAYOUT(values, layout, ...)    \
  do {                                          \
    FI_CHECK(values, ValueError, __VA_ARGS__);  \
    FI_CHECK(layout, LayoutError, __VA_ARGS__); \
  } while (false)

}  // namespace flashinfer
