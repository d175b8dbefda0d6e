# SPDX-License-Identifier: Apache-2.0
"""Weights in the row order of FlashInfer's back end trtllm."""
import pytest
import torch

import flashinfer


@pytest.mark.parametrize("eight", [False, True])
def test_backend_trtllm_takes_shuffled_rows_of_the_weight(eight):
    """As FlashInfer's: those of nvfp4_quantize(do_shuffle=True), and of shuffle_matrix_a with shuffle_matrix_sf_a. Before, they were taken as rows in order."""
    torch.manual_seed(2)
    a, b = torch.randn(5, 256).bfloat16(), torch.randn(128, 256).bfloat16()
    layout = flashinfer.SfLayout.layout_8x4 if eight else flashinfer.SfLayout.layout_128x4
    one = torch.ones(1)
    x, sx = flashinfer.nvfp4_quantize(a, one, sfLayout=layout)
    plain, shuffled = (flashinfer.nvfp4_quantize(b, one, sfLayout=flashinfer.SfLayout.layout_128x4, do_shuffle=s) for s in (False, True))
    want = flashinfer.mm_fp4(x, plain[0].T, sx, plain[1].T, one, use_8x4_sf_layout=eight)
    out = torch.empty(5, 130, dtype=torch.bfloat16)[:, 1:129]
    got = flashinfer.mm_fp4(x, shuffled[0].T, sx, shuffled[1].T, one, out=out, use_8x4_sf_layout=eight, backend="trtllm")
    assert got is out and torch.equal(out, want)

    y, sy = flashinfer.mxfp8_quantize(a, True)
    w, sw = flashinfer.mxfp8_quantize(b, True)
    want = flashinfer.mm_mxfp8(y, w.T, sy, sw)
    linear = flashinfer.mxfp8_quantize(b, False)[1].view(128, -1)
    rows = flashinfer.shuffle_matrix_a(w.view(torch.uint8), 128).view(torch.float8_e4m3fn)
    scales = flashinfer.shuffle_matrix_sf_a(linear, 128, 32).flatten()
    assert torch.equal(flashinfer.mm_mxfp8(y, rows.T, sy, scales, backend="trtllm"), want)
    with pytest.raises(ValueError, match=r"b.shape\[1\] is 40, but must be a multiple of 32 with backend 'trtllm'"):
        flashinfer.mm_mxfp8(y, w[:40].T, sy, sw, backend="trtllm")


def test_the_order_of_scales_is_that_of_any_dtype_that_scales_have():
    order = flashinfer.utils.get_shuffle_matrix_sf_a_row_indices
    scales = torch.zeros(256, 8, dtype=torch.uint8)
    assert torch.equal(order(scales.bfloat16(), 128, 32), order(scales, 128, 32))
    with pytest.raises(AssertionError, match="should be uint8 or bfloat16, not torch.float32"):
        order(scales.float(), 128, 32)
