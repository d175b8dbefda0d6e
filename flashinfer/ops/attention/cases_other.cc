// SPDX-License-Identifier: Apache-2.0
// Cases of the older forms, of BatchAttention and sinks, and of the operators without a plan.
#include "flashinfer/ops/attention/cases.h"

namespace flashinfer::ops::attention {
namespace {
#define FI_WS "init.float_workspace_buffer=u8:0 "
#define FI_BF16 "plan.q_data_type=bfloat16 "
// Requests of 3, 0, 1 and 2 pages; the second is empty.
#define FI_DECODE "plan.indptr=i32:[0,3,3,4,6] plan.indices=i32:[5,1,3,6,0,2] plan.last_page_len=i32:[16,1,1,7] plan.num_qo_heads=4 plan.num_kv_heads=2 " \
                  "plan.head_dim=64 plan.page_size=16 "
#define FI_CACHE "paged_kv_cache=bf16:7x2x16x2x64 "
#define FI_BUFFERS "init.workspace_buffer=u8:0 init.indptr_buffer=i32:[0,3,3,4,6] init.indices_buffer=i32:[5,1,3,6,0,2,9,9] " \
                   "init.last_page_len_buffer=i32:[16,1,1,7] "
constexpr op::Case kGraph[] = {
    {"buffers", FI_BUFFERS FI_DECODE FI_BF16 "q=bf16:4x4x64 " FI_CACHE "return_lse=True"},
    {"sinks", FI_BUFFERS FI_DECODE FI_BF16 "q=bf16:4x4x64 " FI_CACHE "sinks=f32:4 return_lse=True"},
};
// On the host: rows of two pages for four requests, whatever the plan had.
#define FI_LENGTHS FI_DECODE FI_BF16 "seq_lens=i32:[32,0,1,23]"
constexpr op::Case kOnDevice[] = {
    {"lengths",
     "init.float_workspace_buffer=u8:0 init.use_cuda_graph=True init.paged_kv_indptr_buffer=i32:[0,3,3,4,6] "
     "init.paged_kv_indices_buffer=i32:[5,1,3,6,0,2,9,9] init.paged_kv_last_page_len_buffer=i32:[16,1,1,7] " FI_LENGTHS,
     "cpu", op::kAot},
};
constexpr op::Case kGraphOnDevice[] = {{"lengths", FI_BUFFERS FI_LENGTHS}};
constexpr op::Case kDecodeForward[] = {
    {"fp8_query", FI_WS FI_DECODE "plan.q_data_type=float8_e4m3fn q=e4m3:4x4x64 paged_kv_cache=e4m3:7x2x16x2x64 q_scale=0.5 k_scale=3.0"},
    {"cap_scale", FI_WS FI_DECODE FI_BF16 "q=bf16:4x4x64 " FI_CACHE "logits_soft_cap=3.0 sm_scale=0.3 q_scale=0.5 v_scale=2.0 return_lse=True"},
    {"rope", FI_WS FI_DECODE FI_BF16 "q=bf16:4x4x64 " FI_CACHE "pos_encoding_mode='ROPE_LLAMA' rope_theta=100000.0"},
};
constexpr op::Case kGraphForward[] = {{"cap", FI_BUFFERS FI_DECODE FI_BF16 "q=bf16:4x4x64 " FI_CACHE "logits_soft_cap=3.0 return_lse=True"}};
// 48, 0, 1 and 23 keys; rows: a prefill, an empty request, a decode row, more rows than keys.
#define FI_ROWS "plan.qo_indptr=i32:[0,20,23,24,54] "
#define FI_PREFILL "plan.paged_kv_indptr=i32:[0,3,3,4,6] plan.paged_kv_indices=i32:[5,1,3,6,0,2] plan.paged_kv_last_page_len=i32:[16,1,1,7] plan.page_size=16 "
#define FI_42 "plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim_qk=64 "
constexpr op::Case kPrefillForward[] = {
    {"causal_window", FI_WS FI_ROWS FI_PREFILL FI_BF16 FI_42 "plan.window_left=9 q=bf16:54x4x64 " FI_CACHE "causal=True window_left=9 return_lse=True"},
    {"alibi", FI_WS FI_ROWS FI_PREFILL FI_BF16 FI_42 "plan.causal=True q=bf16:54x4x64 " FI_CACHE "pos_encoding_mode='ALIBI' return_lse=True"},
};
constexpr op::Case kRaggedForward[] = {
    {"causal", FI_WS FI_ROWS "plan.kv_indptr=i32:[0,48,48,49,72] " FI_BF16 FI_42 "q=bf16:54x4x64 k=bf16:72x2x64 v=bf16:72x2x64 causal=True return_lse=True"},
};
#define FI_SINK "init.head_dim_qk=64 init.head_dim_vo=64 "
constexpr op::Case kSink[] = {
    {"causal", FI_WS FI_SINK FI_ROWS FI_PREFILL FI_BF16 FI_42 "plan.causal=True q=bf16:54x4x64 " FI_CACHE "sink=f32:4 sm_scale=0.2 return_lse=True"},
    {"window_heavy", FI_WS FI_SINK "init.window_left=9 " FI_ROWS FI_PREFILL FI_BF16 FI_42 "plan.causal=True plan.window_left=9 q=bf16:54x4x64 " FI_CACHE
                     "sink=f32:4:normal(6,3) sm_scale=0.125 return_lse=True lse_base='ln'"},
    {"fp8_query", FI_WS FI_SINK "init.q_data_type=float8_e4m3fn init.kv_data_type=float8_e4m3fn " FI_ROWS FI_PREFILL FI_42 "plan.q_data_type=float8_e4m3fn "
                  "plan.causal=True q=e4m3:54x4x64 paged_kv_cache=e4m3:7x2x16x2x64 sink=f32:4 sm_scale=0.125 q_scale=0.5 return_lse=True"},
    {"f16", FI_WS FI_SINK "init.q_data_type=float16 init.kv_data_type=float16 " FI_ROWS FI_PREFILL FI_42 "q=f16:54x4x64 paged_kv_cache=f16:7x2x16x2x64 "
            "sink=f32:4 sm_scale=0.125 return_lse=True"},
};
#define FI_RANGES "init.head_dim_qk=64 init.head_dim_vo=64 plan.head_dim_qk=64 plan.num_qo_heads=4 plan.num_kv_heads=2 "
constexpr op::Case kRanges[] = {
    {"spans", FI_WS FI_RANGES FI_ROWS FI_PREFILL "q=bf16:54x4x64 " FI_CACHE "bidirectional_ranges=i32:54x2:randint(0,48) return_lse=True"},
    {"windows_nvfp4", FI_WS FI_RANGES "init.kv_data_type=uint8 " FI_ROWS FI_PREFILL "q=bf16:54x4x64:normal(0,0.25) "
                      "paged_kv_cache=(u8:7x16x2x32:randint(0,256),u8:7x16x2x32:randint(0,256)) kv_cache_sf=(e4m3:7x16x2x4,e4m3:7x16x2x4) "
                      "bidirectional_ranges=i32:54x2:randint(0,48) causal_window_left=5 range_window_left=9 k_scale=0.5 return_lse=True"},
};
#define FI_BATCH "plan.qo_indptr=i32:[0,20,23,24,54] plan.kv_indptr=i32:[0,3,3,4,6] plan.kv_indices=i32:[5,1,3,6,0,2] " \
                 "plan.kv_len_arr=i32:[48,0,1,23] plan.page_size=16 " \
                 "plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim_qk=64 plan.head_dim_vo=64 "
constexpr op::Case kBatch[] = {
    {"mixed", FI_BATCH "plan.causal=True q=bf16:54x4x64 kv_cache=bf16:7x2x16x2x64", "cpu", op::kTrace},
    {"cap_scales", FI_BATCH "plan.logits_soft_cap=3.0 q=bf16:54x4x64 kv_cache=bf16:7x2x16x2x64 k_scale=0.5 v_scale=2.0 logits_soft_cap=3.0"},
    {"fp8_query", FI_BATCH "plan.q_data_type=float8_e4m3fn plan.kv_data_type=float8_e4m3fn plan.causal=True "
                  "q=e4m3:54x4x64 kv_cache=e4m3:7x2x16x2x64 k_scale=0.5 v_scale=2.0"},
    {"hnd_pair", "init.kv_layout='HND' " FI_BATCH "plan.causal=True q=bf16:54x4x64 kv_cache=(bf16:7x2x16x64,bf16:7x2x16x64^pad8)"},
    {"spare_pages", "plan.qo_indptr=i32:[0,1,2] plan.kv_indptr=i32:[0,3,6] plan.kv_indices=i32:[5,1,3,6,0,2] plan.kv_len_arr=i32:[5,0] plan.page_size=16 "
                    "plan.num_qo_heads=4 plan.num_kv_heads=2 plan.head_dim_qk=64 plan.head_dim_vo=64 q=bf16:2x4x64 kv_cache=bf16:7x2x16x2x64"},
};
#define FI_TABLE "workspace_buffer=u8:0 block_tables=i32:4x3:range(0) seq_lens=i32:[48,0,1,23] "
constexpr op::Case kDenseDecode[] = {
    {"hnd", FI_TABLE "query=bf16:4x4x64 kv_cache=bf16:12x2x2x16x64 max_seq_len=48 bmm1_scale=0.125 bmm2_scale=2.0 return_lse=True"},
    {"nhd_window_sinks", FI_TABLE "query=bf16:4x4x64 kv_cache=bf16:12x2x16x2x64 max_seq_len=48 bmm1_scale=0.125 window_left=9 sinks=f32:4 kv_layout='NHD'"},
    {"scale_log2", FI_TABLE "query=bf16:4x4x64 kv_cache=bf16:12x2x2x16x64 max_seq_len=48 bmm1_scale=3.0 bmm1_scale_log2=f32:1:const(0.18033688) return_lse=True"},
    {"rows", FI_TABLE "query=bf16:9x4x64 kv_cache=bf16:12x2x2x16x64 max_seq_len=48 bmm1_scale=f32:1:const(0.125) max_q_len=4 "
             "cum_seq_lens_q=i32:[0,4,5,6,9] out_dtype=float32 return_lse=True", "cpu", 0, 1e-2, 1e-2},
    {"fp8_query", FI_TABLE "query=e4m3:4x4x64 kv_cache=e4m3:12x2x2x16x64 max_seq_len=48 bmm1_scale=0.125 bmm2_scale=2.0 out_dtype=bfloat16 return_lse=True"},
    {"two_rows_each_i64", "workspace_buffer=u8:0 block_tables=i64:2x2:range(1) seq_lens=i64:[17,32] query=f16:4x4x64 kv_cache=f16:5x2x2x16x64 "
                          "max_seq_len=40 bmm1_scale=0.125 q_len_per_req=2"},
    {"fp8_output", FI_TABLE "query=e4m3:4x4x64 kv_cache=e4m3:12x2x2x16x64 max_seq_len=48 bmm1_scale=0.125 bmm2_scale=4.0 o_scale=0.5", "cpu", 0, 0.125, 0.02},
    {"cut_requests", "workspace_buffer=u8:0 block_tables=i32:3x40:range(0) seq_lens=u32:[600,256,257] query=bf16:3x4x64 kv_cache=bf16:120x2x2x16x64 "
                     "max_seq_len=640 bmm1_scale=0.125 bmm2_scale=f32:1:const(2) return_lse=True"},
    {"separate_pages", "workspace_buffer=u8:0 block_tables=i32:4x2x3:range(0) seq_lens=i32:[48,0,1,23] query=bf16:4x4x64 "
                       "kv_cache=(bf16:24x2x16x64,bf16:24x2x16x64) max_seq_len=48 bmm1_scale=0.125 uses_shared_paged_kv_idx=False"},
    {"block_sparse", "workspace_buffer=u8:0 block_tables=i32:2x4x3:randint(0,12) seq_lens=i32:2x4:randint(0,49) query=bf16:4x6x64 "
                     "kv_cache=bf16:12x2x2x16x64 max_seq_len=48 bmm1_scale=0.125 sinks=f32:6 enable_block_sparse_attention=True return_lse=True"},
    {"context_share", "workspace_buffer=u8:0 block_tables=i32:3x3:range(0) seq_lens=i32:[20,1,30] query=bf16:6x4x64 kv_cache=bf16:9x2x2x16x64 max_seq_len=40 "
                      "bmm1_scale=0.125 q_len_per_req=2 cp_world=4 cp_rank=2 causal_seqlens_kv_global=i32:[77,1,118] return_lse=True"},
    {"tree_mask", "workspace_buffer=u8:0 block_tables=i32:2x3:range(0) seq_lens=i32:[48,7] query=bf16:6x4x64 kv_cache=bf16:6x2x2x16x64 max_seq_len=48 "
                  "bmm1_scale=0.125 q_len_per_req=3 mask=u16:[5,0,3,0,7,0,1,0,3,0,6,0]"},
    {"block_sparse_rows_nvfp4", "workspace_buffer=u8:0 block_tables=i64:2x3x3:randint(0,12) seq_lens=i32:2x3:randint(2,49) query=bf16:6x4x64:normal(0,0.25) "
                                "kv_cache=(u8:12x2x16x32:randint(0,256),u8:12x2x16x32:randint(0,256)) kv_cache_sf=(e4m3:12x2x16x4,e4m3:12x2x16x4) "
                                "max_seq_len=48 bmm1_scale=0.125 q_len_per_req=2 enable_block_sparse_attention=True"},
};
constexpr op::Case kDenseContext[] = {
    {"causal", FI_TABLE "query=bf16:54x4x64 kv_cache=bf16:12x2x2x16x64 max_q_len=30 max_kv_len=48 bmm1_scale=0.125 bmm2_scale=1.0 batch_size=4 "
               "cum_seq_lens_q=i32:[0,20,23,24,54] cum_seq_lens_kv=i32:[0,48,48,49,72] return_lse=True"},
    {"few_and_many_rows", "workspace_buffer=u8:0 block_tables=i64:3x40:range(0) seq_lens=i64:[600,300,40] query=bf16:44x4x64 kv_cache=bf16:120x2x2x16x64 "
                          "max_q_len=40 max_kv_len=600 bmm1_scale=f32:1:const(0.125) bmm2_scale=1.0 batch_size=3 cum_seq_lens_q=i64:[0,3,4,44] "
                          "cum_seq_lens_kv=i32:[0,600,900,940] return_lse=True"},
    {"not_causal_window", FI_TABLE "query=bf16:54x4x64 kv_cache=(bf16:12x2x16x64,bf16:12x2x16x64) max_q_len=30 max_kv_len=48 bmm1_scale=0.125 bmm2_scale=0.5 "
                          "batch_size=4 cum_seq_lens_q=i32:[0,20,23,24,54] cum_seq_lens_kv=i32:[0,48,48,49,72] causal=False window_left=7 sinks=f32:4"},
    {"fp8_output_separate_pages", "workspace_buffer=u8:0 block_tables=i32:2x2x3:range(0) seq_lens=i32:[48,23] query=bf16:9x4x64 "
                                  "kv_cache=(bf16:12x2x16x64,bf16:12x2x16x64) max_q_len=6 max_kv_len=48 bmm1_scale=0.125 bmm2_scale=4.0 batch_size=2 "
                                  "cum_seq_lens_q=i32:[0,6,9] cum_seq_lens_kv=i32:[0,48,71] out_dtype=float8_e4m3fn uses_shared_paged_kv_idx=False", "cpu", 0, 0.125, 0.02},
};
#undef FI_WS
#undef FI_BF16
#undef FI_DECODE
#undef FI_CACHE
#undef FI_BUFFERS
#undef FI_ROWS
#undef FI_PREFILL
#undef FI_42
#undef FI_SINK
#undef FI_RANGES
#undef FI_BATCH
#undef FI_TABLE
}  // namespace
std::span<const op::Case> graph_decode_cases() { return kGraph; }
std::span<const op::Case> plan_on_device_cases() { return kOnDevice; }
std::span<const op::Case> graph_plan_on_device_cases() { return kGraphOnDevice; }
std::span<const op::Case> decode_forward_cases() { return kDecodeForward; }
std::span<const op::Case> graph_forward_cases() { return kGraphForward; }
std::span<const op::Case> prefill_forward_cases() { return kPrefillForward; }
std::span<const op::Case> ragged_forward_cases() { return kRaggedForward; }
std::span<const op::Case> sink_cases() { return kSink; }
std::span<const op::Case> ranges_cases() { return kRanges; }
std::span<const op::Case> batch_attention_cases() { return kBatch; }
std::span<const op::Case> dense_decode_cases() { return kDenseDecode; }
std::span<const op::Case> dense_context_cases() { return kDenseContext; }
}  // namespace flashinfer::ops::attention
