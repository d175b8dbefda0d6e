# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

class SfLayout(IntEnum):
    layout_128x4 = 0
    layout_8x4 = 1
    layout_linear = 2

class AllReduceFusionWorkspace:
    """Connects the ranks of a group and shares the memory of their all-reduces."""
    def __init__(self, group: str, rank: int, world_size: int, max_token_num: int, hidden_dim: int, dtype: Union[torch.dtype, str], backend: Union[Literal['auto', 'shm', 'tcp', 'mpi'], str] = 'auto', device: str = 'cpu') -> None:
        """Connects the ranks of a group and shares the memory of their all-reduces.

        Args:
            group: str; name of the ranks' group, the same on all of them
            rank: int; of this process in the group
            world_size: int; ranks of the group
            max_token_num: int; rows of the largest input
            hidden_dim: int; columns of the largest input
            dtype: dtype; element type of the inputs
            backend: str; one of auto, shm, tcp, mpi; the implementation by name; 'auto' lets the library choose
            device: str; of the calls' tensors: 'cpu', or this rank's GPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def destroy(self) -> None:
        """Gives the workspace's memory back.

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

def all_gather(input: _T, workspace, columns: list[int], out: Optional[Array] = None) -> _T:
    """out[t] = rows t of all ranks' inputs, side by side.

    Args:
        input: Tensor [t d]; float32|float16|bfloat16; rows to work on
        workspace: self; memory that the ranks share
        columns: list of int; of each rank's input, by rank; their sum is the result's columns
        out: Tensor or None; written; made when absent; the result

    Returns:
        out: Tensor; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def allreduce_fusion(input: _T, workspace, pattern: int, launch_with_pdl: bool = False, trigger_completion_at_end: bool = True, output: Optional[Array] = None, residual_out: Optional[Array] = None, norm_out: Optional[Array] = None, quant_out: Optional[Array] = None, scale_out: Optional[Array] = None, residual_in: Optional[Array] = None, rms_gamma: Optional[Array] = None, rms_eps: float = 1e-06, scale_factor: Optional[Union[float, Array]] = None, layout_code: Optional[int] = None, use_oneshot: Optional[bool] = None, fp32_acc: bool = False, moe_reduction_device_num_experts: Optional[int] = None, moe_reduction_scale_input: Optional[Array] = None, moe_reduction_active_experts_token_input: Optional[Array] = None, moe_reduction_token_input: Optional[Array] = None, expanded_idx_to_permuted_idx: Optional[Array] = None, expert_scale_factor: Optional[Array] = None, shared_expert_output: Optional[Array] = None, block_quant_group_size: Optional[int] = None, weight_bias: float = 0.0, *, moe_finalize_backend: str = 'trtllm') -> Union[_T, tuple[_T, ...]]:
    """The sum of all ranks' inputs, and what follows it in a layer: residual, RMSNorm, quantisation (pattern).

    Args:
        input: Tensor [m d]; float32|float16|bfloat16; rows to work on
        workspace: self; memory that the ranks share
        pattern: int; which results follow the sum
        launch_with_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU
        trigger_completion_at_end: bool; of a GPU kernel; changes no result
        output: Tensor [t d] or None; dtype of input; written; made when absent; may be input itself; the result
        residual_out: Tensor [t d] or None; dtype of input; written; made when absent; may be residual_in itself; sum + residual_in; not stored when absent
        norm_out: Tensor [t d] or None; dtype of input; written; made when absent; may be input itself; memory for the normalised rows
        quant_out: Tensor or None; written; made when absent; memory for the codes: e4m3 [tokens, hidden], or two e2m1 a byte
        scale_out: Tensor or None; written; made when absent; memory for the scales, in the form of the pattern
        residual_in: Tensor [t d] or None; dtype of input; added to the sum; the same on every rank
        rms_gamma: Tensor [d] or None; float32|float16|bfloat16; weight of the RMSNorm
        rms_eps: float; added to the mean of the squares
        scale_factor: number or Tensor or None; of FP8: what codes are multiplied by; of FP4: the global scale
        layout_code: int or None; of FP4 scales: 0 128x4, 1 8x4, 2 linear
        use_oneshot: bool or None; True: each rank sums all rows; False: its part of them; absent: by size
        fp32_acc: bool; the sum is rounded once, not after each rank
        moe_reduction_device_num_experts: int or None; of pattern 6: experts of this rank, E
        moe_reduction_scale_input: Tensor or None; float32|float16|bfloat16; of pattern 6: [E, tokens], what experts' rows are multiplied by
        moe_reduction_active_experts_token_input: Tensor or None; float32|float16|bfloat16; of pattern 6: [E * tokens, hidden], one expert's rows after another's
        moe_reduction_token_input: Tensor or None; float32|float16|bfloat16; of pattern 6: [tokens, hidden], added behind the experts' rows
        expanded_idx_to_permuted_idx: Tensor or None; int32; row of each choice of an expert, or -1
        expert_scale_factor: Tensor or None; float32|float16|bfloat16; of pattern 7: [tokens, k], what the rows are multiplied by; absent: 1
        shared_expert_output: Tensor or None; float32|float16|bfloat16; of pattern 7: [tokens, hidden], added behind the experts' rows
        block_quant_group_size: int or None; columns that share a scale
        weight_bias: float; added to rms_gamma (1: Gemma)
        moe_finalize_backend: str; of pattern 7; changes no result

    Returns:
        output: Tensor [t d]; dtype of input; may be input itself; the result, when requested
        residual_out: Tensor [t d]; dtype of input; may be residual_in itself; sum + residual_in; not stored when absent, when requested
        norm_out: Tensor [t d]; dtype of input; may be input itself; memory for the normalised rows, when requested
        quant_out: Tensor; memory for the codes: e4m3 [tokens, hidden], or two e2m1 a byte, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def decode_cp_a2a_alltoall_into(partial_o: _T, softmax_stats: Array, workspace: Array, cp_rank: int, cp_size: int, enable_pdl: Optional[bool] = None, out_o: Optional[Array] = None, out_stats: Optional[Array] = None) -> tuple[_T, _T]:
    """Exchanges partial attention outputs and their statistics: out[..., p, :] is rank p's slice for this rank.

    Args:
        partial_o: Tensor [... c d]; float16|bfloat16; attention over this rank's keys; slice [..., q, :] is for rank q
        softmax_stats: Tensor [... c s]; float32; statistics that go with partial_o
        workspace: Tensor; int64; workspace; memory that the ranks share
        cp_rank: int; of this process among those that share a context
        cp_size: int; ranks that share a context
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        out_o: Tensor [... c d] or None; dtype of partial_o; written; made when absent; memory for the received partial_o
        out_stats: Tensor [... c s] or None; float32; written; made when absent; memory for the received softmax_stats

    Returns:
        out_o: Tensor [... c d]; dtype of partial_o; memory for the received partial_o
        out_stats: Tensor [... c s]; float32; memory for the received softmax_stats

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def decode_cp_a2a_lse_reduce(partial_o: _T, partial_lse: Array, workspace: Array, cp_rank: int, cp_size: int, lse_mode: Union[Literal['base2', 'basee'], str] = 'base2') -> _T:
    """Exchanges partial attention outputs and adds them, weighted by their LSE.

    Args:
        partial_o: Tensor [... c d]; float16|bfloat16; attention over this rank's keys; slice [..., q, :] is for rank q
        partial_lse: Tensor [... c]; float32; log-sum-exp of partial_o's scores; NaN and +inf count as -inf
        workspace: Tensor; uint8; workspace; memory that the ranks share
        cp_rank: int; of this process among those that share a context
        cp_size: int; ranks that share a context
        lse_mode: str; one of base2, basee; base of partial_lse's logarithm: 2 or e

    Returns:
        out: Tensor [... d]; dtype of partial_o; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mixed_comm_into(x_in: _T, workspace, op: int, local_tp_size: int = 1, local_dp_size: int = 1, inter_tp_size: int = 1, inter_dp_size: int = 1, x_out: Optional[Array] = None) -> _T:
    """Sums over the ranks of tensor parallelism, gathered or scattered over those of data parallelism (op).

    Args:
        x_in: Tensor; float16|bfloat16; the same shape on every rank
        workspace: self; memory that the ranks share
        op: int; 0 all-reduce, 1 all-gather, 2 reduce-scatter, 3 all-reduce then all-gather, 4 reduce-scatter then all-reduce
        local_tp_size: int; tensor parallelism inside a node
        local_dp_size: int; data parallelism inside a node
        inter_tp_size: int; tensor parallelism between nodes
        inter_dp_size: int; data parallelism between nodes
        x_out: Tensor or None; dtype of x_in; written; made when absent; memory for the result

    Returns:
        x_out: Tensor; dtype of x_in; memory for the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def moe_a2a_combine(payload: _T, local_num_tokens: int, workspace: Array, metainfo: Array, runtime_max_tokens_per_rank: int, ep_rank: int, ep_size: int, top_k: int, combine_payload_offset: int, payload_in_workspace: bool = False, output_dtype: Optional[Union[torch.dtype, str]] = None, output_scales: Optional[Array] = None, output_scalar_scale: float = 1.0, sf_layout: Union[SfLayout, int] = SfLayout.layout_linear, output: Optional[Array] = None, *, use_low_precision: bool = False, enable_pdl: Optional[bool] = None, enable_rank_mask: bool = False, active_rank_mask: Optional[Array] = None, backend: str = 'trtllm') -> _T:
    """The sum of what the ranks of a token's experts computed, in the order of its experts.

    Args:
        payload: Tensor [n m h]; float32|float16|bfloat16; what this rank computed for each received row
        local_num_tokens: int; tokens that this rank dispatched
        workspace: Tensor; uint8; workspace; memory that the ranks share
        metainfo: Tensor [6]; int64; what moe_a2a_initialize returned for the workspace
        runtime_max_tokens_per_rank: int; rows of a slice of what is received, at most max_num_tokens
        ep_rank: int; of this process among those that share the experts
        ep_size: int; ranks that share the experts
        top_k: int; how many of the largest are kept: a number, or one a row
        combine_payload_offset: int; byte of a rank's part of the workspace where combine's payload begins, as dispatch returned it
        payload_in_workspace: bool; payload is the workspace's memory at combine_payload_offset
        output_dtype: dtype or None; absent: payload's; float8_e4m3fn: MXFP8; uint8: MXFP4 or NVFP4, as output_scales says
        output_scales: Tensor or None; float8_e4m3fn|uint8; read and written; memory for the scales of blocks: uint8 (MX, 32 elements) or float8_e4m3fn (NVFP4, 16 elements)
        output_scalar_scale: float; of NVFP4: the global scale
        sf_layout: int; of output_scales
        output: Tensor or None; written; made when absent; the result
        use_low_precision: bool; bfloat16 rows are sent as float8_e4m3fn
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        enable_rank_mask: bool; whether there may be an active_rank_mask
        active_rank_mask: Tensor or None; uint64; bit r: rank r takes part; nothing is sent to, and no one waits for, the others
        backend: str; the implementation by name; 'auto' lets the library choose

    Returns:
        output: Tensor; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def moe_a2a_dispatch_into(token_selected_experts: _T, input_payloads: list[Array], workspace: Array, metainfo: Array, runtime_max_tokens_per_rank: int, ep_rank: int, ep_size: int, top_k: int, num_experts: int, enable_pdl: Optional[bool] = None, eplb_local_stats: Optional[Array] = None, enable_rank_mask: bool = False, active_rank_mask: Optional[Array] = None, *, backend: str = 'trtllm', received_0: Optional[Array] = None, received_1: Optional[Array] = None, received_2: Optional[Array] = None, received_3: Optional[Array] = None, received_4: Optional[Array] = None, received_5: Optional[Array] = None, eplb_gathered_stats: Optional[Array] = None) -> Union[_T, tuple[_T, ...]]:
    """Sends each token's rows to the ranks of its experts, into the workspace; moe_a2a_dispatch makes the views.

    Args:
        token_selected_experts: Tensor [t k]; int32; ids of each token's experts; negative: none
        input_payloads: list of Tensors; 1 to 6 tensors [tokens, columns]: what each token sends
        workspace: Tensor; uint8; workspace; memory that the ranks share
        metainfo: Tensor [6]; int64; what moe_a2a_initialize returned for the workspace
        runtime_max_tokens_per_rank: int; rows of a slice of what is received, at most max_num_tokens
        ep_rank: int; of this process among those that share the experts
        ep_size: int; ranks that share the experts
        top_k: int; how many of the largest are kept: a number, or one a row
        num_experts: int; of all ranks
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        eplb_local_stats: Tensor [e] or None; int32; counts of this rank that every rank gets
        enable_rank_mask: bool; whether there may be an active_rank_mask
        active_rank_mask: Tensor or None; uint64; bit r: rank r takes part; nothing is sent to, and no one waits for, the others
        backend: str; the implementation by name; 'auto' lets the library choose
        received_0: Tensor or None; read and written; first payload as received, in the workspace
        received_1: Tensor or None; read and written; second payload as received, in the workspace
        received_2: Tensor or None; read and written; third payload as received, in the workspace
        received_3: Tensor or None; read and written; fourth payload as received, in the workspace
        received_4: Tensor or None; read and written; fifth payload as received, in the workspace
        received_5: Tensor or None; read and written; sixth payload as received, in the workspace
        eplb_gathered_stats: Tensor or None; int32; read and written; eplb_local_stats of all ranks, in the workspace

    Returns:
        received_0: Tensor; first payload as received, in the workspace, when requested
        received_1: Tensor; second payload as received, in the workspace, when requested
        received_2: Tensor; third payload as received, in the workspace, when requested
        received_3: Tensor; fourth payload as received, in the workspace, when requested
        received_4: Tensor; fifth payload as received, in the workspace, when requested
        received_5: Tensor; sixth payload as received, in the workspace, when requested
        eplb_gathered_stats: Tensor; int32; eplb_local_stats of all ranks, in the workspace, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def moe_a2a_initialize(workspace: _T, ep_rank: int, ep_size: int, max_num_tokens: int, eplb_stats_num_experts: int = 0, *, backend: str = 'trtllm') -> _T:
    """Prepares this rank's part of the workspace of an expert all-to-all.

    Args:
        workspace: Tensor; uint8; workspace; memory that the ranks share
        ep_rank: int; of this process among those that share the experts
        ep_size: int; ranks that share the experts
        max_num_tokens: int; tokens of a rank in the largest dispatch
        eplb_stats_num_experts: int; length of eplb_local_stats; 0: there are none
        backend: str; the implementation by name; 'auto' lets the library choose

    Returns:
        metainfo: Tensor; int64; what moe_a2a_initialize returned for the workspace

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def moe_a2a_sanitize_expert_ids(expert_ids: Array, workspace: Array, metainfo: Array, ep_rank: int, invalid_expert_id: int, enable_pdl: Optional[bool] = None, *, backend: str = 'trtllm') -> None:
    """Writes invalid_expert_id where the received rows of expert_ids hold no token.

    Args:
        expert_ids: Tensor [n m k]; int32; read and written; received ids of experts
        workspace: Tensor; uint8; workspace; memory that the ranks share
        metainfo: Tensor [6]; int64; what moe_a2a_initialize returned for the workspace
        ep_rank: int; of this process among those that share the experts
        invalid_expert_id: int; written where there is no token
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        backend: str; the implementation by name; 'auto' lets the library choose

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def quantized_all_reduce_into(inp: _T, workspace, scale_group: int = 256, output: Optional[Array] = None) -> _T:
    """The sum of all ranks' inputs, which are sent as e4m3 codes with a scale for each group of elements.

    Args:
        inp: Tensor; bfloat16; what is summed over the ranks
        workspace: self; memory that the ranks share
        scale_group: int; elements, one behind another, that share a scale
        output: Tensor or None; dtype of inp; written; made when absent; may be inp itself; the result

    Returns:
        output: Tensor; dtype of inp; may be inp itself; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def reduce_scatter(input: _T, workspace, fp32_acc: bool = False, out: Optional[Array] = None) -> _T:
    """Each rank's block of the sum of all ranks' inputs.

    Args:
        input: Tensor; float32|float16|bfloat16; rows to work on
        workspace: self; memory that the ranks share
        fp32_acc: bool; the sum is rounded once, not after each rank
        out: Tensor or None; dtype of input; written; made when absent; the result

    Returns:
        out: Tensor; dtype of input; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def ulysses_gather_heads(x: _T, workspace, out: Optional[Array] = None) -> _T:
    """Exchanges positions for heads: each rank gets all heads for its part of the sequence.

    Args:
        x: Tensor [b s h d]; float32|float16|bfloat16; elements to work on
        workspace: self; memory that the ranks share
        out: Tensor or None; dtype of x; written; made when absent; the result

    Returns:
        out: Tensor; dtype of x; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def ulysses_scatter_heads(x: _T, workspace, out: Optional[Array] = None) -> _T:
    """Exchanges heads for positions: each rank gets the whole sequence for its part of the heads.

    Args:
        x: Tensor [b s h d]; float32|float16|bfloat16; elements to work on
        workspace: self; memory that the ranks share
        out: Tensor or None; dtype of x; written; made when absent; the result

    Returns:
        out: Tensor; dtype of x; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer._trtllm_all_reduce import AllReduceFusionOp as AllReduceFusionOp
from flashinfer._comm import AllReduceFusionPattern as AllReduceFusionPattern
from flashinfer.comm import AllReduceFusionWorkspace as AllReduceFusionWorkspace
from flashinfer._trtllm_all_reduce import AllReduceStrategyConfig as AllReduceStrategyConfig
from flashinfer._trtllm_all_reduce import AllReduceStrategyType as AllReduceStrategyType
from flashinfer._comm import MNNVLAllReduceFusionWorkspace as MNNVLAllReduceFusionWorkspace
from flashinfer._mapping import Mapping as Mapping
from flashinfer._mixed_comm import MixedCommHandler as MixedCommHandler
from flashinfer._moe_alltoall import MoeAlltoAll as MoeAlltoAll
from flashinfer._comm import QuantizationSFLayout as QuantizationSFLayout
from flashinfer._comm_backends import ShmBackend as ShmBackend
from flashinfer._comm import TRTLLMAllReduceFusionWorkspace as TRTLLMAllReduceFusionWorkspace
from flashinfer._ulysses_topology import UlyssesBackendDecision as UlyssesBackendDecision
from flashinfer._ulysses_topology import UlyssesBackendError as UlyssesBackendError
from flashinfer._ulysses import UlyssesCommunicator as UlyssesCommunicator
from flashinfer._ulysses_topology import UlyssesRankTopology as UlyssesRankTopology
from flashinfer._collectives import all_gather_matmul as all_gather_matmul
from flashinfer.comm import allreduce_fusion as allreduce_fusion
from flashinfer._comm import compute_fp4_swizzled_layout_sf_size as compute_fp4_swizzled_layout_sf_size
from flashinfer._comm import create_allreduce_fusion_workspace as create_allreduce_fusion_workspace
from flashinfer._comm_memory import create_shared_buffer as create_shared_buffer
from flashinfer._ulysses_topology import decide_ulysses_backend as decide_ulysses_backend
from flashinfer._context_parallel import decode_cp_a2a_allocate_mnnvl_workspace as decode_cp_a2a_allocate_mnnvl_workspace
from flashinfer._context_parallel import decode_cp_a2a_alltoall as decode_cp_a2a_alltoall
from flashinfer._context_parallel import decode_cp_a2a_init_workspace as decode_cp_a2a_init_workspace
from flashinfer.comm import decode_cp_a2a_lse_reduce as decode_cp_a2a_lse_reduce
from flashinfer._context_parallel import decode_cp_a2a_lse_reduce_create_workspace as decode_cp_a2a_lse_reduce_create_workspace
from flashinfer._context_parallel import decode_cp_a2a_lse_reduce_workspace_size as decode_cp_a2a_lse_reduce_workspace_size
from flashinfer._context_parallel import decode_cp_a2a_workspace_size as decode_cp_a2a_workspace_size
from flashinfer._ulysses import dispose_ulysses_a2a as dispose_ulysses_a2a
from flashinfer._comm_memory import free_shared_buffer as free_shared_buffer
from flashinfer._ulysses import init_ulysses_a2a as init_ulysses_a2a
from flashinfer._moe_alltoall import moe_a2a_active_rank_mask as moe_a2a_active_rank_mask
from flashinfer.comm import moe_a2a_combine as moe_a2a_combine
from flashinfer._moe_alltoall import moe_a2a_dispatch as moe_a2a_dispatch
from flashinfer._moe_alltoall import moe_a2a_get_workspace_size_per_rank as moe_a2a_get_workspace_size_per_rank
from flashinfer.comm import moe_a2a_initialize as moe_a2a_initialize
from flashinfer.comm import moe_a2a_sanitize_expert_ids as moe_a2a_sanitize_expert_ids
from flashinfer._moe_alltoall import moe_a2a_wrap_payload_tensor_in_workspace as moe_a2a_wrap_payload_tensor_in_workspace
from flashinfer._comm_memory import pack_strided_memory as pack_strided_memory
from flashinfer._ulysses_topology import probe_ulysses_rank_topology as probe_ulysses_rank_topology
from flashinfer._collectives import quantized_all_reduce as quantized_all_reduce
from flashinfer._ulysses_topology import resolve_ulysses_backend as resolve_ulysses_backend
from flashinfer._mixed_comm import run_mixed_comm as run_mixed_comm
from flashinfer._trtllm_all_reduce import trtllm_allreduce_fusion as trtllm_allreduce_fusion
from flashinfer._trtllm_all_reduce import trtllm_create_ipc_workspace_for_all_reduce_fusion as trtllm_create_ipc_workspace_for_all_reduce_fusion
from flashinfer._trtllm_all_reduce import trtllm_destroy_ipc_workspace_for_all_reduce as trtllm_destroy_ipc_workspace_for_all_reduce
from flashinfer._trtllm_all_reduce import trtllm_destroy_ipc_workspace_for_all_reduce_fusion as trtllm_destroy_ipc_workspace_for_all_reduce_fusion
from flashinfer._trtllm_all_reduce import trtllm_lamport_initialize as trtllm_lamport_initialize
from flashinfer._trtllm_all_reduce import trtllm_lamport_initialize_all as trtllm_lamport_initialize_all
from flashinfer._trtllm_all_reduce import trtllm_moe_allreduce_fusion as trtllm_moe_allreduce_fusion
from flashinfer._trtllm_all_reduce import trtllm_moe_finalize_allreduce_fusion as trtllm_moe_finalize_allreduce_fusion
from flashinfer._ulysses import ulysses_a2a as ulysses_a2a
from flashinfer._vllm_all_reduce import vllm_all_reduce as vllm_all_reduce
from flashinfer._vllm_all_reduce import vllm_dispose as vllm_dispose
from flashinfer._vllm_all_reduce import vllm_get_graph_buffer_ipc_meta as vllm_get_graph_buffer_ipc_meta
from flashinfer._vllm_all_reduce import vllm_init_custom_ar as vllm_init_custom_ar
from flashinfer._vllm_all_reduce import vllm_meta_size as vllm_meta_size
from flashinfer._vllm_all_reduce import vllm_register_buffer as vllm_register_buffer
from flashinfer._vllm_all_reduce import vllm_register_graph_buffers as vllm_register_graph_buffers
class CudaRTLibrary:
    """flashinfer.comm.CudaRTLibrary is not available: there is no CUDA memory to share between processes; create_shared_buffer shares memory of the CPU."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def trtllm_create_ipc_workspace_for_all_reduce(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.comm.trtllm_create_ipc_workspace_for_all_reduce is not available: FlashInfer has removed it; allreduce_fusion has the sums."""
    ...

def trtllm_custom_all_reduce(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.comm.trtllm_custom_all_reduce is not available: FlashInfer has removed it; allreduce_fusion has the sums."""
    ...
