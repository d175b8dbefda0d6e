# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._moe_alltoall import MoeAlltoAll as MoeAlltoAll
from flashinfer._moe_alltoall import moe_a2a_active_rank_mask as moe_a2a_active_rank_mask
from flashinfer.comm import moe_a2a_combine as moe_a2a_combine
from flashinfer._moe_alltoall import moe_a2a_dispatch as moe_a2a_dispatch
from flashinfer._moe_alltoall import moe_a2a_get_workspace_size_per_rank as moe_a2a_get_workspace_size_per_rank
from flashinfer.comm import moe_a2a_initialize as moe_a2a_initialize
from flashinfer.comm import moe_a2a_sanitize_expert_ids as moe_a2a_sanitize_expert_ids
from flashinfer._moe_alltoall import moe_a2a_wrap_payload_tensor_in_workspace as moe_a2a_wrap_payload_tensor_in_workspace