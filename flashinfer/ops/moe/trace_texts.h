// SPDX-License-Identifier: Apache-2.0
// Python of trace definitions.
#pragma once

namespace flashinfer::ops::moe {

inline constexpr char kFp8DsReference[] = R"py(import torch


def widened(x, scale, rows, columns):
    """x times its scale factors, one for each block of `rows` x `columns` elements."""
    scale = scale.double().repeat_interleave(rows, -2).repeat_interleave(columns, -1)
    return x.double() * scale[..., :x.shape[-2], :x.shape[-1]]


def reference(routing_logits, routing_bias, hidden_states, hidden_states_scale, gemm1_weights, gemm1_weights_scale, gemm1_alpha=None,
              gemm1_beta=None, gemm1_clamp_limit=None, gemm2_weights=None, gemm2_weights_scale=None, top_k=8, n_group=8, topk_group=4,
              local_expert_offset=0, routed_scaling_factor=1.0):
    """Sigmoid scores; the best groups by the sum of their two best biased scores; the best experts of these; SwiGLU, whose gate is
    the second half of the first product."""
    scores = routing_logits.double().sigmoid()
    biased = scores + routing_bias.double()
    grouped = biased.unflatten(-1, (int(n_group), -1))
    groups = grouped.topk(2, -1).values.sum(-1).topk(int(topk_group), -1).indices
    allowed = torch.zeros(grouped.shape[:2], dtype=torch.bool, device=scores.device).scatter(1, groups, True)
    experts = grouped.masked_fill(~allowed[..., None], float("-inf")).flatten(1).topk(int(top_k), -1).indices
    weights = scores.gather(1, experts)
    weights = weights / weights.sum(-1, keepdim=True) * float(routed_scaling_factor)
    x = hidden_states.double() * hidden_states_scale.double().t().repeat_interleave(128, -1)
    output = torch.zeros_like(x)
    for local in range(gemm1_weights.shape[0]):
        token, slot = torch.where(experts == local + int(local_expert_offset))
        if len(token) == 0:
            continue
        up, gate = (x[token] @ widened(gemm1_weights[local], gemm1_weights_scale[local], 128, 128).t()).chunk(2, -1)
        limit = None if gemm1_clamp_limit is None else float(gemm1_clamp_limit[local])
        if limit is not None:
            up, gate = up.clamp(-limit, limit), gate.clamp(max=limit)
        alpha = 1.0 if gemm1_alpha is None else float(gemm1_alpha[local])
        beta = 0.0 if gemm1_beta is None else float(gemm1_beta[local])
        inner = gate * torch.sigmoid(alpha * gate) * (up + beta)
        y = inner @ widened(gemm2_weights[local], gemm2_weights_scale[local], 128, 128).t()
        output.index_add_(0, token, y * weights[token, slot][:, None])
    return output.to(torch.bfloat16)
)py";

inline constexpr char kFp8DsInit[] = R"py(import torch


def init(*, seq_len, num_experts=256, top_k=8, n_group=8, topk_group=4, num_local_experts=32, hidden_size=7168, intermediate_size=2048,
         gemm1_out_size=4096, num_hidden_blocks=56, num_intermediate_blocks=16, num_gemm1_out_blocks=32,
         device="cuda" if torch.cuda.is_available() else "cpu", seed=0):
    """DeepSeek-V3's routing on the first experts of the layer."""
    generator = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(shape, generator=generator)
    narrow = lambda *shape: make(*shape).to(device, torch.float8_e4m3fn)
    scale = lambda *shape: (torch.rand(shape, generator=generator) * 0.02 + 0.01).to(device)
    return {"routing_logits": make(seq_len, num_experts).to(device), "routing_bias": make(num_experts).to(device, torch.bfloat16),
            "hidden_states": narrow(seq_len, hidden_size), "hidden_states_scale": scale(num_hidden_blocks, seq_len),
            "gemm1_weights": narrow(num_local_experts, gemm1_out_size, hidden_size),
            "gemm1_weights_scale": scale(num_local_experts, num_gemm1_out_blocks, num_hidden_blocks),
            "gemm2_weights": narrow(num_local_experts, hidden_size, intermediate_size),
            "gemm2_weights_scale": scale(num_local_experts, num_hidden_blocks, num_intermediate_blocks),
            "num_experts": num_experts, "top_k": top_k, "n_group": n_group, "topk_group": topk_group, "intermediate_size": intermediate_size,
            "local_expert_offset": 0, "local_num_experts": num_local_experts, "routed_scaling_factor": 2.5, "routing_method_type": 2}
)py";

}  // namespace flashinfer::ops::moe
