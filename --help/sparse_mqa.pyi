# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


def prepare_sparse_mqa_logits(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.sparse_mqa.prepare_sparse_mqa_logits is not available: its metadata are a GPU kernel's; flashinfer.fp4_paged_mqa_logits computes the scores of all keys."""
    ...

def prepare_sparse_mqa_metadata(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.sparse_mqa.prepare_sparse_mqa_metadata is not available: its metadata are a GPU kernel's; flashinfer.fp4_paged_mqa_logits computes the scores of all keys."""
    ...
