// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"
#include "flashinfer/ops/moe/trace_texts.h"

namespace flashinfer::ops::moe {
namespace {
constexpr char kMoeFp8BlockScaleDefaultRoutingSwigluStepInputs[] =
    "routing_logits routing_bias? hidden_states hidden_states_scale[seq_len num_hidden_blocks] "
    "gemm1_weights[num_local_experts gemm1_out_size hidden_size] gemm1_weights_scale[num_local_experts "
    "gemm1_out_size num_hidden_blocks] gemm1_alpha[num_local_experts]:float32 "
    "gemm1_beta[num_local_experts]:float32 gemm1_clamp_limit[num_local_experts]:float32 "
    "gemm2_weights[num_local_experts hidden_size intermediate_size] "
    "gemm2_weights_scale[num_local_experts hidden_size num_intermediate_blocks] top_k "
    "local_expert_offset routed_scaling_factor activation_type! use_shuffled_weight:bool "
    "fp8_quantization_type!";
constexpr char kMoeFp8BlockScaleDefaultRoutingSwigluStepAxes[] =
    "seq_len(t) num_experts(e)= top_k=topk num_local_experts=e hidden_size(columns)=h "
    "intermediate_size=i gemm1_out_size= num_hidden_blocks= num_intermediate_blocks= "
    "activation_type=act:7";
constexpr char kMoeFp8BlockScaleDefaultRoutingInputs[] =
    "routing_logits routing_bias? hidden_states hidden_states_scale[num_hidden_blocks seq_len] "
    "gemm1_weights[num_local_experts gemm1_out_size hidden_size] gemm1_weights_scale[num_local_experts "
    "num_gemm1_out_blocks num_hidden_blocks] gemm1_alpha[num_local_experts]:float32 "
    "gemm1_beta[num_local_experts]:float32 gemm1_clamp_limit[num_local_experts]:float32 "
    "gemm2_weights[num_local_experts hidden_size intermediate_size] "
    "gemm2_weights_scale[num_local_experts num_hidden_blocks num_intermediate_blocks] top_k "
    "local_expert_offset routed_scaling_factor";
constexpr char kMoeFp8BlockScaleDefaultRoutingAxes[] =
    "seq_len(t) num_experts(e)= top_k=topk num_local_experts=e hidden_size(columns)=h "
    "intermediate_size=i gemm1_out_size= num_hidden_blocks= num_intermediate_blocks= "
    "num_gemm1_out_blocks=";
constexpr char kMoeFp4BlockScaleDefaultRoutingInputs[] =
    "per_token_scale[seq_len]:float32 routing_logits routing_bias? hidden_states "
    "hidden_states_scale[seq_len num_fp4_hidden_blocks]? gemm1_weights[num_local_experts gemm1_out_size "
    "num_packed_hidden] gemm1_weights_scale[num_local_experts gemm1_out_size num_fp4_hidden_blocks] "
    "gemm1_bias[num_local_experts gemm1_out_size]? gemm1_alpha[num_local_experts]? "
    "gemm1_beta[num_local_experts]? gemm1_clamp_limit[num_local_experts]? "
    "gemm2_weights[num_local_experts hidden_size num_packed_intermediate] "
    "gemm2_weights_scale[num_local_experts hidden_size num_fp4_intermediate_blocks] "
    "gemm2_bias[num_local_experts hidden_size]? output1_scale_scalar[num_local_experts]? "
    "output1_scale_gate_scalar[num_local_experts]? output2_scale_scalar[num_local_experts]? "
    "local_expert_offset routed_scaling_factor? activation_type!";
constexpr char kMoeFp4BlockScaleDefaultRoutingAxes[] =
    "seq_len(t) num_experts(e)= top_k=topk num_local_experts=e hidden_size=h intermediate_size=i "
    "gemm1_out_size= num_packed_hidden(columns)= num_fp4_hidden_blocks= num_packed_intermediate= "
    "num_fp4_intermediate_blocks= activation_type=act";
constexpr op::TraceEntry fp8_block_scale(const char* prefix, const char* when, const char* axes, const char* inputs) {
  return {.op = "trtllm_fp8_block_scale_moe",
          .op_type = "moe",
          .axes = axes,
          .inputs = inputs,
          .outputs = "output[seq_len hidden_size]:bfloat16",
          .prefix = prefix,
          .tags = "status:verified quantization:float8_e4m3fn",
          .constraints = "",
          .when = when,
          .api = "flashinfer.fused_moe.core.trtllm_fp8_block_scale_moe"};
}
constexpr op::TraceEntry fp4_block_scale(const char* prefix, const char* when, const char* axes, const char* inputs) {
  return {.op = "trtllm_fp4_block_scale_moe",
          .op_type = "moe",
          .axes = axes,
          .inputs = inputs,
          .outputs = "output[seq_len hidden_size]:bfloat16",
          .prefix = prefix,
          .tags = "status:experimental quantization:nvfp4",
          .constraints = "",
          .when = when,
          .api = "flashinfer.fused_moe.core.trtllm_fp4_block_scale_moe"};
}

constexpr op::TraceEntry kTraces[] = {
    {.op = "moe_routing", .op_type = "moe", .axes = "num_tokens(t) num_experts(e)=e", .prefix = "moe_routing"},
    {.op = "fused_topk_deepseek",
     .op_type = "moe_routing",
     .axes = "num_tokens(t) num_experts(e)=e topk(k)=k",
     .inputs = "scores bias n_group topk_group topk routed_scaling_factor topk_values topk_indices",
     .outputs = "topk_values[num_tokens topk]@scores topk_indices[num_tokens topk]:int32",
     .prefix = "fused_topk_deepseek",
     .tags = "status:verified moe",
     .api = "flashinfer.fused_moe.fused_routing_dsv3.fused_topk_deepseek"},
    {.op = "hash_topk",
     .op_type = "moe_routing",
     .axes = "num_tokens(t) num_routed_experts(e)=e topk(k)=k vocab(v)=v",
     .inputs = "router_logits input_ids:int64 tid2eid num_fused_shared_experts! routed_scaling_factor!",
     .outputs = "topk_weights[num_tokens topk]:float32 topk_ids[num_tokens topk]:int32",
     .prefix = "hash_topk",
     .tags = "status:verified moe",
     .api = "flashinfer.fused_moe.hash_topk.hash_topk"},
    {.op = "bgmv_moe", .op_type = "moe", .axes = "num_tokens(t) hidden_size(h)=h p", .prefix = "bgmv_moe"},
    {.op = "bgmv_moe_shrink_weights",
     .op_type = "moe",
     .axes = "s p r rows hidden_size(h)=h num_tokens(t)",
     .prefix = "bgmv_moe_shrink_weights"},
    {.op = "bgmv_moe_expand_weights",
     .op_type = "moe",
     .axes = "rows columns=columns s p r num_tokens(t)",
     .prefix = "bgmv_moe_expand_weights"},
    {.op = "trtllm_gen_routing",
     .op_type = "moe_routing",
     .axes = "num_tokens(t) num_experts(e)=e top_k=k tile_tokens_dim=t max_num_ctas max_num_padded_tokens one",
     .inputs = "routing_logits routing_bias? routing_method top_k num_fused_shared_experts! n_group! topk_group! "
               "local_expert_offset! local_num_experts routed_scaling_factor! tile_tokens_dim! norm_topk_prob:bool!",
     .outputs = "topk_ids[num_tokens top_k]:int32 topk_weights[num_tokens top_k]:bfloat16 "
                "total_num_padded_tokens[one]:int32 expanded_idx_to_permuted_idx[num_tokens top_k]:int32 "
                "permuted_idx_to_token_idx[max_num_padded_tokens]:int32 cta_idx_xy_to_batch_idx[max_num_ctas]:int32 "
                "cta_idx_xy_to_mn_limit[max_num_ctas]:int32 num_non_exiting_ctas[one]:int32",
     .prefix = "trtllm_gen_routing",
     .tags = "status:verified moe moe:routing",
     .constraints = "num_fused_shared_experts == 0",
     .api = "flashinfer.fused_moe.trtllm_gen_routing.trtllm_gen_routing"},
    {.op = "cutlass_fused_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_local_experts=e hidden_size(columns)=h intermediate_size=i top_k(k)=topk "
             "gemm1_out_size=",
     .inputs = "input token_selected_experts:int32 token_final_scales fc1_expert_weights[num_local_experts "
               "gemm1_out_size hidden_size] fc2_expert_weights[num_local_experts hidden_size intermediate_size]",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "cutlass_fused_moe",
     .tags = "status:verified backend:cutlass",
     .api = "flashinfer.fused_moe.core.cutlass_fused_moe"},
    {.op = "moe_gemm_fp8_nt_groupwise",
     .op_type = "moe",
     .axes = "M(m) K(k)=k num_experts(e)=e N(n)=n",
     .prefix = "moe_gemm_fp8_nt_groupwise"},
    {.op = "moe_gemm_mxfp8_nt_groupwise",
     .op_type = "moe",
     .axes = "M(m) K(k)=k num_experts(e)=e N(n)=n",
     .prefix = "moe_gemm_mxfp8_nt_groupwise"},
    {.op = "cutlass_fused_moe_workspace_size", .op_type = "moe", .prefix = "cutlass_fused_moe_workspace_size"},
    {.op = "trtllm_bf16_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts(e)= top_k=topk num_local_experts=e hidden_size(columns)=h "
             "intermediate_size=i gemm1_out_size= activation_type=act:7 num_hidden_blocks= "
             "num_intermediate_blocks= block_k=",
     .inputs = "routing_logits routing_bias? hidden_states gemm1_weights[num_local_experts num_hidden_blocks "
               "gemm1_out_size block_k] gemm2_weights[num_local_experts num_intermediate_blocks hidden_size "
               "block_k] top_k n_group? topk_group? local_expert_offset routed_scaling_factor routing_method_type "
               "activation_type! gemm1_alpha[num_local_experts]:float32 gemm1_beta[num_local_experts]:float32 "
               "gemm1_clamp_limit[num_local_experts]:float32 intermediate_size use_shuffled_weight:bool",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_bf16_moe_swiglu_step",
     .tags = "status:verified backend:trtllm",
     .when = "activation_type=7",
     .api = "flashinfer.fused_moe.core.trtllm_bf16_moe"},
    {.op = "trtllm_bf16_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts(e)= top_k=topk num_local_experts=e hidden_size(columns)=h "
             "intermediate_size=i gemm1_out_size=",
     .inputs = "routing_logits routing_bias? hidden_states gemm1_weights[num_local_experts gemm1_out_size "
               "hidden_size] gemm2_weights[num_local_experts hidden_size intermediate_size] top_k n_group? "
               "topk_group? local_expert_offset routed_scaling_factor routing_method_type activation_type "
               "gemm1_alpha[num_local_experts]:float32 gemm1_beta[num_local_experts]:float32 "
               "gemm1_clamp_limit[num_local_experts]:float32",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_bf16_moe",
     .tags = "status:verified backend:trtllm",
     .api = "flashinfer.fused_moe.core.trtllm_bf16_moe"},
    {.op = "trtllm_bf16_routed_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts top_k=topk num_local_experts=e hidden_size(columns)=h intermediate_size "
             "gemm1_out_size= activation_type=act:7 num_hidden_blocks= num_intermediate_blocks= block_k=",
     .inputs = "topk_ids[seq_len top_k]:int32 hidden_states gemm1_weights[num_local_experts num_hidden_blocks "
               "gemm1_out_size block_k] gemm2_weights[num_local_experts num_intermediate_blocks hidden_size "
               "block_k] num_experts top_k local_expert_offset routed_scaling_factor activation_type! "
               "gemm1_alpha[num_local_experts]:float32 gemm1_beta[num_local_experts]:float32 "
               "gemm1_clamp_limit[num_local_experts]:float32 intermediate_size use_shuffled_weight:bool",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_bf16_routed_moe_swiglu_step",
     .tags = "status:verified backend:trtllm",
     .when = "activation_type=7",
     .api = "flashinfer.fused_moe.core.trtllm_bf16_routed_moe"},
    {.op = "trtllm_bf16_routed_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts top_k=topk num_local_experts=e hidden_size(columns)=h intermediate_size "
             "gemm1_out_size=",
     .inputs = "topk_ids[seq_len top_k]:int32 hidden_states gemm1_weights[num_local_experts gemm1_out_size "
               "hidden_size] gemm2_weights[num_local_experts hidden_size intermediate_size] num_experts top_k "
               "local_expert_offset routed_scaling_factor activation_type gemm1_alpha[num_local_experts]:float32 "
               "gemm1_beta[num_local_experts]:float32 gemm1_clamp_limit[num_local_experts]:float32",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_bf16_routed_moe",
     .tags = "status:verified backend:trtllm",
     .api = "flashinfer.fused_moe.core.trtllm_bf16_routed_moe"},
    {.op = "trtllm_fp8_per_tensor_scale_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts(e)= top_k=topk num_local_experts=e hidden_size(columns)=h "
             "intermediate_size=i gemm1_out_size= activation_type=act:7",
     .inputs = "routing_logits routing_bias? hidden_states gemm1_weights[num_local_experts gemm1_out_size "
               "hidden_size] gemm2_weights[num_local_experts hidden_size intermediate_size] top_k n_group? "
               "topk_group? local_expert_offset routed_scaling_factor? routing_method_type "
               "gemm1_clamp_limit[num_local_experts]:float32 activation_type! "
               "output1_scales_scalar[num_local_experts]:float32 "
               "output1_scales_gate_scalar[num_local_experts]:float32 "
               "output2_scales_scalar[num_local_experts]:float32",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_fp8_per_tensor_scale_moe_swiglu_step",
     .tags = "status:verified backend:trtllm quantization:float8_e4m3fn",
     .when = "activation_type=7",
     .api = "flashinfer.fused_moe.core.trtllm_fp8_per_tensor_scale_moe"},
    {.op = "trtllm_fp8_per_tensor_scale_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts(e)= top_k=topk num_local_experts=e hidden_size(columns)=h "
             "intermediate_size=i gemm1_out_size=",
     .inputs = "routing_logits routing_bias? hidden_states gemm1_weights[num_local_experts gemm1_out_size "
               "hidden_size] gemm2_weights[num_local_experts hidden_size intermediate_size] top_k n_group? "
               "topk_group? local_expert_offset routed_scaling_factor? routing_method_type "
               "gemm1_clamp_limit[num_local_experts]:float32 activation_type "
               "output1_scales_scalar[num_local_experts]:float32 "
               "output1_scales_gate_scalar[num_local_experts]:float32 "
               "output2_scales_scalar[num_local_experts]:float32",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_fp8_per_tensor_scale_moe",
     .tags = "status:verified backend:trtllm quantization:float8_e4m3fn",
     .api = "flashinfer.fused_moe.core.trtllm_fp8_per_tensor_scale_moe"},
    {.op = "trtllm_fp8_per_tensor_scale_routed_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts(e) top_k=topk num_local_experts=e hidden_size(columns)=h intermediate_size "
             "gemm1_out_size= activation_type=act:7",
     .inputs = "gemm1_clamp_limit[num_local_experts]:float32 activation_type! topk_ids[seq_len top_k]:int32 "
               "routing_bias? hidden_states gemm1_weights[num_local_experts gemm1_out_size hidden_size] "
               "output1_scales_scalar[num_local_experts]:float32 "
               "output1_scales_gate_scalar[num_local_experts]:float32 gemm2_weights[num_local_experts hidden_size "
               "intermediate_size] output2_scales_scalar[num_local_experts]:float32 num_experts top_k "
               "local_expert_offset routed_scaling_factor?",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_fp8_per_tensor_scale_routed_moe_swiglu_step",
     .tags = "status:verified backend:trtllm quantization:float8_e4m3fn",
     .when = "activation_type=7",
     .api = "flashinfer.fused_moe.core.trtllm_fp8_per_tensor_scale_routed_moe"},
    {.op = "trtllm_fp8_per_tensor_scale_routed_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts(e) top_k=topk num_local_experts=e hidden_size(columns)=h intermediate_size "
             "gemm1_out_size=",
     .inputs = "gemm1_clamp_limit[num_local_experts]:float32 activation_type topk_ids[seq_len top_k]:int32 "
               "routing_bias? hidden_states gemm1_weights[num_local_experts gemm1_out_size hidden_size] "
               "output1_scales_scalar[num_local_experts]:float32 "
               "output1_scales_gate_scalar[num_local_experts]:float32 gemm2_weights[num_local_experts hidden_size "
               "intermediate_size] output2_scales_scalar[num_local_experts]:float32 num_experts top_k "
               "local_expert_offset routed_scaling_factor?",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_fp8_per_tensor_scale_routed_moe",
     .tags = "status:verified backend:trtllm quantization:float8_e4m3fn",
     .api = "flashinfer.fused_moe.core.trtllm_fp8_per_tensor_scale_routed_moe"},
    {.op = "trtllm_fp8_per_channel_scale_moe",
     .op_type = "moe",
     .axes = "num_tokens(t) num_experts(e)=e columns=columns",
     .prefix = "trtllm_fp8_per_channel_scale_moe"},
    {.op = "trtllm_fp8_per_channel_scale_routed_moe",
     .op_type = "moe",
     .axes = "num_experts(e)=e num_tokens(t) columns=columns",
     .prefix = "trtllm_fp8_per_channel_scale_routed_moe"},
    fp8_block_scale(
        "moe_fp8_block_scale_ds_shared_experts_swiglu_step",
        "activation_type=7 routing_method_type=2 num_fused_shared_experts=positive",
        "num_fused_shared_experts=s num_weight_rows=e seq_len(t) num_experts(e)= top_k=topk n_group=ng topk_group=kg "
        "hidden_size(columns)=h intermediate_size=i gemm1_out_size= num_hidden_blocks= num_intermediate_blocks= "
        "activation_type=act:7",
        "num_fused_shared_experts! routing_logits routing_bias hidden_states hidden_states_scale[seq_len "
        "num_hidden_blocks] gemm1_weights[num_weight_rows gemm1_out_size hidden_size] "
        "gemm1_weights_scale[num_weight_rows gemm1_out_size num_hidden_blocks] gemm1_alpha[num_weight_rows]:float32 "
        "gemm1_beta[num_weight_rows]:float32 gemm1_clamp_limit[num_weight_rows]:float32 gemm2_weights[num_weight_rows "
        "hidden_size intermediate_size] gemm2_weights_scale[num_weight_rows hidden_size num_intermediate_blocks] top_k "
        "n_group topk_group local_expert_offset routed_scaling_factor activation_type! use_shuffled_weight:bool "
        "fp8_quantization_type!"),
    fp8_block_scale("moe_fp8_block_scale_default_routing_swiglu_step", "activation_type=7 routing_method_type=0",
                    kMoeFp8BlockScaleDefaultRoutingSwigluStepAxes, kMoeFp8BlockScaleDefaultRoutingSwigluStepInputs),
    fp8_block_scale("moe_fp8_block_scale_renormalize_routing_swiglu_step", "activation_type=7 routing_method_type=1",
                    kMoeFp8BlockScaleDefaultRoutingSwigluStepAxes, kMoeFp8BlockScaleDefaultRoutingSwigluStepInputs),
    fp8_block_scale(
        "moe_fp8_block_scale_ds_routing_swiglu_step", "activation_type=7 routing_method_type=2",
        "seq_len(t) num_experts(e)= top_k=topk n_group=ng topk_group=kg num_local_experts=e hidden_size(columns)=h "
        "intermediate_size=i gemm1_out_size= num_hidden_blocks= num_intermediate_blocks= activation_type=act:7",
        "routing_logits routing_bias hidden_states hidden_states_scale[seq_len num_hidden_blocks] "
        "gemm1_weights[num_local_experts gemm1_out_size hidden_size] gemm1_weights_scale[num_local_experts "
        "gemm1_out_size num_hidden_blocks] gemm1_alpha[num_local_experts]:float32 "
        "gemm1_beta[num_local_experts]:float32 gemm1_clamp_limit[num_local_experts]:float32 "
        "gemm2_weights[num_local_experts hidden_size intermediate_size] gemm2_weights_scale[num_local_experts "
        "hidden_size num_intermediate_blocks] top_k n_group topk_group local_expert_offset routed_scaling_factor "
        "activation_type! use_shuffled_weight:bool fp8_quantization_type!"),
    fp8_block_scale("moe_fp8_block_scale_llama4_routing_swiglu_step", "activation_type=7 routing_method_type=3",
                    kMoeFp8BlockScaleDefaultRoutingSwigluStepAxes, kMoeFp8BlockScaleDefaultRoutingSwigluStepInputs),
    fp8_block_scale("moe_fp8_block_scale_renormalize_naive_routing_swiglu_step",
                    "activation_type=7 routing_method_type=4", kMoeFp8BlockScaleDefaultRoutingSwigluStepAxes,
                    kMoeFp8BlockScaleDefaultRoutingSwigluStepInputs),
    fp8_block_scale("moe_fp8_block_scale_topk_routing_swiglu_step", "activation_type=7 routing_method_type=5",
                    kMoeFp8BlockScaleDefaultRoutingSwigluStepAxes, kMoeFp8BlockScaleDefaultRoutingSwigluStepInputs),
    fp8_block_scale(
        "moe_fp8_block_scale_ds_shared_experts", "routing_method_type=2 num_fused_shared_experts=positive",
        "num_fused_shared_experts=s num_weight_rows=e seq_len(t) num_experts(e)= top_k=topk n_group=ng topk_group=kg "
        "hidden_size(columns)=h intermediate_size=i gemm1_out_size= num_hidden_blocks= num_intermediate_blocks= "
        "num_gemm1_out_blocks=",
        "num_fused_shared_experts! routing_logits routing_bias hidden_states hidden_states_scale[num_hidden_blocks "
        "seq_len] gemm1_weights[num_weight_rows gemm1_out_size hidden_size] gemm1_weights_scale[num_weight_rows "
        "num_gemm1_out_blocks num_hidden_blocks] gemm1_alpha[num_weight_rows]:float32 "
        "gemm1_beta[num_weight_rows]:float32 gemm1_clamp_limit[num_weight_rows]:float32 gemm2_weights[num_weight_rows "
        "hidden_size intermediate_size] gemm2_weights_scale[num_weight_rows num_hidden_blocks num_intermediate_blocks] "
        "top_k n_group topk_group local_expert_offset routed_scaling_factor"),
    fp8_block_scale("moe_fp8_block_scale_default_routing", "routing_method_type=0", kMoeFp8BlockScaleDefaultRoutingAxes,
                    kMoeFp8BlockScaleDefaultRoutingInputs),
    fp8_block_scale("moe_fp8_block_scale_renormalize_routing", "routing_method_type=1",
                    kMoeFp8BlockScaleDefaultRoutingAxes, kMoeFp8BlockScaleDefaultRoutingInputs),
    {.op = "trtllm_fp8_block_scale_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts(e)= top_k=topk n_group=ng topk_group=kg num_local_experts=e "
             "hidden_size(columns)=h intermediate_size=i gemm1_out_size= num_hidden_blocks= "
             "num_intermediate_blocks= num_gemm1_out_blocks=",
     .inputs = "routing_logits routing_bias hidden_states hidden_states_scale[num_hidden_blocks seq_len] "
               "gemm1_weights[num_local_experts gemm1_out_size hidden_size] gemm1_weights_scale[num_local_experts "
               "num_gemm1_out_blocks num_hidden_blocks] gemm1_alpha[num_local_experts]:float32 "
               "gemm1_beta[num_local_experts]:float32 gemm1_clamp_limit[num_local_experts]:float32 "
               "gemm2_weights[num_local_experts hidden_size intermediate_size] "
               "gemm2_weights_scale[num_local_experts num_hidden_blocks num_intermediate_blocks] top_k n_group "
               "topk_group local_expert_offset routed_scaling_factor",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "moe_fp8_block_scale_ds_routing",
     .tags = "status:verified quantization:float8_e4m3fn",
     .when = "routing_method_type=2",
     .api = "flashinfer.fused_moe.core.trtllm_fp8_block_scale_moe",
     .reference = kFp8DsReference,
     .init = kFp8DsInit},
    fp8_block_scale("moe_fp8_block_scale_llama4_routing", "routing_method_type=3", kMoeFp8BlockScaleDefaultRoutingAxes,
                    kMoeFp8BlockScaleDefaultRoutingInputs),
    fp8_block_scale("moe_fp8_block_scale_renormalize_naive_routing", "routing_method_type=4",
                    kMoeFp8BlockScaleDefaultRoutingAxes, kMoeFp8BlockScaleDefaultRoutingInputs),
    fp8_block_scale("moe_fp8_block_scale_topk_routing", "routing_method_type=5", kMoeFp8BlockScaleDefaultRoutingAxes,
                    kMoeFp8BlockScaleDefaultRoutingInputs),
    {.op = "trtllm_fp8_block_scale_routed_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts(e) top_k=topk num_local_experts=e hidden_size(columns)=h intermediate_size "
             "gemm1_out_size= num_hidden_blocks= num_intermediate_blocks= activation_type=act:7",
     .inputs = "topk_ids[seq_len top_k]:int32 routing_bias? hidden_states hidden_states_scale[seq_len "
               "num_hidden_blocks] gemm1_weights[num_local_experts gemm1_out_size hidden_size] "
               "gemm1_weights_scale[num_local_experts gemm1_out_size num_hidden_blocks] "
               "gemm1_alpha[num_local_experts]:float32 gemm1_beta[num_local_experts]:float32 "
               "gemm1_clamp_limit[num_local_experts]:float32 gemm2_weights[num_local_experts hidden_size "
               "intermediate_size] gemm2_weights_scale[num_local_experts hidden_size num_intermediate_blocks] "
               "num_experts top_k local_expert_offset routed_scaling_factor? activation_type! "
               "use_shuffled_weight:bool fp8_quantization_type!",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_fp8_block_scale_routed_moe_swiglu_step",
     .tags = "status:verified backend:trtllm quantization:float8_e4m3fn",
     .when = "activation_type=7",
     .api = "flashinfer.fused_moe.core.trtllm_fp8_block_scale_routed_moe"},
    {.op = "trtllm_fp8_block_scale_routed_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts(e) top_k=topk num_local_experts=e hidden_size(columns)=h intermediate_size "
             "gemm1_out_size= num_hidden_blocks= num_intermediate_blocks= num_gemm1_out_blocks=",
     .inputs = "topk_ids[seq_len top_k]:int32 routing_bias? hidden_states hidden_states_scale[num_hidden_blocks "
               "seq_len] gemm1_weights[num_local_experts gemm1_out_size hidden_size] "
               "gemm1_weights_scale[num_local_experts num_gemm1_out_blocks num_hidden_blocks] "
               "gemm1_alpha[num_local_experts]:float32 gemm1_beta[num_local_experts]:float32 "
               "gemm1_clamp_limit[num_local_experts]:float32 gemm2_weights[num_local_experts hidden_size "
               "intermediate_size] gemm2_weights_scale[num_local_experts num_hidden_blocks num_intermediate_blocks] "
               "num_experts top_k local_expert_offset routed_scaling_factor?",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_fp8_block_scale_routed_moe",
     .tags = "status:verified backend:trtllm quantization:float8_e4m3fn",
     .api = "flashinfer.fused_moe.core.trtllm_fp8_block_scale_routed_moe"},
    fp4_block_scale(
        "moe_fp4_block_scale_ds_shared_experts", "routing_method_type=2 num_fused_shared_experts=positive",
        "num_fused_shared_experts=s num_weight_rows=e seq_len(t) num_experts(e)= top_k=topk hidden_size=h "
        "intermediate_size=i gemm1_out_size= num_packed_hidden(columns)= num_fp4_hidden_blocks= "
        "num_packed_intermediate= num_fp4_intermediate_blocks= activation_type=act n_group=ng topk_group=kg",
        "per_token_scale[seq_len]:float32 routing_logits routing_bias? hidden_states hidden_states_scale[seq_len "
        "num_fp4_hidden_blocks]? gemm1_weights[num_weight_rows gemm1_out_size num_packed_hidden] "
        "gemm1_weights_scale[num_weight_rows gemm1_out_size num_fp4_hidden_blocks] gemm1_bias[num_weight_rows "
        "gemm1_out_size]? gemm1_alpha[num_weight_rows]? gemm1_beta[num_weight_rows]? "
        "gemm1_clamp_limit[num_weight_rows]? gemm2_weights[num_weight_rows hidden_size num_packed_intermediate] "
        "gemm2_weights_scale[num_weight_rows hidden_size num_fp4_intermediate_blocks] gemm2_bias[num_weight_rows "
        "hidden_size]? output1_scale_scalar[num_weight_rows]? output1_scale_gate_scalar[num_weight_rows]? "
        "output2_scale_scalar[num_weight_rows]? local_expert_offset routed_scaling_factor? activation_type! "
        "num_fused_shared_experts!"),
    fp4_block_scale("moe_fp4_block_scale_default_routing", "routing_method_type=0", kMoeFp4BlockScaleDefaultRoutingAxes,
                    kMoeFp4BlockScaleDefaultRoutingInputs),
    fp4_block_scale("moe_fp4_block_scale_renormalize_routing", "routing_method_type=1",
                    kMoeFp4BlockScaleDefaultRoutingAxes, kMoeFp4BlockScaleDefaultRoutingInputs),
    fp4_block_scale("moe_fp4_block_scale_ds_routing", "routing_method_type=2",
                    "seq_len(t) num_experts(e)= top_k=topk num_local_experts=e hidden_size=h intermediate_size=i "
                    "gemm1_out_size= num_packed_hidden(columns)= num_fp4_hidden_blocks= num_packed_intermediate= "
                    "num_fp4_intermediate_blocks= activation_type=act n_group=ng topk_group=kg",
                    kMoeFp4BlockScaleDefaultRoutingInputs),
    fp4_block_scale("moe_fp4_block_scale_llama4_routing", "routing_method_type=3", kMoeFp4BlockScaleDefaultRoutingAxes,
                    kMoeFp4BlockScaleDefaultRoutingInputs),
    fp4_block_scale("moe_fp4_block_scale_renormalize_naive_routing", "routing_method_type=4",
                    kMoeFp4BlockScaleDefaultRoutingAxes, kMoeFp4BlockScaleDefaultRoutingInputs),
    fp4_block_scale("moe_fp4_block_scale_topk_routing", "routing_method_type=5", kMoeFp4BlockScaleDefaultRoutingAxes,
                    kMoeFp4BlockScaleDefaultRoutingInputs),
    {.op = "trtllm_fp4_block_scale_routed_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts(e) top_k=topk num_local_experts=e hidden_size=h intermediate_size "
             "gemm1_out_size= num_packed_hidden(columns)= num_fp4_hidden_blocks num_packed_intermediate= "
             "num_fp4_intermediate_blocks= activation_type=act",
     .inputs = "gemm1_bias[num_local_experts gemm1_out_size]? gemm2_bias[num_local_experts hidden_size]? "
               "output1_scale_scalar[num_local_experts]? output1_scale_gate_scalar[num_local_experts]? "
               "output2_scale_scalar[num_local_experts]? per_token_scale[seq_len]:float32 topk_ids[seq_len "
               "top_k]:int32 routing_bias? hidden_states hidden_states_scale[seq_len num_fp4_hidden_blocks]? "
               "gemm1_weights[num_local_experts gemm1_out_size num_packed_hidden] "
               "gemm1_weights_scale[num_local_experts gemm1_out_size num_fp4_hidden_blocks] "
               "gemm1_alpha[num_local_experts]:float32? gemm1_beta[num_local_experts]:float32? "
               "gemm1_clamp_limit[num_local_experts]:float32? gemm2_weights[num_local_experts hidden_size "
               "num_packed_intermediate] gemm2_weights_scale[num_local_experts hidden_size "
               "num_fp4_intermediate_blocks] num_experts top_k local_expert_offset routed_scaling_factor? "
               "activation_type!",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_fp4_block_scale_routed_moe",
     .tags = "status:experimental backend:trtllm quantization:nvfp4",
     .api = "flashinfer.fused_moe.core.trtllm_fp4_block_scale_routed_moe"},
    {.op = "trtllm_mxint4_block_scale_moe",
     .op_type = "moe",
     .axes = "seq_len(t) num_experts(e)= top_k=topk num_local_experts=e hidden_size(columns)=h intermediate_size "
             "gemm1_out_size= num_packed_hidden= num_mxint4_hidden_blocks= num_packed_intermediate= "
             "num_mxint4_intermediate_blocks=",
     .inputs = "routing_logits routing_bias? hidden_states gemm1_weights[num_local_experts gemm1_out_size "
               "num_packed_hidden] gemm1_weights_scale[num_local_experts gemm1_out_size num_mxint4_hidden_blocks] "
               "gemm2_weights[num_local_experts hidden_size num_packed_intermediate] "
               "gemm2_weights_scale[num_local_experts hidden_size num_mxint4_intermediate_blocks] top_k n_group? "
               "topk_group? local_expert_offset routed_scaling_factor? routing_method_type",
     .outputs = "output[seq_len hidden_size]:bfloat16",
     .prefix = "trtllm_mxint4_block_scale_moe",
     .tags = "status:experimental backend:trtllm quantization:mxint4",
     .api = "flashinfer.fused_moe.core.trtllm_mxint4_block_scale_moe"},
    {.op = "trtllm_mxint4_block_scale_routed_moe",
     .op_type = "moe",
     .axes = "num_tokens(t) columns=columns",
     .prefix = "trtllm_mxint4_block_scale_routed_moe"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::moe
