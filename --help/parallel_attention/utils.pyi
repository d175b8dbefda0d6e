# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._parallel import get_parallel_groups as get_parallel_groups
from flashinfer._parallel import ring_varlen_config as ring_varlen_config
from flashinfer._parallel import split_varlen_input as split_varlen_input
from flashinfer._parallel import ulysses_varlen_config as ulysses_varlen_config
from flashinfer._parallel import uneven_cp_config as uneven_cp_config