# SPDX-License-Identifier: Apache-2.0
"""Specs of libraries: what they are made of, whether they are compiled, building and loading (docs/jit.md)."""
import concurrent.futures
import dataclasses
import functools
import logging
import os
import pathlib
import shutil
from typing import Any, Callable, List, Mapping, Optional, Sequence, Union

from .. import _native
from ..compilation_context import CompilationContext
from . import env, env as jit_env  # noqa: F401: a name of this module
from ._library import call, jit_disabled
from .cpp_ext import generate_ninja_build_for_op, get_nvcc_parallelism_flags, run_ninja  # noqa: F401: names of this module
from .spec import (JitSpec, JitSpecRegistry, JitSpecStatus, MissingJITCacheError, get_tmpdir,  # noqa: F401: the names of this module
                   jit_spec_registry)
from .utils import write_if_different

Paths = Sequence[Union[str, pathlib.Path]]


class FlashInferJITLogger(logging.Logger):
    """The logger "flashinfer.jit"; FLASHINFER_LOGGING_LEVEL sets its level (INFO)."""

    def __init__(self, name):
        level = getattr(logging, os.environ.get("FLASHINFER_LOGGING_LEVEL", "INFO").upper(), logging.INFO)
        super().__init__(name, level)
        self.addHandler(logging.StreamHandler())
        self.handlers[0].setFormatter(logging.Formatter("%(asctime)s - %(levelname)s - %(name)s: %(message)s"))

    @functools.lru_cache(maxsize=None)
    def _print_once(self, log_method, msg: str, *args) -> None:
        getattr(super(), log_method)(msg, *args)

    def debug_once(self, msg: str, *args) -> None:
        self._print_once("debug", msg, *args)

    def info_once(self, msg: str, *args) -> None:
        self._print_once("info", msg, *args)

    def warning_once(self, msg: str, *args) -> None:
        self._print_once("warning", msg, *args)


logger = FlashInferJITLogger("flashinfer.jit")
current_compilation_context = CompilationContext()
common_nvcc_flags = CompilationContext.COMMON_NVCC_FLAGS


def _flags_of(arch, *more):
    return [f"-gencode=arch=compute_{arch},code=sm_{arch}", *more]


sm89_nvcc_flags = _flags_of("89", "-DFLASHINFER_ENABLE_FP8_E8M0")
sm90a_nvcc_flags = _flags_of("90a", "-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED", *common_nvcc_flags)
sm100a_nvcc_flags = _flags_of("100a", *common_nvcc_flags)
sm100f_nvcc_flags = _flags_of("100f", *common_nvcc_flags)
sm103a_nvcc_flags = _flags_of("103a", *common_nvcc_flags)
sm107a_nvcc_flags = _flags_of("107a", *common_nvcc_flags)
sm110a_nvcc_flags = _flags_of("110a", *common_nvcc_flags)
sm120a_nvcc_flags = _flags_of("120a", *common_nvcc_flags)
sm120f_nvcc_flags = _flags_of("120f", *common_nvcc_flags)
sm121a_nvcc_flags = _flags_of("121a", *common_nvcc_flags)


def refresh_current_compilation_context() -> CompilationContext:
    """Reads FLASHINFER_CUDA_ARCH_LIST, or the GPUs, again. Returns the one context, changed in place."""
    current_compilation_context.__init__()
    return current_compilation_context


def check_cuda_arch():
    """RuntimeError without an architecture to compile CUDA sources for, or with one before 7.5."""
    archs = sorted(current_compilation_context.TARGET_CUDA_ARCHS)
    if not archs or any((major, int(minor.rstrip("af"))) < (7, 5) for major, minor in archs):
        raise RuntimeError(f"FlashInfer requires GPUs with sm75 or higher. Detected TARGET_CUDA_ARCHS={archs}. "
                           "FLASHINFER_CUDA_ARCH_LIST names architectures where there is no GPU.")


def clear_cache_dir():
    """Removes compiled kernels and libraries, of all versions; loaded ones stay usable. `flashinfer clear-cache` does the same."""
    call("clear_cache")


@dataclasses.dataclass
class JitSpecNvcc(JitSpec):
    """A shared library of C++ and CUDA sources; `gen_jit_spec` makes them."""

    name: str
    sources: List[pathlib.Path]
    extra_cflags: Optional[List[str]]
    extra_cuda_cflags: Optional[List[str]]
    extra_ldflags: Optional[List[str]]
    extra_include_dirs: Optional[List[pathlib.Path]]
    is_class: bool = False
    needs_device_linking: bool = False
    post_load_adapter: Optional[Callable[[Any], Any]] = None
    embedded_cubin_factory: Optional[Callable[[pathlib.Path], Mapping[str, pathlib.Path]]] = None
    extra_cuda_cflags_by_source: Optional[Mapping[pathlib.Path, List[str]]] = None

    def _described(self):
        """What the library's compiler takes. RuntimeError for CUDA sources without an architecture."""
        flags = list(self.extra_cuda_cflags or [])
        if any(s.suffix == ".cu" for s in self.sources) and not any("-gencode" in f or "-arch" in f or "gpu-arch" in f for f in flags):
            check_cuda_arch()
            flags += current_compilation_context.get_nvcc_flags_list()
        return {"name": self.name, "sources": [str(s) for s in self.sources], "cflags": list(self.extra_cflags or []),
                "cuda_cflags": flags, "ldflags": list(self.extra_ldflags or []),
                "cuda_cflags_by_source": {str(k): list(v) for k, v in (self.extra_cuda_cflags_by_source or {}).items()},
                "include_dirs": [str(d) for d in [*(self.extra_include_dirs or []), *_standard_includes()]],
                "device_linking": self.needs_device_linking, "folder": str(env.changed("FLASHINFER_JIT_DIR") or "")}

    def _found(self):
        """The up to date library on disk, or None."""
        try:
            found = call("find_library", self._described())
        except RuntimeError:  # no compiler, or no architecture
            return None
        return pathlib.Path(found["library"]) if found else None

    @property
    def jit_library_path(self) -> pathlib.Path:
        return self._found() or self.build_dir / f"{self.name}.so"

    @property
    def is_aot(self) -> bool:
        """Whether a precompiled library is there. One that was made from other sources than these is not used."""
        if not self.aot_path.exists():
            return False
        recorded = self.aot_path.with_name("source.txt")
        if not recorded.exists() or not all(s.exists() for s in self.sources):
            return True
        return recorded.read_text().strip() == call("library_source_hash", {**_EMPTY, "name": self.name, "sources": [str(s) for s in self.sources]})

    @property
    def is_compiled(self) -> bool:
        return self.is_aot or self._found() is not None

    def get_library_path(self) -> pathlib.Path:
        return self.aot_path if self.is_aot else self.jit_library_path

    def get_object_paths(self) -> List[pathlib.Path]:
        """Where ninja puts the objects; those of `build()` are removed after the link."""
        return [self.build_dir / c["output"] for c in self._commands()]

    def _commands(self):
        return call("library_commands", self._described(), str(self.build_dir))

    def get_compile_commands(self) -> List[dict]:
        """As in compile_commands.json."""
        return [{k: c[k] for k in ("directory", "arguments", "file")} for c in self._commands()]

    def write_ninja(self) -> None:
        """Writes build.ninja with the commands that `build()` runs, for use by hand: `ninja -C <build_dir>`."""
        write_if_different(self.ninja_path, call("library_ninja", self._described()))

    def build(self, verbose: Optional[bool] = None, need_lock: bool = False) -> None:
        """Compiles unless an up to date library is there; `need_lock` changes nothing, processes always wait for each other.
        RuntimeError holds the compiler's output and its command."""
        del need_lock
        if self.embedded_cubin_factory is not None:
            raise NotImplementedError(f"{self.name}: embedded_cubin_factory: cubins are not embedded; load them through the CUDA driver")
        if jit_disabled():
            raise MissingJITCacheError(f"{self.name} cannot be compiled: FLASHINFER_DISABLE_JIT is 1", self)
        done = call("build_library", self._described(), bool(verbose))
        if done["origin"] == "compiled":
            logger.info("compiled %s in %.1f s", self.name, done["seconds"])

    def load(self, so_path: Optional[pathlib.Path] = None) -> Any:
        """The functions that the library exports (TVM_FFI_DLL_EXPORT_TYPED_FUNC), as attributes of a `tvm_ffi.Module`."""
        if so_path is None:
            so_path = self.get_library_path()
        if not pathlib.Path(so_path).exists():
            raise RuntimeError(f"{self.name} is not compiled: build() it first")
        module = _native.connect().tvm_ffi.load_module(str(so_path))
        return self.post_load_adapter(module) if self.post_load_adapter is not None else module


_EMPTY = {"cflags": [], "cuda_cflags": [], "ldflags": [], "cuda_cflags_by_source": {}, "include_dirs": [], "device_linking": False,
          "folder": ""}


@functools.lru_cache(maxsize=None)
def _tvm_includes():
    from tvm_ffi import libinfo

    return tuple(dict.fromkeys((str(libinfo.find_include_path()), str(libinfo.find_dlpack_include_path()))))


def _standard_includes():
    return [*_tvm_includes(), str(env.current("FLASHINFER_INCLUDE_DIR"))]


def gen_jit_spec(name: str, sources: Paths, extra_cflags: Optional[List[str]] = None, extra_cuda_cflags: Optional[List[str]] = None,
                 extra_ldflags: Optional[List[str]] = None, extra_include_paths: Optional[Paths] = None,
                 needs_device_linking: bool = False, post_load_adapter: Optional[Callable[[Any], Any]] = None,
                 embedded_cubin_factory: Optional[Callable[[pathlib.Path], Mapping[str, pathlib.Path]]] = None,
                 use_fast_math: bool = True,
                 extra_cuda_cflags_by_source: Optional[Mapping[Union[str, pathlib.Path], List[str]]] = None) -> JitSpec:
    """Describes a library of C++ and CUDA (*.cu) sources and registers it; nothing is compiled yet.

    Extra flags come after the usual ones and win. CUDA sources are compiled by nvcc for FLASHINFER_CUDA_ARCH_LIST, or for this
    machine's GPUs, unless their flags hold a -gencode or -arch. The headers of TVM-FFI, DLPack and of this library's kernels are
    found. FLASHINFER_JIT_DEBUG leaves assertions in and adds debug information. ValueError for flags of a source that is not among them,
    TypeError for a text where a list is wanted.
    """
    for what, value in (("sources", sources), ("extra_cflags", extra_cflags), ("extra_cuda_cflags", extra_cuda_cflags), ("extra_ldflags", extra_ldflags),
                        ("extra_include_paths", extra_include_paths)):
        if isinstance(value, (str, bytes, os.PathLike)):
            raise TypeError(f"gen_jit_spec: {what} is {str(value)!r}, but must be a list")
    paths = [pathlib.Path(s).absolute() for s in sources]
    by_source = {pathlib.Path(k).absolute(): list(v) for k, v in (extra_cuda_cflags_by_source or {}).items()}
    for path in by_source:
        if path not in paths:
            raise ValueError(f"CUDA flags refer to a source outside this JIT spec: {path}")
    cuda = ["-std=c++20", *(["-use_fast_math"] if use_fast_math else []), "-Xfatbin=-compress-all", "-DFLASHINFER_ENABLE_F16",
            "-DFLASHINFER_ENABLE_BF16", "-DFLASHINFER_ENABLE_FP8_E4M3", "-DFLASHINFER_ENABLE_FP8_E5M2"]
    debug = os.environ.get("FLASHINFER_JIT_DEBUG", "0") not in ("", "0")
    optimized = ["-O0", "-g"] if debug else ["-DNDEBUG", "-O3"]
    cuda += [*optimized, "--device-debug", "--ptxas-options=-v"] if debug else optimized
    spec = JitSpecNvcc(name, paths, ["-std=c++20", "-Wno-switch-bool", *optimized, *(extra_cflags or [])],
                       [*cuda, *(extra_cuda_cflags or [])], None if extra_ldflags is None else list(extra_ldflags),
                       None if extra_include_paths is None else [pathlib.Path(p).absolute() for p in extra_include_paths],
                       needs_device_linking=needs_device_linking, post_load_adapter=post_load_adapter,
                       embedded_cubin_factory=embedded_cubin_factory, extra_cuda_cflags_by_source=by_source or None)
    jit_spec_registry.register(spec)
    return spec


def build_jit_specs(specs: List[JitSpec], verbose: bool = False, skip_prebuilt: bool = True) -> None:
    """Compiles all of them, MAX_JOBS compilers at once (one per core when it is not set). TypeError for anything but specs of sources
    or kernels. The first error is raised after all have ended."""
    for spec in specs:
        if not isinstance(spec, JitSpec):
            raise TypeError(f"build_jit_specs takes specs of sources or kernels, not {type(spec).__name__}")
    chosen = [s for s in specs if not (skip_prebuilt and s.is_aot)]
    single = [s for s in chosen if isinstance(s, JitSpecNvcc) and len(s.sources) == 1]
    text = os.environ.get("MAX_JOBS") or "0"
    if not text.isdigit():
        raise ValueError(f"MAX_JOBS is {text!r}, but must be a number of compilers; 0: one per core")
    jobs = int(text) or len(os.sched_getaffinity(0))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(s.build, verbose) for s in single]
    for spec in chosen:
        if spec not in single:
            spec.build(verbose)
    for done in waiting:
        done.result()


def copy_library(spec: JitSpec, folder: pathlib.Path) -> None:
    """Copies a compiled library to <folder>/<name>/<name>.so, with a note of its sources, for $FLASHINFER_AOT_DIR."""
    target = pathlib.Path(folder) / spec.name
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy2(spec.get_library_path(), target / f"{spec.name}.so")
    text = call("library_source_hash", {**_EMPTY, "name": spec.name, "sources": [str(s) for s in spec.sources]})
    (target / "source.txt").write_text(text + "\n")
