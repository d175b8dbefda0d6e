# SPDX-License-Identifier: Apache-2.0
"""Replay of recordings from Python: the recorded arguments as Python values, the call run again, its results compared.

The files are read, and results compared, by the library. Reading runs nothing of a dump: a function is one of this package, or one
that the caller allows by name. What needs no Python objects is quicker with the `flashinfer replay` command.
"""
import enum
import importlib
import inspect
import json
import os
import sys

from . import _native, _values

__all__ = ["replay_from_dump", "replay_sequence"]


def _native_replay(name):
    return _native.function("replay." + name)


# ---- values of metadata ----
class _Reader:
    """Python values of a record. `owner`: the module whose enums and tuples may be meant, when the caller allows its function."""

    def __init__(self, tensors, device, owner):
        self.tensors, self.device, self.owner = tensors, device, owner

    def value(self, j):
        if isinstance(j, list):
            return [self.value(x) for x in j]
        if not isinstance(j, dict):
            return j
        kind = j.get("type")
        read = getattr(self, "_" + str(kind).replace(".", "_").lower(), None)
        if read is not None:
            return read(j)
        return self._named_tuple(kind, j) if "items" in j else j

    def _items(self, j):
        if j.get("truncated"):
            raise ValueError(f"a {j['type']} is nested too deep: what is inside was not recorded")
        return [self.value(x) for x in j["items"]]

    def _torch_tensor(self, j):
        key = j.get("tensor_key")
        if key is None:
            raise ValueError(f"a tensor of shape {tuple(j['shape'])} on the device {j['device']} was described, not stored")
        if key not in self.tensors:
            raise ValueError(f"the tensor {key} is not in the dump")
        return self.tensors[key]

    def _torch_dtype(self, j):
        import torch

        dtype = getattr(torch, j["value"].removeprefix("torch."), None)
        return dtype if isinstance(dtype, torch.dtype) else j

    def _device(self, j):
        import torch

        return torch.device(self.device or j["repr"])

    def _enum(self, j):
        cls, _, name = j["name"].partition(".")
        for module in (self.owner, *(m for n, m in list(sys.modules.items()) if n.startswith(__package__ + "."))):
            found = getattr(module, cls, None)
            if inspect.isclass(found) and issubclass(found, enum.Enum) and name in found.__members__:
                return found[name]
        base = enum.IntEnum if type(j["value"]) is int else enum.Enum
        return base(cls, {name: j["value"]})[name]  # prints, compares and records as the one that is not here

    def _float(self, j):
        return float(j["value"])

    def _complex(self, j):
        return complex(j["repr"])

    def _generator(self, j):
        import torch

        g = torch.Generator()
        if "state" in j:
            g.set_state(self.value(j["state"]).clone())
        elif "offset" in j:
            return _native.function("value.generator")(j["seed"], j["offset"])
        return g

    def _list(self, j):
        return self._items(j)

    def _tuple(self, j):
        return tuple(self._items(j))

    def _size(self, j):
        import torch

        return torch.Size(self._items(j))

    def _fp4tensor(self, j):
        if "items" not in j:
            return j  # its text
        cls = getattr(self.owner, "FP4Tensor", None)
        made = object.__new__(cls if inspect.isclass(cls) else type("FP4Tensor", (), {}))
        made.data, made.scale, made.scale_start_index, made.original_shape = self._items(j)
        return made

    def _dict(self, j):
        self._items({**j, "items": []})  # not truncated
        return {self.value(x["key"]): self.value(x["value"]) for x in j["items"]}

    def _named_tuple(self, kind, j):
        cls = getattr(self.owner, kind, None)
        items = self._items(j)
        return cls(*items) if inspect.isclass(cls) and issubclass(cls, tuple) and hasattr(cls, "_fields") else tuple(items)


def _arrays_of(row):
    """The library's tensors as torch's, in the element types that were recorded."""
    import torch

    out = {}
    for key, tensor, grad in zip(row[0::3], row[1::3], row[2::3]):
        out[key] = torch.from_dlpack(tensor)
        if grad and out[key].is_floating_point():
            out[key].requires_grad_()
    return out


def _restore_types(tensors, details):
    """Element types that the library lacks were stored as bytes."""
    import torch

    for key, t in tensors.items():
        d = details.get(key, {})
        if d.get("stored") == "bytes":
            tensors[key] = t.view(getattr(torch, d["dtype"].removeprefix("torch."))).squeeze(-1)


# ---- the function ----
class _Target:
    """What a record names: one of our ops, or a function that the caller allows."""

    def __init__(self, record, allow):
        self.name, self.module = record["function_name"], record["module"]
        self.class_name, _, self.method = self.name.rpartition(".")
        from ._make import package

        self.ours = self.name in package.ops or (self.class_name in package.exports and not self.method.startswith("_")
                                                 and hasattr(package.exports[self.class_name], self.method))
        self.allowed = self.ours or f"{self.module}:{self.name}" in allow
        self.owner = None  # the module of an allowed function
        self.package = package
        if self.allowed and not self.ours:
            self.owner = importlib.import_module(self.module)

    def cls(self):
        return self.package.exports[self.class_name] if self.ours else getattr(self.owner, self.class_name)

    def function(self):
        if self.class_name:
            return getattr(self.cls(), self.method)
        return self.package.exports[self.name] if self.ours else getattr(self.owner, self.name)

    def call(self, args, kwargs):
        """With what only a recording passes by name (the seed of an unseeded draw), through the binding that takes it."""
        if self.ours and self.name in self.package.ops:
            public = {f["name"] for f in self.package.ops[self.name].public}
            if not public.issuperset(kwargs):
                return self.package.call_observed(self.name, tuple(args), kwargs)
        return self.function()(*args, **kwargs)

    def why_not(self):
        return (f"{self.name} is no function of this package; to run it, allow {self.module}:{self.name} "
                f"(allow=[{self.module + ':' + self.name!r}])")


def _key_of_object(record):
    return record.get("process_id"), record.get("self_id")


class _Replay:
    """One recorded call."""

    def __init__(self, dump_dir, device, compare, objects, allow):
        self.folder, self.device, self.objects = str(dump_dir), device or "", objects
        loaded = list(_native_replay("load")(self.folder, self.device, bool(compare)))
        self.record = json.loads(str(loaded[0]))
        self.target = _Target(self.record, allow)
        details = self.record.get("tensor_details", {})
        self.tensors = _arrays_of(loaded[1])
        self.expected = _arrays_of(loaded[2]) if compare else {}
        _restore_types(self.tensors, details)
        _restore_types(self.expected, details)
        for key, d in details.items():  # an argument that was returned is stored once
            if compare and d.get("same_as") in self.expected:
                self.expected[key] = self.expected[d["same_as"]]
        self.read = _Reader(self.tensors, device, self.target.owner)
        self.args, self.kwargs = self._arguments()

    def _arguments(self):
        values = self.record.get("input_metadata", {})
        count, kwargs = 0, {}
        for key in [*values, *self.tensors]:
            if key.startswith("arg_") and key[4:].partition("_")[0].isdigit():
                count = max(count, int(key[4:].partition("_")[0]) + 1)
        args = [self._argument(f"arg_{i}", values) for i in range(count)]
        for key in [*self.tensors, *values]:
            if key.startswith("kwarg_") and (key in values or "__" not in key):
                kwargs[key[6:]] = self._argument(key, values)
        if self.target.class_name and args and "self_id" in self.record:
            args[0] = self._receiver(args[0])
        return args, kwargs

    def _argument(self, key, values):
        if key in self.tensors:
            return self.tensors[key]
        if key not in values:
            raise ValueError(f"{key} is neither among the tensors nor in the metadata of {self.folder}")
        return self.read.value(values[key])

    def _receiver(self, described):
        """The object of an earlier call, or one with the plan that was recorded with this call, or what the record says of it."""
        known = self.objects.get(_key_of_object(self.record))
        if known is not None and type(known).__name__ == self.target.class_name:  # FlashInfer uses numbers of objects again
            return known
        if self.target.ours and self.record.get("self_planned") is not None and self.target.method != "__init__":
            made = object.__new__(self.target.cls())
            made._handle = _native_replay("restore")(self.folder, self.device)
            return made
        return described

    def run(self, result):
        if not self.target.allowed:
            result["execution_error"] = self.target.why_not()
            return
        if self.target.method == "__init__" and "self_id" in self.record:
            self.args[0] = self.objects[_key_of_object(self.record)] = self.target.cls()(*self.args[1:], **self.kwargs)
            result["execution_result"] = None
            return
        if isinstance(self.args[0] if self.args else None, dict) and "self_id" in self.record:
            raise RuntimeError(f"the recording has no __init__ of the object that {self.target.name} is a method of")
        result["execution_result"] = self.target.call(self.args, self.kwargs)

    def compare(self, result, rtol, atol):
        keys = [k for k in self.tensors if not k.startswith("self__")]
        receiver = getattr(self.args[0], "_handle", None) if self.args and self.target.class_name else None
        values = [result["execution_result"], receiver, *(self.tensors[k] for k in keys)]
        codes, row = _values.flatten(values, dump=True, careful=True)
        report = json.loads(str(_native_replay("compare")(self.folder, rtol, atol, keys, codes, *row)))
        if report["differences"]:
            result["comparison_match"] = False
            result["differences"] = report["differences"]
        elif report["compared"] or self.target.method == "__init__":
            result["comparison_match"] = True
        else:
            result["comparison_match"] = None
            result["not_compared"] = self.record.get("outputs_lost") or "the dump holds no output to compare with"


def replay_from_dump(dump_dir, compare_outputs=False, device="cuda", run=False, object_registry=None, *, allow=(), rtol=None,
                     atol=None):
    """The recorded call in `dump_dir` as a dict:

    args, kwargs            what to call the function with; a method's `args[0]` is an object with the plan that it had
    metadata                the last record of the call
    expected_tensors        with `compare_outputs`: the recorded outputs by key; and `expected_metadata`
    execution_result        with `run`: what the function returned
    execution_error         why it did not run, or what it raised, as text
    comparison_match        with both: True, False (then `differences` says where), or None when there is nothing to compare

    `device`: where tensors go ("" leaves each on the kind of device it had). `object_registry`: a dict that keeps the objects that
    constructors made, for the methods recorded after them. `allow`: functions outside this package that may be looked up, imported
    and run, as "module:function" or "module:Class.method". Floats are compared with the tolerance of their type and op unless `rtol`
    or `atol` is given; integers exactly. FileNotFoundError: no dump there. ValueError: it cannot be read."""
    if not os.path.isfile(os.path.join(dump_dir, "metadata.jsonl")):
        raise FileNotFoundError(f"there is no metadata.jsonl in {dump_dir}")
    replay = _Replay(dump_dir, device, compare_outputs, {} if object_registry is None else object_registry, frozenset(allow))
    result = {"args": replay.args, "kwargs": replay.kwargs, "metadata": replay.record}
    if compare_outputs:
        result["expected_tensors"] = replay.expected
        result["expected_metadata"] = replay.record.get("output_metadata", {})
    if run:
        _execute(replay, result, compare_outputs, rtol, atol)
    return result


def _execute(replay, result, compare_outputs, rtol, atol):
    error = replay.record.get("error")
    recorded = error.get("type") if isinstance(error, dict) else None
    try:
        replay.run(result)
    except Exception as e:
        result["execution_error"] = f"{type(e).__name__}: {e}"
        if recorded and compare_outputs:
            result["comparison_match"] = recorded == type(e).__name__  # fails as recorded
        return
    if not compare_outputs or "execution_error" in result:
        return
    if recorded:
        result["comparison_match"] = False
        result["differences"] = [f"the call raised {recorded} when it was recorded"]
        return
    try:
        replay.compare(result, rtol, atol)
    except ValueError as e:
        result["execution_error"] = str(e)


def replay_sequence(root_dir, device="cuda", *, allow=(), rtol=None, atol=None):
    """Replays the calls of a session in the order of the recording, with one set of objects: a constructor makes the object that the
    methods after it use. A list with what `replay_from_dump` returns for each, and `dump_dir`; or `error` and `dump_dir` for a dump
    that cannot be read."""
    session = json.loads(str(_native_replay("list")(str(root_dir))))
    objects, out = {}, []
    for call in session["calls"]:
        try:
            if call["error"]:
                raise ValueError(call["error"])
            result = replay_from_dump(call["folder"], True, device, True, objects, allow=allow, rtol=rtol, atol=atol)
            result["dump_dir"] = call["folder"]
        except Exception as e:
            result = {"error": f"{type(e).__name__}: {e}", "dump_dir": call["folder"]}
        out.append(result)
    return out
