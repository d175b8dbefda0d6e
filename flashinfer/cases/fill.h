// SPDX-License-Identifier: Apache-2.0
// Deterministic contents for case tensors: element i of an argument depends on (seed, i) alone.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "flashinfer/core/tensor.h"

namespace flashinfer::cases {

/// Fills `t` by a fill rule of parse.h; `literal` holds the values when rule is "literal". ValueError: an unknown rule.
void fill(const TensorView& t, std::string_view rule, const std::vector<double>& literal, uint64_t seed);
/// Copies elements between two host views of one shape and dtype.
void copy_elements(const TensorView& from, const TensorView& to);

}  // namespace flashinfer::cases
