# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer.prefill import cudnn_batch_prefill_with_kv_cache as cudnn_batch_prefill_with_kv_cache
CUDNN_AVAILABLE: Any

def prepare_cudnn_batch_prefill(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cudnn.prefill.prepare_cudnn_batch_prefill is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
