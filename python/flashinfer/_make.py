# SPDX-License-Identifier: Apache-2.0
"""Functions and classes made from the registry's descriptions.

For each op one `def` with the public signature is compiled, in the module that the op names; all it does is to pass its arguments
on by position. For `rmsnorm` that is

    def rmsnorm(input, weight, eps=1e-06, out=None, enable_pdl=None):
        if _is_compiling():
            _make_custom_op('rmsnorm')
            return _custom_op_rmsnorm(input, weight, eps, out, enable_pdl)
        try: r = _native_rmsnorm(input, weight, eps, out, enable_pdl)
        except _HandoverErrors as error: r = _retried('rmsnorm', error, _native_rmsnorm, (input, weight, eps, out, enable_pdl,))
        if r is None: return out
        return _like(r, input) if r.__class__ is _Tensor else r

While calls are observed (log, recorder), every function has other code, which keeps apart what the caller passed by position, by
name, and not at all. Functions keep their identity: `from flashinfer import rmsnorm` sees both.

Why text: one closure over (*args, **kwargs) that puts arguments in order itself was measured in its place. rmsnorm of one row of 64
takes 1.26 us by position and 1.31 us with three arguments by name; the closure 1.43 us (+13 %) and 1.93 us (+47 %).
"""
import sys

from . import _arrays, _docs, _engine_names, _fp4_output, _members, _modules, _native, _trace
from ._op import Op, aliases, enums, execute, structure, structures
from ._source import given_outputs, returns_list, source, takes_skip_check

_PACKAGE = __package__
# Classes that engines compare with another by isinstance, and that one.
_PARENTS = {"CUDAGraphBatchDecodeWithPagedKVCacheWrapper": "BatchDecodeWithPagedKVCacheWrapper",
            "BatchAttentionWithAttentionSinkWrapper": "BatchPrefillWithPagedKVCacheWrapper",
            "BatchPrefillWithCausalBidirectionalRangesWrapper": "BatchPrefillWithPagedKVCacheWrapper"}


def _is_compiling():
    """torch.compiler.is_compiling, for programs that import torch late or never."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def as_list(results):
    """Results as a list; one tensor as a list of it."""
    return list(results) if results.__class__ in (tuple, list) else [results]


def of_list(results):
    """What `as_list` made a list of."""
    return results[0] if len(results) == 1 else tuple(results)


class Package:
    """All that was made, and the switch between the two ways of calling."""

    def __init__(self):
        self.ops = {d["name"]: Op(d) for d in _native.describe()}
        self.namespaces = {}
        self.connected = False
        self.observing = False
        self.watched = False  # the library is observed
        self.apply = None     # of trace_apply: (op, args, kwargs) -> (whether it ran the call, its result)
        self.switched = []  # (function, plain code, observed code)
        self.exports = {}
        classes = {}
        for op in self.ops.values():
            if op.class_name:
                classes.setdefault(op.class_name, []).append(op)
            else:
                self.exports[op.name] = self._function(op)
        for op in self.ops.values():
            if not op.class_name:
                self._name_again(op)
        for name in sorted(classes, key=_PARENTS.__contains__):  # parents first
            self.exports[name] = self._class(name, classes[name])
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
        elif _modules.is_file(module_name):
            module = __import__(module_name, fromlist=["_"])
        else:
            module = _modules.make(module_name, f"Ops of {module_name}, made from the library's registry.")
        namespace = self.namespaces[module_name] = module.__dict__
        namespace.update(_is_compiling=_is_compiling, _make_custom_op=make_custom_op, _with_defaults=with_defaults, _like=_arrays.like,
                         _many=_arrays.many, _dtype=_arrays.dtype, _device=_arrays.device, _generator=_arrays.generator,
                         _object=_arrays.boxed, _list=_arrays.plain_list, _default_generator=_arrays.default_generator, _plain=_arrays.PLAIN,
                         _reject_negative=self.reject_negative, _as_list=as_list,
                         _observed=self.call_observed, _retried=self.retried, _HandoverErrors=_arrays.HANDOVER_ERRORS, _Tensor=None, _new=self._connecting("new", namespace, "_new"))
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
                structure(f, op)
                namespace.update(structures)
        if op.tuple:
            namespace["_results_" + op.name] = namespace[op.tuple.__name__] = op.tuple
        plain, observed = source(op, name, namespace, changed)
        made = {}
        execute(plain, f"<flashinfer {qualname}>", namespace, made)
        function = made[name]
        if op.was_positional:
            function = self._with_older_form(op, name, qualname, namespace, made)
        if takes_skip_check(op):
            _members.hide(function, "skip_check")
        execute(observed, f"<flashinfer {qualname} (observed)>", namespace, made)
        if not op.is_custom_op:
            function._torchdynamo_disable = True  # objects with state are called as they are, between graphs
        if op.is_custom_op:
            values = function.__defaults__ or ()
            optional = op.names[:op.positional][-len(values) or len(op.names):]
            namespace["_defaults_" + name] = {**dict.fromkeys(op.names), **dict(zip(optional, values)),
                                              **{k: v for k, v in (function.__kwdefaults__ or {}).items() if k in op.names}}
        function.__qualname__ = qualname
        function.__module__ = op.module
        function.__doc__ = _docs.docstring(op)
        function.fi_trace = _trace.of_op(op)
        self.switched.append((function, function.__code__, made[name].__code__))
        return function

    def _with_older_form(self, op, name, qualname, namespace, made):
        """A function that also takes by position what it takes by name now: such a call is bound by the library, which warns."""
        import inspect

        by_name = namespace[f"_{op.class_name}_{name}"] = made[name]
        first = ", ".join(op.names[:op.positional])
        execute(f"def {name}({first}, *deprecated_positional_args, **kwargs):\n"
                 f"    if deprecated_positional_args: return _observed('{op.name}', ({first}, *deprecated_positional_args), kwargs)\n"
                 f"    return _{op.class_name}_{name}({first}, **kwargs)\n", f"<flashinfer {qualname} (older form)>", namespace, made)
        made[name].__signature__ = inspect.signature(by_name)
        return made[name]

    def flat(self, name):
        """The function `name`, but with results as the tensors they are."""
        op = self.ops[name]
        if returns_list(op):
            return lambda *args, **kwargs: of_list(self.exports[name](*args, **kwargs))
        if not op.is_formed:
            return self.exports[name]
        namespace = self.namespaces[op.module]
        namespace["_flat_" + name] = _native.function("python.flat." + name)
        made = {}
        execute(source(op, name, namespace, prefix="_flat_")[0], f"<flashinfer {name} (flat)>", namespace, made)
        return made[name]

    def _function(self, op):
        function = self._compile(op, op.name, op.name)
        function.is_backend_supported = _members.backend_question(op, function)
        function.is_compute_capability_supported = _members.capability_question(op)
        function.backend_reasons = _members.backend_reasons(op)
        vars(function).update(_members.choice_questions(op))
        self.namespaces[op.module][op.name] = function
        return function

    def _name_again(self, op):
        """A function's other names, which may be functions with another default."""
        for alias, _, changed in aliases(op.description.get("alias", "")):
            function = self._compile(op, alias, alias, changed) if changed else self.exports[op.name]
            self.exports[alias] = self.namespace(op.module)[alias] = function

    def _class(self, name, ops):
        module = next(op.module for op in ops)
        namespace = self.namespace(module)
        members = {"__module__": module, "__doc__": next((op.description["doc"] for op in ops if op.method == "__init__"), None)}
        methods = {op.method: op for op in ops}
        for method, op in methods.items():
            members[method] = self._compile(op, method, f"{name}.{method}")
        for alias, method, changed in aliases(next(op.description.get("aliases", "") for op in ops)):
            if alias in members:
                continue
            if not method:
                members[alias] = _members.nothing(name, alias, module)
            elif method in methods:
                members[alias] = self._compile(methods[method], alias, f"{name}.{alias}", changed) if changed else members[method]
        if name == "BatchAttentionWithAttentionSinkWrapper":
            members.update({form: _members.sink_forward(name, form, module) for form in ("forward", "forward_return_lse")})
        for attribute, argument in (("is_cuda_graph_enabled", "use_cuda_graph"), ("use_tensor_cores", "use_tensor_cores")):
            if argument in methods["__init__"].names:
                members[attribute] = _members.given(methods["__init__"], argument)
        for attribute, argument, shown in aliases(methods["__init__"].description.get("alias", "")):
            members[attribute] = _members.shown(methods["__init__"], argument, dict(shown))
        _engine_names.add(name, members, methods)
        members["__deepcopy__"] = members["__reduce_ex__"] = _members.no_copy(name)
        parents = (self.exports[_PARENTS[name]],) if name in _PARENTS else ()
        namespace[name] = type(name, parents, members)
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
        self.watched = bool(on)
        self._switch()

    def set_apply(self, apply):
        """Sets what may run calls in place of the library (None: nothing)."""
        self.connect()
        self.apply = apply
        self._switch()

    def _switch(self):
        on = self.watched or self.apply is not None
        if on == self.observing:
            return
        self.observing = on
        for function, plain, observed in self.switched:
            if on and not hasattr(function, "__signature__"):
                import inspect

                function.__signature__ = inspect.signature(function)
            function.__code__ = observed if on else plain

    def retried(self, name, error, native, args):
        """A call that raised: again with what can be put right, else the error that names the argument."""
        if name in _fp4_output.OPS and _fp4_output.is_wanted(given := dict(zip(self.ops[name].names, args))):
            return _fp4_output.run(self.exports, name, given)
        return _arrays.retried(self.ops[name], error, native, args)

    def reject_negative(self, name, args):
        """ValueError when a tensor among the arguments is a negative view."""
        op = self.ops[name]
        _arrays.reject_negative(name, zip([n for n in op.names if n != "self"], args))

    def call_observed(self, name, args, kwargs):
        """An observed call: positional and keyword arguments apart, with what only the framework knows of them."""
        self.connect()
        op, box = self.ops[name], _arrays.boxed
        if name in _fp4_output.OPS and _fp4_output.is_wanted(given := dict(zip(op.names, args), **kwargs)):
            return _fp4_output.run(self.exports, name, given)
        if self.apply is not None:
            ran, result = self.apply(op, args, kwargs)
            if ran:
                return result
        _arrays.reject_negative(name, [*zip(op.names, args), *kwargs.items()])
        try:
            values = [args[0]._handle, *map(box, args[1:])] if op.class_name else [*map(box, args)]
            split = [x for key, value in kwargs.items() for x in (key, box(value))]
            r = _native.function("python.observed." + name)(len(values), *values, *split)
        except _arrays.HANDOVER_ERRORS as error:
            _arrays.explain(op, error, [*zip(op.names, args), *kwargs.items()])
            raise
        _engine_names.note(op, args, kwargs)
        if not op.returned:
            return None
        if r is not None and r.__class__ is not self.tensor_type and not op.many:
            return r
        bound = dict(zip(op.names, args), **kwargs)
        array, given = bound.get(op.first_array), given_outputs(op, bound.get)
        if op.many:
            results = _arrays.many(r, given, array, self.tensor_type)
            return op.tuple(*results) if op.tuple else results
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


package = Package()
