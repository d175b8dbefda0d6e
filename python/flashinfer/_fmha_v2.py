# SPDX-License-Identifier: Apache-2.0
"""trtllm_fmha_v2_prefill: prefill attention of five input layouts, by the paged prefill wrapper. Keys that are not paged are pages of one
token; FP8 values are exact in bf16."""
import math

_LAYOUTS = ("PACKED_QKV", "CONTIGUOUS_Q_KV", "SEPARATE_Q_K_V", "Q_PAGED_KV_NHD", "Q_PAGED_KV_HND")
_MASKS = ("causal", "sliding_window", "chunked", "padding")
_WHO = "trtllm_fmha_v2_prefill"


def _split(qkv, layout):
    """Queries [t, heads, d], and keys and values [pages, tokens of a page, heads, d]."""
    parts = qkv if isinstance(qkv, (tuple, list)) else (qkv,)
    wanted = {"PACKED_QKV": 1, "SEPARATE_Q_K_V": 3}.get(layout, 2)
    if len(parts) != wanted:
        raise ValueError(f"{_WHO}: qkv has {len(parts)} tensors, but {layout} has {wanted}")
    if layout == "PACKED_QKV":
        q, k, v = parts[0].unbind(1)
    elif layout == "CONTIGUOUS_Q_KV":
        q, (k, v) = parts[0], parts[1].unbind(1)
    elif layout == "SEPARATE_Q_K_V":
        q, k, v = parts
    else:
        q, pool = parts
        k, v = pool if isinstance(pool, (tuple, list)) else pool.unbind(1)
        if layout.endswith("HND"):
            k, v = k.transpose(1, 2), v.transpose(1, 2)
        return q, k, v
    return q, k[:, None], v[:, None]


def _two_tables(k, v, block_tables):
    """K and V of one allocation as one pool, when each has a table of its own, [batch, 2, pages], counted from k's first page."""
    import torch

    if block_tables.dim() != 3:
        return k, v, block_tables
    distance = (v.data_ptr() - k.data_ptr()) // k.element_size()
    if k.stride() != v.stride() or distance % k.stride(0):
        raise ValueError(f"{_WHO}: k_cache and v_cache must be pages of one allocation, as many strides apart as block_tables says")
    shift = distance // k.stride(0)
    if not torch.equal(block_tables[:, 1], block_tables[:, 0] + shift):
        raise ValueError(f"{_WHO}: block_tables[:, 1] must be block_tables[:, 0] + {shift}, the distance of v_cache from k_cache in pages")
    return k, v, block_tables[:, 0]


def _pieces(q_ends, lengths, chunk):
    """(first row, rows, first key, keys) of parts with causal attention: whole requests, or with `chunk` the parts of their chunks."""
    for (first, end), length in zip(zip(q_ends, q_ends[1:]), lengths):
        rows, offset = end - first, length - (end - first)
        if not chunk:
            yield first, rows, 0, length
            continue
        while rows > 0:
            begin = offset // chunk * chunk
            taken = min(rows, begin + chunk - offset)
            yield first, taken, begin, offset + taken - begin
            first, rows, offset = first + taken, rows - taken, offset + taken


def _pages(pieces, starts, tables, page_size):
    """indptr, indices and last_page_len of the pieces; `tables`: pages of each request, or None for pages of one token in order."""
    import torch

    indptr, indices, last = [0], [], []
    for (_, _, begin, count), request in pieces:
        if tables is None:
            indices.append(torch.arange(starts[request] + begin, starts[request] + begin + count))
            last.append(1)
        else:
            used = tables[request, begin // page_size:-(-(begin + count) // page_size)].cpu()
            indices.append(used.long())
            last.append(count - (len(used) - 1) * page_size if count else 0)
        indptr.append(indptr[-1] + len(indices[-1]))
    empty = torch.empty(0, dtype=torch.int64)
    return (torch.tensor(indptr, dtype=torch.int32), torch.cat([*indices, empty]).int(), torch.tensor(last, dtype=torch.int32))


def _stats(lse, unit):
    """Pairs (m, s) with lse = m * unit + ln(s)."""
    import torch

    s = lse.exp() if unit == 0 else (lse != -math.inf).float()
    return torch.stack((torch.zeros_like(lse) if unit == 0 else torch.where(s == 0, 0.0, lse / unit), s), -1)


def trtllm_fmha_v2_prefill(qkv, input_layout, workspace_buffer, seq_lens, max_q_len, max_kv_len, bmm1_scale, bmm2_scale, batch_size, cum_seq_lens_q,
                           cum_seq_lens_kv, block_tables=None, out=None, out_dtype=None, sinks=None, pos_encoding_mode=None, logits_soft_cap_scale=None,
                           mask_mode="causal", window_left=-1, chunked_attention_size=0, save_softmax_stats=False,
                           skip_softmax_threshold_scale_factor=0):
    """out = bmm2_scale * softmax(bmm1_scale * q . k) . v for requests of packed rows, which are the last of their keys.

    Args:
        qkv: by input_layout: PACKED_QKV [t, 3, heads, d]; CONTIGUOUS_Q_KV ([t, heads, d], [t, 2, KV heads, d]); SEPARATE_Q_K_V (q, k, v);
            Q_PAGED_KV_NHD ([t, heads, d], [pages, 2, page size, KV heads, d]) and Q_PAGED_KV_HND, or a pair of both halves
        workspace_buffer: not used
        seq_lens: int32 [batch_size], keys of each request
        max_q_len, max_kv_len: at least the largest numbers of rows and keys
        bmm1_scale, bmm2_scale: factors of the logits and of the result
        cum_seq_lens_q, cum_seq_lens_kv: int32 [batch_size + 1]; the second is not read for pages
        block_tables: int32 [batch_size, pages], for a pair of caches [batch_size, 2, pages] (pages of both, counted from k_cache's first)
        out, out_dtype: [t, heads, d of V]; made when absent, with q's dtype unless out_dtype says another
        sinks: float32 [heads], or a list of one: a further term of each denominator
        pos_encoding_mode: None, or "ALIBI"
        logits_soft_cap_scale: cap * tanh(x / cap) of the scaled logits x; None or 0: none
        mask_mode: "causal", "sliding_window" (causal, window_left keys before the row's own), "chunked" (causal, within chunks of
            chunked_attention_size keys, a power of 2), "padding" (all keys)
        save_softmax_stats: also return the pair (m, s) for each row and head, float32 [t, heads, 2]; the log-sum-exp is m * bmm1_scale * sqrt(d) + ln(s),
            with a soft cap m * sqrt(d) + ln(s), as of FlashInfer's kernels for SM90
        skip_softmax_threshold_scale_factor: of GPU kernels; nothing is skipped here

    Returns:
        out, or (out, stats)

    Raises:
        ValueError: layouts, masks, shapes or lengths other than these
        NotImplementedError: chunked attention with ALiBi
    """
    import torch

    from .prefill import BatchPrefillWithPagedKVCacheWrapper

    layout, mask = str(input_layout).upper(), str(mask_mode or "causal").lower()
    if layout not in _LAYOUTS or mask not in _MASKS:
        raise ValueError(f"{_WHO}: input_layout is {input_layout!r} and mask_mode {mask_mode!r}, but must be one of {_LAYOUTS} and of {_MASKS}")
    q, k, v = _split(qkv, layout)
    tables, page_size = None, 1
    if layout.startswith("Q_PAGED"):
        if block_tables is None:
            raise ValueError(f"{_WHO}: block_tables is missing: {layout} needs it")
        k, v, tables = _two_tables(k, v, block_tables)
        page_size = k.shape[1]
    q_ends, starts, lengths = ([int(x) for x in given] for given in (cum_seq_lens_q, cum_seq_lens_kv, seq_lens))
    if not len(lengths) == batch_size == len(q_ends) - 1 or tables is None and len(starts) != batch_size + 1:
        raise ValueError(f"{_WHO}: seq_lens, cum_seq_lens_q and cum_seq_lens_kv have {len(lengths)}, {len(q_ends)} and {len(starts)} elements, but must have "
                         f"batch_size ({batch_size}), and one more")
    rows = [b - a for a, b in zip(q_ends, q_ends[1:])]
    if rows and (max(rows) > max_q_len or max(lengths) > max_kv_len):
        raise ValueError(f"{_WHO}: max_q_len is {max_q_len} and max_kv_len {max_kv_len}, but a request has {max(rows)} rows and {max(lengths)} keys")
    for b, (n, length) in enumerate(zip(rows, lengths)):
        if n > length and mask != "padding":
            raise ValueError(f"{_WHO}: request {b} has {n} rows, but {length} keys (seq_lens)")
        if tables is None and starts[b + 1] - starts[b] != length:
            raise ValueError(f"{_WHO}: request {b} has {starts[b + 1] - starts[b]} keys by cum_seq_lens_kv, but {length} by seq_lens")
    chunk = chunked_attention_size if mask == "chunked" else 0
    if mask == "chunked" and (chunk < page_size or chunk & (chunk - 1)):
        raise ValueError(f"{_WHO}: chunked_attention_size is {chunk}, but must be a power of 2 of at least the page size, {page_size}")
    alibi = pos_encoding_mode is not None and str(pos_encoding_mode).upper() == "ALIBI"
    if chunk and alibi:
        raise NotImplementedError(f"{_WHO}: chunked attention with ALiBi is not available")
    pieces = [(piece, b) for b in range(batch_size) for piece in _pieces(q_ends[b:b + 2], lengths[b:b + 1], chunk)]
    indptr, indices, last = _pages(pieces, starts, tables, page_size)
    dtype = out.dtype if out is not None else getattr(torch, out_dtype) if isinstance(out_dtype, str) else out_dtype or q.dtype
    plain = [x.to(torch.bfloat16) if x.element_size() == 1 else x for x in (q, k, v)]
    narrow = torch.tensor([], dtype=dtype).element_size() == 1
    wrapper = BatchPrefillWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), "NHD")
    wrapper.plan(torch.tensor([0, *(p[0] + p[1] for p, _ in pieces)], dtype=torch.int32), indptr, indices, last, q.shape[1], k.shape[2], q.shape[2], page_size,
                 head_dim_vo=v.shape[3], causal=mask != "padding", sm_scale=float(bmm1_scale), window_left=window_left if mask == "sliding_window" else -1,
                 logits_soft_cap=logits_soft_cap_scale or None, pos_encoding_mode="ALIBI" if alibi else "NONE", q_data_type=plain[0].dtype,
                 kv_data_type=plain[1].dtype, o_data_type=torch.float32 if narrow or dtype != plain[0].dtype else dtype)
    sink = sinks[0] if isinstance(sinks, (tuple, list)) and sinks else sinks
    result, lse = wrapper.run(plain[0].contiguous(), (plain[1], plain[2]), return_lse=True, lse_base="ln", sinks=sink if sink is not None and len(sink) else None,
                              v_scale=float(bmm2_scale))
    if narrow:
        result = result.clamp(-448, 448)
    result = result.to(dtype) if out is None else out.copy_(result)
    if not save_softmax_stats:
        return result
    return result, _stats(lse, q.shape[2] ** 0.5 * (1.0 if logits_soft_cap_scale else float(bmm1_scale)))
