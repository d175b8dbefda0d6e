# SPDX-License-Identifier: Apache-2.0
"""Ops of single model families against torch, written anew: norms of video models, routing by a table, LoRA in a mixture of experts,
hyper-connections, top-k of several lengths, grouped MXFP8; and their errors."""
import pytest
import torch

import flashinfer
from flashinfer import fused_moe, mhc, norm


def layer_norm(x, eps=1e-6):
    x = x.double()
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + eps)


def close(got, expected, tolerance=1e-2):
    torch.testing.assert_close(got.double(), expected, rtol=tolerance, atol=tolerance)


def test_norms_of_diffusion_transformers():
    torch.manual_seed(0)
    x, residual = torch.randn(2, 2, 7, 96).bfloat16()
    chunks = [c.squeeze(2) for c in torch.randn(2, 7, 6, 96).bfloat16().chunk(6, dim=2)]  # as models pass them: strided
    gate, scale, shift = chunks[2], chunks[1], chunks[0]
    bias, gamma, beta = torch.randn(3, 96)
    stream = residual.double() + x.double() * (gate.double() + bias)
    kept, normed = norm.fused_dit_gate_residual_layernorm_gamma_beta(x, residual, gate, gamma, beta, gate_bias=bias.view(1, 96))
    close(kept, stream), close(normed, layer_norm(stream) * gamma + beta)
    kept, normed = norm.fused_dit_gate_residual_layernorm_scale_shift(x, residual, gate, scale, shift, gate_bias=bias, scale_bias=gamma, shift_bias=beta)
    close(normed, layer_norm(stream) * (1 + scale.double() + gamma) + shift.double() + beta, 2e-2)
    kept, normed = norm.fused_dit_residual_layernorm_scale_shift(x, scale, shift)
    assert torch.equal(kept, x)
    close(normed, layer_norm(x) * (1 + scale.double()) + shift.double())
    in_place = residual.clone()
    assert norm.fused_dit_residual_layernorm_scale_shift(x, scale, shift, residual=in_place, residual_out=in_place)[0] is in_place
    close(in_place, x.double() + residual.double())
    for error, message, change in ((ValueError, "Cannot use both", dict(use_nvfp4=True, use_mxfp8=True)),
                                   (ValueError, "global_scaling_factor is missing", dict(use_nvfp4=True)),
                                   (NotImplementedError, "use_mxfp8=True is not supported", dict(use_mxfp8=True)),
                                   (ValueError, "scale_bias is .* but must be .96.", dict(scale_bias=torch.zeros(5)))):
        with pytest.raises(error, match=message):
            norm.fused_dit_residual_layernorm_scale_shift(x, scale, shift, **change)


VIDEO = dict(ppf=2, pph=3, ppw=4, num_frame_channels=24, num_height_channels=20, num_width_channels=20, num_heads_q=2, num_heads_k=1, num_heads_v=1,
             head_dim=64)


@pytest.mark.parametrize("interleave", [True, False])
def test_rotation_by_places_in_a_video(interleave):
    torch.manual_seed(1)
    qkv, weight = torch.randn(1, 24, 256).bfloat16(), torch.randn(128).bfloat16()
    q, k, v = norm.fused_qk_rmsnorm_rope(qkv, weight, weight[:64], interleave=interleave, **VIDEO)
    assert q.shape == (1, 24, 2, 64) and torch.equal(v, qkv[..., 192:].view(1, 24, 1, 64))
    place = torch.cartesian_prod(*(torch.arange(n) for n in (2, 3, 4))).double()
    angles = torch.cat([place[:, i:i + 1] * 1e4 ** (-torch.arange(0, c, 2).double() / c) for i, c in enumerate((24, 20, 20))], 1)[:, None]
    for got, x, w in ((q, qkv[0, :, :128], weight), (k, qkv[0, :, 128:192], weight[:64])):
        x = x.double() / torch.sqrt((x.double() ** 2).mean(-1, keepdim=True) + 1e-6) * w.double()
        x = x.view(24, -1, 64)
        a, b = (x[..., 0::2], x[..., 1::2]) if interleave else (x[..., :32], x[..., 32:])
        turned = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
        close(got[0], torch.stack(turned, -1).flatten(-2) if interleave else torch.cat(turned, -1))
    half = norm.fused_qk_rmsnorm_rope(qkv, weight, weight[:64], interleave=interleave, output_fp8=True, output_quant_scale=0.5, **VIDEO)[0]
    assert half.dtype == torch.float8_e4m3fn
    close(half.float(), q.double() * 0.5, 0.08)


@pytest.mark.parametrize("message, change", [
    ("qkv is .* but a video has 20 rows", dict(ppf=1, pph=5)), ("sum to 64, but head_dim is 32", dict(head_dim=32)), ("num_width_channels is 19", dict(num_width_channels=19)),
    (r"q_weight is .* but must be \[192\]", dict(num_heads_q=3, num_heads_v=0)), ("attention_factor is 2", dict(attention_factor=2.0))])
def test_errors_of_the_rotation(message, change):
    with pytest.raises(ValueError, match=message):
        norm.fused_qk_rmsnorm_rope(torch.zeros(1, 24, 256), torch.zeros(128), torch.zeros(64), **{**VIDEO, **change})
    with pytest.raises(NotImplementedError, match="factor=2 is not supported"):
        norm.fused_qk_rmsnorm_rope(torch.zeros(1, 24, 256), torch.zeros(128), torch.zeros(64), factor=2.0, **VIDEO)


def test_top_k_of_several_lengths():
    torch.manual_seed(2)
    logits, lens = torch.randn(4, 300), torch.tensor([900, 30], dtype=torch.int32)
    indices, none = flashinfer.top_k_varlen(logits, lens, 16, compress_ratio=3, next_n=2)
    assert none is None and indices.dtype == torch.int32
    for row, length in enumerate([299, 300, 9, 10]):
        expected = sorted(torch.topk(logits[row, :length], min(16, length)).indices.tolist())
        assert indices[row].tolist() == expected + [-1] * (16 - len(expected))
    given = torch.empty(4, 16, dtype=torch.int32)
    found, values = flashinfer.top_k_varlen(logits, lens, 16, compress_ratio=3, next_n=2, return_values=True, out_indices=given)
    assert found is given and torch.equal(given, indices)
    assert torch.equal(values[0], logits[0][indices[0].long()]) and values[2, 9:].abs().max() == 0
    with pytest.raises(ValueError, match="seq_lens.shape.0. is 2, but logits has 4 rows, 1 .next_n. for each"):
        flashinfer.top_k_varlen(logits, lens, 16)


def test_routing_by_a_table():
    torch.manual_seed(3)
    logits, ids, table = torch.randn(5, 16), torch.tensor([3, 0, 3, 1, 2]), torch.stack([torch.randperm(16)[:4] for _ in range(4)]).int()
    weights, chosen = fused_moe.hash_topk(logits, ids, table, num_fused_shared_experts=1, routed_scaling_factor=2.5)
    scores = torch.nn.functional.softplus(logits.double()).sqrt().gather(1, table[ids].long())
    close(weights[:, :4], scores / scores.sum(-1, keepdim=True), 1e-5)
    assert torch.equal(chosen[:, :4], table[ids]) and (chosen[:, 4] == 16).all() and weights[0, 4] == pytest.approx(0.4)
    for message, change in (("num_fused_shared_experts is 2", dict(num_fused_shared_experts=2)), ("routed_scaling_factor is 0", dict(num_fused_shared_experts=1, routed_scaling_factor=0.0))):
        with pytest.raises(ValueError, match=message):
            fused_moe.hash_topk(logits, ids, table, **change)
    with pytest.raises(ValueError, match=r"input_ids\[1\] is 4"):
        fused_moe.hash_topk(logits, ids + torch.tensor([0, 4, 0, 0, 0]), table)
    with pytest.raises(ValueError, match="tid2eid.*but router_logits has 16 experts"):
        fused_moe.hash_topk(logits, ids, table + 16)
    with pytest.raises(ValueError):
        fused_moe.hash_topk(logits.bfloat16(), ids, table)


def test_lora_in_a_mixture_of_experts():
    torch.manual_seed(4)
    x = torch.randn(3, 64).bfloat16()
    a, b = ([torch.randn(2, 4, *shape).bfloat16() for shape in shapes] for shapes in (((8, 64), (4, 64)), ((32, 8), (16, 4))))
    tokens, experts, weights = torch.tensor([2, 0, 2, 1]), torch.tensor([3, 1, 0, 2]), torch.rand(4)
    got = fused_moe.bgmv_moe(x, a, b, tokens, experts, torch.tensor([1, -1, 0]), weights, 4)
    expected = torch.zeros(3, 48, dtype=torch.float64)
    for t, e, w in zip(tokens.tolist(), experts.tolist(), weights):
        lora = [1, -1, 0][t]
        if lora >= 0:
            expected[t] += w.double() * torch.cat([m[lora, e].double() @ (n[lora, e].double() @ x[t].double()) for n, m in zip(a, b)])
    assert got.dtype == torch.float32 and got[1].abs().max() == 0
    close(got, expected, 1e-3)
    for message, change in (("output_dim is 40", dict(output_dim=40)), (r"expert_ids\[0\] is 4", dict(expert_ids=experts + 1)), ("there are 2 adapters", dict(lora_indices=torch.tensor([2, 0, 0]))),
                            ("lora_b_weights 1", dict(lora_b_weights=b[:1]))):
        with pytest.raises(ValueError, match=message):
            fused_moe.bgmv_moe(**{**dict(x=x, lora_a_weights=a, lora_b_weights=b, sorted_token_ids=tokens, expert_ids=experts,
                                         lora_indices=torch.tensor([1, -1, 0]), topk_weights=weights, num_experts=4), **change})


def test_hyper_connections():
    torch.manual_seed(5)
    residual, x = torch.randn(2, 3, 4, 65).bfloat16(), torch.randn(2, 3, 65).bfloat16()
    post, comb = torch.randn(2, 3, 4, 1), torch.randn(2, 3, 4, 4)
    close(mhc.mhc_post(x, residual, post, comb), x.double().unsqueeze(-2) * post + torch.einsum("...ij,...ih->...jh", comb.double(), residual.double()), 2e-2)
    mix, scale, base = torch.randn(2, 3, 24) * 9, torch.randn(3), torch.randn(24)
    post_mix, comb_mix, layer_input = mhc.mhc_pre_big_fuse_with_prenorm(mix, residual, scale, base)
    squares = residual.double().flatten(-2).square().sum(-1)
    m = mix.double() / torch.sqrt(squares / 260 + 1e-6).unsqueeze(-1)
    pre, after, matrix = (p * s + c for p, s, c in zip(m.split([4, 4, 16], -1), scale, base.split([4, 4, 16])))
    matrix = matrix.view(2, 3, 4, 4).softmax(-1) + 1e-6
    for step in range(20):
        if step:
            matrix = matrix / (matrix.sum(-1, keepdim=True) + 1e-6)
        matrix = matrix / (matrix.sum(-2, keepdim=True) + 1e-6)
    close(post_mix, after.sigmoid().unsqueeze(-1), 1e-4), close(comb_mix, matrix, 1e-4)
    close(layer_input, ((pre.sigmoid() + 1e-6).unsqueeze(-1) * residual.double()).sum(-2))
    halves = [torch.stack([t * 0.25, t * 0.75]).float() for t in (mix, squares)]
    for got, expected in zip(mhc.mhc_pre_big_fuse(*halves, residual, scale, base, 260, num_splits=2), (post_mix, comb_mix, layer_input)):
        close(got, expected.double(), 1e-2)
    with pytest.raises(ValueError, match="residual is .* but must be .\.\.\., 4, hidden."):
        mhc.mhc_post(x, residual[:, :, :3].contiguous(), post, comb)
    with pytest.raises(ValueError, match=r"comb_res_mix is .* but must be \[2, 3, 4, 4\]"):
        mhc.mhc_post(x, residual, post, comb[:1])
    with pytest.raises(ValueError, match="num_splits is 3"):
        mhc.mhc_pre_big_fuse(*halves, residual, scale, base, 260, num_splits=3)


def test_grouped_mxfp8_is_mxfp8_of_each_group():
    torch.manual_seed(6)
    a, mask = torch.randn(2, 130, 160).bfloat16() * 16, torch.tensor([129, 7], dtype=torch.int32)
    codes, scales = flashinfer.mxfp8_grouped_quantize(a, mask)
    assert codes.shape == (130, 256, 2) and scales.shape == (32, 4, 2, 4, 2, 2) and codes.stride() == (256, 1, 130 * 256)
    for i in range(2):
        one, one_scales = flashinfer.mxfp8_quantize(a[i, :mask[i]].contiguous(), True, alignment=256)
        assert torch.equal(codes[:mask[i], :, i].contiguous().view(torch.uint8), one.view(torch.uint8))
        tiles = scales.permute(5, 2, 4, 0, 1, 3)[i].reshape(-1)
        assert torch.equal(tiles[:one_scales.numel()], one_scales.view(-1))
    with pytest.raises(ValueError, match=r"mask\[0\] is 131"):
        flashinfer.mxfp8_grouped_quantize(a, mask + 2)


@pytest.mark.parametrize("name, k, n, dtype", [("mm_M1_16_K7168_N128", 7168, 128, torch.bfloat16), ("mm_M1_16_K7168_N256", 7168, 256, torch.float32)])
def test_router_products_name_what_flashinfer_names(name, k, n, dtype):
    function = getattr(flashinfer.gemm, name)

    def call(tokens=2, hidden=k, experts=n, out_dtype=dtype):
        a, b = torch.randn(tokens, hidden).bfloat16(), torch.randn(experts, hidden).bfloat16().t()
        out = torch.empty(tokens, experts, dtype=out_dtype)
        function(a, b, out)
        close(out, a.double() @ b.double(), 2e-2)

    call()
    other = torch.float32 if dtype == torch.bfloat16 else torch.bfloat16
    for word, change in (("num_tokens", dict(tokens=17, out_dtype=other)), ("num_experts", dict(experts=n + 1)),
                         ("hidden_dim", dict(hidden=k - 1)), (str(dtype).split(".")[1], dict(out_dtype=other))):
        with pytest.raises(ValueError, match=word):
            call(**change)


def test_bias_and_scores_of_deepseek_routing_may_differ_in_type():
    scores, bias = torch.randn(3, 32).bfloat16(), (0.1 * torch.randn(32)).half()
    chosen, same = [], []
    for b, found in ((bias, chosen), (bias.float(), same)):
        values, ids = torch.empty(3, 4).bfloat16(), torch.empty(3, 4, dtype=torch.int32)
        fused_moe.fused_topk_deepseek(scores, b, 4, 2, 4, 2.5, values, ids)
        found += [values, ids]
    assert torch.equal(chosen[0], same[0]) and torch.equal(chosen[1], same[1])
