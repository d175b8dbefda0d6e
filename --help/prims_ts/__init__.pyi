# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._linear import fp4_linear as fp4_linear
from flashinfer._linear import fp4_linear_swiglu as fp4_linear_swiglu
from flashinfer._linear import fp4_qkv_qknorm_rope as fp4_qkv_qknorm_rope
from flashinfer._linear import fp8_linear as fp8_linear
from flashinfer._linear import fp8_linear_swiglu as fp8_linear_swiglu
from flashinfer._linear import fp8_qkv_qknorm_rope as fp8_qkv_qknorm_rope
def configure_cute_dsl_cache_dir(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.prims_ts.configure_cute_dsl_cache_dir is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...
