# SPDX-License-Identifier: Apache-2.0
"""Functions of FlashInfer's modules for one GPU generation, computed here by compositions: against plain loops in double precision."""
import math

import pytest
import torch

import flashinfer
from flashinfer import _dsa, _one_gpu

E4M3, BF16, INF = torch.float8_e4m3fn, torch.bfloat16, float("inf")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def i32(*x):
    return torch.tensor(x, dtype=torch.int32)


def scores(q, k, w):
    """[rows, keys] of [rows, heads, d], [keys, d], [rows, heads]"""
    return (torch.einsum("rhd,kd->rhk", q.double(), k.double()).relu() * w.double()[:, :, None]).sum(1)


# ---- indexer scores ----
def fp8_pool(blocks, size, d):
    values, scale = torch.randn(blocks, size, d).to(E4M3), torch.rand(blocks, size) + 0.5
    fused = torch.cat([values.view(torch.uint8).flatten(1), scale.view(torch.uint8).flatten(1)], 1).view(blocks, size, 1, d + 4)
    return values.double() * scale.double()[:, :, None], fused


@pytest.mark.parametrize("module", ["flashinfer", "paged_mqa"])
def test_fp8_paged_scores(module):
    k, fused = fp8_pool(7, 16, 32)
    q, w = torch.randn(2, 3, 4, 32).to(E4M3), torch.randn(6, 4)
    tables, lengths = i32(4, 0, 6, -9).view(1, -1).repeat(2, 1), i32(40, 2)
    if module == "flashinfer":
        out = torch.empty(6, 256)
        got = flashinfer.fp8_paged_mqa_logits(q, fused, w, tables, lengths, 50, out=out)
        assert got.data_ptr() == out.data_ptr() and got.shape == (6, 50)
    else:
        from flashinfer.paged_mqa import fp8_paged_mqa_logits, get_paged_mqa_logits_metadata

        context = torch.stack([lengths - 2, lengths - 1, lengths], 1).int()
        got = fp8_paged_mqa_logits(q, fused, w, context, tables, get_paged_mqa_logits_metadata(context, 16, 3), 50)
    for b in range(2):
        keys = k[tables[b, :3].long()].flatten(0, 1)
        for t in range(3):
            end = max(int(lengths[b]) - 2 + t, 0)
            want = scores(q[b, t:t + 1], keys[:end], w[b * 3 + t:b * 3 + t + 1])[0]
            assert torch.allclose(got[b * 3 + t, :end].double(), want, rtol=1e-5, atol=1e-4) and (got[b * 3 + t, end:] == -INF).all()


def test_wrong_tables_and_lengths():
    k, fused = fp8_pool(3, 16, 32)
    q, w = torch.randn(1, 1, 4, 32).to(E4M3), torch.randn(1, 4)
    call = flashinfer.fp8_paged_mqa_logits
    with pytest.raises(ValueError, match=r"request 0 has 40 keys, which need 3 blocks of 16, but the table has 2 columns"):
        call(q, fused, w, i32(0, 1).view(1, 2), i32(40), 64)
    with pytest.raises(ValueError, match="names blocks 0 to 3, but there are 3"):
        call(q, fused, w, i32(0, 3).view(1, 2), i32(32), 64)
    with pytest.raises(ValueError, match=r"seq_lens has values from 65 to 65, but must be within \[0, 64\]"):
        call(q, fused, w, i32(0, 1).view(1, 2), i32(65), 64)
    with pytest.raises(ValueError, match="weights is torch.float64"):
        call(q, fused, w.double(), i32(0, 1).view(1, 2), i32(16), 64)


def test_fp4_paged_scores():
    codes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]).double()

    def made(*shape):
        nibbles, exponents = torch.randint(0, 16, (*shape, 128)), torch.randint(125, 130, (*shape, 4))
        packed = (nibbles[..., 0::2] | nibbles[..., 1::2] << 4).to(torch.uint8)
        return codes[nibbles] * torch.exp2(exponents.double() - 127).repeat_interleave(32, -1), packed, exponents.to(torch.uint8)

    q, q_codes, q_sf = made(1, 2, 4)
    k, k_codes, k_sf = made(3, 8)
    fused = torch.cat([k_codes.flatten(1), k_sf.flatten(1)], 1).view(3, 8, 1, 68)
    w = torch.randn(2, 4)
    got = flashinfer.fp4_paged_mqa_logits(q_codes, q_sf.view(torch.int32)[..., 0], fused, w, i32(2, 0).view(1, 2), i32(13), 20, output_dtype=torch.float32)
    want = scores(q[0], k[[2, 0]].flatten(0, 1), w)
    assert torch.allclose(got[0, :12].double(), want[0, :12]) and torch.allclose(got[1, :13].double(), want[1, :13])
    assert (got[0, 12:] == -INF).all() and (got[1, 13:] == -INF).all()
    assert flashinfer.compute_paged_mqa_logits_schedule(i32(13), variant="fp4").dtype == torch.int32


def test_dense_scores():
    from flashinfer.dense_mqa import fp8_mqa_logits

    q, k, s, w = torch.randn(5, 4, 32).to(E4M3), torch.randn(11, 32).to(E4M3), torch.rand(11), torch.randn(5, 4)
    ks, ke = i32(0, 1, 3, 4, 11), i32(11, 1, 9, 5, 11)
    got, want = fp8_mqa_logits(q, (k, s), w, ks, ke), scores(q, k, w) * s.double()
    for row in range(5):
        inside = torch.arange(11).ge(ks[row]) & torch.arange(11).lt(ke[row])
        assert torch.allclose(got[row, inside].double(), want[row, inside], rtol=1e-5, atol=1e-4) and (got[row, ~inside] == -INF).all()
    with pytest.raises(ValueError, match="ranges of the 11 keys"):
        fp8_mqa_logits(q, (k, s), w, ke, ks)


# ---- DeepSeek sparse attention ----
@pytest.mark.parametrize("ratio, offsets", [(1, None), (2, None), (1, (0, -3))])
def test_indexer_topk(monkeypatch, ratio, offsets):
    monkeypatch.setattr(_dsa, "_ROWS", 4)
    q, k, w = torch.randn(13, 3, 16).bfloat16(), torch.randn(17, 40).bfloat16()[:, :16], torch.randn(13, 3)
    k[3] = k[2]  # equal scores: the smaller id
    of_q, of_k = (0, 8, 13), (0, 12, 17)
    given = None if offsets is None else torch.tensor(offsets)
    ids, values = _dsa.dsa_indexer_topk(q, k, w, i32(*of_q), i32(*of_k), top_k=5, ratio=ratio, q_causal_offsets=given)
    for s in range(2):
        keys = k[of_k[s]:of_k[s + 1]]
        offset = offsets[s] if offsets else (len(keys) - (of_q[s + 1] - of_q[s]) if ratio == 1 else 0)
        for t in range(of_q[s], of_q[s + 1]):
            row = scores(q[t:t + 1] * 0.25, keys, w[t:t + 1])[0]
            seen = min(max((offset + t - of_q[s] + 1) // ratio, 0), len(keys))
            best = sorted(sorted(range(seen), key=lambda j: (-float(row[j]), j))[:5])
            assert ids[t].tolist() == best + [-1] * (5 - len(best))
            assert torch.allclose(values[t, :len(best)].double(), row[best], rtol=1e-4, atol=1e-5) and (values[t, len(best):] == -INF).all()


def test_sparse_attention_and_its_gradients():
    from flashinfer.dsa_sparse_attention import dsa_sparse_attention, dsa_sparse_attention_varlen

    t, h, c, r, keys = 5, 2, 32, 8, 9
    ql, qr, kl, kr = (torch.randn(*s).bfloat16().requires_grad_() for s in ((t, h, c), (t, h, r), (keys, c), (keys, r)))
    indices = torch.randint(-1, keys + 1, (t, 6)).int()
    indices[2] = -1
    out, lse = dsa_sparse_attention(ql, qr, kl, kr, indices, return_lse=True, topk_length=i32(6, 6, 6, 2, 6))
    doubles = [x.detach().double().requires_grad_() for x in (ql, qr, kl, kr)]
    rows = []
    for i in range(t):
        at = [int(j) for j in indices[i][:2 if i == 3 else 6] if 0 <= j < keys]
        logits = (doubles[0][i] @ doubles[2][at].t() + doubles[1][i] @ doubles[3][at].t()) * (c + r) ** -0.5
        rows.append(torch.softmax(logits, 1) @ doubles[2][at] if at else torch.zeros(h, c).double())
        want = torch.logsumexp(logits, 1) if at else torch.full((h,), -INF).double()
        assert torch.allclose(lse[i].double(), want, atol=1e-5)
    want = torch.stack(rows)
    assert torch.allclose(out.double(), want, atol=2e-2) and not out[2].any()
    weight = torch.randn(t, h, c)
    (out.float() * weight).sum().backward()
    (want * weight).sum().backward()
    for x, y in zip((ql, qr, kl, kr), doubles):
        assert x.grad.isfinite().all() and torch.allclose(x.grad.double(), y.grad, atol=0.03)
    # documents of 2 and 3 queries, 4 and 5 keys; positions in the document, causal
    local = torch.tensor([[0, 1, 2, 3, 9, -1]] * 5).int()
    packed = dsa_sparse_attention_varlen(ql, qr, kl, kr, local, i32(0, 2, 5), i32(0, 4, 9), causal=True)
    flat = [[0, 1, 2], [0, 1, 2, 3], [4, 5, 6], [4, 5, 6, 7], [4, 5, 6, 7]]
    want = dsa_sparse_attention(ql, qr, kl, kr, torch.tensor([f + [-1] * (6 - len(f)) for f in flat]).int())
    assert torch.equal(packed, want)


# ---- attention ----
def plain_attention(q, k, v, rows, lengths, scale, window=-1, cap=0.0, chunk=0, padding=False, sink=None):
    outs, lses, i, j = [], [], 0, 0
    for n, count in zip(rows, lengths):
        group = q.shape[1] // k.shape[1]
        keys, values = (x[j:j + count].double().repeat_interleave(group, 1) for x in (k, v))
        s = torch.einsum("nhd,mhd->hnm", q[i:i + n].double(), keys) * scale
        s = cap * torch.tanh(s / cap) if cap else s
        at, key = torch.arange(n)[:, None] + count - n, torch.arange(count)
        seen = (key <= at) | padding
        seen &= (key >= at - window) | (window < 0)
        seen &= (key >= at // chunk * chunk) if chunk else True
        s = s.masked_fill(~seen, -INF)
        lses.append(torch.logsumexp(s, -1).t())
        denominator = s.exp().sum(-1, keepdim=True) + (0 if sink is None else sink.double().exp()[:, None, None])
        outs.append(torch.einsum("hnm,mhd->nhd", s.exp() / denominator, values))
        i, j = i + n, j + count
    return torch.cat(outs), torch.cat(lses)


SINK = torch.tensor([0.5, -1.0, 2.0, 0.0])


@pytest.mark.parametrize("given, reference", [
    ({}, {}), ({"mask_mode": "SLIDING_WINDOW", "window_left": 6}, {"window": 6}), ({"mask_mode": "chunked", "chunked_attention_size": 8}, {"chunk": 8}),
    ({"mask_mode": "padding"}, {"padding": True}), ({"logits_soft_cap_scale": 3.0}, {"cap": 3.0}), ({"sinks": [SINK]}, {"sink": SINK})])
def test_fmha_v2_in_all_layouts(given, reference):
    rows, lengths, d = [5, 17, 1], [5, 40, 9], 64
    cq, ck, seq = i32(0, 5, 22, 23), i32(0, 5, 45, 54), i32(*lengths)
    q, kv = torch.randn(23, 4, d).bfloat16(), torch.randn(54, 2, 2, d).bfloat16()
    want, lse = plain_attention(q, kv[:, 0], kv[:, 1], rows, lengths, 0.2, **reference)
    pool, tables, free = torch.randn(16, 2, 4, 2, d).bfloat16(), torch.zeros(3, 10).int(), torch.randperm(16).tolist()
    for b, (start, count) in enumerate(zip(ck.tolist(), lengths)):
        for p in range(-(-count // 4)):
            tables[b, p] = free.pop()
            part = kv[start + 4 * p:start + min(4 * p + 4, count)]
            pool[tables[b, p], :, :len(part)] = part.transpose(0, 1)
    two = pool.transpose(0, 1).contiguous()
    forms = {"CONTIGUOUS_Q_KV": ((q, kv), None), "SEPARATE_Q_K_V": ((q, kv[:, 0].contiguous(), kv[:, 1].contiguous()), None),
             "Q_PAGED_KV_NHD": ((q, pool), tables), "Q_PAGED_KV_HND": ((q, pool.transpose(2, 3).contiguous()), tables),
             "q_paged_kv_nhd": ((q, (two[0], two[1])), torch.stack([tables, tables + 16], 1))}
    for layout, (qkv, table) in forms.items():
        got, stats = flashinfer.prefill.trtllm_fmha_v2_prefill(qkv, layout, torch.empty(0), seq, 17, 40, 0.2, 0.5, 3, cq, ck, block_tables=table,
                                                               out_dtype=torch.float32, save_softmax_stats=True, **given)
        assert torch.allclose(got.double(), want * 0.5, atol=1e-2), layout
        if "sinks" not in given:
            unit = 8 * (1 if "logits_soft_cap_scale" in given else 0.2)  # sqrt(d), times bmm1_scale
            assert torch.allclose((stats[..., 0] * unit + stats[..., 1].log()).double(), lse, atol=2e-2), layout


def test_fmha_v2_of_packed_fp8():
    packed, cu = torch.randn(6, 3, 2, 64).to(E4M3), i32(0, 6)
    got = flashinfer.trtllm_fmha_v2_prefill(packed, "PACKED_QKV", torch.empty(0), i32(6), 6, 6, 0.1, 2.0, 1, cu, cu, out_dtype="float16")
    want, _ = plain_attention(*packed.float().unbind(1), [6], [6], 0.1)
    assert got.dtype == torch.float16 and torch.allclose(got.double(), 2 * want, atol=1e-2)
    with pytest.raises(ValueError, match="request 0 has 6 rows, but 5 keys"):
        flashinfer.trtllm_fmha_v2_prefill(packed, "PACKED_QKV", torch.empty(0), i32(5), 6, 6, 0.1, 2.0, 1, cu, i32(0, 5))
    with pytest.raises(ValueError, match="input_layout is 'QKV'"):
        flashinfer.trtllm_fmha_v2_prefill(packed, "QKV", torch.empty(0), i32(6), 6, 6, 0.1, 2.0, 1, cu, cu)


@pytest.mark.parametrize("per_block_mean, causal, m, n", [(True, False, 130, 200), (False, False, 128, 100), (True, True, 140, 140)])
def test_nvfp4_attention(per_block_mean, causal, m, n):
    d = 64
    q, k, v = (torch.randn(2, h, rows, d).bfloat16() for h, rows in ((4, m), (2, n), (2, n)))
    q, k = q + 3 * torch.randn(2, 4, 1, d).bfloat16(), k + 3 * torch.randn(2, 2, 1, d).bfloat16()  # means that would cost FP4 its precision
    quantised = flashinfer.nvfp4_attention_sm120_quantize_qkv(q, k, v, per_block_mean)
    assert quantised[6].shape == (2, 4, -(-m // 128) if per_block_mean else 1, -(-n // 128) * 128)
    out, lse = flashinfer.nvfp4_attention_sm120_fwd(*quantised, causal=causal, per_block_mean=per_block_mean, unpadded_k_len=n)
    keys, values = k.double().repeat_interleave(2, 1), v.double().repeat_interleave(2, 1)
    logits = q.double() @ (keys - keys.mean(2, keepdim=True)).mT * d ** -0.5
    if causal:
        logits = logits.masked_fill(torch.arange(n) > torch.arange(m)[:, None], -INF)
    want, got = torch.softmax(logits, -1) @ values, out[:, :, :m].double()
    assert (lse[:, :, :m] - torch.logsumexp(logits, -1)).abs().mean() < 0.09
    assert torch.nn.functional.cosine_similarity(want.flatten(), got.flatten(), 0) > 0.985
    with pytest.raises(ValueError, match="qk_correction is torch.float32 of shape"):
        flashinfer.nvfp4_attention_sm120_fwd(*quantised[:6], quantised[6][:, :, :, :-1], causal=causal, per_block_mean=per_block_mean)


def test_nvfp4_attention_of_equal_values():
    zero, one = torch.zeros(1, 2, 256, 64).bfloat16(), torch.ones(1, 2, 256, 64).bfloat16()
    out, lse = flashinfer.nvfp4_attention_sm120_fwd(*flashinfer.nvfp4_attention_sm120_quantize_qkv(zero, zero, one))
    assert (out - 1).abs().max() < 0.05 and (lse - math.log(256)).abs().max() < 1e-5


# ---- the others ----
def test_products_by_deepgemms_arguments():
    from flashinfer.deep_gemm import m_grouped_fp8_gemm_nt_contiguous, m_grouped_fp8_gemm_nt_masked

    a, b = torch.randn(256, 128).to(E4M3), torch.randn(2, 128, 128).to(E4M3)
    sa, sb = torch.rand(256, 1) + 0.5, torch.rand(2, 1, 1) + 0.5
    d, groups = torch.empty(256, 128, dtype=BF16), torch.arange(2).repeat_interleave(128).int()
    m_grouped_fp8_gemm_nt_contiguous((a, sa), (b, sb), d, groups)
    want = torch.cat([a.double()[:128] @ b[0].double().t() * sb[0].double(), a.double()[128:] @ b[1].double().t() * sb[1].double()]) * sa.double()
    assert torch.allclose(d.double(), want, rtol=1e-2, atol=0.1)
    masked = torch.empty(2, 128, 128, dtype=BF16)
    m_grouped_fp8_gemm_nt_masked((a.view(2, 128, 128), sa.view(2, 128, 1)), (b, sb), masked, i32(128, 7), 64)
    assert torch.equal(masked[0], d[:128]) and torch.equal(masked[1, :7], d[128:135])
    with pytest.raises(TypeError, match="a_fp8 is Tensor, but must be a pair"):
        m_grouped_fp8_gemm_nt_contiguous(a, (b, sb), d, groups)


def test_low_latency_product():
    from flashinfer.trtllm_low_latency_gemm import prepare_low_latency_gemm_weights, trtllm_low_latency_gemm

    a, w, out = torch.randn(4, 256).to(E4M3), torch.randn(64, 256).to(E4M3), torch.empty(4, 64, dtype=BF16)
    trtllm_low_latency_gemm(a, prepare_low_latency_gemm_weights(w, {}), torch.tensor(0.5), out)
    assert torch.allclose(out.double(), a.double() @ w.double().t() * 0.5, rtol=1e-2, atol=0.1)


def test_layout_of_scale_factors():
    from flashinfer.cute_dsl.utils import convert_sf_from_mma_layout, convert_sf_to_mma_layout

    sf = torch.arange(2 * 256 * 8, dtype=torch.int32)  # [2, 200, 100 / 16] in tiles of 128x4
    view = convert_sf_to_mma_layout(sf, 200, 100, 2)
    assert tuple(view.shape) == (32, 4, 2, 4, 2, 2) and view.data_ptr() == sf.data_ptr()
    assert view[5, 2, 1, 3, 1, 1] == 2048 + 1024 + 512 + 5 * 16 + 2 * 4 + 3
    assert torch.equal(convert_sf_from_mma_layout(view, 200, 100, 2), sf)
    with pytest.raises(ValueError, match="has 4096 scale factors, but .2, 300, 100. has 6144"):
        convert_sf_to_mma_layout(sf, 300, 100, 2)


def test_small_functions():
    from flashinfer.cuda_utils import checkCudaErrors
    from flashinfer.green_ctx import get_sm_count_constraint

    assert [checkCudaErrors(r) for r in ((0,), (0, 5), (0, 5, 6))] == [None, 5, (5, 6)]
    with pytest.raises(RuntimeError, match=r"CUDA error code=3\(unknown\)"):
        checkCudaErrors((3,))
    assert [get_sm_count_constraint(m, 0) for m in (7, 8, 9, 12)] == [(2, 2), (4, 2), (8, 8), (8, 8)]
    with pytest.raises(ValueError, match="compute capability is 5.2"):
        get_sm_count_constraint(5, 2)
    _one_gpu.delay_kernel(10)
    from flashinfer.fp4_quantization import gen_fp4_quantization_module
    from flashinfer.fused_moe.core import is_trtllm_moe_supported
    from flashinfer.tllm_enums import DtypeTrtllmGen as D

    asked = [is_trtllm_moe_supported(w, a) for w, a in ((D.Bfloat16, D.Bfloat16), (D.E4m3, D.Bfloat16), (D.MxE2m1, D.MxE4m3), (D.MxE2m1, D.E2m1), (D.Fp16, D.Fp16))]
    assert asked == [True, False, True, False, False]
    assert gen_fp4_quantization_module([], "native").name == "fp4_quantization_native"
    from flashinfer.gemm.gemm_base import CudnnCaptureUnsafeError, CudnnPlanBuildInCaptureError

    assert issubclass(CudnnPlanBuildInCaptureError, CudnnCaptureUnsafeError) and issubclass(CudnnCaptureUnsafeError, RuntimeError)


def test_linear_attention_by_cudnns_names():
    from flashinfer.cudnn import cudnn_chunk_gated_delta_rule

    q, k, v = (torch.nn.functional.normalize(torch.randn(70, 2, 128), dim=-1).bfloat16() for _ in range(3))
    g, beta, cu = torch.rand(70, 2), torch.rand(70, 2), torch.tensor([0, 30, 70])
    got = cudnn_chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True, cu_seqlens=cu, batch_invariant=True)
    want = flashinfer.chunk_gated_delta_rule(q, k, v, g, beta, output_final_state=True, cu_seqlens=cu)
    assert all(torch.equal(x, y) for x, y in zip(got, want))


# ---- the last layer in training ----
@pytest.mark.parametrize("objective", ["ce", "policy", "logprob"])
def test_chunked_lm_head(objective):
    from flashinfer.chunked_lm_head import chunked_lm_head_logprob, chunked_lm_head_loss

    x, w = torch.randn(21, 32).bfloat16().requires_grad_(), torch.randn(50, 32).bfloat16().requires_grad_()
    labels = torch.randint(0, 50, (21,))
    labels[[2, 3, 20]] = -100
    seen, weights = labels >= 0, torch.randn(21)
    a, b = (t.detach().double().requires_grad_() for t in (x, w))
    logp = torch.where(seen, (a @ b.t()).log_softmax(1).gather(1, labels.clamp(min=0)[:, None])[:, 0], 0.0)
    old = (logp.detach() - torch.linspace(-1, 1.5, 21)).float()  # ratios below and above 2
    if objective == "ce":
        want = -logp.sum() / 7
        got, found = chunked_lm_head_loss(x, w, labels, loss_div=7, chunk_size=4, return_logp=True)
    elif objective == "policy":
        want = -(weights.double() * (logp - old.double()).exp().clamp(max=2))[seen].sum()
        got, found = chunked_lm_head_loss(x, w, labels, objective="policy", infer_logp=old, loss_weights=weights, chunk_size=5, return_logp=True)
    else:
        found = chunked_lm_head_logprob(x, w, labels, chunk_size=4)
        want, got = (logp * weights.double()).sum(), (found * weights).sum()
    assert torch.allclose(found.double(), logp, atol=1e-4) and torch.allclose(got.double(), want, rtol=1e-4) and not found[~seen].any()
    (want * 3).backward()
    (got * 3).backward()
    for mine, theirs in ((x.grad, a.grad), (w.grad, b.grad)):
        assert mine.dtype == BF16 and torch.allclose(mine.double(), theirs, rtol=1e-2, atol=1e-2 * theirs.abs().max())
    with pytest.raises(ValueError, match=r"labels are within \[50, 50\], but must be within \[0, 49\]"):
        chunked_lm_head_logprob(x, w, torch.full((21,), 50))
