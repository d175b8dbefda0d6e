# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


def prepare_fp8_batched_gemm(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.fp8_batched_gemm.prepare_fp8_batched_gemm is not available: this is a back end of one GPU generation; flashinfer.gemm has the op."""
    ...
