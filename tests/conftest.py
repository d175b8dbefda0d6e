# SPDX-License-Identifier: Apache-2.0
"""`pytest tests/` takes the newest build below build/ unless FLASHINFER_BUILD_DIR names another. A test that finds a GPU's memory full
is skipped."""
import os
import pathlib

import pytest

if "FLASHINFER_BUILD_DIR" not in os.environ:
    builds = sorted(pathlib.Path(__file__).parents[1].glob("build/*/lib/libflashinfer.so"), key=lambda library: library.stat().st_mtime)
    builds = [b for b in builds if "FLASHINFER_SANITIZE:STRING=\n" in (b.parents[1] / "CMakeCache.txt").read_text()]  # Python loads no other
    if not builds:
        raise RuntimeError("no library below build/: run `make`, or let FLASHINFER_BUILD_DIR name a build folder")
    os.environ["FLASHINFER_BUILD_DIR"] = str(builds[-1].parents[1])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    try:
        return (yield)
    except RuntimeError as error:  # torch.OutOfMemoryError is one; torch may not be there
        if type(error).__name__ != "OutOfMemoryError":
            raise
        pytest.skip(f"out of GPU memory: {error}")
