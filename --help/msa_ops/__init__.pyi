# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def msa_proxy_score(q: _T, k: Array, cu_seqlens_q: Array, cu_seqlens_k: Optional[Array] = None, *, page_table: Optional[Array] = None, seqused_k: Optional[Array] = None, causal: bool = True, max_seqlen_q: Optional[int] = None, max_k_tiles: Optional[int] = None, output: Optional[Array] = None, reduce_heads: bool = False, q_offset: Optional[Union[float, Array]] = None) -> _T:
    """The largest logit q.k of each row, head and block of 128 keys.

    Args:
        q: Tensor [n h 128]; float32|float16|bfloat16|float8_e4m3fn; queries
        k: Tensor; float32|float16|bfloat16|float8_e4m3fn; keys
        cu_seqlens_q: Tensor [b+1]; int32|int64; first query row of each request, and their number
        cu_seqlens_k: Tensor [b+1] or None; int32|int64; first key of each request, and their number
        page_table: Tensor [b x] or None; int32; page of each block of each request's keys
        seqused_k: Tensor [b] or None; int32|int64; keys of each request
        causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
        max_seqlen_q: int or None; at least the rows of each request
        max_k_tiles: int or None; blocks of 128 keys in the result; the longest request's unless given
        output: Tensor or None; float32; written; made when absent; the result
        reduce_heads: bool; one score for all heads, the largest
        q_offset: number or Tensor or None; position of each request's first row; keys minus rows unless given

    Returns:
        output: Tensor; float32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def msa_proxy_score_fp4(q_fp4: _T, k_fp4: Array, q_scale: Array, k_scale: Array, q_global_scale: float, k_global_scale: float, cu_seqlens_q: Array, cu_seqlens_k: Optional[Array] = None, *, page_table: Optional[Array] = None, seqused_k: Optional[Array] = None, causal: bool = True, max_seqlen_q: Optional[int] = None, max_k_tiles: Optional[int] = None, output: Optional[Array] = None, reduce_heads: bool = False, q_offset: Optional[Union[float, Array]] = None) -> _T:
    """The largest logit of each block, of NVFP4 queries and keys.

    Args:
        q_fp4: Tensor [n h 64]; uint8|float4_e2m1fn_x2; queries as NVFP4: two elements a byte
        k_fp4: Tensor; uint8|float4_e2m1fn_x2; keys as NVFP4: two elements a byte
        q_scale: Tensor; float8_e4m3fn|uint8; decode scale of the queries: a factor of the logits
        k_scale: Tensor; float8_e4m3fn|uint8; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
        q_global_scale: float; factor of the logits, of quantised queries
        k_global_scale: float; factor of the logits, of quantised keys
        cu_seqlens_q: Tensor [b+1]; int32|int64; first query row of each request, and their number
        cu_seqlens_k: Tensor [b+1] or None; int32|int64; first key of each request, and their number
        page_table: Tensor [b x] or None; int32; page of each block of each request's keys
        seqused_k: Tensor [b] or None; int32|int64; keys of each request
        causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
        max_seqlen_q: int or None; at least the rows of each request
        max_k_tiles: int or None; blocks of 128 keys in the result; the longest request's unless given
        output: Tensor or None; float32; written; made when absent; the result
        reduce_heads: bool; one score for all heads, the largest
        q_offset: number or Tensor or None; position of each request's first row; keys minus rows unless given

    Returns:
        output: Tensor; float32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def msa_sparse_attention(q: _T, k: Array, v: Array, q2k_indices: Array, cu_seqlens_q: Array, cu_seqlens_k: Optional[Array] = None, causal: bool = False, softmax_scale: Optional[float] = None, page_table: Optional[Array] = None, seqused_k: Optional[Array] = None, return_softmax_lse: bool = False, k_scale: Optional[Array] = None, v_scale: Optional[Array] = None, k_global_scale: Optional[float] = None, v_global_scale: Optional[float] = None, q_offset: Optional[Union[float, Array]] = None, return_temperature_lse: bool = False, lse_temperature_scale: float = 1.0, workspace: Any = None) -> Union[_T, Any]:
    """Attention of each row over the blocks of 128 keys that it selects; LSE in base e.

    Args:
        q: Tensor [n h 128]; float32|float16|bfloat16|float8_e4m3fn; queries
        k: Tensor; float32|float16|bfloat16|float8_e4m3fn|uint8|float4_e2m1fn_x2; keys
        v: Tensor; float32|float16|bfloat16|float8_e4m3fn|uint8|float4_e2m1fn_x2; values
        q2k_indices: Tensor [g n t]; int32; blocks that each row selects, for each KV head; -1 fills up
        cu_seqlens_q: Tensor [b+1]; int32|int64; first query row of each request, and their number
        cu_seqlens_k: Tensor [b+1] or None; int32|int64; first key of each request, and their number
        causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
        softmax_scale: float or None; factor of the logits; 1 / sqrt(128) unless given
        page_table: Tensor [b x] or None; int32; page of each block of each request's keys
        seqused_k: Tensor [b] or None; int32|int64; keys of each request
        return_softmax_lse: bool; also return the log-sum-exp of the logits, base e
        k_scale: Tensor or None; float8_e4m3fn|uint8; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
        v_scale: Tensor or None; float8_e4m3fn|uint8; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
        k_global_scale: float or None; factor of the logits, of quantised keys
        v_global_scale: float or None; factor of the result
        q_offset: number or Tensor or None; position of each request's first row; keys minus rows unless given
        return_temperature_lse: bool; also return both log-sum-exps
        lse_temperature_scale: float; factor of the logits in the third result
        workspace: object; memory of GPU kernels: must be absent

    Returns:
        out: Tensor; float32|float16|bfloat16; the result
        lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested
        lse_t: Tensor; float32; log-sum-exp of the logits times lse_temperature_scale, base e, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def msa_sparse_decode_attention(q: _T, k: Array, v: Array, q2k_indices: Array, *, page_table: Optional[Array] = None, seqused_k: Optional[Array] = None, cu_seqlens_k: Optional[Array] = None, seqlen_q: int = 1, causal: bool = True, softmax_scale: Optional[float] = None, return_softmax_lse: bool = False, k_scale: Optional[Array] = None, v_scale: Optional[Array] = None, k_global_scale: Optional[float] = None, v_global_scale: Optional[float] = None, q_offset: Optional[Union[float, Array]] = None, partial_dtype: Optional[Union[torch.dtype, str]] = None, force_fused: Optional[bool] = None, workspace: Any = None, out: Optional[Array] = None) -> Union[_T, Any]:
    """Attention over selected blocks for a decode step: every request has seqlen_q rows.

    Args:
        q: Tensor [n h 128]; float32|float16|bfloat16|float8_e4m3fn; queries
        k: Tensor; float32|float16|bfloat16|float8_e4m3fn|uint8|float4_e2m1fn_x2; keys
        v: Tensor; float32|float16|bfloat16|float8_e4m3fn|uint8|float4_e2m1fn_x2; values
        q2k_indices: Tensor [g n t]; int32; blocks that each row selects, for each KV head; -1 fills up
        page_table: Tensor [b x] or None; int32; page of each block of each request's keys
        seqused_k: Tensor [b] or None; int32|int64; keys of each request
        cu_seqlens_k: Tensor [b+1] or None; int32|int64; first key of each request, and their number
        seqlen_q: int; query rows of each request
        causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
        softmax_scale: float or None; factor of the logits; 1 / sqrt(128) unless given
        return_softmax_lse: bool; also return the log-sum-exp of the logits, base e
        k_scale: Tensor or None; float8_e4m3fn|uint8; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
        v_scale: Tensor or None; float8_e4m3fn|uint8; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
        k_global_scale: float or None; factor of the logits, of quantised keys
        v_global_scale: float or None; factor of the result
        q_offset: number or Tensor or None; position of each request's first row; keys minus rows unless given
        partial_dtype: dtype or None; GPU kernels only: without effect
        force_fused: bool or None; GPU kernels only: without effect
        workspace: object; memory of GPU kernels: must be absent
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result

    Returns:
        out: Tensor; float32|float16|bfloat16; the result
        lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def msa_topk_select(max_score: _T, topk: int, num_valid_pages: Optional[Union[float, Array]] = None, output: Optional[Array] = None, force_begin_blocks: int = 0, force_end_blocks: int = 0) -> _T:
    """The topk blocks of each row and head with the largest scores, in ascending order, then -1.

    Args:
        max_score: Tensor [h x n]; float32; largest logit of each head, block and row
        topk: int; blocks to select
        num_valid_pages: number or Tensor or None; blocks to choose from, of all rows or of each
        output: Tensor or None; int32; written; made when absent; the result
        force_begin_blocks: int; blocks at a row's beginning that are always selected
        force_end_blocks: int; blocks at a row's end that are always selected

    Returns:
        output: Tensor; int32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer._msa import MSASparseAttentionWorkspace as MSASparseAttentionWorkspace
from flashinfer.msa_ops import msa_proxy_score as msa_proxy_score
from flashinfer.msa_ops import msa_proxy_score_fp4 as msa_proxy_score_fp4
from flashinfer.msa_ops import msa_sparse_attention as msa_sparse_attention
from flashinfer.msa_ops import msa_sparse_decode_attention as msa_sparse_decode_attention
from flashinfer.msa_ops import msa_topk_select as msa_topk_select
from flashinfer._msa import prepare_msa_nvfp4_sparse_decode as prepare_msa_nvfp4_sparse_decode
from flashinfer._msa import supports_packed_kv as supports_packed_kv
SUPPORTS_PACKED_KV: Any
