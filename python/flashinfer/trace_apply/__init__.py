# SPDX-License-Identifier: Apache-2.0
"""Solutions in place of the library's own kernels, call by call.

    enable_apply({"rmsnorm_h4096": my_rmsnorm})    # def my_rmsnorm(hidden_states, weight): ...
    flashinfer.rmsnorm(x, weight)                  # x is [*, 4096]: my_rmsnorm runs

A call's definition (docs/trace.md) gives its name; the solution registered under that name gets the definition's inputs by name. While
nothing is enabled, calls are what they were. What a wrapper's plan() got after enable_apply is an input of its run() too. A name does not
tell the element types: a Solution whose spec has `dtypes` runs only for calls whose first tensor has one of them.
"""
import collections
import functools
import json
import logging
import os
import sys
import threading
import weakref

from .. import _make, _native, _trace
from ..trace.solution import Solution

__all__ = ["current_sm", "disable_apply", "enable_apply", "is_enabled", "stats", "stats_snapshot"]

_log = logging.getLogger(__name__)
_lock = threading.Lock()
_counts = collections.defaultdict(collections.Counter)  # function -> status -> calls
_inside = threading.local()  # a solution that calls the library gets the library


class _State:
    solutions = {}    # definition name -> (callable, element types or ())
    templates = {}    # op -> its templates
    candidates = {}   # op -> whether a registered name can be a definition of it
    matched = set()
    plans = weakref.WeakKeyDictionary()  # wrapper -> the arguments of its last plan()
    wrapped = []      # (module, name, the program's own function, what stands in its place)


def _templates(name):
    found = _State.templates.get(name)
    if found is None:
        found = _State.templates[name] = _trace.templates(name) or []
    return found


def _prefix(template):
    return template.get("name_prefix") or template["op_type"]


def _function(solution):
    """What runs a solution, and the element types that it is for."""
    if callable(solution):
        return solution, ()
    if not isinstance(solution, Solution):
        raise TypeError(f"enable_apply: a solution must be a callable or a flashinfer.trace.Solution, but is {solution!r}")
    from ._load import load

    return load(solution), solution.spec.dtypes


def enable_apply(solutions=None):
    """Registers {definition name: callable or Solution} (None: keeps what is registered) and lets them replace calls; without any nothing is
    enabled. Returns how many functions and methods can have such a definition."""
    with _lock:
        if solutions is not None:
            _State.solutions = {name: _function(s) for name, s in solutions.items()}
        _State.matched = set()
        _State.candidates = {
            op.name: any(name == _prefix(t) or name.startswith(_prefix(t) + "_") for t in _templates(op.name) for name in _State.solutions)
            for op in _make.package.ops.values()}
        _counts.clear()
        _unwrap()
        if _State.solutions:
            _wrap_replaced()
    _make.package.set_apply(_apply if _State.solutions else None)
    return sum(_State.candidates.values())


def _wrap_replaced():
    """Puts solutions before functions that the program has put in the place of the library's own (`flashinfer.norm.rmsnorm = mine`)."""
    for op in _make.package.ops.values():
        if op.class_name or not _State.candidates.get(op.name):
            continue
        for module in {sys.modules[op.module], sys.modules[_make.__package__]}:
            now = module.__dict__.get(op.name)
            if callable(now) and now is not _make.package.exports[op.name]:
                stand_in = functools.wraps(now)(functools.partial(_applied, op, now))
                _State.wrapped.append((module, op.name, now, stand_in))
                setattr(module, op.name, stand_in)


def _applied(op, original, *args, **kwargs):
    ran, result = _apply(op, args, kwargs)
    return result if ran else original(*args, **kwargs)


def _unwrap():
    for module, name, original, stand_in in _State.wrapped:
        if module.__dict__.get(name) is stand_in:
            setattr(module, name, original)
    _State.wrapped = []


def disable_apply():
    """Back to the library's kernels; forgets the solutions and the counters. Solutions that no call matched are logged."""
    unmatched = sorted(set(_State.solutions) - _State.matched)
    if unmatched and is_enabled():
        _log.warning("trace_apply: no call had the definition of %s", ", ".join(unmatched))
    _make.package.set_apply(None)
    with _lock:
        _unwrap()
        _State.solutions, _State.candidates = {}, {}
        _State.plans.clear()
        _counts.clear()


def is_enabled():
    return _make.package.apply is not None


def stats():
    """{function: {status: calls}} since enable_apply: hit, fallback_no_candidate, fallback_unwarmed_in_capture, error."""
    return stats_snapshot()


def stats_snapshot():
    with _lock:
        return {function: dict(counts) for function, counts in _counts.items()}


def current_sm(device=None):
    """"sm_90" of a torch device (None: the current one); None without a GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def _bound(op, args, kwargs):
    return {name: value for name, value in (*zip(op.names, args), *kwargs.items()) if name != "self"}


def _template(op, definition):
    """The template that a definition was made from. Inputs that only strict definitions have are in the template alone."""
    keys, name = definition.get("inputs", {}).keys(), definition.get("name", "")
    fitting = [t for t in _templates(op.name) if name and name.startswith(_prefix(t)) and keys <= t["inputs"].keys()]
    return min(fitting, key=lambda t: len(t["inputs"]), default=None)


def _planned(plan, key):
    """What plan() got for an input, whose name there may have no kv_, or paged_ in front."""
    return next((plan[name] for name in (key, "paged_" + key, key.removeprefix("kv_")) if plan.get(name) is not None), None)


def _inputs(definition, template, arguments, plan):
    """The definition's inputs by key: arguments, elements of tuples, what plan() got."""
    found = {}
    for key in definition["inputs"]:
        item = template["inputs"][key]
        value = arguments.get(item.get("param", key))
        if value is None:
            value = _planned(plan, key)
        if value is not None and "tuple_idx" in item:
            value = value[item["tuple_idx"]] if isinstance(value, (tuple, list)) else value.unbind(1)[item["tuple_idx"]]
        if value is not None:
            found[key] = value
    return found


def _capturing(arguments):
    torch = sys.modules.get("torch")
    tensors = (v for v in arguments.values() if hasattr(v, "is_cuda"))
    return torch is not None and any(t.is_cuda for t in tensors) and torch.cuda.is_current_stream_capturing()


def _check_results(op, definition, inputs, results):
    """Raises ValueError where the first result is missing or has another shape than the definition's. Of further ones (scale factors in tiles,
    pools of states) definitions know no more than what they are for, and of calls with packed tensors, whose axes count bytes, the
    variable extents alone."""
    tensors = {key: value for key, value in inputs.items() if definition["inputs"][key]["shape"] and hasattr(value, "shape")}
    if any(len(value.shape) != len(definition["inputs"][key]["shape"]) for key, value in tensors.items()):
        return  # the function takes tensors of other dimensions too
    packed = any(str(value.dtype) == "torch.uint8" for value in tensors.values())
    axes = {}
    for key, value in tensors.items():
        for axis, extent in zip(definition["inputs"][key]["shape"], value.shape):
            if not packed or definition["axes"].get(axis, {}).get("type") == "var":
                axes.setdefault(axis, extent)
    key, item = next(iter(definition["outputs"].items()), (None, None))
    if key is None or item.get("optional"):
        return
    if results[0] is None:
        if not op.returned or op.returned[0]["role"] == "inout":
            return  # changed in place
        raise ValueError(f"trace_apply: the solution of {definition['name']} returned nothing for {key}")
    if not item["shape"] or not hasattr(results[0], "shape"):
        return
    wanted, got = [axes.get(axis) for axis in item["shape"]], list(results[0].shape)
    if len(got) != len(wanted) or any(w is not None and w != g for w, g in zip(wanted, got)):
        raise ValueError(f"trace_apply: the solution of {definition['name']} returned {key} of shape {got}, but it is [{', '.join(map(str, item['shape']))}] with "
                         + ", ".join(f"{a} = {w}" for a, w in zip(item["shape"], wanted) if w is not None))


def _write_results(op, template, arguments, result):
    """What a call returns when a solution computed `result`: outputs that the caller passed, or that the op changes in place, are
    written there."""
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    changed = [f["name"] for f in op.fields if f["role"] in ("inout", "paged_inout") or f["role"] == "out" and "not_returned" in f]
    for i, (key, item) in enumerate(template["outputs"].items()):
        if i >= len(results) or results[i] is None:
            continue
        param = item.get("param") or (key if key in op.names else None)
        if param is None and not op.returned and i < len(changed):
            param = changed[i]
        if param is None and i < len(op.returned) and op.returned[i]["role"] == "out":
            param = op.returned[i]["name"]
        target = arguments.get(param) if param else None
        if target is None or not hasattr(target, "copy_"):
            continue
        if target is not results[i]:
            if target.shape != results[i].shape:  # copy_ would broadcast
                raise ValueError(f"trace_apply: the solution of a call of {op.name} returned {key} of shape {list(results[i].shape)}, but {param} has "
                                 f"{list(target.shape)}")
            target.copy_(results[i])
        results[i] = target
    if not op.returned:
        return None
    return tuple(results) if isinstance(result, (tuple, list)) else results[0]


def _apply(op, args, kwargs):
    if op.class_name and op.name.endswith((".plan", ".begin_forward")):
        _State.plans[args[0]] = _bound(op, args, kwargs)
    if not _State.candidates.get(op.name) or getattr(_inside, "now", False):
        return False, None
    arguments = _bound(op, args, kwargs)
    receiver = args[0] if op.class_name else None
    text = _native.function("trace.define")(op.name, _trace.facts(arguments), False, "", getattr(receiver, "_handle", None))
    definition = json.loads(str(text))
    name = definition.get("name")
    function, dtypes = _State.solutions.get(name, (None, ()))
    label = f"{op.module}.{op.name}"
    template = _template(op, definition)
    first = next((v for v in arguments.values() if hasattr(v, "dtype") and hasattr(v, "shape")), None)
    suits = function is not None and template is not None and (not dtypes or first is not None and _trace.fact(first)["dtype"] in dtypes)
    status = "hit" if suits else "fallback_no_candidate"
    if suits and getattr(function, "needs_warm_up", False) and _capturing(arguments):
        suits, status = False, "fallback_unwarmed_in_capture"
    if not suits:
        _count(label, status)
        return False, None
    _State.matched.add(name)
    _inside.now = True
    try:
        inputs = _inputs(definition, template, arguments, _State.plans.get(receiver, {}) if op.class_name else {})
        result = function(**inputs)
        if "return_lse" in op.names and not arguments.get("return_lse") and isinstance(result, (tuple, list)):
            result = result[0]  # solutions return both, as flashinfer-bench's definitions do
        _check_results(op, definition, inputs, list(result) if isinstance(result, (tuple, list)) else [result])
    except Exception:
        _count(label, "error")
        _log.error("trace_apply: the solution of %s failed in a call of %s", name, label)
        raise
    finally:
        _inside.now = False
    _count(label, "hit")
    return True, _write_results(op, template, arguments, result)


def _count(label, status):
    with _lock:
        _counts[label][status] += 1


def cache_folder():
    base = os.environ.get("FLASHINFER_WORKSPACE_BASE") or os.path.expanduser("~")
    return os.path.join(base, ".cache", "flashinfer", "trace_apply", "solutions")
