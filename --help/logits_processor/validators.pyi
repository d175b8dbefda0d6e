# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._logits_ops import CompileError as CompileError
from flashinfer.logits_processor import get_default_validity_checks as get_default_validity_checks
from flashinfer.logits_processor import indices_terminal_rule as indices_terminal_rule
from flashinfer.logits_processor import single_softmax_rule as single_softmax_rule