# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._context_parallel import decode_cp_a2a_allocate_mnnvl_workspace as decode_cp_a2a_allocate_mnnvl_workspace
from flashinfer._context_parallel import decode_cp_a2a_alltoall as decode_cp_a2a_alltoall
from flashinfer._context_parallel import decode_cp_a2a_init_workspace as decode_cp_a2a_init_workspace
from flashinfer._context_parallel import decode_cp_a2a_workspace_size as decode_cp_a2a_workspace_size