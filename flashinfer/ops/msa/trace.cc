// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"

namespace flashinfer::ops::msa {
namespace {

constexpr op::TraceEntry kTraces[] = {
    {.op = "msa_proxy_score",
     .op_type = "msa_proxy",
     .axes = "total_q num_qo_heads=h num_kv_heads=kv head_dim=d total_k len_indptr(b+1) max_k_tiles",
     .inputs = "q[total_q num_qo_heads head_dim] k[total_k num_kv_heads head_dim] cu_seqlens_q:int32 "
               "cu_seqlens_k:int32! causal",
     .outputs = "max_score[num_qo_heads max_k_tiles total_q]:float32",
     .prefix = "msa_proxy_score",
     .tags = "status:verified stage:indexer",
     .constraints = "cu_seqlens_q.shape[0] == len_indptr; total_q == cu_seqlens_q[-1].item(); total_k == "
                    "cu_seqlens_k[-1].item()",
     .api = "flashinfer.msa_ops.proxy_score.msa_proxy_score"},
    {.op = "msa_proxy_score_fp4",
     .op_type = "msa_proxy",
     .axes = "total_q num_qo_heads=h num_kv_heads=kv head_dim_half= total_k len_indptr(b+1) max_k_tiles "
             "q_sf_numel k_sf_numel",
     .inputs = "q_fp4[total_q num_qo_heads head_dim_half]:uint8 k_fp4[total_k num_kv_heads head_dim_half]:uint8 "
               "q_scale[q_sf_numel]:uint8 k_scale[k_sf_numel]:uint8 q_global_scale k_global_scale "
               "cu_seqlens_q:int32 cu_seqlens_k:int32! causal",
     .outputs = "max_score[num_qo_heads max_k_tiles total_q]:float32",
     .prefix = "msa_proxy_score_fp4",
     .tags = "status:verified stage:indexer quantize:fp4",
     .constraints = "total_q == cu_seqlens_q[-1].item(); total_k == cu_seqlens_k[-1].item()",
     .api = "flashinfer.msa_ops.proxy_score.msa_proxy_score_fp4"},
    {.op = "msa_topk_select",
     .op_type = "msa_topk",
     .axes = "num_qo_heads(h)=h max_k_tiles(x) total_q(n) topk=topk",
     .inputs = "max_score topk num_valid_pages[total_q]:int32 force_begin_blocks force_end_blocks",
     .outputs = "block_indices[total_q num_qo_heads topk]:int32",
     .prefix = "msa_topk_select",
     .tags = "status:verified stage:indexer sparse:topk",
     .constraints =
         "max_score.shape[0] == num_qo_heads; max_score.shape[1] == max_k_tiles; max_score.shape[2] == total_q",
     .api = "flashinfer.msa_ops.sparse_topk_select.msa_topk_select"},
    {.op = "msa_sparse_attention",
     .op_type = "msa_sparse",
     .axes = "total_q(n) num_qo_heads=h num_kv_heads(g)=kv head_dim=d total_k topk(t)=topk len_indptr(b+1)",
     .inputs = "q[total_q num_qo_heads head_dim] k[total_k num_kv_heads head_dim] v[total_k num_kv_heads head_dim] "
               "q2k_indices cu_seqlens_q:int32 cu_seqlens_k:int32! causal softmax_scale",
     .outputs = "output[total_q num_qo_heads head_dim]@q",
     .prefix = "msa_sparse_attention",
     .tags = "status:verified stage:prefill sparse:topk",
     .constraints = "q2k_indices.shape[0] == num_kv_heads; q2k_indices.shape[1] == total_q; q2k_indices.shape[-1] == "
                    "topk; total_q == cu_seqlens_q[-1].item()",
     .api = "flashinfer.msa_ops.sparse_prefill.msa_sparse_attention"},
    {.op = "msa_sparse_decode_attention",
     .op_type = "msa_sparse",
     .axes = "total_q(n) num_qo_heads=h num_kv_heads(g)=kv head_dim=d total_k topk(t)=topk len_indptr(b+1)",
     .inputs = "q[total_q num_qo_heads head_dim] k[total_k num_kv_heads head_dim] v[total_k num_kv_heads head_dim] "
               "q2k_indices cu_seqlens_k:int32! seqlen_q! causal softmax_scale",
     .outputs = "output[total_q num_qo_heads head_dim]@q",
     .prefix = "msa_sparse_decode_attention",
     .tags = "status:verified stage:decode sparse:topk",
     .constraints = "q2k_indices.shape[0] == num_kv_heads; q2k_indices.shape[1] == total_q; q2k_indices.shape[-1] == "
                    "topk; total_k == cu_seqlens_k[-1].item()",
     .api = "flashinfer.msa_ops.sparse_decode.msa_sparse_decode_attention"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::msa
