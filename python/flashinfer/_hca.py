# SPDX-License-Identifier: Apache-2.0
"""DeepSeek V4's attention with tables of compressed pages (FlashInfer's HCA, backend "cute-dsl"): the tables as lists of rows, and back."""
import dataclasses

_WHO = "trtllm_batch_decode_sparse_mla_dsv4"
FORMAT = "compressed-page-aligned"
_WINDOW, _TILE = 128, 128  # columns of the window; compressed rows for whose pages a table has room at a time


@dataclasses.dataclass(frozen=True)
class DSV4HCAMetadata:
    """Arguments of `trtllm_batch_decode_sparse_mla_dsv4(backend="cute-dsl")`, for calls of the same requests."""
    hca_swa_indices: object
    hca_compressed_block_tables: object
    hca_seq_lens: object
    sparse_topk_lens: object
    swa_topk_lens: object
    hca_is_causal: bool = True


def _page_size(name, cache, kv_layout):
    if kv_layout not in ("HND", "NHD"):
        raise ValueError(f"kv_layout is {kv_layout!r}, but must be 'HND' or 'NHD'")
    if cache.dim() not in (3, 4) or cache.dim() == 4 and cache.shape[{"HND": 1, "NHD": 2}[kv_layout]] != 1:
        raise ValueError(f"{name} has shape {tuple(cache.shape)}, but must be pages of one head")
    return cache.shape[1] if cache.dim() == 3 or kv_layout == "NHD" else cache.shape[2]


def convert_compressed_page_aligned_sparse_indices_to_hca_metadata(sparse_indices, sparse_topk_lens, seq_lens, swa_kv_cache, compressed_kv_cache, *, q_len,
                                                                   kv_layout="HND"):
    """A DSV4HCAMetadata of lists of rows whose compressed part goes through whole pages.

    Query i of a request of `seq_lens` raw tokens sees n = seq_lens - q_len + i + 1 of them: min(n, 128) rows of the window, and n // 128
    compressed ones.

    Args:
        sparse_indices: int32 [tokens, 128 + n]: rows of swa_kv_cache in any order, then row page * page_size + place of compressed_kv_cache for
            each place in turn; entries that do not count may hold anything
        sparse_topk_lens: int32 [tokens], 128 + n // 128
        seq_lens: int32 [batch] raw tokens
        q_len: queries of a request

    Raises:
        ValueError: shapes, dtypes, lengths that are not these, rows outside their cache, compressed rows that do not go through pages
    """
    import torch

    page = _page_size("compressed_kv_cache", compressed_kv_cache, kv_layout)
    window_rows = swa_kv_cache.shape[0] * _page_size("swa_kv_cache", swa_kv_cache, kv_layout)
    tokens = len(seq_lens) * q_len
    for name, x, dims in (("sparse_indices", sparse_indices, 2), ("sparse_topk_lens", sparse_topk_lens, 1), ("seq_lens", seq_lens, 1)):
        if x.dtype != torch.int32 or x.dim() != dims:
            raise ValueError(f"{name} is {x.dtype} of shape {tuple(x.shape)}, but must be torch.int32 of {dims} dimension{'s' * (dims > 1)}")
    for name, cache in (("swa_kv_cache", swa_kv_cache), ("compressed_kv_cache", compressed_kv_cache)):
        if cache.device != sparse_indices.device:
            raise ValueError(f"{name} must be on {sparse_indices.device}, but is on {cache.device}")
    if q_len < 1 or sparse_indices.shape[0] != tokens or len(sparse_topk_lens) != tokens or sparse_indices.shape[1] < _WINDOW:
        raise ValueError(f"sparse_indices has shape {tuple(sparse_indices.shape)} and sparse_topk_lens {tuple(sparse_topk_lens.shape)}, but {len(seq_lens)} "
                         f"requests of q_len {q_len} have {tokens} queries with {_WINDOW} columns or more")
    if page < 1 or _TILE % page:
        raise ValueError(f"compressed_kv_cache has pages of {page} rows, but {_TILE} must be a multiple of it")
    visible = (seq_lens.long()[:, None] - q_len + 1 + torch.arange(q_len, device=seq_lens.device)).flatten()
    if tokens and int(visible.min()) < 1:
        raise ValueError(f"seq_lens is {int(seq_lens.min())}, but a request has {q_len} queries")
    wanted = _WINDOW + visible // _WINDOW
    if not torch.equal(sparse_topk_lens.long(), wanted):
        at = int((sparse_topk_lens.long() != wanted).nonzero()[0])
        raise ValueError(f"sparse_topk_lens[{at}] is {int(sparse_topk_lens[at])}, but a query that sees {int(visible[at])} tokens has {int(wanted[at])}")
    window_lens, compressed_lens = visible.clamp(max=_WINDOW), wanted - _WINDOW
    if tokens and int(compressed_lens.max()) > sparse_indices.shape[1] - _WINDOW:
        raise ValueError(f"sparse_indices has {sparse_indices.shape[1] - _WINDOW} compressed columns, but a query has {int(compressed_lens.max())}")
    window = sparse_indices[:, :_WINDOW].long()
    counts = torch.arange(_WINDOW, device=window.device) < window_lens[:, None]
    if (counts & ((window < 0) | (window >= window_rows))).any():
        raise ValueError(f"active SWA sparse_indices name a row outside swa_kv_cache, which has {window_rows} (valid physical rows)")
    width = max(-(-(int(compressed_lens.max()) if tokens else 0) // _TILE), 1) * _TILE
    rows = torch.zeros(tokens, width, dtype=torch.long, device=window.device)
    have = min(width, sparse_indices.shape[1] - _WINDOW)
    rows[:, :have] = sparse_indices[:, _WINDOW:_WINDOW + have]
    counts_compressed = torch.arange(width, device=window.device) < compressed_lens[:, None]
    first = rows[:, ::page]
    pages = torch.where(counts_compressed[:, ::page], first // page, 0)
    if (pages < 0).any() or (pages >= compressed_kv_cache.shape[0]).any():
        raise ValueError(f"sparse_indices must name valid physical page IDs of compressed_kv_cache, which has {compressed_kv_cache.shape[0]}")
    through = (pages[..., None] * page + torch.arange(page, device=window.device)).flatten(1)
    if (counts_compressed & (rows != through)).any():
        raise ValueError("sparse_indices is not the canonical compressed-page expansion: each counted row must be page * page_size + its place")
    last = wanted.view(-1, q_len)[:, -1]
    return DSV4HCAMetadata(torch.where(counts, window, 0).int(), pages.int(), last.int(), sparse_topk_lens, window_lens.int())


def lists_of(arguments):
    """The arguments of a call with backend "cute-dsl" as those of one with lists of rows.

    Raises:
        ValueError: arguments that are missing, or that belong to other back ends
    """
    import torch

    a = dict(arguments)
    query, format_ = a["query"], a.pop("hca_sparse_indices_format")
    if not a["hca_is_causal"]:
        raise ValueError(f"{_WHO}: backend 'cute-dsl' supports causal HCA only, but hca_is_causal is False")
    if query.dim() != 4 or a["cum_seq_lens_q"] is not None:
        raise ValueError(f"{_WHO}: query has shape {tuple(query.shape)}, but backend 'cute-dsl' takes [batch, queries, heads, dim] without cum_seq_lens_q")
    batch, q_len = query.shape[:2]
    if format_ is not None:
        if format_ != FORMAT:
            raise ValueError(f"{_WHO}: hca_sparse_indices_format is {format_!r}, but must be {FORMAT!r}")
        if a["seq_lens"] is None or len(a["seq_lens"]) != batch:
            raise ValueError(f"{_WHO}: hca_sparse_indices_format needs seq_lens with {batch} entries")
        given = [n for n in ("hca_swa_indices", "hca_compressed_block_tables", "hca_seq_lens", "swa_topk_lens") if a[n] is not None]
        if given:
            raise ValueError(f"{_WHO}: {given[0]} was given beside hca_sparse_indices_format, from which it is made")
        made = convert_compressed_page_aligned_sparse_indices_to_hca_metadata(
            a["sparse_indices"], a["sparse_topk_lens"], a["seq_lens"], a["swa_kv_cache"], a["compressed_kv_cache"], q_len=q_len, kv_layout=a["kv_layout"])
        a.update({f.name: getattr(made, f.name) for f in dataclasses.fields(made)})
    else:
        for name, other in (("sparse_indices", "hca_swa_indices and hca_compressed_block_tables"), ("seq_lens", "hca_seq_lens")):
            if a[name] is not None:
                raise ValueError(f"{_WHO}: {name} must be None: backend 'cute-dsl' uses {other}")
    for name in ("hca_swa_indices", "hca_compressed_block_tables", "hca_seq_lens", "sparse_topk_lens", "swa_topk_lens"):
        rows = batch if name == "hca_seq_lens" else batch * q_len
        if a[name] is None or a[name].dtype != torch.int32 or len(a[name]) != rows:
            shown = "None" if a[name] is None else f"{a[name].dtype} of shape {tuple(a[name].shape)}"
            raise ValueError(f"{_WHO}: {name} is {shown}, but must be torch.int32 with {rows} rows")
    page = _page_size("compressed_kv_cache", a["compressed_kv_cache"], a["kv_layout"])
    tables = a.pop("hca_compressed_block_tables").long()
    window, backing = a.pop("hca_swa_indices"), a.pop("hca_seq_lens")
    room = _WINDOW + tables.shape[1] * page
    if batch and int(backing.max()) > room:
        raise ValueError(f"{_WHO}: hca_seq_lens is {int(backing.max())}, more than the block-table capacity {room}")
    if window.shape[1:] != (_WINDOW,):
        raise ValueError(f"{_WHO}: hca_swa_indices has shape {tuple(window.shape)}, but must have {_WINDOW} columns")
    over = a["sparse_topk_lens"].view(batch, q_len) > backing[:, None]
    if over.any():
        raise ValueError(f"{_WHO}: sparse_topk_lens is {int(a['sparse_topk_lens'].max())}, but hca_seq_lens is {backing.tolist()[:8]}")
    rows = (tables[..., None] * page + torch.arange(page, device=tables.device)).flatten(1)
    rows[(tables < 0).repeat_interleave(page, 1)] = -1
    a.update(sparse_indices=torch.cat((window, rows.int()), 1), seq_lens=torch.full((batch,), 2**30, dtype=torch.int32, device=query.device), backend="auto",
             hca_swa_indices=None, hca_compressed_block_tables=None, hca_seq_lens=None)
    return a
