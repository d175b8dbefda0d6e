# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._svdquant import mm_nvfp4_svdquant as mm_nvfp4_svdquant
from flashinfer import nvfp4_quantize_smooth as nvfp4_quantize_smooth
from flashinfer._svdquant import svdquant_linear as svdquant_linear
SVDQUANT_LORA_RANK_GRANULARITY: Any
