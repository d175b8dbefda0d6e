// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/cases.h"

namespace flashinfer::ops::linear_attention {
namespace {
#define FI_KDA(T, N, K, V) \
  "q=" T ":" N "x2x" K " k=" T ":" N "x2x" K " v=" T ":" N "x4x" V " g=" T ":" N "x4x" K ":uniform(-2,0) beta=" T ":" N "x4:uniform(0,1) "
#define FI_GATE(K) "A_log=f32:2 dt_bias=f32:2x" K " use_gate=True "
constexpr op::Case kKda[] = {
    {"decode", FI_KDA("bf16", "3", "128", "128") "cu_seqlens=i32:[0,1,2,3] state=bf16:5x4x128x128 read_indices=i32:[4,-1,0]", "cpu",
     op::kAot | op::kTrace},
    {"f32_state", FI_KDA("bf16", "3", "64", "64") FI_GATE("64") "cu_seqlens=i64:[0,1,2,3] state=f32:3x4x64x64 beta_is_logit=True", "cpu", op::kAot},
    {"bounded", FI_KDA("bf16", "4", "64", "32") FI_GATE("64") "lower_bound=-5.0 cu_seqlens=i32:[0,2,3] state=f16:3x4x32x64 read_indices=i32:[2,0] "
     "write_indices=i32:[1,-1] scale=0.5"},
    {"stored_twice", FI_KDA("bf16", "2", "64", "32") "cu_seqlens=i32:[0,1,2] state=bf16:3x4x32x64 read_indices=i32:[2,0] after_indices=i32:[2,1]"},
    {"draft", FI_KDA("bf16", "6", "64", "64") "cu_seqlens=i32:[0,3,6] state=bf16:9x4x64x64 read_indices=i32:[1,2] after_indices=i32:[3,-1,4,5,6,7] "
     "disable_state_update=True"},
    {"caches", FI_KDA("bf16", "23", "128", "128") "cu_seqlens=i32:[0,3,19,23] state=bf16:3x4x128x128 read_indices=i32:[2,0,-1] "
     "disable_state_update=True correction_cache=f32:3x4x17x128 kg_cache=bf16:3x4x17x256"},
    {"caches_any_width", FI_KDA("f32", "5", "19", "7") "cu_seqlens=i32:[0,2,2,4] state=f32:4x4x7x19 read_indices=i32:[3,0,1] "
     "disable_state_update=True correction_cache=f32:4x4x2x7 kg_cache=f32:4x4x2x38"},
    {"source", FI_KDA("f32", "2", "19", "7") "cu_seqlens=i32:[0,1,2] state=f32:3x4x7x19 source=f32:2x4x7x19 read_indices=i32:[1,1] write_indices=i32:[2,0] "
     "use_qk_l2norm=False scale=0.1"},
    {"prefill", FI_KDA("f32", "75", "64", "16") "cu_seqlens=i32:[0,0,41,70] state=f32:3x4x16x64"},
    {"checkpoints", FI_KDA("bf16", "55", "64", "16") "cu_seqlens=i32:[0,55] state=bf16:1x4x16x64 after_states=bf16:5x4x16x64 "
     "after_indices=i64:[-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,0,-1,-1,-1,-1,3,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,2,-1,-1,-1,-1,-1,-1,4]"},
    {"strong", "q=f32:75x1x19 k=f32:75x1x19 v=f32:75x2x7 g=f32:75x2x19:uniform(-75,0) beta=f32:75x2:uniform(0,1) cu_seqlens=i32:[0,48,75] "
     "state=f16:2x2x7x19"},
    {"weak", "q=bf16:100x1x128 k=bf16:100x1x128 v=bf16:100x1x128 g=bf16:100x1x128:uniform(-0.001,0) beta=bf16:100x1:uniform(0,1) "
     "cu_seqlens=i32:[0,100] state=f32:1x1x128x128"},
    {"chunks", FI_KDA("bf16", "120", "128", "128") FI_GATE("128") "cu_seqlens=i32:[0,50,53,53,117] state=f32:6x4x128x128 read_indices=i32:[4,0,1,2] "
     "write_indices=i32:[3,0,1,2] beta_is_logit=True", "cpu", op::kAot},
    {"chunks_bf16", FI_KDA("bf16", "70", "64", "40") FI_GATE("64") "lower_bound=-5.0 cu_seqlens=i64:[0,16,33,70] state=bf16:3x4x40x64 "
     "read_indices=i32:[2,-1,0]", "cpu", op::kAot},
    {"chunks_strong", "q=bf16:75x1x64 k=bf16:75x1x64 v=bf16:75x2x64 g=bf16:75x2x64:uniform(-200,0) beta=bf16:75x2:uniform(0,1) cu_seqlens=i32:[0,48,75] "
     "state=f32:2x2x64x64"},
    {"chunks_no_state", "q=bf16:64x1x128 k=bf16:64x1x128:normal(0,0.05) v=bf16:64x2x64 g=bf16:64x2x128:uniform(-2,0) beta=bf16:64x2:uniform(0,1) "
     "cu_seqlens=i32:[0,64] use_qk_l2norm=False scale=0.1"},
    {"no_state", FI_KDA("f16", "5", "33", "18") "cu_seqlens=i32:[0,2,5]"},
    {"shared_slot", FI_KDA("f32", "3", "64", "8") "cu_seqlens=i32:[0,1,3] state=f32:2x4x8x64 read_indices=i64:[1,1]"},
    {"no_tokens", FI_KDA("bf16", "0", "64", "8") "cu_seqlens=i32:[0,0] state=f32:1x4x8x64"},
    {"bench_bf16", "q=bf16:8x32x128 k=bf16:8x32x128 v=bf16:8x32x128 g=bf16:8x32x128:uniform(-2,0) beta=bf16:8x32 cu_seqlens=i32:[0,1,2,3,4,5,6,7,8] "
     "state=bf16:8x32x128x128", "cpu", op::kBench},
    {"bench_f32", "q=bf16:8x32x128 k=bf16:8x32x128 v=bf16:8x32x128 g=bf16:8x32x128:uniform(-2,0) beta=bf16:8x32 cu_seqlens=i32:[0,1,2,3,4,5,6,7,8] "
     "state=f32:8x32x128x128", "cpu", op::kBench},
    {"bench_prefill", "q=bf16:2048x16x128 k=bf16:2048x16x128 v=bf16:2048x16x128 g=bf16:2048x16x128:uniform(-2,0) beta=bf16:2048x16:uniform(0,1) "
     "cu_seqlens=i32:[0,2048] state=f32:1x16x128x128", "cpu", op::kBench},
};
#undef FI_KDA
#undef FI_GATE
#define FI_STEP(R, H, D, C, P, S) \
  "x=bf16:" R "x" C " conv_state=bf16:" P "x" C S " raw_gate=bf16:1x" R "x" H "x" D " raw_beta=bf16:1x" R "x" H " A_log=f32:" H \
  ":normal(0,0.5) dt_bias=f32:" H "x" D " output_gate=bf16:" R "x" H "x" D " norm_weight=f32:" D " "
constexpr op::Case kFused[] = {
    {"f32", FI_STEP("4", "2", "128", "768", "5", "x3") "weight=f32:3x4x256 state_indices=i32:[4,0,1,4] state=f32:5x2x128x128", "cpu",
     op::kAot | op::kTrace},
    {"bf16", FI_STEP("3", "3", "64", "576", "4", "x3") "weight=f32:3x4x192 state_indices=i32:[3,-7,2] state=bf16:4x3x64x64 lower_bound=None norm_eps=0.01"},
    {"odd", FI_STEP("2", "3", "19", "171", "3", "x3") "weight=f32:3x4x57 state_indices=i32:[2,1] state=f32:3x3x19x19"},
    {"no_rows", FI_STEP("0", "2", "64", "384", "2", "x3") "weight=f32:3x4x128 state_indices=i32:[] state=f32:2x2x64x64"},
};
constexpr op::Case kPacked[] = {
    {"draft", FI_STEP("8", "2", "128", "768", "13", "x5") "weight=f32:3x4x256 state_indices=i32:4x3:range(1) state=f32:13x2x128x128 "
     "query_start_loc=i32:[0,3,3,5,6] num_accepted_tokens=i32:[3,1,0,2]"},
    {"bf16", FI_STEP("4", "1", "64", "192", "7", "x4") "weight=f32:3x4x64 state_indices=i32:3x2:range(1) state=bf16:7x1x64x64 "
     "query_start_loc=i32:[0,2,3,4] num_accepted_tokens=i32:[2,1,5]", "cpu", op::kAot},
    {"one", FI_STEP("4", "1", "64", "192", "4", "x3") "weight=f32:3x4x64 state_indices=i32:3x1:range(0) state=f32:4x1x64x64 "
     "query_start_loc=i32:[0,1,2,2] num_accepted_tokens=i32:[1,1,1] lower_bound=None"},
    {"t1", FI_STEP("3", "1", "64", "192", "4", "x3") "weight=f32:3x4x64 state_indices=i32:2x1:range(1) state=f32:4x1x64x64 "
     "query_start_loc=i32:[0,1,2] num_accepted_tokens=i32:[1,1] t1_state_indices=i32:[3,0,2]"},
};
#undef FI_STEP
}  // namespace
std::span<const op::Case> fused_kda_cases() { return kFused; }
std::span<const op::Case> packed_fused_kda_cases() { return kPacked; }
std::span<const op::Case> kda_recurrence_cases() { return kKda; }
}  // namespace flashinfer::ops::linear_attention
