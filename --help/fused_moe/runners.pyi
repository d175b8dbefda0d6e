# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._moe_runners import B12xNvfp4Runner as B12xNvfp4Runner
from flashinfer._moe_runners import B12xW4A16Runner as B12xW4A16Runner
from flashinfer._moe_runners import CutlassBf16Runner as CutlassBf16Runner
from flashinfer._moe_runners import CutlassFp8BlockRunner as CutlassFp8BlockRunner
from flashinfer._moe_runners import CutlassFp8PerTensorRunner as CutlassFp8PerTensorRunner
from flashinfer._moe_runners import CutlassMxfp8Mxfp4Runner as CutlassMxfp8Mxfp4Runner
from flashinfer._moe_runners import CutlassMxfp8Runner as CutlassMxfp8Runner
from flashinfer._moe_runners import CutlassNvfp4Runner as CutlassNvfp4Runner
from flashinfer._moe_runners import CutlassW4A16Runner as CutlassW4A16Runner
from flashinfer._moe_runners import MoERunner as MoERunner
from flashinfer._moe_runners import TrtllmBf16RoutedRunner as TrtllmBf16RoutedRunner
from flashinfer._moe_runners import TrtllmFp4RoutedRunner as TrtllmFp4RoutedRunner
from flashinfer._moe_runners import TrtllmFp8BlockRunner as TrtllmFp8BlockRunner
from flashinfer._moe_runners import TrtllmFp8PerTensorRunner as TrtllmFp8PerTensorRunner
from flashinfer._moe_runners import TrtllmMxInt4RoutedRunner as TrtllmMxInt4RoutedRunner
class CakeWarpDecodeRunner:
    """flashinfer.fused_moe.CakeWarpDecodeRunner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileBf16Runner:
    """flashinfer.fused_moe.CuTileBf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileFp8PerTensorBf16Runner:
    """flashinfer.fused_moe.CuTileFp8PerTensorBf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileFp8PerTensorRunner:
    """flashinfer.fused_moe.CuTileFp8PerTensorRunner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Bf16Runner:
    """flashinfer.fused_moe.CuTileMxfp4Bf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Mxfp8Runner:
    """flashinfer.fused_moe.CuTileMxfp4Mxfp8Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Runner:
    """flashinfer.fused_moe.CuTileMxfp4Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp8Bf16Runner:
    """flashinfer.fused_moe.CuTileMxfp8Bf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp8Runner:
    """flashinfer.fused_moe.CuTileMxfp8Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileNvfp4Bf16Runner:
    """flashinfer.fused_moe.CuTileNvfp4Bf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileNvfp4Runner:
    """flashinfer.fused_moe.CuTileNvfp4Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuteDslRunner:
    """flashinfer.fused_moe.CuteDslRunner is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CutlassHummingRunner:
    """flashinfer.fused_moe.CutlassHummingRunner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CutlassW4A8Runner:
    """flashinfer.fused_moe.CutlassW4A8Runner is not available: its kernel is for INT4 weights in the order of one GPU generation; CutlassW4A16Config has MXFP4 weights, TrtllmMxInt4Config INT4 ones."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class PrimsTsRunner:
    """flashinfer.fused_moe.PrimsTsRunner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xFp8Runner:
    """flashinfer.fused_moe.SM12xFp8Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xMxfp8Mxfp4Runner:
    """flashinfer.fused_moe.SM12xMxfp8Mxfp4Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xNvfp4Bf16Runner:
    """flashinfer.fused_moe.SM12xNvfp4Bf16Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xNvfp4Runner:
    """flashinfer.fused_moe.SM12xNvfp4Runner is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
