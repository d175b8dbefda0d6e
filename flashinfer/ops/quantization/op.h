// SPDX-License-Identifier: Apache-2.0
// Packing of booleans and, in the other headers, quantising: rows to block formats (fp4.h, mxfp8.h) and back
// (dequantize.h), orders of weights and scales (layout.h), KV caches (nvfp4.h).
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "flashinfer/core/tensor.h"
#include "flashinfer/ops/quantization/fp4/dequantize.h"
#include "flashinfer/ops/quantization/fp4/fp4.h"
#include "flashinfer/ops/quantization/fp4/grouped.h"
#include "flashinfer/ops/quantization/fp4/into.h"
#include "flashinfer/ops/quantization/fp4/nvfp4.h"
#include "flashinfer/ops/quantization/fp8/group8.h"
#include "flashinfer/ops/quantization/fp8/grouped_mxfp8.h"
#include "flashinfer/ops/quantization/fp8/mxfp8.h"
#include "flashinfer/ops/quantization/fp8/sage.h"
#include "flashinfer/ops/quantization/fp8/swiglu.h"
#include "flashinfer/ops/quantization/layout/layout.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Eight elements a byte, as numpy.packbits: any value but 0 is a 1; "big": element 0 is the highest bit, "little": the
/// lowest; bits past the end are 0.
struct PackBits {
  TensorView x;                      // [n] bool|uint8
  std::string bitorder = "big";      // or "little"
  std::optional<TensorView> y = {};  // C++ only: memory for the result, uint8 [ceil(n / 8)]
};
Tensor packbits(const PackBits& args);

/// Segments x[indptr[i]] .. x[indptr[i+1] - 1] packed one by one, each starting on a byte boundary: new_indptr[i+1] -
/// new_indptr[i] is ceil(length / 8). ValueError: an indptr that does not start at 0, decreases, or does not end at n.
struct SegmentPackBits {
  TensorView x;       // [n] bool|uint8
  TensorView indptr;  // [b+1] i32|i64, in elements
  std::string bitorder = "big";
  std::optional<TensorView> y = {};           // C++ only: memory for the results, uint8 [sum of ceil(length / 8)]
  std::optional<TensorView> new_indptr = {};  // [b+1] as indptr, in bytes
};
std::pair<Tensor, Tensor> segment_packbits(const SegmentPackBits& args);

}  // namespace flashinfer

#pragma GCC visibility pop
