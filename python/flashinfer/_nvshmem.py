# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's functions of NVSHMEM (`flashinfer.comm.nvshmem`) over memory that the processes of one machine share. docs/comm.md."""
import math

from . import _comm_memory, _make, _native
from ._comm import AllReduceFusionWorkspace, _agree, checking
from ._comm_backends import ShmBackend

_BYTES = 256
_exchange = _make.package.exports["ulysses_scatter_heads"]
_comm = None
_workspaces, _memory = {}, {}  # device -> workspace; address -> the memory of all ranks


class UniqueID:
    """The name at which the processes meet, as `_data`: a numpy array of bytes, which may be sent to the other processes."""

    def __init__(self, text=""):
        import numpy

        self._data = numpy.zeros(_BYTES, dtype=numpy.uint8)
        self._data[:len(text)] = numpy.frombuffer(text.encode(), dtype=numpy.uint8)

    @classmethod
    def from_data(cls, data):
        """The id whose `_data` another process sent."""
        made = cls()
        made._data[:] = data
        return made

    @property
    def name(self):
        return self._data.tobytes().rstrip(b"\0").decode()


def get_unique_id():
    """A new id, of process 0, which gives it to the others."""
    return UniqueID(_native.function("comm.invite")())


def alloc_empty_unique_id():
    """An id to write what process 0 sent to."""
    return UniqueID()


def _ready(function):
    if _comm is None:
        raise RuntimeError(f"nvshmem.{function}: init() was not called, or finalize() was")
    return _comm


def init(uid, rank, world_size):
    """Connects the processes that have the same id. Collective.

    Raises:
        RuntimeError: it was called before; a process does not arrive in time
        ValueError: an empty id, a rank outside [0, world_size)
    """
    global _comm
    if _comm is not None:
        raise RuntimeError("nvshmem.init: it was called before; call finalize() first")
    if not uid.name:
        raise ValueError("nvshmem.init: uid is empty: it must be that of process 0's get_unique_id()")
    _comm = ShmBackend(uid.name, rank, world_size)


def finalize():
    """Waits for all processes and gives everything back. Collective."""
    global _comm
    _ready("finalize").barrier()
    for workspace in _workspaces.values():
        workspace.destroy()
    _workspaces.clear()
    _memory.clear()
    _comm = None


def my_pe():
    """This process's rank."""
    return _ready("my_pe").Get_rank()


def n_pes():
    """The number of processes."""
    return _ready("n_pes").Get_size()


def malloc(shape, dtype, device):
    """A tensor in memory that all processes can access, zero at first. Collective; free_tensor() gives it back.

    Args:
        shape: the same on every process
        dtype: of its elements
        device: "cpu"

    Raises:
        NotImplementedError: a GPU
    """
    import torch

    comm, problem = _ready("malloc"), None
    if torch.device(device).type != "cpu":
        problem = f"device is {device}, but the processes share memory of the CPU only; calls on GPUs take torch.empty(...)"
    _agree(comm, problem, "nvshmem.malloc", NotImplementedError)
    size = math.prod(shape) * dtype.itemsize
    memory = _comm_memory.share(comm, max(size, 1), "shm")
    tensor = memory[comm.Get_rank(), :size].view(dtype).view(*shape)
    _memory[tensor.data_ptr()] = memory
    return tensor


def free_tensor(tensor):
    """Gives what malloc() returned back.

    Raises:
        ValueError: another tensor
    """
    if _memory.pop(tensor.data_ptr(), None) is None:
        raise ValueError(f"nvshmem.free_tensor: tensor of shape {tuple(tensor.shape)} is not one of malloc()")


def alltoall(dest, source):
    """Part p of dest = process p's part `my_pe()` of source, the parts being equal. Bytes are copied. Collective.

    Args:
        dest, source: contiguous, of one dtype and size, which the processes divide into parts of an even number of bytes

    Raises:
        ValueError: other tensors
        RuntimeError: a process that calls something else, died or does not arrive in time
    """
    import torch

    comm, device = _ready("alltoall"), str(source.device)
    ranks, size = comm.Get_size(), source.numel() * source.element_size()
    if device not in _workspaces:
        _workspaces[device] = AllReduceFusionWorkspace(ranks, comm.Get_rank(), 1, 1 << 20, torch.float32, comm, device=device)
    with checking(_workspaces[device], "nvshmem.alltoall"):
        for name, t in (("dest", dest), ("source", source)):
            if t.dtype != source.dtype or t.device != source.device or t.numel() != source.numel() or not t.is_contiguous() or size % (2 * ranks):
                raise ValueError(f"nvshmem.alltoall: {name} is {t.dtype} of shape {tuple(t.shape)} on {t.device}, but dest and source must be contiguous, alike, "
                                 f"and {ranks} parts of an even number of bytes")
    words = torch.float32 if size % (4 * ranks) == 0 else torch.float16
    parts = [t.view(-1).view(torch.uint8).view(words).view(1, 1, ranks, -1) for t in (source, dest)]
    _exchange(parts[0], _workspaces[device], parts[1].view(1, ranks, 1, -1))


def barrier_all():
    """Waits for all processes."""
    _ready("barrier_all").barrier()


def barrier_all_on_current_stream():
    """As barrier_all: work of a GPU is waited for first."""
    import torch

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.current_stream().synchronize()
    barrier_all()
