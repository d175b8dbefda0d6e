# SPDX-License-Identifier: Apache-2.0
"""The package under test is the checkout's; FLASHINFER_BUILD_DIR names the build folder with the native library."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))  # before any installed package of the name
if "FLASHINFER_BUILD_DIR" not in os.environ:
    raise RuntimeError("FLASHINFER_BUILD_DIR must name a build folder")
