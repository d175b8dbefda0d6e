// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/moe/cases.h"

namespace flashinfer::ops::moe {
namespace {
constexpr op::Case kRouting[] = {
    {"softmax", "routing_logits=f32:7x64 routing_method=0 top_k=8"},
    {"renormalize", "routing_logits=bf16:7x60 routing_method=1 top_k=4"},
    {"deepseek", "routing_logits=f32:33x256 routing_method=2 top_k=8 routing_bias=f32:256:normal(0,0.1) n_group=8 topk_group=4 routed_scaling_factor=2.5"},
    {"deepseek_negative", "routing_logits=f32:5x32:normal(-4,1) routing_method=2 top_k=3 routing_bias=f32:32:const(-1) n_group=4 topk_group=2"},
    {"llama4", "routing_logits=f16:7x16 routing_method=3 top_k=1"},
    {"naive", "routing_logits=f32:7x128:normal(0,10) routing_method=4 top_k=8"},
    {"topk_ties", "routing_logits=f32:3x9:const(-3) routing_method=5 top_k=4"},
    {"sigmoid_renorm", "routing_logits=f32:7x16^pad3 routing_method=6 top_k=2"},
    {"sigmoid_not_normalised", "routing_logits=f32:7x16 routing_method=6 top_k=2 norm_topk_prob=False"},
    {"minimax", "routing_logits=f32:7x16 routing_method=7 top_k=4 routing_bias=bf16:16"},
    {"sigmoid", "routing_logits=f32:7x16 routing_method=8 top_k=16"},
    {"topk_sigmoid", "routing_logits=f32:7x16 routing_method=9 top_k=2"},
    {"no_tokens", "routing_logits=f32:0x16 routing_method=9 top_k=2"},
};
constexpr op::Case kDeepseek[] = {
    {"groups",
     "scores=f32:9x256 bias=f32:256:normal(0,0.1) n_group=8 topk_group=4 topk=8 routed_scaling_factor=2.5 topk_values=f32:9x8 topk_indices=i32:9x8"},
    {"replay",
     "scores=bf16:5x384 bias=f32:384:normal(0,0.1) n_group=1 topk_group=1 topk=6 routed_scaling_factor=1.0 topk_values=bf16:5x6 topk_indices=i32:5x6 "
     "routing_replay_out=i16:7x6"},
};
constexpr op::Case kFused[] = {
    {"bf16",
     "input=bf16:5x64 token_selected_experts=i32:5x2:randint(0,4) token_final_scales=f32:5x2:uniform(0,1) fc1_expert_weights=bf16:4x96x64:normal(0,0.1) "
     "fc2_expert_weights=bf16:4x64x48:normal(0,0.1) output_dtype=bfloat16 quant_scales=None",
     "cpu", op::kAot},
    {"more_entries_than_threads",
     "input=bf16:150x32 token_selected_experts=i32:150x2:randint(0,2) token_final_scales=f32:150x2:uniform(0,1) "
     "fc1_expert_weights=bf16:2x32x32:normal(0,0.1) fc2_expert_weights=bf16:2x32x16:normal(0,0.1) "
     "output_dtype=bfloat16 quant_scales=None"},
    {"one_token",
     "input=bf16:1x130 token_selected_experts=i64:1x8:perm token_final_scales=f32:1x8:uniform(0,1) fc1_expert_weights=bf16:8x34x130:normal(0,0.1) "
     "fc2_expert_weights=bf16:8x130x17:normal(0,0.1) output_dtype=float32 quant_scales=None"},
    {"biases",
     "input=bf16:9x64 token_selected_experts=i32:9x3:randint(0,4) token_final_scales=f32:9x3 fc1_expert_weights=bf16:4x96x64:normal(0,0.1) "
     "fc2_expert_weights=bf16:4x64x48:normal(0,0.1) output_dtype=bfloat16 quant_scales=None fc1_expert_biases=bf16:4x96 fc2_expert_biases=f32:4x64 "
     "swiglu_alpha=f32:4:const(1.7) swiglu_beta=f32:4:const(1) swiglu_limit=f32:4:const(1.5) activation_type=5"},
    {"second_of_two_ranks",
     "input=bf16:9x64^pad3 token_selected_experts=i32:9x2:randint(0,8) token_final_scales=f32:9x2 fc1_expert_weights=bf16:4x96x64:normal(0,0.1) "
     "fc2_expert_weights=bf16:4x64x48:normal(0,0.1) output_dtype=bfloat16 quant_scales=None ep_size=2 ep_rank=1 tp_size=2 tp_rank=1 "
     "fc2_expert_biases=bf16:4x64 output=bf16:9x64^pad5"},
    {"alltoall",
     "input=bf16:9x64 token_selected_experts=i32:9x2:randint(-3,8) token_final_scales=f32:9x2 fc1_expert_weights=bf16:4x48x64:normal(0,0.1) "
     "fc2_expert_weights=bf16:4x64x48:normal(0,0.1) output_dtype=bfloat16 quant_scales=None enable_alltoall=True activation_type=6"},
    {"clamped_relu2",
     "input=bf16:9x64 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=bf16:4x48x64:normal(0,0.1) "
     "fc2_expert_weights=bf16:4x64x48:normal(0,0.1) output_dtype=bfloat16 quant_scales=None clamped_relu2_limit=f32:[0.7] activation_type=12"},
    {"situ",
     "input=bf16:9x64 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=bf16:4x96x64:normal(0,0.4) "
     "fc2_expert_weights=bf16:4x64x48:normal(0,0.1) output_dtype=bfloat16 quant_scales=None situ_beta=f32:4:const(2) activation_type=10"},
    {"geglu",
     "input=bf16:40x64 token_selected_experts=i32:40x2:randint(0,4) token_final_scales=f32:40x2 fc1_expert_weights=bf16:4x96x64:normal(0,0.1) "
     "fc2_expert_weights=bf16:4x64x48:normal(0,0.1) output_dtype=bfloat16 quant_scales=None activation_type=4"},
    {"geglu_tanh",
     "input=bf16:3x64 token_selected_experts=i32:3x2:randint(0,4) token_final_scales=f32:3x2 fc1_expert_weights=bf16:4x96x64:normal(0,0.1) "
     "fc2_expert_weights=bf16:4x64x48:normal(0,0.1) output_dtype=bfloat16 quant_scales=None activation_type=8"},
    {"swiglu_step",
     "input=bf16:3x64 token_selected_experts=i32:3x2:randint(0,4) token_final_scales=f32:3x2 fc1_expert_weights=bf16:4x96x64:normal(0,2) "
     "fc2_expert_weights=bf16:4x64x48:normal(0,0.1) output_dtype=bfloat16 quant_scales=None activation_type=7", "cpu", 0, 2e-2, 0.2},
    {"plain_activations",
     "input=bf16:3x64 token_selected_experts=i32:3x2:randint(0,4) token_final_scales=f32:3x2 fc1_expert_weights=bf16:4x48x64:normal(0,0.1) "
     "fc2_expert_weights=bf16:4x64x48:normal(0,0.1) output_dtype=bfloat16 quant_scales=None activation_type=0"},
    {"f16",
     "input=f16:3x32 token_selected_experts=i32:3x2:randint(0,4) token_final_scales=f32:3x2 fc1_expert_weights=f16:4x32x32:normal(0,0.1) "
     "fc2_expert_weights=f16:4x32x16:normal(0,0.1) output_dtype=float16 quant_scales=None"},
    {"f16_many",
     "input=f16:70x130 token_selected_experts=i32:70x2:randint(0,4) token_final_scales=f32:70x2 fc1_expert_weights=f16:4x96x130:normal(0,0.1) "
     "fc2_expert_weights=f16:4x130x48:normal(0,0.1) output_dtype=float32 quant_scales=None", "cpu", 0, 1e-3, 2e-3},
    {"no_tokens",
     "input=bf16:0x64 token_selected_experts=i32:0x2 token_final_scales=f32:0x2 fc1_expert_weights=bf16:4x96x64 fc2_expert_weights=bf16:4x64x48 "
     "output_dtype=bfloat16 quant_scales=None"},
    {"fp8",
     "input=e4m3:9x64 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=e4m3:4x96x64 "
     "fc2_expert_weights=e4m3:4x64x48 output_dtype=bfloat16 quant_scales=(f32:[0.1,0.2,0.1,0.15],f32:[16],f32:[0.01,0.02,0.01,0.01],f32:[1])",
     "cpu", op::kAot, 3e-2, 0.1},
    {"nvfp4",
     "input=bf16:9x64 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=u8:4x96x32:randint(0,256) "
     "fc2_expert_weights=u8:4x64x24:randint(0,256) output_dtype=bfloat16 "
     "quant_scales=(f32:[600],u8:4x128x4:randint(40,56),f32:[2e-3,1e-3,1e-3,2e-3],f32:[300],u8:4x128x4:randint(40,56),f32:[1e-3])",
     "cpu", op::kAot, 3e-2, 0.1},
    {"nvfp4_int64",  // eight bytes of codes in an element
     "input=bf16:9x64 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 "
     "fc1_expert_weights=i64:4x96x4:randint(-9000000000000000000,9000000000000000000) "
     "fc2_expert_weights=i64:4x64x3:randint(-9000000000000000000,9000000000000000000) output_dtype=bfloat16 "
     "quant_scales=(f32:[600],u8:4x128x4:randint(40,56),f32:[2e-3,1e-3,1e-3,2e-3],f32:[300],u8:4x128x4:randint(40,56),f32:[1e-3])",
     "cpu", 0, 3e-2, 0.1},
    {"nvfp4_packed",
     "input=u8:9x32:randint(0,256) token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=u8:4x96x32:randint(0,256) "
     "fc2_expert_weights=u8:4x64x24:randint(0,256) output_dtype=bfloat16 "
     "quant_scales=(f32:[600],u8:4x128x4:randint(40,56),f32:[1e-2],f32:[300],u8:4x128x4:randint(40,56),f32:[1e-3]) input_sf=u8:128x4:randint(40,56)",
     "cpu", 0, 3e-2, 0.1},
    {"fp8_blocks",
     "input=bf16:9x256 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=e4m3:4x512x256 "
     "fc2_expert_weights=e4m3:4x256x256 output_dtype=bfloat16 quant_scales=(f32:4x4x2:uniform(0.05,0.15),f32:4x2x2:uniform(0.05,0.15)) "
     "use_deepseek_fp8_block_scale=True", "cpu", op::kAot, 3e-2, 0.1},
    {"mxfp4_bf16",
     "input=bf16:9x64^pad3 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=u8:4x128x32:randint(0,256) "
     "fc2_expert_weights=u8:4x64x32:randint(0,256) output_dtype=bfloat16 quant_scales=(u8:4x128x2:randint(118,123),u8:4x64x2:randint(118,123)) "
     "use_w4_group_scaling=True fc1_expert_biases=bf16:4x128 fc2_expert_biases=bf16:4x64 swiglu_alpha=f32:4:const(1.702) swiglu_beta=f32:4:const(1) "
     "swiglu_limit=f32:4:const(7)", "cpu", op::kAot, 3e-2, 0.1},
    {"int4_fp8",
     "input=bf16:9x256^pad8 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=u8:4x256x128:randint(0,256) "
     "fc2_expert_weights=u8:4x256x64:randint(0,256) output_dtype=bfloat16 quant_scales=(bf16:4x256x2:uniform(0.01,0.02),bf16:4x256x1:uniform(0.01,0.02),"
     "bf16:1x256:uniform(1,2),f32:[4],f32:0,f32:0,f32:[0.5,0.25,0.5,0.5],f32:[0.25]) use_w4_group_scaling=True", "cpu", op::kAot, 3e-2, 0.1},
    {"mxfp4_sm90",  // interleave_moe_*_for_sm90_mixed_gemm
     "input=bf16:9x128 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=u8:4x256x64:randint(0,256) "
     "fc2_expert_weights=u8:4x128x64:randint(0,256) output_dtype=bfloat16 "
     "quant_scales=(u8:4x4x1x16x16:randint(118,123),u8:4x2x1x16x16:randint(118,123)) use_w4_group_scaling=True", "cpu", 0, 3e-2, 0.1},
    {"int4_sm90",
     "input=f16:9x256 token_selected_experts=i32:9x2:randint(0,2) token_final_scales=f32:9x2 fc1_expert_weights=u8:4x256x128:randint(0,256) "
     "fc2_expert_weights=u8:4x256x64:randint(0,256) output_dtype=float16 quant_scales=(bf16:4x4x2x8x8:uniform(0.01,0.02),bf16:4x4x1x8x8:uniform(0.01,0.02),"
     "bf16:1x256:uniform(1,2),f32:[4],f32:0,f32:0,f32:[0.5,0.25,0.5,0.5],f32:[0.25]) use_w4_group_scaling=True use_packed_weights=True", "cpu", 0, 3e-2, 0.1},
    {"nvfp4_panels",
     "input=bf16:5x64 token_selected_experts=i32:5x2:randint(0,4) token_final_scales=f32:5x2 fc1_expert_weights=u8:4x6x9x64:packed(64,96) "
     "fc2_expert_weights=u8:4x4x9x64:packed(48,64) output_dtype=bfloat16 "
     "quant_scales=(f32:[600],u8:4x6x4x16:randint(40,56),f32:[2e-3,1e-3,1e-3,2e-3],f32:[300],u8:4x4x4x16:randint(40,56),f32:[1e-3])",
     "cpu", op::kAot, 3e-2, 0.1},
    {"mxfp4_bf16_panels",
     "input=bf16:9x160 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=u8:4x8x21x64:packed(160,128) "
     "fc2_expert_weights=u8:4x10x9x64:packed(64,160) output_dtype=bfloat16 quant_scales=(u8:4x8x8x16:randint(118,123),u8:4x10x4x16:randint(118,123)) "
     "use_w4_group_scaling=True", "cpu", op::kAot, 3e-2, 0.1},
    {"fp8_panels",
     "input=e4m3:9x64 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=e4m3:4x6x17x64:packed(64,96) "
     "fc2_expert_weights=e4m3:4x4x17x64:packed(48,64) output_dtype=bfloat16 quant_scales=(f32:[0.1,0.2,0.1,0.15],f32:[16],f32:[0.01,0.02,0.01,0.01],f32:[1])",
     "cpu", 0, 3e-2, 0.1},
    {"mxfp4_mxfp8",
     "input=f16:9x64 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=u8:4x128x32:randint(0,256) "
     "fc2_expert_weights=u8:4x64x32:randint(0,256) output_dtype=bfloat16 "
     "quant_scales=(u8:4x128x4:randint(118,123),f32:[1,2,1,1],u8:4x128x4:randint(118,123),f32:[1]) use_mxfp8_act_scaling=True", "cpu", 0, 3e-2, 0.1},
    {"mxfp4_mxfp8_packed",
     "input=e4m3:9x64 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=u8:4x128x32:randint(0,256) "
     "fc2_expert_weights=u8:4x64x32:randint(0,256) output_dtype=bfloat16 "
     "quant_scales=(u8:4x128x4:randint(122,126),f32:[1],u8:4x128x4:randint(122,126),f32:[1]) use_mxfp8_act_scaling=True "
     "input_sf=u8:9x2:randint(122,128) swizzled_input_sf=False", "cpu", 0, 3e-2, 0.2},
    {"mxfp4_fp8",
     "input=e4m3:9x64 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=u8:4x128x32:randint(0,256) "
     "fc2_expert_weights=u8:4x64x32:randint(0,256) output_dtype=float16 "
     "quant_scales=(u8:4x128x4:randint(123,127),f32:[0.1,0.2,0.1,0.1],f32:[4,8,4,4],u8:4x128x4:randint(123,127),f32:[0.25,0.125,0.25,0.25])", "cpu", 0, 3e-2, 0.2},
    {"mxfp8",
     "input=bf16:9x64 token_selected_experts=i32:9x2:randint(0,4) token_final_scales=f32:9x2 fc1_expert_weights=e4m3:4x128x64 "
     "fc2_expert_weights=e4m3:4x64x64 output_dtype=bfloat16 "
     "quant_scales=(u8:4x128x4:randint(122,126),f32:[1],u8:4x128x4:randint(122,126),f32:[1]) use_mxfp8_act_scaling=True", "cpu", 0, 3e-2, 0.1},
    {"bench_1", "input=bf16:1x2048 token_selected_experts=i32:1x8:perm token_final_scales=f32:1x8:uniform(0,1) fc1_expert_weights=bf16:64x2048x2048 "
     "fc2_expert_weights=bf16:64x2048x1024 output_dtype=bfloat16 quant_scales=None", "cpu", op::kBench},
    {"bench_64", "input=bf16:64x2048 token_selected_experts=i32:64x8:randint(0,64) token_final_scales=f32:64x8:uniform(0,1) "
     "fc1_expert_weights=bf16:64x2048x2048 fc2_expert_weights=bf16:64x2048x1024 output_dtype=bfloat16 quant_scales=None", "cpu", op::kBench},
};
}  // namespace
std::span<const op::Case> routing_cases() { return kRouting; }
std::span<const op::Case> deepseek_cases() { return kDeepseek; }
std::span<const op::Case> fused_cases() { return kFused; }
}  // namespace flashinfer::ops::moe
