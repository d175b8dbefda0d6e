// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"
#include "flashinfer/ops/mla/trace_texts.h"

namespace flashinfer::ops::mla {
namespace {

constexpr op::TraceEntry kTraces[] = {
    {.op = "BatchMLAPagedAttentionWrapper.run",
     .op_type = "mla_paged",
     .axes = "batch_size num_qo_heads=h head_dim_ckv=ckv head_dim_kpe=kpe page_size=ps ckv_scale_groups num_pages "
             "len_indptr num_kv_indices",
     .inputs = "q_nope[batch_size num_qo_heads head_dim_ckv]! q_pe[batch_size num_qo_heads head_dim_kpe]! "
               "ckv_cache[num_pages page_size head_dim_ckv]! kpe_cache[num_pages page_size head_dim_kpe]! "
               "kv_indptr[len_indptr] kv_indices[num_kv_indices] sm_scale:float32 ckv_scale ckv_scale_arr[num_pages "
               "page_size ckv_scale_groups] kpe_scale return_lse kv_len[batch_size]:int32?^",
     .outputs = "output[batch_size num_qo_heads head_dim_ckv]@q_nope lse[batch_size num_qo_heads]:float32?",
     .prefix = "mla_paged_decode",
     .tags = "stage:decode status:verified",
     .constraints = "len_indptr == batch_size + 1; num_kv_indices == kv_indptr[-1].item()",
     .api = "flashinfer.mla._core.BatchMLAPagedAttentionWrapper.run",
     .reference = kPagedReference,
     .init = kPagedInit},
    {.op = "append_paged_mla_kv_cache",
     .op_type = "page_append",
     .axes = "nnz_kv(nnz) head_dim_ckv(dc d)=ckv head_dim_kpe(dp d2)=kpe num_pages(p p2) page_size(ps ps2) "
             "batch_size(b) batch_size_plus_1(r) num_kv_indices(n)",
     .inputs = "append_ckv append_kpe batch_indices:int32 positions:int32 ckv_cache? kpe_cache? kv_indices:int32 "
               "kv_indptr:int32 kv_last_page_len:int32",
     .outputs = "ckv_cache[num_pages page_size head_dim_ckv]@append_ckv kpe_cache[num_pages page_size "
                "head_dim_kpe]@append_kpe",
     .prefix = "append_paged_mla_kv_cache",
     .tags = "status:verified",
     .constraints = "batch_size_plus_1 == batch_size + 1"},
    {.op = "concat_mla_k",
     .op_type = "mla_paged",
     .axes = "num_tokens num_heads=h nope_dim=nope rope_dim=rope total_dim=d num_heads_broadcast=",
     .inputs = "k[num_tokens num_heads total_dim] k_nope[num_tokens num_heads nope_dim] k_rope[num_tokens "
               "num_heads_broadcast rope_dim]",
     .outputs = "k[num_tokens num_heads total_dim]@k",
     .prefix = "concat_mla_k",
     .tags = "status:verified mla"},
    {.op = "concat_mla_kv_quant_fp8",
     .op_type = "mla_paged",
     .axes = "num_tokens(n) num_heads(h)=h kv_dim(d)=kv rope_dim=rope qk_dim v_dim",
     .inputs = "kv_nope k_pe[num_tokens rope_dim]",
     .outputs = "key[num_tokens num_heads qk_dim]:float8_e4m3fn value[num_tokens num_heads v_dim]:float8_e4m3fn",
     .prefix = "concat_mla_kv_quant_fp8",
     .tags = "status:verified mla",
     .api = "flashinfer.mla_kv_pack.concat_mla_kv_quant_fp8"},
    {.op = "trtllm_batch_decode_with_kv_cache_mla",
     .op_type = "mla_paged",
     .axes = "batch_size q_len_per_request num_heads=h head_dim_qk=d_qk kv_lora_rank=ckv qk_rope_head_dim=kpe "
             "qk_nope_head_dim=nope num_pages kv_pad_dim= page_size=ps max_pages_per_seq workspace_size",
     .inputs = "query[batch_size q_len_per_request num_heads head_dim_qk] kv_cache[num_pages kv_pad_dim page_size "
               "head_dim_qk] workspace_buffer[workspace_size]:uint8 qk_nope_head_dim kv_lora_rank qk_rope_head_dim "
               "block_tables[batch_size max_pages_per_seq]:int32 seq_lens[batch_size]:int32 max_seq_len "
               "bmm1_scale~:float32 bmm2_scale~:float32 cum_seq_lens_q:int32? max_q_len return_lse enable_dcp cp_world "
               "cp_rank causal_seqlens_kv_global[batch_size]:int32 return_lse_base",
     .outputs = "output[batch_size q_len_per_request num_heads kv_lora_rank]@query lse:float32",
     .prefix = "trtllm_batch_decode_mla_dcp",
     .tags = "status:verified stage:decode mla",
     .constraints = "0 <= cp_rank; cp_rank < cp_world",
     .when = "enable_dcp=1",
     .api = "flashinfer.mla._core.trtllm_batch_decode_with_kv_cache_mla"},
    {.op = "trtllm_batch_decode_with_kv_cache_mla",
     .op_type = "mla_paged",
     .axes = "batch_size num_tokens batch_size_plus_1(b+1) num_heads=h head_dim_qk=d_qk kv_lora_rank=ckv "
             "qk_rope_head_dim=kpe qk_nope_head_dim=nope num_pages kv_pad_dim= page_size=ps max_pages_per_seq "
             "workspace_size",
     .inputs = "query[num_tokens num_heads head_dim_qk] kv_cache[num_pages kv_pad_dim page_size head_dim_qk] "
               "workspace_buffer[workspace_size]:uint8 qk_nope_head_dim kv_lora_rank qk_rope_head_dim "
               "block_tables[batch_size max_pages_per_seq]:int32 seq_lens[batch_size]:int32 max_seq_len "
               "bmm1_scale~:float32 bmm2_scale~:float32 cum_seq_lens_q:int32! max_q_len return_lse_base",
     .outputs = "output[num_tokens num_heads kv_lora_rank]@query",
     .prefix = "trtllm_batch_decode_mla_ragged",
     .tags = "status:verified stage:decode backend:trtllm mla",
     .when = "cum_seq_lens_q=given",
     .api = "flashinfer.mla._core.trtllm_batch_decode_with_kv_cache_mla"},
    {.op = "trtllm_batch_decode_with_kv_cache_mla",
     .op_type = "mla_paged",
     .axes = "batch_size q_len_per_request num_heads=h head_dim_qk=d_qk kv_lora_rank=ckv qk_rope_head_dim=kpe "
             "qk_nope_head_dim=nope num_pages kv_pad_dim= page_size=ps sparse_mla_top_k=topk workspace_size",
     .inputs = "query[batch_size q_len_per_request num_heads head_dim_qk] kv_cache[num_pages kv_pad_dim page_size "
               "head_dim_qk] workspace_buffer[workspace_size]:uint8 qk_nope_head_dim kv_lora_rank qk_rope_head_dim "
               "block_tables[batch_size q_len_per_request sparse_mla_top_k]:int32 seq_lens[batch_size]:int32 "
               "max_seq_len sparse_mla_top_k! bmm1_scale~:float32 bmm2_scale~:float32 "
               "skip_softmax_threshold_scale_factor return_lse_base",
     .outputs = "output[batch_size q_len_per_request num_heads kv_lora_rank]@query",
     .prefix = "trtllm_batch_decode_mla_sparse",
     .tags = "status:verified stage:decode backend:trtllm mla sparse",
     .when = "block_tables=rank3",
     .api = "flashinfer.mla._core.trtllm_batch_decode_with_kv_cache_mla"},
    {.op = "trtllm_batch_decode_with_kv_cache_mla",
     .op_type = "mla_paged",
     .axes = "batch_size q_len_per_request num_heads=h head_dim_qk=d_qk kv_lora_rank=ckv qk_rope_head_dim=kpe "
             "qk_nope_head_dim=nope num_pages kv_pad_dim= page_size=ps max_pages_per_seq workspace_size",
     .inputs = "query[batch_size q_len_per_request num_heads head_dim_qk] kv_cache[num_pages kv_pad_dim page_size "
               "head_dim_qk] workspace_buffer[workspace_size]:uint8 qk_nope_head_dim kv_lora_rank qk_rope_head_dim "
               "block_tables[batch_size max_pages_per_seq]:int32 seq_lens[batch_size]:int32 max_seq_len "
               "bmm1_scale~:float32 bmm2_scale~:float32 return_lse_base skip_softmax_threshold_scale_factor",
     .outputs = "output[batch_size q_len_per_request num_heads kv_lora_rank]@query",
     .prefix = "trtllm_batch_decode_mla_dense",
     .tags = "status:verified stage:decode backend:trtllm mla",
     .api = "flashinfer.mla._core.trtllm_batch_decode_with_kv_cache_mla"},
    {.op = "xqa_batch_decode_with_kv_cache_mla",
     .op_type = "mla_paged",
     .axes = "batch_size(b) q_len_per_request num_heads=h head_dim_qk=d_qk kv_lora_rank=ckv qk_rope_head_dim=kpe "
             "qk_nope_head_dim=nope num_pages kv_pad_dim= page_size=ps max_pages_per_seq(x) workspace_size",
     .inputs = "query[batch_size q_len_per_request num_heads head_dim_qk] kv_cache[num_pages kv_pad_dim page_size "
               "head_dim_qk] workspace_buffer[workspace_size]:uint8 qk_nope_head_dim kv_lora_rank qk_rope_head_dim "
               "block_tables:int32 seq_lens:int32 max_seq_len bmm1_scale~:float32 bmm2_scale~:float32",
     .outputs = "output[batch_size q_len_per_request num_heads kv_lora_rank]@query",
     .prefix = "xqa_batch_decode_mla",
     .tags = "status:verified stage:decode backend:xqa mla",
     .api = "flashinfer.mla._core.xqa_batch_decode_with_kv_cache_mla"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::mla
