# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

class BatchPODWithPagedKVCacheWrapper:
    """A batch of prefills and a batch of decodes in one call."""
    def __init__(self, float_workspace_buffer: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD') -> None:
        """A batch of prefills and a batch of decodes in one call.

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

    def plan(self, qo_indptr_p: Array, kv_indptr_p: Array, kv_indices_p: Array, last_page_len_p: Array, qo_indptr_d: Array, kv_indptr_d: Array, kv_indices_d: Array, last_page_len_d: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', window_left: int = -1, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, data_type: Optional[Union[torch.dtype, str]] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True) -> None:
        """Takes the page tables of both halves.

        Args:
            qo_indptr_p: Tensor [p+1]; int32|int64; qo_indptr, of the prefill half
            kv_indptr_p: Tensor [p+1]; int32|int64; kv_indptr, of the prefill half
            kv_indices_p: Tensor [n]; int32|int64; kv_indices, of the prefill half
            last_page_len_p: Tensor [p]; int32|int64; last_page_len, of the prefill half
            qo_indptr_d: Tensor [d+1]; int32|int64; qo_indptr, of the decode half
            kv_indptr_d: Tensor [d+1]; int32|int64; kv_indptr, of the decode half
            kv_indices_d: Tensor [m]; int32|int64; kv_indices, of the decode half
            last_page_len_d: Tensor [d]; int32|int64; last_page_len, of the decode half
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            page_size: int; tokens of a page
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            window_left: int; a query token sees at most this many keys before its own; -1: all
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            data_type: dtype or None; dtype of queries and caches; q_data_type and kv_data_type go before it
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            non_blocking: bool; copies to a GPU; without effect on the CPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, q_p: _T, paged_kv_cache_p: Union[Array, tuple[Array, Array]], q_d: Array, paged_kv_cache_d: Union[Array, tuple[Array, Array]], custom_mask_p: Optional[Array] = None, packed_custom_mask_p: Optional[Array] = None, causal_p: bool = False, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, return_lse: bool = False, use_fp16_qk_reduction: bool = False, enable_pdl: Optional[bool] = None) -> tuple[Any, ...]:
        """Batch prefill beside batch decode.

        Args:
            q_p: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries of the prefill half
            paged_kv_cache_p: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; paged_kv_cache, of the prefill half
            q_d: Tensor [b h d]; dtype of q_p; queries of the decode half
            paged_kv_cache_d: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; paged_kv_cache, of the decode half
            custom_mask_p: Tensor or None; uint8|bool; custom_mask, of the prefill half
            packed_custom_mask_p: Tensor or None; uint8; packed_custom_mask, of the prefill half
            causal_p: bool; causal, of the prefill half
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            return_lse: bool; also return the log-sum-exp of each row's logits
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

        Returns:
            out_p: Tensor; float32|float16|bfloat16
            lse_p: Tensor; float32; in one tuple with the one before it, when requested
            out_d: Tensor; float32|float16|bfloat16
            lse_d: Tensor; float32; in one tuple with the one before it, when requested

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def begin_forward(self, qo_indptr_p: Array, kv_indptr_p: Array, kv_indices_p: Array, last_page_len_p: Array, qo_indptr_d: Array, kv_indptr_d: Array, kv_indices_d: Array, last_page_len_d: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', window_left: int = -1, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, data_type: Optional[Union[torch.dtype, str]] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True) -> None:
        """Takes the page tables of both halves.

        Args:
            qo_indptr_p: Tensor [p+1]; int32|int64; qo_indptr, of the prefill half
            kv_indptr_p: Tensor [p+1]; int32|int64; kv_indptr, of the prefill half
            kv_indices_p: Tensor [n]; int32|int64; kv_indices, of the prefill half
            last_page_len_p: Tensor [p]; int32|int64; last_page_len, of the prefill half
            qo_indptr_d: Tensor [d+1]; int32|int64; qo_indptr, of the decode half
            kv_indptr_d: Tensor [d+1]; int32|int64; kv_indptr, of the decode half
            kv_indices_d: Tensor [m]; int32|int64; kv_indices, of the decode half
            last_page_len_d: Tensor [d]; int32|int64; last_page_len, of the decode half
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            page_size: int; tokens of a page
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            window_left: int; a query token sees at most this many keys before its own; -1: all
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            data_type: dtype or None; dtype of queries and caches; q_data_type and kv_data_type go before it
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            non_blocking: bool; copies to a GPU; without effect on the CPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run_return_lse(self, q_p: _T, paged_kv_cache_p: Union[Array, tuple[Array, Array]], q_d: Array, paged_kv_cache_d: Union[Array, tuple[Array, Array]], custom_mask_p: Optional[Array] = None, packed_custom_mask_p: Optional[Array] = None, causal_p: bool = False, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, return_lse: bool = True, use_fp16_qk_reduction: bool = False, enable_pdl: Optional[bool] = None) -> tuple[Any, ...]:
        """Batch prefill beside batch decode.

        Args:
            q_p: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries of the prefill half
            paged_kv_cache_p: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; paged_kv_cache, of the prefill half
            q_d: Tensor [b h d]; dtype of q_p; queries of the decode half
            paged_kv_cache_d: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; paged_kv_cache, of the decode half
            custom_mask_p: Tensor or None; uint8|bool; custom_mask, of the prefill half
            packed_custom_mask_p: Tensor or None; uint8; packed_custom_mask, of the prefill half
            causal_p: bool; causal, of the prefill half
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            return_lse: bool; also return the log-sum-exp of each row's logits
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

        Returns:
            out_p: Tensor; float32|float16|bfloat16
            lse_p: Tensor; float32; in one tuple with the one before it, when requested
            out_d: Tensor; float32|float16|bfloat16
            lse_d: Tensor; float32; in one tuple with the one before it, when requested

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

class PODWithPagedKVCacheWrapper:
    """One prefill and a batch of decodes in one call."""
    def __init__(self, float_workspace_buffer: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', use_cuda_graph: bool = False, paged_kv_indptr_buffer: Optional[Array] = None, paged_kv_indices_buffer: Optional[Array] = None, paged_kv_last_page_len_buffer: Optional[Array] = None, jit_args: Any = None) -> None:
        """One prefill and a batch of decodes in one call.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
            use_cuda_graph: bool; later plans use the buffers given here and keep the batch size
            paged_kv_indptr_buffer: Tensor or None; workspace; memory for the page offsets of every later plan (graphs)
            paged_kv_indices_buffer: Tensor or None; workspace; memory for the page ids of every later plan (graphs)
            paged_kv_last_page_len_buffer: Tensor or None; workspace; memory for the last pages' lengths of every later plan (graphs)
            jit_args: object; a custom variant, as flashinfer.jit's JitSpec.jit_args gives it

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def plan(self, indptr: Array, indices: Array, last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', window_left: int = -1, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, data_type: Optional[Union[torch.dtype, str]] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True) -> None:
        """Takes the page table of the decode half.

        Args:
            indptr: Tensor [b+1]; int32|int64; first entry of each request in the list that it divides, and the list's length at the end
            indices: Tensor [n]; int32|int64; pages, block columns or rows of probs, one after the other
            last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            page_size: int; tokens of a page
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            window_left: int; a query token sees at most this many keys before its own; -1: all
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            data_type: dtype or None; dtype of queries and caches; q_data_type and kv_data_type go before it
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            non_blocking: bool; copies to a GPU; without effect on the CPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, q_p: _T, k_p: Array, v_p: Array, q_d: Array, paged_kv_cache_d: Union[Array, tuple[Array, Array]], custom_mask_p: Optional[Array] = None, packed_custom_mask_p: Optional[Array] = None, causal_p: bool = False, kv_layout_p: Union[Literal['NHD', 'HND'], str] = 'NHD', pos_encoding_mode_p: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', sm_scale_p: Optional[float] = None, window_left_p: int = -1, rope_scale_p: Optional[float] = None, rope_theta_p: Optional[float] = None, return_lse_p: bool = False, custom_mask_d: Optional[Array] = None, packed_custom_mask_d: Optional[Array] = None, causal_d: bool = False, kv_layout_d: Union[Literal['NHD', 'HND'], str] = 'NHD', pos_encoding_mode_d: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', sm_scale_d: Optional[float] = None, window_left_d: int = -1, rope_scale_d: Optional[float] = None, rope_theta_d: Optional[float] = None, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, return_lse_d: bool = False, use_fp16_qk_reduction: bool = False, enable_pdl: Optional[bool] = None, *args: Any) -> tuple[Any, ...]:
        """single_prefill_with_kv_cache beside batch decode.

        Args:
            q_p: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries of the prefill half
            k_p: Tensor [x y dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys of the prefill half
            v_p: Tensor [x y dv]; dtype of k_p; values of the prefill half
            q_d: Tensor [b hd dd]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries of the decode half
            paged_kv_cache_d: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; paged_kv_cache, of the decode half
            custom_mask_p: Tensor or None; uint8|bool; custom_mask, of the prefill half
            packed_custom_mask_p: Tensor or None; uint8; packed_custom_mask, of the prefill half
            causal_p: bool; causal, of the prefill half
            kv_layout_p: str; one of NHD, HND; kv_layout, of the prefill half
            pos_encoding_mode_p: str; one of NONE, ROPE_LLAMA, ALIBI; pos_encoding_mode, of the prefill half
            sm_scale_p: float or None; sm_scale, of the prefill half
            window_left_p: int; window_left, of the prefill half
            rope_scale_p: float or None; rope_scale, of the prefill half
            rope_theta_p: float or None; rope_theta, of the prefill half
            return_lse_p: bool; return_lse, of the prefill half
            custom_mask_d: Tensor or None; custom_mask, of the decode half
            packed_custom_mask_d: Tensor or None; packed_custom_mask, of the decode half
            causal_d: bool; causal, of the decode half
            kv_layout_d: str; one of NHD, HND; kv_layout, of the decode half
            pos_encoding_mode_d: str; one of NONE, ROPE_LLAMA, ALIBI; pos_encoding_mode, of the decode half
            sm_scale_d: float or None; sm_scale, of the decode half
            window_left_d: int; window_left, of the decode half
            rope_scale_d: float or None; rope_scale, of the decode half
            rope_theta_d: float or None; rope_theta, of the decode half
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            return_lse_d: bool; return_lse, of the decode half
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            args: object; additional arguments of the custom variant: its tensors, then its scalars, in declared order

        Returns:
            out_p: Tensor; float32|float16|bfloat16
            lse_p: Tensor; float32; in one tuple with the one before it, when requested
            out_d: Tensor; float32|float16|bfloat16
            lse_d: Tensor; float32; in one tuple with the one before it, when requested

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

    def begin_forward(self, indptr: Array, indices: Array, last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', window_left: int = -1, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, data_type: Optional[Union[torch.dtype, str]] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True) -> None:
        """Takes the page table of the decode half.

        Args:
            indptr: Tensor [b+1]; int32|int64; first entry of each request in the list that it divides, and the list's length at the end
            indices: Tensor [n]; int32|int64; pages, block columns or rows of probs, one after the other
            last_page_len: Tensor [b]; int32|int64; tokens on each request's last page, 1 to the page size
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            page_size: int; tokens of a page
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            window_left: int; a query token sees at most this many keys before its own; -1: all
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            data_type: dtype or None; dtype of queries and caches; q_data_type and kv_data_type go before it
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            non_blocking: bool; copies to a GPU; without effect on the CPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run_return_lse(self, q_p: _T, k_p: Array, v_p: Array, q_d: Array, paged_kv_cache_d: Union[Array, tuple[Array, Array]], custom_mask_p: Optional[Array] = None, packed_custom_mask_p: Optional[Array] = None, causal_p: bool = False, kv_layout_p: Union[Literal['NHD', 'HND'], str] = 'NHD', pos_encoding_mode_p: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', sm_scale_p: Optional[float] = None, window_left_p: int = -1, rope_scale_p: Optional[float] = None, rope_theta_p: Optional[float] = None, return_lse_p: bool = False, custom_mask_d: Optional[Array] = None, packed_custom_mask_d: Optional[Array] = None, causal_d: bool = False, kv_layout_d: Union[Literal['NHD', 'HND'], str] = 'NHD', pos_encoding_mode_d: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', sm_scale_d: Optional[float] = None, window_left_d: int = -1, rope_scale_d: Optional[float] = None, rope_theta_d: Optional[float] = None, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, return_lse_d: bool = False, use_fp16_qk_reduction: bool = False, enable_pdl: Optional[bool] = None, *args: Any) -> tuple[Any, ...]:
        """single_prefill_with_kv_cache beside batch decode.

        Args:
            q_p: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries of the prefill half
            k_p: Tensor [x y dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys of the prefill half
            v_p: Tensor [x y dv]; dtype of k_p; values of the prefill half
            q_d: Tensor [b hd dd]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries of the decode half
            paged_kv_cache_d: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; paged_kv_cache, of the decode half
            custom_mask_p: Tensor or None; uint8|bool; custom_mask, of the prefill half
            packed_custom_mask_p: Tensor or None; uint8; packed_custom_mask, of the prefill half
            causal_p: bool; causal, of the prefill half
            kv_layout_p: str; one of NHD, HND; kv_layout, of the prefill half
            pos_encoding_mode_p: str; one of NONE, ROPE_LLAMA, ALIBI; pos_encoding_mode, of the prefill half
            sm_scale_p: float or None; sm_scale, of the prefill half
            window_left_p: int; window_left, of the prefill half
            rope_scale_p: float or None; rope_scale, of the prefill half
            rope_theta_p: float or None; rope_theta, of the prefill half
            return_lse_p: bool; return_lse, of the prefill half
            custom_mask_d: Tensor or None; custom_mask, of the decode half
            packed_custom_mask_d: Tensor or None; packed_custom_mask, of the decode half
            causal_d: bool; causal, of the decode half
            kv_layout_d: str; one of NHD, HND; kv_layout, of the decode half
            pos_encoding_mode_d: str; one of NONE, ROPE_LLAMA, ALIBI; pos_encoding_mode, of the decode half
            sm_scale_d: float or None; sm_scale, of the decode half
            window_left_d: int; window_left, of the decode half
            rope_scale_d: float or None; rope_scale, of the decode half
            rope_theta_d: float or None; rope_theta, of the decode half
            q_scale: float or None; decode scale of the queries: a factor of the logits
            k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
            return_lse_d: bool; return_lse, of the decode half
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            args: object; additional arguments of the custom variant: its tensors, then its scalars, in declared order

        Returns:
            out_p: Tensor; float32|float16|bfloat16
            lse_p: Tensor; float32; in one tuple with the one before it, when requested
            out_d: Tensor; float32|float16|bfloat16
            lse_d: Tensor; float32; in one tuple with the one before it, when requested

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

from flashinfer.page import get_seq_lens as get_seq_lens
from flashinfer.quantization import packbits as packbits