# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts whose weights are unpacked expert by expert: products by `mm_bf16`, sums in float32. Values times their block scales are
exact in bf16, of NVFP4, MXFP4 and MXFP8. Only the weights of experts that a token chose are read."""
from . import _moe_api as api


def activated(y, activation):
    """[rows, intermediate] of float32 [rows, 2 * intermediate] (the linear half, then the gate), or of one half: an activation of `_moe_api`."""
    import torch

    kind, silu = type(activation), torch.nn.functional.silu
    if not activation.is_gated:
        return {api.ReLU: torch.relu, api.ReLU2: lambda v: v.relu().square_(), api.SiLU: silu, api.GELU: torch.nn.functional.gelu, api.Identity: lambda v: v}[kind](y)
    linear, gate = y.chunk(2, dim=1)
    if kind is api.SwiGLU:
        gate, linear = gate.clamp(max=activation.limit), linear.clamp(-activation.limit, activation.limit)
        return gate * torch.sigmoid(activation.alpha * gate) * (linear + activation.beta)
    if kind is api.SwiGLUStep:
        return silu(gate).clamp(max=activation.limit) * linear.clamp(-activation.limit, activation.limit)
    if kind is api.SiTU:
        gate = activation.gate_scale * torch.tanh(gate / activation.gate_scale) * torch.sigmoid(gate)
        return gate * (linear if activation.linear_scale is None else activation.linear_scale * torch.tanh(linear / activation.linear_scale))
    return torch.nn.functional.gelu(gate, approximate="tanh" if kind is api.GeGLUTanh else "none") * linear


def expert_sums(x, ids, weights, first, act, second, quantise=None):
    """float32 [tokens, hidden]: the sum over each token's experts of weight * second(act(first(x))).

    Args:
        x: bf16 [tokens, hidden]
        ids, weights: [tokens, top_k]; a negative expert is skipped
        first, second: (matrix, factor): `matrix(expert)` is bf16 [rows, columns], `factor(expert)` a number, or float32 of its rows
        act: of float32 [rows, columns]
        quantise: two functions, of rows of x and of activations: (rows, expert, tokens) -> bf16 rows and what they are to be divided by;
            None: they stay as they are
    """
    import torch

    from . import mm_bf16

    def product(rows, expert, token, side, of):
        rows, scale = (rows, 1.0) if quantise is None else quantise[of](rows, expert, token)
        y = mm_bf16(rows.contiguous(), side[0](expert).t(), out_dtype=torch.float32)
        return y.mul_(side[1](expert) / scale)

    result = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
    for expert in ids[ids >= 0].unique().tolist():
        token, slot = torch.nonzero(ids == expert, as_tuple=True)
        y = act(product(x[token], expert, token, first, 0)).to(torch.bfloat16)
        result.index_add_(0, token, product(y, expert, token, second, 1).mul_(weights[token, slot].float()[:, None]))
    return result


# ---- 4 and 8 bits ----
def fp4_tiles(who, name, sf, codes, block=16):
    """Scale factors as flat tiles of 128x4, from these or from the view that CuTe kernels take.

    Raises:
        ValueError: another number of them
    """
    import torch

    from ._one_gpu import convert_sf_from_mma_layout

    experts, rows, columns = codes.shape[0], codes.shape[1], codes.shape[2] * 2
    sf = sf.view(torch.uint8)
    flat = convert_sf_from_mma_layout(sf) if sf.dim() == 6 else sf.reshape(-1)
    wanted = experts * -(-rows // 128) * -(-columns // (4 * block)) * 512
    if flat.numel() != wanted:
        raise ValueError(f"{who}: {name} has {flat.numel()} scale factors, but {list(codes.shape)} needs {wanted}, in tiles of 128x4")
    return flat


def fp4_matrix(codes, tiles, expert, block=16):
    """bf16 [rows, columns] of one expert: E2M1 times E4M3 of 16 (NVFP4), or times UE8M0 of 32 (MXFP4)."""
    import torch

    from . import e2m1_and_ufp8sf_scale_to_float

    rows, columns = codes.shape[1], codes.shape[2] * 2
    per = -(-rows // 128) * -(-columns // (4 * block)) * 512
    return e2m1_and_ufp8sf_scale_to_float(codes[expert].contiguous(), tiles[expert * per:(expert + 1) * per], torch.ones(1), block, int(block == 16),
                                          True).to(torch.bfloat16)


def nvfp4_rows(x, scale):
    """bf16 values times block scales of what NVFP4 keeps of x * scale."""
    import torch

    from . import e2m1_and_ufp8sf_scale_to_float, fp4_quantize

    codes, scales = fp4_quantize(x, torch.full((1,), scale), 16, False, False, nvfp4_4over6=None)
    return e2m1_and_ufp8sf_scale_to_float(codes, scales.view(torch.uint8).reshape(-1), torch.ones(1), 16, 1, False).to(torch.bfloat16)


def mxfp8_values(codes, scales):
    """bf16 of e4m3 [..., columns] times UE8M0 [..., columns / 32]."""
    import torch

    factor = (scales.view(torch.uint8).int() << 23).view(torch.float32)
    return (codes.float().unflatten(-1, (-1, 32)) * factor.unsqueeze(-1)).flatten(-2).to(torch.bfloat16)


def mxfp8_rows(x):
    """bf16 values times block scales of what MXFP8 keeps of x."""
    from . import mxfp8_quantize

    codes, scales = mxfp8_quantize(x.contiguous(), False)
    return mxfp8_values(codes, scales.view(x.shape[0], -1))


def mxfp4_rows(x):
    """bf16 values times block scales of what MXFP4 keeps of x."""
    import torch

    from . import SfLayout, e2m1_and_ufp8sf_scale_to_float, mxfp4_quantize

    codes, scales = mxfp4_quantize(x.contiguous(), sfLayout=SfLayout.layout_linear)
    return e2m1_and_ufp8sf_scale_to_float(codes.view(torch.uint8), scales.view(torch.uint8).reshape(-1), torch.ones(1), 32, 0, False).to(torch.bfloat16)
