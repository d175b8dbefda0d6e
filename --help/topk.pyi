# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)

class TopKTieBreak(IntEnum):
    NONE = 0
    SMALL = 1
    LARGE = 2

def roundup_kbyte(x):
    """x rounded up to a multiple of 1024.
    """
    ...

def top_k(input: _T, k: int, sorted: bool = False, deterministic: bool = False, tie_break: Union[TopKTieBreak, int] = TopKTieBreak.NONE, dsa_graph_safe: bool = False) -> tuple[_T, _T]:
    """The k largest elements of each row and their indices, exactly.

    Args:
        input: Tensor [n d]; float32|float16|bfloat16; rows to work on
        k: int; keys
        sorted: bool; whether the values of a row come in falling order
        deterministic: bool; without effect: results here never depend on threads
        tie_break: int; which of equal values is taken: any, that of the smaller index, or of the larger
        dsa_graph_safe: bool; GPU kernels only

    Returns:
        values: Tensor [n k]; dtype of input
        indices: Tensor [n k]; int64; pages, block columns or rows of probs, one after the other

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def top_k_page_table_transform(input: _T, src_page_table: Array, lengths: Array, k: int, row_to_batch: Optional[Array] = None, deterministic: bool = False, tie_break: Union[TopKTieBreak, int] = TopKTieBreak.NONE, dsa_graph_safe: bool = False, row_starts: Optional[Array] = None, page_table_row_starts: Optional[Array] = None, *, page_size: int = 1, out: Optional[Array] = None, out_raw_indices: Optional[Array] = None) -> _T:
    """The positions of the k largest scores of each row, looked up in its page table, padded with -1.

    Args:
        input: Tensor [n d]; float32|float16|bfloat16; rows to work on
        src_page_table: Tensor [b pages]; int32; the pages of each request, one row each
        lengths: Tensor [n]; int32|int64; scores of each row that take part
        k: int; keys
        row_to_batch: Tensor [n] or None; int32|int64; which row of the page table each row uses; its own when absent
        deterministic: bool; without effect: results here never depend on threads
        tie_break: int; which of equal values is taken: any, that of the smaller index, or of the larger
        dsa_graph_safe: bool; GPU kernels only
        row_starts: Tensor [n] or None; int32|int64; first score of each row that takes part; 0 when absent
        page_table_row_starts: Tensor [n] or None; int32|int64; first page of each row in its table
        page_size: int; tokens of a page
        out: Tensor or None; int32; written; made when absent; the result
        out_raw_indices: Tensor [n k] or None; int32; written; made when absent; the positions found, before they are looked up in the page table

    Returns:
        out: Tensor; int32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def top_k_ragged_transform(input: _T, offsets: Array, lengths: Array, k: int, deterministic: bool = False, tie_break: Union[TopKTieBreak, int] = TopKTieBreak.NONE, dsa_graph_safe: bool = False, row_starts: Optional[Array] = None) -> _T:
    """The positions of the k largest scores of each row plus its offset, padded with -1.

    Args:
        input: Tensor [n d]; float32|float16|bfloat16; rows to work on
        offsets: Tensor [n]; int32|int64; position of each request's first token
        lengths: Tensor [n]; int32|int64; scores of each row that take part
        k: int; keys
        deterministic: bool; without effect: results here never depend on threads
        tie_break: int; which of equal values is taken: any, that of the smaller index, or of the larger
        dsa_graph_safe: bool; GPU kernels only
        row_starts: Tensor [n] or None; int32|int64; first score of each row that takes part; 0 when absent

    Returns:
        output: Tensor; int32; the result

    Raises:
        TypeError: an argument is missing, unknown or of another type
        ValueError: shapes, dtypes or values that do not fit together; the message names them
        NotImplementedError: a call that no implementation of this library supports; the message says why
    """
    ...

def topk_clusters_exact(logits, top_k, output_values=False, out_dtype=None, pdl=False):
    """(indices, values): the columns of the `top_k` largest elements of each row, int32 [rows, top_k] unless `out_dtype` says otherwise,
        and those elements, None unless `output_values`. `pdl` changes no result.
    """
    ...

def topk_clusters_page_table_transform(logits, seq_lens, src_page_table, top_k, pdl=False):
    """`top_k_page_table_transform(logits, src_page_table, seq_lens, top_k)`.
    """
    ...

def topk_clusters_ragged_transform(logits, seq_lens, offsets, top_k, pdl=False):
    """`top_k_ragged_transform(logits, offsets, seq_lens, top_k)`.
    """
    ...

from flashinfer._availability import can_implement_filtered_topk as can_implement_filtered_topk
from flashinfer._availability import can_use_clusters_topk as can_use_clusters_topk
from flashinfer._availability import can_use_cub_topk as can_use_cub_topk
from flashinfer.topk import top_k as topk
def get_fast_topk_clusters(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.topk.get_fast_topk_clusters is not available: top_k has no algorithm on thread-block clusters, and no size that needs one."""
    ...

def get_num_cached_for_topk(*args: Any, **kwargs: Any) -> NoReturn:
    """flashinfer.topk.get_num_cached_for_topk is not available: top_k has no algorithm on thread-block clusters, and no size that needs one."""
    ...
