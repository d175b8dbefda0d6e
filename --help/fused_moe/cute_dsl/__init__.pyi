# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._availability import is_cute_dsl_available as is_cute_dsl_available
class CuteDslMxfp8Mxfp4MoEWrapper:
    """flashinfer.fused_moe.cute_dsl.CuteDslMxfp8Mxfp4MoEWrapper is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
