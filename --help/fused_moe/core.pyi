# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer.fused_moe import ActivationType as ActivationType
from flashinfer.fused_moe import Fp8QuantizationType as Fp8QuantizationType
from flashinfer._one_gpu import MoEInputs as MoEInputs
from flashinfer._one_gpu import MoEInputs as MoeRunnerInputs
from flashinfer.tllm_enums import RoutingInputMode as RoutingInputMode
from flashinfer.tllm_enums import RoutingMethodType as RoutingMethodType
from flashinfer._layouts import _maybe_get_cached_w3_w1_permute_indices as _maybe_get_cached_w3_w1_permute_indices
from flashinfer.fused_moe import convert_to_block_layout as convert_to_block_layout
from flashinfer.fused_moe import cutlass_fused_moe as cutlass_fused_moe
from flashinfer.fused_moe import cutlass_fused_moe_workspace_size as cutlass_fused_moe_workspace_size
from flashinfer._layouts import get_reorder_rows_for_gated_act_gemm_row_indices as get_reorder_rows_for_gated_act_gemm_row_indices
from flashinfer._layouts import get_w2_permute_indices_with_cache as get_w2_permute_indices_with_cache
from flashinfer.fused_moe import reorder_rows_for_gated_act_gemm as reorder_rows_for_gated_act_gemm
from flashinfer.fused_moe import trtllm_bf16_moe as trtllm_bf16_moe
from flashinfer.fused_moe import trtllm_bf16_routed_moe as trtllm_bf16_routed_moe
from flashinfer.fused_moe import trtllm_fp4_block_scale_moe as trtllm_fp4_block_scale_moe
from flashinfer.fused_moe import trtllm_fp4_block_scale_routed_moe as trtllm_fp4_block_scale_routed_moe
from flashinfer.fused_moe import trtllm_fp8_block_scale_moe as trtllm_fp8_block_scale_moe
from flashinfer.fused_moe import trtllm_fp8_block_scale_routed_moe as trtllm_fp8_block_scale_routed_moe
from flashinfer.fused_moe import trtllm_fp8_per_channel_scale_moe as trtllm_fp8_per_channel_scale_moe
from flashinfer.fused_moe import trtllm_fp8_per_channel_scale_routed_moe as trtllm_fp8_per_channel_scale_routed_moe
from flashinfer.fused_moe import trtllm_fp8_per_tensor_scale_moe as trtllm_fp8_per_tensor_scale_moe
from flashinfer.fused_moe import trtllm_fp8_per_tensor_scale_routed_moe as trtllm_fp8_per_tensor_scale_routed_moe
from flashinfer.fused_moe import trtllm_mxint4_block_scale_moe as trtllm_mxint4_block_scale_moe
from flashinfer.fused_moe import trtllm_mxint4_block_scale_routed_moe as trtllm_mxint4_block_scale_routed_moe
class TRTLLMCanonicalRouting:
    """flashinfer.fused_moe.core.TRTLLMCanonicalRouting is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class TrtllmMoERoutingMetadata:
    """flashinfer.fused_moe.TrtllmMoERoutingMetadata is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class TrtllmMoERoutingMetadataSlot:
    """flashinfer.fused_moe.TrtllmMoERoutingMetadataSlot is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def allocate_trtllm_moe_canonical_routing(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.core.allocate_trtllm_moe_canonical_routing is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    ...

def canonicalize_trtllm_moe_routing_(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.core.canonicalize_trtllm_moe_routing_ is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    ...

def is_trtllm_moe_supported(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.core.is_trtllm_moe_supported is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    ...

def populate_trtllm_moe_routing_metadata_(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.core.populate_trtllm_moe_routing_metadata_ is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    ...

def trtllm_moe_allocate_routing_metadata(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.trtllm_moe_allocate_routing_metadata is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    ...

def trtllm_moe_allocate_routing_metadata_multi_tile(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.trtllm_moe_allocate_routing_metadata_multi_tile is not available: it is the work list of GPU kernels; the MoE ops here take experts with weights, or logits."""
    ...
