// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/cascade/cases.h"

namespace flashinfer::ops::cascade {
namespace {
constexpr op::Case kMerge[] = {
    {"bf16", "v_a=bf16:5x9x64 s_a=f32:5x9 v_b=bf16:5x9x64 s_b=f32:5x9", "cpu", op::kAot},
    {"f16_far_apart", "v_a=f16:5x9x128 s_a=f32:5x9:normal(0,40) v_b=f16:5x9x128 s_b=f32:5x9:normal(0,40)", "cpu", op::kAot},
    {"f32_odd", "v_a=f32:3x2x33 s_a=f32:3x2 v_b=f32:3x2x33 s_b=f32:3x2", "cpu", op::kAot},
    {"one_empty", "v_a=bf16:3x2x64 s_a=f32:3x2 v_b=bf16:3x2x64:nan s_b=f32:3x2:const(-inf)"},
    {"both_empty", "v_a=bf16:3x2x64 s_a=f32:3x2:const(-inf) v_b=bf16:3x2x64 s_b=f32:3x2:const(-inf)"},
    {"strided", "v_a=bf16:5x9x64^pad8 s_a=f32:5x9^t v_b=bf16:5x9x64^perm(1,0,2) s_b=f32:5x9^pad3"},
    {"no_rows", "v_a=bf16:0x9x64 s_a=f32:0x9 v_b=bf16:0x9x64 s_b=f32:0x9"},
    {"bench", "v_a=bf16:4096x32x128 s_a=f32:4096x32 v_b=bf16:4096x32x128 s_b=f32:4096x32", "cpu", op::kBench},
};
constexpr op::Case kInPlace[] = {
    {"bf16", "v=bf16:5x9x64 s=f32:5x9 v_other=bf16:5x9x64 s_other=f32:5x9"},
    {"mask", "v=f16:40x3x64 s=f32:40x3 v_other=f16:40x3x64 s_other=f32:40x3 mask=bool:40"},
    {"other_empty", "v=f32:3x2x64 s=f32:3x2 v_other=f32:3x2x64 s_other=f32:3x2:const(-inf)"},
    {"both_empty", "v=f32:3x2x64 s=f32:3x2:const(-inf) v_other=f32:3x2x64 s_other=f32:3x2:const(-inf)"},
};
constexpr op::Case kMany[] = {
    {"bf16", "v=bf16:5x4x9x64 s=f32:5x4x9"},
    {"one_state", "v=bf16:5x1x9x64 s=f32:5x1x9"},
    {"no_states", "v=bf16:5x0x9x64 s=f32:5x0x9"},
    {"f16_spread", "v=f16:5x17x2x128 s=f32:5x17x2:normal(0,40)"},
    {"f32", "v=f32:70x3x2x80 s=f32:70x3x2"},
    {"all_empty", "v=f32:3x3x2x80:nan s=f32:3x3x2:const(-inf)"},
};
}  // namespace
std::span<const op::Case> merge_state_cases() { return kMerge; }
std::span<const op::Case> merge_state_in_place_cases() { return kInPlace; }
std::span<const op::Case> merge_states_cases() { return kMany; }
}  // namespace flashinfer::ops::cascade
