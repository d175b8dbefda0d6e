// SPDX-License-Identifier: Apache-2.0
// What trace definitions say of the ops beyond their tables (op/trace.h).
#include "flashinfer/op/trace.h"
#include "flashinfer/ops/linear_attention/trace_texts.h"

namespace flashinfer::ops::linear_attention {
namespace {

constexpr op::TraceEntry kTraces[] = {
    {.op = "selective_state_update",
     .op_type = "mamba",
     .axes = "batch_size dim=d dstate=s",
     .inputs = "state[batch_size dim dstate] x[batch_size dim] dt[batch_size dim] A[dim dstate] B[batch_size "
               "dstate] C[batch_size dstate] D[dim] z[batch_size dim] dt_bias[dim] dt_softplus",
     .outputs = "out[batch_size dim]@x",
     .prefix = "selective_state_update",
     .tags = "status:verified mamba",
     .api = "flashinfer.mamba.selective_state_update.selective_state_update"},
    {.op = "gated_delta_rule_decode",
     .op_type = "gdn",
     .axes = "batch_size(b) seq_len(t)= num_q_heads(h)=qk num_k_heads= num_v_heads(hv)=v head_size(k v)=d",
     .inputs = "q k[batch_size seq_len num_k_heads head_size] v state? A_log a dt_bias b scale",
     .outputs = "output[batch_size seq_len num_v_heads head_size]:bfloat16 new_state[batch_size num_v_heads "
                "head_size head_size]:float32",
     .prefix = "gdn_decode",
     .tags = "stage:decode status:verified",
     .constraints = "num_v_heads >= num_q_heads; num_v_heads % num_q_heads == 0; num_k_heads == num_q_heads",
     .reference = kDecodeReference,
     .init = kDecodeInit},
    {.op = "gated_delta_rule_decode_pretranspose",
     .op_type = "gdn",
     .axes = "batch_size(b) seq_len(t)= num_q_heads(h)=qk num_k_heads= num_v_heads(hv)=v head_size(k v)=d",
     .inputs = "q k[batch_size seq_len num_k_heads head_size] v state? A_log a dt_bias b scale",
     .outputs = "output[batch_size seq_len num_v_heads head_size]:bfloat16 new_state[batch_size num_v_heads "
                "head_size head_size]:float32",
     .prefix = "gdn_decode_pretranspose",
     .tags = "stage:decode status:verified",
     .constraints = "num_v_heads >= num_q_heads; num_v_heads % num_q_heads == 0; num_k_heads == num_q_heads"},
    {.op = "gated_delta_rule_mtp",
     .op_type = "gdn",
     .axes = "batch_size(b) seq_len(t) num_q_heads(h)=qk num_k_heads= num_v_heads(hv)=v head_size(k v)=d "
             "pool_size(p)",
     .inputs = "q k[batch_size seq_len num_k_heads head_size] v initial_state initial_state_indices A_log a dt_bias "
               "b scale intermediate_states_buffer[pool_size seq_len num_v_heads head_size head_size] "
               "cache_replayssm:bool disable_state_update:bool use_qk_l2norm:bool replayssm_rawv "
               "replayssm_rawk[pool_size num_k_heads seq_len head_size] replayssm_g replayssm_beta",
     .outputs = "output[batch_size seq_len num_v_heads head_size]:bfloat16 final_state[pool_size num_v_heads "
                "head_size head_size]:float32 replayssm_rawv>replayssm_rawv[pool_size num_v_heads seq_len "
                "head_size]:bfloat16? replayssm_rawk>replayssm_rawk[pool_size num_k_heads seq_len "
                "head_size]:bfloat16? replayssm_g>replayssm_g[pool_size num_v_heads seq_len]:float32? "
                "replayssm_beta>replayssm_beta[pool_size num_v_heads seq_len]:float32?",
     .prefix = "gdn_mtp",
     .tags = "stage:mtp status:verified",
     .constraints =
         "num_v_heads >= num_q_heads; num_v_heads % num_q_heads == 0; num_k_heads == num_q_heads; seq_len > 1"},
    {.op = "gated_delta_rule_replayssm_commit",
     .op_type = "gdn",
     .axes = "num_layers(l) pool_size(p) batch_size(b) seq_len(t) num_k_heads=k num_v_heads(hv)=v head_size=d",
     .inputs = "checkpoint_state[num_layers pool_size num_v_heads head_size head_size] rawv_cache[num_layers "
               "pool_size num_v_heads seq_len head_size] rawk_cache[num_layers pool_size num_k_heads seq_len "
               "head_size] g_cache beta_cache state_indices accept_lens track_state_indices track_steps "
               "use_qk_l2norm:bool null_block_id backend:str",
     .outputs = "checkpoint_state>checkpoint_state[num_layers pool_size num_v_heads head_size head_size]:float32",
     .prefix = "gdn_replayssm_commit",
     .tags = "stage:commit",
     .constraints = "head_size == 128; num_v_heads % num_k_heads == 0; batch_size <= pool_size"},
    {.op = "causal_conv1d_fn",
     .op_type = "causal_conv1d",
     .axes = "dim=d width=w",
     .inputs = "x weight[dim width] bias[dim] query_start_loc cache_indices has_initial_state conv_states "
               "activation pad_slot_id",
     .prefix = "causal_conv1d_fn"},
    {.op = "causal_conv1d_update",
     .op_type = "causal_conv1d",
     .axes = "dim=d width=w",
     .inputs = "x conv_state weight[dim width] bias[dim] activation cache_seqlens conv_state_indices pad_slot_id "
               "num_accepted_tokens",
     .prefix = "causal_conv1d_update"},
    {.op = "ssd_chunk_scan",
     .op_type = "mamba",
     .axes = "batch_size(b) seq_len(s) num_heads(nh)=h head_dim(p)=d num_groups(ng)=g state_size(n)=s "
             "len_cu_seqlens(m)",
     .prefix = "ssd_chunk_scan"},
    {.op = "kda_recurrence",
     .op_type = "kda",
     .axes = "total_seq_len(n) num_q_heads(h)=qk num_v_heads(hv)=v head_size(k v)=d len_cu_seqlens(m) pool_size(p)",
     .prefix = "kda_recurrence"},
    {.op = "checkpointing_ssu",
     .op_type = "mamba",
     .axes = "batch_size(b) seq_len(t) num_seqs(n) num_slots(p) num_heads(nh)=h head_dim(dim)=d num_groups(ng)=g "
             "state_size(ds)=s ring_len(ring)= len_cu_seqlens(m)",
     .prefix = "checkpointing_ssu"},
    {.op = "replayssm_materialize_layer",
     .op_type = "mamba",
     .axes = "batch_size(b) num_slots(p) num_rings(r) num_heads(nh)=h head_dim(dim)=d num_groups(ng)=g "
             "state_size(ds)=s ring_len(ring)=",
     .prefix = "replayssm_materialize_layer"},
    {.op = "fused_kda_decode",
     .op_type = "kda",
     .axes = "num_rows(r) num_heads(h)=h head_size(d k)=d num_slots(p) qkv_dim(channels)= conv_state_len(length)=",
     .prefix = "fused_kda_decode"},
    {.op = "packed_fused_kda_decode",
     .op_type = "kda",
     .axes = "num_rows(r) num_seqs(n) num_draft(t)= num_heads(h)=h head_size(d k)=d num_slots(p) qkv_dim(channels)= "
             "conv_state_len(length)= len_query_start_loc(m)",
     .prefix = "packed_fused_kda_decode"},
    {.op = "chunk_gated_delta_rule",
     .op_type = "gdn",
     .axes = "total_seq_len(t) num_seqs num_q_heads(hq)=qk num_k_heads(hk)= num_v_heads(hv)=v head_size(k v)=d "
             "len_cu_seqlens(n)",
     .inputs = "q k v g[total_seq_len num_v_heads] beta[total_seq_len num_v_heads] state<initial_state[num_seqs "
               "num_v_heads head_size head_size] cu_seqlens scale",
     .outputs = "output[total_seq_len num_v_heads head_size]@q new_state[num_seqs num_v_heads head_size "
                "head_size]:float32?",
     .prefix = "gdn_prefill",
     .tags = "stage:prefill status:verified",
     .constraints = "num_v_heads % num_q_heads == 0 or num_q_heads % num_v_heads == 0; len_cu_seqlens == num_seqs + 1; "
                    "total_seq_len == cu_seqlens[-1].item()"},
    {.op = "chunk_gated_delta_rule2",
     .op_type = "gdn2",
     .axes = "total_seq_len(t) num_seqs num_q_heads(hq)=qk num_k_heads(hk)= num_v_heads(hv)=v head_size(k v)=d "
             "len_cu_seqlens(n)",
     .inputs = "q k v g[total_seq_len num_v_heads head_size]! beta[total_seq_len num_v_heads head_size]! "
               "w[total_seq_len num_v_heads head_size]! initial_state[num_seqs num_v_heads head_size head_size] "
               "cu_seqlens! scale",
     .outputs = "output[total_seq_len num_v_heads head_size]@q final_state[num_seqs num_v_heads head_size "
                "head_size]:float32",
     .prefix = "gdn2_prefill",
     .tags = "stage:prefill status:verified",
     .constraints = "num_v_heads >= num_q_heads; num_v_heads % num_q_heads == 0; num_k_heads == num_q_heads; "
                    "len_cu_seqlens == num_seqs + 1; total_seq_len == cu_seqlens[-1].item()"},
    {.op = "chunk_gated_delta_product",
     .op_type = "gdp",
     .axes = "total_seq_len(t) expanded_seq_len(rows) num_seqs num_householder=n num_q_heads(hq)=qk "
             "num_k_heads(hk)= num_v_heads(hv)=v head_size(k v)=d len_cu_seqlens(n)",
     .inputs = "q k v g[total_seq_len num_v_heads] beta[expanded_seq_len num_v_heads] num_householder! "
               "initial_state[num_seqs num_v_heads head_size head_size] cu_seqlens! scale",
     .outputs = "output[total_seq_len num_v_heads head_size]@q final_state[num_seqs num_v_heads head_size "
                "head_size]:float32",
     .prefix = "gdp_prefill",
     .tags = "stage:prefill status:verified",
     .constraints =
         "expanded_seq_len == total_seq_len * num_householder; num_householder >= 1; num_k_heads == "
         "num_q_heads or num_k_heads == num_v_heads; num_v_heads >= num_q_heads; num_v_heads % num_q_heads == "
         "0; len_cu_seqlens == num_seqs + 1; total_seq_len == cu_seqlens[-1].item()"},
    {.op = "gdn_fused_decode_step",
     .op_type = "gdn",
     .axes = "batch_size(b) num_pages(p) seq_len=:1 hidden_size(d)=h n_ba(2*hv)= qkv_dim(channels)= "
             "num_v_heads(hv)=v head_dim(v k)=d conv_width(width)= conv_state_len(length)=",
     .inputs = "hidden_states w_ba mixed_qkv conv_weight conv_bias conv_state[num_pages qkv_dim conv_state_len] "
               "A_log dt_bias scale:float32? ssm_state state_indices use_qk_l2norm out[batch_size seq_len "
               "num_v_heads head_dim]:bfloat16",
     .outputs = "output>out[batch_size seq_len num_v_heads head_dim]:bfloat16 conv_state_out>conv_state[num_pages "
                "qkv_dim conv_state_len]:bfloat16 ssm_state_out>ssm_state[num_pages num_v_heads head_dim "
                "head_dim]:float32",
     .prefix = "gdn_fused_decode",
     .tags = "stage:decode status:verified",
     .constraints = "num_pages >= batch_size; n_ba == 2 * num_v_heads; conv_state_len == conv_width - 1; qkv_dim > "
                    "num_v_heads * head_dim; (qkv_dim - num_v_heads * head_dim) % (2 * head_dim) == 0",
     .api = "flashinfer.gdn_kernels.experimental.gdn_fused_decode.gdn_fused_decode_step"},
};
}  // namespace
extern const std::span<const op::TraceEntry> traces;
constinit const std::span<const op::TraceEntry> traces = kTraces;
}  // namespace flashinfer::ops::linear_attention
