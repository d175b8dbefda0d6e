# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

class ActivationType(IntEnum):
    Gelu = 0
    Relu = 1
    Silu = 2
    Swiglu = 3
    Geglu = 4
    SwigluBias = 5
    Relu2 = 6
    SwigluStep = 7
    GegluTanh = 8
    Identity = 9
    Situ = 10
    InvalidType = 11
    ClampedRelu2 = 12

class Fp8QuantizationType(IntEnum):
    NoneFp8 = 0
    DeepSeekFp8 = 1
    MxFp8 = 2
    PerTensorFp8 = 3
    PerChannelFp8 = 4

class WeightLayout(IntEnum):
    MajorK = 0
    MajorMn = 1
    BlockMajorK = 2

class TrtllmGenRoutingResult(NamedTuple):
    topk_ids: Array
    topk_weights: Array
    total_num_padded_tokens: Array
    expanded_idx_to_permuted_idx: Array
    permuted_idx_to_token_idx: Array
    cta_idx_xy_to_batch_idx: Array
    cta_idx_xy_to_mn_limit: Array
    num_non_exiting_ctas: Array

def bgmv_moe(x: _T, lora_a_weights: list[Array], lora_b_weights: list[Array], sorted_token_ids: Array, expert_ids: Array, lora_indices: Array, topk_weights: Array, num_experts: int, output_dim: Optional[int] = None) -> _T:
    """Sum over a token's experts of topk_weights * lora_b (lora_a x), of the token's adapter, slice by slice.

    Args:
        x: Tensor [t h]; float32|float16|bfloat16; elements to work on
        lora_a_weights: list of Tensors; dtype of x; first factor of each slice's adapters
        lora_b_weights: list of Tensors; dtype of x; second factor of each slice's adapters
        sorted_token_ids: Tensor [p]; int32|int64; the token of each pair
        expert_ids: Tensor [p]; int32|int64; the expert of each pair
        lora_indices: Tensor [t]; int32|int64; the adapter of each token; negative: none
        topk_weights: Tensor [p]; float32; weight of each chosen expert
        num_experts: int; experts of all ranks
        output_dim: int or None; columns of the result; those of the slices when absent

    Returns:
        output: Tensor; float32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def bgmv_moe_expand_weights(y: Array, x: Array, weights: list[Array], sorted_token_ids: Array, expert_ids: Array, topk_weights: Array, lora_indices: Array, slice_start_loc: Array, output_slices: list[int], finalize: bool = True) -> None:
    """The second step of bgmv_moe: rows of the first times the matrices B, added up by token or pair by pair.

    Args:
        y: Tensor [rows columns]; float32|float16|bfloat16; read and written; receives the products
        x: Tensor [s p r]; float32|float16|bfloat16; elements to work on
        weights: list of Tensors; float32|float16|bfloat16; each slice's matrices, [adapters, experts, rows, columns]
        sorted_token_ids: Tensor [p]; int32|int64; the token of each pair
        expert_ids: Tensor [p]; int32|int64; the expert of each pair
        topk_weights: Tensor [p]; float32; weight of each chosen expert
        lora_indices: Tensor [t]; int32|int64; the adapter of each token; negative: none
        slice_start_loc: Tensor [s]; int32|int64; first column of y of each slice
        output_slices: list of int; rows of each slice's matrices
        finalize: bool; whether the pairs of a token are weighted and added to its row; else each pair is a row

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def bgmv_moe_shrink_weights(y: Array, x: Array, weights: list[Array], sorted_token_ids: Array, expert_ids: Array, lora_indices: Array, per_pair_input: bool = False) -> None:
    """The first step of bgmv_moe: rows times the matrices A of their adapters and experts.

    Args:
        y: Tensor [s p r]; float32|float16|bfloat16; read and written; receives the products
        x: Tensor [rows h]; float32|float16|bfloat16; elements to work on
        weights: list of Tensors; float32|float16|bfloat16; each slice's matrices, [adapters, experts, rows, columns]
        sorted_token_ids: Tensor [p]; int32|int64; the token of each pair
        expert_ids: Tensor [p]; int32|int64; the expert of each pair
        lora_indices: Tensor [t]; int32|int64; the adapter of each token; negative: none
        per_pair_input: bool; whether x has a row for each pair; else for each token

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def convert_to_block_layout(input_tensor: _T, blockK: int) -> _T:
    """[m, k] to [k / blockK, m, blockK].

    Args:
        input_tensor: Tensor [m k]; rows to work on
        blockK: int; columns of a block

    Returns:
        output: Tensor; dtype of input_tensor; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def cutlass_fused_moe(input: _T, token_selected_experts: Array, token_final_scales: Array, fc1_expert_weights: Array, fc2_expert_weights: Array, output_dtype: Union[torch.dtype, str], quant_scales: Optional[list[Array]], fc1_expert_biases: Optional[Array] = None, fc2_expert_biases: Optional[Array] = None, input_sf: Optional[Array] = None, swiglu_alpha: Optional[Array] = None, swiglu_beta: Optional[Array] = None, swiglu_limit: Optional[Array] = None, tp_size: int = 1, tp_rank: int = 0, ep_size: int = 1, ep_rank: int = 0, cluster_size: int = 1, cluster_rank: int = 0, output: Optional[Array] = None, enable_alltoall: bool = False, use_deepseek_fp8_block_scale: bool = False, use_w4_group_scaling: bool = False, use_mxfp8_act_scaling: bool = False, min_latency_mode: bool = False, use_packed_weights: bool = False, use_wfp4afp8_humming: bool = False, tune_max_num_tokens: int = 8192, enable_pdl: Optional[bool] = None, activation_type: Union[ActivationType, int] = ActivationType.Swiglu, swizzled_input_sf: bool = True, use_fused_finalize: bool = True, profile_ids: Optional[list[int]] = None, workspace_buffer: Optional[Array] = None, *, clamped_relu2_limit: Optional[Array] = None, situ_beta: Optional[Array] = None, situ_linear_beta: Optional[Array] = None, backend: str = 'cutlass') -> _T:
    """A mixture of experts: both GEMMs, the activation between them and the weighted sum.

    Args:
        input: Tensor [t columns]; float32|float16|bfloat16|float8_e4m3fn|uint8|float4_e2m1fn_x2; rows to work on
        token_selected_experts: Tensor [t k]; int32|int64; the experts that each token goes to
        token_final_scales: Tensor [t k]; float32; weight of each expert that a token goes to
        fc1_expert_weights: Tensor; float32|float16|bfloat16|float8_e4m3fn|uint8|int64|float4_e2m1fn_x2; each expert's first matrix
        fc2_expert_weights: Tensor; float32|float16|bfloat16|float8_e4m3fn|uint8|int64|float4_e2m1fn_x2; each expert's second matrix
        output_dtype: dtype; dtype of the result
        quant_scales: list of Tensors or None; scales of the quantised weights and inputs, in the order of the kind of quantisation
        fc1_expert_biases: Tensor or None; float32|float16|bfloat16; added after each expert's first product
        fc2_expert_biases: Tensor or None; float32|float16|bfloat16; added after each expert's second product
        input_sf: Tensor or None; scale factors of a quantised input
        swiglu_alpha: Tensor or None; parameter of SwiGLU: factor inside its sigmoid
        swiglu_beta: Tensor or None; parameter of SwiGLU: added to its linear part
        swiglu_limit: Tensor or None; parameter of SwiGLU: both parts are clamped to it
        tp_size: int; number of shares of each expert
        tp_rank: int; index of this rank's share of each expert
        ep_size: int; number of shares of the experts
        ep_rank: int; index of this rank's share of the experts
        cluster_size: int; parallelism over several GPUs
        cluster_rank: int; parallelism over several GPUs
        output: Tensor or None; float32|float16|bfloat16; dtype output_dtype; written; made when absent; the result
        enable_alltoall: bool; parallelism over several GPUs
        use_deepseek_fp8_block_scale: bool; which kind of quantisation the weights have
        use_w4_group_scaling: bool; which kind of quantisation the weights have
        use_mxfp8_act_scaling: bool; which kind of quantisation the inputs have
        min_latency_mode: bool; GPU kernels only
        use_packed_weights: bool; GPU kernels only
        use_wfp4afp8_humming: bool; which kind of quantisation weights and inputs have
        tune_max_num_tokens: int; GPU kernels only
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        activation_type: int; the function between the experts' two products
        swizzled_input_sf: bool; input_sf is stored in tiles instead of row by row
        use_fused_finalize: bool; GPU kernels only
        profile_ids: list of int or None; GPU kernels only
        workspace_buffer: Tensor or None; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        clamped_relu2_limit: Tensor or None; limit of activation ClampedRelu2
        situ_beta: Tensor or None; parameter of activation Situ
        situ_linear_beta: Tensor or None; parameter of activation Situ
        backend: str; one of cutlass, cake, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        output: Tensor; float32|float16|bfloat16; dtype output_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def cutlass_fused_moe_workspace_size(max_num_tokens: int, hidden_size: int, intermediate_size: int, num_experts_total: int, top_k: int, *, x_dtype: Union[torch.dtype, str], weight_dtype: Union[torch.dtype, str], output_dtype: Union[torch.dtype, str] = torch.bfloat16, activation_type: Union[ActivationType, int] = ActivationType.Swiglu, tp_size: int = 1, tp_rank: int = 0, ep_size: int = 1, ep_rank: int = 0, min_latency_mode: bool = False, use_deepseek_fp8_block_scale: bool = False, use_w4_group_scaling: bool = False, use_mxfp8_act_scaling: bool = False, use_fused_finalize: bool = True, use_packed_weights: bool = False, use_wfp4afp8_humming: bool = False, device: Optional[Union[torch.device, str]] = None, backend: str = 'cutlass') -> tuple[Any, ...]:
    """Upper bound of the scratch bytes that cutlass_fused_moe allocates.

    Args:
        max_num_tokens: int; the most tokens of a call
        hidden_size: int; columns of the input
        intermediate_size: int; rows of each half of the first product
        num_experts_total: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        x_dtype: dtype; dtype of the input
        weight_dtype: dtype; dtype of the weights
        output_dtype: dtype; dtype of the result
        activation_type: int; the function between the experts' two products
        tp_size: int; number of shares of each expert
        tp_rank: int; index of this rank's share of each expert
        ep_size: int; number of shares of the experts
        ep_rank: int; index of this rank's share of the experts
        min_latency_mode: bool; GPU kernels only
        use_deepseek_fp8_block_scale: bool; which kind of quantisation the weights have
        use_w4_group_scaling: bool; which kind of quantisation the weights have
        use_mxfp8_act_scaling: bool; which kind of quantisation the inputs have
        use_fused_finalize: bool; GPU kernels only
        use_packed_weights: bool; GPU kernels only
        use_wfp4afp8_humming: bool; which kind of quantisation weights and inputs have
        device: device or None; where the result is made
        backend: str; one of cutlass, cake, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        bytes: Tensor [1]; int64; its elements, each a number of its own

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fused_topk_deepseek(scores: Array, bias: Array, n_group: int, topk_group: int, topk: int, routed_scaling_factor: float, topk_values: Array, topk_indices: Array, launch_with_pdl: bool = True, routing_replay_out: Optional[Array] = None, *, backend: Union[Literal['default', 'cake'], str] = 'default') -> None:
    """DeepSeek-V3's routing: sigmoid plus bias, the best groups, then the best experts in them.

    Args:
        scores: Tensor [t e]; float32|float16|bfloat16; score of each token for each expert
        bias: Tensor [e]; float32|float16|bfloat16; added to each row of the product
        n_group: int; groups that the experts are divided into; 0 or 1: one
        topk_group: int; groups that experts are chosen from; 0: all
        topk: int; experts that each token goes to
        routed_scaling_factor: float; factor of the experts' weights
        topk_values: Tensor [t k]; dtype of scores; written; made when absent; the chosen experts' weights
        topk_indices: Tensor [t k]; int32; written; made when absent; the chosen experts
        launch_with_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU
        routing_replay_out: Tensor [rows k] or None; int16; read and written; receives the chosen experts
        backend: str; one of default, cake; the implementation by name; 'auto' lets the library choose

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def hash_topk(router_logits: _T, input_ids: Array, tid2eid: Array, num_fused_shared_experts: int = 0, routed_scaling_factor: float = 1.0, launch_with_pdl: bool = True) -> tuple[_T, _T]:
    """The experts that a table has for each token, weighted by sqrt(softplus(router_logits)) over its sum.

    Args:
        router_logits: Tensor [t e]; float32; score of each expert
        input_ids: Tensor [t]; int32|int64; the token of each row
        tid2eid: Tensor [v k]; int32; the experts of each token of the vocabulary
        num_fused_shared_experts: int; experts after the routed ones, to which every token goes with weight 1
        routed_scaling_factor: float; factor of the experts' weights
        launch_with_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        topk_weights: Tensor; float32; weight of each chosen expert
        topk_ids: Tensor; int32; the experts of each token: ids and weights, or int32 of id << 16 | bits of a bf16 weight

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def moe_routing(routing_logits: _T, routing_method: Union[RoutingMethodType, int], top_k: int, routing_bias: Optional[Array] = None, n_group: int = 0, topk_group: int = 0, routed_scaling_factor: float = 1.0, norm_topk_prob: bool = True) -> tuple[_T, _T]:
    """The experts of each token and their weights, by a routing method.

    Args:
        routing_logits: Tensor [t e]; float32|float16|bfloat16; score of each token for each expert
        routing_method: int; how experts are chosen and weighted
        top_k: int; how many of the largest are kept: a number, or one a row
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        n_group: int; groups that the experts are divided into; 0 or 1: one
        topk_group: int; groups that experts are chosen from; 0: all
        routed_scaling_factor: float; factor of the experts' weights
        norm_topk_prob: bool; the weights of the chosen experts are divided by their sum

    Returns:
        topk_ids: Tensor; int32; the experts of each token: ids and weights, or int32 of id << 16 | bits of a bf16 weight
        topk_weights: Tensor; float32; weight of each chosen expert

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def reorder_rows_for_gated_act_gemm(x: _T) -> _T:
    """Interleaves the rows of both halves: out[2i] = x[i], out[2i+1] = x[m/2 + i].

    Args:
        x: Tensor [m k]; elements to work on

    Returns:
        output: Tensor [m k]; dtype of x; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_bf16_moe(routing_logits: _T, routing_bias: Optional[Array], hidden_states: Array, gemm1_weights: Array, gemm2_weights: Array, num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float] = None, routing_method_type: int = 0, use_shuffled_weight: bool = True, weight_layout: Union[WeightLayout, int] = WeightLayout.BlockMajorK, do_finalize: bool = True, enable_pdl: Optional[bool] = True, tune_max_num_tokens: int = 8192, activation_type: int = 3, norm_topk_prob: bool = True, routing_replay_out: Optional[Array] = None, gemm1_alpha: Optional[Array] = None, gemm1_beta: Optional[Array] = None, gemm1_clamp_limit: Optional[Array] = None, output: Optional[Array] = None) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of bf16; computes the routing.

    Args:
        routing_logits: Tensor [t e]; float32|float16|bfloat16; score of each token for each expert
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        hidden_states: Tensor [t columns]; one row a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        gemm2_weights: Tensor; the experts' second weights
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        use_shuffled_weight: bool; whether rows of weights are interleaved and shuffled (shuffle_matrix_a)
        weight_layout: int; order of the weights (WeightLayout)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        tune_max_num_tokens: int; GPU kernels only
        activation_type: int; the function between the experts' two products
        norm_topk_prob: bool; the weights of the chosen experts are divided by their sum
        routing_replay_out: Tensor [rows k] or None; int16; read and written; receives the chosen experts
        gemm1_alpha: Tensor or None; parameter of SwiGLU for each expert: factor inside its sigmoid; of SiTU: bound of the gate
        gemm1_beta: Tensor or None; parameter of SwiGLU for each expert: added to its linear half; of SiTU: bound of it
        gemm1_clamp_limit: Tensor or None; for each expert: inputs of SwiGLU and SiTU are clamped to this, the two factors of SwigluStep
        output: Tensor or None; bfloat16; written; made when absent; the result

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_bf16_routed_moe(topk_ids: Union[_T, tuple[_T, _T]], hidden_states: Array, gemm1_weights: Array, gemm2_weights: Array, num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float] = None, routing_method_type: int = 0, use_shuffled_weight: bool = True, weight_layout: Union[WeightLayout, int] = WeightLayout.BlockMajorK, do_finalize: bool = True, enable_pdl: Optional[bool] = True, gemm1_lora_delta: Optional[Array] = None, tune_max_num_tokens: int = 8192, activation_type: int = 3, routing_replay_out: Optional[Array] = None, gemm1_alpha: Optional[Array] = None, gemm1_beta: Optional[Array] = None, gemm1_clamp_limit: Optional[Array] = None, output: Optional[Array] = None) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of bf16; takes the routing as an argument.

    Args:
        topk_ids: Tensor or (Tensor, Tensor); the experts of each token: ids and weights, or int32 of id << 16 | bits of a bf16 weight
        hidden_states: Tensor [t columns]; one row a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        gemm2_weights: Tensor; the experts' second weights
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        use_shuffled_weight: bool; whether rows of weights are interleaved and shuffled (shuffle_matrix_a)
        weight_layout: int; order of the weights (WeightLayout)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        gemm1_lora_delta: Tensor or None; what adapters add to the first product of each choice of a token, [t, top_k, columns of gemm1]
        tune_max_num_tokens: int; GPU kernels only
        activation_type: int; the function between the experts' two products
        routing_replay_out: Tensor [rows k] or None; int16; read and written; receives the chosen experts
        gemm1_alpha: Tensor or None; parameter of SwiGLU for each expert: factor inside its sigmoid; of SiTU: bound of the gate
        gemm1_beta: Tensor or None; parameter of SwiGLU for each expert: added to its linear half; of SiTU: bound of it
        gemm1_clamp_limit: Tensor or None; for each expert: inputs of SwiGLU and SiTU are clamped to this, the two factors of SwigluStep
        output: Tensor or None; bfloat16; written; made when absent; the result

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested
        gemm1_activation_output: Tensor; bfloat16, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_fp4_block_scale_moe(routing_logits: _T, routing_bias: Optional[Array], hidden_states: Array, hidden_states_scale: Optional[Array], gemm1_weights: Array, gemm1_weights_scale: Optional[Array], gemm1_bias: Optional[Array], gemm1_alpha: Optional[Array], gemm1_beta: Optional[Array], gemm1_clamp_limit: Optional[Array], gemm2_weights: Array, gemm2_weights_scale: Optional[Array], gemm2_bias: Optional[Array], output1_scale_scalar: Optional[Array], output1_scale_gate_scalar: Optional[Array], output2_scale_scalar: Optional[Array], num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float], routing_method_type: int = 0, do_finalize: bool = True, enable_pdl: Optional[bool] = None, activation_type: int = 3, per_token_scale: Optional[Array] = None, output: Optional[Array] = None, tune_max_num_tokens: int = 8192, norm_topk_prob: bool = True, routing_replay_out: Optional[Array] = None, num_fused_shared_experts: Optional[int] = None, valid_hidden_size: Optional[int] = None, valid_intermediate_size: Optional[int] = None, hidden_states_scale_layout: Optional[int] = None) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of 4 bits with scales of blocks; computes the routing.

    Args:
        routing_logits: Tensor [t e]; float32|float16|bfloat16; score of each token for each expert
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        hidden_states: Tensor [t columns]; one row a token
        hidden_states_scale: Tensor or None; scales of the rows' blocks, or one a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        gemm1_weights_scale: Tensor or None; scales of blocks of the first weights
        gemm1_bias: Tensor or None; added to the first product of each expert, in the order of its stored rows
        gemm1_alpha: Tensor or None; parameter of SwiGLU for each expert: factor inside its sigmoid; of SiTU: bound of the gate
        gemm1_beta: Tensor or None; parameter of SwiGLU for each expert: added to its linear half; of SiTU: bound of it
        gemm1_clamp_limit: Tensor or None; for each expert: inputs of SwiGLU and SiTU are clamped to this, the two factors of SwigluStep
        gemm2_weights: Tensor; the experts' second weights
        gemm2_weights_scale: Tensor or None; scales of blocks of the second weights
        gemm2_bias: Tensor or None; added to the second product of each expert, in the order of its stored rows
        output1_scale_scalar: Tensor or None; output1_scale_gate_scalar times the factor of activations before their cast
        output1_scale_gate_scalar: Tensor or None; factor of the first product of each expert
        output2_scale_scalar: Tensor or None; factor of the second product of each expert
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        activation_type: int; the function between the experts' two products
        per_token_scale: Tensor or None; factor of each row, applied after the first product
        output: Tensor or None; bfloat16; written; made when absent; the result
        tune_max_num_tokens: int; GPU kernels only
        norm_topk_prob: bool; the weights of the chosen experts are divided by their sum
        routing_replay_out: Tensor [rows k] or None; int16; read and written; receives the chosen experts
        num_fused_shared_experts: int or None; experts after the routed ones, to which every token goes with weight 1
        valid_hidden_size: int or None; columns of hidden states that are no padding; absent: all
        valid_intermediate_size: int or None; activations that are no padding; absent: all
        hidden_states_scale_layout: int or None; SfLayout of hidden_states_scale; linear when absent, and nothing else

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_fp4_block_scale_routed_moe(topk_ids: Union[_T, tuple[_T, _T]], routing_bias: Optional[Array], hidden_states: Array, hidden_states_scale: Optional[Array], gemm1_weights: Array, gemm1_weights_scale: Optional[Array], gemm1_bias: Optional[Array], gemm1_alpha: Optional[Array], gemm1_beta: Optional[Array], gemm1_clamp_limit: Optional[Array], gemm2_weights: Array, gemm2_weights_scale: Optional[Array], gemm2_bias: Optional[Array], output1_scale_scalar: Optional[Array], output1_scale_gate_scalar: Optional[Array], output2_scale_scalar: Optional[Array], num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float], routing_method_type: int = 0, do_finalize: bool = True, enable_pdl: Optional[bool] = None, activation_type: int = 3, per_token_scale: Optional[Array] = None, output: Optional[Array] = None, tune_max_num_tokens: int = 8192, gemm1_lora_delta: Optional[Array] = None, valid_hidden_size: Optional[int] = None, valid_intermediate_size: Optional[int] = None, num_fused_shared_experts: Optional[int] = None, hidden_states_scale_layout: Optional[int] = None) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of 4 bits with scales of blocks; takes the routing as an argument.

    Args:
        topk_ids: Tensor or (Tensor, Tensor); the experts of each token: ids and weights, or int32 of id << 16 | bits of a bf16 weight
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        hidden_states: Tensor [t columns]; one row a token
        hidden_states_scale: Tensor or None; scales of the rows' blocks, or one a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        gemm1_weights_scale: Tensor or None; scales of blocks of the first weights
        gemm1_bias: Tensor or None; added to the first product of each expert, in the order of its stored rows
        gemm1_alpha: Tensor or None; parameter of SwiGLU for each expert: factor inside its sigmoid; of SiTU: bound of the gate
        gemm1_beta: Tensor or None; parameter of SwiGLU for each expert: added to its linear half; of SiTU: bound of it
        gemm1_clamp_limit: Tensor or None; for each expert: inputs of SwiGLU and SiTU are clamped to this, the two factors of SwigluStep
        gemm2_weights: Tensor; the experts' second weights
        gemm2_weights_scale: Tensor or None; scales of blocks of the second weights
        gemm2_bias: Tensor or None; added to the second product of each expert, in the order of its stored rows
        output1_scale_scalar: Tensor or None; output1_scale_gate_scalar times the factor of activations before their cast
        output1_scale_gate_scalar: Tensor or None; factor of the first product of each expert
        output2_scale_scalar: Tensor or None; factor of the second product of each expert
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        activation_type: int; the function between the experts' two products
        per_token_scale: Tensor or None; factor of each row, applied after the first product
        output: Tensor or None; bfloat16; written; made when absent; the result
        tune_max_num_tokens: int; GPU kernels only
        gemm1_lora_delta: Tensor or None; what adapters add to the first product of each choice of a token, [t, top_k, columns of gemm1]
        valid_hidden_size: int or None; columns of hidden states that are no padding; absent: all
        valid_intermediate_size: int or None; activations that are no padding; absent: all
        num_fused_shared_experts: int or None; experts after the routed ones, to which every token goes with weight 1
        hidden_states_scale_layout: int or None; SfLayout of hidden_states_scale; linear when absent, and nothing else

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested
        gemm1_activation_output: Tensor; bfloat16, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_fp8_block_scale_moe(routing_logits: _T, routing_bias: Optional[Array], hidden_states: Array, hidden_states_scale: Optional[Array], gemm1_weights: Array, gemm1_weights_scale: Optional[Array], gemm2_weights: Array, gemm2_weights_scale: Optional[Array], num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float], routing_method_type: int = 0, use_shuffled_weight: bool = False, weight_layout: int = 0, do_finalize: bool = True, enable_pdl: Optional[bool] = None, tune_max_num_tokens: int = 8192, fp8_quantization_type: Union[Fp8QuantizationType, int] = Fp8QuantizationType.DeepSeekFp8, num_fused_shared_experts: Optional[int] = None, activation_type: int = 3, norm_topk_prob: bool = True, routing_replay_out: Optional[Array] = None, gemm1_alpha: Optional[Array] = None, gemm1_beta: Optional[Array] = None, gemm1_clamp_limit: Optional[Array] = None, output: Optional[Array] = None, valid_hidden_size: Optional[int] = None, valid_intermediate_size: Optional[int] = None, *, gemm1_bias: Optional[Array] = None, gemm2_bias: Optional[Array] = None) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of fp8 with scales of blocks; computes the routing.

    Args:
        routing_logits: Tensor [t e]; float32|float16|bfloat16; score of each token for each expert
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        hidden_states: Tensor [t columns]; one row a token
        hidden_states_scale: Tensor or None; scales of the rows' blocks, or one a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        gemm1_weights_scale: Tensor or None; scales of blocks of the first weights
        gemm2_weights: Tensor; the experts' second weights
        gemm2_weights_scale: Tensor or None; scales of blocks of the second weights
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        use_shuffled_weight: bool; whether rows of weights are interleaved and shuffled (shuffle_matrix_a)
        weight_layout: int; order of the weights (WeightLayout)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        tune_max_num_tokens: int; GPU kernels only
        fp8_quantization_type: int; which scales fp8 weights and rows have
        num_fused_shared_experts: int or None; experts after the routed ones, to which every token goes with weight 1
        activation_type: int; the function between the experts' two products
        norm_topk_prob: bool; the weights of the chosen experts are divided by their sum
        routing_replay_out: Tensor [rows k] or None; int16; read and written; receives the chosen experts
        gemm1_alpha: Tensor or None; parameter of SwiGLU for each expert: factor inside its sigmoid; of SiTU: bound of the gate
        gemm1_beta: Tensor or None; parameter of SwiGLU for each expert: added to its linear half; of SiTU: bound of it
        gemm1_clamp_limit: Tensor or None; for each expert: inputs of SwiGLU and SiTU are clamped to this, the two factors of SwigluStep
        output: Tensor or None; bfloat16; written; made when absent; the result
        valid_hidden_size: int or None; columns of hidden states that are no padding; absent: all
        valid_intermediate_size: int or None; activations that are no padding; absent: all
        gemm1_bias: Tensor or None; added to the first product of each expert, in the order of its stored rows
        gemm2_bias: Tensor or None; added to the second product of each expert, in the order of its stored rows

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_fp8_block_scale_routed_moe(topk_ids: Union[_T, tuple[_T, _T]], routing_bias: Optional[Array], hidden_states: Array, hidden_states_scale: Optional[Array], gemm1_weights: Array, gemm1_weights_scale: Optional[Array], gemm2_weights: Array, gemm2_weights_scale: Optional[Array], num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float], routing_method_type: int = 0, use_shuffled_weight: bool = False, weight_layout: int = 0, do_finalize: bool = True, enable_pdl: Optional[bool] = None, gemm1_lora_delta: Optional[Array] = None, output: Optional[Array] = None, tune_max_num_tokens: int = 8192, fp8_quantization_type: Union[Fp8QuantizationType, int] = Fp8QuantizationType.DeepSeekFp8, activation_type: int = 3, gemm1_alpha: Optional[Array] = None, gemm1_beta: Optional[Array] = None, gemm1_clamp_limit: Optional[Array] = None, valid_hidden_size: Optional[int] = None, valid_intermediate_size: Optional[int] = None) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of fp8 with scales of blocks; takes the routing as an argument.

    Args:
        topk_ids: Tensor or (Tensor, Tensor); the experts of each token: ids and weights, or int32 of id << 16 | bits of a bf16 weight
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        hidden_states: Tensor [t columns]; one row a token
        hidden_states_scale: Tensor or None; scales of the rows' blocks, or one a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        gemm1_weights_scale: Tensor or None; scales of blocks of the first weights
        gemm2_weights: Tensor; the experts' second weights
        gemm2_weights_scale: Tensor or None; scales of blocks of the second weights
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        use_shuffled_weight: bool; whether rows of weights are interleaved and shuffled (shuffle_matrix_a)
        weight_layout: int; order of the weights (WeightLayout)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        gemm1_lora_delta: Tensor or None; what adapters add to the first product of each choice of a token, [t, top_k, columns of gemm1]
        output: Tensor or None; bfloat16; written; made when absent; the result
        tune_max_num_tokens: int; GPU kernels only
        fp8_quantization_type: int; which scales fp8 weights and rows have
        activation_type: int; the function between the experts' two products
        gemm1_alpha: Tensor or None; parameter of SwiGLU for each expert: factor inside its sigmoid; of SiTU: bound of the gate
        gemm1_beta: Tensor or None; parameter of SwiGLU for each expert: added to its linear half; of SiTU: bound of it
        gemm1_clamp_limit: Tensor or None; for each expert: inputs of SwiGLU and SiTU are clamped to this, the two factors of SwigluStep
        valid_hidden_size: int or None; columns of hidden states that are no padding; absent: all
        valid_intermediate_size: int or None; activations that are no padding; absent: all

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested
        gemm1_activation_output: Tensor; bfloat16, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_fp8_per_channel_scale_moe(routing_logits: _T, routing_bias: Optional[Array], hidden_states: Array, hidden_states_scale: Optional[Array], gemm1_weights: Array, gemm1_per_channel_weight_scale: Optional[Array], output1_scale_scalar: Optional[Array], output1_scale_gate_scalar: Optional[Array], gemm2_weights: Array, gemm2_per_channel_weight_scale: Optional[Array], output2_scale_scalar: Optional[Array], num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float], use_routing_scales_on_input: bool, routing_method_type: int = 0, do_finalize: bool = True, enable_pdl: Optional[bool] = None, tune_max_num_tokens: int = 8192, activation_type: int = 3, norm_topk_prob: bool = True) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of fp8 with a scale a row; computes the routing.

    Args:
        routing_logits: Tensor [t e]; float32|float16|bfloat16; score of each token for each expert
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        hidden_states: Tensor [t columns]; one row a token
        hidden_states_scale: Tensor or None; scales of the rows' blocks, or one a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        gemm1_per_channel_weight_scale: Tensor or None; factor of each stored row of the first weight
        output1_scale_scalar: Tensor or None; output1_scale_gate_scalar times the factor of activations before their cast
        output1_scale_gate_scalar: Tensor or None; factor of the first product of each expert
        gemm2_weights: Tensor; the experts' second weights
        gemm2_per_channel_weight_scale: Tensor or None; factor of each stored row of the second weight
        output2_scale_scalar: Tensor or None; factor of the second product of each expert
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        use_routing_scales_on_input: bool; whether the routing weight is applied before the activation
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        tune_max_num_tokens: int; GPU kernels only
        activation_type: int; the function between the experts' two products
        norm_topk_prob: bool; the weights of the chosen experts are divided by their sum

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_fp8_per_channel_scale_routed_moe(topk_ids: Union[_T, tuple[_T, _T]], routing_bias: Optional[Array], hidden_states: Array, hidden_states_scale: Optional[Array], gemm1_weights: Array, gemm1_per_channel_weight_scale: Optional[Array], output1_scale_scalar: Optional[Array], output1_scale_gate_scalar: Optional[Array], gemm2_weights: Array, gemm2_per_channel_weight_scale: Optional[Array], output2_scale_scalar: Optional[Array], num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float], use_routing_scales_on_input: bool = False, routing_method_type: int = 0, do_finalize: bool = True, enable_pdl: Optional[bool] = None, tune_max_num_tokens: int = 8192, activation_type: int = 3) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of fp8 with a scale a row; takes the routing as an argument.

    Args:
        topk_ids: Tensor or (Tensor, Tensor); the experts of each token: ids and weights, or int32 of id << 16 | bits of a bf16 weight
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        hidden_states: Tensor [t columns]; one row a token
        hidden_states_scale: Tensor or None; scales of the rows' blocks, or one a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        gemm1_per_channel_weight_scale: Tensor or None; factor of each stored row of the first weight
        output1_scale_scalar: Tensor or None; output1_scale_gate_scalar times the factor of activations before their cast
        output1_scale_gate_scalar: Tensor or None; factor of the first product of each expert
        gemm2_weights: Tensor; the experts' second weights
        gemm2_per_channel_weight_scale: Tensor or None; factor of each stored row of the second weight
        output2_scale_scalar: Tensor or None; factor of the second product of each expert
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        use_routing_scales_on_input: bool; whether the routing weight is applied before the activation
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        tune_max_num_tokens: int; GPU kernels only
        activation_type: int; the function between the experts' two products

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_fp8_per_tensor_scale_moe(routing_logits: _T, routing_bias: Optional[Array], hidden_states: Array, gemm1_weights: Array, output1_scales_scalar: Optional[Array], output1_scales_gate_scalar: Optional[Array], gemm2_weights: Array, output2_scales_scalar: Optional[Array], num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float], use_routing_scales_on_input: bool, routing_method_type: int = 0, do_finalize: bool = True, enable_pdl: Optional[bool] = None, tune_max_num_tokens: int = 8192, activation_type: int = 3, norm_topk_prob: bool = True, routing_replay_out: Optional[Array] = None, output: Optional[Array] = None, gemm1_clamp_limit: Optional[Array] = None) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of fp8 with a scale a tensor; computes the routing.

    Args:
        routing_logits: Tensor [t e]; float32|float16|bfloat16; score of each token for each expert
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        hidden_states: Tensor [t columns]; one row a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        output1_scales_scalar: Tensor or None; output1_scales_gate_scalar times the factor of activations before their cast
        output1_scales_gate_scalar: Tensor or None; factor of the first product of each expert
        gemm2_weights: Tensor; the experts' second weights
        output2_scales_scalar: Tensor or None; factor of the second product of each expert
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        use_routing_scales_on_input: bool; whether the routing weight is applied before the activation
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        tune_max_num_tokens: int; GPU kernels only
        activation_type: int; the function between the experts' two products
        norm_topk_prob: bool; the weights of the chosen experts are divided by their sum
        routing_replay_out: Tensor [rows k] or None; int16; read and written; receives the chosen experts
        output: Tensor or None; bfloat16; written; made when absent; the result
        gemm1_clamp_limit: Tensor or None; for each expert: inputs of SwiGLU and SiTU are clamped to this, the two factors of SwigluStep

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_fp8_per_tensor_scale_routed_moe(topk_ids: Union[_T, tuple[_T, _T]], routing_bias: Optional[Array], hidden_states: Array, gemm1_weights: Array, output1_scales_scalar: Optional[Array], output1_scales_gate_scalar: Optional[Array], gemm2_weights: Array, output2_scales_scalar: Optional[Array], num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float], use_routing_scales_on_input: bool, routing_method_type: int = 0, do_finalize: bool = True, enable_pdl: Optional[bool] = None, tune_max_num_tokens: int = 8192, activation_type: int = 3, routing_replay_out: Optional[Array] = None, output: Optional[Array] = None, gemm1_clamp_limit: Optional[Array] = None) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of fp8 with a scale a tensor; takes the routing as an argument.

    Args:
        topk_ids: Tensor or (Tensor, Tensor); the experts of each token: ids and weights, or int32 of id << 16 | bits of a bf16 weight
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        hidden_states: Tensor [t columns]; one row a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        output1_scales_scalar: Tensor or None; output1_scales_gate_scalar times the factor of activations before their cast
        output1_scales_gate_scalar: Tensor or None; factor of the first product of each expert
        gemm2_weights: Tensor; the experts' second weights
        output2_scales_scalar: Tensor or None; factor of the second product of each expert
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        use_routing_scales_on_input: bool; whether the routing weight is applied before the activation
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        tune_max_num_tokens: int; GPU kernels only
        activation_type: int; the function between the experts' two products
        routing_replay_out: Tensor [rows k] or None; int16; read and written; receives the chosen experts
        output: Tensor or None; bfloat16; written; made when absent; the result
        gemm1_clamp_limit: Tensor or None; for each expert: inputs of SwiGLU and SiTU are clamped to this, the two factors of SwigluStep

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_gen_routing(routing_logits: _T, routing_bias: Optional[Array], routing_method: int, top_k: int, *, num_fused_shared_experts: int = 0, n_group: int = 0, topk_group: int = 0, local_expert_offset: int = 0, local_num_experts: Optional[int] = None, routed_scaling_factor: float = 1.0, tile_tokens_dim: int = 8, norm_topk_prob: bool = True, enable_pdl: Optional[bool] = None) -> TrtllmGenRoutingResult:
    """The experts of each token, and the rows of padded tiles into which they are sorted.

    Args:
        routing_logits: Tensor [t e]; float32|float16|bfloat16; score of each token for each expert
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        routing_method: int; how experts are chosen and weighted
        top_k: int; how many of the largest are kept: a number, or one a row
        num_fused_shared_experts: int; experts after the routed ones, to which every token goes with weight 1
        n_group: int; groups that the experts are divided into; 0 or 1: one
        topk_group: int; groups that experts are chosen from; 0: all
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int or None; how many experts the weights hold
        routed_scaling_factor: float; factor of the experts' weights
        tile_tokens_dim: int; rows of a tile; each expert's rows are padded to whole tiles
        norm_topk_prob: bool; the weights of the chosen experts are divided by their sum
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        topk_ids: Tensor; int32; experts of each token, or -1: elsewhere
        topk_weights: Tensor; bfloat16; weight of each chosen expert
        total_num_padded_tokens: Tensor; int32; rows with their padding
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1
        permuted_idx_to_token_idx: Tensor; int32; the token of each row, or -1: padding
        cta_idx_xy_to_batch_idx: Tensor; int32; the local expert of each tile, or -1: none
        cta_idx_xy_to_mn_limit: Tensor; int32; end of the rows of each tile without padding
        num_non_exiting_ctas: Tensor; int32; tiles that have rows

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_mxint4_block_scale_moe(routing_logits: _T, routing_bias: Optional[Array], hidden_states: Array, gemm1_weights: Array, gemm1_weights_scale: Optional[Array], gemm1_alpha: Optional[Array], gemm1_beta: Optional[Array], gemm1_clamp_limit: Optional[Array], gemm2_weights: Array, gemm2_weights_scale: Optional[Array], num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float], routing_method_type: int = 0, do_finalize: bool = True, enable_pdl: Optional[bool] = None, output: Optional[Array] = None, tune_max_num_tokens: int = 8192, norm_topk_prob: bool = True, routing_replay_out: Optional[Array] = None, valid_hidden_size: Optional[int] = None, valid_intermediate_size: Optional[int] = None) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of int4 with scales of 32; computes the routing.

    Args:
        routing_logits: Tensor [t e]; float32|float16|bfloat16; score of each token for each expert
        routing_bias: Tensor [e] or None; float32|float16|bfloat16; added to the scores for the choice only
        hidden_states: Tensor [t columns]; one row a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        gemm1_weights_scale: Tensor or None; scales of blocks of the first weights
        gemm1_alpha: Tensor or None; parameter of SwiGLU for each expert: factor inside its sigmoid; of SiTU: bound of the gate
        gemm1_beta: Tensor or None; parameter of SwiGLU for each expert: added to its linear half; of SiTU: bound of it
        gemm1_clamp_limit: Tensor or None; for each expert: inputs of SwiGLU and SiTU are clamped to this, the two factors of SwigluStep
        gemm2_weights: Tensor; the experts' second weights
        gemm2_weights_scale: Tensor or None; scales of blocks of the second weights
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        output: Tensor or None; bfloat16; written; made when absent; the result
        tune_max_num_tokens: int; GPU kernels only
        norm_topk_prob: bool; the weights of the chosen experts are divided by their sum
        routing_replay_out: Tensor [rows k] or None; int16; read and written; receives the chosen experts
        valid_hidden_size: int or None; columns of hidden states that are no padding; absent: all
        valid_intermediate_size: int or None; activations that are no padding; absent: all

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_mxint4_block_scale_routed_moe(topk_ids: Union[_T, tuple[_T, _T]], hidden_states: Array, gemm1_weights: Array, gemm1_weights_scale: Optional[Array], gemm1_alpha: Optional[Array], gemm1_beta: Optional[Array], gemm1_clamp_limit: Optional[Array], gemm2_weights: Array, gemm2_weights_scale: Optional[Array], num_experts: int, top_k: int, n_group: Optional[int], topk_group: Optional[int], intermediate_size: int, local_expert_offset: int, local_num_experts: int, routed_scaling_factor: Optional[float], routing_method_type: int = 0, do_finalize: bool = True, enable_pdl: Optional[bool] = None, gemm1_lora_delta: Optional[Array] = None, output: Optional[Array] = None, tune_max_num_tokens: int = 8192, valid_hidden_size: Optional[int] = None, valid_intermediate_size: Optional[int] = None) -> Union[_T, tuple[_T, ...]]:
    """A mixture of experts of int4 with scales of 32; takes the routing as an argument.

    Args:
        topk_ids: Tensor or (Tensor, Tensor); the experts of each token: ids and weights, or int32 of id << 16 | bits of a bf16 weight
        hidden_states: Tensor [t columns]; one row a token
        gemm1_weights: Tensor; the experts' first weights: linear half and gate
        gemm1_weights_scale: Tensor or None; scales of blocks of the first weights
        gemm1_alpha: Tensor or None; parameter of SwiGLU for each expert: factor inside its sigmoid; of SiTU: bound of the gate
        gemm1_beta: Tensor or None; parameter of SwiGLU for each expert: added to its linear half; of SiTU: bound of it
        gemm1_clamp_limit: Tensor or None; for each expert: inputs of SwiGLU and SiTU are clamped to this, the two factors of SwigluStep
        gemm2_weights: Tensor; the experts' second weights
        gemm2_weights_scale: Tensor or None; scales of blocks of the second weights
        num_experts: int; experts of all ranks
        top_k: int; how many of the largest are kept: a number, or one a row
        n_group: int or None; groups that the experts are divided into; 0 or 1: one
        topk_group: int or None; groups that experts are chosen from; 0: all
        intermediate_size: int; rows of each half of the first product
        local_expert_offset: int; the first expert whose weights these are
        local_num_experts: int; how many experts the weights hold
        routed_scaling_factor: float or None; factor of the experts' weights
        routing_method_type: int; how experts are chosen and weighted (RoutingMethodType)
        do_finalize: bool; whether the experts' results are summed; else they are returned with the indices for it
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        gemm1_lora_delta: Tensor or None; what adapters add to the first product of each choice of a token, [t, top_k, columns of gemm1]
        output: Tensor or None; bfloat16; written; made when absent; the result
        tune_max_num_tokens: int; GPU kernels only
        valid_hidden_size: int or None; columns of hidden states that are no padding; absent: all
        valid_intermediate_size: int or None; activations that are no padding; absent: all

    Returns:
        output: Tensor; bfloat16; the result, when requested
        gemm2_output: Tensor; bfloat16, when requested
        expert_weights: Tensor; bfloat16, when requested
        expanded_idx_to_permuted_idx: Tensor; int32; row of each choice of an expert, or -1, when requested
        gemm1_activation_output: Tensor; bfloat16, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer._moe_api import ActivationConfig as ActivationConfig
from flashinfer._b12x import B12xMoEWrapper as B12xMoEWrapper
from flashinfer._moe_api import B12xNvfp4Config as B12xNvfp4Config
from flashinfer._moe_runners import B12xNvfp4Runner as B12xNvfp4Runner
from flashinfer._moe_api import B12xW4A16Config as B12xW4A16Config
from flashinfer._moe_runners import B12xW4A16Runner as B12xW4A16Runner
from flashinfer._moe_api import BackendOptions as BackendOptions
from flashinfer._moe_api import CuteDslConfig as CuteDslConfig
from flashinfer._moe_api import CutlassBf16Config as CutlassBf16Config
from flashinfer._moe_runners import CutlassBf16Runner as CutlassBf16Runner
from flashinfer._moe_api import CutlassFp8BlockConfig as CutlassFp8BlockConfig
from flashinfer._moe_runners import CutlassFp8BlockRunner as CutlassFp8BlockRunner
from flashinfer._moe_api import CutlassFp8PerTensorConfig as CutlassFp8PerTensorConfig
from flashinfer._moe_runners import CutlassFp8PerTensorRunner as CutlassFp8PerTensorRunner
from flashinfer._moe_api import CutlassMxfp8Config as CutlassMxfp8Config
from flashinfer._moe_api import CutlassMxfp8Mxfp4Config as CutlassMxfp8Mxfp4Config
from flashinfer._moe_runners import CutlassMxfp8Mxfp4Runner as CutlassMxfp8Mxfp4Runner
from flashinfer._moe_runners import CutlassMxfp8Runner as CutlassMxfp8Runner
from flashinfer._moe_api import CutlassNvfp4Config as CutlassNvfp4Config
from flashinfer._moe_runners import CutlassNvfp4Runner as CutlassNvfp4Runner
from flashinfer._moe_api import CutlassW4A16Config as CutlassW4A16Config
from flashinfer._moe_runners import CutlassW4A16Runner as CutlassW4A16Runner
from flashinfer._moe_api import CutlassW4A8Config as CutlassW4A8Config
from flashinfer._moe_api import ExecutionConfig as ExecutionConfig
from flashinfer._moe_api import ExpertConfig as ExpertConfig
from flashinfer._moe_api import GELU as GELU
from flashinfer._moe_api import GeGLU as GeGLU
from flashinfer._moe_api import GeGLUTanh as GeGLUTanh
from flashinfer._moe_api import Identity as Identity
from flashinfer._moe_api import MoEActivationPack as MoEActivationPack
from flashinfer._moe_api import MoEConfig as MoEConfig
from flashinfer._moe_api import MoEFinalizeConfig as MoEFinalizeConfig
from flashinfer._moe_layer import MoELayer as MoELayer
from flashinfer._moe_api import MoEWeightPack as MoEWeightPack
from flashinfer._four_over_six import NVFP44Over6Config as NVFP44Over6Config
from flashinfer._four_over_six import NVFP44Over6ErrMode as NVFP44Over6ErrMode
from flashinfer._moe_api import QuantConfig as QuantConfig
from flashinfer._moe_api import QuantFormat as QuantFormat
from flashinfer._moe_api import ReLU as ReLU
from flashinfer._moe_api import ReLU2 as ReLU2
from flashinfer._moe_api import RoutingConfig as RoutingConfig
from flashinfer.tllm_enums import RoutingInputMode as RoutingInputMode
from flashinfer.tllm_enums import RoutingMethodType as RoutingMethodType
from flashinfer._moe_api import SiLU as SiLU
from flashinfer._moe_api import SiTU as SiTU
from flashinfer._moe_api import SwiGLU as SwiGLU
from flashinfer._moe_api import SwiGLUStep as SwiGLUStep
from flashinfer._moe_api import TrtllmBf16Config as TrtllmBf16Config
from flashinfer._moe_runners import TrtllmBf16RoutedRunner as TrtllmBf16RoutedRunner
from flashinfer._moe_api import TrtllmFp4Config as TrtllmFp4Config
from flashinfer._moe_runners import TrtllmFp4RoutedRunner as TrtllmFp4RoutedRunner
from flashinfer._moe_api import TrtllmFp8BlockConfig as TrtllmFp8BlockConfig
from flashinfer._moe_runners import TrtllmFp8BlockRunner as TrtllmFp8BlockRunner
from flashinfer._moe_api import TrtllmFp8PerTensorConfig as TrtllmFp8PerTensorConfig
from flashinfer._moe_runners import TrtllmFp8PerTensorRunner as TrtllmFp8PerTensorRunner
from flashinfer._moe_api import TrtllmMxInt4Config as TrtllmMxInt4Config
from flashinfer._moe_runners import TrtllmMxInt4RoutedRunner as TrtllmMxInt4RoutedRunner
from flashinfer._monomoe import alloc_scratchpad as alloc_scratchpad
from flashinfer._lora import bgmv_moe_expand as bgmv_moe_expand
from flashinfer._lora import bgmv_moe_gemm1_lora_delta as bgmv_moe_gemm1_lora_delta
from flashinfer._lora import bgmv_moe_gemm2_lora_delta as bgmv_moe_gemm2_lora_delta
from flashinfer._lora import bgmv_moe_shrink as bgmv_moe_shrink
from flashinfer._lora import fill_w_ptr as fill_w_ptr
from flashinfer._monomoe import get_scratchpad_size_bytes as get_scratchpad_size_bytes
from flashinfer._availability import has_bgmv_moe as has_bgmv_moe
from flashinfer._availability import has_monomoe as has_monomoe
from flashinfer._monomoe import interleave_for_tma_wgmma_up as interleave_for_tma_wgmma_up
from flashinfer._monomoe import mono_moe as mono_moe
from flashinfer._lora import prepare_bgmv_moe as prepare_bgmv_moe
class AlphaMoERoutePlan:
    """flashinfer.fused_moe.AlphaMoERoutePlan is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class AlphaMoeNvfp4DeferredOutput:
    """flashinfer.fused_moe.AlphaMoeNvfp4DeferredOutput is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class BGMVMoEBlackwellPlan:
    """flashinfer.fused_moe.BGMVMoEBlackwellPlan is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class BGMVMoECakePlan:
    """flashinfer.fused_moe.BGMVMoECakePlan is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class BGMVMoEPortablePlan:
    """flashinfer.fused_moe.BGMVMoEPortablePlan is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CakeWarpDecodeConfig:
    """flashinfer.fused_moe.CakeWarpDecodeConfig is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CakeWarpDecodeRunner:
    """flashinfer.fused_moe.CakeWarpDecodeRunner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileBf16Config:
    """flashinfer.fused_moe.CuTileBf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileBf16Runner:
    """flashinfer.fused_moe.CuTileBf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileFp8PerTensorBf16Config:
    """flashinfer.fused_moe.CuTileFp8PerTensorBf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileFp8PerTensorBf16Runner:
    """flashinfer.fused_moe.CuTileFp8PerTensorBf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileFp8PerTensorConfig:
    """flashinfer.fused_moe.CuTileFp8PerTensorConfig is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileFp8PerTensorRunner:
    """flashinfer.fused_moe.CuTileFp8PerTensorRunner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Bf16Config:
    """flashinfer.fused_moe.CuTileMxfp4Bf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Bf16Runner:
    """flashinfer.fused_moe.CuTileMxfp4Bf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Config:
    """flashinfer.fused_moe.CuTileMxfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Mxfp8Config:
    """flashinfer.fused_moe.CuTileMxfp4Mxfp8Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Mxfp8Runner:
    """flashinfer.fused_moe.CuTileMxfp4Mxfp8Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Runner:
    """flashinfer.fused_moe.CuTileMxfp4Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp8Bf16Config:
    """flashinfer.fused_moe.CuTileMxfp8Bf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp8Bf16Runner:
    """flashinfer.fused_moe.CuTileMxfp8Bf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp8Config:
    """flashinfer.fused_moe.CuTileMxfp8Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp8Runner:
    """flashinfer.fused_moe.CuTileMxfp8Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileNvfp4Bf16Config:
    """flashinfer.fused_moe.CuTileNvfp4Bf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileNvfp4Bf16Runner:
    """flashinfer.fused_moe.CuTileNvfp4Bf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileNvfp4Config:
    """flashinfer.fused_moe.CuTileNvfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileNvfp4Runner:
    """flashinfer.fused_moe.CuTileNvfp4Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CudnnFrostBf16Config:
    """flashinfer.fused_moe.CudnnFrostBf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CudnnFrostMxfp8Config:
    """flashinfer.fused_moe.CudnnFrostMxfp8Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CudnnFrostMxfp8Mxfp4Config:
    """flashinfer.fused_moe.CudnnFrostMxfp8Mxfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CudnnFrostNvfp4Config:
    """flashinfer.fused_moe.CudnnFrostNvfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuteDslNvfp4Runner:
    """flashinfer.fused_moe.CuteDslNvfp4Runner is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuteDslRunner:
    """flashinfer.fused_moe.CuteDslRunner is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CutlassHummingConfig:
    """flashinfer.fused_moe.CutlassHummingConfig is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CutlassHummingRunner:
    """flashinfer.fused_moe.CutlassHummingRunner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CutlassW4A8Runner:
    """flashinfer.fused_moe.CutlassW4A8Runner is not available: its kernel is for INT4 weights in the order of one GPU generation; CutlassW4A16Config has MXFP4 weights, TrtllmMxInt4Config INT4 ones."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class PrimsTsConfig:
    """flashinfer.fused_moe.PrimsTsConfig is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class PrimsTsRunner:
    """flashinfer.fused_moe.PrimsTsRunner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xFp8Config:
    """flashinfer.fused_moe.SM12xFp8Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xFp8Runner:
    """flashinfer.fused_moe.SM12xFp8Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xMxfp8Mxfp4Config:
    """flashinfer.fused_moe.SM12xMxfp8Mxfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xMxfp8Mxfp4Runner:
    """flashinfer.fused_moe.SM12xMxfp8Mxfp4Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xNvfp4Bf16Config:
    """flashinfer.fused_moe.SM12xNvfp4Bf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xNvfp4Bf16Runner:
    """flashinfer.fused_moe.SM12xNvfp4Bf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xNvfp4Config:
    """flashinfer.fused_moe.SM12xNvfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xNvfp4Runner:
    """flashinfer.fused_moe.SM12xNvfp4Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class TrtllmMoERoutingMetadata:
    """flashinfer.fused_moe.TrtllmMoERoutingMetadata is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class TrtllmMoERoutingMetadataSlot:
    """flashinfer.fused_moe.TrtllmMoERoutingMetadataSlot is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def allocate_alphamoe_route_plan(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.allocate_alphamoe_route_plan is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def allocate_kimi_k3_route_plan(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.allocate_kimi_k3_route_plan is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def alphamoe_fp8_block_scale_aligned_moe(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.alphamoe_fp8_block_scale_aligned_moe is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def alphamoe_fused_router(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.alphamoe_fused_router is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def alphamoe_interleave_gated_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.alphamoe_interleave_gated_weights is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def alphamoe_nvfp4_aligned_moe(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.alphamoe_nvfp4_aligned_moe is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def alphamoe_nvfp4_finalize_deferred(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.alphamoe_nvfp4_finalize_deferred is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def alphamoe_nvfp4_routed_moe(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.alphamoe_nvfp4_routed_moe is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def alphamoe_nvfp4_routed_moe_deferred(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.alphamoe_nvfp4_routed_moe_deferred is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def cudnn_frost_grouped_gemm1_swiglu(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.cudnn_frost_grouped_gemm1_swiglu is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def cudnn_frost_grouped_gemm1_swiglu_workspace_size(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.cudnn_frost_grouped_gemm1_swiglu_workspace_size is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def interleave_moe_scales_for_sm90_mixed_gemm(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.interleave_moe_scales_for_sm90_mixed_gemm is not available: this belongs to one GPU kernel; flashinfer.fused_moe has the op for plain weights."""
    ...

def interleave_moe_weights_for_sm90_mixed_gemm(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.interleave_moe_weights_for_sm90_mixed_gemm is not available: this belongs to one GPU kernel; flashinfer.fused_moe has the op for plain weights."""
    ...

def kimi_k3_fused_router(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.kimi_k3_fused_router is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_kimi_k3_fused_router(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare_kimi_k3_fused_router is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_nvfp4_w1_data(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare_nvfp4_w1_data is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_nvfp4_w1_gate_up_data(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare_nvfp4_w1_gate_up_data is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_nvfp4_w1_gate_up_scales(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare_nvfp4_w1_gate_up_scales is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_nvfp4_w1_scales(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare_nvfp4_w1_scales is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_nvfp4_w2_data(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare_nvfp4_w2_data is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_nvfp4_w2_data_k256(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare_nvfp4_w2_data_k256 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_nvfp4_w2_scales(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare_nvfp4_w2_scales is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_nvfp4_w2_scales_k256(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare_nvfp4_w2_scales_k256 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def preprocess_moe_weights_for_sm90_mixed_gemm_humming(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.preprocess_moe_weights_for_sm90_mixed_gemm_humming is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def trtllm_moe_acquire_da_graph_leases(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.trtllm_moe_acquire_da_graph_leases is not available: it is a work list of GPU kernels that serve several layers at once."""
    ...

def trtllm_moe_allocate_routing_metadata(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.trtllm_moe_allocate_routing_metadata is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    ...

def trtllm_moe_allocate_routing_metadata_multi_tile(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.trtllm_moe_allocate_routing_metadata_multi_tile is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    ...

def trtllm_moe_da_diagnostics(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.trtllm_moe_da_diagnostics is not available: it is a work list of GPU kernels that serve several layers at once."""
    ...

def trtllm_moe_release_da_resources(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.trtllm_moe_release_da_resources is not available: it is a work list of GPU kernels that serve several layers at once."""
    ...
