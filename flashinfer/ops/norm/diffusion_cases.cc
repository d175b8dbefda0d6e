// SPDX-License-Identifier: Apache-2.0
// Cases of the norms of diffusion transformers.
#include "flashinfer/ops/norm/cases.h"

namespace flashinfer::ops::norm {
namespace {
constexpr op::Case kDitGamma[] = {
    {"bf16", "input=bf16:2x5x3072 residual=bf16:2x5x3072 gate=bf16:2x5x3072^pad8 gamma=f32:3072 beta=f32:3072", "cpu", op::kAot | op::kTrace},
    {"bias_and_factor", "input=bf16:2x3x500 residual=bf16:2x3x500 gate=bf16:2x3x500^perm(1,0,2) gamma=f32:500 beta=f32:500 gate_bias=f32:1x500 epsilon=1e-5 "
                        "input_global_scaling_factor=f32:[0.25]"},
    {"odd_f32", "input=f32:1x7x111 residual=f32:1x7x111 gate=f32:1x7x111 gamma=f32:111 beta=f32:111"},
    {"no_rows", "input=bf16:2x0x64 residual=bf16:2x0x64 gate=bf16:2x0x64 gamma=f32:64 beta=f32:64"},
    {"nvfp4", "input=bf16:2x5x96 residual=bf16:2x5x96 gate=bf16:2x5x96^pad8 gamma=f32:96 beta=f32:96 use_nvfp4=True global_scaling_factor=f32:[500] "
              "sf_out=u8:1024", "cpu", op::kAot},
    {"mxfp8", "input=bf16:1x3x96 residual=bf16:1x3x96 gate=bf16:1x3x96 gamma=f32:96 beta=f32:96 use_mxfp8=True sf_out=i32:128", "cpu", op::kAot},
    {"bench", "input=bf16:1x1920x3072 residual=bf16:1x1920x3072 gate=bf16:1x1920x3072 gamma=f32:3072 beta=f32:3072", "cpu", op::kBench},
};
constexpr op::Case kDitGate[] = {
    {"bf16", "input=bf16:2x5x3072 residual=bf16:2x5x3072 gate=bf16:2x5x3072^pad8 scale=bf16:2x5x3072^pad8 shift=bf16:2x5x3072^pad8", "cpu", op::kAot | op::kTrace},
    {"nvfp4_f16", "input=f16:1x3x64 residual=f16:1x3x64 gate=f16:1x3x64 scale=f16:1x3x64 shift=f16:1x3x64 use_nvfp4=True global_scaling_factor=f32:[300]"},
    {"biases_f16", "input=f16:2x3x500 residual=f16:2x3x500 gate=f16:2x3x500 scale=f16:2x3x500 shift=f16:2x3x500 gate_bias=f32:500 scale_bias=f32:1x500 "
                   "shift_bias=f32:500"},
};
constexpr op::Case kDitScale[] = {
    {"residual", "input=bf16:2x5x3072 scale=bf16:2x5x3072^pad8 shift=bf16:2x5x3072 residual=bf16:2x5x3072 scale_bias=f32:3072 shift_bias=f32:3072", "cpu", op::kTrace},
    {"mxfp8", "input=bf16:2x3x64 scale=bf16:2x3x64 shift=bf16:2x3x64 use_mxfp8=True sf_out=e4m3:512"},
    {"no_residual_odd", "input=f32:3x2x333 scale=f32:3x2x333 shift=f32:3x2x333^pad3"},
};
#define FI_CHANNELS "num_frame_channels=44 num_height_channels=42 num_width_channels=42 head_dim=128 "
#define FI_VIDEO "ppf=2 pph=3 ppw=2 "
constexpr op::Case kQkNormRope[] = {
    {"interleaved", "qkv=bf16:2x12x1280 q_weight=bf16:512 k_weight=bf16:512 " FI_VIDEO FI_CHANNELS "num_heads_q=4 num_heads_k=4 num_heads_v=2", "cpu", op::kAot | op::kTrace},
    {"halves", "qkv=bf16:24x1024 q_weight=bf16:512 k_weight=bf16:256 " FI_VIDEO FI_CHANNELS "num_heads_q=4 num_heads_k=2 num_heads_v=2 interleave=False"},
    {"fp8", "qkv=bf16:24x1024^pad16 q_weight=bf16:512 k_weight=bf16:256 " FI_VIDEO FI_CHANNELS "num_heads_q=4 num_heads_k=2 num_heads_v=2 output_fp8=True "
            "output_quant_scale=2.0 v_quant_scale=300.0", "cpu", op::kAot},
    {"rotation_alone_odd", "qkv=f32:1x12x130 q_weight=f32:78 k_weight=f32:26 " FI_VIDEO "num_frame_channels=10 num_height_channels=8 num_width_channels=8 head_dim=26 "
                           "num_heads_q=3 num_heads_k=1 num_heads_v=1 is_qk_norm=False base=500.0 interleave=False"},
    {"norm_f16_odd", "qkv=f16:1x12x130 q_weight=f16:78 k_weight=f16:26 " FI_VIDEO "num_frame_channels=26 num_height_channels=0 num_width_channels=0 head_dim=26 "
                     "num_heads_q=3 num_heads_k=1 num_heads_v=1 eps=1e-3"},
    {"bench", "qkv=bf16:1x1920x9216 q_weight=bf16:3072 k_weight=bf16:3072 ppf=5 pph=12 ppw=32 " FI_CHANNELS "num_heads_q=24 num_heads_k=24 num_heads_v=24", "cpu", op::kBench},
};
#undef FI_CHANNELS
#undef FI_VIDEO
}  // namespace
std::span<const op::Case> dit_gamma_cases() { return kDitGamma; }
std::span<const op::Case> dit_gate_cases() { return kDitGate; }
std::span<const op::Case> dit_scale_cases() { return kDitScale; }
std::span<const op::Case> qk_norm_rope_cases() { return kQkNormRope; }
}  // namespace flashinfer::ops::norm
