# SPDX-License-Identifier: Apache-2.0
"""The text of the functions and methods that _make compiles."""
from . import _engine_names
from ._op import parameters


# Functions that FlashInfer puts behind its decorator backend_requirement, which gives them the keyword skip_check. Checks are part of
# the call here, so that it has no effect.
_CHECKED = frozenset(
    "batch_deepgemm_fp8_nt_groupwise bmm_bf16 bmm_fp8 bmm_mxfp8 fused_qk_rmsnorm_rope fused_topk_deepseek gemm_fp8_nt_blockscaled gemm_fp8_nt_groupwise "
    "group_deepgemm_fp8_nt_groupwise group_gemm_fp8_nt_groupwise group_gemm_mxfp4_nt_groupwise group_gemm_mxfp8_mxfp4_nt_groupwise "
    "group_gemm_nvfp4_nt_groupwise grouped_mm_bf16 grouped_mm_fp4 grouped_mm_fp8 grouped_mm_mxfp8 hash_topk mm_M1_16_K6144_N256 mm_M1_16_K7168_N128 "
    "mm_M1_16_K7168_N256 mm_bf16 mm_bf16_fp4 mm_fp4 mm_fp8 mm_mxfp8 moe_gemm_fp8_nt_groupwise moe_gemm_mxfp8_nt_groupwise nvfp4_kv_dequantize "
    "nvfp4_kv_dequantize_paged nvfp4_kv_quantize nvfp4_quantize_smooth tinygemm_bf16 top_k_varlen trtllm_gen_routing".split())


# Functions that return a list always, [output] where they return one tensor: programs take its element.
_LISTS = frozenset("cutlass_fused_moe trtllm_fp4_block_scale_moe trtllm_fp4_block_scale_routed_moe trtllm_mxint4_block_scale_moe trtllm_mxint4_block_scale_routed_moe".split())


def returns_list(op):
    return op.name in _LISTS


def _in_form(op, expression):
    return f"_as_list({expression})" if returns_list(op) else expression


def takes_skip_check(op):
    """Whether the function of `op` has the keyword skip_check, which its signature does not show."""
    return op.name in _CHECKED


def _guard(op):
    """The lines that refuse views with torch's negative bit: their memory holds the negated values, and DLPack does not tell."""
    tests = []
    for f in op.public:
        name, kind = f["name"], f["type"]
        absent = f"{name} is not None and " if f.get("optional") else ""
        if f["role"] == "scratch" or kind not in ("Tensor", "PagedKv", "ScalarOrTensor", "Tensors"):
            continue
        if kind == "PagedKv":
            tests.append(f"{absent}({name}.is_neg() if {name}.__class__ is not tuple else {name}[0].is_neg() or {name}[1].is_neg())")
        elif kind == "ScalarOrTensor":
            tests.append(f"{name}.__class__ not in _plain and {name}.is_neg()")
        else:
            tests.append(f"{absent}any([t.is_neg() for t in {name}])" if kind == "Tensors" else f"{absent}{name}.is_neg()")
    if not tests:
        return ""
    refuse = f"_reject_negative('{op.name}', ({', '.join(n for n in op.names if n != 'self')},))"
    return f"    try:\n        if {' or '.join(tests)}: {refuse}\n    except AttributeError: {refuse}\n"


def _conversion(op, field):
    """The line that turns an argument into something that TVM-FFI takes, or nothing: tensors, numbers, text go as they are."""
    name, kind = field["name"], field["type"]
    if kind in ("dtype", "Generator"):
        return f"    if {name} is not None: {name} = _{kind.lower()}({name}, '{op.name}: {name}')\n"
    if kind in ("device", "object"):
        return f"    if {name} is not None: {name} = _{kind}({name})\n"
    if kind == "PagedKv":
        return f"    if {name}.__class__ is list: {name} = _list({name})\n"
    return ""


def _hidden(op, changed):
    """The expressions for hidden members: generators that a call without a seed draws from, what an alias sets."""
    expressions = []
    for f in op.trailing:
        if f["type"] == "Generator":
            explicit = [g["name"] for g in op.public if g["type"] == "Generator" or g["name"] == "seed"]
            absent = " and ".join(f"{name} is None" for name in explicit) or "True"
            expressions.append(f"_default_generator({op.first_array}) if {absent} else None")
        else:
            expressions.append(dict(changed).get(f["name"], "None"))
    while expressions and expressions[-1] == "None":
        expressions.pop()
    return expressions


def given_outputs(op, value):
    """A value for each result, from those for outputs that the caller may pass; empty where there are none."""
    passed = ("out", "inout")  # inout: arguments that are returned too
    return [value(f["name"]) if f["role"] in passed else None for f in op.returned] if any(f["role"] in passed for f in op.returned) else []


def _named(op, results):
    """The expression for a tuple of results, by names when there are many."""
    return f"_results_{op.name}(*{results})" if op.tuple else results


def _tail(op):
    """The lines that turn what the library returned into what the function returns."""
    if not op.returned:
        return "    return None\n"
    given = [str(x) for x in given_outputs(op, str)]
    if op.many:
        many = f"_many(r, ({', '.join(given)}), {op.first_array}, _Tensor)"
        return f"    return {_in_form(op, _named(op, many))}\n"
    given = given or ["None"]
    lines = f"    if r is None: return {_in_form(op, given[0])}\n" if given[0] != "None" else ""
    result = _in_form(op, f"_like(r, {op.first_array}) if r.__class__ is _Tensor else r")
    return f"{lines}    return {result}\n"


def _noted(op):
    """The lines after which a wrapper's attributes tell what it was given (_engine_names)."""
    if _engine_names.keeps_plan(op):
        values = ["_given_" + f["name"] if f["type"] == "object" else f["name"] for f in op.public if f["type"] != "self"]
        return f"    self._planned = '{op.name}', ({', '.join(values)},), {{}}\n"
    if op.method == "reset_workspace_buffer" and "int_workspace_buffer" in op.names:
        return "    self._float_workspace_buffer, self._int_workspace_buffer = float_workspace_buffer, int_workspace_buffer\n"
    return ""


def _argument(field):
    """The expression that the library is passed."""
    if field["type"] != "self":
        return field["name"]
    return "self._handle" if field["role"] == "self" else f"getattr({field['name']}, '_handle', {field['name']})"


def source(op, name, namespace, changed=(), prefix="_native_"):
    """The text of the plain function or method `name`, and of the observed one."""
    native = prefix + op.name.replace(".", "_")
    compiled = ""
    if op.is_custom_op:
        names = ", ".join(f["name"] for f in op.public)
        compiled = f"    if _is_compiling():\n        _make_custom_op('{op.name}')\n        return {_in_form(op, _named(op, f'_custom_op_{op.name}({names})'))}\n"
    make = keep = ""
    if op.method == "__init__":  # the object looks at buffers it was given as long as it lives
        make = "    {0}._handle = _new('" + op.class_name + "')\n"
        keep = "    self._kept = (" + "".join(f["name"] + ", " for f in op.public if f["type"] != "self") + "), {}\n"
    if _engine_names.keeps_plan(op):  # objects as they were, before the library's form of them
        keep = "".join(f"    _given_{f['name']} = {f['name']}\n" for f in op.public if f["type"] == "object")
    hidden = _hidden(op, changed)
    shown = parameters(op, namespace, changed)
    dropped = ""
    if takes_skip_check(op):
        shown += ", skip_check=False" if "*" in shown else ", *, skip_check=False"
        dropped = "    kwargs.pop('skip_check', None)\n"
    implied = "".join(f"    _hidden{i} = {e}\n" for i, e in enumerate(hidden))
    arguments = ", ".join([_argument(f) for f in op.public]
                          + [f"_hidden{i}" for i in range(len(hidden))])
    plain = (f"def {name}({shown}):\n{compiled}{_guard(op)}{make.format('self')}{keep}"
             + "".join(_conversion(op, f) for f in op.public) + implied
             + f"    try: r = {native}({arguments})\n"
             + f"    except _HandoverErrors as error: r = _retried('{op.name}', error, {native}, ({arguments},))\n{_noted(op)}{_tail(op)}")
    changes = "".join(f"    kwargs.setdefault('{k}', {v})\n" for k, v in changed)
    called = _in_form(op, f"_observed('{op.name}', args, kwargs)")
    observed = (f"def {name}(*args, **kwargs):\n{changes}{dropped}"
                + (f"    if _is_compiling():\n        _make_custom_op('{op.name}')\n"
                   f"        return {_in_form(op, _named(op, f'_with_defaults(_custom_op_{op.name}, _defaults_{op.name}, {op.rest!r}, args, kwargs)'))}\n" if compiled else "")
                + f"{make.format('args[0]')}{make and '    args[0]._kept = (args[1:], kwargs)' + chr(10)}    return {called}\n")
    return plain, observed
