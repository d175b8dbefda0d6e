# SPDX-License-Identifier: Apache-2.0
"""Rotary embeddings, alone and with FP8 quantisation and the append to a paged cache."""
import torch

from flashinfer import rope
from routines.case import Case, Check, dtype


def _positions(args, device, kind=torch.int32):
    return torch.arange(args.seq_len, dtype=kind, device=device).repeat(args.batch_size)


def _plain(args, device):
    """q and k [tokens, heads, head_dim], by indptr and offsets or by positions."""
    tokens, kind = args.batch_size * args.seq_len, dtype(args.input_dtype)
    q, k = (torch.randn(tokens, heads, args.head_dim, device=device).to(kind) for heads in (args.num_qo_heads, args.num_kv_heads))
    options = {"rotary_dim": args.rotary_dim, "interleave": args.interleave, "rope_scale": args.rope_scale, "rope_theta": args.rope_theta}
    if "llama31" in args.routine:
        options.update(low_freq_factor=args.low_freq_factor, high_freq_factor=args.high_freq_factor, old_context_len=args.old_context_len)
    if args.routine.endswith("pos_ids"):
        where = (_positions(args, device),)
    else:
        indptr = torch.arange(args.batch_size + 1, dtype=torch.int32, device=device) * args.seq_len
        where = (indptr, torch.zeros(args.batch_size, dtype=torch.int32, device=device))
    function = getattr(rope, args.routine)
    return Case(lambda q, k, *where: function(q, k, *where, **options), (q, k, *where), check=Check(), uses_pdl=False)


def _cache(args, device, width, kind=torch.float32):
    """Cosines and sines of each position."""
    angles = torch.arange(args.seq_len, device=device)[:, None] / args.rope_theta ** (torch.arange(width // 2, device=device) / (width // 2))
    return torch.cat([angles.cos(), angles.sin()], -1).to(kind)


def _with_cache(args, device):
    tokens, kind = args.batch_size * args.seq_len, dtype(args.input_dtype)
    q, k = (torch.randn(tokens, heads * args.head_dim, device=device).to(kind) for heads in (args.num_qo_heads, args.num_kv_heads))
    cache = _cache(args, device, args.rotary_dim)
    return Case(lambda positions, q, k, cache: rope.apply_rope_with_cos_sin_cache(positions, q, k, args.head_dim, cache,
                                                                                  is_neox=not args.interleave),
                (_positions(args, device, torch.int64), q, k, cache), check=Check(), uses_pdl=False)


def _as_floats(outputs):
    return [t.float() for t in outputs]


def _halves(args, device, width, rest, key_heads):
    """q and k, the rotated part and the rest of each head (None without one); keys of MLA have no heads."""
    tokens, kind = args.batch_size * args.seq_len, dtype(args.input_dtype)

    def random(*shape):
        return torch.randn(tokens, *shape, device=device).to(kind) if shape[-1] else None

    return (random(args.num_qo_heads, width), random(*key_heads, width), random(args.num_qo_heads, rest), random(*key_heads, rest))


def _quantized(args, device):
    mla = args.routine.startswith("mla")
    width = args.head_dim - args.no_rope_dim if mla else args.rotary_dim
    halves = _halves(args, device, width, args.no_rope_dim, () if mla else (args.num_kv_heads,))
    function = getattr(rope, args.routine)
    options = {"is_neox": not args.interleave, "quantize_dtype": dtype(args.quant_dtype), "enable_pdl": args.enable_pdl}
    return Case(lambda *inputs: function(*inputs, **options), (*halves, _cache(args, device, width), _positions(args, device)),
                check=Check(0.26, 2e-2, view=_as_floats))


def _appended(args, device):
    halves = _halves(args, device, args.rotary_dim, args.head_dim - args.rotary_dim, (args.num_kv_heads,))
    to, pages = dtype(args.quant_dtype), -(-args.seq_len // args.page_size)
    shape = [args.batch_size * pages, args.page_size, args.num_kv_heads, args.head_dim]
    if args.kv_layout == "HND":
        shape[1], shape[2] = shape[2], shape[1]
    pools = tuple(torch.zeros(shape, device=device).to(to) for _ in range(2))
    v = torch.randn(args.batch_size * args.seq_len, args.num_kv_heads, args.head_dim, device=device).to(dtype(args.input_dtype))
    indices = torch.arange(shape[0], dtype=torch.int32, device=device)
    indptr = torch.arange(args.batch_size + 1, dtype=torch.int32, device=device) * pages
    requests = torch.arange(args.batch_size, dtype=torch.int32, device=device).repeat_interleave(args.seq_len)
    positions = _positions(args, device)
    options = {"is_neox": not args.interleave, "quantize_dtype": to, "page_size": args.page_size, "kv_layout": args.kv_layout,
               "enable_pdl": args.enable_pdl}

    def call(*inputs):
        q, q_rest = rope.rope_quantize_fp8_append_paged_kv_cache(*inputs, **options)
        return [t for t in (q, q_rest, *inputs[7]) if t is not None]

    case = Case(call, (*halves, v, _cache(args, device, args.rotary_dim), positions, pools, indices, indptr, requests, positions),
                check=Check(0.26, 2e-2, view=_as_floats), changes_inputs=True)
    read = [t for t in (*halves, v) if t is not None]
    quantized = sum(t.numel() for t in read)  # each element is written once, in a byte
    case.bytes = sum(t.nbytes for t in read) + case.inputs[5].nbytes + positions.nbytes + quantized
    return case


def make(args, device):
    if args.rotary_dim is None:
        args.rotary_dim = args.head_dim
    if args.routine == "apply_rope_with_cos_sin_cache":
        return _with_cache(args, device)
    if args.routine.endswith("append_paged_kv_cache"):
        return _appended(args, device)
    return (_quantized if "quantize" in args.routine else _plain)(args, device)
