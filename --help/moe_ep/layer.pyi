# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


class MoEEpLayer:
    """flashinfer.moe_ep.MoEEpLayer is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpMegaLayer:
    """flashinfer.moe_ep.MoEEpMegaLayer is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpMegaWorkspace:
    """flashinfer.moe_ep.MoEEpMegaWorkspace is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpSplitLayer:
    """flashinfer.moe_ep.MoEEpSplitLayer is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
