# SPDX-License-Identifier: Apache-2.0
"""Trace definitions by function: `fi_trace(flashinfer.rmsnorm, input=x, weight=w)` (docs/trace.md)."""
from . import _trace

__all__ = ["build_fi_trace_fn", "fi_trace", "register_fi_trace"]

_registered = {}  # qualified name -> fi_trace of it


def build_fi_trace_fn(spec):
    """The `fi_trace` of a trace template; its definitions name the template's `fi_api`, else its operator type."""
    return spec.build_fi_trace_fn(getattr(spec, "fi_api", None) or spec.op_type)


def register_fi_trace(qualname, spec):
    """Gives the function of that qualified name ("my_module.my_function") the definitions of a template."""
    _registered[qualname] = spec.build_fi_trace_fn(qualname)


def fi_trace(func_or_method, save_dir=None, **kwargs):
    """The trace definition of a call of a function or bound method, which is not run.

    Raises:
        ValueError: the function has no trace template
    """
    function = getattr(func_or_method, "__func__", func_or_method)
    made = getattr(function, "fi_trace", None)
    if made is None:
        qualname = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', function)}"
        made = _registered.get(qualname)
        if made is None:
            raise ValueError(f"{qualname} has no trace template: functions of this package have one, and functions decorated with "
                             "@flashinfer_api(trace=...)")
    receiver = getattr(func_or_method, "__self__", None)
    if receiver is not None and "self" not in kwargs:
        kwargs["self"] = receiver
    return made(save_dir=save_dir, **kwargs)


def dump_call(name, made, signature, args, kwargs):
    """Before a call of a program's own function, when FLASHINFER_TRACE_DUMP is on: writes its definition. A failure warns once for
    each function and kind of error."""
    try:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        made(**bound.arguments)
    except Exception as error:
        key = (name, type(error))
        if key not in _warned:
            _warned.add(key)
            import warnings

            warnings.warn(f"{name}: no trace definition is written: {type(error).__name__}: {error}", stacklevel=3)


_warned = set()
