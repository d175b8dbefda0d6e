// SPDX-License-Identifier: Apache-2.0
// The three prefill ops as one: what each of their arguments is to the recurrence. Internal to the family.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "flashinfer/op/index_checks.h"
#include "flashinfer/ops/linear_attention/gdn/prefill.h"

namespace flashinfer::ops::linear_attention {

/// Views that are undefined are absent.
struct PrefillCall {
  TensorView q, k, v, gate, beta, write, output;
  double scale = 1;
  bool l2norm = false, channels = false, final_is_callers = false;
  int64_t updates = 1;
  TensorView sequences, slots, initial, final, checkpoints, checkpoint_starts;
  int64_t every = 0;

  int64_t heads() const { return std::max(q.size(1), v.size(1)); }
};
template <class B>
PrefillCall call_of(const B& a) {
  const auto view = [](const std::optional<TensorView>& t) { return t.value_or(TensorView()); };
  PrefillCall c{a.q, a.k, a.v, view(a.g), view(a.beta), {}, view(a.output)};
  c.scale = a.scale && *a.scale != 0 ? *a.scale : 1 / std::sqrt(static_cast<double>(a.q.size(2)));
  c.l2norm = a.use_qk_l2norm_in_kernel, c.final_is_callers = a.output_state_is_callers;
  c.sequences = view(a.cu_seqlens), c.initial = view(a.initial_state), c.final = view(a.output_state);
  if constexpr (requires { a.w; }) c.write = view(a.w), c.channels = true;
  if constexpr (requires { a.num_householder; }) c.updates = a.num_householder;
  if constexpr (requires { a.state_indices; }) {
    c.slots = view(a.state_indices), c.every = a.checkpoint_every_n_tokens;
    c.checkpoints = view(a.state_checkpoints), c.checkpoint_starts = view(a.checkpoint_cu_starts);
  }
  return c;
}

/// What the ops' tables cannot say; throws.
void check(const ChunkGatedDeltaRule& a);
void check(const ChunkGatedDeltaRule2& a);
void check(const ChunkGatedDeltaProduct& a);

}  // namespace flashinfer::ops::linear_attention
