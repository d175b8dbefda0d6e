# SPDX-License-Identifier: Apache-2.0
"""Exact top-k and its transforms for sparse attention, made from the library's registry; `topk` is `top_k`. The forms for thread-block
clusters of a GPU are the same ops with their defaults."""
from . import _modules

__getattr__ = _modules.names_of(__name__)


def roundup_kbyte(x):
    """x rounded up to a multiple of 1024."""
    return (x + 1023) // 1024 * 1024


def topk_clusters_exact(logits, top_k, output_values=False, out_dtype=None, pdl=False):
    """(indices, values): the columns of the `top_k` largest elements of each row, int32 [rows, top_k] unless `out_dtype` says otherwise,
    and those elements, None unless `output_values`. `pdl` changes no result."""
    import torch

    values, indices = globals()["top_k"](logits, top_k)
    return indices.to(torch.int32 if out_dtype is None else out_dtype), values if output_values else None


def topk_clusters_page_table_transform(logits, seq_lens, src_page_table, top_k, pdl=False):
    """`top_k_page_table_transform(logits, src_page_table, seq_lens, top_k)`."""
    return globals()["top_k_page_table_transform"](logits, src_page_table, seq_lens, top_k)


def topk_clusters_ragged_transform(logits, seq_lens, offsets, top_k, pdl=False):
    """`top_k_ragged_transform(logits, offsets, seq_lens, top_k)`."""
    return globals()["top_k_ragged_transform"](logits, offsets, seq_lens, top_k)
