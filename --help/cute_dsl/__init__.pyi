# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

from flashinfer._cute_dsl import BatchMLADecodeCuteDSLWrapper as BatchMLADecodeCuteDSLWrapper
from flashinfer._cute_dsl import BatchPrefillCuteDSLWrapper as BatchPrefillCuteDSLWrapper
from flashinfer.norm import add_rmsnorm_fp4quant as add_rmsnorm_fp4quant
from flashinfer._one_gpu import convert_sf_from_mma_layout as convert_sf_from_mma_layout
from flashinfer._one_gpu import convert_sf_to_mma_layout as convert_sf_to_mma_layout
from flashinfer._cute_dsl import fused_add_rmsnorm_cute as fused_add_rmsnorm_cute
from flashinfer._cute_dsl import fused_add_rmsnorm_quant_cute as fused_add_rmsnorm_quant_cute
from flashinfer._one_gpu import get_mma_sf_shape as get_mma_sf_shape
from flashinfer.gemm import grouped_gemm_nt_masked as grouped_gemm_nt_masked
from flashinfer._availability import is_cute_dsl_arch_supported as is_cute_dsl_arch_supported
from flashinfer._availability import is_cute_dsl_available as is_cute_dsl_available
from flashinfer._availability import is_cute_dsl_experimental_available as is_cute_dsl_experimental_available
from flashinfer._cute_dsl import layernorm_cute as layernorm_cute
from flashinfer._cute_dsl import qk_rmsnorm_cute as qk_rmsnorm_cute
from flashinfer._cute_dsl import rmsnorm_cute as rmsnorm_cute
from flashinfer.norm import rmsnorm_fp4quant as rmsnorm_fp4quant
from flashinfer._cute_dsl import rmsnorm_quant_cute as rmsnorm_quant_cute
class BatchDecodeCuteDSLWrapper:
    """flashinfer.cute_dsl.BatchDecodeCuteDSLWrapper is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class BatchDecodePagedCuteDSLWrapper:
    """flashinfer.cute_dsl.BatchDecodePagedCuteDSLWrapper is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def create_scale_factor_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.create_scale_factor_tensor is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...

def get_cutlass_dtype(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.get_cutlass_dtype is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...

def get_num_sm(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.get_num_sm is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...

def get_sm_version(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.get_sm_version is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...

def make_ptr(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.make_ptr is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...

def require_cute_dsl_arch(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.require_cute_dsl_arch is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...

def torch_to_cutlass_dtype(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.torch_to_cutlass_dtype is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...
