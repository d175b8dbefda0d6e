# SPDX-License-Identifier: Apache-2.0
"""fp8_linear, fp4_linear and what follows them (SwiGLU; norm and RoPE) against sums in double precision."""
import pytest
import torch

import flashinfer
from flashinfer.gemm import fp4_linear, fp4_linear_swiglu, fp4_qkv_qknorm_rope, fp8_linear, fp8_linear_swiglu, fp8_qkv_qknorm_rope

E4M3 = torch.float8_e4m3fn
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def fp8_case(m=5, n=48, k=256):
    torch.manual_seed(0)
    a, w = torch.randn(m, k).to(E4M3), torch.randn(n, k).to(E4M3)
    return a, w, torch.rand(m) + 0.5, torch.rand(n) * 0.1 + 0.01


def fp8_reference(a, w, a_scale, w_scale):
    return a.double() @ w.double().T * a_scale.double()[:, None] * w_scale.double()


def fp4_case(m=5, n=32, k=256):
    """Packed values, scales row by row, and the numbers that they stand for."""
    torch.manual_seed(1)
    made = []
    for rows in (m, n):
        values = torch.randint(0, 16, (rows, k), dtype=torch.uint8)
        scales = (torch.rand(rows, k // 16) * 3 + 0.01).to(E4M3)
        padded = torch.zeros((rows + 127) // 128 * 128, k // 16, dtype=torch.uint8)
        padded[:rows] = scales.view(torch.uint8)
        tiled = flashinfer.block_scale_interleave(padded).view(-1).view(E4M3)
        made.append((values[:, ::2] | values[:, 1::2] << 4, tiled, E2M1[values.long()] * scales.double().repeat_interleave(16, 1)))
    return made


def close(actual, expected):
    """To half a unit of bf16's last place, and what f32 sums lose."""
    assert (actual.double() - expected).abs().max() <= expected.abs().max() * 2 ** -8


def test_fp8_linear():
    a, w, a_scale, w_scale = fp8_case()
    expected, bias = fp8_reference(a, w, a_scale, w_scale), torch.randn(48).bfloat16()
    close(fp8_linear(a, w, a_scale, w_scale), expected)
    out = torch.empty(5, 48, dtype=torch.bfloat16)
    assert fp8_linear(a, w, a_scale, w_scale, bias, out=out) is out
    close(out, expected + bias.double())
    factors = torch.tensor([2.0, 0.5, -1.0])
    close(fp8_linear(a, w, a_scale, w_scale, qkv_scale=factors), expected * factors.double().repeat_interleave(16))


def test_fp8_results():
    a, w, a_scale, w_scale = fp8_case()
    expected = fp8_reference(a, w, a_scale, w_scale)
    y, scale = fp8_linear(a, w, a_scale, w_scale, out_dtype=E4M3)
    assert scale.tolist() == [1.0] and torch.equal(y.float(), expected.float().to(E4M3).float())
    y = fp8_linear(a, w, a_scale, w_scale, out_dtype=E4M3, output_quant_scale=torch.tensor([1000.0]))
    assert y.float().abs().max() == 448 and torch.equal(y.float(), (expected * 1000).float().clamp(-448, 448).to(E4M3).float())


def test_fp4_linear():
    (a, a_scale, x), (w, w_scale, z) = fp4_case()
    expected, bias = x @ z.T * 0.25 * 3, torch.randn(32).bfloat16()
    close(fp4_linear(a, a_scale, 0.25, w, w_scale, 3.0), expected)
    close(fp4_linear(a, a_scale, 0.25, w, w_scale, 3.0, bias), expected + bias.double())
    y, scale = fp4_linear(a, a_scale, 0.001, w, w_scale, 3.0, out_dtype=E4M3)
    assert y.dtype == E4M3 and scale.tolist() == [1.0]


def swiglu(y):
    return y[:, 0::2] * torch.nn.functional.silu(y[:, 1::2])


def test_swiglu_of_pairs():
    a, w, a_scale, w_scale = fp8_case()
    expected, bias = fp8_reference(a, w, a_scale, w_scale), torch.randn(48).bfloat16()
    close(fp8_linear_swiglu(a, w, a_scale, w_scale, skip_check=True), swiglu(expected))
    out = torch.empty(5, 24, dtype=torch.bfloat16)
    assert fp8_linear_swiglu(a, w, a_scale, w_scale, bias, out=out) is out
    close(out, swiglu(expected + bias.double()))
    y, scale = fp8_linear_swiglu(a, w, a_scale, w_scale, out_dtype=E4M3)
    assert y.dtype == E4M3 and scale.tolist() == [1.0]
    (a, a_scale, x), (w, w_scale, z) = fp4_case()
    close(fp4_linear_swiglu(a, a_scale, 0.01, w, w_scale, 0.5), swiglu(x @ z.T * 0.01 * 0.5))


def test_swiglu_to_nvfp4():
    (a, a_scale, _), (w, w_scale, _) = fp4_case()
    arguments = (a, a_scale, 0.01, w, w_scale, 0.5)
    plain = fp4_linear_swiglu(*arguments)
    factor = 448 * 6 / plain.abs().max().float().view(1)
    codes, scales = fp4_linear_swiglu(*arguments, out_dtype=torch.uint8, output_quant_scale=factor)
    assert codes.shape == (5, 8) and codes.dtype == torch.uint8 and scales.shape == (128 * 4,) and scales.dtype == E4M3
    wanted = flashinfer.nvfp4_quantize(plain, factor)
    assert torch.equal(codes, wanted[0]) and torch.equal(scales.view(torch.uint8), wanted[1].view(torch.uint8).flatten())
    out = torch.empty(5, 8, dtype=torch.uint8)
    y, _, scale = fp4_linear_swiglu(*arguments, out_dtype=torch.uint8, out=out)
    assert y is out and scale.tolist() == [1.0]


def qkv_reference(y, q_norm, k_norm, cos_sin, rows, heads):
    parts = y.bfloat16().double().view(len(y), 3, heads, 128)
    pair = torch.view_as_complex(parts[:, :2].reshape(len(y), 2, heads, 64, 2).contiguous())
    root = (parts[:, :2].square().mean(-1, keepdim=True) + 1e-6).sqrt()
    weight = torch.view_as_complex(torch.stack((q_norm, k_norm)).double().view(2, 1, 64, 2))
    normed = torch.complex(pair.real * weight.real, pair.imag * weight.imag) / root
    turn = torch.complex(cos_sin[rows, :64].double(), cos_sin[rows, 64:].double())[:, None, None]
    return torch.cat([torch.view_as_real(normed * turn).reshape(len(y), -1), parts[:, 2].reshape(len(y), -1)], 1)


def test_norm_and_rope():
    heads = 2
    a, w, a_scale, w_scale = fp8_case(n=3 * heads * 128, k=128)
    q_norm, k_norm, angles = torch.rand(128).bfloat16(), torch.rand(128).bfloat16(), torch.rand(5, 64) * 6
    cos_sin, positions, rows = torch.cat([angles.cos(), angles.sin()], 1), torch.tensor([4, 0, 2, -1, 5]), [4, 0, 2, 0, 0]
    sizes = dict(num_q_heads=heads, num_kv_heads=heads, head_dim=128)
    y = fp8_reference(a, w, a_scale, w_scale)
    close(fp8_qkv_qknorm_rope(a, w, a_scale, w_scale, q_norm, k_norm, cos_sin, positions, **sizes), qkv_reference(y, q_norm, k_norm, cos_sin, rows, heads))
    factors = torch.tensor([2.0, 0.5, -1.0])
    scaled = qkv_reference(y * factors.double().repeat_interleave(heads * 128), q_norm, k_norm, cos_sin, rows, heads)
    got, scale = fp8_qkv_qknorm_rope(a, w, a_scale, w_scale, q_norm, k_norm, cos_sin, positions, qkv_scale=factors, out_dtype=E4M3, **sizes)
    assert scale.tolist() == [1.0] and (got.double() - scaled).abs().max() <= scaled.abs().max() * 2 ** -4
    (a, a_scale, x), (w, w_scale, z) = fp4_case(n=3 * heads * 128)
    got = fp4_qkv_qknorm_rope(a, a_scale, 0.01, w, w_scale, 0.5, q_norm, k_norm, cos_sin, positions, **sizes)
    close(got, qkv_reference(x @ z.T * 0.005, q_norm, k_norm, cos_sin, rows, heads))
    with pytest.raises(ValueError, match="num_kv_heads 1, .* but must be equal numbers of heads, 128 and False"):
        fp8_qkv_qknorm_rope(*fp8_case(), q_norm, k_norm, cos_sin, positions, **dict(sizes, num_kv_heads=1))
    with pytest.raises(ValueError, match="weight has 48 rows, but 2 heads need 768"):
        fp8_qkv_qknorm_rope(*fp8_case(), q_norm, k_norm, cos_sin, positions, **sizes)


@pytest.mark.parametrize("change, text", [
    ({"a": torch.zeros(5, 100).to(E4M3)}, "K a multiple of 128"), ({"weight": torch.zeros(48, 256).bfloat16()}, "weight is torch.bfloat16, but must be"),
    ({"a_scale": torch.zeros(4)}, r"a_scale has shape \(4,\), but must be \(5,\)"), ({"bias": torch.zeros(48)}, "bias is torch.float32"),
    ({"out_dtype": torch.float16}, "out_dtype is torch.float16"), ({"out": torch.zeros(5, 48)}, "out is torch.float32"),
    ({"qkv_scale": torch.zeros(2)}, "qkv_scale has shape"), ({"output_quant_scale": torch.zeros(2)}, "output_quant_scale has shape")])
def test_wrong_arguments_are_named(change, text):
    names = ("a", "weight", "a_scale", "weight_scale")
    with pytest.raises(ValueError, match="fp8_linear: .*" + text):
        fp8_linear(**{**dict(zip(names, fp8_case())), **change})


def test_what_is_not_documented_is_refused():
    a, w, a_scale, w_scale = fp8_case()
    with pytest.raises(NotImplementedError, match="which comes first is not documented"):
        fp8_linear(a, w, a_scale, w_scale, torch.zeros(48).bfloat16(), qkv_scale=torch.ones(3))
    (a, a_scale, _), (w, w_scale, _) = fp4_case()
    with pytest.raises(ValueError, match=r"a_block_scale has shape \(64,\), but must be \(2048,\)"):
        fp4_linear(a, a_scale[:64], 1.0, w, w_scale, 1.0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_scale_of_nvfp4_has_any_float_type(dtype):
    # (448 * 6) / x.abs().max() has x's type.
    x = torch.randn(128, 64).bfloat16()
    scale = (448 * 6 / x.abs().max()).to(dtype)
    got, expected = flashinfer.nvfp4_quantize(x, scale), flashinfer.nvfp4_quantize(x, scale.float())
    assert all(torch.equal(a, b) for a, b in zip(got, expected))
