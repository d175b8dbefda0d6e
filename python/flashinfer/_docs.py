# SPDX-License-Identifier: Apache-2.0
"""Docstrings from the registry's descriptions."""

_TYPES = {"PagedKv": "Tensor or (Tensor, Tensor)", "ScalarOrTensor": "number or Tensor", "Tensors": "list of Tensors",
          "ints": "list of int", "object": "object"}
_ROLES = {"inout": "read and written", "out": "written; made when absent", "scratch": "workspace", "paged_inout": "pages, written",
          "paged": "pages, read"}


def _line(f):
    kind = _TYPES.get(f["type"], f["type"])
    notes = []
    if "dims" in f:
        kind += f" [{f['dims']}]"
    if "dtypes" in f:
        notes.append("|".join(f["dtypes"]))
    if "same_as" in f:
        notes.append(f"dtype of {f['same_as']}")
    if "dtype_from" in f:
        notes.append(f"dtype {f['dtype_from']}")
    if f["role"] in _ROLES:
        notes.append(_ROLES[f["role"]])
    if "structure" in f:
        kind = f["structure"].partition(":")[0] + " or a dict of its members"
    if "as_numbers" in f:
        notes.append("its elements, each a number of its own")
    if "unstacked" in f:
        notes.append("a tuple of its slices along the first dimension")
    if "tuple_with_previous" in f:
        notes.append("in one tuple with the one before it")
    if "may_alias" in f:
        notes.append(f"may be {f['may_alias']} itself")
    if "choices" in f:
        notes.append("one of " + ", ".join(f["choices"]))
    if "backends" in f:
        notes.append("one of " + ", ".join(f["backends"]))
    if "doc" in f:
        notes.append(f["doc"])
    optional = " or None" if f.get("optional") else ""
    return f"    {f['name']}: {kind}{optional}" + ("; " + "; ".join(notes) if notes else "")


def docstring(op):
    """Summary, arguments with shapes and dtypes, what comes back, errors."""
    lines = [op.description["doc"], ""]
    arguments = [f for f in op.public if f["role"] != "self"]
    if arguments:
        lines += ["Args:", *map(_line, arguments), ""]
    if op.returned:
        lines += ["Returns:", *(_line({**f, "role": "attr", "optional": False}) + (", when requested" if "conditional" in f else "")
                                for f in op.returned), ""]
    lines += ["Raises:", "    TypeError: an argument is missing, unknown or of another type",
              "    ValueError: shapes, dtypes or values that do not fit together; the message names them"]
    if any("choices" in f for f in arguments):
        lines.append("    KeyError or ValueError: a name that is not one of those listed")
    if any(f["role"] == "self" for f in op.fields) and op.method != "__init__":
        lines.append("    AssertionError: run() before plan(), or values other than those planned")
    lines.append("    NotImplementedError: a call that no implementation of this library supports; the message says why")
    return "\n".join(lines) + "\n"
