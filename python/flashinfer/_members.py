# SPDX-License-Identifier: Apache-2.0
"""What made classes and functions have beside their code: properties, questions about back ends, copies that raise."""
import ast

from . import _native


def hide(function, name):
    """Leaves the parameter `name` out of the signature that the function shows."""
    import inspect

    whole = inspect.signature(function)
    function.__signature__ = whole.replace(parameters=[p for p in whole.parameters.values() if p.name != name])


def nothing(class_name, name, module):
    def end_forward(self):
        """Does nothing; kept for older programs."""

    end_forward.__name__, end_forward.__qualname__, end_forward.__module__ = name, f"{class_name}.{name}", module
    return end_forward


def sink_forward(class_name, name, module):
    """The older form of run() that a class with attention sinks inherits in FlashInfer, where a call fails too."""

    def forward(self, q, paged_kv_cache, causal=False, pos_encoding_mode="NONE", use_fp16_qk_reduction=False, k_scale=None, v_scale=None,
                window_left=-1, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None):
        """Raises TypeError: this older form of run() has no argument for the sink."""
        raise TypeError(f"{class_name}.{name} has no argument for the sink: use run(q, paged_kv_cache, sink, sm_scale)")

    forward.__name__, forward.__qualname__, forward.__module__ = name, f"{class_name}.{name}", module
    return forward


def _of_constructor(self, op, argument, default):
    args, kwargs = self._kept
    names = type(self)._operators["__init__"].names if hasattr(type(self), "_operators") else op.names  # of a subclass: it may not take the argument
    if argument not in names:
        return default
    at = names.index(argument) - 1  # without self
    return kwargs.get(argument, args[at] if at < len(args) else default)


def given(op, argument):
    """A property: whether the constructor was given `argument`."""
    return property(lambda self: bool(_of_constructor(self, op, argument, False)), doc=f"{argument} of the constructor.")


def shown(op, argument, values):
    """A property: the constructor's `argument`, or what `values` has for it; "True": a constant."""
    if argument == "True":
        return property(lambda self: True, doc="True.")
    default = ast.literal_eval(next(f["default"] for f in op.public if f["name"] == argument))

    def value(self):
        given = _of_constructor(self, op, argument, default)
        return values.get(given, given)

    shows = "".join(f"; {new!r} for {old!r}" for old, new in values.items())
    return property(value, doc=f"{argument} of the constructor{shows}.")


def no_copy(class_name):
    def raise_error(self, *_):
        raise TypeError(f"a {class_name} cannot be copied or pickled: its plan belongs to one object; make another one and plan it")

    return raise_error


def _unsupported_reason(op, backend, cc):
    return str(_native.function("python.backend_unsupported_reason")(op.name, backend, int(cc or 0)))


def _backends(op):
    named = next((f["backends"] for f in op.fields if "backends" in f), {})
    return [*named, *(c for c in op.description["candidates"] if c not in named)]


def backend_question(op, function):
    def is_backend_supported(backend, cc=None):
        """True when this library has the implementation `backend` for a GPU of compute capability `cc` (90 for 9.0), or for any device."""
        return not _unsupported_reason(op, backend, cc)

    return is_backend_supported


def choice_questions(op):
    """{name: value} of what FlashInfer's `backend_requirement` gives a function beside these questions."""
    names = set().union(*(f["backends"] for f in op.fields if "backends" in f)) - {"auto"}

    def has_backend(backend):
        """True for the names of FlashInfer's back ends that `backend=` takes."""
        return backend in names

    def has_backend_choices():
        """True when `backend=` takes any."""
        return bool(names)

    return {"has_backend": has_backend, "has_backend_choices": has_backend_choices, "experimental_backends": frozenset()}


def capability_question(op):
    def is_compute_capability_supported(cc):
        """True when some implementation of this library runs on a GPU of compute capability `cc` (90 for 9.0)."""
        return any(not _unsupported_reason(op, backend, cc) for backend in _backends(op))

    return is_compute_capability_supported


def backend_reasons(op):
    def backend_reasons(cc=None):
        """{name: why this library does not have that implementation}; the empty text: it has it."""
        return {backend: _unsupported_reason(op, backend, cc) for backend in _backends(op)}

    return backend_reasons
