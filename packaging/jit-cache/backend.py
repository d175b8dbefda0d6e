# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel (PEP 517; no packages are needed): kernels for flashinfer/lib/flashinfer/aot of the installed package."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import kernels  # noqa: E402

sys.path.pop(0)

_NAME = "flashinfer-cpp-jit-cache"
_AOT = "flashinfer/lib/flashinfer/aot"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """`-C targets=`, `-C op=`: README.md."""
    settings = config_settings or {}
    with tempfile.TemporaryDirectory() as folder:
        made = kernels.compile_into(_NAME, folder, kernels.targets(_NAME, settings), settings)
    return kernels.write_wheel(wheel_directory, _NAME, "py3-none-linux_x86_64", "Precompiled kernels of flashinfer-cpp",
                               {f"{_AOT}/{path}": content for path, content in made.items()})
