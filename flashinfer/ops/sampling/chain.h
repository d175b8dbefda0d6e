// SPDX-License-Identifier: Apache-2.0
// Speculative sampling along a chain of draft tokens.
#pragma once
#include <optional>
#include <tuple>

#include "flashinfer/op/value.h"

#pragma GCC visibility push(default)

namespace flashinfer {

struct ChainSpeculativeSampling {
  TensorView draft_probs;      // [b, n, v] f32|f16|bf16
  TensorView draft_token_ids;  // [b, n] i32|i64; an id outside [0, v) is never accepted
  TensorView target_probs;     // [b, n+1, v] as draft_probs
  std::optional<TensorView> maybe_output_accepted_token_num = {};       // [b] i32|i64: increased by the counts
  std::optional<TensorView> maybe_output_emitted_draft_token_num = {};  // [b] i32|i64
  bool deterministic = true;                                            // accepted: it always is
  std::optional<op::Generator> generator = {};                          // advances by b * (n + 1)
  std::optional<op::ScalarOrTensor> seed = {};                          // as the samplers (op.h)
  std::optional<op::ScalarOrTensor> offset = {};
  std::optional<TensorView> output_token_ids = {};                // C++ only: [b, n+1] i32
  std::optional<TensorView> output_accepted_token_num = {};       // C++ only: [b] i32
  std::optional<TensorView> output_emitted_draft_token_num = {};  // C++ only: [b] i32
  std::optional<op::Generator> implied_generator = {};
};
/// (ids, accepted, emitted). Draft token i is emitted while u * draft < target (probabilities of that token, a new u
/// each); at the first that is not, a token is drawn from max(target - draft, 0), after the last from target[n]; -1
/// follows. `emitted` is the number of leading draft tokens, `accepted` includes those after them that new random
/// numbers would have accepted. Where target and draft agree, the token is drawn from the target. Given counters are
/// increased in place and returned with the rest as i32. A row whose target has no usable probability where it is
/// needed emits 0. ValueError: inconsistent shapes, seed without offset.
std::tuple<Tensor, Tensor, Tensor> chain_speculative_sampling(const ChainSpeculativeSampling& args);

}  // namespace flashinfer

#pragma GCC visibility pop
