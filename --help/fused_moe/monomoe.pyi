# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._monomoe import alloc_scratchpad as alloc_scratchpad
from flashinfer._monomoe import get_scratchpad_size_bytes as get_scratchpad_size_bytes
from flashinfer._availability import has_monomoe as has_monomoe
from flashinfer._monomoe import interleave_for_tma_wgmma_up as interleave_for_tma_wgmma_up
from flashinfer._monomoe import mono_moe as mono_moe