# SPDX-License-Identifier: Apache-2.0
"""What connects the ranks of a UlyssesCommunicator, and which of FlashInfer's two ways ("nvlink", "nccl") that allows. docs/comm.md."""
import dataclasses
import platform

from ._comm_backends import of_group

SUPPORTED_WORLD_SIZES = (2, 4, 6, 8)
ULYSSES_BACKENDS = ("auto", "nvlink", "nccl")


class UlyssesBackendError(RuntimeError):
    """backend="nvlink" is asked for where it is not possible."""


@dataclasses.dataclass
class UlyssesRankTopology:
    """What a rank sees of its GPU and of the others; keys are GPUs' UUIDs."""

    rank: int
    hostname: str = ""
    device_index: int = -1
    device_uuid: str = ""
    pci_bus_id: str = ""
    peer_p2p: dict = dataclasses.field(default_factory=dict)
    peer_nvlink: dict = dataclasses.field(default_factory=dict)
    pair_errors: dict = dataclasses.field(default_factory=dict)
    probe_error: str = None


@dataclasses.dataclass(frozen=True)
class UlyssesBackendDecision:
    """Which way, and why."""

    backend: str
    reason: str


def probe_ulysses_rank_topology(device, rank):
    """The host of this rank. Connections of GPUs are not looked at: `probe_error` says so."""
    return UlyssesRankTopology(rank, hostname=platform.node(), probe_error=f"device {device}: ranks communicate on CPU tensors, no GPU is looked at")


def _against_nvlink(topologies, sizes):
    """Why the ranks cannot all write to each other through NVLink; None: they can."""
    if len(topologies) not in sizes:
        return f"world size {len(topologies)} is not one of {tuple(sizes)}"
    if [t.rank for t in topologies] != list(range(len(topologies))):
        return f"malformed topologies: their ranks are {[t.rank for t in topologies]}, but must be 0, 1, ... in this order"
    for t in topologies:
        if t.probe_error is not None:
            return f"rank {t.rank}: {t.probe_error}"
        if not t.hostname or not t.device_uuid:
            return f"identity unknown: rank {t.rank} has host {t.hostname!r} and GPU {t.device_uuid!r}"
        if t.hostname != topologies[0].hostname:
            return f"multiple hosts: rank {t.rank} is on {t.hostname}, but rank {topologies[0].rank} on {topologies[0].hostname}"
    owners = {}
    for t in topologies:
        if owners.setdefault(t.device_uuid, t.rank) != t.rank:
            return f"ranks {owners[t.device_uuid]} and {t.rank} have the same physical GPU, {t.device_uuid}"
    for t in topologies:
        for other in topologies:
            if other is t:
                continue
            if other.device_uuid in t.pair_errors:
                return f"NVLink probe failed between rank {t.rank} and rank {other.rank}: {t.pair_errors[other.device_uuid]}"
            if not t.peer_p2p.get(other.device_uuid):
                return f"no P2P access from rank {t.rank} to rank {other.rank}"
            if not t.peer_nvlink.get(other.device_uuid):
                return f"no NVLink between rank {t.rank} and rank {other.rank}"
    return None


def decide_ulysses_backend(requested, topologies, supported_world_sizes=SUPPORTED_WORLD_SIZES):
    """"nvlink" where every rank reaches every other one through it, else "nccl".

    Args:
        requested: "auto", "nvlink" or "nccl"
        topologies: of all ranks
        supported_world_sizes: numbers of ranks for which "nvlink" is possible

    Raises:
        ValueError: another request
        UlyssesBackendError: "nvlink" is requested, but not possible
    """
    if requested not in ULYSSES_BACKENDS:
        raise ValueError(f"decide_ulysses_backend: backend must be one of {ULYSSES_BACKENDS}, not {requested!r}")
    if requested == "nccl":
        return UlyssesBackendDecision("nccl", "requested")
    problem = _against_nvlink(topologies, supported_world_sizes)
    if problem is None:
        return UlyssesBackendDecision("nvlink", f"all {len(topologies)} ranks reach each other through NVLink")
    if requested == "nvlink":
        raise UlyssesBackendError(f"backend='nvlink' requested but not possible: {problem}")
    return UlyssesBackendDecision("nccl", problem)


def resolve_ulysses_backend(backend="auto", group=None, device=None):
    """decide_ulysses_backend of the ranks of `group` (of torch.distributed, or a communicator). Collective.

    Raises:
        ValueError: an unknown back end, or different ones on different ranks
        UlyssesBackendError: "nvlink" is requested, but not possible
    """
    comm = of_group(group)
    for rank, other in enumerate(asked := comm.allgather(backend)):
        if other not in ULYSSES_BACKENDS or other != asked[0]:
            raise ValueError(f"resolve_ulysses_backend: backend must be one of {ULYSSES_BACKENDS}, the same on all ranks, but rank {rank} has {other!r}")
    return decide_ulysses_backend(backend, list(comm.allgather(probe_ulysses_rank_topology(device, comm.Get_rank()))))
