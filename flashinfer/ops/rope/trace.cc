// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"

namespace flashinfer::ops::rope {
namespace {

constexpr op::TraceEntry kTraces[] = {
    {.op = "apply_rope",
     .op_type = "rope",
     .axes = "nnz(n) batch_size(b) num_q_heads(hq)=h num_k_heads(hk)=kv head_dim(d)=d batch_size_plus_1(b+1)",
     .inputs = "q k indptr:int32 offsets:int32 rotary_dim interleave rope_scale rope_theta",
     .outputs = "q_rope[nnz num_q_heads head_dim]@q k_rope[nnz num_k_heads head_dim]@k",
     .tags = "status:verified",
     .constraints = "batch_size_plus_1 == batch_size + 1"},
    {.op = "apply_rope_inplace",
     .op_type = "rope",
     .axes = "nnz(n) batch_size(b) num_q_heads(hq)=h num_k_heads(hk)=kv head_dim(d)=d batch_size_plus_1(b+1)",
     .inputs = "q k indptr:int32 offsets:int32 rotary_dim interleave rope_scale rope_theta",
     .outputs = "q[nnz num_q_heads head_dim]@q k[nnz num_k_heads head_dim]@k",
     .prefix = "rope_inplace",
     .tags = "status:verified",
     .constraints = "batch_size_plus_1 == batch_size + 1"},
    {.op = "apply_rope_pos_ids",
     .op_type = "rope",
     .axes = "nnz(n) num_q_heads(hq)=h num_k_heads(hk)=kv head_dim(d)=d",
     .inputs = "q k pos_ids:int32 rotary_dim interleave rope_scale rope_theta",
     .outputs = "q_rope[nnz num_q_heads head_dim]@q k_rope[nnz num_k_heads head_dim]@k",
     .prefix = "rope_pos_ids",
     .tags = "status:verified"},
    {.op = "apply_rope_pos_ids_inplace",
     .op_type = "rope",
     .axes = "nnz(n) num_q_heads(hq)=h num_k_heads(hk)=kv head_dim(d)=d",
     .inputs = "q k pos_ids:int32 rotary_dim interleave rope_scale rope_theta",
     .outputs = "q[nnz num_q_heads head_dim]@q k[nnz num_k_heads head_dim]@k",
     .prefix = "rope_pos_ids_inplace",
     .tags = "status:verified"},
    {.op = "apply_llama31_rope",
     .op_type = "rope",
     .axes = "nnz(n) batch_size(b) num_q_heads(hq)=h num_k_heads(hk)=kv head_dim(d)=d batch_size_plus_1(b+1)",
     .inputs = "q k indptr:int32 offsets:int32 rotary_dim interleave rope_scale rope_theta low_freq_factor "
               "high_freq_factor old_context_len",
     .outputs = "q_rope[nnz num_q_heads head_dim]@q k_rope[nnz num_k_heads head_dim]@k",
     .prefix = "llama31_rope",
     .tags = "status:verified model:llama",
     .constraints = "batch_size_plus_1 == batch_size + 1"},
    {.op = "apply_llama31_rope_inplace",
     .op_type = "rope",
     .axes = "nnz(n) batch_size(b) num_q_heads(hq)=h num_k_heads(hk)=kv head_dim(d)=d batch_size_plus_1(b+1)",
     .inputs = "q k indptr:int32 offsets:int32 rotary_dim interleave rope_scale rope_theta low_freq_factor "
               "high_freq_factor old_context_len",
     .outputs = "q[nnz num_q_heads head_dim]@q k[nnz num_k_heads head_dim]@k",
     .prefix = "llama31_rope_inplace",
     .tags = "status:verified model:llama",
     .constraints = "batch_size_plus_1 == batch_size + 1"},
    {.op = "apply_llama31_rope_pos_ids",
     .op_type = "rope",
     .axes = "nnz(n) num_q_heads(hq)=h num_k_heads(hk)=kv head_dim(d)=d",
     .inputs = "q k pos_ids:int32 rotary_dim interleave rope_scale rope_theta low_freq_factor high_freq_factor "
               "old_context_len",
     .outputs = "q_rope[nnz num_q_heads head_dim]@q k_rope[nnz num_k_heads head_dim]@k",
     .prefix = "llama31_rope_pos_ids",
     .tags = "status:verified model:llama"},
    {.op = "apply_llama31_rope_pos_ids_inplace",
     .op_type = "rope",
     .axes = "nnz(n) num_q_heads(hq)=h num_k_heads(hk)=kv head_dim(d)=d",
     .inputs = "q k pos_ids:int32 rotary_dim interleave rope_scale rope_theta low_freq_factor high_freq_factor "
               "old_context_len",
     .outputs = "q[nnz num_q_heads head_dim]@q k[nnz num_k_heads head_dim]@k",
     .prefix = "llama31_rope_pos_ids_inplace",
     .tags = "status:verified model:llama"},
    {.op = "apply_rope_with_cos_sin_cache",
     .op_type = "rope",
     .axes = "nnz(n) num_q_heads_x_head_size(q)= num_k_heads_x_head_size(k)= head_size=d max_seq_len(max_pos) "
             "rotary_dim(rd)=",
     .inputs = "positions:int32 query key head_size cos_sin_cache is_neox",
     .outputs = "query_out[nnz num_q_heads_x_head_size]@query key_out[nnz num_k_heads_x_head_size]@key",
     .prefix = "rope_cos_sin_cache",
     .tags = "status:verified"},
    {.op = "apply_rope_with_cos_sin_cache_inplace",
     .op_type = "rope",
     .axes = "nnz(n) num_q_heads_x_head_size(q)= num_k_heads_x_head_size(k)= head_size=d max_seq_len(max_pos) "
             "rotary_dim(rd)=",
     .inputs = "positions:int32 query key head_size cos_sin_cache is_neox",
     .outputs = "query[nnz num_q_heads_x_head_size]@query key[nnz num_k_heads_x_head_size]@key",
     .prefix = "rope_cos_sin_cache_inplace",
     .tags = "status:verified"},
    {.op = "rope_quantize_fp8",
     .op_type = "rope",
     .axes = "nnz(n) num_q_heads(hq)=h num_k_heads=kv rope_dim(rd)=rope no_rope_dim(dq) max_seq_len rotary_dim=",
     .inputs = "q_rope k_rope[nnz num_k_heads rope_dim] q_nope? k_nope[nnz num_k_heads no_rope_dim]? "
               "cos_sin_cache[max_seq_len rotary_dim] pos_ids:int32 is_neox quant_scale_q quant_scale_kv",
     .outputs = "q_rope_out[nnz num_q_heads rope_dim]:float8_e4m3fn k_rope_out[nnz num_k_heads "
                "rope_dim]:float8_e4m3fn q_nope_out[nnz num_q_heads no_rope_dim]:float8_e4m3fn k_nope_out[nnz "
                "num_k_heads no_rope_dim]:float8_e4m3fn",
     .prefix = "rope_quantize_fp8",
     .tags = "status:verified fused quantize:fp8"},
    {.op = "mla_rope_quantize_fp8",
     .op_type = "rope",
     .axes = "nnz(n) num_q_heads(hq)=h rope_dim(rd)=rope no_rope_dim(dq) max_seq_len rotary_dim=",
     .inputs = "q_rope k_rope[nnz rope_dim] q_nope? k_nope[nnz no_rope_dim]? cos_sin_cache[max_seq_len rotary_dim] "
               "pos_ids:int64 is_neox quant_scale_q quant_scale_kv",
     .outputs = "q_rope_out[nnz num_q_heads rope_dim]:float8_e4m3fn k_rope_out[nnz rope_dim]:float8_e4m3fn "
                "q_nope_out[nnz num_q_heads no_rope_dim]:float8_e4m3fn k_nope_out[nnz no_rope_dim]:float8_e4m3fn",
     .prefix = "mla_rope_quantize_fp8",
     .tags = "status:verified fused quantize:fp8 mla"},
    {.op = "rope_quantize_fp8_append_paged_kv_cache",
     .op_type = "rope",
     .axes = "nnz(n) num_q_heads(hq)=h num_k_heads(hk)=kv rope_dim(rd)=rope no_rope_dim(dq) head_dim(dv) "
             "max_seq_len rotary_dim= num_pages page_size=ps batch_size batch_size_plus_1(b+1) "
             "num_kv_indices(pages)",
     .inputs = "q_rope k_rope[nnz num_k_heads rope_dim] q_nope? k_nope[nnz num_k_heads no_rope_dim]? v? "
               "cos_sin_cache[max_seq_len rotary_dim] pos_ids:int32 k_cache<paged_kv_cache.0[num_pages page_size "
               "num_k_heads head_dim] v_cache<paged_kv_cache.1[num_pages page_size num_k_heads head_dim] "
               "kv_indices:int32 kv_indptr:int32 batch_indices:int32 positions:int32 is_neox quant_scale_q "
               "quant_scale_kv",
     .outputs = "q_rope_out[nnz num_q_heads rope_dim]:float8_e4m3fn q_nope_out[nnz num_q_heads "
                "no_rope_dim]:float8_e4m3fn",
     .prefix = "rope_quantize_fp8_append_paged_kv_cache",
     .tags = "status:verified fused quantize:fp8"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::rope
