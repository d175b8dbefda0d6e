# SPDX-License-Identifier: Apache-2.0
"""torch.compile: custom ops made from the schema, their fake implementations, and whole programs in one graph."""
import inspect

import pytest
import torch

import flashinfer
from flashinfer import _make, _native, _op, _torch

# torch cannot compare 8-bit and 4-bit floats, which test_schema does.
CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
FUNCTIONS = [op for op in _make.package.ops.values() if op.is_custom_op]
# The others: test_custom_variants, and test_comm.py with test_comm_moe.py for what needs the other ranks of a group.
IN_CASES = [op for op in FUNCTIONS if not op.rest and op.module != "flashinfer.comm"]


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
        if arguments.get({"mm_bf16": "b", "mm_gguf": "b_blocks"}.get(op.name), torch.empty(0)).dim() == 3:
            continue  # packed weights: the result's shape is inside them (test_packed_weights)
        found.append((sum(t.numel() for t in _torch._tensors(arguments.values())), arguments))
    small = [arguments for elements, arguments in found if elements <= 200_000]
    if not small and found:  # ops of one fixed shape
        return [min(found, key=lambda f: f[0])[1]]
    step = max(1, len(small) // most)
    return small[::step][:most]


def seeded(op, arguments):
    """Random ops draw from a seed, so that two runs can be compared."""
    names = {f["name"] for f in op.public}
    if "seed" in names and arguments.get("seed") is None:
        arguments = {**arguments, "seed": 11, "offset": 0}
        arguments.pop("generator", None)
    return arguments


def with_outputs(op, arguments):
    """Outputs that the function does not make itself."""
    required = [f["name"] for f in op.public if f["role"] == "out" and f.get("required") and arguments.get(f["name"]) is None]
    if not required:
        return arguments
    types = {name: rest for name, *rest in _torch.inferred(op, {**{f["name"]: default(op, f) for f in op.public}, **arguments})}
    return {**arguments, **{name: _torch.empty("cpu", *types[name]).view(torch.uint8).zero_().view(getattr(torch, types[name][0]))
                            for name in required}}


def requested(op, arguments, output):
    """Whether the call asks for a conditional output by its argument `return_<output>`."""
    field = next((f for f in op.public if f["name"] == "return_" + output), None)
    return field is not None and arguments.get(field["name"], default(op, field))


@pytest.mark.parametrize("op", IN_CASES, ids=lambda op: op.name)
def test_opcheck(op):
    """Every function op, functional and (with its outputs passed) mutating."""
    tried = 0
    for row, arguments in enumerate(cases(op)):
        arguments = with_outputs(op, seeded(op, arguments))
        glue = _torch.custom_op(_make.package, op.name)
        outputs = [f["name"] for f in op.returned if f["role"] == "out"]
        needed = tuple(f["name"] for f in op.returned if f["role"] == "out" and "required" in f)
        arguments = {k: v for k, v in arguments.items() if k not in outputs or k in needed}
        result = getattr(flashinfer, op.name)(**clone(arguments))
        results = result if isinstance(result, (tuple, list)) else (result,)
        if any(t.is_floating_point() and t.element_size() > 1 and t.isnan().any() for t in _torch._tensors(results)):
            continue  # torch compares results, and NaN is not NaN
        given = dict(zip([f["name"] for f in op.returned], results))
        for chosen in dict.fromkeys((needed, tuple(outputs))):
            if chosen and not set(chosen) <= set(given):
                continue
            bound = {**clone(arguments), **{n: torch.zeros_like(given[n]) for n in chosen}}
            wanted = tuple(f["name"] for f in op.returned if requested(op, arguments, f["name"]))
            variant = glue.variants[chosen, wanted]
            packed = variant.pack(*[bound.get(f["name"], default(op, f)) for f in op.public])
            narrow = any("float8" in str(t.dtype) or "float4" in str(t.dtype) for t in _torch._tensors([*packed, *results]))
            torch.library.opcheck(variant.torch_op, packed, test_utils=CHECKS[narrow:] if row == 0 else ("test_faketensor",))
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


def test_a_default_dtype_made_before_torch_came():
    default, = (f for f in _make.package.ops["mm_bf16"].public if f["name"] == "out_dtype")
    packed = _torch._packed(default)
    assert packed == ["_torch_dtype(out_dtype)"]
    for value in ("torch.bfloat16", "bfloat16", _op.Literal("torch.bfloat16"), torch.bfloat16):
        assert _torch.torch_dtype(value) is torch.bfloat16


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


def test_every_function_is_a_custom_op_but_those_that_cannot_be():
    others = {op.name for op in _make.package.ops.values() if not op.class_name} - {op.name for op in FUNCTIONS}
    pairs = {"cudnn_batch_prefill_with_kv_cache", "top_k_varlen"}  # their second result may be None
    workspaces = {"allreduce_fusion", "all_gather", "reduce_scatter", "mixed_comm_into", "ulysses_scatter_heads", "ulysses_gather_heads", "quantized_all_reduce_into"}
    assert others == {"fast_decode_plan"} | workspaces | pairs  # the first changes an object, the second take one


@pytest.mark.parametrize("pool", (False, True))
@pytest.mark.parametrize("passed", (False, True))
def test_states_that_are_updated_in_place_are_returned(pool, passed):
    torch.manual_seed(0)
    draw = lambda *shape: torch.randn(2, 1, *shape).bfloat16()
    q, k, v, a, b = draw(2, 64), draw(2, 64), draw(4, 64), draw(4), draw(4)
    out, indices = (torch.empty(2, 1, 4, 64).bfloat16() if passed else None), torch.tensor([2, 0])

    def program(states):
        given = dict(initial_state=states, initial_state_indices=indices) if pool else {}
        result, new = flashinfer.gdn_decode.gated_delta_rule_decode_pretranspose(q, k, v, None if pool else states, torch.zeros(4), a, torch.zeros(4), b,
                                                                                 output=out, **given)
        return result, new, new + 1

    states = torch.randn(3 if pool else 2, 4, 64, 64)
    before, eager = states.clone(), states.clone()
    expected = [x.clone() for x in program(eager)]
    got = torch.compile(program, fullgraph=True, backend="aot_eager")(states)
    assert got[1] is states and (got[0] is out) == passed and not torch.equal(states, before)
    for x, y in zip(got, expected):
        torch.testing.assert_close(x, y, rtol=0, atol=0)


@pytest.mark.parametrize("both", [False, True])
def test_an_op_that_writes_an_argument_and_returns_two_or_three_tensors(both):
    torch.manual_seed(0)
    x, residual, w = torch.randn(5, 64).bfloat16(), torch.randn(5, 64).bfloat16(), torch.rand(64).bfloat16()

    def program(x, residual):
        results = flashinfer.add_rmsnorm_fp4quant(x, residual, w, output_both_sf_layouts=both)
        return *results, residual + 1

    expected = program(x, residual.clone())
    got = torch.compile(program, fullgraph=True, backend="aot_eager")(x, residual.clone())
    assert len(got) == len(expected) == (4 if both else 3)
    for a, b in zip(got, expected):
        assert a.shape == b.shape and a.dtype == b.dtype
        torch.testing.assert_close(a.view(torch.uint8), b.view(torch.uint8), rtol=0, atol=0)


def test_packed_weights():
    """The extent that only the packed bytes hold is a symbol of the graph."""
    a, packed = torch.randn(3, 40).bfloat16(), flashinfer.prepare_mm_weights(torch.randn(40, 21).bfloat16())
    expected, out = flashinfer.mm_bf16(a, packed).float() * 2, torch.zeros(3, 21).bfloat16()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        f = torch.compile(lambda a, packed: flashinfer.mm_bf16(a, packed).float() * 2, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(f(a, packed), expected)
    f = torch.compile(lambda a, packed: flashinfer.mm_bf16(a, packed, out=out).float() * 2, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(f(a, packed), expected)


def test_results_with_a_form():
    cache = torch.randn(2, 1, 8, 64).bfloat16()
    (k, v), (k_sf, v_sf), k_scale, v_scale = flashinfer.nvfp4_quantize_paged_kv_cache(cache, cache * 2)
    assert isinstance(k_scale, float) and v_scale == 2 * k_scale and k.shape == v.shape == (2, 1, 8, 32) and k_sf.shape == (2, 1, 8, 4)
    f = torch.compile(lambda k, v: flashinfer.nvfp4_quantize_paged_kv_cache(k, v), fullgraph=True, backend="aot_eager")
    (k2, v2), (k_sf2, v_sf2), k_scale2, v_scale2 = f(cache, cache * 2)  # numbers are tensors of no dimension in a graph
    assert torch.equal(k, k2) and torch.equal(v, v2) and float(k_scale2) == k_scale and float(v_scale2) == v_scale
    assert torch.equal(k_sf.view(torch.uint8), k_sf2.view(torch.uint8)) and torch.equal(v_sf.view(torch.uint8), v_sf2.view(torch.uint8))


@pytest.mark.parametrize("form", ["none", "left out", "recipe", "number"])
def test_recipes_of_scales(form):
    x, gs = torch.randn(4, 64).bfloat16() * 3, torch.tensor([300.0])
    arguments = {"none": {"nvfp4_4over6": None}, "left out": {}, "recipe": {"nvfp4_4over6": flashinfer.NVFP44Over6Config(448, "MSE")}, "number": {"nvfp4_4over6": 5}}[form]
    plain, expected = flashinfer.fp4_quantize(x, gs, nvfp4_4over6=None), flashinfer.fp4_quantize(x, gs, **arguments)
    assert torch.equal(plain[1], expected[1]) == (form in ("none", "left out"))
    got = torch.compile(lambda x, gs: flashinfer.fp4_quantize(x, gs, **arguments), fullgraph=True, backend="aot_eager")(x, gs)
    assert all(torch.equal(a, b) for a, b in zip(got, expected))


def test_custom_variants():
    """`*args` of tensors and numbers, and a description of the kernel as plain data."""
    from flashinfer import jit

    source = """
struct BiasFromPython : AttentionVariantBase {
  template <class Params>
  __device__ __host__ BiasFromPython(const Params& params, uint32_t batch_idx, uint8_t*) : AttentionVariantBase(params, batch_idx) {}
  REGISTER_LOGITS_TRANSFORM(params, logits, batch_idx, qo_idx, kv_idx, qo_head_idx, kv_head_idx, {
    return logits + params.bias[qo_head_idx] * params.factor * kv_idx;
  })
};"""
    spec = jit.gen_customize_single_decode_module("bias_from_python", *[torch.float32] * 3, 64, 64, ["bias"], ["float"], ["factor"],
                                                  ["double"], "BiasFromPython", source)
    module = spec.build_and_load()
    q, k, v, bias = torch.randn(2, 64), torch.randn(9, 2, 64), torch.randn(9, 2, 64), torch.randn(2)

    def program(q, bias):
        o, lse = flashinfer.single_decode_with_kv_cache_with_jit_module(module, q * 2, k, v, bias, 0.5, return_lse=True)
        return o + 1, lse

    expected = program(q, bias)
    for ours, theirs in zip(torch.compile(program, fullgraph=True, backend="aot_eager")(q, bias), expected):
        torch.testing.assert_close(ours, theirs)
    other = torch.compile(lambda q: flashinfer.single_decode_with_kv_cache_with_jit_module(module, q, k, v, bias, 0.25), fullgraph=True,
                          backend="aot_eager")(q)
    torch.testing.assert_close(other, flashinfer.single_decode_with_kv_cache_with_jit_module(module, q, k, v, bias, 0.25))
    variant = flashinfer.decode._custom_op_single_decode_with_kv_cache_with_jit_module.variants[(), ("lse",)]
    torch.library.opcheck(variant.torch_op, variant.pack(module, q, k, v, (bias, 0.5), "NHD", -1, True), test_utils=CHECKS)


def test_a_plan_breaks_the_graph():
    """fast_decode_plan changes an object, as plan() does."""
    w = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(0, dtype=torch.uint8))
    index = [torch.tensor(v, dtype=torch.int32) for v in ([0, 2], [2, 0], [3])]
    w.plan(*index, 4, 2, 64, 4, q_data_type=torch.float32)
    q, pool = torch.randn(1, 4, 64), torch.randn(3, 2, 4, 2, 64)

    def program(q):
        flashinfer.fast_decode_plan(w, *index, 4, 2, 64, 4, q_data_type=torch.float32)
        return w.run(q * 2, pool) + 1

    torch.testing.assert_close(torch.compile(program, backend="aot_eager")(q), program(q))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="fast_decode_plan"):
        torch.compile(program, backend="aot_eager", fullgraph=True)(q)


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
