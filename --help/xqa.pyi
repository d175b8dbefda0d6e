# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

def xqa(q: Array, k_cache: Array, v_cache: Array, page_table: Array, seq_lens: Array, output: Optional[Array], workspace_buffer: Array, semaphores: Array, num_kv_heads: int, page_size: int, sinks: Optional[Array] = None, q_scale: Union[float, Array] = 1.0, kv_scale: Union[float, Array] = 1.0, sliding_win_size: int = 0, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', sm_count: Optional[int] = None, enable_pdl: Optional[bool] = None, rcp_out_scale: float = 1.0, q_seq_len: int = 1, mask: Optional[Array] = None, *, q_cu_seq_lens: Optional[Array] = None, k_sf_cache: Optional[Array] = None, v_sf_cache: Optional[Array] = None) -> None:
    """output = kv_scale * rcp_out_scale * softmax(q_scale * kv_scale / sqrt(d) * q k^T) v over a dense page table.

    Args:
        q: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        k_cache: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages of keys, or rows of keys
        v_cache: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages of values, or rows of values
        page_table: Tensor [b x]; int32|int64; the pages of each request, one row each
        seq_lens: Tensor; uint32|int32|int64; KV tokens of each request
        output: Tensor or None; float32|float16|bfloat16|float8_e4m3fn; written; made when absent; the result
        workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        semaphores: Tensor; workspace; GPU kernels only
        num_kv_heads: int; KV heads; divides num_qo_heads
        page_size: int; tokens of a page
        sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
        q_scale: number or Tensor; decode scale of the queries: a factor of the logits
        kv_scale: number or Tensor; decode scale of an 8-bit cache
        sliding_win_size: int; a row sees so many keys, its own among them; 0: all
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
        sm_count: int or None; GPU kernels only
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        rcp_out_scale: float; factor of the result
        q_seq_len: int; query tokens of each request; the most of any with q_cu_seq_lens
        mask: Tensor or None; uint16; bits: which rows of its request a row sees
        q_cu_seq_lens: Tensor [b+1] or None; uint32|int32|int64; first query token of each request, and their number at the end
        k_sf_cache: Tensor or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit K cache
        v_sf_cache: Tensor or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit V cache

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def xqa_mla(q: Array, k_cache: Array, v_cache: Array, page_table: Array, seq_lens: Array, output: Optional[Array], workspace_buffer: Array, semaphores: Array, page_size: int, q_scale: Union[float, Array] = 1.0, kv_scale: Union[float, Array] = 1.0, sm_count: Optional[int] = None, enable_pdl: Optional[bool] = None) -> None:
    """output = kv_scale * softmax(q_scale * kv_scale * q k^T) v[..., :512] with one KV head over a dense page table.

    Args:
        q: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        k_cache: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, read; pages of keys, or rows of keys
        v_cache: Tensor; dtype of k_cache; pages, read; pages of values, or rows of values
        page_table: Tensor [b x]; int32|int64; the pages of each request, one row each; what follows the last one means nothing
        seq_lens: Tensor; uint32|int32|int64; KV tokens of each request
        output: Tensor or None; float32|float16|bfloat16|float8_e4m3fn; written; made when absent; the result
        workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        semaphores: Tensor; workspace; GPU kernels only
        page_size: int; tokens of a page
        q_scale: number or Tensor; decode scale of the queries: a factor of the logits
        kv_scale: number or Tensor; decode scale of an 8-bit cache
        sm_count: int or None; GPU kernels only
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

