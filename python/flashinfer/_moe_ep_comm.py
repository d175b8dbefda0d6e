# SPDX-License-Identifier: Apache-2.0
"""Dispatch and combine between the ranks of a mixture of experts (flashinfer.moe_ep), by name of the back end. docs/comm.md."""
import abc
import dataclasses
import inspect
import warnings
from typing import Any, Optional

from ._moe_api import QuantFormat
from ._moe_ep import Fleet, MoEEpConfigError, MoEEpNotBuiltError
from ._moe_ep_checks import bootstrap_ep_rank_world

_communications, _fleets = {}, {}
_TRANSPORTS = ("nccl_ep", "nixl_ep")  # of libraries that are not part of this one
# Bytes of n elements with their scales.
_BYTES = {QuantFormat.BF16: lambda n: 2 * n, QuantFormat.FP16: lambda n: 2 * n, QuantFormat.FP8PerTensor: lambda n: n,
          QuantFormat.DeepSeekFp8: lambda n: n + n // 128 * 4, QuantFormat.MXFP8: lambda n: n + n // 32, QuantFormat.NVFP4: lambda n: n // 2 + n // 16,
          QuantFormat.MXFP4: lambda n: n // 2 + n // 32}


@dataclasses.dataclass(frozen=True)
class MoEEpCommParams:
    """Sizes of a dispatch. Tokens are [tokens, hidden_size] of `dtype` (None: bf16), sent as `dispatch_format` (None: as they are); in received rows
    without a token all experts are `invalid_expert_id`.

    Raises:
        ValueError: sizes that are not positive, more experts a token than there are, an invalid id that is an expert's
    """
    num_experts: int
    top_k: int
    max_tokens_per_rank: int
    hidden_size: int
    dtype: Any = None
    dispatch_format: Any = None
    invalid_expert_id: int = -1

    def __post_init__(self):
        for name in ("num_experts", "top_k", "max_tokens_per_rank", "hidden_size"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise ValueError(f"MoEEpCommParams.{name} must be a positive int")
        if self.top_k > self.num_experts:
            raise ValueError(f"MoEEpCommParams.top_k ({self.top_k}) exceeds num_experts ({self.num_experts})")
        if 0 <= self.invalid_expert_id < self.num_experts:
            raise ValueError(f"MoEEpCommParams.invalid_expert_id must lie outside [0, num_experts={self.num_experts}), got {self.invalid_expert_id}")
        if self.dispatch_format is not None and self.dispatch_format not in _BYTES:
            raise ValueError(f"MoEEpCommParams.dispatch_format must be one of QuantFormat.{{{', '.join(q.name for q in _BYTES)}}} or None, "
                             f"got {self.dispatch_format}")

    @property
    def token_dtype(self):
        import torch

        return torch.bfloat16 if self.dtype is None else self.dtype

    @property
    def dispatch_bytes_per_token(self):
        if self.dispatch_format is None:
            return self.hidden_size * self.token_dtype.itemsize
        return _BYTES[self.dispatch_format](self.hidden_size)


@dataclasses.dataclass(frozen=True)
class MoEEpDispatchResult:
    """What a rank received, [ranks * tokens_per_rank, ...]: rows r * tokens_per_rank on are of rank r, those of its tokens that are sent here first. They
    are valid until the combine."""
    hidden_states: Any
    topk_ids: Any
    topk_weights: Any
    tokens_per_rank: int
    hidden_states_scale: Any = None
    eplb_gathered_stats: Any = None


class MoEEpCommunication(abc.ABC):
    """Dispatch and combine of one group of ranks, by turns; all ranks make the same calls.

    Raises:
        MoEEpConfigError: experts that are no even share for each rank
    """

    def __init__(self, bootstrap, params):
        self.bootstrap, self.params = bootstrap, params
        self.ep_rank, self.ep_size = bootstrap_ep_rank_world(bootstrap)
        if params.num_experts % self.ep_size:
            raise MoEEpConfigError(f"num_experts ({params.num_experts}) must be divisible by ep_size ({self.ep_size})")
        self.num_local_experts = params.num_experts // self.ep_size

    @classmethod
    @abc.abstractmethod
    def is_platform_supported(cls):
        """Whether this machine can run it."""

    def is_workload_feasible(self, max_tokens_per_rank):
        """Whether a step of so many tokens on the busiest rank fits."""
        return max_tokens_per_rank <= self.params.max_tokens_per_rank

    @abc.abstractmethod
    def dispatch(self, hidden_states, topk_ids, topk_weights=None, *, hidden_states_scale=None, max_tokens_per_rank=None, eplb_local_stats=None):
        """Sends each token to the ranks that have its experts: a MoEEpDispatchResult."""

    @abc.abstractmethod
    def combine(self, expert_output, *, output=None):
        """[tokens, hidden]: the sums over ranks of what their experts made of this rank's tokens, from [ranks * tokens_per_rank, hidden]."""

    def get_combine_input_buffer(self, dtype):
        """Memory for expert_output from which combine reads without a copy, or None."""
        return None

    def destroy(self):
        """Frees what it holds."""


@dataclasses.dataclass
class NVLinkOneSidedConfig:
    """Options of NVLinkOneSidedAlltoAll. `comm_backend` connects the ranks; None: torch.distributed, MPI, or one rank."""
    backend_name: str = "nvlink_one_sided"
    extra_payload_bytes_per_token: int = 0
    eplb_stats_num_experts: int = 0
    enable_rank_mask: bool = False
    use_low_precision_combine: bool = False
    comm_backend: Optional[Any] = None


class NVLinkOneSidedAlltoAll(MoEEpCommunication):
    """Dispatch and combine through memory that the ranks share (flashinfer.comm.MoeAlltoAll). Making one is collective.

    Raises:
        ValueError: sizes that are not possible
    """

    def __init__(self, bootstrap, params, config=None):
        from ._comm import _agree
        from ._comm_backends import TorchDistBackend, resolved
        from ._comm_memory import MnnvlConfig
        from ._mapping import Mapping
        from ._moe_alltoall import MoeAlltoAll, moe_a2a_get_workspace_size_per_rank

        self.config = config = config or NVLinkOneSidedConfig()
        comm = config.comm_backend
        if comm is None:
            comm = resolved() if bootstrap.process_group is None else TorchDistBackend(bootstrap.process_group)
        _agree(comm, lambda: MoEEpCommunication.__init__(self, bootstrap, params), "NVLinkOneSidedAlltoAll")
        size = moe_a2a_get_workspace_size_per_rank(
            self.ep_size, params.max_tokens_per_rank, params.dispatch_bytes_per_token + 8 * params.top_k + config.extra_payload_bytes_per_token,
            params.hidden_size * params.token_dtype.itemsize, config.eplb_stats_num_experts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._alltoall = MoeAlltoAll(
                Mapping(world_size=self.ep_size, rank=self.ep_rank, tp_size=self.ep_size, moe_ep_size=self.ep_size), params.max_tokens_per_rank, params.top_k,
                params.num_experts, size, None, MnnvlConfig(comm_backend=comm), config.eplb_stats_num_experts,
                config.enable_rank_mask)
        self._rows = None

    @classmethod
    def is_platform_supported(cls):
        return True

    @property
    def alltoall(self):
        """The MoeAlltoAll."""
        return self._alltoall

    def dispatch(self, hidden_states, topk_ids, topk_weights=None, *, hidden_states_scale=None, max_tokens_per_rank=None, eplb_local_stats=None,
                 active_rank_mask=None):
        """As MoEEpCommunication.dispatch; `active_rank_mask` is moe_a2a_active_rank_mask's.

        Raises:
            ValueError: tensors that do not fit together or into the memory, a mask without enable_rank_mask
        """
        from ._comm import checking

        rows = self.params.max_tokens_per_rank if max_tokens_per_rank is None else max_tokens_per_rank
        with checking(self._alltoall.workspace, "NVLinkOneSidedAlltoAll.dispatch"):
            if not self.is_workload_feasible(rows) or hidden_states.shape[0] > rows:
                raise ValueError(f"NVLinkOneSidedAlltoAll.dispatch: there are {hidden_states.shape[0]} tokens and max_tokens_per_rank is {rows}, but the "
                                 f"memory is for {self.params.max_tokens_per_rank}")
            if tuple(topk_ids.shape) != (hidden_states.shape[0], self.params.top_k):
                raise ValueError(f"NVLinkOneSidedAlltoAll.dispatch: topk_ids has shape {tuple(topk_ids.shape)}, but must be "
                                 f"[{hidden_states.shape[0]}, {self.params.top_k}]")
            if active_rank_mask is not None and not self.config.enable_rank_mask:
                raise ValueError("NVLinkOneSidedAlltoAll.dispatch: active_rank_mask needs enable_rank_mask=True")
        import torch

        ids = topk_ids.to(torch.int32).contiguous()
        optional = [None if t is None else t.contiguous() for t in (topk_weights, hidden_states_scale)]
        got = self._alltoall.dispatch(ids, [hidden_states.contiguous(), ids, *(t for t in optional if t is not None)], rows, self.params.invalid_expert_id, 1,
                                      eplb_local_stats, active_rank_mask)
        self._rows, stats = rows, self._alltoall.eplb_gathered_stats
        hidden, received, *rest = (t.flatten(0, 1) for t in got)
        weights, scale = (rest.pop(0) if t is not None else None for t in optional)
        return MoEEpDispatchResult(hidden, received, weights, rows, scale, stats)

    def get_combine_input_buffer(self, dtype):
        return self._alltoall.get_combine_payload_tensor_in_workspace(self._rows, self.params.hidden_size, dtype).flatten(0, 1)

    def combine(self, expert_output, *, output=None, active_rank_mask=None):
        from ._comm import checking

        with checking(self._alltoall.workspace, "NVLinkOneSidedAlltoAll.combine"):
            payload = expert_output.view(self.ep_size, self._rows, -1) if self._rows is not None else expert_output
            first = payload.data_ptr() - self._alltoall.workspace[self.ep_rank].data_ptr()
        return self._alltoall.combine(payload, self._rows, first == self._alltoall._offset, output=output,
                                      use_low_precision=self.config.use_low_precision_combine, active_rank_mask=active_rank_mask)

    def destroy(self):
        self._alltoall = None


def register_communication(name):
    """A decorator that makes a subclass of MoEEpCommunication known by name."""

    def register(cls):
        _communications[name] = cls
        return cls

    return register


def register_fleet(name):
    """A decorator that makes a subclass of Fleet known by name."""

    def register(cls):
        _fleets[name] = cls
        return cls

    return register


register_communication("nvlink_one_sided")(NVLinkOneSidedAlltoAll)


def available_communication_backends():
    """Names of those that can run on this machine."""
    return sorted(name for name, cls in _communications.items() if cls.is_platform_supported())


def backend_name(backend):
    name = backend if isinstance(backend, str) else getattr(backend, "backend_name", None)
    if not isinstance(name, str):
        raise TypeError(f"backend must be a string or have a .backend_name str attr; got {backend!r}")
    return name


def create_communication(bootstrap, params, backend, **options):
    """The communication of that name, or of a configuration with a `backend_name`, which it is passed as `config`.

    Raises:
        KeyError: an unknown name
    """
    name = backend_name(backend)
    if name not in _communications:
        raise KeyError(f"unknown communication backend {name!r}; available: {sorted(_communications)}")
    cls = _communications[name]
    unknown = [o for o in options if o not in inspect.signature(cls.__init__).parameters]
    if unknown:
        raise TypeError(f"{cls.__name__}.__init__() got an unexpected keyword argument {unknown[0]!r}")
    return cls(bootstrap, params, **(options if isinstance(backend, str) else {"config": backend} | options))


def create_fleet(bootstrap, params, algo_knobs=(), backend="nccl_ep"):
    """The transport of that name.

    Raises:
        KeyError: an unknown name
        MoEEpNotBuiltError: a transport of FlashInfer's that is not part of this library
    """
    name = backend_name(backend)
    if name in _fleets:
        return _fleets[name](bootstrap, params, algo_knobs)
    if name in _TRANSPORTS:
        raise MoEEpNotBuiltError(f"moe_ep backend {name!r} is not built: it is a transport between GPUs. Use backend=SplitConfig(comm=NVLinkOneSidedConfig()), "
                                 "or register_fleet a transport of your own")
    raise KeyError(f"unknown backend {name!r}; available: {sorted({*_fleets, *_TRANSPORTS})}")


def is_fleet(name):
    """Whether a back end is a Fleet; False: a MoEEpCommunication.

    Raises:
        MoEEpConfigError: it is neither, or both
    """
    kinds = [name in _fleets or name in _TRANSPORTS and name not in _communications, name in _communications]
    if sum(kinds) != 1:
        raise MoEEpConfigError(f"comm backend {name!r} must be registered as exactly one of a Fleet backend or a MoEEpCommunication backend; it is "
                               f"registered as {'both' if all(kinds) else 'neither'}.")
    return kinds[0]
