// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/norm/cases.h"

namespace flashinfer::ops::norm {
namespace {
constexpr op::Case kRmsNormQuant[] = {
    {"e4m3", "out=e4m3:3x576 input=bf16:3x576 weight=bf16:576 scale=f32:[0.02]", "cpu", op::kAot},
    {"e5m2_f16", "out=e5m2:5x111 input=f16:5x111 weight=f32:111 scale=0.5"},
    {"saturating", "out=e4m3:2x100^pad3 input=bf16:2x100^pad5 weight=bf16:100 scale=f32:[0.001]"},
    {"no_rows", "out=e4m3:0x64 input=bf16:0x64 weight=bf16:64 scale=1.0"},
    {"bench", "out=e4m3:16384x4096 input=bf16:16384x4096 weight=bf16:4096 scale=f32:[0.02]", "cpu", op::kBench},
};
constexpr op::Case kFusedAddQuant[] = {
    {"e4m3", "out=e4m3:3x576 input=bf16:3x576 residual=bf16:3x576 weight=bf16:576 scale=f32:[0.02]", "cpu", op::kAot},
    {"strided", "out=e4m3:9x111^pad3 input=bf16:9x111^pad9 residual=bf16:9x111^pad1 weight=bf16:111 scale=f32:[0.1]"},
    {"bench", "out=e4m3:16384x4096 input=bf16:16384x4096 residual=bf16:16384x4096 weight=bf16:4096 scale=f32:[0.02]", "cpu", op::kBench},
};
constexpr op::Case kLayerNormQuant[] = {
    {"e4m3", "out=e4m3:3x1500 input=bf16:3x1500 gemma=f32:1500 beta=f32:1500 scale=f32:[0.02]", "cpu", op::kAot},
    {"e5m2", "out=e5m2:3x111 input=bf16:3x111 gemma=f32:111 beta=f32:111 scale=2"},
};
constexpr op::Case kFp8Block[] = {
    {"bf16", "out=e4m3:5x512 block_scale=f32:4x8 normed_out=bf16:5x512 input=bf16:5x512 residual=bf16:5x512 weight=bf16:512", "cpu", op::kAot},
    {"tiny", "out=e4m3:3x256 block_scale=f32:2x4 normed_out=f16:3x256 input=f16:3x256 residual=f16:3x256 weight=f32:256:const(1e-5)"},
    {"strided",
     "out=e4m3:3x256^pad3 block_scale=f32:2x4^pad2 normed_out=bf16:3x256^pad8 input=bf16:3x256^pad4 residual=bf16:3x256^pad1 weight=bf16:256"},
};
constexpr op::Case kRmsNormFp4[] = {
    {"nvfp4", "input=bf16:5x576 weight=bf16:576 global_scale=f32:[500]", "cpu", op::kAot},
    {"swizzled", "input=f16:131x336 weight=f16:336 global_scale=f32:[500] is_sf_swizzled_layout=True"},
    {"saturating", "input=bf16:3x576 weight=bf16:576 global_scale=f32:[5000]"},
    {"empty_blocks", "input=bf16:3x512:const(0) weight=bf16:512 global_scale=f32:[500]"},
    {"nan", "input=bf16:3x576:nan weight=bf16:576 global_scale=f32:[500]"},
    {"mxfp4", "input=bf16:3x2112 weight=f32:2112 block_size=32"},
    {"heads", "input=bf16:5x3x64 weight=bf16:64"},
    {"bench", "input=bf16:16384x4096 weight=bf16:4096 global_scale=f32:[500]", "cpu", op::kBench},
};
constexpr op::Case kAddRmsNormFp4[] = {
    {"nvfp4", "input=bf16:5x576 residual=bf16:5x576 weight=bf16:576 global_scale=f32:[500]", "cpu", op::kAot},
    {"both_layouts", "input=bf16:9x1040 residual=bf16:9x1040 weight=bf16:1040 global_scale=f32:[500] output_both_sf_layouts=True y_out=bf16:9x1040"},
    {"strided", "input=bf16:9x96^pad3 residual=bf16:9x96^pad7 weight=bf16:96 is_sf_swizzled_layout=True"},
};
constexpr op::Case kRmsNormSilu[] = {
    {"bf16", "input=bf16:5x576 weight=bf16:576", "cpu", op::kAot},
    {"odd", "input=f16:3x111^pad3 weight=f16:111"},
    {"fp8", "input=bf16:5x160 weight=bf16:160 out=e4m3:5x160"},
    {"fp4", "input=bf16:5x160 weight=bf16:160 out=fp4x2:5x80"},
};
}  // namespace
std::span<const op::Case> rmsnorm_quant_cases() { return kRmsNormQuant; }
std::span<const op::Case> fused_add_quant_cases() { return kFusedAddQuant; }
std::span<const op::Case> layernorm_quant_cases() { return kLayerNormQuant; }
std::span<const op::Case> fp8_block_cases() { return kFp8Block; }
std::span<const op::Case> rmsnorm_fp4_cases() { return kRmsNormFp4; }
std::span<const op::Case> add_rmsnorm_fp4_cases() { return kAddRmsNormFp4; }
std::span<const op::Case> rmsnorm_silu_cases() { return kRmsNormSilu; }
}  // namespace flashinfer::ops::norm
