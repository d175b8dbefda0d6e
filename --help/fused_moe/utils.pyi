# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._b12x import get_b12x_activation_name as get_b12x_activation_name
from flashinfer._buckets import get_hybrid_num_tokens_buckets as get_hybrid_num_tokens_buckets
from flashinfer.utils import last_positive_power_of_2 as last_positive_power_of_2
from flashinfer._buckets import make_hybrid_bucket_mapper as make_hybrid_bucket_mapper
from flashinfer._buckets import make_random_topk_ids as make_random_topk_ids
from flashinfer._buckets import map_to_hybrid_bucket as map_to_hybrid_bucket
from flashinfer._buckets import map_to_hybrid_bucket_uncapped as map_to_hybrid_bucket_uncapped
from flashinfer.utils import next_positive_power_of_2 as next_positive_power_of_2