# SPDX-License-Identifier: Apache-2.0
"""How the ranks of a group find each other: `flashinfer.comm`'s back ends for small messages between processes."""
import os
import pickle
import sys
import uuid

from . import _native


class CommBackend:
    """What a communicator must have; a class of the program's own with these methods will do.

    Get_rank() and Get_size(); allgather(obj) -> tuple of every rank's object; bcast(obj, root) -> the root's object; barrier();
    Split(color, key) -> the communicator of the ranks of one color, in the order of (key, rank). All are collective.
    """

    def Get_rank(self):
        raise NotImplementedError

    def Get_size(self):
        raise NotImplementedError

    def allgather(self, data):
        raise NotImplementedError

    def bcast(self, data, root):
        raise NotImplementedError

    def barrier(self):
        raise NotImplementedError

    def Split(self, color, key):
        raise NotImplementedError


def machine():
    """What two processes have in common when they can share memory: the running kernel, the network's names, and the user."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip(), os.readlink("/proc/self/ns/net"), os.getuid()


def group_name(backend, one_machine, members=None):
    """A new name at which the ranks of a communicator meet as a group of the library; of several groups, those of this rank's `members`, in their order. Collective."""
    members = members or range(backend.Get_size())
    made = None
    if backend.Get_rank() == members[0]:
        made = uuid.uuid4().hex if one_machine else _native.function("comm.invite")()
    said = backend.allgather((made, os.getpid(), os.readlink("/proc/self/ns/pid")))
    ranks = [said[rank] for rank in members]
    name = ranks[0][0]
    if one_machine and all(numbers_of == ranks[0][2] for _, _, numbers_of in ranks):
        _native.function("comm.expect")(name, [process for _, process, _ in ranks])
    return name


class ShmBackend(CommBackend):
    """Processes (or threads) that give the same `name`: of one machine and user, or of several machines with tcp://HOST:PORT, file:///PATH
    or mpi:// (docs/comm.md).

    Raises:
        ValueError: a name that is empty or too long, a size outside [1, 64], a rank outside [0, size)
        RuntimeError: a rank does not arrive within FLASHINFER_COMM_TIMEOUT_S seconds, dies, or calls something else
    """

    def __init__(self, name, rank, size, _group=None):
        self._group = _native.function("comm.connect")(name, rank, size) if _group is None else _group

    def _exchange(self, what, data):
        return [pickle.loads(bytes(b)) for b in _native.function("comm.exchange")(self._group, what, pickle.dumps(data))]

    def Get_rank(self):
        return _native.function("comm.rank")(self._group)

    def Get_size(self):
        return _native.function("comm.size")(self._group)

    def allgather(self, data):
        return tuple(self._exchange("allgather", data))

    def bcast(self, data, root):
        return self._exchange(f"bcast(root={root})", data if self.Get_rank() == root else None)[root]

    def barrier(self):
        self._exchange("barrier", None)

    def Split(self, color, key):
        return ShmBackend(None, None, None, _group=_native.function("comm.split")(self._group, color, key))


class TorchDistBackend(CommBackend):
    """torch.distributed's ranks: those of `group`, by default all.

    Raises:
        RuntimeError: torch.distributed is not initialised
    """

    def __init__(self, group=None):
        import torch.distributed as dist

        if not (dist.is_available() and dist.is_initialized()):
            raise RuntimeError("TorchDistBackend: torch.distributed is not initialized; call torch.distributed.init_process_group() first")
        self._dist, self._group = dist, group
        # Ranks of the whole job, in the order of this communicator's: torch may sort those of a group.
        self._members = dist.get_process_group_ranks(dist.group.WORLD if group is None else group)

    def Get_rank(self):
        return self._members.index(self._dist.get_rank())

    def Get_size(self):
        return len(self._members)

    def allgather(self, data):
        gathered = [None] * self.Get_size()
        self._dist.all_gather_object(gathered, (self.Get_rank(), data), group=self._group)
        return tuple(data for _, data in sorted(gathered, key=lambda item: item[0]))

    def bcast(self, data, root):
        """`root` is a rank inside the group."""
        box = [data]
        self._dist.broadcast_object_list(box, src=self._members[root], group=self._group)
        return box[0]

    def barrier(self):
        self._dist.barrier(group=self._group)

    def Split(self, color, key):
        """The ranks of one color as a ShmBackend. torch's own groups would not do: it names a group of some ranks by how many groups the process has, so ranks
        that have made or destroyed other numbers of them wait for each other until torch's time limit."""
        choices = self.allgather((color, key, machine()))
        members = [rank for _, rank in sorted((k, rank) for rank, (c, k, _) in enumerate(choices) if c == color)]
        name = group_name(self, len({choices[rank][2] for rank in members}) == 1, members)
        return ShmBackend(name, members.index(self.Get_rank()), len(members))


class _MpirunComm:
    """The ranks that Open MPI's mpirun started, for programs without mpi4py: they meet as a ShmBackend, of the job's name when all are on
    one machine, else by MPI."""

    def __init__(self, _backend=None):
        self._backend = _backend or ShmBackend(self._name(), int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"]))
        self.Get_rank, self.Get_size = self._backend.Get_rank, self._backend.Get_size
        self.allgather, self.bcast, self.Barrier = self._backend.allgather, self._backend.bcast, self._backend.barrier

    @staticmethod
    def is_possible():
        return all(name in os.environ for name in ("PMIX_NAMESPACE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))

    @staticmethod
    def _name():
        one_machine = os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") == os.environ["OMPI_COMM_WORLD_SIZE"]
        forced = os.environ.get("FLASHINFER_COMM_TRANSPORT") == "mpi"
        return f"mpirun-{os.environ['PMIX_NAMESPACE']}" if one_machine and not forced else "mpi://"

    def Split(self, color, key):
        return _MpirunComm(self._backend.Split(color, key))


class MpiComm:
    """The MPI communicator that MPIBackend uses: MPI.COMM_WORLD of mpi4py, or what `set_mpi_comm` gave. Without mpi4py, the ranks of
    Open MPI's mpirun."""

    _comm = None

    @classmethod
    def set_mpi_comm(cls, new_comm):
        cls._comm = new_comm

    @classmethod
    def get(cls):
        if cls._comm is None:
            try:
                from mpi4py import MPI

                cls._comm = MPI.COMM_WORLD
            except ImportError:
                if not _MpirunComm.is_possible():
                    raise
                cls._comm = _MpirunComm()
        return cls._comm


class MPIBackend(CommBackend):
    """MPI's ranks, by mpi4py; without it, those that Open MPI's mpirun started.

    Raises:
        ImportError: mpi4py is not installed, `MpiComm.set_mpi_comm` gave no communicator and mpirun did not start this process
    """

    def __init__(self, _comm=None):
        self._comm = MpiComm.get() if _comm is None else _comm

    def Get_rank(self):
        return self._comm.Get_rank()

    def Get_size(self):
        return self._comm.Get_size()

    def allgather(self, data):
        return tuple(self._comm.allgather(data))

    def bcast(self, data, root):
        return self._comm.bcast(data, root)

    def barrier(self):
        self._comm.Barrier()

    def Split(self, color, key):
        return MPIBackend(self._comm.Split(color, key))


class SingleBackend(CommBackend):
    """One rank."""

    def Get_rank(self):
        return 0

    def Get_size(self):
        return 1

    def allgather(self, data):
        return (data,)

    def bcast(self, data, root):
        return data

    def barrier(self):
        pass

    def Split(self, color, key):
        return self


def of_group(group):
    """`group` itself if it is a communicator (a torch.distributed group has methods of these names too, but no sizes), else of that group."""
    return group if hasattr(group, "Get_size") else resolved(None, group)


def resolved(comm_backend=None, group=None):
    """The given back end, else torch.distributed if it is initialised, else MPI if the program uses mpi4py, else one rank."""
    if comm_backend is not None:
        return comm_backend
    dist = sys.modules.get("torch.distributed")
    if group is not None or dist is not None and dist.is_available() and dist.is_initialized():
        return TorchDistBackend(group)
    return MPIBackend() if "mpi4py.MPI" in sys.modules else SingleBackend()
