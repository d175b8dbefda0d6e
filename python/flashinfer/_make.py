# SPDX-License-Identifier: Apache-2.0
"""Functions and classes made from the registry's descriptions.

For each op one `def` with the public signature is compiled, in the module that the op names; all it does is to pass its arguments
on by position. For `rmsnorm` that is

    def rmsnorm(input, weight, eps=1e-06, out=None, enable_pdl=None):
        if _is_compiling():
            _make_custom_op('rmsnorm')
            return _custom_op_rmsnorm(input, weight, eps, out, enable_pdl)
        try: r = _native_rmsnorm(input, weight, eps, out, enable_pdl)
        except _Refused as error: r = _refused('rmsnorm', error, _native_rmsnorm, (input, weight, eps, out, enable_pdl,))
        if r is None: return out
        return _like(r, input) if r.__class__ is _Tensor else r

While somebody observes (log, recorder), the code of every function is another one, which keeps apart what the caller passed by
position, by name, and not at all. Functions keep their identity: `from flashinfer import rmsnorm` sees both.
"""
import dataclasses
import enum
import linecache
import os
import re
import sys
import types

from . import _arrays, _docs, _native

_PACKAGE = __package__


class _Literal:
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
        self.public = [f for f in self.fields if f["role"] != "result" and "hidden" not in f]
        self.names = [f["name"] for f in self.public]
        self.positional = next((i for i, f in enumerate(self.public) if f.keys() & {"keyword_only", "rest"}), len(self.public))
        self.was_positional = any("was_positional" in f for f in self.public)
        self.rest = next((f["name"] for f in self.public if "rest" in f), None)
        self.returned = [f for f in self.fields if f["role"] in ("out", "result") and "not_returned" not in f]
        # Of torch, in compiled programs. It cannot write to an argument and also return a number of tensors that depends on others.
        listed = any("conditional" in f and "return_" + f["name"] not in self.names for f in self.returned)
        self.is_custom_op = (not self.class_name and all(f["role"] != "self" for f in self.fields) and
                             not (listed and any(f["role"] == "inout" for f in self.fields)))
        self.trailing = [f for f in self.fields if "hidden" in f and f["role"] == "attr"]
        self.is_formed = any(f.keys() & {"as_numbers", "unstacked", "joined"} for f in self.returned)
        self.many = self.is_formed or len(self.returned) > 1
        self.first_array = next((f["name"] for f in self.public if f["role"] in ("in", "inout", "paged", "paged_inout")
                                 and f["type"] in ("Tensor", "PagedKv")), "None")


def _default(field, namespace):
    """The default's expression in the `def`: itself where Python can read it, else a name for an object that prints like it."""
    text = field["default"]
    if "enumeration" in field:
        _enumeration(field["enumeration"], namespace)
    if text == "None":
        return text
    if text.startswith("torch."):
        torch = sys.modules.get("torch")
        value = getattr(torch, text[6:], None) if torch is not None else None
    elif "enumeration" in field:
        value = _enumeration(field["enumeration"], namespace)[text.rpartition(".")[2]]
    elif text[:1] == "<" or text[:1].isalpha() and text not in ("True", "False"):
        value = None
    else:
        return text
    name = "_default_" + re.sub(r"\W", "_", text)
    namespace[name] = _Literal(text) if value is None else value
    return name


class _Enum(enum.IntEnum):
    """Prints as it is written, as defaults in signatures do."""

    def __repr__(self):
        return f"{type(self).__name__}.{self.name}"


def _enumeration(text, namespace):
    """The enum of "TopKTieBreak: NONE=0|SMALL=1", made once in the module of the op that names it first."""
    name, _, members = text.partition(":")
    if name not in enums:
        values = {k.strip(): int(v) for k, v in (m.split("=") for m in members.split("|"))}
        enums[name] = _Enum(name, values, module=namespace["__name__"])
    namespace[name] = enums[name]
    return enums[name]


enums = {}

_SECOND_NAMES = {"nvfp4_block_scale_interleave": "block_scale_interleave",  # of functions
                 "group_gemm_mxfp8_mxfp4_nt_groupwise": "group_gemm_mxfp4_nt_groupwise"}


def _structure(field, op):
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
        _execute(body, f"<flashinfer {name}.{maker}>", {}, made)
        made[maker].__qualname__, made[maker].__module__ = f"{name}.{maker}", op.module
    kinds = " or ".join(f"{maker}({given})" for maker, given in makers)
    attributes = {maker: classmethod(f) for maker, f in made.items()} | {
        "__doc__": f"The `{field['name']}` of {op.name}, by {kinds}.", "__module__": op.module}
    structures[name] = dataclasses.make_dataclass(name, [(m, object, None) for m in members], frozen=True, namespace=attributes)


structures = {}


def parameters(op, namespace, changed=()):
    """"input, weight, eps=1e-06, out=None"."""
    parts, star = [], False
    for f in op.public:
        if f.get("rest"):
            parts.append("*" + f["name"])
            star = True
            continue
        if f.get("keyword_only") and not star:
            parts.append("*deprecated_positional_args" if f.get("was_positional") else "*")
            star = True
        if f.get("required"):
            parts.append(f["name"])
        else:
            parts.append(f"{f['name']}={dict(changed).get(f['name']) or _default(f, namespace)}")
    return ", ".join(parts)


def _guard(op):
    """The lines that refuse views with torch's negative bit: their memory holds the negated values, and DLPack does not tell."""
    tests = []
    for f in op.public:
        name, kind = f["name"], f["type"]
        absent = f"{name} is not None and " if f.get("optional") else ""
        if f["role"] == "scratch" or kind not in ("Tensor", "PagedKv", "ScalarOrTensor", "Tensors"):
            continue
        if kind == "PagedKv":
            tests.append(f"{absent}({name}.is_neg() if {name}.__class__ is not tuple else {name}[0].is_neg() or {name}[1].is_neg())")
        elif kind == "ScalarOrTensor":
            tests.append(f"{name}.__class__ not in _plain and {name}.is_neg()")
        else:
            tests.append(f"{absent}any([t.is_neg() for t in {name}])" if kind == "Tensors" else f"{absent}{name}.is_neg()")
    if not tests:
        return ""
    refuse = f"_refuse_negative('{op.name}', ({', '.join(n for n in op.names if n != 'self')},))"
    return f"    try:\n        if {' or '.join(tests)}: {refuse}\n    except AttributeError: {refuse}\n"


def _conversion(op, field):
    """The line that turns an argument into something that TVM-FFI takes, or nothing: tensors, numbers, text go as they are."""
    name, kind = field["name"], field["type"]
    if kind in ("dtype", "Generator"):
        return f"    if {name} is not None: {name} = _{kind.lower()}({name}, '{op.name}: {name}')\n"
    if kind in ("device", "object"):
        return f"    if {name} is not None: {name} = _{kind}({name})\n"
    if kind == "PagedKv":
        return f"    if {name}.__class__ is list: {name} = _list({name})\n"
    return ""


def _hidden(op, changed):
    """The expressions for hidden members: generators that a call without a seed draws from, what an alias sets."""
    expressions = []
    for f in op.trailing:
        if f["type"] == "Generator":
            explicit = [g["name"] for g in op.public if g["type"] == "Generator" or g["name"] == "seed"]
            absent = " and ".join(f"{name} is None" for name in explicit) or "True"
            expressions.append(f"_default_generator({op.first_array}) if {absent} else None")
        else:
            expressions.append(dict(changed).get(f["name"], "None"))
    while expressions and expressions[-1] == "None":
        expressions.pop()
    return expressions


def _given(op, value):
    """A value for each result, from those for outputs that the caller may pass; empty where there are none."""
    return [value(f["name"]) if f["role"] == "out" else None for f in op.returned] if any(f["role"] == "out" for f in op.returned) else []


def _tail(op):
    """The lines that turn what the library returned into what the function returns."""
    if not op.returned:
        return "    return None\n"
    given = [str(x) for x in _given(op, str)]
    if op.many:
        return f"    return _many(r, ({', '.join(given)}), {op.first_array}, _Tensor)\n"
    given = given or ["None"]
    lines = f"    if r is None: return {given[0]}\n" if given[0] != "None" else ""
    return lines + f"    return _like(r, {op.first_array}) if r.__class__ is _Tensor else r\n"


def _source(op, name, namespace, changed=(), prefix="_native_"):
    """The text of the plain function or method `name`, and of the observed one."""
    native = prefix + op.name.replace(".", "_")
    compiled = ""
    if op.is_custom_op:
        names = ", ".join(f["name"] for f in op.public)
        compiled = f"    if _is_compiling():\n        _make_custom_op('{op.name}')\n        return _custom_op_{op.name}({names})\n"
    make = keep = ""
    if op.method == "__init__":  # the object looks at buffers it was given as long as it lives
        make = "    {0}._handle = _new('" + op.class_name + "')\n"
        keep = "    self._kept = (" + "".join(f["name"] + ", " for f in op.public if f["role"] == "scratch") + ")\n"
    hidden = _hidden(op, changed)
    implied = "".join(f"    _hidden{i} = {e}\n" for i, e in enumerate(hidden))
    arguments = ", ".join(["self._handle" if f["type"] == "self" else f["name"] for f in op.public]
                          + [f"_hidden{i}" for i in range(len(hidden))])
    plain = (f"def {name}({parameters(op, namespace, changed)}):\n{compiled}{_guard(op)}{make.format('self')}{keep}"
             + "".join(_conversion(op, f) for f in op.public) + implied
             + f"    try: r = {native}({arguments})\n"
             + f"    except _Refused as error: r = _refused('{op.name}', error, {native}, ({arguments},))\n{_tail(op)}")
    changes = "".join(f"    kwargs.setdefault('{k}', {v})\n" for k, v in changed)
    observed = (f"def {name}(*args, **kwargs):\n"
                + (f"    if _is_compiling():\n        _make_custom_op('{op.name}')\n"
                   f"        return _with_defaults(_custom_op_{op.name}, _defaults_{op.name}, {op.rest!r}, args, kwargs)\n" if compiled else "")
                + f"{make.format('args[0]')}{make and '    args[0]._kept = (args[1:], kwargs)' + chr(10)}{changes}    return _observed('{op.name}', args, kwargs)\n")
    return plain, observed


def _is_compiling():
    """torch.compiler.is_compiling, for programs that import torch late or never."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def _execute(source, filename, namespace, made):
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)  # for tracebacks and inspect.getsource
    exec(compile(source, filename, "exec"), namespace, made)


class Package:
    """All that was made, and the switch between the two ways of calling."""

    def __init__(self):
        self.ops = {d["name"]: Op(d) for d in _native.describe()}
        self.namespaces = {}
        self.connected = False
        self.observing = False
        self.switched = []  # (function, plain code, observed code)
        self.files = {name[:-3] for name in os.listdir(os.path.dirname(__file__)) if name.endswith(".py")}
        self.exports = {}
        classes = {}
        for op in self.ops.values():
            if op.class_name:
                classes.setdefault(op.class_name, []).append(op)
            else:
                self.exports[op.name] = self._function(op)
        for name, ops in classes.items():
            self.exports[name] = self._class(name, ops)
        for name, target in _SECOND_NAMES.items():
            self.exports[name] = self.namespace(self.ops[target].module)[name] = self.exports[target]
        self.exports.update(enums)
        if _native.observed():  # before the first call, which would otherwise not know how its arguments were passed
            self.connect()

    # ---- modules ----
    def namespace(self, module_name):
        """The dictionary of a module of the package, which is made if there is no file for it."""
        if module_name in self.namespaces:
            return self.namespaces[module_name]
        short = module_name.removeprefix(_PACKAGE + ".")
        if module_name == _PACKAGE:  # an op that upstream has at top level alone
            module = sys.modules[_PACKAGE]
        elif short in self.files:
            module = __import__(module_name, fromlist=["_"])
        else:
            module = types.ModuleType(module_name, f"Ops of {module_name}, made from the library's registry.")
            module.__package__ = _PACKAGE
            sys.modules[module_name] = module
            parent, _, leaf = module_name.rpartition(".")
            if parent != _PACKAGE:
                self.namespace(parent)
            setattr(sys.modules[parent], leaf, module)
        namespace = self.namespaces[module_name] = module.__dict__
        namespace.update(_is_compiling=_is_compiling, _make_custom_op=make_custom_op, _with_defaults=with_defaults, _like=_arrays.like,
                         _many=_arrays.many, _dtype=_arrays.dtype, _device=_arrays.device, _generator=_arrays.generator,
                         _object=_arrays.boxed, _list=_arrays.plain_list, _default_generator=_arrays.default_generator, _plain=_arrays.PLAIN,
                         _refuse_negative=self.refuse_negative,
                         _observed=self.call_observed, _refused=self.refused, _Refused=_arrays.REFUSED, _Tensor=None, _new=self._connecting("new", namespace, "_new"))
        return namespace

    def _connecting(self, function, namespace, name):
        def first_call(*args):
            self.connect()
            return namespace[name](*args)

        return first_call

    # ---- functions ----
    def _compile(self, op, name, qualname, changed=()):
        namespace = self.namespace(op.module)
        native = "_native_" + op.name.replace(".", "_")
        namespace.setdefault(native, self._connecting(op.name, namespace, native))
        for f in op.public:
            if "structure" in f:
                _structure(f, op)
                namespace.update(structures)
        plain, observed = _source(op, name, namespace, changed)
        made = {}
        _execute(plain, f"<flashinfer {qualname}>", namespace, made)
        function = made[name]
        if op.was_positional:
            function = self._with_older_form(op, name, qualname, namespace, made)
        _execute(observed, f"<flashinfer {qualname} (observed)>", namespace, made)
        if not op.is_custom_op:
            function._torchdynamo_disable = True  # objects with state are called as they are, between graphs
        if op.is_custom_op:
            values = function.__defaults__ or ()
            optional = op.names[:op.positional][-len(values) or len(op.names):]
            namespace["_defaults_" + name] = {**dict.fromkeys(op.names), **dict(zip(optional, values)), **(function.__kwdefaults__ or {})}
        function.__qualname__ = qualname
        function.__module__ = op.module
        function.__doc__ = _docs.docstring(op)
        self.switched.append((function, function.__code__, made[name].__code__))
        return function

    def _with_older_form(self, op, name, qualname, namespace, made):
        """A function that also takes by position what it takes by name now: such a call is bound by the library, which warns."""
        import inspect

        by_name = namespace[f"_{op.class_name}_{name}"] = made[name]
        first = ", ".join(op.names[:op.positional])
        _execute(f"def {name}({first}, *deprecated_positional_args, **kwargs):\n"
                 f"    if deprecated_positional_args: return _observed('{op.name}', ({first}, *deprecated_positional_args), kwargs)\n"
                 f"    return _{op.class_name}_{name}({first}, **kwargs)\n", f"<flashinfer {qualname} (older form)>", namespace, made)
        made[name].__signature__ = inspect.signature(by_name)
        return made[name]

    def flat(self, name):
        """The function `name`, but with results as the tensors they are."""
        op = self.ops[name]
        if not op.is_formed:
            return self.exports[name]
        namespace = self.namespaces[op.module]
        namespace["_flat_" + name] = _native.function("python.flat." + name)
        made = {}
        _execute(_source(op, name, namespace, prefix="_flat_")[0], f"<flashinfer {name} (flat)>", namespace, made)
        return made[name]

    def _function(self, op):
        function = self._compile(op, op.name, op.name)
        function.is_backend_supported = _backend_question(op, function)
        function.is_compute_capability_supported = _capability_question(op)
        function.backend_reasons = _backend_reasons(op)
        self.namespaces[op.module][op.name] = function
        return function

    def _class(self, name, ops):
        module = next(op.module for op in ops)
        namespace = self.namespace(module)
        members = {"__module__": module, "__doc__": next((op.description["doc"] for op in ops if op.method == "__init__"), None)}
        methods = {op.method: op for op in ops}
        for method, op in methods.items():
            members[method] = self._compile(op, method, f"{name}.{method}")
        for alias, method, changed in _aliases(next(op.description.get("aliases", "") for op in ops)):
            if alias in members:
                continue
            if not method:
                members[alias] = _nothing(name, alias, module)
            elif method in methods:
                members[alias] = self._compile(methods[method], alias, f"{name}.{alias}", changed) if changed else members[method]
        members["__deepcopy__"] = members["__reduce_ex__"] = _no_copy(name)
        namespace[name] = type(name, (), members)
        return namespace[name]

    # ---- the library ----
    def connect(self):
        """Puts the library's functions in place of those that only wait for the first call."""
        if self.connected:
            return
        library = _native.connect()
        for op in self.ops.values():
            self.namespaces[op.module]["_native_" + op.name.replace(".", "_")] = library.function("python." + op.name)
        for namespace in self.namespaces.values():
            namespace["_new"] = library.function("python.new")
            namespace["_Tensor"] = library.tensor_type
            if sys.modules.get("torch") is not None:
                namespace["_is_compiling"] = sys.modules["torch"].compiler.is_compiling
        self.tensor_type = library.tensor_type
        self.connected = True
        if sys.modules.get("torch") is not None:
            library.function("python.share_openmp")()
        library.function("python.listen")(self.observe, _native.warn)
        self.observe(library.function("python.arguments_wanted")())

    def observe(self, on):
        """Changes all functions to the observed way of calling, or back."""
        if bool(on) == self.observing:
            return
        self.observing = bool(on)
        for function, plain, observed in self.switched:
            if on and not hasattr(function, "__signature__"):
                import inspect

                function.__signature__ = inspect.signature(function)
            function.__code__ = observed if on else plain

    def refused(self, name, error, native, args):
        """A call that raised: again with what can be put right, else the error that names the argument."""
        return _arrays.refused(self.ops[name], error, native, args)

    def refuse_negative(self, name, args):
        """ValueError when a tensor among the arguments is a negative view."""
        op = self.ops[name]
        _arrays.refuse_negative(name, zip([n for n in op.names if n != "self"], args))

    def call_observed(self, name, args, kwargs):
        """A call while somebody observes: positional and keyword arguments apart, with what only the framework knows of them."""
        self.connect()
        op, box = self.ops[name], _arrays.boxed
        _arrays.refuse_negative(name, [*zip(op.names, args), *kwargs.items()])
        try:
            values = [args[0]._handle, *map(box, args[1:])] if op.class_name else [*map(box, args)]
            split = [x for key, value in kwargs.items() for x in (key, box(value))]
            r = _native.function("python.observed." + name)(len(values), *values, *split)
        except _arrays.REFUSED as error:
            _arrays.explain(op, error, [*zip(op.names, args), *kwargs.items()])
            raise
        if not op.returned:
            return None
        if r is not None and r.__class__ is not self.tensor_type and not op.many:
            return r
        bound = dict(zip(op.names, args), **kwargs)
        array, given = bound.get(op.first_array), _given(op, bound.get)
        if op.many:
            return _arrays.many(r, given, array, self.tensor_type)
        return given[0] if r is None else _arrays.like(r, array)


def make_custom_op(name):
    """Puts the function that compiled programs run into the op's module."""
    from . import _torch

    _torch.custom_op(package, name)


# Runs while a program is traced; what it returns is a constant of the graph (torch.compiler.assume_constant_result sets this).
make_custom_op._dynamo_marked_constant = True


def with_defaults(function, defaults, rest, args, kwargs):
    """A call whose arguments are still split as the caller passed them, for a function without defaults. `rest`: the `*args`."""
    names = list(defaults)
    bound = dict(zip(names, args))
    if rest is not None:
        count = names.index(rest)
        bound = dict(zip(names[:count], args))
        bound[rest] = tuple(args[count:])
    bound.update(kwargs)
    return function(*[bound.get(name, default) for name, default in defaults.items()])


def _aliases(text):
    """"begin_forward=plan; run_return_lse=run(return_lse=True); end_forward=" -> (alias, method, changed defaults)."""
    for item in filter(None, (s.strip() for s in text.split(";"))):
        alias, _, target = item.partition("=")
        method, _, changes = target.partition("(")
        changed = tuple(tuple(c.strip().split("=")) for c in changes.rstrip(")").split(",") if c)
        yield alias.strip(), method.strip(), changed


def _nothing(class_name, name, module):
    def end_forward(self):
        """Does nothing; kept for older programs."""

    end_forward.__name__, end_forward.__qualname__, end_forward.__module__ = name, f"{class_name}.{name}", module
    return end_forward


def _no_copy(class_name):
    def refuse(self, *_):
        raise TypeError(f"a {class_name} cannot be copied or pickled: its plan belongs to one object; make another one and plan it")

    return refuse


def _refusal(op, backend, cc):
    return str(_native.function("python.backend_refusal")(op.name, backend, int(cc or 0)))


def _backends(op):
    named = next((f["backends"] for f in op.fields if "backends" in f), {})
    return [*named, *(c for c in op.description["candidates"] if c not in named)]


def _backend_question(op, function):
    def is_backend_supported(backend, cc=None):
        """True when this library has the implementation `backend` for a GPU of compute capability `cc` (90 for 9.0), or for any device."""
        return not _refusal(op, backend, cc)

    return is_backend_supported


def _capability_question(op):
    def is_compute_capability_supported(cc):
        """True when some implementation of this library runs on a GPU of compute capability `cc` (90 for 9.0)."""
        return any(not _refusal(op, backend, cc) for backend in _backends(op))

    return is_compute_capability_supported


def _backend_reasons(op):
    def backend_reasons(cc=None):
        """{name: why this library does not have that implementation}; the empty text: it has it."""
        return {backend: _refusal(op, backend, cc) for backend in _backends(op)}

    return backend_reasons


package = Package()
