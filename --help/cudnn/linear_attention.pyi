# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._cudnn_linear import cudnn_chunk_gated_delta_product as cudnn_chunk_gated_delta_product
from flashinfer._cudnn_linear import cudnn_chunk_gated_delta_rule as cudnn_chunk_gated_delta_rule
from flashinfer._cudnn_linear import cudnn_chunk_gated_delta_rule2 as cudnn_chunk_gated_delta_rule2
def cudnn_recurrent_kda(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cudnn.cudnn_recurrent_kda is not available: it is not implemented; docs/linear-attention.md says what there is of linear attention and state-space models."""
    ...
