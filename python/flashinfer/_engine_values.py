# SPDX-License-Identifier: Apache-2.0
"""Where the values of the attributes that engines touch come from: the constructor's arguments and those of the last plan."""
import sys

from ._engine import arguments, constructed, device, is_graph, module, package

_INT_WORKSPACE = 8 << 20  # bytes, as FlashInfer's
_KV_LENS = 32768  # requests


def torch_dtype(value):
    torch = sys.modules.get("torch")
    return getattr(torch, value, value) if torch is not None and isinstance(value, str) else value


def empty(n, device, pinned=False):
    torch = sys.modules.get("torch")
    if torch is None:
        import numpy

        return numpy.empty(n, numpy.uint8)
    return torch.empty(n, dtype=torch.uint8, device=device, pin_memory=pinned and torch.cuda.is_available())


def on_device(w, array):
    return array.to(device(w), non_blocking=True) if hasattr(array, "to") else array


def of_plan(argument, default=None):
    def value(w):
        given = arguments(w).get(argument)
        return default if given is None else given

    return value


def of_plan_or_none(argument):
    return lambda w: arguments(w).get(argument) if "_planned" in w.__dict__ else None


def of_constructor(*names, default=None):
    def value(w):
        given = constructed(w)
        return next((given[n] for n in names if n in given), default)

    return value


def array(argument, *buffers):
    """The caller's buffer in CUDA-graph mode, else the array of the last plan; None before."""

    def value(w):
        given = constructed(w)
        for name in buffers:
            if given.get(name) is not None:
                return given[name]
        return on_device(w, arguments(w).get(argument)) if "_planned" in w.__dict__ else None

    return value


def graph(w):
    given = constructed(w)
    return bool(given.get("use_cuda_graph", "indptr_buffer" in given))


def backend(w):
    given = constructed(w).get("backend", "auto")
    resolved = given == "auto" and "_planned" in w.__dict__ and getattr(w, "_use_tensor_cores", True)
    return "fa2" if resolved else given


def int_workspace(name, pinned):
    def value(w):
        made = empty(_INT_WORKSPACE, "cpu" if pinned else device(w), pinned)
        w.__dict__.setdefault("_assigned", {})[name] = made, None
        return made

    return value


def jit_module(w):
    return module(w) if constructed(w).get("jit_args") is not None else None


def cached_module(w):
    return module(w) if "_planned" in w.__dict__ else None


def lengths(w, *names):
    """Differences of an array of offsets of the last plan, on the host."""
    given = arguments(w)
    offsets = next((given[n] for n in names if given.get(n) is not None), ())
    offsets = [int(x) for x in offsets]
    return [b - a for a, b in zip(offsets, offsets[1:])]


def kv_lengths(w):
    given = arguments(w)
    for exact in ("kv_len_arr", "seq_lens"):
        if given.get(exact) is not None:
            return [int(x) for x in given[exact]]
    last = next((given[a] for a in ("last_page_len", "paged_kv_last_page_len") if a in given), None)
    counts = lengths(w, "paged_kv_indptr", "kv_indptr", "indptr")
    if last is None:
        return counts  # ragged: in tokens
    size = given["page_size"]
    return [max(pages - 1, 0) * size + int(x) for pages, x in zip(counts, last)]


def query_lengths(w):
    given = arguments(w)
    return lengths(w, "qo_indptr", "cum_seq_lens_q") if "qo_indptr" in given else [given.get("q_len_per_req", 1)] * len(kv_lengths(w))


def max_rows(w):
    return sum(query_lengths(w)) if is_graph(w) and "_planned" in w.__dict__ else None


def fixed_batch(w):
    if not is_graph(w):
        return 0
    for name in ("_paged_kv_last_page_len_buf", "_kv_len_arr_buf"):
        if getattr(w, name, None) is not None:
            return len(getattr(w, name))
    return len(w._qo_indptr_buf) - 1 if w._qo_indptr_buf is not None else 0


def decode_rows(w):
    """Offsets of the query rows: in CUDA-graph mode only the tensor-core form has them, else every plan makes them."""
    planned = "_planned" in w.__dict__
    if not (w._use_tensor_cores if is_graph(w) else planned):
        raise AttributeError(f"{type(w).__name__}: _qo_indptr_buf belongs to a plan, or to use_tensor_cores=True and a CUDA graph")
    count = len(kv_lengths(w)) if planned else fixed_batch(w)
    step = arguments(w).get("q_len_per_req", 1) if planned else 1
    torch = sys.modules["torch"]
    return torch.arange(0, (count + 1) * step, step, dtype=torch.int32, device=device(w))


def packed(which):
    def value(w):
        buffers = of_constructor(("custom_mask_buf", "mask_indptr_buf")[which])(w)
        if buffers is not None or "_planned" not in w.__dict__:
            return buffers
        given = arguments(w)
        if given.get("custom_mask") is None and given.get("packed_custom_mask") is None:
            return None
        torch, offsets = sys.modules["torch"], [0]
        for q, kv in zip(query_lengths(w), kv_lengths(w)):
            offsets.append(offsets[-1] + q * kv)
        if given.get("packed_custom_mask") is not None:
            sizes = [0] + [-(-(b - a) // 8) for a, b in zip(offsets, offsets[1:])]
            parts = given["packed_custom_mask"], torch.tensor(sizes).cumsum(0).int()
        else:
            parts = package().exports["segment_packbits"](given["custom_mask"].reshape(-1), torch.tensor(offsets, dtype=torch.int32),
                                                           bitorder="little")
        return on_device(w, parts[which])

    return value


def kv_lens_buffer(w):
    torch = sys.modules["torch"]
    buffer = torch.zeros(_KV_LENS, dtype=torch.int32, device=device(w))
    if "_planned" in w.__dict__:
        lengths = kv_lengths(w)
        buffer[:len(lengths)] = torch.tensor(lengths, dtype=torch.int32)
    return buffer


def mla_plan_info(w):
    return [len(kv_lengths(w)), *[0] * 17] if "_planned" in w.__dict__ else None


def decode_plan_info(w):
    if "_planned" not in w.__dict__:
        return None
    return prefill_plan_info(w) if w._use_tensor_cores else [len(kv_lengths(w)), *[0] * 7, int(is_graph(w)), 0]


def prefill_plan_info(w):
    """The numbers of FlashInfer's plan in their places, as far as they mean something here: tiles of queries, rows, rows of a tile ([3],
    which programs read), whether it is for a CUDA graph. Offsets into FlashInfer's workspaces, and its split of the keys, are 0."""
    if "_planned" not in w.__dict__:
        return None
    given, lengths_q = arguments(w), query_lengths(w)
    group = given["num_qo_heads"] // given["num_kv_heads"]
    tile = _query_tile(given, sum(lengths_q) * group / max(len(lengths_q), 1), cache_type(w))
    return [sum(-(-n * group // tile) for n in lengths_q), sum(lengths_q), 0, tile, *[0] * 9, int(is_graph(w)), 0]


def _query_tile(given, packed, cache):
    """Rows of queries, times the heads that share a head of keys, that FlashInfer's FA2 kernels compute at once; `packed`: a request's mean
    number of them. Results here do not depend on it."""
    width = given.get("head_dim_vo") or given.get("head_dim_qk") or given["head_dim"]
    if packed <= 16:
        return 16
    if width > 256 and getattr(cache, "itemsize", 2) == 1:
        return 32
    return 128 if packed > 64 and width < 256 else 64


def output_type(w):
    given = arguments(w)
    return torch_dtype(given.get("o_data_type") or given.get("q_data_type"))


def cache_type(w):
    given = arguments(w)
    return torch_dtype(next(given[n] for n in ("kv_data_type", "data_type", "q_data_type") if given.get(n) is not None))
