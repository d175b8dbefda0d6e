# SPDX-License-Identifier: Apache-2.0
"""Products of dense and quantised matrices."""
import torch

import flashinfer
from flashinfer import SfLayout, gemm
from flashinfer.testing.utils import dequantize_fp8, quantize_fp8
from routines.case import Case, Check, dtype


def _work(args, batch, a_bytes, b_bytes, out, bias=0):
    """(operations, bytes): the elements of A, B and C of each product; scales do not count."""
    m, n, k = args.m, args.n, args.k
    return {"flops": batch * 2.0 * m * n * k + (m * n if bias else 0),
            "bytes": batch * (m * k * a_bytes + n * k * b_bytes + m * n * out.itemsize) + bias}


def _out(args):
    return dtype(args.out_dtype, ("bfloat16", "float16"), "output dtype")


def _row(args, **more):
    return {"m": args.m, "n": args.n, "k": args.k, "out_dtype": _out(args), **more}


def _cosine(value, expected):
    """Torch's product of the unquantised matrices sets the angle; the library's reference each element, but for its last bit."""
    return Check(2e-2, 2e-2, share=1e-3, expected=lambda: [expected()], expected_cosine=value)


def _groupwise(args, device):
    groups = args.group_size if args.routine.startswith("group") else 0
    m, n, k, tile, mode = max(1, groups) * args.m, args.n, args.k, args.tile_size, args.scale_major_mode
    batch = (groups,) if groups else ()
    a = torch.randn(m, k, device=device)
    b = torch.randn(*batch, n, k, device=device) / k ** 0.5

    def shape(rows, columns):
        return (rows, columns) if mode == "K" else (columns, rows)

    a8, a_scale = quantize_fp8(a, shape(m, k // tile), (1, tile), mode)
    b8, b_scale = quantize_fp8(b, (*batch, *shape(n // tile, k // tile)), (*(1 for _ in batch), tile, tile), mode)
    out = _out(args)
    options = {"scale_major_mode": mode, "mma_sm": args.mma_sm, "out_dtype": out}

    def expected():
        x, w = dequantize_fp8(a8, a_scale, mode), dequantize_fp8(b8, b_scale, mode)
        return [torch.einsum("gmk,gnk->gmn", x.view(max(1, groups), -1, k), w.view(max(1, groups), n, k)).reshape(m, n)]

    row = _row(args, tile_size=tile, scale_major_mode=mode, mma_sm=args.mma_sm, **({"group_size": groups} if groups else {}))
    common = {"row": row, "check": Check(1e-2, 1e-2, share=1e-3, expected=expected), "uses_pdl": False, "sleep": True,
              **_work(args, max(1, groups), 1, 1, out)}
    if not groups:
        return Case(lambda a, b, sa, sb: gemm.gemm_fp8_nt_groupwise(a, b, sa, sb, **options), (a8, b8, a_scale, b_scale), **common)
    indptr = torch.arange(groups + 1, dtype=torch.int32, device=device) * args.m
    return Case(lambda a, b, sa, sb, ptr: gemm.group_gemm_fp8_nt_groupwise(a, b, sa, sb, ptr, **options),
                (a8, b8, a_scale, b_scale, indptr), **common)


def _to_fp8(x, kind):
    """Values and the scale of the whole tensor."""
    scale = x.float().abs().max() / torch.finfo(kind).max
    return (x.float() / scale).to(kind), scale


def _bmm_fp8(args, device):
    kinds = [dtype(word, ("fp8_e4m3", "fp8_e5m2"), "input dtype") for word in (args.input_dtype, args.mat2_dtype)]
    a = torch.randn(args.batch_size, args.m, args.k, device=device)
    b = torch.randn(args.batch_size, args.n, args.k, device=device)
    (a8, a_scale), (b8, b_scale) = _to_fp8(a, kinds[0]), _to_fp8(b, kinds[1])
    out = _out(args)
    return Case(lambda a, b, sa, sb: flashinfer.bmm_fp8(a, b, sa, sb, out), (a8, b8.transpose(1, 2), a_scale, b_scale),
                row=_row(args, input_dtype=kinds[0], batch_size=args.batch_size), check=_cosine(0.99, lambda: a @ b.transpose(1, 2)),
                uses_pdl=False, sleep=True, **_work(args, args.batch_size, 1, 1, out))


def _mm_fp8(args, device):
    a, b = torch.randn(args.m, args.k, device=device), torch.randn(args.n, args.k, device=device)
    (a8, a_scale), (b8, b_scale) = _to_fp8(a, torch.float8_e4m3fn), _to_fp8(b, torch.float8_e4m3fn)
    out = _out(args)
    weight = flashinfer.prepare_low_latency_gemm_weights(b8, {})
    return Case(lambda a, w, alpha: flashinfer.mm_fp8(a, w, alpha, out_dtype=out), (a8, weight, a_scale * b_scale), row=_row(args),
                check=_cosine(0.99, lambda: a @ b.T), uses_pdl=False, sleep=True, **_work(args, 1, 1, 1, out))


def _matrices(args, device, batch=()):
    return (torch.randn(*batch, args.m, args.k, device=device, dtype=torch.bfloat16),
            torch.randn(*batch, args.n, args.k, device=device, dtype=torch.bfloat16))


def _bmm_mxfp8(args, device):
    a, b = _matrices(args, device, (args.batch_size,))
    # Scales of each matrix are padded to 128 rows on their own.
    (a8, a_scale), (b8, b_scale) = (map(torch.stack, zip(*(flashinfer.mxfp8_quantize(m, True) for m in x))) for x in (a, b))
    out = _out(args)
    return Case(lambda a, b, sa, sb: gemm.bmm_mxfp8(a, b, sa, sb, out), (a8, b8.transpose(1, 2), a_scale, b_scale),
                row=_row(args, batch_size=args.batch_size), check=_cosine(0.9, lambda: a.float() @ b.float().transpose(1, 2)),
                uses_pdl=False, sleep=True, **_work(args, args.batch_size, 1, 1, out))


def _mm_mxfp8(args, device):
    a, b = _matrices(args, device)
    small = args.use_128x4_sf_layout is False and args.m <= 32
    a8, a_scale = flashinfer.mxfp8_quantize(a, sf_swizzle_layout=SfLayout.layout_8x4 if small else SfLayout.layout_128x4)
    b8, b_scale = flashinfer.mxfp8_quantize(b, sf_swizzle_layout=SfLayout.layout_128x4)
    out = _out(args)
    return Case(lambda a, b, sa, sb: gemm.mm_mxfp8(a, b, sa, sb, out_dtype=out, use_8x4_sf_layout=small), (a8, b8.T, a_scale, b_scale),
                row=_row(args, use_128x4_sf_layout=not small), check=_cosine(0.98, lambda: a.float() @ b.float().T), uses_pdl=False,
                sleep=True, **_work(args, 1, 1, 1, out))


def _global_scale(x):
    return 448 * 6 / x.float().abs().max()


def _mm_fp4(args, device):
    a, b = _matrices(args, device)
    out, large = _out(args), args.use_128x4_sf_layout or not args.use_nvfp4
    alpha = None
    if args.use_nvfp4:
        scales = _global_scale(a), _global_scale(b)
        a4, a_scale = flashinfer.nvfp4_quantize(a, scales[0], sfLayout=SfLayout.layout_128x4 if large else SfLayout.layout_8x4)
        b4, b_scale = flashinfer.nvfp4_quantize(b, scales[1], sfLayout=SfLayout.layout_128x4)
        alpha = 1.0 / (scales[0] * scales[1])
    else:
        (a4, a_scale), (b4, b_scale) = flashinfer.mxfp4_quantize(a), flashinfer.mxfp4_quantize(b)

    def call(a, b, sa, sb, alpha):
        return gemm.mm_fp4(a, b, sa, sb, alpha, out, block_size=16 if args.use_nvfp4 else 32, use_8x4_sf_layout=not large,
                           use_nvfp4=args.use_nvfp4, enable_pdl=args.enable_pdl)

    return Case(call, (a4, b4.T, a_scale, b_scale.T, alpha), sleep=True, check=_cosine(0.97, lambda: a.float() @ b.float().T),
                row=_row(args, use_128x4_sf_layout=args.use_128x4_sf_layout, use_nvfp4=args.use_nvfp4), **_work(args, 1, 0.5, 0.5, out))


def _mm_bf16_fp4(args, device):
    dtype(args.input_dtype, ("bfloat16",), "input dtype")
    a = (torch.randn(args.m, args.k, device=device) * 0.5).bfloat16()
    b = (torch.randn(args.n, args.k, device=device) * 0.1).bfloat16()
    scale, out = _global_scale(b), _out(args)
    b4, b_scale = flashinfer.nvfp4_quantize(b, scale, sfLayout=SfLayout.layout_128x4)
    weight, scales, alpha = flashinfer.prepare_bf16_fp4_weights(b4, b_scale, (1 / scale).float().reshape(1), backend="cute-dsl")
    return Case(lambda a, w, s, alpha: flashinfer.mm_bf16_fp4(a, w, s, alpha, backend="cute-dsl", out_dtype=out, enable_pdl=args.enable_pdl),
                (a, weight, scales, alpha), row=_row(args), check=_cosine(0.97, lambda: a.float() @ b.float().T), sleep=True,
                **_work(args, 1, 2, 0.5, out))


def _dense(args, device):
    """mm_bf16, bmm_bf16, tinygemm_bf16."""
    batched = args.routine == "bmm_bf16"
    a, b = _matrices(args, device, (args.batch_size,) if batched else ())
    bias = torch.randn(args.n, device=device, dtype=torch.bfloat16) if args.bias and not batched else None
    out = torch.bfloat16 if args.routine == "tinygemm_bf16" else _out(args)
    if batched:
        def call(a, b, bias):
            return gemm.bmm_bf16(a, b.transpose(1, 2), out_dtype=out)
    elif args.routine == "mm_bf16":
        def call(a, b, bias):
            return gemm.mm_bf16(a, b.T, bias, args.enable_pdl, out_dtype=out)
    else:
        y = torch.empty(args.m, args.n, dtype=out, device=device)

        def call(a, b, bias):
            gemm.tinygemm_bf16(a, b, y, bias, args.enable_pdl)
            return y

    def expected():
        y = a.float() @ b.float().transpose(-1, -2)
        return y if bias is None else y + bias.float()

    # Only where FlashInfer's function adds the bias: mm_bf16's does on some back ends, so the reference here is our own.
    return Case(call, (a, b, bias), row=_row(args, out_dtype=out, **({} if batched else {"bias": args.bias})), sleep=True,
                check=_cosine(0.99, expected), uses_pdl=not batched,
                peer_row=None if batched or bias is not None else ("mm_bf16", f"a=bf16:{args.m}x{args.k} b=bf16:{args.k}x{args.n}^t"),
                peers={"torch": (lambda: torch.bmm(a, b.transpose(1, 2))) if batched else lambda: torch.nn.functional.linear(a, b, bias)},
                **_work(args, args.batch_size if batched else 1, 2, 2, out, 2 * args.n if bias is not None else 0))


_MAKERS = {"gemm_fp8_nt_groupwise": _groupwise, "group_gemm_fp8_nt_groupwise": _groupwise, "bmm_fp8": _bmm_fp8, "mm_fp8": _mm_fp8,
           "bmm_mxfp8": _bmm_mxfp8, "mm_mxfp8": _mm_mxfp8, "mm_fp4": _mm_fp4, "mm_bf16_fp4": _mm_bf16_fp4, "mm_bf16": _dense,
           "bmm_bf16": _dense, "tinygemm_bf16": _dense}


def make(args, device):
    return _MAKERS[args.routine](args, device)
