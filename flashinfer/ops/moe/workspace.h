// SPDX-License-Identifier: Apache-2.0
// How much scratch cutlass_fused_moe takes.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/op/call.h"

namespace flashinfer {

/// Bytes that a call of cutlass_fused_moe with up to max_num_tokens tokens takes from the context's allocator, at most:
/// the rows by expert, both products in f32, the activations and what quantised rows need. It takes them there, not
/// from workspace_buffer: the number is what an engine leaves free. ValueError: sizes or ranks that cannot be;
/// NotImplementedError: the modes that cutlass_fused_moe does not have.
struct CutlassFusedMoeWorkspaceSize {
  int64_t max_num_tokens = 0, hidden_size = 0, intermediate_size = 0, num_experts_total = 0, top_k = 0;
  DType x_dtype = DType::kBF16, weight_dtype = DType::kBF16, output_dtype = DType::kBF16;
  int64_t activation_type = 3;
  int64_t tp_size = 1, tp_rank = 0, ep_size = 1, ep_rank = 0;
  bool min_latency_mode = false, use_deepseek_fp8_block_scale = false, use_w4_group_scaling = false,
       use_mxfp8_act_scaling = false;
  bool use_fused_finalize = true, use_packed_weights = false, use_wfp4afp8_humming = false;
  std::optional<Device> device = {};  // changes nothing
  std::string backend = "cutlass";
  std::optional<TensorView> bytes = {};  // ours: i64 [1]
};
int64_t cutlass_fused_moe_workspace_size(const CutlassFusedMoeWorkspaceSize& args);

}  // namespace flashinfer
