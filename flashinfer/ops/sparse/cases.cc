// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/sparse/cases.h"

namespace flashinfer::ops::sparse {
namespace {
#define FI_WS "init.float_workspace_buffer=u8:0 "
#define FI_BF16 "plan.q_data_type=bfloat16 "
#define FI_42 "plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim=64 "
// Four row blocks of 8 with 2, 0, 1 and 3 of 5 key blocks of 16.
#define FI_BSR "plan.indptr=i32:[0,2,2,3,6] plan.indices=i32:[0,3,4,1,2,4] plan.M=32 plan.N=80 plan.R=8 plan.C=16 "
#define FI_QKV "q=bf16:32x4x64 k=bf16:80x2x64 v=bf16:80x2x64 return_lse=True"
constexpr op::Case kBlock[] = {
    {"plain", FI_WS FI_BSR FI_42 FI_BF16 FI_QKV, "cpu", op::kTrace},
    {"mask", FI_WS FI_BSR FI_42 FI_BF16 "plan.mask=bool:6x8x16 " FI_QKV},
    {"packed_mask", FI_WS FI_BSR FI_42 FI_BF16 "plan.packed_mask=u8:96:randint(0,256) " FI_QKV},
    {"causal_cap", FI_WS FI_BSR FI_42 FI_BF16 "plan.causal=True plan.logits_soft_cap=3.0 " FI_QKV},
    {"one_row_blocks_f16", FI_WS "plan.indptr=i64:[0,2,3] plan.indices=i64:[0,3,2] plan.M=2 plan.N=9 plan.R=1 plan.C=2 " FI_42
                           "q=f16:2x4x64 k=f16:9x2x64^pad8 v=f16:9x2x64 return_lse=True"},
    {"o_float32", FI_WS FI_BSR FI_42 FI_BF16 "plan.o_data_type=float32 " FI_QKV, "cpu", 0, 1e-2, 1e-2},
    {"fp8_query", FI_WS FI_BSR FI_42 "plan.q_data_type=float8_e4m3fn q=e4m3:32x4x64 k=e4m3:80x2x64 v=e4m3:80x2x64 scale_q=f32:4:const(0.5) "
                  "scale_k=f32:2:const(3) scale_v=f32:2:uniform(0.1,2) return_lse=True"},
    {"no_blocks", FI_WS "plan.indptr=i32:[0,0,0] plan.indices=i32:[] plan.M=16 plan.N=80 plan.R=8 plan.C=16 " FI_42 FI_BF16
                  "q=bf16:16x4x64 k=bf16:80x2x64 v=bf16:80x2x64 return_lse=True"},
};
constexpr op::Case kVariable[] = {
    {"gqa", FI_WS "plan.block_mask_map=bool:2x2x3 plan.block_row_sz=i32:2x2:const(7) plan.block_col_sz=i32:2x3:const(24) " FI_42 FI_BF16
            "q=bf16:4x14x64 k=bf16:2x72x64 v=bf16:2x72x64 return_lse=True"},
    {"all_visible_f16", FI_WS "plan.block_mask_map=bool:2x2x3:const(1) plan.block_row_sz=i64:2x2:const(7) plan.block_col_sz=i64:2x3:const(5) " FI_42
                        "q=f16:4x14x64 k=f16:2x15x64 v=f16:2x15x64 return_lse=True"},
    {"fp8_query", FI_WS "plan.block_mask_map=bool:2x2x3 plan.block_row_sz=i32:2x2:const(7) plan.block_col_sz=i32:2x3:const(24) " FI_42
                  "plan.q_data_type=float8_e4m3fn q=e4m3:4x14x64 k=e4m3:2x72x64 v=e4m3:2x72x64 return_lse=True"},
    {"nothing_visible", FI_WS "plan.block_mask_map=bool:2x2x3:const(0) plan.block_row_sz=i32:2x2:const(7) plan.block_col_sz=i32:2x3:const(8) " FI_42 FI_BF16
                        "q=bf16:4x14x64 k=bf16:2x24x64 v=bf16:2x24x64 return_lse=True"},
    {"strided", FI_WS "plan.block_mask_map=bool:2x2x3 plan.block_row_sz=i32:2x2:const(7) plan.block_col_sz=i32:2x3:const(24) plan.logits_soft_cap=2.0 " FI_42
                FI_BF16 "q=bf16:4x14x64^perm(1,0,2) k=bf16:2x72x64^pad8 v=bf16:2x72x64^perm(1,0,2) return_lse=True"},
};
#define FI_PLAIN "q=bf16:32x4x64 k=bf16:80x2x64 v=bf16:80x2x64 "
constexpr op::Case kBlockForward[] = {
    {"cap_scale", FI_WS FI_BSR FI_42 FI_BF16 "plan.mask=bool:6x8x16 " FI_PLAIN "logits_soft_cap=3.0 sm_scale=0.3"},
    {"rope", FI_WS FI_BSR FI_42 FI_BF16 FI_PLAIN "pos_encoding_mode='ROPE_LLAMA' rope_theta=100000.0"},
};
constexpr op::Case kVariableForward[] = {
    {"cap_scale", FI_WS "plan.block_mask_map=bool:2x2x3 plan.block_row_sz=i32:2x2:const(7) plan.block_col_sz=i32:2x3:const(24) plan.sm_scale=9.0 " FI_42 FI_BF16
                  "q=bf16:4x14x64 k=bf16:2x72x64 v=bf16:2x72x64 logits_soft_cap=3.0 sm_scale=0.3"},
};
constexpr op::Case kConvert[] = {
    {"ragged", "mask=bool:6x3x5 indptr=i32:[0,2,2,3,6]"},
    {"none", "mask=bool:0x3x5 indptr=i32:[0,0]"},
};
#undef FI_WS
#undef FI_BF16
#undef FI_42
#undef FI_BSR
#undef FI_QKV
#undef FI_PLAIN
}  // namespace
std::span<const op::Case> block_cases() { return kBlock; }
std::span<const op::Case> variable_cases() { return kVariable; }
std::span<const op::Case> block_forward_cases() { return kBlockForward; }
std::span<const op::Case> variable_forward_cases() { return kVariableForward; }
std::span<const op::Case> convert_cases() { return kConvert; }
}  // namespace flashinfer::ops::sparse
