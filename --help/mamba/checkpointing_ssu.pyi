# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._mamba import allocate_checkpointing_ssu_scratch as allocate_checkpointing_ssu_scratch
from flashinfer.mamba import checkpointing_ssu as checkpointing_ssu
class CheckpointingSSURunner:
    """flashinfer.mamba.checkpointing_ssu.CheckpointingSSURunner is not available: it is not implemented; docs/linear-attention.md says what there is of linear attention and state-space models."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
