# SPDX-License-Identifier: Apache-2.0
"""mono_moe: a mixture of experts with FP8 weights in blocks and bf16 inputs that the call quantises, for few tokens.

FlashInfer's is one kernel for one shape; this is any shape, of the products of `moe_gemm_fp8_nt_groupwise`, which read the weights of
chosen experts alone.
"""
from ._support import on_cpu

_BLOCK = 128
_SLAB = 64  # gate rows that `interleave_for_tma_wgmma_up` puts beside as many of up
_PIECE = 8  # rows of one of the two that follow each other


def get_scratchpad_size_bytes():
    """0: `mono_moe` takes no memory of the caller's."""
    return 0


def alloc_scratchpad(device):
    """uint8 [0] on `device`."""
    import torch

    return torch.zeros(get_scratchpad_size_bytes(), dtype=torch.uint8, device=device)


def _pieces(w):
    """(experts, pieces of eight rows in one of the halves, k)."""
    experts, rows, k = w.shape
    if rows % (2 * _SLAB):
        raise ValueError(f"interleave_for_tma_wgmma_up: w_fp8 has {rows} rows an expert, but must have a multiple of {2 * _SLAB}")
    return experts, rows // 2 // _PIECE, k


def interleave_for_tma_wgmma_up(w_fp8):
    """[experts, 2 n, k], n rows of gate and n of up: eight rows of each in turns. n is a multiple of 64."""
    experts, pieces, k = _pieces(w_fp8)
    return w_fp8.view(experts, 2, pieces, _PIECE, k).transpose(1, 2).reshape(w_fp8.shape)


def _plain(w):
    experts, pieces, k = _pieces(w)
    return w.view(experts, pieces, 2, _PIECE, k).transpose(1, 2).reshape(w.shape)


def _check(x, logits, up, up_scales, down, down_scales, top_k, scoring_func, out):
    import torch

    who = "mono_moe"
    if scoring_func not in ("softmax", "sigmoid"):
        raise ValueError(f"{who}: scoring_func is {scoring_func!r}, but must be 'softmax' or 'sigmoid'")
    tokens, hidden = x.shape if x.dim() == 2 else (0, 0)
    experts, _, width = down.shape if down.dim() == 3 else (0, 0, 0)
    for name, n in (("hidden", hidden), ("intermediate", width)):
        if n == 0 or n % _BLOCK:
            raise ValueError(f"{who}: {name} is {n}, but must be a multiple of {_BLOCK}")
    if not 1 <= top_k <= experts:
        raise ValueError(f"{who}: top_k is {top_k}, but must be within [1, {experts}]")
    fp8, f32 = torch.float8_e4m3fn, torch.float32
    for name, value, dtype, shape in (("activations_in", x, torch.bfloat16, (tokens, hidden)), ("router_logits", logits, torch.bfloat16, (tokens, experts)),
                                      ("expert_weights_up", up, fp8, (experts, 2 * width, hidden)),
                                      ("expert_scales_up", up_scales, f32, (experts, 2 * width // _BLOCK, hidden // _BLOCK)),
                                      ("expert_weights_down", down, fp8, (experts, hidden, width)),
                                      ("expert_scales_down", down_scales, f32, (experts, hidden // _BLOCK, width // _BLOCK)),
                                      ("out", out, torch.bfloat16, (tokens, hidden))):
        if value is not None and (value.dtype != dtype or tuple(value.shape) != shape):
            raise ValueError(f"{who}: {name} is {value.dtype} of shape {tuple(value.shape)}, but must be {dtype} {list(shape)}")


def _product(x, weights, scales, counts):
    """Each expert's rows of x, quantised in groups of 128, times its matrix: bf16. `counts`: rows of each expert."""
    import torch

    from . import moe_gemm_fp8_nt_groupwise, per_token_group_quant_8bit

    experts, device = len(counts), x.device
    codes, x_scales = per_token_group_quant_8bit(x, _BLOCK, dst_dtype=torch.float8_e4m3fn)
    indptr = torch.zeros(experts + 1, dtype=torch.int32, device=device)
    indptr[1:] = counts.cumsum(0)
    padding = (indptr[:-1] + 3 * torch.arange(experts, device=device)) // 4 * 4 - indptr[:-1]  # an expert's scales begin at a multiple of 4
    columns = torch.arange(len(x), device=device) + padding.repeat_interleave(counts)
    spread = torch.zeros(x_scales.shape[1], (len(x) + 3 * experts) // 4 * 4, device=device)
    spread[:, columns] = x_scales.t()
    return moe_gemm_fp8_nt_groupwise(codes, weights, spread, scales.transpose(1, 2).contiguous(), indptr)


@on_cpu()
def mono_moe(activations_in, router_logits, expert_weights_up, expert_scales_up, expert_weights_down, expert_scales_down, top_k, scoring_func="softmax",
             renormalize=True, out=None, scratchpad=None, interleave_up=True):
    """y[t] = sum over the top_k experts e of token t: down[e] q(w[t, e] * silu(gate[e] q(x[t])) * (up[e] q(x[t]))); q() rounds to FP8 with one scale for
    128 elements.

    Args:
        activations_in: bfloat16 [tokens, hidden], hidden a multiple of 128
        router_logits: bfloat16 [tokens, experts]
        expert_weights_up: float8_e4m3fn [experts, 2 * intermediate, hidden]: gate, then up
        expert_scales_up: float32 [experts, 2 * intermediate / 128, hidden / 128]
        expert_weights_down: float8_e4m3fn [experts, hidden, intermediate]
        expert_scales_down: float32 [experts, hidden / 128, intermediate / 128]
        top_k: experts of a token, ties to the smaller id
        scoring_func: "softmax" over all experts or "sigmoid"
        renormalize: the weights of a token are divided by their sum
        out: bfloat16 [tokens, hidden]; made when absent
        scratchpad: of a GPU kernel; nothing here
        interleave_up: False: expert_weights_up is what `interleave_for_tma_wgmma_up` returned, and is put back in each call

    Returns:
        bfloat16 [tokens, hidden]

    Raises:
        ValueError: shapes, dtypes or values other than these
    """
    import torch

    _check(activations_in, router_logits, expert_weights_up, expert_scales_up, expert_weights_down, expert_scales_down, top_k, scoring_func, out)
    tokens, hidden = activations_in.shape
    experts, width = expert_weights_down.shape[0], expert_weights_down.shape[2]
    logits = router_logits.float()
    scores = torch.softmax(logits, -1) if scoring_func == "softmax" else torch.sigmoid(logits)
    weights, ids = (x[:, :top_k] for x in scores.sort(dim=-1, descending=True, stable=True))
    if renormalize:
        weights = weights / weights.sum(-1, keepdim=True).clamp_(min=1e-12)
    order = ids.flatten().argsort(stable=True)
    rows = order // top_k
    counts = torch.bincount(ids.flatten(), minlength=experts)
    up = expert_weights_up if interleave_up else _plain(expert_weights_up)
    raw = _product(activations_in[rows], up, expert_scales_up, counts).float()
    inner = weights.flatten()[order, None] * torch.nn.functional.silu(raw[:, :width]) * raw[:, width:]
    made = _product(inner.to(torch.bfloat16), expert_weights_down, expert_scales_down, counts)
    total = torch.zeros(tokens, hidden, dtype=torch.float32, device=made.device).index_add_(0, rows, made.float())
    return total.to(torch.bfloat16) if out is None else out.copy_(total)
