# SPDX-License-Identifier: Apache-2.0
"""Arguments as serving engines pass them: sizes that mean none, parts of one buffer, arrays of padded batches."""
import pytest
import torch
from engine_wrappers import (BF16, D, HKV, HQ, INDPTR, LAST, PAGE, PAGES, ROWS, cache, decode_graph, decode_of, i32, plan_decode,
                             plan_prefill, prefill_graph, prefill_of, queries, workspace)  # noqa: F401,F811 (fixtures)

import flashinfer
from flashinfer.decode import fast_decode_plan


@pytest.mark.parametrize("size", [-1, 0, None, 4])
def test_split_sizes(cache, workspace, size):
    q = queries(6)
    assert torch.equal(plan_prefill(prefill_graph(workspace), fixed_split_size=size, disable_split_kv=True).run(q, cache), prefill_of(cache, q))
    assert torch.equal(decode_of(cache, queries(3), fixed_split_size=size), decode_of(cache, queries(3)))
    w = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace)
    w.plan(ROWS, i32(0, 5, 9, 16), HQ, HKV, D, fixed_split_size=size, disable_split_kv=True)
    w = decode_graph(workspace)
    plan_decode(w)
    fast_decode_plan(w, INDPTR, PAGES, LAST, HQ, HKV, D, PAGE, fixed_split_size=size)
    assert plan_decode(w).workspace_size(INDPTR, PAGES, LAST, HQ, HKV, D, PAGE, fixed_split_size=size)


def test_split_sizes_that_mean_nothing(workspace):
    with pytest.raises(ValueError, match="fixed_split_size is -5, but must be at least 1, or -1 for none"):
        plan_decode(decode_graph(workspace), fixed_split_size=-5)


def test_outputs_that_are_parts_of_one_buffer():
    """The rope part and the other part of a head, next to each other in what attention reads."""
    torch.manual_seed(5)
    n, h, rope, nope = 5, 3, 64, 128
    q_rope, q_nope = torch.randn(n, h, rope).to(BF16), torch.randn(n, h, nope).to(BF16)
    k_rope, k_nope = torch.randn(n, rope).to(BF16), torch.randn(n, nope).to(BF16)
    table, ids = torch.randn(64, rope), torch.arange(n, dtype=torch.int32)
    for f in (flashinfer.rope.mla_rope_quantize_fp8, flashinfer.rope.rope_quantize_fp8):
        q_out, k_out = (torch.empty(*s, nope + rope, dtype=torch.float8_e4m3fn) for s in ((n, h), (n,)))
        want = f(q_rope, k_rope, q_nope, k_nope, table, ids, is_neox=False, quantize_dtype=torch.float8_e4m3fn)
        f(q_rope, k_rope, q_nope, k_nope, table, ids, is_neox=False, quantize_dtype=torch.float8_e4m3fn, q_rope_out=q_out[..., nope:],
          k_rope_out=k_out[..., nope:], q_nope_out=q_out[..., :nope], k_nope_out=k_out[..., :nope], quant_scale_q=1.0, quant_scale_kv=1.0)
        for got, expected in zip((q_out[..., nope:], k_out[..., nope:], q_out[..., :nope], k_out[..., :nope]), want):
            assert torch.equal(got.view(torch.uint8), expected.view(torch.uint8))
        with pytest.raises(ValueError, match=r"q_rope_out .* shares memory with q_nope_out|q_nope_out .* shares memory with q_rope_out"):
            f(q_rope, k_rope, q_nope, k_nope, table, ids, q_rope_out=q_out[..., nope - 1:-1], q_nope_out=q_out[..., :nope])


def test_index_arrays_of_padded_batches():
    torch.manual_seed(6)
    k, v, ids, at = torch.randn(3, HKV, D), torch.randn(3, HKV, D), i32(0, 2, 2), i32(1, 0, 5)
    for longer in (INDPTR, i32(0, 2, 3, 5, 5, 5), i32(0, 2, 3, 5, 0, -7)):
        pool = torch.zeros(8, 2, PAGE, HKV, D)
        flashinfer.append_paged_kv_cache(k, v, ids, at, pool, PAGES, longer, LAST)
        assert torch.equal(pool[6, 0, 1], k[0]) and torch.equal(pool[3, 1, 1], v[2])
        w = flashinfer.BatchAttention(device="cpu")
        w.plan(torch.cat([ROWS, longer[4:]]), longer, PAGES, i32(5, 4, 7), HQ, HKV, D, D, PAGE, q_data_type=torch.float32, kv_data_type=torch.float32)
        out = w.run(torch.randn(6, HQ, D, generator=torch.Generator().manual_seed(1)), pool)[0]
        first = out if longer is INDPTR else first
        assert torch.equal(out, first)
    with pytest.raises(ValueError, match=r"kv_indptr.shape\[0\] is 3, but kv_last_page_len describes 3 requests, which need 4 entries"):
        flashinfer.append_paged_kv_cache(k, v, ids, at, pool, PAGES, INDPTR[:3], LAST)
    with pytest.raises(ValueError, match=r"batch_indices\[0\] is 3, but there are 3 requests"):
        flashinfer.append_paged_kv_cache(k, v, i32(3, 0, 0), at, pool, PAGES, i32(0, 2, 3, 5, 5), LAST)
    batch, positions = flashinfer.get_batch_indices_positions(i32(0, 2, 3), i32(4, 5, 9, 9), 4)
    assert batch.tolist() == [0, 0, 1, -1] and positions.tolist() == [2, 3, 4, 0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_mla_index_arrays_of_padded_batches(workspace):
    torch.manual_seed(7)
    q, pe, ckv, kpe = (torch.randn(*s).to(BF16) for s in ((3, 16, 512), (3, 16, 64), (8, PAGE, 512), (8, PAGE, 64)))
    first = None
    for rows, longer in ((i32(0, 1, 2, 3), INDPTR), (i32(0, 1, 2, 3, 3), i32(0, 2, 3, 5, 5, 1))):
        w = flashinfer.mla.BatchMLAPagedAttentionWrapper(workspace)
        w.plan(rows, longer, PAGES, i32(5, 4, 7), 16, 512, 64, PAGE, True, 0.1, BF16, BF16)
        out = w.run(q, pe, ckv, kpe)
        first = out if first is None else first
        assert torch.equal(out, first)


def test_prefix_length_of_one_request_without_a_dimension(cache):
    items = {"token_pos_in_items_ptr": torch.tensor([0, 1, 0, 1], dtype=torch.uint16), "token_pos_in_items_len": 4,
             "max_item_len_ptr": torch.tensor([1], dtype=torch.uint16), "q_data_type": BF16}
    results = []
    for prefix in (torch.tensor([3], dtype=torch.uint32), torch.tensor(3, dtype=torch.uint32)):
        w = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8))
        w.plan(i32(0, 7), i32(0, 2), i32(1, 2), i32(3), HQ, HKV, D, PAGE, causal=True, prefix_len_ptr=prefix, **items)
        results.append(w.run(queries(7), cache))
    assert torch.equal(*results)


def test_infinities_saturate_in_mxfp8():
    x = torch.randn(2, 64, dtype=BF16)
    x[0, 3], x[0, 4] = float("inf"), -float("inf")
    codes, scales = flashinfer.mxfp8_quantize(x, is_sf_swizzled_layout=False)
    assert codes.float()[0, 3:5].tolist() == [448, -448] and not codes.float().isnan().any()
    assert scales.reshape(2, 2)[0, 0] == 254
    x[0, 3] = float("nan")
    assert flashinfer.mxfp8_quantize(x, is_sf_swizzled_layout=False)[1].reshape(2, 2)[0, 0] == 255
