# SPDX-License-Identifier: Apache-2.0
"""Templates: every exported function has one; fi_trace, strict mode, and templates of functions of the user."""
import inspect
import json
import warnings

import pytest
import torch

import flashinfer
from definitions import OPS, Fake, executed
from flashinfer import _make, _native, _trace, trace
from flashinfer.api_logging import flashinfer_api
from flashinfer.trace import Const, Scalar, Tensor, TraceTemplate, Var


def returns_nothing(op):
    """A method without results (a constructor, a plan) and one that returns sizes have no definition."""
    return op.class_name and not any(f["type"] == "Tensor" for f in op.returned) or op.method == "workspace_size"


def test_every_function_has_a_definition():
    """A family's trace.cc has an entry for each of its functions and methods (op/trace.h)."""
    missing = [name for name, op in OPS.items() if not returns_nothing(op) and _trace.templates(name) is None]
    assert not missing, f"no entry in flashinfer/ops/<family>/trace.cc: {', '.join(missing)}"


def test_templates_name_arguments():
    """Each input and output is an argument, or set by a plan; each constant axis has a source; names of templates differ."""
    for name, op in OPS.items():
        names = {f["name"] for f in op.fields}
        for t in _trace.templates(name) or ():
            sources = {a for item in t["inputs"].values() for a in item["dims"] or ()} | set(t["inputs"]) | names
            open_shape = any("any_shape" in item for item in t["inputs"].values())
            for axis, a in t["axes"].items():
                assert a["type"] == "var" or "value" in a or axis in sources or open_shape, (name, axis)
            for key, item in t["inputs"].items():
                assert item.get("param", key) in names or item.get("optional") or not item["dims"], (name, key)


def test_fi_trace_writes_where_it_is_told(tmp_path, monkeypatch):
    monkeypatch.delenv("FLASHINFER_TRACE_DUMP_DIR", raising=False)
    x, w = torch.empty(3, 64, device="meta", dtype=torch.bfloat16), torch.empty(64, device="meta", dtype=torch.bfloat16)
    made = flashinfer.norm.rmsnorm.fi_trace(input=x, weight=w)
    assert made["name"] == "rmsnorm_h64" and made["inputs"]["hidden_states"]["dtype"] == "bfloat16"
    assert list(made) == "name description op_type tags axes inputs outputs reference check init".split()
    assert flashinfer.fi_trace(flashinfer.rmsnorm, tmp_path / "a", input=x, weight=w) == made
    text = (tmp_path / "a/rmsnorm_h64.json").read_text()
    assert json.loads(text) == made and text == json.dumps(made, indent=2)
    flashinfer.rmsnorm.fi_trace(save_dir=tmp_path / "a", name="mine", input=x, weight=w)
    assert json.loads((tmp_path / "a/mine.json").read_text())["name"] == "mine"
    with pytest.raises(ValueError, match="no trace template"):
        flashinfer.fi_trace(len)
    assert flashinfer.fused_moe.trtllm_fp8_block_scale_moe.fi_trace(routing_method_type=6) == {}  # a dispatcher's None


def test_layouts_name_the_same_axes():
    """HND caches and one combined tensor have the same page size and heads as an NHD pair."""
    run = flashinfer.BatchDecodeWithPagedKVCacheWrapper.run.fi_trace
    q, nhd, hnd = Fake((2, 32, 128), "bfloat16"), Fake((9, 16, 8, 128), "bfloat16"), Fake((9, 8, 16, 128), "bfloat16")
    name = "gqa_paged_decode_h32_kv8_d128_ps16"
    assert run(q=q, paged_kv_cache=(nhd, nhd))["name"] == name
    made = run(q=q, paged_kv_cache=(hnd, hnd), kv_layout="HND")
    assert made["name"] == name and made["inputs"]["k_cache"]["shape"] == ["num_pages", "num_kv_heads", "page_size", "head_dim"]
    assert run(q=q, paged_kv_cache=Fake((9, 2, 16, 8, 128), "bfloat16"))["name"] == name
    assert run(q=q, paged_kv_cache=Fake((9, 2, 16, 8, 128), "bfloat16"))["inputs"]["v_cache"]["dtype"] == "bfloat16"


def wrapper():
    w = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 20, dtype=torch.uint8), "NHD")
    w.plan(torch.tensor([0, 1, 3], dtype=torch.int32), torch.tensor([2, 0, 1], dtype=torch.int32), torch.tensor([4, 3], dtype=torch.int32), 4, 2,
           64, 4, q_data_type=torch.float32, kv_data_type=torch.float32)
    return w


def test_strict_decode_runs():
    """The reference of a strict definition, with the arrays of the plan, computes what the call computes."""
    w = wrapper()
    q, cache = torch.randn(2, 4, 64), (torch.randn(3, 4, 2, 64), torch.randn(3, 4, 2, 64))
    made = flashinfer.fi_trace(w.run, strict=True, q=q, paged_kv_cache=cache)
    assert trace.validate(made) == [] and made["inputs"]["kv_indptr"]["dtype"] == "int32"
    inputs = {"q": q, "k_cache": cache[0], "v_cache": cache[1], "kv_indptr": torch.tensor([0, 1, 3]), "kv_indices": torch.tensor([2, 0, 1]),
              "kv_len": torch.tensor([4, 7]), "sm_scale": 0.125}
    output = executed(made["reference"])["run"](*[inputs[k] for k in made["inputs"]])
    torch.testing.assert_close(output[0], w.run(q, cache), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(output[1], w.run(q, cache, return_lse=True)[1], rtol=1e-5, atol=1e-5)


def test_shares_of_a_context_are_defined():
    """A rank's share has definitions of its own, whose strict references compute what the call computes."""
    torch.manual_seed(0)
    cache, latent = torch.randn(6, 2, 2, 16, 64).bfloat16(), torch.randn(6, 1, 16, 192).bfloat16()
    share = dict(workspace_buffer=torch.zeros(0, dtype=torch.uint8), block_tables=torch.arange(6).int().view(2, 3), seq_lens=torch.tensor([40, 9]).int(), max_seq_len=48,
                 bmm1_scale=0.125, bmm2_scale=1.0, cp_world=2, cp_rank=1, causal_seqlens_kv_global=torch.tensor([79, 17]).int(), return_lse=True)
    dense, mla = flashinfer.decode.trtllm_batch_decode_with_kv_cache, flashinfer.mla.trtllm_batch_decode_with_kv_cache_mla
    for function, name, more in (
            (dense, "trtllm_batch_decode_dcp_spec_h4_kv2_d64_ps16", dict(query=torch.randn(2, 4, 64).bfloat16(), kv_cache=cache)),
            (dense, "trtllm_batch_decode_dcp_spec_split_kv_h4_kv2_d64_ps16", dict(query=torch.randn(2, 4, 64).bfloat16(), kv_cache=(cache[:, 0], cache[:, 1]))),
            (mla, "trtllm_batch_decode_mla_dcp_h4_d_qk192_ckv128_kpe64_nope64_ps16",
             dict(query=torch.randn(2, 1, 4, 192).bfloat16(), kv_cache=latent, qk_nope_head_dim=64, kv_lora_rank=128, qk_rope_head_dim=64, enable_dcp=True))):
        given = share | more
        assert function.fi_trace(**given)["name"] == name
        made = function.fi_trace(strict=True, **given)
        pair = dict(zip(("k_cache", "v_cache"), given["kv_cache"])) if isinstance(given["kv_cache"], tuple) else {}
        results = executed(made["reference"])["run"](**{key: (pair | given).get(key) for key in made["inputs"]})
        for ours, wanted in zip(results, function(**given), strict=True):
            assert torch.equal(ours, wanted)
        assert "dcp" not in function.fi_trace(**{k: v for k, v in given.items() if k not in ("enable_dcp", "cp_world", "cp_rank", "causal_seqlens_kv_global")})["name"]


def test_strict_definitions_are_valid():
    """Of every function, with the arguments of its first case."""
    wrong = {}
    for name, op in OPS.items():
        if op.class_name or not _trace.templates(name) or name == "pad_indptr_to_multiple_of_4":
            continue  # the content of its array tells its results' extent
        case = _native.function("python.case_arguments")(name, 0)
        if case is None:
            continue  # arguments that Python cannot pass
        case = list(case)
        made = _make.package.exports[name].fi_trace(strict=True, **{str(k): v for k, v in zip(case[::2], case[1::2])})
        if made and trace.validate(made):
            wrong[name] = trace.validate(made)
    assert not wrong
    broken = flashinfer.rmsnorm.fi_trace(strict=True, input=torch.ones(2, 4), weight=torch.ones(4))
    assert trace.validate(broken) == []
    broken["inputs"]["weight"]["dtype"] = "uint8"
    broken["outputs"]["weight"] = {"shape": ["nowhere"], "dtype": "float32"}
    broken["axes"]["lost"] = {"type": "var"}
    broken["axes"]["hidden_size"].pop("value")
    broken["reference"] = "def other(: pass"
    assert len(trace.validate(broken)) == 7, trace.validate(broken)


def test_strict_run_has_the_tensors_that_a_template_omits():
    """FlashInfer's template of mm_fp4 has no alpha, without which the function computes something else."""
    case = list(_native.function("python.case_arguments")("mm_fp4", 0))
    given = {str(k): v for k, v in zip(case[::2], case[1::2])}
    made = flashinfer.mm_fp4.fi_trace(strict=True, **given)
    assert trace.validate(made) == [] and made["inputs"]["alpha"]["description"] == "Not in FlashInfer's template."
    assert "alpha" not in flashinfer.mm_fp4.fi_trace(**given)["inputs"]
    params = {k: i.get("param", k) for t in _trace.templates("mm_fp4") for k, i in t["inputs"].items()}
    defaults = {name: p.default for name, p in inspect.signature(flashinfer.mm_fp4).parameters.items()}
    got = executed(made["reference"])["run"](*[(defaults | given)[params.get(k, k)] for k in made["inputs"]])
    assert torch.equal(torch.from_dlpack(got), torch.from_dlpack(flashinfer.mm_fp4(**given)))


def test_user_template(tmp_path, monkeypatch):
    def twice(x):
        return 2 * x

    template = TraceTemplate(
        "scaled", {"rows": Var("rows"), "d": Const("columns", abbrev="d"), "groups": Const(value=4), "k": Const(abbrev="")},
        {"x": Tensor(["rows", "d"], param="value"), "s": Scalar("float32", optional=True), "k": Scalar("int32")},
        {"y": Tensor(["rows", "d"], dtype_from="x"), "z": Tensor(["rows"], dtype="int64")}, name_prefix="my_scaled", reference=twice,
        constraints=["rows > 0"], tags=["status:mine"], description="Scales.")

    @flashinfer_api(trace=template)
    def scaled(value, k=2, s=None):
        return value

    x = torch.ones(3, 8, dtype=torch.float16)
    made = scaled.fi_trace(value=x, k=7)
    assert made["name"] == "my_scaled_d8_groups4" and made["axes"]["k"] == {"type": "const", "value": 7}
    assert made["tags"] == [f"fi_api:{__name__}.test_user_template.<locals>.scaled", "status:mine"] and made["constraints"] == ["rows > 0"]
    assert made["outputs"] == {"y": {"shape": ["rows", "d"], "dtype": "float16"}, "z": {"shape": ["rows"], "dtype": "int64"}}
    assert executed(made["reference"])["twice"](3) == 6
    assert executed(made["check"])["check"](x, x + 1e-4) and not executed(made["check"])["check"](x, x + 1)
    alone = TraceTemplate("scaled", {"rows": Var(), "d": Const()}, {"x": Tensor(["rows", "d"])}, {"y": Tensor(["rows", "d"])}, reference=twice)
    strict = alone.build_fi_trace_fn("mine.scaled")(x=x, strict=True)  # its run calls the reference, whatever the name of that is
    assert trace.validate(strict) == [] and torch.equal(executed(strict["reference"])["run"](x), 2 * x)
    extents = {name: axis.get("value") for name, axis in made["axes"].items()}
    assert template.definition_name(extents) == made["name"] and template.definition_name({"rows": 3}) == "my_scaled"
    monkeypatch.setenv("FLASHINFER_TRACE_DUMP", "1")
    monkeypatch.setenv("FLASHINFER_TRACE_DUMP_DIR", str(tmp_path))
    assert scaled(x) is x and [p.name for p in tmp_path.iterdir()] == ["my_scaled_d8_groups4.json"]
    with pytest.raises(TypeError, match="integer"):
        Const(value=2.0)
    with pytest.raises(TypeError, match="axes"):
        TraceTemplate("a", {"b": 3}, {}, {})


@pytest.mark.parametrize("backend", ["cudnn", "cute-dsl", "cute-dsl-native"])
def test_packed_weights_have_the_extents_of_the_product(backend):
    a, b, scales = torch.ones(4, 128).bfloat16(), torch.zeros(256, 64, dtype=torch.uint8), torch.zeros(256, 8, dtype=torch.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # back ends of GPUs
        b, scales, _ = flashinfer.prepare_bf16_fp4_weights(b, scales, backend=backend)
        assert flashinfer.mm_bf16_fp4(a, b, scales, backend=backend).shape == (4, 256)
    made = flashinfer.mm_bf16_fp4.fi_trace(a=a, b=b, b_descale=scales, backend=backend, block_size=16)
    assert made["name"] == "mm_bf16_fp4_cudnn_N256_K128_block_size16" and made["outputs"]["C"]["shape"] == ["M", "N"]


def test_other_packed_weights_have_definitions_of_their_own():
    a, def_of = torch.empty(4, 128, device="meta", dtype=torch.bfloat16), lambda b, s: flashinfer.mm_bf16_fp4.fi_trace(
        a=a, b=b, b_descale=s, backend="cute-dsl", block_size=16)["name"]
    ints, tiles = torch.empty(8, 512, device="meta", dtype=torch.int32), torch.empty(8, 256, device="meta", dtype=torch.uint8)
    assert def_of(ints, tiles) == "mm_bf16_fp4_cute_dsl_N256_K128_block_size16"
    codes, blocks = torch.empty(256, 64, device="meta", dtype=torch.uint8), torch.empty(32, 4, 2, 4, 2, 1, device="meta", dtype=torch.uint8)
    assert def_of(codes, blocks) == "mm_bf16_fp4_cute_dsl_sm100_N256_K128_block_size16"
