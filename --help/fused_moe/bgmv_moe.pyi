# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer.fused_moe import bgmv_moe as bgmv_moe
from flashinfer._lora import bgmv_moe_expand as bgmv_moe_expand
from flashinfer._lora import bgmv_moe_shrink as bgmv_moe_shrink
from flashinfer._lora import fill_w_ptr as fill_w_ptr
from flashinfer._availability import has_bgmv_moe as has_bgmv_moe
from flashinfer._lora import prepare_bgmv_moe as prepare_bgmv_moe