# SPDX-License-Identifier: Apache-2.0
"""Functions and classes made from the registry's descriptions.

For each op one `def` with the public signature is compiled, in the module that the op names; all it does is to pass its arguments
on by position. For `rmsnorm` that is

    def rmsnorm(input, weight, eps=1e-06, out=None, enable_pdl=None):
        if _is_compiling(): return _custom_op('rmsnorm')(input, weight, eps, out, enable_pdl)
        r = _rmsnorm(input, weight, eps, out, enable_pdl)
        if r is None: return out
        return _like(r, input) if r.__class__ is _Tensor else r

While somebody observes (log, recorder), the code of every function is another one, which keeps apart what the caller passed by
position, by name, and not at all. Functions keep their identity: `from flashinfer import rmsnorm` sees both.
"""
import os
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
        self.hidden_generators = [f for f in self.fields if "hidden" in f and f["type"] == "Generator"]
        self.returned = [f for f in self.fields if f["role"] in ("out", "result") and "not_returned" not in f]
        self.first_array = next((f["name"] for f in self.public if f["role"] in ("in", "inout", "paged", "paged_inout")
                                 and f["type"] in ("Tensor", "PagedKv")), "None")


def _default(field, namespace):
    """The default's expression in the `def`: itself where Python can read it, else a name for an object that prints like it."""
    text = field["default"]
    if text.startswith("torch."):
        torch = sys.modules.get("torch")
        value = getattr(torch, text[6:], None) if torch is not None else None
    elif text[:1].isalpha() and text not in ("None", "True", "False"):
        value = None
    else:
        return text
    name = "_default_" + text.replace(".", "_")
    namespace[name] = _Literal(text) if value is None else value
    return name


def parameters(op, namespace, changed=()):
    """"input, weight, eps=1e-06, out=None"."""
    parts, star = [], False
    for f in op.public:
        if f.get("rest"):
            parts.append("*" + f["name"])
            star = True
            continue
        if f.get("keyword_only") and not star:
            parts.append("*")
            star = True
        if f.get("required"):
            parts.append(f["name"])
        else:
            parts.append(f"{f['name']}={dict(changed).get(f['name']) or _default(f, namespace)}")
    return ", ".join(parts)


def _argument(field):
    name, kind = field["name"], field["type"]
    if kind == "self":
        return "self._handle"
    if kind in ("dtype", "device", "Generator", "object"):
        return f"{name} if {name} is None else _{kind.lower()}({name})"
    if kind == "PagedKv":
        return f"{name} if {name}.__class__ is not list else _list({name})"
    return name


def _arguments(op):
    args = [_argument(f) for f in op.public]
    for f in op.hidden_generators:
        explicit = [g["name"] for g in op.public if g["type"] == "Generator" or g["name"] == "seed"]
        absent = " and ".join(f"{name} is None" for name in explicit) or "True"
        args.append(f"_default_generator({op.first_array}) if {absent} else None")
    return ", ".join(args)


def _tail(op, indent):
    """The lines that turn what the library returned into what the function returns."""
    pad = " " * indent
    given = [f["name"] if f["role"] == "out" else "None" for f in op.returned]
    if not given:
        return f"{pad}return None\n"
    if len(given) > 1:
        return f"{pad}return _many(r, ({', '.join(given)}), {op.first_array}, _Tensor)\n"
    lines = f"{pad}if r is None: return {given[0]}\n" if given[0] != "None" else ""
    return lines + f"{pad}return _like(r, {op.first_array}) if r.__class__ is _Tensor else r\n"


def _source(op, name, namespace, changed=()):
    """The text of the plain function or method `name`, and of the observed one."""
    native = "_native_" + op.name.replace(".", "_")
    compiled = ""
    if not op.class_name:
        names = ", ".join(f["name"] for f in op.public)
        compiled = f"    if _is_compiling(): return _custom_op('{op.name}')({names})\n"
    before = f"    self._handle = _new('{op.class_name}')\n" if op.method == "__init__" else ""
    plain = (f"def {name}({parameters(op, namespace, changed)}):\n{compiled}{before}"
             f"    r = {native}({_arguments(op)})\n{_tail(op, 4)}")
    if op.class_name:
        before = f"    args[0]._handle = _new('{op.class_name}')\n" if op.method == "__init__" else ""
    changes = "".join(f"    kwargs.setdefault('{k}', {v})\n" for k, v in changed)
    observed = (f"def {name}(*args, **kwargs):\n"
                + ("    if _is_compiling(): return _custom_op_of('" + op.name + "', args, kwargs)\n" if compiled else "")
                + f"{before}{changes}    return _observed('{op.name}', args, kwargs)\n")
    return plain, observed


def _is_compiling():
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


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
        if _native.observed():  # before the first call, which would otherwise not know how its arguments were passed
            self.connect()

    # ---- modules ----
    def namespace(self, module_name):
        """The dictionary of a module of the package, which is made if there is no file for it."""
        if module_name in self.namespaces:
            return self.namespaces[module_name]
        short = module_name.removeprefix(_PACKAGE + ".")
        if short in self.files:
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
        namespace.update(_is_compiling=_is_compiling, _custom_op=custom_op, _custom_op_of=custom_op_of, _like=_arrays.like,
                         _many=_arrays.many, _dtype=_arrays.dtype, _device=_arrays.device, _generator=_arrays.generator,
                         _object=_arrays.boxed, _list=_arrays.plain_list, _default_generator=_arrays.default_generator,
                         _observed=self.call_observed, _Tensor=None, _new=self._connecting("new", namespace, "_new"))
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
        plain, observed = _source(op, name, namespace, changed)
        made = {}
        exec(compile(plain, f"<flashinfer {op.name}>", "exec"), namespace, made)
        function = made[name]
        exec(compile(observed, f"<flashinfer {op.name} (observed)>", "exec"), namespace, made)
        function.__qualname__ = qualname
        function.__module__ = op.module
        function.__doc__ = _docs.docstring(op)
        self.switched.append((function, function.__code__, made[name].__code__))
        return function

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
        self.connected = True
        library.function("python.listen")(self.observe, _native.warn)
        self.observe(library.function("python.observed")())

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

    def call_observed(self, name, args, kwargs):
        self.connect()
        op = self.ops[name]
        box = _arrays.boxed
        if op.class_name:
            values = [args[0]._handle, *map(box, args[1:])]
        else:
            values = [box(x) for x in args]
        split = [x for item in kwargs.items() for x in (item[0], box(item[1]))]
        r = _native.function("python.observed." + name)(len(values), *values, *split)
        if not op.returned:
            return None
        names = [f["name"] for f in op.public]
        given = dict(zip(names, args)) | kwargs
        outputs = tuple(given.get(f["name"]) if f["role"] == "out" else None for f in op.returned)
        array = given.get(op.first_array)
        tensor_type = _native.connect().tensor_type
        if len(outputs) > 1:
            return _arrays.many(r, outputs, array, tensor_type)
        if r is None:
            return outputs[0]
        return _arrays.like(r, array) if r.__class__ is tensor_type else r


def custom_op(name):
    from . import _torch

    return _torch.custom_op(package, name)


def custom_op_of(name, args, kwargs):
    bound = dict(zip([f["name"] for f in package.ops[name].public], args)) | kwargs
    return custom_op(name)(**bound)


# Runs while a program is traced, and its result is a constant of the graph (what torch.compiler.assume_constant_result says).
custom_op._dynamo_marked_constant = True


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
