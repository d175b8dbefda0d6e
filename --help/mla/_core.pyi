# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._attention_helpers import MLAHeadDimensions as MLAHeadDimensions
from flashinfer._attention_helpers import MLALayerDimensions as MLALayerDimensions
from flashinfer._dsv4 import trtllm_batch_decode_sparse_mla_dsv4 as trtllm_batch_decode_sparse_mla_dsv4
from flashinfer.mla import trtllm_batch_decode_with_kv_cache_mla as trtllm_batch_decode_with_kv_cache_mla
from flashinfer.mla import trtllm_batch_decode_with_kv_cache_mla as trtllm_prefill_with_kv_cache_mla
from flashinfer.mla import xqa_batch_decode_with_kv_cache_mla as xqa_batch_decode_with_kv_cache_mla