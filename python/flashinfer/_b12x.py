# SPDX-License-Identifier: Apache-2.0
"""b12x_fused_moe: a mixture of experts with NVFP4 weights and bf16 inputs, which the call quantises or leaves as they are.

The weights are unpacked in each call (`_expert_loop`), so programs that serve from a CPU choose `cutlass_fused_moe`, whose kernels read FP4.
"""
import math

_GATED = ("silu", "gelu_tanh", "swigluoai_uninterleave")
_ACTIVATIONS = (*_GATED, "relu2")


def get_b12x_activation_name(activation_type):
    """The name that `b12x_fused_moe` takes of a `tllm_enums.ActivationType`. ValueError for one that it does not have."""
    from .tllm_enums import ActivationType

    name = {ActivationType.Swiglu: "silu", ActivationType.GegluTanh: "gelu_tanh", ActivationType.Relu2: "relu2"}.get(activation_type)
    if name is None:
        raise ValueError(f"Unsupported b12x activation type: {activation_type!r}")
    return name


def _mode(who, quant_mode, activation_precision, source_format):
    """"nvfp4" or "w4a16"."""
    if activation_precision not in ("fp4", "bf16"):
        raise ValueError(f"{who}: activation_precision is {activation_precision!r}, but must be 'fp4' or 'bf16'")
    mode = quant_mode or {"fp4": "nvfp4", "bf16": "w4a16"}[activation_precision]
    if mode not in ("nvfp4", "w4a4", "w4a16", "mxfp4"):
        raise ValueError(f"{who}: quant_mode is {quant_mode!r}, but must be 'nvfp4', 'w4a4', 'w4a16' or 'mxfp4'")
    if mode == "mxfp4":
        raise NotImplementedError(f"{who}: quant_mode 'mxfp4' is not available; cutlass_fused_moe with use_mxfp8_act_scaling takes MXFP4 weights")
    if source_format != "modelopt":
        raise NotImplementedError(f"{who}: source_format {source_format!r} is not available: pass w1_alpha and w2_alpha as factors of the products, 'modelopt'")
    return "w4a16" if mode == "w4a16" else "nvfp4"


def _checked(who, x, w1, w2, ids, scales, alphas, num_local, top_k, activation, output, output_dtype):
    import torch

    if activation not in _ACTIVATIONS:
        raise ValueError(f"{who}: activation is {activation!r}, but must be one of {_ACTIVATIONS}")
    if output_dtype != torch.bfloat16:
        raise ValueError(f"{who}: output_dtype is {output_dtype}, but must be torch.bfloat16")
    tokens, hidden = x.shape if x.dim() == 2 else (0, 0)
    width = w2.shape[2] * 2 if w2.dim() == 3 else 0
    rows = width * (2 if activation in _GATED else 1)
    wanted = [("x", x, torch.bfloat16, (tokens, hidden)), ("w1_weight", w1, torch.uint8, (num_local, rows, hidden // 2)),
              ("w2_weight", w2, torch.uint8, (num_local, hidden, width // 2)), ("token_selected_experts", ids, ids.dtype, (tokens, top_k)),
              ("token_final_scales", scales, scales.dtype, (tokens, top_k)), ("output", output, torch.bfloat16, (tokens, hidden))]
    wanted += [(name, a, torch.float32, (num_local,)) for name, a in zip(("w1_alpha", "w2_alpha"), alphas)]
    for name, value, dtype, shape in wanted:
        if value is not None and (value.dtype != dtype or tuple(value.shape) != shape):
            raise ValueError(f"{who}: {name} is {value.dtype} of shape {tuple(value.shape)}, but must be {dtype} {list(shape)}")
    if hidden % 16 or width % 16:
        raise ValueError(f"{who}: hidden_size is {hidden} and intermediate_size {width}, but must be multiples of 16")
    return width


def _activated(y, width, activation, alpha, beta, limit):
    import torch

    if activation == "relu2":
        return y.relu_().square_()
    linear, gate = y[:, :width], y[:, width:]
    if activation == "silu":
        return torch.nn.functional.silu(gate) * linear
    if activation == "gelu_tanh":
        return torch.nn.functional.gelu(gate, approximate="tanh") * linear
    most = math.inf if limit is None else limit
    gate, linear = gate.clamp(max=most), linear.clamp(-most, most)
    return gate * torch.sigmoid(alpha * gate) * (linear + beta)


def b12x_fused_moe(x, w1_weight, w1_weight_sf, w2_weight, w2_weight_sf, token_selected_experts, token_final_scales, num_experts, top_k, *, w1_alpha, w2_alpha,
                   fc2_input_scale=None, input_global_scale=None, num_local_experts=None, expert_map=None, output=None, output_dtype=None, activation="silu",
                   swiglu_alpha=1.702, swiglu_beta=1.0, swiglu_limit=None, activation_precision="fp4", quant_mode=None, source_format="modelopt"):
    """y[t] = sum over the experts e of token t: scale[t, e] * w2_alpha[e] * w2[e] act(w1_alpha[e] * w1[e] x[t]).

    Args:
        x: bfloat16 [tokens, hidden], hidden a multiple of 16
        w1_weight: uint8 [experts, 2 * intermediate, hidden / 2], two values of NVFP4 a byte: the linear half, then the gate; "relu2": one half
        w2_weight: uint8 [experts, hidden, intermediate / 2]
        w1_weight_sf, w2_weight_sf: e4m3 block scales in tiles of 128x4, each expert's by themselves, as `convert_sf_to_mma_layout` views them or flat
        token_selected_experts: integers [tokens, top_k]; a negative one is skipped
        token_final_scales: [tokens, top_k]
        w1_alpha, w2_alpha: float32 [experts]
        fc2_input_scale: what act() is multiplied by before it is quantised; needed for "nvfp4", nothing else reads it
        input_global_scale: the same of x, one number or one for each of num_experts; 1 when absent
        num_local_experts, expert_map: with "w4a16": weights of some experts only, int32 [num_experts], the place of each or -1: skipped
        output: bfloat16 [tokens, hidden]; made when absent
        activation: "silu", "gelu_tanh", "relu2", or "swigluoai_uninterleave": gate * sigmoid(swiglu_alpha * gate) * (linear + swiglu_beta), gate at
            most swiglu_limit and linear within +-swiglu_limit
        quant_mode: "nvfp4" ("w4a4"): inputs of both products are quantised to NVFP4; "w4a16": they stay bf16. activation_precision, "fp4" or
            "bf16", is an older name of it

    Returns:
        bfloat16 [tokens, hidden]

    Raises:
        ValueError: shapes, dtypes or values other than these
        NotImplementedError: quant_mode "mxfp4", another source_format
    """
    import torch

    from ._expert_loop import expert_sums, fp4_matrix, fp4_tiles, nvfp4_rows

    who = "b12x_fused_moe"
    mode = _mode(who, quant_mode, activation_precision, source_format)
    local = num_experts if num_local_experts is None else num_local_experts
    if (local != num_experts or expert_map is not None) and (mode != "w4a16" or expert_map is None):
        raise ValueError(f"{who}: num_local_experts is {local} of {num_experts}, which needs quant_mode='w4a16' and expert_map")
    if mode == "nvfp4" and fc2_input_scale is None:
        raise ValueError(f"{who}: fc2_input_scale is required for quant_mode='nvfp4'")
    width = _checked(who, x, w1_weight, w2_weight, token_selected_experts, token_final_scales, (w1_alpha, w2_alpha), local, top_k, activation, output,
                     torch.bfloat16 if output_dtype is None else output_dtype)
    ids = token_selected_experts.long()
    if ids.numel() and int(ids.max()) >= num_experts:
        raise ValueError(f"{who}: token_selected_experts names expert {int(ids.max())}, but there are {num_experts}")
    if expert_map is not None:
        if expert_map.shape != (num_experts,) or expert_map.numel() and int(expert_map.max()) >= local:
            raise ValueError(f"{who}: expert_map must be [{num_experts}] of places below {local}")
        ids = torch.where(ids >= 0, expert_map.long()[ids.clamp(min=0)], -1)
    tiles = [fp4_tiles(who, name, sf, w) for name, sf, w in (("w1_weight_sf", w1_weight_sf, w1_weight), ("w2_weight_sf", w2_weight_sf, w2_weight))]
    def of_input(rows, expert, token):
        given = None if input_global_scale is None else input_global_scale.reshape(-1)
        scale = 1.0 if given is None else float(given[expert if given.numel() > 1 else 0])
        return nvfp4_rows(rows, scale), scale

    def of_activation(rows, expert, token):
        inner = float(fc2_input_scale.reshape(-1)[expert if fc2_input_scale.numel() > 1 else 0])
        return nvfp4_rows(rows, inner), inner

    result = expert_sums(x, ids, token_final_scales, (lambda e: fp4_matrix(w1_weight, tiles[0], e), lambda e: float(w1_alpha[e])),
                         lambda y: _activated(y, width, activation, swiglu_alpha, swiglu_beta, swiglu_limit),
                         (lambda e: fp4_matrix(w2_weight, tiles[1], e), lambda e: float(w2_alpha[e])), (of_input, of_activation) if mode == "nvfp4" else None)
    result = result.to(torch.bfloat16)
    return result if output is None else output.copy_(result)


class B12xMoEWrapper:
    """`b12x_fused_moe` with fixed sizes; arguments are as there. use_cuda_graph, max_num_tokens, device and the shared_* buffers belong to GPU
    kernels; `run` raises ValueError for tensors of other sizes."""

    def __init__(self, num_experts, top_k, hidden_size, intermediate_size, *, use_cuda_graph=False, max_num_tokens=4096, num_local_experts=None, expert_map=None,
                 output_dtype=None, device="cuda", activation="silu", swiglu_alpha=1.702, swiglu_beta=1.0, swiglu_limit=None, activation_precision="fp4",
                 quant_mode=None, source_format="modelopt", shared_static_workspace=None, shared_dynamic_workspace=None, shared_output=None):
        _mode("B12xMoEWrapper", quant_mode, activation_precision, source_format)
        if activation not in _ACTIVATIONS:
            raise ValueError(f"B12xMoEWrapper: activation is {activation!r}, but must be one of {_ACTIVATIONS}")
        self.num_experts, self.top_k, self.hidden_size, self.intermediate_size = num_experts, top_k, hidden_size, intermediate_size
        self._fixed = dict(num_local_experts=num_local_experts, expert_map=expert_map, output_dtype=output_dtype, activation=activation,
                           swiglu_alpha=swiglu_alpha, swiglu_beta=swiglu_beta, swiglu_limit=swiglu_limit, activation_precision=activation_precision,
                           quant_mode=quant_mode, source_format=source_format)

    def run(self, x, w1_weight, w1_weight_sf, w2_weight, w2_weight_sf, token_selected_experts, token_final_scales, *, w1_alpha, w2_alpha, fc2_input_scale=None,
            input_global_scale=None):
        """bfloat16 [tokens, hidden_size]"""
        if x.shape[-1] != self.hidden_size or w2_weight.shape[-1] * 2 != self.intermediate_size:
            raise ValueError(f"B12xMoEWrapper: hidden_size is {x.shape[-1]} and intermediate_size {w2_weight.shape[-1] * 2}, but the wrapper was made for "
                             f"{self.hidden_size} and {self.intermediate_size}")
        return b12x_fused_moe(x, w1_weight, w1_weight_sf, w2_weight, w2_weight_sf, token_selected_experts, token_final_scales, self.num_experts, self.top_k,
                              w1_alpha=w1_alpha, w2_alpha=w2_alpha, fc2_input_scale=fc2_input_scale, input_global_scale=input_global_scale, **self._fixed)


def prepare_b12x_nvfp4_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation="silu", device=None):
    """The weights of `b12x_fused_moe` from bf16 [experts, 2 * intermediate ("relu2": intermediate), hidden] and [experts, hidden, intermediate];
    global scales are 1.

    Raises:
        ValueError: other shapes, dtypes or activations
    """
    import torch

    from . import fp4_quantize
    from ._one_gpu import convert_sf_to_mma_layout

    who = "prepare_b12x_nvfp4_weights"
    if activation not in _ACTIVATIONS:
        raise ValueError(f"{who}: activation is {activation!r}, but must be one of {_ACTIVATIONS}")
    rows, made = intermediate_size * (2 if activation in _GATED else 1), {}
    for name, w, shape in (("w1", w1_bf16, (num_local_experts, rows, hidden_size)), ("w2", w2_bf16, (num_local_experts, hidden_size, intermediate_size))):
        if w.dtype != torch.bfloat16 or tuple(w.shape) != shape:
            raise ValueError(f"{who}: {name}_bf16 is {w.dtype} of shape {tuple(w.shape)}, but must be torch.bfloat16 {list(shape)}")
        parts = [fp4_quantize(m.contiguous(), torch.ones(1), 16, False, True, nvfp4_4over6=None) for m in w.to(device)]
        scales = torch.cat([p[1].view(torch.uint8).reshape(-1) for p in parts])
        made[f"{name}_weight"] = torch.stack([p[0].view(torch.uint8) for p in parts])
        made[f"{name}_weight_sf"] = convert_sf_to_mma_layout(scales, shape[1], shape[2], num_local_experts)
        made[f"{name}_alpha"] = torch.ones(num_local_experts, device=w.device if device is None else device)
    return {**made, "fc2_input_scale": torch.ones(1, device=made["w1_weight"].device)}


def prepare_b12x_w4a16_weights(w1_fp4, w1_blockscale, w1_global_scale, w2_fp4, w2_blockscale, w2_global_scale, *, activation, source_format="modelopt"):
    """The weights of `b12x_fused_moe(quant_mode="w4a16")` from a checkpoint's: uint8 codes [experts, rows, columns / 2], e4m3 block scales
    [experts, rows, columns / 16] in plain order, and float32 [experts] factors."""
    import torch

    from . import block_scale_interleave
    from ._one_gpu import convert_sf_to_mma_layout

    who = "prepare_b12x_w4a16_weights"
    _mode(who, "w4a16", "bf16", source_format)
    if activation not in _ACTIVATIONS:
        raise ValueError(f"{who}: activation is {activation!r}, but must be one of {_ACTIVATIONS}")
    made = {}
    for name, codes, scales, factor in (("w1", w1_fp4, w1_blockscale, w1_global_scale), ("w2", w2_fp4, w2_blockscale, w2_global_scale)):
        experts, rows, half = codes.shape
        if tuple(scales.shape) != (experts, rows, half // 8):
            raise ValueError(f"{who}: {name}_blockscale has shape {tuple(scales.shape)}, but must be {[experts, rows, half // 8]}")
        tiles = torch.cat([block_scale_interleave(s.view(torch.uint8).contiguous()).reshape(-1) for s in scales])
        made |= {f"{name}_weight": codes, f"{name}_weight_sf": convert_sf_to_mma_layout(tiles, rows, half * 2, experts),
                 f"{name}_alpha": factor.reshape(-1).float().expand(experts).contiguous()}
    return made
