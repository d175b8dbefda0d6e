# SPDX-License-Identifier: Apache-2.0
"""Weights and inputs of MoELayer's quantised back ends, made from bf16: `prepare_trtllm_*_weights` and `prepare_trtllm_*_activations`.

Weights are [experts, 2 * intermediate, hidden] (the linear half, then the gate; one half where there is no gate) and [experts, hidden,
intermediate]. Each expert's matrices are quantised by themselves, for FP8 by tensor with the scale 448 / (its largest magnitude). Global scales of NVFP4 are 1, as FlashInfer's.
"""

from . import _moe_api as api

_F = api.QuantFormat


def _checked(name, w1, w2, quant, pairs, experts, hidden, intermediate, activation, step):
    if quant is not None and quant.pair not in pairs:
        raise ValueError(f"{name}: quant is {quant}, but weight and activation must be one of {', '.join(f'{a.name} and {b.name}' for a, b in pairs)}")
    api._checked_weights(name, ValueError, w1, w2, experts, hidden, intermediate, activation)
    for what, n in (("hidden_size", hidden), ("intermediate_size", intermediate)):
        if n % step:
            raise ValueError(f"{name}: {what} is {n}, but must be a multiple of {step}")


def _ordered(cache, codes, scales, gated, first):
    """Codes uint8 [rows, bytes] and scales [rows, blocks] in the order of GPU kernels, scales in tiles of 128x4."""
    from . import _layouts, block_scale_interleave

    order = _layouts._maybe_get_cached_w3_w1_permute_indices if first else _layouts.get_w2_permute_indices_with_cache
    rows = order(cache, codes, 128, is_gated_act_gemm=gated)
    if scales is None:
        return codes[rows], None
    tiles = block_scale_interleave(scales[rows].contiguous())
    return codes[rows], tiles.view(scales.shape) if tiles.numel() == scales.numel() else tiles.flatten()


def _each(w1, w2, activation, device, cache, quantise):
    """Both weights through `quantise`(matrix) -> (codes, scales, dtype of the codes, global scale), in order: the view, and the global
    scales of both."""
    import torch

    gated, cache, made, globals_ = activation is None or activation.is_gated, {} if cache is None else cache, {}, []
    for name, w in (("gemm1", w1), ("gemm2", w2)):
        parts, encodes = [], []
        for matrix in w.to(device):
            codes, scales, dtype, encode = quantise(matrix.contiguous())
            codes, scales = _ordered(cache, codes.view(torch.uint8), scales, gated, name == "gemm1")
            parts.append((codes.view(dtype), scales))
            encodes.append(encode)
        made[name + "_weights"] = torch.stack([p[0].view(torch.uint8) for p in parts]).view(parts[0][0].dtype)
        if parts[0][1] is not None:
            made[name + "_weights_scale"] = torch.stack([p[1] for p in parts])
        globals_.append(torch.tensor(encodes, dtype=torch.float32, device=w1.device if device is None else device))
    return made, globals_


def _encode(matrix, most):
    """The factor that brings the largest magnitude to `most`; 1 for zeros."""
    amax = float(matrix.abs().max()) if matrix.numel() else 0.0
    return most / amax if amax > 0 else 1.0


def _fp4(weight):
    import torch

    from . import SfLayout, fp4_quantize, mxfp4_quantize

    def nvfp4(m):
        codes, scales = fp4_quantize(m, torch.ones(1), 16, False, False, nvfp4_4over6=None)
        return codes, scales.view(torch.uint8).view(m.shape[0], -1), torch.uint8, 1.0

    def mxfp4(m):
        codes, scales = mxfp4_quantize(m, sfLayout=SfLayout.layout_linear)
        return codes, scales.view(torch.uint8).view(m.shape[0], -1), torch.uint8, 1.0

    return nvfp4 if weight == _F.NVFP4 else mxfp4


def _mxfp8(m):
    import torch

    from . import mxfp8_quantize

    codes, scales = mxfp8_quantize(m, False)
    return codes, scales.view(torch.uint8).view(m.shape[0], -1), torch.float8_e4m3fn, 1.0


FP4_PAIRS = (_F.NVFP4, _F.NVFP4), (_F.MXFP4, _F.MXFP8), (_F.MXFP4, _F.BF16)
FP8_BLOCK_PAIRS = (_F.DeepSeekFp8, _F.DeepSeekFp8), (_F.MXFP8, _F.MXFP8)


def prepare_trtllm_fp4_weights(w1_bf16, w2_bf16, *, quant, num_local_experts, hidden_size, intermediate_size, activation=None, device=None, permute_cache=None):
    """The view of `trtllm_fp4_block_scale_routed_moe` for NVFP4 weights and inputs, or MXFP4 weights with MXFP8 or bf16 inputs.

    Raises:
        ValueError: other formats, shapes or dtypes; sizes that are no multiples of 32
    """
    _checked("prepare_trtllm_fp4_weights", w1_bf16, w2_bf16, quant, FP4_PAIRS, num_local_experts, hidden_size, intermediate_size, activation, 32)
    view, (first, second) = _each(w1_bf16, w2_bf16, activation, device, permute_cache, _fp4(quant.weight))
    if quant.weight == _F.NVFP4:
        view.update(output1_scale_scalar=1 / first, output1_scale_gate_scalar=1 / first, output2_scale_scalar=1 / second)
    return view


def prepare_trtllm_fp4_activations(hidden_states_bf16, *, quant):
    """(rows, scales): uint8 [t, h / 2] and e4m3 [t, h / 16] for NVFP4, e4m3 [t, h] and [t, h / 32] of ue8m0 bytes for MXFP8, the rows and None for bf16.

    Raises:
        ValueError: other formats
    """
    import torch

    from . import SfLayout, nvfp4_quantize

    if quant.pair not in FP4_PAIRS:
        raise ValueError(f"prepare_trtllm_fp4_activations: quant is {quant}, but must be one of MoELayer's FP4 formats")
    x = hidden_states_bf16
    if quant.activation == _F.BF16:
        return x, None
    if quant.activation == _F.MXFP8:
        codes, scales = _mxfp8(x)[:2]
    else:
        codes, scales = nvfp4_quantize(x, torch.ones(1, device=x.device), sfLayout=SfLayout.layout_linear, nvfp4_4over6=None)
    return codes, scales.view(torch.float8_e4m3fn).view(x.shape[0], -1)


def _blocks(m):
    """Codes and scales of 128 x 128 blocks."""
    import torch

    blocks = m.float().view(m.shape[0] // 128, 128, m.shape[1] // 128, 128)
    scales = blocks.abs().amax((1, 3)).clamp(min=1e-4) / 448
    return (blocks / scales[:, None, :, None]).clamp(-448, 448).view(m.shape).to(torch.float8_e4m3fn), scales


def prepare_trtllm_fp8_block_weights(w1_bf16, w2_bf16, *, quant, num_local_experts, hidden_size, intermediate_size, activation=None, device=None):
    """The view of `trtllm_fp8_block_scale_routed_moe`: MXFP8, reordered; or blocks of 128 x 128 (DeepSeekFp8), in plain order.

    Raises:
        ValueError: other formats, shapes or dtypes; sizes that are no multiples of 128
    """
    import torch

    _checked("prepare_trtllm_fp8_block_weights", w1_bf16, w2_bf16, quant, FP8_BLOCK_PAIRS, num_local_experts, hidden_size, intermediate_size, activation, 128)
    if quant.weight == _F.MXFP8:
        return _each(w1_bf16, w2_bf16, activation, device, None, _mxfp8)[0]
    view = {}
    for name, w in (("gemm1", w1_bf16), ("gemm2", w2_bf16)):
        parts = [_blocks(m) for m in w.to(device)]
        view[name + "_weights"] = torch.stack([p[0].view(torch.uint8) for p in parts]).view(torch.float8_e4m3fn)
        view[name + "_weights_scale"] = torch.stack([p[1] for p in parts])
    return view


def prepare_trtllm_fp8_block_activations(hidden_states_bf16, *, quant):
    """(e4m3 [t, h], scales): float32 [h / 128, t] for DeepSeekFp8, uint8 [t, h / 32] for MXFP8.

    Raises:
        ValueError: other formats; h is no multiple of 128
    """
    import torch

    x = hidden_states_bf16
    if quant.pair not in FP8_BLOCK_PAIRS or x.shape[1] % 128:
        raise ValueError(f"prepare_trtllm_fp8_block_activations: quant is {quant} and hidden_states_bf16 has {x.shape[1]} columns, but must be one of MoELayer's "
                         "formats of FP8 blocks and a multiple of 128")
    if quant.activation == _F.MXFP8:
        return _mxfp8(x)[:2]
    groups = x.float().view(x.shape[0], -1, 128)
    scales = groups.abs().amax(2).clamp(min=1e-4) / 448
    return (groups / scales[:, :, None]).clamp(-448, 448).view(x.shape).to(torch.float8_e4m3fn), scales.T.contiguous()


def prepare_trtllm_fp8_per_tensor_weights(w1_bf16, w2_bf16, *, hidden_states_scale_global, intermediate_scale_global, num_local_experts, hidden_size,
                                          intermediate_size, activation=None, device=None):
    """The view of `trtllm_fp8_per_tensor_scale_routed_moe`; the two scales are what inputs and activations are multiplied by before they become e4m3.

    Raises:
        ValueError: other shapes or dtypes; sizes that are no multiples of 32
    """
    import torch

    _checked("prepare_trtllm_fp8_per_tensor_weights", w1_bf16, w2_bf16, None, (), num_local_experts, hidden_size, intermediate_size, activation, 32)

    def quantise(m):
        encode = _encode(m, 448.0)
        return (m.float() * encode).clamp(-448, 448).to(torch.float8_e4m3fn), None, torch.float8_e4m3fn, encode

    view, (first, second) = _each(w1_bf16, w2_bf16, activation, device, None, quantise)
    x, inner = float(hidden_states_scale_global), float(intermediate_scale_global)
    view.update(output1_scales_gate_scalar=1 / (x * first), output1_scales_scalar=inner / (x * first), output2_scales_scalar=1 / (inner * second))
    return view


def prepare_trtllm_fp8_per_tensor_activations(hidden_states_bf16, *, hidden_states_scale_global):
    """(e4m3 of the rows times the scale, None)"""
    import torch

    return (hidden_states_bf16.float() * float(hidden_states_scale_global)).clamp(-448, 448).to(torch.float8_e4m3fn), None


def prepare_trtllm_mxint4_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation=None, device=None, permute_cache=None):
    """The view of `trtllm_mxint4_block_scale_routed_moe`: blocks of 32 with the bf16 scale amax / 7.

    Raises:
        ValueError: other shapes or dtypes; sizes that are no multiples of 32
    """
    import torch

    _checked("prepare_trtllm_mxint4_weights", w1_bf16, w2_bf16, None, (), num_local_experts, hidden_size, intermediate_size, activation, 32)

    def quantise(m):
        blocks = m.float().view(m.shape[0], -1, 32)
        scales = (blocks.abs().amax(2) / 7).bfloat16()
        codes = (blocks / torch.where(scales == 0, 1, scales.float())[:, :, None]).round().clamp(-8, 7).to(torch.int8).view(m.shape) & 15
        return (codes[:, ::2] | codes[:, 1::2] << 4).view(torch.uint8), scales, torch.uint8, 1.0

    return _each(w1_bf16, w2_bf16, activation, device, permute_cache, quantise)[0]


def prepare_trtllm_bf16_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation=None, device=None, permute_cache=None):
    """`TrtllmBf16Config.prepare_weights`"""
    return api.TrtllmBf16Config.prepare_weights(w1_bf16, w2_bf16, num_local_experts=num_local_experts, hidden_size=hidden_size,
                                                intermediate_size=intermediate_size, activation=activation, device=device, permute_cache=permute_cache)


def prepare_cutlass_bf16_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation=None, device=None):
    """`CutlassBf16Config.prepare_weights`"""
    return api.CutlassBf16Config.prepare_weights(w1_bf16, w2_bf16, num_local_experts=num_local_experts, hidden_size=hidden_size,
                                                 intermediate_size=intermediate_size, activation=activation, device=device)
