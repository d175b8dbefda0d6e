# SPDX-License-Identifier: Apache-2.0
"""Values of flashinfer.moe_ep: mixtures of experts whose experts are spread over ranks. Sizes, options, weights, tensors, errors."""
import abc
import dataclasses
import enum
from typing import Any, Optional

frozen = dataclasses.dataclass(frozen=True)


class MoEEpConfigError(ValueError):
    """Arguments that do not fit together."""


class MoEEpArchError(MoEEpConfigError):
    """A back end that the device does not have."""


class MoEEpNotBuiltError(RuntimeError):
    """A transport that is not part of this library."""


class MoEEpFaultToleranceUnsupportedError(RuntimeError):
    """Masks of ranks, of a transport that has none."""


class MoEEpRankEvictedError(RuntimeError):
    """This rank is masked out."""


class MoEEpTransportError(RuntimeError):
    """A call of a transport that failed."""

    def __init__(self, fn, code, detail="", code_name=None):
        super().__init__(f"{fn} failed: {code if code_name is None else f'{code_name} ({code})'}{detail}")
        self.fn, self.code, self.code_name = fn, code, code_name


class EpAlgorithm(enum.Enum):
    """What a transport is good at."""
    LOW_LATENCY = 0
    HIGH_THROUGHPUT = 1


class EpLayout(enum.Enum):
    """Order of received tokens: by expert, or by the rank that sent them."""
    EXPERT_MAJOR = 1
    RANK_MAJOR = 2


class QuantType(enum.Enum):
    """Formats in which a transport may send tokens."""
    FP8E4M3 = "fp8e4m3"
    FP8E5M2 = "fp8e5m2"
    NVFP8 = "nvfp8"
    UE8M0 = "ue8m0"


def _positive(owner, error=ValueError, **values):
    for name, value in values.items():
        if value <= 0:
            raise error(f"{owner}{name} must be positive, got {value}")


@frozen
class BootstrapConfig:
    """This rank among the ranks that share the experts. `process_group` is torch.distributed's; the others are of GPU transports.

    Raises:
        ValueError: a rank outside the world, a negative device
    """
    world_size: int
    rank: int
    stream: int = 0
    auto_bootstrap: bool = True
    nccl_comm: Optional[int] = None
    process_group: Any = None
    tcp_store: Any = None
    device: Optional[int] = None

    def __post_init__(self):
        _positive("", world_size=self.world_size)
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank {self.rank} not in [0, {self.world_size})")
        if self.device is not None and self.device < 0:
            raise ValueError(f"device must be non-negative, got {self.device}")


@frozen
class FleetParams:
    """Sizes of a layer over ranks.

    Raises:
        ValueError: sizes that are not positive, RANK_MAJOR with HIGH_THROUGHPUT
    """
    num_experts: int
    max_tokens_per_rank: int
    token_hidden_size: int
    dtype_bytes: int = 2
    algorithm: EpAlgorithm = EpAlgorithm.LOW_LATENCY
    layout: EpLayout = EpLayout.EXPERT_MAJOR

    def __post_init__(self):
        _positive("FleetParams.", num_experts=self.num_experts, max_tokens_per_rank=self.max_tokens_per_rank, token_hidden_size=self.token_hidden_size,
                  dtype_bytes=self.dtype_bytes)
        if self.layout is EpLayout.RANK_MAJOR and self.algorithm is not EpAlgorithm.LOW_LATENCY:
            raise ValueError("FleetParams.layout=RANK_MAJOR is only valid with algorithm=LOW_LATENCY")


@frozen
class HandleParams:
    topk_ids: Any


@frozen
class DispatchInputParams:
    x: Any


@frozen
class DispatchOutput:
    """What a rank received. `num_tokens` may be a function that finds the number."""
    expert_tensors: Any
    num_tokens: Any
    recv_topk_idx: Any = None
    recv_topk_weights: Any = None
    expert_counts: Any = None
    recv_total_counter: Any = None
    expert_scales: Any = None

    def get_num_tokens(self):
        return int(self.num_tokens() if callable(self.num_tokens) else self.num_tokens)


@frozen
class CombineInputParams:
    x: Any
    out: Any = None
    out_is_stable: bool = False


@frozen
class CombineOutput:
    x: Any


class AlgoKnob:
    """An option of a transport; of several of one class the last counts."""


@frozen
class FleetAlgoKnobAllocator(AlgoKnob):
    torch_caching: bool = False
    alloc_fn: int = 0
    free_fn: int = 0
    context: int = 0

    def __post_init__(self):
        if self.torch_caching and (self.alloc_fn or self.free_fn):
            raise ValueError("FleetAlgoKnobAllocator: set either torch_caching=True or alloc_fn and free_fn, not both")
        if bool(self.alloc_fn) != bool(self.free_fn):
            raise ValueError("FleetAlgoKnobAllocator: alloc_fn and free_fn must be given together")


@frozen
class FleetAlgoKnobFaultTolerance(AlgoKnob):
    enabled: bool = True
    timeout_ms: int = 0
    reconcile_timeout_s: float = 30.0
    coordinator_takeover_s: float = 10.0

    def __post_init__(self):
        if self.timeout_ms < 0:
            raise ValueError(f"FleetAlgoKnobFaultTolerance.timeout_ms must be >= 0, got {self.timeout_ms}")
        if self.reconcile_timeout_s <= 0 or self.coordinator_takeover_s <= 0:
            raise ValueError("FleetAlgoKnobFaultTolerance: reconcile_timeout_s and coordinator_takeover_s must be positive, got "
                             f"{self.reconcile_timeout_s} / {self.coordinator_takeover_s}")


def _knob(name, **fields):
    return dataclasses.make_dataclass(name, [(k, Any, v) if v is not dataclasses.MISSING else (k, Any) for k, v in fields.items()], bases=(AlgoKnob,),
                                      frozen=True)


_REQUIRED = dataclasses.MISSING
FleetAlgoKnobNumChannelsPerRank = _knob("FleetAlgoKnobNumChannelsPerRank", n=_REQUIRED)
FleetAlgoKnobNumQpsPerRank = _knob("FleetAlgoKnobNumQpsPerRank", n=_REQUIRED)
FleetAlgoKnobQuantization = _knob("FleetAlgoKnobQuantization", quants=frozenset())
FleetAlgoKnobRdmaBufferSize = _knob("FleetAlgoKnobRdmaBufferSize", bytes_=_REQUIRED)
FleetAlgoKnobTopologyCapacity = _knob("FleetAlgoKnobTopologyCapacity", n=_REQUIRED)
HandleAlgoKnobNumReceivedTokens = _knob("HandleAlgoKnobNumReceivedTokens", target=_REQUIRED)
HandleAlgoKnobSplitOperation = _knob("HandleAlgoKnobSplitOperation")
HandleAlgoKnobTopKWeights = _knob("HandleAlgoKnobTopKWeights", weights=_REQUIRED)
HandleAlgoKnobUserStream = _knob("HandleAlgoKnobUserStream", stream=_REQUIRED)


def _index_knobs(knobs):
    """{class: knob}.

    Raises:
        TypeError: something that is no AlgoKnob
    """
    for knob in knobs:
        if not isinstance(knob, AlgoKnob):
            raise TypeError(f"expected AlgoKnob, got {type(knob).__name__}")
    return {type(knob): knob for knob in knobs}


class MoEEpWeightPack:
    """Weights of this rank's experts: w13 [experts, 2 * intermediate, hidden] (the linear half, the gate), w2 [experts, hidden, intermediate], and
    scales of quantised ones. Making one gives an UnquantizedMoEWeights or a PrequantizedMoEWeights.

    Raises:
        TypeError: a weight is missing, or one scale of two
    """

    def __new__(cls, w13=None, w2=None, w13_scale=None, w2_scale=None):
        if cls is not MoEEpWeightPack:
            return super().__new__(cls)
        if w13 is None or w2 is None:
            raise TypeError("MoEWeightPack requires w13 and w2")
        if w13_scale is None and w2_scale is None:
            return UnquantizedMoEWeights(w13, w2)
        if w13_scale is None or w2_scale is None:
            raise TypeError("MoEWeightPack requires both w13_scale and w2_scale, or neither")
        return PrequantizedMoEWeights(w13, w2, w13_scale, w2_scale)


MoEEpWeightPack.__name__ = MoEEpWeightPack.__qualname__ = "MoEWeightPack"


@frozen
class UnquantizedMoEWeights(MoEEpWeightPack):
    w13: Any
    w2: Any
    w13_scale = w2_scale = None


@frozen
class PrequantizedMoEWeights(MoEEpWeightPack):
    w13: Any
    w2: Any
    w13_scale: Any
    w2_scale: Any


def dummy_moe_weights(*, num_local_experts, hidden, intermediate=1, device="cpu"):
    """Zeros of the right shapes."""
    import torch

    return UnquantizedMoEWeights(torch.zeros(num_local_experts, 2 * intermediate, hidden, device=device),
                                 torch.zeros(num_local_experts, hidden, intermediate, device=device))


@dataclasses.dataclass
class MoEEpTensors:
    """Tensors of one step: [tokens, hidden], ids of experts [tokens, top_k] and their weights; the others are of GPU kernels."""
    hidden_states: Any
    topk_ids: Any
    topk_weights: Any
    scales: Any = None
    fc1_alpha: Any = None
    fc2_alpha: Any = None
    fc1_norm_const: Any = None
    recv_count: Any = None
    num_tokens_per_expert: Any = None
    output: Any = None

    @property
    def num_tokens(self):
        return self.hidden_states.shape[0]


class Handle(abc.ABC):
    """One dispatch and combine of a Fleet."""

    @abc.abstractmethod
    def dispatch(self, params):
        """Sends tokens to the ranks of their experts."""

    @abc.abstractmethod
    def combine(self, params):
        """Returns experts' results to the ranks of their tokens."""

    @abc.abstractmethod
    def complete(self):
        """Waits for a staged operation."""

    def destroy(self):
        """Frees what the handle holds."""

    def update(self, params):
        raise NotImplementedError(f"{type(self).__name__} does not implement update")

    def dispatch_send_only(self, params):
        raise NotImplementedError(f"{type(self).__name__} does not implement dispatch_send_only")

    def dispatch_recv_only(self):
        raise NotImplementedError(f"{type(self).__name__} does not implement dispatch_recv_only")


class Fleet(abc.ABC):
    """A transport between the ranks of a layer, which makes handles."""

    @abc.abstractmethod
    def __init__(self, bootstrap, params, algo_knobs=()):
        """Registered transports are made with these arguments."""

    @abc.abstractmethod
    def create_handle(self, params, algo_knobs=()):
        """A handle for one dispatch and combine."""

    @abc.abstractmethod
    def update_topology(self, bootstrap, algo_knobs=()):
        """The same over other ranks."""

    @abc.abstractmethod
    def destroy(self):
        """Frees what the transport holds."""

    @property
    def supports_fault_tolerance(self):
        return False
