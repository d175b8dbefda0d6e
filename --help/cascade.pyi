# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

class BatchDecodeWithSharedPrefixPagedKVCacheWrapper:
    """Attention over a contiguous prefix that all requests share and pages of their own."""
    def __init__(self, float_workspace_buffer: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD') -> None:
        """Attention over a contiguous prefix that all requests share and pages of their own.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def begin_forward(self, unique_kv_indptr: Array, unique_kv_indices: Array, unique_kv_last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, data_type: Union[torch.dtype, str] = 'float16') -> None:
        """Takes the page table of what each request has alone.

        Args:
            unique_kv_indptr: Tensor [b+1]; int32|int64; first entry of each request in unique_kv_indices, and their number at the end
            unique_kv_indices: Tensor [n]; int32|int64; pages of each request's own part, one after the other
            unique_kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's own last page
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            page_size: int; tokens of a page
            data_type: dtype; dtype of queries and caches; q_data_type and kv_data_type go before it

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def forward(self, q: _T, k_shared: Array, v_shared: Array, unique_kv_cache: Union[Array, tuple[Array, Array]]) -> _T:
        """out = attention over the shared prefix, read once, and each request's own pages.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k_shared: Tensor [x y d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys of the prefix that all requests share
            v_shared: Tensor [x y d]; dtype of k_shared; values of the prefix that all requests share
            unique_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages of each request's own part

        Returns:
            out: Tensor; float32|float16|bfloat16; the result

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def reset_workspace_buffer(self, float_workspace_buffer: Array, int_workspace_buffer: Any) -> None:
        """Another workspace; the CPU needs none.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            int_workspace_buffer: object; scratch memory of FlashInfer's kernels; accepted, unused on the CPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def forward_return_lse(self, q: _T, k_shared: Array, v_shared: Array, unique_kv_cache: Union[Array, tuple[Array, Array]]) -> _T:
        """out = attention over the shared prefix, read once, and each request's own pages.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k_shared: Tensor [x y d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys of the prefix that all requests share
            v_shared: Tensor [x y d]; dtype of k_shared; values of the prefix that all requests share
            unique_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages of each request's own part

        Returns:
            out: Tensor; float32|float16|bfloat16; the result

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def end_forward(self):
        """Does nothing; kept for older programs.
        """
        ...

class BatchPrefillWithSharedPrefixPagedKVCacheWrapper:
    """Attention over a contiguous prefix that all requests share and pages of their own."""
    def __init__(self, float_workspace_buffer: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD') -> None:
        """Attention over a contiguous prefix that all requests share and pages of their own.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def begin_forward(self, qo_indptr: Array, paged_kv_indptr: Array, paged_kv_indices: Array, paged_kv_last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int) -> None:
        """Takes the page table of what each request has alone.

        Args:
            qo_indptr: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
            paged_kv_indptr: Tensor [b+1]; int32|int64; first page of each request in paged_kv_indices, and their number at the end
            paged_kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
            paged_kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size; one array a level in cascades
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            page_size: int; tokens of a page

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def forward(self, q: _T, k_shared: Array, v_shared: Array, unique_kv_cache: Union[Array, tuple[Array, Array]], causal: bool = False, use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> _T:
        """out = attention over the shared prefix, read once, and each request's own pages.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k_shared: Tensor [x y d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys of the prefix that all requests share
            v_shared: Tensor [x y d]; dtype of k_shared; values of the prefix that all requests share
            unique_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages of each request's own part
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies

        Returns:
            out: Tensor; float32|float16|bfloat16; the result

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def reset_workspace_buffer(self, float_workspace_buffer: Array, int_workspace_buffer: Any) -> None:
        """Another workspace; the CPU needs none.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            int_workspace_buffer: object; scratch memory of FlashInfer's kernels; accepted, unused on the CPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def prewarm_paged_kv_stride_variant(self, variant: Union[Literal['independent'], str] = 'independent') -> None:
        """Builds the kernel for different strides of K and V; on the CPU it is the same.

        Args:
            variant: str; one of independent; FlashInfer's kernel variant; without effect on the CPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def forward_return_lse(self, q: _T, k_shared: Array, v_shared: Array, unique_kv_cache: Union[Array, tuple[Array, Array]], causal: bool = False, use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> _T:
        """out = attention over the shared prefix, read once, and each request's own pages.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k_shared: Tensor [x y d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys of the prefix that all requests share
            v_shared: Tensor [x y d]; dtype of k_shared; values of the prefix that all requests share
            unique_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages of each request's own part
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies

        Returns:
            out: Tensor; float32|float16|bfloat16; the result

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def end_forward(self):
        """Does nothing; kept for older programs.
        """
        ...

class MultiLevelCascadeAttentionWrapper:
    """Attention over keys in levels, the shared ones first."""
    def __init__(self, num_levels: Optional[int], float_workspace_buffer: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', use_cuda_graph: bool = False, qo_indptr_buf_arr: Optional[list[Array]] = None, paged_kv_indptr_buf_arr: Optional[list[Array]] = None, paged_kv_indices_buf_arr: Optional[list[Array]] = None, paged_kv_last_page_len_buf_arr: Optional[list[Array]] = None) -> None:
        """Attention over keys in levels, the shared ones first.

        Args:
            num_levels: int or None; levels of the cascade: shared prefixes, then each request's own part
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
            use_cuda_graph: bool; later plans use the buffers given here and keep the batch size
            qo_indptr_buf_arr: list of Tensors or None; workspace; memory for the qo_indptr of every later plan (graphs), one a level
            paged_kv_indptr_buf_arr: list of Tensors or None; workspace; memory for the page offsets of every later plan (graphs), one a level
            paged_kv_indices_buf_arr: list of Tensors or None; workspace; memory for the page ids of every later plan (graphs), one a level
            paged_kv_last_page_len_buf_arr: list of Tensors or None; workspace; memory for the last pages' lengths of every later plan (graphs), one a level

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def plan(self, qo_indptr_arr: list[Array], paged_kv_indptr_arr: list[Array], paged_kv_indices_arr: list[Array], paged_kv_last_page_len: list[Array], num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None) -> None:
        """Takes the page table of each level and everything that is the same for all layers of a step.

        Args:
            qo_indptr_arr: list of Tensors; qo_indptr of each level
            paged_kv_indptr_arr: list of Tensors; paged_kv_indptr of each level
            paged_kv_indices_arr: list of Tensors; paged_kv_indices of each level
            paged_kv_last_page_len: list of Tensors; tokens on each request's last page, 1 to the page size; one array a level in cascades
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            page_size: int; tokens of a page
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            window_left: int; a query token sees at most this many keys before its own; -1: all
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]]) -> _T:
        """out = attention over the keys of all levels, each read once for the rows that share it.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)

        Returns:
            out: Tensor; float32|float16|bfloat16; the result

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def reset_workspace_buffer(self, float_workspace_buffer: Array, int_workspace_buffers: Any) -> None:
        """Another workspace; the CPU needs none.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            int_workspace_buffers: object; scratch memory of FlashInfer's kernels; accepted, unused on the CPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def prewarm_paged_kv_stride_variant(self, variant: Union[Literal['independent'], str] = 'independent') -> None:
        """Builds the kernel for different strides of K and V; on the CPU it is the same.

        Args:
            variant: str; one of independent; FlashInfer's kernel variant; without effect on the CPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def begin_forward(self, qo_indptr_arr: list[Array], paged_kv_indptr_arr: list[Array], paged_kv_indices_arr: list[Array], paged_kv_last_page_len: list[Array], num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None) -> None:
        """Takes the page table of each level and everything that is the same for all layers of a step.

        Args:
            qo_indptr_arr: list of Tensors; qo_indptr of each level
            paged_kv_indptr_arr: list of Tensors; paged_kv_indptr of each level
            paged_kv_indices_arr: list of Tensors; paged_kv_indices of each level
            paged_kv_last_page_len: list of Tensors; tokens on each request's last page, 1 to the page size; one array a level in cascades
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            page_size: int; tokens of a page
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            window_left: int; a query token sees at most this many keys before its own; -1: all
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def forward(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]]) -> _T:
        """out = attention over the keys of all levels, each read once for the rows that share it.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)

        Returns:
            out: Tensor; float32|float16|bfloat16; the result

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def end_forward(self):
        """Does nothing; kept for older programs.
        """
        ...

def merge_state(v_a: _T, s_a: Array, v_b: Array, s_b: Array) -> tuple[_T, _T]:
    """Merges two attention states: v weighted by 2^s, s = log2(2^s_a + 2^s_b).

    Args:
        v_a: Tensor [n h d]; float32|float16|bfloat16; results of the first part
        s_a: Tensor [n h]; float32; LSE of v_a's rows, to base 2
        v_b: Tensor [n h d]; dtype of v_a; results of the second part
        s_b: Tensor [n h]; float32; LSE of v_b's rows, to base 2

    Returns:
        v: Tensor [n h d]; dtype of v_a; values
        s: Tensor [n h]; float32; log-sum-exp of each row, to base 2

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def merge_state_in_place(v: Array, s: Array, v_other: Array, s_other: Array, mask: Optional[Array] = None) -> None:
    """Merges another attention state into (v, s).

    Args:
        v: Tensor [n h d]; float32|float16|bfloat16; read and written; values
        s: Tensor [n h]; float32; read and written; log-sum-exp of each row, to base 2
        v_other: Tensor [n h d]; dtype of v; results of the other part
        s_other: Tensor [n h]; float32; LSE of v_other's rows, to base 2
        mask: Tensor [n] or None; bool; 1 where a row, or an element of a block, takes part; all when absent

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def merge_states(v: _T, s: Array) -> tuple[_T, _T]:
    """Merges the attention states along axis 1.

    Args:
        v: Tensor [n x h d]; float32|float16|bfloat16; values
        s: Tensor [n x h]; float32; log-sum-exp of each row, to base 2

    Returns:
        v_merged: Tensor [n h d]; dtype of v
        s_merged: Tensor [n h]; float32

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer.decode import BatchDecodeWithPagedKVCacheWrapper as BatchDecodeWithPagedKVCacheWrapper
from flashinfer.prefill import BatchPrefillWithPagedKVCacheWrapper as BatchPrefillWithPagedKVCacheWrapper
from flashinfer.prefill import single_prefill_with_kv_cache as single_prefill_with_kv_cache