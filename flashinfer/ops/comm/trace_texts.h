// SPDX-License-Identifier: Apache-2.0
// Python of trace definitions. One process computes what a rank gets when all ranks pass the same tensors; the sums of
// all-reduces, and exchanges whose arguments do not tell the number of ranks, are those of a group of one rank.
#pragma once

namespace flashinfer::ops::comm {

inline constexpr char kAllReduceReference[] = R"py(import torch


def reference(input, workspace=None, pattern=0, residual_in=None, rms_gamma=None, rms_eps=1e-6, weight_bias=0.0):
    total = input + 0  # -0 counts as 0
    if pattern == 0:
        return total
    h = (total.double() + residual_in.double()).to(input.dtype).double()
    n = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + rms_eps)
    return (n * (weight_bias + rms_gamma.double())).to(input.dtype)
)py";

inline constexpr char kAllReduceInit[] = R"py(import torch


def init(*, num_tokens, hidden_dim=4096, device="cuda" if torch.cuda.is_available() else "cpu", seed=0):
    """A group of one rank; residual and RMSNorm follow the sum."""
    import flashinfer.comm as comm

    generator = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(shape, generator=generator).to(device, torch.bfloat16)
    workspace = comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=max(1, num_tokens), hidden_dim=hidden_dim,
                                                       dtype=torch.bfloat16, device=device)
    return {"input": make(num_tokens, hidden_dim), "workspace": workspace, "pattern": 1, "residual_in": make(num_tokens, hidden_dim),
            "rms_gamma": make(hidden_dim)}
)py";

inline constexpr char kAlltoallReference[] = R"py(import torch


def reference(partial_o, softmax_stats, workspace, cp_rank, cp_size):
    own = lambda x: x[..., cp_rank, :].unsqueeze(-2).expand_as(x).contiguous()
    return own(partial_o), own(softmax_stats)
)py";

inline constexpr char kAlltoallInit[] = R"py(import torch


def init(*, batch_dim, cp_size, ws_elems_per_rank=0, head_dim=128, stats_dim=2, device="cpu", seed=0):
    """A group of one rank."""
    import flashinfer.comm as comm

    if cp_size != 1:
        raise ValueError("one process is a group of one rank: cp_size must be 1")
    generator = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(shape, generator=generator).to(device)
    return {"partial_o": make(batch_dim, 1, head_dim).bfloat16(), "softmax_stats": make(batch_dim, 1, stats_dim),
            "workspace": comm.decode_cp_a2a_allocate_mnnvl_workspace(comm.Mapping()), "cp_rank": 0, "cp_size": 1}
)py";

inline constexpr char kLseReduceReference[] = R"py(import torch


def reference(partial_o, partial_lse, workspace, cp_rank, cp_size, lse_mode="base2"):
    lse = partial_lse[..., cp_rank, None]
    return torch.where(torch.isfinite(lse), partial_o[..., cp_rank, :], 0)  # equal weights, or none
)py";

inline constexpr char kLseReduceInit[] = R"py(import torch


def init(*, batch_dim, cp_size, workspace_bytes=0, head_dim=128, device="cpu", seed=0):
    """A group of one rank."""
    import flashinfer.comm as comm

    if cp_size != 1:
        raise ValueError("one process is a group of one rank: cp_size must be 1")
    generator = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(shape, generator=generator).to(device)
    workspace = comm.decode_cp_a2a_lse_reduce_create_workspace(max(1, batch_dim), 1, 1, head_dim, torch.bfloat16, None)
    return {"partial_o": make(batch_dim, 1, head_dim).bfloat16(), "partial_lse": make(batch_dim, 1), "workspace": workspace,
            "cp_rank": 0, "cp_size": 1, "lse_mode": "base2"}
)py";

inline constexpr char kGatherReference[] = R"py(def reference(input, workspace=None):
    return input.clone()  # of one rank
)py";

inline constexpr char kGatherInit[] = R"py(import torch


def init(*, num_tokens, columns=1024, device="cpu", seed=0):
    """A group of one rank."""
    import flashinfer.comm as comm

    workspace = comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=1, hidden_dim=1 << 20, dtype=torch.bfloat16, device=device)
    x = torch.randn(num_tokens, columns, generator=torch.Generator().manual_seed(seed)).to(device, torch.bfloat16)
    return {"input": x, "workspace": workspace, "columns": [columns]}
)py";

inline constexpr char kScatterReference[] = R"py(def reference(input, workspace=None, fp32_acc=False):
    return input + 0  # -0 counts as 0; of one rank
)py";

inline constexpr char kScatterInit[] = R"py(import torch


def init(*, num_rows, hidden_dim=4096, device="cpu", seed=0):
    """A group of one rank."""
    import flashinfer.comm as comm

    workspace = comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=1, hidden_dim=1 << 20, dtype=torch.bfloat16, device=device)
    x = torch.randn(num_rows, hidden_dim, generator=torch.Generator().manual_seed(seed)).to(device, torch.bfloat16)
    return {"input": x, "workspace": workspace}
)py";

inline constexpr char kMixedReference[] =
    R"py(def reference(x_in, workspace=None, op=0, local_tp_size=1, local_dp_size=1, inter_tp_size=1, inter_dp_size=1):
    rows = x_in
    if op != 1:  # a sum
        rows = (x_in.float() * (local_tp_size * inter_tp_size) + 0).to(x_in.dtype)
    return rows if op == 0 else rows.repeat(local_dp_size * inter_dp_size, *(1 for _ in x_in.shape[1:]))
)py";

inline constexpr char kMixedInit[] = R"py(import torch


def init(*, num_rows, hidden_dim=4096, result_rows=0, device="cpu", seed=0):
    """A group of one rank."""
    import flashinfer.comm as comm

    workspace = comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=1, hidden_dim=1 << 20, dtype=torch.bfloat16, device=device)
    x = torch.randn(num_rows, hidden_dim, generator=torch.Generator().manual_seed(seed)).to(device, torch.bfloat16)
    return {"x_in": x, "workspace": workspace, "op": 0}
)py";

inline constexpr char kUlyssesReference[] = R"py(def reference(x, workspace=None):
    return x.clone()  # of one rank
)py";

inline constexpr char kUlyssesInit[] = R"py(import torch


def init(*, batch_size, seq_len, num_heads=8, head_dim=128, device="cpu", seed=0):
    """A group of one rank."""
    import flashinfer.comm as comm

    workspace = comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=1, hidden_dim=1 << 20, dtype=torch.bfloat16, device=device)
    x = torch.randn(batch_size, seq_len, num_heads, head_dim, generator=torch.Generator().manual_seed(seed)).to(device, torch.bfloat16)
    return {"x": x, "workspace": workspace}
)py";

inline constexpr char kQuantizedReference[] = R"py(import torch


def reference(inp, workspace=None, scale_group=256):
    def rounded(x):
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
        return (x / scale).to(torch.float8_e4m3fn).float() * scale

    flat = inp.float().flatten()
    groups = torch.nn.functional.pad(flat, (0, -flat.numel() % scale_group)).view(-1, scale_group)
    return rounded(rounded(groups)).flatten()[:flat.numel()].view(inp.shape).to(inp.dtype)  # of one rank: sent, and the sum once more
)py";

inline constexpr char kQuantizedInit[] = R"py(import torch


def init(*, num_tokens, hidden_dim=4096, device="cpu", seed=0):
    """A group of one rank."""
    import flashinfer.comm as comm

    workspace = comm.create_allreduce_fusion_workspace(world_size=1, rank=0, max_token_num=1, hidden_dim=1 << 20, dtype=torch.bfloat16, device=device)
    x = torch.randn(num_tokens, hidden_dim, generator=torch.Generator().manual_seed(seed)).to(device, torch.bfloat16)
    return {"inp": x, "workspace": workspace}
)py";

}  // namespace flashinfer::ops::comm
