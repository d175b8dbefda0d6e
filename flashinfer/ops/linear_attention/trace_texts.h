// SPDX-License-Identifier: Apache-2.0
// Python of trace definitions.
#pragma once

namespace flashinfer::ops::linear_attention {

inline constexpr char kDecodeReference[] = R"py(import math

import torch


def reference(q, k, v, state, A_log, a, dt_bias, b, scale=None):
    """One token: S <- exp(g) S, S <- S + beta k (v - k S)^T, output q S, with state [batch, heads, k, v] and normalised q and k."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    group = v.shape[2] // q.shape[2]
    q, k = (x.double() * torch.rsqrt(x.double().square().sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    q, k = (x[:, 0].repeat_interleave(group, 1) for x in (q, k))
    decay = torch.exp(-torch.exp(A_log.double()) * torch.nn.functional.softplus(a[:, 0].double() + dt_bias.double()))
    new = state.double() * decay[..., None, None]
    delta = (v[:, 0].double() - torch.einsum("bhk,bhkv->bhv", k, new)) * b[:, 0].double().sigmoid()[..., None]
    new = new + torch.einsum("bhk,bhv->bhkv", k, delta)
    output = torch.einsum("bhk,bhkv->bhv", q * scale, new)[:, None]
    return output.to(torch.bfloat16), new.float()
)py";

inline constexpr char kDecodeInit[] = R"py(import torch


def init(*, batch_size, seq_len=1, num_q_heads=4, num_k_heads=4, num_v_heads=8, head_size=128,
         device="cuda" if torch.cuda.is_available() else "cpu", seed=0):
    """One token of each request."""
    generator = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(shape, generator=generator).to(device)
    heads = lambda n: make(batch_size, seq_len, n, head_size).bfloat16()
    return {"q": heads(num_q_heads), "k": heads(num_k_heads), "v": heads(num_v_heads),
            "state": make(batch_size, num_v_heads, head_size, head_size) * 0.1, "A_log": make(num_v_heads),
            "a": make(batch_size, seq_len, num_v_heads).bfloat16(), "dt_bias": make(num_v_heads),
            "b": make(batch_size, seq_len, num_v_heads).bfloat16(), "scale": None}
)py";

}  // namespace flashinfer::ops::linear_attention
