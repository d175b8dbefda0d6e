# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


class V3Plan:
    """flashinfer.mega_moe_v3.V3Plan is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def bind_prepared(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.mega_moe_v3.bind_prepared is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_grouped_fused(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.mega_moe_v3.prepare_grouped_fused is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_grouped_l1(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.mega_moe_v3.prepare_grouped_l1 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_grouped_l2(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.mega_moe_v3.prepare_grouped_l2 is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_pipeline(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.mega_moe_v3.prepare_pipeline is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
