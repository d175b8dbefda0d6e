# SPDX-License-Identifier: Apache-2.0
"""The log and the flight recorder for functions of your own.

    from flashinfer.api_logging import flashinfer_api

    @flashinfer_api
    def my_kernel(x, scale=1.0): ...

Calls of `my_kernel` are then logged and recorded as those of the library are, by the same recorder, into the same session. The
FLASHINFER_LOG* and FLASHINFER_DUMP_* variables are read when this module is imported (docs/recorder.md); at level 0 the decorator
returns the function itself. The functions and classes of this package need no decorator.
"""
import functools
import inspect
import os
import sys
import warnings
import weakref

from . import _native, _values
from .replay import replay_from_dump, replay_sequence

__all__ = ["flashinfer_api", "flashinfer_experimental_api", "ExperimentalWarning", "experimental_auto_backends_allowed",
           "require_experimental_auto_backends", "warn_experimental_backend_once", "replay_from_dump", "replay_sequence",
           "flush_graph_dumps", "clear_graph_dumps", "start", "stop"]

_TRACE_REGISTRY = []     # (function, template, label) of every trace= argument
_TRACE_DISPATCHERS = {}  # function -> the callable that picks one of several templates for a call


class _Native:
    """The recorder's functions."""

    def __init__(self):
        for name in ("callable", "form", "begin", "enter", "leave", "fail", "log_error", "object_number"):
            setattr(self, name, _native.function("record." + name))


@functools.cache
def _recorder():
    return _Native()


def _begin():
    """Reads the environment, also when the package is imported again; returns the level."""
    add = _native.core.flashinfer_add_version
    torch = sys.modules.get("torch")
    if torch is not None:
        add(b"torch", str(torch.__version__).encode())
    elif os.environ.get("FLASHINFER_LOGLEVEL", "0") != "0":
        import importlib.metadata

        try:
            add(b"torch", importlib.metadata.version("torch").encode())
        except importlib.metadata.PackageNotFoundError:
            pass
    add(b"python", sys.version.encode())
    _native.core.flashinfer_record_restart()
    return _native.core.flashinfer_record_level()


_level = _begin()  # and, at the end of this file, _watch_graphs()


# ---- the decorator ----
class _Observed:
    """One decorated function: what the recorder must know of it, passed once for each name and each way of passing arguments."""

    def __init__(self, function):
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.module = getattr(function, "__module__", None) or "<unknown>"
        try:
            signature = inspect.signature(function)
            self.signature, self.parameters = str(signature), list(signature.parameters.values())
        except (TypeError, ValueError):
            self.signature, self.parameters = "", []
        self.ids = {}    # class of the first argument -> (number of the function under its name, is it a method's object)
        self.forms = {}  # (number, how many positional, keywords...) -> (number of the form, defaults that come with each call)
        self.plain = self._register(self.name)

    def _register(self, name):
        return _recorder().callable(_values.text(name), self.module, _values.text(self.signature))

    def identify(self, cls):
        """A method of a wrapper class has the class's name before its own, whatever module it is in."""
        name = cls.__name__
        is_wrapper = "Wrapper" in name or name == "MoELayer"
        found = self.ids[cls] = (self._register(f"{name}.{self.name}"), True) if is_wrapper else (self.plain, False)
        return found

    def form(self, key):
        number, count, *keywords = key
        positional, defaults = [], []
        for i, p in enumerate(self.parameters):
            if p.kind is p.VAR_POSITIONAL:
                positional += [""] * (count - len(positional))  # they have no names
            elif p.kind is not p.VAR_KEYWORD:
                if p.kind is not p.KEYWORD_ONLY and len(positional) < count:
                    positional.append(p.name)
                if p.default is not p.empty and i >= count and p.name not in keywords:
                    defaults.append(p)
        positional += [""] * (count - len(positional))
        constant = [_is_constant(p.default) for p in defaults]
        codes, row = _values.flatten([p.default for p, c in zip(defaults, constant) if c], careful=True)
        id = _recorder().form(number, positional[:count], keywords, [p.name for p in defaults],
                              "".join("1" if c else "0" for c in constant), codes, *row)
        found = self.forms[key] = (id, [p.default for p, c in zip(defaults, constant) if not c])
        return found

    def call(self, number, is_method, wanted, args, kwargs):
        native, token = _recorder(), 0
        try:
            self_id = _number_of(args[0]) if is_method else 0
            key = (number, len(args), *kwargs)
            form, varying = self.forms.get(key) or self.form(key)
            values = [*args, *kwargs.values(), *varying] if kwargs or varying else args
            codes, row = _values.flatten(values, wanted == 2)
            try:
                token = native.enter(form, self_id, codes, *row)
            except Exception:
                codes, row = _values.flatten(values, wanted == 2, careful=True)
                token = native.enter(form, self_id, codes, *row)
        except Exception as e:
            native.log_error(number, "(pre-execution)", _message(e))
        if not token:
            return self.function(*args, **kwargs)
        try:
            result = self.function(*args, **kwargs)
        except BaseException as e:
            native.fail(token, type(e).__name__, _message(e))
            raise
        try:
            codes, out = _values.flatten((result,), wanted == 2)
            try:
                native.leave(token, codes, *out)
            except Exception:
                codes, out = _values.flatten((result,), wanted == 2, careful=True)
                native.leave(token, codes, *out)
        except Exception as e:
            native.fail(token, type(e).__name__, _message(e))
            native.log_error(number, "(outputs)", _message(e))
        return result


_objects = {}  # id() -> (weak reference, number) of the objects whose methods were called


def _number_of(receiver):
    """A number for an object that no other object of this process ever has, as id() is not; id() where it takes no weak reference."""
    address = id(receiver)
    known = _objects.get(address)
    if known is not None:
        return known[1]
    try:
        gone = weakref.ref(receiver, lambda _: _objects.pop(address, None))
    except TypeError:
        return address
    return _objects.setdefault(address, (gone, _recorder().object_number()))[1]


def _message(error):
    try:
        return _values.text(str(error))
    except Exception:
        return ""


def _is_constant(default):
    return default is None or isinstance(default, (bool, int, float, str)) or type(default).__module__ == "torch"


def _wrap(function):
    observed = _Observed(function)
    ids, identify, plain = observed.ids, observed.identify, observed.plain
    begin, call = _recorder().begin, observed.call

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        number, is_method = (ids.get(type(args[0])) or identify(type(args[0]))) if args else (plain, False)
        wanted = begin(number)
        if not wanted:
            return function(*args, **kwargs)
        return call(number, is_method, wanted, args, kwargs)

    return wrapper


def flashinfer_api(func=None, *, trace=None):
    """Logs and records the calls of a function, as `@flashinfer_api`, `@flashinfer_api()` or `@flashinfer_api(trace=template)`.

    `trace` is a trace template (an object with `build_fi_trace_fn`), which makes the function's `fi_trace` and `fi_init`, or a callable
    that picks one for the arguments of a call and lists them in `.templates`. At level 0 the very function comes back, unless there is a
    template: then it is wrapped, so that these attributes do not land on the original. A first positional argument of a class with "Wrapper" in its name makes the call one of that class's
    methods. The wrapper adds nothing to what the function returns or raises; errors of the recorder become lines of the log."""
    if func is None:
        return lambda f: flashinfer_api(f, trace=trace)
    if _level != 0:
        made = _wrap(func)
    elif trace is None:
        return func
    else:
        made = func
    if trace is not None:
        made = _with_dump(func, made)
        _attach_trace(made, func, trace)
    return made


def _with_dump(func, called):
    """`called`, which writes the definition of each call first while FLASHINFER_TRACE_DUMP says so."""
    from . import _trace
    from .fi_trace import dump_call

    enabled, signature = _trace.enabled, inspect.signature(func)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        if enabled():
            dump_call(getattr(func, "__qualname__", "function"), wrapper.fi_trace, signature, args, kwargs)
        return called(*args, **kwargs)

    return wrapper


def _attach_trace(made, func, trace):
    """Sets `fi_trace(save_dir=None, name=None, **arguments)`, which returns the definition of a call, and `fi_init`."""
    label = getattr(func, "__qualname__", str(func))
    api = f"{getattr(func, '__module__', '<unknown>')}.{label}"
    if hasattr(trace, "build_fi_trace_fn"):
        templates = [trace]
        made.fi_trace = trace.build_fi_trace_fn(api)
        if getattr(trace, "init", None) is not None:
            made.fi_init = trace.init
    elif callable(trace):
        templates = getattr(trace, "templates", ())
        _TRACE_DISPATCHERS[func] = trace

        def chosen(kwargs):
            template = trace(**kwargs)
            if template is None:
                raise ValueError(f"{api}: no trace template is for these arguments")
            return template

        def fi_trace(save_dir=None, name=None, **kwargs):
            return chosen(kwargs).build_fi_trace_fn(api)(save_dir=save_dir, name=name, **kwargs)

        def fi_init(**kwargs):
            return chosen(kwargs).init(**kwargs)

        made.fi_trace, made.fi_init = fi_trace, fi_init
    else:
        raise TypeError(f"{api}: trace must be a trace template or a callable that returns one, but is {trace!r}")
    for t in templates:
        _TRACE_REGISTRY.append((func, t, getattr(t, "name_prefix", None) or getattr(t, "op_type", None) or label))


# ---- experimental functions ----
class ExperimentalWarning(UserWarning):
    """A function or back end whose behaviour may change."""


_warned = set()


def _warn_once(key, message, stacklevel):
    if key not in _warned:
        _warned.add(key)
        warnings.warn(message, ExperimentalWarning, stacklevel=stacklevel + 1)


def flashinfer_experimental_api(func=None, *, trace=None, feature=None):
    """`flashinfer_api` for a function that may change: it warns (ExperimentalWarning) at its first call. The result has
    `is_experimental` and `experimental_feature`, and is a wrapper at every level."""
    if func is None:
        return lambda f: flashinfer_experimental_api(f, trace=trace, feature=feature)
    observed = flashinfer_api(func, trace=trace)
    label = feature or getattr(func, "__qualname__", str(func))

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        _warn_once(("function", func), f"{label} is experimental: it may change or go without notice", 2)
        return observed(*args, **kwargs)

    wrapper.__dict__.update(observed.__dict__)
    wrapper.__wrapped__ = func
    wrapper.is_experimental = True
    wrapper.experimental_feature = feature
    wrapper.__doc__ = f".. warning:: {label} is experimental.\n\n{inspect.cleandoc(func.__doc__ or '')}".rstrip()
    return wrapper


def experimental_auto_backends_allowed():
    """True when FLASHINFER_ALLOW_EXPERIMENTAL_AUTO_BACKENDS is "1" now: `backend="auto"` may then choose experimental back ends."""
    return os.environ.get("FLASHINFER_ALLOW_EXPERIMENTAL_AUTO_BACKENDS") == "1"


def require_experimental_auto_backends(feature):
    """RuntimeError unless experimental_auto_backends_allowed()."""
    if not experimental_auto_backends_allowed():
        raise RuntimeError(f"{feature} is experimental and backend='auto' does not choose it: set "
                           "FLASHINFER_ALLOW_EXPERIMENTAL_AUTO_BACKENDS=1, or name the back end")


def warn_experimental_backend_once(api_name, backend, *, automatic=False):
    """One ExperimentalWarning for each function and back end; `automatic`: backend="auto" chose it."""
    how = "chosen by backend='auto'" if automatic else "named by the caller"
    _warn_once(("backend", api_name, backend), f"{api_name}: the back end '{backend}' ({how}) is experimental", 2)


# ---- while the program runs ----
def flush_graph_dumps(synchronize=True):
    """Writes what the tensors of calls hold that were captured into CUDA graphs, as the last replay left them; returns how many entries
    (inputs and outputs of a call are two). Graphs of torch do this themselves after each replay, at level 10."""
    return _native.function("record_flush")(synchronize, 0)


def clear_graph_dumps():
    """Forgets what flush_graph_dumps would write; returns how many entries."""
    return _native.function("record_clear")()


def _watch_graphs():
    """Makes torch's graphs flush their calls after each replay."""
    graph = getattr(getattr(sys.modules.get("torch"), "cuda", None), "CUDAGraph", None)
    if graph is None or hasattr(graph, "_flashinfer_watched"):
        return
    capture_begin, replay = graph.capture_begin, graph.replay

    @functools.wraps(capture_begin)
    def watched_begin(self, *args, **kwargs):
        result = capture_begin(self, *args, **kwargs)
        stream = sys.modules["torch"].cuda.current_stream()
        self._flashinfer_capture = _native.function("record_capture")(stream.device_index, stream.cuda_stream)
        return result

    @functools.wraps(replay)
    def watched_replay(self, *args, **kwargs):
        result = replay(self, *args, **kwargs)
        capture = getattr(self, "_flashinfer_capture", 0)
        if capture:
            _native.function("record_flush")(True, capture)
        return result

    graph.capture_begin, graph.replay, graph._flashinfer_watched = watched_begin, watched_replay, True


def start(level=10, dump_dir=""):
    """Logs from now on at `level` (10 records), into the folder of the environment or `dump_dir`. Functions that were decorated at
    level 0 stay as they are; those of the library follow."""
    _native.function("record_start")(level, dump_dir)
    if level >= 10:
        _watch_graphs()


def stop():
    """Back to level 0."""
    _native.function("record_stop")()


if _level >= 10:
    _watch_graphs()
