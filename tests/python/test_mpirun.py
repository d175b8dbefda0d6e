# SPDX-License-Identifier: Apache-2.0
"""tests/comm under mpirun, where Open MPI is installed (Debian: openmpi-bin)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun (Debian: openmpi-bin)")

# Rank 1 dies, or comes late, after some calls; the others print what they get. They do not finalise MPI, which would wait for it. As long as a
# rank imports torch, the time limit does not count.
FAULT = """
import os, pathlib, signal, sys, time
import torch
import flashinfer.comm as comm
there = pathlib.Path(sys.argv[2])
(there / os.environ["OMPI_COMM_WORLD_RANK"]).touch()
while len(list(there.iterdir())) < 3:
    time.sleep(0.01)
backend = comm.comm_backend.MPIBackend()
rank = backend.Get_rank()
workspace = comm.create_allreduce_fusion_workspace(world_size=backend.Get_size(), rank=rank, max_token_num=64, hidden_dim=64,
                                                   dtype=torch.float32, comm_backend=backend)
try:
    for i in range(1 << 30):
        if rank == 1 and i == 20:
            if sys.argv[1] == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            if sys.argv[1] == "late":
                time.sleep(4)
        tokens = 8 if sys.argv[1] == "differs" and rank == 1 and i == 20 else 64
        comm.allreduce_fusion(torch.ones(tokens, 64), workspace, 0)
except RuntimeError as e:
    print(f"<{rank} in call {i}: {e}>", flush=True)
time.sleep(1)
os._exit(0)
"""


def run(ranks, command, **environment):
    return subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--enable-recovery", "-np", str(ranks), sys.executable, *command], cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "FLASHINFER_NUM_THREADS": "1",
                               "FLASHINFER_COMM_TIMEOUT_S": "120", **environment}, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("ranks, transport", [(4, "auto"), (2, "mpi"), (4, "mpi"), (4, "tcp")])
def test_ranks(ranks, transport):
    done = run(ranks, ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/comm"], FLASHINFER_COMM_TRANSPORT=transport)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("passed") == ranks, done.stdout


@pytest.mark.parametrize("transport", ["mpi", "tcp"])
@pytest.mark.parametrize("fault, text", [("dies", r"rank 1\b.* (ended|left)"), ("late", r"rank 1 did not arrive within 2 s"),
                                         ("differs", r"rank 1 calls allreduce_fusion\(pattern=0, input=\[8, 64\]")])
def test_a_fault_of_one_rank_is_an_error_of_the_others(transport, fault, text, tmp_path):
    done = run(3, ["-c", FAULT, fault, str(tmp_path)], FLASHINFER_COMM_TRANSPORT=transport, FLASHINFER_COMM_TIMEOUT_S="2" if fault == "late" else "60")
    errors = dict(re.findall(r"<(\d) in call 20: ([^>]*)>", done.stdout))  # mpirun may join lines
    for rank in ("0", "2"):
        assert re.search(text, errors.get(rank, "")), (rank, done.stdout, done.stderr[-2000:])
