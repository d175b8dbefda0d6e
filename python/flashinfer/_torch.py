# SPDX-License-Identifier: Apache-2.0
"""torch.compile: every function of the package as custom ops of torch, made when a program that is compiled first calls it.

A custom op returns new tensors and never its inputs, so each choice of outputs that the caller passes is an op of its own:
`flashinfer::rmsnorm(Tensor input, ...) -> Tensor` and `flashinfer::rmsnorm__out(Tensor input, ..., Tensor(a!) out, ...) -> ()`.
Fake implementations come from the schema: symbolic extents from its dims, everything else from the library itself, which checks
shapes and dtypes as it does in a call.
"""
import itertools
import json
import re
import threading

import torch

from . import _native
from ._arrays import boxed
from ._four_over_six import NVFP44Over6Config, nvfp4_4over6_code
from ._op import Literal

_SCHEMA_TYPES = {"bool": "bool", "int": "SymInt", "float": "float", "str": "str", "dtype": "ScalarType", "device": "Device",
                 "Generator": "Generator", "ints": "SymInt[]"}
_RECIPES = ("nvfp4_4over6", "nvfp4_4over6_config")
_ABSENT = (0,) * 8  # the shape that stands for a result left out, where torch wants a fixed number of them; no op has a result of this rank
_made = {}
_lock = threading.Lock()


def is_tensor(value):
    return isinstance(value, torch.Tensor)


def detached(value):
    """Gradients do not flow through the library's ops."""
    return value.detach() if isinstance(value, torch.Tensor) and value.requires_grad else value


def torch_dtype(value):
    """Of a name, or of a default that this package made before torch was imported."""
    return getattr(torch, str(value).removeprefix("torch.")) if isinstance(value, (str, Literal)) else value


def _is_passed(field):
    """Whether a custom op takes it: of what is no tensor, number or text only required values, which are plain data, as JSON text, and
    recipes, as their numbers."""
    return field["type"] != "object" or field.get("varargs") or field.get("required") or field["name"] in _RECIPES


def encoded(value):
    return json.dumps(value, default=str)


# Runs while a program is traced, with constants; what it returns is a constant of the graph.
encoded._dynamo_marked_constant = True


def recipe_number(value):
    """The number of a recipe 4 over 6; -1 for an argument left out. Other values are left to the library's error."""
    if value is None:
        return 0
    if isinstance(value, Literal):
        return -1
    return nvfp4_4over6_code(value) if isinstance(value, NVFP44Over6Config) else value


def order(values):
    return "".join(["-" if v is None else "t" if is_tensor(v) else "n" for v in values])


def _writes(field):
    return field["role"] in ("inout", "paged_inout")  # workspaces mean nothing before or after a call


def _flag(op, field):
    """The argument that requests a conditional output ("return_lse" for "lse"), or None."""
    name = "return_" + field["name"]
    return name if "conditional" in field and name in op.names else None


class Variant:
    """One custom op: `op` with the outputs `given` passed by the caller, and the conditional ones in `wanted` requested."""

    def __init__(self, package, op, given, wanted):
        self.function, self.op, self.given, self.wanted = package.flat(op.name), op, given, wanted
        self.fields = [f for f in op.public if _is_passed(f) and (f["role"] != "out" or f["name"] in given or f.get("required"))]
        self.in_place = [f for f in op.returned if f["role"] == "inout"]  # returned by the function, not by torch's op
        self.returned = [f for f in op.returned if f["role"] != "inout" and (not _flag(op, f) or f["name"] in wanted)]
        self.new = [f for f in self.returned if f["name"] not in given]
        self.name = "__".join([op.name, *given, *("with_" + name for name in wanted)])
        self.argument_names = [n for f in self.fields for n in self._names(f)]
        mutated = [n for f in self.fields if _writes(f) or f["role"] == "out" for n in self._names(f)]
        # How many tensors come back may depend on the arguments. A list of them is what torch takes from ops that write to no argument;
        # from others all come, those left out as tensors of shape _ABSENT.
        self.varies = any("conditional" in f and not _flag(op, f) for f in self.new)
        self.listed = self.varies and not mutated
        self.torch_op = torch.library.custom_op("flashinfer::" + self.name, self._run, mutates_args=mutated, schema=self._schema(set(mutated)))
        self.torch_op.register_fake(self._fake)

    @staticmethod
    def _names(field):
        name = field["name"]
        if field.get("varargs"):
            return [name + "__tensors", name + "__numbers", name + "__order"]
        return [name + "__number", name + "__tensor"] if field["type"] == "ScalarOrTensor" else [name]

    def _schema(self, mutated):
        parts, letters = [], itertools.count()
        for f in self.fields:
            optional = "?" if f.get("optional") and f["name"] not in self.given else ""
            kind = f["type"]
            alias = f"(a{next(letters)}!)" if f["name"] in mutated else ""
            if f.get("varargs"):
                parts += [f"Tensor[] {f['name']}__tensors", f"Scalar[] {f['name']}__numbers", f"str {f['name']}__order"]
            elif f["name"] in _RECIPES:
                parts.append(f"SymInt {f['name']}")
            elif kind == "object":
                parts.append(f"str {f['name']}")
            elif kind == "ScalarOrTensor":
                parts += [f"Scalar? {f['name']}__number", f"Tensor? {f['name']}__tensor"]
            elif kind == "Tensor":
                parts.append(f"Tensor{alias}{optional} {f['name']}")
            elif kind in ("PagedKv", "Tensors"):
                parts.append(f"Tensor{alias}[]{optional} {f['name']}")
            else:
                parts.append(f"{_SCHEMA_TYPES[kind]}{optional} {f['name']}")
        if self.listed:
            returns = "Tensor[]"
        else:
            returns = "Tensor" if len(self.new) == 1 else "(" + ", ".join(["Tensor"] * len(self.new)) + ")"
        return f"({', '.join(parts)}) -> {returns}"

    def _bound(self, args):
        """The op's arguments as keywords of the Python function."""
        values = dict(zip(self.argument_names, args))
        bound = {}
        for f in self.fields:
            name, kind = f["name"], f["type"]
            if f.get("varargs"):
                kinds = {"t": iter(values[name + "__tensors"]), "n": iter(values[name + "__numbers"]), "-": itertools.repeat(None)}
                bound[name] = tuple(next(kinds[letter]) for letter in values[name + "__order"])
            elif kind == "object" and name not in _RECIPES:
                bound[name] = json.loads(values[name])
            elif kind == "ScalarOrTensor":
                tensor = values[name + "__tensor"]
                bound[name] = values[name + "__number"] if tensor is None else tensor
            elif kind == "PagedKv" and values[name] is not None:
                bound[name] = values[name][0] if len(values[name]) == 1 else tuple(values[name])
            else:
                bound[name] = values[name]
        return bound

    def _results(self, new):
        if self.listed:
            return list(new)
        if self.varies:
            new = [torch.empty(_ABSENT) if t is None else t for t in merged(["conditional" not in f for f in self.new], new, None)]
        return None if not new else new[0] if len(new) == 1 else tuple(new)

    def _run(self, *args):
        bound = self._bound(args)
        rest = next((f["name"] for f in self.fields if f.get("varargs")), None)
        positional = [bound.pop(name) for name in self.op.names[:self.op.positional]] + [*bound.pop(rest)] if rest else []
        result = self.function(*positional, **bound)
        if not self.new:
            return None
        results = result if isinstance(result, tuple) else (result,)
        results = [r if isinstance(r, torch.Tensor) else torch.from_dlpack(r) for r in results]  # where no tensor went in
        passed = [bound[name] for name in (*self.given, *(f["name"] for f in self.in_place))]
        return self._results([r for r in results if not any(r is x for x in passed)])

    def _fake(self, *args):
        if not self.new:
            return None
        bound = self._bound(args)
        device = next((t.device for t in _tensors(bound.values())), torch.device("cpu"))
        new = {f["name"] for f in self.new}
        outputs = _symbolic(self.op, self.new, bound) or inferred(self.op, bound)
        return self._results([empty(device, *output) for name, *output in outputs if name in new])


def _tensors(values):
    for v in values:
        if isinstance(v, torch.Tensor):
            yield v
        elif isinstance(v, (list, tuple)):
            yield from _tensors(v)


def empty(device, dtype, shape, strides):
    if strides:
        return torch.empty_strided(shape, strides, dtype=getattr(torch, dtype), device=device)
    return torch.empty(shape, dtype=getattr(torch, dtype), device=device)


def _symbolic(op, outputs, bound):
    """[(name, dtype, shape, no strides)] from the schema's dims, when some extent is a symbol; None when they do not say everything."""
    if any("conditional" in f and not _flag(op, f) for f in outputs):
        return None
    if not any(isinstance(n, torch.SymInt) for t in _tensors(bound.values()) for n in t.shape):
        return None
    known, lead = {name: v for name, v in bound.items() if isinstance(v, (int, torch.SymInt))}, None
    for f in op.public:
        value = bound.get(f["name"])
        if not isinstance(value, torch.Tensor) or "dims" not in f:
            continue
        parts = f["dims"].split()
        if parts[0] == "...":
            parts = parts[1:]
            lead = lead if lead is not None else tuple(value.shape[:value.dim() - len(parts)])
        for extent, part in zip(value.shape[value.dim() - len(parts):], parts):
            mul, symbol, add = _part(part)
            if symbol and symbol not in known:
                known[symbol] = (extent - add) // mul
    result = []
    for f in outputs:
        dtype = _output_dtype(op, f, bound)
        if "dims" not in f or dtype is None:
            return None
        shape = []
        for part in f["dims"].split():
            if part == "...":
                shape += lead
                continue
            mul, symbol, add = _part(part)
            if symbol and symbol not in known:
                return None
            shape.append(mul * known[symbol] + add if symbol else add)
        result.append((f["name"], dtype, shape, []))
    return result


def _part(part):
    """"2*d+1" -> (2, "d", 1); "4" -> (1, "", 4)."""
    mul, symbol, add = re.fullmatch(r"(?:(\d+)\*)?([A-Za-z_]\w*)?([+-]?\d+)?", part).groups()
    return int(mul or 1), symbol or "", int(add or 0)


def _output_dtype(op, field, bound):
    named = bound.get(field.get("dtype_from"))
    if named is not None:
        return str(named).removeprefix("torch.")
    if "same_as" in field:
        return str(bound[field["same_as"]].dtype).removeprefix("torch.")
    return field["dtypes"][0] if len(field.get("dtypes", ())) == 1 else None


def inferred(op, bound):
    """[(name, dtype, shape, strides unless row-major)] of all outputs as the library says. It is asked twice, with tensors of zeros and of 0, 1, 2, ...: where the answers
    differ, the shape depends on values."""
    infer = _native.function("python.infer." + op.name)

    def ask(content):
        make = _native.function("value.type")

        def typed(v):
            if isinstance(v, torch.Tensor):
                return make(str(v.dtype).removeprefix("torch."), content, v.dim(), *map(int, v.shape), *map(int, v.stride()))
            if isinstance(v, (list, tuple)):
                return tuple(map(typed, v))
            if isinstance(v, dict):
                return boxed(v)
            if isinstance(v, torch.dtype):
                return str(v).removeprefix("torch.")
            if isinstance(v, (torch.SymInt, torch.SymFloat)):
                return int(v) if isinstance(v, torch.SymInt) else float(v)
            return None if isinstance(v, torch.Generator) else str(v) if isinstance(v, torch.device) else v

        args = [typed(bound.get(f["name"])) for f in op.public]  # what the custom op leaves out is None
        types = [(str(o[0]), str(o[1]), int(o[2]), [int(n) for n in list(o)[3:]]) for o in infer(*args)]
        return [(name, dtype, numbers[:rank], numbers[rank:]) for name, dtype, rank, numbers in types]

    outputs = ask(0)
    ctx = None
    for _, _, shape, _ in outputs:
        for i, extent in enumerate(shape):
            if extent < 0:  # the content of a tensor tells it
                ctx = ctx or torch.library.get_ctx()
                shape[i] = ctx.new_dynamic_size()
    if any(not t.dtype.is_floating_point for t in _tensors(bound.values())):
        try:
            other = ask(1)
        except Exception:  # values that the op does not take say nothing about its shapes
            return outputs
        for (_, _, shape, _), (_, _, shape2, _) in zip(outputs, other):
            for i, (a, b) in enumerate(zip(shape, shape2)):
                if isinstance(a, int) and a != b:
                    ctx = ctx or torch.library.get_ctx()
                    shape[i] = ctx.new_dynamic_size()
    return outputs


def _packed(field):
    """The expression(s) for a custom op's arguments from those of the public function."""
    name, kind = field["name"], field["type"]
    if field.get("varargs"):
        return [f"[_detached(a) for a in {name} if _is_tensor(a)]", f"[a for a in {name} if a is not None and not _is_tensor(a)]",
                f"_order({name})"]
    if name in _RECIPES:
        return [f"_recipe_number({name})"]
    if kind == "object":
        return [f"_encoded({name})"]
    if kind == "ScalarOrTensor":
        return [f"None if _is_tensor({name}) else {name}", f"_detached({name}) if _is_tensor({name}) else None"]
    if kind in ("PagedKv", "Tensors"):
        return [f"None if {name} is None else _listed({name})"]
    if kind == "Tensor":
        return [f"_detached({name})"]
    return [f"_torch_dtype({name})" if kind == "dtype" else name]


def listed(value):
    return [detached(value)] if is_tensor(value) else [detached(t) for t in value]


def merged(slots, new, *absent):
    """Outputs in order, with `absent` for those left out. A slot is a tensor that the caller passed, True for a new one, False for one
    that may have been left out."""
    new, missing = list(new), sum(s is True or s is False for s in slots) - len(new)
    results = []
    for s in slots:
        if s is False and missing:
            missing -= 1
            results.extend(absent)
        else:
            results.append(new.pop(0) if s is True or s is False else s)
    return results


def joined(slots, new):
    """What the function returns."""
    results = merged(slots, [t for t in new if t.dim() != len(_ABSENT)])
    return results[0] if len(results) == 1 else tuple(results)


def _result(variant):
    """The expression for what the function returns, from `r`, which the custom op returned."""
    returned = variant.returned
    if not returned and not variant.in_place:
        return "None"
    if variant.varies:
        slots = [f["name"] if f["name"] in variant.given else str("conditional" not in f) for f in returned]
        new = "r" if variant.listed or len(variant.new) > 1 else "(r,)"
        return f"_joined(({', '.join(slots)},), {new})"
    new = iter(["r"] if len(variant.new) == 1 else [f"r[{i}]" for i in range(len(variant.new))])
    items = []
    for f in returned:
        value = f["name"] if f["name"] in variant.given else next(new)
        if "as_numbers" in f:
            items.append([f"*{value}.unbind(0)"])  # tensors of no dimension: a program that is traced has no numbers yet
        elif "tuple_with_previous" in f and items:
            items[-1].append(value)
        else:
            items.append([value + ".unbind(0)" if "unstacked" in f else value])
    values = [f"({', '.join(i)})" if len(i) > 1 else i[0] for i in items] + [f["name"] for f in variant.in_place if not f.get("optional")]
    choices = [f["name"] for f in variant.in_place if f.get("optional")]  # one stands for the other; the last one that is passed is used
    if choices:
        values.append("(" + "".join(f"{name} if {name} is not None else " for name in choices[:0:-1]) + choices[0] + ")")
    return values[0] if len(values) == 1 and values[0][0] != "*" else f"({', '.join(values)},)"


def _make(package, name):
    """The function that a compiled program runs in place of the public one, which is itself traced: it picks the custom op. It lives
    in the op's module, where the tracer's guards look its names up."""
    op = package.ops[name]
    outputs = [f["name"] for f in op.returned if f["role"] == "out"]
    namespace = package.namespaces[op.module]
    namespace.update({"_" + f.__name__: f for f in (is_tensor, detached, torch_dtype, listed, joined, encoded, order, recipe_number)})
    parameters = ", ".join(f["name"] for f in op.public)
    source = f"def _custom_op_{name}({parameters}):\n"
    for f in op.public:
        if not _is_passed(f):
            source += (f"    if {f['name']} is not None: raise NotImplementedError(\"{name}: {f['name']} is not available in compiled "
                       "programs\")\n")
    variants, made = {}, {}
    flags = [f for f in op.returned if _flag(op, f)]
    number = 0
    for chosen in itertools.product((True, False), repeat=len(outputs)):
        given = tuple(itertools.compress(outputs, chosen))
        for bits in itertools.product((True, False), repeat=len(flags)):
            wanted = tuple(f["name"] for f, b in zip(flags, bits) if b)
            variant = variants[given, wanted] = Variant(package, op, given, wanted)
            namespace[f"_custom_op{number}_{name}"] = variant.torch_op
            arguments = ", ".join(e for f in variant.fields for e in _packed(f))
            conditions = [f"{n} is not None" for n in given] + [_flag(op, f) for f in flags if f["name"] in wanted]
            source += (f"    if {' and '.join(conditions) or 'True'}:\n        r = _custom_op{number}_{name}({arguments})\n"
                       f"        return {_result(variant)}\n")
            exec(f"def pack({parameters}): return ({arguments},)", namespace, made)
            variant.pack = made["pack"]
            number += 1
    exec(compile(source, f"<flashinfer {name} (compiled)>", "exec"), namespace)
    namespace["_custom_op_" + name].variants = variants
    return namespace["_custom_op_" + name]


def custom_op(package, name):
    """The traceable function for the op `name`."""
    with _lock:
        if name not in _made:
            package.connect()
            _made[name] = _make(package, name)
    return _made[name]
