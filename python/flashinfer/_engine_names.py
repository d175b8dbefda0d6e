# SPDX-License-Identifier: Apache-2.0
"""The attributes that engines touch (_engine), class by class."""
from . import _engine_values as values
from ._engine import Attribute, arguments, device

# Arguments by place, from the fourth on. What run() takes from the wrapper itself (masks, window, scales) is left out: there it only
# helps FlashInfer's planner.
_PREFILL_MODULE = ("qo_indptr", "kv_indptr", None, None, None, "num_qo_heads", "num_kv_heads", "page_size", None, "head_dim_qk", "head_dim_vo")
_TENSOR_CORE_MODULE = (None, "indptr", None, None, None, "num_qo_heads", "num_kv_heads", "page_size", None, "head_dim")
_DECODE_MODULE = ("indptr", None, "num_qo_heads", "num_kv_heads", "page_size", None, None, None, "head_dim")
_MLA_MODULE = ("qo_indptr", "kv_indptr", "kv_len_arr", "num_heads", "head_dim_ckv")


def _everywhere():
    return {
        "_float_workspace_buffer": Attribute(values.of_constructor("float_workspace_buffer", "workspace_buffer"), kept=True),
        "_int_workspace_buffer": Attribute(values.int_workspace("_int_workspace_buffer", False), kept=True),
        "_pin_memory_int_workspace_buffer": Attribute(values.int_workspace("_pin_memory_int_workspace_buffer", True), kept=True),
    }


def _of_wrappers():
    return _everywhere() | {
        "_kv_layout": Attribute(values.of_constructor("kv_layout", default="NHD"), kept=True),
        "_use_cuda_graph": Attribute(values.graph, kept=True),
        "_fixed_batch_size": Attribute(values.fixed_batch, kept=True),
        "_backend": Attribute(values.backend, kept=True),
        "_jit_module": Attribute(values.jit_module, kept=True),
        "_cached_module": Attribute(values.cached_module),
    }


def _of_plans():
    simple = {"_window_left": "window_left", "_sm_scale": "sm_scale", "_rope_scale": "rope_scale",
              "_rope_theta": "rope_theta", "_pos_encoding_mode": "pos_encoding_mode", "_num_qo_heads": "num_qo_heads",
              "_num_kv_heads": "num_kv_heads"}
    return _of_wrappers() | {name: Attribute(values.of_plan(argument), argument) for name, argument in simple.items()} | {
        "_logits_soft_cap": Attribute(values.of_plan("logits_soft_cap", 0.0), "logits_soft_cap"),
        "_batch_size": Attribute(lambda w: len(values.kv_lengths(w))),
        "_max_kv_len": Attribute(lambda w: max(values.kv_lengths(w), default=0)),
        "_block_tables": Attribute(values.of_plan("block_tables")),
        "_cached_q_data_type": Attribute(lambda w: values.torch_dtype(arguments(w)["q_data_type"])),
        "_cached_kv_data_type": Attribute(values.cache_type),
        "_cached_o_data_type": Attribute(values.output_type),
    }


def _buffer(argument, *names):
    return Attribute(values.array(argument, *names), argument, names[0])


def _of_decode(graph_class):
    names = ["indptr_buffer", "indices_buffer", "last_page_len_buffer"]
    names = names if graph_class else ["paged_kv_" + n for n in names]
    return _of_plans() | {
        "_paged_kv_indptr_buf": _buffer("indptr", names[0]), "_paged_kv_indices_buf": _buffer("indices", names[1]),
        "_paged_kv_last_page_len_buf": _buffer("last_page_len", names[2]),
        "_qo_indptr_buf": Attribute(values.decode_rows), "_kv_lens_buffer": Attribute(lambda w: None),
        "_plan_info": Attribute(values.decode_plan_info),
        "_use_tensor_cores": Attribute(values.of_constructor("use_tensor_cores", default=False), kept=True),
        "_q_len_per_req": Attribute(values.of_plan("q_len_per_req", 1), "q_len_per_req"),
        "_is_causal": Attribute(lambda w: arguments(w).get("q_len_per_req", 1) > 1),
        "_module_plan": (_TENSOR_CORE_MODULE, _DECODE_MODULE),
    }


def _of_items():
    names = ("prefix_len_ptr", "token_pos_in_items_ptr", "max_item_len_ptr")
    return {"_" + n: Attribute(values.of_plan(n), n) for n in names} | {
        "_plan_info": Attribute(values.prefill_plan_info),
        "_causal": Attribute(values.of_plan("causal", False), "causal"),
        "_token_pos_in_items_len": Attribute(values.of_plan("token_pos_in_items_len", 0), "token_pos_in_items_len"),
        "_use_fp16_qk_reduction": Attribute(values.of_plan("use_fp16_qk_reduction", False)),
        "_qo_indptr_last": Attribute(lambda w: sum(values.query_lengths(w))),
        "_max_q_len": Attribute(lambda w: max(values.query_lengths(w), default=0)),
        "_max_total_num_rows": Attribute(values.max_rows, kept=True),
        "_qo_indptr_buf": _buffer("qo_indptr", "qo_indptr_buf"),
        "_custom_mask_buf": Attribute(values.packed(0), "packed_custom_mask", "custom_mask_buf"),
        "_mask_indptr_buf": Attribute(values.packed(1), None, "mask_indptr_buf"),
        "_seq_lens_q": Attribute(values.of_plan_or_none("seq_lens_q")), "_seq_lens_kv": Attribute(values.of_plan_or_none("seq_lens")),
        "_block_tables": Attribute(values.of_plan_or_none("block_tables")),
    }


def _of_paged_prefill():
    return _of_plans() | _of_items() | {
        "_paged_kv_indptr_buf": _buffer("paged_kv_indptr", "paged_kv_indptr_buf"),
        "_paged_kv_indices_buf": _buffer("paged_kv_indices", "paged_kv_indices_buf"),
        "_paged_kv_last_page_len_buf": _buffer("paged_kv_last_page_len", "paged_kv_last_page_len_buf"),
        "_kv_lens_buffer": Attribute(values.kv_lens_buffer),
        "_module_plan": (("qo_indptr", "paged_kv_indptr") + _PREFILL_MODULE[2:],),
    }


def _of_ragged_prefill():
    return _of_plans() | _of_items() | {
        "_kv_indptr_buf": _buffer("kv_indptr", "kv_indptr_buf"),
        "_module_plan": (_PREFILL_MODULE,),
    }


def _of_mla():
    return _of_wrappers() | {
        "_qo_indptr_buf": _buffer("qo_indptr", "qo_indptr"), "_kv_indptr_buf": _buffer("kv_indptr", "kv_indptr"),
        "_kv_indices_buf": _buffer("kv_indices", "kv_indices"), "_kv_len_arr_buf": _buffer("kv_len_arr", "kv_len_arr"),
        "_causal": Attribute(values.of_plan("causal", False), "causal"), "_page_size": Attribute(values.of_plan("page_size"), "page_size"),
        "_sm_scale": Attribute(values.of_plan("sm_scale"), "sm_scale"),
        "_plan_info": Attribute(values.mla_plan_info),
        "_module_plan": (_MLA_MODULE,),
    }


_OWN = {
    "BatchDecodeWithPagedKVCacheWrapper": lambda: _of_decode(False),
    "CUDAGraphBatchDecodeWithPagedKVCacheWrapper": lambda: _of_decode(True),
    "BatchPrefillWithPagedKVCacheWrapper": _of_paged_prefill,
    "BatchAttentionWithAttentionSinkWrapper": _of_paged_prefill,
    "BatchPrefillWithCausalBidirectionalRangesWrapper": _of_paged_prefill,
    "BatchPrefillWithRaggedKVCacheWrapper": _of_ragged_prefill,
    "BatchMLAPagedAttentionWrapper": _of_mla,
}


def keeps_plan(op):
    """Whether a call of `op` changes what the attributes of a class say."""
    return op.name == "fast_decode_plan" or op.method == "plan" and op.class_name in _OWN


def note(op, args, kwargs):
    """An observed call: what the text of _source notes otherwise."""
    if keeps_plan(op):
        w = args[0] if args else kwargs["self"]
        w._planned = op.name, args[1:], {k: v for k, v in kwargs.items() if k != "self"}
    elif op.method == "reset_workspace_buffer" and "int_workspace_buffer" in op.names:
        given = dict(zip(op.names, args), **kwargs)
        given["self"]._float_workspace_buffer = given["float_workspace_buffer"]
        given["self"]._int_workspace_buffer = given["int_workspace_buffer"]


def add(name, members, methods):
    """Puts the attributes of the class `name` into `members`."""
    own = _OWN[name]() if name in _OWN else {}
    if not own and {"float_workspace_buffer", "workspace_buffer"} & set(methods["__init__"].names):
        own = _everywhere()
        if "kv_layout" in methods["__init__"].names:
            own["_kv_layout"] = Attribute(values.of_constructor("kv_layout"), kept=True)
    if not own:
        return
    for key, value in own.items():
        members.setdefault(key, value)
    members["_operators"] = methods
    members["_array_attributes"] = tuple(k for k, v in own.items() if isinstance(v, Attribute) and v.buffer and v.argument
                                         and k != "_custom_mask_buf")
    members.setdefault("device", property(device, doc="Of the workspace."))
