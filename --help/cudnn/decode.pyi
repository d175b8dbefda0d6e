# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer.decode import cudnn_batch_decode_with_kv_cache as cudnn_batch_decode_with_kv_cache
CUDNN_AVAILABLE: Any

def prepare_cudnn_batch_decode(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cudnn.decode.prepare_cudnn_batch_decode is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
