# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._moe_api import ActivationConfig as ActivationConfig
from flashinfer.fused_moe import ActivationType as ActivationType
from flashinfer._moe_api import B12xNvfp4Config as B12xNvfp4Config
from flashinfer._moe_api import B12xW4A16Config as B12xW4A16Config
from flashinfer._moe_api import BackendOptions as BackendOptions
from flashinfer._moe_api import CuteDslConfig as CuteDslConfig
from flashinfer._moe_api import CutlassBf16Config as CutlassBf16Config
from flashinfer._moe_api import CutlassFp8BlockConfig as CutlassFp8BlockConfig
from flashinfer._moe_api import CutlassFp8PerTensorConfig as CutlassFp8PerTensorConfig
from flashinfer._moe_api import CutlassMxfp8Config as CutlassMxfp8Config
from flashinfer._moe_api import CutlassMxfp8Mxfp4Config as CutlassMxfp8Mxfp4Config
from flashinfer._moe_api import CutlassNvfp4Config as CutlassNvfp4Config
from flashinfer._moe_api import CutlassW4A16Config as CutlassW4A16Config
from flashinfer._moe_api import CutlassW4A8Config as CutlassW4A8Config
from flashinfer._moe_api import ExecutionConfig as ExecutionConfig
from flashinfer._moe_api import ExpertConfig as ExpertConfig
from flashinfer._moe_api import GELU as GELU
from flashinfer._moe_api import GeGLU as GeGLU
from flashinfer._moe_api import GeGLUTanh as GeGLUTanh
from flashinfer._moe_api import Identity as Identity
from flashinfer._moe_api import MoEActivationPack as MoEActivationPack
from flashinfer._moe_api import MoEConfig as MoEConfig
from flashinfer._moe_api import MoEFinalizeConfig as MoEFinalizeConfig
from flashinfer._moe_api import MoEWeightPack as MoEWeightPack
from flashinfer._moe_api import QuantConfig as QuantConfig
from flashinfer._moe_api import QuantFormat as QuantFormat
from flashinfer._moe_api import ReLU as ReLU
from flashinfer._moe_api import ReLU2 as ReLU2
from flashinfer._moe_api import RoutingConfig as RoutingConfig
from flashinfer.tllm_enums import RoutingInputMode as RoutingInputMode
from flashinfer._moe_api import SiLU as SiLU
from flashinfer._moe_api import SiTU as SiTU
from flashinfer._moe_api import SwiGLU as SwiGLU
from flashinfer._moe_api import SwiGLUStep as SwiGLUStep
from flashinfer._moe_api import TrtllmBf16Config as TrtllmBf16Config
from flashinfer._moe_api import TrtllmFp4Config as TrtllmFp4Config
from flashinfer._moe_api import TrtllmFp8BlockConfig as TrtllmFp8BlockConfig
from flashinfer._moe_api import TrtllmFp8PerTensorConfig as TrtllmFp8PerTensorConfig
from flashinfer._moe_api import TrtllmMxInt4Config as TrtllmMxInt4Config
class CakeWarpDecodeConfig:
    """flashinfer.fused_moe.CakeWarpDecodeConfig is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileBf16Config:
    """flashinfer.fused_moe.CuTileBf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileFp8PerTensorBf16Config:
    """flashinfer.fused_moe.CuTileFp8PerTensorBf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileFp8PerTensorConfig:
    """flashinfer.fused_moe.CuTileFp8PerTensorConfig is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Bf16Config:
    """flashinfer.fused_moe.CuTileMxfp4Bf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Config:
    """flashinfer.fused_moe.CuTileMxfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp4Mxfp8Config:
    """flashinfer.fused_moe.CuTileMxfp4Mxfp8Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp8Bf16Config:
    """flashinfer.fused_moe.CuTileMxfp8Bf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileMxfp8Config:
    """flashinfer.fused_moe.CuTileMxfp8Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileNvfp4Bf16Config:
    """flashinfer.fused_moe.CuTileNvfp4Bf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CuTileNvfp4Config:
    """flashinfer.fused_moe.CuTileNvfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CudnnFrostBf16Config:
    """flashinfer.fused_moe.CudnnFrostBf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CudnnFrostMxfp8Config:
    """flashinfer.fused_moe.CudnnFrostMxfp8Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CudnnFrostMxfp8Mxfp4Config:
    """flashinfer.fused_moe.CudnnFrostMxfp8Mxfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CudnnFrostNvfp4Config:
    """flashinfer.fused_moe.CudnnFrostNvfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class CutlassHummingConfig:
    """flashinfer.fused_moe.CutlassHummingConfig is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class PrimsTsConfig:
    """flashinfer.fused_moe.PrimsTsConfig is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xFp8Config:
    """flashinfer.fused_moe.SM12xFp8Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xMxfp8Mxfp4Config:
    """flashinfer.fused_moe.SM12xMxfp8Mxfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xNvfp4Bf16Config:
    """flashinfer.fused_moe.SM12xNvfp4Bf16Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class SM12xNvfp4Config:
    """flashinfer.fused_moe.SM12xNvfp4Config is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
