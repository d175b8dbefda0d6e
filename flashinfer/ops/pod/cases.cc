// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/pod/cases.h"

namespace flashinfer::ops::pod {
namespace {
#define FI_WS "init.float_workspace_buffer=u8:0 "
#define FI_BF16 "plan.q_data_type=bfloat16 "
#define FI_42 "plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim=64 plan.page_size=16 "
#define FI_DECODE "plan.indptr=i32:[0,3,3,4,6] plan.indices=i32:[5,1,3,6,0,2] plan.last_page_len=i32:[16,1,1,7] "
#define FI_RUN "q_p=bf16:40x4x64 k_p=bf16:70x2x64 v_p=bf16:70x2x64 q_d=bf16:4x4x64 paged_kv_cache_d=bf16:7x2x16x2x64 "
constexpr op::Case kPod[] = {
    {"causal", FI_WS FI_DECODE FI_42 FI_BF16 FI_RUN "causal_p=True return_lse_p=True return_lse_d=True", "cpu", op::kTrace},
    {"mask_scales", FI_WS FI_DECODE FI_42 FI_BF16 FI_RUN "custom_mask_p=bool:40x70 sm_scale_p=0.2 q_scale=0.5 v_scale=2.0"},
    {"windows", FI_WS FI_DECODE FI_42 FI_BF16 "plan.window_left=9 " FI_RUN "causal_p=True window_left_p=20 window_left_d=9 return_lse_d=True"},
    {"fp8_query", FI_WS FI_DECODE FI_42 "plan.q_data_type=float8_e4m3fn q_p=e4m3:40x4x64 k_p=e4m3:70x2x64 v_p=e4m3:70x2x64 q_d=e4m3:4x4x64 "
                  "paged_kv_cache_d=e4m3:7x2x16x2x64 causal_p=True q_scale=2.0"},
    {"hnd_f16", FI_WS "init.kv_layout='HND' " FI_DECODE FI_42 "q_p=f16:40x4x64 k_p=f16:2x70x64 v_p=f16:2x70x64 kv_layout_p='HND' "
                "q_d=f16:4x4x64 paged_kv_cache_d=f16:7x2x2x16x64"},
};
#define FI_BATCH "plan.qo_indptr_p=i32:[0,20,23,53] plan.kv_indptr_p=i32:[0,3,3,5] plan.kv_indices_p=i32:[5,1,3,6,0] plan.last_page_len_p=i32:[16,1,7] " \
                 "plan.qo_indptr_d=i32:[0,1,2] plan.kv_indptr_d=i32:[0,2,3] plan.kv_indices_d=i32:[2,4,6] plan.last_page_len_d=i32:[3,16] "
#define FI_BOTH "q_p=bf16:53x4x64 paged_kv_cache_p=bf16:7x2x16x2x64 q_d=bf16:2x4x64 paged_kv_cache_d=bf16:7x2x16x2x64 "
constexpr op::Case kBatchPod[] = {
    {"causal", FI_WS FI_BATCH FI_42 FI_BF16 FI_BOTH "causal_p=True return_lse=True", "cpu", op::kTrace},
    {"mask_scales", FI_WS FI_BATCH FI_42 FI_BF16 FI_BOTH "custom_mask_p=bool:1650 q_scale=0.5 k_scale=2.0 v_scale=3.0"},
    {"fp8_query", FI_WS FI_BATCH FI_42 "plan.q_data_type=float8_e4m3fn q_p=e4m3:53x4x64 paged_kv_cache_p=e4m3:7x2x16x2x64 q_d=e4m3:2x4x64 "
                  "paged_kv_cache_d=e4m3:7x2x16x2x64 q_scale=2.0 return_lse=True"},
    {"rope_window", FI_WS FI_BATCH FI_42 FI_BF16 "plan.pos_encoding_mode='ROPE_LLAMA' plan.window_left=11 " FI_BOTH "return_lse=True"},
};
#undef FI_WS
#undef FI_BF16
#undef FI_42
#undef FI_DECODE
#undef FI_RUN
#undef FI_BATCH
#undef FI_BOTH
}  // namespace
std::span<const op::Case> pod_cases() { return kPod; }
std::span<const op::Case> batch_pod_cases() { return kBatchPod; }
}  // namespace flashinfer::ops::pod
