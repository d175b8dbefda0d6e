// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/cases.h"

namespace flashinfer::ops::linear_attention {
namespace {
constexpr op::Case kFn[] = {
    {"packed", "x=bf16:80x150^t weight=bf16:80x4 bias=bf16:80 query_start_loc=i32:[0,2,2,133,150] cache_indices=i32:[3,0,-1,1] "
     "has_initial_state=bool:[1,1,0,1] conv_states=bf16:5x80x3", "cpu", op::kAot | op::kTrace},
    {"tokens_side_by_side",
     "x=bf16:37x150 weight=bf16:37x4 query_start_loc=i64:[0,2,2,133,150] conv_states=bf16:5x37x3^t has_initial_state=bool:[1,1,0,1]"},
    {"tokens_2_taps", "x=bf16:1x5x150 weight=bf16:5x2 bias=bf16:5"},
    {"tokens_3_taps", "x=bf16:1x5x150 weight=bf16:5x3 bias=bf16:5"},
    {"batch", "x=f32:2x7x33 weight=f32:7x3 bias=f32:7 activation=None"},
    {"batch_channels_last", "x=f16:2x40x9^t weight=f32:40x2 bias=f32:40 conv_states=f16:2x40x1 activation='swish'"},
    {"one_token", "x=f32:5x1 weight=f32:5x4 query_start_loc=i32:[0,1] conv_states=f32:1x5x3 has_initial_state=bool:[1]"},
    {"short", "x=bf16:16x3^t weight=bf16:16x4 query_start_loc=i32:[0,1,3] conv_states=bf16:2x16x3 has_initial_state=bool:[1,0]"},
    {"shared_slot", "x=f32:16x6^t weight=f32:16x4 query_start_loc=i32:[0,2,6] cache_indices=i32:[1,1] conv_states=f32:2x16x3 "
     "has_initial_state=bool:[0,1]"},
    {"no_tokens", "x=bf16:16x0 weight=bf16:16x4 query_start_loc=i32:[0,0] conv_states=bf16:2x16x3"},
    {"bench", "x=bf16:8192x4096^t weight=bf16:8192x4 bias=bf16:8192 query_start_loc=i32:[0,1024,4096] conv_states=bf16:2x8192x3",
     "cpu", op::kBench},
    {"bench_tokens", "x=bf16:1x8192x4096 weight=bf16:8192x4 bias=bf16:8192", "cpu", op::kBench},
};
constexpr op::Case kUpdate[] = {
    {"decode", "x=bf16:4x600 conv_state=bf16:6x600x3 weight=bf16:600x4 bias=bf16:600 activation='silu' conv_state_indices=i32:[5,-1,0,2]",
     "cpu", op::kAot | op::kTrace},
    {"transposed_state", "x=bf16:3x40 conv_state=bf16:3x40x3^t weight=bf16:40x4"},
    {"transposed_f32", "x=f32:3x40 conv_state=f32:3x40x3^t weight=f32:40x4"},
    {"2_taps", "x=f16:3x70 conv_state=f16:3x70x1 weight=f16:70x2 bias=f16:70 activation='silu'"},
    {"3_taps", "x=bf16:3x70 conv_state=bf16:3x70x2 weight=bf16:70x3 activation='silu'"},
    {"3_taps_f16", "x=f16:3x70 conv_state=f16:3x70x2 weight=f16:70x3 activation='silu'"},
    {"3_taps_f32", "x=f32:3x70 conv_state=f32:3x70x2 weight=f32:70x3 activation='silu'"},
    {"4_taps_f16", "x=f16:3x70 conv_state=f16:3x70x3 weight=f32:70x4 bias=f32:70 activation='silu'"},
    {"4_taps_f32", "x=f32:3x70 conv_state=f32:3x70x3 weight=f32:70x4 bias=f32:70 activation='silu'"},
    {"tokens", "x=f32:2x40x3 conv_state=f32:2x40x5 weight=f32:40x3 bias=f32:40 activation='silu'"},
    {"more_tokens_than_state", "x=f16:2x40x9^t conv_state=f16:2x40x4 weight=f16:40x4"},
    {"ring", "x=f32:3x40x2 conv_state=f32:3x40x5 weight=f32:40x4 cache_seqlens=i32:[0,4,13]"},
    {"ring_all_positions", "x=f32:2x24x7 conv_state=f32:2x24x3 weight=f32:24x4 cache_seqlens=i64:[1,5]"},
    {"accepted", "x=bf16:3x40x4^t conv_state=bf16:3x40x6 weight=bf16:40x4 num_accepted_tokens=i32:[0,2,4] activation='silu'"},
    {"shared_slot", "x=f32:2x40 conv_state=f32:2x40x3 weight=f32:40x4 conv_state_indices=i64:[1,1]"},
    {"bench", "x=bf16:64x8192 conv_state=bf16:64x8192x3 weight=bf16:8192x4 bias=bf16:8192 activation='silu'", "cpu", op::kBench},
    {"bench_transposed", "x=bf16:64x8192 conv_state=bf16:64x8192x3^t weight=bf16:8192x4 bias=bf16:8192 activation='silu'", "cpu", op::kBench},
};
}  // namespace
std::span<const op::Case> causal_conv1d_fn_cases() { return kFn; }
std::span<const op::Case> causal_conv1d_update_cases() { return kUpdate; }
}  // namespace flashinfer::ops::linear_attention
