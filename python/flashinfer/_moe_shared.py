# SPDX-License-Identifier: Apache-2.0
"""Back ends of MoELayer that compute with the ops, and weights, of another: cuDNN Frost's (those of Cutlass*), Prims-TS's (those of Trtllm*), CuTe-DSL's."""
from . import _moe_api as api
from . import _moe_prepare, _moe_prepare_cutlass
from ._moe_runners import (CutlassBf16Runner, CutlassMxfp8Mxfp4Runner, CutlassMxfp8Runner, CutlassNvfp4Runner, MoERunner, QuantisedRunner, TrtllmBf16RoutedRunner,
                           TrtllmFp4RoutedRunner)

_F = api.QuantFormat
_CUTE_PAIRS = (_F.NVFP4, _F.NVFP4), (_F.MXFP4, _F.MXFP8), (_F.NVFP4, _F.BF16)


def _bf16_activations(hidden_states_bf16, *, quant=None):
    """(the rows, None)"""
    return hidden_states_bf16.contiguous(), None


def _mxfp8_activations(hidden_states_bf16, *, quant=None):
    """(e4m3 rows, scales of 32)"""
    return _moe_prepare._mxfp8(hidden_states_bf16)[:2]


def _config(name, key, doc, prepare, activations=None):
    members = {"runner": key, "prepare_weights": staticmethod(prepare), "__doc__": doc, "__module__": __name__, "__annotations__": {}}
    if activations is not None:
        members["prepare_activations"] = staticmethod(activations)
    return api._value(type(name, (api._Backend,), members))


def _nvfp4_activations(hidden_states_bf16, *, quant=api.QuantConfig(_F.NVFP4, _F.NVFP4)):
    """`prepare_trtllm_fp4_activations`"""
    return _moe_prepare.prepare_trtllm_fp4_activations(hidden_states_bf16, quant=quant)


CudnnFrostBf16Config = _config("CudnnFrostBf16Config", "cudnn_frost_bf16", "As `CutlassBf16Config`, whose weights it takes too.",
                               _moe_prepare.prepare_cutlass_bf16_weights, _bf16_activations)
CudnnFrostMxfp8Config = _config("CudnnFrostMxfp8Config", "cudnn_frost_mxfp8", "As `CutlassMxfp8Config`, whose weights it takes too.",
                                _moe_prepare_cutlass.prepare_cutlass_mxfp8_weights, _mxfp8_activations)
CudnnFrostMxfp8Mxfp4Config = _config("CudnnFrostMxfp8Mxfp4Config", "cudnn_frost_mxfp8_mxfp4", "As `CutlassMxfp8Mxfp4Config`, whose weights it takes too.",
                                     _moe_prepare_cutlass.prepare_cutlass_mxfp8_mxfp4_weights, _mxfp8_activations)
CudnnFrostNvfp4Config = _config("CudnnFrostNvfp4Config", "cudnn_frost_nvfp4", "As `CutlassNvfp4Config`, whose weights it takes too.",
                                _moe_prepare_cutlass.prepare_cutlass_nvfp4_weights, _nvfp4_activations)


def _frost(name, base, key):
    return type(name, (base,), {"backend_key": key, "also": (base.backend_key,), "__doc__": f"`{base.__name__}` under another key.", "__module__": __name__})


CudnnFrostBf16Runner = _frost("CudnnFrostBf16Runner", CutlassBf16Runner, "cudnn_frost_bf16")
CudnnFrostMxfp8Runner = _frost("CudnnFrostMxfp8Runner", CutlassMxfp8Runner, "cudnn_frost_mxfp8")
CudnnFrostMxfp8Mxfp4Runner = _frost("CudnnFrostMxfp8Mxfp4Runner", CutlassMxfp8Mxfp4Runner, "cudnn_frost_mxfp8_mxfp4")
CudnnFrostNvfp4Runner = _frost("CudnnFrostNvfp4Runner", CutlassNvfp4Runner, "cudnn_frost_nvfp4")


# ---- Prims-TS ----
def _prims_ts_pair(quant, who):
    if quant.pair not in ((_F.BF16, _F.BF16), (_F.NVFP4, _F.NVFP4)):
        raise ValueError(f"{who}: quant is {quant}, but weight and activation must be BF16 both, or NVFP4 both")
    return quant.weight == _F.BF16


def _prims_ts_weights(w1_bf16, w2_bf16, *, quant, **sizes):
    """The weights of `TrtllmBf16Config` or of `TrtllmFp4Config`, by `quant`. ValueError: other formats."""
    if _prims_ts_pair(quant, "PrimsTsConfig.prepare_weights"):
        return api.TrtllmBf16Config.prepare_weights(w1_bf16, w2_bf16, **sizes)
    return _moe_prepare.prepare_trtllm_fp4_weights(w1_bf16, w2_bf16, quant=quant, **sizes)


def _prims_ts_activations(hidden_states_bf16, *, quant):
    """(rows, None) or NVFP4, by `quant`. ValueError: other formats."""
    if _prims_ts_pair(quant, "PrimsTsConfig.prepare_activations"):
        return hidden_states_bf16, None
    return _nvfp4_activations(hidden_states_bf16, quant=quant)


PrimsTsConfig = _config("PrimsTsConfig", "prims_ts", "As `TrtllmBf16Config` or, of NVFP4 both, `TrtllmFp4Config`.", _prims_ts_weights, _prims_ts_activations)


class PrimsTsRunner(MoERunner):
    """`TrtllmBf16RoutedRunner` or `TrtllmFp4RoutedRunner`, by the configuration."""
    backend_key = "prims_ts"

    def __new__(cls, config):
        return cls._of(config)(config)

    @staticmethod
    def _of(config):
        return _PrimsTsFp4 if config.quant.weight == _F.NVFP4 else _PrimsTsBf16

    @classmethod
    def why_not(cls, config):
        return cls._of(config).why_not(config)


class _PrimsTsBf16(TrtllmBf16RoutedRunner):
    backend_key = "prims_ts"


class _PrimsTsFp4(TrtllmFp4RoutedRunner):
    backend_key, pairs = "prims_ts", ((_F.NVFP4, _F.NVFP4),)


# ---- CuTe-DSL ----
def _tiles(scales):
    """Plain scale bytes [rows, blocks] in tiles of 128x4, flat."""
    from . import block_scale_interleave

    return block_scale_interleave(scales.contiguous()).reshape(-1)


def prepare_cute_dsl_weights(w1_bf16, w2_bf16, *, quant=api.QuantConfig(_F.NVFP4, _F.NVFP4), num_local_experts, hidden_size, intermediate_size, activation=None,
                             device=None, nvfp4_4over6=None):
    """The weights of `cute_dsl_fused_moe` from bf16 [experts, 2 * intermediate (linear, then the gate; one half without a gate), hidden] and [experts,
    hidden, intermediate]: NVFP4 (inputs NVFP4 or bf16), or MXFP4 (inputs MXFP8). Global scales are 1.

    Raises:
        ValueError: other formats, shapes or dtypes; sizes that are no multiples of 64
        NotImplementedError: nvfp4_4over6
    """
    import torch

    from ._one_gpu import convert_sf_to_mma_layout

    who = "prepare_cute_dsl_weights"
    if nvfp4_4over6 is not None:
        raise NotImplementedError(f"{who}: nvfp4_4over6 is not available; FLASHINFER_NVFP4_4OVER6 counts")
    _moe_prepare._checked(who, w1_bf16, w2_bf16, quant, _CUTE_PAIRS, num_local_experts, hidden_size, intermediate_size, activation, 64)
    gated, quantise, made = activation is None or activation.is_gated, _moe_prepare._fp4(quant.weight), {}
    for name, w in (("w1", w1_bf16), ("w2", w2_bf16)):
        if name == "w1" and gated:
            w = w.unflatten(1, (2, -1, 64)).transpose(1, 2).reshape(w.shape)
        parts = [quantise(m.contiguous())[:2] for m in w.to(device)]
        tiles = torch.cat([_tiles(scales) for _, scales in parts])
        made |= {f"{name}_weight": torch.stack([codes.view(torch.uint8) for codes, _ in parts]),
                 f"{name}_weight_sf": convert_sf_to_mma_layout(tiles, w.shape[1], w.shape[2], len(w), 16 if quant.weight == _F.NVFP4 else 32),
                 f"{name}_alpha": torch.ones(len(w), device=tiles.device)}
    if quant.pair == (_F.NVFP4, _F.NVFP4):
        made["fc2_input_scale"] = torch.ones(1, device=made["w1_alpha"].device)
    return made


CuteDslConfig = _config("CuteDslConfig", "cute_dsl", "`cute_dsl_fused_moe`: NVFP4 weights with NVFP4 or bf16 inputs, or MXFP4 weights with MXFP8 inputs.",
                        prepare_cute_dsl_weights)


class CuteDslRunner(QuantisedRunner):
    """`cute_dsl_fused_moe`."""
    backend_key, pairs, takes = "cute_dsl", _CUTE_PAIRS, ("per_token_scale",)

    @classmethod
    def why_not(cls, config):
        if not config.finalize.do_finalize:
            return "it requires do_finalize=True"
        if not isinstance(config.activation, (api.SwiGLU, api.SiTU, api.GeGLUTanh, api.ReLU2)):
            return f"{type(config.activation).__name__} is not available, only SwiGLU, SiTU, GeGLUTanh and ReLU2"
        return super().why_not(config)

    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        """[tokens, hidden] of bf16. Inputs: the pack of activations, experts, their weights, the view."""
        from ._cute_dsl_moe import cute_dsl_fused_moe
        from .tllm_enums import ActivationType

        (pack, ids, scales, view), a = inputs, self.config.activation
        kind, options = a.type, {}
        if isinstance(a, api.SiTU):
            kind, options = ActivationType.Swiglu, {"situ_beta": a.gate_scale, "situ_linear_beta": a.linear_scale}
        elif isinstance(a, api.SwiGLU):
            options = {"swiglu_alpha": a.alpha, "swiglu_beta": a.beta, "swiglu_limit": a.limit}
        mode = {_F.NVFP4: "w4a4", _F.MXFP8: "w4a8", _F.BF16: "w4a16"}[self.config.quant.activation]
        return cute_dsl_fused_moe(pack.hidden_states_q, pack.hidden_states_scale, ids, scales, num_experts=self.config.routing.num_experts,
                                  top_k=self.config.routing.top_k, num_local_experts=self.num_local, local_expert_offset=self.config.experts.local_expert_offset,
                                  activation_type=int(kind), quant_mode=mode, per_token_scale=pack.per_token_scale,
                                  fc2_input_scale=view.get("fc2_input_scale"), **{k: v for k, v in view.items() if k != "fc2_input_scale"}, **options)


CuteDslNvfp4Runner = CuteDslRunner

RUNNERS = {CudnnFrostBf16Config: CudnnFrostBf16Runner, CudnnFrostMxfp8Config: CudnnFrostMxfp8Runner, CudnnFrostMxfp8Mxfp4Config: CudnnFrostMxfp8Mxfp4Runner,
           CudnnFrostNvfp4Config: CudnnFrostNvfp4Runner, PrimsTsConfig: PrimsTsRunner, CuteDslConfig: CuteDslRunner}
