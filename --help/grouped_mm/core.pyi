# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer.grouped_mm import grouped_mm_bf16 as grouped_mm_bf16
from flashinfer.grouped_mm import grouped_mm_fp4 as grouped_mm_fp4
from flashinfer.grouped_mm import grouped_mm_fp8 as grouped_mm_fp8
from flashinfer.grouped_mm import grouped_mm_mxfp8 as grouped_mm_mxfp8