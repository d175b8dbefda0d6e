# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

class BatchAttention:
    """Prefill and decode requests in one batch."""
    def __init__(self, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', device: Union[torch.device, str] = 'cuda') -> None:
        """Prefill and decode requests in one batch.

        Args:
            kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
            device: device; where the result is made

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def plan(self, qo_indptr: Array, kv_indptr: Array, kv_indices: Array, kv_len_arr: Array, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, head_dim_vo: int, page_size: int, causal: bool = False, sm_scale: Optional[float] = None, logits_soft_cap: Optional[float] = None, q_data_type: Union[torch.dtype, str] = torch.bfloat16, kv_data_type: Union[torch.dtype, str] = torch.bfloat16, use_profiler: bool = False) -> None:
        """Takes the page table and everything that is the same for all layers of a step.

        Args:
            qo_indptr: Tensor [qo]; int32|int64; first query token of each request, and their number at the end
            kv_indptr: Tensor [kv]; int32|int64; first KV entry of each request, and their number at the end
            kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
            kv_len_arr: Tensor [b]; int32|int64; KV tokens of each request
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim_qk: int; elements of a head of q and k
            head_dim_vo: int; elements of a head of v and of the result; head_dim_qk when absent
            page_size: int; tokens of a page
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype; dtype of the cache; q_data_type when absent
            use_profiler: bool; GPU kernels only

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, q: _T, kv_cache: Union[Array, tuple[Array, Array]], out: Optional[Array] = None, lse: Optional[Array] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, logits_soft_cap: float = 0.0, profiler_buffer: Optional[Array] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> tuple[_T, _T]:
        """out = softmax(scale * q k^T, causal) v over each request's pages; lse in base 2.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages of KV, stacked or a pair (k, v)
            out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
            lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            logits_soft_cap: float; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            profiler_buffer: Tensor or None; workspace; GPU kernels only
            kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache

        Returns:
            out: Tensor; float32|float16|bfloat16; the result
            lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another

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

    def begin_forward(self, qo_indptr: Array, kv_indptr: Array, kv_indices: Array, kv_len_arr: Array, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, head_dim_vo: int, page_size: int, causal: bool = False, sm_scale: Optional[float] = None, logits_soft_cap: Optional[float] = None, q_data_type: Union[torch.dtype, str] = torch.bfloat16, kv_data_type: Union[torch.dtype, str] = torch.bfloat16, use_profiler: bool = False) -> None:
        """Takes the page table and everything that is the same for all layers of a step.

        Args:
            qo_indptr: Tensor [qo]; int32|int64; first query token of each request, and their number at the end
            kv_indptr: Tensor [kv]; int32|int64; first KV entry of each request, and their number at the end
            kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
            kv_len_arr: Tensor [b]; int32|int64; KV tokens of each request
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim_qk: int; elements of a head of q and k
            head_dim_vo: int; elements of a head of v and of the result; head_dim_qk when absent
            page_size: int; tokens of a page
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype; dtype of the cache; q_data_type when absent
            use_profiler: bool; GPU kernels only

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run_return_lse(self, q: _T, kv_cache: Union[Array, tuple[Array, Array]], out: Optional[Array] = None, lse: Optional[Array] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, logits_soft_cap: float = 0.0, profiler_buffer: Optional[Array] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> tuple[_T, _T]:
        """out = softmax(scale * q k^T, causal) v over each request's pages; lse in base 2.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages of KV, stacked or a pair (k, v)
            out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
            lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            logits_soft_cap: float; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            profiler_buffer: Tensor or None; workspace; GPU kernels only
            kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache

        Returns:
            out: Tensor; float32|float16|bfloat16; the result
            lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another

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

class BatchAttentionWithAttentionSinkWrapper:
    """Paged prefill and decode with attention sinks."""
    def __init__(self, float_workspace_buffer: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', use_cuda_graph: bool = False, qo_indptr_buf: Optional[Array] = None, paged_kv_indptr_buf: Optional[Array] = None, paged_kv_indices_buf: Optional[Array] = None, paged_kv_last_page_len_buf: Optional[Array] = None, custom_mask_buf: Optional[Array] = None, mask_indptr_buf: Optional[Array] = None, backend: str = 'auto', pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, q_data_type: Union[torch.dtype, str] = torch.bfloat16, kv_data_type: Union[torch.dtype, str] = torch.bfloat16, head_dim_qk: int = 128, head_dim_vo: int = 128, window_left: int = -1) -> None:
        """Paged prefill and decode with attention sinks.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
            use_cuda_graph: bool; later plans use the buffers given here and keep the batch size
            qo_indptr_buf: Tensor or None; workspace; memory for the qo_indptr of every later plan (graphs)
            paged_kv_indptr_buf: Tensor or None; workspace; memory for the page offsets of every later plan (graphs)
            paged_kv_indices_buf: Tensor or None; workspace; memory for the page ids of every later plan (graphs)
            paged_kv_last_page_len_buf: Tensor or None; workspace; memory for the last pages' lengths of every later plan (graphs)
            custom_mask_buf: Tensor or None; workspace; memory for the mask of every later plan (graphs)
            mask_indptr_buf: Tensor or None; workspace; memory for the mask's offsets of every later plan (graphs)
            backend: str; the implementation by name; 'auto' lets the library choose
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype; dtype of the cache; q_data_type when absent
            head_dim_qk: int; elements of a head of q and k
            head_dim_vo: int; elements of a head of v and of the result; head_dim_qk when absent
            window_left: int; a query token sees at most this many keys before its own; -1: all

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def plan(self, qo_indptr: Array, paged_kv_indptr: Array, paged_kv_indices: Array, paged_kv_last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, page_size: int, head_dim_vo: Optional[int] = None, custom_mask: Optional[Array] = None, packed_custom_mask: Optional[Array] = None, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, non_blocking: bool = True, prefix_len_ptr: Optional[Array] = None, token_pos_in_items_ptr: Optional[Array] = None, token_pos_in_items_len: int = 0, max_item_len_ptr: Optional[Array] = None, seq_lens: Optional[Array] = None, seq_lens_q: Optional[Array] = None, block_tables: Optional[Array] = None, max_token_per_sequence: Optional[int] = None, max_sequence_kv: Optional[int] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, uniform_q_len: Optional[int] = None) -> None:
        """Takes the page table, the mask and everything that is the same for all layers of a step.

        Args:
            qo_indptr: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
            paged_kv_indptr: Tensor [b+1]; int32|int64; first page of each request in paged_kv_indices, and their number at the end
            paged_kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
            paged_kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size; one array a level in cascades
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim_qk: int; elements of a head of q and k
            page_size: int; tokens of a page
            head_dim_vo: int or None; elements of a head of v and of the result; head_dim_qk when absent
            custom_mask: Tensor or None; uint8|bool; 1 where a query token sees a key: [rows, keys] of each request, flattened, one after the other
            packed_custom_mask: Tensor or None; uint8; custom_mask as bits, each request padded to whole bytes (segment_packbits, little)
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
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            non_blocking: bool; copies to a GPU; without effect on the CPU
            prefix_len_ptr: Tensor or None; uint32|int32|int64; tokens of each request's prefix, before its items (multi-item scoring)
            token_pos_in_items_ptr: Tensor or None; uint16|int32|int64; distance of each token from its item's delimiter (multi-item scoring)
            token_pos_in_items_len: int; length of a request's row of token_pos_in_items_ptr (multi-item scoring)
            max_item_len_ptr: Tensor or None; uint16|int32|int64; longest item of each request (multi-item scoring)
            seq_lens: Tensor or None; int32|int64; KV tokens of each request
            seq_lens_q: Tensor or None; int32|int64; query tokens of each request
            block_tables: Tensor or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
            max_token_per_sequence: int or None; upper bound of the query tokens of a request
            max_sequence_kv: int or None; upper bound of the KV tokens of a request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels
            uniform_q_len: int or None; GPU back end only

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], sink: Array, sm_scale: Optional[float], *, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = False, lse_base: Union[Literal['log2', 'ln'], str] = 'log2', lse_layout: Union[Literal['NH', 'HN'], str] = 'NH', enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: Optional[Array] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, use_fp16_softmax: Optional[bool] = None, uses_spcompress: Optional[bool] = None) -> Union[_T, Any]:
        """out = sum_j exp(x_j) v_j / (exp(sink) + sum_j exp(x_j)) over each request's pages; lse in base 2.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            sink: Tensor [h]; float32; one more logit of each query head's softmax, without a value
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
            lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
            return_lse: bool; also return the log-sum-exp of each row's logits
            lse_base: str; one of log2, ln; base of the LSE
            lse_layout: str; one of NH, HN; axes of the LSE: 'NH' rows, heads; 'HN' heads, rows
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            window_left: int or None; a query token sees at most this many keys before its own; -1: all
            sinks: Tensor or None; one more logit of each query head's softmax, without a value
            kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache
            skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
            use_fp16_softmax: bool or None; GPU kernels only
            uses_spcompress: bool or None; GPU back end only

        Returns:
            out: Tensor; float32|float16|bfloat16; the result
            lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def workspace_size(self, qo_indptr: _T, paged_kv_indptr: Array, paged_kv_indices: Array, paged_kv_last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, page_size: int, head_dim_vo: Optional[int] = None, custom_mask: Optional[Array] = None, packed_custom_mask: Optional[Array] = None, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, prefix_len_ptr: Optional[Array] = None, token_pos_in_items_ptr: Optional[Array] = None, token_pos_in_items_len: int = 0, max_item_len_ptr: Optional[Array] = None, seq_lens: Optional[Array] = None, seq_lens_q: Optional[Array] = None, block_tables: Optional[Array] = None, max_token_per_sequence: Optional[int] = None, max_sequence_kv: Optional[int] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, uniform_q_len: Optional[int] = None) -> tuple[Any, ...]:
        """Bytes of partial results and of index arrays that a plan takes.

        Args:
            qo_indptr: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
            paged_kv_indptr: Tensor [b+1]; int32|int64; first page of each request in paged_kv_indices, and their number at the end
            paged_kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
            paged_kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size; one array a level in cascades
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim_qk: int; elements of a head of q and k
            page_size: int; tokens of a page
            head_dim_vo: int or None; elements of a head of v and of the result; head_dim_qk when absent
            custom_mask: Tensor or None; uint8|bool; 1 where a query token sees a key: [rows, keys] of each request, flattened, one after the other
            packed_custom_mask: Tensor or None; uint8; custom_mask as bits, each request padded to whole bytes (segment_packbits, little)
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
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            prefix_len_ptr: Tensor or None; uint32|int32|int64; tokens of each request's prefix, before its items (multi-item scoring)
            token_pos_in_items_ptr: Tensor or None; uint16|int32|int64; distance of each token from its item's delimiter (multi-item scoring)
            token_pos_in_items_len: int; length of a request's row of token_pos_in_items_ptr (multi-item scoring)
            max_item_len_ptr: Tensor or None; uint16|int32|int64; longest item of each request (multi-item scoring)
            seq_lens: Tensor or None; int32|int64; KV tokens of each request
            seq_lens_q: Tensor or None; int32|int64; query tokens of each request
            block_tables: Tensor or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
            max_token_per_sequence: int or None; upper bound of the query tokens of a request
            max_sequence_kv: int or None; upper bound of the KV tokens of a request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels
            uniform_q_len: int or None; GPU back end only

        Returns:
            sizes: Tensor [2]; int64; its elements, each a number of its own

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
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

    def begin_forward(self, qo_indptr: Array, paged_kv_indptr: Array, paged_kv_indices: Array, paged_kv_last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, page_size: int, head_dim_vo: Optional[int] = None, custom_mask: Optional[Array] = None, packed_custom_mask: Optional[Array] = None, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, non_blocking: bool = True, prefix_len_ptr: Optional[Array] = None, token_pos_in_items_ptr: Optional[Array] = None, token_pos_in_items_len: int = 0, max_item_len_ptr: Optional[Array] = None, seq_lens: Optional[Array] = None, seq_lens_q: Optional[Array] = None, block_tables: Optional[Array] = None, max_token_per_sequence: Optional[int] = None, max_sequence_kv: Optional[int] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, uniform_q_len: Optional[int] = None) -> None:
        """Takes the page table, the mask and everything that is the same for all layers of a step.

        Args:
            qo_indptr: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
            paged_kv_indptr: Tensor [b+1]; int32|int64; first page of each request in paged_kv_indices, and their number at the end
            paged_kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
            paged_kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size; one array a level in cascades
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim_qk: int; elements of a head of q and k
            page_size: int; tokens of a page
            head_dim_vo: int or None; elements of a head of v and of the result; head_dim_qk when absent
            custom_mask: Tensor or None; uint8|bool; 1 where a query token sees a key: [rows, keys] of each request, flattened, one after the other
            packed_custom_mask: Tensor or None; uint8; custom_mask as bits, each request padded to whole bytes (segment_packbits, little)
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
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            non_blocking: bool; copies to a GPU; without effect on the CPU
            prefix_len_ptr: Tensor or None; uint32|int32|int64; tokens of each request's prefix, before its items (multi-item scoring)
            token_pos_in_items_ptr: Tensor or None; uint16|int32|int64; distance of each token from its item's delimiter (multi-item scoring)
            token_pos_in_items_len: int; length of a request's row of token_pos_in_items_ptr (multi-item scoring)
            max_item_len_ptr: Tensor or None; uint16|int32|int64; longest item of each request (multi-item scoring)
            seq_lens: Tensor or None; int32|int64; KV tokens of each request
            seq_lens_q: Tensor or None; int32|int64; query tokens of each request
            block_tables: Tensor or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
            max_token_per_sequence: int or None; upper bound of the query tokens of a request
            max_sequence_kv: int or None; upper bound of the KV tokens of a request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels
            uniform_q_len: int or None; GPU back end only

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run_return_lse(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], sink: Array, sm_scale: Optional[float], *, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = True, lse_base: Union[Literal['log2', 'ln'], str] = 'log2', lse_layout: Union[Literal['NH', 'HN'], str] = 'NH', enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: Optional[Array] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, use_fp16_softmax: Optional[bool] = None, uses_spcompress: Optional[bool] = None) -> Union[_T, Any]:
        """out = sum_j exp(x_j) v_j / (exp(sink) + sum_j exp(x_j)) over each request's pages; lse in base 2.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            sink: Tensor [h]; float32; one more logit of each query head's softmax, without a value
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
            lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
            return_lse: bool; also return the log-sum-exp of each row's logits
            lse_base: str; one of log2, ln; base of the LSE
            lse_layout: str; one of NH, HN; axes of the LSE: 'NH' rows, heads; 'HN' heads, rows
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            window_left: int or None; a query token sees at most this many keys before its own; -1: all
            sinks: Tensor or None; one more logit of each query head's softmax, without a value
            kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache
            skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
            use_fp16_softmax: bool or None; GPU kernels only
            uses_spcompress: bool or None; GPU back end only

        Returns:
            out: Tensor; float32|float16|bfloat16; the result
            lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def end_forward(self):
        """Does nothing; kept for older programs.
        """
        ...

    def forward(self, q, paged_kv_cache, causal=False, pos_encoding_mode='NONE', use_fp16_qk_reduction=False, k_scale=None, v_scale=None, window_left=-1, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None):
        """Raises TypeError: this older form of run() has no argument for the sink.
        """
        ...

    def forward_return_lse(self, q, paged_kv_cache, causal=False, pos_encoding_mode='NONE', use_fp16_qk_reduction=False, k_scale=None, v_scale=None, window_left=-1, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None):
        """Raises TypeError: this older form of run() has no argument for the sink.
        """
        ...

class BatchPrefillWithCausalBidirectionalRangesWrapper:
    """Paged prefill, causal except for ranges of keys that are visible in both directions."""
    def __init__(self, float_workspace_buffer: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', use_cuda_graph: bool = False, qo_indptr_buf: Optional[Array] = None, paged_kv_indptr_buf: Optional[Array] = None, paged_kv_indices_buf: Optional[Array] = None, paged_kv_last_page_len_buf: Optional[Array] = None, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', q_data_type: Union[torch.dtype, str] = torch.bfloat16, kv_data_type: Union[torch.dtype, str] = torch.bfloat16, o_data_type: Optional[Union[torch.dtype, str]] = None, head_dim_qk: int = 128, head_dim_vo: int = 128) -> None:
        """Paged prefill, causal except for ranges of keys that are visible in both directions.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
            use_cuda_graph: bool; later plans use the buffers given here and keep the batch size
            qo_indptr_buf: Tensor or None; workspace; memory for the qo_indptr of every later plan (graphs)
            paged_kv_indptr_buf: Tensor or None; workspace; memory for the page offsets of every later plan (graphs)
            paged_kv_indices_buf: Tensor or None; workspace; memory for the page ids of every later plan (graphs)
            paged_kv_last_page_len_buf: Tensor or None; workspace; memory for the last pages' lengths of every later plan (graphs)
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            head_dim_qk: int; elements of a head of q and k
            head_dim_vo: int; elements of a head of v and of the result; head_dim_qk when absent

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def plan(self, qo_indptr: Array, paged_kv_indptr: Array, paged_kv_indices: Array, paged_kv_last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, page_size: int, head_dim_vo: Optional[int] = None, custom_mask: Optional[Array] = None, packed_custom_mask: Optional[Array] = None, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, q_data_type: Optional[Union[torch.dtype, str]] = None, kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, non_blocking: bool = True, prefix_len_ptr: Optional[Array] = None, token_pos_in_items_ptr: Optional[Array] = None, token_pos_in_items_len: int = 0, max_item_len_ptr: Optional[Array] = None, max_token_per_sequence: Optional[int] = None, max_sequence_kv: Optional[int] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False) -> None:
        """Takes the page table and everything that is the same for all layers of a step.

        Args:
            qo_indptr: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
            paged_kv_indptr: Tensor [b+1]; int32|int64; first page of each request in paged_kv_indices, and their number at the end
            paged_kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
            paged_kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size; one array a level in cascades
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim_qk: int; elements of a head of q and k
            page_size: int; tokens of a page
            head_dim_vo: int or None; elements of a head of v and of the result; head_dim_qk when absent
            custom_mask: Tensor or None; uint8|bool; 1 where a query token sees a key: [rows, keys] of each request, flattened, one after the other
            packed_custom_mask: Tensor or None; uint8; custom_mask as bits, each request padded to whole bytes (segment_packbits, little)
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            window_left: int; a query token sees at most this many keys before its own; -1: all
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            q_data_type: dtype or None; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            non_blocking: bool; copies to a GPU; without effect on the CPU
            prefix_len_ptr: Tensor or None; uint32|int32|int64; tokens of each request's prefix, before its items (multi-item scoring)
            token_pos_in_items_ptr: Tensor or None; uint16|int32|int64; distance of each token from its item's delimiter (multi-item scoring)
            token_pos_in_items_len: int; length of a request's row of token_pos_in_items_ptr (multi-item scoring)
            max_item_len_ptr: Tensor or None; uint16|int32|int64; longest item of each request (multi-item scoring)
            max_token_per_sequence: int or None; upper bound of the query tokens of a request
            max_sequence_kv: int or None; upper bound of the KV tokens of a request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], bidirectional_ranges: Array, causal_window_left: int = -1, range_window_left: int = -1, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = False, enable_pdl: Optional[bool] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> Union[_T, Any]:
        """Paged prefill, causal or within each row's span of keys; lse in base 2.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            bidirectional_ranges: Tensor [n 2]; int32|int64; first and last key of the range that each row sees in both directions
            causal_window_left: int; window_left of the causal part
            range_window_left: int; a row sees fewer than this many keys back in its range; 0 or less: all
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
            lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
            return_lse: bool; also return the log-sum-exp of each row's logits
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache

        Returns:
            out: Tensor; float32|float16|bfloat16; the result
            lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def forward(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], bidirectional_ranges: Array, causal_window_left: int = -1, range_window_left: int = -1, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, enable_pdl: Optional[bool] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> Union[_T, Any]:
        """run() by its old name.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            bidirectional_ranges: Tensor [n 2]; int32|int64; first and last key of the range that each row sees in both directions
            causal_window_left: int; window_left of the causal part
            range_window_left: int; a row sees fewer than this many keys back in its range; 0 or less: all
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache

        Returns:
            out: Tensor; float32|float16|bfloat16; the result
            lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def workspace_size(self, qo_indptr: _T, paged_kv_indptr: Array, paged_kv_indices: Array, paged_kv_last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, page_size: int, head_dim_vo: Optional[int] = None, custom_mask: Optional[Array] = None, packed_custom_mask: Optional[Array] = None, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, q_data_type: Optional[Union[torch.dtype, str]] = None, kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, prefix_len_ptr: Optional[Array] = None, token_pos_in_items_ptr: Optional[Array] = None, token_pos_in_items_len: int = 0, max_item_len_ptr: Optional[Array] = None, max_token_per_sequence: Optional[int] = None, max_sequence_kv: Optional[int] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False) -> tuple[Any, ...]:
        """Bytes of partial results and of index arrays that a plan takes.

        Args:
            qo_indptr: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
            paged_kv_indptr: Tensor [b+1]; int32|int64; first page of each request in paged_kv_indices, and their number at the end
            paged_kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
            paged_kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size; one array a level in cascades
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim_qk: int; elements of a head of q and k
            page_size: int; tokens of a page
            head_dim_vo: int or None; elements of a head of v and of the result; head_dim_qk when absent
            custom_mask: Tensor or None; uint8|bool; 1 where a query token sees a key: [rows, keys] of each request, flattened, one after the other
            packed_custom_mask: Tensor or None; uint8; custom_mask as bits, each request padded to whole bytes (segment_packbits, little)
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            window_left: int; a query token sees at most this many keys before its own; -1: all
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            q_data_type: dtype or None; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            prefix_len_ptr: Tensor or None; uint32|int32|int64; tokens of each request's prefix, before its items (multi-item scoring)
            token_pos_in_items_ptr: Tensor or None; uint16|int32|int64; distance of each token from its item's delimiter (multi-item scoring)
            token_pos_in_items_len: int; length of a request's row of token_pos_in_items_ptr (multi-item scoring)
            max_item_len_ptr: Tensor or None; uint16|int32|int64; longest item of each request (multi-item scoring)
            max_token_per_sequence: int or None; upper bound of the query tokens of a request
            max_sequence_kv: int or None; upper bound of the KV tokens of a request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels

        Returns:
            sizes: Tensor [2]; int64; its elements, each a number of its own

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
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

    def begin_forward(self, qo_indptr: Array, paged_kv_indptr: Array, paged_kv_indices: Array, paged_kv_last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, page_size: int, head_dim_vo: Optional[int] = None, custom_mask: Optional[Array] = None, packed_custom_mask: Optional[Array] = None, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, q_data_type: Optional[Union[torch.dtype, str]] = None, kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, non_blocking: bool = True, prefix_len_ptr: Optional[Array] = None, token_pos_in_items_ptr: Optional[Array] = None, token_pos_in_items_len: int = 0, max_item_len_ptr: Optional[Array] = None, max_token_per_sequence: Optional[int] = None, max_sequence_kv: Optional[int] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False) -> None:
        """Takes the page table and everything that is the same for all layers of a step.

        Args:
            qo_indptr: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
            paged_kv_indptr: Tensor [b+1]; int32|int64; first page of each request in paged_kv_indices, and their number at the end
            paged_kv_indices: Tensor [n]; int32|int64; pages of all requests, one after the other
            paged_kv_last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size; one array a level in cascades
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim_qk: int; elements of a head of q and k
            page_size: int; tokens of a page
            head_dim_vo: int or None; elements of a head of v and of the result; head_dim_qk when absent
            custom_mask: Tensor or None; uint8|bool; 1 where a query token sees a key: [rows, keys] of each request, flattened, one after the other
            packed_custom_mask: Tensor or None; uint8; custom_mask as bits, each request padded to whole bytes (segment_packbits, little)
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            window_left: int; a query token sees at most this many keys before its own; -1: all
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            q_data_type: dtype or None; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            non_blocking: bool; copies to a GPU; without effect on the CPU
            prefix_len_ptr: Tensor or None; uint32|int32|int64; tokens of each request's prefix, before its items (multi-item scoring)
            token_pos_in_items_ptr: Tensor or None; uint16|int32|int64; distance of each token from its item's delimiter (multi-item scoring)
            token_pos_in_items_len: int; length of a request's row of token_pos_in_items_ptr (multi-item scoring)
            max_item_len_ptr: Tensor or None; uint16|int32|int64; longest item of each request (multi-item scoring)
            max_token_per_sequence: int or None; upper bound of the query tokens of a request
            max_sequence_kv: int or None; upper bound of the KV tokens of a request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run_return_lse(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], bidirectional_ranges: Array, causal_window_left: int = -1, range_window_left: int = -1, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = True, enable_pdl: Optional[bool] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> Union[_T, Any]:
        """Paged prefill, causal or within each row's span of keys; lse in base 2.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            bidirectional_ranges: Tensor [n 2]; int32|int64; first and last key of the range that each row sees in both directions
            causal_window_left: int; window_left of the causal part
            range_window_left: int; a row sees fewer than this many keys back in its range; 0 or less: all
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
            lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
            return_lse: bool; also return the log-sum-exp of each row's logits
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache

        Returns:
            out: Tensor; float32|float16|bfloat16; the result
            lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def forward_return_lse(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], bidirectional_ranges: Array, causal_window_left: int = -1, range_window_left: int = -1, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, enable_pdl: Optional[bool] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> Union[_T, Any]:
        """run() by its old name.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            bidirectional_ranges: Tensor [n 2]; int32|int64; first and last key of the range that each row sees in both directions
            causal_window_left: int; window_left of the causal part
            range_window_left: int; a row sees fewer than this many keys back in its range; 0 or less: all
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache

        Returns:
            out: Tensor; float32|float16|bfloat16; the result
            lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

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

