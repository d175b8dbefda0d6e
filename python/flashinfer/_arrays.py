# SPDX-License-Identifier: Apache-2.0
"""Arguments and results: what Python has and TVM-FFI has no type for, both ways."""
import enum
import math
import sys

from . import _native
from ._layouts import FP4Tensor


_PACKAGE = __package__ + "."


class _DTypes(dict):
    """Whatever stands for an element type -> its name ("bfloat16"), remembered."""

    def __missing__(self, key):
        if isinstance(key, str) or type(key).__name__ == "Literal":  # a default, where torch came after this package
            name = str(key).removeprefix("torch.")
        elif type(key).__module__ == "torch":
            name = str(key).removeprefix("torch.")
        else:
            numpy = sys.modules.get("numpy")
            if numpy is None:
                raise TypeError
            name = numpy.dtype(key).name
        self[key] = name
        return name


_dtype_names = _DTypes()


def dtype(value, who):
    """A dtype of torch or numpy, or its name, as a name. `who` is the argument."""
    try:
        return _dtype_names[value]
    except TypeError:
        raise TypeError(f"{who} must be a dtype or the name of one, but is {type(value).__name__} {value!r}") from None


def device(value):
    """A device of torch, or its name, as a name."""
    return None if value is None else str(value)


def is_native(value):
    """Something of TVM-FFI or of the library, which needs no conversion."""
    return any(c.__module__.startswith("tvm_ffi") for c in type(value).__mro__)


def generator(value, who="generator"):
    """A generator as seed and offset. torch's gives the seed from its own stream, so that `manual_seed`, `get_state` and
    `set_state` decide what is drawn; each call advances it."""
    torch = sys.modules.get("torch")
    if is_native(value):
        return value  # of a recording
    if torch is None or not isinstance(value, torch.Generator):
        raise TypeError(f"{who} must be a torch.Generator, but is {type(value).__name__}")
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
    """What a function with several outputs returns: new tensors, numbers, tuples of them. Where the caller may pass outputs (`given`),
    an integer stands for the one it passed."""
    kind = results.__class__
    if kind is tensor_type:
        return like(results, array)
    if kind is int and given:
        return given[results]
    if results is None or kind in (int, float) or hasattr(results, "shape") or kind is FP4Tensor:
        return results
    return tuple([many(r, given, array, tensor_type) for r in results])


PLAIN = frozenset((type(None), bool, int, float))


def reject_negative(op_name, arguments):
    """ValueError for a torch tensor whose memory holds the negated values (`z.conj().imag`): what reads memory would miss the sign."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for name, value in arguments:
        for x in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(x, torch.Tensor) and x.is_neg():
                raise ValueError(f"{op_name}: {name} is a view that negates its memory (torch's negative bit): pass {name}.resolve_neg()")


# What raises when an array cannot be handed over: the library's own errors of these kinds start with the op's name.
HANDOVER_ERRORS = (RuntimeError, BufferError, TypeError, ValueError, AttributeError)


class _Alias:
    """The memory of a numpy array that may not be written, for numpy (which hands over only what may be written)."""

    def __init__(self, array):
        self.array = array
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}


def _readable(value):
    return sys.modules["numpy"].asarray(_Alias(value)) if _is_read_only(value) else value


def _is_read_only(value):
    flags = getattr(value, "flags", None)
    return getattr(flags, "writeable", True) is False


def _trouble(value):
    """Why an array cannot be handed over, or None."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return None
    if value.layout != torch.strided or value.is_nested:
        return f"is {'nested' if value.is_nested else 'sparse'} ({value.layout}), but must be dense"
    if value.device.type == "meta":
        return "is on the device meta, which has no data"
    if value.is_quantized:
        return f"is quantized ({value.dtype}), which this library does not know"
    if type(value).__name__ in ("FakeTensor", "FunctionalTensor"):
        return f"is a {type(value).__name__}, which has no data"
    return None


def explain(op, error, arguments):
    """Raises the error that names the argument, when `error` is not the library's own and one of the arguments is the reason."""
    message = str(error).lstrip("'\"")
    detail = message.removeprefix(op.name + ": ")
    own = message.startswith((op.name + ":", op.name + "(")) and not detail.startswith("cuda: ")  # the driver names no argument
    if own and detail.startswith("backend is '") and "must be one of" in detail and not op.class_name:
        from ._support import UnknownBackendError  # what FlashInfer's functions raise, and a ValueError

        raise UnknownBackendError(f"{message}; {op.name} does not support backend {detail.split()[2].rstrip(',')}") from None
    if own and "data pointer is null" not in message:
        return
    for name, value in arguments:
        for x in value if isinstance(value, (list, tuple)) else (value,):
            why = _trouble(x)
            if why:
                raise ValueError(f"{op.name}: {name} {why}") from None
    if isinstance(error, BufferError):
        for name, value in arguments:
            if hasattr(value, "__dlpack__"):
                try:
                    value.__dlpack__()
                except BufferError as e:
                    raise BufferError(f"{op.name}: {name}: {e}") from None
    first, _, rest = detail.partition("\n")
    for name, value in arguments:  # of a machine without such a device
        where = value.__dlpack_device__() if hasattr(value, "__dlpack_device__") else (1, 0)
        if where[0] == 2:
            raise type(error)(f"{op.name}: {name} is on cuda:{where[1]}: {first}") from None
    if "Exception raised from" in rest:  # torch's C++ stack is no use to anyone
        raise type(error)(f"{op.name}: {first}") from None


def retried(op, error, native, args):
    """A plain call raised `error`: called again with what can be put right, else an error that names the argument."""
    fields = op.public + op.trailing
    if isinstance(error, BufferError) and any(map(_is_read_only, args)):
        for f, x in zip(fields, args):
            if _is_read_only(x) and f["role"] not in ("in", "paged"):
                raise ValueError(f"{op.name}: {f['name']} is read-only, but it is written") from None
        return native(*map(_readable, args))
    explain(op, error, [(f["name"], x) for f, x in zip(fields, args)])
    if isinstance(error, TypeError) and "must be a number, but is Tensor" in str(error):  # a scale in a tensor of one element; one on a GPU is waited for
        return native(*(x.item() if f["role"] == "attr" and hasattr(x, "item") and math.prod(x.shape) == 1 else x for f, x in zip(fields, args)))
    if isinstance(error, TypeError) and any(type(x) is list for x in args):
        return native(*map(plain_list, args))  # TVM-FFI passed a tuple: the error is to say what came in
    raise error


def boxed(value):
    """Any Python value in the form that the log and the recorder see, with what only the framework knows of a tensor: strides of
    extents of one, `requires_grad`."""
    box = _native.function
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.requires_grad or 1 in value.shape:  # what DLPack leaves out or changes
            return box("value.tensor")(value, value.requires_grad, *value.stride())
        return value
    if value is None or isinstance(value, (bool, str)) and not isinstance(value, enum.Enum):
        return value
    if isinstance(value, enum.Enum):
        return box("value.enum")(f"{type(value).__name__}.{value.name}", str(value.value), isinstance(value.value, (int, float)))
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, complex):
        return box("value.complex")(value.real, value.imag)
    if torch is not None:
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
    if hasattr(value, "_handle"):  # an object of this library as an argument
        return value._handle
    if hasattr(value, "__dataclass_fields__") and (cls := next((c for c in type(value).__mro__ if c.__module__.startswith(_PACKAGE)), None)):
        value = {name: getattr(value, name) for name in cls.__dataclass_fields__}  # an op's structure (_make), or a class derived from it
    if isinstance(value, dict):
        return box("value.dict")(*(boxed(x) for item in value.items() for x in item))
    return box("value.opaque")(type(value).__name__, repr(value))
