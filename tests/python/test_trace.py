# SPDX-License-Identifier: Apache-2.0
"""Trace definitions: FlashInfer's stored ones, every exported function, strict mode, the dump of calls, templates, trace_apply."""
import json
import pathlib
import re
import subprocess
import sys

import pytest
import torch

import flashinfer
from conftest import ROOT, environment
from flashinfer import _make, _native, _trace, trace, trace_apply
from flashinfer.api_logging import flashinfer_api
from flashinfer.trace import Const, Scalar, Tensor, TraceTemplate, Var

OPS = _make.package.ops
STORED = [json.loads(line) for line in open(ROOT / "tests/data/upstream_definitions.jsonl")]  # without their free texts
# Files older than the 0.7.2 templates, which ours follow (docs/trace.md).
OLDER = {
    "gelu_and_mul_h16384": "constraints come last",
    "gelu_tanh_and_mul_h16384": "constraints come last",
    "silu_and_mul_h16384": "constraints come last",
    "min_p_sampling_v32000": "indices has no element type",
    "sampling_from_logits_v32000": "indices has no element type",
    "sampling_from_probs_v32000": "indices has no element type",
    "top_k_top_p_sampling_from_logits_v32000": "indices has no element type",
    "trtllm_fp8_per_tensor_scale_routed_moe_topk8_e32_h7168": "no gemm1_clamp_limit, activation_type",
    "trtllm_batch_decode_mla_h128_d_qk576_ckv512_kpe64_nope512_ps64": "three templates are one",
    "xqa_batch_decode_mla_h128_d_qk576_ckv512_kpe64_nope512_ps64": "a cache of rank 3",
    "xqa_mla_h1_ckv128_kpe1_ps64": "other axes",
    "gdn_mtp_qk4_v8_d128": "no replay cache",
    "gdn_prefill_qk4_v8_d128": "arguments that the function does not have: A_log, a, dt_bias, b",
    "merge_state_in_place_h32_d128": "mask has no element type",
    "mla_rope_quantize_fp8_h128_kv64_rope64": "k_rope has heads",
    **{f"moe_fp4_block_scale_{r}": "no per_token_scale, activation_type" for r in (
        "default_routing_topk8_e32_h7168_i2048", "ds_routing_topk8_e32_h7168_i2048_ng8_kg4", "llama4_routing_topk1_e32_h7168_i2048",
        "ds_shared_experts_s1_e33_topk8_h256_i128_act3_ng8_kg4", "renormalize_naive_routing_topk8_e32_h7168_i2048",
        "renormalize_routing_topk8_e32_h7168_i2048", "topk_routing_topk8_e32_h7168_i2048")},
    **{f"moe_fp8_block_scale_{r}": "no gemm1_alpha, gemm1_beta, gemm1_clamp_limit" for r in (
        "default_routing_topk8_e32_h7168_i2048", "llama4_routing_topk1_e32_h7168_i2048", "renormalize_naive_routing_topk8_e32_h7168_i2048",
        "renormalize_routing_topk8_e32_h7168_i2048", "topk_routing_topk8_e32_h7168_i2048",
        "ds_shared_experts_s1_e33_topk8_ng8_kg4_h7168_i2048")},
}


class Fake:
    """What a definition needs of a tensor."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype


def without_texts(d):
    if isinstance(d, dict):
        return {k: without_texts(v) for k, v in d.items() if k not in ("description", "reference", "check", "init")}
    return d


def op_of(api):
    parts = api.split(".")
    return next((OPS[n] for n in (".".join(parts[-2:]), parts[-1]) if n in OPS), None)


def template_of(op, name):
    fitting = [t for t in _trace.templates(op.name) or () if (name + "_").startswith((t.get("name_prefix") or t["op_type"]) + "_")]
    return max(fitting, key=lambda t: len(t.get("name_prefix") or t["op_type"]), default=None)


def arguments(stored, template):
    """Of a call that has this definition: tensors of its shapes, and what the template's condition says."""
    given = {}

    def extent(axis):
        return stored["axes"].get(axis, {}).get("value", int(axis) if axis.isdigit() else 3)

    for key, entry in stored["inputs"].items():
        item = template["inputs"].get(key)
        if item is None:
            continue
        param = item.get("param", key)
        if entry["shape"] is None:
            if "value" in stored["axes"].get(key, {}):
                given[param] = stored["axes"][key]["value"]
        elif entry["dtype"] != "unknown" and not ("optional" in entry and "dtype" in item):
            tensor = Fake([extent(a) for a in entry["shape"]], entry["dtype"])
            if "tuple_idx" in item:
                given[param] = given.get(param, ()) + (tensor,)
            else:
                given[param] = tensor
    for axis, entry in stored["axes"].items():
        if "value" in entry:
            given.setdefault(axis, entry["value"])
    for condition in template.get("when", "").split():
        name, relation, want = re.match(r"(\w+)(!?=)(.*)", condition).groups()
        if want == "given":
            given.setdefault(name, Fake([4], "int32"))
        elif relation == "=" and want != "positive" and not want.startswith("rank"):
            given[name] = int(want) if want.isdigit() else want
    return given


@pytest.mark.parametrize("stored", STORED, ids=lambda d: d["name"])
def test_equals_the_stored_definition(stored):
    op = op_of(stored["tags"][0].removeprefix("fi_api:"))
    if op is None:
        pytest.skip("not a function of this library")
    if stored["name"] in OLDER:
        pytest.skip(OLDER[stored["name"]])
    template = template_of(op, stored["name"])
    assert template, f"{op.name} has no template for {stored['name']}"
    made = without_texts(json.loads(str(_native.function("trace.define")(op.name, _trace.facts(arguments(stored, template)), False, "", None))))
    assert made == stored
    assert list(made) == list(stored) and all(list(made[k]) == list(stored[k]) for k in ("axes", "inputs", "outputs"))


def test_the_ten_of_the_contract_are_compared():
    ten = ("rmsnorm_h7168 fused_add_rmsnorm_h5120 gqa_paged_decode_h32_kv8_d128_ps64 gqa_ragged_h32_kv8_d128 "
           "gqa_paged_prefill_h32_kv8_d128_ps16 mla_paged_decode_h16_ckv512_kpe64_ps64 top_k_top_p_sampling_v128256 gemm_fp8_N1536_K7168 "
           "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048 gdn_decode_qk4_v8_d128").split()
    assert set(ten) <= {d["name"] for d in STORED} and not set(ten) & set(OLDER)


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


CALLS = """
import sys, threading, torch, flashinfer
x = torch.randn(4, 64)
def work(d):
    flashinfer.rmsnorm(torch.randn(2, d), torch.ones(d))
threads = [threading.Thread(target=lambda: [work(16 * i) for i in range(1, 9)]) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
try: flashinfer.rmsnorm(x, torch.ones(63))
except Exception: pass
"""


@pytest.mark.parametrize("value, written", [("", False), ("0", False), ("1", True)])
def test_calls_write_definitions(tmp_path, value, written):
    variables = {"FLASHINFER_TRACE_DUMP_DIR": tmp_path / "out", "FLASHINFER_TRACE_DUMP": value}
    for p in [subprocess.Popen([sys.executable, "-c", CALLS], env=environment("ours", **variables)) for _ in range(1 + written)]:
        assert p.wait() == 0
    files = sorted(p.name for p in (tmp_path / "out").iterdir()) if written else []
    assert files == (sorted(f"rmsnorm_h{16 * i}.json" for i in range(1, 9)) if written else []) and (tmp_path / "out").exists() == written
    for f in files:
        assert json.loads((tmp_path / "out" / f).read_text())["name"] == f[:-5]


def test_a_folder_that_cannot_be_written_warns_once(tmp_path):
    (tmp_path / "file").write_text("")
    code = ("import warnings, torch, flashinfer\nwith warnings.catch_warnings(record=True) as seen:\n    warnings.simplefilter('always')\n"
            "    for d in (16, 32): y = flashinfer.rmsnorm(torch.ones(2, d), torch.ones(d))\nassert y.shape == (2, 32)\nprint(*[w.message for w in seen], sep='\\n')")
    env = environment("ours", FLASHINFER_TRACE_DUMP="1", FLASHINFER_TRACE_DUMP_DIR=tmp_path / "file/below")
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(out) == 1 and out[0].startswith("rmsnorm: no trace definition is written: "), out


def wrapper():
    w = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 20, dtype=torch.uint8), "NHD")
    w.plan(torch.tensor([0, 1, 3], dtype=torch.int32), torch.tensor([2, 0, 1], dtype=torch.int32), torch.tensor([4, 3], dtype=torch.int32), 4, 2,
           64, 4, q_data_type=torch.float32, kv_data_type=torch.float32)
    return w


def executed(text):
    namespace = {}
    exec(compile(text, "<definition>", "exec"), namespace)
    return namespace


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
    assert template.definition_name(value=x) == "my_scaled_d8_groups4"
    monkeypatch.setenv("FLASHINFER_TRACE_DUMP", "1")
    monkeypatch.setenv("FLASHINFER_TRACE_DUMP_DIR", str(tmp_path))
    assert scaled(x) is x and [p.name for p in tmp_path.iterdir()] == ["my_scaled_d8_groups4.json"]
    with pytest.raises(TypeError, match="integer"):
        Const(value=2.0)
    with pytest.raises(TypeError, match="axes"):
        TraceTemplate("a", {"b": 3}, {}, {})


@pytest.fixture
def applied():
    yield
    trace_apply.disable_apply()


def test_trace_apply(applied):
    x, w, seen = torch.randn(2, 48), torch.ones(48), []

    def mine(hidden_states, weight):
        seen.append((hidden_states, weight))
        return flashinfer.rmsnorm(hidden_states, weight) + 1  # the library, not this function again

    plain = flashinfer.rmsnorm(x, w)
    assert trace_apply.enable_apply({"rmsnorm_h48": mine, "fused_add_rmsnorm_h48": lambda hidden_states, residual, weight: (residual, weight[0] + 0 * residual)}) >= 2
    torch.testing.assert_close(flashinfer.rmsnorm(x, weight=w), plain + 1)
    assert len(seen) == 1 and seen[0][1] is w
    out = torch.empty_like(x)
    assert flashinfer.rmsnorm(x, w, out=out) is out
    torch.testing.assert_close(out, plain + 1)
    flashinfer.rmsnorm(torch.ones(2, 64), torch.ones(64))
    residual = torch.full((2, 48), 3.0)
    y = x.clone()
    assert flashinfer.fused_add_rmsnorm(y, residual, w) is None
    assert (y == 3).all() and (residual == 1).all()  # in place, in the order of the definition's outputs
    assert trace_apply.stats() == {"flashinfer.norm.rmsnorm": {"hit": 2, "fallback_no_candidate": 1}, "flashinfer.norm.fused_add_rmsnorm": {"hit": 1}}
    trace_apply.enable_apply({"rmsnorm_h48": lambda **inputs: 1 / 0})
    with pytest.raises(ZeroDivisionError):
        flashinfer.rmsnorm(x, w)
    assert trace_apply.stats_snapshot() == {"flashinfer.norm.rmsnorm": {"error": 1}}
    trace_apply.disable_apply()
    assert not trace_apply.is_enabled() and trace_apply.stats() == {}
    torch.testing.assert_close(flashinfer.rmsnorm(x, w), plain)


def test_solution(applied, cache):
    source = trace.SourceFile("main.py", "def run(hidden_states, weight):\n    return hidden_states * 2\n")
    spec = {"language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::run", "dtypes": ["float32"]}
    solution = trace.Solution("double", "rmsnorm_h32", "me", trace.BuildSpec.from_dict(spec), [source])
    assert trace.Solution.from_dict(json.loads(json.dumps(solution.to_dict()))) == solution and len(solution.hash) == 64
    trace_apply.enable_apply({solution.definition: solution})
    x = torch.randn(2, 32)
    assert torch.equal(flashinfer.rmsnorm(x, torch.ones(32)), x * 2)
    half = flashinfer.rmsnorm(x.half(), torch.ones(32).half())
    assert not torch.equal(half, x.half() * 2)  # not one of its element types
    with pytest.raises(ValueError, match="relative"):
        trace.SourceFile("../main.py", "")
    with pytest.raises(ValueError, match="target_hardware"):
        trace.BuildSpec("python", [], "main.py::run")
    with pytest.raises(ValueError, match="file::symbol"):
        trace.BuildSpec("python", ["cpu"], "main.py")
    with pytest.raises(ValueError, match="not among"):
        trace.Solution("a", "b", "c", trace.BuildSpec("python", ["cpu"], "other.py::run"), [source])


def test_the_committed_definitions_are_current():
    """tests/trace/fi_trace_out, which `python tests/trace/example.py` writes."""
    script = pathlib.Path(ROOT) / "tests/trace/example.py"
    run = subprocess.run([sys.executable, script, "--check"], env=environment("ours"), capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def definition_of(name, axes, dtype="bfloat16", dtypes={}):
    """Of a call with tensors of these extents."""
    template = _trace.templates(name)[-1]
    for t in _trace.templates(name):
        if "_ds_routing" in t.get("name_prefix", "") and "swiglu" not in t["name_prefix"]:
            template = t
    given = {}
    for key, item in template["inputs"].items():
        param = item.get("param", key)
        if item["dims"] is None or item.get("optional"):
            if key in axes:
                given[param] = axes[key]
            continue
        tensor = Fake([axes[a] for a in item["dims"]], dtypes.get(key, item.get("dtype", dtype)))
        given[param] = given.get(param, ()) + (tensor,) if "tuple_idx" in item else tensor
    function = OPS[name]
    made = (getattr(_make.package.exports[function.class_name], function.method) if function.class_name else _make.package.exports[name]).fi_trace(
        **given, **({"routing_method_type": 2} if "routing_method_type" in function.names else {}))
    return made, template


def inputs_of(template, values):
    found = {}
    for key, item in template["inputs"].items():
        value = values.get(item.get("param", key))
        if value is not None:
            found[key] = value[item["tuple_idx"]] if "tuple_idx" in item else value
    return found


FP8 = "float8_e4m3fn"
FUNCTIONS = [
    ("rmsnorm", {"batch_size": 3, "hidden_size": 64}, {}),
    ("gemma_rmsnorm", {"batch_size": 3, "hidden_size": 64}, {}),
    ("fused_add_rmsnorm", {"batch_size": 3, "hidden_size": 64}, {}),
    ("gemma_fused_add_rmsnorm", {"batch_size": 3, "hidden_size": 64}, {}),
    ("silu_and_mul", {"num_tokens": 3, "hidden_size": 64}, {}),
    ("gelu_and_mul", {"num_tokens": 3, "hidden_size": 64}, {}),
    ("gelu_tanh_and_mul", {"num_tokens": 3, "hidden_size": 64}, {}),
    ("merge_state", {"seq_len": 3, "num_heads": 2, "head_dim": 64}, {}),
    ("merge_states", {"seq_len": 3, "num_states": 2, "num_heads": 2, "head_dim": 64}, {}),
    ("mm_bf16", {"M": 3, "N": 32, "K": 64}, {}),
    ("bmm_bf16", {"batch_size": 2, "M": 3, "N": 32, "K": 64}, {}),
    ("mm_fp8", {"M": 3, "N": 64, "K": 256, "block_size": 128, "K_div_block_size": 2}, {"A": FP8, "B": FP8}),
    ("softmax", {"batch_size": 3, "vocab_size": 100}, {"logits": "float32"}),
    ("single_prefill_with_kv_cache", {"qo_len": 3, "kv_len": 5, "num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 64}, {}),
    ("single_decode_with_kv_cache", {"kv_len": 5, "num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 64}, {}),
    ("gated_delta_rule_decode", {"batch_size": 2, "seq_len": 1, "num_q_heads": 2, "num_k_heads": 2, "num_v_heads": 4, "head_size": 128},
     dict.fromkeys(("state", "A_log", "dt_bias"), "float32")),
    ("trtllm_fp8_block_scale_moe", {"seq_len": 3, "num_experts": 16, "top_k": 4, "n_group": 4, "topk_group": 2, "num_local_experts": 8, "hidden_size": 256,
                                    "intermediate_size": 128, "gemm1_out_size": 256, "num_hidden_blocks": 2, "num_intermediate_blocks": 1,
                                    "num_gemm1_out_blocks": 2},
     {"hidden_states": FP8, "gemm1_weights": FP8, "gemm2_weights": FP8, **dict.fromkeys(
         ("routing_logits", "hidden_states_scale", "gemm1_weights_scale", "gemm2_weights_scale"), "float32")}),
]


@pytest.mark.parametrize("name, axes, dtypes", FUNCTIONS, ids=lambda x: x if isinstance(x, str) else "")
def test_texts_of_functions_agree_with_the_function(name, axes, dtypes):
    """init makes arguments; what the function computes of them passes the check against the reference. Each text runs alone."""
    made, template = definition_of(name, axes, dtypes=dtypes)
    init = executed(made["init"])["init"]
    known = init.__kwdefaults__.keys() | set(init.__code__.co_varnames[:init.__code__.co_kwonlyargcount])
    values = init(**{k: v for k, v in axes.items() if k in known}, device="cpu")
    expected = executed(made["reference"])["reference"](**inputs_of(template, values))
    actual = _make.package.exports[name](**values)
    if actual is None:
        actual = tuple(values[p] for p in ("input", "residual"))
    check = executed(made["check"])["check"]
    assert check(expected, actual)
    first = expected[0] if isinstance(expected, tuple) else expected
    assert not check(first, first + 1 + first.abs())


WRAPPERS = [
    ("BatchDecodeWithPagedKVCacheWrapper", {"batch_size": 2, "num_pages": 5, "num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 64, "page_size": 4}, ("NHD",)),
    ("BatchPrefillWithPagedKVCacheWrapper", {"total_q": 5, "num_pages": 5, "num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 64, "page_size": 4,
                                             "len_indptr": 3}, ("NHD",)),
    ("BatchPrefillWithRaggedKVCacheWrapper", {"total_q": 5, "total_kv": 7, "num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 64, "len_indptr": 3}, ("NHD",)),
    ("BatchMLAPagedAttentionWrapper", {"batch_size": 2, "num_pages": 4, "num_qo_heads": 4, "head_dim_ckv": 512, "head_dim_kpe": 64, "page_size": 4}, ()),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name, axes, given", WRAPPERS, ids=lambda x: x if isinstance(x, str) else "")
def test_texts_of_wrappers_agree_with_the_wrapper(name, axes, given):
    made, template = definition_of(name + ".run", axes)
    values = executed(made["init"])["init"](**axes, device="cpu")
    w = _make.package.exports[name](torch.empty(1 << 20, dtype=torch.uint8), *given)
    w.plan(**values["plan"])
    actual = w.run(**values["run"], return_lse=True)
    plan = values["plan"]
    names = {"kv_indptr": ("indptr", "paged_kv_indptr", "kv_indptr"), "kv_indices": ("indices", "paged_kv_indices", "kv_indices"), "qo_indptr": ("qo_indptr",)}
    arrays = {key: next(plan[n] for n in ns if n in plan) for key, ns in names.items() if key in template["inputs"] and any(n in plan for n in ns)}
    expected = executed(made["reference"])["reference"](**inputs_of(template, values["run"]), **arrays)
    assert executed(made["check"])["check"](expected, actual)


def test_workloads_of_a_recording(tmp_path):
    """A data set in flashinfer-bench's layout: valid definitions, workloads with all variable axes, index arrays as they were."""
    code = """
import torch, flashinfer
x, w = torch.randn(4, 64), torch.ones(64)
for rows in (4, 2, 4): flashinfer.rmsnorm(x[:rows].contiguous(), w)
flashinfer.rmsnorm(x.half(), w.half())
d = flashinfer.BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 20, dtype=torch.uint8), "NHD")
d.plan(torch.tensor([0, 1, 3], dtype=torch.int32), torch.tensor([2, 0, 1], dtype=torch.int32), torch.tensor([4, 3], dtype=torch.int32), 4, 2, 64, 4,
       q_data_type=torch.float32, kv_data_type=torch.float32)
d.run(torch.randn(2, 4, 64), (torch.randn(3, 4, 2, 64), torch.randn(3, 4, 2, 64)))
"""
    env = environment("ours", FLASHINFER_LOGLEVEL=10, FLASHINFER_LOGDEST=tmp_path / "log", FLASHINFER_DUMP_DIR=tmp_path / "dumps")
    subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True)
    command = pathlib.Path(env["FLASHINFER_BUILD_DIR"]) / "bin/flashinfer"
    run = subprocess.run([command, "trace", "workloads", "--dir", tmp_path / "dumps", "--out", tmp_path / "set"], capture_output=True, text=True)
    assert run.returncode == 0 and "3 definitions and 4 workloads of 7 calls" in run.stdout, run.stdout + run.stderr
    definitions = {d["name"]: d for d in map(json.loads, (p.read_text() for p in (tmp_path / "set/definitions").rglob("*.json")))}
    assert all(trace.validate(d) == [] for d in definitions.values())
    lines = [json.loads(line) for p in (tmp_path / "set/workloads").rglob("*.jsonl") for line in p.read_text().splitlines()]
    assert len({line["workload"]["uuid"] for line in lines}) == len(lines) == 4
    for line in lines:
        definition = definitions[line["definition"]]
        assert line["workload"]["axes"].keys() == {a for a, e in definition["axes"].items() if e["type"] == "var"}
        assert line["workload"]["inputs"].keys() == definition["inputs"].keys() and line["solution"] is None and line["evaluation"] is None
    decode = next(line["workload"] for line in lines if "decode" in line["definition"])
    assert decode["axes"] == {"batch_size": 2, "num_pages": 3, "len_indptr": 3, "num_kv_indices": 3}
    from safetensors.torch import load_file

    entry = decode["inputs"]["kv_indices"]
    assert load_file(tmp_path / "set" / entry["path"])[entry["tensor_key"]].tolist() == [2, 0, 1]
    valid = subprocess.run([command, "trace", "validate", *(tmp_path / "set/definitions").rglob("*.json")], capture_output=True, text=True)
    assert valid.returncode == 0 and "3 of 3 valid" in valid.stdout
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    assert subprocess.run([command, "trace", "validate", wrong], capture_output=True).returncode == 1
    listed = subprocess.run([command, "trace", "list"], capture_output=True, text=True).stdout
    assert "flashinfer.norm.rmsnorm  rmsnorm_h{hidden_size}\n" in listed
