# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


def deepseek_v41_decode(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.deepseek_v41.deepseek_v41_decode is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def deepseek_v41_quantize_cache(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.deepseek_v41.deepseek_v41_quantize_cache is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def deepseek_v41_window_decode(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.deepseek_v41.deepseek_v41_window_decode is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
