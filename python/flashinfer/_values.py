# SPDX-License-Identifier: Apache-2.0
"""Python values as flat rows of what TVM-FFI has types for, one letter for each value; flashinfer/ffi/tvm/foreign.cc reads them
and says what the letters mean."""
import enum
import sys

_PLAIN = frozenset((type(None), bool, int, float, str))
_INT64 = range(-(2**63), 2**63)


def flatten(values, dump=False, careful=False):
    """The letters and the row of `values`. With `dump` str() of opaque values and the state of generators are in it, too. The short
    way trusts the library to take every tensor, integer and string; where it refuses, `careful` describes them instead."""
    codes, row = [], []
    _flatten(values, codes, row, dump, careful)
    return "".join(codes), row


def _flatten(values, codes, row, dump, careful):
    for v in values:
        t = type(v)
        if t in _PLAIN and not careful:
            codes.append("v")
            row.append(v)
        else:
            (_converters.get(t) or _converter(v))(v, codes, row, dump, careful)


# ---- one function for each kind, all with the same arguments ----
def _plain(v, codes, row, dump, careful):
    if isinstance(v, int) and v not in _INT64:
        return _opaque(v, codes, row, dump, careful, type_name="int")
    if isinstance(v, str):
        v = text(v)
    codes.append("v")
    row.append(v)


def _number(v, codes, row, dump, careful):
    """Of a class derived from a number or str."""
    _plain(int(v) if isinstance(v, int) else float(v) if isinstance(v, float) else str.__str__(v), codes, row, dump, careful)


def _complex(v, codes, row, dump, careful):
    codes.append("c")
    row += (v.real, v.imag)


def text(v):
    """`v` without what UTF-8 cannot hold."""
    return v.encode(errors="backslashreplace").decode()


def _enum(v, codes, row, dump, careful):
    codes.append("e")
    row += (f"{type(v).__name__}.{v.name}", text(str(v.value)), isinstance(v.value, (int, float)) and not isinstance(v.value, bool))


def _tensor(v, codes, row, dump, careful):
    if careful or v.is_neg():
        return _any_tensor(v, codes, row)
    codes.append("g" if v.requires_grad else "v")
    row.append(v)


_KNOWN = frozenset("float32 float16 bfloat16 float8_e4m3fn float8_e5m2 float64 uint8 int8 uint16 int16 uint32 int32 uint64 int64 "
                   "bool float4_e2m1fn_x2".split())


def _any_tensor(v, codes, row):
    """Also those of element types the library lacks (as bytes) and those whose memory it cannot read (described only)."""
    import torch

    grad, dtype = v.requires_grad, str(v.dtype)[6:]
    try:
        memory = v.detach()
        if v.is_conj() or v.is_neg():  # bits that are turned around when they are read
            memory = torch.empty_strided(v.size(), v.stride(), dtype=v.dtype).copy_(memory)
        readable = v.layout is torch.strided and v.device.type in ("cpu", "cuda") and not v.is_quantized and not v.is_nested
        if readable and v.dim() <= 8 and dtype in _KNOWN:
            memory.data_ptr()
            codes.append("g" if grad else "v")
            row.append(memory)
            return
        if readable and v.dim() <= 7:
            codes.append("b")
            row += (memory.unsqueeze(-1).view(torch.uint8), dtype, grad)
            return
    except RuntimeError:
        pass
    codes.append("(")
    row += ("torch.Tensor", 6)
    _flatten((tuple(v.shape), v.stride(), dtype, str(v.device), grad, v.is_contiguous()), codes, row, False, True)


def _dtype(v, codes, row, dump, careful):
    codes.append("d")
    row.append(str(v))


def _device(v, codes, row, dump, careful):
    codes.append("D")
    row += (str(v), repr(v))


def _generator(v, codes, row, dump, careful):
    if not dump:
        return _opaque(v, codes, row, dump, careful)
    codes.append("(")
    row += ("torch.Generator", 3)
    _flatten((_Opaque(v), v.initial_seed(), v.get_state()), codes, row, dump, careful)


class _Opaque:
    """A value to be described by its texts, whatever it is."""

    def __init__(self, value):
        self.value = value


def _list(v, codes, row, dump, careful):
    codes.append("[")
    row.append(len(v))
    _flatten(v, codes, row, dump, careful)


def _tuple(v, codes, row, dump, careful):
    codes.append("(")
    row += (type(v).__name__, len(v))
    _flatten(v, codes, row, dump, careful)


def _fp4_tensor(v, codes, row, dump, careful):
    codes.append("(")
    row += ("FP4Tensor", 4)
    _flatten((v.data, v.scale, v.scale_start_index, getattr(v, "original_shape", None)), codes, row, dump, careful)


def _dict(v, codes, row, dump, careful):
    codes.append("{")
    row.append(len(v))
    for item in v.items():
        _flatten(item, codes, row, dump, careful)


def _opaque(v, codes, row, dump, careful, type_name=None):
    if type(v) is _Opaque:
        v = v.value
    name = type_name or type(v).__name__
    try:
        long = text(repr(v))
    except Exception:
        long = f"<{name} object>"
    short = ""
    if dump:
        try:
            short = text(str(v))[:1000]
        except Exception:
            short = "<not serializable>"
    codes.append("o")
    row += (name, long, "" if short == long else short)


_converters = dict.fromkeys(_PLAIN, _plain) | {list: _list, tuple: _tuple, dict: _dict, complex: _complex, _Opaque: _opaque}


def _converter(v):
    """The function for values of this type, found in the order in which the log tries kinds."""
    t = type(v)
    torch = sys.modules.get("torch")
    tensor, generator, dtype, device = (torch.Tensor, torch.Generator, torch.dtype, torch.device) if torch else ((),) * 4
    for kind, f in ((enum.Enum, _enum), (tensor, _tensor), (list, _list), (tuple, _tuple), (dict, _dict), ((int, float, str), _number),
                    (complex, _complex), (dtype, _dtype), (device, _device), (generator, _generator)):
        if isinstance(v, kind):
            break
        if kind is tensor and t.__name__ == "FP4Tensor":
            f = _fp4_tensor
            break
    else:
        f = _plain if any(c.__module__.startswith("tvm_ffi") for c in t.__mro__) else _opaque
    if torch or t.__module__ == "builtins":
        _converters[t] = f
    return f
