# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

class SegmentGEMMWrapper:
    """Product of each segment of rows with its own weight."""
    def __init__(self, float_workspace_buffer: Array, backend: Union[Literal['auto', 'sm80', 'sm90'], str] = 'auto') -> None:
        """Product of each segment of rows with its own weight.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            backend: str; one of auto, sm80, sm90; the implementation by name; 'auto' lets the library choose

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, x: _T, weights: Array, batch_size: int, weight_column_major: bool, out: Optional[Array] = None, seg_lens: Optional[Array] = None, seg_indptr: Optional[Array] = None, weight_indices: Optional[Array] = None) -> _T:
        """Each segment of x times the weight of its index.

        Args:
            x: Tensor [m k]; float32|float16|bfloat16; elements to work on
            weights: Tensor [w p q]; dtype of x; one matrix for each group
            batch_size: int; number of requests or segments
            weight_column_major: bool; each weight is [n, k] instead of [k, n]
            out: Tensor or None; dtype of x; written; made when absent; the result
            seg_lens: Tensor [s] or None; int32|int64; rows of each segment
            seg_indptr: Tensor [t] or None; int32|int64; first row of x of each segment, and where the last one ends
            weight_indices: Tensor [u] or None; int32|int64; the weight of each segment; the i-th for segment i when absent

        Returns:
            out: Tensor; dtype of x; the result

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def reset_workspace_buffer(self, float_workspace_buffer: Array, int_workspace_buffer: Array) -> None:
        """Another workspace; the CPU needs none.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            int_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def forward(self, x: _T, weights: Array, batch_size: int, weight_column_major: bool, out: Optional[Array] = None, seg_lens: Optional[Array] = None, seg_indptr: Optional[Array] = None, weight_indices: Optional[Array] = None) -> _T:
        """Each segment of x times the weight of its index.

        Args:
            x: Tensor [m k]; float32|float16|bfloat16; elements to work on
            weights: Tensor [w p q]; dtype of x; one matrix for each group
            batch_size: int; number of requests or segments
            weight_column_major: bool; each weight is [n, k] instead of [k, n]
            out: Tensor or None; dtype of x; written; made when absent; the result
            seg_lens: Tensor [s] or None; int32|int64; rows of each segment
            seg_indptr: Tensor [t] or None; int32|int64; first row of x of each segment, and where the last one ends
            weight_indices: Tensor [u] or None; int32|int64; the weight of each segment; the i-th for segment i when absent

        Returns:
            out: Tensor; dtype of x; the result

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

def batch_deepgemm_fp8_nt_groupwise(a: _T, b: Array, a_scale: Array, b_scale: Array, masked_m: Array, expected_m: int, scale_granularity_mnk: list[int] = (1, 128, 128), out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None, backend: str = 'deepgemm') -> _T:
    """The first masked_m rows of each matrix of a batch, FP8 with f32 scales of blocks.

    Args:
        a: Tensor [e m k]; float8_e4m3fn; left factor
        b: Tensor [e n k]; float8_e4m3fn; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; float32; decode scales of a's blocks
        b_scale: Tensor; float32; decode scales of b's blocks
        masked_m: Tensor [e]; int32; rows of each group that are computed; the others become 0
        expected_m: int; a schedule hint of GPU kernels
        scale_granularity_mnk: list of int; extents of the block of each matrix that shares a scale, by (m, n, k)
        out: Tensor [e m n] or None; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result
        backend: str; one of deepgemm, auto, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor [e m n]; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def bmm_bf16(A: _T, B: Array, out: Optional[Array] = None, out_dtype: Union[torch.dtype, str] = torch.bfloat16, backend: str = 'cudnn') -> _T:
    """Batched matrix product A[b, m, k] . B[b, k, n] in f32, rounded once.

    Args:
        A: Tensor [b m k]; bfloat16; left factor, batched
        B: Tensor [b k n]; bfloat16; right factor, batched; usually the transposed view of a row-major weight
        out: Tensor [b m n] or None; dtype out_dtype; written; made when absent; the result
        out_dtype: dtype; dtype of the result
        backend: str; one of auto, cudnn, cutlass, tgv, cublaslt, cublas, cake, cuda_cublaslt, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor [b m n]; dtype out_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def bmm_fp8(A: _T, B: Array, A_scale: Array, B_scale: Array, dtype: Union[torch.dtype, str], out: Optional[Array] = None, backend: str = 'cublas') -> _T:
    """Batched product of FP8 matrices, (A . B) * A_scale * B_scale in f32, rounded once.

    Args:
        A: Tensor [b m k]; float8_e4m3fn|float8_e5m2; left factor, batched
        B: Tensor [b k n]; float8_e4m3fn|float8_e5m2; right factor, batched; usually the transposed view of a row-major weight
        A_scale: Tensor; float32; decode scale of A: its values times this
        B_scale: Tensor; float32; decode scale of B: its values times this
        dtype: dtype; dtype of the result
        out: Tensor [b m n] or None; dtype dtype; written; made when absent; the result
        backend: str; one of auto, cublas, cudnn, cutlass, cuda_cublaslt, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor [b m n]; dtype dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def bmm_mxfp8(A: _T, B: Array, A_scale: Array, B_scale: Array, dtype: Union[torch.dtype, str], out: Optional[Array] = None, backend: str = 'auto') -> _T:
    """Batched product of MXFP8 matrices.

    Args:
        A: Tensor [b m k]; float8_e4m3fn; left factor, batched
        B: Tensor [b k n]; float8_e4m3fn; right factor, batched; usually the transposed view of a row-major weight
        A_scale: Tensor; uint8; decode scale of A: its values times this
        B_scale: Tensor; uint8; decode scale of B: its values times this
        dtype: dtype; dtype of the result
        out: Tensor [b m n] or None; dtype dtype; written; made when absent; the result
        backend: str; one of auto, cudnn, cutlass, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor [b m n]; dtype dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fp8_blockscale_gemm_sm90(input: _T, weight: Array, input_scale: Optional[Array] = None, weight_scale: Optional[Array] = None, out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None) -> _T:
    """input . weight^T of FP8 with f32 scales of blocks; bf16 operands are quantised by the call.

    Args:
        input: Tensor [m k]; bfloat16|float8_e4m3fn; rows to work on
        weight: Tensor [n k]; bfloat16|float8_e4m3fn; one row for each column of the result
        input_scale: Tensor or None; float32; scales of the input's blocks
        weight_scale: Tensor or None; float32; scales of the weight's blocks
        out: Tensor [m n] or None; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result

    Returns:
        out: Tensor [m n]; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gemm_alpha_beta(a: Array, b: Array, c: Array, trans_a: bool = False, trans_b: bool = True, alpha: float = 1.0, beta: float = 0.0, num_sms: Optional[int] = None, backend: str = 'cutile') -> None:
    """c = alpha * a . b + beta * c, in place.

    Args:
        a: Tensor [x y]; float16|bfloat16; left factor
        b: Tensor [z w]; dtype of a; right factor; usually the transposed view of a row-major weight
        c: Tensor [m n]; float32|float16|bfloat16; read and written; what the product is added to, and the result
        trans_a: bool; whether a is stored with its columns first
        trans_b: bool; whether b is stored with its columns first
        alpha: float; factor of the product
        beta: float; factor of the previous content of c; 0: c is not read
        num_sms: int or None; CUDA only: number of multiprocessors used
        backend: str; one of cutile, cpu, reference; the implementation by name; 'auto' lets the library choose

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gemm_fp8_nt_blockscaled(a: _T, b: Array, a_scale: Array, b_scale: Array, scale_major_mode: Union[Literal['MN', 'K'], str] = 'MN', mma_sm: int = 1, out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None) -> _T:
    """gemm_fp8_nt_groupwise with blocks of 128 x 128 on both sides.

    Args:
        a: Tensor [m k]; float8_e4m3fn|float8_e5m2; left factor
        b: Tensor; float8_e4m3fn|float8_e5m2; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; float32; decode scales of a's blocks
        b_scale: Tensor; float32; decode scales of b's blocks
        scale_major_mode: str; one of MN, K; which axis of the scales is contiguous: 'K', or 'MN'
        mma_sm: int; GPU kernels only
        out: Tensor or None; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result

    Returns:
        out: Tensor; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gemm_fp8_nt_groupwise(a: _T, b: Array, a_scale: Array, b_scale: Array, scale_major_mode: Optional[str] = None, mma_sm: int = 1, scale_granularity_mnk: list[int] = (1, 128, 128), out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None, backend: str = 'cutlass') -> _T:
    """a[m, k] . b[n, k]^T of FP8 matrices with f32 scales of blocks.

    Args:
        a: Tensor [m k]; float8_e4m3fn|float8_e5m2; left factor
        b: Tensor; float8_e4m3fn|float8_e5m2; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; float32; decode scales of a's blocks
        b_scale: Tensor; float32; decode scales of b's blocks
        scale_major_mode: str or None; which axis of the scales is contiguous: 'K', or 'MN'
        mma_sm: int; GPU kernels only
        scale_granularity_mnk: list of int; extents of the block of each matrix that shares a scale, by (m, n, k)
        out: Tensor or None; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result
        backend: str; one of cutlass, trtllm, cutile, auto, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def gguf_dequantize(blocks: _T, format: Union[Literal['Q4_0', 'Q4_1', 'Q8_0', 'Q4_K', 'Q6_K'], str], out_dtype: Union[torch.dtype, str] = torch.float32, out: Optional[Array] = None) -> _T:
    """The values of GGUF blocks, rounded once.

    Args:
        blocks: Tensor [n bytes]; uint8; rows as blocks of the GGUF file
        format: str; one of Q4_0, Q4_1, Q8_0, Q4_K, Q6_K; name of the GGUF block format
        out_dtype: dtype; dtype of the result
        out: Tensor or None; dtype out_dtype; written; made when absent; the result

    Returns:
        out: Tensor; dtype out_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def group_deepgemm_fp8_nt_groupwise(a: _T, b: Array, a_scale: Array, b_scale: Array, m_indices: Array, scale_granularity_mnk: list[int] = (1, 128, 128), out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None) -> _T:
    """Each row of a times the matrix that its index names, FP8 with f32 scales of blocks.

    Args:
        a: Tensor [m k]; float8_e4m3fn; left factor
        b: Tensor [e n k]; float8_e4m3fn; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; float32; decode scales of a's blocks
        b_scale: Tensor; float32; decode scales of b's blocks
        m_indices: Tensor [m]; int32; the group of each row of a; -1: none
        scale_granularity_mnk: list of int; extents of the block of each matrix that shares a scale, by (m, n, k)
        out: Tensor [m n] or None; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result

    Returns:
        out: Tensor [m n]; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def group_gemm_fp8_nt_groupwise(a: _T, b: Array, a_scale: Array, b_scale: Array, m_indptr: Array, scale_granularity_mnk: list[int] = (1, 128, 128), scale_major_mode: Union[Literal['MN', 'K'], str] = 'MN', mma_sm: int = 1, out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None, backend: str = 'trtllm', segment_alignment: int = 1) -> _T:
    """Each group of rows times a matrix, FP8 with f32 scales of blocks.

    Args:
        a: Tensor [m k]; float8_e4m3fn|float8_e5m2; left factor
        b: Tensor [e n k]; float8_e4m3fn|float8_e5m2; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; float32; decode scales of a's blocks
        b_scale: Tensor; float32; decode scales of b's blocks
        m_indptr: Tensor [e+1]; int32; first row of a of each group, and where the last one ends
        scale_granularity_mnk: list of int; extents of the block of each matrix that shares a scale, by (m, n, k)
        scale_major_mode: str; one of MN, K; which axis of the scales is contiguous: 'K', or 'MN'
        mma_sm: int; GPU kernels only
        out: Tensor [m n] or None; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result
        backend: str; one of trtllm, cutlass, auto, cpu, reference; the implementation by name; 'auto' lets the library choose
        segment_alignment: int; a promise about m_indptr: its entries are multiples of this

    Returns:
        out: Tensor [m n]; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def group_gemm_fp8_nt_groupwise_contiguous(a: _T, b: Array, a_scale: Array, b_scale: Array, m_indices: Array, scale_granularity_mnk: list[int] = (1, 128, 128), out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None, validate_indices: bool = False) -> _T:
    """group_deepgemm_fp8_nt_groupwise with ascending indices in groups of 128 rows.

    Args:
        a: Tensor [m k]; float8_e4m3fn; left factor
        b: Tensor [e n k]; float8_e4m3fn; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; float32; decode scales of a's blocks
        b_scale: Tensor; float32; decode scales of b's blocks
        m_indices: Tensor [m]; int32; the group of each row of a; -1: none
        scale_granularity_mnk: list of int; extents of the block of each matrix that shares a scale, by (m, n, k)
        out: Tensor [m n] or None; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result
        validate_indices: bool; without effect: indices are always checked

    Returns:
        out: Tensor [m n]; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def group_gemm_mxfp4_nt_groupwise(a: _T, b: Array, a_scale: Array, b_scale: Array, m_indptr: Array, mma_sm: int = 1, tile_m: int = 128, tile_n: int = 128, tile_k: int = 128, swap_ab: bool = True, out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None) -> _T:
    """Each group of MXFP8 rows times an MXFP4 matrix.

    Args:
        a: Tensor [m k]; float8_e4m3fn|float8_e5m2; left factor
        b: Tensor [e n kb]; uint8; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; uint8; decode scales of a's blocks
        b_scale: Tensor; uint8; decode scales of b's blocks
        m_indptr: Tensor [e+1]; int32; first row of a of each group, and where the last one ends
        mma_sm: int; GPU kernels only
        tile_m: int; GPU kernels only
        tile_n: int; GPU kernels only
        tile_k: int; GPU kernels only
        swap_ab: bool; GPU kernels only
        out: Tensor [m n] or None; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result

    Returns:
        out: Tensor [m n]; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def group_gemm_mxfp8_mxfp4_nt_groupwise(a, b, a_scale, b_scale, m_indptr, mma_sm=1, tile_m=128, tile_n=128, tile_k=128, swap_ab=True, out=None, out_dtype=None):
    """Each group of MXFP8 rows times an MXFP4 matrix.

    Args:
        a: Tensor [m k]; float8_e4m3fn|float8_e5m2; left factor
        b: Tensor [e n kb]; uint8; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; uint8; decode scales of a's blocks
        b_scale: Tensor; uint8; decode scales of b's blocks
        m_indptr: Tensor [e+1]; int32; first row of a of each group, and where the last one ends
        mma_sm: int; GPU kernels only
        tile_m: int; GPU kernels only
        tile_n: int; GPU kernels only
        tile_k: int; GPU kernels only
        swap_ab: bool; GPU kernels only
        out: Tensor [m n] or None; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result

    Returns:
        out: Tensor [m n]; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def group_gemm_nvfp4_nt_groupwise(a: _T, b: Array, a_scale: Array, b_scale: Array, m_indptr: Array, alpha: Optional[Array] = None, tile_m: int = 128, tile_n: int = 128, tile_k: int = 128, swap_ab: bool = True, out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None) -> _T:
    """Each group of NVFP4 rows times an NVFP4 matrix.

    Args:
        a: Tensor [m kb]; uint8|float4_e2m1fn_x2; left factor
        b: Tensor [e n kb]; uint8|float4_e2m1fn_x2; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; float8_e4m3fn|uint8; decode scales of a's blocks
        b_scale: Tensor; float8_e4m3fn|uint8; decode scales of b's blocks
        m_indptr: Tensor [e+1]; int32; first row of a of each group, and where the last one ends
        alpha: Tensor [e] or None; float32; factor of the product
        tile_m: int; GPU kernels only
        tile_n: int; GPU kernels only
        tile_k: int; GPU kernels only
        swap_ab: bool; GPU kernels only
        out: Tensor [m n] or None; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result

    Returns:
        out: Tensor [m n]; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def grouped_gemm_nt_masked(lhs: Union[Array, tuple[Array, Array]], rhs: Union[Array, tuple[Array, Array]], out: Array, masked_m: Array, *, ab_dtype: Union[Literal['float4_e2m1fn', 'float8_e4m3fn'], str], sf_dtype: Union[Literal['float8_e4m3fn', 'float8_e8m0fnu'], str], c_dtype: str, sf_vec_size: int, mma_tiler_mn: list[int] = (128, 128), cluster_shape_mn: list[int] = (1, 1), alpha: Optional[Array] = None, alpha_dtype: Optional[str] = None, sm_count: Optional[int] = None, dst_signals: Optional[Array] = None) -> None:
    """The first masked_m rows of each expert times its weight, with scales of blocks; experts are the last axis.

    Args:
        lhs: Tensor or (Tensor, Tensor); codes and scales of the rows
        rhs: Tensor or (Tensor, Tensor); codes and scales of the weights
        out: Tensor; float32|float16|bfloat16; written; made when absent; the result
        masked_m: Tensor [q]; int32; rows of each group that are computed; the others become 0
        ab_dtype: str; one of float4_e2m1fn, float8_e4m3fn; what lhs and rhs hold: 'float4_e2m1fn' or 'float8_e4m3fn'
        sf_dtype: str; one of float8_e4m3fn, float8_e8m0fnu; of the scales: 'float8_e4m3fn' or 'float8_e8m0fnu'
        c_dtype: str; of out, by name
        sf_vec_size: int; elements that share a scale
        mma_tiler_mn: list of int; GPU kernels only
        cluster_shape_mn: list of int; GPU kernels only
        alpha: Tensor or None; float32; factor of each expert's product
        alpha_dtype: str or None; of alpha: 'float32'
        sm_count: int or None; GPU kernels only
        dst_signals: Tensor or None; not implemented: flags between kernels of a GPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def masked_bmm(a: _T, b: Array, masked_m: Array, transpose_a: bool = False, transpose_b: bool = False, out: Optional[Array] = None, backend: str = 'cutile') -> _T:
    """The first masked_m rows of each matrix of a batch times its weight.

    Args:
        a: Tensor [q x y]; float16|bfloat16; left factor
        b: Tensor [q z w]; dtype of a; right factor; usually the transposed view of a row-major weight
        masked_m: Tensor [q]; int32; rows of each group that are computed; the others become 0
        transpose_a: bool; whether a is stored with its columns first
        transpose_b: bool; whether b is stored with its columns first
        out: Tensor or None; dtype of a; written; made when absent; the result
        backend: str; one of cutile, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor; dtype of a; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def masked_scaled_bmm(a: _T, b: Array, a_scale: Array, b_scale: Array, masked_m: Array, block_scale_type: Union[Literal['nvfp4', 'mxfp4', 'mxfp8', 'mixed'], str], max_m_device: Optional[Array] = None, transpose_a: bool = False, transpose_b: bool = True, out_dtype: Optional[Union[torch.dtype, str]] = None, backend: str = 'cutile') -> _T:
    """The first masked_m rows of each matrix of a batch times its weight, FP8 or FP4 with scales of blocks.

    Args:
        a: Tensor [q m x]; left factor
        b: Tensor [q n y]; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; float8_e4m3fn|uint8; decode scales of a's blocks
        b_scale: Tensor; float8_e4m3fn|uint8; decode scales of b's blocks
        masked_m: Tensor [q]; int32; rows of each group that are computed; the others become 0
        block_scale_type: str; one of nvfp4, mxfp4, mxfp8, mixed; what a and b are: 'nvfp4', 'mxfp4', 'mxfp8', or 'mixed' (a MXFP8, b MXFP4)
        max_m_device: Tensor or None; max_m in a tensor; not needed here
        transpose_a: bool; whether a is stored with its columns first
        transpose_b: bool; whether b is stored with its columns first
        out_dtype: dtype or None; dtype of the result
        backend: str; one of cutile, auto, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_M1_16_K6144_N256(mat_a: Array, mat_b: Array, out: Array, launch_with_pdl: bool = True) -> None:
    """Router projection out = mat_a . mat_b of the shape in its name.

    Args:
        mat_a: Tensor [m k]; bfloat16; left factor
        mat_b: Tensor [k n]; bfloat16; right factor
        out: Tensor [m n]; float32|bfloat16; read and written; the result
        launch_with_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_M1_16_K7168_N128(mat_a: Array, mat_b: Array, out: Array, launch_with_pdl: bool = True) -> None:
    """Router projection out = mat_a . mat_b of the shape in its name.

    Args:
        mat_a: Tensor [m k]; bfloat16; left factor
        mat_b: Tensor [k n]; bfloat16; right factor
        out: Tensor [m n]; float32|bfloat16; read and written; the result
        launch_with_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_M1_16_K7168_N256(mat_a: Array, mat_b: Array, out: Array, launch_with_pdl: bool = True) -> None:
    """Router projection out = mat_a . mat_b of the shape in its name.

    Args:
        mat_a: Tensor [m k]; bfloat16; left factor
        mat_b: Tensor [k n]; bfloat16; right factor
        out: Tensor [m n]; float32|bfloat16; read and written; the result
        launch_with_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_M1_16_K7168_N256_bf16(mat_a: Array, mat_b: Array, out: Array, launch_with_pdl: bool = True) -> None:
    """Router projection out = mat_a . mat_b of the shape in its name.

    Args:
        mat_a: Tensor [m k]; bfloat16; left factor
        mat_b: Tensor [k n]; bfloat16; right factor
        out: Tensor [m n]; float32|bfloat16; read and written; the result
        launch_with_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_M1_16_K7168_N384(mat_a: Array, mat_b: Array, out: Array, launch_with_pdl: bool = True) -> None:
    """Router projection out = mat_a . mat_b of the shape in its name.

    Args:
        mat_a: Tensor [m k]; bfloat16; left factor
        mat_b: Tensor [k n]; bfloat16; right factor
        out: Tensor [m n]; float32|bfloat16; read and written; the result
        launch_with_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_M1_16_K7168_N384_bf16(mat_a: Array, mat_b: Array, out: Array, launch_with_pdl: bool = True) -> None:
    """Router projection out = mat_a . mat_b of the shape in its name.

    Args:
        mat_a: Tensor [m k]; bfloat16; left factor
        mat_b: Tensor [k n]; bfloat16; right factor
        out: Tensor [m n]; float32|bfloat16; read and written; the result
        launch_with_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_M1_16_K7168_N896(mat_a: Array, mat_b: Array, out: Array, launch_with_pdl: bool = True) -> None:
    """Router projection out = mat_a . mat_b of the shape in its name.

    Args:
        mat_a: Tensor [m k]; bfloat16; left factor
        mat_b: Tensor [k n]; bfloat16; right factor
        out: Tensor [m n]; float32|bfloat16; read and written; the result
        launch_with_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_M1_16_K7168_N896_bf16(mat_a: Array, mat_b: Array, out: Array, launch_with_pdl: bool = True) -> None:
    """Router projection out = mat_a . mat_b of the shape in its name.

    Args:
        mat_a: Tensor [m k]; bfloat16; left factor
        mat_b: Tensor [k n]; bfloat16; right factor
        out: Tensor [m n]; float32|bfloat16; read and written; the result
        launch_with_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_bf16(a: _T, b: Array, bias: Optional[Array] = None, pdl: bool = False, out: Optional[Array] = None, out_dtype: Union[torch.dtype, str] = torch.bfloat16, backend: str = 'cudnn') -> _T:
    """Matrix product a[m, k] . b[k, n] + bias in f32, rounded once; b may be a packed weight.

    Args:
        a: Tensor [m k]; bfloat16; left factor
        b: Tensor; bfloat16; right factor; usually the transposed view of a row-major weight
        bias: Tensor [n] or None; bfloat16; added to each row of the product
        pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU
        out: Tensor or None; dtype out_dtype; written; made when absent; the result
        out_dtype: dtype; dtype of the result
        backend: str; one of auto, cudnn, cutlass, tgv, cublaslt, cublas, cake, cuda_cublaslt, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor; dtype out_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_bf16_fp4(a: _T, b: Array, b_descale: Array, alpha: Optional[Array] = None, *, backend: str, out_dtype: Optional[Union[torch.dtype, str]] = None, out: Optional[Array] = None, block_size: int = 16, enable_pdl: bool = True) -> _T:
    """bf16 rows times an NVFP4 weight.

    Args:
        a: Tensor [m k]; bfloat16; left factor
        b: Tensor [n bytes]; uint8; the weight, two e2m1 codes a byte
        b_descale: Tensor; float8_e4m3fn|uint8; decode scales of b's blocks; with a packed b, as prepare_quantized_weights returns them
        alpha: Tensor or None; float32; factor of the product
        backend: str; one of cudnn, cute-dsl, cute-dsl-native, blackwell-native, blackwell-tiled, auto, cpu, reference; the implementation by name; 'auto' lets the library choose
        out_dtype: dtype or None; dtype of the result
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        block_size: int; elements that share a scale
        enable_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        out: Tensor; float32|float16|bfloat16; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_fp4(a: _T, b: Array, a_descale: Array, b_descale: Array, alpha: Optional[Array] = None, out_dtype: Union[torch.dtype, str] = torch.bfloat16, out: Optional[Array] = None, block_size: int = 16, use_8x4_sf_layout: bool = False, backend: str = 'auto', use_nvfp4: bool = True, enable_pdl: bool = True) -> _T:
    """Product of NVFP4 or MXFP4 matrices times alpha, in f32, rounded once.

    Args:
        a: Tensor [m kb]; uint8|float4_e2m1fn_x2; left factor
        b: Tensor; uint8|float4_e2m1fn_x2; right factor; usually the transposed view of a row-major weight
        a_descale: Tensor; float8_e4m3fn|uint8; decode scales of a's blocks
        b_descale: Tensor; float8_e4m3fn|uint8; decode scales of b's blocks; with a packed b, as prepare_quantized_weights returns them
        alpha: Tensor or None; float32; factor of the product
        out_dtype: dtype; dtype of the result
        out: Tensor or None; dtype out_dtype; written; made when absent; the result
        block_size: int; elements that share a scale
        use_8x4_sf_layout: bool; a's scale factors are laid out in tiles of 8x4 instead of 128x4
        backend: str; one of auto, cudnn, trtllm, cutlass, cute-dsl, cutedsl_low_latency, b12x, cpu, reference; the implementation by name; 'auto' lets the library choose
        use_nvfp4: bool; NVFP4 (e4m3 scales of 16) instead of MXFP4 (powers of two for 32)
        enable_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        out: Tensor; dtype out_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_fp8(a: _T, b: Array, alpha: Optional[Array] = None, out_dtype: Union[torch.dtype, str] = torch.bfloat16, out: Optional[Array] = None, backend: str = 'trtllm_low_latency') -> _T:
    """Product of FP8 matrices, alpha * a[m, k] . b; b is an unpacked [n, k] weight or a packed one.

    Args:
        a: Tensor [m k]; float8_e4m3fn|float8_e5m2; left factor
        b: Tensor; float8_e4m3fn|float8_e5m2; right factor; usually the transposed view of a row-major weight
        alpha: Tensor or None; float32; factor of the product
        out_dtype: dtype; dtype of the result
        out: Tensor or None; dtype out_dtype; written; made when absent; the result
        backend: str; one of trtllm_low_latency, cutedsl_low_latency, cublas, cudnn, cutlass, auto, cuda_cublaslt, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor; dtype out_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_gguf(a: _T, b_blocks: Array, format: Union[Literal['Q4_0', 'Q4_1', 'Q8_0', 'Q4_K', 'Q6_K'], str], out: Optional[Array] = None, out_dtype: Union[torch.dtype, str] = torch.bfloat16, quantize_a: bool = False) -> _T:
    """a[m, k] times a weight in GGUF blocks, exact quants, f32 scales and sums; a as bf16 or in 8-bit blocks.

    Args:
        a: Tensor [m k]; bfloat16; left factor
        b_blocks: Tensor; uint8; the weight as blocks of the GGUF file, or from prepare_gguf_weights
        format: str; one of Q4_0, Q4_1, Q8_0, Q4_K, Q6_K; name of the GGUF block format
        out: Tensor or None; dtype out_dtype; written; made when absent; the result
        out_dtype: dtype; dtype of the result
        quantize_a: bool; a in blocks of 8-bit integers: twice as fast, some 0.4 % rms of the result

    Returns:
        out: Tensor; dtype out_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mm_mxfp8(a: _T, b: Array, a_descale: Array, b_descale: Array, out: Optional[Array] = None, out_dtype: Union[torch.dtype, str] = torch.bfloat16, use_8x4_sf_layout: bool = False, backend: str = 'auto') -> _T:
    """Product of MXFP8 matrices: e4m3 elements, a power-of-two scale for 32 along k.

    Args:
        a: Tensor [m k]; float8_e4m3fn; left factor
        b: Tensor; float8_e4m3fn; right factor; usually the transposed view of a row-major weight
        a_descale: Tensor; uint8; decode scales of a's blocks
        b_descale: Tensor; uint8; decode scales of b's blocks; with a packed b, as prepare_quantized_weights returns them
        out: Tensor or None; dtype out_dtype; written; made when absent; the result
        out_dtype: dtype; dtype of the result
        use_8x4_sf_layout: bool; a's scale factors are laid out in tiles of 8x4 instead of 128x4
        backend: str; one of auto, cutlass, cute-dsl, cutedsl_low_latency, trtllm, cudnn, b12x, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor; dtype out_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def pad_indptr_to_multiple_of_4(m_indptr: _T) -> tuple[_T, _T]:
    """Offsets of groups of rows, each rounded up to a multiple of 4 rows, and the new place of each row.

    Args:
        m_indptr: Tensor [n]; int32|int64; first row of a of each group, and where the last one ends

    Returns:
        padded_m_indptr: Tensor [n]; dtype of m_indptr; m_indptr of groups that are padded
        padded_m_rank: Tensor; dtype of m_indptr; place of each row once groups are padded

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def prepare_bf16_fp4_weights(b: _T, b_descale: Array, alpha: Optional[Array] = None, *, backend: str, block_size: int = 16) -> tuple[_T, _T, _T]:
    """Copies an NVFP4 weight and its scales for mm_bf16_fp4, which reads them unpacked.

    Args:
        b: Tensor [n bytes]; uint8; right factor; usually the transposed view of a row-major weight
        b_descale: Tensor; float8_e4m3fn|uint8; decode scales of b's blocks; with a packed b, as prepare_quantized_weights returns them
        alpha: Tensor or None; float32; factor of the product
        backend: str; one of cudnn, cute-dsl, cute-dsl-native, blackwell-native, blackwell-tiled, auto, cpu, reference; the implementation by name; 'auto' lets the library choose
        block_size: int; elements that share a scale

    Returns:
        b_prepared: Tensor; uint8
        b_descale_prepared: Tensor; dtype of b_descale
        alpha_prepared: Tensor; float32

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def prepare_gguf_weights(b_blocks: _T, format: Union[Literal['Q4_0', 'Q4_1', 'Q8_0'], str], out: Optional[Array] = None) -> _T:
    """Packs rows of GGUF blocks into panels, which mm_gguf reads at memory speed.

    Args:
        b_blocks: Tensor [n bytes]; uint8; the weight as blocks of the GGUF file, or from prepare_gguf_weights
        format: str; one of Q4_0, Q4_1, Q8_0; name of the GGUF block format
        out: Tensor or None; uint8; written; made when absent; the result

    Returns:
        out: Tensor; uint8; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def prepare_mm_weights(b: _T, out: Optional[Array] = None) -> _T:
    """Packs a weight b[k, n] once into the layout that mm_bf16 reads fastest.

    Args:
        b: Tensor [k n]; bfloat16; right factor; usually the transposed view of a row-major weight
        out: Tensor or None; bfloat16; written; made when absent; the result

    Returns:
        out: Tensor; bfloat16; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def prepare_quantized_weights(b: _T, b_descale: Optional[Array] = None, block_size: Optional[int] = None, is_sf_swizzled_layout: bool = True) -> Union[_T, Any]:
    """Packs a weight of FP8 or FP4 and its scale factors into panels, which products with few rows read at memory speed.

    Args:
        b: Tensor; float8_e4m3fn|uint8|float4_e2m1fn_x2; the weight: [n, k] e4m3, or [n, k / 2] bytes of FP4, or a stack
        b_descale: Tensor or None; float8_e4m3fn|uint8; decode scales of b's blocks; with a packed b, as prepare_quantized_weights returns them
        block_size: int or None; elements that share a scale
        is_sf_swizzled_layout: bool; scale factors are stored in tiles instead of row by row

    Returns:
        b_prepared: Tensor; dtype of b
        b_descale_prepared: Tensor; dtype of b_descale, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def ragged_block_scaled_bmm(a: _T, b: Array, a_scale: Array, b_scale: Array, m_indptr: Array, max_m: int, max_m_device: Optional[Array] = None, transpose_a: bool = False, transpose_b: bool = True, out_dtype: Optional[Union[torch.dtype, str]] = None, segment_alignment: int = 128, backend: str = 'cutile') -> _T:
    """Each segment of rows times its matrix, FP8 with f32 scales of blocks.

    Args:
        a: Tensor [m k]; float8_e4m3fn; left factor
        b: Tensor [q n k]; float8_e4m3fn; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; float32; decode scales of a's blocks
        b_scale: Tensor; float32; decode scales of b's blocks
        m_indptr: Tensor [q+1]; int32; first row of a of each group, and where the last one ends
        max_m: int; the most rows of a segment
        max_m_device: Tensor or None; max_m in a tensor; not needed here
        transpose_a: bool; whether a is stored with its columns first
        transpose_b: bool; whether b is stored with its columns first
        out_dtype: dtype or None; dtype of the result
        segment_alignment: int; a promise about m_indptr: its entries are multiples of this
        backend: str; one of cutile, auto, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor [m n]; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def ragged_bmm(a: _T, b: Array, m_indptr: Array, max_m: int, max_m_device: Optional[Array] = None, transpose_a: bool = False, transpose_b: bool = True, out_dtype: Optional[Union[torch.dtype, str]] = None, backend: str = 'cutile') -> _T:
    """Each segment of rows times its matrix.

    Args:
        a: Tensor [x y]; float16|bfloat16; left factor
        b: Tensor [q z w]; dtype of a; right factor; usually the transposed view of a row-major weight
        m_indptr: Tensor [q+1]; int32; first row of a of each group, and where the last one ends
        max_m: int; the most rows of a segment
        max_m_device: Tensor or None; max_m in a tensor; not needed here
        transpose_a: bool; whether a is stored with its columns first
        transpose_b: bool; whether b is stored with its columns first
        out_dtype: dtype or None; dtype of the result
        backend: str; one of cutile, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor; float32|float16|bfloat16; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def ragged_scaled_bmm(a: _T, b: Array, a_scale: Array, b_scale: Array, m_indptr: Array, max_m: int, block_scale_type: Union[Literal['nvfp4', 'mxfp4', 'mxfp8', 'mixed'], str], transpose_a: bool = False, transpose_b: bool = True, static_persistent: bool = True, swizzled_layout_a: bool = True, a_global_scale: Optional[Array] = None, b_global_scale: Optional[Array] = None, backend: str = 'cutile') -> _T:
    """Each segment of rows times its matrix, FP8 or FP4 with scales of blocks, in f32.

    Args:
        a: Tensor [m x]; left factor
        b: Tensor [q n y]; right factor; usually the transposed view of a row-major weight
        a_scale: Tensor; float8_e4m3fn|uint8; decode scales of a's blocks
        b_scale: Tensor; float8_e4m3fn|uint8; decode scales of b's blocks
        m_indptr: Tensor [q+1]; int32; first row of a of each group, and where the last one ends
        max_m: int; the most rows of a segment
        block_scale_type: str; one of nvfp4, mxfp4, mxfp8, mixed; what a and b are: 'nvfp4', 'mxfp4', 'mxfp8', or 'mixed' (a MXFP8, b MXFP4)
        transpose_a: bool; whether a is stored with its columns first
        transpose_b: bool; whether b is stored with its columns first
        static_persistent: bool; GPU kernels only
        swizzled_layout_a: bool; a's scale factors are stored in tiles; the only supported layout
        a_global_scale: Tensor or None; float32; factor of all of a; 1 when absent
        b_global_scale: Tensor [q] or None; float32; factor of each matrix of b; 1 when absent
        backend: str; one of cutile, auto, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor [m n]; float32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def tinygemm_bf16(input: Array, weight: Array, out: Array, bias: Optional[Array] = None, use_pdl: bool = False) -> None:
    """out = input . weight^T + bias.

    Args:
        input: Tensor [m k]; bfloat16; rows to work on
        weight: Tensor [n k]; bfloat16; factor of each element; in Gemma's norms 1 + weight is
        out: Tensor [m n]; bfloat16; read and written; the result
        bias: Tensor [n] or None; bfloat16; added to each row of the product
        use_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer._linear import fp4_linear as fp4_linear
from flashinfer._linear import fp4_linear_swiglu as fp4_linear_swiglu
from flashinfer._linear import fp4_qkv_qknorm_rope as fp4_qkv_qknorm_rope
from flashinfer._linear import fp8_linear as fp8_linear
from flashinfer._linear import fp8_linear_swiglu as fp8_linear_swiglu
from flashinfer._linear import fp8_qkv_qknorm_rope as fp8_qkv_qknorm_rope
from flashinfer._availability import is_cuda_tile_available as is_cuda_tile_available
from flashinfer._svdquant import mm_nvfp4_svdquant as mm_nvfp4_svdquant
from flashinfer import nvfp4_quantize_smooth as nvfp4_quantize_smooth
from flashinfer._svdquant import svdquant_linear as svdquant_linear
from flashinfer._svdquant import tgv_gemm_sm100 as tgv_gemm_sm100
class PreparedBatchDeepGemmFp8NtGroupwise:
    """flashinfer.gemm.PreparedBatchDeepGemmFp8NtGroupwise is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class PreparedGroupGemmFp8NtGroupwiseContiguous:
    """flashinfer.gemm.PreparedGroupGemmFp8NtGroupwiseContiguous is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class PreparedGroupGemmFp8NtGroupwiseContiguousSiluQuant:
    """flashinfer.gemm.PreparedGroupGemmFp8NtGroupwiseContiguousSiluQuant is not available: this is for one model or one GPU generation; the ops take any sizes."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def allocate_kimi_k3_fp8_projection_workspace(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.gemm.allocate_kimi_k3_fp8_projection_workspace is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def create_scale_factor_tensor(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.cute_dsl.create_scale_factor_tensor is not available: this is a kernel of one GPU generation; the op of the same purpose is in flashinfer.norm, flashinfer.gemm or flashinfer.fused_moe."""
    ...

def kimi_k3_fp8_projection(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.gemm.kimi_k3_fp8_projection is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def kimi_k3_fp8_projection_launcher(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.gemm.kimi_k3_fp8_projection_launcher is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_batch_deepgemm_fp8_nt_groupwise(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.gemm.prepare_batch_deepgemm_fp8_nt_groupwise is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_group_gemm_fp8_nt_groupwise_contiguous(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.gemm.prepare_group_gemm_fp8_nt_groupwise_contiguous is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_group_gemm_fp8_nt_groupwise_contiguous_silu_quant(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.gemm.prepare_group_gemm_fp8_nt_groupwise_contiguous_silu_quant is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_kimi_k3_fp8_projection(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.gemm.prepare_kimi_k3_fp8_projection is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_kimi_k3_fp8_projection_weights(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.gemm.prepare_kimi_k3_fp8_projection_weights is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
