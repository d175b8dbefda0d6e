# SPDX-License-Identifier: Apache-2.0
"""The package under test is the checkout's; FLASHINFER_BUILD_DIR names the build folder with the native library."""
import os
import pathlib
import sys

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
