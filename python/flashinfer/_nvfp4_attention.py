# SPDX-License-Identifier: Apache-2.0
"""Attention over NVFP4 queries, keys and values. Before they are quantised, the mean of the keys is subtracted (all logits of a row fall by the
same number, so that the result stays), and the mean of each 128 queries, whose products with the keys are passed beside, in float32:
`qk_correction`. Outliers that all tokens share then do not cost precision.

Codes are two a byte, the low nibble first; block scales are e4m3, one for 16 values, in plain order.
"""
from ._support import on_cpu

_ROWS = 128


def _padded(x):
    import torch

    return torch.nn.functional.pad(x, (0, 0, 0, -x.shape[2] % _ROWS))


def _quantized(x):
    """uint8 [..., d/2] and float8_e4m3fn [..., d/16] of [..., d]."""
    import torch

    from . import fp4_quantize

    codes, scales = fp4_quantize(x.reshape(-1, x.shape[-1]), torch.ones(1), 16, False, False, nvfp4_4over6=None)
    return codes.view(*x.shape[:-1], -1), scales.view(torch.uint8).view(*x.shape[:-1], -1).view(torch.float8_e4m3fn)


def _values(codes, scales):
    """float32 values times their block scales."""
    import torch

    from . import e2m1_and_ufp8sf_scale_to_float

    flat = e2m1_and_ufp8sf_scale_to_float(codes.reshape(-1, codes.shape[-1]), scales.reshape(-1).view(torch.uint8), torch.ones(1), 16, 1, False)
    return flat.view(*codes.shape[:-1], codes.shape[-1] * 2)


@on_cpu()
def nvfp4_attention_sm120_quantize_qkv(q, k, v, per_block_mean=True):
    """What `nvfp4_attention_sm120_fwd` takes.

    Args:
        q: float16 or bfloat16 [batch, heads, m, d], d a multiple of 64
        k, v: [batch, KV heads, n, d] of q's dtype; heads is a multiple of KV heads
        per_block_mean: the mean of each 128 queries is subtracted from them, else that of all

    Returns:
        (q_fp4 [batch, heads, M, d/2], k_fp4 [batch, KV heads, N, d/2], v_fp4_t [batch, KV heads, d, N/2], their scales q_scale [.., M, d/16],
        k_scale [.., N, d/16], v_scale_t [.., d, N/16], qk_correction float32 [batch, heads, M/128 or 1, N]); M and N are m and n rounded up to a
        multiple of 128, rows behind m and n are 0

    Raises:
        ValueError: shapes or dtypes other than these
    """
    import torch

    who = "nvfp4_attention_sm120_quantize_qkv"
    if q.dim() != 4 or q.dtype not in (torch.float16, torch.bfloat16) or q.shape[3] % 64 or 0 in q.shape:
        raise ValueError(f"{who}: q is {q.dtype} of shape {tuple(q.shape)}, but must be float16 or bfloat16 [batch, heads, m, d], d a multiple of 64")
    (batch, heads, m, d), kv_heads = q.shape, k.shape[1] if k.dim() == 4 else 0
    if not kv_heads or heads % kv_heads:
        raise ValueError(f"{who}: k has shape {tuple(k.shape)}, but must be [batch, KV heads, n, d], KV heads a divisor of {heads}")
    for name, x in (("k", k), ("v", v)):
        if x.dtype != q.dtype or tuple(x.shape) != (batch, kv_heads, k.shape[2], d) or not k.shape[2]:
            raise ValueError(f"{who}: {name} is {x.dtype} of shape {tuple(x.shape)}, but must be {q.dtype} {[batch, kv_heads, k.shape[2], d]}")
    keys = _padded((k.float() - k.float().mean(2, keepdim=True)).to(k.dtype))
    blocks = -(-m // _ROWS)
    if per_block_mean:
        sizes = torch.full((blocks,), _ROWS, dtype=torch.float32)
        sizes[-1] = m - (blocks - 1) * _ROWS
        mean = _padded(q.float()).view(batch, heads, blocks, _ROWS, d).sum(3) / sizes[:, None]
        spread = mean.repeat_interleave(_ROWS, 2)[:, :, :m]
    else:
        mean = spread = q.float().mean(2, keepdim=True)
    group = heads // kv_heads
    correction = mean @ keys.float().repeat_interleave(group, 1).mT
    q_fp4, q_scale = _quantized(_padded((q.float() - spread).to(q.dtype)))
    k_fp4, k_scale = _quantized(keys)
    v_fp4, v_scale = _quantized(_padded(v).mT.contiguous())
    return q_fp4, k_fp4, v_fp4, q_scale, k_scale, v_scale, correction


@on_cpu()
def nvfp4_attention_sm120_fwd(q_fp4, k_fp4, v_fp4_t, q_scale, k_scale, v_scale_t, qk_correction, sm_scale=None, causal=False, per_block_mean=True, out=None,
                              lse=None, out_dtype=None, softmax_scale=None, return_lse=True, unpadded_k_len=None):
    """softmax(sm_scale * (q . k + qk_correction)) . v, of what `nvfp4_attention_sm120_quantize_qkv` returns; probabilities stay float32.

    Args:
        q_fp4, k_fp4, v_fp4_t, q_scale, k_scale, v_scale_t, qk_correction, per_block_mean: as there
        sm_scale: 1 / sqrt(d) when absent; softmax_scale is an older name of it
        causal: row i sees the keys 0 .. i
        out: [batch, heads, M, d] of out_dtype (bfloat16); lse: float32 [batch, heads, M]; made when absent
        return_lse: whether lse is computed
        unpadded_k_len: keys from there on are not seen; absent: the N padded ones are, with logits of 0

    Returns:
        out, or (out, lse); lse, in base e, is of the logits with the keys' mean subtracted

    Raises:
        ValueError: shapes or dtypes other than these
    """
    import torch

    who = "nvfp4_attention_sm120_fwd"
    (batch, heads, rows, half), (_, kv_heads, keys, _) = q_fp4.shape, k_fp4.shape
    d, blocks = half * 2, rows // _ROWS if per_block_mean else 1
    e4m3, u8 = torch.float8_e4m3fn, torch.uint8
    kind = out_dtype or (out.dtype if out is not None else torch.bfloat16)
    for name, x, dtype, shape in (("q_fp4", q_fp4, u8, (batch, heads, rows, half)), ("k_fp4", k_fp4, u8, (batch, kv_heads, keys, half)),
                                  ("v_fp4_t", v_fp4_t, u8, (batch, kv_heads, d, keys // 2)), ("q_scale", q_scale, e4m3, (batch, heads, rows, d // 16)),
                                  ("k_scale", k_scale, e4m3, (batch, kv_heads, keys, d // 16)),
                                  ("v_scale_t", v_scale_t, e4m3, (batch, kv_heads, d, keys // 16)),
                                  ("qk_correction", qk_correction, torch.float32, (batch, heads, blocks, keys)), ("out", out, kind, (batch, heads, rows, d)),
                                  ("lse", lse, torch.float32, (batch, heads, rows))):
        if x is not None and (x.dtype != dtype or tuple(x.shape) != shape):
            raise ValueError(f"{who}: {name} is {x.dtype} of shape {tuple(x.shape)}, but must be {dtype} {list(shape)}")
    if heads % kv_heads or rows % _ROWS or keys % _ROWS:
        raise ValueError(f"{who}: q_fp4 and k_fp4 have shapes {tuple(q_fp4.shape)} and {tuple(k_fp4.shape)}, but heads must be a multiple of KV heads, and "
                         "rows multiples of 128")
    end = keys if unpadded_k_len is None else unpadded_k_len
    if not 1 <= end <= keys:
        raise ValueError(f"{who}: unpadded_k_len is {end}, but must be within [1, {keys}]")
    if sm_scale is not None and softmax_scale is not None and sm_scale != softmax_scale:
        raise ValueError(f"{who}: sm_scale is {sm_scale} and softmax_scale {softmax_scale}, but they are two names of one argument")
    scale = next((s for s in (sm_scale, softmax_scale) if s is not None), d ** -0.5)
    out = torch.empty(batch, heads, rows, d, dtype=kind) if out is None else out
    lse = torch.empty(batch, heads, rows, dtype=torch.float32) if lse is None and return_lse else lse
    position = torch.arange(end)
    for b in range(batch):
        for g in range(kv_heads):
            k, v = _values(k_fp4[b, g, :end], k_scale[b, g, :end]), _values(v_fp4_t[b, g], v_scale_t[b, g])[:, :end]
            for h in range(g * heads // kv_heads, (g + 1) * heads // kv_heads):
                q = _values(q_fp4[b, h], q_scale[b, h])
                for first in range(0, rows, _ROWS):
                    part = slice(first, first + _ROWS)
                    logits = q[part] @ k.t()
                    logits += qk_correction[b, h, first // _ROWS if per_block_mean else 0, :end]
                    logits *= scale
                    if causal:
                        logits.masked_fill_(position > torch.arange(first, first + _ROWS)[:, None], float("-inf"))
                    out[b, h, part] = (torch.softmax(logits, 1) @ v.t()).to(kind)
                    if lse is not None:
                        lse[b, h, part] = torch.logsumexp(logits, 1)
    return (out, lse) if return_lse else out
