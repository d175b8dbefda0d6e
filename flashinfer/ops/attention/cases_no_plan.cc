// SPDX-License-Identifier: Apache-2.0
// Cases of the operators without a plan that have the names of upstream's special kernels.
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer::ops::attention {
namespace {
#define FI_WS "workspace_buffer=u8:0 "
// 48, 0, 1 and 23 keys.
#define FI_TABLE FI_WS "block_tables=i32:4x3:range(0) seq_lens=i32:[48,0,1,23] "
#define FI_LONG FI_WS "block_tables=i32:3x3:range(0) seq_lens=u32:[48,7,23] "
constexpr op::Case kXqaDecode[] = {
    {"nhd", FI_TABLE "query=bf16:4x4x64 kv_cache=bf16:12x2x16x2x64 max_seq_len=48 bmm1_scale=0.125 bmm2_scale=2.0", "cpu", op::kTrace},
    {"hnd_window_sinks", FI_TABLE "query=bf16:4x4x64 kv_cache=(bf16:12x2x16x64,bf16:12x2x16x64) max_seq_len=48 bmm1_scale=0.125 window_left=9 sinks=f32:2x2 "
                         "kv_layout='HND'"},
    // Bits of three rows: row 0 sees itself and 2, row 1 itself and 0, row 2 all; then rows that see the ones before them.
    {"tree_mask", FI_LONG "query=bf16:9x4x64 kv_cache=bf16:9x2x16x2x64 max_seq_len=48 bmm1_scale=0.125 q_len_per_req=3 "
                  "mask=u16:[5,0,3,0,7,0,1,0,3,0,7,0,1,0,2,0,4,0]"},
    {"causal_mask_window", FI_LONG "query=f16:9x4x64 kv_cache=f16:9x2x16x2x64 max_seq_len=48 bmm1_scale=0.125 q_len_per_req=3 window_left=4 "
                           "mask=u16:[1,0,3,0,7,0,1,0,3,0,7,0,1,0,3,0,7,0]"},
    {"full_mask_window", FI_LONG "query=f16:9x4x64 kv_cache=f16:9x2x16x2x64 max_seq_len=48 bmm1_scale=f32:1:const(0.125) q_len_per_req=3 window_left=4 "
                         "mask=u16:[7,0,7,0,7,0,7,0,7,0,7,0,7,0,7,0,7,0]"},
    {"ragged_rows", FI_LONG "query=bf16:6x4x64 kv_cache=bf16:9x2x16x2x64 max_seq_len=48 bmm1_scale=0.125 q_len_per_req=3 q_cu_seq_lens=i32:[0,3,3,6] "
                    "mask=u16:[5,0,3,0,7,0,1,0,2,0,6,0]"},
    {"fp8_cache", FI_TABLE "query=bf16:4x4x64 kv_cache=e4m3:12x2x16x2x64 max_seq_len=48 bmm1_scale=0.125 bmm2_scale=0.5"},
    {"nvfp4_cache", FI_TABLE "query=bf16:4x4x64:normal(0,0.25) kv_cache=(u8:12x16x2x32:randint(0,256),u8:12x16x2x32:randint(0,256)) "
                    "kv_cache_sf=(e4m3:12x16x2x4,e4m3:12x16x2x4) max_seq_len=48 bmm1_scale=0.125"},
    {"fp8_output", FI_TABLE "query=bf16:4x4x64 kv_cache=e4m3:12x2x16x2x64 max_seq_len=48 bmm1_scale=0.125 bmm2_scale=4.0 o_scale=0.5 out=e4m3:4x4x64", "cpu", 0, 0.125, 0.02},
};
#define FI_XQA FI_WS "semaphores=u32:0 page_table=i32:3x3:range(0) seq_lens=u32:3x1:const(39) page_size=16 num_kv_heads=2 "
constexpr op::Case kXqa[] = {
    {"decode", FI_XQA "q=bf16:3x1x4x64 k_cache=bf16:9x16x2x64 v_cache=bf16:9x16x2x64 output=bf16:3x1x4x64 q_scale=0.5 sinks=f32:2x2", "cpu", op::kTrace},
    {"hnd_window", FI_XQA "q=f16:3x1x4x64 k_cache=f16:9x2x16x64 v_cache=f16:9x2x16x64 output=f16:3x1x4x64 kv_layout='HND' sliding_win_size=8"},
    {"fp8_scales", FI_XQA "q=bf16:3x1x4x64 k_cache=e4m3:9x16x2x64 v_cache=e4m3:9x16x2x64 output=bf16:3x1x4x64 q_scale=f32:[0.5] kv_scale=f32:[0.5] "
                   "rcp_out_scale=4.0"},
    {"fp8_output", FI_XQA "q=bf16:3x1x4x64 k_cache=e4m3:9x16x2x64 v_cache=e4m3:9x16x2x64 output=e4m3:3x1x4x64 kv_scale=0.5 rcp_out_scale=4.0"},
    {"fp8_output_rows", FI_XQA "q=bf16:3x1x2x4x64 k_cache=bf16:9x16x2x64 v_cache=bf16:9x16x2x64 output=e4m3:3x1x2x4x64^pad8 q_seq_len=2 "
                        "rcp_out_scale=500.0 mask=u16:[1,0,2,0,1,0,3,0,3,0,3,0]", "cpu", 0, 0.125, 1.0},
    {"draft_rows", FI_XQA "q=bf16:3x1x2x4x64 k_cache=bf16:9x16x2x64 v_cache=bf16:9x16x2x64 output=bf16:3x1x2x4x64 q_seq_len=2 "
                   "mask=u16:[1,0,2,0,1,0,3,0,3,0,3,0]"},
    {"ragged_rows", FI_XQA "q=bf16:4x4x64 k_cache=bf16:9x16x2x64 v_cache=bf16:9x16x2x64 output=bf16:4x4x64 q_seq_len=2 q_cu_seq_lens=u32:[0,2,2,4] "
                    "mask=u16:[1,0,2,0,1,0,3,0]"},
    {"nvfp4", FI_XQA "q=bf16:3x1x4x64:normal(0,0.25) k_cache=u8:9x16x2x32:randint(0,256) v_cache=u8:9x16x2x32:randint(0,256) k_sf_cache=e4m3:9x16x2x4 "
              "v_sf_cache=e4m3:9x16x2x4 output=bf16:3x1x4x64"},
};
#define FI_XMLA FI_WS "semaphores=u32:0 page_table=i32:2x3:range(0) seq_lens=u32:2x1:const(39) page_size=16 "
constexpr op::Case kXqaMla[] = {
    {"fp8", FI_XMLA "q=e4m3:2x1x16x576 k_cache=e4m3:6x16x1x576 v_cache=e4m3:6x16x1x576 output=bf16:2x1x16x512 q_scale=0.05 kv_scale=0.5"},
    {"fp8_output", FI_XMLA "q=e4m3:2x1x16x576 k_cache=e4m3:6x16x1x576 v_cache=e4m3:6x16x1x576 output=e4m3:2x1x16x512 q_scale=0.05 kv_scale=0.5"},
    {"rows_of_tokens", FI_XMLA "q=bf16:2x1x3x576 k_cache=bf16:96x576 v_cache=bf16:96x576 output=bf16:2x1x3x512 q_scale=f32:[0.05]"},
    {"pages", FI_XMLA "q=bf16:2x1x3x96 k_cache=bf16:6x16x96 v_cache=bf16:6x16x64 output=f32:2x1x3x64 q_scale=0.1", "cpu", 0, 1e-2, 1e-2},
};
#define FI_LENS FI_WS "block_tables=i32:4x3:range(0) actual_seq_lens_kv=i32:4x1x1x1:const(37) max_sequence_kv=48 "
constexpr op::Case kCudnnDecode[] = {
    {"plain", FI_LENS "q=bf16:4x4x64 k_cache=bf16:12x2x16x64 v_cache=bf16:12x2x16x64 scale=0.125 return_lse=True", "cpu", op::kTrace},
    {"rows_window_sinks", FI_LENS "q=f16:8x4x64 k_cache=f16:12x2x16x64^perm(0,2,1,3) v_cache=f16:12x2x16x64^perm(0,2,1,3) scale=0.125 q_len_per_req=2 "
                          "window_left=9 sinks=f32:4 return_lse=True"},
};
#define FI_TOKENS "q=bf16:54x4x64 k_cache=bf16:72x2x64 v_cache=bf16:72x2x48 scale=0.125 " FI_WS "max_token_per_sequence=30 max_sequence_kv=48 "
#define FI_Q_LENS "actual_seq_lens_q=i32:[20,3,1,30] actual_seq_lens_kv=i32:[48,0,1,23] "
constexpr op::Case kCudnnPrefill[] = {
    {"ragged_elements", FI_TOKENS FI_Q_LENS "causal=True return_lse=True batch_offsets_q=i32:[0,5120,5888,6144,13824] batch_offsets_o=i32:[0,3840,4416,4608,10368] "
                        "batch_offsets_k=i32:[0,6144,6144,6272,9216] batch_offsets_v=i32:[0,4608,4608,4704,6912]", "cpu", op::kTrace},
    {"ragged_tokens", FI_TOKENS "causal=False return_lse=True batch_offsets_q=i32:[0,20,23,24,54] batch_offsets_k=i32:[0,48,48,49,72] "
                      "batch_offsets_units='tokens' lse_base='ln'"},
    {"no_lse", FI_TOKENS "causal=True return_lse=False batch_offsets_q=i32:[0,20,23,24,54] batch_offsets_k=i32:[0,48,48,49,72] batch_offsets_units='tokens'"},
    {"gaps_between_keys", FI_TOKENS "actual_seq_lens_q=i32:[20,3,1,30] actual_seq_lens_kv=i32:[40,0,1,20] causal=True return_lse=False "
                          "batch_offsets_q=i32:[0,20,23,24,54] batch_offsets_k=i32:[0,48,48,49,72] batch_offsets_units='tokens'"},
    {"one_request", "q=f16:20x4x64 k_cache=f16:48x2x64 v_cache=f16:48x2x64 scale=0.125 " FI_WS "max_token_per_sequence=24 max_sequence_kv=48 "
                    "actual_seq_lens_q=i32:1x1x1x1:const(20) actual_seq_lens_kv=i32:1x1x1x1:const(48) causal=True return_lse=True"},
    {"paged_fp8", "q=e4m3:54x4x64 k_cache=e4m3:12x2x16x64 v_cache=e4m3:12x2x16x64 scale=0.125 " FI_WS "max_token_per_sequence=30 max_sequence_kv=48 "
                  FI_Q_LENS "block_tables=i32:4x3:range(0) causal=True return_lse=False q_scale=f32:1x1x1x1:const(0.5) k_scale=f32:1x1x1x1:const(0.5) "
                  "v_scale=f32:1x1x1x1:const(2) batch_offsets_q=i32:[0,20,23,24,54] o_data_type=bfloat16 batch_offsets_units='tokens'"},
};
#define FI_ROWS "cum_seq_lens_q=i32:[0,20,23,24,54] cum_seq_lens_kv=i32:[0,48,48,49,72] seq_lens=i32:[48,0,1,23] batch_size=4 max_q_len=30 max_kv_len=48 " \
                FI_WS "o_sf_scale=-1.0 enable_pdl=None "
constexpr op::Case kRagged[] = {
    {"deepseek", FI_ROWS "query=bf16:54x4x192 key=bf16:72x4x192 value=bf16:72x4x128 bmm1_scale=0.0721688 bmm2_scale=1.0 window_left=-1 is_causal=True "
                 "return_lse=True", "cpu", op::kTrace},
    {"window_sinks", FI_ROWS "query=f16:54x4x64 key=f16:72x2x64^pad8 value=f16:72x2x64^perm(1,0,2) bmm1_scale=f32:[0.125] bmm2_scale=f32:[2] window_left=9 "
                     "is_causal=False return_lse=True attention_sinks=f32:4"},
    {"fp8_mirrors", FI_ROWS "query=e4m3:54x4x64 key=e4m3:72x4x64 value=e4m3:72x4x64 bmm1_scale=0.05 bmm2_scale=0.5 window_left=-1 is_causal=True "
                    "return_lse=False q_seq_lens_cpu=i32:[20,3,1,30] kv_seq_lens_cpu=i32:[48,0,1,23] skip_all_rows_active_check=False"},
    {"fp8_values", FI_ROWS "query=bf16:54x4x64 key=bf16:72x4x64 value=e4m3:72x4x64 bmm1_scale=0.125 bmm2_scale=0.5 window_left=-1 is_causal=False "
                   "return_lse=True"},
    {"sage_int8", FI_ROWS "query=i8:54x4x64:randint(-127,128) key=i8:72x2x64:randint(-127,128)^pad8 value=e4m3:72x2x64 bmm1_scale=0.125 bmm2_scale=1.0 "
                  "window_left=-1 is_causal=True return_lse=True sage_attn_sfs=(f32:4x54:uniform(0.001,0.02),f32:2x18:uniform(0.001,0.02),None,f32:2x64) "
                  "num_elts_per_sage_attn_blk=(1,4,0,1)", "cpu", op::kAot},
    {"sage_fp8_by_request", FI_ROWS "query=e4m3:54x4x64 key=e4m3:72x2x64 value=e4m3:72x2x64 bmm1_scale=0.125 bmm2_scale=1.0 window_left=-1 is_causal=False "
                            "return_lse=False sage_attn_sfs=(f32:4x17:uniform(0.1,0.5),f32:2x8:uniform(0.1,0.5),None,None) "
                            "num_elts_per_sage_attn_blk=(4,16,0,0)"},
};
constexpr op::Case kVarlen[] = {
    {"causal", "q=bf16:54x4x192 k=bf16:72x2x192 v=bf16:72x2x128 qo_segment_offsets=i32:[0,20,23,24,54] kv_segment_offsets=i32:[0,48,48,49,72] "
               "causal=True return_lse=True max_qo_len=30", "cpu", op::kTrace},
    {"fp8_scales", "q=e4m3:54x4x64 k=e4m3:72x2x64 v=e4m3:72x2x64 qo_segment_offsets=i64:[0,20,23,24,54] kv_segment_offsets=i64:[0,48,48,49,72] "
                   "sm_scale=0.1 q_scale=0.5 k_scale=2.0 v_scale=0.25"},
};
constexpr op::Case kDeepseekV2[] = {
    {"bf16", "query=bf16:2x33x4x192 key=bf16:2x33x4x192 value=bf16:2x33x4x128 out=bf16:2x33x4x128 num_heads=4 head_dim=192 seq_len=33 scale_softmax=0.0 "
             "scale_bmm1=0.0721688 scale_bmm2=1.0", "cpu", op::kTrace},
    {"fp8_tensors", "query=e4m3:2x17x2x64 key=e4m3:2x17x2x64 value=e4m3:2x17x2x64 out=f16:2x17x2x64 num_heads=2 head_dim=64 seq_len=17 scale_softmax=1.0 "
                    "scale_bmm1_d=f32:[0.05] scale_bmm2_d=f32:[0.5]"},
};
constexpr op::Case kSm120V2[] = {
    {"fp8", "query=e4m3:2x33x2x64 key=e4m3:2x33x2x64 value=e4m3:2x33x2x64 out=bf16:2x33x2x64 num_heads=2 head_dim=64 seq_len=33 scale_softmax=1.0 "
            "scale_bmm1=0.05 scale_bmm2=0.5 causal=False"},
    {"causal", "query=e4m3:1x17x2x128 key=e4m3:1x17x2x128 value=e4m3:1x17x2x128 out=bf16:1x17x2x128 num_heads=2 head_dim=128 seq_len=17 "
               "scale_softmax=1.0 scale_bmm1_d=f32:[0.02] scale_bmm2_d=f32:[2]", "cpu", op::kTrace},
};
#undef FI_WS
#undef FI_TABLE
#undef FI_LONG
#undef FI_XQA
#undef FI_XMLA
#undef FI_LENS
#undef FI_TOKENS
#undef FI_Q_LENS
#undef FI_ROWS
}  // namespace
std::span<const op::Case> xqa_decode_cases() { return kXqaDecode; }
std::span<const op::Case> xqa_cases() { return kXqa; }
std::span<const op::Case> xqa_mla_cases() { return kXqaMla; }
std::span<const op::Case> cudnn_decode_cases() { return kCudnnDecode; }
std::span<const op::Case> cudnn_prefill_cases() { return kCudnnPrefill; }
std::span<const op::Case> ragged_deepseek_cases() { return kRagged; }
std::span<const op::Case> varlen_cases() { return kVarlen; }
std::span<const op::Case> deepseek_v2_cases() { return kDeepseekV2; }
std::span<const op::Case> sm120_v2_cases() { return kSm120V2; }
}  // namespace flashinfer::ops::attention
