# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


class FusedMoeKernelConfig:
    """flashinfer.moe_ep.FusedMoeKernelConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class IdentityConfig:
    """flashinfer.moe_ep.IdentityConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MegaConfig:
    """flashinfer.moe_ep.MegaConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpMegaLayer:
    """flashinfer.moe_ep.MoEEpMegaLayer is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpMegaWorkspace:
    """flashinfer.moe_ep.MoEEpMegaWorkspace is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpSplitGraphState:
    """flashinfer.moe_ep.MoEEpSplitGraphState is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class MoEEpSplitLayer:
    """flashinfer.moe_ep.MoEEpSplitLayer is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NCCLEPConfig:
    """flashinfer.moe_ep.NCCLEPConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NVLinkOneSidedConfig:
    """flashinfer.moe_ep.NVLinkOneSidedConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NVLinkTwoSidedConfig:
    """flashinfer.moe_ep.NVLinkTwoSidedConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NcclEpConfig:
    """flashinfer.moe_ep.NcclEpConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class NvepConfig:
    """flashinfer.moe_ep.NvepConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SplitConfig:
    """flashinfer.moe_ep.SplitConfig is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SplitKernelContext:
    """flashinfer.moe_ep.SplitKernelContext is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def kernel_requires_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.kernel_requires_weights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...

def run_split_kernel(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.moe_ep.run_split_kernel is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    ...
