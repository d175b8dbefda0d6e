# SPDX-License-Identifier: Apache-2.0
"""Quantised weights for `cutlass_fused_moe`, made from bf16: `prepare_cutlass_*_weights`. Views have the matrices of both products in plain
order and `quant_scales` as the op takes them. Weights are as in `_moe_prepare`; global scales of NVFP4 are 1."""

from . import _moe_api as api
from ._moe_prepare import _blocks, _checked, _encode, _mxfp8

_F = api.QuantFormat


def _stacked(parts):
    import torch

    return torch.stack([p.view(torch.uint8) for p in parts]).view(parts[0].dtype)


def _each(w1, w2, device, quantise):
    """(codes, scales) of both weights, of [experts, ...]."""
    made = []
    for w in (w1, w2):
        pairs = [quantise(m.contiguous()) for m in w.to(device)]
        made += [_stacked([p[0] for p in pairs]), _stacked([p[1] for p in pairs])]
    return made


def _view(w1, w2, quant_scales):
    return {"fc1_expert_weights": w1, "fc2_expert_weights": w2, "quant_scales": quant_scales}


def _tiles(m, codes, scales, block):
    """Codes, and scale bytes in tiles of 128x4."""
    from . import block_scale_interleave

    rows, columns = -(-m.shape[0] // 128) * 128, -(-(m.shape[1] // block) // 4) * 4
    return codes, block_scale_interleave(scales.contiguous()).view(rows, columns)


def _mxfp4(m):
    import torch

    from . import SfLayout, mxfp4_quantize

    codes, scales = mxfp4_quantize(m, sfLayout=SfLayout.layout_linear)
    return codes, scales.view(torch.uint8).view(m.shape[0], -1)


def _one(w):
    import torch

    return torch.ones(1, dtype=torch.float32, device=w.device)


def prepare_cutlass_nvfp4_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation=None, device=None):
    """NVFP4 weights; inputs as of `prepare_trtllm_fp4_activations`.

    Raises:
        ValueError: other shapes or dtypes; a hidden_size that is no multiple of 64, or an intermediate_size that is none of 16
    """
    import torch

    from . import fp4_quantize

    name = "prepare_cutlass_nvfp4_weights"
    _checked(name, w1_bf16, w2_bf16, None, (), num_local_experts, hidden_size, intermediate_size, activation, 16)
    if hidden_size % 64:
        raise ValueError(f"{name}: hidden_size is {hidden_size}, but must be a multiple of 64")

    def quantise(m):
        codes, scales = fp4_quantize(m, torch.ones(1), 16, False, False, nvfp4_4over6=None)
        return _tiles(m, codes, scales.view(torch.uint8).view(m.shape[0], -1), 16)

    w1, s1, w2, s2 = _each(w1_bf16, w2_bf16, device, quantise)
    one = _one(w1)
    return _view(w1, w2, [one, s1, one, one, s2, one])


def prepare_cutlass_mxfp8_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation=None, device=None):
    """MXFP8 weights; inputs as of `prepare_cutlass_mxfp8_activations`.

    Raises:
        ValueError: other shapes or dtypes; sizes that are no multiples of 32
    """
    _checked("prepare_cutlass_mxfp8_weights", w1_bf16, w2_bf16, None, (), num_local_experts, hidden_size, intermediate_size, activation, 32)
    w1, s1, w2, s2 = _each(w1_bf16, w2_bf16, device, lambda m: _tiles(m, *_mxfp8(m)[:2], 32))
    return _view(w1, w2, [s1, _one(w1), s2, _one(w1)])


def prepare_cutlass_mxfp8_activations(hidden_states_bf16):
    """(e4m3 [t, h], uint8 [t, h / 32] of ue8m0)"""
    return _mxfp8(hidden_states_bf16)[:2]


def prepare_cutlass_mxfp8_mxfp4_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation=None, device=None):
    """MXFP4 weights for MXFP8 inputs (`prepare_trtllm_fp4_activations`).

    Raises:
        ValueError: other shapes or dtypes; sizes that are no multiples of 32
    """
    _checked("prepare_cutlass_mxfp8_mxfp4_weights", w1_bf16, w2_bf16, None, (), num_local_experts, hidden_size, intermediate_size, activation, 32)
    w1, s1, w2, s2 = _each(w1_bf16, w2_bf16, device, lambda m: _tiles(m, *_mxfp4(m), 32))
    return _view(w1, w2, [s1, _one(w1), s2, _one(w1)])


def prepare_cutlass_w4a16_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation=None, device=None):
    """MXFP4 weights for bf16 inputs.

    Raises:
        ValueError: other shapes or dtypes; sizes that are no multiples of 32
    """
    _checked("prepare_cutlass_w4a16_weights", w1_bf16, w2_bf16, None, (), num_local_experts, hidden_size, intermediate_size, activation, 32)
    w1, s1, w2, s2 = _each(w1_bf16, w2_bf16, device, _mxfp4)
    return _view(w1, w2, [s1, s2])


def _int4(m, group):
    """(two codes a byte, the first in the low half, in two's complement; bf16 scales of `group` columns: their largest magnitude / 7)"""
    import torch

    blocks = m.float().view(m.shape[0], -1, group)
    scales = (blocks.abs().amax(-1) / 7).bfloat16()
    codes = torch.where(scales[..., None] > 0, blocks / scales[..., None].float(), 0).round().clamp(-8, 7).to(torch.int8).view(m.shape).view(torch.uint8) & 15
    return codes[:, ::2] | codes[:, 1::2] << 4, scales


def prepare_cutlass_w4a8_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation=None, device=None):
    """INT4 weights with scales of 128 columns; inputs are bf16, and become e4m3 in the call as they are (all their scales are 1).

    Raises:
        ValueError: other shapes or dtypes; sizes that are no multiples of 128
    """
    import torch

    _checked("prepare_cutlass_w4a8_weights", w1_bf16, w2_bf16, None, (), num_local_experts, hidden_size, intermediate_size, activation, 128)
    w1, s1, w2, s2 = _each(w1_bf16, w2_bf16, device, lambda m: _int4(m, 128))
    one, none = _one(w1), torch.empty(0, dtype=torch.bfloat16, device=w1.device)
    return _view(w1, w2, [s1, s2, one, one, none, none, one, one])


def prepare_cutlass_fp8_block_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation=None, device=None):
    """FP8 with scales of 128 x 128; inputs are bf16, and quantised by the call.

    Raises:
        ValueError: other shapes or dtypes; sizes that are no multiples of 128
    """
    import torch

    _checked("prepare_cutlass_fp8_block_weights", w1_bf16, w2_bf16, None, (), num_local_experts, hidden_size, intermediate_size, activation, 128)
    made = []
    for w in (w1_bf16, w2_bf16):
        pairs = [_blocks(m) for m in w.to(device)]
        made += [_stacked([p[0] for p in pairs]), torch.stack([p[1] for p in pairs])]
    return _view(made[0], made[2], [made[1], made[3]])


def prepare_cutlass_fp8_per_tensor_weights(w1_bf16, w2_bf16, *, hidden_states_scale_global, intermediate_scale_global, num_local_experts, hidden_size,
                                           intermediate_size, activation=None, device=None):
    """FP8 with a scale for each expert; inputs as of `prepare_trtllm_fp8_per_tensor_activations`, activations multiplied by
    intermediate_scale_global before they become e4m3.

    Raises:
        ValueError: other shapes or dtypes
    """
    import torch

    _checked("prepare_cutlass_fp8_per_tensor_weights", w1_bf16, w2_bf16, None, (), num_local_experts, hidden_size, intermediate_size, activation, 16)
    x, inner, made = float(hidden_states_scale_global), float(intermediate_scale_global), []
    for w in (w1_bf16, w2_bf16):
        encodes = [_encode(m, 448.0) for m in w]
        made.append(_stacked([(m.float() * e).clamp(-448, 448).to(torch.float8_e4m3fn) for m, e in zip(w.to(device), encodes)]))
        made.append(1 / torch.tensor(encodes, dtype=torch.float32, device=made[0].device))
    w1, first, w2, second = made
    scales = {"fc1_dequant_scale": first / x, "fc2_act_quant_scale": _one(w1) * inner, "fc2_dequant_scale": second / inner, "fc1_act_dequant_scale": _one(w1) / x}
    return {**_view(w1, w2, [*scales.values()]), **scales}
