// SPDX-License-Identifier: Apache-2.0
// Routing by a table of tokens (DeepSeek-V4's first layers): which experts a token goes to is looked up, how much each
// counts comes from the router.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "flashinfer/core/tensor.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// With ids = tid2eid[input_ids[t]] and s_j = sqrt(softplus(router_logits[t, ids_j])): the weights s_j / sum_i s_i and
/// ids. With a fused shared expert a last column has the id E and the weight 1 / routed_scaling_factor.
/// ValueError: a token or expert outside its table, more than one shared expert, a factor that is not positive beside
/// it, more than 32 columns.
struct HashTopk {
  TensorView router_logits;  // [t, E] f32, contiguous
  TensorView input_ids;      // [t] i64|i32
  TensorView tid2eid;        // [vocab, k] i32, contiguous
  int64_t num_fused_shared_experts = 0;
  double routed_scaling_factor = 1.0;
  bool launch_with_pdl = true;
  std::optional<TensorView> topk_weights{};  // C++ only: memory for the results, [t, k + shared] f32
  std::optional<TensorView> topk_ids{};      // [t, k + shared] i32
};
std::pair<Tensor, Tensor> hash_topk(const HashTopk& args);

}  // namespace flashinfer

#pragma GCC visibility pop
