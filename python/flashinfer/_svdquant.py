# SPDX-License-Identifier: Apache-2.0
"""SVDQuant: an NVFP4 product with a correction of low rank in bf16. Values times block scales are exact in bf16, so that both parts are
`mm_bf16` with float32 results, added and rounded once."""
from ._linear import _check, _unpacked
from ._support import on_cpu

SVDQUANT_LORA_RANK_GRANULARITY = 32


@on_cpu("cutlass", "cute-dsl", "cake")
def mm_nvfp4_svdquant(a, b, a_sf, b_sf, alpha, d, l1, bias=None, out=None, backend="auto", enable_pdl=None):
    """alpha * (a @ b.T + d @ l1.T) + bias, in float32, rounded once.

    Args:
        a, b: uint8 [m, k/2], [n, k/2], NVFP4 values, two a byte
        a_sf, b_sf: uint8 block scales (e4m3) of a and b, in tiles of 128x4
        alpha: float32, the first element counts
        d: bfloat16 [m, r], the input times the lower factor, r a multiple of 32
        l1: bfloat16 [n, r], the upper factor divided by alpha
        bias: bfloat16 [n] or None
        out: bfloat16 [m, n]; made when absent
        backend, enable_pdl: for GPU kernels; nothing here

    Returns:
        bfloat16 [m, n]

    Raises:
        ValueError: shapes or dtypes other than these
    """
    import torch

    from . import mm_bf16

    name = "mm_nvfp4_svdquant"
    for key, x in (("a", a), ("b", b)):
        if x.dtype != torch.uint8 or x.dim() != 2 or x.shape[1] != a.shape[1] or x.shape[1] % 32:
            raise ValueError(f"{name}: {key} is {x.dtype} of shape {tuple(x.shape)}, but must be torch.uint8 [rows, k/2], k a multiple of 64 "
                             "and the same for both")
    (m, n), rank = (a.shape[0], b.shape[0]), d.shape[-1]
    if d.dim() != 2 or rank == 0 or rank % SVDQUANT_LORA_RANK_GRANULARITY:
        raise ValueError(f"{name}: d has shape {tuple(d.shape)}, but must be [m, r], r a positive multiple of {SVDQUANT_LORA_RANK_GRANULARITY}")
    for key, x, shape in (("d", d, (m, rank)), ("l1", l1, (n, rank)), ("bias", bias, (n,)), ("out", out, (m, n))):
        _check(name, key, x, shape, torch.bfloat16)
    if alpha.dtype != torch.float32 or alpha.numel() == 0:
        raise ValueError(f"{name}: alpha is {alpha.dtype} of {alpha.numel()} elements, but must be torch.float32 with at least one")
    values = _unpacked(name, "a", a, a_sf.reshape(-1).view(torch.float8_e4m3fn))
    weight = _unpacked(name, "b", b, b_sf.reshape(-1).view(torch.float8_e4m3fn))
    y = mm_bf16(values, weight.t(), out_dtype=torch.float32)
    y += mm_bf16(d, l1.t(), out_dtype=torch.float32)
    y *= alpha.reshape(-1)[:1]
    if bias is not None:
        y += bias.float()
    return y.to(torch.bfloat16) if out is None else out.copy_(y)


def svdquant_linear(x, weight_fp4, weight_sf, alpha, pre_quant_scale, l2t_smoothed, l1_scaled, global_scale, bias=None, enable_pdl=None,
                    backend="auto"):
    """`nvfp4_quantize_smooth` of x, d = x @ l2t_smoothed in bf16, and `mm_nvfp4_svdquant` of both.

    Args:
        x: bfloat16 [m, k]
        weight_fp4, weight_sf: uint8 [n, k/2] and its block scales in tiles of 128x4
        alpha, global_scale: float32 scalars
        pre_quant_scale: bfloat16 [k]
        l2t_smoothed: bfloat16 [k, r], pre_quant_scale[:, None] times the transposed lower factor
        l1_scaled: bfloat16 [n, r], the upper factor divided by alpha
        bias: bfloat16 [n] or None
        enable_pdl, backend: for GPU kernels; nothing here

    Returns:
        bfloat16 [m, n]

    Raises:
        ValueError: shapes or dtypes other than these
    """
    import torch

    from . import mm_bf16
    from .gemm import nvfp4_quantize_smooth

    values, scales = nvfp4_quantize_smooth(x, pre_quant_scale, global_scale)
    if l2t_smoothed.dim() != 2:
        raise ValueError(f"svdquant_linear: l2t_smoothed has shape {tuple(l2t_smoothed.shape)}, but must be [k, r]")
    _check("svdquant_linear", "l2t_smoothed", l2t_smoothed, (x.shape[1], l2t_smoothed.shape[1]), torch.bfloat16)
    down = mm_bf16(x, l2t_smoothed.t().contiguous().t())
    return mm_nvfp4_svdquant(values, weight_fp4, scales, weight_sf, alpha, down, l1_scaled, bias)


def tgv_gemm_sm100(a, b, bias, pdl=False, out=None, a_descale=None, b_descale=None):
    """a @ b + bias.

    Args:
        a: bfloat16 or float16 [m, k]
        b: [k, n] of a's dtype, column-major
        bias: [n] of a's dtype
        pdl: for GPU kernels; nothing here
        out: [m, n] of a's dtype; made when absent
        a_descale, b_descale: block scales; not available, use mm_fp4 or mm_mxfp8

    Returns:
        [m, n]; a float16 product is rounded before the bias is added, a bfloat16 one after it

    Raises:
        ValueError: shapes or dtypes other than these
        NotImplementedError: block scales
    """
    import torch

    from . import mm_bf16
    from .gemm import SegmentGEMMWrapper

    name = "tgv_gemm_sm100"
    if a_descale is not None or b_descale is not None:
        raise NotImplementedError(f"{name}: block-scaled inputs are not available; flashinfer.gemm.mm_fp4 and mm_mxfp8 multiply them")
    if a.dtype not in (torch.bfloat16, torch.float16):
        raise ValueError(f"{name}: a.dtype is {a.dtype}, but must be torch.bfloat16 or torch.float16")
    if a.dim() != 2 or b.dim() != 2:
        raise ValueError(f"{name}: a and b have shapes {tuple(a.shape)} and {tuple(b.shape)}, but must be [m, k] and [k, n]")
    (m, k), n = a.shape, b.shape[1]
    for key, x, shape in (("b", b, (k, n)), ("bias", bias, (n,)), ("out", out, (m, n))):
        _check(name, key, x, shape, a.dtype)
    if a.dtype == torch.bfloat16:
        y = mm_bf16(a, b, out_dtype=torch.float32) + bias.float()
    else:
        wrapper = SegmentGEMMWrapper(torch.empty(1, dtype=torch.uint8))
        y = wrapper.run(a.contiguous(), b.t()[None].contiguous(), 1, True, seg_lens=torch.tensor([m])) + bias
    return y.to(a.dtype) if out is None else out.copy_(y)
