# SPDX-License-Identifier: Apache-2.0
"""Prints, as JSON, the attributes of wrappers under the package that is importable. FlashInfer's own runs here without a GPU: its kernels
are replaced by objects that do nothing, and pinned memory by plain memory."""
import json
import sys
import warnings

import torch

warnings.simplefilter("ignore")
THEIRS = sys.argv[1] == "theirs"


class Nothing:
    def __getattr__(self, name):
        return lambda *args, **kwargs: (1, 2, 3)


if THEIRS:
    empty = torch.empty
    torch.empty = lambda *args, pin_memory=False, **kwargs: empty(*args, **kwargs)
import flashinfer  # noqa: E402
import flashinfer.decode  # noqa: E402
import flashinfer.prefill  # noqa: E402

if THEIRS:
    for module in (flashinfer.decode, flashinfer.prefill):
        for name in dir(module):
            if name.startswith("get_") and name.endswith("_module"):
                setattr(module, name, lambda *args, **kwargs: Nothing())
        for name, value in (("determine_attention_backend", "fa2"), ("get_compute_capability", (8, 0))):
            if hasattr(module, name):
                setattr(module, name, lambda *args, value=value, **kwargs: value)


def t(*x):
    return torch.tensor(x, dtype=torch.int32)


def zeros(n):
    return torch.zeros(n, dtype=torch.int32)


WORKSPACE = torch.empty(1 << 16, dtype=torch.uint8)
TABLE = t(0, 2, 3, 5), t(0, 1, 2, 3, 4), t(1, 2, 3)
ROWS = t(0, 1, 3, 6)
TYPES = {"q_data_type": torch.bfloat16, "kv_data_type": torch.bfloat16}


def shown(value):
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), list(value.shape), value.flatten()[:16].tolist() if value.numel() < 64 else []]
    if isinstance(value, (torch.dtype, torch.device)):
        return str(value)
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    return "object"


def attributes(w, names):
    return {n: shown(getattr(w, n)) if hasattr(w, n) else "AttributeError" for n in names.split()}


COMMON = ("_float_workspace_buffer _kv_layout _use_cuda_graph _backend _jit_module device _batch_size _num_qo_heads _num_kv_heads _window_left "
          "_logits_soft_cap _sm_scale _rope_scale _rope_theta _pos_encoding_mode _cached_q_data_type _cached_kv_data_type _cached_o_data_type")
BUFFERS = "_paged_kv_indptr_buf _paged_kv_indices_buf _paged_kv_last_page_len_buf _fixed_batch_size _block_tables"
DECODE = f"{COMMON} {BUFFERS} _qo_indptr_buf _kv_lens_buffer _use_tensor_cores _q_len_per_req _is_causal _causal"
PREFILL = (f"{COMMON} _causal _use_fp16_qk_reduction _qo_indptr_buf _qo_indptr_last _max_total_num_rows _custom_mask_buf _mask_indptr_buf "
           "_prefix_len_ptr _token_pos_in_items_ptr _token_pos_in_items_len _max_item_len_ptr")
PAGED = f"{PREFILL} {BUFFERS} _max_q_len _max_kv_len _seq_lens_q _seq_lens_kv"


def wrappers():
    decode, prefill = flashinfer.BatchDecodeWithPagedKVCacheWrapper, flashinfer.BatchPrefillWithPagedKVCacheWrapper
    graph = {"use_cuda_graph": True, "paged_kv_indptr_buffer": zeros(4), "paged_kv_indices_buffer": zeros(10), "paged_kv_last_page_len_buffer": zeros(3)}
    rows = {"use_cuda_graph": True, "qo_indptr_buf": zeros(4), "paged_kv_indptr_buf": zeros(4), "paged_kv_indices_buf": zeros(10),
            "paged_kv_last_page_len_buf": zeros(3)}

    def plan_decode(w, **more):
        w.plan(*TABLE, 8, 2, 64, 4, **TYPES, **more)

    def plan_prefill(w, **more):
        w.plan(ROWS, *TABLE, 8, 2, 64, 4, **{**TYPES, **more})

    yield "decode", decode(WORKSPACE, "HND", backend="fa2"), DECODE, lambda w: plan_decode(w, sm_scale=0.1, window_left=5)
    yield "decode, tensor cores", decode(WORKSPACE, use_tensor_cores=True, backend="fa2"), DECODE, lambda w: plan_decode(w, logits_soft_cap=3.0)
    yield "decode, graph", decode(WORKSPACE, "NHD", use_tensor_cores=True, backend="fa2", **graph), DECODE, lambda w: plan_decode(w, rope_scale=2.0, rope_theta=1e4)
    yield "prefill", prefill(WORKSPACE, "NHD", backend="fa2"), PAGED, lambda w: plan_prefill(w, causal=True, window_left=7, logits_soft_cap=3.0, sm_scale=0.1)
    yield "prefill, graph", prefill(WORKSPACE, "NHD", backend="fa2", **rows), PAGED, lambda w: plan_prefill(w, causal=True, fixed_split_size=-1)
    yield "prefill, types", prefill(WORKSPACE, "NHD", backend="fa2"), PAGED, lambda w: plan_prefill(w, kv_data_type=torch.float8_e4m3fn, o_data_type=torch.float16)
    yield ("ragged", flashinfer.BatchPrefillWithRaggedKVCacheWrapper(WORKSPACE, "NHD", backend="fa2"),
           PREFILL.replace("_batch_size _num_qo_heads _num_kv_heads ", "") + " _kv_indptr_buf",
           lambda w: w.plan(ROWS, t(0, 5, 7, 14), 8, 2, 64, causal=True, q_data_type=torch.bfloat16))


out = {}
for who, w, names, plan in wrappers():
    before = attributes(w, names)
    plan(w)
    out[who] = {"before": before, "after": attributes(w, names)}
mla = "_float_workspace_buffer _use_cuda_graph _backend device _qo_indptr_buf _kv_indptr_buf _kv_indices_buf _kv_len_arr_buf"
for who, more in (("mla", {}), ("mla, graph", {"use_cuda_graph": True, "qo_indptr": zeros(4), "kv_indptr": zeros(4), "kv_indices": zeros(10),
                                               "kv_len_arr": zeros(3)})):
    out[who] = {"before": attributes(flashinfer.mla.BatchMLAPagedAttentionWrapper(WORKSPACE, backend="fa2", **more), mla)}
print(json.dumps(out))
