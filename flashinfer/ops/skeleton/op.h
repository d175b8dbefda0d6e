// SPDX-License-Identifier: Apache-2.0
// op.h is all that a program sees of a family: an argument block (a plain struct with default member values) and a
// function for each op, with shapes, element types, the formula and the errors.
#pragma once
#include <optional>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct Skeleton {
  TensorView input;                    // [n, d] f16|bf16|f32, last dimension contiguous, row stride free
  double peak = 1;                     // finite, at least 0
  std::optional<TensorView> out = {};  // [n, d] dtype of input; made when absent; may be exactly `input`
};
/// Scales each row so that its largest magnitude is `peak`: out[i, :] = input[i, :] * (peak / max |input[i, :]|). A row
/// of zeros stays as it is. No rows, or d = 0, is a no-op. ValueError: shapes or dtypes that do not fit together, a
/// strided last dimension, a peak that is negative or not finite.
Tensor skeleton(const Skeleton& args);

}  // namespace flashinfer

#pragma GCC visibility pop
