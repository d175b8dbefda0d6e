# SPDX-License-Identifier: Apache-2.0
"""flashinfer.cute_dsl: fronts of the library's ops, against double precision."""
import math

import pytest
import torch

from flashinfer import cute_dsl


def normed(x, weight, bias=0.0):
    x = x.double()
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * (weight.double() + bias)


@pytest.fixture
def rows():
    g = torch.Generator().manual_seed(2)
    return torch.randn(3, 4, 128, generator=g).bfloat16(), torch.rand(128, generator=g).bfloat16(), torch.randn(12, 128, generator=g).bfloat16()


@pytest.mark.parametrize("bias", [0.0, 1.0, 0.25])
def test_norms(rows, bias):
    x, weight, residual = rows
    flat, scale = x.view(12, 128), torch.tensor([0.5])
    for function, of in ((cute_dsl.rmsnorm_cute, flat), (cute_dsl.qk_rmsnorm_cute, x)):
        out = torch.empty_like(of)
        assert function(of, weight, out, weight_bias=bias) is None
        torch.testing.assert_close(out.double(), normed(of, weight, bias), rtol=1e-2, atol=1e-2)
    codes = torch.empty(12, 128, dtype=torch.float8_e4m3fn)
    cute_dsl.rmsnorm_quant_cute(codes, flat, weight, scale, weight_bias=bias)
    torch.testing.assert_close(codes.double() * 0.5, normed(flat, weight, bias), rtol=0.08, atol=1e-2)
    total, first, second = (flat.float() + residual.float()), residual.clone(), residual.clone()
    made = flat.clone()
    cute_dsl.fused_add_rmsnorm_cute(made, first, weight, weight_bias=bias)
    torch.testing.assert_close(made.double(), normed(total, weight, bias), rtol=1e-2, atol=2e-2)
    cute_dsl.fused_add_rmsnorm_quant_cute(codes, flat, second, weight, scale, weight_bias=bias)
    torch.testing.assert_close(codes.double() * 0.5, normed(total, weight, bias), rtol=0.08, atol=2e-2)
    assert torch.equal(first, second) and torch.equal(first, total.bfloat16())


def test_layernorm(rows):
    x, out = rows[2], torch.empty_like(rows[2])
    gamma, beta = torch.linspace(0.5, 1.5, 128), torch.linspace(-1, 1, 128)
    cute_dsl.layernorm_cute(out, x, gamma, beta)
    want = torch.nn.functional.layer_norm(x.double(), (128,), gamma.double(), beta.double(), 1e-6)
    torch.testing.assert_close(out.double(), want, rtol=1e-2, atol=1e-2)


def attention(q, k, v, scale):
    """Causal, the last query at the last key."""
    logits = torch.einsum("qhd,khd->hqk", q.double(), k.double()) * scale
    hidden = torch.ones(logits.shape[1:], dtype=torch.bool).triu(k.shape[0] - q.shape[0] + 1)
    return torch.einsum("hqk,khd->qhd", logits.masked_fill(hidden, -math.inf).softmax(-1), v.double())


def test_prefill_of_rows_and_pages():
    g = torch.Generator().manual_seed(4)
    q, k, v = torch.randn(5, 2, 64, generator=g).half(), torch.randn(32, 2, 64, generator=g).half(), torch.randn(32, 2, 64, generator=g).half()
    ends, keys = torch.tensor([0, 2, 5]).int(), torch.tensor([0, 16, 32]).int()
    wrapper = cute_dsl.BatchPrefillCuteDSLWrapper(torch.empty(1 << 20, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="without page_size"):
        wrapper.run(q, k, v)
    wrapper.plan(ends, keys, 2, 2, 64)
    out, lse = wrapper.run(q, k, v, return_lse=True)
    assert lse.shape == (5, 2)
    for rows, columns in ((slice(0, 2), slice(0, 16)), (slice(2, 5), slice(16, 32))):
        torch.testing.assert_close(out[rows].double(), attention(q[rows], k[columns], v[columns], 0.125), rtol=1e-2, atol=2e-3)
    wrapper.plan(ends, None, 2, 2, 64, page_size=16, paged_kv_indptr=torch.tensor([0, 1, 2]).int(), paged_kv_indices=torch.tensor([0, 1]).int(),
                 paged_kv_last_page_len=torch.tensor([16, 16]).int())
    assert torch.equal(wrapper.run_paged(q, (k.view(2, 16, 2, 64), v.view(2, 16, 2, 64))), out)
    with pytest.raises(ValueError, match="one of kv_indptr"):
        wrapper.plan(ends, None, 2, 2, 64)
    with pytest.raises(NotImplementedError, match="window_right is 3"):
        wrapper.plan(ends, keys, 2, 2, 64, window_right=3)


def test_mla_decode():
    g = torch.Generator().manual_seed(6)
    q, cache = torch.randn(2, 1, 16, 576, generator=g).bfloat16() / 4, torch.randn(4, 32, 576, generator=g).bfloat16() / 4
    wrapper = cute_dsl.BatchMLADecodeCuteDSLWrapper(torch.empty(1 << 20, dtype=torch.uint8))
    tables, lengths = torch.tensor([[2, 0], [1, 3]]).int(), torch.tensor([40, 17]).int()
    with pytest.raises(RuntimeError, match="call plan"):
        wrapper.run(q, cache, tables, lengths, 40, 0.1)
    wrapper.plan(num_heads=16, page_size=32)
    out = wrapper.run(q, cache, tables, lengths, 40, 0.1, 0.5)
    for b, n in enumerate(lengths.tolist()):
        rows = cache[tables[b].long()].flatten(0, 1)[:n]
        want = attention(q[b], rows[:, None].expand(n, 16, 576), rows[:, None, :512].expand(n, 16, 512), 0.1) * 0.5
        torch.testing.assert_close(out[b].double(), want, rtol=2e-2, atol=2e-3)
    with pytest.raises(ValueError, match="page size is 32, but the plan has 64"):
        wrapper.plan(num_heads=16, page_size=64)
        wrapper.run(q, cache, tables, lengths, 40, 0.1)


# ---- decode wrappers ----
def attended(q, k, v, scale, window_left=-1, causal=True, sinks=None):
    """Of one request, q [rows, heads, dim] and k, v [keys, kv heads, dim]: (out, lse in base 2), in double precision."""
    rows, heads, keys = q.shape[0], q.shape[1], k.shape[0]
    k, v = (x.double().repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
    logits = torch.einsum("rhd,khd->hrk", q.double(), k) * scale
    at, key = torch.arange(rows)[:, None] + keys - rows, torch.arange(keys)
    hidden = (key > at if causal else torch.zeros(rows, keys, dtype=torch.bool)) | ((key < at - window_left) if window_left >= 0 else False)
    logits = logits.masked_fill(hidden, -math.inf)
    lse = logits.logsumexp(-1)
    if sinks is not None:
        lse = torch.logaddexp(lse, sinks.double()[:, None])
    return torch.einsum("hrk,khd->rhd", (logits - lse[..., None]).exp(), v), lse.T / math.log(2)


@pytest.mark.parametrize("options", [{}, {"window_left": 5, "window_right": None}], ids=["causal", "window"])
def test_decode_of_rows(options):
    g = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(*s, generator=g).bfloat16() for s in ((2, 3, 4, 64), (2, 17, 2, 64), (2, 17, 2, 64)))
    wrapper = cute_dsl.BatchDecodeCuteDSLWrapper(torch.empty(0, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="call plan"):
        wrapper.run(q, k, v)
    wrapper.plan(2, 17, 4, 2, 64, q_data_type=torch.bfloat16, **options)
    sinks, lse = torch.tensor([0.5, -1, 2, 0]), torch.empty(2, 3, 4)
    got = wrapper.run(q, k, v, sinks=sinks, lse=lse, sm_scale=0.25, o_scale=2.0)
    for b in range(2):
        want, want_lse = attended(q[b], k[b], v[b], 0.25, options.get("window_left", -1), not options, sinks)
        torch.testing.assert_close(got[b].double(), 2 * want, rtol=2e-2, atol=2e-2)
        torch.testing.assert_close(lse[b].double(), want_lse, rtol=1e-3, atol=1e-3)
    out = torch.empty_like(q)
    assert wrapper.run(q, k, v, out=out) is out
    torch.testing.assert_close(out[0].double(), attended(q[0], k[0], v[0], 0.125, options.get("window_left", -1), not options)[0], rtol=2e-2, atol=1e-2)


def test_decode_of_pages():
    g = torch.Generator().manual_seed(4)
    q, k, v = (torch.randn(*s, generator=g).half() for s in ((4, 4, 64), (6, 8, 2, 64), (6, 8, 2, 64)))
    indptr, indices, lens = torch.tensor([0, 3, 5]).int(), torch.tensor([4, 0, 2, 1, 5]).int(), torch.tensor([19, 16]).int()
    wrapper = cute_dsl.BatchDecodePagedCuteDSLWrapper(torch.empty(0, dtype=torch.uint8))
    wrapper.plan(indptr, indices, lens, 4, 2, 64, 8, o_data_type=torch.float32, q_len_per_req=2)
    lse = torch.empty(4, 4)
    got = wrapper.run(q, k, v, lse=lse)
    assert got.dtype == torch.float32
    for b in range(2):
        keys, values = (x[indices[indptr[b]:indptr[b + 1]].long()].flatten(0, 1)[:lens[b]] for x in (k, v))
        want, want_lse = attended(q[2 * b:2 * b + 2], keys, values, 0.125)
        torch.testing.assert_close(got[2 * b:2 * b + 2].double(), want, rtol=1e-2, atol=1e-2)
        torch.testing.assert_close(lse[2 * b:2 * b + 2].double(), want_lse, rtol=1e-3, atol=1e-3)
    assert torch.equal(wrapper.run(q.view(2, 2, 4, 64), k, v).flatten(0, 1), got)
    for call, error, text in ((lambda: wrapper.plan(indptr, indices[:3], lens, 4, 2, 64, 8), ValueError, "3 page ids"),
                              (lambda: wrapper.run(q[:3], k, v), ValueError, "the plan has 2 requests"), (lambda: wrapper.run(q, k[:, :4], v), ValueError, "k_cache has shape"),
                              (lambda: wrapper.run(q.float(), k, v), ValueError, "q.dtype is torch.float32"),
                              (lambda: wrapper.run(q, k, v, skip_softmax_threshold_scale_factor=0.0), ValueError, "skip_softmax"),
                              (lambda: wrapper.plan(indptr, indices, lens, 4, 2, 64, 8, window_right=3), NotImplementedError, "window_right is 3")):
        with pytest.raises(error, match=text):
            call()


def test_older_forms_of_decode():
    wrapper = cute_dsl.BatchDecodeCuteDSLWrapper(torch.empty(0, dtype=torch.uint8))
    q, k = torch.randn(1, 2, 2, 64).half(), torch.randn(1, 9, 2, 64).half()
    with pytest.warns(DeprecationWarning) as warned:
        wrapper.plan(1, 9, 2, 2, 64, torch.float16, torch.float16, torch.float32, 0.5, 4, "none", 2, False)
    assert ["positionally" in str(w.message) for w in warned] == [True, False] and "is_causal" in str(warned[1].message)
    out = torch.empty(1, 2, 2, 64)
    with pytest.warns(DeprecationWarning, match="positionally"):
        assert wrapper.run(q, k, k, out) is out
    torch.testing.assert_close(out[0].double(), attended(q[0], k[0], k[0], 0.5, causal=False)[0], rtol=1e-2, atol=1e-2)
    for call, text in ((lambda: wrapper.plan(1, 9, 2, 2, 64, *[None] * 9), "at most 8"), (lambda: wrapper.plan(1, 9, 2, 2, 64, is_causal=True, window_left=1), "is_causal cannot"),
                       (lambda: wrapper.run(q, k, k, *[None] * 6), "at most 5")):
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="multiple values for argument 'out'"):
        wrapper.run(q, k, k, out, out=out)
