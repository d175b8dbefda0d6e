# SPDX-License-Identifier: Apache-2.0
"""The back ends of MoELayer: which layers each computes, and the op that it calls."""
from . import _moe_api as api
from . import _moe_prepare
from .autotuner import TunableRunner
from .tllm_enums import RoutingMethodType


class MoERunner(TunableRunner):
    """One back end for one configuration. Inputs: rows, experts, their weights, then the tensors of the back end's view."""
    backend_key = None
    also = ()  # keys of other back ends whose weights are the same
    view = ()

    def __init__(self, config):
        self.config = config
        self.num_local = config.experts.local_num_experts or config.routing.num_experts

    @classmethod
    def why_not(cls, config):
        """Why this back end does not compute such a layer; empty: it does."""
        if config.quant.pair != (api.QuantFormat.BF16, api.QuantFormat.BF16) or config.quant.output != api.QuantFormat.BF16:
            return "only BF16 weights, inputs and results are available, not " + ", ".join(
                f.name for f in (config.quant.weight, config.quant.activation, config.quant.output))
        if not config.finalize.do_finalize:
            return "BF16 requires do_finalize=True"
        if config.experts.num_fused_shared_experts:
            return "num_fused_shared_experts is not available"
        return ""

    def is_ready(self, weight_pack):
        """Whether a pack has this back end's weights."""
        return any(key in weight_pack.native_views for key in (self.backend_key, *self.also))

    def weights_of(self, weight_pack):
        """This back end's weights. KeyError: not prepared."""
        return weight_pack.get_view(next((k for k in (self.backend_key, *self.also) if k in weight_pack.native_views), self.backend_key))

    def get_valid_tactics(self, inputs, profile):
        return [0]

    def get_cache_key_extras(self, inputs):
        return (str(self.config),)

    def parameter(self, value, like):
        """The same number for each expert here."""
        import torch

        return torch.full((self.num_local,), value, dtype=torch.float32, device=like.device)

    def swiglu(self, x):
        """(alpha, beta, limit) for each expert, None where the activation has none or its default."""
        a = self.config.activation
        if isinstance(a, api.SwiGLUStep):
            return None, None, self.parameter(a.limit, x)
        if not isinstance(a, api.SwiGLU) or a == api.SwiGLU():
            return None, None, None
        return self.parameter(a.alpha, x), self.parameter(a.beta, x), self.parameter(a.limit, x) if a.limit != api._LARGEST else None


class CutlassBf16Runner(MoERunner):
    """`cutlass_fused_moe`."""
    backend_key, view = "cutlass_bf16", ("fc1_expert_weights", "fc2_expert_weights")

    @staticmethod
    def why_not_shares(config):
        """What `cutlass_fused_moe` does not take, whatever the format."""
        experts, routing = config.experts, config.routing
        local = experts.local_num_experts or routing.num_experts
        if routing.num_experts % local or experts.local_expert_offset % local:
            return f"experts {experts.local_expert_offset} to {experts.local_expert_offset + local} are no even share of {routing.num_experts}"
        return "SiTU is not available" if isinstance(config.activation, api.SiTU) else ""

    @classmethod
    def why_not(cls, config):
        return cls.why_not_shares(config) or super().why_not(config)

    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        from . import cutlass_fused_moe

        x, ids, scales, w1, w2 = inputs
        alpha, beta, limit = self.swiglu(x)
        return cutlass_fused_moe(x, ids, scales, w1, w2, x.dtype, [], swiglu_alpha=alpha, swiglu_beta=beta, swiglu_limit=limit,
                                 ep_size=self.config.routing.num_experts // self.num_local,
                                 ep_rank=self.config.experts.local_expert_offset // self.num_local,
                                 activation_type=self.config.activation.type, enable_pdl=self.config.execution.enable_pdl)[0]


class TrtllmBf16RoutedRunner(MoERunner):
    """`trtllm_bf16_routed_moe`."""
    backend_key, view = "trtllm_bf16_routed", ("gemm1_weights", "gemm2_weights")

    @classmethod
    def why_not(cls, config):
        if not isinstance(config.activation, (api.SwiGLU, api.ReLU2)):
            return f"{type(config.activation).__name__} is not available"
        return super().why_not(config)

    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        import torch

        from . import trtllm_bf16_routed_moe

        x, ids, scales, w1, w2 = inputs
        routing, (alpha, beta, limit) = self.config.routing, self.swiglu(x)
        return trtllm_bf16_routed_moe((ids, scales.to(torch.bfloat16)), x, w1, w2, routing.num_experts, routing.top_k, None, None,
                                      self.config.experts.intermediate_size, self.config.experts.local_expert_offset, self.num_local,
                                      routing_method_type=RoutingMethodType.TopK, activation_type=self.config.activation.type,
                                      gemm1_alpha=alpha, gemm1_beta=beta, gemm1_clamp_limit=limit)


class QuantisedRunner(MoERunner):
    """A trtllm_*_routed_moe op of quantised weights. Its view may also hold gemm1_alpha, gemm1_beta and gemm1_clamp_limit, in place of the activation's."""
    pairs = ()
    parameters = ("gemm1_alpha", "gemm1_beta", "gemm1_clamp_limit")
    takes = ()  # members of the pack that the op has an argument for, of those that others lack

    @classmethod
    def why_not(cls, config):
        quant, a = config.quant, config.activation
        if quant.pair not in cls.pairs or quant.output != api.QuantFormat.BF16:
            return (f"weight, activation and output are {quant.weight.name}, {quant.activation.name} and {quant.output.name}, but must be "
                    + " or ".join(f"{w.name}, {x.name} and BF16" for w, x in cls.pairs))
        if quant.nvfp4_4over6 is not None:
            return "nvfp4_4over6 is not available; FLASHINFER_NVFP4_4OVER6 counts"
        if quant.swizzled_scale_factors:
            return "swizzled_scale_factors is not available: scales of inputs are linear"
        if config.experts.num_fused_shared_experts:
            return "num_fused_shared_experts is not available"
        if isinstance(a, api.SiTU) and (a.linear_scale is None or "gemm1_alpha" not in cls.parameters):
            return "SiTU without linear_scale, or with this back end, is not available"
        if isinstance(a, api.SwiGLU) and "gemm1_alpha" not in cls.parameters and (a.alpha, a.beta) != (1.0, 0.0):
            return "alpha and beta of SwiGLU are not available"
        return ""

    def _parameters(self, like, view):
        a = self.config.activation
        if isinstance(a, api.SiTU):
            found = [None if v is None else self.parameter(v, like) for v in (a.gate_scale, a.linear_scale, a.clamp_limit)]
        else:
            found = self.swiglu(like)
        made = dict(zip(("gemm1_alpha", "gemm1_beta", "gemm1_clamp_limit"), found))
        return {name: view.get(name, made[name]) for name in self.parameters}

    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        """[tokens, hidden] of bf16, or the list of three of do_finalize=False. Inputs: the pack of activations, experts, their weights, the view."""
        pack, ids, scales, view = inputs
        routing, experts, x = self.config.routing, self.config.experts, pack.hidden_states_q
        shared = dict(topk_ids=(ids, scales), hidden_states=x, num_experts=routing.num_experts, top_k=routing.top_k, n_group=None, topk_group=None,
                      intermediate_size=experts.intermediate_size, local_expert_offset=experts.local_expert_offset, local_num_experts=self.num_local,
                      routed_scaling_factor=None, routing_method_type=int(RoutingMethodType.TopK), do_finalize=self.config.finalize.do_finalize,
                      activation_type=int(self.config.activation.type), **self._parameters(x, view))
        if pack.per_token_scale is not None and "per_token_scale" not in self.takes:
            raise ValueError(f"MoELayer: per_token_scale is given, but {self.backend_key} has none")
        result = self.call(shared, pack, view)
        if not self.config.finalize.do_finalize:
            return list(result)
        return result[0] if result.__class__ is list else result


class TrtllmFp4RoutedRunner(QuantisedRunner):
    """`trtllm_fp4_block_scale_routed_moe`."""
    backend_key, pairs, takes = "trtllm_fp4_routed", _moe_prepare.FP4_PAIRS, ("per_token_scale",)

    def call(self, shared, pack, view):
        from . import trtllm_fp4_block_scale_routed_moe

        names = ("gemm1_weights", "gemm1_weights_scale", "gemm2_weights", "gemm2_weights_scale")
        optional = ("gemm1_bias", "gemm2_bias", "output1_scale_scalar", "output1_scale_gate_scalar", "output2_scale_scalar")
        return trtllm_fp4_block_scale_routed_moe(**shared, routing_bias=None, hidden_states_scale=pack.hidden_states_scale, per_token_scale=pack.per_token_scale,
                                                 **{n: view[n] for n in names}, **{n: view.get(n) for n in optional})


class TrtllmFp8BlockRunner(QuantisedRunner):
    """`trtllm_fp8_block_scale_routed_moe`."""
    backend_key, pairs = "trtllm_fp8_block", _moe_prepare.FP8_BLOCK_PAIRS

    def call(self, shared, pack, view):
        from . import trtllm_fp8_block_scale_routed_moe
        from .fused_moe import Fp8QuantizationType

        mx = self.config.quant.weight == api.QuantFormat.MXFP8
        return trtllm_fp8_block_scale_routed_moe(
            **shared, routing_bias=None, hidden_states_scale=pack.hidden_states_scale, use_shuffled_weight=mx, weight_layout=0,
            fp8_quantization_type=Fp8QuantizationType.MxFp8 if mx else Fp8QuantizationType.DeepSeekFp8,
            **{n: view[n] for n in ("gemm1_weights", "gemm1_weights_scale", "gemm2_weights", "gemm2_weights_scale")})


class TrtllmFp8PerTensorRunner(QuantisedRunner):
    """`trtllm_fp8_per_tensor_scale_routed_moe`."""
    backend_key, pairs = "trtllm_fp8_per_tensor", ((api.QuantFormat.FP8PerTensor, api.QuantFormat.FP8PerTensor),)
    parameters = ("gemm1_clamp_limit",)

    def call(self, shared, pack, view):
        from . import trtllm_fp8_per_tensor_scale_routed_moe

        names = ("gemm1_weights", "output1_scales_scalar", "output1_scales_gate_scalar", "gemm2_weights", "output2_scales_scalar")
        return trtllm_fp8_per_tensor_scale_routed_moe(**shared, routing_bias=None, use_routing_scales_on_input=False, **{n: view[n] for n in names})


class TrtllmMxInt4RoutedRunner(QuantisedRunner):
    """`trtllm_mxint4_block_scale_routed_moe`, whose activation is SwiGLU."""
    backend_key, pairs = "trtllm_mxint4_routed", ((api.QuantFormat.MXINT4, api.QuantFormat.BF16),)

    @classmethod
    def why_not(cls, config):
        if not isinstance(config.activation, api.SwiGLU):
            return f"{type(config.activation).__name__} is not available"
        return super().why_not(config)

    def call(self, shared, pack, view):
        from . import trtllm_mxint4_block_scale_routed_moe

        del shared["activation_type"]
        names = ("gemm1_weights", "gemm1_weights_scale", "gemm2_weights", "gemm2_weights_scale")
        return trtllm_mxint4_block_scale_routed_moe(**shared, **{n: view[n] for n in names})


class CutlassQuantisedRunner(QuantisedRunner):
    """`cutlass_fused_moe` of quantised weights."""
    flags = {}

    @classmethod
    def why_not(cls, config):
        if not config.finalize.do_finalize:
            return "it requires do_finalize=True"
        return CutlassBf16Runner.why_not_shares(config) or super().why_not(config)

    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        """[tokens, hidden] of bf16. Inputs: the pack of activations, experts, their weights, the view."""
        import torch

        from . import cutlass_fused_moe

        pack, ids, scales, view = inputs
        if pack.per_token_scale is not None:
            raise ValueError(f"MoELayer: per_token_scale is given, but {self.backend_key} has none")
        x, sf = pack.hidden_states_q, pack.hidden_states_scale
        alpha, beta, limit = self.swiglu(x)
        return cutlass_fused_moe(x, ids, scales, view["fc1_expert_weights"], view["fc2_expert_weights"], torch.bfloat16, view["quant_scales"],
                                 input_sf=None if sf is None else sf.view(torch.uint8), swizzled_input_sf=False, swiglu_alpha=alpha, swiglu_beta=beta,
                                 swiglu_limit=limit, ep_size=self.config.routing.num_experts // self.num_local,
                                 ep_rank=self.config.experts.local_expert_offset // self.num_local, activation_type=self.config.activation.type,
                                 enable_pdl=self.config.execution.enable_pdl, **self.flags)[0]


def _cutlass(name, key, weight, inputs, **flags):
    doc = f"`cutlass_fused_moe` of {weight.name} weights and {inputs.name} inputs."
    return type(name, (CutlassQuantisedRunner,), {"backend_key": key, "pairs": ((weight, inputs),), "flags": flags, "__doc__": doc, "__module__": __name__})


_F = api.QuantFormat
CutlassNvfp4Runner = _cutlass("CutlassNvfp4Runner", "cutlass_nvfp4", _F.NVFP4, _F.NVFP4)
CutlassMxfp8Runner = _cutlass("CutlassMxfp8Runner", "cutlass_mxfp8", _F.MXFP8, _F.MXFP8, use_mxfp8_act_scaling=True)
CutlassMxfp8Mxfp4Runner = _cutlass("CutlassMxfp8Mxfp4Runner", "cutlass_mxfp8_mxfp4", _F.MXFP4, _F.MXFP8, use_mxfp8_act_scaling=True)
CutlassW4A16Runner = _cutlass("CutlassW4A16Runner", "cutlass_w4a16", _F.MXFP4, _F.BF16, use_w4_group_scaling=True)
CutlassW4A8Runner = _cutlass("CutlassW4A8Runner", "cutlass_w4a8", _F.INT4, _F.FP8PerTensor, use_w4_group_scaling=True)
CutlassFp8BlockRunner = _cutlass("CutlassFp8BlockRunner", "cutlass_fp8_block", _F.DeepSeekFp8, _F.DeepSeekFp8, use_deepseek_fp8_block_scale=True)
CutlassFp8PerTensorRunner = _cutlass("CutlassFp8PerTensorRunner", "cutlass_fp8_per_tensor", _F.FP8PerTensor, _F.FP8PerTensor)


class B12xNvfp4Runner(QuantisedRunner):
    """`b12x_fused_moe` of NVFP4 weights and bf16 inputs, which the call quantises."""
    backend_key, pairs, mode = "b12x_nvfp4", ((_F.NVFP4, _F.NVFP4),), "nvfp4"

    @classmethod
    def why_not(cls, config):
        a, experts = config.activation, config.experts
        if not config.finalize.do_finalize:
            return "it requires do_finalize=True"
        if not isinstance(a, (api.SwiGLU, api.GeGLUTanh, api.ReLU2)):
            return f"{type(a).__name__} is not available, only SwiGLU, GeGLUTanh and ReLU2"
        if cls.mode != "w4a16" and (experts.local_num_experts or config.routing.num_experts) != config.routing.num_experts:
            return "a share of the experts (expert parallelism) is not available"
        return super().why_not(config)

    def forward(self, inputs, tactic=-1, do_preparation=False, **kwargs):
        """[tokens, hidden] of bf16. Inputs: the pack of activations, experts, their weights, the view."""
        import torch

        from ._b12x import b12x_fused_moe

        (pack, ids, scales, view), a, number = inputs, self.config.activation, self.config.routing.num_experts
        name = {api.ReLU2: "relu2", api.GeGLUTanh: "gelu_tanh"}.get(type(a), "silu" if a == api.SwiGLU() else "swigluoai_uninterleave")
        oai = {} if name != "swigluoai_uninterleave" else {"swiglu_alpha": a.alpha, "swiglu_beta": a.beta, "swiglu_limit": a.limit}
        share = {}
        if self.num_local != number:
            place = torch.arange(number) - self.config.experts.local_expert_offset
            share = {"num_local_experts": self.num_local, "expert_map": torch.where((place >= 0) & (place < self.num_local), place, -1).int()}
        return b12x_fused_moe(pack.hidden_states_q, token_selected_experts=ids, token_final_scales=scales, num_experts=number,
                              top_k=self.config.routing.top_k, activation=name, quant_mode=self.mode, **oai, **share, **view)


class B12xW4A16Runner(B12xNvfp4Runner):
    """`b12x_fused_moe` of NVFP4 weights and bf16 inputs, which stay bf16."""
    backend_key, pairs, mode = "b12x_w4a16", ((_F.NVFP4, _F.BF16),), "w4a16"


BACKEND_RUNNERS = {api.B12xNvfp4Config: B12xNvfp4Runner, api.B12xW4A16Config: B12xW4A16Runner,
                   api.CutlassNvfp4Config: CutlassNvfp4Runner, api.CutlassMxfp8Config: CutlassMxfp8Runner, api.CutlassMxfp8Mxfp4Config: CutlassMxfp8Mxfp4Runner,
                   api.CutlassW4A16Config: CutlassW4A16Runner, api.CutlassW4A8Config: CutlassW4A8Runner, api.CutlassFp8BlockConfig: CutlassFp8BlockRunner,
                   api.CutlassFp8PerTensorConfig: CutlassFp8PerTensorRunner, api.CutlassBf16Config: CutlassBf16Runner, api.TrtllmBf16Config: TrtllmBf16RoutedRunner, api.TrtllmFp4Config: TrtllmFp4RoutedRunner,
                   api.TrtllmFp8BlockConfig: TrtllmFp8BlockRunner, api.TrtllmFp8PerTensorConfig: TrtllmFp8PerTensorRunner,
                   api.TrtllmMxInt4Config: TrtllmMxInt4RoutedRunner}
