# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

class BatchDecodeWithPagedKVCacheWrapper:
    """Batch decode over a paged KV cache: one query token a request."""
    def __init__(self, float_workspace_buffer: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', use_cuda_graph: bool = False, use_tensor_cores: bool = False, paged_kv_indptr_buffer: Optional[Array] = None, paged_kv_indices_buffer: Optional[Array] = None, paged_kv_last_page_len_buffer: Optional[Array] = None, backend: str = 'auto', jit_args: Any = None) -> None:
        """Batch decode over a paged KV cache: one query token a request.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
            use_cuda_graph: bool; later plans use the buffers given here and keep the batch size
            use_tensor_cores: bool; which of FlashInfer's kernels; without effect on the CPU
            paged_kv_indptr_buffer: Tensor or None; workspace; memory for the page offsets of every later plan (graphs)
            paged_kv_indices_buffer: Tensor or None; workspace; memory for the page ids of every later plan (graphs)
            paged_kv_last_page_len_buffer: Tensor or None; workspace; memory for the last pages' lengths of every later plan (graphs)
            backend: str; one of auto, fa2, fa3, cudnn, trtllm-gen, cute-dsl, cutlass, cpu; the implementation by name; 'auto' lets the library choose
            jit_args: object; a custom variant, as flashinfer.jit's JitSpec.jit_args gives it

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def plan(self, indptr: Array, indices: Array, last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, *deprecated_positional_args, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', window_left: int = -1, window_right: int = 0, logits_soft_cap: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, data_type: Optional[Union[torch.dtype, str]] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True, block_tables: Optional[Array] = None, seq_lens: Optional[Array] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, q_len_per_req: int = 1, is_causal: Optional[bool] = None) -> None:
        """Takes the page table and everything that is the same for all layers of a step.

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
            window_right: int; keys after its own that a query token sees; 0 with causal attention
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            data_type: dtype or None; dtype of queries and caches; q_data_type and kv_data_type go before it
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            non_blocking: bool; copies to a GPU; without effect on the CPU
            block_tables: Tensor or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
            seq_lens: Tensor [b] or None; int32|int64; KV tokens of each request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels
            q_len_per_req: int; query tokens of each request, causal among themselves
            is_causal: bool or None; must agree with q_len_per_req > 1

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], *args: Any, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = False, enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: Optional[Array] = None, q_len_per_req: Optional[int] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> Union[_T, Any]:
        """out = softmax(scale * q k^T) v over each request's pages; lse in base 2.

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
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            window_left: int or None; a query token sees at most this many keys before its own; -1: all
            sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
            q_len_per_req: int or None; query tokens of each request, causal among themselves
            skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
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

    def forward(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> Union[_T, Any]:
        """run() with what plan() was given replaced.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            q_scale: float or None; decode scale of the queries: a factor of the logits
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

    def workspace_size(self, indptr: _T, indices: Array, last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', window_left: int = -1, logits_soft_cap: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, data_type: Optional[Union[torch.dtype, str]] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, block_tables: Optional[Array] = None, seq_lens: Optional[Array] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, q_len_per_req: int = 1) -> tuple[Any, ...]:
        """Bytes of partial results and of index arrays that a plan takes.

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
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            data_type: dtype or None; dtype of queries and caches; q_data_type and kv_data_type go before it
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            block_tables: Tensor or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
            seq_lens: Tensor [b] or None; int32|int64; KV tokens of each request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels
            q_len_per_req: int; query tokens of each request, causal among themselves

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

    def begin_forward(self, indptr: Array, indices: Array, last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, *deprecated_positional_args, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', window_left: int = -1, window_right: int = 0, logits_soft_cap: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, data_type: Optional[Union[torch.dtype, str]] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True, block_tables: Optional[Array] = None, seq_lens: Optional[Array] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, q_len_per_req: int = 1, is_causal: Optional[bool] = None) -> None:
        """Takes the page table and everything that is the same for all layers of a step.

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
            window_right: int; keys after its own that a query token sees; 0 with causal attention
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            data_type: dtype or None; dtype of queries and caches; q_data_type and kv_data_type go before it
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            non_blocking: bool; copies to a GPU; without effect on the CPU
            block_tables: Tensor or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
            seq_lens: Tensor [b] or None; int32|int64; KV tokens of each request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels
            q_len_per_req: int; query tokens of each request, causal among themselves
            is_causal: bool or None; must agree with q_len_per_req > 1

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run_return_lse(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], *args: Any, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = True, enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: Optional[Array] = None, q_len_per_req: Optional[int] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> Union[_T, Any]:
        """out = softmax(scale * q k^T) v over each request's pages; lse in base 2.

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
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            window_left: int or None; a query token sees at most this many keys before its own; -1: all
            sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
            q_len_per_req: int or None; query tokens of each request, causal among themselves
            skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
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

    def forward_return_lse(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> Union[_T, Any]:
        """run() with what plan() was given replaced.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            q_scale: float or None; decode scale of the queries: a factor of the logits
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

class CUDAGraphBatchDecodeWithPagedKVCacheWrapper:
    """Batch decode whose plan() also writes its arrays into buffers of fixed size."""
    def __init__(self, workspace_buffer: Array, indptr_buffer: Optional[Array], indices_buffer: Optional[Array], last_page_len_buffer: Optional[Array], kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', use_tensor_cores: bool = False) -> None:
        """Batch decode whose plan() also writes its arrays into buffers of fixed size.

        Args:
            workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            indptr_buffer: Tensor or None; workspace; memory for the indptr of every later plan (graphs)
            indices_buffer: Tensor or None; workspace; memory for the indices of every later plan (graphs)
            last_page_len_buffer: Tensor or None; workspace; memory for the last_page_len of every later plan (graphs)
            kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
            use_tensor_cores: bool; which of FlashInfer's kernels; without effect on the CPU

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def plan(self, indptr: Array, indices: Array, last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, *deprecated_positional_args, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', window_left: int = -1, window_right: int = 0, logits_soft_cap: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, data_type: Optional[Union[torch.dtype, str]] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True, block_tables: Optional[Array] = None, seq_lens: Optional[Array] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, q_len_per_req: int = 1, is_causal: Optional[bool] = None) -> None:
        """Takes the page table and everything that is the same for all layers of a step.

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
            window_right: int; keys after its own that a query token sees; 0 with causal attention
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            data_type: dtype or None; dtype of queries and caches; q_data_type and kv_data_type go before it
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            non_blocking: bool; copies to a GPU; without effect on the CPU
            block_tables: Tensor or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
            seq_lens: Tensor [b] or None; int32|int64; KV tokens of each request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels
            q_len_per_req: int; query tokens of each request, causal among themselves
            is_causal: bool or None; must agree with q_len_per_req > 1

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], *args: Any, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = False, enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: Optional[Array] = None, q_len_per_req: Optional[int] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> Union[_T, Any]:
        """out = softmax(scale * q k^T) v over each request's pages; lse in base 2.

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
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            window_left: int or None; a query token sees at most this many keys before its own; -1: all
            sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
            q_len_per_req: int or None; query tokens of each request, causal among themselves
            skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
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

    def forward(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> Union[_T, Any]:
        """run() with what plan() was given replaced.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            q_scale: float or None; decode scale of the queries: a factor of the logits
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

    def workspace_size(self, indptr: _T, indices: Array, last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', window_left: int = -1, logits_soft_cap: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, data_type: Optional[Union[torch.dtype, str]] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, block_tables: Optional[Array] = None, seq_lens: Optional[Array] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, q_len_per_req: int = 1) -> tuple[Any, ...]:
        """Bytes of partial results and of index arrays that a plan takes.

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
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            data_type: dtype or None; dtype of queries and caches; q_data_type and kv_data_type go before it
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            block_tables: Tensor or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
            seq_lens: Tensor [b] or None; int32|int64; KV tokens of each request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels
            q_len_per_req: int; query tokens of each request, causal among themselves

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

    def begin_forward(self, indptr: Array, indices: Array, last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, *deprecated_positional_args, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', window_left: int = -1, window_right: int = 0, logits_soft_cap: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, data_type: Optional[Union[torch.dtype, str]] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True, block_tables: Optional[Array] = None, seq_lens: Optional[Array] = None, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, q_len_per_req: int = 1, is_causal: Optional[bool] = None) -> None:
        """Takes the page table and everything that is the same for all layers of a step.

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
            window_right: int; keys after its own that a query token sees; 0 with causal attention
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            data_type: dtype or None; dtype of queries and caches; q_data_type and kv_data_type go before it
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            non_blocking: bool; copies to a GPU; without effect on the CPU
            block_tables: Tensor or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
            seq_lens: Tensor [b] or None; int32|int64; KV tokens of each request
            fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
            disable_split_kv: bool; a schedule hint of GPU kernels
            q_len_per_req: int; query tokens of each request, causal among themselves
            is_causal: bool or None; must agree with q_len_per_req > 1

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run_return_lse(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], *args: Any, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = True, enable_pdl: Optional[bool] = None, window_left: Optional[int] = None, sinks: Optional[Array] = None, q_len_per_req: Optional[int] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None) -> Union[_T, Any]:
        """out = softmax(scale * q k^T) v over each request's pages; lse in base 2.

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
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            window_left: int or None; a query token sees at most this many keys before its own; -1: all
            sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
            q_len_per_req: int or None; query tokens of each request, causal among themselves
            skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
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

    def forward_return_lse(self, q: _T, paged_kv_cache: Union[Array, tuple[Array, Array]], pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> Union[_T, Any]:
        """run() with what plan() was given replaced.

        Args:
            q: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            paged_kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages: one tensor [pages, 2, page of K or V], or a tuple (k, v)
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            q_scale: float or None; decode scale of the queries: a factor of the logits
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

def cudnn_batch_decode_with_kv_cache(q: _T, k_cache: Array, v_cache: Array, scale: float, workspace_buffer: Array, *, max_sequence_kv: int, actual_seq_lens_kv: Optional[Array] = None, block_tables: Optional[Array] = None, is_cuda_graph_compatible: bool = False, batch_offsets_q: Optional[Array] = None, batch_offsets_o: Optional[Array] = None, batch_offsets_k: Optional[Array] = None, batch_offsets_v: Optional[Array] = None, out: Optional[Array] = None, return_lse: bool = False, lse: Optional[Array] = None, q_len_per_req: int = 1, window_left: int = -1, sinks: Optional[Array] = None) -> Union[_T, Any]:
    """Batch decode over pages of heads with a dense page table and no plan; lse in base 2.

    Args:
        q: Tensor [n h d]; float32|float16|bfloat16; queries
        k_cache: Tensor [p hkv ps dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, read; pages of keys, or rows of keys
        v_cache: Tensor [p hkv ps dv]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, read; pages of values, or rows of values
        scale: float; factor of the logits
        workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        max_sequence_kv: int; upper bound of the KV tokens of a request
        actual_seq_lens_kv: Tensor or None; int32|int64; KV tokens of each request
        block_tables: Tensor [b x] or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
        is_cuda_graph_compatible: bool; GPU back end only
        batch_offsets_q: Tensor or None; int32|int64; first element of q of each request, and their end
        batch_offsets_o: Tensor or None; int32|int64; first element of out of each request, and their end
        batch_offsets_k: Tensor or None; int32|int64; first element of k_cache of each request, and their end
        batch_offsets_v: Tensor or None; int32|int64; first element of v_cache of each request, and their end
        out: Tensor or None; dtype of q; written; made when absent; the result
        return_lse: bool; also return the log-sum-exp of each row's logits
        lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
        q_len_per_req: int; query tokens of each request, causal among themselves
        window_left: int; a query token sees at most this many keys before its own; -1: all
        sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value

    Returns:
        out: Tensor; dtype of q; the result
        lse: Tensor; float32; log-sum-exp of each row's logits, to base 2 unless the call names another, when requested

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def fast_decode_plan(self, indptr: Array, indices: Array, last_page_len: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, page_size: int, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', window_left: int = -1, logits_soft_cap: Optional[float] = None, q_data_type: Optional[Union[torch.dtype, str]] = None, kv_data_type: Optional[Union[torch.dtype, str]] = None, data_type: Optional[Union[torch.dtype, str]] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True, fixed_split_size: Optional[int] = None, disable_split_kv: bool = False, q_len_per_req: int = 1, global_override_indptr_cpu: Optional[Array] = None) -> None:
    """plan() from host arrays, with the data types of the last plan.

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
        logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
        q_data_type: dtype or None; dtype of the queries
        kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
        data_type: dtype or None; dtype of queries and caches; q_data_type and kv_data_type go before it
        sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
        rope_scale: float or None; positions are divided by this
        rope_theta: float or None; base of the rotations' frequencies
        non_blocking: bool; copies to a GPU; without effect on the CPU
        fixed_split_size: int or None; a schedule hint of GPU kernels, in pages; -1: none. Results here never depend on the batch
        disable_split_kv: bool; a schedule hint of GPU kernels
        q_len_per_req: int; query tokens of each request, causal among themselves
        global_override_indptr_cpu: Tensor [b+1] or None; int32|int64; indptr on the host, when `indptr` is on a GPU

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        AssertionError: run() before plan(), or values other than those planned
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def single_decode_with_kv_cache(q: _T, k: Array, v: Array, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_tensor_cores: bool = False, q_scale: Optional[float] = None, k_scale: Optional[float] = None, v_scale: Optional[float] = None, window_left: int = -1, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, return_lse: bool = False) -> Union[_T, Any]:
    """out = softmax(scale * q k^T) v for one query token; lse in base 2.

    Args:
        q: Tensor [h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        k: Tensor [x y dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys
        v: Tensor [x y dv]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; values
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
        pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
        use_tensor_cores: bool; which of FlashInfer's kernels; without effect on the CPU
        q_scale: float or None; decode scale of the queries: a factor of the logits
        k_scale: float or None; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
        v_scale: float or None; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one
        window_left: int; a query token sees at most this many keys before its own; -1: all
        logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
        sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
        rope_scale: float or None; positions are divided by this
        rope_theta: float or None; base of the rotations' frequencies
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

def single_decode_with_kv_cache_with_jit_module(jit_module: Any, q: _T, k: Array, v: Array, *args: Any, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', window_left: int = -1, return_lse: bool = False) -> Union[_T, Any]:
    """single_decode_with_kv_cache with a custom variant's logits, masks and outputs.

    Args:
        jit_module: object; a custom variant, from build_and_load() of flashinfer.jit's JitSpec
        q: Tensor [h d]; float32|float16|bfloat16; queries
        k: Tensor [x y dk]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys
        v: Tensor [x y dv]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; values
        args: object; additional arguments of the custom variant: its tensors, then its scalars, in declared order
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
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

def trtllm_batch_decode_with_kv_cache(query: _T, kv_cache: Union[Array, tuple[Array, Array]], workspace_buffer: Array, block_tables: Array, seq_lens: Array, max_seq_len: int, bmm1_scale: Union[float, Array] = 1.0, bmm2_scale: Union[float, Array] = 1.0, window_left: int = -1, out: Optional[Array] = None, out_dtype: Optional[Union[torch.dtype, str]] = None, o_sf_scale: Optional[float] = None, o_sf_vec_size: Optional[int] = None, sinks: Optional[Array] = None, kv_layout: Union[Literal['NHD', 'HND'], str] = 'HND', enable_pdl: Optional[bool] = None, backend: str = 'auto', q_len_per_req: int = 1, o_scale: float = 1.0, mask: Optional[Array] = None, max_q_len: Optional[int] = None, cum_seq_lens_q: Optional[Array] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None, uses_shared_paged_kv_idx: bool = True, lse: Optional[Array] = None, return_lse: bool = False, bmm1_scale_log2: Any = None, multi_ctas_kv_counter_buffer: Optional[Array] = None, enable_block_sparse_attention: bool = False, cp_world: int = 1, cp_rank: int = 0, causal_seqlens_kv_global: Any = None, bf16q_fp8kv_transform_mode: Any = None, request_order: Any = None, request_order_plan: Any = None) -> Union[_T, Any]:
    """Batch decode with a dense page table and no plan; lse in base 2.

    Args:
        query: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages of KV, stacked or a pair (k, v)
        workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        block_tables: Tensor [b x]; int32|int64; the pages of each request, one row each; entries after the last one are ignored
        seq_lens: Tensor [b]; uint32|int32|int64; KV tokens of each request
        max_seq_len: int; no request has more KV tokens
        bmm1_scale: number or Tensor; factor of the logits: q's scale * k's scale * sm_scale
        bmm2_scale: number or Tensor; factor of the result: v's scale / the output's scale
        window_left: int; a query token sees at most this many keys before its own; -1: all
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        out_dtype: dtype or None; dtype of the result
        o_sf_scale: float or None; scale of a 4-bit result; GPU kernels only
        o_sf_vec_size: int or None; elements for one scale factor of a 4-bit result; GPU kernels only
        sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        backend: str; one of auto, xqa, trtllm-gen, cpu, reference; the implementation by name; 'auto' lets the library choose
        q_len_per_req: int; query tokens of each request, causal among themselves
        o_scale: float; scale of an 8-bit result
        mask: Tensor or None; 1 where a row, or an element of a block, takes part; all when absent
        max_q_len: int or None; upper bound of the query tokens of a request
        cum_seq_lens_q: Tensor [b+1] or None; int32|int64; first query token of each request, and their number at the end
        skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
        kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache
        uses_shared_paged_kv_idx: bool; K and V of a token lie on pages of the same id; False is not available
        lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
        return_lse: bool; also return the log-sum-exp of each row's logits
        bmm1_scale_log2: object; bmm1_scale * log2(e) as a tensor; GPU kernels only
        multi_ctas_kv_counter_buffer: Tensor or None; workspace; GPU kernels only
        enable_block_sparse_attention: bool; GPU kernels only
        cp_world: int; context parallelism; needs several GPUs
        cp_rank: int; context parallelism; needs several GPUs
        causal_seqlens_kv_global: object; context parallelism; needs several GPUs
        bf16q_fp8kv_transform_mode: object; GPU kernels only
        request_order: object; GPU kernels only
        request_order_plan: object; GPU kernels only

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

def xqa_batch_decode_with_kv_cache(query: _T, kv_cache: Union[Array, tuple[Array, Array]], workspace_buffer: Array, block_tables: Array, seq_lens: Array, max_seq_len: int, bmm1_scale: Union[float, Array] = 1.0, bmm2_scale: Union[float, Array] = 1.0, window_left: int = -1, out: Optional[Array] = None, sinks: Optional[Array] = None, kv_layout: Union[Literal['NHD', 'HND'], str] = 'NHD', enable_pdl: Optional[bool] = None, q_len_per_req: int = 1, o_scale: float = 1.0, mask: Optional[Array] = None, kv_cache_sf: Optional[Union[Array, tuple[Array, Array]]] = None, q_cu_seq_lens: Optional[Array] = None) -> _T:
    """Batch decode with a dense page table and no plan; a mask among the rows of a request.

    Args:
        query: Tensor [n h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        kv_cache: Tensor or (Tensor, Tensor); float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8|float4_e2m1fn_x2; pages, read; pages of KV, stacked or a pair (k, v)
        workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        block_tables: Tensor [b x]; int32|int64; the pages of each request, one row each; entries after the last one are ignored
        seq_lens: Tensor [b]; uint32|int32|int64; KV tokens of each request
        max_seq_len: int; no request has more KV tokens
        bmm1_scale: number or Tensor; factor of the logits: q's scale * k's scale * sm_scale
        bmm2_scale: number or Tensor; factor of the result: v's scale / the output's scale
        window_left: int; a query token sees at most this many keys before its own; -1: all
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
        kv_layout: str; one of NHD, HND; axes of a page: NHD (token, head, dim) or HND (head, token, dim)
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        q_len_per_req: int; query tokens of each request, causal among themselves
        o_scale: float; scale of an 8-bit result
        mask: Tensor or None; uint16; bits: which rows of its request a row sees
        kv_cache_sf: Tensor or (Tensor, Tensor) or None; float8_e4m3fn|uint8; pages, read; scale factors of a 4-bit cache, in the form of the cache
        q_cu_seq_lens: Tensor [b+1] or None; uint32|int32|int64; first query token of each request, and their number at the end

    Returns:
        out: Tensor; float32|float16|bfloat16; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        KeyError or ValueError: a name that is not one of those listed
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer.page import get_seq_lens as get_seq_lens
from flashinfer._dsv4 import trtllm_batch_decode_sparse_mla_dsv4 as trtllm_batch_decode_sparse_mla_dsv4
from flashinfer.mla import trtllm_batch_decode_with_kv_cache_mla as trtllm_batch_decode_with_kv_cache_mla
from flashinfer.xqa import xqa as xqa
from flashinfer.mla import xqa_batch_decode_with_kv_cache_mla as xqa_batch_decode_with_kv_cache_mla
from flashinfer.xqa import xqa_mla as xqa_mla
def launch_sm110_gqa_decode_prepared(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.decode.launch_sm110_gqa_decode_prepared is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_balanced_batch_decode_with_kv_cache(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.decode.prepare_balanced_batch_decode_with_kv_cache is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def prepare_sm110_gqa_decode(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.decode.prepare_sm110_gqa_decode is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...

def sm110_gqa_decode(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.decode.sm110_gqa_decode is not available: this is for one model or one GPU generation; the ops take any sizes."""
    ...
