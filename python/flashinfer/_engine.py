# SPDX-License-Identifier: Apache-2.0
"""What serving engines read and set on wrappers beside the public methods: `wrapper._sm_scale`, `wrapper._paged_kv_indptr_buf = ...`,
`wrapper._cached_module.plan(...)`. The names and values are FlashInfer's; the library itself uses none of them.

Values come from the arguments of the constructor (`_kept`) and of the last plan (`_planned`), when they are read. What is set is kept
until the next plan. Where it changes what `run` computes (scales, masks, index arrays), the next `run` plans again first; where it
changes the buffers of a CUDA graph, the next `plan` makes the library's object anew with these. A wrapper on which nothing is set
runs as if these names did not exist.
"""
import dataclasses
import functools
import inspect

_RUNS = ("run", "run_return_lse", "forward", "forward_return_lse")
_PLANS = ("plan", "begin_forward")


# ---- what the wrapper was given ----
def _bound(op, function, args, kwargs):
    """Arguments by name, with defaults."""
    names = [n for n in op.names if n != "self"]
    if len(args) < len(names):  # as the caller split them
        late = [f["name"] for f in op.public[op.positional:] if "was_positional" in f]
        names = [n for n in [*op.names[:op.positional], *late] if n != "self"]
    given = dict(zip(names, args), **kwargs)
    parameters = inspect.signature(function).parameters.values()
    return {p.name: given.get(p.name, p.default) for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"}


def constructed(w):
    return _bound(type(w)._operators["__init__"], type(w).__init__, *w._kept)


def arguments(w):
    """Of the last plan, with the arrays of its `metadata`. AttributeError before it: engines ask with getattr(w, name, None)."""
    given = _given(w)
    metadata = given.get("metadata")
    return given if metadata is None else given | {k: v for k, v in vars(metadata).items() if v is not None}


def _given(w):
    planned = w.__dict__.get("_planned")
    if planned is None:
        raise AttributeError(f"{type(w).__name__}: plan() has not been called")
    known = w.__dict__.get("_planned_arguments")
    if known is None or known[0] is not planned:
        name, args, kwargs = planned
        known = w._planned_arguments = planned, _bound(package().ops[name], _function(w, name), args, kwargs)
    return known[1]


def package():
    from . import _make

    return _make.package


def _function(w, name):
    return type(w).plan if name.endswith(".plan") else package().exports[name]


def device(w):
    workspace = w._float_workspace_buffer
    return getattr(workspace, "device", "cpu")


def is_graph(w):
    return w._use_cuda_graph


# ---- the attributes ----
class Attribute:
    """`value(w)` unless something was set. `argument`: of plan(), for which the set value then stands; `buffer`: of the constructor, in
    CUDA-graph mode."""

    def __init__(self, value, argument=None, buffer=None, kept=False):
        self.value, self.argument, self.buffer, self.kept = value, argument, buffer, kept

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, w, owner):
        if w is None:
            return self
        found = w.__dict__.get("_assigned", {}).get(self.name)
        if found is not None and (self.kept or found[1] is w.__dict__.get("_planned")):
            return found[0]
        return self.value(w)

    def __set__(self, w, x):
        graph = self.buffer or self.name == "_use_cuda_graph"
        try:
            old = self.__get__(w, None) if graph or self.argument else x
        except AttributeError:
            old = None
        w.__dict__.setdefault("_assigned", {})[self.name] = x, w.__dict__.get("_planned")
        if x is old or isinstance(x, (bool, int, float, str, type(None))) and type(x) is type(old) and x == old:
            return
        if graph and (not self.buffer or is_graph(w)):
            _arm(w, _PLANS, _rebuilt)
        if self.argument and "_planned" in w.__dict__:
            _arm(w, _RUNS, _replanned)


def _arm(w, names, first):
    """The methods `names` of this one object do `first` before their work, once."""
    for name in names:
        if name not in w.__dict__ and hasattr(type(w), name):
            w.__dict__[name] = functools.partial(first, w, name)


def _disarm(w, first):
    for name in (*_RUNS, *_PLANS):
        if getattr(w.__dict__.get(name), "func", None) is first:
            del w.__dict__[name]


def _assigned(w, kind):
    """{argument of the plan or the constructor: the value that was set}"""
    out = {}
    for name, (x, planned) in w.__dict__.get("_assigned", {}).items():
        attribute = getattr(type(w), name)
        if kind == "buffer":
            if attribute.buffer and is_graph(w):
                out[attribute.buffer] = x
        elif attribute.argument and planned is w.__dict__.get("_planned"):
            out[attribute.argument] = x
    return out


def _rebuild(w):
    """The library's object anew, with the buffers that were set."""
    given = constructed(w) | _assigned(w, "buffer")
    if "use_cuda_graph" in given:
        given["use_cuda_graph"] = is_graph(w)
    type(w).__init__(w, **given)
    assigned = w.__dict__.get("_assigned", {})
    for name in [n for n in assigned if getattr(type(w), n).buffer or n == "_use_cuda_graph"]:
        del assigned[name]


def _rebuilt(w, name, *args, **kwargs):
    _disarm(w, _rebuilt)
    _rebuild(w)
    return getattr(type(w), name)(w, *args, **kwargs)


def _plan_again(w, changes):
    """plan() with its last arguments but for `changes`; in CUDA-graph mode the arrays are what the buffers hold now."""
    given = dict(_given(w))
    name = w._planned[0]
    metadata = given.get("metadata")
    if metadata is not None:  # arrays are its members
        inside = {k: v for k, v in changes.items() if k in vars(metadata)}
        given["metadata"] = dataclasses.replace(metadata, **inside)
        changes = {k: v for k, v in changes.items() if k not in inside}
    elif is_graph(w):
        for attribute in type(w)._array_attributes:
            argument = getattr(type(w), attribute).argument
            if argument in given and (array := getattr(w, attribute)) is not None:
                given[argument] = array
    given.update(changes)
    if "packed_custom_mask" in changes:
        given["custom_mask"] = None
    if is_graph(w) and metadata is None:
        given = _cut(w, given)
    given = {k: v for k, v in given.items() if k in inspect.signature(_function(w, name)).parameters}
    _function(w, name)(w, **given)


def _cut(w, given):
    """Page ids as many as the page table has: a graph's buffer of them is longer."""
    for indptr, indices in (("indptr", "indices"), ("paged_kv_indptr", "paged_kv_indices"), ("kv_indptr", "kv_indices")):
        if given.get(indices) is not None:
            given[indices] = given[indices][:int(given[indptr][-1])]
    return given


def _replanned(w, name, *args, **kwargs):
    _disarm(w, _replanned)
    changes = _assigned(w, "argument")
    if changes:
        if any(getattr(w.__dict__.get(n), "func", None) is _rebuilt for n in _PLANS):
            _disarm(w, _rebuilt)
            _rebuild(w)
        _plan_again(w, changes)
    return getattr(type(w), name)(w, *args, **kwargs)


def _mask_in_buffer(w, qo_indptr, kv_lens):
    """The mask of a graph that was planned with one: what its buffer holds now, the bits of each request from a byte on."""
    buffer, given = constructed(w).get("custom_mask_buf"), _given(w)
    if buffer is None or not is_graph(w) or given.get("custom_mask") is None and given.get("packed_custom_mask") is None:
        return {}
    rows = (int(b) - int(a) for a, b in zip(qo_indptr, qo_indptr[1:]))
    return {"packed_custom_mask": buffer[:sum((n * int(keys) + 7) // 8 for n, keys in zip(rows, kv_lens))].clone()}


# ---- the module that upstream's plan() calls ----
class Module:
    """Stands for the compiled module of a planned wrapper: engines call its `plan` to plan again from arrays on the host."""

    def __init__(self, w):
        self._w = w

    def plan(self, *args):
        """(float workspace, int workspace, pinned workspace, ...) as FlashInfer's three kinds of modules take them: of prefill and
        tensor-core decode, of decode, of MLA. Returns what a wrapper keeps as `_plan_info`."""
        w, names = self._w, type(self._w)._module_plan
        named = dict(zip(names[-1] if isinstance(args[4], int) else names[0], args[3:]))
        changes = {k: v for k, v in named.items() if k in arguments(w)} | {"seq_lens": None}  # the new page table has them
        if "qo_indptr" in named:
            changes |= _mask_in_buffer(w, args[3], args[5])
        _plan_again(w, _assigned(w, "argument") | changes)
        return w._plan_info


def module(w):
    return w.__dict__.setdefault("_module", Module(w))
