# SPDX-License-Identifier: Apache-2.0
"""The attention of one serving step with torch tensors on the CPU: append the new tokens' keys and values to a paged cache, prefill
two requests, decode one more token of each, sample. The decode is checked against torch.

    python examples/python/serve_step.py
"""
import torch

import flashinfer

HEADS, KV_HEADS, DIM, PAGE = 8, 2, 64, 16
DTYPE = torch.bfloat16


def append(cache, kv_indptr, kv_indices, last_page_len, lengths, new_tokens):
    """Puts `new_tokens` keys and values of each request behind what its pages hold; `lengths` counts them already."""
    nnz = int(new_tokens.sum())
    append_indptr = torch.cat([torch.zeros(1, dtype=torch.int32), new_tokens.cumsum(0).int()])
    batch_indices, positions = flashinfer.get_batch_indices_positions(append_indptr, lengths, nnz)
    key, value = torch.randn(2, nnz, KV_HEADS, DIM).to(DTYPE)
    flashinfer.append_paged_kv_cache(key, value, batch_indices, positions, cache, kv_indices, kv_indptr, last_page_len)
    return append_indptr


def expected_decode(query, cache, kv_indices, kv_indptr, length, request):
    """The same token's attention by torch, from the request's pages laid side by side."""
    pages = kv_indices[kv_indptr[request]:kv_indptr[request + 1]].long()
    key, value = (cache[pages, i].reshape(-1, KV_HEADS, DIM)[:length].repeat_interleave(HEADS // KV_HEADS, 1).float() for i in (0, 1))
    scores = torch.einsum("hd,thd->ht", query.float(), key) / DIM**0.5
    return torch.einsum("ht,thd->hd", scores.softmax(-1), value)


def main():
    torch.manual_seed(0)
    workspace = torch.empty(16 << 20, dtype=torch.uint8)
    cache = torch.zeros(8, 2, PAGE, KV_HEADS, DIM, dtype=DTYPE)
    kv_indptr, kv_indices = torch.tensor([0, 2, 5], dtype=torch.int32), torch.tensor([6, 1, 0, 4, 3], dtype=torch.int32)

    lengths = torch.tensor([20, 40], dtype=torch.int32)
    qo_indptr = append(cache, kv_indptr, kv_indices, (lengths - 1) % PAGE + 1, lengths, lengths)
    prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD")
    prefill.plan(qo_indptr, kv_indptr, kv_indices, (lengths - 1) % PAGE + 1, HEADS, KV_HEADS, DIM, PAGE, causal=True, q_data_type=DTYPE)
    hidden = prefill.run(torch.randn(60, HEADS, DIM).to(DTYPE), cache)
    print("prefill:", tuple(hidden.shape), hidden.dtype)

    lengths += 1
    last_page_len = (lengths - 1) % PAGE + 1
    append(cache, kv_indptr, kv_indices, last_page_len, lengths, torch.ones(2, dtype=torch.int32))
    decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD")
    decode.plan(kv_indptr, kv_indices, last_page_len, HEADS, KV_HEADS, DIM, PAGE, q_data_type=DTYPE, data_type=DTYPE)
    query = torch.randn(2, HEADS, DIM).to(DTYPE)
    out, lse = decode.run(query, cache, return_lse=True)
    for i in range(2):
        torch.testing.assert_close(out[i].float(), expected_decode(query[i], cache, kv_indices, kv_indptr, int(lengths[i]), i),
                                   rtol=2e-2, atol=2e-2)
    print("decode:", tuple(out.shape), "as torch computes it; lse", tuple(lse.shape))

    logits = flashinfer.rmsnorm(torch.randn(2, 1000), torch.ones(1000)) * 3
    tokens = flashinfer.top_k_top_p_sampling_from_probs(flashinfer.softmax(logits), 50, 0.9)
    print("tokens:", tuple(tokens.shape), tokens.dtype)


if __name__ == "__main__":
    main()
