# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

class BatchPrefillWithPagedKVCacheWrapper:
    """Batch prefill over a paged KV cache: any number of query tokens a request."""
    def __init__(self, float_workspace_buffer: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', use_cuda_graph: bool = False, qo_indptr_buf: Optional[Array] = None, paged_kv_indptr_buf: Optional[Array] = None, paged_kv_indices_buf: Optional[Array] = None, paged_kv_last_page_len_buf: Optional[Array] = None, custom_mask_buf: Optional[Array] = None, mask_indptr_buf: Optional[Array] = None, backend: str = 'auto', jit_args: Any = None, jit_kwargs: Any = None, variant_owns_mask: bool = False) -> None:
        """Batch prefill over a paged KV cache: any number of query tokens a request.

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
            backend: str; one of auto, fa2, fa3, cudnn, trtllm-gen, cute-dsl, cutlass, cpu; the implementation by name; 'auto' lets the library choose
            jit_args: object; a custom variant, as flashinfer.jit's JitSpec.jit_args gives it
            jit_kwargs: object; options of the custom variant
            variant_owns_mask: bool; the custom variant's LogitsMask takes the place of every other mask

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

    def run(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], *args: Any, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = False, lse_base: Union[Literal['log2', 'ln'], str] = 'log2', lse_layout: Union[Literal['NH', 'HN'], str] = 'NH', enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: Optional[Array] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, use_fp16_softmax: Optional[bool] = None, uses_spcompress: Optional[bool] = None) -> Union[_T, Any]:
        """out = softmax(scale * q k^T, masked) v over each request's pages; lse in base 2.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            args: object; additional arguments of the custom variant: its tensors, then its scalars, in declared order
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
            sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
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

    def forward(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, k_scale: Optional[float] = None, v_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> Union[_T, Any]:
        """run() with what plan() was given replaced.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            window_left: int; a query token sees at most this many keys before its own; -1: all
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies

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

    def run_return_lse(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], *args: Any, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = True, lse_base: Union[Literal['log2', 'ln'], str] = 'log2', lse_layout: Union[Literal['NH', 'HN'], str] = 'NH', enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: Optional[Array] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, use_fp16_softmax: Optional[bool] = None, uses_spcompress: Optional[bool] = None) -> Union[_T, Any]:
        """out = softmax(scale * q k^T, masked) v over each request's pages; lse in base 2.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            args: object; additional arguments of the custom variant: its tensors, then its scalars, in declared order
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
            sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
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

    def forward_return_lse(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, k_scale: Optional[float] = None, v_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> Union[_T, Any]:
        """run() with what plan() was given replaced.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            window_left: int; a query token sees at most this many keys before its own; -1: all
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies

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

class BatchPrefillWithRaggedKVCacheWrapper:
    """Batch prefill over ragged keys and values: the requests' rows one after another."""
    def __init__(self, float_workspace_buffer: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', use_cuda_graph: bool = False, qo_indptr_buf: Optional[Array] = None, kv_indptr_buf: Optional[Array] = None, custom_mask_buf: Optional[Array] = None, mask_indptr_buf: Optional[Array] = None, backend: str = 'auto', jit_args: Any = None, jit_kwargs: Any = None, variant_owns_mask: bool = False) -> None:
        """Batch prefill over ragged keys and values: the requests' rows one after another.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
            use_cuda_graph: bool; later plans use the buffers given here and keep the batch size
            qo_indptr_buf: Tensor or None; workspace; memory for the qo_indptr of every later plan (graphs)
            kv_indptr_buf: Tensor or None; workspace; memory for the kv_indptr of every later plan (graphs)
            custom_mask_buf: Tensor or None; workspace; memory for the mask of every later plan (graphs)
            mask_indptr_buf: Tensor or None; workspace; memory for the mask's offsets of every later plan (graphs)
            backend: str; one of auto, fa2, fa3, cudnn, trtllm-gen, cute-dsl, cutlass, cpu; the implementation by name; 'auto' lets the library choose
            jit_args: object; a custom variant, as flashinfer.jit's JitSpec.jit_args gives it
            jit_kwargs: object; options of the custom variant
            variant_owns_mask: bool; the custom variant's LogitsMask takes the place of every other mask

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def plan(self, qo_indptr: Array, kv_indptr: Array, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, head_dim_vo: Optional[int] = None, custom_mask: Optional[Array] = None, packed_custom_mask: Optional[Array] = None, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, non_blocking: bool = True, prefix_len_ptr: Optional[Array] = None, token_pos_in_items_ptr: Optional[Array] = None, token_pos_in_items_len: int = 0, max_item_len_ptr: Optional[Array] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, seq_lens: Optional[Array] = None, seq_lens_q: Optional[Array] = None, max_token_per_sequence: Optional[int] = None, max_sequence_kv: Optional[int] = None, v_indptr: Optional[Array] = None, o_indptr: Optional[Array] = None, uniform_q_len: Optional[int] = None) -> None:
        """Takes the lengths, the mask and everything that is the same for all layers of a step.

        Args:
            qo_indptr: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
            kv_indptr: Tensor [b+1]; int32|int64; first KV entry of each request, and their number at the end
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim_qk: int; elements of a head of q and k
            head_dim_vo: int or None; elements of a head of v and of the result; head_dim_qk when absent
            custom_mask: Tensor or None; uint8|bool; 1 where a query token sees a key: [rows, keys] of each request, flattened, one after the other
            packed_custom_mask: Tensor or None; uint8; custom_mask as bits, each request padded to whole bytes (segment_packbits, little)
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            window_left: int; a query token sees at most this many keys before its own; -1: all
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
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
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels
            seq_lens: Tensor or None; int32|int64; KV tokens of each request
            seq_lens_q: Tensor or None; int32|int64; query tokens of each request
            max_token_per_sequence: int or None; upper bound of the query tokens of a request
            max_sequence_kv: int or None; upper bound of the KV tokens of a request
            v_indptr: Tensor or None; int32|int64; first row of the values of each request, in rows or elements
            o_indptr: Tensor or None; int32|int64; first row of the results of each request, in rows or elements
            uniform_q_len: int or None; GPU back end only

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, q: _T, k: Array, v: Array, *args: Any, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, o_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = False, lse_base: Union[Literal['log2', 'ln'], str] = 'log2', lse_layout: Union[Literal['NH', 'HN'], str] = 'NH', enable_pdl: Optional[bool] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> Union[_T, Any]:
        """out = softmax(scale * q k^T, masked) v over each request's rows; lse in base 2.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k: Tensor [x y dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; keys
            v: Tensor [x y dv]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; values
            args: object; additional arguments of the custom variant: its tensors, then its scalars, in declared order
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            o_scale: float or None; scale of an 8-bit result
            out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
            lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
            return_lse: bool; also return the log-sum-exp of each row's logits
            lse_base: str; one of log2, ln; base of the LSE
            lse_layout: str; one of NH, HN; axes of the LSE: 'NH' rows, heads; 'HN' heads, rows
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache

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

    def forward(self, q: _T, k: Array, v: Array, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> Union[_T, Any]:
        """run() with what plan() was given replaced.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k: Tensor [x y dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; keys
            v: Tensor [x y dv]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; values
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            window_left: int; a query token sees at most this many keys before its own; -1: all
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies

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

    def begin_forward(self, qo_indptr: Array, kv_indptr: Array, num_qo_heads: int, num_kv_heads: int, head_dim_qk: int, head_dim_vo: Optional[int] = None, custom_mask: Optional[Array] = None, packed_custom_mask: Optional[Array] = None, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, non_blocking: bool = True, prefix_len_ptr: Optional[Array] = None, token_pos_in_items_ptr: Optional[Array] = None, token_pos_in_items_len: int = 0, max_item_len_ptr: Optional[Array] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, seq_lens: Optional[Array] = None, seq_lens_q: Optional[Array] = None, max_token_per_sequence: Optional[int] = None, max_sequence_kv: Optional[int] = None, v_indptr: Optional[Array] = None, o_indptr: Optional[Array] = None, uniform_q_len: Optional[int] = None) -> None:
        """Takes the lengths, the mask and everything that is the same for all layers of a step.

        Args:
            qo_indptr: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
            kv_indptr: Tensor [b+1]; int32|int64; first KV entry of each request, and their number at the end
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim_qk: int; elements of a head of q and k
            head_dim_vo: int or None; elements of a head of v and of the result; head_dim_qk when absent
            custom_mask: Tensor or None; uint8|bool; 1 where a query token sees a key: [rows, keys] of each request, flattened, one after the other
            packed_custom_mask: Tensor or None; uint8; custom_mask as bits, each request padded to whole bytes (segment_packbits, little)
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            window_left: int; a query token sees at most this many keys before its own; -1: all
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
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
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels
            seq_lens: Tensor or None; int32|int64; KV tokens of each request
            seq_lens_q: Tensor or None; int32|int64; query tokens of each request
            max_token_per_sequence: int or None; upper bound of the query tokens of a request
            max_sequence_kv: int or None; upper bound of the KV tokens of a request
            v_indptr: Tensor or None; int32|int64; first row of the values of each request, in rows or elements
            o_indptr: Tensor or None; int32|int64; first row of the results of each request, in rows or elements
            uniform_q_len: int or None; GPU back end only

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run_return_lse(self, q: _T, k: Array, v: Array, *args: Any, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, o_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = True, lse_base: Union[Literal['log2', 'ln'], str] = 'log2', lse_layout: Union[Literal['NH', 'HN'], str] = 'NH', enable_pdl: Optional[bool] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> Union[_T, Any]:
        """out = softmax(scale * q k^T, masked) v over each request's rows; lse in base 2.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k: Tensor [x y dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; keys
            v: Tensor [x y dv]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; values
            args: object; additional arguments of the custom variant: its tensors, then its scalars, in declared order
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            o_scale: float or None; scale of an 8-bit result
            out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
            lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
            return_lse: bool; also return the log-sum-exp of each row's logits
            lse_base: str; one of log2, ln; base of the LSE
            lse_layout: str; one of NH, HN; axes of the LSE: 'NH' rows, heads; 'HN' heads, rows
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache

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

    def forward_return_lse(self, q: _T, k: Array, v: Array, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> Union[_T, Any]:
        """run() with what plan() was given replaced.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k: Tensor [x y dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; keys
            v: Tensor [x y dv]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; values
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            window_left: int; a query token sees at most this many keys before its own; -1: all
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies

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

def cudnn_batch_prefill_with_kv_cache(q: _T, k_cache: Array, v_cache: Array, scale: float, workspace_buffer: Array, *, max_token_per_sequence: int, max_sequence_kv: int, actual_seq_lens_q: Optional[Array] = None, actual_seq_lens_kv: Optional[Array] = None, block_tables: Optional[Array] = None, causal: bool, return_lse: bool, q_scale: Optional[Array] = None, k_scale: Optional[Array] = None, v_scale: Optional[Array] = None, batch_offsets_q: Optional[Array] = None, batch_offsets_o: Optional[Array] = None, batch_offsets_k: Optional[Array] = None, batch_offsets_v: Optional[Array] = None, batch_offsets_stats: Optional[Array] = None, batch_offsets_units: Union[Literal['elements', 'tokens'], str] = 'elements', out: Optional[Array] = None, lse: Optional[Array] = None, is_cuda_graph_compatible: bool = False, backend: Optional[Union[Literal['cudnn', 'cubin'], str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, lse_base: Union[Literal['log2', 'ln'], str] = 'log2') -> tuple[Any, ...]:
    """Batch prefill over pages or ragged K and V without a plan; lse padded to max_token_per_sequence rows.

    Args:
        q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        k_cache: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, read; pages of keys, or rows of keys
        v_cache: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, read; pages of values, or rows of values
        scale: float; factor of the logits
        workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        max_token_per_sequence: int; upper bound of the query tokens of a request
        max_sequence_kv: int; upper bound of the KV tokens of a request
        actual_seq_lens_q: Tensor or None; int32|int64; query tokens of each request
        actual_seq_lens_kv: Tensor or None; int32|int64; KV tokens of each request
        block_tables: Tensor [b x] or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
        causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
        return_lse: bool; also return the log-sum-exp of each row's logits
        q_scale: Tensor or None; float32; decode scale of the queries: a factor of the logits
        k_scale: Tensor or None; float32; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
        v_scale: Tensor or None; float32; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
        batch_offsets_q: Tensor or None; int32|int64; first element of q of each request, and their end
        batch_offsets_o: Tensor or None; int32|int64; first element of out of each request, and their end
        batch_offsets_k: Tensor or None; int32|int64; first element of k_cache of each request, and their end
        batch_offsets_v: Tensor or None; int32|int64; first element of v_cache of each request, and their end
        batch_offsets_stats: Tensor or None; int32|int64; not available: the LSE is padded
        batch_offsets_units: str; one of elements, tokens; whether offsets count elements or tokens
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; in one tuple with the one before it; the result
        lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
        is_cuda_graph_compatible: bool; GPU back end only
        backend: str or None; one of cudnn, cubin; the implementation by name; 'auto' lets the library choose
        o_data_type: dtype or None; dtype of the result; q_data_type when absent
        lse_base: str; one of log2, ln; base of the LSE

    Returns:
        out: Tensor; float32|float16|bfloat16; in one tuple with the one before it; the result
        lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fmha_v2_prefill_deepseek(query: _T, key: Array, value: Array, out: Optional[Array], num_heads: int, head_dim: int, seq_len: int, scale_softmax: float, scale_bmm1: Optional[float] = None, scale_bmm2: Optional[float] = None, return_lse: bool = False, lse: Optional[Array] = None, scale_bmm1_d: Optional[Array] = None, scale_bmm2_d: Optional[Array] = None) -> _T:
    """out = scale_bmm2 * softmax(scale_bmm1 * q k^T, causal) v for requests of one length.

    Args:
        query: Tensor [b s h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        key: Tensor [b s h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys
        value: Tensor [b s h dv]; dtype of key; values
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        num_heads: int; query heads
        head_dim: int; elements of a head
        seq_len: int; tokens of each request
        scale_softmax: float; of 8-bit probabilities; GPU kernels only
        scale_bmm1: float or None; factor of the logits: q's scale * k's scale * sm_scale
        scale_bmm2: float or None; factor of the result: v's scale
        return_lse: bool; also return the log-sum-exp of each row's logits
        lse: Tensor or None; float32; log-sum-exp of each row's logits, to base 2 unless the call names another
        scale_bmm1_d: Tensor or None; float32; scale_bmm1 as a tensor, in its place
        scale_bmm2_d: Tensor or None; float32; scale_bmm2 as a tensor, in its place

    Returns:
        out: Tensor; float32|float16|bfloat16; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fmha_v2_prefill_sm120(query: _T, key: Array, value: Array, out: Optional[Array], num_heads: int, head_dim: int, seq_len: int, scale_softmax: float, scale_bmm1: Optional[float] = None, scale_bmm2: Optional[float] = None, causal: bool = True, return_lse: bool = False, lse: Optional[Array] = None, scale_bmm1_d: Optional[Array] = None, scale_bmm2_d: Optional[Array] = None) -> _T:
    """out = scale_bmm2 * softmax(scale_bmm1 * q k^T, masked) v for requests of one length.

    Args:
        query: Tensor [b s h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        key: Tensor [b s h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys
        value: Tensor [b s h dv]; dtype of key; values
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        num_heads: int; query heads
        head_dim: int; elements of a head
        seq_len: int; tokens of each request
        scale_softmax: float; of 8-bit probabilities; GPU kernels only
        scale_bmm1: float or None; factor of the logits: q's scale * k's scale * sm_scale
        scale_bmm2: float or None; factor of the result: v's scale
        causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
        return_lse: bool; also return the log-sum-exp of each row's logits
        lse: Tensor or None; float32; log-sum-exp of each row's logits, to base 2 unless the call names another
        scale_bmm1_d: Tensor or None; float32; scale_bmm1 as a tensor, in its place
        scale_bmm2_d: Tensor or None; float32; scale_bmm2 as a tensor, in its place

    Returns:
        out: Tensor; float32|float16|bfloat16; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fmha_varlen(q: _T, k: Array, v: Array, qo_segment_offsets: Array, kv_segment_offsets: Array, plan_info: Any = None, max_qo_len: Optional[int] = None, out: Optional[Array] = None, lse: Optional[Array] = None, causal: bool = False, sm_scale: Optional[float] = None, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, o_scale: Optional[float] = None, return_lse: bool = False) -> Union[_T, Any]:
    """out = v_scale * softmax(q_scale * k_scale * sm_scale * q k^T, masked) v over ragged requests; lse in base 2.

    Args:
        q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        k: Tensor [m hkv d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys
        v: Tensor [m hkv dv]; dtype of k; values
        qo_segment_offsets: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
        kv_segment_offsets: Tensor [b+1]; int32|int64; first KV token of each request, and their number at the end
        plan_info: object; GPU kernels only
        max_qo_len: int or None; no request has more query tokens
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
        causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
        sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
        q_scale: float or None; decode scale of the queries: a factor of the logits
        k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
        v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
        o_scale: float or None; scale of an 8-bit result
        return_lse: bool; also return the log-sum-exp of each row's logits

    Returns:
        out: Tensor; float32|float16|bfloat16; the result
        lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def single_prefill_with_kv_cache(q: _T, k: Array, v: Array, scale_q: Optional[Array] = None, scale_k: Optional[Array] = None, scale_v: Optional[Array] = None, o_dtype: Optional[Union[torch.dtype, str]] = None, custom_mask: Optional[Array] = None, packed_custom_mask: Optional[Array] = None, causal: bool = False, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, sm_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, backend: str = 'auto', return_lse: bool = False, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None) -> Union[_T, Any]:
    """out = softmax(scale * q k^T, masked) v for one request; lse in base 2.

    Args:
        q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        k: Tensor [x y dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; keys
        v: Tensor [x y dv]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; values
        scale_q: Tensor or None; float32; decode scale of each head of 8-bit queries
        scale_k: Tensor or None; float32; decode scale of each KV head of 8-bit keys
        scale_v: Tensor or None; float32; decode scale of each KV head of 8-bit values
        o_dtype: dtype or None; dtype of the result; q's when absent
        custom_mask: Tensor or None; uint8|bool; 1 where a query token sees a key: [rows, keys] of each request, flattened, one after the other
        packed_custom_mask: Tensor or None; uint8; custom_mask as bits, each request padded to whole bytes (segment_packbits, little)
        causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
        pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
        use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
        sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
        window_left: int; a query token sees at most this many keys before its own; -1: all
        logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
        rope_scale: float or None; positions are divided by this
        rope_theta: float or None; base of the rotations' frequencies
        backend: str; one of auto, fa2, fa3, cudnn, trtllm-gen, cute-dsl, cutlass, cuda, cpu, reference; the implementation by name; 'auto' lets the library choose
        return_lse: bool; also return the log-sum-exp of each row's logits
        kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache
        k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
        v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one

    Returns:
        out: Tensor; float32|float16|bfloat16; the result
        lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def single_prefill_with_kv_cache_return_lse(q, k, v, scale_q=None, scale_k=None, scale_v=None, o_dtype=None, custom_mask=None, packed_custom_mask=None, causal=False, kv_layout='NHD', pos_encoding_mode='NONE', use_fp16_qk_reduction=False, sm_scale=None, window_left=-1, logits_soft_cap=None, rope_scale=None, rope_theta=None, backend='auto', return_lse=True, kv_cache_sf=None, k_scale=None, v_scale=None):
    """out = softmax(scale * q k^T, masked) v for one request; lse in base 2.

    Args:
        q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        k: Tensor [x y dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; keys
        v: Tensor [x y dv]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; values
        scale_q: Tensor or None; float32; decode scale of each head of 8-bit queries
        scale_k: Tensor or None; float32; decode scale of each KV head of 8-bit keys
        scale_v: Tensor or None; float32; decode scale of each KV head of 8-bit values
        o_dtype: dtype or None; dtype of the result; q's when absent
        custom_mask: Tensor or None; uint8|bool; 1 where a query token sees a key: [rows, keys] of each request, flattened, one after the other
        packed_custom_mask: Tensor or None; uint8; custom_mask as bits, each request padded to whole bytes (segment_packbits, little)
        causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
        pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
        use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
        sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
        window_left: int; a query token sees at most this many keys before its own; -1: all
        logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
        rope_scale: float or None; positions are divided by this
        rope_theta: float or None; base of the rotations' frequencies
        backend: str; one of auto, fa2, fa3, cudnn, trtllm-gen, cute-dsl, cutlass, cuda, cpu, reference; the implementation by name; 'auto' lets the library choose
        return_lse: bool; also return the log-sum-exp of each row's logits
        kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache
        k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
        v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one

    Returns:
        out: Tensor; float32|float16|bfloat16; the result
        lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def single_prefill_with_kv_cache_with_jit_module(jit_module: Any, q: _T, k: Array, v: Array, *args: Any, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', mask_mode: int = 0, window_left: int = -1, return_lse: bool = False) -> Union[_T, Any]:
    """single_prefill_with_kv_cache with a custom variant's logits, masks and outputs.

    Args:
        jit_module: object; a custom variant, from build_and_load() of flashinfer.jit's JitSpec
        q: Tensor [n h d]; float32|float16|bfloat16; queries
        k: Tensor [x y dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys
        v: Tensor [x y dv]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; values
        args: object; additional arguments of the custom variant: its tensors, then its scalars, in declared order
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
        mask_mode: int; 0: all keys, 1: causal, 2 and 3: what the variant's LogitsMask says
        window_left: int; a query token sees at most this many keys before its own; -1: all
        return_lse: bool; also return the log-sum-exp of each row's logits

    Returns:
        out: Tensor; float32|float16|bfloat16; the result
        lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_batch_context_with_kv_cache(query: _T, kv_cache: Union[Array, tuple[Array, Array]], workspace_buffer: Array, block_tables: Array, seq_lens: Array, max_q_len: int, max_kv_len: int, bmm1_scale: Union[float, Array], bmm2_scale: Union[float, Array], batch_size: Optional[int], cum_seq_lens_q: Array, cum_seq_lens_kv: Optional[Array], window_left: int = -1, out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None, o_sf_scale: Optional[float] = None, o_sf_vec_size: Optional[int] = None, kv_layout: Union[Literal['NHD', 'HND'], str] = 'HND', enable_pdl: Optional[bool] = None, sinks: Optional[Array] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, uses_shared_paged_kv_idx: bool = True, causal: bool = True, lse: Optional[Array] = None, return_lse: bool = False, multi_ctas_kv_counter_buffer: Optional[Array] = None, use_fp16_softmax: Optional[bool] = None, uses_spcompress: Optional[bool] = None, backend: str = 'trtllm-gen') -> Union[_T, Any]:
    """Batch prefill with a dense page table and no plan; lse in base 2.

    Args:
        query: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages of KV, stacked or a pair (k, v)
        workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        block_tables: Tensor [b x]; int32|int64; the pages of each request, one row each; entries after the last one are ignored
        seq_lens: Tensor [b]; uint32|int32|int64; KV tokens of each request
        max_q_len: int; upper bound of the query tokens of a request
        max_kv_len: int; upper bound of the KV tokens of a request
        bmm1_scale: number or Tensor; factor of the logits: q's scale * k's scale * sm_scale
        bmm2_scale: number or Tensor; factor of the result: v's scale / the output's scale
        batch_size: int or None; number of requests or segments
        cum_seq_lens_q: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
        cum_seq_lens_kv: Tensor [b+1] or None; int32|int64; first KV token of each request, and their number at the end
        window_left: int; a query token sees at most this many keys before its own; -1: all
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result
        o_sf_scale: float or None; scale of a 4-bit result; GPU kernels only
        o_sf_vec_size: int or None; elements for one scale factor of a 4-bit result; GPU kernels only
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
        kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache
        skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
        uses_shared_paged_kv_idx: bool; K and V of a token lie on pages of the same id; False is not available
        causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
        lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
        return_lse: bool; also return the log-sum-exp of each row's logits
        multi_ctas_kv_counter_buffer: Tensor or None; workspace; GPU kernels only
        use_fp16_softmax: bool or None; GPU kernels only
        uses_spcompress: bool or None; GPU back end only
        backend: str; one of auto, trtllm-gen, cpu, reference; the implementation by name; 'auto' lets the library choose

    Returns:
        out: Tensor; float32|float16|bfloat16; the result
        lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_ragged_attention_deepseek(query: _T, key: Array, value: Array, workspace_buffer: Array, seq_lens: Array, max_q_len: int, max_kv_len: int, bmm1_scale: Union[float, Array], bmm2_scale: Union[float, Array], o_sf_scale: float, batch_size: int, window_left: int, cum_seq_lens_q: Array, cum_seq_lens_kv: Array, enable_pdl: Optional[bool], is_causal: bool, return_lse: bool, attention_sinks: Optional[Array] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, sage_attn_sfs: Any = (None, None, None, None), num_elts_per_sage_attn_blk: Any = (0, 0, 0, 0), backend: str = 'trtllm-gen', q_seq_lens_cpu: Optional[Array] = None, kv_seq_lens_cpu: Optional[Array] = None, use_fp16_softmax: Optional[bool] = None, uses_spcompress: Optional[bool] = None, skip_all_rows_active_check: bool = True) -> Union[_T, Any]:
    """out = bmm2_scale * softmax(bmm1_scale * q k^T, masked) v over ragged requests; lse in base 2.

    Args:
        query: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        key: Tensor [m hkv d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys
        value: Tensor [m hkv dv]; dtype of key; values
        workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        seq_lens: Tensor; int32|int64; KV tokens of each request
        max_q_len: int; upper bound of the query tokens of a request
        max_kv_len: int; upper bound of the KV tokens of a request
        bmm1_scale: number or Tensor; factor of the logits: q's scale * k's scale * sm_scale
        bmm2_scale: number or Tensor; factor of the result: v's scale / the output's scale
        o_sf_scale: float; scale of a 4-bit result; GPU kernels only
        batch_size: int; number of requests or segments
        window_left: int; a query token sees at most this many keys before its own; -1: all
        cum_seq_lens_q: Tensor [b+1]; int32|int64; first query token of each request, and their number at the end
        cum_seq_lens_kv: Tensor [b+1]; int32|int64; first KV token of each request, and their number at the end
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        is_causal: bool; as causal
        return_lse: bool; also return the log-sum-exp of each row's logits
        attention_sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
        skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
        sage_attn_sfs: object; GPU kernels only
        num_elts_per_sage_attn_blk: object; GPU kernels only
        backend: str; one of auto, trtllm-gen, cute-dsl, cpu, reference; the implementation by name; 'auto' lets the library choose
        q_seq_lens_cpu: Tensor or None; int32|int64; query tokens of each request, on the host
        kv_seq_lens_cpu: Tensor or None; int32|int64; KV tokens of each request, on the host
        use_fp16_softmax: bool or None; GPU kernels only
        uses_spcompress: bool or None; GPU back end only
        skip_all_rows_active_check: bool; without effect: empty requests are legal

    Returns:
        out: Tensor; float32|float16|bfloat16; the result
        lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def trtllm_sage_attention_quantize(query: _T, key: Array, value: Array, q_block_size: int = 1, k_block_size: int = 16, qk_quant_dtype: Union[torch.dtype, str] = torch.int8, cum_seq_lens_q: Optional[Array] = None, cum_seq_lens_kv: Optional[Array] = None, smooth_k: bool = False) -> Union[tuple[_T, _T, _T, _T, _T, _T], Any]:
    """Queries, keys and values in 8 bits with the scales of SageAttention: of blocks of tokens, and of the channels of value.

    Args:
        query: Tensor [n h d]; float16|bfloat16; queries
        key: Tensor [m g d]; dtype of query; keys
        value: Tensor [m g d]; dtype of query; values
        q_block_size: int; query tokens that share a scale
        k_block_size: int; key tokens that share a scale
        qk_quant_dtype: dtype; dtype of the codes of query and key
        cum_seq_lens_q: Tensor [b+1] or None; int32|int64; first query token of each request, and their number at the end
        cum_seq_lens_kv: Tensor [b+1] or None; int32|int64; first KV token of each request, and their number at the end
        smooth_k: bool; quantise keys minus their mean over all tokens

    Returns:
        q_quant: Tensor; float8_e4m3fn|int8; codes of the queries
        k_quant: Tensor; float8_e4m3fn|int8; codes of the keys
        v_quant: Tensor; float8_e4m3fn; codes of the values
        q_scale: Tensor; float32; scale of each head and block of query tokens
        k_scale: Tensor; float32; scale of each head and block of key tokens
        v_scale: Tensor; float32; scale of each head and channel of the values
        k_mean: Tensor; float32; mean of the keys over all tokens, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer.prefill import fmha_v2_prefill_sm120 as fmha_v2_prefill_sm120
from flashinfer._attention_helpers import fmha_varlen_plan as fmha_varlen_plan
from flashinfer._attention_helpers import get_customize_batch_prefill_module as get_customize_batch_prefill_module
from flashinfer.page import get_seq_lens as get_seq_lens
from flashinfer._attention_helpers import make_hashable_cache as make_hashable_cache
from flashinfer.quantization import packbits as packbits
from flashinfer.quantization import segment_packbits as segment_packbits
from flashinfer._fmha_v2 import trtllm_fmha_v2_prefill as trtllm_fmha_v2_prefill
from flashinfer.mla import trtllm_batch_decode_with_kv_cache_mla as trtllm_prefill_with_kv_cache_mla
from flashinfer.prefill import trtllm_sage_attention_quantize as trtllm_sage_attention_quantize
def minimax_h3_varlen_attention(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.prefill.minimax_h3_varlen_attention is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def minimax_h3_varlen_nvfp4_attention(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.prefill.minimax_h3_varlen_nvfp4_attention is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_nvfp4_attention(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.prefill.prepare_nvfp4_attention is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
