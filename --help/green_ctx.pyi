# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._one_gpu import get_sm_count_constraint as get_sm_count_constraint
def create_green_ctx_streams(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.green_ctx.create_green_ctx_streams is not available: kernels here do not divide the multiprocessors of a GPU; torch.cuda.Stream gives streams."""
    ...

def get_cudevice(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.green_ctx.get_cudevice is not available: kernels here do not divide the multiprocessors of a GPU; torch.cuda.Stream gives streams."""
    ...

def get_device_resource(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.green_ctx.get_device_resource is not available: kernels here do not divide the multiprocessors of a GPU; torch.cuda.Stream gives streams."""
    ...

def split_device_green_ctx(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.green_ctx.split_device_green_ctx is not available: kernels here do not divide the multiprocessors of a GPU; torch.cuda.Stream gives streams."""
    ...

def split_device_green_ctx_by_sm_count(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.green_ctx.split_device_green_ctx_by_sm_count is not available: kernels here do not divide the multiprocessors of a GPU; torch.cuda.Stream gives streams."""
    ...

def split_resource(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.green_ctx.split_resource is not available: kernels here do not divide the multiprocessors of a GPU; torch.cuda.Stream gives streams."""
    ...

def split_resource_by_sm_count(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.green_ctx.split_resource_by_sm_count is not available: kernels here do not divide the multiprocessors of a GPU; torch.cuda.Stream gives streams."""
    ...
