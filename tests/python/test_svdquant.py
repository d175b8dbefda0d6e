# SPDX-License-Identifier: Apache-2.0
"""SVDQuant's linear layer and tgv_gemm_sm100 against sums in double precision."""
import pytest
import torch

import flashinfer
from flashinfer.gemm import mm_nvfp4_svdquant, nvfp4_quantize_smooth, svdquant_linear, tgv_gemm_sm100
from test_linear import close, fp4_case


def case(rank=32):
    """The two NVFP4 factors, their scales as bytes, alpha, the low-rank factors, bias, and the result in double precision."""
    (a, a_sf, a_values), (b, b_sf, b_values) = fp4_case()
    alpha, bias = torch.tensor([0.25, 9.0]), torch.randn(b.shape[0]).bfloat16()  # elements after the first mean nothing
    d, l1 = torch.randn(a.shape[0], rank).bfloat16(), (20 * torch.randn(b.shape[0], rank)).bfloat16()
    expected = 0.25 * (a_values @ b_values.T + d.double() @ l1.double().T)
    return (a, b, a_sf.view(torch.uint8), b_sf.view(torch.uint8), alpha, d, l1), bias, expected


@pytest.mark.parametrize("rank", [32, 96])
def test_the_correction_is_added_before_alpha_and_the_bias_after_it(rank):
    args, bias, expected = case(rank)
    close(mm_nvfp4_svdquant(*args), expected)
    out = torch.empty(expected.shape, dtype=torch.bfloat16)
    assert mm_nvfp4_svdquant(*args, bias, out=out) is out
    close(out, expected + bias.double())


def test_ranks_that_are_no_multiple_of_32_or_do_not_fit_are_errors():
    (a, b, a_sf, b_sf, alpha, d, l1), _, _ = case(64)
    with pytest.raises(ValueError, match=r"^mm_nvfp4_svdquant: d has shape \(5, 48\)"):
        mm_nvfp4_svdquant(a, b, a_sf, b_sf, alpha, d[:, :48].contiguous(), l1[:, :48].contiguous())
    with pytest.raises(ValueError, match=r"^mm_nvfp4_svdquant: l1 has shape \(32, 32\), but must be \(32, 64\)"):
        mm_nvfp4_svdquant(a, b, a_sf, b_sf, alpha, d, l1[:, :32].contiguous())
    with pytest.raises(ValueError, match="^mm_nvfp4_svdquant: alpha"):
        mm_nvfp4_svdquant(a, b, a_sf, b_sf, alpha.double(), d, l1)


def test_the_layer_is_its_three_steps():
    (_, w, _, w_sf, alpha, _, l1), bias, _ = case()
    _, (_, _, w_values) = fp4_case()
    x, smooth, down = torch.randn(5, 256).bfloat16(), (torch.rand(256) + 0.5).bfloat16(), torch.randn(256, 32).bfloat16()
    scale = (448 * 6 / (x.double() * smooth.double()).abs().max()).float().reshape(1)
    values, scales = nvfp4_quantize_smooth(x, smooth, scale)
    codes = torch.stack((values & 15, values >> 4), -1).reshape(5, 256).long()
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)
    plain = flashinfer.fp4_quantize((x * smooth).bfloat16(), scale, is_sf_swizzled_layout=False)[1].reshape(5, 16)
    x_values = table[codes & 7] * (1 - 2 * (codes >> 3)) * plain.view(torch.float8_e4m3fn).double().repeat_interleave(16, 1)
    d = (x.double() @ down.double()).bfloat16().double()
    expected = 0.25 * (x_values @ w_values.T + d @ l1.double().T) + bias.double()
    close(svdquant_linear(x, w, w_sf, alpha, smooth, down, l1, scale, bias), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_tgv_gemm(dtype):
    a, b, bias = torch.randn(3, 64).to(dtype), torch.randn(40, 64).to(dtype).t(), torch.randn(40).to(dtype)
    expected = a.double() @ b.double() + bias.double()
    close(tgv_gemm_sm100(a, b, bias), expected)
    out = torch.empty(3, 40, dtype=dtype)
    assert flashinfer.tgv_gemm_sm100(a, b, bias, pdl=True, out=out) is out
    close(out, expected)
    with pytest.raises(ValueError, match=r"^tgv_gemm_sm100: bias has shape \(39,\)"):
        tgv_gemm_sm100(a, b, bias[:39])
    with pytest.raises(NotImplementedError, match="mm_fp4 and mm_mxfp8"):
        tgv_gemm_sm100(a, b, bias, a_descale=torch.ones(1))
