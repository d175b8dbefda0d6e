# SPDX-License-Identifier: Apache-2.0
"""Specs of this library's own kernels: the ones that the ops need for some dtypes and head dims, compiled before the first call.

A kernel is a template that the library instantiates by a call's dtypes and shapes (docs/architecture.md), so a spec is a list of
calls, written as the rows of the case tables are; the library selects the kernels of each without running it."""
import fnmatch
import pathlib
import shlex
import types
import warnings
from typing import Any, List, Optional, Tuple

from .. import _make
from ._library import call, jit_disabled
from .utils import write_if_different
from .spec import JitSpec, MissingJITCacheError, jit_spec_registry


class JitSpecKernels(JitSpec):
    """Kernels of `ops` (those of their case rows that are marked for precompiling) and of single calls, `items`, on the CPU and,
    where there is one, on cuda:0. A module of it has the ops' functions and classes as attributes, by their public names."""

    needs_device_linking = is_class = False
    extra_ldflags = extra_cuda_cflags_by_source = post_load_adapter = embedded_cubin_factory = None

    def __init__(self, name: str, ops=(), items=()):
        self.name = name
        self.ops, self.items = list(ops), [list(item) for item in items]
        jit_spec_registry.register(self)

    def __repr__(self):
        return f"JitSpecKernels(name={self.name!r}, ops={sorted({*self.ops, *(op for op, _ in self.items)})})"

    def _kernels(self, function):
        devices = ["cpu"] + (["cuda:0"] if call("architectures", "") else [])
        with warnings.catch_warnings():  # calls are written in the library's own form, of which FlashInfer deprecates some
            warnings.simplefilter("ignore", DeprecationWarning)
            return [k for device in devices for k in call(function, {"ops": self.ops, "items": self.items, "device": device})]

    @property
    def kernels(self) -> List[dict]:
        """Each kernel's text, target, kind ("jit", "aot", "" when it is not compiled), library, source, header, flags."""
        return self._kernels("kernels")

    @property
    def sources(self) -> List[pathlib.Path]:
        """The headers that hold the kernels."""
        return [pathlib.Path(header) for header in dict.fromkeys(k["header"] for k in self.kernels)]

    @property
    def extra_cflags(self) -> List[str]:
        """The flags of the compiled ones; FLASHINFER_EXTRA_CFLAGS adds to them."""
        return list(dict.fromkeys(f for k in self.kernels if not k["target"].startswith("sm_") for f in k["flags"].split()))

    @property
    def extra_cuda_cflags(self) -> List[str]:
        return list(dict.fromkeys(f for k in self.kernels if k["target"].startswith("sm_") for f in k["flags"].split()))

    @property
    def is_compiled(self) -> bool:
        return all(k["kind"] for k in self.kernels)

    @property
    def is_aot(self) -> bool:
        return all(k["kind"] == "aot" for k in self.kernels)

    @property
    def jit_library_path(self) -> pathlib.Path:
        """The first compiled kernel's; while there is none, a file of `build_dir` that does not exist."""
        return next((pathlib.Path(k["library"]) for k in self.kernels if k["kind"] == "jit"), self.build_dir / f"{self.name}.so")

    def get_object_paths(self) -> List[pathlib.Path]:
        """None: a kernel is compiled and linked by one command."""
        return []

    def get_library_path(self) -> pathlib.Path:
        """The first kernel's; RuntimeError when it is not compiled, since the path holds a hash that is not known before."""
        paths = self.get_library_paths()
        if not paths:
            raise RuntimeError(f"{self.name} is not compiled: build() it first")
        return paths[0]

    def get_library_paths(self) -> Tuple[pathlib.Path, ...]:
        return tuple(pathlib.Path(k["library"]) for k in self.kernels if k["kind"])

    def get_compile_commands(self) -> List[dict]:
        """Of the compiled ones; those of NVRTC have none."""
        import json

        commands = []
        for kernel in self.kernels:
            if kernel["kind"]:
                meta = json.loads(pathlib.Path(kernel["library"]).with_name("meta.json").read_text())
                if meta.get("arguments"):
                    commands.append({"directory": str(pathlib.Path(kernel["library"]).parent), "arguments": meta["arguments"], "file": kernel["source"]})
        return commands

    def write_ninja(self) -> None:
        """Writes build.ninja with the commands that compiled the kernels, for use by hand with other flags: `ninja -C <build_dir>` compiles
        them again, beside it. What is not compiled yet is built first: its path holds a hash that is not known before."""
        if not self.is_compiled:
            self.build()
        write_if_different(self.ninja_path, ninja_text(self.name, self.get_compile_commands()))

    def build(self, verbose: Optional[bool] = None, need_lock: bool = False) -> None:
        """Loads or compiles all of them, MAX_JOBS at once. RuntimeError with the compiler's output for one that does not compile,
        MissingJITCacheError when there is no compiler for one that is missing."""
        del need_lock
        built = self._kernels("build_kernels")
        if verbose:
            for k in built:
                print(f"{k['text']} [{k['target']}]: {k['outcome']}")
        failed = [k["message"] for k in built if k["outcome"] == "failed"]
        if failed:
            raise RuntimeError("\n".join(failed))
        unavailable = [k["message"] for k in built if k["outcome"] == "unavailable"]
        if unavailable:
            kind = MissingJITCacheError if jit_disabled() else RuntimeError
            raise kind(f"{self.name}: " + unavailable[0], *([self] if jit_disabled() else []))

    def load(self) -> Any:
        """The ops, as a module."""
        names = dict.fromkeys(op.partition(".")[0] for op in [*self.ops, *(op for op, _ in self.items)])
        module = types.ModuleType(f"flashinfer.jit.{self.name}", f"The ops of the JIT module {self.name}.")
        module.__dict__.update((name, _make.package.exports[name]) for name in names)
        return module

    def get_function(self, name):
        return getattr(self.load(), name)


def ninja_text(name, commands):
    """build.ninja of compile commands: the result of each comes to a folder beside build.ninja, by the name of the kernel's."""
    def escaped(text):
        return text.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")

    lines = [f"# kernels of {name}: `ninja` in this folder compiles them again", "ninja_required_version = 1.3", "",
             "rule kernel", "  command = $arguments", "  description = $out", ""]
    for command in commands:
        folder, source = pathlib.Path(command["directory"]), command["file"]
        arguments = [source if a == pathlib.Path(source).name else a for a in command["arguments"]]
        at = arguments.index("-o") + 1
        target = arguments[at] = f"{folder.name}/{arguments[at]}"
        lines += [f"build {escaped(target)}: kernel {escaped(source)}", "  arguments = " + shlex.join(arguments).replace("$", "$$")]
    return "\n".join(lines) + "\n"


def ops_of(*patterns):
    """The ops whose names match a pattern ("merge_state*"), or whose module does ("@norm": flashinfer.norm)."""
    def wanted(op):
        return any(op.module == "flashinfer." + p[1:] if p[0] == "@" else fnmatch.fnmatchcase(op.name, p) for p in patterns)

    return [name for name, op in _make.package.ops.items() if wanted(op)]


def family(name, *patterns):
    """The spec of all ops that match. NotImplementedError when this library has none of them."""
    ops = ops_of(*patterns)
    if not ops:
        raise NotImplementedError(f"flashinfer.jit: {name}: this library has no kernels of that kind (docs/python.md lists what is missing)")
    return JitSpecKernels(name, ops)


def missing(name, instead):
    """For a module of FlashInfer's that has no counterpart here."""
    raise NotImplementedError(f"flashinfer.jit: {name} does not exist in this library: {instead}")
