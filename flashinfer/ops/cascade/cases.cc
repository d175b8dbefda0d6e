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
#define FI_WS "init.float_workspace_buffer=u8:0 "
#define FI_BF16 "plan.q_data_type=bfloat16 "
#define FI_42 "plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim=64 plan.page_size=16 "
// A prefix of 37 keys for the 7 rows of three requests; of 30, 0 and 5 keys of their own.
#define FI_TWO "init.num_levels=2 plan.qo_indptr_arr=(i32:[0,7],i32:[0,3,5,7]) plan.paged_kv_indptr_arr=(i32:[0,3],i32:[0,2,2,3]) " \
               "plan.paged_kv_indices_arr=(i32:[5,1,3],i32:[6,0,2]) plan.paged_kv_last_page_len=(i32:[5],i32:[14,1,5]) "
constexpr op::Case kLevels[] = {
    {"two", FI_WS FI_TWO FI_42 FI_BF16 "plan.causal=True q=bf16:7x4x64 paged_kv_cache=bf16:7x2x16x2x64", "cpu", op::kAot},
    {"fp8_query", FI_WS FI_TWO FI_42 "plan.q_data_type=float8_e4m3fn plan.causal=True q=e4m3:7x4x64 paged_kv_cache=e4m3:7x2x16x2x64"},
    {"two_cap_f16", FI_WS FI_TWO FI_42 "plan.logits_soft_cap=3.0 plan.sm_scale=0.3 q=f16:7x4x64 paged_kv_cache=f16:7x2x16x2x64"},
    {"one_window", FI_WS "init.num_levels=1 plan.qo_indptr_arr=(i32:[0,7]) plan.paged_kv_indptr_arr=(i32:[0,3]) plan.paged_kv_indices_arr=(i32:[5,1,3]) "
                   "plan.paged_kv_last_page_len=(i32:[5]) plan.causal=True plan.window_left=6 " FI_42 FI_BF16 "q=bf16:7x4x64 paged_kv_cache=bf16:7x2x16x2x64"},
    {"hnd_fp8", FI_WS "init.kv_layout='HND' " FI_TWO FI_42 FI_BF16 "plan.kv_data_type=float8_e4m3fn q=bf16:7x4x64 "
                "paged_kv_cache=(e4m3:7x2x16x64,e4m3:7x2x16x64)"},
};
#define FI_SHARED "plan.unique_kv_indptr=i32:[0,2,2,3] plan.unique_kv_indices=i32:[6,0,2] plan.unique_kv_last_page_len=i32:[14,1,5] "
constexpr op::Case kSharedDecode[] = {
    {"fp8_query", FI_WS FI_SHARED FI_42 "plan.data_type=float8_e4m3fn q=e4m3:3x4x64 k_shared=e4m3:70x2x64 v_shared=e4m3:70x2x64 unique_kv_cache=e4m3:7x2x16x2x64"},
    {"bf16", FI_WS FI_SHARED FI_42 "plan.data_type=bfloat16 q=bf16:3x4x64 k_shared=bf16:70x2x64 v_shared=bf16:70x2x64 unique_kv_cache=bf16:7x2x16x2x64"},
    {"no_prefix", FI_WS FI_SHARED FI_42 "q=f16:3x4x64 k_shared=f16:0x2x64 v_shared=f16:0x2x64 unique_kv_cache=f16:7x2x16x2x64"},
};
#define FI_PREFILL "plan.qo_indptr=i32:[0,3,5,7] plan.paged_kv_indptr=i32:[0,2,2,3] plan.paged_kv_indices=i32:[6,0,2] plan.paged_kv_last_page_len=i32:[14,1,5] "
constexpr op::Case kSharedPrefill[] = {
    {"causal", FI_WS FI_PREFILL FI_42 "q=bf16:7x4x64 k_shared=bf16:70x2x64 v_shared=bf16:70x2x64 unique_kv_cache=bf16:7x2x16x2x64 causal=True sm_scale=0.2"},
    {"hnd", FI_WS "init.kv_layout='HND' " FI_PREFILL FI_42 "q=f16:7x4x64 k_shared=f16:2x70x64 v_shared=f16:2x70x64 unique_kv_cache=f16:7x2x2x16x64"},
};
#undef FI_WS
#undef FI_BF16
#undef FI_42
#undef FI_TWO
#undef FI_SHARED
#undef FI_PREFILL
}  // namespace
std::span<const op::Case> merge_state_cases() { return kMerge; }
std::span<const op::Case> merge_state_in_place_cases() { return kInPlace; }
std::span<const op::Case> merge_states_cases() { return kMany; }
std::span<const op::Case> multi_level_cases() { return kLevels; }
std::span<const op::Case> shared_decode_cases() { return kSharedDecode; }
std::span<const op::Case> shared_prefill_cases() { return kSharedPrefill; }
}  // namespace flashinfer::ops::cascade
