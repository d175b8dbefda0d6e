// SPDX-License-Identifier: Apache-2.0
// The three decode ops as one: what each of their arguments is to the recurrence. Internal to the family.
#pragma once
#include <optional>
#include <vector>

#include "flashinfer/ops/linear_attention/gdn/decode.h"

namespace flashinfer::ops::linear_attention {

/// Views that are undefined are absent.
struct DecodeCall {
  TensorView q, k, v, A_log, a, dt_bias, b, output;
  double scale = 1;
  bool l2norm = true, v_innermost = false, update = true;
  TensorView state, read, write;  // `write` is `read` when the caller names none
  TensorView after, after_slots;  // states after each token: [B, T, ..], or with slots the pool
  TensorView raw_v, raw_k, log_decay, beta;

  int64_t batch() const { return q.size(0); }
  int64_t tokens() const { return q.size(1); }
  int64_t heads() const { return q.size(2); }
  int64_t width() const { return q.size(3); }
  int64_t value_heads() const { return v.size(2); }
  int64_t rows() const { return v.size(3); }
};
DecodeCall call_of(const GatedDeltaRuleDecode& a);
DecodeCall call_of(const GatedDeltaRuleDecodePretranspose& a);
DecodeCall call_of(const GatedDeltaRuleMtp& a);

/// What the ops' tables cannot say; throws.
void check(const GatedDeltaRuleDecode& a);
void check(const GatedDeltaRuleDecodePretranspose& a);
void check(const GatedDeltaRuleMtp& a);

inline double scale_or_default(const std::optional<double>& scale, int64_t width) {
  return scale ? *scale : 1 / __builtin_sqrt(static_cast<double>(width));
}
/// Whether a row writes a slot that another row reads or writes: then the rows have an order.
bool rows_share_slots(const DecodeCall& c);
/// ValueError unless every index, of one or two axes, is below the slots of `pool`; negative ones are none. Arrays on a
/// GPU are not read.
void check_slots(const char* name, const TensorView& indices, const char* pool, int64_t slots);
/// ValueError unless HV is a multiple of H.
void check_heads(const TensorView& q, const TensorView& v);

}  // namespace flashinfer::ops::linear_attention
