# SPDX-License-Identifier: Apache-2.0
"""Writes .pyi files for the modules of `flashinfer` that are made at import, for editors and type checkers.

Run by the build of the Python package with FLASHINFER_BUILD_DIR set. Names, order and defaults are those of the
functions themselves (inspect.signature), types and docstrings come from the registry's descriptions."""
import argparse
import dataclasses
import enum
import importlib
import inspect
import pathlib
import pkgutil
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import flashinfer
from flashinfer import _make, _modules, _op
from flashinfer._source import returns_list

HEADER = '''# Made by tools/make_stubs.py from the library's registry.
from enum import IntEnum
from typing import Any, Literal, NamedTuple, NoReturn, Optional, Protocol, TypeVar, Union

import torch

class Array(Protocol):
    """Anything that speaks DLPack: a torch.Tensor, a numpy.ndarray, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_T = TypeVar("_T", bound=Array)
'''
TYPES = {"Tensor": "Array", "PagedKv": "Union[Array, tuple[Array, Array]]", "ScalarOrTensor": "Union[float, Array]",
         "Tensors": "list[Array]", "ints": "list[int]", "bool": "bool", "int": "int", "float": "float", "str": "str",
         "dtype": "Union[torch.dtype, str]", "device": "Union[torch.device, str]", "Generator": "torch.Generator"}


def type_of(op, field):
    """The annotation of one argument. What comes back is of the kind of the first array: numpy in, numpy out."""
    kind = TYPES.get(field["type"], "Any")
    if "structure" in field:
        kind = f"Union[{field['structure'].partition(':')[0]}, dict[str, Any]]"
    if "enumeration" in field:
        kind = f"Union[{field['enumeration'].partition(':')[0]}, int]"
    if field["name"] == op.first_array and op.returned:
        kind = kind.replace("Array", "_T")
    if "choices" in field:
        kind = "Union[Literal[" + ", ".join(repr(c) for c in field["choices"]) + "], str]"  # completed, not required
    return f"Optional[{kind}]" if field.get("optional") or field.get("default") == "None" and kind != "Any" else kind


def returned(op):
    if not op.returned:
        return "None"
    if op.is_formed:
        return "tuple[Any, ...]"  # numbers, tuples of tensors: the docstring says which
    if op.tuple:
        return op.tuple.__name__
    one = "_T" if op.first_array != "None" else "Array"
    if returns_list(op):
        return f"list[{one}]"
    always = [f for f in op.returned if "conditional" not in f]
    if not always:
        return f"Union[{one}, tuple[{one}, ...]]"  # the requested form
    plain = one if len(always) == 1 else "tuple[" + ", ".join([one] * len(always)) + "]"
    return plain if len(always) == len(op.returned) else f"Union[{plain}, Any]"  # more of them on request


def indented(text, indent):
    return "\n".join(indent + line if line else "" for line in text.rstrip().splitlines())


def function_stub(name, function, op, indent=""):
    """`def` of a function; op is None for what is written by hand."""
    signature = inspect.signature(function)
    annotations = {f["name"]: type_of(op, f) for f in op.fields if f["type"] != "self"} if op else {}
    parts, star = [], False
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        if p.name in annotations:
            text += ": " + annotations[p.name]
        if p.default is not p.empty:
            default = repr(p.default)  # "<...>" is no expression: a stub writes `...` for any default
            text += (" = " if p.name in annotations else "=") + ("..." if default.startswith("<") else default)
        parts.append(text)
    arrow = " -> " + (returned(op) if op and op.method != "__init__" else "None") if op else ""
    doc = (function.__doc__ or "").replace("\\", "\\\\").strip()
    head = f"{indent}def {name}({', '.join(parts)}){arrow}:"
    return head + (f'\n{indented(chr(34) * 3 + doc, indent + "    ")}\n{indent}    {chr(34) * 3}' if doc else "") + f"\n{indent}    ...\n"


def enum_stub(name, cls):
    return "\n".join([f"class {name}(IntEnum):", *(f"    {m.name} = {m.value}" for m in cls), ""])


def tuple_stub(name, cls):
    return "\n".join([f"class {name}(NamedTuple):", *(f"    {field}: Array" for field in cls._fields), ""])


def class_stub(name, cls):
    ops = {op.method: op for op in _make.package.ops.values() if op.class_name == name}
    targets = {alias: method for op in ops.values() for alias, method, _ in _op.aliases(op.description.get("aliases", ""))}
    bases = ", ".join(b.__name__ for b in cls.__bases__ if b is not object)
    lines = [f"class {name}{f'({bases})' if bases else ''}:"]
    if cls.__doc__:
        lines.append(f'    """{cls.__doc__}"""')
    lines += [f"    {f.name}: Any" for f in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []
    for member, value in vars(cls).items():
        if isinstance(value, classmethod):
            lines += ["    @classmethod", function_stub(member, value.__func__, None, "    ").rstrip()]
        if isinstance(value, types.FunctionType) and (member == "__init__" or not member.startswith("_")):
            lines.append(function_stub(member, value, ops.get(member) or ops.get(targets.get(member)), "    "))
    return "\n".join(lines)


def listed_stub(module):
    """The names that the table of modules gives: imports of what is elsewhere in the package, and what is not available."""
    imports, missing = [], []
    for name in sorted(_modules.listed(module.__name__)):
        value = _modules.value_of(module.__name__, name)
        if not hasattr(value, "__module__"):
            missing.append(f"{name}: Any\n")
        elif not hasattr(value, "not_available"):
            other = getattr(value, "__name__", name)
            imports.append(f"from {value.__module__} import {other} as {name}")
        elif isinstance(value, type):
            missing.append(f'class {name}{"(RuntimeError)" if issubclass(value, RuntimeError) else ""}:\n    """{value.__doc__}"""\n'
                           "    def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n")
        else:
            missing.append(f'def {name}(*args: Any, **kwargs: Any) -> NoReturn:\n    """{value.__doc__}"""\n    ...\n')
    return ["\n".join(imports), *missing]


def module_stub(module):
    """The text for one module, or None when all of it is written by hand and speaks for itself."""
    if module.__name__ not in {op.module for op in _make.package.ops.values()} and not getattr(module, "__file__", None):
        return "\n".join([HEADER, *listed_stub(module)])
    functions = {op.name: op for op in _make.package.ops.values() if op.module == module.__name__ and not op.class_name}
    classes = {op.class_name for op in _make.package.ops.values() if op.module == module.__name__ and op.class_name}
    if not functions and not classes:
        return None
    parts = [HEADER]
    own = {n: v for n, v in vars(module).items() if not n.startswith("_") and getattr(v, "__module__", None) == module.__name__}
    for name, value in sorted(own.items(), key=lambda item: (not isinstance(item[1], enum.EnumMeta), item[0])):
        if isinstance(value, enum.EnumMeta):
            parts.append(enum_stub(name, value))
        elif isinstance(value, types.FunctionType):
            parts.append(function_stub(name, value, functions.get(name)))
        elif hasattr(value, "_fields"):
            parts.append(tuple_stub(name, value))
        elif isinstance(value, type):
            parts.append(class_stub(name, value))
    return "\n".join([*parts, *listed_stub(module)])


def public_modules():
    files = {f"flashinfer.{m.name}" for m in pkgutil.iter_modules(flashinfer.__path__)}
    table = {f"flashinfer.{short}" for short in _modules.MODULES if short}
    names = files | table | {n for n in sys.modules if n.startswith("flashinfer.")}
    for name in table:
        importlib.import_module(name)
    return sorted(n for n in names if n in table or not any(part.startswith("_") for part in n.split(".")))


def package_stub(modules):
    lines = ["# Made by tools/make_stubs.py from the library's registry."]
    for name in modules:
        lines.append(f"from . import {name.split('.')[1]} as {name.split('.')[1]}") if name.count(".") == 1 else None
    for name in sorted(n for n in dir(flashinfer) if not n.startswith("_")):
        owner = getattr(getattr(flashinfer, name), "__module__", None)
        if owner in modules:
            lines.append(f"from .{owner.removeprefix('flashinfer.')} import {name} as {name}")
    return "\n".join([*lines, "", "__version__: str", module_stub(flashinfer) or ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="where the stubs go; made if it does not exist")
    out = parser.parse_args().folder
    out.mkdir(parents=True, exist_ok=True)
    modules = public_modules()
    for name in modules:
        text = module_stub(sys.modules[name]) if name in sys.modules else None
        if text is not None:
            path = out.joinpath(*name.split(".")[1:])
            path = path / "__init__.pyi" if hasattr(sys.modules[name], "__path__") else path.with_name(path.name + ".pyi")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    (out / "__init__.pyi").write_text(package_stub(modules))
    (out / "py.typed").write_text("")


if __name__ == "__main__":
    main()
