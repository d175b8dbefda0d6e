# SPDX-License-Identifier: Apache-2.0
"""`cute_dsl_fused_moe` and its kin: mixtures of experts with 4-bit weights in the order of FlashInfer's CuTe-DSL kernels, and the same of bf16.

Gated first weights are interleaved by groups of rows, the linear rows before their gate's. Weights are unpacked in each call (`_expert_loop`).
"""
import math

from . import _moe_api as api
from .tllm_enums import ActivationType

DEFAULT_SWIGLU_ALPHA, DEFAULT_SWIGLU_BETA, DEFAULT_SWIGLU_LIMIT = api.SwiGLU.alpha, api.SwiGLU.beta, api.SwiGLU.limit
SUPPORTED_CUTE_DSL_MOE_ACTIVATION_TYPES = (ActivationType.Swiglu, ActivationType.GegluTanh, ActivationType.Relu2)
_GROUP, _BF16_GROUP = 64, 32  # rows of a half that lie together


def normalize_cute_dsl_moe_activation_type(activation_type):
    """(the ActivationType, whether it has a gate)

    Raises:
        ValueError: none of SUPPORTED_CUTE_DSL_MOE_ACTIVATION_TYPES
    """
    from .tllm_enums import normalize_activation_type

    kind = normalize_activation_type(activation_type)
    if kind not in SUPPORTED_CUTE_DSL_MOE_ACTIVATION_TYPES:
        raise ValueError(f"Unsupported CuTe DSL MoE activation_type {activation_type!r}, it must be one of "
                         + ", ".join(t.name for t in SUPPORTED_CUTE_DSL_MOE_ACTIVATION_TYPES))
    return kind, kind != ActivationType.Relu2


def validate_cute_dsl_moe_swiglu_config(swiglu_alpha, swiglu_beta, swiglu_limit):
    """ValueError for parameters that are no finite numbers, or a limit that is not positive."""
    for name, value, positive in (("swiglu_alpha", swiglu_alpha, False), ("swiglu_beta", swiglu_beta, False), ("swiglu_limit", swiglu_limit, True)):
        if not math.isfinite(value) or positive and value <= 0:
            raise ValueError(f"{name} must be {'positive and ' if positive else ''}finite, got {value!r}")


def validate_cute_dsl_moe_situ_config(activation_type, situ_beta, situ_linear_beta):
    """ValueError for SiTU's parameters with another activation, without situ_beta, or that are not positive and finite."""
    if situ_beta is None and situ_linear_beta is None:
        return
    if activation_type != ActivationType.Swiglu:
        raise ValueError(f"situ_beta and situ_linear_beta require ActivationType.Swiglu, got {activation_type!r}")
    if situ_beta is None:
        raise ValueError("situ_linear_beta requires situ_beta")
    for name, value in (("situ_beta", situ_beta), ("situ_linear_beta", situ_linear_beta)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be positive and finite, got {value!r}")


def _activation(activation_type, alpha, beta, limit, situ_beta, situ_linear_beta):
    """The activation of `_moe_api`."""
    kind, gated = normalize_cute_dsl_moe_activation_type(activation_type)
    validate_cute_dsl_moe_situ_config(kind, situ_beta, situ_linear_beta)
    if kind == ActivationType.Swiglu and situ_beta is None:
        validate_cute_dsl_moe_swiglu_config(alpha, beta, limit)
        return api.SwiGLU(alpha, beta, limit)
    if situ_beta is not None:
        return api.SiTU(situ_beta, situ_linear_beta)
    return api.GeGLUTanh() if gated else api.ReLU2()


def _mode(who, quant_mode):
    mode = {"nvfp4": "w4a4"}.get(quant_mode.lower(), quant_mode.lower())
    if mode not in ("w4a4", "w4a8", "w4a16"):
        raise ValueError(f"{who}: quant_mode must be 'w4a4', 'w4a8' or 'w4a16' (got {quant_mode!r})")
    return mode


def _apart(group):
    """[rows, 2 * columns] whose halves lie by turns in groups, as the linear half and then the gate."""
    def order(y):
        return y.view(len(y), -1, 2, group).transpose(1, 2).reshape(y.shape)
    return order


def _checked(who, **wanted):
    """ValueError for a tensor (tensor, dtype, shape) of another dtype or shape; None is no tensor."""
    for name, (value, dtype, shape) in wanted.items():
        if value is not None and (value.dtype != dtype or tuple(value.shape) != shape):
            raise ValueError(f"{who}: {name} is {value.dtype} of shape {tuple(value.shape)}, but must be {dtype} {list(shape)}")


def _local_experts(who, ids, scales, tokens, num_experts, top_k, num_local, offset):
    """Chosen experts by their place among the local ones, -1 for others; ValueError for wrong ones."""
    import torch

    if ids.shape != (tokens, top_k) or scales.shape != ids.shape:
        raise ValueError(f"{who}: token_selected_experts and token_final_scales are {tuple(ids.shape)} and {tuple(scales.shape)}, but must be {(tokens, top_k)}")
    if num_local < 1 or offset < 0 or offset + num_local > num_experts:
        raise ValueError(f"{who}: local_expert_offset is {offset} and num_local_experts {num_local}, but there are {num_experts} experts")
    ids = ids.long()
    if ids.numel() and int(ids.max()) >= num_experts:
        raise ValueError(f"{who}: token_selected_experts names expert {int(ids.max())}, but there are {num_experts}")
    place = ids - offset
    return torch.where((place >= 0) & (place < num_local), place, -1)


def _input_rows(who, mode, x, x_sf, per_token_scale, hidden):
    """bf16 [tokens, hidden] of the packed rows."""
    import torch

    from . import e2m1_and_ufp8sf_scale_to_float
    from ._expert_loop import mxfp8_values

    tokens = len(x)
    if per_token_scale is not None:
        if mode != "w4a4":
            raise ValueError(f"{who}: per_token_scale is for quant_mode 'w4a4', but quant_mode is {mode!r}")
        _checked(who, per_token_scale=(per_token_scale, torch.float32, (tokens,)))
    if mode == "w4a16":
        if x_sf is not None:
            raise ValueError(f"{who}: x_sf must be None with quant_mode 'w4a16'")
        _checked(who, x=(x, torch.bfloat16, (tokens, hidden)))
        return x
    if x_sf is None:
        raise ValueError(f"{who}: x_sf is required with quant_mode {mode!r}")
    block = 16 if mode == "w4a4" else 32
    x_sf = x_sf.view(torch.uint8)
    if x_sf.numel() != tokens * (hidden // block):
        raise ValueError(f"{who}: x_sf has {x_sf.numel()} scale factors, but [{tokens}, {hidden}] needs {tokens * (hidden // block)}, in plain order")
    if mode == "w4a8":
        _checked(who, x=(x, torch.float8_e4m3fn, (tokens, hidden)))
        return mxfp8_values(x, x_sf.reshape(tokens, -1))
    packed = x.view(torch.uint8)
    _checked(who, x=(packed, torch.uint8, (tokens, hidden // 2)))
    return e2m1_and_ufp8sf_scale_to_float(packed.contiguous(), x_sf.reshape(-1), torch.ones(1), 16, 1, False).to(torch.bfloat16)


def _quantisers(mode, fc2_input_scale, per_token_scale):
    """What `expert_sums` does to the inputs of both products, whose first are rounded already."""
    import torch

    from . import SfLayout, e2m1_and_ufp8sf_scale_to_float, nvfp4_quantize
    from ._expert_loop import mxfp8_rows, nvfp4_rows

    def first(rows, expert, token):
        return rows, 1.0 if per_token_scale is None else 1.0 / per_token_scale[token][:, None]

    def second(rows, expert, token):
        if mode == "w4a8":
            return mxfp8_rows(rows), 1.0
        if per_token_scale is None:
            inner = float(fc2_input_scale.reshape(-1)[expert if fc2_input_scale.numel() > 1 else 0])
            return nvfp4_rows(rows, inner), inner
        codes, sf, scale = nvfp4_quantize(rows.contiguous(), torch.full((1,), 1 / (448 * 6)), sfLayout=SfLayout.layout_linear, per_token_activation=True, nvfp4_4over6=None)
        values = e2m1_and_ufp8sf_scale_to_float(codes, sf.view(torch.uint8).reshape(-1), torch.ones(1), 16, 1, False)
        return values.to(torch.bfloat16), 1.0 / scale.reshape(-1, 1)

    return None if mode == "w4a16" else (first, second)


def cute_dsl_fused_moe(x, x_sf, token_selected_experts, token_final_scales, w1_weight, w1_weight_sf, w1_alpha, fc2_input_scale, w2_weight, w2_weight_sf,
                       w2_alpha, num_experts, top_k, num_local_experts=None, local_expert_offset=0, output_dtype=None, use_fused_finalize=True,
                       moe_output=None, aux_stream=None, enable_pdl=True, activation_type=ActivationType.Swiglu.value, swiglu_alpha=DEFAULT_SWIGLU_ALPHA,
                       swiglu_beta=DEFAULT_SWIGLU_BETA, swiglu_limit=DEFAULT_SWIGLU_LIMIT, situ_beta=None, situ_linear_beta=None, *, quant_mode="w4a4",
                       per_token_scale=None, tactic=None, localized_weights=None, localized_streams=None, localized_sm_count=None,
                       localized_memset_stream=None, localized_allow_nonlocalized=False, autotune_use_cuda_graph=False):
    """y[t] = sum over the experts e of token t: scale[t, e] * w2_alpha[e] * w2[e] act(w1_alpha[e] * w1[e] x[t]).

    Args:
        x: "w4a4": NVFP4, uint8 [tokens, hidden / 2]; "w4a8": MXFP8, e4m3 [tokens, hidden]; "w4a16": bfloat16 [tokens, hidden]
        x_sf: scale factors of x in plain order; None with "w4a16"
        token_selected_experts: integers [tokens, top_k] of all num_experts; a negative one, or one that is not local, is skipped
        token_final_scales: [tokens, top_k]
        w1_weight: uint8 [experts, 2 * intermediate, hidden / 2], linear rows and their gate's by turns in groups of 64; ReLU2: one half, in plain order
        w2_weight: uint8 [experts, hidden, intermediate / 2]
        w1_weight_sf, w2_weight_sf: block scales (e4m3 of 16; "w4a8": UE8M0 of 32) in tiles of 128x4, as `convert_sf_to_mma_layout` views them or flat
        w1_alpha, w2_alpha: float32 [experts]
        fc2_input_scale: "w4a4": what act() is multiplied by before it is quantised; not read with per_token_scale
        moe_output: bfloat16 [tokens, hidden]; made when absent
        activation_type: Swiglu (SiTU with situ_beta), GegluTanh or Relu2
        per_token_scale: "w4a4": float32 [tokens], what the rows of x are multiplied by; act() is then quantised row by row too, each with a
            scale of its own

    Returns:
        bfloat16 [tokens, hidden]; streams, tactics, shards of the weights and the order of sums are for GPUs and change nothing

    Raises:
        ValueError: shapes, dtypes or values other than these
    """
    import torch

    from ._expert_loop import activated, expert_sums, fp4_matrix, fp4_tiles

    who, local = "cute_dsl_fused_moe", num_experts if num_local_experts is None else num_local_experts
    mode, activation = _mode(who, quant_mode), _activation(activation_type, swiglu_alpha, swiglu_beta, swiglu_limit, situ_beta, situ_linear_beta)
    if output_dtype not in (None, torch.bfloat16):
        raise ValueError(f"{who}: output_dtype is {output_dtype}, but must be torch.bfloat16")
    if (fc2_input_scale is None) == (mode == "w4a4"):
        raise ValueError(f"{who}: fc2_input_scale {'is required' if mode == 'w4a4' else 'must be None'} with quant_mode {mode!r}")
    if w1_weight.dim() != 3 or w2_weight.dim() != 3:
        raise ValueError(f"{who}: w1_weight and w2_weight are {tuple(w1_weight.shape)} and {tuple(w2_weight.shape)}, but must have three dimensions")
    w1, w2 = w1_weight.view(torch.uint8), w2_weight.view(torch.uint8)
    hidden, width, block = w2.shape[1], w2.shape[2] * 2, 32 if mode == "w4a8" else 16
    _checked(who, w1_weight=(w1, torch.uint8, (local, width * (1 + activation.is_gated), hidden // 2)), w2_weight=(w2, torch.uint8, (local, hidden, width // 2)),
             w1_alpha=(w1_alpha, torch.float32, (local,)), w2_alpha=(w2_alpha, torch.float32, (local,)), moe_output=(moe_output, torch.bfloat16, (len(x), hidden)))
    if activation.is_gated and width % _GROUP or hidden % block or width % block:
        raise ValueError(f"{who}: hidden_size is {hidden} and intermediate_size {width}, but must be multiples of {block} and {_GROUP}")
    rows = _input_rows(who, mode, x, x_sf, per_token_scale, hidden)
    ids = _local_experts(who, token_selected_experts, token_final_scales, len(rows), num_experts, top_k, local, local_expert_offset)
    first, second = (fp4_tiles(who, name, sf, w, block) for name, sf, w in (("w1_weight_sf", w1_weight_sf, w1), ("w2_weight_sf", w2_weight_sf, w2)))
    apart = _apart(_GROUP) if activation.is_gated else lambda y: y
    result = expert_sums(rows, ids, token_final_scales, (lambda e: fp4_matrix(w1, first, e, block), lambda e: float(w1_alpha[e])),
                         lambda y: activated(apart(y), activation), (lambda e: fp4_matrix(w2, second, e, block), lambda e: float(w2_alpha[e])),
                         _quantisers(mode, fc2_input_scale, per_token_scale)).to(torch.bfloat16)
    return result if moe_output is None else moe_output.copy_(result)


def cute_dsl_fused_moe_nvfp4(x, x_sf, token_selected_experts, token_final_scales, w1_weight, w1_weight_sf, w1_alpha, fc2_input_scale, w2_weight, w2_weight_sf,
                             w2_alpha, num_experts, top_k, num_local_experts=None, local_expert_offset=0, output_dtype=None, use_fused_finalize=True,
                             moe_output=None, aux_stream=None, enable_pdl=True, activation_type=ActivationType.Swiglu.value,
                             swiglu_alpha=DEFAULT_SWIGLU_ALPHA, swiglu_beta=DEFAULT_SWIGLU_BETA, swiglu_limit=DEFAULT_SWIGLU_LIMIT, situ_beta=None,
                             situ_linear_beta=None, *, quant_mode="w4a4", per_token_scale=None, localized_weights=None, localized_streams=None,
                             localized_sm_count=None, localized_memset_stream=None, localized_allow_nonlocalized=False, autotune_use_cuda_graph=False):
    """`cute_dsl_fused_moe` of NVFP4 weights: quant_mode "w4a4" ("nvfp4") or "w4a16".

    Raises:
        ValueError: another quant_mode, and as `cute_dsl_fused_moe`
    """
    if _mode("cute_dsl_fused_moe_nvfp4", quant_mode) == "w4a8":
        raise ValueError("cute_dsl_fused_moe_nvfp4: quant_mode must be 'w4a4' or 'w4a16' (got 'w4a8')")
    return cute_dsl_fused_moe(x, x_sf, token_selected_experts, token_final_scales, w1_weight, w1_weight_sf, w1_alpha, fc2_input_scale, w2_weight, w2_weight_sf,
                              w2_alpha, num_experts, top_k, num_local_experts, local_expert_offset, output_dtype, use_fused_finalize, moe_output, aux_stream,
                              enable_pdl, activation_type, swiglu_alpha, swiglu_beta, swiglu_limit, situ_beta, situ_linear_beta, quant_mode=quant_mode,
                              per_token_scale=per_token_scale)


def cute_dsl_fused_moe_mxfp8_mxfp4(x, x_sf, token_selected_experts, token_final_scales, w1_weight, w1_weight_sf, w1_alpha, w2_weight, w2_weight_sf, w2_alpha,
                                   num_experts, top_k, num_local_experts=None, local_expert_offset=0, moe_output=None, aux_stream=None, tactic=None,
                                   enable_pdl=True, activation_type=ActivationType.Swiglu.value, swiglu_alpha=DEFAULT_SWIGLU_ALPHA,
                                   swiglu_beta=DEFAULT_SWIGLU_BETA, swiglu_limit=DEFAULT_SWIGLU_LIMIT):
    """`cute_dsl_fused_moe` with quant_mode "w4a8"."""
    return cute_dsl_fused_moe(x, x_sf, token_selected_experts, token_final_scales, w1_weight, w1_weight_sf, w1_alpha, None, w2_weight, w2_weight_sf, w2_alpha,
                              num_experts, top_k, num_local_experts, local_expert_offset, moe_output=moe_output, activation_type=activation_type,
                              swiglu_alpha=swiglu_alpha, swiglu_beta=swiglu_beta, swiglu_limit=swiglu_limit, quant_mode="w4a8")


def cute_dsl_fused_moe_bf16(x, token_selected_experts, token_final_scales, w1_weight, w2_weight, num_experts, top_k, num_local_experts=None,
                            local_expert_offset=0, use_fused_finalize=True, moe_output=None, enable_pdl=True, activation_type=ActivationType.Swiglu.value,
                            swiglu_alpha=DEFAULT_SWIGLU_ALPHA, swiglu_beta=DEFAULT_SWIGLU_BETA, swiglu_limit=DEFAULT_SWIGLU_LIMIT, situ_beta=None,
                            situ_linear_beta=None, *, intermediate_buffer=None, tactic=None):
    """y[t] = sum over the experts e of token t: scale[t, e] * w2[e] act(w1[e] x[t]).

    Args:
        x: bfloat16 [tokens, hidden]
        w1_weight: bfloat16 [experts, 2 * intermediate, hidden], linear rows and their gate's by turns in groups of 32; ReLU2: one half, in plain order
        w2_weight: bfloat16 [experts, hidden, intermediate]
        others: as of `cute_dsl_fused_moe`

    Returns:
        bfloat16 [tokens, hidden]

    Raises:
        ValueError: shapes, dtypes or values other than these
    """
    import torch

    from ._expert_loop import activated, expert_sums

    who, local = "cute_dsl_fused_moe_bf16", num_experts if num_local_experts is None else num_local_experts
    activation = _activation(activation_type, swiglu_alpha, swiglu_beta, swiglu_limit, situ_beta, situ_linear_beta)
    hidden, width = w2_weight.shape[1:] if w2_weight.dim() == 3 else (0, 0)
    _checked(who, x=(x, torch.bfloat16, (len(x), hidden)), w1_weight=(w1_weight, torch.bfloat16, (local, width * (1 + activation.is_gated), hidden)),
             w2_weight=(w2_weight, torch.bfloat16, (local, hidden, width)), moe_output=(moe_output, torch.bfloat16, (len(x), hidden)))
    if activation.is_gated and width % _BF16_GROUP:
        raise ValueError(f"{who}: intermediate_size is {width}, but must be a multiple of {_BF16_GROUP}")
    ids = _local_experts(who, token_selected_experts, token_final_scales, len(x), num_experts, top_k, local, local_expert_offset)
    apart = _apart(_BF16_GROUP) if activation.is_gated else lambda y: y
    result = expert_sums(x, ids, token_final_scales, (lambda e: w1_weight[e], lambda e: 1.0), lambda y: activated(apart(y), activation),
                         (lambda e: w2_weight[e], lambda e: 1.0)).to(torch.bfloat16)
    return result if moe_output is None else moe_output.copy_(result)


class _Wrapper:
    """Keeps what does not change between calls of a function."""
    _function, _kept = None, ()

    def _keep(self, values):
        for name, value in values.items():
            if name != "self":
                setattr(self, name, value)
        kind, self.gated = normalize_cute_dsl_moe_activation_type(self.activation_type)
        self.activation_type = kind
        self.num_local_experts = self.num_local_experts or self.num_experts
        validate_cute_dsl_moe_situ_config(kind, getattr(self, "situ_beta", None), getattr(self, "situ_linear_beta", None))

    def _run(self, w2_weight, hidden, width, **arguments):
        if tuple(w2_weight.shape[1:]) != (hidden, width):
            raise ValueError(f"{type(self).__name__}: w2_weight is {tuple(w2_weight.shape)}, but the wrapper was made for hidden_size {self.hidden_size} and "
                             f"intermediate_size {self.intermediate_size}")
        kept = {name: getattr(self, name) for name in ("num_experts", "top_k", "num_local_experts", "local_expert_offset", *self._kept)}
        return type(self)._function(w2_weight=w2_weight, activation_type=int(self.activation_type), **kept, **arguments)

    def get_valid_tactics(self):
        """[0]: there is one way to compute a call."""
        return [0]


_SWIGLU = ("swiglu_alpha", "swiglu_beta", "swiglu_limit")


class CuteDslMoEWrapper(_Wrapper):
    """`cute_dsl_fused_moe` for one layer: sizes, activation and quant_mode are kept. Every `run` can be captured by torch; nothing is kept between calls.

    Raises:
        ValueError: another quant_mode or activation; of `run`: as the function
    """
    _function, _kept = staticmethod(cute_dsl_fused_moe), (*_SWIGLU, "situ_beta", "situ_linear_beta", "quant_mode")

    def __init__(self, num_experts, top_k, hidden_size, intermediate_size, use_cuda_graph=False, max_num_tokens=None, num_local_experts=None,
                 local_expert_offset=0, tile_size=128, sf_vec_size=16, output_dtype=None, device="cuda", enable_pdl=True,
                 activation_type=ActivationType.Swiglu.value, swiglu_alpha=DEFAULT_SWIGLU_ALPHA, swiglu_beta=DEFAULT_SWIGLU_BETA,
                 swiglu_limit=DEFAULT_SWIGLU_LIMIT, situ_beta=None, situ_linear_beta=None, use_fused_finalize=True, quant_mode="w4a4"):
        self._keep({**locals(), "quant_mode": _mode("CuteDslMoEWrapper", quant_mode)})

    def run(self, x, x_sf, token_selected_experts, token_final_scales, w1_weight, w1_weight_sf, w1_alpha, fc2_input_scale, w2_weight, w2_weight_sf, w2_alpha,
            tactic=None, *, per_token_scale=None):
        """bfloat16 [tokens, hidden]"""
        return self._run(w2_weight, self.hidden_size, self.intermediate_size // 2, x=x, x_sf=x_sf, token_selected_experts=token_selected_experts,
                         token_final_scales=token_final_scales, w1_weight=w1_weight, w1_weight_sf=w1_weight_sf, w1_alpha=w1_alpha,
                         fc2_input_scale=fc2_input_scale, w2_weight_sf=w2_weight_sf, w2_alpha=w2_alpha, output_dtype=self.output_dtype,
                         per_token_scale=per_token_scale)


class CuteDslMxfp8Mxfp4MoEWrapper(_Wrapper):
    """`cute_dsl_fused_moe_mxfp8_mxfp4` for one layer."""
    _function, _kept = staticmethod(cute_dsl_fused_moe_mxfp8_mxfp4), _SWIGLU

    def __init__(self, num_experts, top_k, hidden_size, intermediate_size, max_num_tokens=None, num_local_experts=None, local_expert_offset=0,
                 use_cuda_graph=False, device="cuda", enable_pdl=True, activation_type=ActivationType.Swiglu.value, swiglu_alpha=DEFAULT_SWIGLU_ALPHA,
                 swiglu_beta=DEFAULT_SWIGLU_BETA, swiglu_limit=DEFAULT_SWIGLU_LIMIT):
        self._keep(locals())

    def run(self, x, x_sf, token_selected_experts, token_final_scales, w1_weight, w1_weight_sf, w1_alpha, w2_weight, w2_weight_sf, w2_alpha, tactic=None):
        """bfloat16 [tokens, hidden]"""
        return self._run(w2_weight, self.hidden_size, self.intermediate_size // 2, x=x, x_sf=x_sf, token_selected_experts=token_selected_experts,
                         token_final_scales=token_final_scales, w1_weight=w1_weight, w1_weight_sf=w1_weight_sf, w1_alpha=w1_alpha,
                         w2_weight_sf=w2_weight_sf, w2_alpha=w2_alpha)


class CuteDslBf16MoEWrapper(_Wrapper):
    """`cute_dsl_fused_moe_bf16` for one layer."""
    _function, _kept = staticmethod(cute_dsl_fused_moe_bf16), (*_SWIGLU, "situ_beta", "situ_linear_beta")

    def __init__(self, num_experts, top_k, hidden_size, intermediate_size, num_local_experts=None, local_expert_offset=0, output_dtype=None, enable_pdl=True,
                 use_fused_finalize=True, activation_type=ActivationType.Swiglu.value, swiglu_alpha=DEFAULT_SWIGLU_ALPHA,
                 swiglu_beta=DEFAULT_SWIGLU_BETA, swiglu_limit=DEFAULT_SWIGLU_LIMIT, situ_beta=None, situ_linear_beta=None):
        self._keep(locals())

    def run(self, x, token_selected_experts, token_final_scales, w1_weight, w2_weight, tactic=None, moe_output=None, intermediate_buffer=None):
        """bfloat16 [tokens, hidden]"""
        return self._run(w2_weight, self.hidden_size, self.intermediate_size, x=x, token_selected_experts=token_selected_experts,
                         token_final_scales=token_final_scales, w1_weight=w1_weight, moe_output=moe_output)
