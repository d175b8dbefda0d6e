# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


def create_kimi_k3_tp12_tail_workspace(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.kimi_k3_tp12_tail.create_kimi_k3_tp12_tail_workspace is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def kimi_k3_tp12_tail(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.kimi_k3_tp12_tail.kimi_k3_tp12_tail is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_kimi_k3_tp12_tail(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.kimi_k3_tp12_tail.prepare_kimi_k3_tp12_tail is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
