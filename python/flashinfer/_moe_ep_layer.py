# SPDX-License-Identifier: Apache-2.0
"""MoEEpLayer: a mixture of experts over ranks: dispatch, what a rank's experts compute, combine. docs/python.md."""
import dataclasses
import sys
from typing import Any

from ._moe_ep import (CombineInputParams, DispatchInputParams, EpAlgorithm, EpLayout, FleetAlgoKnobFaultTolerance, FleetAlgoKnobQuantization,
                      FleetAlgoKnobTopologyCapacity, HandleAlgoKnobTopKWeights, HandleParams, MoEEpConfigError, MoEEpTensors, _index_knobs)
from ._moe_ep_checks import bootstrap_moe_ep_runtime, finalize_moe_ep_runtime, validate_fleet_params, validate_fleet_weights, validate_split_forward_inputs
from ._moe_ep_comm import MoEEpCommParams, backend_name, create_communication, create_fleet, is_fleet


@dataclasses.dataclass
class NcclEpConfig:
    """A transport between GPUs that is not part of this library."""
    backend_name: str = "nccl_ep"


@dataclasses.dataclass
class NvepConfig:
    """A transport between GPUs that is not part of this library."""
    backend_name: str = "nixl_ep"


@dataclasses.dataclass
class IdentityConfig:
    """Results are the received tokens."""
    kernel_name: str = "identity"


@dataclasses.dataclass
class FusedMoeKernelConfig:
    """A MoELayer of `moe_config`, whose experts are this rank's share, over bf16 tokens."""
    moe_config: Any
    kernel_name: str = "fused_moe"
    mxfp8_dispatch: bool = False


@dataclasses.dataclass
class SplitConfig:
    """Dispatch, kernel, combine. `comm`: how tokens travel; `kernel`: what a rank computes."""
    comm: Any = dataclasses.field(default_factory=NcclEpConfig)
    kernel: Any = dataclasses.field(default_factory=IdentityConfig)


@dataclasses.dataclass
class MegaConfig:
    """One GPU kernel for all; there is none in this library."""
    megakernel: Any
    quantize_input: bool = True
    preprocess_weights: bool = True
    transformed_weights: Any = None


@dataclasses.dataclass(frozen=True)
class SplitKernelContext:
    """What a kernel gets of one step."""
    expert_tensors: Any
    num_tokens: int
    fleet_params: Any
    recv_topk_idx: Any = None
    recv_topk_weights: Any = None
    recv_count: Any = None


class _Identity:
    requires_weights = False

    def __init__(self, config, params, weights):
        pass

    def __call__(self, context):
        return context.expert_tensors


class _FusedMoe:
    requires_weights = True

    def __init__(self, config, params, weights):
        from ._moe_layer import MoELayer
        from ._moe_runners import BACKEND_RUNNERS, QuantisedRunner
        from .fused_moe import MoEWeightPack

        if config.mxfp8_dispatch:
            raise NotImplementedError("FusedMoeKernelConfig: mxfp8_dispatch=True is not implemented; tokens travel as they are")
        if weights.w13_scale is not None:
            raise NotImplementedError("FusedMoeKernelConfig: weights must be unquantised: the layer prepares them")
        self.layer, self.moe, self.pack = MoELayer(config.moe_config), config.moe_config, MoEWeightPack()
        runner = self.layer.runners[0]
        if isinstance(runner, QuantisedRunner):
            raise NotImplementedError(f"FusedMoeKernelConfig: {type(runner).__name__} takes quantised tokens, which are not dispatched; use CutlassBf16Config "
                                      "or TrtllmBf16Config")
        experts = self.moe.experts
        self.local, self.first = experts.local_num_experts or self.moe.routing.num_experts, experts.local_expert_offset
        if weights.w13.shape[0] != self.local:
            raise MoEEpConfigError(f"MoEWeightPack.w13 has {weights.w13.shape[0]} experts, but moe_config has local_num_experts {self.local}")
        made = next(c for c in self.moe.backend if BACKEND_RUNNERS.get(type(c)) is type(runner))
        self.pack.prepare_for(runner.backend_key, type(made).prepare_weights(
            weights.w13, weights.w2, num_local_experts=self.local, hidden_size=params.token_hidden_size, intermediate_size=experts.intermediate_size,
            activation=self.moe.activation))

    def __call__(self, context):
        from .fused_moe import MoEActivationPack

        ids, x = context.recv_topk_idx, context.expert_tensors
        here = (ids >= self.first) & (ids < self.first + self.local)  # the other choices are computed by their experts' ranks
        token = here.any(1, keepdim=True)
        rows = x.masked_fill(~token, 0)  # rows without a token hold anything
        return self.layer(MoEActivationPack(rows, None, ids.masked_fill(~here, self.first).int(), context.recv_topk_weights.masked_fill(~here, 0)), self.pack)


_KERNELS = {"identity": _Identity, "fused_moe": _FusedMoe}


def _kernel_class(config):
    name = getattr(config, "kernel_name", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"kernel config {type(config).__name__!r} must define a non-empty kernel_name str")
    if name not in _KERNELS:
        raise KeyError(f"unknown split kernel {name!r}; available: {sorted(_KERNELS)}")
    return _KERNELS[name]


def kernel_requires_weights(config):
    """Whether the kernel computes with weights."""
    return _kernel_class(config).requires_weights


def run_split_kernel(config, ctx):
    """The kernel's results for the received tokens; of kernels without weights.

    Raises:
        MoEEpConfigError: a kernel with weights, which a layer holds
    """
    if kernel_requires_weights(config):
        raise MoEEpConfigError(f"kernel {config.kernel_name!r} computes with weights: make a MoEEpSplitLayer")
    return _kernel_class(config)(config, ctx.fleet_params, None)(ctx)


def _split(backend):
    if isinstance(backend, SplitConfig):
        return backend
    name = backend_name(backend) if isinstance(backend, str) or hasattr(backend, "backend_name") else None
    if name is None:
        raise TypeError(f"backend must be a str, SplitConfig, MegaConfig or a configuration with a backend_name, got {type(backend).__name__}")
    return SplitConfig(comm={"nccl_ep": NcclEpConfig, "nixl_ep": NvepConfig}.get(name, lambda: backend)() if isinstance(backend, str) else backend)


class _SplitLayer:
    """forward(tensors) is [tokens, hidden]: dispatch, the kernel, combine. Each rank makes one with the weights of its share of the experts, rank r those of
    the experts from r * num_experts / world_size on; what connects the ranks is made by the first forward. Of a MoEEpCommunication, results are sums over
    ranks of what each made of a token, in the ranks' order.

    Raises:
        MoEEpConfigError: sizes, weights or back ends that do not fit together
        RuntimeError: several ranks without torch.distributed
    """

    def __init__(self, bootstrap, fleet_params, weights, fleet_knobs=(), backend="nccl_ep"):
        super().__init__()
        self.bootstrap, self.fleet_params, self.config = bootstrap, fleet_params, _split(backend)
        self.knobs = _index_knobs(fleet_knobs)
        name = backend_name(self.config.comm)
        self.is_fleet = is_fleet(name)
        if not self.is_fleet:
            if (fleet_params.algorithm, fleet_params.layout) != (EpAlgorithm.LOW_LATENCY, EpLayout.RANK_MAJOR):
                raise MoEEpConfigError(f"comm backend {name!r} exchanges tokens rank-major; set FleetParams(algorithm=EpAlgorithm.LOW_LATENCY, "
                                       "layout=EpLayout.RANK_MAJOR).")
            if self.knobs:
                raise MoEEpConfigError(f"fleet_knobs are of Fleet transports, but comm backend {name!r} is a MoEEpCommunication: "
                                       f"{sorted(k.__name__ for k in self.knobs)}")
        knob = self.knobs.get
        capacity = knob(FleetAlgoKnobTopologyCapacity)
        validate_fleet_params(fleet_params, name, bootstrap.world_size, knob(FleetAlgoKnobQuantization), capacity and capacity.n,
                              knob(FleetAlgoKnobFaultTolerance))
        validate_fleet_weights(weights, fleet_params, bootstrap.world_size)
        self._kernel = _kernel_class(self.config.kernel)(self.config.kernel, fleet_params, weights)
        ranks = {"torch_dist"} if bootstrap.auto_bootstrap and getattr(self.config.comm, "comm_backend", None) is None else set()
        self._runtime = bootstrap_moe_ep_runtime(bootstrap, frozenset(ranks)) if bootstrap.auto_bootstrap else None
        self._transport, self._destroyed, self._top_k = None, False, None

    def _communication(self, t):
        top_k = t.topk_ids.shape[1]
        if self._transport is None:
            p = self.fleet_params
            self._transport = create_communication(
                self.bootstrap, MoEEpCommParams(p.num_experts, top_k, p.max_tokens_per_rank, p.token_hidden_size, t.hidden_states.dtype), self.config.comm)
            self._top_k = top_k
        if top_k != self._top_k:
            raise MoEEpConfigError(f"topk_ids has {top_k} experts a token, but the first forward had {self._top_k}")
        return self._transport

    def forward(self, t, *, graph_state=None):
        """[tokens, hidden], into t.output where there is one."""
        if self._destroyed:
            raise MoEEpConfigError("this MoEEpSplitLayer has been destroyed; its transport and comm runtime are gone.")
        if graph_state is not None:
            raise NotImplementedError("MoEEpSplitLayer.forward: graph_state is of CUDA graphs over GPU transports")
        validate_split_forward_inputs(t.hidden_states, t.topk_ids, t.topk_weights, self.fleet_params)
        if self.is_fleet:
            return self._forward_fleet(t)
        comm = self._communication(t)
        got = comm.dispatch(t.hidden_states, t.topk_ids, t.topk_weights)
        made = self._kernel(SplitKernelContext(got.hidden_states, got.hidden_states.shape[0], self.fleet_params, got.topk_ids, got.topk_weights))
        return comm.combine(made, output=t.output)

    def _forward_fleet(self, t):
        """By a Fleet's handle."""
        if self._transport is None:
            self._transport = create_fleet(self.bootstrap, self.fleet_params, tuple(self.knobs.values()), self.config.comm)
        handle = self._transport.create_handle(HandleParams(t.topk_ids), (HandleAlgoKnobTopKWeights(t.topk_weights),))
        try:
            got = handle.dispatch(DispatchInputParams([t.hidden_states]))
            context = SplitKernelContext(got.expert_tensors, got.get_num_tokens(), self.fleet_params, got.recv_topk_idx, got.recv_topk_weights,
                                         got.expert_counts)
            out = handle.combine(CombineInputParams([self._kernel(context)], t.output)).x
            handle.complete()
            return out
        finally:
            handle.destroy()

    def create_graph_state(self, t, *, out=None):
        raise NotImplementedError("MoEEpSplitLayer.create_graph_state: CUDA graphs need a GPU transport, which this library does not have")

    def destroy(self):
        """Ends the transport. All ranks call it."""
        if self._transport is not None:
            self._transport.destroy()
        finalize_moe_ep_runtime(self._runtime)
        self._transport, self._destroyed = None, True


def _as_module(cls):
    """The layer as a torch.nn.Module, where there is torch: it has no parameters."""
    try:
        from torch.nn import Module as base
    except ImportError:
        base = object
    return type("MoEEpSplitLayer", (cls, base), {"__doc__": cls.__doc__, "__module__": __name__})


def __getattr__(name):
    if name == "MoEEpSplitLayer":  # made when torch is wanted
        globals()[name] = _as_module(_SplitLayer)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def MoEEpLayer(bootstrap, fleet_params, weights, fleet_knobs=(), backend="nccl_ep"):
    """The layer of a back end: a MoEEpSplitLayer.

    Raises:
        NotImplementedError: a MegaConfig: one GPU kernel for all
    """
    if isinstance(backend, MegaConfig):
        raise NotImplementedError("MoEEpLayer: MegaConfig is one GPU kernel for dispatch, experts and combine; use SplitConfig(comm=NVLinkOneSidedConfig(), "
                                  "kernel=FusedMoeKernelConfig(...))")
    return sys.modules[__name__].MoEEpSplitLayer(bootstrap, fleet_params, weights, fleet_knobs, backend)
