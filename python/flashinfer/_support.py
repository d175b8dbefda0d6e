# SPDX-License-Identifier: Apache-2.0
"""Decorators that say which back ends and compute capabilities a function of the user's supports, and check it at each call."""
import functools
import inspect
import sys
import threading


class BackendSupportedError(Exception):
    """No back end, or not the one named, supports the call on this device."""


class UnknownBackendError(BackendSupportedError, ValueError):
    """A back end that does not exist under the name."""


class GPUArchitectureError(Exception):
    """The GPU's compute capability is not supported."""


class LibraryError(Exception):
    """A library that a back end needs is absent or too old."""


def supported_compute_capability(supported_ccs):
    """Marks a check of `backend_requirement` with the compute capabilities (90 for 9.0) that its back end supports. The function gets
    `is_compute_capability_supported(cc)`.

    Raises:
        TypeError: not an iterable of integers
    """
    try:
        given = list(supported_ccs)
    except TypeError:
        raise TypeError(f"supported_ccs must be an iterable, got {type(supported_ccs).__name__}") from None
    for i, cc in enumerate(given):
        if isinstance(cc, bool) or not isinstance(cc, int):
            raise TypeError(f"supported_ccs[{i}] must be an integer, got {type(cc).__name__}: {cc}")

    def mark(function):
        function._supported_ccs = set(given)
        function.is_compute_capability_supported = lambda cc: cc in function._supported_ccs
        return function

    return mark


def on_cpu(*backends):
    """Gives a function that is composed in Python, for CPU tensors, the questions of `backend_requirement`; `backends`: FlashInfer's names."""

    def mark(function):
        function.is_compute_capability_supported = lambda cc: False
        function.is_backend_supported = lambda backend, cc=None: cc is None and backend in backends
        function.has_backend = lambda backend: backend in backends
        function.has_backend_choices = lambda: bool(backends)
        function.experimental_backends = frozenset()
        return function

    return mark


def experimental_backend(checker):
    """Marks a check of `backend_requirement`: backend="auto" leaves its back end out unless FLASHINFER_ALLOW_EXPERIMENTAL_AUTO_BACKENDS
    is 1; naming it works and warns once."""
    checker._is_experimental_backend = True
    return checker


def accepts_skip_check(function):
    """`function` with the keyword skip_check, which its signature does not show and which has no effect."""

    @functools.wraps(function)
    def call(*args, skip_check=False, **kwargs):
        return function(*args, **kwargs)

    return call


def _capability(arguments):
    """90 for a first tensor on a GPU of compute capability 9.0; None for one on a CPU, and without tensors."""
    torch = sys.modules.get("torch")
    for value in arguments:
        if torch is not None and isinstance(value, torch.Tensor):
            from . import utils

            return None if value.device.type != "cuda" else (lambda cc: cc[0] * 10 + cc[1])(utils.get_compute_capability(value.device))
    return None


def _holds(check, capability, arguments):
    return (capability is None or check.is_compute_capability_supported(capability)) and check(**arguments)


class _Checked:
    """A function behind its checks. What "auto" may choose is kept per thread: two calls at once do not see each other's."""

    def __init__(self, function, checks, common_check, heuristic_func):
        functools.update_wrapper(self, function)
        self._function, self._checks, self._common, self._heuristic = function, checks, common_check, heuristic_func
        self._signature = inspect.signature(function)
        self._thread = threading.local()
        self.experimental_backends = frozenset(n for n, c in checks.items() if getattr(c, "_is_experimental_backend", False))

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name):
        if name == "suitable_auto_backends" and hasattr(self._thread, "suitable"):
            return self._thread.suitable
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def dropped_experimental_backends(self):
        """The experimental back ends that the last backend="auto" of this thread left out."""
        return getattr(self._thread, "dropped", [])

    def has_backend(self, backend):
        return backend in self._checks

    def has_backend_choices(self):
        return bool(self._checks)

    def is_backend_supported(self, backend, cc=None):
        """True when there is a back end of that name, for a GPU of compute capability `cc` if given."""
        if not self._checks:
            raise ValueError(f"Invalid is_backend_supported call: no backend choices for {self.__name__}")
        if backend not in self._checks:
            return False
        question = getattr(self._checks[backend], "is_compute_capability_supported", None)
        return cc is None or question is not None and question(cc)

    def is_compute_capability_supported(self, cc):
        """True when some back end, or the common check where there are none, supports compute capability `cc`."""
        if self._checks:
            return any(self.is_backend_supported(backend, cc) for backend in self._checks)
        return self._common_question()(cc)

    def _common_question(self):
        question = getattr(self._common, "is_compute_capability_supported", None)
        if question is None:
            raise ValueError("Invalid is_compute_capability_supported call: "
                             f"{getattr(self._common, '__name__', None)} does not have is_compute_capability_supported decorator")
        return question

    def _suitable(self, capability, arguments):
        """The back ends whose checks hold, in the order of the heuristic."""
        from . import api_logging

        found = []
        for backend, check in self._checks.items():
            try:
                if self.is_backend_supported(backend, capability) and check(**arguments):
                    found.append(backend)
            except ValueError:  # a check may say by an error why not
                continue
        allowed = api_logging.experimental_auto_backends_allowed()
        self._thread.dropped = [b for b in found if b in self.experimental_backends and not allowed]
        found = [b for b in found if b not in self._thread.dropped]
        assert self._heuristic is not None, "Heuristic function must be provided"
        chosen = self._heuristic(found, **arguments) if found else []
        if not chosen:
            hint = (f" (experimental backend(s) {self._thread.dropped} were excluded from automatic selection; set "
                    "FLASHINFER_ALLOW_EXPERIMENTAL_AUTO_BACKENDS=1 to include them, or pass backend= explicitly)") if self._thread.dropped else ""
            raise BackendSupportedError(f"No suitable auto backends found for {self.__name__}{hint}")
        return chosen

    def _check(self, arguments):
        from . import api_logging

        name, backend = self.__name__, arguments.get("backend")
        capability = _capability(arguments.values())
        if not self._checks and self._common is None:
            raise ValueError(f"Invalid @backend_requirement decorator usage: no backend choices and no common_check for {name}")
        if not self._checks:
            question = self._common_question()
        fits = self._common is None or self._common(**arguments)
        if not self._checks:
            if capability is not None and not question(capability):
                raise BackendSupportedError(f"{name} does not support compute capability {capability}; supported compute capabilities: "
                                            f"{sorted(self._common._supported_ccs)}")
        elif backend == "auto":
            if fits:
                self._thread.suitable = self._suitable(capability, arguments)
        elif not self.is_backend_supported(backend, capability):
            on = "" if capability is None else f" with capability {capability}"
            raise BackendSupportedError(f"{name} does not support backend '{backend}'{on}")
        else:
            fits = fits and self._checks[backend](**arguments)
            if fits and backend in self.experimental_backends:
                api_logging.warn_experimental_backend_once(name, backend)
        if not fits:
            raise ValueError(f"Problem size is not supported for {name}")

    def __call__(self, *args, skip_check=False, **kwargs):
        if not skip_check:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            self._check(dict(bound.arguments))
        return self._function(*args, **kwargs)


def backend_requirement(backend_checks, common_check=None, heuristic_func=None):
    """Checks each call of the decorated function before it runs.

    Args:
        backend_checks: {back end: check}; a check takes the function's arguments by name, says whether its back end supports the call,
            and may carry `supported_compute_capability`. The function's argument `backend` chooses; "auto" asks `heuristic_func`
        common_check: a check for all back ends
        heuristic_func: (suitable back ends, **arguments) -> those to try, best first; kept in `function.suitable_auto_backends`

    The function gets the keyword `skip_check`, and `is_backend_supported`, `is_compute_capability_supported`, `has_backend`,
    `has_backend_choices`. Compute capabilities are compared when the first tensor lies on a GPU.

    Raises (at a call):
        BackendSupportedError: no such back end, or none for this GPU
        ValueError: a check says no: "Problem size is not supported"; or there is no back end, and no common_check with
            `supported_compute_capability`
    """
    return lambda function: _Checked(function, dict(backend_checks), common_check, heuristic_func)
