# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._b12x import prepare_b12x_nvfp4_weights as prepare_b12x_nvfp4_weights
from flashinfer._b12x import prepare_b12x_w4a16_weights as prepare_b12x_w4a16_weights
from flashinfer._moe_prepare import prepare_cutlass_bf16_weights as prepare_cutlass_bf16_weights
from flashinfer._moe_prepare_cutlass import prepare_cutlass_fp8_block_weights as prepare_cutlass_fp8_block_weights
from flashinfer._moe_prepare_cutlass import prepare_cutlass_fp8_per_tensor_weights as prepare_cutlass_fp8_per_tensor_weights
from flashinfer._moe_prepare_cutlass import prepare_cutlass_mxfp8_activations as prepare_cutlass_mxfp8_activations
from flashinfer._moe_prepare_cutlass import prepare_cutlass_mxfp8_mxfp4_weights as prepare_cutlass_mxfp8_mxfp4_weights
from flashinfer._moe_prepare_cutlass import prepare_cutlass_mxfp8_weights as prepare_cutlass_mxfp8_weights
from flashinfer._moe_prepare_cutlass import prepare_cutlass_nvfp4_weights as prepare_cutlass_nvfp4_weights
from flashinfer._moe_prepare_cutlass import prepare_cutlass_w4a16_weights as prepare_cutlass_w4a16_weights
from flashinfer._moe_prepare import prepare_trtllm_bf16_weights as prepare_trtllm_bf16_weights
from flashinfer._moe_prepare import prepare_trtllm_fp4_activations as prepare_trtllm_fp4_activations
from flashinfer._moe_prepare import prepare_trtllm_fp4_weights as prepare_trtllm_fp4_weights
from flashinfer._moe_prepare import prepare_trtllm_fp8_block_activations as prepare_trtllm_fp8_block_activations
from flashinfer._moe_prepare import prepare_trtllm_fp8_block_weights as prepare_trtllm_fp8_block_weights
from flashinfer._moe_prepare import prepare_trtllm_fp8_per_tensor_activations as prepare_trtllm_fp8_per_tensor_activations
from flashinfer._moe_prepare import prepare_trtllm_fp8_per_tensor_weights as prepare_trtllm_fp8_per_tensor_weights
from flashinfer._moe_prepare import prepare_trtllm_mxint4_weights as prepare_trtllm_mxint4_weights
def interleave_moe_scales_for_sm90_mixed_gemm(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.interleave_moe_scales_for_sm90_mixed_gemm is not available: this belongs to one GPU kernel; flashinfer.fused_moe has the op for plain weights."""
    ...

def interleave_moe_weights_for_sm90_mixed_gemm(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.interleave_moe_weights_for_sm90_mixed_gemm is not available: this belongs to one GPU kernel; flashinfer.fused_moe has the op for plain weights."""
    ...

def prepare_cute_dsl_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare.prepare_cute_dsl_weights is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...

def prepare_cutile_bf16_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare.prepare_cutile_bf16_weights is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_cutile_fp8_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare.prepare_cutile_fp8_weights is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_cutile_mxfp4_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare.prepare_cutile_mxfp4_weights is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_cutile_nvfp4_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare.prepare_cutile_nvfp4_weights is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_cutlass_humming_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare.prepare_cutlass_humming_weights is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_cutlass_w4a8_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.prepare.prepare_cutlass_w4a8_weights is not available: its kernel is for INT4 weights in the order of one GPU generation; CutlassW4A16Config has MXFP4 weights, TrtllmMxInt4Config INT4 ones."""
    ...

def preprocess_moe_weights_for_sm90_mixed_gemm_humming(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fused_moe.preprocess_moe_weights_for_sm90_mixed_gemm_humming is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
