# SPDX-License-Identifier: Apache-2.0
"""Trace definitions (docs/trace.md): `fi_trace` of every function and method. The library builds them; what it needs of a call's
arguments are shapes, element types and plain values, which go over as JSON, so that tensors without memory (meta, fake) will do."""
import enum
import json
import math
import os
import sys

from . import _native


def enabled():
    """Whether calls write their definitions: FLASHINFER_TRACE_DUMP is neither unset, empty nor "0"."""
    return os.environ.get("FLASHINFER_TRACE_DUMP", "") not in ("", "0")


def strict_by_default():
    return os.environ.get("FLASHINFER_TRACE_DUMP_STRICT") == "1"


def _dtype_name(dtype):
    name = str(dtype)
    if name.startswith("torch."):
        return name[6:]
    return getattr(dtype, "name", None) or name


def fact(value):
    """What the library needs of one argument."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, enum.Enum):
        return fact(value.value)
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return {"items": [fact(v) for v in value]}
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return {"shape": [int(n) for n in value.shape], "dtype": _dtype_name(value.dtype)}
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.dtype) or numpy is not None and isinstance(value, numpy.dtype):
        return {"dtype": _dtype_name(value)}
    return None


def facts(arguments):
    return json.dumps({name: fact(value) for name, value in arguments.items()})


def written(definition, save_dir):
    """Writes a definition where the caller or the environment says, and returns it."""
    if not definition:
        return definition
    folder = os.fspath(save_dir) if save_dir is not None else os.environ.get("FLASHINFER_TRACE_DUMP_DIR")
    if folder:
        _native.function("trace.write")(json.dumps(definition), folder, save_dir is None)
    return definition


def of_op(op):
    """The `fi_trace` of an op's function or method."""

    def fi_trace(save_dir=None, name=None, *, strict=None, **kwargs):
        """The trace definition of a call with these keyword arguments, as a dictionary; nothing runs. `{}` when such a call has none.
        `save_dir`: the folder it is written to, as <name>.json. `strict`: what flashinfer-bench's data model accepts (docs/trace.md)."""
        for what, value in (("save_dir", save_dir), ("name", name)):
            if hasattr(value, "shape"):
                raise TypeError(f"{op.name}.fi_trace: {what} is a tensor, but the call's arguments are given by name")
        receiver = kwargs.pop("self", None)
        strict = strict_by_default() if strict is None else bool(strict)
        text = _native.function("trace.define")(op.name, facts(kwargs), strict, name or "", getattr(receiver, "_handle", None))
        return written(json.loads(str(text)), save_dir)

    fi_trace.__qualname__ = f"{op.name}.fi_trace"
    return fi_trace


def of_calls(f):
    """What the library's functions that `f()` calls in this thread are, in order: {"function", "definition" (strict), "workload" with random tensors,
    "why" there is none}. One at a time; calls dump no definitions meanwhile."""
    _native.function("trace.describe_begin")()
    try:
        f()
    finally:
        calls = json.loads(str(_native.function("trace.describe_end")()))
    return calls


def templates(name):
    """The templates of an op as dictionaries, in order; None: it has none."""
    found = _native.function("trace.templates")(name)
    return None if found is None else json.loads(str(found))
