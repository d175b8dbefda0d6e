# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def grouped_mm_bf16(a: _T, b: Array, m_indptr: Array, out: Optional[Array] = None, out_dtype: Union[torch.dtype, str] = torch.bfloat16, *, backend: str = 'cudnn', tactic: int = -1) -> _T:
    """Each group of rows of a[m, k] times a matrix of b[e, n, k]^T.

    Args:
        a: Tensor [m k]; bfloat16; left factor
        b: Tensor [e n k]; bfloat16; right factor; usually the transposed view of a row-major weight
        m_indptr: Tensor [e+1]; int32; first row of a of each group, and where the last one ends
        out: Tensor [m n] or None; dtype out_dtype; written; made when absent; the result
        out_dtype: dtype; dtype of the result
        backend: str; one of cudnn, cake, auto, cpu, reference; the implementation by name; 'auto' lets the library choose
        tactic: int; GPU kernels only

    Returns:
        out: Tensor [m n]; dtype out_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def grouped_mm_fp4(a: _T, b: Array, a_descale: Array, b_descale: Array, m_indptr: Array, alpha: Optional[Array] = None, out: Optional[Array] = None, out_dtype: Union[torch.dtype, str] = torch.bfloat16, block_size: int = 16, *, backend: str = 'cudnn', tactic: int = -1) -> _T:
    """grouped_mm_bf16 of NVFP4 or MXFP4 matrices, times alpha.

    Args:
        a: Tensor [m kb]; uint8|float4_e2m1fn_x2; left factor
        b: Tensor [e n kb]; uint8|float4_e2m1fn_x2; right factor; usually the transposed view of a row-major weight
        a_descale: Tensor; float8_e4m3fn|uint8; decode scales of a's blocks
        b_descale: Tensor; float8_e4m3fn|uint8; decode scales of b's blocks; with a packed b, as prepare_quantized_weights returns them
        m_indptr: Tensor [e+1]; int32; first row of a of each group, and where the last one ends
        alpha: Tensor or None; float32; factor of the product
        out: Tensor [m n] or None; dtype out_dtype; written; made when absent; the result
        out_dtype: dtype; dtype of the result
        block_size: int; elements that share a scale
        backend: str; one of cudnn, cake, auto, cpu, reference; the implementation by name; 'auto' lets the library choose
        tactic: int; GPU kernels only

    Returns:
        out: Tensor [m n]; dtype out_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def grouped_mm_fp8(a: _T, b: Array, m_indptr: Array, alpha: Optional[Array] = None, out: Optional[Array] = None, out_dtype: Union[torch.dtype, str] = torch.bfloat16, *, backend: str = 'cudnn', tactic: int = -1) -> _T:
    """grouped_mm_bf16 of FP8 matrices, times alpha.

    Args:
        a: Tensor [m k]; float8_e4m3fn|float8_e5m2; left factor
        b: Tensor [e n k]; float8_e4m3fn|float8_e5m2; right factor; usually the transposed view of a row-major weight
        m_indptr: Tensor [e+1]; int32; first row of a of each group, and where the last one ends
        alpha: Tensor or None; float32; factor of the product
        out: Tensor [m n] or None; dtype out_dtype; written; made when absent; the result
        out_dtype: dtype; dtype of the result
        backend: str; one of cudnn, cake, auto, cpu, reference; the implementation by name; 'auto' lets the library choose
        tactic: int; GPU kernels only

    Returns:
        out: Tensor [m n]; dtype out_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def grouped_mm_mxfp8(a: _T, b: Array, a_descale: Array, b_descale: Array, m_indptr: Array, out: Optional[Array] = None, out_dtype: Union[torch.dtype, str] = torch.bfloat16, *, backend: str = 'cudnn', tactic: int = -1) -> _T:
    """grouped_mm_bf16 of MXFP8 matrices.

    Args:
        a: Tensor [m k]; float8_e4m3fn|float8_e5m2; left factor
        b: Tensor [e n k]; float8_e4m3fn|float8_e5m2; right factor; usually the transposed view of a row-major weight
        a_descale: Tensor; uint8; decode scales of a's blocks
        b_descale: Tensor; uint8; decode scales of b's blocks; with a packed b, as prepare_quantized_weights returns them
        m_indptr: Tensor [e+1]; int32; first row of a of each group, and where the last one ends
        out: Tensor [m n] or None; dtype out_dtype; written; made when absent; the result
        out_dtype: dtype; dtype of the result
        backend: str; one of cudnn, cake, auto, cpu, reference; the implementation by name; 'auto' lets the library choose
        tactic: int; GPU kernels only

    Returns:
        out: Tensor [m n]; dtype out_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def moe_gemm_fp8_nt_groupwise(a: _T, b: Array, a_scale: Array, b_scale: Array, m_indptr: Array, scale_granularity_mnk: list[int] = (1, 128, 128), scale_major_mode: Union[Literal['MN'], str] = 'MN', backend: str = 'cute', out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None, is_gated: bool = False) -> _T:
    """Each expert's rows times its matrix, FP8 with f32 scales of blocks, optionally followed by SwiGLU.

    Args:
        a: Tensor [m k]; float8_e4m3fn; left factor
        b: Tensor [e n k]; float8_e4m3fn; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; float32; decode scales of a's blocks
        b_scale: Tensor; float32; decode scales of b's blocks
        m_indptr: Tensor [e+1]; int32; first row of a of each group, and where the last one ends
        scale_granularity_mnk: list of int; extents of the block of each matrix that shares a scale, by (m, n, k)
        scale_major_mode: str; one of MN; which axis of the scales is contiguous: 'K', or 'MN'
        backend: str; one of cute, cpu, reference; the implementation by name; 'auto' lets the library choose
        out: Tensor or None; bfloat16; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result
        is_gated: bool; whether the second half of the columns gates the first: silu(gate) times it

    Returns:
        out: Tensor; bfloat16; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def moe_gemm_mxfp8_nt_groupwise(a: _T, b: Array, a_scale: Array, b_scale: Array, m_indptr: Array, scale_granularity_mnk: list[int] = (1, 1, 128), scale_major_mode: Union[Literal['MN'], str] = 'MN', backend: str = 'cute', out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None, is_gated: bool = False) -> _T:
    """Each expert's rows times its matrix, FP8 with packed power-of-two scales, optionally followed by SwiGLU.

    Args:
        a: Tensor [m k]; float8_e4m3fn; left factor
        b: Tensor [e n k]; float8_e4m3fn; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; int32; decode scales of a's blocks
        b_scale: Tensor; int32; decode scales of b's blocks
        m_indptr: Tensor [e+1]; int32; first row of a of each group, and where the last one ends
        scale_granularity_mnk: list of int; extents of the block of each matrix that shares a scale, by (m, n, k)
        scale_major_mode: str; one of MN; which axis of the scales is contiguous: 'K', or 'MN'
        backend: str; one of cute, cpu, reference; the implementation by name; 'auto' lets the library choose
        out: Tensor or None; bfloat16; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result
        is_gated: bool; whether the second half of the columns gates the first: silu(gate) times it

    Returns:
        out: Tensor; bfloat16; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

