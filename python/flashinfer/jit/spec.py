# SPDX-License-Identifier: Apache-2.0
"""What every spec has, the registry of specs, and the error of a missing one."""
import abc
import dataclasses
import datetime
import pathlib
from typing import Any, Dict, List, Optional, Tuple

from . import env
from ._library import jit_disabled


def get_tmpdir() -> pathlib.Path:
    """A folder for locks of programs; made when it is missing."""
    folder = env.current("FLASHINFER_JIT_DIR") / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class MissingJITCacheError(RuntimeError):
    """A module is not compiled, and FLASHINFER_DISABLE_JIT is 1. `spec` is the one that is missing."""

    def __init__(self, message: str, spec: "Optional[JitSpec]" = None):
        super().__init__(message)
        self.spec = spec


@dataclasses.dataclass
class JitSpecStatus:
    """What the registry knows of a spec."""

    name: str
    created_at: datetime.datetime
    is_compiled: bool
    library_path: Optional[pathlib.Path]
    sources: List[pathlib.Path]
    needs_device_linking: bool

    @property
    def status(self) -> str:
        return "Compiled" if self.is_compiled else "Not Compiled"


class JitSpecRegistry:
    """All specs that were described in this process, by name."""

    def __init__(self):
        self._specs = {}

    def register(self, spec: "JitSpec") -> None:
        created = self._specs[spec.name][1] if spec.name in self._specs else datetime.datetime.now()
        self._specs[spec.name] = (spec, created)

    def get_all_specs(self) -> "Dict[str, JitSpec]":
        return {name: spec for name, (spec, _) in self._specs.items()}

    def get_spec_status(self, name: str) -> Optional[JitSpecStatus]:
        """None for a name that was not described."""
        if name not in self._specs:
            return None
        spec, created = self._specs[name]
        compiled = spec.is_compiled
        paths = spec.get_library_paths() if compiled else ()  # none: ops without kernels
        return JitSpecStatus(name, created, compiled, next(iter(paths), None),
                             list(getattr(spec, "sources", [])), getattr(spec, "needs_device_linking", False))

    def get_all_statuses(self) -> List[JitSpecStatus]:
        return [self.get_spec_status(name) for name in list(self._specs)]

    def get_stats(self) -> Dict[str, int]:
        """{"total", "compiled", "not_compiled"}"""
        compiled = sum(status.is_compiled for status in self.get_all_statuses())
        return {"total": len(self._specs), "compiled": compiled, "not_compiled": len(self._specs) - compiled}


jit_spec_registry = JitSpecRegistry()


class JitSpec(abc.ABC):
    """A library that was described: `name`, whether it is compiled, `build()`, `load()`, `build_and_load()`."""

    name: str

    @property
    def lock_path(self) -> pathlib.Path:
        """A file for locks of the caller's; the library locks by itself."""
        return get_tmpdir() / f"{self.name}.lock"

    @property
    def build_dir(self) -> pathlib.Path:
        """Where `write_ninja` writes, of specs that have it; `build()` makes folders of its own in the cache."""
        return env.current("FLASHINFER_JIT_DIR") / self.name

    @property
    def ninja_path(self) -> pathlib.Path:
        return self.build_dir / "build.ninja"

    @property
    def is_ninja_generated(self) -> bool:
        return self.ninja_path.exists()

    @property
    def aot_path(self) -> pathlib.Path:
        """Where a precompiled library of that name is, or would be."""
        return env.get_aot_path(self.name)

    @property
    def aot_artifacts(self):
        return env.get_aot_artifacts(self.name)

    @property
    @abc.abstractmethod
    def is_compiled(self) -> bool:
        """Whether an up to date library is on disk."""

    @property
    def is_aot(self) -> bool:
        """Whether it is precompiled."""
        return False

    @abc.abstractmethod
    def get_library_path(self) -> pathlib.Path:
        """The compiled library, or where it will be."""

    def get_library_paths(self) -> Tuple[pathlib.Path, ...]:
        return (self.get_library_path(),)

    def try_load(self) -> Optional[Any]:
        """The module, or None when it is not compiled."""
        return self.load() if self.is_compiled else None

    @abc.abstractmethod
    def build(self) -> None:
        """Compiles it unless it is up to date."""

    @abc.abstractmethod
    def load(self) -> Any:
        """The module of a compiled library."""

    def build_and_load(self) -> Any:
        """MissingJITCacheError when it is not compiled and FLASHINFER_DISABLE_JIT is 1; RuntimeError with the compiler's output when it
        does not compile."""
        module = self.try_load()
        if module is not None:
            return module
        if jit_disabled():
            raise MissingJITCacheError("JIT compilation is disabled via FLASHINFER_DISABLE_JIT environment variable, but the required module "
                                       f"{self.name} is not found in the JIT cache ({env.current('FLASHINFER_JIT_DIR')}) nor precompiled "
                                       f"({env.current('FLASHINFER_AOT_DIR')}).", self)
        self.build()
        return self.load()
