# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def apply_llama31_rope(q: _T, k: Array, indptr: Array, offsets: Array, rotary_dim: Optional[int] = None, interleave: bool = False, rope_scale: float = 8, rope_theta: float = 500000.0, low_freq_factor: float = 1, high_freq_factor: float = 4, old_context_len: int = 8192) -> tuple[_T, _T]:
    """Rotates pairs of q and k by their position times Llama 3.1's interpolated frequencies.

    Args:
        q: Tensor [n hq d]; float32|float16|bfloat16; queries
        k: Tensor [n hk d]; dtype of q; keys
        indptr: Tensor [b+1]; int32|int64; first entry of each request in the list that it divides, and the list's length at the end
        offsets: Tensor [b]; int32|int64; position of each request's first token
        rotary_dim: int or None; elements of a head that are rotated; all when absent
        interleave: bool; rotates neighbours (2i, 2i+1) instead of halves (i, i + rotary_dim / 2)
        rope_scale: float; positions are divided by this
        rope_theta: float; base of the rotations' frequencies
        low_freq_factor: float; wavelengths above old_context_len / this are scaled by rope_scale (Llama 3.1)
        high_freq_factor: float; wavelengths below old_context_len / this are not scaled (Llama 3.1)
        old_context_len: int; context length that the model was trained with before scaling (Llama 3.1)

    Returns:
        q_rope: Tensor [n hq d]; dtype of q; may be q itself; the queries' position part
        k_rope: Tensor [n hk d]; dtype of k; may be k itself; the keys' position part

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def apply_llama31_rope_inplace(q: Array, k: Array, indptr: Array, offsets: Array, rotary_dim: Optional[int] = None, interleave: bool = False, rope_scale: float = 8, rope_theta: float = 500000.0, low_freq_factor: float = 1, high_freq_factor: float = 4, old_context_len: int = 8192) -> None:
    """Rotates pairs of q and k by their position times Llama 3.1's interpolated frequencies.

    Args:
        q: Tensor [n hq d]; float32|float16|bfloat16; read and written; queries
        k: Tensor [n hk d]; dtype of q; read and written; keys
        indptr: Tensor [b+1]; int32|int64; first entry of each request in the list that it divides, and the list's length at the end
        offsets: Tensor [b]; int32|int64; position of each request's first token
        rotary_dim: int or None; elements of a head that are rotated; all when absent
        interleave: bool; rotates neighbours (2i, 2i+1) instead of halves (i, i + rotary_dim / 2)
        rope_scale: float; positions are divided by this
        rope_theta: float; base of the rotations' frequencies
        low_freq_factor: float; wavelengths above old_context_len / this are scaled by rope_scale (Llama 3.1)
        high_freq_factor: float; wavelengths below old_context_len / this are not scaled (Llama 3.1)
        old_context_len: int; context length that the model was trained with before scaling (Llama 3.1)

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def apply_llama31_rope_pos_ids(q: _T, k: Array, pos_ids: Array, rotary_dim: Optional[int] = None, interleave: bool = False, rope_scale: float = 8, rope_theta: float = 500000.0, low_freq_factor: float = 1, high_freq_factor: float = 4, old_context_len: int = 8192) -> tuple[_T, _T]:
    """Rotates pairs of q and k by their position times Llama 3.1's interpolated frequencies.

    Args:
        q: Tensor [n hq d]; float32|float16|bfloat16; queries
        k: Tensor [n hk d]; dtype of q; keys
        pos_ids: Tensor [n]; int32|int64; position of each token
        rotary_dim: int or None; elements of a head that are rotated; all when absent
        interleave: bool; rotates neighbours (2i, 2i+1) instead of halves (i, i + rotary_dim / 2)
        rope_scale: float; positions are divided by this
        rope_theta: float; base of the rotations' frequencies
        low_freq_factor: float; wavelengths above old_context_len / this are scaled by rope_scale (Llama 3.1)
        high_freq_factor: float; wavelengths below old_context_len / this are not scaled (Llama 3.1)
        old_context_len: int; context length that the model was trained with before scaling (Llama 3.1)

    Returns:
        q_rope: Tensor [n hq d]; dtype of q; may be q itself; the queries' position part
        k_rope: Tensor [n hk d]; dtype of k; may be k itself; the keys' position part

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def apply_llama31_rope_pos_ids_inplace(q: Array, k: Array, pos_ids: Array, rotary_dim: Optional[int] = None, interleave: bool = False, rope_scale: float = 8, rope_theta: float = 500000.0, low_freq_factor: float = 1, high_freq_factor: float = 4, old_context_len: int = 8192) -> None:
    """Rotates pairs of q and k by their position times Llama 3.1's interpolated frequencies.

    Args:
        q: Tensor [n hq d]; float32|float16|bfloat16; read and written; queries
        k: Tensor [n hk d]; dtype of q; read and written; keys
        pos_ids: Tensor [n]; int32|int64; position of each token
        rotary_dim: int or None; elements of a head that are rotated; all when absent
        interleave: bool; rotates neighbours (2i, 2i+1) instead of halves (i, i + rotary_dim / 2)
        rope_scale: float; positions are divided by this
        rope_theta: float; base of the rotations' frequencies
        low_freq_factor: float; wavelengths above old_context_len / this are scaled by rope_scale (Llama 3.1)
        high_freq_factor: float; wavelengths below old_context_len / this are not scaled (Llama 3.1)
        old_context_len: int; context length that the model was trained with before scaling (Llama 3.1)

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def apply_rope(q: _T, k: Array, indptr: Array, offsets: Array, rotary_dim: Optional[int] = None, interleave: bool = False, rope_scale: float = 1, rope_theta: float = 10000.0) -> tuple[_T, _T]:
    """Rotates pairs of q and k by position * theta^(-2i/rotary_dim) / rope_scale.

    Args:
        q: Tensor [n hq d]; float32|float16|bfloat16; queries
        k: Tensor [n hk d]; dtype of q; keys
        indptr: Tensor [b+1]; int32|int64; first entry of each request in the list that it divides, and the list's length at the end
        offsets: Tensor [b]; int32|int64; position of each request's first token
        rotary_dim: int or None; elements of a head that are rotated; all when absent
        interleave: bool; rotates neighbours (2i, 2i+1) instead of halves (i, i + rotary_dim / 2)
        rope_scale: float; positions are divided by this
        rope_theta: float; base of the rotations' frequencies

    Returns:
        q_rope: Tensor [n hq d]; dtype of q; may be q itself; the queries' position part
        k_rope: Tensor [n hk d]; dtype of k; may be k itself; the keys' position part

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def apply_rope_inplace(q: Array, k: Array, indptr: Array, offsets: Array, rotary_dim: Optional[int] = None, interleave: bool = False, rope_scale: float = 1, rope_theta: float = 10000.0) -> None:
    """Rotates pairs of q and k by position * theta^(-2i/rotary_dim) / rope_scale.

    Args:
        q: Tensor [n hq d]; float32|float16|bfloat16; read and written; queries
        k: Tensor [n hk d]; dtype of q; read and written; keys
        indptr: Tensor [b+1]; int32|int64; first entry of each request in the list that it divides, and the list's length at the end
        offsets: Tensor [b]; int32|int64; position of each request's first token
        rotary_dim: int or None; elements of a head that are rotated; all when absent
        interleave: bool; rotates neighbours (2i, 2i+1) instead of halves (i, i + rotary_dim / 2)
        rope_scale: float; positions are divided by this
        rope_theta: float; base of the rotations' frequencies

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def apply_rope_pos_ids(q: _T, k: Array, pos_ids: Array, rotary_dim: Optional[int] = None, interleave: bool = False, rope_scale: float = 1, rope_theta: float = 10000.0) -> tuple[_T, _T]:
    """Rotates pairs of q and k by position * theta^(-2i/rotary_dim) / rope_scale.

    Args:
        q: Tensor [n hq d]; float32|float16|bfloat16; queries
        k: Tensor [n hk d]; dtype of q; keys
        pos_ids: Tensor [n]; int32|int64; position of each token
        rotary_dim: int or None; elements of a head that are rotated; all when absent
        interleave: bool; rotates neighbours (2i, 2i+1) instead of halves (i, i + rotary_dim / 2)
        rope_scale: float; positions are divided by this
        rope_theta: float; base of the rotations' frequencies

    Returns:
        q_rope: Tensor [n hq d]; dtype of q; may be q itself; the queries' position part
        k_rope: Tensor [n hk d]; dtype of k; may be k itself; the keys' position part

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def apply_rope_pos_ids_inplace(q: Array, k: Array, pos_ids: Array, rotary_dim: Optional[int] = None, interleave: bool = False, rope_scale: float = 1, rope_theta: float = 10000.0) -> None:
    """Rotates pairs of q and k by position * theta^(-2i/rotary_dim) / rope_scale.

    Args:
        q: Tensor [n hq d]; float32|float16|bfloat16; read and written; queries
        k: Tensor [n hk d]; dtype of q; read and written; keys
        pos_ids: Tensor [n]; int32|int64; position of each token
        rotary_dim: int or None; elements of a head that are rotated; all when absent
        interleave: bool; rotates neighbours (2i, 2i+1) instead of halves (i, i + rotary_dim / 2)
        rope_scale: float; positions are divided by this
        rope_theta: float; base of the rotations' frequencies

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def apply_rope_with_cos_sin_cache(positions: _T, query: Array, key: Array, head_size: int, cos_sin_cache: Array, is_neox: bool = True) -> tuple[_T, _T]:
    """Rotates pairs of query and key by the cos and sin that a table holds for their position.

    Args:
        positions: Tensor [n]; int32|int64; position of each token
        query: Tensor [n q]; float32|float16|bfloat16; queries
        key: Tensor [n k]; dtype of query; keys
        head_size: int; elements of a head
        cos_sin_cache: Tensor [max_pos rd]; float32; row p holds the cosines of position p, then the sines, for half the rotated dims each
        is_neox: bool; rotates halves; False: neighbours (2i, 2i+1)

    Returns:
        q_rope: Tensor [n q]; dtype of query; may be query itself; the queries' position part
        k_rope: Tensor [n k]; dtype of key; may be key itself; the keys' position part

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def apply_rope_with_cos_sin_cache_inplace(positions: Array, query: Array, key: Array, head_size: int, cos_sin_cache: Array, is_neox: bool = True) -> None:
    """Rotates pairs of query and key by the cos and sin that a table holds for their position.

    Args:
        positions: Tensor [n]; int32|int64; position of each token
        query: Tensor [n q]; float32|float16|bfloat16; read and written; queries
        key: Tensor [n k]; dtype of query; read and written; keys
        head_size: int; elements of a head
        cos_sin_cache: Tensor [max_pos rd]; float32; row p holds the cosines of position p, then the sines, for half the rotated dims each
        is_neox: bool; rotates halves; False: neighbours (2i, 2i+1)

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def mla_rope_quantize_fp8(q_rope: _T, k_rope: Array, q_nope: Optional[Array], k_nope: Optional[Array], cos_sin_cache: Array, pos_ids: Array, is_neox: bool = True, quantize_dtype: Optional[Union[torch.dtype, str]] = None, quant_scale_q: float = 1.0, quant_scale_kv: float = 1.0, q_rope_out: Optional[Array] = None, k_rope_out: Optional[Array] = None, q_nope_out: Optional[Array] = None, k_nope_out: Optional[Array] = None, enable_pdl: bool = False) -> tuple[_T, _T, _T, _T]:
    """Rotates the rope parts of q and k by a table, multiplies all parts by their scales and casts them to FP8.

    Args:
        q_rope: Tensor [n hq rd]; float32|float16|bfloat16; the queries' position part
        k_rope: Tensor; dtype of q_rope; the keys' position part
        q_nope: Tensor [n hq dq] or None; dtype of q_rope; the queries' part without position
        k_nope: Tensor or None; dtype of q_rope; the keys' part without position
        cos_sin_cache: Tensor [max_pos rd]; float32; row p holds the cosines of position p, then the sines, for half the rotated dims each
        pos_ids: Tensor [n]; int32|int64; position of each token
        is_neox: bool; rotates halves; False: neighbours (2i, 2i+1)
        quantize_dtype: dtype or None; 8-bit dtype of the results
        quant_scale_q: float; factor of q before the cast
        quant_scale_kv: float; factor of K and V before the cast
        q_rope_out: Tensor or None; float8_e4m3fn|float8_e5m2; written; made when absent; q_rope, rotated and quantised
        k_rope_out: Tensor or None; float8_e4m3fn|float8_e5m2; written; made when absent; k_rope, rotated and quantised
        q_nope_out: Tensor or None; float8_e4m3fn|float8_e5m2; written; made when absent; q_nope, quantised
        k_nope_out: Tensor or None; float8_e4m3fn|float8_e5m2; written; made when absent; k_nope, quantised
        enable_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        q_rope_out: Tensor; float8_e4m3fn|float8_e5m2; q_rope, rotated and quantised
        k_rope_out: Tensor; float8_e4m3fn|float8_e5m2; k_rope, rotated and quantised
        q_nope_out: Tensor; float8_e4m3fn|float8_e5m2; q_nope, quantised
        k_nope_out: Tensor; float8_e4m3fn|float8_e5m2; k_nope, quantised

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def rope_quantize_fp8(q_rope: _T, k_rope: Array, q_nope: Optional[Array], k_nope: Optional[Array], cos_sin_cache: Array, pos_ids: Array, is_neox: bool = True, quantize_dtype: Optional[Union[torch.dtype, str]] = None, quant_scale_q: float = 1.0, quant_scale_kv: float = 1.0, q_rope_out: Optional[Array] = None, k_rope_out: Optional[Array] = None, q_nope_out: Optional[Array] = None, k_nope_out: Optional[Array] = None, enable_pdl: bool = False, backend: str = 'cuda') -> tuple[_T, _T, _T, _T]:
    """Rotates the rope parts of q and k by a table, multiplies all parts by their scales and casts them to FP8.

    Args:
        q_rope: Tensor [n hq rd]; float32|float16|bfloat16; the queries' position part
        k_rope: Tensor; dtype of q_rope; the keys' position part
        q_nope: Tensor [n hq dq] or None; dtype of q_rope; the queries' part without position
        k_nope: Tensor or None; dtype of q_rope; the keys' part without position
        cos_sin_cache: Tensor [max_pos rd]; float32; row p holds the cosines of position p, then the sines, for half the rotated dims each
        pos_ids: Tensor [n]; int32|int64; position of each token
        is_neox: bool; rotates halves; False: neighbours (2i, 2i+1)
        quantize_dtype: dtype or None; 8-bit dtype of the results
        quant_scale_q: float; factor of q before the cast
        quant_scale_kv: float; factor of K and V before the cast
        q_rope_out: Tensor or None; float8_e4m3fn|float8_e5m2; written; made when absent; q_rope, rotated and quantised
        k_rope_out: Tensor or None; float8_e4m3fn|float8_e5m2; written; made when absent; k_rope, rotated and quantised
        q_nope_out: Tensor or None; float8_e4m3fn|float8_e5m2; written; made when absent; q_nope, quantised
        k_nope_out: Tensor or None; float8_e4m3fn|float8_e5m2; written; made when absent; k_nope, quantised
        enable_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU
        backend: str; one of cuda, cutile, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        q_rope_out: Tensor; float8_e4m3fn|float8_e5m2; q_rope, rotated and quantised
        k_rope_out: Tensor; float8_e4m3fn|float8_e5m2; k_rope, rotated and quantised
        q_nope_out: Tensor; float8_e4m3fn|float8_e5m2; q_nope, quantised
        k_nope_out: Tensor; float8_e4m3fn|float8_e5m2; k_nope, quantised

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def rope_quantize_fp8_append_paged_kv_cache(q_rope: _T, k_rope: Array, q_nope: Optional[Array], k_nope: Optional[Array], v: Optional[Array], cos_sin_cache: Array, pos_ids: Array, paged_kv_cache: Union[Array, tuple[Array, Array]], kv_indices: Array, kv_indptr: Array, batch_indices: Array, positions: Array, is_neox: bool = True, quantize_dtype: Optional[Union[torch.dtype, str]] = None, quant_scale_q: float = 1.0, quant_scale_kv: float = 1.0, page_size: int = 16, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', q_rope_out: Optional[Array] = None, q_nope_out: Optional[Array] = None, enable_pdl: bool = False) -> tuple[_T, _T]:
    """rope_quantize_fp8 with K and V (or MLA's latent and rope part) written to a paged FP8 cache.

    Args:
        q_rope: Tensor [n hq rd]; float32|float16|bfloat16; the queries' position part
        k_rope: Tensor; dtype of q_rope; the keys' position part
        q_nope: Tensor [n hq dq] or None; dtype of q_rope; the queries' part without position
        k_nope: Tensor or None; dtype of q_rope; the keys' part without position
        v: Tensor [n hk dv] or None; dtype of q_rope; values
        cos_sin_cache: Tensor [max_pos rd]; float32; row p holds the cosines of position p, then the sines, for half the rotated dims each
        pos_ids: Tensor [n]; int32|int64; position of each token
        paged_kv_cache: Tensor or (Tensor, Tensor); float8_e4m3fn|float8_e5m2; pages, written; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
        kv_indices: Tensor [pages]; int32|int64; pages of all requests, one after the other
        kv_indptr: Tensor [b+1]; int32|int64; first KV entry of each request, and their number at the end
        batch_indices: Tensor [n]; int32|int64; the request of each token
        positions: Tensor [n]; int32|int64; position of each token
        is_neox: bool; rotates halves; False: neighbours (2i, 2i+1)
        quantize_dtype: dtype or None; 8-bit dtype of the results
        quant_scale_q: float; factor of q before the cast
        quant_scale_kv: float; factor of K and V before the cast
        page_size: int; tokens of a page
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
        q_rope_out: Tensor or None; float8_e4m3fn|float8_e5m2; written; made when absent; q_rope, rotated and quantised
        q_nope_out: Tensor or None; float8_e4m3fn|float8_e5m2; written; made when absent; q_nope, quantised
        enable_pdl: bool; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        q_rope_out: Tensor; float8_e4m3fn|float8_e5m2; q_rope, rotated and quantised
        q_nope_out: Tensor; float8_e4m3fn|float8_e5m2; q_nope, quantised

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

