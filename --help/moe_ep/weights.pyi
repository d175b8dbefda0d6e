# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


class PrequantizedMoEWeights:
    """flashinfer.moe_ep.PrequantizedMoEWeights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class UnquantizedMoEWeights:
    """flashinfer.moe_ep.UnquantizedMoEWeights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def dummy_moe_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.dummy_moe_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...
