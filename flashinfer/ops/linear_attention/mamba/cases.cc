// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/linear_attention/cases.h"

namespace flashinfer::ops::linear_attention {
namespace {
#define FI_A "A=f32:4x16x32:uniform(-8,-0.1) "
#define FI_ONE "x=bf16:3x4x16 dt=bf16:3x4x16 " FI_A "B=bf16:3x2x32 C=bf16:3x2x32 D=bf16:4x16 "
#define FI_SEVERAL "x=bf16:2x3x4x16 dt=bf16:2x3x4x16 " FI_A "B=bf16:2x3x2x32 C=bf16:2x3x2x32 D=bf16:4x16 cache_steps=3 "
#define FI_HEAD(B, S)                                                                                              \
  "state=" S ":" B "x128x64x128 x=bf16:" B "x128x64 dt=bf16:" B "x128x1 A=f32:128x1x1:uniform(-8,-0.1) B=bf16:" B \
  "x8x128 C=bf16:" B "x8x128 D=bf16:128x1 dt_bias=f32:128x1 dt_softplus=True"
constexpr op::Case kSelectiveStateUpdate[] = {
    {"one_token", "state=bf16:5x4x16x32 " FI_ONE "dt_softplus=True dt_bias=bf16:4x16", "cpu", op::kAot | op::kTrace},
    {"one_decay",
     "state=f32:5x4x16x37 x=f32:3x4x16 dt=f32:3x4x1 A=f32:4x1x1:uniform(-8,-0.1) B=f32:3x1x37 C=f32:3x1x37 D=f32:4x1 "
     "dt_bias=f32:4x1 dt_softplus=True state_batch_indices=i32:[4,-1,0]"},
    {"one_decay_bf16",
     "state=bf16:5x4x16x128 x=bf16:3x2x4x16 dt=bf16:3x2x4x1 A=f32:4x1x1:uniform(-8,-0.1) B=bf16:3x2x1x128 "
     "C=bf16:3x2x1x128 D=bf16:4x1 dt_bias=bf16:4x1 dt_softplus=True cache_steps=2", "cpu", op::kAot},
    {"one_decay_f32",
     "state=f32:2x4x16x128 x=bf16:2x4x16 dt=bf16:2x4x1 A=f32:4x1x1:uniform(-8,-0.1) B=bf16:2x1x128 C=bf16:2x1x128 D=bf16:4x1 "
     "dt_bias=f32:4x1 dt_softplus=True", "cpu", op::kAot},
    {"rows_left_bf16",
     "state=bf16:3x4x40x128 x=bf16:3x4x40 dt=bf16:3x4x1 A=f32:4x1x1:uniform(-8,-0.1) B=bf16:3x2x128 C=bf16:3x2x128 D=bf16:4x40 "
     "dt_softplus=True state_batch_indices=i32:[2,0,-1] dst_state_batch_indices=i32:[1,0,-1]"},
    {"rows_left_f32", "state=f32:2x2x19x192 x=f16:2x2x19 dt=f16:2x2x1 A=f32:2x1x1:uniform(-8,-0.1) B=f16:2x1x192 C=f16:2x1x192 D=f16:2x1"},
    {"rows_left_f16",
     "state=f16:2x2x19x64 x=bf16:2x2x19 dt=bf16:2x2x1 A=f32:2x1x1:uniform(-8,-0.1) B=bf16:2x1x64 C=bf16:2x1x64 D=bf16:2x1", "cpu", 0, 2e-3, 1e-3},
    {"bench_f32", FI_HEAD("8", "f32"), "cpu", op::kBench},
    {"bench_bf16", FI_HEAD("8", "bf16"), "cpu", op::kBench},
    {"slots", "state=f32:5x4x16x32 " FI_ONE "state_batch_indices=i32:[4,-1,0] z=bf16:3x4x16", "cpu", op::kAot},
    {"pad_slot", "state=f32:5x4x16x32 " FI_ONE "state_batch_indices=i64:[4,9,0] pad_slot_id=9"},
    {"no_update", "state=f16:5x4x16x32 " FI_ONE "disable_state_update=True"},
    {"dst", "state=f16:5x4x16x32 " FI_ONE "state_batch_indices=i32:[4,1,0] dst_state_batch_indices=i32:[2,-1,3]"},
    {"shared_slot", "state=f32:5x4x16x32 " FI_ONE "state_batch_indices=i32:[4,4,4] dt_softplus=True"},
    {"one_head", "state=f32:4x7x19 x=f32:4x7 dt=f32:4x7 A=f32:7x19:uniform(-2,0) B=f32:4x19 C=f32:4x19 D=f32:7 z=f32:4x7"},
    {"int16",
     "state=i16:5x4x16x32:randint(-32767,32767) state_scale=f32:5x4x16:uniform(1e-5,1e-4) " FI_ONE "dt_softplus=True "
     "state_batch_indices=i32:[4,-1,0] disable_state_update=True"},  // stored ones: tests/python/test_mamba.py
    {"random_rounding", "state=f16:5x4x16x32 " FI_ONE "rand_seed=i64:[81985529216486895] philox_rounds=7", "cpu", 0, 2e-3, 1e-4},
    {"several", "state=bf16:5x4x16x32 " FI_SEVERAL "dt_softplus=True state_batch_indices=i32:[3,1]"},
    {"several_dst",
     "state=f32:9x4x16x32 " FI_SEVERAL "dt_softplus=True state_batch_indices=i32:2x4:randint(3,4) "
     "dst_state_batch_indices=i32:2x3:randint(5,6) num_accepted_tokens=i32:[0,4]"},
    {"several_dst_apart",
     "state=f32:14x4x16x32 " FI_SEVERAL "dt_softplus=True state_batch_indices=i32:2x4:range(0) "
     "dst_state_batch_indices=i32:2x3:range(8) num_accepted_tokens=i32:[0,4]"},
    {"several_cached",
     "state=f16:5x4x16x32 " FI_SEVERAL "dt_softplus=True intermediate_states_buffer=f16:4x4x4x16x32 "
     "intermediate_state_indices=i64:[3,0] rand_seed=i64:[7]", "cpu", 0, 2e-3, 1e-4},
    {"several_int16",
     "state=i16:5x4x16x32:randint(-32767,32767) state_scale=f32:5x4x16:uniform(1e-5,1e-4) " FI_SEVERAL
     "dt_softplus=True disable_state_update=True state_batch_indices=i32:[3,-1] z=bf16:2x3x4x16"},
    {"packed",
     "state=f32:5x4x16x32 x=f32:41x4x16 dt=f32:41x4x16 " FI_A "B=f32:41x4x32 C=f32:41x4x32 D=f32:4x16 z=f32:41x4x16 "
     "dt_softplus=True cu_seqlens=i32:[0,1,1,36,41] state_batch_indices=i32:[3,1,0,-1] cache_steps=35"},
    {"no_rows", "state=f32:0x4x16x32 x=f32:0x4x16 dt=f32:0x4x16 " FI_A "B=f32:0x2x32 C=f32:0x2x32 D=f32:4x16"},
};
#undef FI_A
#undef FI_ONE
#undef FI_SEVERAL
#undef FI_HEAD
#define FI_SSD(T, S) \
  "x=" T ":1x" S "x4x16 dt=" T ":1x" S "x4 A=f32:4:uniform(-4,-0.05) B=" T ":1x" S "x2x32 C=" T ":1x" S "x2x32 dt_softplus=True "
#define FI_SSD_WIDE(S, H, P, N) \
  "x=bf16:1x" S "x" H "x" P " dt=bf16:1x" S "x" H " A=f32:" H ":uniform(-4,-0.05) B=bf16:1x" S "x2x" N \
  ":normal(0,0.3) C=bf16:1x" S "x2x" N ":normal(0,0.3) dt_softplus=True "
constexpr op::Case kSsdChunkScan[] = {
    {"one_chunk", FI_SSD("bf16", "64") "D=bf16:4 dt_bias=bf16:4", "cpu", op::kAot | op::kTrace, 2e-2, 6e-2},
    {"chunks", FI_SSD("bf16", "133") "D=f32:4x16 z=bf16:1x133x4x16 dt_max=0.5 initial_states=f32:1x4x16x32 state_dtype=float32", "cpu",
     op::kAot, 2e-2, 6e-2},
    {"packed",
     FI_SSD("bf16", "140") "cu_seqlens=i32:[0,1,1,66,140] initial_states=bf16:4x4x16x32 checkpoint_token_indices=i32:[0,-1,65,76] "
     "checkpoint_state_slots=i32:[2,0,1,0] checkpoint_states=bf16:3x4x16x32", "cpu", 0, 2e-2, 6e-2},
    {"small_steps", "x=bf16:2x70x8x40 dt=f32:2x70x8:uniform(0,0.01) A=f32:8:uniform(-1,0) B=bf16:2x70x1x16 C=bf16:2x70x1x16 return_final_states=False",
     "cpu", 0, 2e-2, 2e-2},
    {"odd_state", "x=bf16:1x9x2x5 dt=f32:1x9x2 A=f32:2:uniform(-4,0) B=bf16:1x9x1x7 C=bf16:1x9x1x7 dt_min=0.0"},
    {"f32", FI_SSD("f32", "70") "D=f32:4 dt_bias=f32:4 z=f32:1x70x4x16 cu_seqlens=i64:[0,0,33,70] initial_states=f32:3x4x16x32 "
     "state_dtype=float32 checkpoint_token_indices=i64:[0,20,33] checkpoint_state_slots=i64:[3,0,2] checkpoint_states=f32:4x4x16x32"},
    {"one_token", FI_SSD("f32", "3") "cu_seqlens=i32:[0,1,2,3] initial_states=f32:3x4x16x32 state_dtype=float32 checkpoint_token_indices=i32:[1,1,3] "
     "checkpoint_state_slots=i32:[2,0,-1] checkpoint_states=f32:4x4x16x32"},
    {"f16", FI_SSD("f16", "40") "state_dtype=float16"},
    {"wide", FI_SSD_WIDE("150", "4", "64", "128") "D=f32:4 z=bf16:1x150x4x64 dt_bias=f32:4 cu_seqlens=i32:[0,1,1,80,150] initial_states=f32:4x4x64x128 "
     "state_dtype=float32 checkpoint_token_indices=i32:[0,-1,77,144] checkpoint_state_slots=i32:[2,0,1,0] checkpoint_states=f32:3x4x64x128", "cpu",
     op::kAot, 2e-2, 6e-2},
    {"wide_tiles", FI_SSD_WIDE("130", "2", "80", "64") "D=f32:2x80 initial_states=bf16:1x2x80x64", "cpu", op::kAot, 2e-2, 6e-2},
    {"strong_decay", "x=bf16:2x70x2x64 dt=f32:2x70x2:uniform(0,200) A=f32:2:uniform(-16,-1) B=bf16:2x70x1x128 C=bf16:2x70x1x128 initial_states=f16:2x2x64x128 "
     "state_dtype=float16 dt_max=100.0", "cpu", 0, 2e-2, 6e-2},
    {"no_tokens", FI_SSD("bf16", "0") "state_dtype=float32 initial_states=f32:1x4x16x32"},
    {"bench_2048", "x=bf16:1x2048x32x64 dt=bf16:1x2048x32 A=f32:32:uniform(-4,-0.05) B=bf16:1x2048x2x128 C=bf16:1x2048x2x128 D=bf16:32 dt_softplus=True "
     "state_dtype=float32", "cpu", op::kBench},
};
#undef FI_SSD
#undef FI_SSD_WIDE
#define FI_RING(S, T, P, R) \
  "state=" S ":" P "x4x16x40 x_cache=" T ":" P "x4x" R "x16 B_cache=" T ":" P "x2x" R "x40 dt_cache=f32:" P "x4x" R ":uniform(0,1) "
#define FI_NEW(T, B, N) \
  "x=" T ":" B "x" N "x4x16 dt=" T ":" B "x" N "x4x1 A=f32:4x1x1:uniform(-4,-0.1) B=" T ":" B "x" N "x2x40 C=" T ":" B "x" N "x2x40 dt_softplus=True "
constexpr op::Case kCheckpointing[] = {
    {"bf16", FI_RING("bf16", "bf16", "5", "12") FI_NEW("bf16", "3", "4") "ring_start=i32:[3,11,0,7,9] prev_num_accepted_tokens=i32:[0,5,3,8,4] "
     "state_batch_indices=i32:[3,-1,1] D=bf16:4x16 dt_bias=f32:4x1 z=bf16:3x4x4x16", "cpu", op::kAot | op::kTrace},
    {"f32", FI_RING("f32", "f32", "3", "19") FI_NEW("f32", "3", "3") "ring_start=i32:[18,0,7] prev_num_accepted_tokens=i32:[16,0,13] D=f32:4x1"},
    {"packed", FI_RING("f32", "bf16", "4", "8") FI_NEW("bf16", "1", "6") "ring_start=i32:[1,7,0,2] prev_num_accepted_tokens=i32:[5,0,1,4] "
     "cu_seqlens=i32:[0,3,3,6] max_seqlen=3 state_batch_indices=i64:[2,1,0]"},
    {"random", FI_RING("f16", "bf16", "2", "6") FI_NEW("bf16", "2", "2") "ring_start=i32:[5,1] prev_num_accepted_tokens=i32:[4,3] rand_seed=i64:[77]",
     "cpu", 0, 2e-2, 1e-2},
    {"random_e4m3", "state=e4m3:2x4x16x40 x_cache=bf16:2x4x6x16 B_cache=bf16:2x2x6x40 dt_cache=f32:2x4x6:uniform(0,1) "
     "state_scale=f32:2x4x16:uniform(0.01,0.02) " FI_NEW("bf16", "2", "2") "ring_start=i32:[5,1] prev_num_accepted_tokens=i32:[4,3] rand_seed=i64:[77]",
     "cpu", 0, 1.3e-1, 1e-2},
    {"int8", "state=i8:2x4x16x40:randint(-127,127) x_cache=bf16:2x4x8x16 B_cache=bf16:2x2x8x40 dt_cache=f32:2x4x8:uniform(0,1) "
     "state_scale=f32:2x4x16:uniform(0.01,0.02) " FI_NEW("bf16", "2", "2") "ring_start=i32:[5,1] prev_num_accepted_tokens=i32:[4,3]"},
    {"shared_slot", FI_RING("f32", "f32", "2", "8") FI_NEW("f32", "2", "2") "ring_start=i32:[5,1] prev_num_accepted_tokens=i32:[6,3] "
     "state_batch_indices=i32:[1,1]"},
    {"no_rows", FI_RING("f32", "f32", "2", "8") FI_NEW("f32", "0", "2") "ring_start=i32:[5,1] prev_num_accepted_tokens=i32:[4,3]"},
};
constexpr op::Case kMaterialize[] = {
    {"bf16", FI_RING("bf16", "bf16", "6", "12") "A=bf16:4:uniform(-4,-0.1) src_slots=i32:[0,1,-1,2] dst_slots=i32:[3,4,0,5] ring_start=i32:[3,11,0,7] "
     "replay_prefix_len=i32:[0,5,3,8]", "cpu", op::kAot},
    {"f32", FI_RING("f32", "bf16", "4", "20") "A=f32:4:uniform(-4,-0.1) src_slots=i64:[0,3] dst_slots=i64:[3,2] ring_start=i64:[19,4] replay_prefix_len=i64:[16,1]"},
};
#undef FI_RING
#undef FI_NEW
}  // namespace
std::span<const op::Case> checkpointing_ssu_cases() { return kCheckpointing; }
std::span<const op::Case> replayssm_materialize_layer_cases() { return kMaterialize; }
std::span<const op::Case> ssd_chunk_scan_cases() { return kSsdChunkScan; }
std::span<const op::Case> selective_state_update_cases() { return kSelectiveStateUpdate; }
}  // namespace flashinfer::ops::linear_attention
