# SPDX-License-Identifier: Apache-2.0
"""The folders of the JIT, as `pathlib.Path`s. They are asked of the library when they are read, so they follow
FLASHINFER_WORKSPACE_BASE and FLASHINFER_AOT_DIR; a program may set FLASHINFER_JIT_DIR or FLASHINFER_GEN_SRC_DIR here to others.

- FLASHINFER_BASE_DIR: FLASHINFER_WORKSPACE_BASE, else the home folder
- FLASHINFER_CACHE_DIR: <base>/.cache/flashinfer, with all versions
- FLASHINFER_WORKSPACE_DIR: this version's; a folder a target (`native`, `sm_90a`, ...) holds the library's compiled kernels
- FLASHINFER_JIT_DIR: libraries compiled from a program's sources; FLASHINFER_GEN_SRC_DIR: for sources that programs generate
- FLASHINFER_AOT_DIR, FLASHINFER_AOT_DIRS: precompiled artifacts, read only
- FLASHINFER_INCLUDE_DIR, FLASHINFER_CSRC_DIR, FLASHINFER_DATA: the kernels' headers, for `#include "flashinfer/..."`, read only
- FLASHINFER_CUBIN_DIR: the folder of the package flashinfer-cpp-cubin; without it, where FlashInfer keeps downloaded cubins (none here)
"""
import dataclasses
import pathlib

from .. import _cubin
from ._library import call


@dataclasses.dataclass(frozen=True)
class AOTArtifact:
    """A precompiled library of a module."""

    provider_id: str
    path: pathlib.Path
    cuda_architectures: "frozenset[str] | None"


def _aot_dirs(paths):
    return tuple(map(pathlib.Path, paths["aot"])) or (pathlib.Path(paths["library"]).parent / "flashinfer" / "aot",)


def _workspace(paths):
    if not paths["cache"]:
        raise RuntimeError("there is no cache folder: neither FLASHINFER_WORKSPACE_BASE nor HOME is set")
    return pathlib.Path(paths["cache"])


_FOLDERS = {
    "FLASHINFER_BASE_DIR": lambda p: _workspace(p).parents[2],
    "FLASHINFER_CACHE_DIR": lambda p: _workspace(p).parent,
    "FLASHINFER_WORKSPACE_DIR": _workspace,
    "FLASHINFER_JIT_DIR": lambda p: _workspace(p) / "modules",
    "FLASHINFER_GEN_SRC_DIR": lambda p: _workspace(p) / "generated",
    "FLASHINFER_CUBIN_DIR": lambda p: pathlib.Path(_cubin.folder) if _cubin.folder else _workspace(p).parent / "cubins",
    "FLASHINFER_AOT_DIR": lambda p: _aot_dirs(p)[0],
    "FLASHINFER_AOT_DIRS": _aot_dirs,
    "FLASHINFER_AOT_PROVIDERS": lambda p: (),
    "FLASHINFER_INCLUDE_DIR": lambda p: pathlib.Path(p["include"]),
    "FLASHINFER_CSRC_DIR": lambda p: pathlib.Path(p["include"]),
    "FLASHINFER_DATA": lambda p: pathlib.Path(p["include"]),
    "CUTLASS_INCLUDE_DIRS": lambda p: [],  # nothing of theirs is used
    "CCCL_INCLUDE_DIRS": lambda p: [],
    "flashinfer_version": lambda p: p["version"],
}


def __getattr__(name):
    folder = _FOLDERS.get(name)
    if folder is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return folder(call("paths"))


def __dir__():
    return sorted({*globals(), *_FOLDERS})


def changed(name):
    """The folder that a program set here in place of the library's, else None."""
    return globals().get(name)


def current(name):
    """The folder `name`, as set here or the library's."""
    return pathlib.Path(changed(name) or __getattr__(name))


def has_flashinfer_cubin():
    """True when the package flashinfer-cpp-cubin is installed and of this version."""
    return _cubin.folder is not None


def has_flashinfer_jit_cache():
    """True when precompiled kernels are there, beside the library or in $FLASHINFER_AOT_DIR."""
    return any(d.is_dir() for d in __getattr__("FLASHINFER_AOT_DIRS"))


def get_aot_path(module_name: str):
    """Where a precompiled library of this name is looked for."""
    return current("FLASHINFER_AOT_DIR") / module_name / f"{module_name}.so"


def get_aot_artifacts(module_name: str):
    """The precompiled libraries of this name that are there."""
    found = (d / module_name / f"{module_name}.so" for d in __getattr__("FLASHINFER_AOT_DIRS"))
    return tuple(AOTArtifact("local", path, None) for path in found if path.exists())
