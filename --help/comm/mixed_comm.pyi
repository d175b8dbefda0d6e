# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._mixed_comm import MixedCommHandler as MixedCommHandler
from flashinfer._mixed_comm import MixedCommMode as MixedCommMode
from flashinfer._mixed_comm import MixedCommOp as MixedCommOp
from flashinfer._mixed_comm import run_mixed_comm as run_mixed_comm