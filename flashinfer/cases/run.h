// SPDX-License-Identifier: Apache-2.0
// Runs the rows of an op's case table: correctness of the named candidate against the double-precision reference, guards,
// given outputs, padded inputs, bitwise repeat, other thread counts. Tests, `flashinfer cases` and bench share it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/cases/parse.h"

namespace flashinfer::cases {

struct Comparison {
  bool equal = true;
  double max_abs = 0, max_rel = 0;
  int64_t mismatches = 0, worst = -1;  // count, and linear index of the largest excess
  std::string text;                    // empty when equal
};
/// |a - b| <= atol + rtol * |b| element by element; NaN equals NaN, infinities by sign; integers and bool exactly.
Comparison compare(const TensorView& got, const TensorView& want, double rtol, double atol);
/// Tolerances for results of this dtype: f32 1e-5, f16 1e-3, bf16 1e-2, fp8 1.25e-1 (one step), f64 1e-12, integers 0.
op::Tolerance default_tolerance(DType t);

/// Outputs of a call by argument name, alive as long as this.
struct Outputs {
  std::vector<std::pair<std::string, Tensor>> tensors;
};
/// Runs the block as a C++ caller would; collects everything it wrote.
Outputs run_block(Built& b);

struct CaseResult {
  bool passed = true;
  std::string failure;  // what went wrong, one line
  std::string repro;    // flashinfer cases rmsnorm --args 'input=...'
};
CaseResult run_case(const op::Op& op, const op::Case& c);

}  // namespace flashinfer::cases
