# SPDX-License-Identifier: Apache-2.0
"""Ops of single model families against torch, written anew: norms of video models, routing by a table, LoRA in a mixture of experts,
hyper-connections, top-k of several lengths, grouped MXFP8; and their errors."""
import gc

import pytest
import torch

import flashinfer
from flashinfer import fused_moe, mhc, norm, quantization


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
                                   (ValueError, "sf_out is .* but must be 512 bytes", dict(use_mxfp8=True, sf_out=torch.zeros(5, dtype=torch.uint8))),
                                   (ValueError, "scale_bias is .* but must be .96.", dict(scale_bias=torch.zeros(5)))):
        with pytest.raises(error, match=message):
            norm.fused_dit_residual_layernorm_scale_shift(x, scale, shift, **change)


def test_words_that_flashinfers_tests_match():
    x, ones = torch.randn(1, 3, 96).bfloat16(), torch.ones(96)

    def layernorm(**outputs):
        norm.fused_dit_gate_residual_layernorm_gamma_beta(x, x, x, ones, ones, **outputs)

    def silu(block_scale):
        norm.fused_rmsnorm_silu(x[0], ones.bfloat16(), out=torch.empty(3, 48, dtype=torch.float4_e2m1fn_x2), block_scale=block_scale)

    silu(torch.empty(3, 6, dtype=torch.float8_e4m3fn)), layernorm(norm_out=torch.empty_like(x))
    for message, call in (("norm_out dtype is float32, but must be bfloat16", lambda: layernorm(norm_out=torch.empty(1, 3, 96))),
                          ("norm_out dtype is uint8, but must be int32", lambda: layernorm(norm_out=torch.empty(1, 3, 24, dtype=torch.uint8), use_mxfp8=True)),
                          (r"norm_out shape mismatch: it is bfloat16\[1, 3, 48\], but must be bfloat16\[1, 3, 96\]", lambda: layernorm(norm_out=x[..., :48].clone())),
                          (r"block_scale shape mismatch: it is float8_e4m3fn\[3, 1\], but must be float8_e4m3fn\[3, 6\]",
                           lambda: silu(torch.empty(3, 1, dtype=torch.float8_e4m3fn))),
                          ("block_scale must be float8_e4m3fn, but block_scale.dtype is float32", lambda: silu(torch.empty(3, 6)))):
        with pytest.raises(ValueError, match=message):
            call()


def test_better_of_two_scales(monkeypatch):
    torch.manual_seed(8)
    x = torch.randn(7, 64).bfloat16() * 3
    recipe = flashinfer.NVFP44Over6Config(256, "MSE")

    class Mine(flashinfer.NVFP44Over6Config):
        pass

    def quantised(**arguments):
        gs = flashinfer.make_nvfp4_global_scale(x, False, nvfp4_4over6_config=recipe)
        return [t.view(torch.uint8) for t in flashinfer.nvfp4_quantize(x, gs, sfLayout=flashinfer.SfLayout.layout_linear, **arguments)]

    plain, (codes, scales), gs = quantised(nvfp4_4over6=None), quantised(nvfp4_4over6=recipe), 256 * 6 / x.abs().max().double()
    assert float(flashinfer.make_nvfp4_global_scale(x, False, nvfp4_4over6_config=recipe)) == pytest.approx(float(gs))
    grid, blocks = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6]).double(), x.double().view(7, 4, 16)
    tries = []
    for divisor in (6, 4):
        scale = (blocks.abs().amax(-1) / divisor * gs).float().to(torch.float8_e4m3fn)
        scaled = blocks / (scale.double() / gs).unsqueeze(-1)
        near = grid[(scaled.abs().unsqueeze(-1) - grid).abs().argmin(-1)] * scaled.sign()
        tries.append((scale.view(torch.uint8), ((near * (scale.double() / gs).unsqueeze(-1) - blocks) ** 2).sum(-1)))
    better = tries[1][1] < tries[0][1]
    assert 0 < better.sum() < better.numel() and torch.equal(scales, torch.where(better, tries[1][0], tries[0][0])) and not torch.equal(plain[1], scales)
    for same in (quantised(nvfp4_4over6=Mine(256, "MSE")), quantised(nvfp4_4over6=quantization.nvfp4_4over6_code(recipe))):
        assert torch.equal(same[0], codes) and torch.equal(same[1], scales)
    assert torch.equal(quantised()[1], plain[1])
    for name, value in (("", "1"), ("_E4M3_USE_256", "1"), ("_ERR_MODE", "MSE")):
        monkeypatch.setenv("FLASHINFER_NVFP4_4OVER6" + name, value)
    with pytest.warns(FutureWarning, match="FLASHINFER_NVFP4_4OVER6. environment variables are deprecated"):
        from_environment = quantised()
    assert torch.equal(from_environment[1], scales) and torch.equal(quantised(nvfp4_4over6=None)[1], plain[1])
    with pytest.raises(TypeError, match="nvfp4_4over6 must be an NVFP44Over6Config or None .or omitted.; got str"):
        quantised(nvfp4_4over6="MSE")
    gs = flashinfer.make_nvfp4_global_scale(x, True, nvfp4_4over6_config=recipe)
    per_token = flashinfer.nvfp4_quantize(x, gs, per_token_activation=True, nvfp4_4over6=recipe)[2]
    close(per_token, x.abs().amax(1).double() / 1536, 1e-6)


@pytest.mark.parametrize("form", ["nvfp4", "mxfp8"])
def test_quantised_norms_of_video_models(form):
    torch.manual_seed(3)
    x, scale, shift = torch.randn(3, 2, 7, 96).bfloat16()
    plain = norm.fused_dit_residual_layernorm_scale_shift(x, scale, shift)[1].view(14, 96)
    sf = torch.full((1024 if form == "nvfp4" else 512,), 7, dtype=torch.uint8)
    gs = (448 * 6 / plain.abs().max()).float().reshape(1)
    expected = quantization.nvfp4_quantize(plain, gs) if form == "nvfp4" else quantization.mxfp8_quantize(plain)
    kept, packed = norm.fused_dit_residual_layernorm_scale_shift(x, scale, shift, sf_out=sf, **({"use_nvfp4": True, "global_scaling_factor": gs} if form == "nvfp4"
                                                                                                else {"use_mxfp8": True}))
    assert torch.equal(kept, x) and packed.dtype == torch.int32 and packed.shape == (2, 7, 12 if form == "nvfp4" else 24)
    assert torch.equal(packed.view(torch.uint8).view(14, -1), expected[0].view(torch.uint8)) and torch.equal(sf, expected[1].flatten().view(torch.uint8))


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


def table(*banks):
    addresses = torch.zeros(len(banks), banks[0].shape[1], dtype=torch.int64)
    return addresses, [fused_moe.fill_w_ptr(addresses, bank, bank.shape[1], s) for s, bank in enumerate(banks)][0]


def test_lora_by_addresses():
    torch.manual_seed(6)
    x, a, b = torch.randn(3, 64).bfloat16(), torch.randn(2, 4, 8, 64).bfloat16() * 0.1, torch.randn(2, 4, 24, 8).bfloat16()
    (w_a, stride_a), (w_b, stride_b) = table(a), table(b)
    assert w_a[0, 1] == a.data_ptr() + 8 * 64 * 2 and (stride_a, stride_b) == (4 * 8 * 64, 4 * 24 * 8)
    tokens, experts, weights, adapters = torch.tensor([2, 0, 2, 1]), torch.tensor([3, 1, 0, 2]), torch.rand(4), torch.tensor([1, -1, 0])
    small = torch.zeros(1, 4, 8)
    fused_moe.bgmv_moe_shrink(small, x, w_a, tokens, experts, adapters, stride_a)
    expected = torch.stack([a[adapters[t], e].double() @ x[t].double() if adapters[t] >= 0 else torch.zeros(8).double() for t, e in zip(tokens, experts)])
    close(small[0], expected, 1e-4)
    y, start = torch.ones(3, 30), torch.tensor([6])
    fused_moe.bgmv_moe_expand(y, small, w_b, tokens, experts, weights, adapters, start, [24], stride_b)
    close(y[:, 6:], 1 + fused_moe.bgmv_moe(x, [a], [b], tokens, experts, adapters, weights, 4).double(), 1e-3)
    assert (y[:, :6] == 1).all()
    plan = fused_moe.prepare_bgmv_moe(x, [a], [b], tokens, experts, adapters, weights, 4)
    for _ in range(2):
        close(plan.run(), fused_moe.bgmv_moe(x, [a], [b], tokens, experts, adapters, weights, 4).double(), 2e-2)
    for message, change in (("fallback is False", dict(fallback=False)), ("y_accum is .* but must be torch.float32 of .3, 24.", dict(y_accum=torch.zeros(3, 5)))):
        with pytest.raises(ValueError, match=message):
            fused_moe.prepare_bgmv_moe(x, [a], [b], tokens, experts, adapters, weights, 4, **change)
    for message, change in (("w_ptr.0. holds addresses", dict(w_ptr=w_a + 2)), ("a stride of 5", dict(lora_stride=5)), (r"expert_ids\[0\] is 4", dict(expert_ids=experts + 1)),
                            ("the 4 experts", dict(w_ptr=w_a[:, :3]))):
        with pytest.raises(ValueError, match=message):
            fused_moe.bgmv_moe_shrink(**{**dict(y=small, x=x, w_ptr=w_a, sorted_token_ids=tokens, expert_ids=experts, lora_indices=adapters, lora_stride=stride_a), **change})
    del a, plan
    gc.collect()  # tracebacks of the errors above hold it
    with pytest.raises(ValueError, match="whose tensor is gone"):
        fused_moe.bgmv_moe_shrink(small, x, w_a, tokens, experts, adapters, stride_a)


@pytest.mark.parametrize("shared", [False, True])
def test_lora_deltas_of_a_mixture(shared):
    torch.manual_seed(7)
    t, k, e, h, i, r = 5, 2, 4, 128, 64, 8
    x, ids, weights = torch.randn(t, h).bfloat16(), torch.stack([torch.randperm(e)[:k] for _ in range(t)]).int(), torch.rand(t, k)
    adapters = torch.tensor([1, -1, 0, 1, 0])
    a1 = [torch.randn(2, e, r, h).bfloat16() * 0.1 for _ in range(1 if shared else 2)]
    b1 = [torch.randn(2, e, 2 * i, r).bfloat16()] if shared else [torch.randn(2, e, i, r).bfloat16() for _ in range(2)]
    a2, b2 = torch.randn(2, e, r, i).bfloat16(), torch.randn(2, e, h, r).bfloat16()
    (w_a, stride_a), (w_b, stride_b) = table(*a1), table(*b1)
    if shared:
        w_a, w_b = w_a.view(-1), w_b.view(-1)
    delta = fused_moe.bgmv_moe_gemm1_lora_delta(x, w_a, stride_a, w_b, stride_b, ids, adapters, r, i, scale=0.5)
    expected = torch.zeros(t, k, 2 * i).double()
    for n in range(t):
        for j in range(k if adapters[n] >= 0 else 0):
            expected[n, j] = 0.5 * torch.cat([q[adapters[n], ids[n, j]].double() @ (p[adapters[n], ids[n, j]].double() @ x[n].double()) for p, q in zip(a1, b1)])
    assert delta.shape == (t, k, 2 * i) and delta.dtype == torch.bfloat16 and delta[1].abs().max() == 0
    close(delta, expected, 2e-2)
    first, second = torch.randn(e, 2 * i, h).bfloat16() * 0.1, torch.randn(e, h, i).bfloat16() * 0.1
    block = lambda w: torch.stack([fused_moe.convert_to_block_layout(m.view(torch.uint8), 128).view(torch.bfloat16) for m in w])
    shuffled = torch.stack([flashinfer.shuffle_matrix_a(flashinfer.reorder_rows_for_gated_act_gemm(m).view(torch.uint8), 128) for m in first])
    down = torch.stack([flashinfer.shuffle_matrix_a(m.view(torch.uint8), 128) for m in second])
    out, place, kept = fused_moe.trtllm_bf16_routed_moe((ids, weights.bfloat16()), x, block(shuffled), block(down), e, k, None, None, i, 0, e, gemm1_lora_delta=delta)
    both = torch.zeros(t, h).double()
    for n in range(t):
        for j in range(k):
            u, g = (first[ids[n, j]].double() @ x[n].double() + delta[n, j].double()).chunk(2)
            act = u * torch.nn.functional.silu(g)
            close(kept[place[n * k + j]], act, 3e-2)
            both[n] += weights[n, j].bfloat16().double() * (second[ids[n, j]].double() @ act)
    close(out, both, 5e-2)
    (w_a, stride_a), (w_b, stride_b) = table(a2), table(b2)
    place[3] = -1
    more = fused_moe.bgmv_moe_gemm2_lora_delta(kept, place, w_a, stride_a, w_b, stride_b, ids, weights, adapters, r, h, scale=2.0, out_dtype=torch.float32)
    expected = torch.zeros(t, h).double()
    for n in range(t):
        for j in range(k if adapters[n] >= 0 else 0):
            if place[n * k + j] >= 0:
                inner = a2[adapters[n], ids[n, j]].double() @ kept[place[n * k + j]].double()
                expected[n] += 2 * weights[n, j].double() * (b2[adapters[n], ids[n, j]].double() @ inner)
    close(more, expected, 1e-2)
    with pytest.raises(ValueError, match="lora_dtype is torch.float16 and rank 8"):
        fused_moe.bgmv_moe_gemm2_lora_delta(kept, place, w_a, stride_a, w_b, stride_b, ids, weights, adapters, r, h, lora_dtype=torch.float16)


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
    with pytest.raises(ValueError, match=r"residual is .* but must be .\.\.\., 4, hidden."):
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


def test_random_experts_are_distinct():
    from flashinfer.fused_moe.utils import make_random_topk_ids

    ids = make_random_topk_ids(8, 100, 5, torch.device("cpu"), torch.Generator().manual_seed(3))
    assert ids.dtype == torch.int32 and ids.shape == (100, 5) and ids.min() == 0 and ids.max() == 7
    assert all(len(set(row)) == 5 for row in ids.tolist()) and ids.unique(dim=0).shape[0] > 50
    with pytest.raises(ValueError, match="top_k is 9, but must be at most num_experts, 8"):
        make_random_topk_ids(8, 1, 9, "cpu")
