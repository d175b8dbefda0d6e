// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer::ops::attention {
namespace {
// The LSE is compared with the tolerance of f32, 1e-5, whatever q is: it comes from probabilities that are not rounded.
constexpr op::Case kSingleDecode[] = {
    {"gqa3", "q=bf16:9x64 k=bf16:130x3x64 v=bf16:130x3x64 return_lse=True", "cpu", op::kAot | op::kTrace},
    {"hnd_f16", "q=f16:8x128 k=f16:2x77x128 v=f16:2x77x128 kv_layout='HND' return_lse=True", "cpu", op::kAot},
    {"f32", "q=f32:4x80 k=f32:65x4x80 v=f32:65x4x80", "cpu", op::kAot},
    {"group16", "q=bf16:16x96 k=bf16:33x1x96 v=bf16:33x1x96"},
    {"one_key", "q=bf16:4x64 k=bf16:1x2x64 v=bf16:1x2x64 return_lse=True"},
    {"no_keys", "q=bf16:4x64 k=bf16:0x2x64 v=bf16:0x2x64 return_lse=True"},
    {"window_cap", "q=bf16:4x64 k=bf16:200x2x64 v=bf16:200x2x64 window_left=70 logits_soft_cap=2.5 return_lse=True"},
    {"scales", "q=bf16:4x64 k=bf16:50x2x64 v=bf16:50x2x64 q_scale=0.5 k_scale=3.0 v_scale=0.25 sm_scale=0.2 return_lse=True"},
    {"rope", "q=bf16:4x64 k=bf16:150x2x64 v=bf16:150x2x64 pos_encoding_mode='ROPE_LLAMA' rope_scale=2.0 rope_theta=500000.0", "cpu", op::kAot},
    {"alibi_12_heads", "q=f32:12x64 k=f32:150x12x64 v=f32:150x12x64 pos_encoding_mode='ALIBI' return_lse=True"},
    {"fp8_cache", "q=bf16:4x64 k=e4m3:50x2x64 v=e4m3:50x2x64 k_scale=0.5 v_scale=2.0"},
    {"fp8_cache_d128", "q=bf16:8x128 k=e4m3:300x2x128 v=e4m3:300x2x128 k_scale=0.5 v_scale=2.0 return_lse=True", "cpu", op::kAot},
    {"fp8_query", "q=e4m3:8x64 k=e4m3:150x2x64 v=e4m3:150x2x64 q_scale=2.0 k_scale=0.5 v_scale=3.0 return_lse=True"},
    {"dims_192_128", "q=bf16:4x192 k=bf16:99x2x192 v=bf16:99x2x128"},
    {"d512_cut", "q=bf16:8x512 k=bf16:300x2x512 v=bf16:300x2x512 return_lse=True", "cpu", op::kAot},
    {"fp8_cache_d512", "q=bf16:8x512 k=e4m3:150x2x512 v=e4m3:150x2x512 k_scale=0.5 v_scale=2.0 return_lse=True"},
    {"odd_dims", "q=bf16:4x33 k=bf16:99x2x33 v=bf16:99x2x17"},
    {"long", "q=bf16:6x64 k=bf16:4500x2x64 v=bf16:4500x2x64 return_lse=True"},
    {"bench", "q=bf16:32x128 k=bf16:16384x8x128 v=bf16:16384x8x128", "cpu", op::kBench},
};
constexpr op::Case kSinglePrefill[] = {
    {"causal", "q=bf16:70x6x64 k=bf16:130x2x64 v=bf16:130x2x64 causal=True return_lse=True", "cpu", op::kAot | op::kTrace},
    {"not_causal_f16", "q=f16:17x4x128 k=f16:90x4x128 v=f16:90x4x128 return_lse=True", "cpu", op::kAot},
    {"causal_d128", "q=bf16:70x4x128 k=bf16:130x2x128 v=bf16:130x2x128 causal=True return_lse=True", "cpu", op::kAot},
    {"f32_hnd", "q=f32:17x4x64 k=f32:2x90x64 v=f32:2x90x64 causal=True kv_layout='HND' return_lse=True", "cpu", op::kAot},
    {"more_rows_than_keys", "q=bf16:40x4x64 k=bf16:9x2x64 v=bf16:9x2x64 causal=True return_lse=True"},
    {"no_rows", "q=bf16:0x4x64 k=bf16:9x2x64 v=bf16:9x2x64 causal=True return_lse=True"},
    {"no_keys", "q=bf16:3x4x64 k=bf16:0x2x64 v=bf16:0x2x64 return_lse=True"},
    {"mask", "q=bf16:33x4x64 k=bf16:99x2x64 v=bf16:99x2x64 custom_mask=bool:33x99 causal=True return_lse=True"},
    {"mask_flat", "q=bf16:33x4x64 k=bf16:99x2x64 v=bf16:99x2x64 custom_mask=bool:3267 return_lse=True"},
    {"mask_all_hidden", "q=bf16:5x4x64 k=bf16:70x2x64 v=bf16:70x2x64 custom_mask=bool:5x70:const(0) return_lse=True"},
    {"mask_window", "q=bf16:33x4x64 k=bf16:199x2x64 v=bf16:199x2x64 custom_mask=bool:33x199 window_left=40 return_lse=True"},
    {"packed_mask", "q=f32:33x4x64 k=f32:99x2x64 v=f32:99x2x64 packed_custom_mask=u8:409:randint(0,256) return_lse=True"},
    {"window", "q=bf16:90x4x64 k=bf16:300x2x64 v=bf16:300x2x64 causal=True window_left=64 return_lse=True"},
    {"window_not_causal", "q=bf16:90x4x64 k=bf16:300x2x64 v=bf16:300x2x64 window_left=64 return_lse=True"},
    {"cap_window", "q=f16:30x4x64 k=f16:200x2x64 v=f16:200x2x64 causal=True window_left=30 logits_soft_cap=5.0 return_lse=True"},
    // Integers whose products sum below 2^24 are exact in f32 on every instruction set, so that the bound is one of the
    // exponents alone: logits near 72,500, in half of the rows two of them within 4. (Of normal values, sums as large round
    // by 0.003, by 0.008 where multiply-adds are not fused: 6e-5 of an output whose two largest logits are 6 apart.)
    {"large_logits", "q=f32:9x4x64:randint(29000,29004) k=f32:100x2x64:randint(-2,3) v=f32:100x2x64 causal=True return_lse=True"},
    {"equal_logits_far_down", "q=f32:9x4x64:const(-700) k=f32:100x2x64:const(44) v=f32:100x2x64 causal=True return_lse=True"},
    {"negative_scale", "q=f32:9x4x64 k=f32:100x2x64 v=f32:100x2x64 sm_scale=-0.3 return_lse=True"},
    {"strided", "q=bf16:30x4x64^pad24 k=bf16:70x2x64^pad8 v=bf16:70x2x64^perm(1,0,2) causal=True out=bf16:30x4x64^pad8"},
    {"o_dtype", "q=bf16:30x4x64 k=bf16:70x2x64 v=bf16:70x2x64 o_dtype=float32 causal=True", "cpu", 0, 1e-2, 1e-2},
    {"mixed_cache", "q=bf16:30x4x64 k=f16:70x2x64 v=f16:70x2x64 causal=True"},
    {"fp8_cache", "q=bf16:70x4x64 k=e4m3:170x2x64 v=e4m3:170x2x64 k_scale=0.5 v_scale=2.0 causal=True return_lse=True"},
    {"fp8_cache_d256", "q=bf16:24x4x256 k=e4m3:130x2x256 v=e4m3:130x2x256 k_scale=0.5 v_scale=2.0 causal=True return_lse=True"},
    {"fp8_cache_f16_d80", "q=f16:30x4x80 k=e5m2:170x2x80 v=e5m2:170x2x80 causal=True return_lse=True"},
    {"fp8_query", "q=e4m3:70x4x64 k=e4m3:170x2x64 v=e4m3:170x2x64 scale_q=f32:4:uniform(0.1,2) scale_k=f32:2:uniform(0.1,2) scale_v=f32:2:uniform(0.1,2) "
                  "causal=True return_lse=True"},
    {"fp8_query_even_scales", "q=e4m3:70x4x64 k=e4m3:170x2x64 v=e4m3:170x2x64 scale_q=f32:4:const(0.5) scale_k=f32:2:const(3) scale_v=f32:2:const(2) "
                              "window_left=50 causal=True return_lse=True"},
    {"fp8_query_d128", "q=e4m3:70x4x128 k=e4m3:170x2x128 v=e4m3:170x2x128 k_scale=0.5 v_scale=2.0 causal=True return_lse=True"},
    {"e5m2_query_rope", "q=e5m2:70x4x64 k=bf16:170x2x64 v=bf16:170x2x64 pos_encoding_mode='ROPE_LLAMA' causal=True return_lse=True"},
    {"nvfp4_cache", "q=bf16:70x4x64:normal(0,0.25) k=u8:170x2x32:randint(0,256) v=u8:170x2x32:randint(0,256) kv_cache_sf=(e4m3:170x2x4,e4m3:170x2x4) "
                    "k_scale=0.5 v_scale=2.0 causal=True return_lse=True"},
    {"nvfp4_cache_f16_d80", "q=f16:30x4x80:normal(0,0.25) k=u8:170x2x40:randint(0,256) v=u8:170x2x40:randint(0,256) kv_cache_sf=(e4m3:170x2x5,e4m3:170x2x5) "
                            "causal=True return_lse=True"},
    {"dims_192_128", "q=bf16:30x4x192 k=bf16:70x2x192 v=bf16:70x2x128 causal=True return_lse=True"},
    {"dims_64_128", "q=f16:30x4x64 k=f16:70x2x64 v=f16:70x2x128 causal=True return_lse=True", "cpu", op::kAot},
    {"f32_dims_320_512", "q=f32:9x2x320 k=f32:70x1x320 v=f32:70x1x512 causal=True return_lse=True", "cpu", op::kAot},
    {"d512", "q=bf16:40x4x512 k=bf16:130x2x512 v=bf16:130x2x512 causal=True return_lse=True", "cpu", op::kAot},
    {"d256", "q=bf16:30x4x256 k=bf16:70x2x256 v=bf16:70x2x256 causal=True"},
    {"group5_d80", "q=bf16:30x10x80 k=bf16:70x2x80 v=bf16:70x2x80 causal=True"},
    {"group7_d96", "q=f16:30x7x96 k=f16:70x1x96 v=f16:70x1x96 causal=True"},
    {"group16", "q=bf16:30x16x64 k=bf16:70x1x64 v=bf16:70x1x64 causal=True"},
    {"rope", "q=bf16:30x4x64 k=bf16:170x2x64 v=bf16:170x2x64 causal=True pos_encoding_mode='ROPE_LLAMA' return_lse=True"},
    {"alibi", "q=bf16:30x4x64 k=bf16:170x2x64 v=bf16:170x2x64 causal=True pos_encoding_mode='ALIBI' return_lse=True"},
    {"alibi_cap", "q=f32:30x4x64 k=f32:170x2x64 v=f32:170x2x64 causal=True pos_encoding_mode='ALIBI' logits_soft_cap=4.0"},
    {"chunks", "q=bf16:20x2x64 k=bf16:4200x1x64 v=bf16:4200x1x64 causal=True return_lse=True"},
    {"bench", "q=bf16:1024x8x128 k=bf16:1024x2x128 v=bf16:1024x2x128 causal=True", "cpu", op::kBench},
};
#define FI_WS "init.float_workspace_buffer=u8:0 "
// Requests of 3, 0, 1 and 2 pages; the second is empty.
#define FI_TABLE "plan.indptr=i32:[0,3,3,4,6] plan.indices=i32:[5,1,3,6,0,2] "
#define FI_BF16 "plan.q_data_type=bfloat16 "
constexpr op::Case kBatchDecode[] = {
    {"page16", FI_WS FI_TABLE FI_BF16 "plan.last_page_len=i32:[16,1,1,7] plan.num_qo_heads=9 plan.num_kv_heads=3 plan.head_dim=64 plan.page_size=16 "
               "q=bf16:4x9x64 paged_kv_cache=bf16:7x2x16x3x64 return_lse=True", "cpu", op::kAot | op::kTrace},
    {"page1", FI_WS FI_TABLE FI_BF16 "plan.last_page_len=i32:[1,1,1,1] plan.num_qo_heads=8 plan.num_kv_heads=2 plan.head_dim=128 plan.page_size=1 "
              "q=bf16:4x8x128 paged_kv_cache=bf16:7x2x2x128 return_lse=True"},
    {"page1_pair_hnd", "init.kv_layout='HND' " FI_WS FI_TABLE FI_BF16 "plan.last_page_len=i32:[1,1,1,1] plan.num_qo_heads=8 plan.num_kv_heads=2 plan.head_dim=64 "
                       "plan.page_size=1 q=bf16:4x8x64 paged_kv_cache=(bf16:7x2x64,bf16:7x2x64)"},
    {"page5_f16", FI_WS FI_TABLE "plan.last_page_len=i32:[5,1,1,3] plan.num_qo_heads=5 plan.num_kv_heads=1 plan.head_dim=80 plan.page_size=5 "
                  "q=f16:4x5x80 paged_kv_cache=f16:7x2x5x1x80 return_lse=True", "cpu", op::kAot},
    {"page64_f32", FI_WS FI_TABLE "plan.q_data_type=float32 plan.last_page_len=i32:[64,1,9,33] plan.num_qo_heads=7 plan.num_kv_heads=1 plan.head_dim=96 "
                   "plan.page_size=64 q=f32:4x7x96 paged_kv_cache=f32:7x2x64x1x96 return_lse=True", "cpu", op::kAot},
    {"hnd_pair_strided", "init.kv_layout='HND' " FI_WS FI_TABLE FI_BF16 "plan.last_page_len=i32:[16,1,1,7] plan.num_qo_heads=16 plan.num_kv_heads=2 plan.head_dim=64 "
                         "plan.page_size=16 q=bf16:4x16x64 paged_kv_cache=(bf16:7x2x16x64^pad8,bf16:7x2x16x64^perm(0,2,1,3)) return_lse=True"},
    {"group16_d256", FI_WS FI_TABLE FI_BF16 "plan.last_page_len=i32:[4,1,1,2] plan.num_qo_heads=16 plan.num_kv_heads=1 plan.head_dim=256 plan.page_size=4 "
                     "q=bf16:4x16x256 paged_kv_cache=bf16:7x2x4x1x256"},
    {"window_cap_scales", FI_WS FI_TABLE FI_BF16 "plan.last_page_len=i32:[64,1,9,33] plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim=64 plan.page_size=64 "
                          "plan.window_left=70 plan.logits_soft_cap=3.0 plan.sm_scale=0.2 q=bf16:4x4x64 paged_kv_cache=bf16:7x2x64x2x64 "
                          "q_scale=2.0 k_scale=0.5 v_scale=3.0 window_left=70 return_lse=True"},
    {"rope", FI_WS FI_TABLE FI_BF16 "plan.last_page_len=i32:[16,1,1,7] plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim=64 plan.page_size=16 "
             "plan.pos_encoding_mode='ROPE_LLAMA' plan.rope_theta=100000.0 q=bf16:4x4x64 paged_kv_cache=bf16:7x2x16x2x64"},
    {"three_tokens_each", FI_WS FI_BF16 "plan.indptr=i32:[0,3,4,6] plan.indices=i32:[5,1,3,6,0,2] plan.last_page_len=i32:[16,3,7] plan.num_qo_heads=4 "
                          "plan.num_kv_heads=2 plan.head_dim=64 plan.page_size=16 plan.q_len_per_req=3 q=bf16:9x4x64 "
                          "paged_kv_cache=bf16:7x2x16x2x64 return_lse=True"},
    {"rows_of_the_run", "init.backend='trtllm-gen' " FI_WS "plan.indptr=i32:[0,3,5] plan.indices=i32:[5,1,3,6,0] plan.last_page_len=i32:[16,7] " FI_BF16
                        "plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim=64 plan.page_size=16 q=bf16:6x4x64 paged_kv_cache=bf16:7x2x16x2x64 return_lse=True"},
    {"o_float32", FI_WS FI_TABLE FI_BF16 "plan.o_data_type=float32 plan.last_page_len=i32:[16,1,1,7] plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim=64 "
                  "plan.page_size=16 q=bf16:4x4x64 paged_kv_cache=bf16:7x2x16x2x64", "cpu", 0, 1e-2, 1e-2},
    {"o_e4m3", FI_WS FI_TABLE FI_BF16 "plan.o_data_type=float8_e4m3fn plan.last_page_len=i32:[16,1,1,7] plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim=64 "
               "plan.page_size=16 q=bf16:4x4x64 paged_kv_cache=bf16:7x2x16x2x64 v_scale=3.0", "cpu", 0, 0.125, 0.02},
    {"group8_d112_alibi", FI_WS FI_TABLE FI_BF16 "plan.pos_encoding_mode='ALIBI' plan.last_page_len=i32:[64,1,9,33] plan.num_qo_heads=16 plan.num_kv_heads=2 "
                          "plan.head_dim=112 plan.page_size=64 q=bf16:4x16x112 paged_kv_cache=bf16:7x2x64x2x112 return_lse=True"},
    {"alibi_slopes", FI_WS FI_TABLE FI_BF16 "plan.pos_encoding_mode='ALIBI' plan.alibi_slopes=f32:[0.5,0.001,0.25,0.0625] plan.last_page_len=i32:[16,1,1,7] "
                     "plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim=64 plan.page_size=16 q=bf16:4x4x64 paged_kv_cache=bf16:7x2x16x2x64 return_lse=True"},
    {"group13_window", FI_WS FI_TABLE FI_BF16 "plan.window_left=37 plan.last_page_len=i32:[64,1,9,33] plan.num_qo_heads=13 plan.num_kv_heads=1 "
                       "plan.head_dim=64 plan.page_size=64 q=bf16:4x13x64 paged_kv_cache=bf16:7x2x64x1x64 window_left=37 return_lse=True"},
    {"f16_group6_cap", FI_WS FI_TABLE "plan.logits_soft_cap=3.0 plan.last_page_len=i32:[64,1,9,33] plan.num_qo_heads=12 plan.num_kv_heads=2 "
                       "plan.head_dim=128 plan.page_size=64 q=f16:4x12x128 paged_kv_cache=f16:7x2x64x2x128 return_lse=True"},
    {"e4m3_group16_d80", FI_WS FI_TABLE FI_BF16 "plan.kv_data_type=float8_e4m3fn plan.last_page_len=i32:[64,1,9,33] plan.num_qo_heads=16 plan.num_kv_heads=1 "
                         "plan.head_dim=80 plan.page_size=64 q=bf16:4x16x80 paged_kv_cache=e4m3:7x2x64x1x80 return_lse=True"},
    {"e5m2_group4", FI_WS FI_TABLE FI_BF16 "plan.kv_data_type=float8_e5m2 plan.last_page_len=i32:[64,1,9,33] plan.num_qo_heads=8 plan.num_kv_heads=2 "
                    "plan.head_dim=128 plan.page_size=64 q=bf16:4x8x128 paged_kv_cache=e5m2:7x2x64x2x128 return_lse=True"},
    {"nvfp4_group4", FI_WS FI_TABLE FI_BF16 "plan.kv_data_type=uint8 plan.last_page_len=i32:[64,1,9,33] plan.num_qo_heads=8 plan.num_kv_heads=2 "
                     "plan.head_dim=128 plan.page_size=64 q=bf16:4x8x128:normal(0,0.25) paged_kv_cache=(u8:7x64x2x64:randint(0,256),"
                     "u8:7x64x2x64:randint(0,256)) kv_cache_sf=(e4m3:7x64x2x8,e4m3:7x64x2x8) return_lse=True"},
    {"nvfp4_group1_window", FI_WS FI_TABLE FI_BF16 "plan.kv_data_type=uint8 plan.last_page_len=i32:[64,1,9,33] plan.window_left=37 plan.num_qo_heads=2 "
                            "plan.num_kv_heads=2 plan.head_dim=128 plan.page_size=64 q=bf16:4x2x128:normal(0,0.25) paged_kv_cache=("
                            "u8:7x64x2x64:randint(0,256),u8:7x64x2x64:randint(0,256)) kv_cache_sf=(e4m3:7x64x2x8,e4m3:7x64x2x8) return_lse=True window_left=37"},
    {"nvfp4_group3_d256_hnd", "init.kv_layout='HND' " FI_WS FI_TABLE FI_BF16 "plan.kv_data_type=uint8 plan.last_page_len=i32:[64,1,9,33] "
                              "plan.num_qo_heads=3 plan.num_kv_heads=1 plan.head_dim=256 plan.page_size=64 q=bf16:4x3x256:normal(0,0.25) paged_kv_cache=("
                              "u8:7x1x64x128:randint(0,256),u8:7x1x64x128:randint(0,256)) kv_cache_sf=(e4m3:7x1x64x16,e4m3:7x1x64x16) return_lse=True"},
    {"nvfp4_group6_d64", FI_WS FI_TABLE FI_BF16 "plan.kv_data_type=uint8 plan.last_page_len=i32:[64,1,9,33] plan.num_qo_heads=6 plan.num_kv_heads=1 "
                         "plan.head_dim=64 plan.page_size=64 q=bf16:4x6x64:normal(0,0.25) paged_kv_cache=(u8:7x64x1x32:randint(0,256),"
                         "u8:7x64x1x32:randint(0,256)) kv_cache_sf=(e4m3:7x64x1x4,e4m3:7x64x1x4) return_lse=True"},
    {"fp8_cache", FI_WS FI_TABLE FI_BF16 "plan.kv_data_type=float8_e4m3fn plan.last_page_len=i32:[16,1,1,7] plan.num_qo_heads=4 plan.num_kv_heads=2 "
                  "plan.head_dim=64 plan.page_size=16 q=bf16:4x4x64 paged_kv_cache=e4m3:7x2x16x2x64 k_scale=0.5 v_scale=2.0"},
    {"fp8_query", FI_WS FI_TABLE "plan.q_data_type=float8_e4m3fn plan.last_page_len=i32:[16,1,1,7] plan.num_qo_heads=4 plan.num_kv_heads=2 "
                  "plan.head_dim=64 plan.page_size=16 plan.window_left=20 q=e4m3:4x4x64 paged_kv_cache=e4m3:7x2x16x2x64 q_scale=2.0 k_scale=0.5 v_scale=3.0 "
                  "return_lse=True"},
    {"int64_tables", FI_WS FI_BF16 "plan.indptr=i64:[0,3,3,4,6] plan.indices=i64:[5,1,3,6,0,2] plan.last_page_len=i64:[16,1,1,7] plan.num_qo_heads=4 "
                     "plan.num_kv_heads=2 plan.head_dim=64 plan.page_size=16 q=bf16:4x4x64 paged_kv_cache=bf16:7x2x16x2x64"},
    {"sinks", FI_WS FI_TABLE FI_BF16 "plan.last_page_len=i32:[16,1,1,7] plan.num_qo_heads=6 plan.num_kv_heads=2 plan.head_dim=64 plan.page_size=16 "
              "q=bf16:4x6x64 paged_kv_cache=bf16:7x2x16x2x64 sinks=f32:6:normal(0,3) return_lse=True"},
    {"block_tables", FI_WS FI_TABLE FI_BF16 "plan.last_page_len=i32:[16,1,1,7] plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim=64 plan.page_size=16 "
                     "plan.seq_lens=i32:[48,0,1,23] q=bf16:4x4x64 paged_kv_cache=bf16:7x2x16x2x64"},
    {"no_requests", FI_WS FI_BF16 "plan.indptr=i32:[0] plan.indices=i32:[] plan.last_page_len=i32:[] plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim=64 "
                    "plan.page_size=16 q=bf16:0x4x64 paged_kv_cache=bf16:7x2x16x2x64 return_lse=True"},
    {"bench_8x2048", FI_WS FI_BF16 "plan.indptr=i32:9:range(0) plan.indices=i32:8:perm plan.last_page_len=i32:8:const(2048) plan.num_qo_heads=32 plan.num_kv_heads=8 "
                     "plan.head_dim=128 plan.page_size=2048 q=bf16:8x32x128 paged_kv_cache=bf16:8x2x2048x8x128", "cpu", op::kBench},
};
#undef FI_TABLE
#define FI_TABLE "plan.paged_kv_indptr=i32:[0,3,3,4,6] plan.paged_kv_indices=i32:[5,1,3,6,0,2] "
#define FI_P16 "plan.paged_kv_last_page_len=i32:[16,1,1,7] plan.page_size=16 "
#define FI_42 "plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim_qk=64 "
#define FI_CACHE "paged_kv_cache=bf16:7x2x16x2x64 "
// 48, 0, 1 and 23 keys; rows: a prefill, an empty request, a decode row, more rows than keys.
#define FI_ROWS "plan.qo_indptr=i32:[0,20,23,24,54] "
// A request of 30 tokens, all queried, whose last 20 are items of 5, 6 and 6 tokens behind delimiters; one of 23, 13 queried, 11 in items.
#define FI_POS "plan.prefix_len_ptr=u32:[10,12] plan.token_pos_in_items_len=20 plan.max_item_len_ptr=u16:[6,7] plan.token_pos_in_items_ptr=u16:[0,1,2,3,4,5,0,1,2,3,4,5,6,0,1,2,3,4,5,6," \
               "0,1,2,3,4,5,6,7,0,1,2,0,0,0,0,0,0,0,0,0] "
#define FI_ITEMS FI_POS "plan.qo_indptr=i32:[0,30,43] plan.paged_kv_indptr=i32:[0,2,4] plan.paged_kv_indices=i32:[5,1,6,0] plan.paged_kv_last_page_len=i32:[14,7] plan.page_size=16 "
constexpr op::Case kBatchPrefill[] = {
    {"causal", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 "plan.num_qo_heads=9 plan.num_kv_heads=3 plan.head_dim_qk=64 plan.causal=True q=bf16:54x9x64 "
               "paged_kv_cache=bf16:7x2x16x3x64 return_lse=True", "cpu", op::kAot | op::kTrace},
    {"not_causal", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "q=bf16:54x4x64 " FI_CACHE "return_lse=True"},
    {"lse_ln_hn", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.causal=True q=bf16:54x4x64 " FI_CACHE "return_lse=True lse_base='ln' lse_layout='HN'"},
    {"mask", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.custom_mask=bool:1651 plan.causal=True q=bf16:54x4x64 " FI_CACHE "return_lse=True"},
    {"mask_window", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.custom_mask=bool:1651 plan.window_left=9 q=bf16:54x4x64 " FI_CACHE "return_lse=True"},
    {"packed_mask", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.packed_custom_mask=u8:208:randint(0,256) q=bf16:54x4x64 " FI_CACHE "return_lse=True"},
    {"window", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.causal=True plan.window_left=9 q=bf16:54x4x64 " FI_CACHE "window_left=9 return_lse=True"},
    {"cap_scales", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.causal=True plan.logits_soft_cap=3.0 q=bf16:54x4x64 " FI_CACHE
                   "q_scale=2.0 k_scale=0.5 v_scale=3.0 return_lse=True"},
    {"o_e4m3", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.causal=True plan.o_data_type=float8_e4m3fn q=bf16:54x4x64 " FI_CACHE "v_scale=3.0 return_lse=True", "cpu", 0, 0.125, 0.02},
    {"rope", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.pos_encoding_mode='ROPE_LLAMA' q=bf16:54x4x64 " FI_CACHE},
    {"alibi_slopes", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.pos_encoding_mode='ALIBI' plan.alibi_slopes=f32:[0.5,0.001,0.25,0.0625] plan.causal=True "
                     "q=bf16:54x4x64 " FI_CACHE "return_lse=True"},
    {"nvfp4_page16", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.causal=True plan.kv_data_type=uint8 q=bf16:54x4x64:normal(0,0.25) "
                     "paged_kv_cache=(u8:7x16x2x32:randint(0,256),u8:7x16x2x32:randint(0,256)) kv_cache_sf=(e4m3:7x16x2x4,e4m3:7x16x2x4) return_lse=True"},
    {"f16_page5_hnd", "init.kv_layout='HND' " FI_WS FI_TABLE FI_ROWS "plan.paged_kv_last_page_len=i32:[5,1,1,2] plan.page_size=5 " FI_42
                      "plan.causal=True q=f16:54x4x64 paged_kv_cache=(f16:7x2x5x64,f16:7x2x5x64^pad8) return_lse=True", "cpu", op::kAot},
    {"f32_page1", FI_WS FI_TABLE FI_ROWS "plan.paged_kv_last_page_len=i32:[1,1,1,1] plan.page_size=1 " FI_42
                  "plan.q_data_type=float32 plan.causal=True q=f32:54x4x64 paged_kv_cache=f32:7x2x2x64 return_lse=True", "cpu", op::kAot},
    {"dims_192_128_page64", FI_WS FI_TABLE FI_ROWS "plan.paged_kv_last_page_len=i32:[64,1,64,7] plan.page_size=64 " FI_BF16
                            "plan.num_qo_heads=8 plan.num_kv_heads=1 plan.head_dim_qk=192 plan.head_dim_vo=128 plan.causal=True q=bf16:54x8x192 "
                            "paged_kv_cache=(bf16:7x64x1x192,bf16:7x64x1x128) return_lse=True"},
    {"strided_q", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.causal=True q=bf16:54x4x64^pad64 " FI_CACHE "out=bf16:54x4x64^pad8"},
    {"lengths_given", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.causal=True plan.seq_lens=i32:[48,0,1,23] plan.seq_lens_q=i32:[20,3,1,30] "
                      "q=bf16:54x4x64 " FI_CACHE},
    {"sinks_window", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.causal=True plan.window_left=9 q=bf16:54x4x64 " FI_CACHE "sinks=f32:4:normal(0,3) return_lse=True"},
    {"sinks_mask_cap", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_42 "plan.custom_mask=bool:1651 plan.logits_soft_cap=2.0 q=bf16:54x4x64 " FI_CACHE "sinks=f32:4 return_lse=True"},
    {"fp8_query_mask", FI_WS FI_TABLE FI_ROWS FI_P16 FI_42 "plan.q_data_type=float8_e4m3fn plan.custom_mask=bool:1651 q=e4m3:54x4x64 "
                       "paged_kv_cache=e4m3:7x2x16x2x64 q_scale=2.0 k_scale=0.5 v_scale=3.0 return_lse=True"},
    {"items", FI_WS FI_ITEMS FI_BF16 FI_42 "q=bf16:43x4x64 " FI_CACHE "return_lse=True"},
    {"items_window_sinks", FI_WS FI_ITEMS FI_BF16 FI_42 "plan.window_left=12 q=bf16:43x4x64 " FI_CACHE "sinks=f32:4 return_lse=True"},
    {"nothing", FI_WS "plan.qo_indptr=i32:[0] plan.paged_kv_indptr=i32:[0] plan.paged_kv_indices=i32:[] plan.paged_kv_last_page_len=i32:[] plan.page_size=16 " FI_BF16 FI_42
                "q=bf16:0x4x64 " FI_CACHE "return_lse=True"},
};
#undef FI_TABLE
#define FI_TABLE "plan.qo_indptr=i32:[0,20,23,24,54] plan.kv_indptr=i32:[0,48,48,49,72] "
constexpr op::Case kBatchRagged[] = {
    {"causal", FI_WS FI_TABLE FI_BF16 FI_42 "plan.causal=True q=bf16:54x4x64 k=bf16:72x2x64 v=bf16:72x2x64 return_lse=True", "cpu", op::kAot},
    {"not_causal_hnd", "init.kv_layout='HND' " FI_WS FI_TABLE FI_42 "q=f16:54x4x64 k=f16:2x72x64 v=f16:2x72x64 return_lse=True", "cpu", op::kAot},
    {"dims_192_128", FI_WS FI_TABLE FI_BF16 "plan.num_qo_heads=8 plan.num_kv_heads=8 plan.head_dim_qk=192 plan.head_dim_vo=128 plan.causal=True q=bf16:54x8x192 "
                     "k=bf16:72x8x192 v=bf16:72x8x128 return_lse=True"},
    {"mask_scales", FI_WS FI_TABLE FI_BF16 FI_42 "plan.custom_mask=bool:1651 q=bf16:54x4x64 k=bf16:72x2x64 v=bf16:72x2x64 q_scale=2.0 k_scale=0.5 v_scale=3.0 "
                    "return_lse=True"},
    {"packed_mask", FI_WS FI_TABLE FI_BF16 FI_42 "plan.packed_custom_mask=u8:208:randint(0,256) q=bf16:54x4x64 k=bf16:72x2x64 v=bf16:72x2x64 return_lse=True"},
    {"fused_qkv", FI_WS FI_TABLE FI_BF16 FI_42 "plan.causal=True q=bf16:54x4x64^pad256 k=bf16:72x2x64^pad128 v=bf16:72x2x64^pad64 return_lse=True lse_base='ln'"},
    {"fp8", FI_WS FI_TABLE FI_BF16 FI_42 "plan.kv_data_type=float8_e5m2 plan.causal=True q=bf16:54x4x64 k=e5m2:72x2x64 v=e5m2:72x2x64 k_scale=0.5 v_scale=2.0"},
    {"fp8_query", FI_WS FI_TABLE FI_42 "plan.q_data_type=float8_e5m2 plan.causal=True plan.logits_soft_cap=4.0 q=e5m2:54x4x64 k=e5m2:72x2x64 v=e5m2:72x2x64 "
                  "q_scale=2.0 k_scale=0.5 v_scale=2.0 return_lse=True"},
    {"more_keys_than_requests_have", FI_WS FI_TABLE FI_BF16 FI_42 "plan.causal=True q=bf16:54x4x64 k=bf16:80x2x64 v=bf16:80x2x64 return_lse=True"},
    {"cudnn_elements", "init.backend='cudnn' " FI_WS "plan.qo_indptr=i32:[0,5120,5888,6144,13824] plan.kv_indptr=i32:[0,6144,6144,6272,9216] " FI_BF16 FI_42
                       "plan.seq_lens_q=i32:[20,3,1,30] plan.seq_lens=i32:[48,0,1,23] plan.o_indptr=i32:[0,5120,5888,6144,13824] "
                       "plan.v_indptr=i32:[0,6144,6144,6272,9216] q=bf16:54x4x64 k=bf16:72x2x64 v=bf16:72x2x64 return_lse=True"},
    {"items", FI_WS FI_POS "plan.qo_indptr=i32:[0,30,43] plan.kv_indptr=i32:[0,30,53] " FI_BF16 FI_42 "q=bf16:43x4x64 k=bf16:53x2x64 v=bf16:53x2x64 return_lse=True"},
    {"nothing", FI_WS "plan.qo_indptr=i32:[0,0] plan.kv_indptr=i32:[0,0] " FI_BF16 FI_42 "q=bf16:0x4x64 k=bf16:0x2x64 v=bf16:0x2x64 return_lse=True"},
};
#undef FI_TABLE
#undef FI_P16
#undef FI_POS
#undef FI_ITEMS
#undef FI_42
#undef FI_CACHE
#undef FI_ROWS
#undef FI_WS
#undef FI_BF16
}  // namespace
std::span<const op::Case> single_decode_cases() { return kSingleDecode; }
std::span<const op::Case> single_prefill_cases() { return kSinglePrefill; }
std::span<const op::Case> batch_decode_cases() { return kBatchDecode; }
std::span<const op::Case> batch_prefill_cases() { return kBatchPrefill; }
std::span<const op::Case> batch_ragged_cases() { return kBatchRagged; }
}  // namespace flashinfer::ops::attention
