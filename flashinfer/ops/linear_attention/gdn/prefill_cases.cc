// SPDX-License-Identifier: Apache-2.0
// Rows of the packed forms of the gated delta rule. 64 tokens are a chunk.
#include "flashinfer/ops/linear_attention/cases.h"

namespace flashinfer::ops::linear_attention {
namespace {
constexpr op::Case kChunk[] = {
    {"bf16",
     "q=bf16:200x1x128 k=bf16:200x1x128 v=bf16:200x2x128 g=f32:200x2:uniform(0.9,1) beta=f32:200x2:uniform(0,1) "
     "cu_seqlens=i32:[0,65,200] use_qk_l2norm_in_kernel=True output_final_state=True",
     "cpu", op::kAot},
    {"f32",
     "q=f32:131x2x64 k=f32:131x1x64 v=f32:131x1x64 g=f32:131x2:uniform(0,1) beta=f32:131x2:uniform(0,1) "
     "initial_state=f32:4x2x64x64 cu_seqlens=i64:[0,0,1,2,131] use_qk_l2norm_in_kernel=True"},
    {"f16_states",
     "q=f16:64x2x32 k=f16:64x2x32 v=f16:64x2x32 beta=f32:64x2:uniform(0,1) initial_state=f16:1x2x32x32 "
     "cu_seqlens=i32:[0,64] use_qk_l2norm_in_kernel=True output_final_state=True output_state=f16:1x2x32x32"},
    {"odd",
     "q=f32:70x1x19:normal(0,0.2) k=f32:70x1x19:normal(0,0.2) v=f32:70x3x37 g=f32:70x3:uniform(0,1) "
     "initial_state=bf16:2x3x37x19 cu_seqlens=i32:[0,7,70] output_final_state=True scale=0.0"},
    {"cleared",
     "q=f32:9x1x32 k=f32:9x1x32 v=f32:9x1x32 g=f32:9x1:range(0) beta=f32:9x1:const(0) initial_state=f32:1x1x32x32 "
     "cu_seqlens=i32:[0,9] output_final_state=True use_qk_l2norm_in_kernel=True"},
    {"tiny_decay",
     "q=f32:100x1x32 k=f32:100x1x32 v=f32:100x1x32 g=f32:100x1:const(1e-38) cu_seqlens=i32:[0,100] "
     "output_final_state=True use_qk_l2norm_in_kernel=True"},
    {"zero_keys",
     "q=bf16:66x1x32 k=bf16:66x1x32:const(0) v=bf16:66x1x32 beta=f32:66x1:const(1) initial_state=f32:1x1x32x32 "
     "cu_seqlens=i32:[0,66] output_final_state=True use_qk_l2norm_in_kernel=True"},
    {"checkpoints",
     "q=bf16:200x1x32 k=bf16:200x1x32 v=bf16:200x1x32 g=f32:200x1:uniform(0.9,1) beta=f32:200x1:uniform(0,1) "
     "cu_seqlens=i32:[0,64,200] use_qk_l2norm_in_kernel=True output_final_state=True output_state=bf16:2x1x32x32 "
     "state_checkpoints=bf16:4x1x32x32 checkpoint_cu_starts=i32:[1,2,4] checkpoint_every_n_tokens=64"},
    {"pool",
     "q=bf16:80x1x32 k=bf16:80x1x32 v=bf16:80x1x32 g=f32:80x1:uniform(0.9,1) cu_seqlens=i32:[0,65,80] "
     "use_qk_l2norm_in_kernel=True output_final_state=True initial_state=f32:4x1x32x32 output_state=f32:4x1x32x32 "
     "state_indices=i64:[3,1]"},
    {"no_tokens", "q=bf16:0x1x32 k=bf16:0x1x32 v=bf16:0x1x32 cu_seqlens=i32:[0,0] initial_state=f32:1x1x32x32"},
    {"bench",
     "q=bf16:2048x16x128 k=bf16:2048x16x128 v=bf16:2048x32x128 g=f32:2048x32:uniform(0.9,1) "
     "beta=f32:2048x32:uniform(0,1) cu_seqlens=i32:[0,2048] use_qk_l2norm_in_kernel=True output_final_state=True",
     "cpu", op::kBench},
};
constexpr op::Case kChunk2[] = {
    {"bf16",
     "q=bf16:70x1x128 k=bf16:70x1x128 v=bf16:70x2x128 g=f32:70x2x128:uniform(-1,0) beta=bf16:70x2x128:uniform(0,1) "
     "w=bf16:70x2x128 cu_seqlens=i32:[0,33,70] use_qk_l2norm_in_kernel=True output_final_state=True",
     "cpu", op::kAot},
    {"bf16_64",
     "q=bf16:50x2x64 k=bf16:50x1x64 v=bf16:50x1x72 g=f16:50x2x64:uniform(-3,0) initial_state=bf16:4x2x72x64 "
     "cu_seqlens=i64:[0,0,1,17,50] use_qk_l2norm_in_kernel=True output_final_state=True output_state=f32:4x2x72x64"},
    {"strong_gates",
     "q=bf16:40x1x128:normal(0,0.1) k=bf16:40x1x128:normal(0,0.1) v=bf16:40x1x8 g=bf16:40x1x128:uniform(-150,0) "
     "w=bf16:40x1x8 initial_state=f32:1x1x8x128 cu_seqlens=i32:[0,40]"},
    {"no_gates",
     "q=f32:29x2x64 k=f32:29x1x64 v=f32:29x1x7 cu_seqlens=i32:[0,29] initial_state=f32:1x2x7x64 "
     "use_qk_l2norm_in_kernel=True output_final_state=True"},
    {"odd",
     "q=f16:40x1x19 k=f16:40x1x19 v=f16:40x1x5 g=bf16:40x1x19:uniform(-75,0) initial_state=bf16:3x1x5x19 "
     "cu_seqlens=i64:[0,1,1,40] use_qk_l2norm_in_kernel=True"},
    {"bench",
     "q=bf16:512x16x128 k=bf16:512x16x128 v=bf16:512x32x128 g=f32:512x32x128:uniform(-1,0) "
     "beta=bf16:512x32x128:uniform(0,1) cu_seqlens=i32:[0,512] use_qk_l2norm_in_kernel=True output_final_state=True",
     "cpu", op::kBench},
};
constexpr op::Case kProduct[] = {
    {"one",
     "q=bf16:70x1x64 k=bf16:70x1x64 v=bf16:70x2x64 g=f32:70x2:uniform(0.9,1) beta=f32:70x2:uniform(0,1) "
     "cu_seqlens=i32:[0,33,70] use_qk_l2norm_in_kernel=True output_final_state=True"},
    {"three",
     "q=f32:50x2x32 k=f32:150x1x32 v=f32:150x1x32 g=f32:50x2:uniform(0,1) beta=f32:150x2:uniform(0,1) "
     "num_householder=3 cu_seqlens=i32:[0,3,50] initial_state=f32:2x2x32x32 use_qk_l2norm_in_kernel=True "
     "output_final_state=True"},
};
}  // namespace
std::span<const op::Case> gdn_chunk_cases() { return kChunk; }
std::span<const op::Case> gdn2_chunk_cases() { return kChunk2; }
std::span<const op::Case> gdn_product_cases() { return kProduct; }
}  // namespace flashinfer::ops::linear_attention
