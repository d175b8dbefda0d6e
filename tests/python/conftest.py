# SPDX-License-Identifier: Apache-2.0
"""The package under test is the checkout's, with the native library of FLASHINFER_BUILD_DIR (tests/conftest.py)."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))  # before any installed package of the name


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
