# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's stored definitions: ours are equal in every field but the free texts, or differ as the lists here say."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import ROOT, environment
from definitions import OPS, Fake
from flashinfer import _native, _trace

STORED = [json.loads(line) for line in open(ROOT / "tests/data/upstream_definitions.jsonl")]  # without their free texts
# Files whose function or form is not here: KDA's wrapper is Python, and one template of MLA's decode is three here.
ABSENT = {"recurrent_kda_q8_v16_d128", "trtllm_batch_decode_mla_h128_d_qk576_ckv512_kpe64_nope512_ps64"}
_INDICES = ("indices has no element type", {"inputs.indices.dtype"})
_LAST = ("constraints come last", {"order"})
_MOE_FP8 = ("before gemm1_alpha, gemm1_beta, gemm1_clamp_limit", {"inputs.gemm1_alpha", "inputs.gemm1_beta", "inputs.gemm1_clamp_limit"})
_MOE_FP4 = ("before per_token_scale, activation_type", {"axes.activation_type", "inputs.activation_type", "inputs.per_token_scale"})
_REPLAY = ("replayssm_beta", "replayssm_g", "replayssm_rawk", "replayssm_rawv")
# Files older than the 0.7.2 templates, which ours follow, or that know less (docs/trace.md): why, and what differs.
OLDER = {
    **dict.fromkeys(("gelu_and_mul_h16384", "gelu_tanh_and_mul_h16384", "silu_and_mul_h16384"), _LAST),
    **dict.fromkeys(("min_p_sampling_v32000", "sampling_from_logits_v32000", "sampling_from_probs_v32000",
                     "top_k_top_p_sampling_from_logits_v32000"), _INDICES),
    **{f"moe_fp8_block_scale_{r}_routing_{'topk1' if r == 'llama4' else 'topk8'}_e32_h7168_i2048": _MOE_FP8
       for r in ("default", "llama4", "renormalize_naive", "renormalize", "topk")},
    **{f"moe_fp4_block_scale_{r}_routing_{'topk1' if r == 'llama4' else 'topk8'}_e32_h7168_i2048": _MOE_FP4
       for r in ("default", "llama4", "renormalize_naive", "renormalize", "topk")},
    "moe_fp4_block_scale_ds_routing_topk8_e32_h7168_i2048_ng8_kg4": (
        "before per_token_scale; activation_type is in the name", {"inputs.per_token_scale", "name"}),
    "moe_fp4_block_scale_ds_shared_experts_s1_e33_topk8_h256_i128_act3_ng8_kg4": (
        "before per_token_scale; another module in the tag", {"inputs.per_token_scale", "tags"}),
    "trtllm_fp8_per_tensor_scale_routed_moe_topk8_e32_h7168": (
        "before gemm1_clamp_limit, activation_type", {"inputs.gemm1_clamp_limit", "inputs.activation_type"}),
    "merge_state_in_place_h32_d128": ("mask has no element type", {"inputs.mask.dtype"}),
    "mla_rope_quantize_fp8_h128_kv64_rope64": ("k_rope has heads, which name the file", {"name"}),
    "xqa_batch_decode_mla_h128_d_qk576_ckv512_kpe64_nope512_ps64": ("a cache of rank 3", {"axes.kv_pad_dim.value"}),
    "xqa_mla_h1_ckv128_kpe1_ps64": ("other axes, an FP8 result", {
        "axes.beam_width.value", "axes.head_dim_qk.value", "axes.num_kv_heads.value", "name", "outputs.output.dtype"}),
    "gdn_mtp_qk4_v8_d128": ("the function has no replay cache", {
        "inputs.cache_replayssm", "inputs.disable_state_update", "inputs.use_qk_l2norm",
        *(f"inputs.{k}" for k in _REPLAY), *(f"outputs.{k}" for k in _REPLAY)}),
    "gdn_prefill_qk4_v8_d128": ("A_log, a, dt_bias, b where the function has g and beta", {
        "constraints", *(f"inputs.{k}" for k in ("A_log", "a", "b", "beta", "dt_bias", "g")), "inputs.cu_seqlens.optional",
        "outputs.new_state.optional"}),
}


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
        elif relation == "=" and want != "positive" and not want.startswith("rank") and not isinstance(given.get(name), Fake):
            given[name] = int(want) if want.isdigit() else want
    return given


def differences(made, stored):
    """Paths of members that are in one alone, or differ; `order` when the same members come in another order."""
    found = set()

    def compare(a, b, at):
        if not (isinstance(a, dict) and isinstance(b, dict)):
            found.update([at] if a != b else [])
            return
        for key in a.keys() | b.keys():
            path = f"{at}.{key}" if at else key
            if key in a and key in b:
                compare(a[key], b[key], path)
            else:
                found.add(path)

    compare(made, stored, "")
    for a, b in [(made, stored), *((made[k], stored[k]) for k in ("axes", "inputs", "outputs"))]:
        if [k for k in a if k in b] != [k for k in b if k in a]:
            found.add("order")
    return found


def made_as(stored):
    """The definition of a call with the stored one's tensors; None when there is no such function or template."""
    op = op_of(stored["tags"][0].removeprefix("fi_api:"))
    template = op and template_of(op, stored["name"])
    if not template:
        return None
    return without_texts(json.loads(str(_native.function("trace.define")(op.name, _trace.facts(arguments(stored, template)), False, "", None))))


@pytest.mark.parametrize("stored", [d for d in STORED if d["name"] not in ABSENT], ids=lambda d: d["name"])
def test_equals_the_stored_definition(stored):
    """Where the file is older than the function, in all but what OLDER says."""
    made = made_as(stored)
    assert made and differences(made, stored) == OLDER.get(stored["name"], ("", set()))[1]


def test_what_is_absent_or_older():
    """The lists hold what they say and nothing else."""
    assert ABSENT == {d["name"] for d in STORED if made_as(d) is None}
    assert set(OLDER) <= {d["name"] for d in STORED} - ABSENT and all(why and paths for why, paths in OLDER.values())


def test_the_ten_of_the_contract_are_compared():
    ten = ("rmsnorm_h7168 fused_add_rmsnorm_h5120 gqa_paged_decode_h32_kv8_d128_ps64 gqa_ragged_h32_kv8_d128 "
           "gqa_paged_prefill_h32_kv8_d128_ps16 mla_paged_decode_h16_ckv512_kpe64_ps64 top_k_top_p_sampling_v128256 gemm_fp8_N1536_K7168 "
           "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048 gdn_decode_qk4_v8_d128").split()
    assert set(ten) <= {d["name"] for d in STORED} and not set(ten) & set(OLDER)


def test_the_committed_definitions_are_current():
    """tests/trace/fi_trace_out, which `python tests/trace/example.py` writes."""
    script = pathlib.Path(ROOT) / "tests/trace/example.py"
    run = subprocess.run([sys.executable, script, "--check"], env=environment("ours"), capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
