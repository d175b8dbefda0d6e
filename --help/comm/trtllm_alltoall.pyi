# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


class MnnvlMoe:
    """flashinfer.comm.trtllm_alltoall.MnnvlMoe is not available: FlashInfer has deprecated it; MoeAlltoAll and moe_a2a_* send tokens to the ranks of their experts."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEAlltoallInfo:
    """flashinfer.comm.trtllm_alltoall.MoEAlltoallInfo is not available: FlashInfer has deprecated it; MoeAlltoAll and moe_a2a_* send tokens to the ranks of their experts."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
