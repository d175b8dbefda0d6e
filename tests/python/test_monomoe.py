# SPDX-License-Identifier: Apache-2.0
"""mono_moe against a loop in double precision over what FP8 keeps of weights, inputs and activations."""
import pytest
import torch

from flashinfer.fused_moe import alloc_scratchpad, get_scratchpad_size_bytes, has_monomoe, interleave_for_tma_wgmma_up, mono_moe

TOKENS, HIDDEN, WIDTH, EXPERTS = 5, 256, 128, 6


def blocks(w):
    """(codes, scales, values in double precision) of blocks of 128 x 128."""
    e, n, k = w.shape
    tiles = w.view(e, n // 128, 128, k // 128, 128)
    scales = tiles.abs().amax((2, 4)) / 448
    codes = (tiles / scales[:, :, None, :, None]).reshape(w.shape).to(torch.float8_e4m3fn)
    return codes, scales, (codes.double().view(tiles.shape) * scales.double()[:, :, None, :, None]).view(w.shape)


def kept(x):
    """What FP8 keeps of a row."""
    groups = x.view(-1, 128)
    scale = (groups.abs().amax(1, keepdim=True) / 448).float()
    return ((groups / scale).float().to(torch.float8_e4m3fn).double() * scale.double()).view(-1)


def reference(x, logits, up, down, top_k, scoring, renormalize):
    out = torch.zeros(x.shape, dtype=torch.float64)
    for t in range(len(x)):
        scores = logits[t].double().softmax(0) if scoring == "softmax" else logits[t].double().sigmoid()
        chosen = sorted(range(EXPERTS), key=lambda e: (-float(logits[t, e]), e))[:top_k]
        total = sum(float(scores[e]) for e in chosen) if renormalize else 1.0
        for e in chosen:
            gate, linear = (up[e] @ kept(x[t].double())).chunk(2)
            inner = float(scores[e]) / total * torch.nn.functional.silu(gate) * linear
            out[t] += down[e] @ kept(inner.bfloat16().double())
    return out


@pytest.fixture(scope="module")
def problem():
    g = torch.Generator().manual_seed(3)
    x, logits = torch.randn(TOKENS, HIDDEN, generator=g).bfloat16(), torch.randn(TOKENS, EXPERTS, generator=g).bfloat16()
    logits[:, 4] = logits[:, 1]  # equal scores: the smaller id first
    logits[2, 3] = 9.0
    return x, logits, blocks(torch.randn(EXPERTS, 2 * WIDTH, HIDDEN, generator=g) / 8), blocks(torch.randn(EXPERTS, HIDDEN, WIDTH, generator=g) / 8)


@pytest.mark.parametrize("top_k, scoring, renormalize", [(1, "softmax", True), (3, "softmax", False), (3, "sigmoid", True), (6, "sigmoid", False)])
def test_the_sum_over_experts(problem, top_k, scoring, renormalize):
    x, logits, up, down = problem
    want = reference(x, logits, up[2], down[2], top_k, scoring, renormalize)
    out = torch.empty_like(x)
    got = mono_moe(x, logits, *up[:2], *down[:2], top_k, scoring, renormalize, out=out, scratchpad=alloc_scratchpad(x.device))
    assert got is out and (got.double() - want).norm() <= 0.02 * want.norm()
    assert torch.equal(mono_moe(x, logits, interleave_for_tma_wgmma_up(up[0]), up[1], *down[:2], top_k, scoring, renormalize, interleave_up=False), got)


def test_rows_of_gate_and_up_alternate_by_eight():
    w = torch.arange(2 * 128 * 3).view(2, 128, 3)
    made = interleave_for_tma_wgmma_up(w)
    for e in range(2):
        for piece in range(8):
            assert torch.equal(made[e, 16 * piece:16 * piece + 8], w[e, 8 * piece:8 * piece + 8])
            assert torch.equal(made[e, 16 * piece + 8:16 * piece + 16], w[e, 64 + 8 * piece:64 + 8 * piece + 8])


def test_what_programs_ask():
    assert has_monomoe() and get_scratchpad_size_bytes() == 0 and alloc_scratchpad("cpu").numel() == 0


def test_errors_name_the_argument(problem):
    x, logits, up, down = problem
    for change, text in (({"top_k": 7}, r"top_k is 7, but must be within \[1, 6\]"), ({"scoring_func": "tanh"}, "scoring_func is 'tanh'"),
                         ({"activations_in": x.float()}, r"activations_in is torch.float32 of shape \(5, 256\), but must be torch.bfloat16"),
                         ({"expert_scales_up": up[1][:, :1]}, "expert_scales_up is")):
        arguments = dict(activations_in=x, router_logits=logits, expert_weights_up=up[0], expert_scales_up=up[1], expert_weights_down=down[0],
                         expert_scales_down=down[1], top_k=2) | change
        with pytest.raises(ValueError, match=text):
            mono_moe(**arguments)
    with pytest.raises(ValueError, match="96 rows an expert, but must have a multiple of 128"):
        interleave_for_tma_wgmma_up(torch.zeros(1, 96, 8))
