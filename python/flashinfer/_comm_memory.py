# SPDX-License-Identifier: Apache-2.0
"""Memory that the ranks of a group share, under FlashInfer's names for it. docs/comm.md."""
import dataclasses
import numbers

from . import _native
from ._comm import _agree, _current_device
from ._comm_backends import CommBackend, ShmBackend, group_name, of_group, resolved


def connect(comm):
    """The library's group of the ranks of a communicator. Collective."""
    if isinstance(comm, ShmBackend):
        return comm._group
    name = group_name(comm, _agree(comm, None, "shared memory"))
    return _native.function("comm.connect")(name, comm.Get_rank(), comm.Get_size())


def agreed_device(comm, device, size=1):
    """`device`, or absent the current GPU once torch has used one, else the CPU. Collective: ValueError on all ranks when some have GPUs and others the CPU, as
    when only some have used theirs yet, and when a rank wants memory of no `size`."""
    device = str(device or _current_device())
    kind = device.partition(":")[0]
    problem = None
    if kind not in ("cpu", "cuda", "emu"):
        problem = f"device is {device!r}, but must be 'cpu', 'cuda:N' or 'emu'"
    elif not isinstance(size, numbers.Integral) or size < 1:
        problem = f"size is {size!r} bytes, but must be an integer of at least 1"
    _agree(comm, problem, "shared memory")
    kinds = comm.allgather(kind)
    for rank, other in enumerate(kinds):
        if other != kinds[0]:
            raise ValueError(f"shared memory: the device of rank {rank} is {other!r}, but that of rank 0 is {kinds[0]!r}: pass `device`")
    return device


def share(comm, size, transport="", device="cpu"):
    """Memory of all ranks as a tensor uint8 [ranks, size], each row written by a rank. Collective. It lives as long as the tensor. The rows
    of others are theirs at once only in shared memory (transport "shm"); else the calls of the library bring what they need. On a GPU (`device`; None: the current
    one once torch has used it, else the CPU) all rows are this rank's, and `transport` is "peers", "nccl" or "" for either."""
    import torch

    device = agreed_device(comm, device, size)
    if device != "cpu":
        return torch.from_dlpack(_native.function("comm.share_on_gpu")(connect(comm), size, device, transport or "auto"))
    return torch.from_dlpack(_native.function("comm.share")(connect(comm), size, transport))


@dataclasses.dataclass
class MnnvlConfig:
    """How the ranks of a workspace find each other. Sizes of GPU memory's pages have no meaning here."""

    comm_backend: CommBackend = None
    allocation_granularity: int = 0
    fabric_page_size: int = 1 << 29


class MnnvlMemory:
    """`size` bytes a rank of memory that the ranks of `mapping`'s tensor parallel group share: shared memory of one machine. Collective."""

    config = None

    def __init__(self, mapping, size):
        self.mapping, self.size = mapping, size
        self._memory = share(self.get_comm(mapping), size)

    @staticmethod
    def initialize():
        """Nothing: there is no driver to prepare."""

    @classmethod
    def set_comm_from_config(cls, mapping, config=None):
        """Names the communicator of all ranks that later memory is made with."""
        cls.config = config

    @classmethod
    def get_comm(cls, mapping):
        """The communicator of the ranks of one tensor parallel group."""
        comm = resolved(cls.config.comm_backend if cls.config else None)
        if comm.Get_size() == mapping.tp_size:
            return comm
        return comm.Split(mapping.pp_rank * mapping.cp_size + mapping.cp_rank, mapping.tp_rank)

    @property
    def mapped(self):
        """Whether the memory is there."""
        return self._memory is not None

    def as_torch_strided_tensor(self, dtype):
        """The memory as [ranks, size / itemsize]."""
        memory = self._memory[:, :self.size // dtype.itemsize * dtype.itemsize]
        return memory.view(dtype)

    @staticmethod
    def supports_mnnvl():
        """False: whether GPUs of several machines share memory. This memory needs no such support."""
        return False

    @staticmethod
    def support_nvlink(need_all_up=True):
        """False: whether GPUs are connected directly."""
        return False


_shared = {}  # address of rank 0's part -> the tensor that keeps the memory alive, and its communicator


def create_shared_buffer(size_in_bytes, group=None):
    """Memory of every rank of the torch.distributed group (or communicator) `group`, mapped by all: their addresses, by rank. Collective.

    Raises:
        RuntimeError: ranks of several machines, which cannot map each other's memory
    """
    comm = of_group(group)
    memory = share(comm, size_in_bytes, "shm")
    _shared[memory.data_ptr()] = memory, comm
    return [memory[r].data_ptr() for r in range(memory.shape[0])]


def shared_buffer(addresses, what):
    """The tensor of create_shared_buffer whose addresses these are."""
    memory = _shared.get(addresses[0], (None,))[0] if addresses else None
    if memory is None or [memory[r].data_ptr() for r in range(memory.shape[0])] != list(addresses):
        raise ValueError(f"{what} are {list(addresses)}, but must be the addresses that create_shared_buffer returned in this process")
    return memory


def communicator(memory):
    """Of the ranks that share a tensor of shared_buffer."""
    return _shared[memory.data_ptr()][1]


def free_shared_buffer(pointers, group=None):
    """Gives the memory of create_shared_buffer back."""
    shared_buffer(pointers, "pointers")
    del _shared[pointers[0]]


def memory_at(address, size, what):
    """`size` bytes from an address on, in a rank's part of memory of create_shared_buffer, as a tensor uint8.

    Raises:
        ValueError: memory outside such buffers
    """
    for memory, _ in _shared.values():
        for part in memory:
            begin = address - part.data_ptr()
            if 0 <= begin <= begin + size <= part.shape[0]:
                return part[begin:begin + size]
    raise ValueError(f"{what}: there are no {size} bytes at address {address} in memory of create_shared_buffer")


def pack_strided_memory(ptr, segment_size, segment_stride, num_segments, dtype, dev_id):
    """A view [num_segments, elements] of memory of create_shared_buffer.

    Args:
        ptr: address of the first segment
        segment_size: bytes of a segment
        segment_stride: bytes from one to the next
        num_segments: how many
        dtype: of the elements; its size divides the numbers of bytes
        dev_id: of a GPU; not used

    Raises:
        ValueError: sizes that are not possible, memory outside such buffers
    """
    if num_segments < 1 or segment_size < 0 or segment_stride < segment_size or segment_size % dtype.itemsize or segment_stride % dtype.itemsize:
        raise ValueError(f"pack_strided_memory: segment_size is {segment_size}, segment_stride {segment_stride} and num_segments {num_segments}, but must be multiples "
                         f"of {dtype.itemsize} bytes, the stride not smaller, and at least 1")
    end = (num_segments - 1) * segment_stride + segment_size
    for memory, _ in _shared.values():
        begin, all_bytes = ptr - memory.data_ptr(), (memory.shape[0] - 1) * memory.stride(0) + memory.shape[1]
        if 0 <= begin <= begin + end <= all_bytes and begin % dtype.itemsize == 0:
            whole = memory.as_strided((end,), (1,), memory.storage_offset() + begin).view(dtype)
            return whole.as_strided((num_segments, segment_size // dtype.itemsize), (segment_stride // dtype.itemsize, 1))
    raise ValueError(f"pack_strided_memory: there are no {end} bytes at address {ptr} in memory of create_shared_buffer")
