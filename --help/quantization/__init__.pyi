# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def block_scale_interleave(unswizzled_sf, *, out=None):
    """Linear block scales to tiles of 128 rows x 4 columns.

    Args:
        unswizzled_sf: Tensor; bfloat16|uint8; scale factors row by row
        out: Tensor or None; dtype of unswizzled_sf; written; made when absent; the result

    Returns:
        out: Tensor; dtype of unswizzled_sf; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def e2m1_and_ufp8sf_scale_to_float(e2m1_tensor: _T, ufp8_scale_tensor: Array, global_scale_tensor: Optional[Array] = None, sf_vec_size: int = 16, ufp8_type: int = 1, is_sf_swizzled_layout: bool = True, is_sf_8x4_layout: bool = False) -> _T:
    """Packed e2m1 codes times block scales times the decode scale, as f32.

    Args:
        e2m1_tensor: Tensor [m half]; uint8|float4_e2m1fn_x2; two e2m1 codes a byte, the first in the low half
        ufp8_scale_tensor: Tensor; float8_e4m3fn|uint8; scale factors of the blocks, as bytes
        global_scale_tensor: Tensor or None; float32; factor of the whole tensor; 1 when absent
        sf_vec_size: int; elements that share a scale
        ufp8_type: int; 0: scales are powers of two (ue8m0); 1: e4m3
        is_sf_swizzled_layout: bool; scale factors are stored in tiles instead of row by row
        is_sf_8x4_layout: bool; scale factors are stored in tiles of 8x4 instead of 128x4

    Returns:
        output: Tensor [m 2*half]; float32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fp4_quantize(input: _T, global_scale: Optional[Array] = None, sf_vec_size: int = 16, sf_use_ue8m0: bool = False, is_sf_swizzled_layout: bool = True, is_sf_8x4_layout: bool = False, is_global_scale_inversed: bool = False, enable_pdl: Optional[bool] = None, backend: str = 'cuda', nvfp4_4over6: Any = ...) -> tuple[_T, _T]:
    """Rows as packed e2m1 codes with a scale byte for 16 or 32 elements (NVFP4, MXFP4).

    Args:
        input: Tensor; float16|bfloat16|float8_e4m3fn; rows to work on
        global_scale: Tensor or None; float32; one scale for the whole tensor
        sf_vec_size: int; elements that share a scale
        sf_use_ue8m0: bool; scales are powers of two instead of e4m3
        is_sf_swizzled_layout: bool; scale factors are stored in tiles instead of row by row
        is_sf_8x4_layout: bool; scale factors are stored in tiles of 8x4 instead of 128x4
        is_global_scale_inversed: bool; global_scale is the reciprocal
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        backend: str; one of cuda, cute-dsl, cake, cpu, reference; the implementation by name; 'auto' lets the library choose
        nvfp4_4over6: object; the recipe by which each block takes the better of two scales; None: one scale

    Returns:
        x_q: Tensor; uint8
        sf: Tensor; uint8

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def make_nvfp4_global_scale(input_tensor: _T, per_token_activation: bool, global_scale: Optional[float] = None, nvfp4_4over6_config: Any = None) -> _T:
    """The global scale of NVFP4, from the largest magnitude of a tensor.

    Args:
        input_tensor: Tensor; float32|float16|bfloat16; what the scale is for
        per_token_activation: bool; the scale of quantisation with a scale for each row
        global_scale: float or None; per tensor: taken instead of 448 * 6 over the largest magnitude
        nvfp4_4over6_config: object; the recipe of the quantisation, which may set the largest block scale to 256

    Returns:
        out: Tensor; float32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mxfp4_dequantize(a_fp4: _T, a_sf: Array, sfLayout: Union[SfLayout, int] = SfLayout.layout_128x4) -> _T:
    """MXFP4 rows as f32.

    Args:
        a_fp4: Tensor [m half]; uint8|float4_e2m1fn_x2; two e2m1 codes a byte, the first in the low half
        a_sf: Tensor; uint8; scale factors of the blocks, as bytes
        sfLayout: int; layout of the scale factors: tiles of 128x4 or 8x4, or row by row

    Returns:
        output: Tensor [m 2*half]; float32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mxfp4_dequantize_host(weight: _T, scale: Array, group_size: int = 32) -> _T:
    """MXFP4 rows with linear scales as f32.

    Args:
        weight: Tensor [m half]; uint8|float4_e2m1fn_x2; factor of each element; in Gemma's norms 1 + weight is
        scale: Tensor [m groups]; uint8; scale of the quantised values
        group_size: int; elements that share a scale

    Returns:
        output: Tensor [m 2*half]; float32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mxfp4_quantize(a: _T, backend: str = 'cuda', enable_pdl: Optional[bool] = None, sfLayout: Union[SfLayout, int] = SfLayout.layout_128x4) -> tuple[_T, _T]:
    """Rows as MXFP4: e2m1 codes, a power-of-two scale for 32.

    Args:
        a: Tensor; float16|bfloat16; left factor
        backend: str; one of cuda, cute-dsl, cpu, reference; the implementation by name; 'auto' lets the library choose
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        sfLayout: int; layout of the scale factors: tiles of 128x4 or 8x4, or row by row

    Returns:
        x_q: Tensor; uint8
        sf: Tensor; uint8

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mxfp8_dequantize_host(input: _T, scale_tensor: Array, is_sf_swizzled_layout: bool = True, sf_swizzle_layout: Optional[Union[SfLayout, int]] = None) -> _T:
    """MXFP8 rows as f32.

    Args:
        input: Tensor [m k]; float8_e4m3fn|uint8; rows to work on
        scale_tensor: Tensor; uint8; scale factors of the blocks, as bytes
        is_sf_swizzled_layout: bool; scale factors are stored in tiles instead of row by row
        sf_swizzle_layout: int or None; layout of the scale factors, in place of is_sf_swizzled_layout

    Returns:
        output: Tensor [m k]; float32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mxfp8_grouped_quantize(a: _T, mask: Array, backend: str = 'cutile') -> tuple[_T, _T]:
    """The first mask[b] rows of each group as MXFP8.

    Args:
        a: Tensor [b m k]; float16|bfloat16; left factor
        mask: Tensor [b]; int32; rows of each group that count
        backend: str; one of cutile, cake, cuda, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        x_q: Tensor; float8_e4m3fn
        sf: Tensor; uint8

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mxfp8_quantize(input: _T, is_sf_swizzled_layout: bool = True, alignment: int = 32, enable_pdl: Optional[bool] = None, backend: str = 'cuda', sf_swizzle_layout: Optional[Union[SfLayout, int]] = None) -> tuple[_T, _T]:
    """Rows as MXFP8: e4m3 codes, a power-of-two scale for 32.

    Args:
        input: Tensor; float32|float16|bfloat16; rows to work on
        is_sf_swizzled_layout: bool; scale factors are stored in tiles instead of row by row
        alignment: int; columns are padded with zeros to a multiple of this
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        backend: str; one of cuda, cute-dsl, cpu, reference; the implementation by name; 'auto' lets the library choose
        sf_swizzle_layout: int or None; layout of the scale factors, in place of is_sf_swizzled_layout

    Returns:
        x_q: Tensor; float8_e4m3fn
        sf: Tensor; uint8

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def nvfp4_batched_quantize(a: _T, a_global_sf: Array, sf_vec_size: int = 16, nvfp4_4over6: Any = ...) -> tuple[_T, _T]:
    """Matrices of a batch as NVFP4, each with its own 128x4 scales.

    Args:
        a: Tensor [b m k]; float16|bfloat16; left factor
        a_global_sf: Tensor; float32; encode scale: one for all, or one a row or batch
        sf_vec_size: int; elements that share a scale
        nvfp4_4over6: object; the recipe by which each block takes the better of two scales; None: one scale

    Returns:
        x_q: Tensor; uint8
        sf: Tensor; uint8

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def nvfp4_block_scale_interleave(unswizzled_sf: _T, *, out: Optional[Array] = None) -> _T:
    """Linear block scales to tiles of 128 rows x 4 columns.

    Args:
        unswizzled_sf: Tensor; bfloat16|uint8; scale factors row by row
        out: Tensor or None; dtype of unswizzled_sf; written; made when absent; the result

    Returns:
        out: Tensor; dtype of unswizzled_sf; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def nvfp4_kv_dequantize(fp4_data: _T, block_scales: Array, global_scale: Array, output_dtype: Union[torch.dtype, str] = torch.bfloat16) -> _T:
    """Rows of NVFP4 as floats: code * scale * global_scale.

    Args:
        fp4_data: Tensor [m 8*blocks]; uint8|float4_e2m1fn_x2; two e2m1 codes a byte, the first in the low half
        block_scales: Tensor [m blocks]; float8_e4m3fn|uint8; one scale for 16 elements, as bytes of e4m3
        global_scale: Tensor; float32; one scale for the whole tensor
        output_dtype: dtype; dtype of the result

    Returns:
        output: Tensor [m 16*blocks]; dtype output_dtype; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def nvfp4_kv_dequantize_paged(paged_kv_cache: Union[Array, tuple[Array, Array]], kv_cache_sf: Union[Array, tuple[Array, Array]], block_tables: Array, seq_lens: Array, k_scale: Union[float, Array], v_scale: Union[float, Array], output_k: Array, output_v: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD') -> None:
    """Requests of a paged NVFP4 cache as contiguous rows of floats.

    Args:
        paged_kv_cache: Tensor or (Tensor, Tensor); uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
        kv_cache_sf: Tensor or (Tensor, Tensor); float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache
        block_tables: Tensor [b max_pages]; int32|int64; the pages of each request, one row each; entries after the last one are ignored
        seq_lens: Tensor [b]; int32|int64; KV tokens of each request
        k_scale: number or Tensor; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
        v_scale: number or Tensor; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
        output_k: Tensor [b max_len hkv dk]; float32|float16|bfloat16; read and written; K as floats, [b, tokens, heads, dim]
        output_v: Tensor [b max_len hkv dv]; dtype of output_k; read and written; V as floats, [b, tokens, heads, dim]
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def nvfp4_kv_quantize(input: _T, global_scale: Array) -> tuple[_T, _T]:
    """Quantises rows to NVFP4: two e2m1 codes a byte, an e4m3 scale for 16.

    Args:
        input: Tensor [m 16*blocks]; float16|bfloat16; rows to work on
        global_scale: Tensor; float32; one scale for the whole tensor

    Returns:
        fp4_output: Tensor [m 8*blocks]; uint8
        block_scales: Tensor [m blocks]; uint8; one scale for 16 elements, as bytes of e4m3

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def nvfp4_quantize(a: _T, a_global_sf: Union[float, Array], sfLayout: Union[SfLayout, int] = SfLayout.layout_128x4, do_shuffle: bool = False, sf_vec_size: int = 16, enable_pdl: Optional[bool] = None, backend: str = 'cuda', per_token_activation: bool = False, expanded_idx_to_permuted_idx: Optional[Array] = None, out_scale: Optional[Array] = None, nvfp4_4over6: Any = ...) -> Union[tuple[_T, _T], Any]:
    """Rows as NVFP4: e2m1 codes, an e4m3 scale for 16, a global scale or one for each row.

    Args:
        a: Tensor; float16|bfloat16|float8_e4m3fn; left factor
        a_global_sf: number or Tensor; encode scale: one for all, or one a row or batch
        sfLayout: int; layout of the scale factors: tiles of 128x4 or 8x4, or row by row
        do_shuffle: bool; rows of codes and scales are shuffled into the order of GPU kernels
        sf_vec_size: int; elements that share a scale
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        backend: str; one of cuda, cute-dsl, cake, cpu, reference; the implementation by name; 'auto' lets the library choose
        per_token_activation: bool; each row has a scale of its own, which is returned
        expanded_idx_to_permuted_idx: Tensor or None; int32; row of each choice of an expert, or -1
        out_scale: Tensor or None; float32; factor of the scales that are returned
        nvfp4_4over6: object; the recipe by which each block takes the better of two scales; None: one scale

    Returns:
        x_q: Tensor; uint8
        sf: Tensor; uint8
        per_token_scale: Tensor; float32; factor of each row, applied after the first product, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def nvfp4_quantize_paged_kv_cache(k_cache: _T, v_cache: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'HND', k_global_sf: Optional[Array] = None, v_global_sf: Optional[Array] = None) -> tuple[Any, ...]:
    """Quantises a paged cache to NVFP4, V's scales interleaved by four tokens.

    Args:
        k_cache: Tensor [p x y d]; float16|bfloat16; pages of keys
        v_cache: Tensor [p x y d]; dtype of k_cache; pages of values
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
        k_global_sf: Tensor or None; float32; encode scale of K; 448 / its largest magnitude when absent
        v_global_sf: Tensor or None; float32; encode scale of V; 448 / its largest magnitude when absent

    Returns:
        kv_cache_fp4: Tensor; uint8; a tuple of its slices along the first dimension
        kv_cache_sf: Tensor; float8_e4m3fn; a tuple of its slices along the first dimension; scale factors of a 4-bit cache, in the form of the cache
        global_scale: Tensor; float32; its elements, each a number of its own; one scale for the whole tensor

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def packbits(x: _T, bitorder: Union[Literal['big', 'little'], str] = 'big') -> _T:
    """Eight booleans a byte, as numpy.packbits.

    Args:
        x: Tensor [n]; uint8|bool; elements to work on
        bitorder: str; one of big, little; whether the first element becomes the highest ('big') or the lowest ('little') bit of a byte

    Returns:
        y: Tensor; uint8

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def per_tensor_quant_fp8(x: _T, scale: Optional[Array] = None, dst_dtype: Union[torch.dtype, str] = torch.float8_e4m3fn) -> tuple[_T, _T]:
    """8-bit floats with one f32 scale.

    Args:
        x: Tensor; float32|float16|bfloat16; elements to work on
        scale: Tensor or None; float32; scale of the quantised values
        dst_dtype: dtype; 8-bit dtype of the result

    Returns:
        x_q: Tensor
        x_s: Tensor; float32

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def per_token_group_quant_8bit(x: _T, group_size: int, eps: float = 1e-10, dst_dtype: Optional[Union[torch.dtype, str]] = None, column_major_scales: bool = False, scale_tma_aligned: bool = False, scale_ue8m0: bool = False, backend: str = 'cutile') -> tuple[_T, _T]:
    """8-bit floats or integers with an f32 scale for each group of a row.

    Args:
        x: Tensor; float32|float16|bfloat16; elements to work on
        group_size: int; elements that share a scale
        eps: float; keeps the root (added to the variance or mean square) or the scale (least magnitude) from zero
        dst_dtype: dtype or None; 8-bit dtype of the result
        column_major_scales: bool; the rows of the scales are the fastest in memory
        scale_tma_aligned: bool; columns of the scales are padded to a multiple of four rows
        scale_ue8m0: bool; scales are powers of two
        backend: str; one of cutile, cuda, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        x_q: Tensor
        x_s: Tensor; float32

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def scaled_fp4_grouped_quantize(a: _T, mask: Array, a_global_sf: Array, nvfp4_4over6: Any = ...) -> tuple[_T, _T]:
    """The first mask[b] rows of each expert as NVFP4.

    Args:
        a: Tensor [b m k]; float16|bfloat16; left factor
        mask: Tensor [b]; int32; rows of each group that are computed
        a_global_sf: Tensor; float32; encode scale: one for all, or one a row or batch
        nvfp4_4over6: object; the recipe by which each block takes the better of two scales; None: one scale

    Returns:
        x_q: Tensor; uint8
        sf: Tensor; float8_e4m3fn

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def segment_packbits(x: _T, indptr: Array, bitorder: Union[Literal['big', 'little'], str] = 'big') -> tuple[_T, _T]:
    """Eight booleans a byte; each segment starts at a byte.

    Args:
        x: Tensor [n]; uint8|bool; elements to work on
        indptr: Tensor [b+1]; int32|int64; first entry of each request in the list that it divides, and the list's length at the end
        bitorder: str; one of big, little; whether the first element becomes the highest ('big') or the lowest ('little') bit of a byte

    Returns:
        y: Tensor; uint8
        new_indptr: Tensor [b+1]; dtype of indptr

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def shuffle_matrix_a(input_tensor: _T, epilogue_tile_m: int) -> _T:
    """Rows of a weight in the order that tile-programmed kernels read.

    Args:
        input_tensor: Tensor [m k]; rows to work on
        epilogue_tile_m: int; rows of a tile of the shuffle

    Returns:
        output: Tensor [m k]; dtype of input_tensor; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def shuffle_matrix_sf_a(input_tensor: _T, epilogue_tile_m: int, num_elts_per_sf: int = 16) -> _T:
    """Linear block scales shuffled as shuffle_matrix_a does, then in tiles of 128x4.

    Args:
        input_tensor: Tensor [m c]; float8_e4m3fn|uint8; rows to work on
        epilogue_tile_m: int; rows of a tile of the shuffle
        num_elts_per_sf: int; elements that share a scale; changes nothing

    Returns:
        output: Tensor; dtype of input_tensor; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def silu_and_mul_nvfp4_quantize(input: _T, global_scale: Array, sf_vec_size: int = 16, is_sf_swizzled_layout: bool = True, is_sf_8x4_layout: bool = False, enable_pdl: Optional[bool] = None, nvfp4_4over6: Any = ...) -> tuple[_T, _T]:
    """silu(input[..., :k]) * input[..., k:], rounded, as NVFP4.

    Args:
        input: Tensor; float16|bfloat16; rows to work on
        global_scale: Tensor; float32; one scale for the whole tensor
        sf_vec_size: int; elements that share a scale
        is_sf_swizzled_layout: bool; scale factors are stored in tiles instead of row by row
        is_sf_8x4_layout: bool; scale factors are stored in tiles of 8x4 instead of 128x4
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        nvfp4_4over6: object; the recipe by which each block takes the better of two scales; None: one scale

    Returns:
        x_q: Tensor; uint8
        sf: Tensor; uint8

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer._four_over_six import NVFP44Over6Config as NVFP44Over6Config
from flashinfer._four_over_six import NVFP44Over6ErrMode as NVFP44Over6ErrMode
from flashinfer.jit.quantization import gen_quantization_module as gen_quantization_module
from flashinfer._four_over_six import nvfp4_4over6_code as nvfp4_4over6_code
from flashinfer._four_over_six import nvfp4_4over6_from_code as nvfp4_4over6_from_code
from flashinfer._four_over_six import nvfp4_e4m3_max as nvfp4_e4m3_max
from flashinfer._four_over_six import resolve_nvfp4_4over6 as resolve_nvfp4_4over6