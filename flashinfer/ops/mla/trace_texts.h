// SPDX-License-Identifier: Apache-2.0
// Python of trace definitions.
#pragma once

namespace flashinfer::ops::mla {

inline constexpr char kPagedReference[] = R"py(import math

import torch


def reference(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, sm_scale=None, ckv_scale=None, ckv_scale_arr=None,
              kpe_scale=None, return_lse=None, kv_len=None):
    """Decode, one query row a request: keys are the compressed elements beside the rotary ones, values the compressed ones."""
    scale = 1 / math.sqrt(128 + q_pe.shape[-1]) if sm_scale is None else float(sm_scale)
    ckv = ckv_cache.double() * (1.0 if ckv_scale is None else float(ckv_scale))
    if ckv_scale_arr is not None:
        ckv = ckv * ckv_scale_arr.double().repeat_interleave(ckv.shape[-1] // ckv_scale_arr.shape[-1], -1)
    kpe = kpe_cache.double() * (1.0 if kpe_scale is None else float(kpe_scale))
    output = torch.zeros_like(q_nope)
    lse = torch.full(q_nope.shape[:2], -math.inf, dtype=torch.float32, device=q_nope.device)
    for i in range(q_nope.shape[0]):
        pages = kv_indices[int(kv_indptr[i]):int(kv_indptr[i + 1])].long()
        length = len(pages) * ckv.shape[1] if kv_len is None else int(kv_len[i])
        if length:
            c, p = (x[pages].flatten(0, 1)[:length] for x in (ckv, kpe))
            logits = (q_nope[i].double() @ c.t() + q_pe[i].double() @ p.t()) * scale
            lse[i] = (torch.logsumexp(logits, -1) / math.log(2)).float()
            output[i] = (torch.softmax(logits, -1) @ c).to(q_nope.dtype)
    return (output, lse) if return_lse is None or return_lse else output
)py";

inline constexpr char kPagedInit[] = R"py(import math

import torch


def init(*, batch_size, num_pages, num_qo_heads=16, head_dim_ckv=512, head_dim_kpe=64, page_size=64, ckv_scale_groups=0, len_indptr=0,
         num_kv_indices=0, device="cuda" if torch.cuda.is_available() else "cpu", seed=0):
    """Full pages: `plan` for plan(), `run` for run()."""
    generator = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(shape, generator=generator).to(device, torch.bfloat16)
    indptr = torch.tensor([i * num_pages // batch_size for i in range(batch_size + 1)], dtype=torch.int32, device=device)
    plan = {"qo_indptr": torch.arange(batch_size + 1, dtype=torch.int32, device=device), "kv_indptr": indptr,
            "kv_indices": torch.randperm(num_pages, generator=generator).to(device, torch.int32),
            "kv_len_arr": indptr.diff() * page_size, "num_heads": num_qo_heads, "head_dim_ckv": head_dim_ckv,
            "head_dim_kpe": head_dim_kpe, "page_size": page_size, "causal": False, "sm_scale": 1 / math.sqrt(128 + head_dim_kpe),
            "q_data_type": torch.bfloat16, "kv_data_type": torch.bfloat16}
    return {"plan": plan, "run": {"q_nope": make(batch_size, num_qo_heads, head_dim_ckv), "q_pe": make(batch_size, num_qo_heads, head_dim_kpe),
                                  "ckv_cache": make(num_pages, page_size, head_dim_ckv), "kpe_cache": make(num_pages, page_size, head_dim_kpe)}}
)py";

}  // namespace flashinfer::ops::mla
