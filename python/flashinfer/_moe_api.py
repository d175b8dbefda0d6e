# SPDX-License-Identifier: Apache-2.0
"""The values that describe a mixture of experts for `MoELayer`. All are frozen, can be compared, hashed and printed as they are written."""
import dataclasses
import enum
import math
from typing import Any, Dict, Optional, Tuple

from .tllm_enums import ActivationType, RoutingInputMode, RoutingMethodType

_LARGEST = 3.4028234663852886e+38  # of float32


class QuantFormat(enum.IntEnum):
    """How numbers are stored."""
    BF16 = 0
    FP16 = 1
    FP8PerTensor = 2
    DeepSeekFp8 = 3
    MXFP8 = 4
    NVFP4 = 5
    MXFP4 = 6
    MXINT4 = 7
    INT4 = 8

    def __repr__(self):
        return f"QuantFormat.{self.name}"

    __str__ = __repr__


def _text(value):
    return f"{type(value).__name__}.{value.name}" if isinstance(value, enum.Enum) else repr(value)


class _Printed:
    """Prints without members that are None, and with `_short` without those that have their default."""
    _short = False

    def __repr__(self):
        shown = [f for f in dataclasses.fields(self) if getattr(self, f.name) is not None
                 and not (self._short and f.default is not dataclasses.MISSING and getattr(self, f.name) == f.default)]
        return f"{type(self).__name__}({', '.join(f'{f.name}={_text(getattr(self, f.name))}' for f in shown)})"


_value = dataclasses.dataclass(frozen=True, repr=False)


@_value
class RoutingConfig(_Printed):
    """How each token's experts are chosen: `top_k` of `num_experts`, by `method`; groups and factor are those of DeepSeek's methods."""
    _short = True
    num_experts: int
    top_k: int
    method: RoutingMethodType = RoutingMethodType.Default
    n_group: Optional[int] = None
    topk_group: Optional[int] = None
    routed_scaling_factor: Optional[float] = None


@_value
class QuantConfig(_Printed):
    """Formats of weights, inputs and the result."""
    weight: QuantFormat = QuantFormat.BF16
    activation: QuantFormat = QuantFormat.BF16
    output: QuantFormat = QuantFormat.BF16
    swizzled_scale_factors: Optional[bool] = None
    per_token_scale: Optional[bool] = None
    nvfp4_4over6: Any = None

    def __post_init__(self):
        for name in ("weight", "activation", "output"):
            if not isinstance(getattr(self, name), QuantFormat):
                raise TypeError(f"QuantConfig.{name} must be a QuantFormat, got {getattr(self, name)!r}. Pass QuantFormat.FP16 rather than "
                                "torch.float16.")

    @property
    def pair(self):
        """(weight, activation)"""
        return self.weight, self.activation


@_value
class ExpertConfig(_Printed):
    """The experts of this process: `local_num_experts` (None: all) from `local_expert_offset` on, each of `intermediate_size` columns."""
    _short = True
    intermediate_size: int
    local_expert_offset: int = 0
    local_num_experts: Optional[int] = None
    num_fused_shared_experts: int = 0

    def __post_init__(self):
        if self.num_fused_shared_experts < 0:
            raise ValueError(f"num_fused_shared_experts must be >= 0, got {self.num_fused_shared_experts}.")


@_value
class ExecutionConfig(_Printed):
    """Hints for GPUs, and the largest number of tokens that is tuned."""
    enable_pdl: Optional[bool] = None
    tune_max_num_tokens: int = 8192


@_value
class MoEFinalizeConfig(_Printed):
    """Whether the experts' results are added up."""
    do_finalize: bool = True
    use_fused_finalize: bool = True


# ---- activations ----
class ActivationConfig(_Printed):
    """What lies between the two products: one of the classes below."""
    type = None

    def __init__(self):
        raise TypeError("ActivationConfig is a common base; construct a typed activation such as SwiGLU(), GeGLU(), or ReLU2().")

    @property
    def is_gated(self):
        """Whether the first weight has two halves, the linear one and the gate."""
        from .tllm_enums import is_gated_activation

        return is_gated_activation(self.type)

    def _check(self, *positive):
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if value is None and f.type != float:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ValueError(f"{f.name} must be a finite scalar, got {value!r}.")
            if f.name in positive and value <= 0:
                raise ValueError(f"{f.name} must be positive, got {value!r}.")


@_value
class SwiGLU(ActivationConfig):
    """x * sigmoid(alpha * x) * (linear + beta) of the gate x, both clamped to `limit`."""
    type = ActivationType.Swiglu
    alpha: float = 1.0
    beta: float = 0.0
    limit: float = _LARGEST

    def __post_init__(self):
        self._check("limit")


@_value
class SwiGLUStep(ActivationConfig):
    """SwiGLU whose two factors are clamped to `limit`."""
    type = ActivationType.SwigluStep
    limit: float = 7.0

    def __post_init__(self):
        self._check("limit")


@_value
class SiTU(ActivationConfig):
    """gate_scale * tanh(gate / gate_scale) * sigmoid(gate) times linear_scale * tanh(linear / linear_scale); None: without a bound."""
    type = ActivationType.Situ
    gate_scale: float = 4.0
    linear_scale: Optional[float] = 25.0
    clamp_limit: Optional[float] = None

    def __post_init__(self):
        self._check("gate_scale", "linear_scale", "clamp_limit")


def _plain(name, kind, doc):
    return _value(type(name, (ActivationConfig,), {"type": kind, "__doc__": doc, "__module__": __name__, "__annotations__": {}}))


GeGLU = _plain("GeGLU", ActivationType.Geglu, "GELU of the gate times the linear half.")
GeGLUTanh = _plain("GeGLUTanh", ActivationType.GegluTanh, "GELU by tanh of the gate times the linear half.")
ReLU = _plain("ReLU", ActivationType.Relu, "max(x, 0)")
ReLU2 = _plain("ReLU2", ActivationType.Relu2, "max(x, 0) squared")
SiLU = _plain("SiLU", ActivationType.Silu, "x * sigmoid(x)")
GELU = _plain("GELU", ActivationType.Gelu, "GELU")
Identity = _plain("Identity", ActivationType.Identity, "x")


# ---- back ends ----
@_value
class BackendOptions(_Printed):
    """The back ends that may be chosen among."""
    candidates: Tuple[Any, ...] = ()

    def __iter__(self):
        return iter(self.candidates)

    def __len__(self):
        return len(self.candidates)

    def valid_for(self, arch):
        """Those with kernels for GPUs of this compute capability (90 for 9.0)."""
        return [c for c in self.candidates if c.supported(arch)]


class _Backend(_Printed):
    """A back end by its name in FlashInfer. `runner` is the key of its weights, None where this library does not have it."""
    runner = None

    @classmethod
    def supported(cls, arch):
        """Whether the library has GPU kernels for compute capability `arch` (90 for 9.0); on the CPU back ends with a runner always run."""
        from . import cutlass_fused_moe

        return cls.runner is not None and cutlass_fused_moe.is_compute_capability_supported(arch)

    @classmethod
    def prepare_weights(cls, *args, **kwargs):
        raise NotImplementedError(f"{cls.__name__}: MoELayer does not have this back end here; the Trtllm*Config have quantised weights")

    prepare_activations = prepare_weights


def _checked_weights(name, error, w1, w2, experts, hidden, intermediate, activation):
    import torch

    halves = 2 if activation is None or activation.is_gated else 1
    if w1.dtype != torch.bfloat16 or w2.dtype != torch.bfloat16:
        raise error(f"{name} expects BF16 weights, got w1={w1.dtype}, w2={w2.dtype}.")
    wanted = (experts, halves * intermediate, hidden), (experts, hidden, intermediate)
    if (tuple(w1.shape), tuple(w2.shape)) != wanted:
        raise ValueError(f"weight shapes {tuple(w1.shape)}/{tuple(w2.shape)} != expected {wanted[0]}/{wanted[1]}.")


@_value
class CutlassBf16Config(_Backend):
    """`cutlass_fused_moe` of bf16."""
    runner = "cutlass_bf16"

    @staticmethod
    def prepare_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation=None, device=None):
        """[experts, 2 * intermediate, hidden] (linear half, then the gate; one half where there is no gate) and
        [experts, hidden, intermediate], contiguous."""
        _checked_weights("prepare_cutlass_bf16_weights", TypeError, w1_bf16, w2_bf16, num_local_experts, hidden_size, intermediate_size, activation)
        return {"fc1_expert_weights": w1_bf16.to(device).contiguous(), "fc2_expert_weights": w2_bf16.to(device).contiguous()}


@_value
class TrtllmBf16Config(_Backend):
    """`trtllm_bf16_moe` and `trtllm_bf16_routed_moe`, whose weights have the order of GPU kernels."""
    runner = "trtllm_bf16_routed"

    @staticmethod
    def prepare_weights(w1_bf16, w2_bf16, *, num_local_experts, hidden_size, intermediate_size, activation=None, device=None, permute_cache=None):
        """The same weights with their rows reordered (halves by turns, then within blocks) and in blocks of 64 columns."""
        import torch

        from . import _layouts, convert_to_block_layout

        _checked_weights("prepare_trtllm_bf16_weights", ValueError, w1_bf16, w2_bf16, num_local_experts, hidden_size, intermediate_size, activation)
        cache, gated = {} if permute_cache is None else permute_cache, activation is None or activation.is_gated
        made = []
        for w, order in ((w1_bf16, _layouts._maybe_get_cached_w3_w1_permute_indices), (w2_bf16, _layouts.get_w2_permute_indices_with_cache)):
            w = w.to(device).contiguous()
            rows = order(cache, w[0].view(torch.uint8), 128, is_gated_act_gemm=gated)
            made.append(torch.stack([convert_to_block_layout(e[rows].contiguous().view(torch.uint8), 128).view(torch.bfloat16) for e in w]))
        return {"gemm1_weights": made[0], "gemm2_weights": made[1]}


def _quantised(name, runner, weights, activations, doc, **standard):
    """A back end whose functions are in `_moe_prepare`, with a default format where its functions have none."""
    def call(function, **standard):
        def prepare(*args, **kwargs):
            from . import _b12x, _moe_prepare, _moe_prepare_cutlass

            home = next(m for m in (_moe_prepare, _moe_prepare_cutlass, _b12x) if hasattr(m, function))
            return getattr(home, function)(*args, **{**standard, **kwargs})

        prepare.__doc__ = f"`{function}`"
        return staticmethod(prepare)

    members = {"runner": runner, "prepare_weights": call(weights, **(standard if runner == "trtllm_fp4_routed" else {})), "__doc__": doc, "__module__": __name__, "__annotations__": {}}
    if activations:
        members["prepare_activations"] = call(activations, **standard)
    return _value(type(name, (_Backend,), members))


TrtllmFp4Config = _quantised("TrtllmFp4Config", "trtllm_fp4_routed", "prepare_trtllm_fp4_weights", "prepare_trtllm_fp4_activations",
                             "`trtllm_fp4_block_scale_routed_moe`: NVFP4 weights and inputs, or MXFP4 weights with MXFP8 or bf16 inputs.",
                             quant=QuantConfig(QuantFormat.NVFP4, QuantFormat.NVFP4))
TrtllmFp8BlockConfig = _quantised("TrtllmFp8BlockConfig", "trtllm_fp8_block", "prepare_trtllm_fp8_block_weights", "prepare_trtllm_fp8_block_activations",
                                  "`trtllm_fp8_block_scale_routed_moe`: DeepSeekFp8 or MXFP8, both of weights and inputs.")
TrtllmFp8PerTensorConfig = _quantised("TrtllmFp8PerTensorConfig", "trtllm_fp8_per_tensor", "prepare_trtllm_fp8_per_tensor_weights",
                                      "prepare_trtllm_fp8_per_tensor_activations", "`trtllm_fp8_per_tensor_scale_routed_moe`: FP8 with one scale a tensor.")
TrtllmMxInt4Config = _quantised("TrtllmMxInt4Config", "trtllm_mxint4_routed", "prepare_trtllm_mxint4_weights", None,
                                "`trtllm_mxint4_block_scale_routed_moe`: 4-bit integer weights with bf16 scales of 32, bf16 inputs.")


CutlassNvfp4Config = _quantised("CutlassNvfp4Config", "cutlass_nvfp4", "prepare_cutlass_nvfp4_weights", "prepare_trtllm_fp4_activations",
                                "`cutlass_fused_moe`: NVFP4 weights and inputs.", quant=QuantConfig(QuantFormat.NVFP4, QuantFormat.NVFP4))
CutlassMxfp8Mxfp4Config = _quantised("CutlassMxfp8Mxfp4Config", "cutlass_mxfp8_mxfp4", "prepare_cutlass_mxfp8_mxfp4_weights", "prepare_trtllm_fp4_activations",
                                     "`cutlass_fused_moe`: MXFP4 weights, MXFP8 inputs.", quant=QuantConfig(QuantFormat.MXFP4, QuantFormat.MXFP8))
CutlassMxfp8Config = _quantised("CutlassMxfp8Config", "cutlass_mxfp8", "prepare_cutlass_mxfp8_weights", "prepare_cutlass_mxfp8_activations",
                                "`cutlass_fused_moe`: MXFP8 weights and inputs.")
CutlassW4A16Config = _quantised("CutlassW4A16Config", "cutlass_w4a16", "prepare_cutlass_w4a16_weights", None,
                                "`cutlass_fused_moe`: MXFP4 weights, bf16 inputs.")
CutlassW4A8Config = _quantised("CutlassW4A8Config", "cutlass_w4a8", "prepare_cutlass_w4a8_weights", None,
                               "`cutlass_fused_moe`: INT4 weights; inputs are bf16, and become FP8 in the call.")
CutlassFp8BlockConfig = _quantised("CutlassFp8BlockConfig", "cutlass_fp8_block", "prepare_cutlass_fp8_block_weights", None,
                                   "`cutlass_fused_moe`: FP8 weights with scales of 128 x 128; inputs are bf16, and quantised by the call.")
CutlassFp8PerTensorConfig = _quantised("CutlassFp8PerTensorConfig", "cutlass_fp8_per_tensor", "prepare_cutlass_fp8_per_tensor_weights",
                                       "prepare_trtllm_fp8_per_tensor_activations", "`cutlass_fused_moe`: FP8 with one scale a tensor.")


def _absent(name):
    doc = "A back end of FlashInfer that MoELayer does not have here; it can be named among candidates."
    return _value(type(name, (_Backend,), {"__doc__": doc, "__module__": __name__, "__annotations__": {}}))


B12xNvfp4Config = _quantised("B12xNvfp4Config", "b12x_nvfp4", "prepare_b12x_nvfp4_weights", None, "`b12x_fused_moe`: NVFP4 weights; inputs are bf16, and quantised by the call.")
B12xW4A16Config = _quantised("B12xW4A16Config", "b12x_w4a16", "prepare_b12x_w4a16_weights", None, "`b12x_fused_moe`: NVFP4 weights, bf16 inputs.")


@_value
class MoEConfig(_Printed):
    """All of a layer; its members can be read as `config["routing"]`, and `dict(**config)` has them."""
    routing: RoutingConfig
    quant: QuantConfig
    experts: ExpertConfig
    activation: ActivationConfig = dataclasses.field(default_factory=SwiGLU)
    backend: BackendOptions = dataclasses.field(default_factory=lambda: BackendOptions((TrtllmBf16Config(), CutlassBf16Config())))
    execution: ExecutionConfig = dataclasses.field(default_factory=ExecutionConfig)
    finalize: MoEFinalizeConfig = dataclasses.field(default_factory=MoEFinalizeConfig)

    def __post_init__(self):
        if self.experts.num_fused_shared_experts > 0 and self.routing.method != RoutingMethodType.DeepSeekV3:
            raise ValueError(f"num_fused_shared_experts > 0 requires DeepSeekV3 routing, got method={_text(self.routing.method)}.")

    def keys(self):
        return [f.name for f in dataclasses.fields(self)]

    def __getitem__(self, name):
        return getattr(self, name)


# ---- tensors of a call ----
@dataclasses.dataclass(repr=False)
class MoEActivationPack(_Printed):
    """The inputs of a call: rows and their scales, and the routing: chosen experts with weights, or logits (with a bias for the choice)."""
    hidden_states_q: Any
    hidden_states_scale: Any
    topk_ids: Any = None
    topk_weights: Any = None
    per_token_scale: Any = None
    routing_input_mode: RoutingInputMode = RoutingInputMode.PackedPrecomputed
    routing_logits: Any = None
    routing_bias: Any = None

    def __post_init__(self):
        import torch

        mode = f"routing_input_mode={self.routing_input_mode.name}"
        if self.routing_input_mode == RoutingInputMode.FromLogits:
            if self.routing_logits is None:
                raise ValueError(f"{mode} requires routing_logits.")
            if self.topk_ids is not None or self.topk_weights is not None:
                raise ValueError("FromLogits computes topk_ids/topk_weights in-kernel; leave them None.")
            return
        if self.topk_ids is None or self.topk_weights is None:
            raise ValueError(f"{mode} requires topk_ids + topk_weights.")
        if self.routing_logits is not None or self.routing_bias is not None:
            raise ValueError(f"{mode} has its experts already; leave routing_logits and routing_bias None.")
        if self.topk_ids.dtype != torch.int32:
            raise TypeError(f"topk_ids must be torch.int32 (got {self.topk_ids.dtype}); torch.topk returns int64 — cast before constructing the pack.")
        shapes = tuple(self.topk_ids.shape), tuple(self.topk_weights.shape)
        if shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][0] != self.num_tokens:
            raise ValueError(f"{self.routing_input_mode.name} topk_ids/topk_weights must have matching [num_tokens, top_k] shapes, got "
                             f"{shapes[0]} and {shapes[1]} for num_tokens={self.num_tokens}.")

    @property
    def num_tokens(self):
        return self.hidden_states_q.shape[0]


@dataclasses.dataclass
class MoEWeightPack:
    """Weights, prepared for each back end that may run."""
    native_views: Dict[str, Dict[str, Any]] = dataclasses.field(default_factory=dict)

    def prepare_for(self, backend_key, view):
        """Keeps what a back end's `prepare_weights` returned."""
        self.native_views[backend_key] = view

    def get_view(self, backend_key):
        """The weights of a back end; KeyError: not prepared."""
        if backend_key not in self.native_views:
            raise KeyError(f"Weights not prepared for backend {backend_key!r}. Available: {list(self.native_views)}")
        return self.native_views[backend_key]
