# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


class TacticsBlocklist:
    """flashinfer.tactics_blocklist.TacticsBlocklist is not available: no tactic of an op here fails, so that there is nothing to leave out."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
