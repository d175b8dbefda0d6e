// SPDX-License-Identifier: Apache-2.0
// Whether two tensors share memory. Internal to op/.
#pragma once
#include "flashinfer/core/tensor.h"

namespace flashinfer::op {

/// True when some byte belongs to an element of both views: exact for any extents and strides, so parts of one buffer
/// that interleave (`x[..., :d]` and `x[..., d:]`, every other row) do not overlap. The search stops after 2^16 steps
/// and then says true; strides that fit into each other, as those of all slices of a row-major buffer, take a few.
bool overlap(const TensorView& a, const TensorView& b);

}  // namespace flashinfer::op
