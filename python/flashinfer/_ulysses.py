# SPDX-License-Identifier: Apache-2.0
"""Exchanges of heads and positions for attention over a sequence that is spread over ranks (`flashinfer.comm.UlyssesCommunicator`). docs/comm.md."""
import dataclasses
import itertools

from . import _comm_memory, _make
from ._comm import AllReduceFusionWorkspace, _agree, _current_device, checking
from ._comm_backends import of_group
from ._ulysses_topology import SUPPORTED_WORLD_SIZES, UlyssesBackendError

_scatter = _make.package.exports["ulysses_scatter_heads"]
_gather = _make.package.exports["ulysses_gather_heads"]
_MOST = 2**31 - 1


def _dtypes():
    import torch

    return torch.float16, torch.bfloat16, torch.float32


@dataclasses.dataclass(frozen=True, kw_only=True)
class UlyssesWorkspace:
    """What `create_workspace` returns. The data goes through the communicator's own memory, so it holds nothing.

    Args:
        max_elems: elements of the largest tensor of a call with it
        dtype: of the tensors
        device: of the tensors; not used
    """

    max_elems: int
    dtype: object
    device: object = None


class UlyssesCommunicator:
    """Exchanges between the layouts [B, S / ranks, H, D] and [B, S, H / ranks, D], by copies through shared memory, or between GPUs. Collective; a context manager.

    Args:
        group: of torch.distributed, or a communicator; None: torch.distributed, MPI, or one rank
        max_elems: elements of the largest tensor of a call, at most 2^31 - 1; the same on all ranks
        dtype: float16, bfloat16 or float32, of all tensors
        backend: on the CPU "auto" or "nccl": shared memory. On GPUs "nvlink": each other's memory, "nccl", or "auto": nvlink if all GPUs can
        device: of the tensors, "cpu" or this rank's "cuda:N"; None: the current GPU once torch has used one, else the CPU

    Raises:
        ValueError: arguments that are not possible, or differ between ranks
        UlyssesBackendError: backend "nvlink" of ranks on the CPU
    """

    def __init__(self, group=None, *, max_elems, dtype, backend="auto", device=None):
        comm = of_group(group)
        self.world_size, self.rank, self.max_elems, self.dtype = comm.Get_size(), comm.Get_rank(), max_elems, dtype
        self.device = str(device or _current_device())
        _agree(comm, lambda: self._problem(max_elems, dtype, backend, self.device), "UlyssesCommunicator")
        for rank, other in enumerate(comm.allgather((max_elems, str(dtype), backend))):
            if other != (max_elems, str(dtype), backend):
                raise ValueError(f"UlyssesCommunicator: rank {rank} has (max_elems, dtype, backend) {other}, but rank {self.rank} has "
                                 f"{(max_elems, str(dtype), backend)}")
        on_gpu = self.device != "cpu"
        if backend == "nvlink" and not on_gpu:
            raise UlyssesBackendError("backend='nvlink' needs GPUs that NVLink connects, but these are ranks on CPU tensors: use 'auto'")
        transport = {"nvlink": "peers", "nccl": "nccl"}.get(backend, "auto") if on_gpu else "auto"
        self._workspace = None if self.world_size == 1 else AllReduceFusionWorkspace(self.world_size, self.rank, 1, max_elems, dtype, comm,
                                                                                     backend=transport, device=self.device)
        self._closed = False

    @staticmethod
    def _problem(max_elems, dtype, backend, device):
        if not isinstance(max_elems, int) or not 1 <= max_elems <= _MOST:
            return f"max_elems is {max_elems}, but must be an int in [1, {_MOST}]"
        if dtype not in _dtypes():
            return f"dtype is {dtype}, but must be torch.float16, torch.bfloat16 or torch.float32"
        if backend not in ("auto", "nvlink", "nccl"):
            return f"backend is {backend!r}, but must be 'auto', 'nvlink' or 'nccl'"
        if device != "cpu" and not device.startswith("cuda:"):
            return f"device is {device!r}, but must be None, 'cpu' or 'cuda:N'"
        return None

    @property
    def backend(self):
        """What carries the data: "shm", shared memory; "gpu", their memory or NCCL."""
        return "shm" if self.device == "cpu" else "gpu"

    @property
    def fallback_reason(self):
        """None: nothing failed."""
        return None

    def close(self):
        """Gives the memory back; calling it again does nothing. The other ranks' later calls are errors."""
        self._closed = True
        if self._workspace is not None:
            self._workspace.destroy()

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.close()

    def create_workspace(self, *, max_elems=None):
        """A workspace for the `workspace` argument of the calls, of `max_elems` elements (None: those of the communicator)."""
        elems = self.max_elems if max_elems is None else max_elems
        if not 1 <= elems <= self.max_elems:
            raise ValueError(f"UlyssesCommunicator.create_workspace: max_elems is {elems}, but must be in [1, {self.max_elems}]")
        return UlyssesWorkspace(max_elems=elems, dtype=self.dtype, device=self.device)

    def _check(self, x, workspace, elems=None):
        elems = x.numel() if elems is None else elems
        if x.dim() != 4 or x.dtype != self.dtype or str(x.device) != self.device or 0 in x.shape:
            raise ValueError(f"x is {x.dtype} of shape {tuple(x.shape)} on {x.device}, but must be {self.dtype} with four positive extents on {self.device}")
        if elems > self.max_elems:
            raise ValueError(f"there are {elems} elements, but max_elems is {self.max_elems}")
        if workspace is not None and (not isinstance(workspace, UlyssesWorkspace) or workspace.max_elems < elems):
            raise ValueError(f"workspace is {workspace!r}, but must be one of create_workspace for {elems} elements")

    def _open(self, name):
        if self._closed:
            raise RuntimeError(f"UlyssesCommunicator.{name}: use-after-close: the communicator is closed")
        return checking(self._workspace, f"UlyssesCommunicator.{name}")

    def _exchange(self, op, name, x, out, workspace):
        with self._open(name):
            self._check(x, workspace)
        if self._workspace is not None:
            result = op(x, self._workspace, out)
            return result if out is None else out
        return x if out is None else out.copy_(x)

    def scatter_heads(self, x, *, out=None, workspace=None):
        """[B, S / ranks, H, D] -> [B, S, H / ranks, D]: the whole sequence for this rank's heads, [rank * H / ranks, (rank + 1) * H / ranks).

        Args:
            x: contiguous, the same shape on every rank
            out: memory for the result
            workspace: of create_workspace; changes nothing

        Returns:
            the result; of one rank: x

        Raises:
            ValueError: another type or shape, heads that the ranks do not divide
            RuntimeError: the communicator is closed; a rank that calls something else, died or does not arrive in time
        """
        return self._exchange(_scatter, "scatter_heads", x, out, workspace)

    def gather_heads(self, x, *, out=None, workspace=None):
        """[B, S, H / ranks, D] -> [B, S / ranks, H, D], the inverse of scatter_heads; arguments and errors as there."""
        return self._exchange(_gather, "gather_heads", x, out, workspace)

    scatter_heads.fi_trace, gather_heads.fi_trace = _scatter.fi_trace, _gather.fi_trace

    def scatter_qkv_head_chunk(self, query, key, value, *, head_offset, head_count, out=None, workspace=None):
        """scatter_heads of `head_count` heads of each rank from its `head_offset`-th on, of three tensors [B, S / ranks, H, D] in one exchange.

        Args:
            query, key, value: the same shape; any positive strides
            head_offset, head_count: of a rank's H / ranks heads
            out: memory for the result
            workspace: of create_workspace; changes nothing

        Returns:
            [B, S, head_count, 3 * D]: query, key and value side by side
        """
        with self._open("scatter_qkv_head_chunk"):
            self._check(query, None, 0)
            packed = pack_ulysses_qkv_head_chunk(query, key, value, world_size=self.world_size, head_offset=head_offset, head_count=head_count)
            self._check(packed, workspace)
        return self._exchange(_scatter, "scatter_qkv_head_chunk", packed, out, workspace)

    def gather_output_head_chunk(self, x, *, local_heads, head_offset, out, workspace=None):
        """gather_heads of a rank's heads [head_offset, head_offset + heads of x) into their places of `out`; the others keep their values.

        Args:
            x: [B, S, heads, D]; any positive strides
            local_heads: all heads of a rank
            head_offset: the first one of x
            out: contiguous [B, S / ranks, ranks * local_heads, D]

        Returns:
            out
        """
        with self._open("gather_output_head_chunk"):
            self._check(x, workspace)
            gathered = (x.shape[0], x.shape[1] // self.world_size, self.world_size * x.shape[2], x.shape[3])
            _check_places(gathered, x.dtype, self.world_size, local_heads, head_offset, out)
            x = x.contiguous()
        band = self._exchange(_gather, "gather_output_head_chunk", x, None, workspace)
        return merge_ulysses_output_head_chunk(band, world_size=self.world_size, local_heads=local_heads, head_offset=head_offset, out=out)


# ---- some of the heads: what a rank does before and after an exchange ----
def pack_ulysses_qkv_head_chunk(query, key, value, *, world_size, head_offset, head_count, out=None):
    """What scatter_heads takes to exchange some heads of three tensors at once. Of this rank alone.

    Args:
        query, key, value: [B, S, H, D] of one shape and dtype; any positive strides
        world_size: ranks, which divide H
        head_offset, head_count: of the H / world_size heads of each rank
        out: memory for the result, none of the three

    Returns:
        [B, S, world_size * head_count, 3 * D]: query, key and value side by side

    Raises:
        ValueError: arguments that do not fit together
    """
    import torch

    if query.dim() != 4 or query.shape != key.shape or query.shape != value.shape:
        raise ValueError(f"pack_ulysses_qkv_head_chunk: query, key and value have shapes {tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}, but must "
                         "have the same, of four dimensions")
    heads = query.shape[2] // world_size
    if query.shape[2] % world_size or head_count < 1 or not 0 <= head_offset <= heads - head_count:
        raise ValueError(f"pack_ulysses_qkv_head_chunk: head_offset is {head_offset} and head_count {head_count}, but must be heads of the {query.shape[2]} / "
                         f"{world_size} of a rank")
    parts = [t.unflatten(2, (world_size, heads))[:, :, :, head_offset:head_offset + head_count] for t in (query, key, value)]
    packed = torch.cat(parts, -1).flatten(2, 3)
    if out is None:
        return packed
    if out.shape != packed.shape or out.dtype != packed.dtype or not out.is_contiguous():
        raise ValueError(f"pack_ulysses_qkv_head_chunk: out is {out.dtype} of shape {tuple(out.shape)}, but must be contiguous {packed.dtype} of shape {tuple(packed.shape)}")
    return out.copy_(packed)


def _check_places(shape, dtype, world_size, local_heads, head_offset, out):
    """Whether a band of that shape belongs into `out`."""
    heads = shape[2] // world_size
    want = (*shape[:2], world_size * local_heads, shape[3])
    if shape[2] % world_size or not 0 <= head_offset <= local_heads - heads:
        raise ValueError(f"head_offset is {head_offset}, but the {shape[2]} / {world_size} heads of a rank's band must be some of its {local_heads}")
    if tuple(out.shape) != want or out.dtype != dtype or not out.is_contiguous():
        raise ValueError(f"out is {out.dtype} of shape {tuple(out.shape)}, but must be contiguous {dtype} of shape {want}")


def merge_ulysses_output_head_chunk(received, *, world_size, local_heads, head_offset, out):
    """Writes a band of each rank's heads, as gather_heads gives it, to its places of `out`; the others keep their values. Of this rank alone.

    Args:
        received: [B, S, world_size * heads, D]
        world_size: ranks
        local_heads: all heads of a rank
        head_offset: the first one of the band
        out: contiguous [B, S, world_size * local_heads, D]

    Returns:
        out

    Raises:
        ValueError: arguments that do not fit together
    """
    _check_places(tuple(received.shape), received.dtype, world_size, local_heads, head_offset, out)
    heads = received.shape[2] // world_size
    out.unflatten(2, (world_size, local_heads))[:, :, :, head_offset:head_offset + heads] = received.unflatten(2, (world_size, heads))
    return out


# ---- the functions below the class ----
_exchanges, _handles = {}, itertools.count(1)


class _Exchange:
    """What a handle of init_ulysses_a2a stands for; the workspace is made by the first call, on all ranks."""

    def __init__(self, memory, rank):
        self.memory, self.comm, self.rank, self.workspace = memory, _comm_memory.communicator(memory), rank, None

    def ready(self):
        import torch

        if self.workspace is None:
            self.workspace = AllReduceFusionWorkspace(self.comm.Get_size(), self.rank, 1, self.memory.shape[1] // 4 + 1, torch.float32, self.comm,
                                                     device="cpu")
        return self.workspace


def init_ulysses_a2a(out_ipc_ptrs, signal_ipc_ptrs, rank, world_size, full_nvlink):
    """A handle of the exchanges of the ranks that share a buffer, for ulysses_a2a. Collective.

    Args:
        out_ipc_ptrs: the addresses that create_shared_buffer returned; the buffer says how large a tensor may be
        signal_ipc_ptrs: those of another buffer, of vllm_meta_size() bytes; not used
        rank: this rank
        world_size: 2, 4, 6 or 8 ranks
        full_nvlink: True, as FlashInfer demands

    Raises:
        ValueError: other addresses or numbers
    """
    if not full_nvlink:
        raise ValueError(f"init_ulysses_a2a: full_nvlink={full_nvlink} is not supported")
    memory = _comm_memory.shared_buffer(out_ipc_ptrs, "out_ipc_ptrs")
    _comm_memory.shared_buffer(signal_ipc_ptrs, "signal_ipc_ptrs")
    comm, problem = _comm_memory.communicator(memory), None
    if world_size not in SUPPORTED_WORLD_SIZES or world_size != memory.shape[0] or rank != comm.Get_rank():
        problem = f"world_size is {world_size} and rank {rank}, but must be {memory.shape[0]} (one of {SUPPORTED_WORLD_SIZES}) and {comm.Get_rank()}"
    _agree(comm, problem, "init_ulysses_a2a")
    handle = next(_handles)
    _exchanges[handle] = _Exchange(memory, rank)
    return handle


def _exchange(fa, function):
    if fa not in _exchanges:
        raise ValueError(f"{function}: fa is {fa}, but must be what init_ulysses_a2a returned")
    return _exchanges[fa]


def ulysses_a2a(fa, inp, out, B, S_local, H, D, mode):
    """scatter_heads (mode 0) or gather_heads (mode 1) of UlyssesCommunicator, into `out`. Collective.

    Args:
        fa: of init_ulysses_a2a
        inp: contiguous, mode 0: [B, S_local, H, D], mode 1: [B, S_local * ranks, H / ranks, D]
        out: contiguous, the other of the two shapes
        B: batch
        S_local: positions of a rank
        H: heads of all ranks
        D: elements of a head
        mode: 0 or 1

    Raises:
        ValueError: arguments that do not fit together
        RuntimeError: a rank that calls something else, died or does not arrive in time
    """
    e = _exchange(fa, "ulysses_a2a")
    workspace, ranks = e.ready(), e.comm.Get_size()
    with checking(workspace, "ulysses_a2a"):
        if mode not in (0, 1) or H % ranks:
            raise ValueError(f"ulysses_a2a: mode is {mode} and H {H}, but must be 0 or 1, and a multiple of the {ranks} ranks")
        shapes = (B, S_local, H, D), (B, S_local * ranks, H // ranks, D)
        for name, tensor, shape in (("inp", inp, shapes[mode]), ("out", out, shapes[1 - mode])):
            if tensor.numel() != B * S_local * H * D or tensor.dtype != inp.dtype or not tensor.is_contiguous():
                raise ValueError(f"ulysses_a2a: {name} is {tensor.dtype} of shape {tuple(tensor.shape)}, but must be contiguous {inp.dtype} of shape {shape}")
        if inp.numel() * inp.element_size() > e.memory.shape[1]:
            raise ValueError(f"ulysses_a2a: inp has {inp.numel() * inp.element_size()} bytes, but the buffer of init_ulysses_a2a {e.memory.shape[1]}")
    (_gather if mode else _scatter)(inp.view(shapes[mode]), workspace, out.view(shapes[1 - mode]))


def dispose_ulysses_a2a(fa):
    """Ends the handle."""
    workspace = _exchange(fa, "dispose_ulysses_a2a").workspace
    if workspace is not None:
        workspace.destroy()
    del _exchanges[fa]
