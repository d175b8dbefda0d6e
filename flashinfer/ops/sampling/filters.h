// SPDX-License-Identifier: Apache-2.0
// Filters of probabilities and logits. Thresholds are exact, found by selection; equal values stay or go together. A
// threshold is a number or one a row.
#pragma once
#include <optional>

#include "flashinfer/op/value.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct TopPRenormProbs {
  TensorView probs;               // [rows, v] f32|f16|bf16, rows may be strided
  op::ScalarOrTensor top_p;       // a number or [rows] f32|f16|bf16|f64; >= 1: off; <= 0: the largest stay
  bool is_deterministic = false;  // accepted: it always is
  std::optional<TensorView> renorm_probs = {};  // C++ only: memory for the result, [rows, v] f32
};
/// Keeps the values with less than top_p of probability above them, divided by their sum; the others become 0, as do
/// negative ones. A row with no usable probability (op.h) becomes zeros. ValueError: a NaN top_p, a number of
/// thresholds other than rows.
Tensor top_p_renorm_probs(const TopPRenormProbs& args);

struct TopKRenormProbs {
  TensorView probs;                             // [rows, v] f32|f16|bf16, rows may be strided
  op::ScalarOrTensor top_k;                     // a number or [rows] i32|i64; 0, negative or >= v: off
  bool is_deterministic = false;                // accepted: it always is
  std::optional<TensorView> renorm_probs = {};  // C++ only: [rows, v] as probs
};
/// Keeps the values with fewer than k larger ones, divided by their sum; else as top_p_renorm_probs.
Tensor top_k_renorm_probs(const TopKRenormProbs& args);

struct TopKMaskLogits {
  TensorView logits;                             // [rows, v] f32|f16|bf16, rows may be strided
  op::ScalarOrTensor top_k;                      // as above
  std::optional<TensorView> masked_logits = {};  // C++ only: [rows, v] as logits
};
/// Keeps the logits with fewer than k larger ones; the others and NaN become -inf.
Tensor top_k_mask_logits(const TopKMaskLogits& args);

}  // namespace flashinfer

#pragma GCC visibility pop
