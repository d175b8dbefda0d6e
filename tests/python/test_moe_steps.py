# SPDX-License-Identifier: Apache-2.0
"""Steps of a mixture of experts one by one (`fused_moe.cute_dsl.moe_utils`) and cake's fused rotation and append, against loops written out here."""
import pytest
import torch

import flashinfer
from flashinfer.fused_moe.cute_dsl import moe_utils


# ---- rows in tiles ----
def sorted_by_loops(ids, offset, here, tile):
    """{(token, choice): row}, [(expert, limit)] of tiles"""
    rows, tiles, row = {}, [], 0
    for e in range(here):
        chosen = [(t, k) for t in range(ids.shape[0]) for k in range(ids.shape[1]) if ids[t, k] == e + offset]
        for i, choice in enumerate(chosen):
            rows[choice] = row + i
        for first in range(0, len(chosen), tile):
            tiles.append((e, row + min(tile, len(chosen) - first)))
            row += tile
    return rows, tiles


@pytest.mark.parametrize("tokens, top_k, experts, offset, here, tile", [(33, 3, 8, 0, 8, 4), (33, 3, 8, 2, 3, 4), (1, 1, 1, 0, 1, 128), (5, 2, 16, 8, 8, 8), (0, 2, 4, 0, 4, 8)])
def test_sort(tokens, top_k, experts, offset, here, tile):
    ids = torch.stack([torch.randperm(experts, generator=torch.Generator().manual_seed(t))[:top_k] for t in range(tokens)]).int() if tokens else torch.empty(0, top_k).int()
    out = moe_utils.allocate_moe_sort_buffers(tokens, experts, top_k, here, tile, device="cpu")
    got = moe_utils.moe_sort(ids, torch.rand(tokens, top_k), experts, top_k, offset, here, tile, **out)
    assert all(a is b for a, b in zip(got, out.values())) and all(a.dtype == torch.int32 for a in got)
    rows, tiles = sorted_by_loops(ids, offset, here, tile)
    expert, limit, forth, back, padded, used = got
    assert len(expert) == moe_utils.get_max_num_tiles(tokens, top_k, here, tile) and len(back) == tile * len(expert)
    assert used.tolist() == [len(tiles)] and padded.tolist() == [len(tiles) * tile]
    assert list(zip(expert.tolist(), limit.tolist())) == tiles + [(-1, 0)] * (len(expert) - len(tiles))
    assert forth.tolist() == [[rows.get((t, k), -1) for k in range(top_k)] for t in range(tokens)]
    want = [-1] * len(back)
    for (t, k), row in rows.items():
        want[row] = t * top_k + k
    assert back.tolist() == want
    assert all(torch.equal(a, b) for a, b in zip(got, moe_utils.moe_sort(ids, torch.rand(tokens, top_k), experts, top_k, offset, here, tile)))


def test_most_tiles():
    for tokens, top_k, here, tile, most in ((128, 2, 8, 128, 9), (128, 2, 8, 64, 11), (0, 2, 8, 128, 0), (7, 3, 16, 8, 16), (1000, 8, 256, 128, 316), (4, 8, 256, 128, 32)):  # FlashInfer's
        assert moe_utils.get_max_num_tiles(tokens, top_k, here, tile) == most
        assert moe_utils.get_max_num_permuted_tokens(tokens, top_k, here, tile) == most * tile


@pytest.mark.parametrize("change, text", [(dict(ids=torch.zeros(3, 2)), "token_selected_experts is torch.float32"), (dict(top_k=3), r"must be torch.int32 \[tokens, 3\]"),
                                          (dict(offset=3), "local_expert_offset is 3 and num_local_experts 2"), (dict(tile=12), "tile_tokens_dim is 12"),
                                          (dict(scales=torch.rand(3, 1)), "token_final_scales has shape")])
def test_sort_names_what_is_wrong(change, text):
    a = {**dict(ids=torch.zeros(3, 2, dtype=torch.int32), scales=torch.rand(3, 2), top_k=2, offset=0, tile=8), **change}
    with pytest.raises(ValueError, match=text):
        moe_utils.moe_sort(a["ids"], a["scales"], 4, a["top_k"], a["offset"], 2, a["tile"])


@pytest.fixture
def mixture():
    """Choices of 9 tokens, sorted, with half of the experts here."""
    tokens, top_k, tile = 9, 2, 4
    ids = torch.tensor([[t % 8, (t + 3) % 8] for t in range(tokens)], dtype=torch.int32)
    scales = torch.rand(tokens, top_k, generator=torch.Generator().manual_seed(1))
    expert, limit, forth, back, _, used = moe_utils.moe_sort(ids, scales, 8, top_k, 2, 4, tile)
    return dict(ids=ids, scales=scales, limit=limit, forth=forth, back=back, used=used, rows=len(back), top_k=top_k, tile=tile, tokens=tokens, valid=back >= 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.uint8])
def test_permute(mixture, dtype):
    m = mixture
    x = torch.randint(0, 100, (m["tokens"], 32), generator=torch.Generator().manual_seed(2)).to(torch.uint8)
    x = x if dtype == torch.uint8 else x.float().to(dtype)
    out = torch.full((m["rows"], 32), 7.0).to(dtype)
    scales = torch.arange(m["tokens"] * 4, dtype=torch.uint8).view(-1, 4)
    laid = torch.full((128, 4), 9, dtype=torch.uint8)
    moe_utils.moe_permute(x, out, m["limit"], m["back"], m["used"], m["rows"], m["top_k"], m["tile"], input_sf=scales, permuted_sf=laid)
    linear = torch.zeros(128, 4, dtype=torch.uint8)
    for row in range(m["rows"]):
        token = int(m["back"][row]) // m["top_k"]
        if m["valid"][row]:
            assert torch.equal(out[row].float(), x[token].float())
            linear[row] = scales[token]
        else:
            assert (out[row].float() == 7).all()
    assert torch.equal(laid.flatten(), flashinfer.block_scale_interleave(linear).flatten())


@pytest.mark.parametrize("expanded", [False, True])
def test_unpermute(mixture, expanded):
    m = mixture
    y = torch.randn(m["tokens"] * m["top_k"] if expanded else m["rows"], 16, generator=torch.Generator().manual_seed(3)).bfloat16()
    out = torch.full((m["tokens"], 16), 5.0).bfloat16()
    moe_utils.moe_unpermute(y, out, m["forth"], m["scales"], m["tokens"], m["top_k"], input_is_expanded=expanded)
    want = torch.zeros(m["tokens"], 16, dtype=torch.float64)
    for t in range(m["tokens"]):
        for k in range(m["top_k"]):
            if m["forth"][t, k] >= 0:
                want[t] += m["scales"][t, k].double() * y[t * m["top_k"] + k if expanded else m["forth"][t, k]].double()
    torch.testing.assert_close(out.double(), want, rtol=1 / 128, atol=1e-6)
    moe_utils.moe_output_memset(out.fill_(5), m["limit"], m["forth"], m["back"], m["used"], m["rows"], m["top_k"], m["tile"])
    assert torch.equal((out == 0).all(1), (m["forth"] >= 0).any(1)) and (out[(m["forth"] < 0).all(1)] == 5).all()
    moe_utils.moe_output_memset_inplace(out)
    assert not out.any()


def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / 2 ** 0.5))


def silu(x):
    return x / (1 + torch.exp(-x))


@pytest.mark.parametrize("name, halves, f", [("gelu", 1, gelu), ("relu", 1, lambda x: x.clamp(min=0)), ("silu", 1, silu), ("swiglu", 2, lambda x, g: x * silu(g)),
                                             ("geglu", 2, lambda x, g: x * gelu(g)), ("identity", 1, lambda x: x)])
def test_activation(mixture, name, halves, f):
    m = mixture
    x = torch.randn(m["rows"], 8 * halves, generator=torch.Generator().manual_seed(4)).half()
    out = torch.full((m["rows"], 8), 5.0).half()
    if name == "identity":
        moe_utils.moe_activation(x, out, m["limit"], m["used"], 5, m["rows"], m["tile"])
    else:
        getattr(moe_utils, f"moe_{name}")(x, out, m["limit"], m["used"], m["rows"], m["tile"])
    want = f(*x.double().chunk(halves, 1))
    torch.testing.assert_close(out[m["valid"]].double(), want[m["valid"]], rtol=2e-3, atol=1e-4)
    assert (out[~m["valid"]] == 5).all()


# ---- cake: rotation and append ----
HEADS, KV, D, PAGE = 4, 2, 128, 4
LENS, ROWS = [9, 4, 6], [3, 4, 1]  # tokens of the requests, and how many are new


def step(cache_dtype):
    g = torch.Generator().manual_seed(5)
    qkv = torch.randn(sum(ROWS), (HEADS + 2 * KV) * D, generator=g).bfloat16()
    angles = torch.rand(16, D // 2, generator=g) * 6
    caches = [torch.ones(9, PAGE, KV, D).to(cache_dtype) for _ in range(2)]
    tables = torch.tensor([[7, 2, 5], [1, -1, -1], [3, 8, -1]], dtype=torch.int32)
    return qkv, torch.cat([angles.cos(), angles.sin()], 1), torch.tensor(LENS, dtype=torch.int32), torch.tensor([0, 3, 7, 8], dtype=torch.int32), tables, caches


def expected(qkv, cos_sin, tables, norm, weights):
    """q, k, v in double precision, and (page, place) of each token."""
    q, k, v = (t.double() for t in qkv.unflatten(1, (-1, D)).split([HEADS, KV, KV], 1))
    places, turned = [], [torch.empty_like(q), torch.empty_like(k)]
    token = 0
    for b, rows in enumerate(ROWS):
        for i in range(rows):
            position = LENS[b] - rows + i
            places.append((int(tables[b, position // PAGE]), position % PAGE))
            cos, sin = cos_sin[position].double().chunk(2)
            for x, y, w in zip((q, k), turned, weights):
                z = x[token]
                scaled = lambda t: t / (t.square().mean(-1, keepdim=True) + 1e-6).sqrt() * w.double()
                z = scaled(z) if norm == 2 else z
                z = torch.cat([z[:, :64] * cos - z[:, 64:] * sin, z[:, 64:] * cos + z[:, :64] * sin], 1)
                y[token] = scaled(z) if norm == 1 else z
            token += 1
    return *turned, v, places


def unused(caches):
    """The rows behind each request's last token in its last page, of request 0: place 1 on of page 5, ..."""
    return [c[p, i] for c in caches for p, first in ((5, 1), (8, 2)) for i in range(first, PAGE)]


@pytest.mark.parametrize("norm", [0, 1, 2])
@pytest.mark.parametrize("outside", [False, True])
def test_cake_append(norm, outside):
    qkv, cos_sin, lens, indptr, tables, caches = step(torch.bfloat16)
    weights = [torch.rand(D, generator=torch.Generator().manual_seed(i)) + 0.5 for i in range(2)]
    out = {name: torch.empty(len(qkv), KV, D).bfloat16() for name in ("out_k", "out_v")} if outside else {}
    q = flashinfer.rope.cake_fused_qk_rmsnorm_rope_append_paged_kv_cache(
        qkv, cos_sin, lens, indptr, tables, *caches, num_q_heads=HEADS, num_kv_heads=KV, qk_norm_policy=norm, q_norm_weight=weights[0], k_norm_weight=weights[1], **out)
    want_q, want_k, want_v, places = expected(qkv, cos_sin, tables, norm, weights)
    torch.testing.assert_close(q.double(), want_q, rtol=1 / 128, atol=1e-2)
    k = out["out_k"] if outside else torch.stack([caches[0][p] for p in places])
    v = out["out_v"] if outside else torch.stack([caches[1][p] for p in places])
    torch.testing.assert_close(k.double(), want_k, rtol=1 / 128, atol=1e-2)
    assert torch.equal(v.double(), want_v) and not any(row.any() for row in unused(caches))
    assert (caches[0][0] == 1).all() and (caches[1][7] == 1).all() and (not outside or (caches[0][1] == 1).all())


@pytest.mark.parametrize("prefill", [False, True])
@pytest.mark.parametrize("policy", [1, 2])
def test_cake_append_fp8(policy, prefill):
    qkv, cos_sin, lens, indptr, tables, caches = step(torch.float8_e4m3fn)
    weights = [torch.ones(D), torch.ones(D)]
    scale = torch.tensor([0.5]), torch.tensor([2.0])
    q, s, flags = flashinfer.rope.cake_fused_qk_rmsnorm_rope_quantize_fp8_append_paged_kv_cache(
        qkv, cos_sin, lens, indptr, tables, tuple(caches), prefill, *scale, policy, max_seqlen=4, q_scale_inv=torch.tensor([4.0]), q_norm_weight=weights[0],
        k_norm_weight=weights[1], qk_norm_policy=2)
    want_q, want_k, want_v, places = expected(qkv, cos_sin, tables, 2, weights)
    assert q.dtype == torch.float8_e4m3fn and flags.tolist() == [[0] * KV] * 3
    if policy == 2:
        assert s.numel() == 0
        by_head = torch.full((len(qkv), HEADS), 0.25)
    elif prefill:
        assert s.shape == (3, HEADS, 128)
        by_head = torch.cat([s[b, :, :rows].T for b, rows in enumerate(ROWS)])
    else:
        by_head = s
    if policy == 1:
        torch.testing.assert_close(by_head.double(), want_q.abs().amax(-1) / 448, rtol=1e-5, atol=0)
    torch.testing.assert_close(q.double() * by_head[..., None].double(), want_q, rtol=1 / 15, atol=2e-2)
    for cache, want, factor in zip(caches, (want_k, want_v), scale):
        got = torch.stack([cache.view(torch.uint8)[p].view(torch.float8_e4m3fn) for p in places])
        torch.testing.assert_close(got.double() * factor.double(), want, rtol=1 / 15, atol=2e-2)
    assert not any(row.float().any() for row in unused(caches))


def test_cake_append_names_what_is_wrong():
    qkv, cos_sin, lens, indptr, tables, caches = step(torch.bfloat16)
    call = lambda x=qkv, n=HEADS, norm=0, t=tables: flashinfer.rope.cake_fused_qk_rmsnorm_rope_append_paged_kv_cache(
        x, cos_sin, lens, indptr, t, *caches, num_q_heads=n, num_kv_heads=KV, qk_norm_policy=norm)
    for bad, text in ((dict(x=qkv.half()), "qkv is torch.float16"), (dict(n=8), "num_q_heads is 8 and num_kv_heads 2, but qkv and the cache have 4 and 2"),
                      (dict(norm=3), "qk_norm_policy is 3"), (dict(norm=1), "q_norm_weight is None"), (dict(t=tables.long()), "page_indices is torch.int64")):
        with pytest.raises(ValueError, match=text):
            call(**bad)
