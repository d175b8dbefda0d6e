# SPDX-License-Identifier: Apache-2.0
"""Collectives of ranks that are divided by tensor and by data parallelism (`flashinfer.comm.run_mixed_comm`). docs/comm.md."""
import enum

from . import _make
from ._comm import AllReduceFusionWorkspace, _agree, checking
from ._comm_backends import resolved

_mixed = _make.package.exports["mixed_comm_into"]
_ELEMENTS = 1 << 20  # of the memory: larger tensors go through it in pieces


class MixedCommOp(enum.IntEnum):
    """What run_mixed_comm does: a sum over the ranks of tensor parallelism, blocks of those of data parallelism."""

    ALLREDUCE = 0
    ALLGATHER = 1
    REDUCESCATTER = 2
    ALLREDUCE_ALLGATHER = 3
    REDUCESCATTER_ALLREDUCE = 4


class MixedCommMode(enum.IntEnum):
    """FlashInfer's ways on GPUs. Here all are one: the same call, the same bits."""

    FUSED_OPT_WAITS_MC = 0
    FUSED_OPT_WAITS_UC = 1
    FUSED_OPT_BYTES1_MC = 2
    FUSED_OPT_BYTES1_UC = 3
    FUSED_OPT_BYTES2_MC = 4
    FUSED_OPT_BYTES2_UC = 5
    NCCL_ONE = 6
    NCCL_TP_DP = 7
    AUTOTUNE = 8


def _sizes(size, tp, dp, what):
    """(tp, dp) of `size` ranks: one that is None is what the other leaves; both: all are tensor parallel."""
    if tp is None:
        tp = size if dp is None else size // dp if dp > 0 else 0
    if dp is None:
        dp = size // tp if tp > 0 else 0
    if tp < 1 or dp < 1 or tp * dp != size:
        raise ValueError(f"MixedCommHandler: {what}_tp_size is {tp} and {what}_dp_size {dp}, but their product must be {what}_size, {size}")
    return tp, dp


class MixedCommHandler:
    """The ranks and their memory for run_mixed_comm: shared memory of one machine, or of its GPUs, on which nodes are only numbers. Collective.

    Args:
        world_rank: inter_rank * local_size + local_rank
        world_size: inter_size * local_size
        local_rank: in the node: tp + dp * local_tp_size
        local_size: ranks of a node
        inter_rank: of the node: tp + dp * inter_tp_size
        inter_size: nodes
        local_tp_size, local_dp_size, inter_tp_size, inter_dp_size: how ranks and nodes are divided; None: what the other leaves
        dtype: float16 or bfloat16
        device: of the tensors, "cpu" or this rank's GPU
        grid_size, max_block_size, min_block_size, min_num_steps, ib_enable_ibgda, should_init_nvshmem: of GPU kernels; they change nothing
        use_autotune: the mode of a call without one is AUTOTUNE; else NCCL_ONE or NCCL_TP_DP
        comm_backend: a communicator; None: torch.distributed, MPI, or one rank

    Raises:
        ValueError: numbers that do not fit together or the communicator, on any rank
    """

    is_running = False

    def __init__(self, world_rank, world_size, local_rank, local_size, inter_rank, inter_size, local_tp_size, local_dp_size, inter_tp_size, inter_dp_size,
                 dtype, device, grid_size=None, max_block_size=None, min_block_size=256, min_num_steps=4, ib_enable_ibgda=True, should_init_nvshmem=True,
                 use_autotune=True, *, comm_backend=None):
        comm = resolved(comm_backend)
        _agree(comm, lambda: self._divide(world_rank, world_size, local_rank, local_size, inter_rank, inter_size, local_tp_size, local_dp_size, inter_tp_size,
                                          inter_dp_size, dtype, device), "MixedCommHandler")
        self.use_autotune = use_autotune
        self.valid_op_list, self.valid_mode_list = self.get_valid_op_list(), self.get_valid_mode_list()
        self.max_block_size_dict = {}  # of GPU kernels
        self._workspace = AllReduceFusionWorkspace(world_size, world_rank, 1, _ELEMENTS, dtype, comm, device=str(self.device))
        self.is_running = True

    def _divide(self, world_rank, world_size, local_rank, local_size, inter_rank, inter_size, local_tp_size, local_dp_size, inter_tp_size, inter_dp_size, dtype,
                device):
        """What the constructor's arguments say of this rank."""
        import torch

        if world_rank != inter_rank * local_size + local_rank or world_size != inter_size * local_size:
            raise ValueError(f"MixedCommHandler: world_rank is {world_rank} and world_size {world_size}, but must be inter_rank * local_size + local_rank, "
                             f"{inter_rank * local_size + local_rank}, and inter_size * local_size, {inter_size * local_size}")
        if dtype not in (torch.float16, torch.bfloat16):
            raise ValueError(f"MixedCommHandler: dtype is {dtype}, but must be torch.float16 or torch.bfloat16")
        device = torch.device(device)
        if device.type not in ("cpu", "cuda"):
            raise ValueError(f"MixedCommHandler: device is {device}, but must be 'cpu' or this rank's 'cuda:N'")
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        self.local_tp_size, self.local_dp_size = _sizes(local_size, local_tp_size, local_dp_size, "local")
        self.inter_tp_size, self.inter_dp_size = _sizes(inter_size, inter_tp_size, inter_dp_size, "inter")
        self.world_rank, self.world_size, self.dtype, self.device = world_rank, world_size, dtype, device
        self.tp_size, self.dp_size = self.local_tp_size * self.inter_tp_size, self.local_dp_size * self.inter_dp_size
        self.tp_rank = local_rank % self.local_tp_size + inter_rank % self.inter_tp_size * self.local_tp_size
        self.dp_rank = local_rank // self.local_tp_size + inter_rank // self.inter_tp_size * self.local_dp_size

    def get_valid_op_list(self):
        """The ops of these ranks."""
        if self.tp_size > 1 and self.dp_size > 1:
            return [MixedCommOp.ALLREDUCE_ALLGATHER, MixedCommOp.REDUCESCATTER_ALLREDUCE]
        return [MixedCommOp.ALLGATHER, MixedCommOp.REDUCESCATTER] if self.dp_size > 1 else [MixedCommOp.ALLREDUCE]

    def get_valid_mode_list(self):
        """All modes: they are one."""
        return list(MixedCommMode)

    def select_autotune_mode(self, op, x_in):
        """NCCL_TP_DP for ops of two steps, else NCCL_ONE."""
        return MixedCommMode.NCCL_TP_DP if op >= MixedCommOp.ALLREDUCE_ALLGATHER else MixedCommMode.NCCL_ONE

    def checkpoint_prepare(self):
        """Gives the memory back until checkpoint_restore. Collective; as of create_allreduce_fusion_workspace's workspaces."""
        self._workspace.checkpoint_prepare()

    def checkpoint_restore(self, comm_backend):
        """Makes the memory again with the ranks of `comm_backend`, which have the same numbers. Collective.

        Raises:
            RuntimeError: without checkpoint_prepare
            ValueError: another rank or number of ranks
        """
        self._workspace.checkpoint_restore(comm_backend)

    def shutdown(self):
        """Gives the memory back.

        Raises:
            AssertionError: for the second time
        """
        assert self.is_running, "Should not call shutdown() more than once."
        self.is_running = False
        self._workspace.destroy()

    def __del__(self):
        if self.is_running:
            self.shutdown()


def _check(op, handler, x_in, x_out, mode):
    if op not in handler.get_valid_op_list():
        raise ValueError(f"Invalid op: {MixedCommOp(op).name}")
    if mode is not None and mode not in handler.get_valid_mode_list():
        raise ValueError(f"Invalid mode: {mode}")
    if x_in.ndim < 2:
        raise ValueError(f"x_in has {x_in.ndim} dimensions, but x_in.ndim should be at least 2")
    if x_in.dtype != handler.dtype:
        raise ValueError(f"x_in.dtype is {x_in.dtype}, but should be {handler.dtype}")
    if x_in.device != handler.device:
        raise ValueError(f"x_in.device is {x_in.device}, but should be {handler.device}")
    scatters = op in (MixedCommOp.REDUCESCATTER, MixedCommOp.REDUCESCATTER_ALLREDUCE)
    if scatters and x_in.shape[0] % handler.dp_size:
        raise ValueError(f"x_in.shape[0] is {x_in.shape[0]}, but should be divisible by dp_size, {handler.dp_size}")
    if x_out is None:
        return
    gathers = op in (MixedCommOp.ALLGATHER, MixedCommOp.ALLREDUCE_ALLGATHER)
    rows = x_in.shape[0] // handler.dp_size if scatters else x_in.shape[0] * (handler.dp_size if gathers else 1)
    want = (rows, *x_in.shape[1:])
    if tuple(x_out.shape) != want or x_out.dtype != x_in.dtype or x_out.device != x_in.device:
        raise ValueError(f"x_out is {x_out.dtype} of shape {tuple(x_out.shape)}, but should be {x_in.dtype} of shape {want}")


def run_mixed_comm(op, handler, x_in, x_out=None, mode=None):
    """Sums in float32 over the ranks of tensor parallelism, rounded once, with those of data parallelism gathered or scattered along axis 0. Collective.

    Args:
        op: MixedCommOp; handler.get_valid_op_list() has those of these ranks
        handler: MixedCommHandler
        x_in: [rows, ...] of the handler's dtype, contiguous, the same shape on every rank
        x_out: memory for the result
        mode: MixedCommMode; changes no result

    Returns:
        ALLREDUCE: the sum. ALLGATHER: [rows * dp, ...], by dp_rank. REDUCESCATTER: [rows / dp, ...], block dp_rank of the sum over dp.
        ALLREDUCE_ALLGATHER: [rows * dp, ...], the sum of each dp_rank. REDUCESCATTER_ALLREDUCE: [rows / dp, ...], block dp_rank of the sum over all

    Raises:
        ValueError: arguments that do not fit together
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    with checking(handler._workspace if handler.is_running else None, "run_mixed_comm"):
        _check(op, handler, x_in, x_out, mode)
    result = _mixed(x_in, handler._workspace, int(op), handler.local_tp_size, handler.local_dp_size, handler.inter_tp_size, handler.inter_dp_size, x_out)
    return result if x_out is None else x_out


vars(run_mixed_comm).update(vars(_mixed))  # fi_trace and the questions about back ends
