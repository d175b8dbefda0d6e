# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._indexer import compute_paged_mqa_logits_schedule as compute_paged_mqa_logits_schedule
from flashinfer._indexer import fp4_paged_mqa_logits as fp4_paged_mqa_logits
from flashinfer._indexer import fp8_paged_mqa_logits as fp8_paged_mqa_logits
from flashinfer._buckets import min_block_table_width as min_block_table_width
from flashinfer._buckets import padded_seq_len as padded_seq_len