// SPDX-License-Identifier: Apache-2.0
// The C++ type of a state's elements in memory: scaled integers beside the float types. Freestanding.
#pragma once
#include <stdint.h>

#include "flashinfer/core/scalar.h"

namespace flashinfer {

template <DType D>
struct StoredType {
  using type = scalar_of_t<D>;
};
template <>
struct StoredType<DType::kI8> {
  using type = int8_t;
};
template <>
struct StoredType<DType::kI16> {
  using type = int16_t;
};
template <DType D>
using stored_t = typename StoredType<D>::type;

}  // namespace flashinfer
