# SPDX-License-Identifier: Apache-2.0
"""Whole steps of serving engines, with the arguments that they pass (mini-sglang, SGLang 0.5, vLLM 0.32), against attention in double precision.
A pool holds one token a page, as theirs do. test_engines.py has the names that they read and set."""
import functools
import math

import pytest
import torch
from dense_attention import attention, causal
from engine_wrappers import BF16, HKV, HQ, D, i32, workspace  # noqa: F401 (fixture)

import flashinfer
from flashinfer.cascade import merge_state
from flashinfer.decode import fast_decode_plan

SCALE = D**-0.5


class Pool:
    """Keys and values of 64 slots, of which requests own some in any order."""

    def __init__(self, dtype=BF16):
        g = torch.Generator().manual_seed(7)
        self.k, self.v = (torch.randn(64, HKV, D, generator=g).to(dtype) for _ in range(2))
        self.slots = torch.randperm(64, generator=g).int().view(4, 16)  # of each request

    def cache(self):
        return self.k.view(-1, 1, HKV, D), self.v.view(-1, 1, HKV, D)

    def indices(self, lengths):
        return torch.cat([self.slots[i, :n] for i, n in enumerate(lengths)])

    def expected(self, q, lengths, rows, sinks=None, seen=lambda rows, keys: causal(rows, keys), first=0):
        """The last rows[i] tokens of each request ask; keys before `first` are not there."""
        results, at = [], 0
        for i, (n, r) in enumerate(zip(lengths, rows)):
            slots = self.slots[i, first:n].long()
            out, lse = attention(q[at:at + r], self.k[slots], self.v[slots], SCALE, seen(r, len(slots)))
            if sinks is not None:
                out = out * torch.sigmoid(lse * math.log(2) - sinks.double())[..., None]
            results.append(out)
            at += r
        return torch.cat(results)


def starts(lengths):
    return torch.tensor([0, *lengths]).cumsum(0).int()


def rows_of(n, seed=2):
    return torch.randn(n, HQ, D, generator=torch.Generator().manual_seed(seed)).to(BF16)


def close(out, expected):
    torch.testing.assert_close(out.double(), expected, rtol=0.02, atol=0.02)


# ---- mini-sglang: prefill, prefill behind cached tokens, decode, decode graphs, all on one int workspace ----
def mini_plan(w, lengths, rows, pool):
    """Its metadata: all arguments by name, the same index arrays for both kinds."""
    shared = dict(num_qo_heads=HQ, num_kv_heads=HKV, page_size=1, pos_encoding_mode="NONE", seq_lens=i32(*lengths), q_data_type=BF16, kv_data_type=BF16,
                  non_blocking=True)
    ones, indices = torch.ones(len(lengths), dtype=torch.int32), pool.indices(lengths)
    if isinstance(w, flashinfer.BatchDecodeWithPagedKVCacheWrapper):
        w.plan(indptr=starts(lengths), indices=indices, last_page_len=ones, head_dim=D, data_type=BF16, **shared)
    else:
        w.plan(qo_indptr=starts(rows), paged_kv_indptr=starts(lengths), paged_kv_indices=indices, paged_kv_last_page_len=ones, head_dim_qk=D, causal=True,
               **shared)


def test_mini_sglang(workspace):
    pool = Pool()
    prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, kv_layout="NHD", backend="fa2")
    decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, use_tensor_cores=True, kv_layout="NHD", backend="fa2")
    decode._int_workspace_buffer = prefill._int_workspace_buffer
    for w, lengths, rows in ((prefill, [5, 3], [5, 3]), (prefill, [9, 4], [4, 1]), (decode, [10, 5], [1, 1])):
        mini_plan(w, lengths, rows, pool)
        q = rows_of(sum(rows))
        close(w.run(q=q, paged_kv_cache=pool.cache()), pool.expected(q, lengths, rows))
    indptr, indices, ones = torch.zeros(5, dtype=torch.int32), torch.zeros(64, dtype=torch.int32), torch.ones(4, dtype=torch.int32)
    graph = flashinfer.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(workspace, kv_layout="NHD", use_tensor_cores=True, indptr_buffer=indptr[:4],
                                                                   indices_buffer=indices, last_page_len_buffer=ones[:3])
    graph._backend, graph._int_workspace_buffer = "fa2", prefill._int_workspace_buffer
    for lengths in ([1, 1, 1], [11, 6, 1], [12, 7, 1]):  # captured with dummy requests; a batch is filled up with them
        mini_plan(graph, lengths, [1] * 3, pool)
        q = rows_of(3, len(lengths))
        close(graph.run(q=q, paged_kv_cache=pool.cache()), pool.expected(q, lengths, [1] * 3))
        assert indptr[:4].tolist() == starts(lengths).tolist()


def test_mini_sglang_sampling():
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(1)) * 5
    sampling = flashinfer.sampling
    probs = sampling.softmax(logits, torch.tensor([1e-6, 0.7, 1.3]), enable_pdl=False)  # greedy requests: a temperature near 0
    close(probs[1:], torch.softmax(logits[1:].double() / torch.tensor([[0.7], [1.3]]), -1))
    k, p = i32(1, 5, 50), torch.tensor([1.0, 0.6, 1e-6])
    for sample, allowed in ((sampling.sampling_from_probs(probs), None), (sampling.top_k_sampling_from_probs(probs, k), k),
                            (sampling.top_p_sampling_from_probs(probs, p), None), (sampling.top_k_top_p_sampling_from_probs(probs, k, p), k)):
        assert sample.shape == (3,) and sample[0] == logits[0].argmax()
        if allowed is not None:
            assert all(probs[i, sample[i]] >= probs[i].topk(int(allowed[i])).values[-1] for i in range(3))
    assert sampling.top_p_sampling_from_probs(probs, p)[2] == logits[2].argmax()


# ---- SGLang ----
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("window", [-1, 3])
def test_sglang_extend(workspace, window):
    """New tokens by the ragged wrapper, cached ones by the paged wrapper, merged."""
    pool, prefix, new = Pool(), [6, 2, 9], [3, 4, 1]
    lengths = [a + b for a, b in zip(prefix, new)]
    q = rows_of(sum(new))
    tokens = torch.cat([pool.slots[i, a:a + b] for i, (a, b) in enumerate(zip(prefix, new))]).long()
    k, v = pool.k[tokens], pool.v[tokens]
    ragged = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace, "NHD", backend="fa2")
    paged = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD", backend="fa2")
    ragged.begin_forward(starts(new), starts(new), HQ, HKV, D, q_data_type=BF16)
    indices = torch.cat([pool.indices(prefix), torch.zeros(256, dtype=torch.int32)])  # room for kernels that read ahead
    mask = None
    if window >= 0:  # the part before the new tokens has no window of its own: a mask
        at = lambda i: torch.arange(new[i])[:, None] + prefix[i] - torch.arange(prefix[i]) <= window
        mask = torch.cat([at(i).reshape(-1) for i in range(3)])
    paged.begin_forward(starts(new), starts(prefix), indices, torch.ones(3, dtype=torch.int32), HQ, HKV, D, 1, q_data_type=BF16, kv_data_type=BF16,
                        custom_mask=mask, non_blocking=True, fixed_split_size=None, prefix_len_ptr=None, token_pos_in_items_ptr=None,
                        token_pos_in_items_len=0, max_item_len_ptr=None)
    o1, s1 = ragged.forward_return_lse(q, k, v, causal=True, sm_scale=SCALE, window_left=window, logits_soft_cap=0.0)
    o2, s2 = paged.forward_return_lse(q, pool.cache(), causal=False, sm_scale=SCALE, window_left=window, logits_soft_cap=0.0, k_scale=None, v_scale=None)
    seen = lambda r, n: causal(r, n) & ((window < 0) | (torch.arange(n) >= torch.arange(r)[:, None] + n - r - window))
    close(merge_state(o1, s1, o2, s2)[0], pool.expected(q, lengths, new, seen=seen))


def verify_plan(self, qo_indptr, kv_indptr, indices, last_page_len, heads, kv_heads, dim, page, custom_mask, kv_lens_host, width):
    """The plan of a captured graph that verifies drafts: buffers are written, the mask is packed into the graph's, the module plans by host lengths."""
    self._qo_indptr_last, self._max_q_len, self._max_kv_len = int(qo_indptr[-1]), width, int(kv_lens_host.max())
    self._batch_size, self._num_qo_heads, self._num_kv_heads = len(kv_lens_host), heads, kv_heads
    self._qo_indptr_buf.copy_(qo_indptr, non_blocking=True)
    self._paged_kv_indptr_buf.copy_(kv_indptr, non_blocking=True)
    self._paged_kv_last_page_len_buf.copy_(last_page_len, non_blocking=True)
    self._paged_kv_indices_buf[:len(indices)].copy_(indices, non_blocking=True)
    bits, bit_starts = flashinfer.segment_packbits(custom_mask, starts((kv_lens_host * width).tolist()), bitorder="little")
    assert int(bit_starts[-1]) <= self._custom_mask_buf.numel()
    self._mask_indptr_buf.copy_(bit_starts, non_blocking=True)
    self._custom_mask_buf[:len(bits)].copy_(bits)
    self._plan_info = self._cached_module.plan(
        self._float_workspace_buffer, self._int_workspace_buffer, self._pin_memory_int_workspace_buffer, qo_indptr, kv_indptr, kv_lens_host,
        self._max_total_num_rows or self._qo_indptr_last, self._batch_size, heads, kv_heads, page, self.is_cuda_graph_enabled, dim, dim, False, -1, -1,
        False, 0, 0)


def test_sglang_verifies_a_tree(workspace):
    pool, width = Pool(), 3
    w = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
        workspace, "NHD", use_cuda_graph=True, backend="fa2", qo_indptr_buf=torch.zeros(3, dtype=torch.int32),
        paged_kv_indptr_buf=torch.zeros(3, dtype=torch.int32), paged_kv_indices_buf=torch.zeros(64, dtype=torch.int32),
        paged_kv_last_page_len_buf=torch.ones(2, dtype=torch.int32), custom_mask_buf=torch.zeros(64, dtype=torch.uint8),
        mask_indptr_buf=torch.zeros(3, dtype=torch.int32))
    for step, lengths in enumerate(([8, 5], [11, 8], [12, 7])):
        g = torch.Generator().manual_seed(step)
        masks = [torch.cat([torch.ones(width, n - width), torch.rand(width, width, generator=g).round().fill_diagonal_(1)], 1).bool() for n in lengths]
        mask = torch.cat([m.reshape(-1) for m in masks])
        arrays = (starts([width] * 2), starts(lengths), pool.indices(lengths), torch.ones(2, dtype=torch.int32), HQ, HKV, D, 1)
        if step == 0:  # the capture
            w.begin_forward(*arrays, q_data_type=BF16, kv_data_type=BF16, custom_mask=mask, non_blocking=True, fixed_split_size=None)
            w.begin_forward = functools.partial(verify_plan, w)
        else:
            w.begin_forward(*arrays, custom_mask=mask, kv_lens_host=i32(*lengths), width=width)
        q, tree = rows_of(2 * width, step), iter(masks)
        close(w.forward(q, pool.cache(), causal=False, sm_scale=SCALE), pool.expected(q, lengths, [width] * 2, seen=lambda r, n: next(tree)))


# ---- vLLM ----
def test_vllm_sinks(workspace):
    """Attention sinks: an argument of decode's run, and of the wrapper that has them for prefill."""
    pool, lengths, new = Pool(), [9, 4, 12], [4, 1, 5]
    sinks = torch.randn(HQ, generator=torch.Generator().manual_seed(5))
    decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD", use_cuda_graph=False, use_tensor_cores=True, backend="auto")
    decode.plan(indptr=starts(lengths), indices=pool.indices(lengths), last_page_len=torch.ones(3, dtype=torch.int32), num_qo_heads=HQ, num_kv_heads=HKV,
                head_dim=D, page_size=1, pos_encoding_mode="NONE", window_left=-1, logits_soft_cap=None, q_data_type=BF16, kv_data_type=BF16,
                o_data_type=BF16, data_type=None, sm_scale=SCALE, rope_scale=None, rope_theta=None, non_blocking=True, block_tables=None,
                seq_lens=i32(*lengths), fixed_split_size=-1, disable_split_kv=False)
    q, out = rows_of(3), torch.empty(3, HQ, D, dtype=BF16)
    decode.run(q, pool.cache(), q_scale=1.0, k_scale=1.0, v_scale=1.0, out=out, kv_cache_sf=None, sinks=sinks)
    close(out, pool.expected(q, lengths, [1] * 3, sinks))
    prefill = flashinfer.BatchAttentionWithAttentionSinkWrapper(workspace, "NHD", backend="auto", q_data_type=BF16, kv_data_type=BF16, head_dim_qk=D,
                                                                head_dim_vo=D, window_left=-1)
    prefill.plan(qo_indptr=starts(new), paged_kv_indptr=starts(lengths), paged_kv_indices=pool.indices(lengths),
                 paged_kv_last_page_len=torch.ones(3, dtype=torch.int32), seq_lens=i32(*lengths), num_qo_heads=HQ, num_kv_heads=HKV, head_dim_qk=D,
                 page_size=1, causal=True, sm_scale=SCALE, window_left=-1, logits_soft_cap=None, q_data_type=BF16, kv_data_type=BF16, o_data_type=BF16,
                 fixed_split_size=-1, disable_split_kv=False)
    assert prefill._window_left == -1 and prefill._logits_soft_cap == 0.0 and prefill._sm_scale == SCALE and prefill._causal
    q, out = rows_of(sum(new)), torch.empty(sum(new), HQ, D, dtype=BF16)
    assert isinstance(prefill, flashinfer.BatchPrefillWithPagedKVCacheWrapper)
    prefill.run(q, pool.cache(), sinks, SCALE, v_scale=1.0, out=out)
    close(out, pool.expected(q, lengths, new, sinks))


def test_vllm_decode_graph(workspace):
    pool = Pool()
    w = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        workspace, "NHD", use_cuda_graph=True, use_tensor_cores=True, paged_kv_indptr_buffer=torch.zeros(3, dtype=torch.int32),
        paged_kv_indices_buffer=torch.zeros(64, dtype=torch.int32), paged_kv_last_page_len_buffer=torch.zeros(2, dtype=torch.int32), backend="auto")
    for lengths in ([3, 1], [4, 2], [13, 8]):
        arrays = dict(indptr=starts(lengths), indices=pool.indices(lengths), last_page_len=torch.ones(2, dtype=torch.int32), num_qo_heads=HQ,
                      num_kv_heads=HKV, head_dim=D, page_size=1, pos_encoding_mode="NONE", window_left=-1, logits_soft_cap=None, q_data_type=BF16,
                      kv_data_type=BF16, data_type=None, sm_scale=SCALE, rope_scale=None, rope_theta=None, non_blocking=True, fixed_split_size=-1,
                      disable_split_kv=False)
        if getattr(w, "vllm_first_call", True):
            w.plan(o_data_type=BF16, block_tables=None, seq_lens=i32(*lengths), **arrays)
            w.vllm_first_call = False
        else:
            fast_decode_plan(w, **arrays)
        q, out, lse = rows_of(2, lengths[0]), torch.empty(2, HQ, D, dtype=BF16), torch.empty(2, HQ)
        w.run(q, pool.cache(), q_scale=1.0, k_scale=1.0, v_scale=1.0, out=out, lse=lse, return_lse=True, kv_cache_sf=None, sinks=None)
        close(out, pool.expected(q, lengths, [1] * 2))
        keys = [pool.k[pool.slots[i, :n].long()] for i, n in enumerate(lengths)]
        close(lse, torch.stack([attention(q[i:i + 1], k, k, SCALE, causal(1, len(k)))[1][0] for i, k in enumerate(keys)]))
