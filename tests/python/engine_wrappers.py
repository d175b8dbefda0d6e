# SPDX-License-Identifier: Apache-2.0
"""Wrappers and plans of small batches, as test_engines.py and test_engine_arguments.py use them."""
import pytest
import torch

import flashinfer

HQ, HKV, D, PAGE = 8, 2, 64, 4
BF16 = torch.bfloat16


def i32(*values):
    return torch.tensor(values, dtype=torch.int32)


# Three requests with 5, 4 and 7 tokens in pages 6, 1, 4, 0, 3.
INDPTR, PAGES, LAST, ROWS = i32(0, 2, 3, 5), i32(6, 1, 4, 0, 3), i32(1, 4, 3), i32(0, 1, 3, 6)
# And as long as them, another step: 6, 4 and 8 tokens.
INDPTR2, PAGES2, LAST2 = i32(0, 2, 3, 5), i32(6, 2, 4, 0, 5), i32(2, 4, 4)


@pytest.fixture
def cache():
    torch.manual_seed(1)
    return torch.randn(8, 2, PAGE, HKV, D, dtype=BF16)


@pytest.fixture
def workspace():
    return torch.empty(1 << 16, dtype=torch.uint8)


def queries(rows, seed=2):
    return torch.randn(rows, HQ, D, generator=torch.Generator().manual_seed(seed)).to(BF16)


def decode_graph(workspace, **options):
    return flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        workspace, "NHD", use_cuda_graph=True, use_tensor_cores=True, paged_kv_indptr_buffer=torch.zeros(4, dtype=torch.int32),
        paged_kv_indices_buffer=torch.zeros(16, dtype=torch.int32), paged_kv_last_page_len_buffer=torch.zeros(3, dtype=torch.int32), **options)


def prefill_graph(workspace):
    return flashinfer.BatchPrefillWithPagedKVCacheWrapper(
        workspace, "NHD", use_cuda_graph=True, backend="fa2", qo_indptr_buf=torch.zeros(4, dtype=torch.int32),
        paged_kv_indptr_buf=torch.zeros(4, dtype=torch.int32), paged_kv_indices_buf=torch.zeros(16, dtype=torch.int32),
        paged_kv_last_page_len_buf=torch.zeros(3, dtype=torch.int32))


def plan_decode(w, indptr=INDPTR, pages=PAGES, last=LAST, **options):
    w.plan(indptr, pages, last, HQ, HKV, D, PAGE, **{"q_data_type": BF16, "kv_data_type": BF16, **options})
    return w


def plan_prefill(w, indptr=INDPTR, pages=PAGES, last=LAST, **options):
    w.plan(ROWS, indptr, pages, last, HQ, HKV, D, PAGE, **{"causal": True, "q_data_type": BF16, "kv_data_type": BF16, **options})
    return w


def decode_of(cache, q, *arrays, **options):
    w = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), "NHD", use_tensor_cores=True)
    return plan_decode(w, *arrays, **options).run(q, cache)


def prefill_of(cache, q, *arrays, **options):
    w = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8), "NHD")
    return plan_prefill(w, *arrays, **options).run(q, cache)
