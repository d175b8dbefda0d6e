// SPDX-License-Identifier: Apache-2.0
// Deterministic contents for case tensors: element i of an argument depends on (seed, i) alone.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "flashinfer/core/tensor.h"

namespace flashinfer::cases {

/// Fills `t` by a fill rule of parse.h; `literal` holds the values when rule is "literal". ValueError: an unknown rule.
/// repeat_after: BuildOptions.
void fill(const TensorView& t, std::string_view rule, const std::vector<double>& literal, uint64_t seed,
          int64_t repeat_after = 0);
/// Copies elements between two host views of one shape and dtype.
void copy_elements(const TensorView& from, const TensorView& to);

/// While one lives, `fill` computes tensors of this thread that differ in layout alone once and copies them then: a row
/// is built eight times, and its normal numbers cost more than the kernels. Keeps at most 256 MB.
class FillCache {
 public:
  FillCache();
  ~FillCache();
  FillCache(const FillCache&) = delete;
  FillCache& operator=(const FillCache&) = delete;
  /// `fill` through this cache.
  void fill(const TensorView& t, std::string_view rule, const std::vector<double>& literal, uint64_t seed);

 private:
  FillCache* previous_;
  std::map<std::string, Tensor> contents_;  // contiguous, by seed, element type, shape and rule
  int64_t bytes_ = 0;
};

}  // namespace flashinfer::cases
