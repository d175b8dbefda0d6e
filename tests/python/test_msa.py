# SPDX-License-Identifier: Apache-2.0
"""flashinfer.msa_ops: scores of blocks, selection and attention together, views of one cache, and errors."""
import math

import pytest
import torch

import flashinfer
from flashinfer import msa_ops

BF16 = torch.bfloat16


def i32(*values):
    return torch.tensor(values, dtype=torch.int32)


@pytest.fixture
def flat():
    torch.manual_seed(3)
    q, k, v = torch.randn(5, 4, 128).to(BF16), torch.randn(700, 2, 128).to(BF16), torch.randn(700, 2, 128).to(BF16)
    return q, k, v, i32(0, 2, 5), i32(0, 300, 700)


def dense(q, k, v, cu_q, cu_k, h, r, keys_of):
    """Attention of one row and head in double, over the keys that `keys_of` gives of the request's."""
    b = 0 if r < cu_q[1] else 1
    lo, n = int(cu_k[b]), int(cu_k[b + 1] - cu_k[b])
    position = n - int(cu_q[b + 1] - cu_q[b]) + r - int(cu_q[b])
    keys = [lo + j for j in keys_of(n) if j <= position]
    logits = k[keys, h // 2].double() @ q[r, h].double() / math.sqrt(128)
    return torch.softmax(logits, 0) @ v[keys, h // 2].double(), torch.logsumexp(logits, 0)


def test_score_select_attend(flat):
    q, k, v, cu_q, cu_k = flat
    scores = msa_ops.msa_proxy_score(q, k, cu_q, cu_k)
    assert scores.shape == (4, 4, 5) and scores.dtype == torch.float32
    logits = q[4, 3].double() @ k[300:700, 1].double().T
    torch.testing.assert_close(scores[3, :, 4].double(), torch.stack([b.max() for b in logits.split(128)]), rtol=1e-5, atol=1e-5)
    assert (scores[:, 3, :2] == -math.inf).all()  # the first request has 300 keys
    shared = msa_ops.msa_proxy_score(q, k, cu_q, cu_k, reduce_heads=True)
    assert torch.equal(shared, scores.amax(0, keepdim=True))

    chosen = msa_ops.msa_topk_select(scores[::2].contiguous(), 2, num_valid_pages=i32(3, 3, 4, 4, 4), force_end_blocks=1)
    assert chosen.shape == (5, 2, 2) and (chosen[:, :, 1] == i32(2, 2, 3, 3, 3)[:, None]).all()
    lists = chosen.permute(1, 0, 2).contiguous()
    out, lse = msa_ops.msa_sparse_attention(q, k, v, lists, cu_q, cu_k, causal=True, return_softmax_lse=True)
    for r, h in ((0, 1), (4, 2)):
        blocks = set(lists[h // 2, r].tolist())
        want, want_lse = dense(q, k, v, cu_q, cu_k, h, r, lambda n: [j for j in range(n) if j // 128 in blocks])
        torch.testing.assert_close(out[r, h].double(), want, rtol=1e-2, atol=1e-2)
        torch.testing.assert_close(lse[r, h].double(), want_lse, rtol=1e-5, atol=1e-5)


def test_views_of_one_cache_give_the_same_bits():
    torch.manual_seed(4)
    cache = torch.randn(6, 128, 2, 256).to(BF16).permute(0, 2, 1, 3)  # heads within tokens, K beside V
    k, v = cache.split(128, dim=-1)
    q, lists = torch.randn(2, 4, 128).to(BF16), i32(0, 2, -1, 0, 1, 2, 1, -1, -1, 0, 1, 2).view(2, 2, 3)
    table = {"page_table": i32(5, 0, 2, 1, 3, 4).view(2, 3), "seqused_k": i32(300, 384)}
    assert msa_ops.SUPPORTS_PACKED_KV and msa_ops.supports_packed_kv("cpu") and msa_ops.supports_packed_kv(q.device)
    out = msa_ops.msa_sparse_decode_attention(q, k, v, lists, **table)
    assert torch.equal(out, msa_ops.msa_sparse_decode_attention(q, k.contiguous(), v.contiguous(), lists, **table))
    given = torch.empty_like(q)
    assert msa_ops.msa_sparse_decode_attention(q, k, v, lists, out=given, **table) is given and torch.equal(given, out)
    scores = msa_ops.msa_proxy_score(q, k, i32(0, 1, 2), **table)
    assert torch.equal(scores, msa_ops.msa_proxy_score(q, k.contiguous(), i32(0, 1, 2), **table))


def test_nvfp4_is_what_its_dequantised_keys_give(flat):
    q, k, v, cu_q, cu_k = flat
    lists = i32(0, 1, 2).expand(2, 5, 3).contiguous()

    def quantized(x):
        scale = 448 * 6 / x.float().abs().max()
        data, sf = flashinfer.nvfp4_quantize(x.reshape(-1, 128), scale, sfLayout=flashinfer.SfLayout.layout_128x4)
        plain = flashinfer.e2m1_and_ufp8sf_scale_to_float(data, sf.view(torch.uint8).reshape(-1), (1 / scale).reshape(1), 16, 1, True)
        return data.view(torch.uint8).reshape(-1, 2, 64), sf.view(torch.uint8), float(1 / scale), plain.reshape(-1, 2, 128)

    (k4, ksf, kg, k_plain), (v4, vsf, vg, v_plain) = quantized(k), quantized(v)
    out = msa_ops.msa_sparse_attention(q.float(), k4, v4, lists, cu_q, cu_k, True, k_scale=ksf, v_scale=vsf, k_global_scale=kg, v_global_scale=vg)
    want = msa_ops.msa_sparse_attention(q.float(), k_plain, v_plain, lists, cu_q, cu_k, True)
    torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match=r"k_scale has 11200 bytes, but the swizzled scale factors of 1400 rows of k have 11264"):
        msa_ops.msa_sparse_attention(q, k4, v4, lists, cu_q, cu_k, k_scale=ksf.reshape(-1)[:-64], v_scale=vsf)


def test_errors_of_selection():
    score = torch.randn(2, 64, 8)
    for change, match in (({"num_valid_pages": 65}, r"num_valid_pages is 65, but must be in \[1, 64\]"), ({"num_valid_pages": 0}, "num_valid_pages is 0"),
                          ({"force_begin_blocks": 10, "force_end_blocks": 10}, "but topk is only 16"),
                          ({"num_valid_pages": 4, "force_begin_blocks": 3, "force_end_blocks": 3}, "but num_valid_pages is 4"),
                          ({"force_end_blocks": -1}, "force_end_blocks is -1"), ({"topk": 0}, "topk is 0"),
                          ({"num_valid_pages": torch.ones(8, dtype=torch.int64)}, "1D int32"), ({"num_valid_pages": i32(1)}, "total_qo_len is 8")):
        with pytest.raises(ValueError, match=match):
            msa_ops.msa_topk_select(score, **{"topk": 16, **change})


def test_errors_of_attention(flat):
    q, k, v, cu_q, cu_k = flat
    lists = torch.zeros(2, 5, 2, dtype=torch.int32)
    attend, paged = msa_ops.msa_sparse_attention, torch.randn(3, 2, 128, 128).to(BF16)
    table = {"page_table": i32(0, 1, 3, 2).view(2, 2), "seqused_k": i32(200, 100)}
    for call, match in (
            (lambda: attend(q, k, v, lists.permute(0, 2, 1).contiguous().permute(0, 2, 1), cu_q, cu_k), "q2k_indices must be contiguous"),
            (lambda: attend(q, k, v, lists, cu_q), "cu_seqlens_k is missing"),
            (lambda: attend(q, k, v, lists, i32(0, 2, 4), cu_k), "cu_seqlens_q ends with 4, but q has 5 rows"),
            (lambda: attend(q, k, v, lists, cu_q, i32(0, 300, 701)), "cu_seqlens_k ends with 701, but k has 700 keys"),
            (lambda: attend(q, paged, paged, lists, cu_q, **table), r"page_table\[1, 0\] is 3, but k has 3 pages"),
            (lambda: attend(q, paged, paged, lists, cu_q, page_table=table["page_table"], seqused_k=i32(257, 1)), r"seqused_k\[0\] is 257"),
            (lambda: attend(q, paged, paged, lists, cu_q, page_table=table["page_table"]), "seqused_k is missing"),
            (lambda: attend(q, k, v, lists, cu_q, cu_k, seqused_k=i32(1, 1)), "page_table is not"),
            (lambda: attend(q[:, :3], k, v, lists, cu_q, cu_k), "q has 3 heads, but must have a multiple of the 2 of k"),
            (lambda: attend(q, k, v[:600], lists, cu_q, cu_k), "must have the tokens and heads of k"),
            (lambda: attend(q, k, v.float(), lists, cu_q, cu_k), "v is float32"),
            (lambda: attend(q.to(torch.float8_e4m3fn), k, v, lists, cu_q, cu_k), "fp8 q requires fp8 k"),
            (lambda: attend(q, k, v, lists, cu_q, cu_k, k_scale=torch.zeros(8, dtype=torch.uint8)), "scale factors of NVFP4, but k is bfloat16"),
            (lambda: attend(q, k, v, lists, cu_q, cu_k, return_temperature_lse=True, lse_temperature_scale=-1.0), "lse_temperature_scale is -1"),
            (lambda: attend(q, k, v, lists, cu_q, cu_k, q_offset=0.5), "q_offset is 0.5"),
            (lambda: msa_ops.msa_sparse_decode_attention(q, k, v, lists, cu_seqlens_k=cu_k, seqlen_q=2), "q has 5 rows, but 2 requests of seqlen_q = 2"),
            (lambda: msa_ops.msa_proxy_score(q, k, cu_q, cu_k, max_k_tiles=3), "max_k_tiles is 3, but a request has 4 blocks"),
            (lambda: msa_ops.msa_proxy_score(q, k, cu_q, cu_k, max_seqlen_q=2), "max_seqlen_q is 2, but request 1 has 3 rows"),
            (lambda: msa_ops.MSASparseAttentionWorkspace("cpu"), "requires a CUDA device")):
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.raises(NotImplementedError, match="workspace is given"):
        attend(q, k, v, lists, cu_q, cu_k, workspace=1)


CODES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)


def planar_pool(pages, heads):
    """Random bytes of planar pages and the four views of them, with keys and values as numbers [pages, heads, 128, 128]."""
    torch.manual_seed(11)
    side = heads * 128 * 64
    pool = torch.randint(0, 256, (pages, 2 * heads * 128 * 72), dtype=torch.uint8)
    views, numbers = [], []
    for first in (0, heads * 128 * 72):
        data, sf = pool[:, first:first + side].view(pages, heads, 128, 64), pool[:, first + side:first + heads * 128 * 72].view(pages, heads, 128, 8)
        sf.copy_(torch.randint(40, 60, sf.shape))
        factor = sf.view(torch.float8_e4m3fn).double()
        if first:  # V: factor s of token t is elsewhere
            plain = torch.empty_like(factor)
            for t in range(128):
                for s in range(8):
                    plain[:, :, t, s] = factor[:, :, t // 4 * 4 + s // 2, s % 2 * 4 + t % 4]
            factor = plain
        values = torch.stack((CODES[(data & 15).long()], CODES[(data >> 4).long()]), -1).flatten(-2)
        views += [data, sf]
        numbers.append(values * factor.repeat_interleave(16, -1))
    return views, numbers


def test_planar_pages_with_swizzled_factors():
    (k, k_scale, v, v_scale), (keys, values) = planar_pool(pages=5, heads=2)
    q, table, lengths = torch.randn(4, 4, 128).to(BF16), i32(4, 1, 0, 2, 3, -1).view(2, 3), i32(300, 129)
    lists = i32(0, 2, -1, 1, 2, -1, 0, 1, -1, 1, -1, -1, 0, 1, 2, 2, -1, -1, 0, -1, -1, 0, 1, -1).view(2, 4, 3)
    lse = torch.empty(4, 4)
    run = msa_ops.prepare_msa_nvfp4_sparse_decode(q, k, v, lists, k_scale=k_scale, v_scale=v_scale.view(torch.float8_e4m3fn), page_table=table, seqused_k=lengths,
                                                  k_global_scale=0.5, v_global_scale=2.0, seqlen_q=2, lse=lse)
    for changed in (False, True):
        if changed:  # the next step of the same tensors
            q.copy_(torch.randn(4, 4, 128))
        out = run()
        for r, h in ((0, 0), (1, 3), (2, 1), (3, 2)):
            b, length = r // 2, int(lengths[r // 2])
            see = [(int(table[b, i // 128]), i % 128) for i in range(length - 2 + r % 2 + 1) if i // 128 in lists[h // 2, r].tolist()]
            page, token = torch.tensor(see).T
            logits = 0.5 * keys[page, h // 2, token] @ q[r, h].double() / math.sqrt(128)
            want = 2 * torch.softmax(logits, 0) @ values[page, h // 2, token]
            assert (out[r, h].double() - want).norm() <= 0.01 * want.norm()
            torch.testing.assert_close(lse[r, h].double(), torch.logsumexp(logits, 0), rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="k_global_scale is 0.0"):
        msa_ops.prepare_msa_nvfp4_sparse_decode(q, k, v, lists, k_scale=k_scale, v_scale=v_scale, page_table=table, seqused_k=lengths, k_global_scale=0.0, v_global_scale=1.0)
    with pytest.raises(ValueError, match=r"v_scale is torch.uint8 of shape \(5, 2, 128, 64\), but must be"):
        msa_ops.prepare_msa_nvfp4_sparse_decode(q, k, v, lists, k_scale=k_scale, v_scale=v, page_table=table, seqused_k=lengths, k_global_scale=1.0, v_global_scale=1.0)
    table[0, 0] = 9
    with pytest.raises(ValueError, match="page_table names page 9, but the pool has 5 pages"):
        run()
