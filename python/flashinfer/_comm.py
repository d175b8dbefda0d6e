# SPDX-License-Identifier: Apache-2.0
"""Workspaces of `flashinfer.comm.allreduce_fusion`, and the names of its arguments. docs/comm.md."""
import contextlib
import enum
import numbers
import sys
import warnings

from . import _make, _native
from ._comm_backends import group_name, machine, resolved

_Workspace = _make.package.exports["AllReduceFusionWorkspace"]


class AllReduceFusionPattern:
    """What follows the sum (`pattern` of allreduce_fusion)."""

    kAllReduce = 0
    kARResidualRMSNorm = 1
    kARResidualRMSNormFP8Quant = 2
    kARResidualRMSNormFP4Quant = 3
    kARResidualRMSNormOutFP8Quant = 4
    kARResidualRMSNormOutFP4Quant = 5
    kMoEReductionARResidualRMSNorm = 6
    kMoEFinalizeARResidualRMSNorm = 7
    kARResidualRMSNormPerTokenGroupFP8PackedQuant = 8
    kARResidualRMSNormOutPerTokenGroupFP8PackedQuant = 9
    kARResidualRMSNormDynamicFP8Quant = 10
    kARResidualRMSNormOutDynamicFP8Quant = 11
    kMoEFinalizeARResidualRMSNormFP8Quant = 12


class QuantizationSFLayout:
    """Layout of FP4 scales (`layout_code` of allreduce_fusion)."""

    SWIZZLED_128x4 = 0
    SWIZZLED_8x4 = 1
    LINEAR = 2


class MNNVLAllreduceFusionStrategy(enum.Enum):
    """Whether each rank sums all rows (ONESHOT) or its part of them (TWOSHOT)."""

    ONESHOT = 0
    TWOSHOT = 1
    AUTO = 99

    @staticmethod
    def select_strategy(tp_size, num_tokens, hidden_dim, dtype):
        one = MNNVLAllreduceFusionStrategy.ONESHOT
        return one if num_tokens * hidden_dim * tp_size * dtype.itemsize <= 1 << 20 else MNNVLAllreduceFusionStrategy.TWOSHOT


def compute_fp4_swizzled_layout_sf_size(total_row, total_column):
    """Bytes of scales in the 128x4 layout: rows rounded up to 128 times columns rounded up to 4."""
    return (total_row + 127) // 128 * 128 * ((total_column + 3) // 4 * 4)


_KINDS = {kind.__name__: kind for kind in (RuntimeError, TypeError, NotImplementedError)}


def _agree(backend, problem, what, kind=ValueError):
    """Whether all ranks are on one machine. Collective. Raises on every rank if any rank has a problem: a rank that raised alone would leave the others waiting.

    Args:
        problem: a text; None: this rank has none; or a function that returns that, or raises an error
        what: who asks
        kind: of the error
    """
    error = None
    if callable(problem):
        try:
            problem = problem()
        except Exception as e:
            error, problem, kind = e, str(e).removeprefix(f"{what}: "), type(e)
    problems = backend.allgather((problem, kind.__name__, machine()))
    if error is not None:
        raise error
    for rank, (text, name, _) in enumerate(problems):
        if text is not None:
            raise _KINDS.get(name, ValueError)(f"{what}: rank {rank}: {text}" if len(problems) > 1 else text)
    return all(where == problems[0][2] for _, _, where in problems)


def _current_device():
    """The current GPU of a program that uses one, as FlashInfer's workspaces are; else the CPU."""
    import torch

    return f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() and torch.cuda.is_initialized() else "cpu"


@contextlib.contextmanager
def checking(workspace, call):
    """For checks of a call's arguments before the collective op: what they raise on this rank ends the call of the others too, who would wait. `workspace`: as an
    object, or as the tensor of the memory that the ranks share."""
    try:
        yield
    except Exception as error:
        if workspace is not None:
            _native.function("comm.abandon")(getattr(workspace, "_handle", workspace), f"{type(error).__name__}: {call}: {error}")
        raise


class AllReduceFusionWorkspace(_Workspace):
    """Memory that the ranks of a group share for all-reduces. Making one is collective; `destroy()` when it is no longer used."""

    _alive = False

    def __init__(self, world_size, rank, max_token_num, hidden_dim, dtype, comm_backend=None, group=None, backend="auto", *, device=None):
        self.world_size, self.rank = world_size, rank
        self._made_with = max_token_num, hidden_dim, dtype, backend, str(device or _current_device())
        self._connect(resolved(comm_backend, group))
        self._capacity = max_token_num * hidden_dim * dtype.itemsize

    def _connect(self, comm):
        """Makes the memory with the ranks of `comm`. Collective."""
        size, own = comm.Get_size(), comm.Get_rank()
        name = group_name(comm, _agree(comm, lambda: self._problem(size, own), type(self).__name__))
        super().__init__(name, own, size, *self._made_with)
        self._comm, self._alive = comm, True

    def _problem(self, size, own):
        """Why a communicator of that size and rank cannot have this workspace; None: it can."""
        max_token_num, hidden_dim = self._made_with[:2]
        if (self.world_size, self.rank) != (size, own):
            return f"world_size is {self.world_size} and rank {self.rank}, but the communicator says {size} and {own}"
        if not all(isinstance(n, numbers.Integral) and n >= 1 for n in (max_token_num, hidden_dim)):
            return f"max_token_num is {max_token_num!r} and hidden_dim {hidden_dim!r}, but both must be integers of at least 1"
        return None

    @property
    def backend(self):
        """The name that create_allreduce_fusion_workspace chose."""
        return self._name

    _name = "trtllm"

    def is_buffer_size_sufficient(self, tp_size, num_tokens, hidden_dim, dtype, use_oneshot=None):
        """Whether allreduce_fusion takes an input of that shape with this workspace."""
        if tp_size != self.world_size or num_tokens * hidden_dim * dtype.itemsize > self._capacity:
            return False
        return use_oneshot is not False or num_tokens > tp_size

    def checkpoint_prepare(self):
        """Gives back the memory and the connection to the other ranks, which a checkpoint of the process could not keep: there is nothing in them between two
        calls. Calls before checkpoint_restore are errors. Collective; calling it again does nothing."""
        if self._alive:
            self._comm.barrier()
            self.destroy()
        self._comm = None

    def checkpoint_restore(self, comm_backend):
        """Makes the memory again, after checkpoint_prepare. Collective.

        Args:
            comm_backend: a communicator of as many ranks, in which this one has the same rank

        Raises:
            RuntimeError: without checkpoint_prepare
            ValueError: another rank or number of ranks
        """
        if self._comm is not None:
            raise RuntimeError(f"{type(self).__name__}.checkpoint_restore: there was no checkpoint_prepare")
        self._connect(resolved(comm_backend, None))

    def destroy(self):
        """Gives the memory back; calling it again does nothing."""
        if self._alive:
            self._alive = False
            super().destroy()

    def __del__(self):
        if self._alive and sys is not None and not sys.is_finalizing():
            warnings.warn(f"{type(self).__name__} was not destroyed: call destroy()", ResourceWarning, source=self)


class TRTLLMAllReduceFusionWorkspace(AllReduceFusionWorkspace):
    """The workspace of backend "trtllm"; both back ends are the same."""

    def __init__(self, tp_size, tp_rank, max_token_num, hidden_dim, dtype=None, comm_backend=None, group=None, *, device=None,
                 transport="auto"):
        import torch

        super().__init__(tp_size, tp_rank, max_token_num, hidden_dim, torch.float16 if dtype is None else dtype, comm_backend, group,
                         transport, device=device)


class MNNVLAllReduceFusionWorkspace(AllReduceFusionWorkspace):
    """The workspace of backend "mnnvl"; both back ends are the same."""

    _name = "mnnvl"

    def __init__(self, mapping, max_num_tokens=None, hidden_dim=None, dtype=None, buffer_size_in_bytes=None, comm_backend=None, *,
                 device=None, transport="auto"):
        import torch

        dtype = torch.float16 if dtype is None else dtype
        if buffer_size_in_bytes is not None:  # holds an input of every rank
            max_num_tokens, hidden_dim = 1, max(1, buffer_size_in_bytes // (mapping.tp_size * dtype.itemsize))
        super().__init__(mapping.tp_size, mapping.tp_rank, max_num_tokens, hidden_dim, dtype, comm_backend, None, transport, device=device)

    def _problem(self, size, own):
        if None in self._made_with[:2]:
            return "max_num_tokens and hidden_dim, or buffer_size_in_bytes, must be given"
        return super()._problem(size, own)

    def is_buffer_size_sufficient(self, tp_size, num_tokens, hidden_dim, dtype, strategy=MNNVLAllreduceFusionStrategy.AUTO):
        """As of the base; `strategy` may also be `use_oneshot`."""
        if isinstance(strategy, MNNVLAllreduceFusionStrategy):
            strategy = None if strategy == MNNVLAllreduceFusionStrategy.AUTO else strategy == MNNVLAllreduceFusionStrategy.ONESHOT
        return super().is_buffer_size_sufficient(tp_size, num_tokens, hidden_dim, dtype, strategy)

    @staticmethod
    def get_required_buffer_size_bytes(tp_size, num_tokens, hidden_dim, dtype, strategy=MNNVLAllreduceFusionStrategy.AUTO):
        """Bytes as FlashInfer counts them: one shot tokens * hidden * ranks elements, two shots 2 * ceil(tokens / ranks) * ranks * hidden."""
        if strategy == MNNVLAllreduceFusionStrategy.AUTO:
            strategy = MNNVLAllreduceFusionStrategy.select_strategy(tp_size, num_tokens, hidden_dim, dtype)
        if strategy == MNNVLAllreduceFusionStrategy.ONESHOT:
            return num_tokens * hidden_dim * tp_size * dtype.itemsize
        return 2 * ((num_tokens + tp_size - 1) // tp_size) * tp_size * hidden_dim * dtype.itemsize


_CUTEDSL = ("top_k", "rms_eps", "weight_bias", "routed_scaling_factor", "include_shared_expert", "add_residual", "write_residual_output",
            "apply_rms_norm", "output_dtype", "dynamic_fp8", "write_norm_output", "config")


def create_allreduce_fusion_workspace(
        backend="auto", world_size=None, rank=None, max_token_num=None, hidden_dim=None, dtype=None, gpus_per_node=None, comm_backend=None,
        force_oneshot_support=False, group=None, *, top_k=None, rms_eps=None, weight_bias=None, routed_scaling_factor=None,
        include_shared_expert=None, add_residual=None, write_residual_output=None, apply_rms_norm=None, output_dtype=None, dynamic_fp8=None,
        write_norm_output=None, config=None, device=None, transport="auto"):
    """A workspace for inputs of up to [max_token_num, hidden_dim] elements of `dtype`, on every rank of the group. Collective.

    Args:
        device: of the tensors of its calls, "cpu" or this rank's "cuda:N"; absent: the current GPU once torch has used one, else the CPU
        transport: what carries the data. On the CPU "shm", "tcp" or "mpi". On GPUs "peers", whose kernels access each other's memory, or "nccl";
            "auto": peers if all GPUs can

    Raises:
        RuntimeError: an unknown back end
        ValueError: options of "mnnvl-cutedsl", which needs a GPU; sizes that are missing or not possible, on any rank
        NotImplementedError: a GPU that is not there; GPUs that neither access each other's memory nor have NCCL, on any rank
    """
    given = locals()
    problem, kind = None, ValueError
    if backend not in ("auto", "trtllm", "mnnvl", "mnnvl-cutedsl"):
        problem, kind = f"Unknown backend: {backend}", RuntimeError
    elif backend == "mnnvl-cutedsl":
        problem = "No suitable backend found. mnnvl-cutedsl needs a GPU of sm_100; on the CPU use backend='auto'"
    elif named := [name for name in _CUTEDSL if given[name] is not None]:
        problem = f"Only backend='mnnvl-cutedsl' accepts: {', '.join(named)}"
    elif missing := [name for name in ("world_size", "rank", "max_token_num", "hidden_dim", "dtype") if given[name] is None]:
        problem = f"create_allreduce_fusion_workspace: {', '.join(missing)} must be given"
    comm_backend = resolved(comm_backend, group)
    _agree(comm_backend, problem, "create_allreduce_fusion_workspace", kind)
    if backend == "mnnvl":
        from ._mapping import Mapping

        mapping = Mapping(world_size=world_size, rank=rank, gpus_per_node=gpus_per_node or world_size, tp_size=world_size)
        return MNNVLAllReduceFusionWorkspace(mapping, max_token_num, hidden_dim, dtype, comm_backend=comm_backend, device=device, transport=transport)
    return TRTLLMAllReduceFusionWorkspace(world_size, rank, max_token_num, hidden_dim, dtype, comm_backend, device=device, transport=transport)


def is_mnnvl_cutedsl_supported(tp_size, hidden_dim, dtype, *, max_token_num, top_k=10, apply_rms_norm=True, write_residual_output=True, output_dtype=None,
                               dynamic_fp8=False, write_norm_output=False, config=None, device=None):
    """False: there is no back end "mnnvl-cutedsl"; the others take its patterns."""
    return False
