# SPDX-License-Identifier: Apache-2.0
"""Linear layers of quantised inputs and weights: one product in f32, then scales, bias and the output's scale, rounded once.

FP8 values, and FP4 values times their block scales (2 and 4 significant bits), are exact in bf16, so that the product is `mm_bf16` with a
float32 result. Weights are converted in each call: programs that call a layer often keep bf16 weights, or use `mm_fp4` and `bmm_fp8`,
whose kernels read quantised weights.
"""

from . import _op

_BF16 = _op.Literal("torch.bfloat16")  # prints as torch's, whether torch is there or not


def _check(function, name, x, shape, dtype):
    if x is None:
        return
    if x.dtype != dtype:
        raise ValueError(f"{function}: {name} is {x.dtype}, but must be {dtype}")
    if tuple(x.shape) != tuple(shape):
        raise ValueError(f"{function}: {name} has shape {tuple(x.shape)}, but must be {tuple(shape)}")


def _finished(function, y, bias, out_dtype, output_quant_scale, out):
    """Bias, the output's scale and the one rounding; a pair with the scale that was used when FP8 was asked for without one."""
    import torch

    if out_dtype not in (torch.bfloat16, torch.float8_e4m3fn):
        raise ValueError(f"{function}: out_dtype is {out_dtype}, but must be torch.bfloat16 or torch.float8_e4m3fn")
    _check(function, "bias", bias, y.shape[1:], torch.bfloat16)
    _check(function, "output_quant_scale", output_quant_scale, (1,), torch.float32)
    _check(function, "out", out, y.shape, out_dtype)
    if bias is not None:
        y += bias.float()
    made = None
    if out_dtype == torch.float8_e4m3fn:
        if output_quant_scale is None:
            made = torch.ones(1, dtype=torch.float32, device=y.device)
        else:
            y *= output_quant_scale
        y = y.clamp(-448, 448)
    y = y.to(out_dtype)
    y = y if out is None else out.copy_(y)
    return y if made is None else (y, made)


def fp8_linear(a, weight, a_scale, weight_scale, bias=None, *, qkv_scale=None, config=None, out_dtype=_BF16, output_quant_scale=None, out=None):
    """[M, K] times [N, K], both e4m3, with a scale for each row of both: y[m, n] = a_scale[m] * weight_scale[n] * sum_k a[m, k] w[n, k] + bias[n].

    Args:
        a, weight: float8_e4m3fn [M, K], [N, K]; K is a multiple of 128
        a_scale, weight_scale: float32 [M], [N]
        bias: bfloat16 [N] or None
        qkv_scale: float32 [3] or None: factors of the three equal parts of the N columns; not together with a bias
        config: a tactic of GPU kernels; nothing here
        out_dtype: torch.bfloat16 or torch.float8_e4m3fn
        output_quant_scale: float32 [1] or None: what FP8 results are multiplied by before they are rounded, at most +-448
        out: [M, N] of out_dtype; made when absent

    Returns:
        the result; for FP8 without output_quant_scale the pair of it and a scale of 1

    Raises:
        ValueError: shapes or dtypes other than these
        NotImplementedError: qkv_scale with a bias
    """
    import torch

    from . import mm_bf16

    if a.dim() != 2 or weight.dim() != 2 or a.shape[1] % 128:
        raise ValueError(f"fp8_linear: a and weight have shapes {tuple(a.shape)} and {tuple(weight.shape)}, but must be [M, K] and [N, K], K a multiple of 128")
    (m, k), n = a.shape, weight.shape[0]
    for name, x, shape, dtype in (("a", a, (m, k), torch.float8_e4m3fn), ("weight", weight, (n, k), torch.float8_e4m3fn),
                                  ("a_scale", a_scale, (m,), torch.float32), ("weight_scale", weight_scale, (n,), torch.float32),
                                  ("qkv_scale", qkv_scale, (3,), torch.float32)):
        _check("fp8_linear", name, x, shape, dtype)
    y = mm_bf16(a.to(torch.bfloat16), weight.to(torch.bfloat16).t(), out_dtype=torch.float32)
    y *= a_scale[:, None] * weight_scale
    if qkv_scale is not None:
        if bias is not None:
            raise NotImplementedError("fp8_linear: qkv_scale with a bias is not available: which comes first is not documented")
        if n % 3:
            raise ValueError(f"fp8_linear: weight has {n} rows, but qkv_scale needs three equal parts")
        y *= qkv_scale.repeat_interleave(n // 3)
    return _finished("fp8_linear", y, bias, torch.bfloat16 if out_dtype is _BF16 else out_dtype, output_quant_scale, out)


def _unpacked(function, name, packed, scale):
    """bf16 [rows, columns] of NVFP4 values times their block scales."""
    import torch

    from . import e2m1_and_ufp8sf_scale_to_float

    rows, columns = packed.shape[0], packed.shape[1] * 2
    _check(function, f"{name}_block_scale", scale, ((rows + 127) // 128 * 128 * columns // 16,), torch.float8_e4m3fn)
    one = torch.ones(1, dtype=torch.float32)
    return e2m1_and_ufp8sf_scale_to_float(packed, scale.view(torch.uint8), one, 16, 1, True).to(torch.bfloat16)


def fp4_linear(a_packed, a_block_scale, a_global_scale, weight_packed, weight_block_scale, weight_global_scale, bias=None, *, out_dtype=_BF16,
               output_quant_scale=None, out=None):
    """[M, K] times [N, K], both NVFP4: y = a_global_scale * weight_global_scale * sum_k a[m, k] w[n, k] + bias[n], of values times their
    block scales.

    Args:
        a_packed, weight_packed: uint8 [M, K/2], [N, K/2], two values a byte; K is a multiple of 256
        a_block_scale, weight_block_scale: float8_e4m3fn, one for 16 values, flat in tiles of 128x4
        a_global_scale, weight_global_scale: numbers
        others: as of `fp8_linear`

    Returns, Raises: as `fp8_linear`
    """
    import torch

    from . import mm_bf16

    for name, x in (("a_packed", a_packed), ("weight_packed", weight_packed)):
        if x.dtype != torch.uint8 or x.dim() != 2 or x.shape[1] % 128 or x.shape[1] != a_packed.shape[1]:
            raise ValueError(f"fp4_linear: {name} is {x.dtype} of shape {tuple(x.shape)}, but must be torch.uint8 [rows, K/2], K a multiple of 256 "
                             "and the same for both")
    a = _unpacked("fp4_linear", "a", a_packed, a_block_scale)
    w = _unpacked("fp4_linear", "weight", weight_packed, weight_block_scale)
    y = mm_bf16(a, w.t(), out_dtype=torch.float32)
    y *= float(a_global_scale) * float(weight_global_scale)
    return _finished("fp4_linear", y, bias, torch.bfloat16 if out_dtype is _BF16 else out_dtype, output_quant_scale, out)
