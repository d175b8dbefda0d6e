# SPDX-License-Identifier: Apache-2.0
"""Checks that all ranks of a group run together, a process a rank."""
import multiprocessing
import os
import traceback
import uuid

import pytest
import torch

import flashinfer.comm as comm


def run_rank(name, rank, ranks, checks, queue):
    torch.set_num_threads(1)  # a forked process may not use the parent's OpenMP threads
    try:
        backend = comm.ShmBackend(name, rank, ranks)
        for check in checks:
            check(backend, rank)
            backend.barrier()
            queue.put((rank, check.__name__, None))
    except BaseException:
        queue.put((rank, check.__name__, traceback.format_exc()))
    queue.close()
    queue.join_thread()
    os._exit(0)


def run(method, ranks, checks):
    """{(check's name, rank): None or the traceback}, of the checks that were reached. `method`: fork or spawn."""
    context = multiprocessing.get_context(method)
    queue, name = context.Queue(), uuid.uuid4().hex
    processes = [context.Process(target=run_rank, args=(name, r, ranks, checks, queue)) for r in range(ranks)]
    for p in processes:
        p.start()
    found = {}
    while len(found) < len(checks) * ranks:
        rank, check, error = queue.get(timeout=120)
        found[check, rank] = error
        if error:
            break
    for p in processes:
        p.join(timeout=1 if any(found.values()) else 30)
        p.kill()
    return found


def tests(module, method, ranks):
    """The fixture and the test of the functions check_*(backend, rank) in `module`, a module's globals()."""
    names = [name for name in module if name.startswith("check_")]

    @pytest.fixture(scope="module")
    def reports():
        return run(method, ranks, [module[name] for name in names])

    @pytest.mark.parametrize("check", names)
    def test_between_processes(reports, check):
        for rank in range(ranks):
            assert (check, rank) in reports, f"rank {rank} did not get there: {[e for e in reports.values() if e]}"
            assert reports[check, rank] is None, reports[check, rank]

    return reports, test_between_processes
