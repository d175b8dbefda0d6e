# SPDX-License-Identifier: Apache-2.0
"""torch.compile: custom ops made from the schema, their fake implementations, and whole programs in one graph."""
import inspect

import pytest
import torch

import flashinfer
from flashinfer import _make, _native, _torch

# torch cannot compare 8-bit floats, which test_schema does.
CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
FUNCTIONS = [op for op in _make.package.ops.values() if op.is_custom_op]


def to_torch(value):
    if isinstance(value, str):
        return str(value)
    if type(value).__module__.startswith("tvm_ffi"):
        if hasattr(value, "shape"):
            return torch.from_dlpack(value)
        if hasattr(value, "__len__"):
            return tuple(map(to_torch, value))
    return value


def case_arguments(op, number):
    """The arguments of a row of the op's case table by name; None: no such row, or one that the public function does not take."""
    flat = _native.function("python.case_arguments")(op.name, number)
    if flat is None:
        return None
    flat = list(flat)
    arguments = {f["name"]: None for f in op.public if f.get("required")}
    arguments.update({str(k): to_torch(v) for k, v in zip(flat[::2], flat[1::2])})
    kinds = {f["name"]: f["type"] for f in op.fields}
    for name, kind in kinds.items():
        if name in arguments and kind == "dtype":
            arguments[name] = getattr(torch, str(arguments[name]))
        if name in arguments and kind == "Generator":
            arguments[name] = torch.Generator().manual_seed(7)
    return arguments


def cases(op, most=2):
    """Some small cases of the op."""
    found = []
    for number in range(64):
        arguments = case_arguments(op, number)
        if arguments is None:
            continue
        if op.name == "mm_bf16" and arguments["b"].dim() == 3:
            continue  # packed weights: the result's shape is inside them, so only `out=` can be traced
        if sum(t.numel() for t in _torch._tensors(arguments.values())) <= 200_000:
            found.append(arguments)
    step = max(1, len(found) // most)
    return found[::step][:most]


def seeded(op, arguments):
    """Random ops draw from a seed, so that two runs can be compared."""
    names = {f["name"] for f in op.public}
    if "seed" in names and arguments.get("seed") is None:
        arguments = {**arguments, "seed": 11, "offset": 0}
        arguments.pop("generator", None)
    return arguments


@pytest.mark.parametrize("op", FUNCTIONS, ids=lambda op: op.name)
def test_opcheck(op):
    """Every function op, functional and (with its outputs passed) mutating."""
    tried = 0
    for arguments in cases(op):
        arguments = seeded(op, arguments)
        glue = _torch.custom_op(_make.package, op.name)
        outputs = [f["name"] for f in op.returned if f["role"] == "out"]
        arguments = {k: v for k, v in arguments.items() if k not in outputs}
        result = getattr(flashinfer, op.name)(**clone(arguments))
        results = result if isinstance(result, tuple) else (result,)
        given = dict(zip([f["name"] for f in op.returned], results))
        for chosen in ((), tuple(outputs)):
            if chosen and not set(chosen) <= set(given):
                continue
            bound = {**clone(arguments), **{n: torch.zeros_like(given[n]) for n in chosen}}
            wanted = tuple(f["name"] for f in op.returned if arguments.get("return_" + f["name"]))
            variant = glue.variants[chosen, wanted]
            packed = variant.pack(*[bound.get(f["name"], default(op, f)) for f in op.public])
            fp8 = any("float8" in str(t.dtype) for t in _torch._tensors([*packed, *results]))
            torch.library.opcheck(variant.torch_op, packed, test_utils=CHECKS[fp8:])
            tried += 1
            if not outputs:
                break
    assert tried, f"no case of {op.name} is small enough"


def clone(value):
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(value) if value.numel() else value.clone()
    if isinstance(value, (tuple, list)):
        return type(value)(map(clone, value))
    if isinstance(value, dict):
        return {k: clone(v) for k, v in value.items()}
    return value


def default(op, field):
    value = inspect.signature(getattr(flashinfer, op.name)).parameters[field["name"]].default
    return None if value is inspect.Parameter.empty else value


def test_a_program_in_one_graph():
    torch.manual_seed(0)
    x, w, residual = torch.randn(6, 64), torch.randn(64), torch.randn(6, 64)
    k, v = torch.randn(9, 2, 64), torch.randn(9, 2, 64)

    def program(x, w, residual):
        y = flashinfer.rmsnorm(x * 2, w, eps=1e-5)
        r = residual + 1
        flashinfer.fused_add_rmsnorm(y, r, w)
        out = torch.empty_like(y)
        same = flashinfer.rmsnorm(y, w, out=out)
        o, lse = flashinfer.single_prefill_with_kv_cache(out.view(6, 1, 64).expand(6, 4, 64).contiguous(), k, v, causal=True,
                                                         return_lse=True)
        return y, r, same + 1, o, lse, flashinfer.silu_and_mul(torch.cat([y, r], -1))

    expected = program(x, w, residual)
    for backend in ("eager", "aot_eager"):
        got = torch.compile(program, fullgraph=True, backend=backend)(x, w, residual)
        for a, b in zip(got, expected):
            torch.testing.assert_close(a, b)


def test_compiled_with_inductor():
    x, w = torch.randn(4, 32), torch.randn(32)

    def program(x):
        return flashinfer.rmsnorm(x + 1, w).sin()

    torch.testing.assert_close(torch.compile(program, fullgraph=True)(x), program(x))


def test_dynamic_shapes_make_one_graph():
    from torch._dynamo.testing import CompileCounterWithBackend

    counter = CompileCounterWithBackend("aot_eager")
    w = torch.randn(32)
    f = torch.compile(lambda x: flashinfer.rmsnorm(x, w) + 1, fullgraph=True, dynamic=True, backend=counter)
    graphs = []
    for rows in (3, 5, 9):
        x = torch.randn(rows, 32)
        torch.testing.assert_close(f(x), flashinfer.rmsnorm(x, w) + 1)
        graphs.append(counter.frame_count)  # tracing may start over, but only for the first shape
    assert graphs[0] == graphs[-1]


def test_given_output_is_written_and_returned():
    x, w, out = torch.randn(3, 16), torch.randn(16), torch.zeros(3, 16)
    f = torch.compile(lambda x, out: flashinfer.rmsnorm(x, w, out=out), fullgraph=True, backend="aot_eager")
    y = f(x, out)
    torch.testing.assert_close(out, flashinfer.rmsnorm(x, w))
    torch.testing.assert_close(y, out)


def test_errors_come_while_tracing():
    f = torch.compile(lambda x, w: flashinfer.rmsnorm(x, w), fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match=r"weight.shape\[0\] is 3, but d is 16"):
        f(torch.randn(2, 16), torch.randn(3))


def test_every_function_is_a_custom_op_but_those_that_take_an_object():
    others = {op.name for op in _make.package.ops.values() if not op.class_name} - {op.name for op in FUNCTIONS}
    assert others == {"fast_decode_plan", "single_decode_with_kv_cache_with_jit_module", "single_prefill_with_kv_cache_with_jit_module"}


def test_objects_are_called_between_graphs():
    pool, q = torch.randn(3, 2, 4, 2, 64), torch.randn(1, 4, 64)
    w = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8))
    index = [torch.tensor(v, dtype=torch.int32) for v in ([0, 2], [2, 0], [3])]
    w.plan(*index, 4, 2, 64, 4, q_data_type=torch.float32)
    f = torch.compile(lambda q: w.run(q * 2, pool) + 1, backend="aot_eager")
    torch.testing.assert_close(f(q), w.run(q * 2, pool) + 1)


def test_eager_calls_do_not_go_through_the_dispatcher():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x, w = torch.randn(2, 16), torch.randn(16)
    with Watch():
        flashinfer.rmsnorm(x, w)
    assert not seen
