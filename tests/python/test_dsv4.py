# SPDX-License-Identifier: Apache-2.0
"""trtllm_batch_decode_sparse_mla_dsv4 against sums in double precision, a query, a head and a row at a time."""
import math

import pytest
import torch

from flashinfer.mla import (batch_decode_sparse_mla_dsv4, convert_compressed_page_aligned_sparse_indices_to_hca_metadata as convert,
                            trtllm_batch_decode_sparse_mla_dsv4 as attention)

HEADS, DIM, WINDOW, EXTRA = 3, 64, 128, 12
LENGTHS, SEQ = (4, 1, 3), (130, 9, 3)  # queries of a request; keys it has had, fewer than the window's columns in two


def reference(q, window, compressed, indices, lens, scale, v_scale, sinks):
    out = torch.zeros(q.shape, dtype=torch.float64)
    t = 0
    for length, seq in zip(LENGTHS, SEQ):
        for i in range(length):
            seen = min(WINDOW, max(0, seq - (length - 1 - i)))
            rows = [window[r] for c, r in enumerate(indices[t, :WINDOW].tolist()) if r >= 0 and c < min(seen, int(lens[t]))]
            rows += [compressed[r] for c, r in enumerate(indices[t, WINDOW:].tolist()) if r >= 0 and c + WINDOW < int(lens[t])]
            for h in range(HEADS):
                logits = [scale * float(q[t, h].double() @ row) for row in rows]
                total = sum(map(math.exp, logits)) + (math.exp(float(sinks[h])) if sinks is not None else 0)
                for logit, row in zip(logits, rows):
                    out[t, h] += v_scale * math.exp(logit) / total * row
            t += 1
    return out


@pytest.fixture(params=[torch.bfloat16, torch.float8_e4m3fn], ids=str)
def problem(request):
    g = torch.Generator().manual_seed(5)
    tokens = sum(LENGTHS)
    q = torch.randn(tokens, HEADS, DIM, generator=g).to(request.param)
    window, compressed = (torch.randn(pages, size, 1, DIM, generator=g).to(request.param) for pages, size in ((20, 16), (30, 2)))
    indices = torch.cat((torch.randint(0, 320, (tokens, WINDOW), generator=g), torch.randint(0, 60, (tokens, EXTRA), generator=g)), 1).int()
    indices[torch.rand(indices.shape, generator=g) < 0.2] = -1
    lens = torch.tensor([WINDOW + n for n in (12, 3, 0, 7, 12, 1)] + [5, WINDOW + 4]).int()
    return q, window, compressed, indices, lens


def arguments(problem, **more):
    q, window, compressed, indices, lens = problem
    ends = torch.tensor((0, *LENGTHS)).cumsum(0).int()
    return dict(query=q, swa_kv_cache=window, workspace_buffer=torch.empty(0, dtype=torch.uint8), sparse_indices=indices, compressed_kv_cache=compressed,
                sparse_topk_lens=lens, seq_lens=torch.tensor(SEQ).int(), bmm1_scale=0.125, kv_layout="NHD", cum_seq_lens_q=ends, max_q_len=4) | more


def values(cache):
    return cache.double().reshape(-1, DIM)


@pytest.mark.parametrize("sinks", [None, torch.tensor([0.5, -1.0, float("-inf")])], ids=["plain", "sinks"])
def test_rows_of_both_caches(problem, sinks):
    q, window, compressed, indices, lens = problem
    want = reference(q.double(), values(window), values(compressed), indices, lens, 0.125, 0.5, sinks)
    got = attention(**arguments(problem, sinks=sinks, bmm2_scale=torch.tensor([0.5])))
    assert got.dtype == torch.bfloat16 and got.shape == q.shape
    torch.testing.assert_close(got.double(), want, rtol=1e-2, atol=1e-3)
    hnd = {name: problem[i].transpose(1, 2) for name, i in (("swa_kv_cache", 1), ("compressed_kv_cache", 2))}
    out = torch.empty(q.shape, dtype=torch.bfloat16)
    same = attention(**arguments(problem, sinks=sinks, bmm2_scale=0.5, kv_layout="HND", out=out, **hnd))
    assert same is out and torch.equal(out, got)
    apart = attention(**arguments(problem, sinks=sinks, bmm2_scale=0.5, sparse_indices=indices[:, :WINDOW], extra_sparse_indices=indices[:, WINDOW:]))
    assert torch.equal(apart, got)
    short = attention(**arguments(problem, sinks=sinks, bmm2_scale=0.5, sparse_topk_lens=lens - 1, sparse_topk_lens_offset=1))
    assert torch.equal(short, got)


def test_dense_queries_and_queries_without_rows(problem):
    q, window, compressed, indices, lens = problem
    dense = arguments(problem, query=q.view(2, 4, HEADS, DIM), cum_seq_lens_q=None, max_q_len=None, seq_lens=torch.tensor([200, 300]).int())
    flat = arguments(problem, cum_seq_lens_q=torch.tensor([0, 4, 8]).int(), seq_lens=torch.tensor([200, 300]).int())
    assert torch.equal(attention(**dense).view(q.shape), attention(**flat))
    for change in ({"sparse_indices": torch.full_like(indices, -1)}, {"sparse_topk_lens": torch.zeros_like(lens)}):
        assert not attention(**arguments(problem, sinks=torch.zeros(HEADS), **change)).any()
    few = attention(**arguments(problem, swa_topk_lens=torch.full((8,), 2).int()))
    assert torch.equal(few, attention(**arguments(problem, sparse_indices=torch.cat((indices[:, :2], torch.full((8, 126), -1).int(), indices[:, WINDOW:]), 1))))


def test_errors_name_the_argument(problem):
    indices = problem[3].clone()
    indices[0, 0] = 320
    for change, text in (({"sparse_indices": indices}, "names row 320, but swa_kv_cache has 320"), ({"seq_lens": None}, "seq_lens is needed"),
                         ({"sparse_topk_lens": problem[4][:3]}, "must be torch.int32 with 8 rows"), ({"max_q_len": 3}, "has 4 queries, but max_q_len is 3"),
                         ({"kv_layout": "HND"}, r"one head in dimension 1 \(HND\)"), ({"backend": "best"}, "backend is 'best'"),
                         ({"sinks": torch.zeros(2)}, r"sinks is torch.float32 of shape \(2,\)")):
        with pytest.raises(ValueError, match=text):
            attention(**arguments(problem, **change))
    for change, text in (({"swa_kv_cache": torch.zeros(2, 64, 1, 584, dtype=torch.uint8)}, "torch.uint8"), ({"backend": "sparse"}, "sparse"),
                         ({"kv_cache_format": "nvfp4"}, "nvfp4"), ({"dsv4_output_scale": torch.zeros(1)}, "dsv4_output_scale")):
        with pytest.raises(NotImplementedError, match=text):
            attention(**arguments(problem, **change))


# ---- tables of compressed pages ----
RAW = (130, 400)  # raw tokens of two requests of two queries: 129, 130, 399 and 400 are seen, so 1, 1, 3 and 3 compressed rows


@pytest.fixture
def paged():
    g = torch.Generator().manual_seed(8)
    q = torch.randn(2, 2, HEADS, DIM, generator=g).bfloat16()
    window, compressed = torch.randn(20, 16, DIM, generator=g).bfloat16(), torch.randn(9, 2, DIM, generator=g).bfloat16()
    lists = torch.randint(0, 320, (4, WINDOW), generator=g).int()
    pages = torch.tensor([[4, 8], [0, 1], [7, 3], [2, 6]])
    rows = (pages[..., None] * 2 + torch.arange(2)).flatten(1).int()
    lens = torch.tensor([1, 1, 3, 3]).int() + WINDOW
    rows[torch.arange(4) >= (lens - WINDOW)[:, None]] = 2**31 - 1
    return q, window, compressed, torch.cat((lists, rows), 1), lens


def test_tables_of_pages_are_lists_of_rows(paged):
    q, window, compressed, indices, lens = paged
    seq_lens, common = torch.tensor(RAW).int(), dict(query=q, swa_kv_cache=window, workspace_buffer=torch.empty(0), compressed_kv_cache=compressed, bmm1_scale=0.125)
    want = attention(**common, sparse_indices=indices.clamp(max=17 + 303), sparse_topk_lens=lens, seq_lens=torch.tensor([1000, 1000]).int())
    made = convert(indices, lens, seq_lens, window, compressed, q_len=2)
    assert made.hca_compressed_block_tables.shape == (4, 64) and made.hca_compressed_block_tables[:, :2].tolist() == [[4, 0], [0, 0], [7, 3], [2, 6]]
    assert made.hca_seq_lens.tolist() == [129, 131] and made.swa_topk_lens.tolist() == [128] * 4 and made.hca_is_causal
    tables = {name: getattr(made, name) for name in ("hca_swa_indices", "hca_compressed_block_tables", "hca_seq_lens", "sparse_topk_lens", "swa_topk_lens")}
    assert torch.equal(attention(**common, **tables, backend="cute-dsl"), want)
    tagged = dict(sparse_indices=indices, sparse_topk_lens=lens, seq_lens=seq_lens, hca_sparse_indices_format="compressed-page-aligned", backend="cute-dsl")
    assert torch.equal(batch_decode_sparse_mla_dsv4(**common, **tagged), want)
    for change, text in (({"hca_is_causal": False}, "supports causal HCA only"), ({"seq_lens": seq_lens[:1]}, "seq_lens with 2 entries"),
                         ({"hca_sparse_indices_format": "page-aligned"}, "must be 'compressed-page-aligned'"), ({"hca_seq_lens": seq_lens}, "hca_seq_lens was given"),
                         ({"hca_sparse_indices_format": None}, "sparse_indices must be None")):
        with pytest.raises(ValueError, match=text):
            attention(**common, **(tagged | change))
    for change, text in (({"hca_seq_lens": torch.tensor([129, 300]).int()}, "block-table capacity 256"), ({"hca_seq_lens": torch.tensor([128, 131]).int()}, "sparse_topk_lens is"),
                         ({"swa_topk_lens": None}, "swa_topk_lens is None"), ({"backend": "auto", "sparse_indices": indices}, "does not accept hca_swa_indices")):
        with pytest.raises(ValueError, match=text):
            attention(**common, **(tables | {"backend": "cute-dsl"} | change))


def test_a_short_window_and_lists_that_are_no_tables(paged):
    _, window, compressed, indices, lens = paged
    short = convert(indices[:1, :WINDOW], torch.tensor([WINDOW]).int(), torch.tensor([3]).int(), window, compressed, q_len=1)
    assert short.swa_topk_lens.tolist() == [3] and short.hca_compressed_block_tables.tolist() == [[0] * 64] and not short.hca_swa_indices[:, 3:].any()
    seq_lens = torch.tensor(RAW).int()

    def changed(row, column, value):
        other = indices.clone()
        other[row, column] = value
        return other

    for arguments, text in (((changed(2, WINDOW + 1, 0), lens, seq_lens), "canonical compressed-page expansion"), ((changed(2, WINDOW, 18), lens, seq_lens), "valid physical page IDs"),
                            ((changed(0, 5, 320), lens, seq_lens), "outside swa_kv_cache, which has 320"), ((indices, lens + 1, seq_lens), r"sparse_topk_lens\[0\] is 130, but .* has 129"),
                            ((indices, lens, seq_lens[:1]), "1 requests of q_len 2"), ((indices, lens, torch.tensor([1, 400]).int()), "seq_lens is 1, but a request has 2 queries")):
        with pytest.raises(ValueError, match=text):
            convert(*arguments, window, compressed, q_len=2)
