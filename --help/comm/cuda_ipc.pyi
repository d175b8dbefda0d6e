# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._comm_memory import create_shared_buffer as create_shared_buffer
from flashinfer._comm_memory import free_shared_buffer as free_shared_buffer
class CudaRTLibrary:
    """flashinfer.comm.CudaRTLibrary is not available: there is no CUDA memory to share between processes; create_shared_buffer shares memory of the CPU."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
