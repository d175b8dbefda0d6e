// SPDX-License-Identifier: Apache-2.0
// Scratch size of cutlass_fused_moe.
#pragma once
#include <optional>
#include <string>

#include "flashinfer/op/call.h"

#pragma GCC visibility push(default)

namespace flashinfer {

/// Upper bound of the bytes that a call of cutlass_fused_moe with up to max_num_tokens tokens allocates from the
/// context's allocator: the rows by expert, both products in f32, the activations and scratch of quantised rows. They
/// are not taken from workspace_buffer: the number is how much memory an engine leaves free. ValueError:
/// impossible sizes or ranks; NotImplementedError: modes that cutlass_fused_moe does not support.
struct CutlassFusedMoeWorkspaceSize {
  int64_t max_num_tokens = 0, hidden_size = 0, intermediate_size = 0, num_experts_total = 0, top_k = 0;
  DType x_dtype = DType::kBF16, weight_dtype = DType::kBF16, output_dtype = DType::kBF16;
  int64_t activation_type = 3;
  int64_t tp_size = 1, tp_rank = 0, ep_size = 1, ep_rank = 0;
  bool min_latency_mode = false, use_deepseek_fp8_block_scale = false, use_w4_group_scaling = false,
       use_mxfp8_act_scaling = false;
  bool use_fused_finalize = true, use_packed_weights = false, use_wfp4afp8_humming = false;
  std::optional<Device> device = {};  // ignored
  std::string backend = "cutlass";
  std::optional<TensorView> bytes = {};  // C++ only: i64 [1]
};
int64_t cutlass_fused_moe_workspace_size(const CutlassFusedMoeWorkspaceSize& args);

}  // namespace flashinfer

#pragma GCC visibility pop
