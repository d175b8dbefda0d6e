// SPDX-License-Identifier: Apache-2.0
// Python of trace definitions: attention without position encoding, window or soft cap, in double precision.
#pragma once

namespace flashinfer::ops::attention {

inline constexpr char kAttend[] = R"py(import math

import torch


def attend(q, k, v, scale, offset):
    """q [m, h, d], k [n, g, d], v [n, g, dv] -> output [m, h, dv] and its log-sum-exp to base 2 [m, h]. Row i sees the keys
    up to `offset + i`; offset None: all."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    logits = torch.einsum("mhd,nhd->hmn", q.double(), k) * scale
    if offset is not None:
        hidden = torch.ones(logits.shape[1:], dtype=torch.bool, device=q.device).triu(offset + 1)
        logits = logits.masked_fill(hidden, -math.inf)
    lse = torch.logsumexp(logits, -1)
    weights = torch.exp(logits - lse.nan_to_num(neginf=0.0)[..., None])
    return torch.einsum("hmn,nhd->mhd", weights, v), lse.t() / math.log(2)


def rows_of(cache, pages, length):
    """The first `length` tokens of the pages: [length, heads, d]."""
    return cache[pages.long()].flatten(0, 1)[:length]
)py";

inline constexpr char kPagedDecodeReference[] =
    R"py(def reference(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale=None, return_lse=None, kv_len=None):
    scale = 1 / math.sqrt(q.shape[-1]) if sm_scale is None else float(sm_scale)
    output = torch.zeros(*q.shape[:2], v_cache.shape[-1], dtype=q.dtype, device=q.device)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)
    for i in range(q.shape[0]):
        pages = kv_indices[int(kv_indptr[i]):int(kv_indptr[i + 1])]
        length = len(pages) * k_cache.shape[1] if kv_len is None else int(kv_len[i])
        if length:
            o, s = attend(q[i:i + 1], rows_of(k_cache, pages, length), rows_of(v_cache, pages, length), scale, None)
            output[i], lse[i] = o[0].to(q.dtype), s[0].float()
    return (output, lse) if return_lse is None or return_lse else output
)py";

inline constexpr char kPagedPrefillReference[] =
    R"py(def reference(q, k_cache, v_cache, qo_indptr, kv_indptr, kv_indices, sm_scale=None, return_lse=None, kv_len=None, causal=True):
    scale = 1 / math.sqrt(q.shape[-1]) if sm_scale is None else float(sm_scale)
    output = torch.zeros(*q.shape[:2], v_cache.shape[-1], dtype=q.dtype, device=q.device)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)
    for i in range(len(qo_indptr) - 1):
        rows = slice(int(qo_indptr[i]), int(qo_indptr[i + 1]))
        pages = kv_indices[int(kv_indptr[i]):int(kv_indptr[i + 1])]
        length = len(pages) * k_cache.shape[1] if kv_len is None else int(kv_len[i])
        if length and rows.stop > rows.start:
            offset = length - (rows.stop - rows.start) if causal else None
            o, s = attend(q[rows], rows_of(k_cache, pages, length), rows_of(v_cache, pages, length), scale, offset)
            output[rows], lse[rows] = o.to(q.dtype), s.float()
    return (output, lse) if return_lse is None or return_lse else output
)py";

inline constexpr char kRaggedReference[] =
    R"py(def reference(q, k, v, qo_indptr, kv_indptr, sm_scale=None, return_lse=None, causal=True):
    scale = 1 / math.sqrt(q.shape[-1]) if sm_scale is None else float(sm_scale)
    output = torch.zeros(*q.shape[:2], v.shape[-1], dtype=q.dtype, device=q.device)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)
    for i in range(len(qo_indptr) - 1):
        rows = slice(int(qo_indptr[i]), int(qo_indptr[i + 1]))
        keys = slice(int(kv_indptr[i]), int(kv_indptr[i + 1]))
        if keys.stop > keys.start and rows.stop > rows.start:
            offset = (keys.stop - keys.start) - (rows.stop - rows.start) if causal else None
            o, s = attend(q[rows], k[keys], v[keys], scale, offset)
            output[rows], lse[rows] = o.to(q.dtype), s.float()
    return (output, lse) if return_lse is None or return_lse else output
)py";

inline constexpr char kSinglePrefillReference[] = R"py(def reference(q, k, v):
    return attend(q, k, v, 1 / math.sqrt(q.shape[-1]), None)[0].to(q.dtype)
)py";

inline constexpr char kSingleDecodeReference[] = R"py(def reference(q, k, v):
    return attend(q[None], k, v, 1 / math.sqrt(q.shape[-1]), None)[0][0].to(q.dtype)
)py";

inline constexpr char kPagedDecodeInit[] = R"py(import torch


def pages_of(num_pages, batch_size):
    """Pages, as even as they go, of `batch_size` requests."""
    return torch.tensor([i * num_pages // batch_size for i in range(batch_size + 1)], dtype=torch.int32)


def init(*, batch_size, num_pages, num_qo_heads=32, num_kv_heads=8, head_dim=128, page_size=16, len_indptr=0, num_kv_indices=0,
         device="cuda" if torch.cuda.is_available() else "cpu", seed=0):
    """Full pages: `plan` for plan(), `run` for run()."""
    generator = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(shape, generator=generator).to(device, torch.bfloat16)
    plan = {"indptr": pages_of(num_pages, batch_size).to(device),
            "indices": torch.randperm(num_pages, generator=generator).to(device, torch.int32),
            "last_page_len": torch.full((batch_size,), page_size, dtype=torch.int32, device=device),
            "num_qo_heads": num_qo_heads, "num_kv_heads": num_kv_heads, "head_dim": head_dim, "page_size": page_size,
            "q_data_type": torch.bfloat16, "kv_data_type": torch.bfloat16}
    cache = [make(num_pages, page_size, num_kv_heads, head_dim) for _ in range(2)]
    return {"plan": plan, "run": {"q": make(batch_size, num_qo_heads, head_dim), "paged_kv_cache": tuple(cache)}}
)py";

inline constexpr char kPagedPrefillInit[] = R"py(import torch


def pages_of(num_pages, batch_size):
    """Pages, as even as they go, of `batch_size` requests."""
    return torch.tensor([i * num_pages // batch_size for i in range(batch_size + 1)], dtype=torch.int32)


def init(*, total_q, num_pages, num_qo_heads=32, num_kv_heads=8, head_dim=128, page_size=16, len_indptr=2, num_kv_indices=0,
         device="cuda" if torch.cuda.is_available() else "cpu", seed=0):
    """Full pages, causal: `plan` for plan(), `run` for run()."""
    generator = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(shape, generator=generator).to(device, torch.bfloat16)
    plan = {"qo_indptr": pages_of(total_q, len_indptr - 1).to(device), "paged_kv_indptr": pages_of(num_pages, len_indptr - 1).to(device),
            "paged_kv_indices": torch.randperm(num_pages, generator=generator).to(device, torch.int32),
            "paged_kv_last_page_len": torch.full((len_indptr - 1,), page_size, dtype=torch.int32, device=device),
            "num_qo_heads": num_qo_heads, "num_kv_heads": num_kv_heads, "head_dim_qk": head_dim, "page_size": page_size,
            "causal": True, "q_data_type": torch.bfloat16, "kv_data_type": torch.bfloat16}
    cache = [make(num_pages, page_size, num_kv_heads, head_dim) for _ in range(2)]
    return {"plan": plan, "run": {"q": make(total_q, num_qo_heads, head_dim), "paged_kv_cache": tuple(cache)}}
)py";

inline constexpr char kRaggedInit[] = R"py(import torch


def pages_of(num_pages, batch_size):
    """Pages, as even as they go, of `batch_size` requests."""
    return torch.tensor([i * num_pages // batch_size for i in range(batch_size + 1)], dtype=torch.int32)


def init(*, total_q, total_kv, num_qo_heads=32, num_kv_heads=8, head_dim=128, len_indptr=2,
         device="cuda" if torch.cuda.is_available() else "cpu", seed=0):
    """Causal: `plan` for plan(), `run` for run()."""
    generator = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(shape, generator=generator).to(device, torch.bfloat16)
    plan = {"qo_indptr": pages_of(total_q, len_indptr - 1).to(device), "kv_indptr": pages_of(total_kv, len_indptr - 1).to(device),
            "num_qo_heads": num_qo_heads, "num_kv_heads": num_kv_heads, "head_dim_qk": head_dim, "causal": True,
            "q_data_type": torch.bfloat16, "kv_data_type": torch.bfloat16}
    return {"plan": plan, "run": {"q": make(total_q, num_qo_heads, head_dim), "k": make(total_kv, num_kv_heads, head_dim),
                                  "v": make(total_kv, num_kv_heads, head_dim)}}
)py";

}  // namespace flashinfer::ops::attention
