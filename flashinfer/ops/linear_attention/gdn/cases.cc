// SPDX-License-Identifier: Apache-2.0
// Rows of the gated delta rule: type of the state x type of the inputs x one or several tokens, and what is special.
#include "flashinfer/ops/linear_attention/cases.h"

namespace flashinfer::ops::linear_attention {
namespace {
constexpr op::Case kDecode[] = {
    {"f32", "q=f32:2x1x2x128 k=f32:2x1x2x128 v=f32:2x1x4x128 state=f32:2x4x128x128 A_log=f32:4 a=f32:2x1x4 dt_bias=f32:4 b=f32:2x1x4", "cpu", op::kAot},
    {"bf16", "q=bf16:3x1x2x64 k=bf16:3x1x2x64 v=bf16:3x1x2x128 state=f32:3x2x64x128 A_log=f32:2 a=bf16:3x1x2 dt_bias=bf16:2 b=bf16:3x1x2"},
    {"odd", "q=f16:2x1x1x17 k=f16:2x1x1x17 v=f16:2x1x8x99 state=f32:2x8x17x99 A_log=f32:8 a=f16:2x1x8 dt_bias=f32:8 b=f16:2x1x8 use_qk_l2norm=False scale=0.5"},
    {"tokens", "q=bf16:1x3x1x16 k=bf16:1x3x1x16 v=bf16:1x3x2x32 state=f32:1x2x16x32 A_log=f32:2 a=bf16:1x3x2 dt_bias=f32:2 b=bf16:1x3x2"},
    {"far_gates", "q=f32:1x1x1x16 k=f32:1x1x1x16 v=f32:1x1x7x8 state=f32:1x7x16x8 A_log=f32:[-100,0,5,100,0,1,-100] a=f32:1x1x7:const(0) dt_bias=f32:[1e4,89,20,21,-100,0,-100] b=f32:1x1x7 scale=0.0"},
    {"no_rows", "q=f32:0x1x1x16 k=f32:0x1x1x16 v=f32:0x1x1x8 state=f32:0x1x16x8 A_log=f32:1 a=f32:0x1x1 dt_bias=f32:1 b=f32:0x1x1"},
    {"bench", "q=bf16:8x1x16x128 k=bf16:8x1x16x128 v=bf16:8x1x32x128 state=f32:8x32x128x128 A_log=f32:32 a=bf16:8x1x32 dt_bias=f32:32 b=bf16:8x1x32", "cpu", op::kBench},
};
constexpr op::Case kPretranspose[] = {
    {"f32", "q=bf16:2x1x2x128 k=bf16:2x1x2x128 v=bf16:2x1x4x128 state=f32:2x4x128x128 A_log=f32:4 a=bf16:2x1x4 dt_bias=f32:4 b=bf16:2x1x4", "cpu", op::kAot},
    {"bf16", "q=bf16:2x1x2x128 k=bf16:2x1x2x128 v=bf16:2x1x4x128 state=bf16:2x4x128x128 A_log=f32:4 a=bf16:2x1x4 dt_bias=f32:4 b=bf16:2x1x4", "cpu", op::kAot},
    {"bf16_rows_left", "q=bf16:2x1x1x64 k=bf16:2x1x1x64 v=bf16:2x1x2x19 state=bf16:2x2x19x64 A_log=f32:2 a=bf16:2x1x2 dt_bias=f32:2 b=bf16:2x1x2 use_qk_l2norm=False scale=0.3"},
    {"f32_rows_left", "q=f16:2x1x1x64 k=f16:2x1x1x64 v=f16:2x1x2x35 state=f32:2x2x35x64 A_log=f32:2 a=f16:2x1x2 dt_bias=f32:2 b=f16:2x1x2"},
    {"f16_in", "q=f16:1x1x1x64 k=f16:1x1x1x64 v=f16:1x1x3x5 state=bf16:1x3x5x64 A_log=f32:3 a=f16:1x1x3 dt_bias=bf16:3 b=f16:1x1x3"},
    {"any_width", "q=f32:2x1x1x37 k=f32:2x1x1x37 v=f32:2x1x2x3 state=f32:2x2x3x37 A_log=f32:2 a=f32:2x1x2 dt_bias=f32:2 b=f32:2x1x2 use_qk_l2norm=False scale=0.25"},
    {"any_bf16", "q=bf16:2x2x1x37 k=bf16:2x2x1x37 v=bf16:2x2x2x3 state=bf16:2x2x3x37 A_log=f32:2 a=bf16:2x2x2 dt_bias=f32:2 b=bf16:2x2x2"},
    {"out_f32", "q=bf16:1x1x1x64 k=bf16:1x1x1x64 v=bf16:1x1x1x4 state=f32:1x1x4x64 A_log=f32:1 a=bf16:1x1x1 dt_bias=f32:1 b=bf16:1x1x1 output=f32:1x1x1x4"},
    {"pool", "q=bf16:4x1x1x64 k=bf16:4x1x1x64 v=bf16:4x1x2x8 state=None A_log=f32:2 a=bf16:4x1x2 dt_bias=f32:2 b=bf16:4x1x2 initial_state=f32:6x2x8x64 initial_state_indices=i32:[5,-1,0,2] output_state_indices=i32:[5,1,3,-1]"},
    {"pool_bf16_tokens", "q=bf16:2x3x1x128 k=bf16:2x3x1x128 v=bf16:2x3x2x6 state=None A_log=f32:2 a=bf16:2x3x2 dt_bias=f32:2 b=bf16:2x3x2 initial_state=bf16:3x2x6x128 initial_state_indices=i64:[2,0] intermediate_states_buffer=bf16:2x3x2x6x128"},
    {"shared_slots", "q=f32:4x1x1x64 k=f32:4x1x1x64 v=f32:4x1x1x4 state=None A_log=f32:1 a=f32:4x1x1 dt_bias=f32:1 b=f32:4x1x1 initial_state=f32:4x1x4x64 initial_state_indices=i32:[0,1,2,1] output_state_indices=i32:[1,2,3,3]"},
    {"keep_state", "q=bf16:2x2x1x64 k=bf16:2x2x1x64 v=bf16:2x2x1x4 state=None A_log=f32:1 a=bf16:2x2x1 dt_bias=f32:1 b=bf16:2x2x1 initial_state=f32:2x1x4x64 initial_state_indices=i32:[1,0] disable_state_update=True"},
    {"far_gates", "q=f32:1x1x1x64 k=f32:1x1x1x64:const(0) v=f32:1x1x7x4 state=f32:1x7x4x64 A_log=f32:[-100,0,5,100,0,1,-100] a=f32:1x1x7:const(0) dt_bias=f32:[1e4,89,20,21,-100,0,-100] b=f32:1x1x7"},
    {"bench", "q=bf16:8x1x16x128 k=bf16:8x1x16x128 v=bf16:8x1x32x128 state=f32:8x32x128x128 A_log=f32:32 a=bf16:8x1x32 dt_bias=f32:32 b=bf16:8x1x32", "cpu", op::kBench},
    {"bench_bf16", "q=bf16:8x1x16x128 k=bf16:8x1x16x128 v=bf16:8x1x32x128 state=bf16:8x32x128x128 A_log=f32:32 a=bf16:8x1x32 dt_bias=f32:32 b=bf16:8x1x32", "cpu", op::kBench},
};
constexpr op::Case kMtp[] = {
    {"f32", "q=bf16:2x4x1x128 k=bf16:2x4x1x128 v=bf16:2x4x2x32 initial_state=f32:3x2x32x128 initial_state_indices=i32:[2,0] A_log=f32:2 a=bf16:2x4x2 dt_bias=f32:2 b=bf16:2x4x2 disable_state_update=False"},
    {"bf16", "q=bf16:2x2x1x64 k=bf16:2x2x1x64 v=bf16:2x2x2x5 initial_state=bf16:3x2x5x64 initial_state_indices=i32:[2,-1] A_log=f32:2 a=bf16:2x2x2 dt_bias=f32:2 b=bf16:2x2x2 disable_state_update=False output_state_indices=i32:[1,0]"},
    {"intermediate", "q=f16:2x2x1x16 k=f16:2x2x1x16 v=f16:2x2x2x5 initial_state=f32:3x2x5x16 initial_state_indices=i64:[2,1] A_log=f32:2 a=f16:2x2x2 dt_bias=f32:2 b=f16:2x2x2 disable_state_update=True intermediate_states_buffer=f32:3x4x2x5x16"},
    {"slots_of_tokens", "q=bf16:2x3x1x64 k=bf16:2x3x1x64 v=bf16:2x3x2x5 initial_state=f32:9x2x5x64 initial_state_indices=i32:[2,0] A_log=f32:2 a=bf16:2x3x2 dt_bias=f32:2 b=bf16:2x3x2 disable_state_update=False ssm_state_indices=i32:2x3:perm"},
    {"slots_apart", "q=bf16:2x2x1x64 k=bf16:2x2x1x64 v=bf16:2x2x2x5 initial_state=f32:6x2x5x64 initial_state_indices=i32:[4,5] A_log=f32:2 a=bf16:2x2x2 dt_bias=f32:2 b=bf16:2x2x2 disable_state_update=False ssm_state_indices=i32:2x2:perm"},
    {"replay", "q=bf16:2x3x2x128 k=bf16:2x3x2x128 v=bf16:2x3x4x128 initial_state=f32:3x4x128x128 initial_state_indices=i32:[2,-1] A_log=f32:4 a=bf16:2x3x4 dt_bias=f32:4 b=bf16:2x3x4 disable_state_update=True cache_replayssm=True replayssm_rawv=bf16:3x4x3x128 replayssm_rawk=bf16:3x2x3x128 replayssm_g=f32:3x4x3 replayssm_beta=f32:3x4x3"},
    {"bench", "q=bf16:8x4x16x128 k=bf16:8x4x16x128 v=bf16:8x4x32x128 initial_state=f32:8x32x128x128 initial_state_indices=i32:8:range(0) A_log=f32:32 a=bf16:8x4x32 dt_bias=f32:32 b=bf16:8x4x32 disable_state_update=False", "cpu", op::kBench},
};
constexpr op::Case kCommit[] = {
    {"layers", "checkpoint_state=f32:2x4x2x128x128 rawv_cache=bf16:2x4x2x3x128 rawk_cache=bf16:2x4x1x3x128 g_cache=f32:2x4x2x3:uniform(-2,0) beta_cache=f32:2x4x2x3:uniform(0,1) state_indices=i32:[3,-1,1] accept_lens=i32:[3,2,0]", "cpu", op::kAot},
    {"track", "checkpoint_state=f32:1x4x2x128x128 rawv_cache=bf16:1x4x2x4x128 rawk_cache=bf16:1x4x2x4x128:normal(0,0.05) g_cache=f32:1x4x2x4:uniform(-2,0) beta_cache=f32:1x4x2x4:uniform(0,1) state_indices=i32:[3,1] accept_lens=i32:[2,4] track_state_indices=i32:[2,0] track_steps=i32:[1,2] use_qk_l2norm=False null_block_id=0"},
};
constexpr op::Case kFused[] = {
    {"pool", "hidden_states=bf16:3x96 w_ba=bf16:96x8:normal(0,0.1) mixed_qkv=bf16:3x768 conv_weight=bf16:768x4 conv_bias=bf16:768 conv_state=bf16:4x768x3 A_log=f32:4 dt_bias=f32:4 scale=None ssm_state=f32:4x4x64x128 state_indices=i32:[3,-2,0]", "cpu", op::kAot},
    {"several_groups", "hidden_states=bf16:6x300 w_ba=bf16:300x24:normal(0,0.05) mixed_qkv=bf16:6x1280 conv_weight=bf16:1280x2 conv_bias=None conv_state=bf16:7x1280x1 A_log=f32:12 dt_bias=f32:12 scale=None ssm_state=f32:7x12x64x64 state_indices=i32:[3,6,0,-1,1,2]"},
    {"no_rows", "hidden_states=bf16:0x96 w_ba=bf16:96x8 mixed_qkv=bf16:0x768 conv_weight=bf16:768x4 conv_bias=None conv_state=bf16:4x768x3 A_log=f32:4 dt_bias=f32:4 scale=None ssm_state=f32:4x4x64x128 state_indices=i32:[]"},
    {"channels_last", "hidden_states=bf16:2x33 w_ba=bf16:33x4:normal(0,0.1) mixed_qkv=bf16:2x72 conv_weight=bf16:72x4 conv_bias=None conv_state=bf16:3x72x3^t A_log=f32:2 dt_bias=bf16:2 scale=0.0 ssm_state=f32:3x2x20x16 state_indices=i32:[1,2] use_qk_l2norm=False", "cpu", 0, 0.02, 0.02},
};
}  // namespace
std::span<const op::Case> gdn_fused_cases() { return kFused; }
std::span<const op::Case> gdn_decode_cases() { return kDecode; }
std::span<const op::Case> gdn_decode_pretranspose_cases() { return kPretranspose; }
std::span<const op::Case> gdn_mtp_cases() { return kMtp; }
std::span<const op::Case> gdn_commit_cases() { return kCommit; }
}  // namespace flashinfer::ops::linear_attention
