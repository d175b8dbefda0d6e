# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def append_paged_kv_cache(append_key: Array, append_value: Array, batch_indices: Array, positions: Array, paged_kv_cache: Union[Array, tuple[Array, Array]], kv_indices: Array, kv_indptr: Array, kv_last_page_len: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD') -> None:
    """Copies new keys and values to their slots of a paged cache.

    Args:
        append_key: Tensor [nnz hkv dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; new keys, one row a token
        append_value: Tensor [nnz hkv dv]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; new values, one row a token
        batch_indices: Tensor [nnz]; int32|int64; the request of each token
        positions: Tensor [nnz]; int32|int64; position of each token
        paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, written; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
        kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
        kv_indptr: Tensor [r]; int32|int64; first KV entry of each request, and their number at the end
        kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def append_paged_mla_kv_cache(append_ckv: Array, append_kpe: Array, batch_indices: Array, positions: Array, ckv_cache: Optional[Array], kpe_cache: Optional[Array], kv_indices: Array, kv_indptr: Array, kv_last_page_len: Array) -> None:
    """Copies new latent rows to their slots of a paged cache.

    Args:
        append_ckv: Tensor [nnz dc]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; new rows of compressed KV
        append_kpe: Tensor [nnz dp]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; new rows of the keys' position part
        batch_indices: Tensor [nnz]; int32|int64; the request of each token
        positions: Tensor [nnz]; int32|int64; position of each token
        ckv_cache: Tensor [p ps d] or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, written; pages of compressed KV
        kpe_cache: Tensor [p2 ps2 d2] or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, written; pages of the keys' position part
        kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
        kv_indptr: Tensor [r]; int32|int64; first KV entry of each request, and their number at the end
        kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def get_batch_indices_positions(append_indptr: _T, seq_lens: Array, nnz: int, batch_indices: Optional[Array] = None, positions: Optional[Array] = None) -> tuple[_T, _T]:
    """Request and position of every appended token; -1 and 0 for padding.

    Args:
        append_indptr: Tensor [b+1]; int32|int64; first new token of each request, and their number at the end
        seq_lens: Tensor [s]; int32|int64; KV tokens of each request
        nnz: int; number of tokens
        batch_indices: Tensor [nnz] or None; int32; written; made when absent; the request of each token
        positions: Tensor [nnz] or None; int32; written; made when absent; position of each token

    Returns:
        batch_indices: Tensor [nnz]; int32; the request of each token
        positions: Tensor [nnz]; int32; position of each token

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def get_seq_lens(kv_indptr: _T, kv_last_page_len: Array, page_size: int) -> _T:
    """Lengths of requests from their page table.

    Args:
        kv_indptr: Tensor [b+1]; int32|int64; first KV entry of each request, and their number at the end
        kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size
        page_size: int; tokens of a page

    Returns:
        out: Tensor [b]; int32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def nvfp4_quantize_append_paged_kv_cache(append_key: Array, append_value: Array, batch_indices: Array, positions: Array, paged_kv_cache: Union[Array, tuple[Array, Array]], kv_cache_sf: Union[Array, tuple[Array, Array]], kv_indices: Array, kv_indptr: Array, kv_last_page_len: Array, k_scale: float, v_scale: float, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD') -> None:
    """Quantises new keys and values to NVFP4 and writes them to their slots of a paged cache.

    Args:
        append_key: Tensor [nnz hkv dk]; float16|bfloat16; new keys, one row a token
        append_value: Tensor [nnz hkv dv]; dtype of append_key; new values, one row a token
        batch_indices: Tensor [nnz]; int32|int64; the request of each token
        positions: Tensor [nnz]; int32|int64; position of each token
        paged_kv_cache: Tensor or (Tensor, Tensor); uint8|float4_e2m1fn_x2; pages, written; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
        kv_cache_sf: Tensor or (Tensor, Tensor); float8_e4m3fn|uint8; pages, written; scale factors of a 4-bit cache, in the form of the cache
        kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
        kv_indptr: Tensor [r]; int32|int64; first KV entry of each request, and their number at the end
        kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size
        k_scale: float; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
        v_scale: float; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def nvfp4_quantize_append_paged_kv_cache_with_slot_mapping(append_key: Array, append_value: Array, slot_mapping: Array, paged_kv_cache: Union[Array, tuple[Array, Array]], kv_cache_sf: Union[Array, tuple[Array, Array]], k_scale: Union[float, Array], v_scale: Union[float, Array], kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD') -> None:
    """Quantises new keys and values to NVFP4 and writes them to given slots of a paged cache.

    Args:
        append_key: Tensor [rows hkv dk]; float16|bfloat16; new keys, one row a token
        append_value: Tensor [rows hkv dv]; dtype of append_key; new values, one row a token
        slot_mapping: Tensor [nnz]; int32|int64; page * page size + place in it, of each token; negative or past the pool: skipped
        paged_kv_cache: Tensor or (Tensor, Tensor); uint8|float4_e2m1fn_x2; pages, written; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
        kv_cache_sf: Tensor or (Tensor, Tensor); float8_e4m3fn|uint8; pages, written; scale factors of a 4-bit cache, in the form of the cache
        k_scale: number or Tensor; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
        v_scale: number or Tensor; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def nvfp4_quantize_append_paged_mla_kv_cache(append_ckv: Array, append_kpe: Array, batch_indices: Array, positions: Array, ckv_cache: Array, ckv_sf_cache: Array, kpe_cache: Array, kv_indices: Array, kv_indptr: Array, kv_last_page_len: Array, ckv_scale: float, kpe_scale: float) -> None:
    """Quantises new latents to NVFP4 and their rope parts to e4m3 and writes them to a paged MLA cache.

    Args:
        append_ckv: Tensor [nnz dc]; float16|bfloat16; new rows of compressed KV
        append_kpe: Tensor [nnz dr]; dtype of append_ckv; new rows of the keys' position part
        batch_indices: Tensor [nnz]; int32|int64; the request of each token
        positions: Tensor [nnz]; int32|int64; position of each token
        ckv_cache: Tensor [p ps db]; uint8|float4_e2m1fn_x2; pages, written; pages of compressed KV
        ckv_sf_cache: Tensor [p ps ds]; float8_e4m3fn|uint8; pages, written; pages of scale factors of a 4-bit compressed KV cache
        kpe_cache: Tensor [p ps dr]; float8_e4m3fn; pages, written; pages of the keys' position part
        kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
        kv_indptr: Tensor [r]; int32|int64; first KV entry of each request, and their number at the end
        kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size
        ckv_scale: float; decode scale of an 8-bit compressed KV cache
        kpe_scale: float; decode scale of an 8-bit position part

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

