# SPDX-License-Identifier: Apache-2.0
"""Attention of DeepSeek V4: each query sees lists of rows of two caches, a sliding window's and a compressed one; keys are values. In float32,
some rows of queries at a time."""
from ._dsa import attention_over_rows
from ._hca import lists_of

_WHO = "trtllm_batch_decode_sparse_mla_dsv4"
_ROWS = 16
WINDOW = 128  # columns of a list that belong to the window's cache


def _refuse(given, formats):
    for name, value in given.items():
        if value is not None:
            raise NotImplementedError(f"{_WHO}: {name} is not available: lists of rows in sparse_indices, and bfloat16 results, are")
    if formats != "fp8":
        raise NotImplementedError(f"{_WHO}: kv_cache_format {formats!r} is not available: caches have elements of bfloat16 or float8_e4m3fn")


def _rows_of(name, cache, layout, dim):
    """[rows, dim] of a cache with one head."""
    import torch

    at = {"HND": 1, "NHD": 2}[layout]
    if cache.dtype not in (torch.bfloat16, torch.float8_e4m3fn):
        raise NotImplementedError(f"{_WHO}: {name} is {cache.dtype}, but only torch.bfloat16 and torch.float8_e4m3fn are available")
    if cache.dim() == 4:
        if cache.shape[at] != 1:
            raise ValueError(f"{_WHO}: {name} has shape {tuple(cache.shape)}, but must have one head in dimension {at} ({layout})")
        cache = cache.squeeze(at)
    if cache.dim() != 3 or cache.shape[-1] != dim:
        raise ValueError(f"{_WHO}: {name} has shape {tuple(cache.shape)}, but must be pages of rows of {dim} elements")
    return cache


def _query_lengths(query, seq_lens, cum_seq_lens_q, max_q_len):
    """int64 [batch]."""
    import torch

    if cum_seq_lens_q is None:
        if query.dim() != 4:
            raise ValueError(f"{_WHO}: query has shape {tuple(query.shape)}, but must be [batch, queries, heads, dim] without cum_seq_lens_q")
        return torch.full((query.shape[0],), query.shape[1], device=query.device)
    if query.dim() != 3:
        raise ValueError(f"{_WHO}: query has shape {tuple(query.shape)}, but must be [tokens, heads, dim] with cum_seq_lens_q")
    if max_q_len is None:
        raise ValueError(f"{_WHO}: max_q_len is None, but is needed with cum_seq_lens_q")
    ends = cum_seq_lens_q.long()
    lengths = ends.diff()
    if ends[0] != 0 or ends[-1] != query.shape[0] or (lengths < 0).any():
        raise ValueError(f"{_WHO}: cum_seq_lens_q is {ends.tolist()[:8]}, but must rise from 0 to {query.shape[0]}")
    if len(lengths) and int(lengths.max()) > max_q_len:
        raise ValueError(f"{_WHO}: a request has {int(lengths.max())} queries, but max_q_len is {max_q_len}")
    return lengths


def _lists(tokens, sparse_indices, lens, extra_indices, extra_lens):
    """(int64 [tokens, columns] with the window's first, [tokens] how many columns count)."""
    import torch

    if sparse_indices is None or (lens is None and extra_lens is None):
        raise ValueError(f"{_WHO}: {'sparse_indices' if sparse_indices is None else 'sparse_topk_lens'} is needed")
    if extra_indices is not None:
        if sparse_indices.shape[-1] != WINDOW:
            raise ValueError(f"{_WHO}: sparse_indices has {sparse_indices.shape[-1]} columns, but must have {WINDOW} beside extra_sparse_indices")
        if extra_indices.dtype != torch.int32 or extra_indices.dim() != 2 or len(extra_indices) != len(sparse_indices):
            raise ValueError(f"{_WHO}: extra_sparse_indices is {extra_indices.dtype} of shape {tuple(extra_indices.shape)}, but must be torch.int32 with "
                             f"{len(sparse_indices)} rows, as sparse_indices")
        sparse_indices = torch.cat((sparse_indices, extra_indices), -1)
    lens = extra_lens + WINDOW if lens is None else lens
    for name, x, shape in (("sparse_indices", sparse_indices, (tokens, None)), ("sparse_topk_lens", lens, (tokens,))):
        if x.dtype != torch.int32 or x.dim() != len(shape) or x.shape[0] != tokens:
            raise ValueError(f"{_WHO}: {name} is {x.dtype} of shape {tuple(x.shape)}, but must be torch.int32 with {tokens} rows, one for each query")
    if sparse_indices.shape[1] < WINDOW:
        raise ValueError(f"{_WHO}: sparse_indices has {sparse_indices.shape[1]} columns, but the window alone has {WINDOW}")
    return sparse_indices.long(), lens.long()


def _gathered(name, cache, at, valid):
    """f32 [..., dim] of the rows `at`; row 0 where they are not valid."""
    import torch

    size = cache.shape[1]
    if (valid & (at >= cache.shape[0] * size)).any():
        raise ValueError(f"{_WHO}: sparse_indices names row {int(at[valid].max())}, but {name} has {cache.shape[0] * size}")
    at = torch.where(valid, at, 0)
    return cache[at // size, at % size].float()


def trtllm_batch_decode_sparse_mla_dsv4(query, swa_kv_cache, workspace_buffer, sparse_indices=None, compressed_kv_cache=None, sparse_topk_lens=None, seq_lens=None,
                                        out=None, bmm1_scale=1.0, bmm2_scale=1.0, sinks=None, kv_layout="HND", cum_seq_lens_q=None, max_q_len=None,
                                        enable_pdl=None, swa_topk_lens=None, extra_sparse_indices=None, extra_sparse_topk_lens=None, backend="auto",
                                        hca_swa_indices=None, hca_compressed_block_tables=None, hca_seq_lens=None, hca_is_causal=True,
                                        hca_use_persistent=False, hca_sparse_indices_format=None, remapped_sparse_indices_buffer=None,
                                        sparse_indices_are_storage_offsets=None, dsv4_inv_rope_cos_sin_cache=None, dsv4_output_scale=None,
                                        sparse_topk_lens_offset=0, multi_ctas_kv_counter_buffer=None, *, kv_cache_format="fp8"):
    """bmm2_scale * softmax(bmm1_scale * q . rows) . rows over the rows of two caches that each query's list names.

    Args:
        query: bfloat16 or float8_e4m3fn [batch, queries, heads, dim], or [tokens, heads, dim] with cum_seq_lens_q
        swa_kv_cache, compressed_kv_cache: the same dtypes, HND [pages, 1, page_size, dim] or NHD [pages, page_size, 1, dim]; each has its own pages
        workspace_buffer, enable_pdl, remapped_sparse_indices_buffer, multi_ctas_kv_counter_buffer: of GPU kernels; nothing here
        sparse_indices: int32 [tokens, 128 + n]: rows (page * page_size + place) of swa_kv_cache, then n of compressed_kv_cache; -1: none
        sparse_topk_lens: int32 [tokens]: columns that count, the 128 among them
        seq_lens: int32 [batch]: query i of q sees the first seq_lens - (q - 1 - i) columns of the 128
        out: bfloat16, as query; made when absent
        bmm1_scale, bmm2_scale: numbers or float32 [1]
        sinks: float32 [heads], logits that only enlarge the denominator
        kv_layout: "HND" or "NHD"
        cum_seq_lens_q, max_q_len: int32 [batch + 1] and the most queries of a request
        swa_topk_lens: int32 [tokens]: columns of the 128 that count
        extra_sparse_indices, extra_sparse_topk_lens: int32 [tokens, n] and [tokens]: the compressed columns apart; sparse_indices then has 128
        backend: "auto", "trtllm-gen", "cake": the same; "cute-dsl": tables in place of lists; "sparse": its caches are not available
        hca_swa_indices: int32 [tokens, 128] in place of sparse_indices, of which swa_topk_lens count
        hca_compressed_block_tables: int32 [tokens, pages] of compressed_kv_cache, of whose rows sparse_topk_lens - 128 count
        hca_seq_lens: int32 [batch] in place of seq_lens: at least every sparse_topk_lens of the request
        hca_sparse_indices_format: "compressed-page-aligned": sparse_indices and seq_lens as
            `convert_compressed_page_aligned_sparse_indices_to_hca_metadata` takes them
        hca_is_causal, hca_use_persistent: True is needed; nothing here
        sparse_topk_lens_offset: added to the lengths
        the others: not available

    Returns:
        bfloat16, as query; 0 for a query that sees no row

    Raises:
        ValueError: shapes, dtypes or values other than these, a row outside its cache
        NotImplementedError: packed caches, RoPE and quantisation of results
    """
    if backend == "cute-dsl":
        return trtllm_batch_decode_sparse_mla_dsv4(**lists_of(locals()))
    import torch

    if backend not in ("auto", "trtllm-gen", "cake"):
        what = NotImplementedError if backend == "sparse" else ValueError
        raise what(f"{_WHO}: backend is {backend!r}, but must be 'auto', 'trtllm-gen', 'cake' or 'cute-dsl'")
    for name, value in (("hca_swa_indices", hca_swa_indices), ("hca_compressed_block_tables", hca_compressed_block_tables), ("hca_seq_lens", hca_seq_lens),
                        ("hca_sparse_indices_format", hca_sparse_indices_format), ("hca_is_causal=False", None if hca_is_causal else 0)):
        if value is not None:
            raise ValueError(f"{_WHO}: backend {backend!r} does not accept {name}, which belongs to 'cute-dsl'")
    if kv_layout not in ("HND", "NHD"):
        raise ValueError(f"{_WHO}: kv_layout is {kv_layout!r}, but must be 'HND' or 'NHD'")
    _refuse({"dsv4_inv_rope_cos_sin_cache": dsv4_inv_rope_cos_sin_cache,
             "dsv4_output_scale": dsv4_output_scale, "sparse_indices_are_storage_offsets": sparse_indices_are_storage_offsets or None}, kv_cache_format)
    for name, value in (("compressed_kv_cache", compressed_kv_cache), ("seq_lens", seq_lens)):
        if value is None:
            raise ValueError(f"{_WHO}: {name} is needed")
    lengths = _query_lengths(query, seq_lens, cum_seq_lens_q, max_q_len)
    heads, dim = query.shape[-2:]
    q = query.reshape(-1, heads, dim)
    tokens = len(q)
    if query.dtype not in (torch.bfloat16, torch.float8_e4m3fn):
        raise ValueError(f"{_WHO}: query is {query.dtype}, but must be torch.bfloat16 or torch.float8_e4m3fn")
    wanted = (("seq_lens", seq_lens, torch.int32, (len(lengths),)), ("out", out, torch.bfloat16, tuple(query.shape)), ("sinks", sinks, torch.float32, (heads,)),
              ("swa_topk_lens", swa_topk_lens, torch.int32, (tokens,)))
    for name, x, dtype, shape in wanted:
        if x is not None and (x.dtype != dtype or tuple(x.shape) != shape):
            raise ValueError(f"{_WHO}: {name} is {x.dtype} of shape {tuple(x.shape)}, but must be {dtype} {list(shape)}")
    window, compressed = _rows_of("swa_kv_cache", swa_kv_cache, kv_layout, dim), _rows_of("compressed_kv_cache", compressed_kv_cache, kv_layout, dim)
    indices, lens = _lists(tokens, sparse_indices, sparse_topk_lens, extra_sparse_indices, extra_sparse_topk_lens)
    # The place of each token after its request's first, and how many columns of the window it may see.
    request = torch.arange(len(lengths), device=q.device).repeat_interleave(lengths)
    place = torch.arange(tokens, device=q.device) - (lengths.cumsum(0) - lengths)[request]
    visible = (seq_lens.long()[request] - (lengths[request] - 1 - place)).clamp(max=WINDOW)
    if swa_topk_lens is not None:
        visible = torch.minimum(visible, swa_topk_lens.long())
    column = torch.arange(indices.shape[1], device=q.device)
    valid = (indices >= 0) & (column < (lens + sparse_topk_lens_offset)[:, None]) & ((column >= WINDOW) | (column < visible[:, None]))
    made = torch.empty(q.shape, dtype=torch.bfloat16, device=q.device)
    for first in range(0, tokens, _ROWS):
        rows = slice(first, first + _ROWS)
        keys = torch.cat([_gathered(name, cache, indices[rows, part], valid[rows, part]) for name, cache, part in
                          (("swa_kv_cache", window, slice(0, WINDOW)), ("compressed_kv_cache", compressed, slice(WINDOW, None)))], 1)
        result, lse = attention_over_rows(q[rows].float() @ keys.mT * bmm1_scale, valid[rows], keys)
        if sinks is not None:
            result = result * torch.sigmoid(lse - sinks).nan_to_num(0.0)[..., None]
        made[rows] = (result * bmm2_scale).to(torch.bfloat16)
    return made.view(query.shape) if out is None else out.copy_(made.view(query.shape))
