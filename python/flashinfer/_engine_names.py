# SPDX-License-Identifier: Apache-2.0
"""The attributes that engines touch (_engine), class by class, and where their values come from."""
import sys

from ._engine import Attribute, arguments, constructed, device, is_graph, module, package

_INT_WORKSPACE = 8 << 20  # bytes, as FlashInfer's
_KV_LENS = 32768  # requests


# ---- values ----
def _torch_dtype(value):
    torch = sys.modules.get("torch")
    return getattr(torch, value, value) if torch is not None and isinstance(value, str) else value


def _empty(n, device, pinned=False):
    torch = sys.modules.get("torch")
    if torch is None:
        import numpy

        return numpy.empty(n, numpy.uint8)
    return torch.empty(n, dtype=torch.uint8, device=device, pin_memory=pinned and torch.cuda.is_available())


def _on_device(w, array):
    return array.to(device(w), non_blocking=True) if hasattr(array, "to") else array


def _of_plan(argument, default=None):
    def value(w):
        given = arguments(w).get(argument)
        return default if given is None else given

    return value


def _of_plan_or_none(argument):
    return lambda w: arguments(w).get(argument) if "_planned" in w.__dict__ else None


def _of_constructor(*names, default=None):
    def value(w):
        given = constructed(w)
        return next((given[n] for n in names if n in given), default)

    return value


def _array(argument, *buffers):
    """The caller's buffer in CUDA-graph mode, else the array of the last plan; None before."""

    def value(w):
        given = constructed(w)
        for name in buffers:
            if given.get(name) is not None:
                return given[name]
        return _on_device(w, arguments(w).get(argument)) if "_planned" in w.__dict__ else None

    return value


def _graph(w):
    given = constructed(w)
    return bool(given.get("use_cuda_graph", "indptr_buffer" in given))


def _backend(w):
    given = constructed(w).get("backend", "auto")
    resolved = given == "auto" and "_planned" in w.__dict__ and getattr(w, "_use_tensor_cores", True)
    return "fa2" if resolved else given


def _int_workspace(name, pinned):
    def value(w):
        made = _empty(_INT_WORKSPACE, "cpu" if pinned else device(w), pinned)
        w.__dict__.setdefault("_assigned", {})[name] = made, None
        return made

    return value


def _jit_module(w):
    return module(w) if constructed(w).get("jit_args") is not None else None


def _cached_module(w):
    return module(w) if "_planned" in w.__dict__ else None


def _lengths(w, *names):
    """Differences of an array of offsets of the last plan, on the host."""
    given = arguments(w)
    offsets = next((given[n] for n in names if given.get(n) is not None), ())
    offsets = [int(x) for x in offsets]
    return [b - a for a, b in zip(offsets, offsets[1:])]


def _kv_lengths(w):
    given = arguments(w)
    for exact in ("kv_len_arr", "seq_lens"):
        if given.get(exact) is not None:
            return [int(x) for x in given[exact]]
    last = next((given[a] for a in ("last_page_len", "paged_kv_last_page_len") if a in given), None)
    counts = _lengths(w, "paged_kv_indptr", "kv_indptr", "indptr")
    if last is None:
        return counts  # ragged: in tokens
    size = given["page_size"]
    return [max(pages - 1, 0) * size + int(x) for pages, x in zip(counts, last)]


def _query_lengths(w):
    given = arguments(w)
    return _lengths(w, "qo_indptr", "cum_seq_lens_q") if "qo_indptr" in given else [given.get("q_len_per_req", 1)] * len(_kv_lengths(w))


def _max_rows(w):
    return sum(_query_lengths(w)) if is_graph(w) and "_planned" in w.__dict__ else None


def _fixed_batch(w):
    if not is_graph(w):
        return 0
    for name in ("_paged_kv_last_page_len_buf", "_kv_len_arr_buf"):
        if getattr(w, name, None) is not None:
            return len(getattr(w, name))
    return len(w._qo_indptr_buf) - 1 if w._qo_indptr_buf is not None else 0


def _decode_rows(w):
    """Offsets of the query rows: in CUDA-graph mode only the tensor-core form has them, else every plan makes them."""
    planned = "_planned" in w.__dict__
    if not (w._use_tensor_cores if is_graph(w) else planned):
        raise AttributeError(f"{type(w).__name__}: _qo_indptr_buf belongs to a plan, or to use_tensor_cores=True and a CUDA graph")
    count = len(_kv_lengths(w)) if planned else _fixed_batch(w)
    step = arguments(w).get("q_len_per_req", 1) if planned else 1
    torch = sys.modules["torch"]
    return torch.arange(0, (count + 1) * step, step, dtype=torch.int32, device=device(w))


def _packed(which):
    def value(w):
        buffers = _of_constructor(("custom_mask_buf", "mask_indptr_buf")[which])(w)
        if buffers is not None or "_planned" not in w.__dict__:
            return buffers
        given = arguments(w)
        if given.get("custom_mask") is None and given.get("packed_custom_mask") is None:
            return None
        torch, offsets = sys.modules["torch"], [0]
        for q, kv in zip(_query_lengths(w), _kv_lengths(w)):
            offsets.append(offsets[-1] + q * kv)
        if given.get("packed_custom_mask") is not None:
            sizes = [0] + [-(-(b - a) // 8) for a, b in zip(offsets, offsets[1:])]
            parts = given["packed_custom_mask"], torch.tensor(sizes).cumsum(0).int()
        else:
            parts = package().exports["segment_packbits"](given["custom_mask"].reshape(-1), torch.tensor(offsets, dtype=torch.int32),
                                                           bitorder="little")
        return _on_device(w, parts[which])

    return value


def _kv_lens_buffer(w):
    torch = sys.modules["torch"]
    buffer = torch.zeros(_KV_LENS, dtype=torch.int32, device=device(w))
    if "_planned" in w.__dict__:
        lengths = _kv_lengths(w)
        buffer[:len(lengths)] = torch.tensor(lengths, dtype=torch.int32)
    return buffer


def _plan_info(w):
    """Numbers that stand for the plan. FlashInfer's are offsets into its workspaces."""
    return (len(_kv_lengths(w)), sum(_query_lengths(w)), max(_kv_lengths(w), default=0)) if "_planned" in w.__dict__ else None


def _output_type(w):
    given = arguments(w)
    return _torch_dtype(given.get("o_data_type") or given.get("q_data_type"))


def _cache_type(w):
    given = arguments(w)
    return _torch_dtype(next(given[n] for n in ("kv_data_type", "data_type", "q_data_type") if given.get(n) is not None))


# ---- by class ----
# Arguments by place, from the fourth on. What run() takes from the wrapper itself (masks, window, scales) is left out: there it only
# helps FlashInfer's planner.
_PREFILL_MODULE = ("qo_indptr", "kv_indptr", None, None, None, "num_qo_heads", "num_kv_heads", "page_size", None, "head_dim_qk", "head_dim_vo")
_TENSOR_CORE_MODULE = (None, "indptr", None, None, None, "num_qo_heads", "num_kv_heads", "page_size", None, "head_dim")
_DECODE_MODULE = ("indptr", None, "num_qo_heads", "num_kv_heads", "page_size", None, None, None, "head_dim")
_MLA_MODULE = ("qo_indptr", "kv_indptr", "kv_len_arr", "num_heads", "head_dim_ckv")


def _everywhere():
    return {
        "_float_workspace_buffer": Attribute(_of_constructor("float_workspace_buffer", "workspace_buffer"), kept=True),
        "_int_workspace_buffer": Attribute(_int_workspace("_int_workspace_buffer", False), kept=True),
        "_pin_memory_int_workspace_buffer": Attribute(_int_workspace("_pin_memory_int_workspace_buffer", True), kept=True),
    }


def _of_wrappers():
    return _everywhere() | {
        "_kv_layout": Attribute(_of_constructor("kv_layout", default="NHD"), kept=True),
        "_use_cuda_graph": Attribute(_graph, kept=True),
        "_fixed_batch_size": Attribute(_fixed_batch, kept=True),
        "_backend": Attribute(_backend, kept=True),
        "_jit_module": Attribute(_jit_module, kept=True),
        "_cached_module": Attribute(_cached_module),
        "_plan_info": Attribute(_plan_info),
    }


def _of_plans():
    simple = {"_window_left": "window_left", "_sm_scale": "sm_scale", "_rope_scale": "rope_scale",
              "_rope_theta": "rope_theta", "_pos_encoding_mode": "pos_encoding_mode", "_num_qo_heads": "num_qo_heads",
              "_num_kv_heads": "num_kv_heads"}
    return _of_wrappers() | {name: Attribute(_of_plan(argument), argument) for name, argument in simple.items()} | {
        "_logits_soft_cap": Attribute(_of_plan("logits_soft_cap", 0.0), "logits_soft_cap"),
        "_batch_size": Attribute(lambda w: len(_kv_lengths(w))),
        "_max_kv_len": Attribute(lambda w: max(_kv_lengths(w), default=0)),
        "_block_tables": Attribute(_of_plan("block_tables")),
        "_cached_q_data_type": Attribute(lambda w: _torch_dtype(arguments(w)["q_data_type"])),
        "_cached_kv_data_type": Attribute(_cache_type),
        "_cached_o_data_type": Attribute(_output_type),
    }


def _buffer(argument, *names):
    return Attribute(_array(argument, *names), argument, names[0])


def _of_decode(graph_class):
    names = ["indptr_buffer", "indices_buffer", "last_page_len_buffer"]
    names = names if graph_class else ["paged_kv_" + n for n in names]
    return _of_plans() | {
        "_paged_kv_indptr_buf": _buffer("indptr", names[0]), "_paged_kv_indices_buf": _buffer("indices", names[1]),
        "_paged_kv_last_page_len_buf": _buffer("last_page_len", names[2]),
        "_qo_indptr_buf": Attribute(_decode_rows), "_kv_lens_buffer": Attribute(lambda w: None),
        "_use_tensor_cores": Attribute(_of_constructor("use_tensor_cores", default=False), kept=True),
        "_q_len_per_req": Attribute(_of_plan("q_len_per_req", 1), "q_len_per_req"),
        "_is_causal": Attribute(lambda w: arguments(w).get("q_len_per_req", 1) > 1),
        "_module_plan": (_TENSOR_CORE_MODULE, _DECODE_MODULE),
    }


def _of_items():
    names = ("prefix_len_ptr", "token_pos_in_items_ptr", "max_item_len_ptr")
    return {"_" + n: Attribute(_of_plan(n), n) for n in names} | {
        "_causal": Attribute(_of_plan("causal", False), "causal"),
        "_token_pos_in_items_len": Attribute(_of_plan("token_pos_in_items_len", 0), "token_pos_in_items_len"),
        "_use_fp16_qk_reduction": Attribute(_of_plan("use_fp16_qk_reduction", False)),
        "_qo_indptr_last": Attribute(lambda w: sum(_query_lengths(w))),
        "_max_q_len": Attribute(lambda w: max(_query_lengths(w), default=0)),
        "_max_total_num_rows": Attribute(_max_rows, kept=True),
        "_qo_indptr_buf": _buffer("qo_indptr", "qo_indptr_buf"),
        "_custom_mask_buf": Attribute(_packed(0), "packed_custom_mask", "custom_mask_buf"),
        "_mask_indptr_buf": Attribute(_packed(1), None, "mask_indptr_buf"),
        "_seq_lens_q": Attribute(_of_plan_or_none("seq_lens_q")), "_seq_lens_kv": Attribute(_of_plan_or_none("seq_lens")),
        "_block_tables": Attribute(_of_plan_or_none("block_tables")),
    }


def _of_paged_prefill():
    return _of_plans() | _of_items() | {
        "_paged_kv_indptr_buf": _buffer("paged_kv_indptr", "paged_kv_indptr_buf"),
        "_paged_kv_indices_buf": _buffer("paged_kv_indices", "paged_kv_indices_buf"),
        "_paged_kv_last_page_len_buf": _buffer("paged_kv_last_page_len", "paged_kv_last_page_len_buf"),
        "_kv_lens_buffer": Attribute(_kv_lens_buffer),
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
        "_causal": Attribute(_of_plan("causal", False), "causal"), "_page_size": Attribute(_of_plan("page_size"), "page_size"),
        "_sm_scale": Attribute(_of_plan("sm_scale"), "sm_scale"),
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
            own["_kv_layout"] = Attribute(_of_constructor("kv_layout"), kept=True)
    if not own:
        return
    for key, value in own.items():
        members.setdefault(key, value)
    members["_operators"] = methods
    members["_array_attributes"] = tuple(k for k, v in own.items() if isinstance(v, Attribute) and v.buffer and v.argument
                                         and k != "_custom_mask_buf")
    members.setdefault("device", property(device, doc="Of the workspace."))
