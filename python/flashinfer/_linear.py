# SPDX-License-Identifier: Apache-2.0
"""Linear layers of quantised inputs and weights: one product in f32, then scales, bias and the output's scale, rounded once.

FP8 values, and FP4 values times their block scales (2 and 4 significant bits), are exact in bf16, so that the product is `mm_bf16` with a
float32 result. Weights are converted in each call: programs that call a layer often keep bf16 weights, or use `mm_fp4` and `bmm_fp8`,
whose kernels read quantised weights.
"""

from . import _op
from ._support import accepts_skip_check, on_cpu

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

    _check(function, "bias", bias, y.shape[1:], torch.bfloat16)
    if bias is not None:
        y += bias.float()
    return _rounded(function, y, out_dtype, output_quant_scale, out)


def _rounded(function, y, out_dtype, output_quant_scale, out, fp4=False):
    """`y`, in f32, in the format asked for; of FP4 with its block scales. Without output_quant_scale narrow results end with a scale of 1."""
    import torch

    kinds = (torch.bfloat16, torch.float8_e4m3fn) + ((torch.uint8,) if fp4 else ())
    if out_dtype not in kinds:
        raise ValueError(f"{function}: out_dtype is {out_dtype}, but must be {', '.join(map(str, kinds[:-1]))} or {kinds[-1]}")
    _check(function, "output_quant_scale", output_quant_scale, (1,), torch.float32)
    packed = out_dtype == torch.uint8
    _check(function, "out", out, (y.shape[0], y.shape[1] // 2) if packed else y.shape, out_dtype)
    made = None
    if out_dtype != torch.bfloat16 and output_quant_scale is None:
        made = torch.ones(1, dtype=torch.float32, device=y.device)
    if packed:
        y, block_scale = _nvfp4(y, made if output_quant_scale is None else output_quant_scale)
        y = y if out is None else out.copy_(y)
        return (y, block_scale) if made is None else (y, block_scale, made)
    if out_dtype == torch.float8_e4m3fn:
        if output_quant_scale is not None:
            y *= output_quant_scale
        y = y.clamp(-448, 448)
    y = y.to(out_dtype)
    y = y if out is None else out.copy_(y)
    return y if made is None else (y, made)


def _nvfp4(y, scale):
    """Codes and flat block scales in tiles of 128x4 of the f32 `y`, which `nvfp4_quantize` takes as bf16."""
    from . import nvfp4_quantize

    if y.shape[1] % 16:
        raise ValueError(f"fp4_linear_swiglu: the result has {y.shape[1]} columns, but NVFP4 needs a multiple of 16")
    codes, block_scale = nvfp4_quantize(y.to(_torch().bfloat16), scale)
    return codes, block_scale.view(_torch().float8_e4m3fn).flatten()


def _torch():
    import torch

    return torch


def _of_default(out_dtype):
    return _torch().bfloat16 if out_dtype is _BF16 else out_dtype


@on_cpu()
@accepts_skip_check
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
    y = _fp8_product("fp8_linear", a, weight, a_scale, weight_scale, qkv_scale, bias)
    return _finished("fp8_linear", y, bias, _of_default(out_dtype), output_quant_scale, out)


def _fp8_product(function, a, weight, a_scale, weight_scale, qkv_scale=None, bias=None):
    """The product in f32 with the scales of rows, and of the three parts."""
    import torch

    from . import mm_bf16

    if a.dim() != 2 or weight.dim() != 2 or a.shape[1] % 128:
        raise ValueError(f"{function}: a and weight have shapes {tuple(a.shape)} and {tuple(weight.shape)}, but must be [M, K] and [N, K], K a multiple of 128")
    (m, k), n = a.shape, weight.shape[0]
    for name, x, shape, dtype in (("a", a, (m, k), torch.float8_e4m3fn), ("weight", weight, (n, k), torch.float8_e4m3fn),
                                  ("a_scale", a_scale, (m,), torch.float32), ("weight_scale", weight_scale, (n,), torch.float32)):
        _check(function, name, x, shape, dtype)
    y = mm_bf16(a.to(torch.bfloat16), weight.to(torch.bfloat16).t(), out_dtype=torch.float32)
    y *= a_scale[:, None] * weight_scale
    return _times_parts(function, y, qkv_scale, bias)


def _times_parts(function, y, qkv_scale, bias=None):
    import torch

    if qkv_scale is None:
        return y
    _check(function, "qkv_scale", qkv_scale, (3,), torch.float32)
    if bias is not None:
        raise NotImplementedError(f"{function}: qkv_scale with a bias is not available: which comes first is not documented")
    if y.shape[1] % 3:
        raise ValueError(f"{function}: weight has {y.shape[1]} rows, but qkv_scale needs three equal parts")
    y *= qkv_scale.repeat_interleave(y.shape[1] // 3)
    return y


def _unpacked(function, name, packed, scale):
    """bf16 [rows, columns] of NVFP4 values times their block scales."""
    import torch

    from . import e2m1_and_ufp8sf_scale_to_float

    rows, columns = packed.shape[0], packed.shape[1] * 2
    _check(function, f"{name}_block_scale", scale, ((rows + 127) // 128 * 128 * columns // 16,), torch.float8_e4m3fn)
    one = torch.ones(1, dtype=torch.float32)
    return e2m1_and_ufp8sf_scale_to_float(packed, scale.view(torch.uint8), one, 16, 1, True).to(torch.bfloat16)


@on_cpu()
@accepts_skip_check
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
    y = _fp4_product("fp4_linear", a_packed, a_block_scale, a_global_scale, weight_packed, weight_block_scale, weight_global_scale)
    return _finished("fp4_linear", y, bias, _of_default(out_dtype), output_quant_scale, out)


def _fp4_product(function, a_packed, a_block_scale, a_global_scale, weight_packed, weight_block_scale, weight_global_scale):
    """The product in f32 with all scales."""
    import torch

    from . import mm_bf16

    for name, x in (("a_packed", a_packed), ("weight_packed", weight_packed)):
        if x.dtype != torch.uint8 or x.dim() != 2 or x.shape[1] % 128 or x.shape[1] != a_packed.shape[1]:
            raise ValueError(f"{function}: {name} is {x.dtype} of shape {tuple(x.shape)}, but must be torch.uint8 [rows, K/2], K a multiple of 256 "
                             "and the same for both")
    a = _unpacked(function, "a", a_packed, a_block_scale)
    w = _unpacked(function, "weight", weight_packed, weight_block_scale)
    y = mm_bf16(a, w.t(), out_dtype=torch.float32)
    y *= float(a_global_scale) * float(weight_global_scale)
    return y


def _swiglu(function, y, bias):
    """y[:, 0::2] * silu(y[:, 1::2]), of y with its bias."""
    import torch

    if y.shape[1] % 2:
        raise ValueError(f"{function}: weight has {y.shape[1]} rows, but must have pairs of a gate and an activation")
    _check(function, "bias", bias, y.shape[1:], torch.bfloat16)
    if bias is not None:
        y += bias.float()
    return y[:, 0::2] * torch.nn.functional.silu(y[:, 1::2])


@on_cpu()
@accepts_skip_check
def fp8_linear_swiglu(a, weight, a_scale, weight_scale, bias=None, *, config=None, out_dtype=_BF16, output_quant_scale=None, out=None):
    """z[:, j] = y[:, 2j] * silu(y[:, 2j + 1]), y being the result of `fp8_linear` with its bias in f32: rows of the weight are pairs.

    Args:
        weight, weight_scale, bias: as of `fp8_linear`, with an even number of rows N
        out: [M, N/2] of out_dtype; made when absent
        others: as of `fp8_linear`

    Returns, Raises: as `fp8_linear`
    """
    z = _swiglu("fp8_linear_swiglu", _fp8_product("fp8_linear_swiglu", a, weight, a_scale, weight_scale), bias)
    return _rounded("fp8_linear_swiglu", z, _of_default(out_dtype), output_quant_scale, out)


@on_cpu()
@accepts_skip_check
def fp4_linear_swiglu(a_packed, a_block_scale, a_global_scale, weight_packed, weight_block_scale, weight_global_scale, bias=None, *, out_dtype=_BF16,
                      output_quant_scale=None, out=None):
    """As `fp8_linear_swiglu`, of `fp4_linear`.

    Args:
        out_dtype: also torch.uint8: NVFP4, two values a byte; N/2 must be a multiple of 16
        output_quant_scale: of NVFP4, the global scale of `nvfp4_quantize`
        out: [M, N/2] of out_dtype, of NVFP4 [M, N/4]; made when absent
        others: as of `fp4_linear`

    Returns:
        as `fp4_linear`; of NVFP4 the codes, their block scales (float8_e4m3fn, flat in tiles of 128x4) and, without
        output_quant_scale, a scale of 1. The result is rounded to bf16 before it is quantised

    Raises: as `fp8_linear`
    """
    function = "fp4_linear_swiglu"
    y = _fp4_product(function, a_packed, a_block_scale, a_global_scale, weight_packed, weight_block_scale, weight_global_scale)
    return _rounded(function, _swiglu(function, y, bias), _of_default(out_dtype), output_quant_scale, out, fp4=True)


def _normed_and_rotated(function, y, q_norm_weight, k_norm_weight, cos_sin, positions, heads, head_dim, is_neox):
    """f32 [M, N]: Q and K of the bf16 `y` after RMSNorm over each head and interleaved RoPE; V as it is."""
    import torch

    num_q_heads, num_kv_heads = heads
    if num_q_heads != num_kv_heads or head_dim != 128 or is_neox:
        raise ValueError(f"{function}: num_q_heads is {num_q_heads}, num_kv_heads {num_kv_heads}, head_dim {head_dim} and is_neox {is_neox}, but "
                         "must be equal numbers of heads, 128 and False")
    m, n = y.shape
    if n != 3 * num_q_heads * head_dim:
        raise ValueError(f"{function}: qkv_weight has {n} rows, but {num_q_heads} heads need {3 * num_q_heads * head_dim}")
    for name, x, shape, dtype in (("q_norm_weight", q_norm_weight, (head_dim,), torch.bfloat16), ("k_norm_weight", k_norm_weight, (head_dim,), torch.bfloat16),
                                  ("cos_sin", cos_sin, (m, head_dim), torch.float32), ("positions", positions, (m,), torch.int64)):
        _check(function, name, x, shape, dtype)
    parts = y.to(torch.bfloat16).float().view(m, 3, num_q_heads, head_dim)
    table = cos_sin[torch.where((positions >= 0) & (positions < m), positions, 0)][:, None]
    cos, sin = table[..., :head_dim // 2], table[..., head_dim // 2:]
    for part, weight in ((0, q_norm_weight), (1, k_norm_weight)):
        x = parts[:, part]
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight.float()
        even, odd = x[..., 0::2], x[..., 1::2]
        parts[:, part] = torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)
    return parts.reshape(m, n)


@on_cpu()
@accepts_skip_check
def fp8_qkv_qknorm_rope(a, qkv_weight, a_scale, qkv_weight_scale, q_norm_weight, k_norm_weight, cos_sin, positions, *, num_q_heads, num_kv_heads, head_dim,
                        is_neox=False, qkv_scale=None, config=None, out_dtype=_BF16, output_quant_scale=None, out=None):
    """Q, K and V side by side, from `fp8_linear` rounded to bf16: heads of Q and K then pass an RMSNorm (epsilon 1e-6) and RoPE.

    Args:
        qkv_weight, qkv_weight_scale: [N, K] and [N], N = 3 * num_q_heads * head_dim: rows of Q, K, V
        q_norm_weight, k_norm_weight: bfloat16 [head_dim]
        cos_sin: float32 [M, head_dim]: cosines, then sines, of the pairs (0, 1), (2, 3), ...
        positions: int64 [M], the row of cos_sin of each token; outside [0, M): row 0
        num_q_heads, num_kv_heads, head_dim, is_neox: equal numbers of heads, 128, False
        others: as of `fp8_linear`

    Returns:
        [M, N] of out_dtype; for FP8 without output_quant_scale the pair of it and a scale of 1

    Raises:
        ValueError: shapes, dtypes or sizes other than these
    """
    function = "fp8_qkv_qknorm_rope"
    y = _fp8_product(function, a, qkv_weight, a_scale, qkv_weight_scale, qkv_scale)
    y = _normed_and_rotated(function, y, q_norm_weight, k_norm_weight, cos_sin, positions, (num_q_heads, num_kv_heads), head_dim, is_neox)
    return _rounded(function, y, _of_default(out_dtype), output_quant_scale, out)


@on_cpu()
@accepts_skip_check
def fp4_qkv_qknorm_rope(a_packed, a_block_scale, a_global_scale, qkv_weight_packed, qkv_weight_block_scale, qkv_weight_global_scale, q_norm_weight,
                        k_norm_weight, cos_sin, positions, *, num_q_heads, num_kv_heads, head_dim, is_neox=False, qkv_scale=None, out_dtype=_BF16,
                        output_quant_scale=None, out=None):
    """As `fp8_qkv_qknorm_rope`, of `fp4_linear`; the result is bf16, output_quant_scale has no effect.

    Returns:
        bfloat16 [M, N]

    Raises:
        ValueError: as there, or another out_dtype
    """
    function = "fp4_qkv_qknorm_rope"
    if _of_default(out_dtype) != _torch().bfloat16:
        raise ValueError(f"{function}: out_dtype is {out_dtype}, but must be torch.bfloat16")
    y = _fp4_product(function, a_packed, a_block_scale, a_global_scale, qkv_weight_packed, qkv_weight_block_scale, qkv_weight_global_scale)
    y = _times_parts(function, y, qkv_scale)
    y = _normed_and_rotated(function, y, q_norm_weight, k_norm_weight, cos_sin, positions, (num_q_heads, num_kv_heads), head_dim, is_neox)
    return _rounded(function, y, _torch().bfloat16, None, out)
