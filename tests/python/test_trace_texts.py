# SPDX-License-Identifier: Apache-2.0
"""The Python of definitions: what init makes, the function computes and the reference expects."""
import pytest
import torch

from definitions import OPS, Fake, executed
from flashinfer import _make, _trace


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
    ("allreduce_fusion", {"num_tokens": 3, "hidden_dim": 64, "pattern": 1}, {}),
    ("decode_cp_a2a_alltoall_into", {"batch_dim": 3, "cp_size": 1, "cp_rank": 0, "head_dim": 64, "stats_dim": 4, "ws_elems_per_rank": 8}, {}),
    ("decode_cp_a2a_lse_reduce", {"batch_dim": 3, "cp_size": 1, "cp_rank": 0, "head_dim": 64, "workspace_bytes": 8}, {}),
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
