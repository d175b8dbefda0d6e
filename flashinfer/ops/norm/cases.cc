// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/norm/cases.h"

namespace flashinfer::ops::norm {
namespace {
constexpr op::Case kRmsNorm[] = {
    {"decode", "input=bf16:1x576 weight=bf16:576 eps=1e-5", "cpu", op::kAot | op::kBench},
    {"decode_f32_weight", "input=bf16:8x576 weight=f32:576 eps=1e-5", "cpu", op::kAot},
    {"one_element", "input=f32:3x1 weight=f32:1", "cpu", op::kAot},
    {"two", "input=f16:3x2 weight=f16:2", "cpu", op::kAot},
    {"below_a_vector", "input=bf16:3x15 weight=bf16:15"},
    {"odd_width", "input=f16:5x111 weight=f16:111"},
    {"not_a_multiple", "input=f32:2x500 weight=f32:500 eps=1e-5"},
    {"f16_f32_weight", "input=f16:3x4096 weight=f32:4096"},
    {"heads", "input=bf16:7x9x64 weight=bf16:64"},
    {"heads_strided", "input=bf16:7x9x64^pad24 weight=bf16:64 out=bf16:7x9x64^pad8"},
    {"heads_swapped", "input=f16:7x9x128^perm(1,0,2) weight=f16:128"},
    {"rows_strided", "input=bf16:99x111^pad13 weight=bf16:111"},
    {"in_place", "input=bf16:4x128 weight=bf16:128 out=@input"},
    {"no_rows", "input=bf16:0x576 weight=bf16:576"},
    {"no_width", "input=bf16:3x0 weight=bf16:0"},
    {"large_values", "input=f32:3x4096:normal(0,1e15) weight=f32:4096"},
    {"all_zero", "input=bf16:2x64:const(0) weight=bf16:64"},
    {"wide", "input=bf16:99x8193 weight=bf16:8193"},
    {"bench", "input=bf16:16384x4096 weight=bf16:4096", "cpu", op::kBench},
};
constexpr op::Case kGemmaRmsNorm[] = {
    {"decode", "input=bf16:1x576 weight=bf16:576:normal(0,0.1)", "cpu", op::kAot},
    {"f32", "input=f32:3x111 weight=f32:111", "cpu", op::kAot},
    {"f16", "input=f16:99x500 weight=f16:500", "cpu", op::kAot},
    {"f32_weight", "input=bf16:3x5120 weight=f32:5120"},
    {"heads", "input=bf16:5x4x256 weight=bf16:256"},
    {"in_place", "input=f16:4x576 weight=f16:576 out=@input"},
    {"no_rows", "input=f16:0x111 weight=f16:111"},
};
constexpr op::Case kFusedAdd[] = {
    {"decode", "input=bf16:1x576 residual=bf16:1x576 weight=bf16:576 eps=1e-5", "cpu", op::kAot | op::kBench},
    {"decode_f32_weight", "input=bf16:8x576 residual=bf16:8x576 weight=f32:576", "cpu", op::kAot},
    {"f32", "input=f32:3x111 residual=f32:3x111 weight=f32:111", "cpu", op::kAot},
    {"f16", "input=f16:99x500 residual=f16:99x500 weight=f16:500", "cpu", op::kAot},
    {"one_element", "input=f16:3x1 residual=f16:3x1 weight=f16:1"},
    {"fifteen", "input=bf16:2x15 residual=bf16:2x15 weight=bf16:15"},
    {"heads", "input=bf16:5x3x64 residual=bf16:5x3x64 weight=bf16:64"},
    {"strided", "input=bf16:9x111^pad9 residual=bf16:9x111^pad1 weight=bf16:111"},
    {"no_rows", "input=bf16:0x576 residual=bf16:0x576 weight=bf16:576"},
    {"wide", "input=bf16:7x8193 residual=bf16:7x8193 weight=bf16:8193"},
    {"bench", "input=bf16:16384x4096 residual=bf16:16384x4096 weight=bf16:4096", "cpu", op::kBench},
};
constexpr op::Case kGemmaFusedAdd[] = {
    {"decode", "input=bf16:1x576 residual=bf16:1x576 weight=bf16:576:normal(0,0.1)", "cpu", op::kAot},
    {"f32", "input=f32:3x500 residual=f32:3x500 weight=f32:500", "cpu", op::kAot},
    {"f16", "input=f16:5x111 residual=f16:5x111 weight=f16:111", "cpu", op::kAot},
    {"no_rows", "input=bf16:0x64 residual=bf16:0x64 weight=bf16:64"},
};
constexpr op::Case kLayerNorm[] = {
    {"bf16", "input=bf16:3x4096 gemma=f32:4096 beta=f32:4096", "cpu", op::kAot | op::kBench},
    {"f16", "input=f16:99x111 gemma=f32:111 beta=f32:111 eps=1e-5", "cpu", op::kAot},
    {"f32", "input=f32:2x500 gemma=f32:500 beta=f32:500", "cpu", op::kAot},
    {"one_element", "input=bf16:3x1 gemma=f32:1 beta=f32:1"},
    {"mean_far_from_zero", "input=f32:3x4096:normal(1000,1) gemma=f32:4096 beta=f32:4096", "cpu", 0, 1e-4, 1e-3},
    {"constant_row", "input=bf16:2x576:const(3) gemma=f32:576 beta=f32:576"},
    {"heads", "input=bf16:5x3x64 gemma=f32:64 beta=f32:64"},
    {"strided", "input=bf16:9x15^pad9 gemma=f32:15 beta=f32:15"},
    {"no_rows", "input=bf16:0x576 gemma=f32:576 beta=f32:576"},
};
}  // namespace
std::span<const op::Case> rmsnorm_cases() { return kRmsNorm; }
std::span<const op::Case> gemma_rmsnorm_cases() { return kGemmaRmsNorm; }
std::span<const op::Case> fused_add_rmsnorm_cases() { return kFusedAdd; }
std::span<const op::Case> gemma_fused_add_rmsnorm_cases() { return kGemmaFusedAdd; }
std::span<const op::Case> layernorm_cases() { return kLayerNorm; }
}  // namespace flashinfer::ops::norm
