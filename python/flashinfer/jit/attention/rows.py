# SPDX-License-Identifier: Apache-2.0
"""Calls of the attention ops for some dtypes and head dims, as rows of the case tables are written. Kernels depend on dtypes and
head dims, and on how many query heads share a KV head and how many rows there are, so each op has a call of few and one of many."""
from ..utils import dtype_name

_SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "uint8": "u8"}
_MODES = {0: "NONE", 1: "ROPE_LLAMA", 2: "ALIBI"}


def short(dtype):
    """"bf16". NotImplementedError for dtypes that attention has no kernels for."""
    name = dtype_name(dtype)
    if name not in _SHORT:
        raise NotImplementedError(f"attention has no kernels for {dtype}: {', '.join(_SHORT)} are supported")
    return _SHORT[name]


def long(dtype):
    return dtype_name(dtype)


def options(pos_encoding_mode, window, cap, prefix=""):
    """The arguments that choose among kernels beside dtypes."""
    if int(pos_encoding_mode) not in _MODES:
        raise ValueError(f"pos_encoding_mode is {pos_encoding_mode}, but must be 0 (NONE), 1 (ROPE_LLAMA) or 2 (ALIBI)")
    mode = "" if not int(pos_encoding_mode) else f" {prefix}pos_encoding_mode='{_MODES[int(pos_encoding_mode)]}'"
    return mode + (f" {prefix}window_left=2" if window else "") + (f" {prefix}logits_soft_cap=5.0" if cap else "")


def keys(name, dtype, before, dim):
    """"k=bf16:9x1x64"; an FP4 cache (uint8) has half as many bytes."""
    return f"{name}={short(dtype)}:{before}x{dim // 2 if short(dtype) == 'u8' else dim}"


def _scales(dtype, before, qk, vo):
    return f" kv_cache_sf=(e4m3:{before}x{qk // 16},e4m3:{before}x{vo // 16})" if short(dtype) == "u8" else ""


def cache(dtype, qk, vo):
    """A paged cache of two pages of 4 tokens and one KV head."""
    before, s = "2x4x1", short(dtype)
    if s == "u8":
        return f"(u8:{before}x{qk // 2},u8:{before}x{vo // 2})", _scales(dtype, before, qk, vo)
    return (f"{s}:2x2x4x1x{qk}" if qk == vo else f"({s}:{before}x{qk},{s}:{before}x{vo})"), ""


def single_decode(q, kv, qk, vo, given):
    return [("single_decode_with_kv_cache", f"q={short(q)}:{heads}x{qk} {keys('k', kv, '9x1', qk)} {keys('v', kv, '9x1', vo)}{given}")
            for heads in (1, 8)]


def single_prefill(q, kv, o, qk, vo, given):
    return [("single_prefill_with_kv_cache", f"q={short(q)}:{rows}x4x{qk} {keys('k', kv, '80x1', qk)} {keys('v', kv, '80x1', vo)}"
             f"{_scales(kv, '80x1', qk, vo)} o_dtype={long(o)} causal=True{given}") for rows in (1, 70)]


def _plan(q, kv, o, heads):
    return (f" plan.num_qo_heads={heads} plan.num_kv_heads=1 plan.page_size=4 plan.q_data_type={long(q)} plan.kv_data_type={long(kv)} "
            f"plan.o_data_type={long(o)}")


def batch_decode(q, kv, o, qk, vo, given):
    pool, scales = cache(kv, qk, vo)
    return [("BatchDecodeWithPagedKVCacheWrapper.run", "init.float_workspace_buffer=u8:0 plan.indptr=i32:[0,2] plan.indices=i32:[1,0] "
             f"plan.last_page_len=i32:[3] plan.head_dim={qk}{_plan(q, kv, o, heads)}{given} q={short(q)}:1x{heads}x{qk} "
             f"paged_kv_cache={pool}{scales}") for heads in (1, 8)]


_PAGES = ("init.float_workspace_buffer=u8:0 plan.qo_indptr=i32:[0,{rows}] plan.paged_kv_indptr=i32:[0,2] plan.paged_kv_indices=i32:[1,0] "
          "plan.paged_kv_last_page_len=i32:[3] plan.head_dim_qk={qk} plan.head_dim_vo={vo}")


def paged_prefill(q, kv, o, qk, vo, given, op="BatchPrefillWithPagedKVCacheWrapper", init="", more=""):
    pool, scales = cache(kv, qk, vo)
    return [(op + ".run", _PAGES.format(rows=rows, qk=qk, vo=vo) + init + _plan(q, kv, o, 4) + given +
             f" q={short(q)}:{rows}x4x{qk} paged_kv_cache={pool}{scales}" + more.format(rows=rows)) for rows in (1, 40)]


def ragged_prefill(q, kv, o, qk, vo, given):
    return [("BatchPrefillWithRaggedKVCacheWrapper.run", f"init.float_workspace_buffer=u8:0 plan.qo_indptr=i32:[0,{rows}] "
             f"plan.kv_indptr=i32:[0,80] plan.head_dim_qk={qk} plan.head_dim_vo={vo} plan.causal=True"
             + _plan(q, kv, o, 4).replace(" plan.page_size=4", "")
             + f"{given} q={short(q)}:{rows}x4x{qk} {keys('k', kv, '80x1', qk)} {keys('v', kv, '80x1', vo)}") for rows in (1, 70)]


def mla(q, kv, ckv, kpe):
    return [("BatchMLAPagedAttentionWrapper.run", "init.float_workspace_buffer=u8:0 plan.kv_indptr=i32:[0,2] plan.kv_indices=i32:[1,0] "
             f"plan.qo_indptr=i32:[0,1] plan.kv_len_arr=i32:[7] plan.page_size=4 plan.sm_scale=0.07 plan.q_data_type={long(q)} "
             f"plan.kv_data_type={long(kv)} plan.num_heads={heads} plan.head_dim_ckv={ckv} plan.head_dim_kpe={kpe} plan.causal=False "
             f"q_nope={short(q)}:1x{heads}x{ckv} q_pe={short(q)}:1x{heads}x{kpe} ckv_cache={short(kv)}:2x4x{ckv} "
             f"kpe_cache={short(kv)}:2x4x{kpe}") for heads in (1, 16)]


def pod(q, kv, o, dim, batch):
    if long(o) != long(q):
        raise NotImplementedError(f"the POD wrappers give q's dtype, {q}, not {o}")
    s, c = short(q), short(kv)
    plan = _plan(q, kv, o, 4).partition(" plan.o_data_type")[0]
    pool = f"{c}:2x2x4x1x{dim}"
    if batch:
        return [("BatchPODWithPagedKVCacheWrapper.run", "init.float_workspace_buffer=u8:0 plan.qo_indptr_p=i32:[0,40] "
                 "plan.kv_indptr_p=i32:[0,2] plan.kv_indices_p=i32:[1,0] plan.last_page_len_p=i32:[3] plan.qo_indptr_d=i32:[0,1] "
                 f"plan.kv_indptr_d=i32:[0,2] plan.kv_indices_d=i32:[1,0] plan.last_page_len_d=i32:[3] plan.head_dim={dim}"
                 + plan + f" q_p={s}:40x4x{dim} paged_kv_cache_p={pool} q_d={s}:1x4x{dim} paged_kv_cache_d={pool} causal_p=True")]
    return [("PODWithPagedKVCacheWrapper.run", "init.float_workspace_buffer=u8:0 plan.indptr=i32:[0,2] plan.indices=i32:[1,0] "
             f"plan.last_page_len=i32:[3] plan.head_dim={dim}" + plan + f" q_p={s}:70x4x{dim} k_p={c}:80x1x{dim} "
             f"v_p={c}:80x1x{dim} q_d={s}:1x4x{dim} paged_kv_cache_d={pool} causal_p=True")]


def batch_attention(q, kv, qk, vo, given):
    return [("BatchAttention.run", f"plan.qo_indptr=i32:[0,{rows}] plan.kv_indptr=i32:[0,2] plan.kv_indices=i32:[1,0] "
             f"plan.kv_len_arr=i32:[7] plan.page_size=4 plan.num_qo_heads=4 plan.num_kv_heads=1 plan.head_dim_qk={qk} "
             f"plan.head_dim_vo={vo} plan.causal=True plan.q_data_type={long(q)} plan.kv_data_type={long(kv)} q={short(q)}:{rows}x4x{qk} "
             f"kv_cache={cache(kv, qk, vo)[0]}{given}") for rows in (1, 40)]
