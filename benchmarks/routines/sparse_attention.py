# SPDX-License-Identifier: Apache-2.0
"""Attention over blocks of 128 keys that an indexer selects (MSA): its scores, the attention, and both with the selection between."""
import torch

from flashinfer import msa_ops, nvfp4_quantize
from routines.case import Case, Check, dtype

_BLOCK, _DIM = 128, 128


def _starts(requests, tokens, device):
    return torch.arange(requests + 1, dtype=torch.int32, device=device) * tokens


def _random(device, kind, *shape):
    return (torch.randn(*shape, device=device) / 3).to(kind)


def _selected(args, queries, device):
    """[kv heads, queries, topk]: ascending blocks, all of them where there are no more than topk, -1 behind."""
    blocks, rows = -(-args.s_kv // _BLOCK), args.num_kv_heads * queries
    chosen = torch.rand(rows, blocks, device=device).topk(min(args.topk, blocks)).indices.sort(-1).values.int()
    full = torch.full((rows, args.topk), -1, dtype=torch.int32, device=device)
    full[:, :chosen.shape[1]] = chosen
    return full.view(args.num_kv_heads, queries, args.topk)


def _quantized(x):
    """Codes, scales, global scale of [tokens, heads, 128] in NVFP4."""
    scale = 448 * 6 / x.float().abs().max()
    codes, factors = nvfp4_quantize(x.reshape(-1, _DIM).bfloat16(), scale)
    return codes.view(torch.uint8).reshape(*x.shape[:2], _DIM // 2), factors.view(torch.uint8), float(1 / scale)


def _keys(args, q_kind, device):
    """(k, v, keyword arguments): flat, in pages of 128, or as the halves of pages that hold both."""
    kind = dtype(args.kv_dtype, ("bfloat16", "float16", "fp8_e4m3", "nvfp4"), "kv_dtype")
    if args.kv_layout == "flat":
        k, v = (_random(device, q_kind, args.batch_size * args.s_kv, args.num_kv_heads, _DIM) for _ in range(2))
        if args.kv_dtype != "nvfp4":
            return k.to(kind), v.to(kind), {}
        (k, k_scale, k_all), (v, v_scale, v_all) = _quantized(k), _quantized(v)
        return k, v, {"k_scale": k_scale, "v_scale": v_scale, "k_global_scale": k_all, "v_global_scale": v_all}
    if args.kv_dtype == "nvfp4":
        raise ValueError("--kv_layout paged/packed excludes nvfp4")
    pages = -(-args.s_kv // _BLOCK)
    k, v = _random(device, q_kind, args.batch_size * pages, args.num_kv_heads, _BLOCK, 2 * _DIM).to(kind).split(_DIM, -1)
    if args.kv_layout == "paged":
        k, v = k.contiguous(), v.contiguous()
    table = torch.arange(args.batch_size * pages, dtype=torch.int32, device=device).view(args.batch_size, pages)
    return k, v, {"page_table": table, "seqused_k": torch.full((args.batch_size,), args.s_kv, dtype=torch.int32, device=device)}


_CHECK = Check(2e-2, 2e-2, share=1e-3, view=lambda out: [out[0].float().nan_to_num(neginf=-1e4)])


def _row(args, queries, **more):
    return {"topk": args.topk, "max_k_tiles": args.max_k_tiles or "", "total_q": queries, "total_kv": args.batch_size * args.s_kv,
            "head_dim_qk": _DIM, "head_dim_vo": _DIM, **more}


def _proxy(args, device):
    kind, b = dtype(args.q_dtype, ("bfloat16", "float16"), "q_dtype"), args.batch_size
    q, k = (_random(device, kind, b * n, heads, _DIM) for n, heads in ((args.s_qo, args.num_qo_heads), (args.s_kv, args.num_kv_heads)))
    starts = _starts(b, args.s_qo, device), _starts(b, args.s_kv, device)
    tiles = args.max_k_tiles or -(-args.s_kv // _BLOCK)
    return Case(lambda q, k: msa_ops.msa_proxy_score(q, k, *starts, causal=args.causal, max_seqlen_q=args.s_qo, max_k_tiles=tiles), (q, k),
                2.0 * b * args.s_qo * args.s_kv * args.num_qo_heads * _DIM, float(k.nbytes), _row(args, b * args.s_qo), _CHECK,
                uses_pdl=False)


def _attention(args, device, decode):
    kind, b = dtype(args.q_dtype, ("bfloat16", "float16"), "q_dtype"), args.batch_size
    queries = b if decode else b * args.s_qo
    q, (k, v, more) = _random(device, kind, queries, args.num_qo_heads, _DIM), _keys(args, kind, device)
    chosen, scale = _selected(args, queries, device), _DIM ** -0.5
    if args.kv_layout == "flat" or not decode:
        more["cu_seqlens_k"] = _starts(b, args.s_kv, device)
    if decode:
        def call(q, k, v, chosen):
            return msa_ops.msa_sparse_decode_attention(q, k, v, chosen, seqlen_q=1, causal=args.causal, softmax_scale=scale, **more)
    else:
        starts = _starts(b, args.s_qo, device)

        def call(q, k, v, chosen):
            return msa_ops.msa_sparse_attention(q, k, v, chosen, starts, causal=args.causal, softmax_scale=scale, **more)

    selected = min(args.topk * _BLOCK, args.s_kv)
    each = {"nvfp4": 0.5625, "fp8_e4m3": 1.0}.get(args.kv_dtype, 2.0)
    return Case(call, (q, k, v, chosen), 4.0 * queries * selected * args.num_qo_heads * _DIM,
                2 * queries * args.num_kv_heads * selected * _DIM * each, _row(args, queries), _CHECK, uses_pdl=False)


def _pipeline(args, device):
    kind, b = dtype(args.q_dtype, ("bfloat16", "float16"), "q_dtype"), args.batch_size
    q = _random(device, kind, b * args.s_qo, args.num_qo_heads, _DIM)
    index_k = _random(device, kind, b * args.s_kv, args.num_kv_heads, _DIM)
    k, v, more = _keys(args, kind, device)
    starts, group = (_starts(b, args.s_qo, device), _starts(b, args.s_kv, device)), args.num_qo_heads // args.num_kv_heads

    def call(q, index_k, k, v):
        scores = msa_ops.msa_proxy_score(q, index_k, *starts, causal=args.causal)
        chosen = msa_ops.msa_topk_select(scores, args.topk)[:, ::group].permute(1, 0, 2).contiguous()
        return msa_ops.msa_sparse_attention(q, k, v, chosen, *starts, causal=args.causal, softmax_scale=_DIM ** -0.5, **more)

    flops = 2.0 * b * args.s_qo * args.num_qo_heads * _DIM * (args.s_kv + 2 * min(args.topk * _BLOCK, args.s_kv))
    # The reference may choose another of two blocks whose scores are equal but for the last bit: it is only run.
    return Case(call, (q, index_k, k, v), flops, None, _row(args, b * args.s_qo), uses_pdl=False)


def make(args, device):
    if args.head_dim != _DIM:
        raise ValueError(f"MSA requires head_dim {_DIM}, got {args.head_dim}")
    if args.kv_layout != "flat" and args.routine not in ("MSASparseAttention", "MSASparseDecode"):
        raise ValueError(f"--kv_layout {args.kv_layout} unsupported for {args.routine}")
    return {"MSAProxyScore": lambda: _proxy(args, device), "MSASparseAttention": lambda: _attention(args, device, False),
            "MSASparseDecode": lambda: _attention(args, device, True), "MSAPipeline": lambda: _pipeline(args, device)}[args.routine]()
