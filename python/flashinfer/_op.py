# SPDX-License-Identifier: Apache-2.0
"""One op of the registry as Python shows it: its parameters, their defaults, and the enums and structures that they take."""
import collections
import dataclasses
import enum
import linecache
import re
import sys

enums, structures = {}, {}  # made from the ops that name them, by name


def execute(source, filename, namespace, made):
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)  # for tracebacks and inspect.getsource
    exec(compile(source, filename, "exec"), namespace, made)


class Literal:
    """A default that has no value here (a dtype of a torch that is not imported, an enum of a module that is not there)."""

    def __init__(self, text):
        self._text = text

    def __repr__(self):
        return self._text

    def __str__(self):
        return self._text.removeprefix("torch.")


class Op:
    """One op as Python sees it."""

    def __init__(self, description):
        self.description = description
        self.name = description["name"]
        self.module = description["module"]
        self.fields = description["fields"]
        self.class_name, _, self.method = self.name.rpartition(".")
        self.public = [f for f in self.fields if f["role"] != "result" and "internal" not in f]
        self.names = [f["name"] for f in self.public]
        self.positional = next((i for i, f in enumerate(self.public) if f.keys() & {"keyword_only", "varargs"}), len(self.public))
        self.was_positional = any("was_positional" in f for f in self.public)
        self.rest = next((f["name"] for f in self.public if "varargs" in f), None)
        self.returned = [f for f in self.fields if f["role"] in ("out", "result") and "not_returned" not in f]
        in_place = [f for f in self.fields if f["role"] == "inout" and "conditional" in f]  # arguments that are returned too
        self.returned += in_place
        self.is_paired = "tuple_with_previous" in (self.returned or [{}])[0]  # (first, None) where the second output is absent
        # of torch, in compiled programs
        self.is_custom_op = not self.class_name and not self.is_paired and all(f["type"] != "self" for f in self.fields)
        self.trailing = [f for f in self.fields if "internal" in f and f["role"] == "attr"]
        self.is_formed = any(f.keys() & {"as_numbers", "unstacked", "tuple_with_previous"} for f in self.returned)
        self.many = self.is_formed or len(self.returned) > 1
        self.tuple = None  # of many results that would be hard to tell apart by place alone
        if len(self.returned) > 4 and not self.is_formed and not any("conditional" in f for f in self.returned):
            camel = "".join(part.capitalize() for part in self.name.split("_"))
            self.tuple = collections.namedtuple(camel + "Result", [f["name"] for f in self.returned], module=self.module)
        arrays = [f for f in self.public if f["role"] in ("in", "inout", "paged", "paged_inout", "scratch") and f["type"] in ("Tensor", "PagedKv")]
        self.first_array = next((f["name"] for f in sorted(arrays, key=lambda f: f["role"] == "scratch")), "None")


def default(field, namespace):
    """The default's expression in the `def`: itself where Python can read it, else a name for an object that prints like it."""
    text = field["default"]
    if "enumeration" in field:
        enumeration(field["enumeration"], namespace)
    if text == "None":
        return text
    if text.startswith("torch."):
        torch = sys.modules.get("torch")
        value = getattr(torch, text[6:], None) if torch is not None else None
    elif "enumeration" in field:
        value = enumeration(field["enumeration"], namespace)[text.rpartition(".")[2]]
    elif text[:1] == "<" or text[:1].isalpha() and text not in ("True", "False"):
        value = None
    else:
        return text
    name = "_default_" + re.sub(r"\W", "_", text)
    namespace[name] = Literal(text) if value is None else value
    return name


class _Enum(enum.IntEnum):
    """Prints as it is written, as defaults in signatures do."""

    def __repr__(self):
        return f"{type(self).__name__}.{self.name}"


class _Activation(_Enum):
    """What lies between the two products of an expert."""

    @property
    def is_gated(self):
        """Whether the first weight has two halves, the linear one and the gate."""
        return self.name in ("Swiglu", "Geglu", "SwigluBias", "SwigluStep", "GegluTanh", "Situ")


_ENUM_BASES = {"ActivationType": _Activation}


def enumeration(text, namespace):
    """The enum of "TopKTieBreak: NONE=0|SMALL=1", made once in the module of the op that names it first."""
    name, _, members = text.partition(":")
    if name not in enums:
        values = {k.strip(): int(v) for k, v in (m.split("=") for m in members.split("|"))}
        enums[name] = _ENUM_BASES.get(name, _Enum)(name, values, module=namespace["__name__"])
    namespace[name] = enums[name]
    return enums[name]


def structure(field, op):
    """The class of "MLAPlanMetadata: csr(qo_indptr, ...); dense(...)", made once in the module of the op that names it first: frozen,
    its members None unless given. The library sees a dict of them (_arrays.boxed)."""
    name, _, text = field["structure"].partition(":")
    if name in structures:
        return
    makers = [m.strip().rstrip(")").partition("(")[::2] for m in text.split(";")]
    members = dict.fromkeys(p.partition("=")[0].strip() for _, given in makers for p in given.split(",") if p.strip() != "*")
    made = {}
    for maker, given in makers:
        names = [p.partition("=")[0].strip() for p in given.split(",") if p.strip() != "*"]
        body = f"def {maker}(cls, {given}):\n    return cls({', '.join(f'{n}={n}' for n in names)})\n"
        execute(body, f"<flashinfer {name}.{maker}>", {}, made)
        made[maker].__qualname__, made[maker].__module__ = f"{name}.{maker}", op.module
    kinds = " or ".join(f"{maker}({given})" for maker, given in makers)
    attributes = {maker: classmethod(f) for maker, f in made.items()} | {
        "__doc__": f"The `{field['name']}` of {op.name}, by {kinds}.", "__module__": op.module}
    structures[name] = dataclasses.make_dataclass(name, [(m, object, None) for m in members], frozen=True, namespace=attributes)


def parameters(op, namespace, changed=()):
    """"input, weight, eps=1e-06, out=None"."""
    parts, star = [], False
    for f in op.public:
        if f.get("varargs"):
            parts.append("*" + f["name"])
            star = True
            continue
        if f.get("keyword_only") and not star:
            parts.append("*deprecated_positional_args" if f.get("was_positional") else "*")
            star = True
        if f.get("required"):
            parts.append(f["name"])
        else:
            parts.append(f"{f['name']}={dict(changed).get(f['name']) or default(f, namespace)}")
    return ", ".join(parts)


def aliases(text):
    """"begin_forward=plan; run_return_lse=run(return_lse=True); end_forward=" -> (alias, method, changed defaults)."""
    for item in filter(None, (s.strip() for s in text.split(";"))):
        alias, _, target = item.partition("=")
        method, _, changes = target.partition("(")
        changed = tuple(tuple(c.strip().split("=")) for c in changes.rstrip(")").split(",") if c)
        yield alias.strip(), method.strip(), changed
