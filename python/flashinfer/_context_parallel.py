# SPDX-License-Identifier: Apache-2.0
"""Decode with a context that is spread over ranks (`flashinfer.comm.decode_cp_a2a_*`). docs/comm.md."""
from . import _make
from ._comm import _agree
from ._comm_backends import of_group, resolved
from ._comm_memory import share

_alltoall_into = _make.package.exports["decode_cp_a2a_alltoall_into"]
_RANKS = 64


class AlltoallArgumentError(ValueError, RuntimeError):
    """Arguments that decode_cp_a2a_alltoall does not take: a ValueError as of any op here, and a RuntimeError as in FlashInfer."""


def decode_cp_a2a_workspace_size(cp_size):
    """Bytes a rank of a workspace of decode_cp_a2a_alltoall. Larger tensors go through it in pieces.

    Raises:
        ValueError: cp_size outside [1, 64]
    """
    if not 1 <= cp_size <= _RANKS:
        raise ValueError(f"decode_cp_a2a_workspace_size: cp_size is {cp_size}, but must be in [1, {_RANKS}]")
    return cp_size * ((4 << 20) + 256)


def decode_cp_a2a_allocate_mnnvl_workspace(mapping, *, mnnvl_config=None, device=None):
    """Memory that the ranks of one context share: int64 [cp_size, words]. Collective.

    Args:
        mapping: its cp_size ranks of the same pp_rank and tp_rank share a context
        mnnvl_config: its comm_backend connects all ranks; None: torch.distributed, MPI, or one rank
        device: of the tensors, "cpu" or this rank's "cuda:N"; absent: the current GPU once torch has used one, else the CPU
    """
    import torch

    comm = resolved(mnnvl_config.comm_backend if mnnvl_config is not None else None)
    if comm.Get_size() != mapping.cp_size:
        comm = comm.Split(mapping.pp_rank * mapping.tp_size + mapping.tp_rank, mapping.cp_rank)
    return share(comm, decode_cp_a2a_workspace_size(mapping.cp_size), device=device).view(torch.int64)


def decode_cp_a2a_init_workspace(workspace, cp_rank, cp_size):
    """Checks that the workspace is one of `cp_size` ranks; there is nothing to initialise.

    Raises:
        ValueError: it is not
    """
    if workspace.dim() != 2 or workspace.shape[0] != cp_size or not 0 <= cp_rank < cp_size:
        raise ValueError(f"decode_cp_a2a_init_workspace: workspace has shape {tuple(workspace.shape)}, cp_rank is {cp_rank} and cp_size {cp_size}, but it must "
                         "be [cp_size, words], with cp_rank in [0, cp_size)")


def decode_cp_a2a_alltoall(partial_o, softmax_stats, workspace, cp_rank, cp_size, enable_pdl=None, out=None):
    """Exchanges slices of partial attention: result[..., p, :] is rank p's input[..., cp_rank, :]. Collective.

    Args:
        partial_o: [..., cp_size, d] float16 or bfloat16, 2 * d a multiple of 16
        softmax_stats: float32 [..., cp_size, s], s even, at least 2
        workspace: of decode_cp_a2a_allocate_mnnvl_workspace
        cp_rank: this rank
        cp_size: ranks
        enable_pdl: of a GPU kernel; changes no result
        out: memory for the results

    Returns:
        both, in the shapes of the inputs

    Raises:
        AlltoallArgumentError: (a ValueError and a RuntimeError) dtypes or shapes that do not fit together or into the workspace
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    o, stats = out if out is not None else (None, None)
    try:
        results = _alltoall_into(partial_o, softmax_stats, workspace, cp_rank, cp_size, enable_pdl, o, stats)
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise AlltoallArgumentError(*error.args) from error
    return (o, stats) if out is not None else tuple(results)


decode_cp_a2a_alltoall.fi_trace = _alltoall_into.fi_trace


def decode_cp_a2a_lse_reduce_workspace_size(max_tokens, local_heads, cp_size, head_dim, dtype):
    """Bytes a rank of a workspace of decode_cp_a2a_lse_reduce for max_tokens * local_heads rows.

    Raises:
        ValueError: sizes that are not possible
        TypeError: a dtype other than float16 and bfloat16
    """
    import torch

    if min(max_tokens, local_heads, cp_size, head_dim) < 1:
        raise ValueError("workspace geometry must be positive")
    if cp_size > _RANKS:
        raise ValueError(f"cp_size must not exceed {_RANKS}")
    if dtype not in (torch.float16, torch.bfloat16):
        raise TypeError("dtype must be torch.float16 or torch.bfloat16")
    if 2 * head_dim % 16:
        raise ValueError("head_dim rows must be 16-byte aligned")
    return (16 + 8 * cp_size + 15) // 16 * 16 + 2 * cp_size * max_tokens * local_heads * (2 * head_dim + 4)


def decode_cp_a2a_lse_reduce_create_workspace(max_tokens, local_heads, cp_size, head_dim, dtype, group, *, device=None):
    """Memory that the ranks of `group` (of torch.distributed, or a communicator) share: uint8 [cp_size, bytes]. Collective. `device`: as of
    decode_cp_a2a_allocate_mnnvl_workspace.

    Raises:
        ValueError, TypeError: as decode_cp_a2a_lse_reduce_workspace_size; a group of another size
    """
    comm = of_group(group)
    bytes_of_rank = lambda: decode_cp_a2a_lse_reduce_workspace_size(max_tokens, local_heads, cp_size, head_dim, dtype)

    def problem():
        bytes_of_rank()
        return None if comm.Get_size() == cp_size else f"cp_size is {cp_size}, but the group has {comm.Get_size()} ranks"

    _agree(comm, problem, "decode_cp_a2a_lse_reduce_create_workspace")
    return share(comm, (bytes_of_rank() + 255) // 128 * 128, device=device)
