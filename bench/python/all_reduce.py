# SPDX-License-Identifier: Apache-2.0
"""All-reduce of f32 between processes of one thread: this library beside gloo (torch.distributed) and Open MPI, in turns.

    PYTHONPATH=python python bench/python/all_reduce.py [--ranks 2] [--turns 5] [--kb 16 256 4096 65536]

Each row: medians over the turns of the slowest rank, in microseconds of a call. "C++" is bench_all_reduce, which Open MPI's column is measured
against (a C program, mpi_all_reduce.c); "Python" is flashinfer.comm.allreduce_fusion, beside torch.distributed.all_reduce. Open MPI needs mpicc and
mpirun (Debian: libopenmpi-dev, openmpi-bin); without them its column is empty.
"""
import argparse
import multiprocessing
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = 9


def calls_of(size):
    return max(1, min(200, (8 << 20) // size))


def rank_main(rank, ranks, sizes, name, store, queue):
    os.environ["FLASHINFER_NUM_THREADS"] = "1"
    import torch

    import flashinfer.comm as comm

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    group = comm.ShmBackend(name, rank, ranks)
    hidden = 2048
    workspace = comm.create_allreduce_fusion_workspace(world_size=ranks, rank=rank, max_token_num=max(sizes) // 4 // hidden, hidden_dim=hidden,
                                                       dtype=torch.float32, comm_backend=group)
    for size in sizes:
        x = torch.zeros(size // 4 // hidden, hidden)
        y = torch.zeros_like(x)
        for what, call in (("Python", lambda: comm.allreduce_fusion(x, workspace, 0, output=y)), ("gloo", lambda: torch.distributed.all_reduce(y))):
            times = []
            for _ in range(ROUNDS + 1):
                group.barrier()
                begin = time.perf_counter()
                for _ in range(calls_of(size)):
                    call()
                times.append((time.perf_counter() - begin) / calls_of(size) * 1e6)
            slowest = max(group.allgather(statistics.median(times[1:])))
            if rank == 0:
                queue.put((size, what, slowest))
    workspace.destroy()
    torch.distributed.destroy_process_group()


def python_turn(ranks, sizes):
    context = multiprocessing.get_context("spawn")
    queue, folder = context.Queue(), tempfile.mkdtemp()
    name = uuid.uuid4().hex
    processes = [context.Process(target=rank_main, args=(r, ranks, sizes, name, f"{folder}/store", queue)) for r in range(ranks)]
    for p in processes:
        p.start()
    found = [queue.get(timeout=300) for _ in range(2 * len(sizes))]
    for p in processes:
        p.join()
    shutil.rmtree(folder)
    return found


def cpp_turn(program, ranks, sizes):
    for size in sizes:
        out = subprocess.run([program, str(ranks), str(size >> 10), "f32"], capture_output=True, text=True, check=True).stdout.splitlines()
        columns = out[2].split()
        yield size, "C++", float(columns[2])
        yield size, "copy", float(columns[1])
        yield size, "norm", float(columns[4])


def mpi_turn(program, ranks, sizes):
    crowded = ["--oversubscribe"] if ranks > len(os.sched_getaffinity(0)) else []  # without it Open MPI's ranks spin
    command = ["mpirun", "--allow-run-as-root", *crowded, "-np", str(ranks), program, str(ROUNDS), *map(str, sizes)]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        size, slowest = line.split()
        yield int(size), "Open MPI", float(slowest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--kb", type=int, nargs="+", default=[16, 64, 256, 1024, 4096, 16384, 65536])
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    args = parser.parse_args()
    sizes = [kb << 10 for kb in args.kb]
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        mpi = None
        if shutil.which("mpicc") and shutil.which("mpirun"):
            mpi = f"{folder}/mpi_all_reduce"
            built = subprocess.run(["mpicc", "-O2", "-o", mpi, str(ROOT / "bench/python/mpi_all_reduce.c")], capture_output=True, text=True)
            if built.returncode:  # mpicc without the headers
                print(f"no column for Open MPI: {built.stderr.strip().splitlines()[0]}")
                mpi = None
        for _ in range(args.turns):
            turn = list(cpp_turn(f"{args.build}/bin/bench_all_reduce", args.ranks, sizes)) + python_turn(args.ranks, sizes)
            if mpi:
                turn += mpi_turn(mpi, args.ranks, sizes)
            for size, what, slowest in turn:
                times.setdefault((size, what), []).append(slowest)
    print(f"{args.ranks} ranks, f32, medians of {args.turns} turns, us")
    print("       KB      copy       C++    + norm  Open MPI   / C++    Python      gloo  / Python")
    for size in sizes:
        at = {what: statistics.median(times[size, what]) for what in ("copy", "C++", "norm", "Open MPI", "Python", "gloo") if (size, what) in times}
        theirs = at.get("Open MPI")
        columns = f"{theirs:9.1f} {theirs / at['C++']:7.1f}" if theirs else " " * 17
        print(f"{size >> 10:9} {at['copy']:9.1f} {at['C++']:9.1f} {at['norm']:9.1f} {columns} {at['Python']:9.1f} {at['gloo']:9.1f} {at['gloo'] / at['Python']:9.1f}")


if __name__ == "__main__":
    main()
