// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/cases.h"

namespace flashinfer::ops::moe {
namespace {
constexpr op::Case kBf16[] = {
    {"blocked",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=bf16:9x128 "
     "gemm1_weights=bf16:4x2x128x64:normal(0,0.1) gemm2_weights=bf16:4x1x128x64:normal(0,0.1) num_experts=4 "
     "top_k=2 n_group=None topk_group=None intermediate_size=64 local_expert_offset=0 local_num_experts=4 "
     "routing_method_type=1", "cpu", op::kAot, 3e-2, 0.1},
    {"deepseek_local_experts",
     "routing_logits=f32:9x16 routing_bias=f32:16:normal(0,0.1) hidden_states=bf16:9x64 "
     "gemm1_weights=bf16:8x64x64:normal(0,0.1) gemm2_weights=bf16:8x64x32:normal(0,0.1) num_experts=16 top_k=4 "
     "n_group=4 topk_group=2 intermediate_size=32 local_expert_offset=4 local_num_experts=8 "
     "routed_scaling_factor=2.5 routing_method_type=2 weight_layout=0 routing_replay_out=i16:11x4", "cpu", 0, 3e-2, 0.1},
    {"unused_routing_arguments",
     "routing_logits=f32:9x4 routing_bias=f32:4 hidden_states=bf16:9x64 gemm1_weights=bf16:4x64x64:normal(0,0.1) "
     "gemm2_weights=bf16:4x64x32:normal(0,0.1) num_experts=4 top_k=2 n_group=8 topk_group=4 intermediate_size=32 "
     "local_expert_offset=0 local_num_experts=4 routed_scaling_factor=2.5 weight_layout=0 routing_method_type=1", "cpu", 0, 3e-2, 0.1},
    {"plain_relu2",
     "routing_logits=f32:5x4 routing_bias=None hidden_states=bf16:5x48 gemm1_weights=bf16:4x40x48:normal(0,0.1) "
     "gemm2_weights=bf16:4x48x40:normal(0,0.1) num_experts=4 top_k=2 n_group=None topk_group=None "
     "intermediate_size=40 local_expert_offset=0 local_num_experts=4 use_shuffled_weight=False weight_layout=0 "
     "activation_type=6 routing_method_type=4", "cpu", 0, 3e-2, 0.1},
    {"not_finalized",
     "routing_logits=f32:5x4 routing_bias=None hidden_states=bf16:5x128 "
     "gemm1_weights=bf16:4x2x128x64:normal(0,0.1) gemm2_weights=bf16:4x1x128x64:normal(0,0.1) num_experts=4 "
     "top_k=2 n_group=None topk_group=None intermediate_size=64 local_expert_offset=0 local_num_experts=4 "
     "do_finalize=False", "cpu", 0, 3e-2, 0.1},
};
constexpr op::Case kBf16Routed[] = {
    {"pair",
     "topk_ids=(i32:9x2:randint(0,4),f32:9x2:uniform(0,1)) hidden_states=bf16:9x128 "
     "gemm1_weights=bf16:4x2x128x64:normal(0,0.1) gemm2_weights=bf16:4x1x128x64:normal(0,0.1) num_experts=4 "
     "top_k=2 n_group=None topk_group=None intermediate_size=64 local_expert_offset=0 local_num_experts=4 "
     "gemm1_alpha=f32:4:const(1.7) gemm1_beta=f32:4:const(1) gemm1_clamp_limit=f32:4:const(2)", "cpu", 0, 3e-2, 0.1},
    {"packed",
     "topk_ids=i32:2x2:randint(81664,81792) hidden_states=bf16:2x128 "
     "gemm1_weights=bf16:4x2x128x64:normal(0,0.1) gemm2_weights=bf16:4x1x128x64:normal(0,0.1) num_experts=4 "
     "top_k=2 n_group=None topk_group=None intermediate_size=64 local_expert_offset=0 local_num_experts=4 "
     "activation_type=4", "cpu", 0, 3e-2, 0.1},
    {"no_tokens",
     "topk_ids=(i32:0x2:randint(0,4),f32:0x2:uniform(0,1)) hidden_states=bf16:0x128 "
     "gemm1_weights=bf16:4x2x128x64:normal(0,0.1) gemm2_weights=bf16:4x1x128x64:normal(0,0.1) num_experts=4 "
     "top_k=2 n_group=None topk_group=None intermediate_size=64 local_expert_offset=0 local_num_experts=4", "cpu", 0, 3e-2, 0.1},
};
constexpr op::Case kFp8PerTensorScale[] = {
    {"swiglu",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=e4m3:9x64 gemm1_weights=e4m3:4x128x64 "
     "output1_scales_scalar=f32:[0.05,0.1,0.05,0.05] output1_scales_gate_scalar=f32:[0.1,0.2,0.1,0.1] "
     "gemm2_weights=e4m3:4x64x64 output2_scales_scalar=f32:[0.2,0.1,0.2,0.2] num_experts=4 top_k=2 n_group=0 "
     "topk_group=0 intermediate_size=64 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None "
     "use_routing_scales_on_input=False routing_method_type=1", "cpu", op::kAot, 3e-2, 0.1},
    {"llama4",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=e4m3:9x64 gemm1_weights=e4m3:4x128x64 "
     "output1_scales_scalar=f32:[0.05,0.1,0.05,0.05] output1_scales_gate_scalar=f32:[0.1,0.2,0.1,0.1] "
     "gemm2_weights=e4m3:4x64x64 output2_scales_scalar=f32:[0.2] num_experts=4 top_k=1 n_group=0 topk_group=0 "
     "intermediate_size=64 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None "
     "use_routing_scales_on_input=True routing_method_type=3", "cpu", 0, 3e-2, 0.1},
    {"swiglu_step_limit",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=e4m3:9x64 gemm1_weights=e4m3:4x128x64 "
     "output1_scales_scalar=f32:[0.05,0.1,0.05,0.05] output1_scales_gate_scalar=f32:[0.1,0.2,0.1,0.1] "
     "gemm2_weights=e4m3:4x64x64 output2_scales_scalar=f32:[0.2,0.1,0.2,0.2] num_experts=4 top_k=2 n_group=0 "
     "topk_group=0 intermediate_size=64 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None "
     "use_routing_scales_on_input=False routing_method_type=1 activation_type=7 gemm1_clamp_limit=f32:[5,10,4,6]", "cpu", 0, 3e-2, 0.1},
};
constexpr op::Case kFp8PerTensorScaleRouted[] = {
    {"pair",
     "topk_ids=(i32:9x2:randint(0,4),f32:9x2:uniform(0,1)) hidden_states=e4m3:9x64 gemm1_weights=e4m3:4x128x64 "
     "output1_scales_scalar=f32:[0.05,0.1,0.05,0.05] output1_scales_gate_scalar=f32:[0.1,0.2,0.1,0.1] "
     "gemm2_weights=e4m3:4x64x64 output2_scales_scalar=f32:[0.2,0.1,0.2,0.2] num_experts=4 top_k=2 n_group=0 "
     "topk_group=0 intermediate_size=64 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None "
     "use_routing_scales_on_input=False activation_type=7", "cpu", 0, 3e-2, 0.2},
};
constexpr op::Case kFp8PerChannelScale[] = {
    {"swiglu",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=e4m3:9x64 "
     "hidden_states_scale=f32:9x1:uniform(0.5,1.5) gemm1_weights=e4m3:4x128x64 "
     "gemm1_per_channel_weight_scale=f32:4x128:uniform(0.5,1.5) output1_scale_scalar=f32:[0.05] "
     "output1_scale_gate_scalar=f32:[0.1] gemm2_weights=e4m3:4x64x64 "
     "gemm2_per_channel_weight_scale=f32:4x64:uniform(0.5,1.5) output2_scale_scalar=f32:[0.2] num_experts=4 "
     "top_k=2 n_group=None topk_group=None intermediate_size=64 local_expert_offset=0 local_num_experts=4 "
     "routed_scaling_factor=None use_routing_scales_on_input=False", "cpu", 0, 3e-2, 0.1},
};
constexpr op::Case kFp8PerChannelScaleRouted[] = {
    {"pair",
     "topk_ids=(i32:9x2:randint(0,4),f32:9x2:uniform(0,1)) hidden_states=e4m3:9x64 "
     "hidden_states_scale=f32:9x1:uniform(0.5,1.5) gemm1_weights=e4m3:4x128x64 "
     "gemm1_per_channel_weight_scale=f32:4x128:uniform(0.5,1.5) output1_scale_scalar=f32:[0.05] "
     "output1_scale_gate_scalar=f32:[0.1] gemm2_weights=e4m3:4x64x64 "
     "gemm2_per_channel_weight_scale=f32:4x64:uniform(0.5,1.5) output2_scale_scalar=f32:[0.2] num_experts=4 "
     "top_k=2 n_group=None topk_group=None intermediate_size=64 local_expert_offset=0 local_num_experts=4 "
     "routed_scaling_factor=None", "cpu", 0, 3e-2, 0.1},
};
constexpr op::Case kFp8BlockScale[] = {
    {"valid_sizes",  // here and below: the last hidden columns and the last activations are padding
     "routing_logits=f32:9x4 routing_bias=None hidden_states=e4m3:9x96 hidden_states_scale=u8:9x3:randint(122,128) "
     "gemm1_weights=e4m3:4x128x96 gemm1_weights_scale=u8:4x128x3:randint(124,128) gemm2_weights=e4m3:4x96x64 "
     "gemm2_weights_scale=u8:4x96x2:randint(124,128) num_experts=4 top_k=2 n_group=None topk_group=None intermediate_size=64 "
     "local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None fp8_quantization_type=2 valid_hidden_size=64 "
     "valid_intermediate_size=32", "cpu", 0, 3e-2, 0.2},
    {"shared_experts",
     "routing_logits=f32:9x4 routing_bias=f32:4:normal(0,0.1) hidden_states=e4m3:9x64 hidden_states_scale=u8:9x2:randint(122,128) "
     "gemm1_weights=e4m3:5x128x64 gemm1_weights_scale=u8:5x128x2:randint(124,128) gemm2_weights=e4m3:5x64x64 "
     "gemm2_weights_scale=u8:5x64x2:randint(124,128) num_experts=4 top_k=2 n_group=None topk_group=None intermediate_size=64 local_expert_offset=0 "
     "local_num_experts=4 routed_scaling_factor=2.5 routing_method_type=2 fp8_quantization_type=2 num_fused_shared_experts=1",
     "cpu", 0, 3e-2, 0.3},
    {"deepseek",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=e4m3:9x256 "
     "hidden_states_scale=f32:2x9:uniform(0.5,1.5) gemm1_weights=e4m3:4x256x256 "
     "gemm1_weights_scale=f32:4x2x2:uniform(0.05,0.15) gemm2_weights=e4m3:4x256x128 "
     "gemm2_weights_scale=f32:4x2x1:uniform(0.05,0.15) num_experts=4 top_k=2 n_group=None topk_group=None "
     "intermediate_size=128 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None "
     "routing_method_type=6", "cpu", 0, 3e-2, 0.1},
    {"deepseek_scales_by_tokens",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=e4m3:9x256 "
     "hidden_states_scale=f32:2x9:uniform(0.5,1.5)^t gemm1_weights=e4m3:4x256x256 "
     "gemm1_weights_scale=f32:4x2x2:uniform(0.05,0.15) gemm2_weights=e4m3:4x256x128 "
     "gemm2_weights_scale=f32:4x2x1:uniform(0.05,0.15) num_experts=4 top_k=2 n_group=None topk_group=None "
     "intermediate_size=128 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None "
     "routing_method_type=6", "cpu", 0, 3e-2, 0.1},
    {"deepseek_blocked",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=bf16:9x256 hidden_states_scale=None "
     "gemm1_weights=e4m3:4x2x256x128 gemm1_weights_scale=f32:4x2x2:uniform(0.05,0.15) "
     "gemm2_weights=e4m3:4x1x256x128 gemm2_weights_scale=f32:4x2x1:uniform(0.05,0.15) num_experts=4 top_k=2 "
     "n_group=None topk_group=None intermediate_size=128 local_expert_offset=0 local_num_experts=4 "
     "routed_scaling_factor=None use_shuffled_weight=True weight_layout=2", "cpu", 0, 3e-2, 0.1},
    {"mxfp8_shuffled",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=e4m3:9x64 "
     "hidden_states_scale=u8:9x2:randint(122,128) gemm1_weights=e4m3:4x128x64 "
     "gemm1_weights_scale=u8:4x128x4:randint(124,128) gemm2_weights=e4m3:4x64x64 "
     "gemm2_weights_scale=u8:4x128x4:randint(124,128) num_experts=4 top_k=2 n_group=None topk_group=None "
     "intermediate_size=64 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None "
     "use_shuffled_weight=True fp8_quantization_type=2", "cpu", 0, 3e-2, 0.2},
};
constexpr op::Case kFp8BlockScaleRouted[] = {
    {"lora",
     "topk_ids=(i32:9x2:randint(0,4),f32:9x2:uniform(0,1)) routing_bias=None hidden_states=e4m3:9x64 "
     "hidden_states_scale=u8:9x2:randint(122,128) gemm1_weights=e4m3:3x128x64 "
     "gemm1_weights_scale=u8:3x128x2:randint(124,128) gemm2_weights=e4m3:3x64x64 "
     "gemm2_weights_scale=u8:3x64x2:randint(124,128) num_experts=4 top_k=2 n_group=None topk_group=None "
     "intermediate_size=64 local_expert_offset=0 local_num_experts=3 routed_scaling_factor=None "
     "fp8_quantization_type=2 gemm1_lora_delta=f32:9x2x128:normal(0,9)", "cpu", 0, 3e-2, 0.2},
    {"mxfp8",
     "topk_ids=(i32:9x2:randint(0,4),f32:9x2:uniform(0,1)) routing_bias=None hidden_states=e4m3:9x64 "
     "hidden_states_scale=u8:9x2:randint(122,128) gemm1_weights=e4m3:4x128x64 "
     "gemm1_weights_scale=u8:4x128x2:randint(124,128) gemm2_weights=e4m3:4x64x64 "
     "gemm2_weights_scale=u8:4x64x2:randint(124,128) num_experts=4 top_k=2 n_group=None topk_group=None "
     "intermediate_size=64 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None "
     "fp8_quantization_type=2", "cpu", 0, 3e-2, 0.2},
};
constexpr op::Case kFp4BlockScale[] = {
    {"valid_sizes",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=u8:9x48:randint(0,256) "
     "hidden_states_scale=u8:9x6:randint(40,56) gemm1_weights=u8:4x128x48:randint(0,256) "
     "gemm1_weights_scale=u8:4x128x8:randint(40,56) gemm1_bias=f32:4x128 gemm1_alpha=None gemm1_beta=None "
     "gemm1_clamp_limit=None gemm2_weights=u8:4x96x32:randint(0,256) "
     "gemm2_weights_scale=u8:4x128x4:randint(40,56) gemm2_bias=f32:4x96 output1_scale_scalar=f32:[3,2,3,3] "
     "output1_scale_gate_scalar=f32:[0.01,0.02,0.01,0.01] output2_scale_scalar=f32:[1e-3] num_experts=4 top_k=2 "
     "n_group=None topk_group=None intermediate_size=64 local_expert_offset=0 local_num_experts=4 "
     "routed_scaling_factor=None routing_method_type=1 valid_hidden_size=64 valid_intermediate_size=48", "cpu", 0, 3e-2, 0.1},
    {"nvfp4",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=u8:9x32:randint(0,256) "
     "hidden_states_scale=u8:9x4:randint(40,56) gemm1_weights=u8:4x128x32:randint(0,256) "
     "gemm1_weights_scale=u8:4x128x4:randint(40,56) gemm1_bias=f32:4x128 gemm1_alpha=None gemm1_beta=None "
     "gemm1_clamp_limit=None gemm2_weights=u8:4x64x32:randint(0,256) "
     "gemm2_weights_scale=u8:4x128x4:randint(40,56) gemm2_bias=f32:4x64 output1_scale_scalar=f32:[3,2,3,3] "
     "output1_scale_gate_scalar=f32:[0.01,0.02,0.01,0.01] output2_scale_scalar=f32:[1e-3] num_experts=4 top_k=2 "
     "n_group=None topk_group=None intermediate_size=64 local_expert_offset=0 local_num_experts=4 "
     "routed_scaling_factor=None routing_method_type=1", "cpu", op::kAot, 3e-2, 0.1},
    {"mxfp4_mxfp8",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=e4m3:9x64 "
     "hidden_states_scale=u8:18:randint(122,128) gemm1_weights=u8:4x128x32:randint(0,256) "
     "gemm1_weights_scale=u8:4x128x4:randint(122,126) gemm1_bias=f32:4x128 gemm1_alpha=None gemm1_beta=None "
     "gemm1_clamp_limit=None gemm2_weights=u8:4x64x32:randint(0,256) "
     "gemm2_weights_scale=u8:4x128x4:randint(122,126) gemm2_bias=f32:4x64 output1_scale_scalar=None "
     "output1_scale_gate_scalar=None output2_scale_scalar=None num_experts=4 top_k=2 n_group=None "
     "topk_group=None intermediate_size=64 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None", "cpu", 0, 3e-2, 0.2},
};
constexpr op::Case kFp4BlockScaleRouted[] = {
    {"valid_sizes",  // of 192 hidden columns 128, for which gemm2 has rows
     "topk_ids=(i32:9x2:randint(0,4),f32:9x2:uniform(0,1)) routing_bias=None hidden_states=bf16:9x192 "
     "hidden_states_scale=None gemm1_weights=u8:4x256x96:randint(0,256) "
     "gemm1_weights_scale=u8:4x256x8:randint(118,123) gemm1_bias=None gemm1_alpha=None gemm1_beta=None "
     "gemm1_clamp_limit=None gemm2_weights=u8:4x128x64:randint(0,256) "
     "gemm2_weights_scale=u8:4x128x4:randint(118,123) gemm2_bias=f32:4x128 output1_scale_scalar=None "
     "output1_scale_gate_scalar=None output2_scale_scalar=None num_experts=4 top_k=2 n_group=None "
     "topk_group=None intermediate_size=128 local_expert_offset=0 local_num_experts=4 "
     "routed_scaling_factor=None valid_hidden_size=128 valid_intermediate_size=96", "cpu", 0, 3e-2, 0.1},
    {"mxfp4_bf16",
     "topk_ids=(i32:9x2:randint(0,4),f32:9x2:uniform(0,1)) routing_bias=None hidden_states=bf16:9x128 "
     "hidden_states_scale=None gemm1_weights=u8:4x256x64:randint(0,256) "
     "gemm1_weights_scale=u8:4x256x4:randint(118,123) gemm1_bias=None gemm1_alpha=f32:4:const(1.702) "
     "gemm1_beta=f32:4:const(1) gemm1_clamp_limit=f32:4:const(7) gemm2_weights=u8:4x128x64:randint(0,256) "
     "gemm2_weights_scale=u8:4x128x4:randint(118,123) gemm2_bias=f32:4x128 output1_scale_scalar=None "
     "output1_scale_gate_scalar=None output2_scale_scalar=None num_experts=4 top_k=2 n_group=None "
     "topk_group=None intermediate_size=128 local_expert_offset=0 local_num_experts=4 "
     "routed_scaling_factor=None", "cpu", 0, 3e-2, 0.1},
    {"mxfp4_situ",
     "topk_ids=(i32:9x2:randint(0,4),f32:9x2:uniform(0,1)) routing_bias=None hidden_states=bf16:9x128 "
     "hidden_states_scale=None gemm1_weights=u8:4x256x64:randint(0,256) "
     "gemm1_weights_scale=u8:4x256x4:randint(121,125) gemm1_bias=None gemm1_alpha=f32:4:const(2) "
     "gemm1_beta=None gemm1_clamp_limit=f32:4:const(3) gemm2_weights=u8:4x128x64:randint(0,256) "
     "gemm2_weights_scale=u8:4x128x4:randint(121,125) gemm2_bias=f32:4x128 output1_scale_scalar=None "
     "output1_scale_gate_scalar=None output2_scale_scalar=None num_experts=4 top_k=2 n_group=None "
     "topk_group=None intermediate_size=128 local_expert_offset=0 local_num_experts=4 "
     "routed_scaling_factor=None activation_type=10 per_token_scale=f32:9:uniform(0.5,1.5)", "cpu", 0, 3e-2, 0.1},
};
constexpr op::Case kMxint4BlockScale[] = {
    {"blocked",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=bf16:9x512 gemm1_weights=u8:4x2x512x128:randint(0,256) "
     "gemm1_weights_scale=bf16:4x512x16:uniform(0.01,0.05) gemm1_alpha=None gemm1_beta=None gemm1_clamp_limit=None "
     "gemm2_weights=u8:4x1x512x128:randint(0,256) gemm2_weights_scale=bf16:4x512x8:uniform(0.01,0.05) num_experts=4 "
     "top_k=2 n_group=None topk_group=None intermediate_size=256 local_expert_offset=0 local_num_experts=4 "
     "routed_scaling_factor=None", "cpu", 0, 3e-2, 0.1},
    {"valid_sizes",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=bf16:9x96 gemm1_weights=u8:4x128x48:randint(0,256) "
     "gemm1_weights_scale=bf16:4x128x4:uniform(0.01,0.05) gemm1_alpha=None gemm1_beta=None "
     "gemm1_clamp_limit=None gemm2_weights=u8:4x96x32:randint(0,256) "
     "gemm2_weights_scale=bf16:4x128x4:uniform(0.01,0.05) num_experts=4 top_k=2 n_group=None topk_group=None "
     "intermediate_size=64 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None valid_hidden_size=64 "
     "valid_intermediate_size=32", "cpu", 0, 3e-2, 0.1},
    {"swiglu",
     "routing_logits=f32:9x4 routing_bias=None hidden_states=bf16:9x64 gemm1_weights=u8:4x128x32:randint(0,256) "
     "gemm1_weights_scale=bf16:4x128x4:uniform(0.01,0.05) gemm1_alpha=None gemm1_beta=None "
     "gemm1_clamp_limit=None gemm2_weights=u8:4x64x32:randint(0,256) "
     "gemm2_weights_scale=bf16:4x128x4:uniform(0.01,0.05) num_experts=4 top_k=2 n_group=None topk_group=None "
     "intermediate_size=64 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None", "cpu", op::kAot, 3e-2, 0.1},
};
constexpr op::Case kMxint4BlockScaleRouted[] = {
    {"lora",
     "topk_ids=(i32:9x2:randint(0,4),f32:9x2:uniform(0,1)) hidden_states=bf16:9x64 "
     "gemm1_weights=u8:4x128x32:randint(0,256) gemm1_weights_scale=bf16:4x128x4:uniform(0.01,0.05) "
     "gemm1_alpha=None gemm1_beta=None gemm1_clamp_limit=None gemm2_weights=u8:4x64x32:randint(0,256) "
     "gemm2_weights_scale=bf16:4x128x4:uniform(0.01,0.05) num_experts=4 top_k=2 n_group=None topk_group=None "
     "intermediate_size=64 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None "
     "gemm1_lora_delta=bf16:9x2x128:normal(0,4)", "cpu", 0, 3e-2, 0.1},
    {"pair",
     "topk_ids=(i32:9x2:randint(0,4),f32:9x2:uniform(0,1)) hidden_states=bf16:9x64 "
     "gemm1_weights=u8:4x128x32:randint(0,256) gemm1_weights_scale=bf16:4x128x4:uniform(0.01,0.05) "
     "gemm1_alpha=None gemm1_beta=None gemm1_clamp_limit=None gemm2_weights=u8:4x64x32:randint(0,256) "
     "gemm2_weights_scale=bf16:4x128x4:uniform(0.01,0.05) num_experts=4 top_k=2 n_group=None topk_group=None "
     "intermediate_size=64 local_expert_offset=0 local_num_experts=4 routed_scaling_factor=None", "cpu", 0, 3e-2, 0.1},
};
}  // namespace
std::span<const op::Case> trtllm_bf16_cases() { return kBf16; }
std::span<const op::Case> trtllm_bf16_routed_cases() { return kBf16Routed; }
std::span<const op::Case> trtllm_fp8_per_tensor_scale_cases() { return kFp8PerTensorScale; }
std::span<const op::Case> trtllm_fp8_per_tensor_scale_routed_cases() { return kFp8PerTensorScaleRouted; }
std::span<const op::Case> trtllm_fp8_per_channel_scale_cases() { return kFp8PerChannelScale; }
std::span<const op::Case> trtllm_fp8_per_channel_scale_routed_cases() { return kFp8PerChannelScaleRouted; }
std::span<const op::Case> trtllm_fp8_block_scale_cases() { return kFp8BlockScale; }
std::span<const op::Case> trtllm_fp8_block_scale_routed_cases() { return kFp8BlockScaleRouted; }
std::span<const op::Case> trtllm_fp4_block_scale_cases() { return kFp4BlockScale; }
std::span<const op::Case> trtllm_fp4_block_scale_routed_cases() { return kFp4BlockScaleRouted; }
std::span<const op::Case> trtllm_mxint4_block_scale_cases() { return kMxint4BlockScale; }
std::span<const op::Case> trtllm_mxint4_block_scale_routed_cases() { return kMxint4BlockScaleRouted; }
}  // namespace flashinfer::ops::moe
