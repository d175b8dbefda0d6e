# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._indexer import deepgemm_fp8_paged_mqa_logits as fp8_paged_mqa_logits
from flashinfer._indexer import get_paged_mqa_logits_metadata as get_paged_mqa_logits_metadata
def prepare_paged_mqa_logits(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.paged_mqa.prepare_paged_mqa_logits is not available: this is a launch plan of one GPU generation; fp8_mqa_logits and fp8_paged_mqa_logits compute the scores."""
    ...
