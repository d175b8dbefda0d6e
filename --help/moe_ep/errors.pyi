# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


class MoEEpFaultToleranceUnsupportedError(RuntimeError):
    """flashinfer.moe_ep.MoEEpFaultToleranceUnsupportedError is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpNotBuiltError(RuntimeError):
    """flashinfer.moe_ep.MoEEpNotBuiltError is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpRankEvictedError(RuntimeError):
    """flashinfer.moe_ep.MoEEpRankEvictedError is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpTransportError(RuntimeError):
    """flashinfer.moe_ep.MoEEpTransportError is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
