# SPDX-License-Identifier: Apache-2.0
"""The modules of FlashInfer's Python package and the names in them that are not made from the library's registry (`_modules` reads it).

`MODULES`: module -> names, `name=other` for what is called `other` here. A name that an op of the library has is found without
an entry in `HOMES`; one that nothing has raises NotImplementedError when it is called, with a sentence of `REASONS`.
"""

PACKAGES = frozenset((
    "attention attn_scores autotuner comm cudnn cute_dsl cute_dsl.attention cute_dsl.attention.wrappers cutile diffusion_ops dsv3_ops fused_moe fused_moe.cute_dsl "
    "gdn_kernels gemm grouped_mm kda_kernels logits_processor mamba mla moe_ep moe_ep.core moe_ep.core.comm moe_ep.core.kernel moe_ep.core.validation moe_ep.modes msa_ops norm "
    "parallel_attention prims_ts profiler quantization testing topk_varlen trace trace_apply").split())

# File of the package -> the names that it defines for modules of the table.
HOMES = {
    "autotuner": "MeasurementPolicy autotune autotune_v2 autotune_v2_reload",
    "tllm_enums": "ActivationType DtypeTrtllmGen GatedActType RoutingInputMode RoutingMethodType deduce_trtllm_gen_tensor_dtype "
                  "is_gated_activation normalize_activation_type trtllm_gen_dtype_has_scale",
    "_layouts": "_maybe_get_cached_w3_w1_permute_indices get_reorder_rows_for_gated_act_gemm_row_indices "
                "get_w2_permute_indices_with_cache interleave_moe_scales_for_sm90_mixed_gemm interleave_moe_weights_for_sm90_mixed_gemm",
    "utils": "get_trtllm_gen_multi_ctas_kv_counter_bytes last_positive_power_of_2 next_positive_power_of_2",
    "_four_over_six": "NVFP4_QUANT_ENV_VARS NVFP44Over6Config NVFP44Over6ErrMode current_nvfp4_4over6_config nvfp4_4over6_code nvfp4_4over6_from_code nvfp4_e4m3_max "
                      "nvfp4_per_token_scale_inv resolve_nvfp4_4over6",
    "_checks": "default_check default_tolerances standard_check",
    "_linear": "fp4_linear fp4_linear_swiglu fp4_qkv_qknorm_rope fp8_linear fp8_linear_swiglu fp8_qkv_qknorm_rope",
    "_gdn_bf16": "gated_delta_rule_mtp_bf16",
    "_kda": "KDAPrefillPlanCache RecurrentKDAPrefillWorkspace RecurrentKDAPrefillWrapper packed_kda_decode recurrent_kda recurrent_kda_decode",
    "_kda_prepared": "prepare_bf16_kda_prefill prepare_tf32_kda_prefill",
    "_mamba": "SSDCombined allocate_checkpointing_ssu_scratch compute_seq_chunk_cumsum replayssm_materialize ssd_combined_fwd tile_state_size",
    "_mla_dimensions": "MLAHeadDimensions MLALayerDimensions deepseek_mla_dimensions smaller_mla_dimensions supported_mla_layer_dimensions",
    "_svdquant": "SVDQUANT_LORA_RANK_GRANULARITY mm_nvfp4_svdquant svdquant_linear tgv_gemm_sm100",
    "_lora": "bgmv_moe_expand bgmv_moe_gemm1_lora_delta bgmv_moe_gemm2_lora_delta bgmv_moe_shrink fill_w_ptr prepare_bgmv_moe",
    "_moe_api": "ActivationConfig B12xNvfp4Config B12xW4A16Config BackendOptions CutlassBf16Config CutlassFp8BlockConfig "
                "CutlassFp8PerTensorConfig CutlassMxfp8Config CutlassMxfp8Mxfp4Config CutlassNvfp4Config CutlassW4A16Config "
                "CutlassW4A8Config ExecutionConfig ExpertConfig GELU GeGLU GeGLUTanh Identity MoEActivationPack MoEConfig "
                "MoEFinalizeConfig MoEWeightPack QuantConfig QuantFormat ReLU ReLU2 RoutingConfig SiLU SiTU SwiGLU SwiGLUStep "
                "TrtllmBf16Config TrtllmFp4Config TrtllmFp8BlockConfig TrtllmFp8PerTensorConfig TrtllmMxInt4Config",
    "_moe_shared": "CudnnFrostBf16Config CudnnFrostMxfp8Config CudnnFrostMxfp8Mxfp4Config CudnnFrostNvfp4Config CuteDslConfig CuteDslNvfp4Runner CuteDslRunner "
                   "PrimsTsConfig PrimsTsRunner prepare_cute_dsl_weights",
    "_moe_checkpoint": "CakeWarpDecodeConfig CuTileBf16Config CuTileBf16Runner CuTileFp8PerTensorBf16Config CuTileFp8PerTensorBf16Runner "
                       "CuTileFp8PerTensorConfig CuTileMxfp4Bf16Config CuTileMxfp4Bf16Runner CuTileMxfp4Config CuTileMxfp4Mxfp8Config CuTileMxfp4Mxfp8Runner "
                       "CuTileMxfp4Runner CuTileMxfp8Bf16Config CuTileMxfp8Bf16Runner CuTileMxfp8Config CuTileMxfp8Runner CuTileNvfp4Bf16Config "
                       "CuTileNvfp4Bf16Runner CuTileNvfp4Config CuTileNvfp4Runner CutlassHummingConfig SM12xFp8Config SM12xMxfp8Mxfp4Config "
                       "SM12xNvfp4Bf16Config SM12xNvfp4Bf16Runner SM12xNvfp4Config SM12xNvfp4Runner prepare_cutile_bf16_weights prepare_cutile_fp8_weights "
                       "prepare_cutile_mxfp4_weights prepare_cutile_nvfp4_weights",
    "_moe_layer": "MoELayer",
    "_moe_ep": "AlgoKnob BootstrapConfig CombineInputParams CombineOutput DispatchInputParams DispatchOutput EpAlgorithm EpLayout Fleet FleetAlgoKnobAllocator "
               "FleetAlgoKnobFaultTolerance FleetAlgoKnobNumChannelsPerRank FleetAlgoKnobNumQpsPerRank FleetAlgoKnobQuantization FleetAlgoKnobRdmaBufferSize "
               "FleetAlgoKnobTopologyCapacity FleetParams Handle HandleAlgoKnobNumReceivedTokens HandleAlgoKnobSplitOperation HandleAlgoKnobTopKWeights "
               "HandleAlgoKnobUserStream HandleParams MoEEpArchError MoEEpConfigError MoEEpFaultToleranceUnsupportedError MoEEpNotBuiltError MoEEpRankEvictedError "
               "MoEEpTensors MoEEpTransportError MoEEpWeightPack PrequantizedMoEWeights QuantType UnquantizedMoEWeights dummy_moe_weights _index_knobs",
    "_moe_ep_checks": "bootstrap_comm_group bootstrap_ep_rank_world bootstrap_ep_world_size bootstrap_moe_ep_runtime ensure_bootstrap_dist_validated "
                      "ensure_moe_ep_cuda_device finalize_moe_ep_runtime supports_fault_tolerance validate_arch_for_backend validate_bootstrap_process_group_ready "
                      "validate_bootstrap_world_size validate_fleet_params validate_fleet_weights validate_mega_arch validate_mega_fleet_params "
                      "validate_mega_forward_inputs validate_split_forward_inputs",
    "_moe_ep_comm": "MoEEpCommParams MoEEpCommunication MoEEpDispatchResult NVLinkOneSidedAlltoAll NVLinkOneSidedConfig available_communication_backends "
                    "create_communication create_fleet register_communication register_fleet",
    "_moe_ep_layer": "FusedMoeKernelConfig IdentityConfig MegaConfig MoEEpLayer MoEEpSplitLayer NcclEpConfig NvepConfig SplitConfig SplitKernelContext "
                     "kernel_requires_weights run_split_kernel",
    "_moe_prepare": "prepare_cutlass_bf16_weights prepare_trtllm_bf16_weights prepare_trtllm_fp4_activations prepare_trtllm_fp4_weights "
                    "prepare_trtllm_fp8_block_activations prepare_trtllm_fp8_block_weights prepare_trtllm_fp8_per_tensor_activations "
                    "prepare_trtllm_fp8_per_tensor_weights prepare_trtllm_mxint4_weights",
    "_moe_prepare_cutlass": "prepare_cutlass_fp8_block_weights prepare_cutlass_fp8_per_tensor_weights prepare_cutlass_mxfp8_activations "
                            "prepare_cutlass_mxfp8_mxfp4_weights prepare_cutlass_mxfp8_weights prepare_cutlass_nvfp4_weights prepare_cutlass_w4a16_weights "
                            "prepare_cutlass_w4a8_weights",
    "_moe_runners": "MoERunner B12xNvfp4Runner B12xW4A16Runner CutlassBf16Runner CutlassFp8BlockRunner CutlassFp8PerTensorRunner CutlassMxfp8Mxfp4Runner CutlassMxfp8Runner CutlassNvfp4Runner "
                    "CutlassW4A16Runner CutlassW4A8Runner TrtllmBf16RoutedRunner TrtllmFp4RoutedRunner TrtllmFp8BlockRunner TrtllmFp8PerTensorRunner TrtllmMxInt4RoutedRunner",
    "_moe_utils":
        "AuxStreamType MoeEventType Fp4QuantizedTensor compute_swizzled_sf_shape fp4_scale_infer_shape get_fp4_shape get_global_attrs get_model_extra_attrs "
        "get_piecewise_cuda_graph_flag is_torch_compiling model_extra_attrs nearest_in_buckets set_piecewise_cuda_graph_flag set_torch_compiling "
        "with_model_extra_attrs",
    "_buckets": "get_hybrid_num_tokens_buckets make_hybrid_bucket_mapper make_random_topk_ids map_to_hybrid_bucket map_to_hybrid_bucket_uncapped "
                "min_block_table_width padded_seq_len",
    "_availability": "CUDNN_AVAILABLE _FUSED_KDA_DECODE_AVAILABLE available_backends can_implement_filtered_topk can_use_clusters_topk can_use_cub_topk gdn_fused_decode_step_supported has_bgmv_moe has_monomoe "
                     "have_nccl_ep have_nixl_ep is_cuda_tile_available is_cute_dsl_arch_supported is_cute_dsl_available is_trtllm_moe_supported "
                     "is_cute_dsl_experimental_available is_prims_ts_available kda_prefill_supports_fp32_checkpoints ugpu_state_pool",
    "_attention_helpers": "MLAHeadDimensions MLALayerDimensions deepseek_mla_dimensions fmha_varlen_plan get_customize_batch_prefill_module "
                          "make_hashable_cache smaller_mla_dimensions supported_mla_layer_dimensions",
    "_comm": "AllReduceFusionPattern MNNVLAllReduceFusionWorkspace MNNVLAllreduceFusionStrategy QuantizationSFLayout "
             "TRTLLMAllReduceFusionWorkspace compute_fp4_swizzled_layout_sf_size create_allreduce_fusion_workspace is_mnnvl_cutedsl_supported",
    "_context_parallel": "decode_cp_a2a_allocate_mnnvl_workspace decode_cp_a2a_alltoall decode_cp_a2a_init_workspace "
                         "decode_cp_a2a_lse_reduce_create_workspace decode_cp_a2a_lse_reduce_workspace_size decode_cp_a2a_workspace_size",
    "_vllm_all_reduce": "vllm_all_reduce vllm_dispose vllm_get_graph_buffer_ipc_meta vllm_init_custom_ar vllm_meta_size vllm_register_buffer "
                        "vllm_register_graph_buffers",
    "_comm_memory": "MnnvlConfig MnnvlMemory create_shared_buffer free_shared_buffer pack_strided_memory",
    "_trtllm_all_reduce": "AllReduceFusionOp AllReduceStrategyConfig AllReduceStrategyType trtllm_allreduce_fusion trtllm_create_ipc_workspace_for_all_reduce_fusion "
                          "trtllm_destroy_ipc_workspace_for_all_reduce trtllm_destroy_ipc_workspace_for_all_reduce_fusion trtllm_lamport_initialize "
                          "trtllm_lamport_initialize_all trtllm_moe_allreduce_fusion trtllm_moe_finalize_allreduce_fusion",
    "_collectives": "NVSHMEMAllReduce all_gather_matmul prepare_all_gather_matmul quantized_all_reduce",
    "_gathered_norms": "CakeFusedNormCombineWorkspace MNNVLCuteDSLAllGatherDualNormWorkspace MNNVLCuteDSLAllGatherNormQuantWorkspace "
                       "MNNVLCuteDSLMoEFinalizeAllReduceWorkspace all_gather_gated_residual_next_rmsnorm all_gather_rmsnorm_fp4_quantize cake_fused_norm_combine "
                       "cake_fused_norm_combine_create_workspace cake_fused_norm_combine_destroy_workspace cake_fused_norm_combine_workspace_bytes "
                       "init_tp_moe_finalize_rmsnorm moe_finalize_rmsnorm_allreduce supports_all_gather_gated_residual_next_rmsnorm "
                       "supports_all_gather_rmsnorm_fp4_quantize supports_moe_finalize_rmsnorm_allreduce supports_tp_moe_finalize_rmsnorm tp_moe_finalize_rmsnorm",
    "_mnnvl_all_reduce":
        "MNNVLQuantType mpi_barrier trtllm_mnnvl_allreduce trtllm_mnnvl_fused_allreduce_add_rmsnorm trtllm_mnnvl_fused_allreduce_add_rmsnorm_quant",
    "_nvshmem": "alloc_empty_unique_id alltoall barrier_all barrier_all_on_current_stream finalize free_tensor get_unique_id init malloc my_pe n_pes",
    "_pcie": "PcieIpcAllGatherWorkspace PcieIpcAllReduceWorkspace PcieIpcReduceScatterWorkspace",
    "_mixed_comm": "MixedCommHandler MixedCommMode MixedCommOp run_mixed_comm",
    "_ulysses": "UlyssesCommunicator UlyssesWorkspace dispose_ulysses_a2a init_ulysses_a2a merge_ulysses_output_head_chunk pack_ulysses_qkv_head_chunk ulysses_a2a",
    "_ulysses_topology": "ULYSSES_BACKENDS UlyssesBackendDecision UlyssesBackendError UlyssesRankTopology decide_ulysses_backend probe_ulysses_rank_topology "
                         "resolve_ulysses_backend",
    "_moe_alltoall": "MoeAlltoAll moe_a2a_active_rank_mask moe_a2a_dispatch moe_a2a_get_workspace_size_per_rank "
                     "moe_a2a_wrap_payload_tensor_in_workspace",
    "_comm_backends": "CommBackend MPIBackend MpiComm ShmBackend TorchDistBackend",
    "_mapping": "Mapping",
    "_indexer": "compute_paged_mqa_logits_schedule deepgemm_fp8_paged_mqa_logits fp4_paged_mqa_logits fp8_mqa_logits fp8_paged_mqa_logits get_paged_mqa_logits_metadata",
    "_b12x": "B12xMoEWrapper b12x_fused_moe get_b12x_activation_name prepare_b12x_nvfp4_weights prepare_b12x_w4a16_weights",
    "_cute_dsl_moe": "CuteDslBf16MoEWrapper CuteDslMoEWrapper CuteDslMxfp8Mxfp4MoEWrapper SUPPORTED_CUTE_DSL_MOE_ACTIVATION_TYPES cute_dsl_fused_moe "
                     "cute_dsl_fused_moe_bf16 cute_dsl_fused_moe_mxfp8_mxfp4 cute_dsl_fused_moe_nvfp4 normalize_cute_dsl_moe_activation_type "
                     "validate_cute_dsl_moe_situ_config validate_cute_dsl_moe_swiglu_config",
    "_chunked_lm_head": "chunked_lm_head_logprob chunked_lm_head_loss",
    "_dsa": "dsa_indexer_topk dsa_indexer_topk_workspace_size dsa_sparse_attention dsa_sparse_attention_varlen",
    "_cute_dsl": "BatchMLADecodeCuteDSLWrapper BatchPrefillCuteDSLWrapper fused_add_rmsnorm_cute fused_add_rmsnorm_quant_cute layernorm_cute "
                 "mxfp4_quantize_cute_dsl mxfp8_quantize_cute_dsl nvfp4_quantize_cute_dsl nvfp4_quantize_per_token_cute_dsl qk_rmsnorm_cute rmsnorm_cute rmsnorm_quant_cute",
    "_cute_dsl_decode": "BatchDecodeCuteDSLWrapper BatchDecodePagedCuteDSLWrapper",
    "_dsv4": "trtllm_batch_decode_sparse_mla_dsv4",
    "jit.fp4_quantization": "gen_fp4_quantization_module",
    "_green_ctx": "create_green_ctx_streams get_cudevice get_device_resource split_device_green_ctx split_device_green_ctx_by_sm_count split_resource "
                  "split_resource_by_sm_count",
    "_hca": "convert_compressed_page_aligned_sparse_indices_to_hca_metadata",
    "_fmha_v2": "trtllm_fmha_v2_prefill",
    "_nvfp4_attention": "nvfp4_attention_sm120_fwd nvfp4_attention_sm120_quantize_qkv",
    "_parallel": "ParallelAttention UnevenCPConfig VarlenCPConfig get_parallel_groups ring_varlen_config split_varlen_input ulysses_varlen_config uneven_cp_config",
    "_cudnn_linear": "cudnn_chunk_gated_delta_product cudnn_chunk_gated_delta_rule cudnn_chunk_gated_delta_rule2 cudnn_recurrent_kda",
    "_cake": "CakeRMSNormFunction cake_batch_context_with_kv_cache cake_batch_decode_with_kv_cache cake_rmsnorm cake_rmsnorm_train_backward "
             "cake_rmsnorm_train_backward_workspace_bytes cake_rmsnorm_train_forward cake_top_k_top_p_sampling_from_probs get_dcp_spec_counter_bytes "
             "get_dcp_spec_workspace_size_bytes",
    "_cake_rope": "cake_fused_qk_rmsnorm_rope_append_paged_kv_cache cake_fused_qk_rmsnorm_rope_quantize_fp8_append_paged_kv_cache",
    "_moe_sort": "MoeActivationType allocate_moe_sort_buffers get_max_num_permuted_tokens get_max_num_tiles moe_activation moe_geglu moe_gelu moe_output_memset "
                 "moe_output_memset_inplace moe_permute moe_relu moe_silu moe_sort moe_swiglu moe_unpermute",
    "_one_gpu": "CudnnCaptureUnsafeError CudnnPlanBuildInCaptureError CudnnWorkspaceTooSmallInCaptureError GatedActMxfp8Outputs MoEInputs MoeRunnerInputs "
                "checkCudaErrors convert_sf_from_mma_layout convert_sf_to_mma_layout delay_kernel get_mma_sf_shape get_sm_count_constraint "
                "m_grouped_fp8_gemm_nt_contiguous m_grouped_fp8_gemm_nt_masked trtllm_low_latency_gemm",
    "_monomoe": "alloc_scratchpad get_scratchpad_size_bytes interleave_for_tma_wgmma_up mono_moe",
    "_profiler": "EventType decode_tag export_to_perfetto_trace",
    "_msa": "MSASparseAttentionWorkspace SUPPORTS_PACKED_KV prepare_msa_nvfp4_sparse_decode supports_packed_kv",
    "_logits_ops": "FusedProbsMinPSampleOp FusedProbsTopKSampleOp FusedProbsTopKTopPSampleOp FusedProbsTopPSampleOp "
                   "FusedTemperatureSoftmaxOp LogitsSampleOp LogitsTopKOp MinPOp Op ParameterizedOp ProbsSampleOp ProbsTopKOp SoftmaxOp "
                   "TaggedTensor TemperatureOp TensorType TopPOp",
    "logits_processor": "CompileError Compiler FusionRule build_minp_sampling build_temperature_softmax build_topk_sampling build_topp_sampling "
                        "get_default_fusion_rules get_default_validity_checks indices_terminal_rule infer_initial_type "
                        "joint_topk_topp_sampleprobs_guard single_softmax_rule LegalizationError LogitsPipe LogitsProcessor MinP Sample Softmax Temperature TopK TopP "
                        "compile_pipeline legalize_processors",
}

# Why names are missing. Keys: a name, with `*` for any letters, or `@module`, which is a module with those below it; the first that
# fits counts.
REASONS = (
    ("get_*_module get_*_module_mla gen_* get_customize_*", "the library has no modules of its own for single kernels; flashinfer.jit describes what is compiled"),
    ("MnnvlMoe MoEAlltoallInfo", "FlashInfer has deprecated it; MoeAlltoAll and moe_a2a_* send tokens to the ranks of their experts"),
    ("MNNVLCuteDSLAllReduceFusionWorkspace", "it is memory for kernels of one GPU generation; every AllReduceFusionWorkspace takes its patterns, 12 too"),
    ("CudaRTLibrary", "there is no CUDA memory to share between processes; create_shared_buffer shares memory of the CPU"),
    ("trtllm_custom_all_reduce trtllm_create_ipc_workspace_for_all_reduce", "FlashInfer has removed it; allreduce_fusion has the sums"),
    ("PcieIpc*Config PcieIpc*Variant *pcie_ipc_*", "it chooses among kernels of GPUs; the workspaces PcieIpc* need no choice"),
    ("get_ulysses_a2a_module", "there is no such module: ulysses_a2a calls the library"),
    ("@comm", "docs/comm.md says what there is of communication; torch.distributed has the rest"),
    ("*cake_* Cake* *sm110* MiniMaxH3* *minimax_h3* *kimi_k3_* cudnn_frost* CuTile* SM12x* CutlassHumming* *humming* *alphamoe* *AlphaMo* "
     "BGMVMoE*Plan prepare_nvfp4_* deepseek_v41_* prepare_balanced_* precompile_* Prepared* "
     "prepare_group_gemm* prepare_batch_deepgemm* prepare_cudnn_batch* @mega_moe_v3", "this is for one model or one GPU generation; the ops take any sizes"),
    ("swizzle_sf unswizzle_sf", "flashinfer.block_scale_interleave orders scales"),
    ("resolve_b12x_activation_name", "get_b12x_activation_name takes activations by their names and numbers"),
    ("*_da_*", "it is a work list of GPU kernels that serve several layers at once"),
    ("@moe_ep", "it is one GPU's kernel or transport; MoEEpLayer with SplitConfig(comm=NVLinkOneSidedConfig()) is there"),
    ("@gdn_decode @gdn_prefill @gdn2_prefill @gdp_prefill @gdn_kernels @kda @kda_decode @kda_prefill @kda_kernels @mamba @cudnn.linear_attention "
     "chunk_gated_* gdn_* *kda* *KDA* *ssu* SSDCombined replayssm_*", "it is not implemented; docs/linear-attention.md says what there is of linear attention and state-space models"),
    ("*outing* is_trtllm_moe_supported", "it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits"),
    ("get_fast_topk_clusters get_num_cached_for_topk", "top_k has no algorithm on thread-block clusters, and no size that needs one"),
    ("@cute_dsl *cute* CuteDsl* *_cute_dsl* RMSNorm* LayerNorm* Sm100*", "this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, "
     "flashinfer.gemm or flashinfer.fused_moe"),
    ("@cudnn *cudnn* *Cudnn*", "cuDNN is not used; the wrappers of flashinfer.decode and flashinfer.prefill compute the same"),
    ("@prims_ts @deep_gemm @cutile prepare_fp4_gemm prepare_fp8_* prepare_fp4_k_grouped_gemm prepare_mega_*", "this is a back end of one GPU "
     "generation; flashinfer.gemm has the op"),
    ("prepare_dense_mqa* prepare_paged_mqa*", "this is a launch plan of one GPU generation; fp8_mqa_logits and fp8_paged_mqa_logits compute the scores"),
    ("@sparse_mqa", "its metadata are a GPU kernel's; flashinfer.fp4_paged_mqa_logits computes the scores of all keys"),
    ("*Runner prepare_*", "this belongs to one GPU kernel; flashinfer.fused_moe has the op for plain weights"),
    ("@jit", "it is a detail of FlashInfer's own kernels; flashinfer.jit describes what is compiled here"),
)

MODULES = {
    "":
        "B12xMoEWrapper CakeFmhaRequestOrderedDecodePlan CakeRMSNormFunction CuteDslBf16MoEWrapper CuteDslMoEWrapper CuteDslMxfp8Mxfp4MoEWrapper KDAPrefillPlanCache MeasurementPolicy MiniMaxH3Mxfp8PreAttention "
        "MiniMaxH3Nvfp4PreAttention MiniMaxH3QkvQuantizePack NVFP44Over6Config NVFP44Over6ErrMode RecurrentKDAPrefillWorkspace "
        "RecurrentKDAPrefillWrapper RoutingMethodType autotune autotune_v2 autotune_v2_reload b12x_fused_moe cake_batch_context_with_kv_cache "
        "cake_batch_decode_with_kv_cache cake_fmha_manifest cake_rmsnorm cake_rmsnorm_train_backward cake_rmsnorm_train_backward_workspace_bytes "
        "cake_rmsnorm_train_forward cake_top_k_top_p_sampling_from_probs compute_paged_mqa_logits_schedule cudnn_frost_grouped_gemm1_swiglu "
        "cute_dsl_fused_moe cute_dsl_fused_moe_bf16 cute_dsl_fused_moe_mxfp8_mxfp4 cute_dsl_fused_moe_nvfp4 cudnn_frost_grouped_gemm1_swiglu_workspace_size fp4_paged_mqa_logits fp8_paged_mqa_logits gdn_fused_decode_step_supported "
        "get_dcp_spec_counter_bytes get_dcp_spec_workspace_size_bytes is_gated_activation kda_prefill_supports_fp32_checkpoints "
        "launch_sm110_gqa_decode_prepared min_block_table_width mm_nvfp4_svdquant nvfp4_attention_sm120_fwd nvfp4_attention_sm120_quantize_qkv "
        "packed_kda_decode padded_seq_len plan_cake_fmha_request_ordered_paged_decode precompile_paged_mqa_logits "
        "prepare_balanced_batch_decode_with_kv_cache prepare_bf16_kda_prefill prepare_sm110_gqa_decode prepare_tf32_kda_prefill recurrent_kda "
        "resolve_nvfp4_4over6 sm110_gqa_decode svdquant_linear tgv_gemm_sm100 trtllm_fmha_v2_prefill",
    "activation": "resolve_nvfp4_4over6",
    "attention": "",
    "attn_scores":
        "compute_paged_mqa_logits_schedule fp4_paged_mqa_logits fp8_paged_mqa_logits min_block_table_width padded_seq_len precompile_paged_mqa_logits",
    "attn_scores.attn_scores":
        "compute_paged_mqa_logits_schedule fp4_paged_mqa_logits fp8_paged_mqa_logits min_block_table_width padded_seq_len",
    "autotune_cache": "MeasurementPolicy autotune_v2 autotune_v2_reload",
    "autotuner": "",
    "autotuner.autotuner":
        "ConstraintSpec DynamicDim DynamicTensorSpec OptimizationProfile StaticDim TunableRunner TuningConfig",
    "autotuner.initializers": "",
    "cake_concat_mla_kv_quant_fp8": "",
    "cake_dcp": "",
    "cake_fmha": "",
    "cake_fmha_request_ordered": "",
    "cake_fused_qk_rope_append": "",
    "cake_fused_qk_rope_fp8_append": "",
    "cake_kda_tf32_runtime": "",
    "cake_minimax_h3": "",
    "cake_rmsnorm_train":
        "CakeRMSNormFunction cake_rmsnorm",
    "cake_sampling": "",
    "cake_vsa": "",
    "cake_vsa_sm90": "",
    "cascade": "BatchDecodeWithPagedKVCacheWrapper BatchPrefillWithPagedKVCacheWrapper single_prefill_with_kv_cache",
    "chunked_lm_head": "chunked_lm_head_logprob chunked_lm_head_loss",
    "comm":
        "AllReduceFusionOp AllReduceFusionPattern AllReduceFusionWorkspace AllReduceStrategyConfig AllReduceStrategyType "
        "CakeFusedNormCombineWorkspace CudaRTLibrary MNNVLAllReduceFusionWorkspace Mapping MixedCommHandler MoeAlltoAll PcieIpcAllGatherLaunchConfig "
        "PcieIpcAllGatherVariant PcieIpcAllGatherWorkspace PcieIpcAllReduceWorkspace PcieIpcLaunchConfig PcieIpcReduceScatterLaunchConfig "
        "PcieIpcReduceScatterVariant PcieIpcReduceScatterWorkspace PcieIpcVariant QuantizationSFLayout ShmBackend TRTLLMAllReduceFusionWorkspace "
        "ULYSSES_BACKENDS UlyssesBackendDecision UlyssesBackendError UlyssesCommunicator UlyssesRankTopology UlyssesWorkspace all_gather_matmul "
        "allreduce_fusion cake_fused_norm_combine cake_fused_norm_combine_create_workspace cake_fused_norm_combine_destroy_workspace "
        "cake_fused_norm_combine_workspace_bytes compute_fp4_swizzled_layout_sf_size create_allreduce_fusion_workspace create_shared_buffer "
        "decide_ulysses_backend decode_cp_a2a_allocate_mnnvl_workspace decode_cp_a2a_alltoall decode_cp_a2a_init_workspace decode_cp_a2a_lse_reduce "
        "decode_cp_a2a_lse_reduce_create_workspace decode_cp_a2a_lse_reduce_workspace_size decode_cp_a2a_workspace_size dispose_ulysses_a2a "
        "free_shared_buffer gen_pcie_ipc_comm_module gen_trtllm_comm_module gen_ulysses_a2a_module gen_vllm_comm_module "
        "get_pcie_ipc_all_gather_launch_config get_pcie_ipc_comm_module get_pcie_ipc_launch_config get_pcie_ipc_reduce_scatter_launch_config "
        "get_ulysses_a2a_module init_tp_moe_finalize_rmsnorm init_ulysses_a2a is_mnnvl_cutedsl_supported merge_ulysses_output_head_chunk "
        "moe_a2a_active_rank_mask moe_a2a_combine moe_a2a_dispatch moe_a2a_get_workspace_size_per_rank moe_a2a_initialize "
        "moe_a2a_sanitize_expert_ids moe_a2a_wrap_payload_tensor_in_workspace pack_strided_memory pack_ulysses_qkv_head_chunk "
        "pcie_ipc_default_cache_path prepare_all_gather_matmul probe_pcie_ipc_rank_topology probe_ulysses_rank_topology quantized_all_reduce "
        "resolve_pcie_ipc_profile resolve_ulysses_backend run_mixed_comm supports_tp_moe_finalize_rmsnorm tp_moe_finalize_rmsnorm "
        "trtllm_allreduce_fusion trtllm_create_ipc_workspace_for_all_reduce trtllm_create_ipc_workspace_for_all_reduce_fusion "
        "trtllm_custom_all_reduce trtllm_destroy_ipc_workspace_for_all_reduce trtllm_destroy_ipc_workspace_for_all_reduce_fusion "
        "trtllm_lamport_initialize trtllm_lamport_initialize_all trtllm_moe_allreduce_fusion trtllm_moe_finalize_allreduce_fusion ulysses_a2a "
        "vllm_all_reduce vllm_dispose vllm_get_graph_buffer_ipc_meta vllm_init_custom_ar vllm_meta_size vllm_register_buffer "
        "vllm_register_graph_buffers",
    "comm.abstractions": "CommBackend",
    "comm.allreduce":
        "allreduce_fusion create_allreduce_fusion_workspace is_mnnvl_cutedsl_supported MNNVLAllReduceFusionWorkspace TRTLLMAllReduceFusionWorkspace",
    "comm.comm_backend": "MPIBackend MpiComm ShmBackend TorchDistBackend",
    "comm.mapping": "Mapping",
    "comm.mixed_comm": "MixedCommHandler MixedCommMode MixedCommOp run_mixed_comm",
    "comm.mnnvl": "CommBackend MnnvlConfig MnnvlMemory MpiComm TorchDistBackend",
    "comm.mnnvl_cutedsl": "",
    "comm.mnnvl_cutedsl_ag":
        "MNNVLCuteDSLAllGatherDualNormWorkspace MNNVLCuteDSLAllGatherNormQuantWorkspace all_gather_gated_residual_next_rmsnorm all_gather_rmsnorm_fp4_quantize "
        "supports_all_gather_gated_residual_next_rmsnorm supports_all_gather_rmsnorm_fp4_quantize",
    "comm.mnnvl_cutedsl_moe_finalize":
        "MNNVLCuteDSLMoEFinalizeAllReduceWorkspace moe_finalize_rmsnorm_allreduce supports_moe_finalize_rmsnorm_allreduce",
    "comm.cake_fused_norm_combine":
        "CakeFusedNormCombineWorkspace cake_fused_norm_combine cake_fused_norm_combine_create_workspace cake_fused_norm_combine_destroy_workspace "
        "cake_fused_norm_combine_workspace_bytes",
    "comm.tp_moe_finalize_rmsnorm": "init_tp_moe_finalize_rmsnorm supports_tp_moe_finalize_rmsnorm tp_moe_finalize_rmsnorm",
    "comm.all_gather_matmul": "all_gather_matmul prepare_all_gather_matmul",
    "comm.nvshmem":
        "alloc_empty_unique_id alltoall barrier_all barrier_all_on_current_stream finalize free_tensor get_unique_id init malloc my_pe n_pes",
    "comm.pcie_ipc_collectives": "PcieIpcAllGatherWorkspace PcieIpcReduceScatterWorkspace",
    "comm.quantized_allreduce": "quantized_all_reduce",
    "comm.trtllm_ar":
        "AllReduceFusionOp AllReduceFusionPattern AllReduceStrategyConfig AllReduceStrategyType QuantizationSFLayout compute_fp4_swizzled_layout_sf_size "
        "trtllm_allreduce_fusion trtllm_create_ipc_workspace_for_all_reduce_fusion trtllm_destroy_ipc_workspace_for_all_reduce "
        "trtllm_destroy_ipc_workspace_for_all_reduce_fusion trtllm_lamport_initialize trtllm_lamport_initialize_all trtllm_moe_allreduce_fusion "
        "trtllm_moe_finalize_allreduce_fusion",
    "comm.ulysses": "UlyssesCommunicator UlyssesWorkspace dispose_ulysses_a2a init_ulysses_a2a ulysses_a2a",
    "comm.ulysses_head_chunk": "merge_ulysses_output_head_chunk pack_ulysses_qkv_head_chunk",
    "comm.ulysses_topology":
        "ULYSSES_BACKENDS UlyssesBackendDecision UlyssesBackendError UlyssesRankTopology decide_ulysses_backend probe_ulysses_rank_topology resolve_ulysses_backend",
    "comm.vllm_ar":
        "all_reduce=vllm_all_reduce dispose=vllm_dispose get_graph_buffer_ipc_meta=vllm_get_graph_buffer_ipc_meta init_custom_ar=vllm_init_custom_ar "
        "meta_size=vllm_meta_size register_buffer=vllm_register_buffer register_graph_buffers=vllm_register_graph_buffers",
    "comm.mnnvl_cutedsl_ar": "MNNVLCuteDSLAllReduceFusionWorkspace",
    "comm.nvshmem_allreduce": "NVSHMEMAllReduce",
    "comm.pcie_ipc_ar": "PcieIpcAllReduceWorkspace",
    "comm.trtllm_alltoall": "MnnvlMoe MoEAlltoallInfo",
    "comm.trtllm_mnnvl_ar":
        "MNNVLAllReduceFusionWorkspace MNNVLAllreduceFusionStrategy MNNVLQuantType mpi_barrier trtllm_mnnvl_allreduce "
        "trtllm_mnnvl_fused_allreduce_add_rmsnorm trtllm_mnnvl_fused_allreduce_add_rmsnorm_quant",
    "comm.trtllm_moe_alltoall":
        "MoeAlltoAll moe_a2a_active_rank_mask moe_a2a_combine moe_a2a_dispatch moe_a2a_get_workspace_size_per_rank moe_a2a_initialize "
        "moe_a2a_sanitize_expert_ids moe_a2a_wrap_payload_tensor_in_workspace",
    "comm.dcp_alltoall":
        "decode_cp_a2a_allocate_mnnvl_workspace decode_cp_a2a_alltoall decode_cp_a2a_init_workspace decode_cp_a2a_workspace_size",
    "comm.dcp_lse_reduce":
        "decode_cp_a2a_lse_reduce decode_cp_a2a_lse_reduce_create_workspace decode_cp_a2a_lse_reduce_workspace_size",
    "comm.cuda_ipc": "CudaRTLibrary create_shared_buffer free_shared_buffer",
    "comm.workspace_base": "AllReduceFusionWorkspace",
    "concat_ops": "",
    "cuda_utils": "checkCudaErrors",
    "cudnn":
        "cudnn_batch_decode_with_kv_cache cudnn_batch_prefill_with_kv_cache cudnn_chunk_gated_delta_product "
        "cudnn_chunk_gated_delta_rule cudnn_chunk_gated_delta_rule2 cudnn_recurrent_kda",
    "cudnn.decode":
        "CUDNN_AVAILABLE cudnn_batch_decode_with_kv_cache prepare_cudnn_batch_decode",
    "cudnn.linear_attention":
        "cudnn_chunk_gated_delta_product cudnn_chunk_gated_delta_rule cudnn_chunk_gated_delta_rule2 cudnn_recurrent_kda",
    "cudnn.prefill":
        "CUDNN_AVAILABLE cudnn_batch_prefill_with_kv_cache prepare_cudnn_batch_prefill",
    "cudnn.utils": "",
    "cute_dsl":
        "BatchDecodeCuteDSLWrapper BatchDecodePagedCuteDSLWrapper BatchMLADecodeCuteDSLWrapper BatchPrefillCuteDSLWrapper "
        "add_rmsnorm_fp4quant convert_sf_from_mma_layout convert_sf_to_mma_layout create_scale_factor_tensor "
        "fused_add_rmsnorm_cute fused_add_rmsnorm_quant_cute get_cutlass_dtype get_mma_sf_shape get_num_sm get_sm_version "
        "grouped_gemm_nt_masked is_cute_dsl_arch_supported is_cute_dsl_available is_cute_dsl_experimental_available "
        "layernorm_cute make_ptr qk_rmsnorm_cute require_cute_dsl_arch rmsnorm_cute rmsnorm_fp4quant rmsnorm_quant_cute "
        "torch_to_cutlass_dtype",
    "cute_dsl.add_rmsnorm_fp4quant": "add_rmsnorm_fp4quant",
    "cute_dsl.attention": "BatchDecodeCuteDSLWrapper BatchDecodePagedCuteDSLWrapper BatchMLADecodeCuteDSLWrapper BatchPrefillCuteDSLWrapper",
    "cute_dsl.attention.wrappers": "BatchDecodeCuteDSLWrapper BatchDecodePagedCuteDSLWrapper BatchMLADecodeCuteDSLWrapper BatchPrefillCuteDSLWrapper",
    "cute_dsl.attention.wrappers.batch_decode": "BatchDecodeCuteDSLWrapper BatchDecodePagedCuteDSLWrapper",
    "cute_dsl.attention.wrappers.batch_mla": "BatchMLADecodeCuteDSLWrapper",
    "cute_dsl.attention.wrappers.batch_prefill": "BatchPrefillCuteDSLWrapper",
    "cute_dsl.availability":
        "cute_dsl_compile_arch is_cute_dsl_arch_supported is_cute_dsl_available is_cute_dsl_experimental_available "
        "require_cute_dsl_arch",
    "cute_dsl.blockscaled_gemm": "create_scale_factor_tensor grouped_gemm_nt_masked",
    "cute_dsl.gemm_allreduce_two_shot": "",
    "cute_dsl.rmsnorm_fp4quant": "rmsnorm_fp4quant",
    "cute_dsl.utils":
        "convert_sf_from_mma_layout convert_sf_to_mma_layout cutlass_to_torch_dtype get_cutlass_dtype get_max_active_clusters get_num_sm "
        "is_cute_dsl_arch_supported is_cute_dsl_available",
    "cutile": "is_cuda_tile_available",
    "cutile.cutile_common": "is_cuda_tile_available",
    "decode":
        "get_seq_lens launch_sm110_gqa_decode_prepared prepare_balanced_batch_decode_with_kv_cache prepare_sm110_gqa_decode sm110_gqa_decode "
        "trtllm_batch_decode_sparse_mla_dsv4 trtllm_batch_decode_with_kv_cache_mla xqa xqa_batch_decode_with_kv_cache_mla xqa_mla",
    "deep_gemm": "m_grouped_fp8_gemm_nt_contiguous m_grouped_fp8_gemm_nt_masked",
    "deepseek_v41":
        "deepseek_v41_decode deepseek_v41_quantize_cache deepseek_v41_window_decode",
    "dense_mqa": "fp8_mqa_logits prepare_dense_mqa_logits",
    "diffusion_ops":
        "MiniMaxH3PreAttentionOutput PreparedMiniMaxH3QkvQuantizePack fused_dit_gate_residual_layernorm_gamma_beta "
        "fused_dit_gate_residual_layernorm_scale_shift fused_dit_residual_layernorm_scale_shift fused_qk_rmsnorm_rope minimax_h3_bf16_pre_attention "
        "minimax_h3_dense_attention minimax_h3_fc1_swiglu minimax_h3_fc1_swiglu_fp8 minimax_h3_fc1_swiglu_mxfp8 minimax_h3_fc1_swiglu_nvfp4 "
        "minimax_h3_fp8_out_proj minimax_h3_fp8_pre_attention minimax_h3_nvfp4_out_proj minimax_h3_nvfp4_pre_attention minimax_h3_out_proj "
        "minimax_h3_out_proj_mxfp8 minimax_h3_out_proj_nvfp4 minimax_h3_out_proj_reference minimax_h3_qkv_quantize_pack "
        "minimax_h3_sm120_varlen_attention_fp8 minimax_h3_sm120_varlen_attention_nvfp4 minimax_h3_sm120_varlen_attention_nvfp4_nodelta "
        "prepare_minimax_h3_fc1_weight_fp8 prepare_minimax_h3_fc1_weight_mxfp8 prepare_minimax_h3_fc1_weight_nvfp4 prepare_minimax_h3_o_weight_mxfp8 "
        "prepare_minimax_h3_o_weight_nvfp4 prepare_minimax_h3_qkv_quantize_pack quantize_minimax_h3_o_weight_fp8 quantize_minimax_h3_o_weight_nvfp4 "
        "quantize_minimax_h3_qkv_weight_fp8 quantize_minimax_h3_qkv_weight_nvfp4",
    "dsa_indexer": "dsa_indexer_topk dsa_indexer_topk_workspace_size",
    "dsa_sparse_attention": "dsa_sparse_attention dsa_sparse_attention_varlen",
    "dsv3_ops": "concat_mla_k fused_topk_deepseek mm_M1_16_K7168_N128 mm_M1_16_K7168_N256",
    "fi_trace": "build_fi_trace_fn fi_trace register_fi_trace",
    "fp4_gemm": "prepare_fp4_gemm",
    "fp4_k_grouped_gemm": "prepare_fp4_k_grouped_gemm",
    "fp4_quantization":
        "NVFP4_QUANT_ENV_VARS block_scale_interleave e2m1_and_ufp8sf_scale_to_float fp4_quantize gen_fp4_quantization_module mxfp4_dequantize "
        "mxfp4_dequantize_host mxfp4_quantize nvfp4_batched_quantize nvfp4_block_scale_interleave nvfp4_kv_dequantize nvfp4_kv_dequantize_paged "
        "nvfp4_kv_quantize nvfp4_quantize nvfp4_quantize_paged_kv_cache scaled_fp4_grouped_quantize shuffle_matrix_a shuffle_matrix_sf_a "
        "silu_and_mul_nvfp4_quantize",
    "fp8_batched_gemm": "prepare_fp8_batched_gemm",
    "fp8_fp4_gemm": "prepare_fp8_fp4_gemm",
    "fp8_quantization": "mxfp8_dequantize_host mxfp8_quantize",
    "fused_moe":
        "ActivationConfig AlphaMoERoutePlan AlphaMoeNvfp4DeferredOutput B12xMoEWrapper B12xNvfp4Config B12xNvfp4Runner B12xW4A16Config B12xW4A16Runner "
        "BGMVMoEBlackwellPlan BGMVMoECakePlan BGMVMoEPortablePlan BackendOptions CakeWarpDecodeConfig CakeWarpDecodeRunner CuTileBf16Config "
        "CuTileBf16Runner CuTileFp8PerTensorBf16Config CuTileFp8PerTensorBf16Runner CuTileFp8PerTensorConfig CuTileFp8PerTensorRunner "
        "CuTileMxfp4Bf16Config CuTileMxfp4Bf16Runner CuTileMxfp4Config CuTileMxfp4Mxfp8Config CuTileMxfp4Mxfp8Runner CuTileMxfp4Runner "
        "CuTileMxfp8Bf16Config CuTileMxfp8Bf16Runner CuTileMxfp8Config CuTileMxfp8Runner CuTileNvfp4Bf16Config CuTileNvfp4Bf16Runner CuTileNvfp4Config "
        "CuTileNvfp4Runner CudnnFrostBf16Config CudnnFrostMxfp8Config CudnnFrostMxfp8Mxfp4Config CudnnFrostNvfp4Config CuteDslConfig "
        "CuteDslBf16MoEWrapper CuteDslMoEWrapper CuteDslMxfp8Mxfp4MoEWrapper CuteDslNvfp4Runner CuteDslRunner CutlassBf16Config CutlassBf16Runner CutlassFp8BlockConfig CutlassFp8BlockRunner CutlassFp8PerTensorConfig "
        "CutlassFp8PerTensorRunner CutlassHummingConfig CutlassHummingRunner CutlassMxfp8Config CutlassMxfp8Mxfp4Config CutlassMxfp8Mxfp4Runner "
        "CutlassMxfp8Runner CutlassNvfp4Config CutlassNvfp4Runner CutlassW4A16Config CutlassW4A16Runner CutlassW4A8Config CutlassW4A8Runner "
        "ExecutionConfig ExpertConfig GELU GeGLU GeGLUTanh Identity MoEActivationPack MoEConfig MoEFinalizeConfig MoELayer MoEWeightPack "
        "NVFP44Over6Config NVFP44Over6ErrMode PrimsTsConfig PrimsTsRunner QuantConfig QuantFormat ReLU ReLU2 RoutingConfig RoutingInputMode "
        "RoutingMethodType SM12xFp8Config SM12xFp8Runner SM12xMxfp8Mxfp4Config SM12xMxfp8Mxfp4Runner SM12xNvfp4Bf16Config SM12xNvfp4Bf16Runner "
        "SM12xNvfp4Config SM12xNvfp4Runner SiLU SiTU SwiGLU SwiGLUStep TrtllmBf16Config TrtllmBf16RoutedRunner TrtllmFp4Config TrtllmFp4RoutedRunner "
        "TrtllmFp8BlockConfig TrtllmFp8BlockRunner TrtllmFp8PerTensorConfig TrtllmFp8PerTensorRunner TrtllmMoERoutingMetadata "
        "TrtllmMoERoutingMetadataSlot TrtllmMxInt4Config TrtllmMxInt4RoutedRunner alloc_scratchpad allocate_alphamoe_route_plan "
        "allocate_kimi_k3_route_plan alphamoe_fp8_block_scale_aligned_moe alphamoe_fused_router alphamoe_interleave_gated_weights "
        "alphamoe_nvfp4_aligned_moe alphamoe_nvfp4_finalize_deferred alphamoe_nvfp4_routed_moe alphamoe_nvfp4_routed_moe_deferred b12x_fused_moe "
        "bgmv_moe_expand bgmv_moe_gemm1_lora_delta bgmv_moe_gemm2_lora_delta bgmv_moe_shrink cudnn_frost_grouped_gemm1_swiglu "
        "cudnn_frost_grouped_gemm1_swiglu_workspace_size cute_dsl_fused_moe cute_dsl_fused_moe_bf16 cute_dsl_fused_moe_mxfp8_mxfp4 "
        "cute_dsl_fused_moe_nvfp4 fill_w_ptr get_scratchpad_size_bytes has_bgmv_moe has_monomoe interleave_for_tma_wgmma_up "
        "interleave_moe_scales_for_sm90_mixed_gemm interleave_moe_weights_for_sm90_mixed_gemm kimi_k3_fused_router mono_moe prepare_bgmv_moe "
        "prepare_kimi_k3_fused_router prepare_nvfp4_w1_data prepare_nvfp4_w1_gate_up_data prepare_nvfp4_w1_gate_up_scales prepare_nvfp4_w1_scales "
        "prepare_nvfp4_w2_data prepare_nvfp4_w2_data_k256 prepare_nvfp4_w2_scales prepare_nvfp4_w2_scales_k256 "
        "preprocess_moe_weights_for_sm90_mixed_gemm_humming trtllm_moe_acquire_da_graph_leases trtllm_moe_allocate_routing_metadata "
        "trtllm_moe_allocate_routing_metadata_multi_tile trtllm_moe_da_diagnostics trtllm_moe_release_da_resources",
    "fused_moe.api":
        "ActivationConfig ActivationType B12xNvfp4Config B12xW4A16Config BackendOptions CakeWarpDecodeConfig CuTileBf16Config "
        "CuTileFp8PerTensorBf16Config CuTileFp8PerTensorConfig CuTileMxfp4Bf16Config CuTileMxfp4Config CuTileMxfp4Mxfp8Config CuTileMxfp8Bf16Config "
        "CuTileMxfp8Config CuTileNvfp4Bf16Config CuTileNvfp4Config CudnnFrostBf16Config CudnnFrostMxfp8Config CudnnFrostMxfp8Mxfp4Config "
        "CudnnFrostNvfp4Config CuteDslConfig CutlassBf16Config CutlassFp8BlockConfig CutlassFp8PerTensorConfig CutlassHummingConfig CutlassMxfp8Config "
        "CutlassMxfp8Mxfp4Config CutlassNvfp4Config CutlassW4A16Config CutlassW4A8Config ExecutionConfig ExpertConfig GELU GeGLU GeGLUTanh Identity "
        "MoEActivationPack MoEConfig MoEFinalizeConfig MoEWeightPack PrimsTsConfig QuantConfig QuantFormat ReLU ReLU2 RoutingConfig RoutingInputMode "
        "SM12xFp8Config SM12xMxfp8Mxfp4Config SM12xNvfp4Bf16Config SM12xNvfp4Config SiLU SiTU SwiGLU SwiGLUStep TrtllmBf16Config TrtllmFp4Config "
        "TrtllmFp8BlockConfig TrtllmFp8PerTensorConfig TrtllmMxInt4Config",
    "fused_moe.bgmv_moe": "bgmv_moe bgmv_moe_expand bgmv_moe_shrink fill_w_ptr has_bgmv_moe prepare_bgmv_moe",
    "fused_moe.core":
        "_maybe_get_cached_w3_w1_permute_indices RoutingMethodType ActivationType Fp8QuantizationType MoEInputs MoeRunnerInputs "
        "RoutingInputMode TRTLLMCanonicalRouting TrtllmMoERoutingMetadata TrtllmMoERoutingMetadataSlot "
        "allocate_trtllm_moe_canonical_routing canonicalize_trtllm_moe_routing_ convert_to_block_layout cutlass_fused_moe "
        "cutlass_fused_moe_workspace_size get_reorder_rows_for_gated_act_gemm_row_indices get_w2_permute_indices_with_cache "
        "is_trtllm_moe_supported populate_trtllm_moe_routing_metadata_ reorder_rows_for_gated_act_gemm trtllm_bf16_moe "
        "trtllm_bf16_routed_moe trtllm_fp4_block_scale_moe trtllm_fp4_block_scale_routed_moe trtllm_fp8_block_scale_moe "
        "trtllm_fp8_block_scale_routed_moe trtllm_fp8_per_channel_scale_moe trtllm_fp8_per_channel_scale_routed_moe "
        "trtllm_fp8_per_tensor_scale_moe trtllm_fp8_per_tensor_scale_routed_moe trtllm_moe_allocate_routing_metadata "
        "trtllm_moe_allocate_routing_metadata_multi_tile trtllm_mxint4_block_scale_moe trtllm_mxint4_block_scale_routed_moe",
    "fused_moe.cute_dsl":
        "B12xMoEWrapper CuteDslBf16MoEWrapper CuteDslMoEWrapper CuteDslMxfp8Mxfp4MoEWrapper b12x_fused_moe cute_dsl_fused_moe cute_dsl_fused_moe_bf16 "
        "cute_dsl_fused_moe_mxfp8_mxfp4 cute_dsl_fused_moe_nvfp4 is_cute_dsl_available",
    "fused_moe.cute_dsl.fused_moe":
        "CuteDslMoEWrapper CuteDslMxfp8Mxfp4MoEWrapper cute_dsl_fused_moe cute_dsl_fused_moe_mxfp8_mxfp4 cute_dsl_fused_moe_nvfp4",
    "fused_moe.cute_dsl.fused_moe_mxfp8_mxfp4": "CuteDslMxfp8Mxfp4MoEWrapper cute_dsl_fused_moe_mxfp8_mxfp4",
    "fused_moe.cute_dsl.sm90_fused_moe": "CuteDslBf16MoEWrapper cute_dsl_fused_moe_bf16",
    "fused_moe.cute_dsl.b12x_moe": "B12xMoEWrapper b12x_fused_moe",
    "fused_moe.cute_dsl.moe_utils":
        "MoeActivationType SUPPORTED_CUTE_DSL_MOE_ACTIVATION_TYPES allocate_moe_sort_buffers get_max_num_permuted_tokens get_max_num_tiles moe_activation "
        "moe_geglu moe_gelu moe_output_memset moe_output_memset_inplace moe_permute moe_relu moe_silu moe_sort moe_swiglu moe_unpermute "
        "normalize_cute_dsl_moe_activation_type validate_cute_dsl_moe_situ_config validate_cute_dsl_moe_swiglu_config",
    "fused_moe.cute_dsl.tuner": "",
    "fused_moe.fused_routing_dsv3": "fused_topk_deepseek",
    "fused_moe.hash_topk": "hash_topk",
    "fused_moe.layer": "MoELayer",
    "fused_moe.moe_lora_delta": "bgmv_moe_gemm1_lora_delta bgmv_moe_gemm2_lora_delta",
    "fused_moe.monomoe": "alloc_scratchpad get_scratchpad_size_bytes has_monomoe interleave_for_tma_wgmma_up mono_moe",
    "fused_moe.prepare":
        "interleave_moe_scales_for_sm90_mixed_gemm interleave_moe_weights_for_sm90_mixed_gemm prepare_b12x_nvfp4_weights prepare_b12x_w4a16_weights "
        "prepare_cute_dsl_weights prepare_cutile_bf16_weights prepare_cutile_fp8_weights prepare_cutile_mxfp4_weights prepare_cutile_nvfp4_weights "
        "prepare_cutlass_bf16_weights prepare_cutlass_fp8_block_weights prepare_cutlass_fp8_per_tensor_weights prepare_cutlass_humming_weights "
        "prepare_cutlass_mxfp8_activations prepare_cutlass_mxfp8_mxfp4_weights prepare_cutlass_mxfp8_weights prepare_cutlass_nvfp4_weights "
        "prepare_cutlass_w4a16_weights prepare_cutlass_w4a8_weights prepare_trtllm_bf16_weights prepare_trtllm_fp4_activations "
        "prepare_trtllm_fp4_weights prepare_trtllm_fp8_block_activations prepare_trtllm_fp8_block_weights prepare_trtllm_fp8_per_tensor_activations "
        "prepare_trtllm_fp8_per_tensor_weights prepare_trtllm_mxint4_weights preprocess_moe_weights_for_sm90_mixed_gemm_humming",
    "fused_moe.runners":
        "B12xNvfp4Runner B12xW4A16Runner CakeWarpDecodeRunner CuTileBf16Runner CuTileFp8PerTensorBf16Runner CuTileFp8PerTensorRunner "
        "CuTileMxfp4Bf16Runner CuTileMxfp4Mxfp8Runner CuTileMxfp4Runner CuTileMxfp8Bf16Runner CuTileMxfp8Runner CuTileNvfp4Bf16Runner "
        "CuTileNvfp4Runner CuteDslRunner CutlassBf16Runner CutlassFp8BlockRunner CutlassFp8PerTensorRunner CutlassHummingRunner "
        "CutlassMxfp8Mxfp4Runner CutlassMxfp8Runner CutlassNvfp4Runner CutlassW4A16Runner CutlassW4A8Runner MoERunner PrimsTsRunner SM12xFp8Runner "
        "SM12xMxfp8Mxfp4Runner SM12xNvfp4Bf16Runner SM12xNvfp4Runner TrtllmBf16RoutedRunner TrtllmFp4RoutedRunner TrtllmFp8BlockRunner "
        "TrtllmFp8PerTensorRunner TrtllmMxInt4RoutedRunner",
    "fused_moe.trtllm_gen_routing": "TrtllmGenRoutingResult trtllm_gen_routing",
    "fused_moe.utils":
        "AuxStreamType EventType=MoeEventType Fp4QuantizedTensor compute_swizzled_sf_shape fp4_scale_infer_shape get_b12x_activation_name get_fp4_shape "
        "get_global_attrs get_hybrid_num_tokens_buckets get_model_extra_attrs get_piecewise_cuda_graph_flag is_torch_compiling last_positive_power_of_2 "
        "make_hybrid_bucket_mapper make_random_topk_ids map_to_hybrid_bucket map_to_hybrid_bucket_uncapped model_extra_attrs nearest_in_buckets "
        "next_positive_power_of_2 resolve_b12x_activation_name set_piecewise_cuda_graph_flag set_torch_compiling swizzle_sf unswizzle_sf "
        "with_model_extra_attrs",
    "gated_act_mxfp8": "GatedActMxfp8Outputs silu_and_mul_mxfp8_quantize silu_and_mul_mxfp8_quantize_backward",
    "gdn2_prefill": "chunk_gated_delta_rule2",
    "gdn_decode":
        "gated_delta_rule_decode gated_delta_rule_decode_pretranspose gated_delta_rule_mtp gated_delta_rule_replayssm_commit ugpu_state_pool",
    "gdn_kernels": "",
    "gdn_kernels.gdn_decode_bf16_state": "gated_delta_rule_mtp=gated_delta_rule_mtp_bf16",
    "gdn_prefill": "chunk_gated_delta_rule",
    "gdp_prefill": "chunk_gated_delta_product",
    "gemm":
        "PreparedBatchDeepGemmFp8NtGroupwise PreparedGroupGemmFp8NtGroupwiseContiguous PreparedGroupGemmFp8NtGroupwiseContiguousSiluQuant "
        "allocate_kimi_k3_fp8_projection_workspace create_scale_factor_tensor fp4_linear fp4_linear_swiglu fp4_qkv_qknorm_rope fp8_linear "
        "fp8_linear_swiglu fp8_qkv_qknorm_rope is_cuda_tile_available kimi_k3_fp8_projection kimi_k3_fp8_projection_launcher mm_nvfp4_svdquant "
        "nvfp4_quantize_smooth prepare_batch_deepgemm_fp8_nt_groupwise prepare_group_gemm_fp8_nt_groupwise_contiguous "
        "prepare_group_gemm_fp8_nt_groupwise_contiguous_silu_quant prepare_kimi_k3_fp8_projection prepare_kimi_k3_fp8_projection_weights "
        "svdquant_linear tgv_gemm_sm100",
    "gemm.gemm_base":
        "CUDNN_AVAILABLE CudnnCaptureUnsafeError CudnnPlanBuildInCaptureError CudnnWorkspaceTooSmallInCaptureError SegmentGEMMWrapper "
        "batch_deepgemm_fp8_nt_groupwise bmm_bf16 bmm_fp8 bmm_mxfp8 fp8_blockscale_gemm_sm90 gemm_alpha_beta "
        "gemm_fp8_nt_blockscaled gemm_fp8_nt_groupwise group_deepgemm_fp8_nt_groupwise group_gemm_fp8_nt_groupwise "
        "group_gemm_fp8_nt_groupwise_contiguous group_gemm_mxfp4_nt_groupwise group_gemm_mxfp8_mxfp4_nt_groupwise "
        "group_gemm_nvfp4_nt_groupwise masked_bmm masked_scaled_bmm mm_bf16 mm_fp4 mm_fp8 mm_mxfp8 pad_indptr_to_multiple_of_4 "
        "ragged_block_scaled_bmm ragged_bmm ragged_scaled_bmm",
    "gemm.gemm_bf16_fp4": "mm_bf16_fp4 prepare_bf16_fp4_weights",
    "gemm.gemm_svdquant": "SVDQUANT_LORA_RANK_GRANULARITY mm_nvfp4_svdquant nvfp4_quantize_smooth svdquant_linear",
    "gemm.routergemm":
        "mm_M1_16_K6144_N256 mm_M1_16_K7168_N128 mm_M1_16_K7168_N256 mm_M1_16_K7168_N256_bf16 mm_M1_16_K7168_N384 "
        "mm_M1_16_K7168_N384_bf16 mm_M1_16_K7168_N896 mm_M1_16_K7168_N896_bf16 tinygemm_bf16",
    "green_ctx":
        "create_green_ctx_streams get_cudevice get_device_resource get_sm_count_constraint split_device_green_ctx "
        "split_device_green_ctx_by_sm_count split_resource split_resource_by_sm_count",
    "grouped_mm": "",
    "grouped_mm.core": "grouped_mm_bf16 grouped_mm_fp4 grouped_mm_fp8 grouped_mm_mxfp8",
    "kda": "RecurrentKDAPrefillWrapper recurrent_kda",
    "kda_decode": "_FUSED_KDA_DECODE_AVAILABLE fused_kda_decode packed_fused_kda_decode packed_kda_decode recurrent_kda=recurrent_kda_decode",
    "kda_kernels": "",
    "kda_prefill":
        "KDAPrefillPlanCache RecurrentKDAPrefillWorkspace kda_prefill_supports_fp32_checkpoints prepare_bf16_kda_prefill prepare_tf32_kda_prefill",
    "kda_prefill_cute": "",
    "kda_prefill_cute_small_bh": "",
    "kda_prefill_persistent": "",
    "kda_prefill_ptx": "",
    "kda_prefill_tirx": "",
    "kimi_k3_attn_res":
        "kimi_k3_attn_res prepare_kimi_k3_attn_res",
    "kimi_k3_latent_moe":
        "kimi_k3_latent_moe_front kimi_k3_latent_moe_tail prepare_kimi_k3_latent_moe_front prepare_kimi_k3_latent_moe_tail",
    "kimi_k3_tp12_tail":
        "create_kimi_k3_tp12_tail_workspace kimi_k3_tp12_tail prepare_kimi_k3_tp12_tail",
    "kimi_k3_vision":
        "kimi_k3_vision_tower prepare_kimi_k3_vision_tower",
    "locality_domain": "",
    "logits_processor": "Compiler",
    "logits_processor.compiler": "Compiler compile_pipeline get_default_fusion_rules get_default_validity_checks",
    "logits_processor.fusion_rules":
        "FusionRule build_minp_sampling build_temperature_softmax build_topk_sampling build_topp_sampling "
        "get_default_fusion_rules joint_topk_topp_sampleprobs_guard",
    "logits_processor.legalization": "LegalizationError infer_initial_type legalize_processors",
    "logits_processor.op": "Op ParameterizedOp",
    "logits_processor.operators":
        "FusedProbsMinPSampleOp FusedProbsTopKSampleOp FusedProbsTopKTopPSampleOp FusedProbsTopPSampleOp "
        "FusedTemperatureSoftmaxOp LogitsSampleOp LogitsTopKOp MinPOp ProbsSampleOp ProbsTopKOp SoftmaxOp TemperatureOp TopPOp",
    "logits_processor.pipeline": "LogitsPipe",
    "logits_processor.processors": "LogitsProcessor MinP Sample Softmax Temperature TopK TopP",
    "logits_processor.types": "TaggedTensor TensorType",
    "logits_processor.validators": "CompileError get_default_validity_checks indices_terminal_rule single_softmax_rule",
    "mamba": "SSDCombined allocate_checkpointing_ssu_scratch checkpointing_ssu compute_seq_chunk_cumsum replayssm_materialize "
             "selective_state_update ssd_combined_fwd tile_state_size",
    "mamba.checkpointing_ssu": "CheckpointingSSURunner allocate_checkpointing_ssu_scratch checkpointing_ssu",
    "mamba.replayssm_materialize": "replayssm_materialize",
    "mamba.selective_state_update": "selective_state_update",
    "mega_gate": "prepare_mega_gate",
    "mega_mhc": "prepare_mega_mhc",
    "mega_moe_v3":
        "V3Plan bind_prepared prepare_grouped_fused prepare_grouped_l1 prepare_grouped_l2 prepare_pipeline",
    "mhc": "",
    "mla":
        "MLAHeadDimensions MLALayerDimensions batch_decode_sparse_mla_dsv4=trtllm_batch_decode_sparse_mla_dsv4 "
        "convert_compressed_page_aligned_sparse_indices_to_hca_metadata "
        "deepseek_mla_dimensions get_trtllm_gen_multi_ctas_kv_counter_bytes smaller_mla_dimensions supported_mla_layer_dimensions "
        "trtllm_batch_decode_sparse_mla_dsv4 xqa_mla",
    "mla._core":
        "MLAHeadDimensions MLALayerDimensions batch_decode_sparse_mla_dsv4=trtllm_batch_decode_sparse_mla_dsv4 "
        "convert_compressed_page_aligned_sparse_indices_to_hca_metadata trtllm_batch_decode_sparse_mla_dsv4 trtllm_batch_decode_with_kv_cache_mla "
        "trtllm_prefill_with_kv_cache_mla "
        "xqa_batch_decode_with_kv_cache_mla",
    "mla_kv_pack": "concat_mla_kv_quant_fp8",
    "moe_ep":
        "AlgoKnob Bf16CutedslMegaMoeConfig BootstrapConfig CakeAlltoAll CakeAlltoAllConfig CakeMxfp8MegaMoeEp16 CakeMxfp8MegaMoeEp16Weights "
        "CombineInputParams CombineOutput DeepGemmMegaMoeConfig DispatchInputParams DispatchOutput EpAlgorithm EpLayout Fleet FleetAlgoKnobAllocator "
        "FleetAlgoKnobFaultTolerance FleetAlgoKnobNumChannelsPerRank FleetAlgoKnobNumQpsPerRank FleetAlgoKnobQuantization FleetAlgoKnobRdmaBufferSize "
        "FleetAlgoKnobTopologyCapacity FleetParams FusedMoeKernelConfig Handle HandleAlgoKnobNumReceivedTokens HandleAlgoKnobSplitOperation "
        "HandleAlgoKnobTopKWeights HandleAlgoKnobUserStream HandleParams IdentityConfig MegaConfig MoEEpArchError MoEEpCommParams MoEEpCommunication "
        "MoEEpConfigError MoEEpDispatchResult MoEEpFaultToleranceUnsupportedError MoEEpLayer MoEEpMegaLayer MoEEpMegaWorkspace MoEEpNotBuiltError "
        "MoEEpRankEvictedError MoEEpSplitGraphState MoEEpSplitLayer MoEEpTensors MoEEpTransportError MoEWeightPack=MoEEpWeightPack Mxfp8CutedslMegaMoeConfig "
        "NCCLEPConfig=NcclEpConfig NVLinkOneSidedAlltoAll NVLinkOneSidedConfig NVLinkTwoSidedAlltoAll NVLinkTwoSidedConfig NcclEpConfig NvepConfig "
        "Nvfp4CutedslMegaMoeConfig PrequantizedMoEWeights QuantType Sm100_Bf16_Bf16_Bf16_Cutedsl_MegaMoeConfig "
        "Sm100_Bf16_Bf16_Bf16_RankMajorCuda_MegaMoeConfig Sm100_Bf16_Mxfp8_Bf16_Cutedsl_MegaMoeConfig Sm100_Bf16_Nvfp4_Bf16_Cutedsl_MegaMoeConfig "
        "Sm100_Fp8_Fp4_Bf16_Deepgemm_MegaMoeConfig Sm100_Mxfp8_Mxfp8_Bf16_Cutedsl_MegaMoeConfig Sm100_Nvfp4_Nvfp4_Bf16_Cutedsl_MegaMoeConfig "
        "Sm107_Mxfp8_Mxfp4_Bf16_Cutedsl_MegaMoeConfig Sm107_Mxfp8_Mxfp8_Bf16_Cutedsl_MegaMoeConfig Sm107_Nvfp4_Nvfp4_Bf16_Cutedsl_MegaMoeConfig "
        "Sm120_Mxfp4_Mxfp8_Bf16_Cutedsl_MegaMoeConfig Sm120_Mxfp8_Mxfp8_Bf16_Cutedsl_MegaMoeConfig Sm90PullFp8MegaMoeConfig Sm90PushFp8MegaMoeConfig "
        "Sm90_Bf16_Bf16_Bf16_PushCake_MegaMoeConfig Sm90_Fp8_Fp8_Bf16_PullCutedsl_MegaMoeConfig Sm90_Fp8_Fp8_Bf16_PushCuda_MegaMoeConfig SplitConfig "
        "SplitKernelContext UnquantizedMoEWeights available_backends available_communication_backends bootstrap_comm_group bootstrap_ep_rank_world "
        "bootstrap_ep_world_size bootstrap_moe_ep_runtime create_communication create_fleet dummy_moe_weights ensure_bootstrap_dist_validated "
        "ensure_moe_ep_cuda_device finalize_moe_ep_runtime have_nccl_ep have_nixl_ep kernel_requires_weights preprocess_bf16_cutedsl_mega_weights "
        "preprocess_bf16_nvfp4_cutedsl_mega_weights preprocess_bf16_rank_major_cuda_mega_weights preprocess_cake_mxfp8_megamoe_ep16_weights "
        "preprocess_mega_weights preprocess_mxfp8_cutedsl_mega_weights preprocess_nvfp4_cutedsl_mega_weights preprocess_sm107_mxfp4_mega_weights "
        "preprocess_sm107_mxfp8_mega_weights preprocess_sm107_nvfp4_mega_weights preprocess_sm120_mxfp4_mxfp8_cutedsl_mega_weights "
        "preprocess_sm120_mxfp8_cutedsl_mega_weights preprocess_sm90_pull_fp8_mega_weights preprocess_sm90_push_cake_bf16_mega_weights "
        "preprocess_sm90_push_fp8_mega_weights register_communication register_fleet run_split_kernel supports_fault_tolerance "
        "validate_arch_for_backend validate_bootstrap_process_group_ready validate_bootstrap_world_size validate_fleet_params validate_fleet_weights "
        "validate_mega_arch validate_mega_fleet_params validate_mega_forward_inputs validate_split_forward_inputs",
    "moe_ep.algo_knobs":
        "_index_knobs AlgoKnob FleetAlgoKnobAllocator FleetAlgoKnobFaultTolerance FleetAlgoKnobNumChannelsPerRank FleetAlgoKnobNumQpsPerRank "
        "FleetAlgoKnobQuantization FleetAlgoKnobRdmaBufferSize FleetAlgoKnobTopologyCapacity HandleAlgoKnobNumReceivedTokens "
        "HandleAlgoKnobSplitOperation HandleAlgoKnobTopKWeights HandleAlgoKnobUserStream",
    "moe_ep.config":
        "BootstrapConfig CombineInputParams CombineOutput DispatchInputParams DispatchOutput EpAlgorithm EpLayout FleetParams "
        "HandleParams QuantType",
    "moe_ep.core": "Fleet Handle SplitKernelContext create_fleet kernel_requires_weights run_split_kernel",
    "moe_ep.core.bootstrap_utils":
        "bootstrap_comm_group bootstrap_ep_rank_world bootstrap_ep_world_size ensure_bootstrap_dist_validated "
        "validate_bootstrap_process_group_ready validate_bootstrap_world_size",
    "moe_ep.core.comm": "Fleet Handle create_fleet",
    "moe_ep.core.comm.fleet": "Fleet create_fleet register_fleet",
    "moe_ep.core.kernel": "SplitKernelContext kernel_requires_weights run_split_kernel",
    "moe_ep.core.runtime": "bootstrap_moe_ep_runtime ensure_moe_ep_cuda_device finalize_moe_ep_runtime",
    "moe_ep.core.validation":
        "bootstrap_comm_group bootstrap_ep_rank_world bootstrap_ep_world_size ensure_bootstrap_dist_validated supports_fault_tolerance "
        "validate_arch_for_backend validate_bootstrap_process_group_ready validate_bootstrap_world_size validate_fleet_params "
        "validate_fleet_weights validate_mega_arch validate_mega_fleet_params validate_mega_forward_inputs validate_split_forward_inputs",
    "moe_ep.core.validation.common":
        "MoEEpArchError bootstrap_comm_group bootstrap_ep_rank_world bootstrap_ep_world_size ensure_bootstrap_dist_validated supports_fault_tolerance "
        "validate_arch_for_backend validate_bootstrap_process_group_ready validate_bootstrap_world_size validate_mega_arch",
    "moe_ep.errors": "MoEEpFaultToleranceUnsupportedError MoEEpNotBuiltError MoEEpRankEvictedError MoEEpTransportError",
    "moe_ep.layer": "MoEEpLayer MoEEpMegaLayer MoEEpMegaWorkspace MoEEpSplitLayer",
    "moe_ep.modes":
        "FusedMoeKernelConfig IdentityConfig MegaConfig MoEEpMegaLayer MoEEpMegaWorkspace MoEEpSplitGraphState MoEEpSplitLayer "
        "NCCLEPConfig=NcclEpConfig NVLinkOneSidedConfig NVLinkTwoSidedConfig NcclEpConfig NvepConfig SplitConfig SplitKernelContext "
        "kernel_requires_weights run_split_kernel",
    "moe_ep.tensors": "MoEEpTensors",
    "moe_ep.tune": "main",
    "moe_ep.weights": "PrequantizedMoEWeights UnquantizedMoEWeights dummy_moe_weights",
    "msa_ops":
        "MSASparseAttentionWorkspace SUPPORTS_PACKED_KV msa_proxy_score msa_proxy_score_fp4 msa_sparse_attention msa_sparse_decode_attention "
        "msa_topk_select prepare_msa_nvfp4_sparse_decode supports_packed_kv",
    "msa_ops.proxy_score": "msa_proxy_score msa_proxy_score_fp4",
    "msa_ops.sparse_decode": "msa_sparse_decode_attention prepare_msa_nvfp4_sparse_decode",
    "msa_ops.sparse_prefill": "msa_sparse_attention",
    "msa_ops.sparse_topk_select": "msa_topk_select",
    "norm": "fused_add_rmsnorm_cute fused_add_rmsnorm_quant_cute gen_norm_module layernorm_cute qk_rmsnorm_cute rmsnorm_cute rmsnorm_quant_cute",
    "nvfp4_attention_sm120": "nvfp4_attention_sm120_fwd nvfp4_attention_sm120_quantize_qkv",
    "page": "",
    "paged_mqa": "fp8_paged_mqa_logits=deepgemm_fp8_paged_mqa_logits get_paged_mqa_logits_metadata prepare_paged_mqa_logits",
    "parallel_attention":
        "ParallelAttention UnevenCPConfig VarlenCPConfig get_parallel_groups ring_varlen_config split_varlen_input "
        "ulysses_varlen_config uneven_cp_config",
    "parallel_attention.attention_ops": "",
    "parallel_attention.parallel_attention": "ParallelAttention",
    "parallel_attention.parallel_config": "UnevenCPConfig VarlenCPConfig",
    "parallel_attention.parallel_wrapper": "",
    "parallel_attention.utils":
        "get_parallel_groups ring_varlen_config split_varlen_input ulysses_varlen_config uneven_cp_config",
    "pod": "get_seq_lens packbits",
    "prefill":
        "fmha_v2_prefill_sm120 fmha_varlen_plan get_customize_batch_prefill_module get_seq_lens make_hashable_cache minimax_h3_varlen_attention "
        "minimax_h3_varlen_nvfp4_attention packbits prepare_nvfp4_attention segment_packbits trtllm_fmha_v2_prefill trtllm_prefill_with_kv_cache_mla "
        "trtllm_sage_attention_quantize",
    "prims_ts":
        "configure_cute_dsl_cache_dir fp4_linear fp4_linear_swiglu fp4_qkv_qknorm_rope fp8_linear fp8_linear_swiglu "
        "fp8_qkv_qknorm_rope",
    "profiler": "EventType decode_tag export_to_perfetto_trace",
    "quantization":
        "NVFP44Over6Config NVFP44Over6ErrMode gen_quantization_module is_cute_dsl_available mxfp4_quantize_cute_dsl mxfp8_quantize_cute_dsl "
        "nvfp4_4over6_code nvfp4_4over6_from_code nvfp4_e4m3_max nvfp4_quantize_cute_dsl nvfp4_quantize_per_token_cute_dsl resolve_nvfp4_4over6",
    "quantization.fp4_quantization":
        "NVFP4_QUANT_ENV_VARS block_scale_interleave e2m1_and_ufp8sf_scale_to_float fp4_quantize gen_fp4_quantization_module mxfp4_dequantize "
        "mxfp4_dequantize_host mxfp4_quantize nvfp4_batched_quantize nvfp4_block_scale_interleave nvfp4_kv_dequantize nvfp4_kv_dequantize_paged "
        "nvfp4_kv_quantize nvfp4_quantize nvfp4_quantize_paged_kv_cache scaled_fp4_grouped_quantize shuffle_matrix_a shuffle_matrix_sf_a "
        "silu_and_mul_nvfp4_quantize",
    "quantization.fp8_quantization": "mxfp8_dequantize_host mxfp8_grouped_quantize mxfp8_quantize per_token_group_quant_8bit",
    "quantization.nvfp4_quantization_utils":
        "NVFP44Over6Config NVFP44Over6ErrMode current_nvfp4_4over6_config make_nvfp4_global_scale nvfp4_4over6_code nvfp4_4over6_from_code "
        "nvfp4_e4m3_max nvfp4_per_token_scale_inv resolve_nvfp4_4over6",
    "quantization.packbits": "packbits segment_packbits",
    "rope": "cake_fused_qk_rmsnorm_rope_append_paged_kv_cache cake_fused_qk_rmsnorm_rope_quantize_fp8_append_paged_kv_cache",
    "sampling": "top_k_renorm_prob=top_k_renorm_probs top_p_renorm_prob=top_p_renorm_probs",
    "sm110_xqa": "",
    "sparse": "segment_packbits",
    "sparse_mqa": "prepare_sparse_mqa_logits prepare_sparse_mqa_metadata",
    "tactics_blocklist": "",
    "testing": "",
    "testing.utils":
        "aggregate_gpu_time_across_ranks attention_flops attention_flops_with_actual_seq_lens attention_tb_per_sec "
        "attention_tb_per_sec_with_actual_seq_lens attention_tflops_per_sec attention_tflops_per_sec_with_actual_seq_lens "
        "bench_gpu_time bench_gpu_time_with_cuda_event bench_gpu_time_with_cudagraph bench_gpu_time_with_cupti bench_kineto "
        "calculate_rotation_count count_bytes dequantize_fp8 empty_suppress get_l2_cache_size per_block_cast_to_fp8 "
        "per_token_cast_to_fp8 quantize_fp8 set_seed sleep_after_kernel_run suppress_stdout_stderr",
    "tllm_enums": "",
    "tllm_utils": "delay_kernel",
    "topk":
        "topk=top_k can_implement_filtered_topk can_use_clusters_topk can_use_cub_topk get_fast_topk_clusters "
        "get_num_cached_for_topk",
    "topk_varlen": "",
    "topk_varlen.topk_varlen": "top_k_varlen",
    "trace":
        "BuildSpec Const Scalar Solution SourceFile SupportedBindings SupportedLanguages Tensor TraceTemplate Var default_check "
        "default_tolerances standard_check",
    "trace.solution": "BuildSpec Solution SourceFile SupportedBindings SupportedLanguages",
    "trace.template": "Const Scalar Tensor TraceTemplate Var default_check default_tolerances standard_check",
    "trace_apply": "current_sm disable_apply enable_apply is_enabled stats stats_snapshot",
    "trtllm_low_latency_gemm": "prepare_low_latency_gemm_weights trtllm_low_latency_gemm",
    "utils": "",
    "xqa": "",
}
