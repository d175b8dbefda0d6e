// SPDX-License-Identifier: Apache-2.0
// Routing alone, with the order of rows for grouped products of padded tiles.
#pragma once
#include <optional>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// The choices of moe_routing, c = top_k + num_fused_shared_experts a token, and rows sorted by local expert, each
/// expert's padded to whole tiles; within an expert by token, then by choice. A choice of an expert outside
/// [local_expert_offset, + local_num_experts) has no row.
///   topk_ids i32 [t, c]             experts, the shared ones last (e, e + 1, ...); -1: not a local one
///   topk_weights bf16 [t, c]        weights, of the shared ones 1; also those of experts that are not local
///   total_num_padded_tokens i32 [1] rows with their padding, p
///   expanded_idx_to_permuted_idx i32 [t, c]    the row of each choice, or -1
///   permuted_idx_to_token_idx i32 [tiles * tile_tokens_dim]   the token of each row; -1 for padding
///   cta_idx_xy_to_batch_idx i32 [tiles]        the local expert of each tile; -1 from num_non_exiting_ctas on
///   cta_idx_xy_to_mn_limit i32 [tiles]         end of the rows of each tile without padding; 0 from there on
///   num_non_exiting_ctas i32 [1]               tiles that have rows
/// `tiles` is the maximum for any routing of t * c rows to that many local experts.
///
/// As in FlashInfer, methods without a bias or a factor ignore routing_bias and routed_scaling_factor.
/// ValueError: as moe_routing; top_k above e; a tile that is not a power of two; local experts outside [0, e); shared
/// experts without DeepSeekV3's groups (n_group > 1) or with some experts on other ranks.
struct TrtllmGenRouting {
  TensorView routing_logits;               // [t, e] f32|bf16|f16
  std::optional<TensorView> routing_bias;  // [e] f32|bf16|f16
  int64_t routing_method = 0;
  int64_t top_k = 0;
  int64_t num_fused_shared_experts = 0;
  int64_t n_group = 0, topk_group = 0;  // 0: one group
  int64_t local_expert_offset = 0;
  std::optional<int64_t> local_num_experts = {};  // e when absent
  double routed_scaling_factor = 1.0;
  int64_t tile_tokens_dim = 8;
  bool norm_topk_prob = true;
  std::optional<bool> enable_pdl = {};  // CUDA only
  // C++ only: memory for the results.
  std::optional<TensorView> topk_ids = {}, topk_weights = {}, total_num_padded_tokens = {},
                            expanded_idx_to_permuted_idx = {}, permuted_idx_to_token_idx = {},
                            cta_idx_xy_to_batch_idx = {}, cta_idx_xy_to_mn_limit = {}, num_non_exiting_ctas = {};
};
struct TrtllmGenRoutingResult {
  Tensor topk_ids, topk_weights, total_num_padded_tokens, expanded_idx_to_permuted_idx, permuted_idx_to_token_idx,
      cta_idx_xy_to_batch_idx, cta_idx_xy_to_mn_limit, num_non_exiting_ctas;
};
TrtllmGenRoutingResult trtllm_gen_routing(const TrtllmGenRouting& args);

}  // namespace flashinfer

#pragma GCC visibility pop
