# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


class CakeRMSNormFunction:
    """flashinfer.cake_rmsnorm_train.CakeRMSNormFunction is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def cake_rmsnorm(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cake_rmsnorm_train.cake_rmsnorm is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
