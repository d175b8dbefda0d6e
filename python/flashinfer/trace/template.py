# SPDX-License-Identifier: Apache-2.0
"""Descriptions of a function's axes, inputs and outputs, from which the definition of a call is made (docs/trace.md)."""
import ast
import dataclasses
import inspect
import json
import textwrap
from typing import Callable, Dict, List, Optional, Union

from .. import _native, _trace
from .._checks import default_check, default_tolerances, standard_check

__all__ = ["Const", "Scalar", "Tensor", "TraceTemplate", "Var", "default_check", "default_tolerances", "standard_check", "validate"]

_PREAMBLE = "from __future__ import annotations\nimport math\nimport torch\nimport torch.nn.functional as F\n\n\n"


@dataclasses.dataclass
class Var:
    """An axis of the request: its extent differs from call to call."""
    description: str = ""


@dataclasses.dataclass
class Const:
    """An axis of the model. Its extent is in the definition's name, after `abbrev` or the axis's own name; abbrev "" leaves it out.
    `value`: the extent itself; else it is that of the tensors passed."""
    description: str = ""
    abbrev: Optional[str] = None
    value: Optional[int] = None

    def __post_init__(self):
        if self.value is not None and type(self.value) is not int:
            raise TypeError(f"Const: value is {self.value!r}, but must be an integer or None")


@dataclasses.dataclass
class Tensor:
    """A tensor of these axes. `param`: the argument, where it is called otherwise; `tuple_idx`: element of that argument, a tuple;
    `dtype`: when no argument tells it; outputs: `dtype_from`, an argument of the same element type, `dtype_from_scalar`, one that names
    it."""
    dim_names: List[str]
    _: dataclasses.KW_ONLY
    param: Optional[str] = None
    tuple_idx: Optional[int] = None
    dtype: Optional[str] = None
    dtype_from: Optional[str] = None
    dtype_from_scalar: Optional[str] = None
    optional: bool = False
    description: str = ""

    def form(self):
        return {"dims": list(self.dim_names), "param": self.param, "tuple_idx": self.tuple_idx, "dtype": self.dtype,
                "dtype_from": self.dtype_from, "dtype_from_scalar": self.dtype_from_scalar, "optional": bool(self.optional),
                "description": self.description}


@dataclasses.dataclass
class Scalar:
    """A plain value."""
    dtype: str = "float32"
    _: dataclasses.KW_ONLY
    param: Optional[str] = None
    optional: bool = False
    description: str = ""

    def form(self):
        return {"dims": None, "param": self.param, "dtype": self.dtype, "optional": bool(self.optional), "description": self.description}


def _source(function, preamble):
    """The function's source without its decorators, after what it needs: functions of the same module that it names."""
    if function is None:
        return ""
    if isinstance(function, str):
        return function
    module = inspect.getmodule(function)
    seen, texts = set(), []

    def add(f):
        if f.__name__ in seen:
            return
        seen.add(f.__name__)
        try:
            text = textwrap.dedent(inspect.getsource(f))
        except (OSError, TypeError):
            return
        tree = ast.parse(text)
        for name in sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}):
            other = getattr(module, name, None)
            if inspect.isfunction(other) and other.__module__ == f.__module__:
                add(other)
        texts.append(text.rstrip() + "\n")

    add(function)
    return preamble + "\n\n".join(texts) if texts else ""


class TraceTemplate:
    """The definitions of a function. `reference`, `check` and `init` are functions whose source goes into the definition; `check`
    defaults to `standard_check`. `name_prefix`: of the definition's name, in place of `op_type`."""

    def __init__(self, op_type: str, axes: Dict[str, Union[Var, Const]], inputs: Dict[str, Union[Tensor, Scalar]],
                 outputs: Dict[str, Union[Tensor, Scalar]], *, name_prefix: Optional[str] = None, reference: Optional[Callable] = None,
                 check: Optional[Callable] = None, init: Optional[Callable] = None, constraints: Optional[List[str]] = None,
                 tags: Optional[List[str]] = None, description: str = ""):
        self.op_type, self.axes, self.inputs, self.outputs = op_type, axes, inputs, outputs
        self.name_prefix, self.reference, self.check, self.init = name_prefix, reference, check or standard_check, init
        self.constraints, self.tags, self.description = list(constraints or ()), list(tags or ()), description
        for group, kinds in (("axes", (Var, Const)), ("inputs", (Tensor, Scalar)), ("outputs", (Tensor, Scalar))):
            for key, item in getattr(self, group).items():
                if not isinstance(item, kinds):
                    raise TypeError(f"TraceTemplate {op_type}: {group}[{key!r}] is {item!r}, but must be "
                                    f"{' or '.join(k.__name__ for k in kinds)}")

    def _reference(self, strict):
        """Its source; a strict definition has a function `run`, which calls `reference`."""
        text, name = _source(self.reference, _PREAMBLE), getattr(self.reference, "__name__", "reference")
        return f"{text}\n\nreference = {name}\n" if strict and text and name != "reference" else text

    def _form(self, fi_api, strict=False):
        axes = {}
        for name, axis in self.axes.items():
            if isinstance(axis, Const):
                axes[name] = {"type": "const", "abbrev": axis.abbrev, "value": axis.value, "description": axis.description}
            else:
                axes[name] = {"type": "var", "description": axis.description}
        form = {"api": fi_api, "op_type": self.op_type, "name_prefix": self.name_prefix, "description": self.description, "tags": self.tags,
                "constraints": self.constraints, "axes": axes, "inputs": {k: v.form() for k, v in self.inputs.items()},
                "outputs": {k: v.form() for k, v in self.outputs.items()}, "reference": self._reference(strict),
                "init": _source(self.init, _PREAMBLE)}
        if self.check not in (default_check, standard_check):
            form["check"] = _source(self.check, "")
        return json.dumps(form)

    def definition_name(self, axis_values: Dict[str, int]):
        """The name of the definition of a call whose constant axes have these extents; an axis without one is left out."""
        names = {name: name if axis.abbrev is None else axis.abbrev for name, axis in self.axes.items() if isinstance(axis, Const)}
        return "_".join([self.name_prefix or self.op_type, *(f"{short}{axis_values[name]}" for name, short in names.items() if short and name in axis_values)])

    def _define(self, fi_api, kwargs, strict, name):
        text = _native.function("trace.define_template")(self._form(fi_api, strict), _trace.facts(kwargs), strict, name or "")
        return json.loads(str(text))

    def build_fi_trace_fn(self, fi_api):
        """`fi_trace(save_dir=None, name=None, **arguments)` of the function of that qualified name."""

        def fi_trace(save_dir=None, name=None, *, strict=None, **kwargs):
            strict = _trace.strict_by_default() if strict is None else bool(strict)
            return _trace.written(self._define(fi_api, kwargs, strict, name), save_dir)

        return fi_trace


def validate(definition):
    """What is wrong with a definition (a dictionary) by flashinfer-bench's data model: a list of sentences; empty: nothing. Looks at
    its Python too, as the command `flashinfer trace validate` does not."""
    problems = json.loads(str(_native.function("trace.problems")(json.dumps(definition))))
    if isinstance(definition.get("reference"), str):
        try:
            tree = ast.parse(definition["reference"])
            if not any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body):
                problems.append("reference has no function run at top level")
        except SyntaxError as error:
            problems.append(f"reference is not Python: {error}")
    for constraint in definition.get("constraints", ()):
        try:
            ast.parse(constraint, mode="eval")
        except SyntaxError as error:
            problems.append(f"the constraint {constraint!r} is not an expression: {error}")
    return list(dict.fromkeys(problems))
