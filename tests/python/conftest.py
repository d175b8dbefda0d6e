# SPDX-License-Identifier: Apache-2.0
"""The package under test is the checkout's; FLASHINFER_BUILD_DIR names the build folder with the native library."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))  # before any installed package of the name
if "FLASHINFER_BUILD_DIR" not in os.environ:
    raise RuntimeError("FLASHINFER_BUILD_DIR must name a build folder")


def environment(who, **variables):
    """Of a process whose `flashinfer` is the one of `who`."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FLASHINFER_LOG", "FLASHINFER_DUMP")) and k != "PYTHONPATH"}
    if who == "ours":
        env["PYTHONPATH"] = str(ROOT / "python")
    return env | {k: str(v) for k, v in variables.items()}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A kernel cache of the test's own: the folder with all versions."""
    monkeypatch.setenv("FLASHINFER_WORKSPACE_BASE", str(tmp_path / "base"))
    monkeypatch.delenv("FLASHINFER_AOT_DIR", raising=False)
    yield tmp_path / "base/.cache/flashinfer"
    monkeypatch.undo()
    from flashinfer.jit import core

    core.refresh_current_compilation_context()
