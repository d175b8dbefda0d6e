# SPDX-License-Identifier: Apache-2.0
"""Checks of flashinfer.moe_ep, and its ranks: torch.distributed's where it is initialised, else those of the BootstrapConfig."""
import dataclasses
import os

from ._moe_ep import EpAlgorithm, EpLayout, MoEEpConfigError

_NIXL_HIDDEN, _NIXL_TOKENS = (2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192), 1024


def _group(bootstrap):
    """(torch.distributed, the group), or None while it is not initialised."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return None
    return dist, bootstrap.process_group


def bootstrap_ep_rank_world(bootstrap):
    """(rank, ranks) of the experts' group."""
    found = _group(bootstrap)
    return (bootstrap.rank, bootstrap.world_size) if found is None else (found[0].get_rank(found[1]), found[0].get_world_size(found[1]))


def bootstrap_ep_world_size(bootstrap):
    """Ranks of the experts' group."""
    return bootstrap_ep_rank_world(bootstrap)[1]


def bootstrap_comm_group(bootstrap):
    """torch.distributed's group of these ranks.

    Raises:
        RuntimeError: there is no process_group, and torch.distributed is not initialised
    """
    if bootstrap.process_group is not None:
        return bootstrap.process_group
    found = _group(bootstrap)
    if found is None:
        raise RuntimeError("MoEEpLayer requires torch.distributed to be initialized when BootstrapConfig.process_group is not set")
    return found[0].group.WORLD


def validate_bootstrap_world_size(bootstrap):
    """MoEEpConfigError when torch.distributed has another number of ranks, or as validate_bootstrap_process_group_ready."""
    validate_bootstrap_process_group_ready(bootstrap)
    size = bootstrap_ep_world_size(bootstrap)
    if size != bootstrap.world_size:
        whose = "torch.distributed world size" if bootstrap.process_group is None else "BootstrapConfig.process_group size"
        raise MoEEpConfigError(f"BootstrapConfig.world_size ({bootstrap.world_size}) must match {whose} ({size})")


def validate_bootstrap_process_group_ready(bootstrap):
    """MoEEpConfigError when there is a process_group, but torch.distributed is not initialised."""
    if bootstrap.process_group is not None and _group(bootstrap) is None:
        raise MoEEpConfigError("BootstrapConfig.process_group is set but torch.distributed is not initialized: call "
                               "torch.distributed.init_process_group() first, or leave process_group out")


def ensure_bootstrap_dist_validated(bootstrap):
    """Both checks: the second begins with the first."""
    validate_bootstrap_world_size(bootstrap)


def ensure_moe_ep_cuda_device(bootstrap):
    """Makes the bootstrap's GPU the current one, where there is one."""
    import torch

    if bootstrap.device is not None and torch.cuda.is_available():
        torch.cuda.set_device(bootstrap.device)


@dataclasses.dataclass
class MoEEpRuntimeHandle:
    requirements: frozenset
    closed: bool = False


def bootstrap_moe_ep_runtime(bootstrap, requirements):
    """Starts what a layer needs: for several ranks torch.distributed, which must be initialised, or be so by RANK and WORLD_SIZE.

    Raises:
        RuntimeError: several ranks, and neither
        MoEEpConfigError: as ensure_bootstrap_dist_validated, when `requirements` has "torch_dist"
    """
    handle = MoEEpRuntimeHandle(frozenset(requirements))
    if "torch_dist" not in requirements:
        return handle
    validate_bootstrap_process_group_ready(bootstrap)
    if bootstrap.world_size > 1 and _group(bootstrap) is None:
        if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
            raise RuntimeError("MoEEpLayer requires torch.distributed to be initialized before construction when RANK/WORLD_SIZE are not set in the "
                               "environment.")
        import torch.distributed as dist

        dist.init_process_group("gloo")
    ensure_bootstrap_dist_validated(bootstrap)
    return handle


def finalize_moe_ep_runtime(handle):
    """Ends what bootstrap_moe_ep_runtime began; torch.distributed stays as it is."""
    if handle is not None:
        handle.closed = True


def supports_fault_tolerance(backend):
    """Whether the transport can leave ranks out; none here can."""
    return False


def validate_arch_for_backend(backend):
    """MoEEpArchError when a registered transport cannot run on the device; all that are here can."""


def validate_fleet_params(params, backend, world_size, quant=None, topology_capacity=None, fault_tolerance=None):
    """MoEEpConfigError when the transport does not take such sizes."""
    if fault_tolerance is not None and fault_tolerance.enabled and params.algorithm is not EpAlgorithm.LOW_LATENCY:
        raise MoEEpConfigError(f"{backend}: fault tolerance (FleetAlgoKnobFaultTolerance) requires algorithm=LOW_LATENCY")
    if backend != "nixl_ep":
        return
    if params.algorithm is not EpAlgorithm.LOW_LATENCY:
        raise MoEEpConfigError("nixl_ep: only algorithm=LOW_LATENCY is supported (HIGH_THROUGHPUT requires nccl_ep).")
    if params.layout is not EpLayout.EXPERT_MAJOR:
        raise MoEEpConfigError("nixl_ep: only layout=EXPERT_MAJOR is supported (RANK_MAJOR requires nccl_ep).")
    if params.max_tokens_per_rank > _NIXL_TOKENS:
        raise MoEEpConfigError(f"nixl_ep: max_tokens_per_rank ({params.max_tokens_per_rank}) must be at most {_NIXL_TOKENS}")
    if params.token_hidden_size not in _NIXL_HIDDEN:
        raise MoEEpConfigError(f"nixl_ep: token_hidden_size ({params.token_hidden_size}) must be one of {list(_NIXL_HIDDEN)}")
    capacity = world_size if topology_capacity is None else topology_capacity
    if capacity < world_size:
        raise MoEEpConfigError(f"nixl_ep: topology capacity ({capacity}) must be >= world_size ({world_size})")
    if params.num_experts % capacity:
        raise MoEEpConfigError(f"nixl_ep: num_experts ({params.num_experts}) must be a positive multiple of topology capacity ({capacity})")


def validate_fleet_weights(weights, params, world_size):
    """MoEEpConfigError when these are not the weights of an even share of the experts."""
    if params.num_experts % world_size:
        raise MoEEpConfigError(f"num_experts ({params.num_experts}) must be divisible by world_size ({world_size})")
    local = params.num_experts // world_size
    for name in ("w13", "w2"):
        if getattr(weights, name).shape[0] != local:
            raise MoEEpConfigError(f"MoEWeightPack.{name}.shape[0] ({getattr(weights, name).shape[0]}) != num_experts // world_size ({local})")
    hidden = params.token_hidden_size
    if weights.w13_scale is None and weights.w13.shape[-1] != hidden:
        raise MoEEpConfigError(f"MoEWeightPack.w13 hidden dim ({weights.w13.shape[-1]}) does not match token_hidden_size ({hidden})")
    if weights.w2_scale is None and weights.w2.shape[1] != hidden:
        raise MoEEpConfigError(f"MoEWeightPack.w2 hidden dim ({weights.w2.shape[1]}) does not match token_hidden_size ({hidden})")


def validate_split_forward_inputs(hidden_states, topk_ids, topk_weights, fleet_params):
    """MoEEpConfigError when shapes do not fit together or the layer."""
    if hidden_states.shape[0] > fleet_params.max_tokens_per_rank:
        raise MoEEpConfigError(f"token count {hidden_states.shape[0]} exceeds max_tokens_per_rank={fleet_params.max_tokens_per_rank}")
    if topk_weights.shape != topk_ids.shape:
        raise MoEEpConfigError("topk_weights and topk_ids must have the same shape")
    if topk_ids.shape[0] != hidden_states.shape[0]:
        raise MoEEpConfigError(f"topk_ids batch dim ({topk_ids.shape[0]}) does not match hidden_states batch dim ({hidden_states.shape[0]})")
    if hidden_states.dim() != 2 or hidden_states.shape[1] != fleet_params.token_hidden_size:
        raise MoEEpConfigError(f"hidden_states.shape[1] ({hidden_states.shape[1] if hidden_states.dim() > 1 else None}) does not match "
                               f"FleetParams.token_hidden_size ({fleet_params.token_hidden_size})")
    if topk_ids.dim() != 2:
        raise MoEEpConfigError(f"topk_ids has shape {tuple(topk_ids.shape)}, but must be [tokens, top_k]")


def validate_mega_arch():
    """MoEEpArchError when the device has no fused kernel of its own; without a GPU nothing is known of it."""


def validate_mega_fleet_params(params, world_size, *, intermediate_size, top_k, alignment=128):
    """MoEEpConfigError when a fused kernel does not take such sizes."""
    if params.num_experts % world_size:
        raise MoEEpConfigError(f"num_experts ({params.num_experts}) must be divisible by world_size ({world_size})")
    for name, size in (("token_hidden_size", params.token_hidden_size), ("intermediate_size", intermediate_size)):
        if size % alignment:
            raise MoEEpConfigError(f"{name} ({size}) must be a multiple of {alignment}")
    if top_k <= 0:
        raise MoEEpConfigError(f"top_k must be positive, got {top_k}")


def validate_mega_forward_inputs(hidden_states, topk_ids, topk_weights, fleet_params, *, top_k, quantize_input, scales=None):
    """MoEEpConfigError when shapes do not fit together, or the scales of quantised tokens are missing."""
    validate_split_forward_inputs(hidden_states, topk_ids, topk_weights, fleet_params)
    if topk_ids.shape[1] != top_k:
        raise MoEEpConfigError(f"topk_ids.shape[1] ({topk_ids.shape[1]}) does not match kernel top_k ({top_k})")
    if not quantize_input and scales is None:
        raise MoEEpConfigError("MoEEpTensors.scales is required when MegaConfig.quantize_input=False")
