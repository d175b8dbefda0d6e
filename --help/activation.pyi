# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def gelu_and_mul(input: _T, out: Optional[Array] = None, enable_pdl: Optional[bool] = None) -> _T:
    """gelu(input[..., :d]) * input[..., d:], gelu(x) = x / 2 * (1 + erf(x / sqrt(2))).

    Args:
        input: Tensor [... 2*d]; float32|float16|bfloat16; rows to work on
        out: Tensor [... d] or None; dtype of input; written; made when absent; the result
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        out: Tensor [... d]; dtype of input; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gelu_tanh_and_mul(input: _T, out: Optional[Array] = None, enable_pdl: Optional[bool] = None) -> _T:
    """gelu(input[..., :d]) * input[..., d:], gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).

    Args:
        input: Tensor [... 2*d]; float32|float16|bfloat16; rows to work on
        out: Tensor [... d] or None; dtype of input; written; made when absent; the result
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        out: Tensor [... d]; dtype of input; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def silu_and_mul(input: _T, out: Optional[Array] = None, enable_pdl: Optional[bool] = None) -> _T:
    """silu(input[..., :d]) * input[..., d:], silu(x) = x / (1 + exp(-x)).

    Args:
        input: Tensor [... 2*d]; float32|float16|bfloat16; rows to work on
        out: Tensor [... d] or None; dtype of input; written; made when absent; the result
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        out: Tensor [... d]; dtype of input; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def silu_and_mul_scaled_nvfp4_experts_quantize(a: _T, mask: Array, a_global_sf: Array, nvfp4_4over6: Any = ...) -> tuple[_T, _T]:
    """silu_and_mul of the first mask[b] rows of each expert, rounded, as NVFP4.

    Args:
        a: Tensor [b m k]; float16|bfloat16; left factor
        mask: Tensor [b]; int32; rows of each group that are computed
        a_global_sf: Tensor; float32; encode scale: one for all, or one a row or batch
        nvfp4_4over6: object; the recipe by which each block takes the better of two scales; None: one scale

    Returns:
        x_q: Tensor; uint8
        sf: Tensor; float8_e4m3fn

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer._four_over_six import resolve_nvfp4_4over6 as resolve_nvfp4_4over6