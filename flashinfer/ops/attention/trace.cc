// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"
#include "flashinfer/ops/attention/trace_texts.h"

namespace flashinfer::ops::attention {
namespace {
constexpr char kGqaPagedDecodePlanInputs[] =
    "indptr:int32 indices:int32 last_page_len:int32 num_qo_heads num_kv_heads head_dim page_size "
    "q_len_per_req is_causal:bool pos_encoding_mode window_left window_right logits_soft_cap q_data_type "
    "kv_data_type o_data_type data_type sm_scale rope_scale rope_theta non_blocking:bool "
    "fixed_split_size disable_split_kv:bool seq_lens:int32 block_tables[batch_size "
    "max_num_blocks_per_seq]:int32";
constexpr char kGqaPagedDecodeInputs[] =
    "q k_cache<paged_kv_cache.0[num_pages page_size num_kv_heads head_dim] "
    "v_cache<paged_kv_cache.1[num_pages page_size num_kv_heads head_dim] kv_indptr[len_indptr] "
    "kv_indices[num_kv_indices] sm_scale:float32 return_lse kv_len[batch_size]:int32?^";

constexpr char kShareConstraints[] = "0 <= cp_rank; cp_rank < cp_world";
constexpr op::TraceEntry kPagedDecodePlan = {
    .op = "BatchDecodeWithPagedKVCacheWrapper.plan",
    .op_type = "gqa_paged_plan",
    .axes =
        "batch_size(b) num_qo_heads=h num_kv_heads=kv head_dim=d page_size=ps len_indptr(b+1) "
        "num_kv_indices(n) max_num_blocks_per_seq",
    .inputs = kGqaPagedDecodePlanInputs,
    .prefix = "gqa_paged_decode_plan",
    .tags = "stage:decode phase:plan status:experimental",
    .constraints = "len_indptr == batch_size + 1; num_qo_heads % num_kv_heads == 0"};
constexpr op::TraceEntry kPagedDecode = {
    .op = "BatchDecodeWithPagedKVCacheWrapper.run",
    .op_type = "gqa_paged",
    .axes =
        "batch_size(n) num_qo_heads(h)=h num_kv_heads=kv head_dim(d)=d num_pages page_size=ps len_indptr "
        "num_kv_indices",
    .inputs = kGqaPagedDecodeInputs,
    .outputs = "output[batch_size num_qo_heads head_dim]@q lse[batch_size num_qo_heads]:float32?",
    .prefix = "gqa_paged_decode",
    .tags = "stage:decode status:verified",
    .constraints = "len_indptr == batch_size + 1; num_kv_indices == kv_indptr[-1].item()",
    .reference = kPagedDecodeReference,
    .helpers = kAttend,
    .init = kPagedDecodeInit};
constexpr op::TraceEntry kPagedPrefill = {
    .op = "BatchPrefillWithPagedKVCacheWrapper.run",
    .op_type = "gqa_paged",
    .axes =
        "num_qo_heads(h)=h num_kv_heads=kv head_dim(d)=d page_size=ps len_indptr total_q(n) num_kv_indices "
        "num_pages",
    .inputs =
        "q k_cache<paged_kv_cache.0[num_pages page_size num_kv_heads head_dim] "
        "v_cache<paged_kv_cache.1[num_pages page_size num_kv_heads head_dim] qo_indptr[len_indptr] "
        "kv_indptr[len_indptr] kv_indices[num_kv_indices] sm_scale:float32 return_lse "
        "kv_len[num_requests]:int32?^ causal:int32?^",
    .outputs = "output[total_q num_qo_heads head_dim]@q lse[total_q num_qo_heads]:float32?",
    .prefix = "gqa_paged_prefill",
    .tags = "stage:prefill status:verified",
    .constraints = "total_q == qo_indptr[-1].item(); num_kv_indices == kv_indptr[-1].item()",
    .reference = kPagedPrefillReference,
    .helpers = kAttend,
    .init = kPagedPrefillInit};
constexpr op::TraceEntry kTotalQueries = {
    .op = "", .op_type = "attention", .axes = "total_q(n) num_qo_heads(h)=h head_dim(d)=d"};
constexpr op::TraceEntry kRagged = {
    .op = "BatchPrefillWithRaggedKVCacheWrapper.run",
    .op_type = "gqa_ragged",
    .axes = "num_qo_heads(h)=h num_kv_heads(y)=kv head_dim(d dk dv)=d len_indptr total_q(n) total_kv(x)",
    .inputs = "q k v qo_indptr[len_indptr] kv_indptr[len_indptr] sm_scale:float32 return_lse causal:int32?^",
    .outputs = "output[total_q num_qo_heads head_dim]@q lse[total_q num_qo_heads]:float32?",
    .tags = "stage:prefill status:verified",
    .constraints = "total_q == qo_indptr[-1].item(); total_kv == kv_indptr[-1].item()",
    .reference = kRaggedReference,
    .helpers = kAttend,
    .init = kRaggedInit};

constexpr op::TraceEntry kTraces[] = {
    {.op = "single_decode_with_kv_cache",
     .op_type = "single_decode",
     .axes = "num_qo_heads(h)=h num_kv_heads(y)=kv head_dim(d dk dv)=d kv_len(x)",
     .inputs = "q k v",
     .outputs = "output[num_qo_heads head_dim]@q",
     .tags = "status:verified stage:decode",
     .reference = kSingleDecodeReference,
     .helpers = kAttend},
    {.op = "single_prefill_with_kv_cache",
     .op_type = "single_prefill",
     .axes = "num_qo_heads(h)=h num_kv_heads(y)=kv head_dim(d dk dv)=d qo_len(n) kv_len(x)",
     .inputs = "q k v",
     .outputs = "output[qo_len num_qo_heads head_dim]@q",
     .tags = "status:verified stage:prefill",
     .reference = kSinglePrefillReference,
     .helpers = kAttend},
    kPagedDecodePlan,
    kPagedDecode,
    kPagedDecode.of("BatchDecodeWithPagedKVCacheWrapper.forward"),
    {.op = "fast_decode_plan",
     .op_type = "attention",
     .axes = "total_q(n) batch_size(b)",
     .prefix = "fast_decode_plan"},
    {.op = "BatchDecodeWithPagedKVCacheWrapper.plan_on_device", .op_type = nullptr},
    {.op = "CUDAGraphBatchDecodeWithPagedKVCacheWrapper.plan_on_device", .op_type = nullptr},
    kPagedDecodePlan.of("CUDAGraphBatchDecodeWithPagedKVCacheWrapper.plan"),
    kPagedDecode.of("CUDAGraphBatchDecodeWithPagedKVCacheWrapper.run"),
    kPagedDecode.of("CUDAGraphBatchDecodeWithPagedKVCacheWrapper.forward"),
    kPagedPrefill,
    kPagedPrefill.of("BatchPrefillWithPagedKVCacheWrapper.forward"),
    kTotalQueries.of("BatchAttentionWithAttentionSinkWrapper.run", "batch_attention_with_attention_sink_wrapper_run"),
    kTotalQueries.of("BatchPrefillWithCausalBidirectionalRangesWrapper.run",
                     "batch_prefill_with_causal_bidirectional_ranges_wrapper_run"),
    kTotalQueries.of("BatchPrefillWithCausalBidirectionalRangesWrapper.forward",
                     "batch_prefill_with_causal_bidirectional_ranges_wrapper_forward"),
    kRagged,
    kRagged.of("BatchPrefillWithRaggedKVCacheWrapper.forward"),
    {.op = "BatchAttention.run",
     .op_type = "gqa_paged",
     .axes = "num_qo_tokens(n) num_qo_heads(h)=h num_kv_heads head_dim(d)=d",
     .inputs = "q kv_cache[num_qo_tokens num_qo_heads head_dim]",
     .outputs = "output[num_qo_tokens num_qo_heads head_dim]@q lse[num_qo_tokens num_qo_heads]:float32",
     .prefix = "batch_attention_run",
     .tags = "status:verified",
     .api = "flashinfer.attention._core.BatchAttention.run"},
    {.op = "trtllm_batch_decode_with_kv_cache",
     .op_type = "trtllm_paged_dcp_spec",
     .axes = "num_tokens(n) num_heads(h)=h num_kv_heads=kv head_dim(d)=d page_size=ps num_pages kv_cache_dim= "
             "batch_size max_pages_per_seq",
     .inputs = "query kv_cache[num_pages kv_cache_dim num_kv_heads page_size head_dim] block_tables[batch_size "
               "max_pages_per_seq]:int32 seq_lens[batch_size]:int32 request_order[batch_size]:int32? max_seq_len "
               "bmm1_scale~:float32 bmm2_scale~:float32 causal_seqlens_kv_global[batch_size]:int32 cp_world cp_rank "
               "q_len_per_req",
     .outputs = "output[num_tokens num_heads head_dim]@query lse[num_tokens num_heads]:float32",
     .prefix = "trtllm_batch_decode_dcp_spec",
     .tags = "status:verified stage:decode backend:dcp-spec",
     .constraints = kShareConstraints,
     .when = "causal_seqlens_kv_global=given kv_cache=rank5"},
    {.op = "trtllm_batch_decode_with_kv_cache",
     .op_type = "trtllm_paged_dcp_spec",
     .axes = "num_tokens(n) num_heads(h)=h num_kv_heads=kv head_dim(d)=d page_size=ps num_pages batch_size "
             "max_pages_per_seq",
     .inputs = "query k_cache<kv_cache.0[num_pages num_kv_heads page_size head_dim] v_cache<kv_cache.1[num_pages "
               "num_kv_heads page_size head_dim] block_tables[batch_size max_pages_per_seq]:int32 "
               "seq_lens[batch_size]:int32 max_seq_len bmm1_scale~:float32 bmm2_scale~:float32 "
               "causal_seqlens_kv_global[batch_size]:int32 cp_world cp_rank q_len_per_req",
     .outputs = "output[num_tokens num_heads head_dim]@query lse[num_tokens num_heads]:float32",
     .prefix = "trtllm_batch_decode_dcp_spec_split_kv",
     .tags = "status:verified stage:decode backend:dcp-spec",
     .constraints = kShareConstraints,
     .when = "causal_seqlens_kv_global=given"},
    {.op = "trtllm_batch_decode_with_kv_cache",
     .op_type = "trtllm_paged",
     .axes = "num_tokens(n) num_heads(h)=h num_kv_heads=kv head_dim(d)=d page_size=ps num_pages kv_cache_dim= "
             "batch_size max_pages_per_seq",
     .inputs = "query kv_cache[num_pages kv_cache_dim num_kv_heads page_size head_dim] block_tables[num_kv_heads "
               "batch_size max_pages_per_seq]:int32 seq_lens[num_kv_heads batch_size]:int32 max_seq_len "
               "bmm1_scale~:float32 bmm2_scale~:float32 enable_block_sparse_attention:bool!",
     .outputs = "output[num_tokens num_heads head_dim]@query",
     .prefix = "trtllm_batch_decode_block_sparse",
     .tags = "status:verified stage:decode backend:trtllm",
     .when = "enable_block_sparse_attention=1"},
    {.op = "trtllm_batch_decode_with_kv_cache",
     .op_type = "trtllm_paged",
     .axes = "num_tokens(n) num_heads(h)=h num_kv_heads=kv head_dim(d)=d page_size=ps num_pages kv_cache_dim= "
             "batch_size max_pages_per_seq",
     .inputs = "query kv_cache[num_pages kv_cache_dim num_kv_heads page_size head_dim] block_tables[batch_size "
               "max_pages_per_seq]:int32 seq_lens[batch_size]:int32 request_order[batch_size]:int32 max_seq_len "
               "bmm1_scale~:float32 bmm2_scale~:float32",
     .outputs = "output[num_tokens num_heads head_dim]@query",
     .prefix = "trtllm_batch_decode",
     .tags = "status:verified stage:decode backend:trtllm"},
    {.op = "trtllm_batch_context_with_kv_cache",
     .op_type = "trtllm_paged",
     .axes = "num_tokens(n) num_heads(h)=h num_kv_heads=kv head_dim(d)=d page_size=ps num_pages kv_cache_dim= "
             "batch_size max_pages_per_seq batch_size_plus_1_q(b+1) batch_size_plus_1_kv",
     .inputs = "query kv_cache[num_pages kv_cache_dim num_kv_heads page_size head_dim] block_tables[batch_size "
               "max_pages_per_seq]:int32 seq_lens[batch_size]:int32 max_q_len max_kv_len bmm1_scale~:float32 "
               "bmm2_scale~:float32 "
               "batch_size_scalar<batch_size cum_seq_lens_q:int32 cum_seq_lens_kv[batch_size_plus_1_kv]:int32",
     .outputs = "output[num_tokens num_heads head_dim]@query",
     .prefix = "trtllm_batch_context",
     .tags = "status:verified stage:prefill backend:trtllm"},
    {.op = "single_decode_with_kv_cache_with_jit_module",
     .op_type = "attention",
     .axes = "num_qo_heads(h)=h head_dim(d)=d x y head_dim_qk(dk)=dqk head_dim_vo(dv)=dvo",
     .prefix = "single_decode_with_kv_cache_with_jit_module"},
    {.op = "single_prefill_with_kv_cache_with_jit_module",
     .op_type = "attention",
     .axes = "total_q(n) num_qo_heads(h)=h head_dim(d)=d x y head_dim_qk(dk)=dqk head_dim_vo(dv)=dvo",
     .prefix = "single_prefill_with_kv_cache_with_jit_module"},
    {.op = "xqa",
     .op_type = "xqa",
     .axes = "batch_size(b) beam_width= num_heads_qo=h num_kv_heads=kv head_dim=d num_pages page_size=ps "
             "max_pages_per_seq(x) workspace_size num_semaphores",
     .inputs = "q[batch_size beam_width num_heads_qo head_dim] k_cache[num_pages page_size num_kv_heads head_dim] "
               "v_cache[num_pages page_size num_kv_heads head_dim] page_table:int32 seq_lens[batch_size "
               "beam_width]:uint32 output[batch_size beam_width num_heads_qo head_dim] "
               "workspace_buffer[workspace_size]:uint8 semaphores[num_semaphores]:uint32 num_kv_heads page_size",
     .outputs = "output[batch_size beam_width num_heads_qo head_dim]@q",
     .tags = "status:verified backend:xqa"},
    {.op = "xqa_mla",
     .op_type = "xqa",
     .axes = "batch_size(b) beam_width= num_heads_qo=h head_dim_ckv=ckv head_dim_qk=d_qk num_kv_heads= num_pages "
             "page_size=ps max_pages_per_seq(x) workspace_size num_semaphores",
     .inputs = "q[batch_size beam_width num_heads_qo head_dim_qk] k_cache[num_pages page_size num_kv_heads "
               "head_dim_qk] v_cache[num_pages page_size num_kv_heads head_dim_qk] page_table:int32 "
               "seq_lens[batch_size beam_width]:uint32 output[batch_size beam_width num_heads_qo head_dim_ckv] "
               "workspace_buffer[workspace_size]:uint8 semaphores[num_semaphores]:uint32 page_size",
     .outputs = "output[batch_size beam_width num_heads_qo head_dim_ckv]:bfloat16",
     .prefix = "xqa_mla",
     .tags = "status:verified backend:xqa mla"},
    {.op = "xqa_batch_decode_with_kv_cache",
     .op_type = "xqa",
     .axes = "num_tokens(n) num_heads(h)=h num_kv_heads=kv head_dim(d)=d page_size=ps num_pages kv_cache_dim= "
             "batch_size(b) max_pages_per_seq(x)",
     .inputs = "query kv_cache[num_pages kv_cache_dim num_kv_heads page_size head_dim] block_tables:int32 "
               "seq_lens:int32 max_seq_len bmm1_scale~:float32 bmm2_scale~:float32",
     .outputs = "output[num_tokens num_heads head_dim]@query",
     .prefix = "xqa_batch_decode",
     .tags = "status:verified stage:decode backend:xqa"},
    {.op = "cudnn_batch_decode_with_kv_cache",
     .op_type = "cudnn_paged",
     .axes = "batch_size(b) total_num_pages(p) num_pages_per_seq(x) num_heads_qo(h)=h num_heads_kv(hkv)=kv "
             "head_dim(d dk dv)=d page_size(ps)=ps num_q_rows(n)",
     .inputs = "q k_cache v_cache scale max_sequence_kv block_tables:int32 q_len_per_req window_left "
               "sinks[num_heads_qo]",
     .outputs = "output[num_q_rows num_heads_qo head_dim]@q",
     .prefix = "cudnn_batch_decode",
     .tags = "status:verified stage:decode backend:cudnn",
     .api = "flashinfer.cudnn.decode.cudnn_batch_decode_with_kv_cache"},
    {.op = "cudnn_batch_prefill_with_kv_cache",
     .op_type = "cudnn_paged",
     .axes = "batch_size(b) total_num_pages num_pages_per_seq(x) num_heads_qo(h)=h num_heads_kv=kv head_dim(d)=d "
             "page_size=ps num_tokens(n)",
     .inputs = "q k_cache[total_num_pages num_heads_kv page_size head_dim] v_cache[total_num_pages num_heads_kv "
               "page_size head_dim] scale max_token_per_sequence max_sequence_kv "
               "actual_seq_lens_q[batch_size]:int32! actual_seq_lens_kv[batch_size]:int32! block_tables:int32 "
               "causal return_lse",
     .outputs = "output[num_tokens num_heads_qo head_dim]@q lse[num_tokens num_heads_qo]:float32?",
     .prefix = "cudnn_batch_prefill",
     .tags = "status:verified stage:prefill backend:cudnn",
     .api = "flashinfer.cudnn.prefill.cudnn_batch_prefill_with_kv_cache"},
    {.op = "trtllm_ragged_attention_deepseek",
     .op_type = "trtllm_paged",
     .axes = "num_q_tokens(n) num_kv_tokens(m) num_heads(h hkv)=h head_dim_qk(d)=d_qk head_dim_v(dv)=d_v "
             "batch_size batch_size_plus_1(b+1) workspace_size",
     .inputs = "query key value workspace_buffer[workspace_size]:uint8 seq_lens[batch_size]:int32 max_q_len "
               "max_kv_len bmm1_scale~:float32 bmm2_scale~:float32 o_sf_scale batch_size window_left "
               "cum_seq_lens_q:int32 cum_seq_lens_kv:int32 is_causal:bool return_lse:bool enable_pdl:bool? "
               "skip_softmax_threshold_scale_factor skip_all_rows_active_check:bool",
     .outputs = "output[num_q_tokens num_heads head_dim_v]@query",
     .prefix = "trtllm_ragged_attention_deepseek",
     .tags = "status:verified stage:prefill backend:trtllm"},
    {.op = "fmha_varlen",
     .op_type = "attention",
     .axes = "total_q(n) num_qo_heads(h)=h head_dim(d)=d total_kv(m) num_kv_heads(hkv)=kv head_dim_vo(dv)=dvo",
     .prefix = "fmha_varlen"},
    {.op = "fmha_v2_prefill_deepseek",
     .op_type = "trtllm_paged",
     .axes = "batch_size(b) seq_len(s) num_heads(h)=h head_dim(d dv)=d scale_size",
     .inputs = "query key value out[batch_size seq_len num_heads head_dim] num_heads head_dim seq_len scale_softmax "
               "scale_bmm1 scale_bmm2 scale_bmm1_d[scale_size] scale_bmm2_d[scale_size]",
     .outputs = "out[batch_size seq_len num_heads head_dim]@query",
     .prefix = "fmha_v2_prefill_deepseek",
     .tags = "status:verified stage:prefill backend:trtllm"},
    {.op = "fmha_v2_prefill_sm120",
     .op_type = "attention",
     .axes = "batch_size(b) seq_len(s) num_heads(h)=h head_dim(d dv)=d",
     .prefix = "fmha_v2_prefill_sm120"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::attention
