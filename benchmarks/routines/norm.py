# SPDX-License-Identifier: Apache-2.0
"""Norms: rmsnorm and its forms with a sum, quantisation, an activation, RoPE."""
import torch
import torch.nn.functional as F

import flashinfer
from routines.case import Case, Check, dtype

_HALF = ("bfloat16", "float16")


def _inputs(args, device, heads=True):
    kind = dtype(args.input_dtype, _HALF, "input dtype")
    shape = (args.batch_size, args.hidden_size) if args.num_heads is None or not heads else (
        args.batch_size, args.num_heads, args.hidden_size)
    return (torch.randn(shape, dtype=kind, device=device), torch.randn(shape, dtype=kind, device=device),
            torch.randn(args.hidden_size, dtype=kind, device=device))


def _row(args, x, **more):
    return {"input_dtype": x.dtype, "eps": args.eps, "enable_pdl": args.enable_pdl, **more}


def _norm(args, device, function, added):
    x, residual, weight = _inputs(args, device, not added)
    if added:
        def call(x, residual, weight):
            function(x, residual, weight, args.eps, enable_pdl=args.enable_pdl)
            return x, residual

        return Case(call, (x, residual, weight), 6 * x.numel(), 4 * x.nbytes + weight.nbytes, _row(args, x), Check(), changes_inputs=True)

    def peer():
        return F.rms_norm(x, (args.hidden_size,), weight, args.eps)

    peers = {"torch": peer} if function is flashinfer.rmsnorm else {}
    return Case(lambda x, w: function(x, w, args.eps, enable_pdl=args.enable_pdl), (x, weight), 5 * x.numel(), None, _row(args, x),
                Check(), peers=peers, peer_row=("rmsnorm", f"input=f32:{x.shape[0]}x{x.shape[1]} weight=f32:{x.shape[1]}") if peers and x.dim() == 2 else None)


def _fp8(args, device, kind):
    x, residual, weight = _inputs(args, device, False)
    to = dtype(args.out_dtype, ("fp8_e4m3", "fp8_e5m2"), "out dtype")
    scale = torch.tensor([args.scale], dtype=torch.float32, device=device)
    out = torch.empty(x.shape, dtype=to, device=device)
    # A value between two codes may go to either, as the sums of kernel and reference differ in their last bit.
    check = Check(0.26 if to == torch.float8_e5m2 else 0.13, 1e-2, view=lambda t: [t[0].float(), *t[1:]])
    row = _row(args, x, out_dtype=to, scale=args.scale)
    pdl = {"enable_pdl": args.enable_pdl}
    if kind == "layernorm_quant":
        gamma, beta = (torch.randn(args.hidden_size, dtype=torch.float32, device=device) for _ in range(2))

        def call(x, gamma, beta):
            flashinfer.norm.layernorm_quant(out, x, gamma, beta, scale, args.eps)
            return out

        return Case(call, (x, gamma, beta), 7 * x.numel(), None, row, check, uses_pdl=False)
    if kind == "rmsnorm_quant":
        def call(x, weight):
            flashinfer.norm.rmsnorm_quant(out, x, weight, scale, args.eps, **pdl)
            return out

        return Case(call, (x, weight), 5 * x.numel(), None, row, check)

    def added(x, residual, weight):
        flashinfer.norm.fused_add_rmsnorm_quant(out, x, residual, weight, scale, args.eps, **pdl)
        return out, residual

    return Case(added, (x, residual, weight), 7 * x.numel(), 3 * x.nbytes + weight.nbytes + out.nbytes, row, check, changes_inputs=True)


def _fp4(args, device, added):
    kind = "nvfp4" if args.out_dtype.startswith("fp8") else args.out_dtype
    block = 16 if kind == "nvfp4" else 32
    if args.hidden_size % block:
        raise ValueError(f"hidden_size ({args.hidden_size}) must be divisible by block_size ({block}) for {kind} quantization.")
    x, residual, weight = _inputs(args, device)
    options = {"eps": args.eps, "block_size": block, "is_sf_swizzled_layout": args.is_sf_swizzled_layout, "enable_pdl": args.enable_pdl,
               "global_scale": torch.ones(1, dtype=torch.float32, device=device) if args.use_global_scale else None}
    row = _row(args, x, out_dtype=kind, use_global_scale=args.use_global_scale, is_sf_swizzled_layout=args.is_sf_swizzled_layout)

    def view(outputs):
        return [t.view(torch.uint8).float() for t in outputs]  # codes and scales, byte by byte

    check = Check(0, 0, share=2e-3, view=view)
    if not added:
        return Case(lambda x, w: flashinfer.norm.rmsnorm_fp4quant(x, w, **options), (x, weight), 5 * x.numel(), None, row, check)
    both = args.output_both_sf_layouts
    return Case(lambda x, r, w: flashinfer.add_rmsnorm_fp4quant(x, r, w, output_both_sf_layouts=both, **options), (x, residual, weight),
                6 * x.numel(), None, row, check, changes_inputs=True)


def _silu(args, device):
    dtype(args.input_dtype, ("bfloat16",), "input dtype")
    x = torch.randn(args.batch_size, args.hidden_size, dtype=torch.bfloat16, device=device)
    weight = torch.rand(args.hidden_size, device=device).mul(1.5).add(0.5).bfloat16()
    out = torch.empty_like(x)
    return Case(lambda x, w: flashinfer.fused_rmsnorm_silu(x, w, eps=args.eps, out=out), (x, weight), 7 * x.numel(), None, _row(args, x),
                Check(2e-2, 2e-2), uses_pdl=False)


def _dit(args, device):
    """Rows of 3072 elements, as many as --hidden_size."""
    from flashinfer import diffusion_ops as ops

    d, rows = 3072, args.hidden_size
    x, residual = (torch.randn(args.batch_size, rows, d, dtype=torch.bfloat16, device=device) for _ in range(2))
    gates = torch.randn(args.batch_size, rows, 3, d, dtype=torch.bfloat16, device=device)
    table = torch.randn(1, 3, d, device=device)
    gate, scale, shift = (gates[:, :, i] for i in range(3))
    gate_bias, scale_bias, shift_bias = (table[:, i] for i in range(3))
    gamma, beta = (torch.randn(d, device=device) for _ in range(2))
    if args.dit_mode == "gate_residual_gamma_beta":
        def call(x, residual, gate, gamma, beta):
            return ops.fused_dit_gate_residual_layernorm_gamma_beta(x, residual, gate, gamma, beta, gate_bias=gate_bias, epsilon=args.eps)

        inputs = (x, residual, gate, gamma, beta)
    elif args.dit_mode == "gate_residual_scale_shift":
        def call(x, residual, gate, scale, shift):
            return ops.fused_dit_gate_residual_layernorm_scale_shift(
                x, residual, gate, scale, shift, gate_bias=gate_bias, scale_bias=scale_bias, shift_bias=shift_bias, epsilon=args.eps)

        inputs = (x, residual, gate, scale, shift)
    else:
        def call(x, scale, shift, residual):
            return ops.fused_dit_residual_layernorm_scale_shift(x, scale, shift, residual=residual, scale_bias=scale_bias,
                                                                shift_bias=shift_bias, epsilon=args.eps)

        inputs = (x, scale, shift, residual)
    return Case(call, inputs, 9 * x.numel(), None, _row(args, x, dit_mode=args.dit_mode), Check(1.6e-2, 1e-2), uses_pdl=False)


def _qk_rope(args, device):
    if args.num_heads is None:
        raise ValueError("--num_heads is required for fused_qk_rmsnorm_rope")
    hidden, heads = args.hidden_size, args.num_heads
    head_dim = hidden // heads
    side = 2 * (head_dim // 6)
    qkv = torch.randn(args.batch_size, args.ppf * args.pph * args.ppw, 3 * hidden, dtype=torch.bfloat16, device=device)
    weights = [torch.randn(hidden, dtype=torch.bfloat16, device=device) for _ in range(2)]
    options = {"ppf": args.ppf, "pph": args.pph, "ppw": args.ppw, "num_frame_channels": head_dim - 2 * side, "num_height_channels": side,
               "num_width_channels": side, "num_heads_q": heads, "num_heads_k": heads, "num_heads_v": heads, "head_dim": head_dim,
               "eps": args.eps, "base": 10000.0, "interleave": True, "is_qk_norm": True}
    row = _row(args, qkv, ppf=args.ppf, pph=args.pph, ppw=args.ppw, num_heads=heads)
    return Case(lambda qkv, q, k: flashinfer.fused_qk_rmsnorm_rope(qkv, q, k, **options), (qkv, *weights), 10 * qkv.numel() / 3, None, row,
                Check(2e-2, 2e-2), uses_pdl=False)


def make(args, device):
    name = args.routine
    if name in ("rmsnorm", "gemma_rmsnorm", "fused_add_rmsnorm", "gemma_fused_add_rmsnorm"):
        return _norm(args, device, getattr(flashinfer, name), "add" in name)
    if name.endswith("fp4quant"):
        return _fp4(args, device, name.startswith("add"))
    if name.endswith("quant"):
        return _fp8(args, device, name)
    return {"fused_rmsnorm_silu": _silu, "fused_dit_layernorm": _dit, "fused_qk_rmsnorm_rope": _qk_rope}[name](args, device)
