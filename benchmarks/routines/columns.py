# SPDX-License-Identifier: Apache-2.0
"""The families with their routines, and the columns of the CSV file, those of FlashInfer's tool in its order."""

# Family -> (module, routines).
FAMILIES = {
    "attention": ("attention", "BatchDecodeWithPagedKVCacheWrapper BatchPrefillWithPagedKVCacheWrapper "
                               "BatchPrefillWithRaggedKVCacheWrapper BatchMLAPagedAttentionWrapper"),
    "gemm": ("gemm", "gemm_fp8_nt_groupwise group_gemm_fp8_nt_groupwise bmm_fp8 mm_fp8 bmm_mxfp8 mm_fp4 mm_bf16_fp4 mm_mxfp8 "
                     "mm_bf16 bmm_bf16 tinygemm_bf16"),
    "moe": ("moe", "trtllm_fp4_block_scale_moe trtllm_fp8_block_scale_moe trtllm_fp8_per_tensor_scale_moe cutlass_fused_moe "
                   "cute_dsl_fp4_block_scale_moe b12x_fused_moe unified_nvfp4_moe bgmv_moe"),
    "moe_comm": ("comm", "moe_a2a_dispatch_combine"),
    "allreduce_comm": ("comm", "allreduce_fusion"),
    "mixed_comm": ("comm", "mixed_comm"),
    "norm": ("norm", "rmsnorm fused_add_rmsnorm gemma_rmsnorm gemma_fused_add_rmsnorm rmsnorm_quant fused_add_rmsnorm_quant "
                     "layernorm_quant rmsnorm_fp4quant add_rmsnorm_fp4quant fused_rmsnorm_silu fused_dit_layernorm "
                     "fused_qk_rmsnorm_rope"),
    "quantization": ("quantization", "mxfp8_quantize mxfp4_quantize nvfp4_quantize nvfp4_batched_quantize"),
    "sampling": ("sampling", "softmax sampling_from_probs sampling_from_logits top_k_sampling_from_probs top_p_sampling_from_probs "
                             "top_k_top_p_sampling_from_probs top_k_top_p_sampling_from_logits min_p_sampling_from_probs "
                             "top_k_renorm_probs top_p_renorm_probs top_k_mask_logits chain_speculative_sampling top_k "
                             "top_k_page_table_transform top_k_ragged_transform"),
    "rope": ("rope", "apply_rope apply_rope_pos_ids apply_llama31_rope apply_llama31_rope_pos_ids apply_rope_with_cos_sin_cache "
                     "mla_rope_quantize_fp8 rope_quantize_fp8 rope_quantize_fp8_append_paged_kv_cache"),
    "mamba": ("mamba", "selective_state_update"),
    "gdn": ("gdn", "gated_delta_rule_decode gated_delta_rule_mtp chunk_gated_delta_rule"),
    "kda": ("kda", "recurrent_kda_prefill"),
    "sparse_attention": ("sparse_attention", "MSAProxyScore MSASparseAttention MSASparseDecode MSAPipeline"),
    "topk_varlen": ("sampling", "top_k_varlen"),
}
FAMILY_OF = {routine: family for family, (_, routines) in FAMILIES.items() for routine in routines.split()}

# Families that run on several processes, of which rank 0 prints.
COMMUNICATION = ("moe_comm", "allreduce_comm", "mixed_comm")

# Names repeat between groups: each repetition has the same value.
_GROUPS = (
    "routine median_time std_time tflops tb_per_sec backend resolved_backend",
    "s_qo s_kv head_dim_qk head_dim_vo head_dim_ckv head_dim_kpe causal q_dtype kv_dtype avg_actual_seq_len random_actual_seq_len "
    "is_var_seq cute_dsl_impl",
    "n group_size tile_size scale_major_mode mma_sm use_128x4_sf_layout use_nvfp4 bias",
    "num_tokens intermediate_size num_experts top_k n_group topk_group routed_scaling_factor local_expert_offset local_num_experts "
    "routing_method use_shuffled_weight weight_layout use_routing_bias use_routing_scales_on_input weight_dtype activation_type fp4_mode "
    "cold_l2_cache cutlass_variant quantized_input tp_size tp_rank ep_size ep_rank",
    "num_tokens num_experts top_k ep_size max_num_tokens",
    "num_tokens ar_backend pattern layout_code",
    "local_bs op_name mode_name local_tp_size local_dp_size inter_tp_size inter_dp_size",
    "num_heads scale eps use_global_scale dit_mode ppf pph ppw",
    "alignment global_scale sf_layout do_shuffle sf_vec_size",
    "vocab_size top_k top_p min_p temperature num_speculate_tokens filter_apply_order max_len num_rows",
    "max_seq_len",
    "seq_len head_dim rotary_dim no_rope_dim rope_theta rope_scale interleave kv_layout",
    "nheads dim dstate ngroups cache_steps state_dtype weight_dtype has_z dt_softplus",
    "num_q_heads num_k_heads num_v_heads head_size state_layout pool_mode update_state use_qk_l2norm",
    "kda_variant kda_variant_policy sm_count packed has_initial_state",
    "topk max_k_tiles total_q total_kv",
    "batch_size hidden_size input_dtype out_dtype quant_dtype m k num_qo_heads num_kv_heads page_size enable_pdl is_sf_swizzled_layout "
    "refcheck no_cuda_graph use_cupti allow_output_mismatch random_seed case_tag generate_repro_command repro_command",
)
COLUMNS = " ".join(_GROUPS).split()
# Behind --extra_columns, after the others: where a row was measured, and the medians of other libraries in milliseconds.
PEERS = ("torch", "onednn", "zentorch", "llama.cpp", "ik_llama.cpp")
EXTRA_COLUMNS = ("device", "device_name", *(f"{peer}_median_time" for peer in PEERS))
