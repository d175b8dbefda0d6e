# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer.gemm import mm_M1_16_K6144_N256 as mm_M1_16_K6144_N256
from flashinfer.gemm import mm_M1_16_K7168_N128 as mm_M1_16_K7168_N128
from flashinfer.gemm import mm_M1_16_K7168_N256 as mm_M1_16_K7168_N256
from flashinfer.gemm import mm_M1_16_K7168_N256_bf16 as mm_M1_16_K7168_N256_bf16
from flashinfer.gemm import mm_M1_16_K7168_N384 as mm_M1_16_K7168_N384
from flashinfer.gemm import mm_M1_16_K7168_N384_bf16 as mm_M1_16_K7168_N384_bf16
from flashinfer.gemm import mm_M1_16_K7168_N896 as mm_M1_16_K7168_N896
from flashinfer.gemm import mm_M1_16_K7168_N896_bf16 as mm_M1_16_K7168_N896_bf16
from flashinfer.gemm import tinygemm_bf16 as tinygemm_bf16