# SPDX-License-Identifier: Apache-2.0
"""Flags and commands of the compilers, and ninja by hand."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sysconfig
import warnings
from typing import List, Mapping, Optional

from . import env, env as jit_env  # noqa: F401: a name of this module

_NVCC_HINT = "set FLASHINFER_NVCC or CUDA_HOME, or put nvcc on PATH"


def _nvcc():
    explicit = os.environ.get("FLASHINFER_NVCC")
    homes = [os.environ.get(v) for v in ("CUDA_HOME", "CUDA_PATH")]
    for candidate in [explicit] if explicit else [*(os.path.join(h, "bin", "nvcc") for h in homes if h), "nvcc", "/usr/local/cuda/bin/nvcc"]:
        found = shutil.which(candidate)
        if found:
            return found
    return None


def get_cuda_path() -> str:
    """The CUDA toolkit's folder. RuntimeError when there is none."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            return os.environ[variable]
    nvcc = _nvcc()
    if nvcc is None:
        raise RuntimeError(f"Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist: {_NVCC_HINT}")
    return str(pathlib.Path(nvcc).resolve().parent.parent)


def get_cuda_version():
    """nvcc's version, as `packaging.version.Version`."""
    from packaging.version import Version

    nvcc = _nvcc()
    if nvcc is None:
        raise RuntimeError(f"Could not find nvcc: {_NVCC_HINT}")
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"release (\d+\.\d+)", text)
    if not found:
        raise RuntimeError(f"Could not parse the CUDA version that {nvcc} --version prints: {text}")
    return Version(found.group(1))


def is_cuda_version_at_least(version_str: str) -> bool:
    from packaging.version import Version

    return get_cuda_version() >= Version(version_str)


def get_nvcc_parallelism_flags() -> List[str]:
    """["--threads=N"] of FLASHINFER_NVCC_THREADS (1), which the library adds to nvcc's command by itself. Warns of anything but a number."""
    text = os.environ.get("FLASHINFER_NVCC_THREADS") or "1"
    if not text.isdigit():
        warnings.warn(f"FLASHINFER_NVCC_THREADS is {text!r}, but must be a number; 1 holds", stacklevel=2)
        text = "1"
    return [f"--threads={int(text)}"]


def parse_env_flags(env_var_name) -> List[str]:
    """The flags in a variable, split as a shell does. RuntimeError for unbalanced quotes."""
    try:
        return shlex.split(os.environ.get(env_var_name, ""))
    except ValueError as e:
        raise RuntimeError(f"{env_var_name} cannot be split into flags: {e}") from e


def host_compiler_is_gcc() -> bool:
    """Whether the C++ compiler (FLASHINFER_CXX, CXX, else c++) says that it is gcc."""
    words = shlex.split(os.environ.get("FLASHINFER_CXX") or os.environ.get("CXX") or "c++")
    try:
        text = subprocess.run([*words, "-dM", "-E", "-x", "c++", os.devnull], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    return "__GNUC__" in text and "__clang__" not in text


def join_multiline(vs: List[str]) -> str:
    """One flag a line, as build.ninja continues lines."""
    return " $\n    ".join(vs)


def get_cccl_includes() -> List:
    """[]: CCCL is not shipped."""
    return []


def get_system_includes(cuda_home: str) -> List:
    """The folders that sources find headers in: Python's, CUDA's, TVM-FFI's and this library's."""
    from . import core  # which has names of this module

    return [sysconfig.get_path("include"), "$cuda_home/include", *core._tvm_includes(), env.current("FLASHINFER_INCLUDE_DIR")]


def build_common_cflags(cuda_home: str, extra_include_dirs: Optional[List[pathlib.Path]] = None) -> List[str]:
    folders = [*get_system_includes(cuda_home), *(extra_include_dirs or [])]
    return [f"-isystem {folder}" for folder in folders]


def build_cflags(common_cflags: List[str], extra_cflags: Optional[List[str]] = None) -> List[str]:
    return ["$common_cflags", "-fPIC", *(extra_cflags or []), *parse_env_flags("FLASHINFER_EXTRA_CFLAGS")]


def build_cuda_cflags(common_cflags: List[str], extra_cuda_cflags: Optional[List[str]] = None) -> List[str]:
    from . import core

    own = extra_cuda_cflags or []
    archs = [] if any("-gencode" in f for f in own) else core.current_compilation_context.get_nvcc_flags_list()
    return ["$common_cflags", "--compiler-options=-fPIC", "--expt-relaxed-constexpr", *archs, *own, *parse_env_flags("FLASHINFER_EXTRA_CUDAFLAGS")]


def generate_ninja_build_for_op(name: str, sources: List[pathlib.Path], extra_cflags: Optional[List[str]],
                                extra_cuda_cflags: Optional[List[str]], extra_ldflags: Optional[List[str]],
                                extra_include_dirs: Optional[List[pathlib.Path]], needs_device_linking: bool = False,
                                embedded_cubins: Optional[Mapping[str, pathlib.Path]] = None,
                                extra_cuda_cflags_by_source: Optional[Mapping[pathlib.Path, List[str]]] = None) -> str:
    """The text of build.ninja, as `JitSpec.write_ninja` writes it."""
    if embedded_cubins:
        raise NotImplementedError(f"{name}: embedded_cubins: cubins are not embedded; load them through the CUDA driver")
    from . import core

    spec = core.JitSpecNvcc(name, [pathlib.Path(s).absolute() for s in sources], extra_cflags, extra_cuda_cflags, extra_ldflags,
                            extra_include_dirs, needs_device_linking=needs_device_linking,
                            extra_cuda_cflags_by_source=extra_cuda_cflags_by_source)
    return core.call("library_ninja", spec._described())


def run_ninja(workdir: pathlib.Path, ninja_file: pathlib.Path, verbose: bool, max_jobs: Optional[int] = None) -> None:
    """Runs the program `ninja`, which nothing else here needs. RuntimeError with its output when it fails or is missing."""
    ninja = shutil.which("ninja")
    if ninja is None:
        raise RuntimeError("ninja is not on PATH; JitSpec.build() compiles without it")
    jobs = max_jobs or int(os.environ.get("MAX_JOBS") or 0)
    command = [ninja, *(["-v"] if verbose else []), "-C", str(workdir), "-f", str(pathlib.Path(ninja_file).absolute()),
               *(["-j", str(jobs)] if jobs else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if verbose:
        print(done.stdout)
    if done.returncode != 0:
        raise RuntimeError(f"Ninja build failed. Ninja output:\n{done.stdout}")
