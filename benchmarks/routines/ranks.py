# SPDX-License-Identifier: Apache-2.0
"""The ranks of a communication routine: those that mpirun, srun or torchrun started, or processes that are started here; their times."""
import multiprocessing
import multiprocessing.connection
import os
import sys
import tempfile
import time
import uuid

# (rank, ranks of the job, ranks on this machine) in the environment of a process.
_LAUNCHERS = (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"), ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
              ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ""), ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"))
# What names a job of this user on this machine.
_JOBS = (("PMIX_NAMESPACE",), ("SLURM_JOB_ID", "SLURM_STEP_ID"), ("MASTER_ADDR", "MASTER_PORT"))
_connected = 0  # groups of this process, the same number on all ranks


def launched():
    """(rank, size) that the launcher gave this process; (0, 1): none started several."""
    for rank, size, _ in _LAUNCHERS:
        if os.environ.get(rank, "").isdigit() and os.environ.get(size, "").isdigit() and int(os.environ[size]) > 1:
            return int(os.environ[rank]), int(os.environ[size])
    return 0, 1


def connect():
    """A ShmBackend of the launched ranks, a new one each time. Raises ValueError where they are on several machines."""
    global _connected
    from flashinfer.comm import ShmBackend

    rank, size = launched()
    local = next((os.environ[name] for r, _, name in _LAUNCHERS if os.environ.get(r) and os.environ.get(name)), str(size))
    if local != str(size):
        raise ValueError(f"{local} of {size} ranks are on this machine, but all must be: they communicate by shared memory")
    named = [[os.environ.get(name, "") for name in names] for names in _JOBS]
    job = next((".".join(values) for values in named if all(values)), f"of-{os.getppid()}")
    _connected += 1
    return ShmBackend(f"benchmark-{job}-{_connected}", rank, size)


def generator(args, rank):
    """The random numbers of a rank; rank -1: those that are the same on all ranks."""
    import torch

    return torch.Generator().manual_seed(args.random_seed + 1 + rank)


def _rank(work, args, name, rank, size, pipe):
    from flashinfer.comm import ShmBackend

    if rank:
        sys.stdout = open(os.devnull, "w")
    try:
        result = work(args, ShmBackend(name, rank, size))
    except Exception as e:  # raised again by the process that started the ranks
        result = e if type(e).__module__ == "builtins" else RuntimeError(str(e))
    sys.stdout.flush()
    pipe.send(result)


def _wait(readers, processes):
    """What each rank returned or raised. After the first error the others have five seconds."""
    results, failed = {}, False
    while len(results) < len(readers):
        ready = multiprocessing.connection.wait([r for i, r in enumerate(readers) if i not in results], 5 if failed else None)
        if not ready:
            break
        for reader in ready:
            rank = readers.index(reader)
            try:
                results[rank] = reader.recv()
            except EOFError:
                processes[rank].join()
                results[rank] = RuntimeError(f"rank {rank} ended without a result, with status {processes[rank].exitcode}")
            failed = failed or isinstance(results[rank], Exception)
    return results


def spawn(work, args, size):
    """work(args, backend) on `size` new processes, which share the cores; what rank 0 returned. Raises what a rank raised."""
    context = multiprocessing.get_context("spawn")
    threads = str(max(1, len(os.sched_getaffinity(0)) // size))
    shared = {name: os.environ.get(name) for name in ("FLASHINFER_NUM_THREADS", "OMP_NUM_THREADS")}
    name, readers, processes = uuid.uuid4().hex, [], []
    sys.stdout.flush()
    try:
        for key, value in shared.items():
            os.environ[key] = value or threads
        for rank in range(size):
            reader, writer = context.Pipe(duplex=False)
            processes.append(context.Process(target=_rank, args=(work, args, name, rank, size, writer)))
            processes[-1].start()
            writer.close()
            readers.append(reader)
        results = _wait(readers, processes)
    finally:
        for key, value in shared.items():
            os.environ.pop(key) if value is None else os.environ.update({key: value})
        for p in processes:
            p.join(5)
            p.terminate()
    errors = [results[r] for r in sorted(results) if isinstance(results[r], Exception)]
    died = [e for e in errors if "ended without a result" in str(e)]  # the reason of the others' errors
    if errors:
        raise (died or errors)[0]
    return results[0]


class Group:
    """The ranks of a routine, with a barrier through shared memory: the ranks leave it within a microsecond or so of each other."""

    def __init__(self, backend):
        import torch

        import flashinfer.comm as comm

        self.backend, self.rank, self.size = backend, backend.Get_rank(), backend.Get_size()
        self._one = torch.zeros(1, 16, dtype=torch.bfloat16)
        self._workspace = comm.create_allreduce_fusion_workspace(world_size=self.size, rank=self.rank, max_token_num=1, hidden_dim=16,
                                                                 dtype=torch.bfloat16, comm_backend=backend)
        self._sum = comm.allreduce_fusion
        self._folder, self._groups = None, {}

    def torch_distributed(self):
        """torch.distributed with these ranks by gloo. Collective, the first time."""
        import torch.distributed as dist

        if self._folder is None:
            made = tempfile.TemporaryDirectory() if self.rank == 0 else None
            self._folder = made or True
            path = self.backend.bcast(made and made.name, 0)
            dist.init_process_group("gloo", init_method=f"file://{path}/store", rank=self.rank, world_size=self.size)
        return dist

    def torch_group(self, members):
        """torch.distributed's group of some ranks, this one among them. Collective: every rank names the members of its own."""
        dist, key = self.torch_distributed(), tuple(members)
        for of_rank in sorted(set(self.backend.allgather(key))):
            if of_rank not in self._groups:
                self._groups[of_rank] = dist.new_group(list(of_rank))
        return self._groups[key]

    def barrier(self):
        self._sum(self._one, self._workspace, 0, use_oneshot=True)

    def first(self, problem):
        """The problem of the lowest rank that has one, on all ranks; None: no rank has."""
        return next((f"rank {r}: {p}" for r, p in enumerate(self.backend.allgather(problem)) if p is not None), None)

    def times(self, args, steps):
        """Milliseconds of each iteration, [len(steps) + 1][num_iters]: those of each step and of all, each that of the slowest rank.

        All ranks start an iteration together, after their caches are flushed."""
        from flashinfer.testing import _clock

        dry, repeat = _clock.iterations("times", args.dry_run_iters, args.num_iters, 1, 1, 1)
        evict = (lambda: None) if args.warm_cache else _clock.Evict()
        measured = []
        for _ in range(dry + repeat):
            evict()
            self.barrier()
            stamps = [time.perf_counter_ns()]
            for step in steps:
                step()
                stamps.append(time.perf_counter_ns())
            measured.append([(b - a) * 1e-6 for a, b in zip(stamps, stamps[1:])] + [(stamps[-1] - stamps[0]) * 1e-6])
        return [[max(of_ranks) for of_ranks in zip(*column)]
                for column in zip(*(zip(*times) for times in self.backend.allgather(measured[dry:])))]

    def close(self):
        self._workspace.destroy()
        if self._folder is not None:
            self.torch_distributed().destroy_process_group()
        if self._folder not in (None, True):
            self._folder.cleanup()
