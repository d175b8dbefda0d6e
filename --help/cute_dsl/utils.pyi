# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._one_gpu import convert_sf_from_mma_layout as convert_sf_from_mma_layout
from flashinfer._one_gpu import convert_sf_to_mma_layout as convert_sf_to_mma_layout
from flashinfer._availability import is_cute_dsl_arch_supported as is_cute_dsl_arch_supported
from flashinfer._availability import is_cute_dsl_available as is_cute_dsl_available
def cutlass_to_torch_dtype(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.utils.cutlass_to_torch_dtype is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...

def get_cutlass_dtype(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.get_cutlass_dtype is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...

def get_max_active_clusters(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.utils.get_max_active_clusters is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...

def get_num_sm(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.get_num_sm is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...
