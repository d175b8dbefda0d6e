# SPDX-License-Identifier: Apache-2.0
"""Functions of FlashInfer's cake kernels, and KDA by cuDNN's name: against double precision and the functions of the same purpose."""
import pytest
import torch

import flashinfer
from flashinfer import cudnn


@pytest.mark.parametrize("residual", [False, True])
def test_rmsnorm_and_its_gradients(residual):
    torch.manual_seed(0)
    x, r, gy, gh = (torch.randn(5, 96).bfloat16() for _ in range(4))
    w = (torch.rand(96) + 0.5).bfloat16()
    h = (x.double() + r.double()).bfloat16().double() if residual else x.double()  # rounded as the function says
    h.requires_grad_()
    wd = w.double().requires_grad_()
    want = h * torch.rsqrt(h.square().mean(1, keepdim=True) + 1e-6) * wd
    (want * gy.double()).sum().backward()
    dx = h.grad + gh.double() if residual else h.grad
    leaves = [t.clone().requires_grad_() for t in (x, w, r)]
    got = flashinfer.cake_rmsnorm(leaves[0], leaves[1], residual=leaves[2] if residual else None)
    if residual:
        assert torch.equal(got[1], h.detach().bfloat16())
        torch.autograd.backward(got, (gy, gh))
        assert torch.equal(leaves[0].grad, leaves[2].grad)
    else:
        got.backward(gy)
    y = got[0] if residual else got
    torch.testing.assert_close(y.double(), want.detach(), rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(leaves[0].grad.double(), dx, rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(leaves[1].grad.double(), wd.grad, rtol=1e-2, atol=1e-2)
    out = torch.empty_like(x), torch.empty(5), torch.empty_like(x)
    made = flashinfer.cake_rmsnorm_train_forward(x, w, 1e-6, residual=r if residual else None, out=out[0], rstd=out[1], residual_out=out[2])
    assert made[0] is out[0] and made[1] is out[1] and torch.equal(out[0], y.detach())
    dw = torch.empty(96)
    gradients = flashinfer.cake_rmsnorm_train_backward(gy, made[2] if residual else x, w, made[1], g_residual=gh if residual else None, dw=dw)
    assert gradients[1] is dw and torch.equal(gradients[0], leaves[0].grad)
    with pytest.raises(ValueError, match="deterministic is False"):
        flashinfer.cake_rmsnorm_train_backward(gy, x, w, made[1], deterministic=False)
    with pytest.raises(ValueError, match=r"w is torch.bfloat16 of shape \(90,\)"):
        flashinfer.cake_rmsnorm(x, w[:90])
    assert flashinfer.cake_rmsnorm_train_backward_workspace_bytes(5, 96, x.device) == 0


def test_sampling():
    probs = torch.softmax(torch.randn(4, 50), 1)
    want = flashinfer.top_k_top_p_sampling_from_probs(probs, 5, 0.9, seed=3, offset=7)
    out = torch.empty(4, dtype=torch.int32)
    assert flashinfer.cake_top_k_top_p_sampling_from_probs(probs, 5, 0.9, philox_seed=3, philox_offset=7, out=out) is out and torch.equal(out, want)
    with pytest.raises(ValueError, match="given together"):
        flashinfer.cake_top_k_top_p_sampling_from_probs(probs, 5, 0.9, philox_seed=3)
    with pytest.raises(NotImplementedError, match="renorm_out"):
        flashinfer.cake_top_k_top_p_sampling_from_probs(probs, 5, 0.9, renorm_out=torch.empty(4, 1024))


def test_attention_and_sizes():
    q, cache = torch.randn(2, 4, 64).bfloat16(), torch.randn(6, 2, 2, 16, 64).bfloat16()
    tables, lens = torch.tensor([[4, 1], [2, 5]], dtype=torch.int32), torch.tensor([30, 9], dtype=torch.int32)
    call = (q, cache, torch.empty(0, dtype=torch.uint8), tables, lens, 32, 0.125)
    assert torch.equal(flashinfer.cake_batch_decode_with_kv_cache(*call), flashinfer.decode.trtllm_batch_decode_with_kv_cache(*call))
    assert (flashinfer.get_dcp_spec_workspace_size_bytes(2, 1, 8), flashinfer.get_dcp_spec_counter_bytes(2, 3, 4)) == (66560, 96)  # FlashInfer's


@pytest.mark.parametrize("flat, gates", [(False, torch.bfloat16), (True, torch.bfloat16), (True, torch.float32)])
def test_kda_by_cudnns_name(flat, gates):
    torch.manual_seed(0)
    shape = (1, 9, 2, 128)
    q, k, v = (torch.randn(shape).bfloat16() for _ in range(3))
    g, beta, starts = -torch.rand(shape).to(gates), torch.rand(1, 9, 2).to(gates), torch.tensor([0, 4, 9], dtype=torch.int32)
    first = torch.randn(2, 2, 128, 128)
    state = first.clone()
    same = [t.to(torch.bfloat16 if gates == torch.bfloat16 else torch.float32) for t in (q, k, v, g, beta)]
    want, after = flashinfer.recurrent_kda(*same, initial_state=state, output_final_state=True, cu_seqlens=starts)
    want = want.bfloat16()
    given = [t.squeeze(0) if flat else t for t in (q, k, v, g, beta)]
    advanced = first.clone()
    out, none = cudnn.cudnn_recurrent_kda(*given, initial_state=advanced, cu_seqlens=starts)
    assert none is None and torch.equal(out, want.squeeze(0) if flat else want) and torch.equal(advanced, after)
    kept, written, into = first.clone(), torch.empty_like(first), torch.empty_like(given[2])
    out, final = cudnn.cudnn_recurrent_kda(*given, initial_state=kept, output_state=written, output=into, output_final_state=True, cu_seqlens=starts)
    assert out is into and final is written and torch.equal(kept, first) and torch.equal(written, after) and torch.equal(into, want.view(into.shape))
    with pytest.raises(ValueError, match="cu_seqlens is required"):
        cudnn.cudnn_recurrent_kda(*given)
    with pytest.raises(ValueError, match="output_state has shape"):
        cudnn.cudnn_recurrent_kda(*given, initial_state=kept, output_state=kept, cu_seqlens=starts)
