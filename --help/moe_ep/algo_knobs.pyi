# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)


class AlgoKnob:
    """flashinfer.moe_ep.AlgoKnob is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobAllocator:
    """flashinfer.moe_ep.FleetAlgoKnobAllocator is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobFaultTolerance:
    """flashinfer.moe_ep.FleetAlgoKnobFaultTolerance is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobNumChannelsPerRank:
    """flashinfer.moe_ep.FleetAlgoKnobNumChannelsPerRank is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobNumQpsPerRank:
    """flashinfer.moe_ep.FleetAlgoKnobNumQpsPerRank is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobQuantization:
    """flashinfer.moe_ep.FleetAlgoKnobQuantization is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobRdmaBufferSize:
    """flashinfer.moe_ep.FleetAlgoKnobRdmaBufferSize is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class FleetAlgoKnobTopologyCapacity:
    """flashinfer.moe_ep.FleetAlgoKnobTopologyCapacity is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class HandleAlgoKnobNumReceivedTokens:
    """flashinfer.moe_ep.HandleAlgoKnobNumReceivedTokens is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class HandleAlgoKnobSplitOperation:
    """flashinfer.moe_ep.HandleAlgoKnobSplitOperation is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class HandleAlgoKnobTopKWeights:
    """flashinfer.moe_ep.HandleAlgoKnobTopKWeights is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class HandleAlgoKnobUserStream:
    """flashinfer.moe_ep.HandleAlgoKnobUserStream is not available: expert parallelism is not implemented; flashinfer.fused_moe computes the experts of one process."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
