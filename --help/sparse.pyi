# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

class BlockSparseAttentionWrapper:
    """Attention of row blocks to the key blocks that a pattern names."""
    def __init__(self, float_workspace_buffer: Array, backend: str = 'auto') -> None:
        """Attention of row blocks to the key blocks that a pattern names.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            backend: str; one of auto, fa2, fa3, cpu; the implementation by name; 'auto' lets the library choose

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def plan(self, indptr: Array, indices: Array, M: int, N: int, R: int, C: int, num_qo_heads: int, num_kv_heads: int, head_dim: int, mask: Optional[Array] = None, packed_mask: Optional[Array] = None, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, non_blocking: bool = True, block_mask: Any = None, kv_block_lens: Any = None, q2k_indices: Any = None, q2k_num: Any = None, kv_splits: Any = None, use_clc: Any = None, q_scale: Any = None, k_scale: Any = None, v_scale: Any = None) -> None:
        """Takes the pattern of blocks and everything that is the same for all layers.

        Args:
            indptr: Tensor [b+1]; int32|int64; first entry of each request in the list that it divides, and the list's length at the end
            indices: Tensor [n]; int32|int64; pages, block columns or rows of probs, one after the other
            M: int; rows of the sparse matrix: query tokens
            N: int; columns of the sparse matrix: KV tokens
            R: int; rows of a block of the sparse pattern
            C: int; columns of a block of the sparse pattern
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            mask: Tensor or None; uint8|bool; 1 where a row, or an element of a block, takes part; all when absent
            packed_mask: Tensor or None; uint8; the mask as bits (packbits, little)
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            non_blocking: bool; copies to a GPU; without effect on the CPU
            block_mask: object; special GPU back ends only
            kv_block_lens: object; special GPU back ends only
            q2k_indices: object; special GPU back ends only
            q2k_num: object; special GPU back ends only
            kv_splits: object; special GPU back ends only
            use_clc: object; special GPU back ends only
            q_scale: object; decode scale of the queries: a factor of the logits
            k_scale: object; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: object; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, q: _T, k: Array, v: Array, scale_q: Optional[Array] = None, scale_k: Optional[Array] = None, scale_v: Optional[Array] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = False, enable_pdl: Optional[bool] = None) -> Union[_T, Any]:
        """out = softmax(scale * q k^T, over the blocks of each row) v; lse in base 2.

        Args:
            q: Tensor [m h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k: Tensor [n g d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys
            v: Tensor [n g d]; dtype of k; values
            scale_q: Tensor or None; float32; decode scale of each head of 8-bit queries
            scale_k: Tensor or None; float32; decode scale of each KV head of 8-bit keys
            scale_v: Tensor or None; float32; decode scale of each KV head of 8-bit values
            out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
            lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
            return_lse: bool; also return the log-sum-exp of each row's logits
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

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

    def forward(self, q: _T, k: Array, v: Array, scale_q: Optional[Array] = None, scale_k: Optional[Array] = None, scale_v: Optional[Array] = None, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> _T:
        """run() with what plan() was given replaced.

        Args:
            q: Tensor [m h d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k: Tensor [n g d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys
            v: Tensor [n g d]; dtype of k; values
            scale_q: Tensor or None; float32; decode scale of each head of 8-bit queries
            scale_k: Tensor or None; float32; decode scale of each KV head of 8-bit keys
            scale_v: Tensor or None; float32; decode scale of each KV head of 8-bit values
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies

        Returns:
            out: Tensor; float32|float16|bfloat16; the result

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

    def begin_forward(self, indptr: Array, indices: Array, M: int, N: int, R: int, C: int, num_qo_heads: int, num_kv_heads: int, head_dim: int, mask: Optional[Array] = None, packed_mask: Optional[Array] = None, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None, o_data_type: Optional[Union[torch.dtype, str]] = None, non_blocking: bool = True, block_mask: Any = None, kv_block_lens: Any = None, q2k_indices: Any = None, q2k_num: Any = None, kv_splits: Any = None, use_clc: Any = None, q_scale: Any = None, k_scale: Any = None, v_scale: Any = None) -> None:
        """Takes the pattern of blocks and everything that is the same for all layers.

        Args:
            indptr: Tensor [b+1]; int32|int64; first entry of each request in the list that it divides, and the list's length at the end
            indices: Tensor [n]; int32|int64; pages, block columns or rows of probs, one after the other
            M: int; rows of the sparse matrix: query tokens
            N: int; columns of the sparse matrix: KV tokens
            R: int; rows of a block of the sparse pattern
            C: int; columns of a block of the sparse pattern
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            mask: Tensor or None; uint8|bool; 1 where a row, or an element of a block, takes part; all when absent
            packed_mask: Tensor or None; uint8; the mask as bits (packbits, little)
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            q_data_type: dtype; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            o_data_type: dtype or None; dtype of the result; q_data_type when absent
            non_blocking: bool; copies to a GPU; without effect on the CPU
            block_mask: object; special GPU back ends only
            kv_block_lens: object; special GPU back ends only
            q2k_indices: object; special GPU back ends only
            q2k_num: object; special GPU back ends only
            kv_splits: object; special GPU back ends only
            use_clc: object; special GPU back ends only
            q_scale: object; decode scale of the queries: a factor of the logits
            k_scale: object; decode scale of an 8-bit or 4-bit K cache: a number, or a tensor of one
            v_scale: object; decode scale of an 8-bit or 4-bit V cache: a number, or a tensor of one

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

class VariableBlockSparseAttentionWrapper:
    """Attention with a pattern of blocks of different sizes a KV head."""
    def __init__(self, float_workspace_buffer: Array, backend: str = 'auto') -> None:
        """Attention with a pattern of blocks of different sizes a KV head.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            backend: str; one of auto, fa2, fa3, cpu; the implementation by name; 'auto' lets the library choose

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def plan(self, block_mask_map: Array, block_row_sz: Array, block_col_sz: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None) -> None:
        """Takes the patterns, the sizes and everything that is the same for all layers.

        Args:
            block_mask_map: Tensor [h r c]; uint8|bool; which blocks take part, by head, block row and block column
            block_row_sz: Tensor [x y]; int32|int64; rows of each block row
            block_col_sz: Tensor [z w]; int32|int64; columns of each block column
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            non_blocking: bool; copies to a GPU; without effect on the CPU
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

    def run(self, q: _T, k: Array, v: Array, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = False, enable_pdl: Optional[bool] = None) -> Union[_T, Any]:
        """out = softmax(scale * q k^T, over the blocks of each row and head) v; lse in base 2.

        Args:
            q: Tensor [h m d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k: Tensor [g n d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys
            v: Tensor [g n d]; dtype of k; values
            out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
            lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
            return_lse: bool; also return the log-sum-exp of each row's logits
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

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

    def forward(self, q: _T, k: Array, v: Array, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None) -> _T:
        """run() with what plan() was given replaced.

        Args:
            q: Tensor [h m d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            k: Tensor [g n d]; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; keys
            v: Tensor [g n d]; dtype of k; values
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies

        Returns:
            out: Tensor; float32|float16|bfloat16; the result

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

    def begin_forward(self, block_mask_map: Array, block_row_sz: Array, block_col_sz: Array, num_qo_heads: int, num_kv_heads: int, head_dim: int, causal: bool = False, pos_encoding_mode: Union[Literal['NONE', 'ROPE_LLAMA', 'ALIBI'], str] = 'NONE', use_fp16_qk_reduction: bool = False, logits_soft_cap: Optional[float] = None, sm_scale: Optional[float] = None, rope_scale: Optional[float] = None, rope_theta: Optional[float] = None, non_blocking: bool = True, q_data_type: Union[torch.dtype, str] = 'float16', kv_data_type: Optional[Union[torch.dtype, str]] = None) -> None:
        """Takes the patterns, the sizes and everything that is the same for all layers.

        Args:
            block_mask_map: Tensor [h r c]; uint8|bool; which blocks take part, by head, block row and block column
            block_row_sz: Tensor [x y]; int32|int64; rows of each block row
            block_col_sz: Tensor [z w]; int32|int64; columns of each block column
            num_qo_heads: int; query heads; a multiple of num_kv_heads
            num_kv_heads: int; KV heads; divides num_qo_heads
            head_dim: int; elements of a head
            causal: bool; row i of a request of n rows over m keys sees the keys up to m - n + i only
            pos_encoding_mode: str; one of NONE, ROPE_LLAMA, ALIBI; positions applied to q and k by the call: NONE, ROPE_LLAMA, ALIBI
            use_fp16_qk_reduction: bool; GPU kernels only: sums are always kept in f32 on the CPU
            logits_soft_cap: float or None; c > 0: each logit x becomes c tanh(x / c); 0 or None: none
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            rope_scale: float or None; positions are divided by this
            rope_theta: float or None; base of the rotations' frequencies
            non_blocking: bool; copies to a GPU; without effect on the CPU
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

    def end_forward(self):
        """Does nothing; kept for older programs.
        """
        ...

def convert_bsr_mask_layout(mask: _T, indptr: Array) -> _T:
    """Elements of masked blocks in the order of attention's rows.

    Args:
        mask: Tensor [x r c]; uint8|bool; 1 where a row, or an element of a block, takes part; all when absent
        indptr: Tensor [b+1]; int32|int64; first entry of each request in the list that it divides, and the list's length at the end

    Returns:
        out: Tensor; bool; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer.quantization import segment_packbits as segment_packbits