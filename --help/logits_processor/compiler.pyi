# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer.logits_processor import Compiler as Compiler
from flashinfer.logits_processor import compile_pipeline as compile_pipeline
from flashinfer.logits_processor import get_default_fusion_rules as get_default_fusion_rules
from flashinfer.logits_processor import get_default_validity_checks as get_default_validity_checks