# SPDX-License-Identifier: Apache-2.0
"""Classes made from the registry: constructor, plan, run and the older names of methods."""
import gc
import inspect
import math
import subprocess
import sys
import warnings
import weakref

import pytest
import torch

import flashinfer

HEADS, KV_HEADS, DIM, PAGE = 4, 2, 64, 4


def i32(*values):
    return torch.tensor(values, dtype=torch.int32)


INDPTR, PAGES, LAST = i32(0, 3, 5), i32(4, 1, 0, 2, 3), i32(2, 3)


@pytest.fixture
def data():
    torch.manual_seed(0)
    return torch.randn(2, HEADS, DIM), torch.randn(5, 2, PAGE, KV_HEADS, DIM)


def wrapper(**options):
    w = flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper(torch.empty(1024, dtype=torch.uint8), "NHD", **options)
    return w


def expected(q, pool, r):
    ids = PAGES[INDPTR[r]:INDPTR[r + 1]].long()
    n = (len(ids) - 1) * PAGE + int(LAST[r])
    k, v = (pool[ids, i].reshape(-1, KV_HEADS, DIM)[:n].double().repeat_interleave(HEADS // KV_HEADS, 1) for i in (0, 1))
    logits = torch.einsum("hd,nhd->hn", q[r].double(), k) / math.sqrt(DIM)
    return torch.einsum("hn,nhd->hd", logits.softmax(-1), v), logits.logsumexp(-1) / math.log(2)


def check(q, pool, out, lse):
    for r in range(2):
        o, s = expected(q, pool, r)
        torch.testing.assert_close(out[r].double(), o, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(lse[r].double(), s, rtol=1e-4, atol=1e-5)


def test_the_constructors_choices_are_properties():
    assert (wrapper().use_tensor_cores, wrapper().is_cuda_graph_enabled) == (False, False)
    assert wrapper(use_tensor_cores=True).use_tensor_cores is True
    buffers = [i32(0, 0, 0), i32(0, 0, 0, 0), i32(0, 0)]
    assert flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), "NHD", True, False, *buffers).is_cuda_graph_enabled is True
    assert flashinfer.decode.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), *buffers).is_cuda_graph_enabled is True
    assert flashinfer.BatchPrefillWithRaggedKVCacheWrapper(torch.empty(0, dtype=torch.uint8)).is_cuda_graph_enabled is False
    assert (wrapper().resolved_backend, wrapper(backend="fa2").resolved_backend, wrapper(backend="fa3").resolved_backend) == ("fa2", "fa2", "fa3")
    with pytest.raises(AttributeError):
        wrapper().use_tensor_cores = True


def test_single_prefill_with_its_lse():
    q, k, v = torch.randn(3, HEADS, DIM), torch.randn(9, KV_HEADS, DIM), torch.randn(9, KV_HEADS, DIM)
    assert flashinfer.prefill.single_prefill_with_kv_cache_return_lse is flashinfer.single_prefill_with_kv_cache_return_lse
    out, lse = flashinfer.single_prefill_with_kv_cache_return_lse(q, k, v, causal=True)
    plain = flashinfer.single_prefill_with_kv_cache(q, k, v, causal=True, return_lse=True)
    assert torch.equal(out, plain[0]) and torch.equal(lse, plain[1])


def test_decode(data):
    q, pool = data
    w = wrapper()
    assert w.plan(INDPTR, PAGES, LAST, HEADS, KV_HEADS, DIM, PAGE, data_type=torch.float32, q_data_type=torch.float32) is None
    out, lse = w.run(q, pool, return_lse=True)
    check(q, pool, out, lse)
    assert torch.equal(w.run(q, pool), out)
    assert torch.equal(w.run(q, (pool[:, 0], pool[:, 1])), out)
    mine, my_lse = torch.zeros_like(q), torch.zeros(2, HEADS)
    got = w.run(q, pool, out=mine, lse=my_lse, return_lse=True)
    assert got[0] is mine and got[1] is my_lse and torch.equal(mine, out) and torch.equal(my_lse, lse)
    assert w.run(q, pool, out=mine) is mine


def test_older_names(data):
    q, pool = data
    w = wrapper()
    assert w.begin_forward.__func__ is w.plan.__func__
    w.begin_forward(INDPTR, PAGES, LAST, HEADS, KV_HEADS, DIM, PAGE, q_data_type=torch.float32)
    check(q, pool, *w.run_return_lse(q, pool))
    assert inspect.signature(w.run_return_lse).parameters["return_lse"].default is True
    assert inspect.signature(w.run).parameters["return_lse"].default is False
    assert w.end_forward() is None
    check(q, pool, *w.run_return_lse(q, pool))  # end_forward does nothing


def test_the_older_forms_of_a_run_with_sinks_say_what_to_use():
    w = flashinfer.BatchAttentionWithAttentionSinkWrapper(torch.empty(1 << 20, dtype=torch.uint8))
    for form in (w.forward, w.forward_return_lse):
        assert list(inspect.signature(form).parameters)[:3] == ["q", "paged_kv_cache", "causal"]
        with pytest.raises(TypeError, match=rf"\.{form.__name__} has no argument for the sink: use run\(q, paged_kv_cache, sink, sm_scale\)"):
            form(None, None, causal=True)


def test_a_class_is_a_class(data):
    cls = flashinfer.BatchPrefillWithPagedKVCacheWrapper
    assert cls.__module__ == "flashinfer.prefill" and cls.__name__ == "BatchPrefillWithPagedKVCacheWrapper"
    assert cls.run.__qualname__ == "BatchPrefillWithPagedKVCacheWrapper.run"
    assert "Raises" in inspect.getdoc(cls.plan)

    class Mine(flashinfer.BatchDecodeWithPagedKVCacheWrapper):
        def run(self, q, pool):
            return super().run(q, pool), "mine"

    q, pool = data
    w = Mine(torch.empty(0, dtype=torch.uint8))
    w.plan(INDPTR, PAGES, LAST, HEADS, KV_HEADS, DIM, PAGE, q_data_type=torch.float32)
    out, who = w.run(q, pool)
    assert who == "mine" and out.shape == q.shape


def test_two_objects_keep_their_own_plans(data):
    q, pool = data
    a, b = wrapper(), wrapper()
    a.plan(INDPTR, PAGES, LAST, HEADS, KV_HEADS, DIM, PAGE, q_data_type=torch.float32)
    b.plan(INDPTR, PAGES, i32(1, 1), HEADS, KV_HEADS, DIM, PAGE, q_data_type=torch.float32)
    first = a.run(q, pool)
    assert not torch.equal(first, b.run(q, pool)) and torch.equal(first, a.run(q, pool))


def test_the_plan_owns_its_arrays(data):
    q, pool = data
    w, indptr, pages = wrapper(), INDPTR.clone(), PAGES.clone()
    w.plan(indptr, pages, LAST, HEADS, KV_HEADS, DIM, PAGE, q_data_type=torch.float32)
    before = w.run(q, pool)
    indptr.fill_(0), pages.fill_(99)
    del indptr, pages
    assert torch.equal(before, w.run(q, pool))


def test_both_halves_of_a_batch_come_with_their_lse():
    workspace = torch.empty(0, dtype=torch.uint8)
    pod = flashinfer.BatchPODWithPagedKVCacheWrapper(workspace, "NHD")
    pod.plan(i32(0, 4), i32(0, 1), i32(0), i32(8), i32(0, 1), i32(0, 1), i32(1), i32(5), 2, 1, 64, 16, q_data_type=torch.float32)
    cache = torch.randn(2, 2, 16, 1, 64)
    q_p, q_d = torch.randn(4, 2, 64), torch.randn(1, 2, 64)
    o_p, o_d = pod.run(q_p, cache, q_d, cache, causal_p=True)
    (o_p2, lse_p), (o_d2, lse_d) = pod.run(q_p, cache, q_d, cache, causal_p=True, return_lse=True)
    assert torch.equal(o_p, o_p2) and torch.equal(o_d, o_d2)
    assert lse_p.shape == (4, 2) and lse_d.shape == (1, 2)


def test_buffers_live_as_long_as_the_object_that_fills_them():
    indptr, indices, last = (torch.zeros(n, dtype=torch.int32) for n in (2, 8, 1))
    references = [weakref.ref(t) for t in (indptr, indices, last)]
    wrapper = flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), indptr, indices, last)
    del indptr, indices, last
    gc.collect()
    assert all(r() is not None for r in references)
    wrapper.plan(torch.tensor([0, 3], dtype=torch.int32), torch.tensor([5, 1, 2], dtype=torch.int32), torch.tensor([7], dtype=torch.int32),
                 2, 1, 64, 16)
    assert references[1]()[:3].tolist() == [5, 1, 2]


# Optional arguments of decode's plan() by position, as older programs have them: without window_right.
OLDER = ("NONE", -1, 0.5, torch.float32, torch.float32, torch.float32, None, 0.25, None, None, True, None, None, None, False, 1)
NAMED = dict(zip(("pos_encoding_mode window_left logits_soft_cap q_data_type kv_data_type o_data_type data_type sm_scale rope_scale rope_theta "
                  "non_blocking block_tables seq_lens fixed_split_size disable_split_kv q_len_per_req").split(), OLDER))


def test_optional_arguments_of_plan_by_position_are_taken_with_a_warning(data):
    q, pool = data
    w, table = wrapper(), (INDPTR, PAGES, LAST, HEADS, KV_HEADS, DIM, PAGE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        w.plan(*table, **NAMED)
    expected = w.run(q, pool)
    w.plan(*table, q_data_type=torch.float32)
    assert not torch.equal(w.run(q, pool), expected)  # soft cap and scale change the result
    with pytest.warns(DeprecationWarning, match="plan\\(\\) takes 'pos_encoding_mode' and what follows it by name") as caught:
        w.plan(*table, *OLDER)
    assert caught[0].filename == __file__
    assert torch.equal(w.run(q, pool), expected)
    with pytest.warns(DeprecationWarning):
        w.begin_forward(*table, *OLDER[:4], sm_scale=0.25)
    assert torch.equal(w.run(q, pool), expected)
    with pytest.raises(TypeError, match="takes 8 positional arguments and 16 deprecated ones but 25 were given"):
        w.plan(*table, *OLDER, None)
    with pytest.raises(TypeError, match="got multiple values for argument 'window_left'"):
        w.plan(*table, "NONE", -1, window_left=-1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        w.plan(*table, colour=1)
    names = list(inspect.signature(w.plan).parameters)
    assert names[6:10] == ["page_size", "deprecated_positional_args", "pos_encoding_mode", "window_left"]


def test_other_deprecations(data):
    q, pool = data
    w = wrapper()
    w.plan(INDPTR, PAGES, LAST, HEADS, KV_HEADS, DIM, PAGE, q_data_type=torch.float32)
    with pytest.warns(DeprecationWarning, match="q_len_per_req is deprecated"):
        w.run(q, pool, q_len_per_req=1)


def mla(**plan):
    w = flashinfer.mla.BatchMLAPagedAttentionWrapper(torch.empty(0, dtype=torch.uint8))
    w.plan(num_heads=2, head_dim_ckv=128, head_dim_kpe=64, page_size=4, causal=False, sm_scale=0.1, q_data_type=torch.float32,
           kv_data_type=torch.float32, **plan)
    g = torch.Generator().manual_seed(0)
    query, cache = torch.randn(2, 2, 192, generator=g), torch.randn(3, 4, 192, generator=g)
    return w.run(query=query, kv_cache=cache)


def test_a_page_table_as_metadata():
    qo, kv, pages, lengths = i32(0, 1, 2), i32(0, 2, 3), i32(2, 0, 1), i32(7, 3)
    dense = i32(0, 1, 2), torch.tensor([[2, 0], [1, 1]], dtype=torch.int32), lengths
    Metadata = flashinfer.mla.MLAPlanMetadata
    expected = mla(qo_indptr=qo, kv_indptr=kv, kv_indices=pages, kv_len_arr=lengths)
    csr = Metadata.csr(qo, kv, pages, lengths)
    both = Metadata.dual(qo, kv, pages, lengths, cum_seq_lens_q=dense[0], block_tables=dense[1], seq_lens=dense[2], max_q_len=1)
    for metadata in (csr, Metadata.dense(*dense, max_q_len=4), both, {"qo_indptr": qo, "kv_indptr": kv, "kv_indices": pages, "kv_len_arr": lengths}):
        assert torch.equal(mla(metadata=metadata), expected)
    with pytest.raises(ValueError, match="the two page tables differ: entry 2 of kv_indices and block_tables is 1 and 2"):
        mla(metadata=Metadata.dual(qo, kv, pages, lengths, cum_seq_lens_q=dense[0], block_tables=dense[1] * 0 + i32(2, 0), seq_lens=lengths))
    with pytest.raises(TypeError, match="metadata is str, but must be MLAPlanMetadata"):
        mla(metadata="csr")
    assert csr.qo_indptr is qo and csr.block_tables is None and csr.max_q_len is None
    with pytest.raises(AttributeError):
        csr.max_q_len = 3  # frozen
    assert Metadata.__module__ == "flashinfer.mla" and Metadata.csr.__qualname__ == "MLAPlanMetadata.csr"
    parameters = inspect.signature(Metadata.dual).parameters.values()
    assert [p.name for p in parameters if p.kind is p.KEYWORD_ONLY] == ["cum_seq_lens_q", "block_tables", "seq_lens", "max_q_len"]


def test_a_flat_page_table_is_deprecated_once():
    code = """
import warnings, torch, flashinfer
def i32(*v): return torch.tensor(v, dtype=torch.int32)
w = flashinfer.mla.BatchMLAPagedAttentionWrapper(torch.empty(0, dtype=torch.uint8))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        w.plan(i32(0, 1), i32(0, 1), i32(0), i32(3), 2, 128, 64, 4, False, 0.1, torch.float32, torch.float32)
assert [c.category for c in caught] == [DeprecationWarning], caught
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- what a back end leaves to run(), and narrow results ----
def decode_wrapper(backend, rows):
    w = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 20, dtype=torch.uint8), "HND", backend=backend)
    w.plan(torch.tensor([0, 2, 5]), torch.tensor([6, 1, 0, 3, 5]), torch.tensor([3, 8]), 4, 2, 64, 8, q_data_type=torch.bfloat16, q_len_per_req=rows)
    return w


@pytest.mark.filterwarnings("ignore:.*backend=.*exists for cuda")
@pytest.mark.parametrize("backend", ["trtllm-gen", "cute-dsl"])
def test_these_back_ends_take_the_rows_of_a_request_from_q(backend):
    pool = torch.randn(7, 2, 2, 8, 64).bfloat16()
    for rows in (1, 2, 3):
        q = torch.randn(2 * rows, 4, 64).bfloat16()
        for planned in (1, 3):
            got, want = (decode_wrapper(backend, n).run(q, pool, return_lse=True) for n in (planned, rows))
            assert all(torch.equal(a, b) for a, b in zip(got, want))
    with pytest.raises(ValueError, match=r"q.shape\[0\] is 3, but must be a multiple of 2 requests"):
        decode_wrapper(backend, 1).run(torch.zeros(3, 4, 64).bfloat16(), pool)
    with pytest.raises(ValueError, match="q_len_per_req is 3, but q has 2 rows a request"):
        decode_wrapper(backend, 1).run(torch.zeros(4, 4, 64).bfloat16(), pool, q_len_per_req=3)
    with pytest.raises(ValueError, match="request 0 has 11 tokens, but q_len_per_req is 12"):
        decode_wrapper(backend, 1).run(torch.zeros(24, 4, 64).bfloat16(), pool)
    with pytest.raises(ValueError, match="but plan.. was given 2 query tokens"):
        decode_wrapper("auto", 1).run(torch.zeros(4, 4, 64).bfloat16(), pool)


def test_a_paged_prefill_rounds_its_result_to_e4m3():
    pool, q = torch.randn(7, 2, 8, 2, 64).bfloat16(), torch.randn(9, 4, 64).bfloat16()

    def prefill(output):
        w = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.empty(1 << 20, dtype=torch.uint8))
        w.plan(torch.tensor([0, 4, 9]), torch.tensor([0, 2, 5]), torch.tensor([6, 1, 0, 3, 5]), torch.tensor([3, 8]), 4, 2, 64, 8, causal=True,
               q_data_type=torch.bfloat16, o_data_type=output)
        return w

    for scale in (3.0, 1e4):
        wide = prefill(torch.float32).run(q, pool, v_scale=scale)
        out = torch.empty(9, 4, 64, dtype=torch.float8_e4m3fn)
        assert prefill(torch.float8_e4m3fn).run(q, pool, v_scale=scale, out=out) is out
        assert torch.equal(out.float(), wide.clamp(-448, 448).to(torch.float8_e4m3fn).float())
    assert prefill(torch.float8_e4m3fn).forward(q, pool, causal=True).dtype == torch.float8_e4m3fn
    with pytest.raises(ValueError, match="out.dtype is bfloat16, but must be float8_e4m3fn"):
        prefill(torch.float8_e4m3fn).run(q, pool, out=torch.empty(9, 4, 64).bfloat16())
    with pytest.raises(ValueError, match="o_data_type is float8_e5m2"):
        prefill(torch.float8_e5m2)


def test_decode_rounds_to_e4m3_and_takes_scales_in_tensors_of_one_element():
    torch.manual_seed(3)
    indices = lambda *x: torch.tensor(x, dtype=torch.int32)
    cache, q = torch.randn(4, 2, 16, 2, 64).bfloat16(), torch.randn(2, 4, 64).bfloat16()
    results = {}
    for dtype in (torch.float32, torch.float8_e4m3fn):
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.zeros(1 << 20, dtype=torch.uint8), "NHD")
        wrapper.plan(indices(0, 2, 4), indices(0, 1, 2, 3), indices(16, 5), 4, 2, 64, 16, q_data_type=torch.bfloat16, o_data_type=dtype)
        results[dtype] = wrapper.run(q, cache, q_scale=torch.tensor(0.5), k_scale=torch.tensor([2.0]), v_scale=torch.tensor(2000.0))
        assert torch.equal(results[dtype].float(), wrapper.run(q, cache, q_scale=0.5, k_scale=2.0, v_scale=2000.0).float())
    wide, narrow = results[torch.float32], results[torch.float8_e4m3fn]
    assert (wide.abs() > 448).any() and torch.equal(narrow.float(), wide.clamp(-448, 448).to(torch.float8_e4m3fn).float())
    with pytest.raises(TypeError, match=r"q_scale must be a number, but is Tensor Tensor\(float32\[2\]\)"):
        wrapper.run(q, cache, q_scale=torch.tensor([0.5, 1.0]))
