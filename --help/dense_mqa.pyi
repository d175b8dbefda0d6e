# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._indexer import fp8_mqa_logits as fp8_mqa_logits
def prepare_dense_mqa_logits(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.dense_mqa.prepare_dense_mqa_logits is not available: this is a launch plan of one GPU generation; fp8_mqa_logits and fp8_paged_mqa_logits compute the scores."""
    ...
