# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

class BatchMLAPagedAttentionWrapper:
    """Latent attention over a paged cache: all query heads share one KV head."""
    def __init__(self, float_workspace_buffer: Array, use_cuda_graph: bool = False, qo_indptr: Optional[Array] = None, kv_indptr: Optional[Array] = None, kv_indices: Optional[Array] = None, kv_len_arr: Optional[Array] = None, backend: Union[Literal['auto', 'fa2', 'fa3', 'cutlass', 'cutile', 'trtllm-gen', 'xqa', 'cute-dsl', 'cute-dsl-monolithic', 'cute-dsl-modular'], str] = 'auto') -> None:
        """Latent attention over a paged cache: all query heads share one KV head.

        Args:
            float_workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
            use_cuda_graph: bool; later plans use the buffers given here and keep the batch size
            qo_indptr: Tensor or None; workspace; first query token of each request, and their number at the end
            kv_indptr: Tensor or None; workspace; first KV entry of each request, and their number at the end
            kv_indices: Tensor or None; workspace; pages of all requests, one after the other
            kv_len_arr: Tensor or None; workspace; KV tokens of each request
            backend: str; one of auto, fa2, fa3, cutlass, cutile, trtllm-gen, xqa, cute-dsl, cute-dsl-monolithic, cute-dsl-modular; the implementation by name; 'auto' lets the library choose

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def plan(self, qo_indptr: Optional[Array] = None, kv_indptr: Optional[Array] = None, kv_indices: Optional[Array] = None, kv_len_arr: Optional[Array] = None, num_heads: Optional[int] = None, head_dim_ckv: Optional[int] = None, head_dim_kpe: Optional[int] = None, page_size: Optional[int] = None, causal: Optional[bool] = None, sm_scale: Optional[float] = None, q_data_type: Optional[Union[torch.dtype, str]] = None, kv_data_type: Optional[Union[torch.dtype, str]] = None, use_profiler: bool = False, *, metadata: Optional[Union[MLAPlanMetadata, dict[str, Any]]] = None, cum_seq_lens_q: Optional[Array] = None, block_tables: Optional[Array] = None, seq_lens: Optional[Array] = None, max_q_len: Optional[int] = None, query_layout: Optional[Union[Literal['split', 'packed'], str]] = None, kv_cache_layout: Optional[Union[Literal['split', 'packed'], str]] = None, lse_mode: Union[Literal['none', 'base2', 'basee'], str] = 'none', output_dtype: Optional[Union[torch.dtype, str]] = None, output_scale: Union[Literal['none', 'per-tensor'], str] = 'none', scale_mode: Union[Literal['default', 'kv-per-tensor', 'bmm-scalar', 'bmm-tensor'], str] = 'default', skip_softmax: bool = False, enable_pdl: Optional[bool] = None, use_sinks: bool = False) -> None:
        """Takes the page table and everything that is the same for all layers of a step.

        Args:
            qo_indptr: Tensor [qo] or None; int32|int64; first query token of each request, and their number at the end
            kv_indptr: Tensor [kv] or None; int32|int64; first KV entry of each request, and their number at the end
            kv_indices: Tensor [n] or None; int32|int64; pages of all requests, one after the other
            kv_len_arr: Tensor [b] or None; int32|int64; KV tokens of each request
            num_heads: int or None; query heads
            head_dim_ckv: int or None; elements of a token's compressed KV
            head_dim_kpe: int or None; elements of a token's position part
            page_size: int or None; tokens of a page
            causal: bool or None; row i of a request of n rows over m keys sees the keys up to m - n + i only
            sm_scale: float or None; factor of the logits; 1 / sqrt(head dim) when absent
            q_data_type: dtype or None; dtype of the queries
            kv_data_type: dtype or None; dtype of the cache; q_data_type when absent
            use_profiler: bool; GPU kernels only
            metadata: MLAPlanMetadata or a dict of its members; the page table, in place of the arguments for it
            cum_seq_lens_q: Tensor [b+1] or None; int32|int64; first query token of each request, and their number at the end
            block_tables: Tensor [b m] or None; int32|int64; the pages of each request, one row each; entries after the last one are ignored
            seq_lens: Tensor [b] or None; int32|int64; KV tokens of each request
            max_q_len: int or None; upper bound of the query tokens of a request
            query_layout: str or None; one of split, packed; 'packed': one tensor of q_nope and q_pe side by side; 'split': two
            kv_cache_layout: str or None; one of split, packed; 'packed': one tensor of ckv and kpe side by side; 'split': two
            lse_mode: str; one of none, base2, basee; whether run() returns the LSE, and to which base
            output_dtype: dtype or None; dtype of the result
            output_scale: str; one of none, per-tensor; whether run() is given a scale of the result
            scale_mode: str; one of default, kv-per-tensor, bmm-scalar, bmm-tensor; which scales run() is given
            skip_softmax: bool; whether run() is given a threshold to skip blocks by; GPU kernels only
            enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
            use_sinks: bool; whether run() is given sinks

        Raises:
            TypeError: an argument is missing, unknown or of another type
            ValueError: shapes, dtypes or values that do not fit together; the message names them
            KeyError or ValueError: a name that is not one of those listed
            AssertionError: run() before plan(), or values other than those planned
            NotImplementedError: a call that no implementation of this library supports; the message says why
        """
        ...

    def run(self, q_nope: Optional[_T] = None, q_pe: Optional[Array] = None, ckv_cache: Optional[Array] = None, kpe_cache: Optional[Array] = None, out: Optional[Array] = None, lse: Optional[Array] = None, return_lse: bool = False, profiler_buffer: Optional[Array] = None, kv_len: Optional[Array] = None, page_table: Optional[Array] = None, return_lse_base_on_e: bool = False, o_scale: Optional[float] = None, *, query: Optional[Union[Array, tuple[Array, Array]]] = None, kv_cache: Optional[Union[Array, tuple[Array, Array]]] = None, ckv_scale: Optional[float] = None, ckv_scale_arr: Optional[Array] = None, kpe_scale: Optional[float] = None, sinks: Optional[Array] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, bmm1_scale: Optional[Union[float, Array]] = None, bmm2_scale: Optional[Union[float, Array]] = None) -> Union[_T, Any]:
        """out = softmax(sm_scale * (q_nope ckv^T + q_pe kpe^T)) ckv over each request's pages; lse in base 2.

        Args:
            q_nope: Tensor or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; the queries' part without position
            q_pe: Tensor or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; the queries' position part
            ckv_cache: Tensor or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, read; pages of compressed KV
            kpe_cache: Tensor or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, read; pages of the keys' position part
            out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
            lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
            return_lse: bool; also return the log-sum-exp of each row's logits
            profiler_buffer: Tensor or None; GPU kernels only
            kv_len: Tensor or None; cutlass back end only
            page_table: Tensor or None; cutlass back end only
            return_lse_base_on_e: bool; the LSE to base e instead of 2
            o_scale: float or None; scale of an 8-bit result
            query: Tensor or (Tensor, Tensor) or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
            kv_cache: Tensor or (Tensor, Tensor) or None; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, read; pages of KV, stacked or a pair (k, v)
            ckv_scale: float or None; decode scale of an 8-bit compressed KV cache
            ckv_scale_arr: Tensor or None; float32; decode scale of each token's compressed KV
            kpe_scale: float or None; decode scale of an 8-bit position part
            sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
            skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
            bmm1_scale: number or Tensor or None; factor of the logits: q's scale * k's scale * sm_scale
            bmm2_scale: number or Tensor or None; factor of the result: v's scale / the output's scale

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

class MLAPlanMetadata:
    """The `metadata` of BatchMLAPagedAttentionWrapper.plan, by csr(qo_indptr, kv_indptr, kv_indices, kv_len_arr) or dense(cum_seq_lens_q, block_tables, seq_lens, max_q_len=None) or dual(qo_indptr, kv_indptr, kv_indices, kv_len_arr, *, cum_seq_lens_q, block_tables, seq_lens, max_q_len=None)."""
    qo_indptr: Any
    kv_indptr: Any
    kv_indices: Any
    kv_len_arr: Any
    cum_seq_lens_q: Any
    block_tables: Any
    seq_lens: Any
    max_q_len: Any
    @classmethod
    def csr(cls, qo_indptr, kv_indptr, kv_indices, kv_len_arr):
        ...
    @classmethod
    def dense(cls, cum_seq_lens_q, block_tables, seq_lens, max_q_len=None):
        ...
    @classmethod
    def dual(cls, qo_indptr, kv_indptr, kv_indices, kv_len_arr, *, cum_seq_lens_q, block_tables, seq_lens, max_q_len=None):
        ...
    def __init__(self, qo_indptr=None, kv_indptr=None, kv_indices=None, kv_len_arr=None, cum_seq_lens_q=None, block_tables=None, seq_lens=None, max_q_len=None):
        ...

def trtllm_batch_decode_with_kv_cache_mla(query: _T, kv_cache: Array, workspace_buffer: Array, qk_nope_head_dim: int, kv_lora_rank: int, qk_rope_head_dim: int, block_tables: Array, seq_lens: Optional[Array], max_seq_len: int, sparse_mla_top_k: int = 0, out: Optional[Array] = None, bmm1_scale: Union[float, Array] = 1.0, bmm2_scale: Union[float, Array] = 1.0, sinks: Optional[Array] = None, skip_softmax_threshold_scale_factor: Optional[float] = None, enable_pdl: Optional[bool] = None, backend: str = 'auto', is_var_seq: bool = True, uses_shared_paged_kv_idx: bool = True, lse: Optional[Array] = None, return_lse: bool = False, cute_dsl_impl: Union[Literal['auto', 'monolithic', 'modular'], str] = 'auto', kv_scale_format: Union[Literal['auto', 'pow2_fp32', 'arbitrary_fp32'], str] = 'auto', cum_seq_lens_q: Optional[Array] = None, max_q_len: Optional[int] = None, multi_ctas_kv_counter_buffer: Optional[Array] = None, sparse_mla_top_k_lens: Optional[Array] = None, enable_dcp: bool = False, cp_world: int = 1, cp_rank: int = 0, causal_seqlens_kv_global: Any = None, use_fp16_softmax: Optional[bool] = None, return_lse_base: Optional[Union[Literal['base2', 'basee'], str]] = None) -> Union[_T, Any]:
    """Latent attention with a dense page table, or a list of tokens for each query row, and no plan; lse in base 2.

    Args:
        query: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        kv_cache: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8; pages, read; pages of KV, stacked or a pair (k, v)
        workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        qk_nope_head_dim: int; elements of the un-absorbed heads without position; without effect
        kv_lora_rank: int; elements of a token's compressed KV
        qk_rope_head_dim: int; elements of a token's position part
        block_tables: Tensor; int32|int64; the pages of each request, one row each; entries after the last one are ignored
        seq_lens: Tensor or None; int32|int64; KV tokens of each request
        max_seq_len: int; no request has more KV tokens
        sparse_mla_top_k: int; block_tables lists so many tokens for each query row; 0: it lists pages
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        bmm1_scale: number or Tensor; factor of the logits: q's scale * k's scale * sm_scale
        bmm2_scale: number or Tensor; factor of the result: v's scale / the output's scale
        sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
        skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        backend: str; one of auto, xqa, cake, trtllm-gen, cute-dsl, sparse, cpu, reference; the implementation by name; 'auto' lets the library choose
        is_var_seq: bool; without effect
        uses_shared_paged_kv_idx: bool; K and V of a token lie on pages of the same id; False is not available
        lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
        return_lse: bool; also return the log-sum-exp of each row's logits
        cute_dsl_impl: str; one of auto, monolithic, modular; GPU kernels only
        kv_scale_format: str; one of auto, pow2_fp32, arbitrary_fp32; GPU kernels only
        cum_seq_lens_q: Tensor [b+1] or None; int32|int64; first query token of each request, and their number at the end
        max_q_len: int or None; upper bound of the query tokens of a request
        multi_ctas_kv_counter_buffer: Tensor or None; workspace; GPU kernels only
        sparse_mla_top_k_lens: Tensor or None; int32|int64; how many tokens of its list each query row attends to
        enable_dcp: bool; context parallelism; needs several GPUs
        cp_world: int; context parallelism; needs several GPUs
        cp_rank: int; context parallelism; needs several GPUs
        causal_seqlens_kv_global: object; context parallelism; needs several GPUs
        use_fp16_softmax: bool or None; GPU kernels only
        return_lse_base: str or None; one of base2, basee; base of the LSE; base2 when absent

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

def trtllm_prefill_with_kv_cache_mla(query, kv_cache, workspace_buffer, qk_nope_head_dim, kv_lora_rank, qk_rope_head_dim, block_tables, seq_lens, max_seq_len, sparse_mla_top_k=0, out=None, bmm1_scale=1.0, bmm2_scale=1.0, sinks=None, skip_softmax_threshold_scale_factor=None, enable_pdl=None, backend='auto', is_var_seq=True, uses_shared_paged_kv_idx=True, lse=None, return_lse=False, cute_dsl_impl='auto', kv_scale_format='auto', cum_seq_lens_q=None, max_q_len=None, multi_ctas_kv_counter_buffer=None, sparse_mla_top_k_lens=None, enable_dcp=False, cp_world=1, cp_rank=0, causal_seqlens_kv_global=None, use_fp16_softmax=None, return_lse_base=None):
    """Latent attention with a dense page table, or a list of tokens for each query row, and no plan; lse in base 2.

    Args:
        query: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        kv_cache: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2|uint8; pages, read; pages of KV, stacked or a pair (k, v)
        workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        qk_nope_head_dim: int; elements of the un-absorbed heads without position; without effect
        kv_lora_rank: int; elements of a token's compressed KV
        qk_rope_head_dim: int; elements of a token's position part
        block_tables: Tensor; int32|int64; the pages of each request, one row each; entries after the last one are ignored
        seq_lens: Tensor or None; int32|int64; KV tokens of each request
        max_seq_len: int; no request has more KV tokens
        sparse_mla_top_k: int; block_tables lists so many tokens for each query row; 0: it lists pages
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        bmm1_scale: number or Tensor; factor of the logits: q's scale * k's scale * sm_scale
        bmm2_scale: number or Tensor; factor of the result: v's scale / the output's scale
        sinks: Tensor or None; float32; one more logit of each query head's softmax, without a value
        skip_softmax_threshold_scale_factor: float or None; blocks of little weight are skipped; GPU kernels only
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU
        backend: str; one of auto, xqa, cake, trtllm-gen, cute-dsl, sparse, cpu, reference; the implementation by name; 'auto' lets the library choose
        is_var_seq: bool; without effect
        uses_shared_paged_kv_idx: bool; K and V of a token lie on pages of the same id; False is not available
        lse: Tensor or None; float32; written; made when absent; log-sum-exp of each row's logits, to base 2 unless the call names another
        return_lse: bool; also return the log-sum-exp of each row's logits
        cute_dsl_impl: str; one of auto, monolithic, modular; GPU kernels only
        kv_scale_format: str; one of auto, pow2_fp32, arbitrary_fp32; GPU kernels only
        cum_seq_lens_q: Tensor [b+1] or None; int32|int64; first query token of each request, and their number at the end
        max_q_len: int or None; upper bound of the query tokens of a request
        multi_ctas_kv_counter_buffer: Tensor or None; workspace; GPU kernels only
        sparse_mla_top_k_lens: Tensor or None; int32|int64; how many tokens of its list each query row attends to
        enable_dcp: bool; context parallelism; needs several GPUs
        cp_world: int; context parallelism; needs several GPUs
        cp_rank: int; context parallelism; needs several GPUs
        causal_seqlens_kv_global: object; context parallelism; needs several GPUs
        use_fp16_softmax: bool or None; GPU kernels only
        return_lse_base: str or None; one of base2, basee; base of the LSE; base2 when absent

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

def xqa_batch_decode_with_kv_cache_mla(query: _T, kv_cache: Array, workspace_buffer: Array, qk_nope_head_dim: int, kv_lora_rank: int, qk_rope_head_dim: int, block_tables: Array, seq_lens: Array, max_seq_len: int, out: Optional[Array] = None, bmm1_scale: Union[float, Array] = 1.0, bmm2_scale: Union[float, Array] = 1.0, sinks: Any = None, enable_pdl: Optional[bool] = None) -> _T:
    """Latent attention of one query row a request with a dense page table and no plan.

    Args:
        query: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; queries
        kv_cache: Tensor; float32|float16|bfloat16|float8_e4m3fn|float8_e5m2; pages, read; pages of KV, stacked or a pair (k, v)
        workspace_buffer: Tensor; workspace; scratch memory of FlashInfer's kernels; accepted, unused on the CPU
        qk_nope_head_dim: int; elements of the un-absorbed heads without position; without effect
        kv_lora_rank: int; elements of a token's compressed KV
        qk_rope_head_dim: int; elements of a token's position part
        block_tables: Tensor [b x]; int32|int64; the pages of each request, one row each; entries after the last one are ignored
        seq_lens: Tensor [b]; int32|int64; KV tokens of each request
        max_seq_len: int; no request has more KV tokens
        out: Tensor or None; float32|float16|bfloat16; written; made when absent; the result
        bmm1_scale: number or Tensor; factor of the logits: q's scale * k's scale * sm_scale
        bmm2_scale: number or Tensor; factor of the result: v's scale / the output's scale
        sinks: object; one more logit of each query head's softmax, without a value
        enable_pdl: bool or None; programmatic dependent launch; CUDA only, without effect on the CPU

    Returns:
        out: Tensor; float32|float16|bfloat16; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

from flashinfer._attention_helpers import MLAHeadDimensions as MLAHeadDimensions
from flashinfer._attention_helpers import MLALayerDimensions as MLALayerDimensions
from flashinfer._attention_helpers import deepseek_mla_dimensions as deepseek_mla_dimensions
from flashinfer.utils import get_trtllm_gen_multi_ctas_kv_counter_bytes as get_trtllm_gen_multi_ctas_kv_counter_bytes
from flashinfer._attention_helpers import smaller_mla_dimensions as smaller_mla_dimensions
from flashinfer._dsv4 import trtllm_batch_decode_sparse_mla_dsv4 as trtllm_batch_decode_sparse_mla_dsv4
from flashinfer.xqa import xqa_mla as xqa_mla
def batch_decode_sparse_mla_dsv4(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.mla.batch_decode_sparse_mla_dsv4 is not available: these are tables of pages for one GPU kernel; flashinfer.mla.trtllm_batch_decode_sparse_mla_dsv4 takes lists of rows."""
    ...

def convert_compressed_page_aligned_sparse_indices_to_hca_metadata(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.mla.convert_compressed_page_aligned_sparse_indices_to_hca_metadata is not available: these are tables of pages for one GPU kernel; flashinfer.mla.trtllm_batch_decode_sparse_mla_dsv4 takes lists of rows."""
    ...

supported_mla_layer_dimensions: Any
