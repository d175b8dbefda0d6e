// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/ops/mla/cases.h"

namespace flashinfer::ops::mla {
namespace {
#define FI_WS "init.float_workspace_buffer=u8:0 "
// Requests of 3, 0, 1 and 2 pages; the second is empty.
#define FI_TABLE "plan.kv_indptr=i32:[0,3,3,4,6] plan.kv_indices=i32:[5,1,3,6,0,2] "
#define FI_DECODE "plan.qo_indptr=i32:5:range(0) "
// A prefill, an empty request, a decode row, more rows than keys.
#define FI_ROWS "plan.qo_indptr=i32:[0,20,23,24,54] "
#define FI_P16 "plan.kv_len_arr=i32:[48,0,1,23] plan.page_size=16 "
#define FI_TYPES(q, kv) "plan.sm_scale=0.0721688 plan.q_data_type=" q " plan.kv_data_type=" kv " "
#define FI_BF16 FI_TYPES("bfloat16", "bfloat16")
#define FI_576(h) "plan.num_heads=" h " plan.head_dim_ckv=512 plan.head_dim_kpe=64 "
#define FI_DIMS(h, c, p) "plan.num_heads=" h " plan.head_dim_ckv=" c " plan.head_dim_kpe=" p " "
constexpr op::Case kRun[] = {
    {"decode_16_heads", FI_WS FI_TABLE FI_DECODE FI_P16 FI_BF16 FI_576("16") "plan.causal=False q_nope=bf16:4x16x512 q_pe=bf16:4x16x64 "
                        "ckv_cache=bf16:7x16x512 kpe_cache=bf16:7x16x64 return_lse=True", "cpu", op::kAot | op::kTrace},
    {"decode_one_head", FI_WS FI_TABLE FI_DECODE FI_P16 FI_BF16 FI_576("1") "plan.causal=False q_nope=bf16:4x1x512 q_pe=bf16:4x1x64 "
                        "ckv_cache=bf16:7x16x512 kpe_cache=bf16:7x16x64 return_lse=True", "cpu", op::kAot},
    {"decode_128_heads_page1", FI_WS FI_TABLE FI_DECODE "plan.kv_len_arr=i32:[3,0,1,2] plan.page_size=1 " FI_BF16 FI_576("128")
                               "plan.causal=True q_nope=bf16:4x128x512 q_pe=bf16:4x128x64 ckv_cache=bf16:7x1x512 kpe_cache=bf16:7x1x64 return_lse=True", "cpu", op::kAot},
    {"decode_128_heads", FI_WS "plan.qo_indptr=i32:5:range(0) plan.kv_indptr=i32:[0,17,19,20,21] plan.kv_indices=i32:21:perm plan.kv_len_arr=i32:[1040,70,64,1] "
                         "plan.page_size=64 " FI_BF16 FI_576("128") "plan.causal=False q_nope=bf16:4x128x512 q_pe=bf16:4x128x64 ckv_cache=bf16:21x64x512 "
                         "kpe_cache=bf16:21x64x64", "cpu", op::kAot},
    {"two_heads_f16", FI_WS FI_TABLE FI_ROWS FI_P16 FI_TYPES("float16", "float16") FI_576("2") "plan.causal=True q_nope=f16:54x2x512 q_pe=f16:54x2x64 "
                      "ckv_cache=f16:7x16x512 kpe_cache=f16:7x16x64 return_lse=True", "cpu", op::kAot},
    {"prefill_causal", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_DIMS("13", "256", "32") "plan.causal=True q_nope=bf16:54x13x256 q_pe=bf16:54x13x32 "
                       "ckv_cache=bf16:7x16x256 kpe_cache=bf16:7x16x32 return_lse=True"},
    {"prefill_not_causal", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_DIMS("5", "192", "64") "plan.causal=False q_nope=bf16:54x5x192 q_pe=bf16:54x5x64 "
                           "ckv_cache=bf16:7x16x192 kpe_cache=bf16:7x16x64 return_lse=True return_lse_base_on_e=True"},
    {"f16_page5", FI_WS FI_TABLE FI_ROWS "plan.kv_len_arr=i32:[12,0,1,10] plan.page_size=5 " FI_TYPES("float16", "float16") FI_DIMS("16", "128", "64")
                  "plan.causal=True q_nope=f16:54x16x128 q_pe=f16:54x16x64 ckv_cache=f16:7x5x128 kpe_cache=f16:7x5x64 return_lse=True", "cpu", op::kAot},
    {"f32_page64", FI_WS FI_TABLE FI_ROWS "plan.kv_len_arr=i32:[150,0,64,65] plan.page_size=64 " FI_TYPES("float32", "float32") FI_DIMS("15", "128", "64")
                   "plan.causal=True q_nope=f32:54x15x128 q_pe=f32:54x15x64 ckv_cache=f32:7x64x128 kpe_cache=f32:7x64x64 return_lse=True", "cpu", op::kAot},
    {"f32_one_head", FI_WS FI_TABLE FI_ROWS "plan.kv_len_arr=i32:[150,0,64,65] plan.page_size=64 " FI_TYPES("float32", "float32") FI_DIMS("1", "128", "64")
                     "plan.causal=True q_nope=f32:54x1x128 q_pe=f32:54x1x64 ckv_cache=f32:7x64x128 kpe_cache=f32:7x64x64 return_lse=True"},
    {"mixed_cache", FI_WS FI_TABLE FI_DECODE FI_P16 FI_TYPES("bfloat16", "float16") FI_DIMS("8", "128", "32") "plan.causal=False q_nope=bf16:4x8x128 "
                    "q_pe=bf16:4x8x32 ckv_cache=f16:7x16x128 kpe_cache=f16:7x16x32 return_lse=True"},
    {"no_kpe", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_DIMS("16", "512", "0") "plan.causal=True q_nope=bf16:54x16x512 q_pe=bf16:54x16x0 "
               "ckv_cache=bf16:7x16x512 kpe_cache=bf16:7x16x0 return_lse=True"},
    {"no_kpe_absent_three_heads", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_DIMS("3", "512", "0") "plan.causal=True q_nope=bf16:54x3x512 "
                                  "ckv_cache=bf16:7x16x512 return_lse=True"},
    {"odd_dims", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_DIMS("17", "83", "17") "plan.causal=True q_nope=bf16:54x17x83 q_pe=bf16:54x17x17 "
                 "ckv_cache=bf16:7x16x83 kpe_cache=bf16:7x16x17 return_lse=True"},
    {"odd_dims_four_heads", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_DIMS("4", "83", "17") "plan.causal=True q_nope=bf16:54x4x83 q_pe=bf16:54x4x17 "
                            "ckv_cache=bf16:7x16x83 kpe_cache=bf16:7x16x17 return_lse=True"},
    {"cutlass", FI_WS "init.backend='cutlass' page_table=i32:3x3:range(0) kv_len=i32:[48,0,23] q_nope=bf16:3x16x512 q_pe=bf16:3x16x64 "
                "ckv_cache=bf16:9x16x512 kpe_cache=bf16:9x16x64 return_lse=True"},
    {"cutlass_fp8_output", FI_WS "init.backend='cutlass' page_table=i32:3x3:range(0) kv_len=i32:[48,1,23] q_nope=bf16:3x4x512 q_pe=bf16:3x4x64 "
                           "ckv_cache=bf16:9x16x512 kpe_cache=bf16:9x16x64 out=e4m3:3x4x512 o_scale=0.05", "cpu", 0, 0.125, 0.05},
    {"packed", FI_WS FI_TABLE FI_DECODE FI_P16 FI_BF16 FI_576("16") "plan.query_layout='packed' plan.kv_cache_layout='packed' plan.causal=False "
               "query=bf16:4x16x576 kv_cache=bf16:7x16x576 return_lse=True"},
    {"packed_one_head", FI_WS FI_TABLE FI_DECODE FI_P16 FI_BF16 FI_576("1") "plan.causal=False query=bf16:4x1x576 kv_cache=bf16:7x16x576"},
    {"pairs", FI_WS FI_TABLE FI_DECODE FI_P16 FI_BF16 FI_DIMS("8", "128", "32") "plan.causal=False query=(bf16:4x8x128,bf16:4x8x32) "
              "kv_cache=(bf16:7x16x128,bf16:7x16x32) return_lse=True"},
    {"strided", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_DIMS("16", "128", "32") "plan.causal=True q_nope=bf16:54x16x128^pad64 q_pe=bf16:54x16x32^perm(1,0,2) "
                "ckv_cache=bf16:7x16x128^pad64 kpe_cache=bf16:7x16x32^perm(1,0,2) out=bf16:54x16x128^pad8 return_lse=True"},
    {"chunks", FI_WS "plan.qo_indptr=i32:[0,3] plan.kv_indptr=i32:[0,21] plan.kv_indices=i32:21:perm plan.kv_len_arr=i32:[1340] plan.page_size=64 " FI_BF16
               FI_DIMS("14", "192", "64") "plan.causal=True q_nope=bf16:3x14x192 q_pe=bf16:3x14x64 ckv_cache=bf16:21x64x192 kpe_cache=bf16:21x64x64 return_lse=True"},
    {"chunks_two_heads", FI_WS "plan.qo_indptr=i32:[0,3] plan.kv_indptr=i32:[0,21] plan.kv_indices=i32:21:perm plan.kv_len_arr=i32:[1340] plan.page_size=64 " FI_BF16
                         FI_DIMS("2", "192", "64") "plan.causal=True q_nope=bf16:3x2x192 q_pe=bf16:3x2x64 ckv_cache=bf16:21x64x192 kpe_cache=bf16:21x64x64 return_lse=True"},
    {"large_logits", FI_WS FI_TABLE FI_DECODE FI_P16 FI_TYPES("float32", "float32") FI_DIMS("8", "64", "32") "plan.causal=False "
                     "q_nope=f32:4x8x64:normal(0,30000) q_pe=f32:4x8x32 ckv_cache=f32:7x16x64 kpe_cache=f32:7x16x32 return_lse=True"},
    {"negative_scale", FI_WS FI_TABLE FI_DECODE FI_P16 "plan.sm_scale=-0.3 plan.q_data_type=float32 plan.kv_data_type=float32 " FI_DIMS("16", "64", "32")
                       "plan.causal=False q_nope=f32:4x16x64 q_pe=f32:4x16x32 ckv_cache=f32:7x16x64 kpe_cache=f32:7x16x32 return_lse=True"},
    {"fp8", FI_WS FI_TABLE FI_ROWS FI_P16 FI_TYPES("bfloat16", "float8_e4m3fn") FI_DIMS("16", "256", "64") "plan.causal=True q_nope=bf16:54x16x256 "
            "q_pe=bf16:54x16x64 ckv_cache=e4m3:7x16x256 kpe_cache=e4m3:7x16x64 ckv_scale=0.5 kpe_scale=2.0 return_lse=True", "cpu", op::kAot},
    {"fp8_one_head", FI_WS FI_TABLE FI_DECODE FI_P16 FI_TYPES("bfloat16", "float8_e4m3fn") FI_DIMS("1", "256", "64") "plan.causal=False q_nope=bf16:4x1x256 "
                     "q_pe=bf16:4x1x64 ckv_cache=e4m3:7x16x256 kpe_cache=e4m3:7x16x64 ckv_scale=0.5 kpe_scale=2.0 return_lse=True", "cpu", op::kAot},
    {"fp8_query", FI_WS FI_TABLE FI_ROWS FI_P16 FI_TYPES("float8_e4m3fn", "float8_e4m3fn") FI_DIMS("16", "256", "64") "plan.causal=True plan.scale_mode='bmm-scalar' "
                  "query=e4m3:54x16x320 kv_cache=e4m3:7x16x320 bmm1_scale=0.05 bmm2_scale=2.5 return_lse=True"},
    {"fp8_query_one_head", FI_WS FI_TABLE FI_DECODE FI_P16 FI_TYPES("float8_e4m3fn", "float8_e4m3fn") FI_DIMS("1", "256", "64") "plan.causal=False "
                           "q_nope=e4m3:4x1x256 q_pe=e4m3:4x1x64 ckv_cache=e4m3:7x16x256 kpe_cache=e4m3:7x16x64 ckv_scale=0.5 kpe_scale=2.0 return_lse=True"},
    {"fp8_e5m2_f16", FI_WS FI_TABLE FI_DECODE FI_P16 FI_TYPES("float16", "float8_e5m2") FI_DIMS("16", "128", "64") "plan.causal=False q_nope=f16:4x16x128 "
                     "q_pe=f16:4x16x64 ckv_cache=e5m2:7x16x128 kpe_cache=e5m2:7x16x64 ckv_scale=0.5 kpe_scale=0.25 return_lse=True"},
    {"fp8_scale_arr", FI_WS FI_TABLE FI_DECODE FI_P16 FI_TYPES("bfloat16", "float8_e4m3fn") FI_DIMS("16", "512", "64") "plan.causal=False q_nope=bf16:4x16x512 "
                      "q_pe=bf16:4x16x64 ckv_cache=e4m3:7x16x512 kpe_cache=e4m3:7x16x64 ckv_scale_arr=f32:7x16x4:uniform(0.1,2) kpe_scale=0.5 return_lse=True",
     "cpu", 0, 1e-2, 1e-2},
    {"fp8_scale_arr_no_kpe", FI_WS FI_TABLE FI_DECODE FI_P16 FI_TYPES("float16", "float8_e4m3fn") FI_DIMS("2", "320", "0") "plan.causal=False "
                             "q_nope=f16:4x2x320 ckv_cache=e4m3:7x16x320 ckv_scale_arr=f32:7x16x3:uniform(0.1,2) return_lse=True"},
    {"bmm_scalar", FI_WS FI_TABLE FI_DECODE FI_P16 FI_TYPES("bfloat16", "float8_e4m3fn") FI_DIMS("16", "128", "64") "plan.causal=False "
                   "plan.scale_mode='bmm-scalar' q_nope=bf16:4x16x128 q_pe=bf16:4x16x64 ckv_cache=e4m3:7x16x128 kpe_cache=e4m3:7x16x64 bmm1_scale=0.05 "
                   "bmm2_scale=2.5 return_lse=True"},
    {"bmm_tensor", FI_WS FI_TABLE FI_DECODE FI_P16 FI_BF16 FI_DIMS("8", "128", "64") "plan.causal=False plan.scale_mode='bmm-tensor' q_nope=bf16:4x8x128 "
                   "q_pe=bf16:4x8x64 ckv_cache=bf16:7x16x128 kpe_cache=bf16:7x16x64 bmm1_scale=f32:[0.05] bmm2_scale=f32:[2.5] return_lse=True"},
    {"sinks", FI_WS FI_TABLE FI_ROWS FI_P16 FI_BF16 FI_DIMS("8", "128", "64") "plan.causal=True plan.use_sinks=True q_nope=bf16:54x8x128 q_pe=bf16:54x8x64 "
              "ckv_cache=bf16:7x16x128 kpe_cache=bf16:7x16x64 sinks=f32:8 return_lse=True"},
    {"output_float32", FI_WS FI_TABLE FI_DECODE FI_P16 FI_BF16 FI_DIMS("8", "128", "64") "plan.causal=False plan.output_dtype=float32 q_nope=bf16:4x8x128 "
                       "q_pe=bf16:4x8x64 ckv_cache=bf16:7x16x128 kpe_cache=bf16:7x16x64", "cpu", 0, 1e-2, 1e-2},
    {"dense_table", FI_WS "plan.cum_seq_lens_q=i32:[0,2,2,5] plan.block_tables=i32:3x3:range(0) plan.seq_lens=i32:[40,0,6] "
                    "plan.page_size=16 plan.max_q_len=4 " FI_BF16 FI_DIMS("16", "128", "64") "plan.causal=True q_nope=bf16:5x16x128 q_pe=bf16:5x16x64 "
                    "ckv_cache=bf16:7x16x128 kpe_cache=bf16:7x16x64 return_lse=True"},
    {"int64_tables", FI_WS "plan.qo_indptr=i64:5:range(0) plan.kv_indptr=i64:[0,3,3,4,6] plan.kv_indices=i64:[5,1,3,6,0,2] plan.kv_len_arr=i64:[48,0,1,23] "
                     "plan.page_size=16 " FI_BF16 FI_DIMS("8", "128", "64") "plan.causal=False q_nope=bf16:4x8x128 q_pe=bf16:4x8x64 ckv_cache=bf16:7x16x128 "
                     "kpe_cache=bf16:7x16x64"},
    {"no_requests", FI_WS "plan.qo_indptr=i32:[0] plan.kv_indptr=i32:[0] plan.kv_indices=i32:[] plan.kv_len_arr=i32:[] plan.page_size=16 " FI_BF16
                    FI_DIMS("8", "128", "64") "plan.causal=False q_nope=bf16:0x8x128 q_pe=bf16:0x8x64 ckv_cache=bf16:7x16x128 kpe_cache=bf16:7x16x64 return_lse=True"},
    {"bench_128_heads", FI_WS "plan.qo_indptr=i32:5:range(0) plan.kv_indptr=i32:[0,32,64,96,128] plan.kv_indices=i32:128:perm plan.kv_len_arr=i32:4:const(2048) "
                        "plan.page_size=64 " FI_BF16 FI_576("128") "plan.causal=False q_nope=bf16:4x128x512 q_pe=bf16:4x128x64 ckv_cache=bf16:128x64x512 "
                        "kpe_cache=bf16:128x64x64", "cpu", op::kBench},
};
#undef FI_WS
#undef FI_TABLE
#undef FI_DECODE
#undef FI_ROWS
#undef FI_P16
#undef FI_TYPES
#undef FI_BF16
#undef FI_576
#undef FI_DIMS
// Requests of 3, 0 and 2 pages; request 0 appends two tokens across a page border, request 2 one, one is padding.
#define FI_TABLE "kv_indices=i32:[5,1,3,0,2] kv_indptr=i32:[0,3,3,5] kv_last_page_len=i32:[1,1,2]"
#define FI_TOKENS "batch_indices=i32:[0,0,-1,2] positions=i32:[3,4,99,5] "
constexpr op::Case kAppend[] = {
    {"bf16", "append_ckv=bf16:4x512 append_kpe=bf16:4x64 " FI_TOKENS "ckv_cache=bf16:6x4x512 kpe_cache=bf16:6x4x64 " FI_TABLE},
    {"odd_dims_strided", "append_ckv=f16:4x83^pad8 append_kpe=f16:4x17^pad8 " FI_TOKENS "ckv_cache=f16:6x4x83^pad8 kpe_cache=f16:6x4x17^perm(1,0,2) " FI_TABLE},
    {"no_kpe", "append_ckv=f32:4x64 append_kpe=f32:4x0 " FI_TOKENS "ckv_cache=f32:6x4x64 kpe_cache=f32:6x4x0 " FI_TABLE},
    {"ckv_alone", "append_ckv=e4m3:4x64 append_kpe=e4m3:4x32 " FI_TOKENS "ckv_cache=e4m3:6x4x64 " FI_TABLE},
    {"kpe_alone", "append_ckv=bf16:4x64 append_kpe=bf16:4x32 " FI_TOKENS "kpe_cache=bf16:6x4x32 " FI_TABLE},
    {"int64", "append_ckv=bf16:4x64 append_kpe=bf16:4x32 batch_indices=i64:[0,0,-1,2] positions=i64:[3,4,99,5] ckv_cache=bf16:6x4x64 kpe_cache=bf16:6x4x32 "
              "kv_indices=i64:[5,1,3,0,2] kv_indptr=i64:[0,3,3,5] kv_last_page_len=i64:[1,1,2]"},
    {"many_tokens", "append_ckv=bf16:640x512 append_kpe=bf16:640x64 batch_indices=i32:640:const(0) positions=i32:640:range(0) ckv_cache=bf16:40x16x512 "
                    "kpe_cache=bf16:40x16x64 kv_indices=i32:40:perm kv_indptr=i32:[0,40] kv_last_page_len=i32:[16]"},
};
#undef FI_TABLE
#undef FI_TOKENS
constexpr op::Case kConcat[] = {
    {"deepseek", "k=bf16:5x128x192 k_nope=bf16:5x128x128 k_rope=bf16:5x1x64"},
    {"strided", "k=f16:5x3x44^pad8 k_nope=f16:5x3x33^perm(1,0,2) k_rope=f16:5x1x11^pad8"},
    {"fp8", "k=e4m3:5x16x192 k_nope=e4m3:5x16x128 k_rope=e4m3:5x1x64"},
    {"f32_no_rope", "k=f32:5x4x32 k_nope=f32:5x4x32 k_rope=f32:5x1x0"},
    {"nothing", "k=bf16:0x4x48 k_nope=bf16:0x4x32 k_rope=bf16:0x1x16"},
    {"bench", "k=bf16:4096x128x192 k_nope=bf16:4096x128x128 k_rope=bf16:4096x1x64", "cpu", op::kBench},
};
constexpr op::Case kConcatQuant[] = {
    {"deepseek", "kv_nope=bf16:5x16x256:normal(0,200) k_pe=bf16:5x64:normal(0,200)", "cpu", op::kTrace},
    {"given_outputs_odd", "kv_nope=bf16:5x3x44^pad8 k_pe=bf16:5x1x11^pad8 key=e4m3:5x3x28^pad8 value=e4m3:5x3x27^perm(1,0,2) nope_dim=17 backend='cake'"},
    {"no_value_no_rope", "kv_nope=bf16:3x2x32 k_pe=bf16:3x0 nope_dim=32"},
    {"nan", "kv_nope=bf16:3x2x40:nan k_pe=bf16:3x8:const(-inf) nope_dim=32"},
    {"bench", "kv_nope=bf16:4096x128x256 k_pe=bf16:4096x64", "cpu", op::kBench},
};
#define FI_WS "workspace_buffer=u8:0 "
#define FI_MLA(c, p) FI_WS "qk_nope_head_dim=128 kv_lora_rank=" c " qk_rope_head_dim=" p " "
#define FI_PAGES "block_tables=i32:4x3:range(0) seq_lens=i32:[48,0,1,23] max_seq_len=48 "
constexpr op::Case kDense[] = {
    {"decode", FI_MLA("512", "64") FI_PAGES "query=bf16:4x1x16x576 kv_cache=bf16:12x1x16x576 bmm1_scale=0.0721688 bmm2_scale=1.0 return_lse=True", "cpu", op::kTrace},
    {"rows_natural_lse", FI_MLA("128", "32") FI_PAGES "query=f16:4x3x5x160 kv_cache=f16:12x16x160 bmm1_scale=f32:[0.08] bmm2_scale=f32:[2] sinks=f32:5 return_lse=True "
                         "return_lse_base='basee' lse=f32:4x3x5"},
    {"ragged_rows", FI_MLA("128", "32") FI_PAGES "query=bf16:9x8x160 kv_cache=bf16:12x16x160 bmm1_scale=0.08 cum_seq_lens_q=i32:[0,4,4,5,9] max_q_len=4 return_lse=True"},
    {"separate_pages", FI_MLA("128", "32") "block_tables=i32:4x2x3:const(5) seq_lens=i32:[48,0,1,23] max_seq_len=48 query=bf16:4x1x8x160 "
                       "kv_cache=bf16:12x16x160 bmm1_scale=0.08 uses_shared_paged_kv_idx=False"},
    {"fp8_out_of_heads", FI_MLA("128", "64") FI_PAGES "query=e4m3:4x1x16x192 kv_cache=e4m3:12x16x192 bmm1_scale=0.05 bmm2_scale=0.5 out=bf16:4x16x128"},
    {"sparse", FI_MLA("128", "32") "block_tables=i32:2x3x20:randint(-20,192) seq_lens=i32:[48,7] max_seq_len=48 sparse_mla_top_k=20 query=bf16:2x3x16x160 "
               "kv_cache=bf16:12x1x16x160 bmm1_scale=0.08 return_lse=True"},
    {"sparse_packed_rows", FI_MLA("512", "64") "block_tables=i32:2x3x20:randint(-20,192) seq_lens=i32:[48,7] max_seq_len=48 sparse_mla_top_k=20 "
                           "query=bf16:2x3x8x576 kv_cache=u8:12x1x16x656:packed_mla(0.001,0.01) bmm1_scale=0.04 return_lse=True"},
    {"sparse_lens_no_rope", FI_MLA("128", "0") "block_tables=i32:5x24:randint(0,192) seq_lens=i32:[48,7] max_seq_len=48 sparse_mla_top_k=20 query=bf16:5x4x128 "
                            "kv_cache=bf16:12x16x128 bmm1_scale=0.08 cum_seq_lens_q=i32:[0,3,5] sparse_mla_top_k_lens=i32:[20,1,0,7,3]"},
    {"context_share", FI_MLA("128", "32") FI_PAGES "query=bf16:4x3x8x160 kv_cache=bf16:12x16x160 bmm1_scale=0.08 return_lse=True enable_dcp=True cp_world=4 cp_rank=2 "
                      "causal_seqlens_kv_global=i32:[190,1,5,94]"},
    {"context_share_ragged", FI_MLA("512", "64") FI_PAGES "query=bf16:9x2x576 kv_cache=bf16:12x16x576 bmm1_scale=0.08 cum_seq_lens_q=i32:[0,4,4,5,9] max_q_len=4 return_lse=True "
                             "enable_dcp=True cp_world=2 causal_seqlens_kv_global=i32:[95,0,1,46]"},
};
constexpr op::Case kXqa[] = {
    {"fp8", FI_MLA("512", "64") FI_PAGES "query=e4m3:4x1x16x576 kv_cache=e4m3:12x1x16x576 bmm1_scale=0.05 bmm2_scale=0.5"},
    {"bf16", FI_MLA("128", "32") FI_PAGES "query=bf16:4x1x3x160 kv_cache=bf16:12x16x160 bmm1_scale=0.08"},
};
#undef FI_WS
#undef FI_MLA
#undef FI_PAGES
}  // namespace
std::span<const op::Case> dense_cases() { return kDense; }
std::span<const op::Case> xqa_cases() { return kXqa; }
std::span<const op::Case> concat_quant_cases() { return kConcatQuant; }
std::span<const op::Case> run_cases() { return kRun; }
std::span<const op::Case> append_cases() { return kAppend; }
std::span<const op::Case> concat_cases() { return kConcat; }
}  // namespace flashinfer::ops::mla
