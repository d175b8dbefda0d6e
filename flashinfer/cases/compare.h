// SPDX-License-Identifier: Apache-2.0
// Compares two tensors: a case with its reference, repetitions with each other, a replay with its recording.
#pragma once
#include <string>
#include <vector>

#include "flashinfer/op/op.h"

#pragma GCC visibility push(default)

namespace flashinfer::cases {

struct Comparison {
  bool equal = true;
  double max_abs = 0, max_rel = 0;
  int64_t mismatches = 0,
          worst = -1;          // elements; linear index of the largest excess, or of the first mismatch when exact
  std::vector<int64_t> index;  // the same index by dimension
  std::string text;            // empty when equal: "differs in 2 of 6 elements, worst at [0, 1]: 2.0 instead of ..."
};
/// Floats: |a - b| <= atol + rtol * |b| element by element, NaN equal to NaN, infinities by sign. Other types: by
/// bytes.
Comparison compare(const TensorView& got, const TensorView& want, double rtol, double atol);
/// Compares the bytes of each element.
Comparison compare_bits(const TensorView& got, const TensorView& want);

/// Tolerances for results of this dtype: f32 1e-5, f16 1e-3, bf16 1e-2, fp8 1.25e-1 (one step), f64 1e-12, integers 0.
op::Tolerance default_tolerance(DType t);

}  // namespace flashinfer::cases

#pragma GCC visibility pop
