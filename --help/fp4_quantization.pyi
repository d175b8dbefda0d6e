# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer.quantization import nvfp4_block_scale_interleave as block_scale_interleave
from flashinfer.quantization import e2m1_and_ufp8sf_scale_to_float as e2m1_and_ufp8sf_scale_to_float
from flashinfer.quantization import fp4_quantize as fp4_quantize
from flashinfer.quantization import mxfp4_dequantize as mxfp4_dequantize
from flashinfer.quantization import mxfp4_dequantize_host as mxfp4_dequantize_host
from flashinfer.quantization import mxfp4_quantize as mxfp4_quantize
from flashinfer.quantization import nvfp4_batched_quantize as nvfp4_batched_quantize
from flashinfer.quantization import nvfp4_block_scale_interleave as nvfp4_block_scale_interleave
from flashinfer.quantization import nvfp4_kv_dequantize as nvfp4_kv_dequantize
from flashinfer.quantization import nvfp4_kv_dequantize_paged as nvfp4_kv_dequantize_paged
from flashinfer.quantization import nvfp4_kv_quantize as nvfp4_kv_quantize
from flashinfer.quantization import nvfp4_quantize as nvfp4_quantize
from flashinfer.quantization import nvfp4_quantize_paged_kv_cache as nvfp4_quantize_paged_kv_cache
from flashinfer.quantization import scaled_fp4_grouped_quantize as scaled_fp4_grouped_quantize
from flashinfer.quantization import shuffle_matrix_a as shuffle_matrix_a
from flashinfer.quantization import shuffle_matrix_sf_a as shuffle_matrix_sf_a
from flashinfer.quantization import silu_and_mul_nvfp4_quantize as silu_and_mul_nvfp4_quantize
NVFP4_QUANT_ENV_VARS: Any

def gen_fp4_quantization_module(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fp4_quantization.gen_fp4_quantization_module is not available: the library has no modules of its own for single kernels; flashinfer.jit describes what is compiled."""
    ...
