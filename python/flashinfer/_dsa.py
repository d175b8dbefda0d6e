# SPDX-License-Identifier: Apache-2.0
"""DeepSeek sparse attention as it is trained: the indexer's choice of keys, and attention with absorbed queries over them, in float32.
Gradients are torch's. Rows are taken in groups, so that memory does not grow with rows times keys."""
from ._indexer import _check, _scores

_ROWS = 64


def _segments(who, name, offsets, total):
    import torch

    _check(who, name, offsets, torch.int32, (None,))
    ends = [int(x) for x in offsets]
    if not ends or ends[0] != 0 or ends[-1] != total or any(b < a for a, b in zip(ends, ends[1:])):
        raise ValueError(f"{who}: {name} is {ends[:8]}{'...' if len(ends) > 8 else ''}, but must rise from 0 to {total}")
    return ends


def _only_cake(who, backend):
    if backend != "cake":
        raise ValueError(f"{who}: backend is {backend!r}, but must be 'cake'")


def dsa_indexer_topk(q, k, w, cu_seqlens_q, cu_seqlens_k, *, top_k=2048, softmax_scale=None, q_causal_offsets=None, ratio=1, max_seqlen_q=None,
                     max_seqlen_k=None, workspace_buffer=None, indices=None, scores=None, backend="cake"):
    """The top_k keys of each query's segment that it sees, by s[t, j] = sum_h w[t, h] * max(0, softmax_scale * q[t, h] . k[j]), the smaller
    id first among equal scores. Query u of a segment sees the keys j < floor((offset + u + 1) / ratio).

    Args:
        q: bfloat16 [t, heads, d]
        k: bfloat16 [keys, d], rows of any stride
        w: float32 [t, heads]
        cu_seqlens_q, cu_seqlens_k: int32 [segments + 1]
        top_k: 1 to 4096
        softmax_scale: 1 / sqrt(d) when absent
        q_causal_offsets: int64 [segments]; absent: keys - queries of the segment when ratio is 1, else 0
        ratio: at least 1
        max_seqlen_q, max_seqlen_k, workspace_buffer: of GPU kernels; nothing here
        indices, scores: int32 and float32 [t, top_k]; made when absent
        backend: "cake"

    Returns:
        (indices in their segment, ascending, -1 behind the last; their scores, -inf behind the last)

    Raises:
        ValueError: shapes, dtypes or values other than these
    """
    import torch

    who = "dsa_indexer_topk"
    _only_cake(who, backend)
    _check(who, "q", q, torch.bfloat16, (None, None, None))
    (t, heads, d), keys = q.shape, k.shape[0]
    _check(who, "k", k, torch.bfloat16, (None, d))
    _check(who, "w", w, torch.float32, (t, heads))
    if not 1 <= top_k <= 4096 or ratio < 1:
        raise ValueError(f"{who}: top_k is {top_k} and ratio {ratio}, but must be within [1, 4096] and at least 1")
    scale = d ** -0.5 if softmax_scale is None else softmax_scale
    if not scale > 0:
        raise ValueError(f"{who}: softmax_scale is {softmax_scale}, but must be positive")
    of_q, of_k = _segments(who, "cu_seqlens_q", cu_seqlens_q, t), _segments(who, "cu_seqlens_k", cu_seqlens_k, keys)
    if len(of_q) != len(of_k):
        raise ValueError(f"{who}: cu_seqlens_k has {len(of_k)} offsets, but cu_seqlens_q has {len(of_q)}")
    if q_causal_offsets is not None:
        _check(who, "q_causal_offsets", q_causal_offsets, torch.int64, (len(of_q) - 1,))
    made = []
    for name, x, dtype, empty in (("indices", indices, torch.int32, -1), ("scores", scores, torch.float32, float("-inf"))):
        if x is not None:
            _check(who, name, x, dtype, (t, top_k))
        made.append((torch.empty(t, top_k, dtype=dtype, device=q.device) if x is None else x).fill_(empty))
    for s in range(len(of_q) - 1):
        length_k = of_k[s + 1] - of_k[s]
        offset = (length_k - (of_q[s + 1] - of_q[s]) if ratio == 1 else 0) if q_causal_offsets is None else int(q_causal_offsets[s])
        segment = k[of_k[s]:of_k[s + 1]].float() * scale
        for first in range(of_q[s], of_q[s + 1], _ROWS):
            rows = slice(first, min(first + _ROWS, of_q[s + 1]))
            visible = ((offset + torch.arange(rows.start, rows.stop, device=q.device) - of_q[s] + 1) // ratio).clamp(0, length_k)
            _select(_scores(q[rows].float(), segment, w[rows]), visible, made[0][rows], made[1][rows])
    return tuple(made)


def _select(scores, visible, indices, values):
    """Writes the best of the first visible[row] scores of each row."""
    import torch

    count = min(indices.shape[1], int(visible.max()) if len(visible) else 0)
    if not count:
        return
    hidden = torch.arange(scores.shape[1], device=scores.device) >= visible[:, None]
    ranked = torch.where(scores.isnan(), float("-inf"), scores + 0.0).masked_fill_(hidden, float("-inf"))
    # NaN and -inf of visible keys still precede hidden ones: a stable sort by score of keys in the order of (hidden, id)
    best = ranked.sort(dim=1, descending=True, stable=True).indices[:, :count]
    chosen = torch.where(torch.arange(count, device=scores.device) < visible[:, None], best, scores.shape[1]).sort(1).values
    found = chosen < scores.shape[1]
    at = chosen.clamp(max=scores.shape[1] - 1)
    indices[:, :count] = torch.where(found, at, -1).int()
    values[:, :count] = torch.where(found, scores.gather(1, at), float("-inf"))


def dsa_indexer_topk_workspace_size(top_k=2048, device=None):
    """0: `dsa_indexer_topk` takes no memory of the caller's."""
    return 0


def attention_over_rows(logits, valid, values):
    """(softmax of the valid logits times values, 0 where a row has none; log-sum-exp): logits f32 [rows, heads, n], valid bool [rows, n], values
    f32 [rows, n, d]."""
    import torch

    logits = logits.masked_fill(~valid[:, None], float("-inf"))
    some = valid.any(1)[:, None, None]
    weights = torch.softmax(torch.where(some, logits, 0.0), -1)
    return torch.where(some, weights @ values, 0.0), torch.logsumexp(logits, -1)


def dsa_sparse_attention(q_latent, q_rope, kv_latent, k_rope, indices, *, topk_length=None, softmax_scale=None, return_lse=False, key_passes=None,
                         backend="cake", dkv_acc=None, dkv_dst_map=None):
    """softmax(softmax_scale * (q_rope . k_rope + q_latent . kv_latent)) . kv_latent over the keys that `indices` name, each as often as it
    is named.

    Args:
        q_latent, q_rope: bfloat16 [t, heads, 512], [t, heads, 64] (any extents), any strides
        kv_latent, k_rope: bfloat16 [keys, 512], [keys, 64]
        indices: int32 [t, topk], rows of the keys; those outside [0, keys) are skipped
        topk_length: int32 [t]: only the first topk_length[t] of a row count
        softmax_scale: 1 / sqrt(512 + 64) when absent, of the extents given
        key_passes: of GPU kernels; nothing here
        backend: "cake"
        dkv_acc, dkv_dst_map: not available: gradients are torch's

    Returns:
        bfloat16 [t, heads, 512], 0 where a row has no key; with return_lse also its log-sum-exp, float32 [t, heads], -inf there

    Raises:
        ValueError: shapes or dtypes other than these
        NotImplementedError: dkv_acc or dkv_dst_map
    """
    import torch

    who = "dsa_sparse_attention"
    _only_cake(who, backend)
    if dkv_acc is not None or dkv_dst_map is not None:
        raise NotImplementedError(f"{who}: dkv_acc and dkv_dst_map are not available: torch adds gradients of leaves up by itself")
    _check(who, "q_latent", q_latent, torch.bfloat16, (None, None, None))
    (t, heads, latent), keys, rope = q_latent.shape, kv_latent.shape[0], q_rope.shape[-1]
    for name, x, dtype, shape in (("q_rope", q_rope, torch.bfloat16, (t, heads, rope)), ("kv_latent", kv_latent, torch.bfloat16, (keys, latent)),
                                  ("k_rope", k_rope, torch.bfloat16, (keys, rope)), ("indices", indices, torch.int32, (t, None))):
        _check(who, name, x, dtype, shape)
    valid = (indices >= 0) & (indices < keys)
    if topk_length is not None:
        _check(who, "topk_length", topk_length, torch.int32, (t,))
        valid &= torch.arange(indices.shape[1], device=indices.device) < topk_length[:, None]
    scale = (latent + rope) ** -0.5 if softmax_scale is None else softmax_scale
    outs, lses = [], []
    for first in range(0, t, _ROWS):
        rows = slice(first, first + _ROWS)
        at = torch.where(valid[rows], indices[rows], 0).long()
        c, r = kv_latent[at].float(), k_rope[at].float()
        made, lse = attention_over_rows((q_latent[rows].float() @ c.mT + q_rope[rows].float() @ r.mT) * scale, valid[rows], c)
        outs.append(made.to(torch.bfloat16))
        lses.append(lse.detach())
    out = torch.cat(outs) if outs else torch.empty_like(q_latent)
    if not return_lse:
        return out
    return out, torch.cat(lses) if lses else torch.empty(0, heads, device=q_latent.device)


def dsa_sparse_attention_varlen(q_latent, q_rope, kv_latent, k_rope, gather_kv_indices, cu_seqlens_q, cu_seqlens_k, max_seqlen_q=None, max_seqlen_k=None,
                                *, causal=False, topk_length=None, softmax_scale=None, return_lse=False, key_passes=None, backend="cake", dkv_acc=None,
                                dkv_dst_map=None):
    """`dsa_sparse_attention` of packed documents: gather_kv_indices, int32 [t, topk], are positions in the row's own document; with `causal`
    those behind the query's, (keys - queries of the document) + its row, are skipped too.

    Args, Returns, Raises: as there; cu_seqlens_q, cu_seqlens_k: int32 [documents + 1]; max_seqlen_q, max_seqlen_k: nothing here
    """
    import torch

    who = "dsa_sparse_attention_varlen"
    t = q_latent.shape[0]
    _check(who, "gather_kv_indices", gather_kv_indices, torch.int32, (t, None))
    of_q, of_k = _segments(who, "cu_seqlens_q", cu_seqlens_q, t), _segments(who, "cu_seqlens_k", cu_seqlens_k, kv_latent.shape[0])
    if len(of_q) != len(of_k):
        raise ValueError(f"{who}: cu_seqlens_k has {len(of_k)} offsets, but cu_seqlens_q has {len(of_q)}")
    starts_q, starts_k = cu_seqlens_q.long(), cu_seqlens_k.long()
    rows = torch.arange(t, device=q_latent.device)
    document = torch.searchsorted(starts_q, rows, right=True) - 1
    lengths_q, lengths_k = starts_q.diff()[document], starts_k.diff()[document]
    end = torch.minimum(lengths_k - lengths_q + rows - starts_q[document] + 1, lengths_k) if causal else lengths_k
    valid = (gather_kv_indices >= 0) & (gather_kv_indices < end[:, None])
    flat = torch.where(valid, gather_kv_indices + starts_k[document][:, None], -1).int()
    return dsa_sparse_attention(q_latent, q_rope, kv_latent, k_rope, flat, topk_length=topk_length, softmax_scale=softmax_scale, return_lse=return_lse,
                                key_passes=key_passes, backend=backend, dkv_acc=dkv_acc, dkv_dst_map=dkv_dst_map)
