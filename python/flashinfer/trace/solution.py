# SPDX-License-Identifier: Apache-2.0
"""Solutions: implementations of a definition, as flashinfer-bench stores them. `flashinfer.trace_apply` lets one replace calls."""
import dataclasses
import enum
import hashlib
import json
import pathlib
from typing import Optional, Sequence


class SupportedLanguages(str, enum.Enum):
    PYTHON = "python"
    TRITON = "triton"
    CUTEDSL = "cutedsl"
    TILELANG = "tilelang"
    CPP = "cpp"
    CUDA = "cuda"
    CUTLASS = "cutlass"
    CUTILE = "cutile"


class SupportedBindings(str, enum.Enum):
    TVM_FFI = "tvm-ffi"
    TORCH = "torch"


_PYTHON_FAMILY = (SupportedLanguages.PYTHON, SupportedLanguages.TRITON, SupportedLanguages.CUTEDSL, SupportedLanguages.TILELANG,
                  SupportedLanguages.CUTILE)


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """One file; `path` is relative to the solution's folder."""
    path: str
    content: str

    def __post_init__(self):
        parts = pathlib.PurePosixPath(self.path)
        if not self.path or parts.is_absolute() or ".." in parts.parts:
            raise ValueError(f"SourceFile: the path {self.path!r} must be relative and without '..'")


@dataclasses.dataclass(frozen=True)
class BuildSpec:
    """How a solution is built. `entry_point` is "file::symbol"; `dtypes` limits it to calls whose first tensor has one of these
    element types (an extension; definitions' names do not tell them)."""
    language: SupportedLanguages
    target_hardware: Sequence[str]
    entry_point: str
    dependencies: Sequence[str] = ()
    destination_passing_style: bool = False
    binding: Optional[SupportedBindings] = None
    dtypes: Sequence[str] = ()

    def __post_init__(self):
        object.__setattr__(self, "language", SupportedLanguages(self.language))
        if self.binding is not None:
            object.__setattr__(self, "binding", SupportedBindings(self.binding))
        for name in ("target_hardware", "dependencies", "dtypes"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.target_hardware:
            raise ValueError("BuildSpec: target_hardware is empty")
        file, separator, symbol = self.entry_point.partition("::")
        if not (file and separator and symbol) or "::" in symbol:
            raise ValueError(f"BuildSpec: entry_point is {self.entry_point!r}, but must be 'file::symbol'")

    @property
    def is_python_family(self):
        return self.language in _PYTHON_FAMILY

    def to_dict(self):
        made = {"language": self.language.value, "target_hardware": list(self.target_hardware), "entry_point": self.entry_point,
                "dependencies": list(self.dependencies), "destination_passing_style": self.destination_passing_style,
                "binding": self.binding.value if self.binding else None}
        if self.dtypes:
            made["dtypes"] = list(self.dtypes)
        return made

    @classmethod
    def from_dict(cls, d):
        names = {f.name for f in dataclasses.fields(cls)}
        return cls(**{k: v for k, v in d.items() if k in names})


@dataclasses.dataclass(frozen=True)
class Solution:
    """An implementation of the definition of that name."""
    name: str
    definition: str
    author: str
    spec: BuildSpec
    sources: Sequence[SourceFile]
    description: Optional[str] = None

    def __post_init__(self):
        object.__setattr__(self, "sources", tuple(self.sources))
        paths = [s.path for s in self.sources]
        if len(set(paths)) != len(paths):
            raise ValueError(f"Solution {self.name}: two sources have one path")
        if self.entry_file not in paths:
            raise ValueError(f"Solution {self.name}: the entry file {self.entry_file!r} is not among the sources {paths}")

    @property
    def entry_file(self):
        return self.spec.entry_point.partition("::")[0]

    @property
    def entry_symbol(self):
        return self.spec.entry_point.partition("::")[2]

    @property
    def entry_source(self):
        return next(s.content for s in self.sources if s.path == self.entry_file)

    @property
    def hash(self):
        """SHA-256 of the sources, sorted by path, and of what they are built with."""
        sources = sorted((s.path, s.content) for s in self.sources)
        text = json.dumps([self.definition, sources, self.spec.to_dict()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_dict(self):
        return {"name": self.name, "definition": self.definition, "author": self.author, "spec": self.spec.to_dict(),
                "sources": [dataclasses.asdict(s) for s in self.sources], "description": self.description}

    @classmethod
    def from_dict(cls, d):
        return cls(name=d["name"], definition=d["definition"], author=d["author"], spec=BuildSpec.from_dict(d["spec"]),
                   sources=[SourceFile(s["path"], s["content"]) for s in d["sources"]], description=d.get("description"))
