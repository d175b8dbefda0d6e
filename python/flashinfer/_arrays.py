# SPDX-License-Identifier: Apache-2.0
"""Arguments and results: what Python has and TVM-FFI has no type for, both ways."""
import enum
import sys

from . import _native


class _DTypes(dict):
    """Whatever stands for an element type -> its name ("bfloat16"), remembered."""

    def __missing__(self, key):
        if isinstance(key, str):
            name = key.removeprefix("torch.")
        elif type(key).__module__ == "torch":
            name = str(key).removeprefix("torch.")
        else:
            numpy = sys.modules.get("numpy")
            if numpy is None:
                raise TypeError(f"{key!r} is not a dtype or the name of one")
            name = numpy.dtype(key).name
        self[key] = name
        return name


_dtype_names = _DTypes()


def dtype(value):
    """A dtype of torch or numpy, or its name, as a name."""
    if value is None:
        return None
    try:
        return _dtype_names[value]
    except TypeError:
        raise TypeError(f"{value!r} is not a dtype or the name of one") from None


def device(value):
    """A device of torch, or its name, as a name."""
    return None if value is None else str(value)


def is_native(value):
    """Something of TVM-FFI or of the library, which needs no conversion."""
    return any(c.__module__.startswith("tvm_ffi") for c in type(value).__mro__)


def generator(value):
    """A generator as seed and offset. torch's gives the seed from its own stream, so that `manual_seed`, `get_state` and
    `set_state` decide what is drawn; each call advances it."""
    if value is None:
        return None
    torch = sys.modules.get("torch")
    if is_native(value):
        return value  # of a recording
    if torch is None or not isinstance(value, torch.Generator):
        raise TypeError(f"generator must be a torch.Generator, but is {type(value).__name__}")
    seed = torch.empty((), dtype=torch.int64).random_(generator=value).item()
    return _native.function("value.generator")(seed, 0)


def default_generator(array):
    """The generator of a call that names none: torch's default one for torch tensors, else the library's."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return generator(torch.default_generator)
    return None


def plain_list(value):
    """A list stays a list (TVM-FFI makes no difference between lists and tuples)."""
    return _native.function("value.list")(*value) if type(value) is list else value


def like(result, array):
    """A tensor of the library as the kind of array that went in."""
    if type(array) is type(result):
        return result
    namespace = getattr(array, "__array_namespace__", None)
    if namespace is not None:
        return namespace().from_dlpack(result)
    library = sys.modules.get(type(array).__module__.partition(".")[0])
    from_dlpack = getattr(library, "from_dlpack", None)
    return result if from_dlpack is None else from_dlpack(result)


def many(results, given, array, tensor_type):
    """What a function with several outputs returns: new tensors, and in place of an integer the output the caller passed."""
    if results is None:
        return None

    def one(r):
        if r.__class__ is int:
            return given[r]
        return like(r, array) if r.__class__ is tensor_type else r

    if results.__class__ is int or not hasattr(results, "__len__") or hasattr(results, "shape"):
        return one(results)
    return tuple(one(r) for r in results)


def boxed(value):
    """Any Python value in the form that the log and the recorder see, with what only the framework knows of a tensor: strides of
    extents of one, `requires_grad`."""
    box = _native.function
    if value is None or isinstance(value, (bool, str)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, enum.Enum):
        return box("value.enum")(f"{type(value).__name__}.{value.name}", str(value.value), isinstance(value.value, (int, float)))
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, complex):
        return box("value.complex")(value.real, value.imag)
    torch = sys.modules.get("torch")
    if torch is not None:
        if isinstance(value, torch.Tensor):
            return box("value.tensor")(value, value.requires_grad, *value.stride())
        if isinstance(value, torch.Generator):
            return generator(value)
        if isinstance(value, torch.dtype):
            return value
    if hasattr(value, "__dlpack__") or is_native(value):
        return value
    if isinstance(value, tuple):
        return box("value.tuple")(type(value).__name__, *map(boxed, value))
    if isinstance(value, list):
        return box("value.list")(*map(boxed, value))
    if isinstance(value, dict):
        return box("value.dict")(*(boxed(x) for item in value.items() for x in item))
    return box("value.opaque")(type(value).__name__, repr(value))
