# SPDX-License-Identifier: Apache-2.0
"""trtllm_sage_attention_quantize and its errors."""
import pytest
import torch

import flashinfer


@pytest.mark.parametrize("dtype, most", [(torch.int8, 127), (torch.float8_e4m3fn, 448)])
def test_sage_quantisation(dtype, most):
    torch.manual_seed(5)
    q, k, v = torch.randn(9, 4, 64).bfloat16(), torch.randn(21, 2, 64).bfloat16(), torch.randn(21, 2, 64).bfloat16()
    q8, k8, v8, q_scale, k_scale, v_scale = flashinfer.trtllm_sage_attention_quantize(q, k, v, q_block_size=4, k_block_size=16, qk_quant_dtype=dtype)
    assert (q8.dtype, k8.dtype, v8.dtype) == (dtype, dtype, torch.float8_e4m3fn)
    assert (q_scale.shape, k_scale.shape, v_scale.shape) == ((4, 3), (2, 2), (2, 64))
    torch.testing.assert_close(k_scale[1, 1], k[16:, 1].float().abs().max() / most)
    torch.testing.assert_close(v_scale, v.float().abs().amax(0) / 448)
    spread = k_scale.T.repeat_interleave(16, 0)[:21, :, None]
    torch.testing.assert_close(k8.float() * spread, k.float(), rtol=0.07, atol=float(k_scale.max()))
    torch.testing.assert_close(v8.float() * v_scale, v.float(), rtol=0.07, atol=0.01)


def test_sage_quantisation_of_smoothed_requests():
    torch.manual_seed(3)
    q, k = torch.randn(9, 2, 64).bfloat16(), (torch.randn(9, 2, 64) + 5).bfloat16()
    cum = torch.tensor([0, 5, 9], dtype=torch.int32)
    _, k8, _, q_scale, k_scale, _, mean = flashinfer.trtllm_sage_attention_quantize(q, k, k, 4, 4, cum_seq_lens_q=cum, cum_seq_lens_kv=cum, smooth_k=True)
    torch.testing.assert_close(mean.double(), k.double().mean(0))
    assert q_scale.shape == k_scale.shape == (2, 4)  # ceil(9 / 4) + 2 requests - 1
    places = torch.tensor([0, 0, 0, 0, 1, 2, 2, 2, 2])  # token 5 is the first of request 1: 5 // 4 + 1
    torch.testing.assert_close(k8.float() * k_scale.T[places][..., None], k.float() - mean, rtol=0, atol=float(k_scale.max()) / 2 * 1.01)
    alone = flashinfer.trtllm_sage_attention_quantize(q[5:], k[5:], k[5:], 4, 4)
    assert torch.equal(alone[3], q_scale[:, 2:3])


@pytest.mark.parametrize("error, message, change", [
    (ValueError, "q_block_size is 2, but must be 1, 4 or 16", dict(q_block_size=2)),
    (ValueError, "qk_quant_dtype is bfloat16", dict(qk_quant_dtype=torch.bfloat16)),
    (ValueError, "cum_seq_lens_q and cum_seq_lens_kv must be given together", dict(cum_seq_lens_q=torch.tensor([0, 4], dtype=torch.int32))),
    (ValueError, "cum_seq_lens_kv goes from 0 to 3, but must go from 0 to the number of tokens, 4",
     dict(cum_seq_lens_q=torch.tensor([0, 4], dtype=torch.int32), cum_seq_lens_kv=torch.tensor([0, 3], dtype=torch.int32))),
])
def test_errors_of_sage_quantisation(error, message, change):
    x = torch.randn(4, 2, 64).bfloat16()
    with pytest.raises(error, match=message):
        flashinfer.trtllm_sage_attention_quantize(x, x, x, **change)
