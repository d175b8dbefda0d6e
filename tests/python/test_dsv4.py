# SPDX-License-Identifier: Apache-2.0
"""trtllm_batch_decode_sparse_mla_dsv4 against sums in double precision, a query, a head and a row at a time."""
import math

import pytest
import torch

from flashinfer.mla import trtllm_batch_decode_sparse_mla_dsv4 as attention

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
    for change, text in (({"swa_kv_cache": torch.zeros(2, 64, 1, 584, dtype=torch.uint8)}, "torch.uint8"), ({"backend": "cute-dsl"}, "cute-dsl"),
                         ({"kv_cache_format": "nvfp4"}, "nvfp4"), ({"dsv4_output_scale": torch.zeros(1)}, "dsv4_output_scale")):
        with pytest.raises(NotImplementedError, match=text):
            attention(**arguments(problem, **change))
