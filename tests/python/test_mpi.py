# SPDX-License-Identifier: Apache-2.0
"""tests/comm under mpirun, where Open MPI is installed (Debian: openmpi-bin)."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun (Debian: openmpi-bin)")
def test_four_ranks():
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/comm"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1", "FLASHINFER_NUM_THREADS": "1", "FLASHINFER_COMM_TIMEOUT_S": "120"},
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("passed") == 4, done.stdout
