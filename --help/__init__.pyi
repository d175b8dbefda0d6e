# Made by tools/make_stubs.py from the library's registry.
from . import activation as activation
from . import aot as aot
from . import api_logging as api_logging
from . import artifacts as artifacts
from . import attention as attention
from . import attn_scores as attn_scores
from . import autotuner as autotuner
from . import cake_concat_mla_kv_quant_fp8 as cake_concat_mla_kv_quant_fp8
from . import cake_dcp as cake_dcp
from . import cake_fmha as cake_fmha
from . import cake_fmha_request_ordered as cake_fmha_request_ordered
from . import cake_fused_qk_rope_append as cake_fused_qk_rope_append
from . import cake_fused_qk_rope_fp8_append as cake_fused_qk_rope_fp8_append
from . import cake_kda_tf32_runtime as cake_kda_tf32_runtime
from . import cake_minimax_h3 as cake_minimax_h3
from . import cake_rmsnorm_train as cake_rmsnorm_train
from . import cake_sampling as cake_sampling
from . import cake_vsa as cake_vsa
from . import cake_vsa_sm90 as cake_vsa_sm90
from . import cascade as cascade
from . import chunked_lm_head as chunked_lm_head
from . import collect_env as collect_env
from . import comm as comm
from . import compilation_context as compilation_context
from . import concat_ops as concat_ops
from . import context as context
from . import cuda_utils as cuda_utils
from . import cudnn as cudnn
from . import cute_dsl as cute_dsl
from . import cutile as cutile
from . import decode as decode
from . import deep_gemm as deep_gemm
from . import deepseek_v41 as deepseek_v41
from . import dense_mqa as dense_mqa
from . import diffusion_ops as diffusion_ops
from . import dsa_indexer as dsa_indexer
from . import dsa_sparse_attention as dsa_sparse_attention
from . import dsv3_ops as dsv3_ops
from . import fi_trace as fi_trace
from . import fp4_gemm as fp4_gemm
from . import fp4_k_grouped_gemm as fp4_k_grouped_gemm
from . import fp4_quantization as fp4_quantization
from . import fp8_batched_gemm as fp8_batched_gemm
from . import fp8_fp4_gemm as fp8_fp4_gemm
from . import fp8_quantization as fp8_quantization
from . import fused_moe as fused_moe
from . import gated_act_mxfp8 as gated_act_mxfp8
from . import gdn2_prefill as gdn2_prefill
from . import gdn_decode as gdn_decode
from . import gdn_kernels as gdn_kernels
from . import gdn_prefill as gdn_prefill
from . import gdp_prefill as gdp_prefill
from . import gemm as gemm
from . import green_ctx as green_ctx
from . import grouped_mm as grouped_mm
from . import integrations as integrations
from . import jit as jit
from . import kda as kda
from . import kda_decode as kda_decode
from . import kda_kernels as kda_kernels
from . import kda_prefill as kda_prefill
from . import kda_prefill_cute as kda_prefill_cute
from . import kda_prefill_cute_small_bh as kda_prefill_cute_small_bh
from . import kda_prefill_persistent as kda_prefill_persistent
from . import kda_prefill_ptx as kda_prefill_ptx
from . import kda_prefill_tirx as kda_prefill_tirx
from . import kimi_k3_attn_res as kimi_k3_attn_res
from . import kimi_k3_latent_moe as kimi_k3_latent_moe
from . import kimi_k3_tp12_tail as kimi_k3_tp12_tail
from . import kimi_k3_vision as kimi_k3_vision
from . import locality_domain as locality_domain
from . import logits_processor as logits_processor
from . import mamba as mamba
from . import mega_gate as mega_gate
from . import mega_mhc as mega_mhc
from . import mega_moe_v3 as mega_moe_v3
from . import mhc as mhc
from . import mla as mla
from . import mla_kv_pack as mla_kv_pack
from . import moe_ep as moe_ep
from . import msa_ops as msa_ops
from . import norm as norm
from . import nvfp4_attention_sm120 as nvfp4_attention_sm120
from . import page as page
from . import paged_mqa as paged_mqa
from . import parallel_attention as parallel_attention
from . import pod as pod
from . import prefill as prefill
from . import prims_ts as prims_ts
from . import profiler as profiler
from . import quantization as quantization
from . import replay as replay
from . import rope as rope
from . import sampling as sampling
from . import sm110_xqa as sm110_xqa
from . import sparse as sparse
from . import sparse_mqa as sparse_mqa
from . import tactics_blocklist as tactics_blocklist
from . import testing as testing
from . import tllm_enums as tllm_enums
from . import tllm_utils as tllm_utils
from . import topk as topk
from . import topk_varlen as topk_varlen
from . import trace as trace
from . import trace_apply as trace_apply
from . import trtllm_low_latency_gemm as trtllm_low_latency_gemm
from . import utils as utils
from . import version as version
from . import xqa as xqa
from .fused_moe import ActivationType as ActivationType
from .comm import AllReduceFusionWorkspace as AllReduceFusionWorkspace
from .attention import BatchAttention as BatchAttention
from .attention import BatchAttentionWithAttentionSinkWrapper as BatchAttentionWithAttentionSinkWrapper
from .decode import BatchDecodeWithPagedKVCacheWrapper as BatchDecodeWithPagedKVCacheWrapper
from .cascade import BatchDecodeWithSharedPrefixPagedKVCacheWrapper as BatchDecodeWithSharedPrefixPagedKVCacheWrapper
from .mla import BatchMLAPagedAttentionWrapper as BatchMLAPagedAttentionWrapper
from .pod import BatchPODWithPagedKVCacheWrapper as BatchPODWithPagedKVCacheWrapper
from .attention import BatchPrefillWithCausalBidirectionalRangesWrapper as BatchPrefillWithCausalBidirectionalRangesWrapper
from .prefill import BatchPrefillWithPagedKVCacheWrapper as BatchPrefillWithPagedKVCacheWrapper
from .prefill import BatchPrefillWithRaggedKVCacheWrapper as BatchPrefillWithRaggedKVCacheWrapper
from .cascade import BatchPrefillWithSharedPrefixPagedKVCacheWrapper as BatchPrefillWithSharedPrefixPagedKVCacheWrapper
from .sparse import BlockSparseAttentionWrapper as BlockSparseAttentionWrapper
from .decode import CUDAGraphBatchDecodeWithPagedKVCacheWrapper as CUDAGraphBatchDecodeWithPagedKVCacheWrapper
from .fused_moe import Fp8QuantizationType as Fp8QuantizationType
from .cascade import MultiLevelCascadeAttentionWrapper as MultiLevelCascadeAttentionWrapper
from .pod import PODWithPagedKVCacheWrapper as PODWithPagedKVCacheWrapper
from .gemm import SegmentGEMMWrapper as SegmentGEMMWrapper
from .comm import SfLayout as SfLayout
from .topk import TopKTieBreak as TopKTieBreak
from .sparse import VariableBlockSparseAttentionWrapper as VariableBlockSparseAttentionWrapper
from .fused_moe import WeightLayout as WeightLayout
from .norm import add_rmsnorm_fp4quant as add_rmsnorm_fp4quant
from .comm import all_gather as all_gather
from .comm import allreduce_fusion as allreduce_fusion
from .page import append_paged_kv_cache as append_paged_kv_cache
from .page import append_paged_mla_kv_cache as append_paged_mla_kv_cache
from .rope import apply_llama31_rope as apply_llama31_rope
from .rope import apply_llama31_rope_inplace as apply_llama31_rope_inplace
from .rope import apply_llama31_rope_pos_ids as apply_llama31_rope_pos_ids
from .rope import apply_llama31_rope_pos_ids_inplace as apply_llama31_rope_pos_ids_inplace
from .rope import apply_rope as apply_rope
from .rope import apply_rope_inplace as apply_rope_inplace
from .rope import apply_rope_pos_ids as apply_rope_pos_ids
from .rope import apply_rope_pos_ids_inplace as apply_rope_pos_ids_inplace
from .rope import apply_rope_with_cos_sin_cache as apply_rope_with_cos_sin_cache
from .rope import apply_rope_with_cos_sin_cache_inplace as apply_rope_with_cos_sin_cache_inplace
from .gemm import batch_deepgemm_fp8_nt_groupwise as batch_deepgemm_fp8_nt_groupwise
from .fused_moe import bgmv_moe as bgmv_moe
from .fused_moe import bgmv_moe_expand_weights as bgmv_moe_expand_weights
from .fused_moe import bgmv_moe_shrink_weights as bgmv_moe_shrink_weights
from .quantization import block_scale_interleave as block_scale_interleave
from .gemm import bmm_bf16 as bmm_bf16
from .gemm import bmm_fp8 as bmm_fp8
from .gemm import bmm_mxfp8 as bmm_mxfp8
from .mamba import cake_selective_state_update as cake_selective_state_update
from .mamba import causal_conv1d_fn as causal_conv1d_fn
from .mamba import causal_conv1d_update as causal_conv1d_update
from .sampling import chain_speculative_sampling as chain_speculative_sampling
from .mamba import checkpointing_ssu as checkpointing_ssu
from .gdp_prefill import chunk_gated_delta_product as chunk_gated_delta_product
from .gdn_prefill import chunk_gated_delta_rule as chunk_gated_delta_rule
from .gdn2_prefill import chunk_gated_delta_rule2 as chunk_gated_delta_rule2
from .concat_ops import concat_mla_k as concat_mla_k
from .sparse import convert_bsr_mask_layout as convert_bsr_mask_layout
from .fused_moe import convert_to_block_layout as convert_to_block_layout
from .decode import cudnn_batch_decode_with_kv_cache as cudnn_batch_decode_with_kv_cache
from .prefill import cudnn_batch_prefill_with_kv_cache as cudnn_batch_prefill_with_kv_cache
from .fused_moe import cutlass_fused_moe as cutlass_fused_moe
from .fused_moe import cutlass_fused_moe_workspace_size as cutlass_fused_moe_workspace_size
from .comm import decode_cp_a2a_alltoall_into as decode_cp_a2a_alltoall_into
from .comm import decode_cp_a2a_lse_reduce as decode_cp_a2a_lse_reduce
from .quantization import e2m1_and_ufp8sf_scale_to_float as e2m1_and_ufp8sf_scale_to_float
from .decode import fast_decode_plan as fast_decode_plan
from .fi_trace import fi_trace as fi_trace
from .prefill import fmha_v2_prefill_deepseek as fmha_v2_prefill_deepseek
from .prefill import fmha_v2_prefill_sm120 as fmha_v2_prefill_sm120
from .prefill import fmha_varlen as fmha_varlen
from .quantization import fp4_quantize as fp4_quantize
from .gemm import fp8_blockscale_gemm_sm90 as fp8_blockscale_gemm_sm90
from .norm import fused_add_rmsnorm as fused_add_rmsnorm
from .norm import fused_add_rmsnorm_fp8_block_quant as fused_add_rmsnorm_fp8_block_quant
from .norm import fused_add_rmsnorm_quant as fused_add_rmsnorm_quant
from .norm import fused_dit_gate_residual_layernorm_gamma_beta as fused_dit_gate_residual_layernorm_gamma_beta
from .norm import fused_dit_gate_residual_layernorm_scale_shift as fused_dit_gate_residual_layernorm_scale_shift
from .norm import fused_dit_residual_layernorm_scale_shift as fused_dit_residual_layernorm_scale_shift
from .kda_decode import fused_kda_decode as fused_kda_decode
from .norm import fused_qk_rmsnorm_rope as fused_qk_rmsnorm_rope
from .norm import fused_rmsnorm_silu as fused_rmsnorm_silu
from .fused_moe import fused_topk_deepseek as fused_topk_deepseek
from .gdn_decode import gated_delta_rule_decode as gated_delta_rule_decode
from .gdn_decode import gated_delta_rule_decode_pretranspose as gated_delta_rule_decode_pretranspose
from .gdn_decode import gated_delta_rule_mtp as gated_delta_rule_mtp
from .gdn_decode import gated_delta_rule_replayssm_commit as gated_delta_rule_replayssm_commit
from .activation import gelu_and_mul as gelu_and_mul
from .activation import gelu_tanh_and_mul as gelu_tanh_and_mul
from .gemm import gemm_alpha_beta as gemm_alpha_beta
from .gemm import gemm_fp8_nt_blockscaled as gemm_fp8_nt_blockscaled
from .gemm import gemm_fp8_nt_groupwise as gemm_fp8_nt_groupwise
from .norm import gemma_fused_add_rmsnorm as gemma_fused_add_rmsnorm
from .norm import gemma_rmsnorm as gemma_rmsnorm
from .page import get_batch_indices_positions as get_batch_indices_positions
from .context import get_num_threads as get_num_threads
from .page import get_seq_lens as get_seq_lens
from .gemm import gguf_dequantize as gguf_dequantize
from .gemm import group_deepgemm_fp8_nt_groupwise as group_deepgemm_fp8_nt_groupwise
from .gemm import group_gemm_fp8_nt_groupwise as group_gemm_fp8_nt_groupwise
from .gemm import group_gemm_fp8_nt_groupwise_contiguous as group_gemm_fp8_nt_groupwise_contiguous
from .gemm import group_gemm_mxfp4_nt_groupwise as group_gemm_mxfp4_nt_groupwise
from .gemm import group_gemm_mxfp8_mxfp4_nt_groupwise as group_gemm_mxfp8_mxfp4_nt_groupwise
from .gemm import group_gemm_nvfp4_nt_groupwise as group_gemm_nvfp4_nt_groupwise
from .gemm import grouped_gemm_nt_masked as grouped_gemm_nt_masked
from .grouped_mm import grouped_mm_bf16 as grouped_mm_bf16
from .grouped_mm import grouped_mm_fp4 as grouped_mm_fp4
from .grouped_mm import grouped_mm_fp8 as grouped_mm_fp8
from .grouped_mm import grouped_mm_mxfp8 as grouped_mm_mxfp8
from .fused_moe import hash_topk as hash_topk
from .kda import kda_recurrence as kda_recurrence
from .norm import layernorm as layernorm
from .norm import layernorm_quant as layernorm_quant
from .quantization import make_nvfp4_global_scale as make_nvfp4_global_scale
from .gemm import masked_bmm as masked_bmm
from .gemm import masked_scaled_bmm as masked_scaled_bmm
from .cascade import merge_state as merge_state
from .cascade import merge_state_in_place as merge_state_in_place
from .cascade import merge_states as merge_states
from .mhc import mhc_post as mhc_post
from .mhc import mhc_pre_big_fuse as mhc_pre_big_fuse
from .mhc import mhc_pre_big_fuse_with_prenorm as mhc_pre_big_fuse_with_prenorm
from .sampling import min_p_sampling_from_probs as min_p_sampling_from_probs
from .comm import mixed_comm_into as mixed_comm_into
from .rope import mla_rope_quantize_fp8 as mla_rope_quantize_fp8
from .gemm import mm_M1_16_K6144_N256 as mm_M1_16_K6144_N256
from .gemm import mm_M1_16_K7168_N128 as mm_M1_16_K7168_N128
from .gemm import mm_M1_16_K7168_N256 as mm_M1_16_K7168_N256
from .gemm import mm_M1_16_K7168_N256_bf16 as mm_M1_16_K7168_N256_bf16
from .gemm import mm_M1_16_K7168_N384 as mm_M1_16_K7168_N384
from .gemm import mm_M1_16_K7168_N384_bf16 as mm_M1_16_K7168_N384_bf16
from .gemm import mm_M1_16_K7168_N896 as mm_M1_16_K7168_N896
from .gemm import mm_M1_16_K7168_N896_bf16 as mm_M1_16_K7168_N896_bf16
from .gemm import mm_bf16 as mm_bf16
from .gemm import mm_bf16_fp4 as mm_bf16_fp4
from .gemm import mm_fp4 as mm_fp4
from .gemm import mm_fp8 as mm_fp8
from .gemm import mm_gguf as mm_gguf
from .gemm import mm_mxfp8 as mm_mxfp8
from .comm import moe_a2a_combine as moe_a2a_combine
from .comm import moe_a2a_dispatch_into as moe_a2a_dispatch_into
from .comm import moe_a2a_initialize as moe_a2a_initialize
from .comm import moe_a2a_sanitize_expert_ids as moe_a2a_sanitize_expert_ids
from .grouped_mm import moe_gemm_fp8_nt_groupwise as moe_gemm_fp8_nt_groupwise
from .grouped_mm import moe_gemm_mxfp8_nt_groupwise as moe_gemm_mxfp8_nt_groupwise
from .fused_moe import moe_routing as moe_routing
from .msa_ops import msa_proxy_score as msa_proxy_score
from .msa_ops import msa_proxy_score_fp4 as msa_proxy_score_fp4
from .msa_ops import msa_sparse_attention as msa_sparse_attention
from .msa_ops import msa_sparse_decode_attention as msa_sparse_decode_attention
from .msa_ops import msa_topk_select as msa_topk_select
from .quantization import mxfp4_dequantize as mxfp4_dequantize
from .quantization import mxfp4_dequantize_host as mxfp4_dequantize_host
from .quantization import mxfp4_quantize as mxfp4_quantize
from .quantization import mxfp8_dequantize_host as mxfp8_dequantize_host
from .quantization import mxfp8_grouped_quantize as mxfp8_grouped_quantize
from .quantization import mxfp8_quantize as mxfp8_quantize
from .utils import next_positive_power_of_2 as next_positive_power_of_2
from .context import num_threads as num_threads
from .quantization import nvfp4_batched_quantize as nvfp4_batched_quantize
from .quantization import nvfp4_block_scale_interleave as nvfp4_block_scale_interleave
from .quantization import nvfp4_kv_dequantize as nvfp4_kv_dequantize
from .quantization import nvfp4_kv_dequantize_paged as nvfp4_kv_dequantize_paged
from .quantization import nvfp4_kv_quantize as nvfp4_kv_quantize
from .quantization import nvfp4_quantize as nvfp4_quantize
from .page import nvfp4_quantize_append_paged_kv_cache as nvfp4_quantize_append_paged_kv_cache
from .page import nvfp4_quantize_append_paged_kv_cache_with_slot_mapping as nvfp4_quantize_append_paged_kv_cache_with_slot_mapping
from .page import nvfp4_quantize_append_paged_mla_kv_cache as nvfp4_quantize_append_paged_mla_kv_cache
from .quantization import nvfp4_quantize_paged_kv_cache as nvfp4_quantize_paged_kv_cache
from .quantization import packbits as packbits
from .kda_decode import packed_fused_kda_decode as packed_fused_kda_decode
from .gemm import pad_indptr_to_multiple_of_4 as pad_indptr_to_multiple_of_4
from .quantization import per_tensor_quant_fp8 as per_tensor_quant_fp8
from .quantization import per_token_group_quant_8bit as per_token_group_quant_8bit
from .gemm import prepare_bf16_fp4_weights as prepare_bf16_fp4_weights
from .gemm import prepare_gguf_weights as prepare_gguf_weights
from .gemm import prepare_mm_weights as prepare_mm_weights
from .gemm import prepare_quantized_weights as prepare_quantized_weights
from .comm import quantized_all_reduce_into as quantized_all_reduce_into
from .gemm import ragged_block_scaled_bmm as ragged_block_scaled_bmm
from .gemm import ragged_bmm as ragged_bmm
from .gemm import ragged_scaled_bmm as ragged_scaled_bmm
from .comm import reduce_scatter as reduce_scatter
from .fused_moe import reorder_rows_for_gated_act_gemm as reorder_rows_for_gated_act_gemm
from .mamba import replayssm_materialize_layer as replayssm_materialize_layer
from .norm import rmsnorm as rmsnorm
from .norm import rmsnorm_fp4quant as rmsnorm_fp4quant
from .norm import rmsnorm_quant as rmsnorm_quant
from .rope import rope_quantize_fp8 as rope_quantize_fp8
from .rope import rope_quantize_fp8_append_paged_kv_cache as rope_quantize_fp8_append_paged_kv_cache
from .sampling import sampling_from_logits as sampling_from_logits
from .sampling import sampling_from_probs as sampling_from_probs
from .quantization import scaled_fp4_grouped_quantize as scaled_fp4_grouped_quantize
from .quantization import segment_packbits as segment_packbits
from .mamba import selective_state_update as selective_state_update
from .context import set_num_threads as set_num_threads
from .quantization import shuffle_matrix_a as shuffle_matrix_a
from .quantization import shuffle_matrix_sf_a as shuffle_matrix_sf_a
from .activation import silu_and_mul as silu_and_mul
from .quantization import silu_and_mul_nvfp4_quantize as silu_and_mul_nvfp4_quantize
from .activation import silu_and_mul_scaled_nvfp4_experts_quantize as silu_and_mul_scaled_nvfp4_experts_quantize
from .decode import single_decode_with_kv_cache as single_decode_with_kv_cache
from .decode import single_decode_with_kv_cache_with_jit_module as single_decode_with_kv_cache_with_jit_module
from .prefill import single_prefill_with_kv_cache as single_prefill_with_kv_cache
from .prefill import single_prefill_with_kv_cache_return_lse as single_prefill_with_kv_cache_return_lse
from .prefill import single_prefill_with_kv_cache_with_jit_module as single_prefill_with_kv_cache_with_jit_module
from .sampling import softmax as softmax
from .mamba import ssd_chunk_scan as ssd_chunk_scan
from .utils import supports_gated_residual_next_rmsnorm as supports_gated_residual_next_rmsnorm
from .utils import supports_gated_residual_rmsnorm as supports_gated_residual_rmsnorm
from .utils import supports_rmsnorm_sigmoid_gate as supports_rmsnorm_sigmoid_gate
from .gemm import tinygemm_bf16 as tinygemm_bf16
from .topk import top_k as top_k
from .sampling import top_k_mask_logits as top_k_mask_logits
from .topk import top_k_page_table_transform as top_k_page_table_transform
from .topk import top_k_ragged_transform as top_k_ragged_transform
from .sampling import top_k_renorm_probs as top_k_renorm_probs
from .sampling import top_k_sampling_from_probs as top_k_sampling_from_probs
from .sampling import top_k_top_p_sampling_from_logits as top_k_top_p_sampling_from_logits
from .sampling import top_k_top_p_sampling_from_probs as top_k_top_p_sampling_from_probs
from .sampling import top_p_renorm_probs as top_p_renorm_probs
from .sampling import top_p_sampling_from_probs as top_p_sampling_from_probs
from .prefill import trtllm_batch_context_with_kv_cache as trtllm_batch_context_with_kv_cache
from .decode import trtllm_batch_decode_with_kv_cache as trtllm_batch_decode_with_kv_cache
from .mla import trtllm_batch_decode_with_kv_cache_mla as trtllm_batch_decode_with_kv_cache_mla
from .fused_moe import trtllm_bf16_moe as trtllm_bf16_moe
from .fused_moe import trtllm_bf16_routed_moe as trtllm_bf16_routed_moe
from .fused_moe import trtllm_fp4_block_scale_moe as trtllm_fp4_block_scale_moe
from .fused_moe import trtllm_fp4_block_scale_routed_moe as trtllm_fp4_block_scale_routed_moe
from .fused_moe import trtllm_fp8_block_scale_moe as trtllm_fp8_block_scale_moe
from .fused_moe import trtllm_fp8_block_scale_routed_moe as trtllm_fp8_block_scale_routed_moe
from .fused_moe import trtllm_fp8_per_channel_scale_moe as trtllm_fp8_per_channel_scale_moe
from .fused_moe import trtllm_fp8_per_channel_scale_routed_moe as trtllm_fp8_per_channel_scale_routed_moe
from .fused_moe import trtllm_fp8_per_tensor_scale_moe as trtllm_fp8_per_tensor_scale_moe
from .fused_moe import trtllm_fp8_per_tensor_scale_routed_moe as trtllm_fp8_per_tensor_scale_routed_moe
from .fused_moe import trtllm_gen_routing as trtllm_gen_routing
from .fused_moe import trtllm_mxint4_block_scale_moe as trtllm_mxint4_block_scale_moe
from .fused_moe import trtllm_mxint4_block_scale_routed_moe as trtllm_mxint4_block_scale_routed_moe
from .mla import trtllm_prefill_with_kv_cache_mla as trtllm_prefill_with_kv_cache_mla
from .prefill import trtllm_ragged_attention_deepseek as trtllm_ragged_attention_deepseek
from .prefill import trtllm_sage_attention_quantize as trtllm_sage_attention_quantize
from .comm import ulysses_gather_heads as ulysses_gather_heads
from .comm import ulysses_scatter_heads as ulysses_scatter_heads
from .xqa import xqa as xqa
from .decode import xqa_batch_decode_with_kv_cache as xqa_batch_decode_with_kv_cache
from .mla import xqa_batch_decode_with_kv_cache_mla as xqa_batch_decode_with_kv_cache_mla
from .xqa import xqa_mla as xqa_mla

__version__: str
# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def concat_mla_kv_quant_fp8(kv_nope: _T, k_pe: Array, key: Optional[Array] = None, value: Optional[Array] = None, *, nope_dim: int = 128, backend: Union[Literal['auto', 'specialized', 'cake'], str] = 'auto') -> tuple[_T, _T]:
    """key = (kv_nope[..., :nope_dim], k_pe for every head), value = the rest, in e4m3.

    Args:
        kv_nope: Tensor [n h d]; float32|float16|bfloat16; un-rotated part of each head's key, then its value
        k_pe: Tensor; float32|float16|bfloat16; rotated part of the keys, one for all heads
        key: Tensor or None; float8_e4m3fn; written; made when absent; keys
        value: Tensor or None; float8_e4m3fn; written; made when absent; values
        nope_dim: int; how much of kv_nope belongs to the key
        backend: str; one of auto, specialized, cake; the implementation by name; 'auto' lets the library choose

    Returns:
        key: Tensor; float8_e4m3fn; keys
        value: Tensor; float8_e4m3fn; values

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gated_residual_next_rmsnorm(branch: _T, residual: Array, next_weight: Array, alpha: Union[float, Array], beta: Array, post_eps: float = 1e-06, next_eps: float = 1e-06, next_gain_center: float = 0.0, residual_out: Optional[Array] = None, ffn_input: Optional[Array] = None, *, post_weight: Optional[Array] = None, post_gain_center: float = 0.0, enable_pdl: bool = True) -> tuple[_T, _T]:
    """gated_residual_rmsnorm, then the next layer's rmsnorm of its result.

    Args:
        branch: Tensor [n d]; float32|float16|bfloat16; what is normalised and added to the residual
        residual: Tensor [n d]; float32; the stream that input is added to
        next_weight: Tensor [d]; dtype of branch; weight of the second norm
        alpha: number or Tensor; float32; factor of the residual, one a column
        beta: Tensor [d]; float32; factor of the normalised branch, one a column
        post_eps: float; added to the mean square of the branch
        next_eps: float; added to the mean square of the sum
        next_gain_center: float; added to next_weight
        residual_out: Tensor [n d] or None; float32; written; made when absent; may be residual itself; receives the sum
        ffn_input: Tensor [n d] or None; dtype of branch; written; made when absent; may be branch itself; receives the norm of the sum
        post_weight: Tensor [d] or None; dtype of branch; weight of the branch before its norm; none when absent
        post_gain_center: float; added to post_weight
        enable_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        residual_out: Tensor [n d]; float32; may be residual itself; receives the sum
        ffn_input: Tensor [n d]; dtype of branch; may be branch itself; receives the norm of the sum

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gated_residual_rmsnorm(branch: _T, residual: Array, weight: Optional[Array], alpha: Array, beta: Array, eps: float = 1e-06, gain_center: float = 0.0, out: Optional[Array] = None, *, enable_pdl: bool = True) -> _T:
    """alpha * residual + beta * rmsnorm of a branch that is weighted before its statistics.

    Args:
        branch: Tensor [n d]; float32|float16|bfloat16; what is normalised and added to the residual
        residual: Tensor [n d]; float32; the stream that input is added to
        weight: Tensor [d] or None; dtype of branch; factor of each element; in Gemma's norms 1 + weight is
        alpha: Tensor [d]; float32; factor of the residual, one a column
        beta: Tensor [d]; float32; factor of the normalised branch, one a column
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        gain_center: float; added to the weight
        out: Tensor [n d] or None; float32; written; made when absent; may be residual itself; the result
        enable_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        out: Tensor [n d]; float32; may be residual itself; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gdn_fused_decode_step(hidden_states: _T, w_ba: Array, mixed_qkv: Array, conv_weight: Array, conv_bias: Optional[Array], conv_state: Array, A_log: Array, dt_bias: Array, scale: Optional[float], ssm_state: Array, state_indices: Array, use_qk_l2norm: bool = True, out: Optional[Array] = None) -> Union[_T, Any]:
    """Gates, causal convolution and a step of the gated delta rule for one token of each row; returns (out, conv_state, ssm_state).

    Args:
        hidden_states: Tensor [b d]; bfloat16; inputs of the layer
        w_ba: Tensor [d 2*hv]; bfloat16; weight of the gates b and a
        mixed_qkv: Tensor [b channels]; bfloat16; new inputs of the convolution: channels of q, k and v
        conv_weight: Tensor [channels width]; float32|float16|bfloat16; filter of each channel; its last tap meets the newest input
        conv_bias: Tensor [channels] or None; dtype of conv_weight; added to each channel's result
        conv_state: Tensor [slots channels length]; bfloat16; read and written; the last inputs of each channel, updated in place
        A_log: Tensor [hv]; float32; ln of each head's decay rate
        dt_bias: Tensor [hv]; float32|bfloat16; added to dt; of the delta rule: each head's part of the decay's argument
        scale: float or None; factor of the queries; 1 / sqrt(K) when absent
        ssm_state: Tensor [p hv v k]; float32; read and written; pool of states, updated in place
        state_indices: Tensor [b]; int32; the slot of each row or sequence
        use_qk_l2norm: bool; divides each row of q and k by its norm
        out: Tensor or None; bfloat16; written; made when absent; the result

    Returns:
        out: Tensor; bfloat16; the result
        conv_state: Tensor [slots channels length]; bfloat16; the last inputs of each channel, updated in place, when requested
        ssm_state: Tensor [p hv v k]; float32; pool of states, updated in place, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def nvfp4_quantize_smooth(x: _T, pre_quant_scale: Array, global_scale: Array, enable_pdl: Optional[bool] = None, backend: str = 'auto') -> tuple[_T, _T]:
    """x times the scale of each column, as NVFP4.

    Args:
        x: Tensor [m k]; float16|bfloat16; elements to work on
        pre_quant_scale: Tensor [k]; dtype of x; factor of each column before quantising
        global_scale: Tensor; float32; one scale for the whole tensor
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        backend: str; one of cutlass, cute-dsl, auto, cuda, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        xq: Tensor; uint8
        sf: Tensor; uint8

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def prepare_low_latency_gemm_weights(w: _T, permutation_indices_cache: Any) -> _T:
    """A weight in the layout that mm_fp8 takes.

    Args:
        w: Tensor [n k]; float8_e4m3fn; the weight, as it is loaded
        permutation_indices_cache: object; a cache of FlashInfer's; not used

    Returns:
        out: Tensor; float8_e4m3fn; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def rmsnorm_sigmoid_gate(input: Array, gate: Array, eps: float = 1e-05, *, enable_pdl: bool = True) -> None:
    """In place: input / sqrt(mean(input^2) + eps) * sigmoid(gate).

    Args:
        input: Tensor [... d]; float32|float16|bfloat16; read and written; rows to work on
        gate: Tensor [... d]; dtype of input; what gates the result, through a sigmoid
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        enable_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def silu_and_mul_mxfp8_quantize(gated_input: _T, *, rowwise: bool = True, colwise: bool = False) -> tuple[_T, _T, _T, _T]:
    """silu(gate) * linear half to MXFP8, by rows and by columns.

    Args:
        gated_input: Tensor [m n]; float16|bfloat16; gate and linear half side by side
        rowwise: bool; whether rows are quantised
        colwise: bool; whether columns are quantised

    Returns:
        row_output: Tensor; float8_e4m3fn
        column_output: Tensor; float8_e4m3fn
        row_scales: Tensor; uint8
        column_scales: Tensor; uint8

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def silu_and_mul_mxfp8_quantize_backward(gated_input: _T, grad_output: Array, *, rowwise: bool = True, colwise: bool = False) -> tuple[_T, _T, _T, _T]:
    """The gradients of silu(gate) * linear half to MXFP8, by rows and by columns.

    Args:
        gated_input: Tensor [m n]; float16|bfloat16; gate and linear half side by side
        grad_output: Tensor [m k]; dtype of gated_input; gradient of the activation
        rowwise: bool; whether rows are quantised
        colwise: bool; whether columns are quantised

    Returns:
        row_output: Tensor; float8_e4m3fn
        column_output: Tensor; float8_e4m3fn
        row_scales: Tensor; uint8
        column_scales: Tensor; uint8

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def top_k_varlen(logits: _T, seq_lens: Array, top_k: int, pre_idx: Optional[Array] = None, compress_ratio: int = 1, next_n: int = 1, return_values: bool = False, out_indices: Optional[Array] = None, out_values: Optional[Array] = None, backend: str = 'auto', load_balance: bool = True, workspace: Any = None) -> tuple[Any, ...]:
    """The positions of the top_k largest logits of each row, of those that count; then -1.

    Args:
        logits: Tensor [n d]; float32|float16|bfloat16; scores of each row
        seq_lens: Tensor [b]; int32|int64; KV tokens of each request
        top_k: int; how many of the largest are kept: a number, or one a row
        pre_idx: Tensor or None; int32|int64; a hint of GPU kernels; without effect
        compress_ratio: int; KV tokens that a logit stands for
        next_n: int; rows of a request
        return_values: bool; also return the logits found
        out_indices: Tensor or None; int32; written; made when absent; in one tuple with the one before it; the positions found
        out_values: Tensor or None; dtype of logits; written; made when absent; the logits found
        backend: str; one of auto, radix, gvr, gvr_2, radix_cutlass, radix_filter, cuda, cpu, reference; the implementation by name; 'auto' lets the library choose
        load_balance: bool; GPU kernels only
        workspace: object; scratch memory of upstream's kernels; without effect

    Returns:
        out_indices: Tensor; int32; in one tuple with the one before it; the positions found
        out_values: Tensor; dtype of logits; the logits found, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer._b12x import B12xMoEWrapper as B12xMoEWrapper
from flashinfer._kda import KDAPrefillPlanCache as KDAPrefillPlanCache
from flashinfer.autotuner._managed import MeasurementPolicy as MeasurementPolicy
from flashinfer._four_over_six import NVFP44Over6Config as NVFP44Over6Config
from flashinfer._four_over_six import NVFP44Over6ErrMode as NVFP44Over6ErrMode
from flashinfer._kda import RecurrentKDAPrefillWorkspace as RecurrentKDAPrefillWorkspace
from flashinfer._kda import RecurrentKDAPrefillWrapper as RecurrentKDAPrefillWrapper
from flashinfer.tllm_enums import RoutingMethodType as RoutingMethodType
from flashinfer.autotuner.autotuner import autotune as autotune
from flashinfer.autotuner._managed import autotune_v2 as autotune_v2
from flashinfer.autotuner._managed import autotune_v2_reload as autotune_v2_reload
from flashinfer._b12x import b12x_fused_moe as b12x_fused_moe
from flashinfer._indexer import compute_paged_mqa_logits_schedule as compute_paged_mqa_logits_schedule
from flashinfer._indexer import fp4_paged_mqa_logits as fp4_paged_mqa_logits
from flashinfer._indexer import fp8_paged_mqa_logits as fp8_paged_mqa_logits
from flashinfer._availability import gdn_fused_decode_step_supported as gdn_fused_decode_step_supported
from flashinfer.tllm_enums import is_gated_activation as is_gated_activation
from flashinfer._availability import kda_prefill_supports_fp32_checkpoints as kda_prefill_supports_fp32_checkpoints
from flashinfer._buckets import min_block_table_width as min_block_table_width
from flashinfer._svdquant import mm_nvfp4_svdquant as mm_nvfp4_svdquant
from flashinfer._nvfp4_attention import nvfp4_attention_sm120_fwd as nvfp4_attention_sm120_fwd
from flashinfer._nvfp4_attention import nvfp4_attention_sm120_quantize_qkv as nvfp4_attention_sm120_quantize_qkv
from flashinfer._kda import packed_kda_decode as packed_kda_decode
from flashinfer._buckets import padded_seq_len as padded_seq_len
from flashinfer._kda_prepared import prepare_bf16_kda_prefill as prepare_bf16_kda_prefill
from flashinfer._kda_prepared import prepare_tf32_kda_prefill as prepare_tf32_kda_prefill
from flashinfer._kda import recurrent_kda as recurrent_kda
from flashinfer._four_over_six import resolve_nvfp4_4over6 as resolve_nvfp4_4over6
from flashinfer._svdquant import svdquant_linear as svdquant_linear
from flashinfer._svdquant import tgv_gemm_sm100 as tgv_gemm_sm100
from flashinfer._fmha_v2 import trtllm_fmha_v2_prefill as trtllm_fmha_v2_prefill
class CakeFmhaRequestOrderedDecodePlan:
    """flashinfer.CakeFmhaRequestOrderedDecodePlan is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CakeRMSNormFunction:
    """flashinfer.cake_rmsnorm_train.CakeRMSNormFunction is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MiniMaxH3Mxfp8PreAttention:
    """flashinfer.MiniMaxH3Mxfp8PreAttention is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MiniMaxH3Nvfp4PreAttention:
    """flashinfer.MiniMaxH3Nvfp4PreAttention is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MiniMaxH3QkvQuantizePack:
    """flashinfer.MiniMaxH3QkvQuantizePack is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def cake_batch_context_with_kv_cache(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cake_batch_context_with_kv_cache is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def cake_batch_decode_with_kv_cache(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cake_batch_decode_with_kv_cache is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def cake_fmha_manifest(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cake_fmha_manifest is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def cake_rmsnorm(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cake_rmsnorm_train.cake_rmsnorm is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def cake_rmsnorm_train_backward(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cake_rmsnorm_train_backward is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def cake_rmsnorm_train_backward_workspace_bytes(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cake_rmsnorm_train_backward_workspace_bytes is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def cake_rmsnorm_train_forward(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cake_rmsnorm_train_forward is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def cake_top_k_top_p_sampling_from_probs(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cake_top_k_top_p_sampling_from_probs is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def cudnn_frost_grouped_gemm1_swiglu(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.cudnn_frost_grouped_gemm1_swiglu is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def cudnn_frost_grouped_gemm1_swiglu_workspace_size(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.cudnn_frost_grouped_gemm1_swiglu_workspace_size is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def get_dcp_spec_counter_bytes(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.get_dcp_spec_counter_bytes is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def get_dcp_spec_workspace_size_bytes(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.get_dcp_spec_workspace_size_bytes is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def launch_sm110_gqa_decode_prepared(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.decode.launch_sm110_gqa_decode_prepared is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def plan_cake_fmha_request_ordered_paged_decode(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.plan_cake_fmha_request_ordered_paged_decode is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def precompile_paged_mqa_logits(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.attn_scores.precompile_paged_mqa_logits is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_balanced_batch_decode_with_kv_cache(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.decode.prepare_balanced_batch_decode_with_kv_cache is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_sm110_gqa_decode(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.decode.prepare_sm110_gqa_decode is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def sm110_gqa_decode(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.decode.sm110_gqa_decode is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
