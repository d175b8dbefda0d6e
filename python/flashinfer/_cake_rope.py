# SPDX-License-Identifier: Apache-2.0
"""A step's packed q, k and v to normalised, rotated q and to pages of k and v (`flashinfer.rope`): what FlashInfer fuses for one family of GPU kernels, by
torch on any device, without a wait for a GPU and for any number of heads of 128."""
_D = 128


def _check(who, qkv, cos_sin, seq_lens, q_indptr, page_indices, caches, norm, q_weight, k_weight):
    """(torch, query heads, key-value heads)"""
    import torch

    def need(ok, name, value, what):
        if not ok:
            raise ValueError(f"{who}: {name} is {value}, but must be {what}")

    shown = lambda t: f"{t.dtype} of shape {tuple(t.shape)}"
    k, v = caches
    need(k.dim() == 4 and k.shape == v.shape and k.shape[3] == _D, "the cache", f"{shown(k)} and {shown(v)}", f"two of [pages, page_size, heads, {_D}]")
    kv_heads = k.shape[2]
    heads = qkv.shape[-1] // _D - 2 * kv_heads
    need(qkv.dtype == torch.bfloat16 and qkv.dim() == 2 and qkv.shape[1] % _D == 0 and heads > 0 and heads % kv_heads == 0, "qkv", shown(qkv),
         f"torch.bfloat16 [tokens, (query heads + 2 * {kv_heads}) * {_D}]")
    need(cos_sin.dtype == torch.float32 and cos_sin.dim() == 2 and cos_sin.shape[1] == _D, "the table of cosines and sines", shown(cos_sin),
         f"torch.float32 [positions, {_D}]")
    for name, t, shape in (("seq_lens", seq_lens, (len(seq_lens),)), ("q_indptr", q_indptr, (len(seq_lens) + 1,)),
                           ("page_indices", page_indices, (len(seq_lens), page_indices.shape[-1]))):
        need(t.dtype == torch.int32 and tuple(t.shape) == shape, name, shown(t), f"torch.int32 of shape {shape}")
    need(norm in (0, 1, 2), "qk_norm_policy", norm, "0 (no norm), 1 (after the rotation) or 2 (before it)")
    for name, w in (("q_norm_weight", q_weight), ("k_norm_weight", k_weight)):
        need(norm == 0 or w is not None and w.dtype == torch.float32 and tuple(w.shape) == (_D,), name, None if w is None else shown(w), f"torch.float32 [{_D}]")
    return torch, heads, kv_heads


def _places(torch, rows, seq_lens, q_indptr, page_indices, page_size):
    """Of each of `rows` tokens: its request, its number in the request, its position, its page and the place there. Rows behind the last request get that of the
    last one, and are none."""
    token = torch.arange(rows, device=seq_lens.device)
    request = (torch.searchsorted(q_indptr.long(), token, right=True) - 1).clamp(0, len(seq_lens) - 1)
    number = token - q_indptr[request]
    position = (seq_lens - (q_indptr[1:] - q_indptr[:-1]))[request].long() + number
    page = page_indices[request, (position // page_size).clamp(0, page_indices.shape[1] - 1)]
    return request, number, position, page.long(), position % page_size


def _normed_and_turned(torch, x, weight, norm, eps, table):
    """float32 of x [tokens, heads, 128]: the RMSNorm of a head and the rotation of its halves, in the order of `norm`."""
    def normed(y):
        return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps) * weight

    y = x.float()
    if norm == 2:
        y = normed(y)
    (a, b), (cos, sin) = y.chunk(2, -1), table[:, None].chunk(2, -1)
    y = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    return normed(y) if norm == 1 else y


def _clear_last_pages(torch, caches, seq_lens, page_indices):
    """Zeros in the rows of every request's last page behind its last token."""
    page_size = caches[0].shape[1]
    last = ((seq_lens - 1).clamp(min=0) // page_size).long()
    page = page_indices.gather(1, last[:, None])[:, 0].long()
    unused = (torch.arange(page_size, device=seq_lens.device) >= ((seq_lens - 1) % page_size + 1)[:, None]) & (seq_lens > 0)[:, None]
    place = torch.arange(page_size, device=seq_lens.device).expand_as(unused)
    for cache in caches:
        rows = cache.view(torch.uint8) if cache.element_size() == 1 else cache
        pages = page[:, None].expand_as(unused)
        rows[pages, place] = torch.where(unused[..., None, None], torch.zeros((), dtype=rows.dtype, device=rows.device), rows[pages, place])


def _store(torch, outs, caches, values, page, place):
    """k and v to `outs`, or where there are none to the pages."""
    for out, cache, value in zip(outs, caches, values):
        if out is not None:
            out.view(torch.uint8 if out.element_size() == 1 else out.dtype).copy_(value)
        else:
            (cache.view(torch.uint8) if cache.element_size() == 1 else cache)[page, place] = value


def _parts(torch, qkv, heads, kv_heads, tables, q_weight, k_weight, norm, eps):
    q, k, v = qkv.unflatten(1, (-1, _D)).split([heads, kv_heads, kv_heads], 1)
    return _normed_and_turned(torch, q, q_weight, norm, eps, tables), _normed_and_turned(torch, k, k_weight, norm, eps, tables), v


def cake_fused_qk_rmsnorm_rope_append_paged_kv_cache(qkv, cos_sin, seq_lens, q_indptr, page_indices, key_cache, value_cache, *, num_q_heads, num_kv_heads,
                                                     qk_norm_policy=0, q_norm_weight=None, k_norm_weight=None, eps=1e-6, out_q=None, out_k=None, out_v=None,
                                                     clear_unused_last_page_rows=True):
    """Rotated q [tokens, num_q_heads, 128] of packed bf16 rows q | k | v; k and v go to the pages [pages, page_size, num_kv_heads, 128].

    Args:
        cos_sin: float32 [positions, 128], cosines and sines of a position
        seq_lens: int32 [B] tokens of each request with these
        q_indptr: int32 [B + 1] where each request's rows begin
        page_indices: int32 [B, pages of a request]
        qk_norm_policy: 0 no norm; 1 the RMSNorm of each head of q and k after the rotation; 2 before it. All in float32, rounded once
        out_k, out_v: [tokens, num_kv_heads, 128]: k and v go there instead
        clear_unused_last_page_rows: the rows of each request's last page behind its last token become 0

    Raises:
        ValueError: other shapes or dtypes
    """
    who, caches = "cake_fused_qk_rmsnorm_rope_append_paged_kv_cache", (key_cache, value_cache)
    torch, heads, kv_heads = _check(who, qkv, cos_sin, seq_lens, q_indptr, page_indices, caches, qk_norm_policy, q_norm_weight, k_norm_weight)
    if (heads, kv_heads) != (num_q_heads, num_kv_heads):
        raise ValueError(f"{who}: num_q_heads is {num_q_heads} and num_kv_heads {num_kv_heads}, but qkv and the cache have {heads} and {kv_heads}")
    _, _, position, page, place = _places(torch, len(qkv), seq_lens, q_indptr, page_indices, key_cache.shape[1])
    q, k, v = _parts(torch, qkv, heads, kv_heads, cos_sin[position], q_norm_weight, k_norm_weight, qk_norm_policy, eps)
    if clear_unused_last_page_rows:
        _clear_last_pages(torch, caches, seq_lens, page_indices)
    _store(torch, (out_k, out_v), caches, (k.to(qkv.dtype), v), page, place)
    return q.to(qkv.dtype) if out_q is None else out_q.copy_(q)


def _e4m3(torch, x):
    """The bytes of x as e4m3, saturated."""
    return x.clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8)


def cake_fused_qk_rmsnorm_rope_quantize_fp8_append_paged_kv_cache(qkv, cos_sin_cache, seq_lens, q_indptr, page_indices, paged_kv_cache, is_prefill, k_scale, v_scale,
                                                                  quant_policy, max_seqlen=0, upper_max=448.0, q_scale_inv=None, q_norm_weight=None,
                                                                  k_norm_weight=None, qk_norm_policy=0, out_q=None, out_k=None, out_v=None, q_scale=None,
                                                                  split_k_flag=None):
    """`cake_fused_qk_rmsnorm_rope_append_paged_kv_cache` with e4m3 results: k and v divided by k_scale and v_scale, q by a scale of its token and head
    (quant_policy 1: max(its largest magnitude, 1e-6) / upper_max) or multiplied by q_scale_inv (2). The norms' epsilon is 1e-6.

    Returns:
        q e4m3 [tokens, heads, 128]; q_scale float32: [tokens, heads], in prefill with quant_policy 1 [B, heads, max_seqlen rounded up to 128] by the number of the
        token in its request, with quant_policy 2 empty; split_k_flag int32 [B, kv heads]: 0, or -1 where seq_lens is less than the request's rows

    Raises:
        ValueError: other shapes or dtypes, an unknown policy, upper_max outside (0, 448], no q_scale_inv with quant_policy 2
    """
    who = "cake_fused_qk_rmsnorm_rope_quantize_fp8_append_paged_kv_cache"
    torch, heads, kv_heads = _check(who, qkv, cos_sin_cache, seq_lens, q_indptr, page_indices, paged_kv_cache, qk_norm_policy, q_norm_weight, k_norm_weight)
    if paged_kv_cache[0].dtype != torch.float8_e4m3fn:
        raise ValueError(f"{who}: paged_kv_cache is {paged_kv_cache[0].dtype}, but must be torch.float8_e4m3fn")
    if quant_policy not in (1, 2):
        raise ValueError(f"{who}: quant_policy is {quant_policy}, but must be 1 (a scale for each token and head) or 2 (q_scale_inv)")
    if not 0 < upper_max <= 448:
        raise ValueError(f"{who}: upper_max is {upper_max}, but must be in (0, 448]")
    if quant_policy == 2 and q_scale_inv is None:
        raise ValueError(f"{who}: quant_policy is 2, but q_scale_inv is None")
    tokens, batch = len(qkv), len(seq_lens)
    request, number, position, page, place = _places(torch, tokens, seq_lens, q_indptr, page_indices, paged_kv_cache[0].shape[1])
    q, k, v = _parts(torch, qkv, heads, kv_heads, cos_sin_cache[position], q_norm_weight, k_norm_weight, qk_norm_policy, 1e-6)
    if quant_policy == 2:
        scales = torch.empty(0, device=qkv.device)
        codes = _e4m3(torch, q * q_scale_inv)
    else:
        scales = q.abs().amax(-1).clamp(min=1e-6) / upper_max
        codes = _e4m3(torch, q / scales[..., None])
        if is_prefill:
            by_request = torch.zeros(batch, heads, -(-max_seqlen // 128) * 128, device=qkv.device) if q_scale is None else q_scale
            by_request[request, :, number] = scales
            scales = by_request
    _clear_last_pages(torch, paged_kv_cache, seq_lens, page_indices)
    both = out_k is not None and out_v is not None
    _store(torch, (out_k, out_v) if both else (None, None), paged_kv_cache, (_e4m3(torch, k / k_scale), _e4m3(torch, v.float() / v_scale)), page, place)
    flags = torch.where(seq_lens >= q_indptr[1:] - q_indptr[:-1], 0, -1).to(torch.int32)[:, None].expand(batch, kv_heads)
    result = torch.empty(tokens, heads, _D, dtype=torch.float8_e4m3fn, device=qkv.device) if out_q is None else out_q
    result.view(torch.uint8).copy_(codes)
    return result, scales if q_scale is None or scales is q_scale else q_scale.copy_(scales), flags.contiguous() if split_k_flag is None else split_k_flag.copy_(flags)
