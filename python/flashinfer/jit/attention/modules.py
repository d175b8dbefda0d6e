# SPDX-License-Identifier: Apache-2.0
"""Specs of the attention kernels for some dtypes and head dims. `build()` compiles them; the ops find them at their first call.

The back end ("fa2", "fa3") chooses nothing: a device has one family of kernels. Nor do `use_fp16_qk_reduction` (products are in f32)
and `use_profiler`."""
from ... import _modules
from .. import env as jit_env  # noqa: F401: a name of this module
from ..core import current_compilation_context  # noqa: F401: a name of this module
from ..kernels import JitSpecKernels, missing
from . import rows
from .customize import (gen_customize_batch_attention_module, gen_customize_batch_decode_module,  # noqa: F401: names of this module
                        gen_customize_batch_pod_module, gen_customize_batch_prefill_module, gen_customize_pod_module,
                        gen_customize_single_decode_module, gen_customize_single_prefill_module)
from .uris import (get_batch_attention_uri, get_batch_decode_uri, get_batch_mla_uri, get_batch_prefill_attention_sink_uri,
                   get_batch_prefill_uri, get_pod_uri, get_single_decode_uri, get_single_prefill_uri)

__getattr__ = _modules.refusing(__name__, "batch_prefill_bidirectional_ranges_jit_args get_batch_prefill_bidirectional_ranges_spec")


def gen_single_decode_module(dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, pos_encoding_mode, use_sliding_window,
                             use_logits_soft_cap):
    """Of `single_decode_with_kv_cache`, whose result has q's dtype."""
    if rows.long(dtype_o) != rows.long(dtype_q):
        raise NotImplementedError(f"single_decode_with_kv_cache gives q's dtype, {dtype_q}, not {dtype_o}")
    uri = get_single_decode_uri(dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, pos_encoding_mode, use_sliding_window,
                                use_logits_soft_cap)
    return JitSpecKernels(uri, items=rows.single_decode(dtype_q, dtype_kv, head_dim_qk, head_dim_vo,
                                                        rows.options(pos_encoding_mode, use_sliding_window, use_logits_soft_cap)))


def gen_single_prefill_module(backend, dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, pos_encoding_mode, use_sliding_window,
                              use_logits_soft_cap, use_fp16_qk_reduction):
    """Of `single_prefill_with_kv_cache`."""
    uri = get_single_prefill_uri(backend, dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, pos_encoding_mode, use_sliding_window,
                                 use_logits_soft_cap, use_fp16_qk_reduction)
    return JitSpecKernels(uri, items=rows.single_prefill(dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo,
                                                         rows.options(pos_encoding_mode, use_sliding_window, use_logits_soft_cap)))


def gen_batch_decode_module(dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode, use_sliding_window,
                            use_logits_soft_cap):
    """Of `BatchDecodeWithPagedKVCacheWrapper`."""
    uri = get_batch_decode_uri(dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode, use_sliding_window,
                               use_logits_soft_cap)
    given = rows.options(pos_encoding_mode, use_sliding_window, use_logits_soft_cap, "plan.")
    return JitSpecKernels(uri, items=rows.batch_decode(dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, given))


def gen_batch_prefill_module(backend, dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode,
                             use_sliding_window, use_logits_soft_cap, use_fp16_qk_reduction):
    """Of `BatchPrefillWithPagedKVCacheWrapper` and `BatchPrefillWithRaggedKVCacheWrapper` (an FP4 cache is paged alone)."""
    uri = get_batch_prefill_uri(backend, dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode,
                                use_sliding_window, use_logits_soft_cap, use_fp16_qk_reduction)
    given = rows.options(pos_encoding_mode, use_sliding_window, use_logits_soft_cap, "plan.")
    call = (dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, given)
    items = rows.paged_prefill(*call) + ([] if rows.short(dtype_kv) == "u8" else rows.ragged_prefill(*call))
    return JitSpecKernels(uri, items=items)


def _constructor(dtype_q, dtype_kv, head_dim_qk, head_dim_vo):
    return (f" init.head_dim_qk={head_dim_qk} init.head_dim_vo={head_dim_vo} init.q_data_type={rows.long(dtype_q)} "
            f"init.kv_data_type={rows.long(dtype_kv)}")


def gen_batch_prefill_attention_sink_module(backend, dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode,
                                            use_sliding_window):
    """Of `BatchAttentionWithAttentionSinkWrapper`."""
    uri = get_batch_prefill_attention_sink_uri(backend, dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo,
                                               pos_encoding_mode, use_sliding_window)
    given = rows.options(pos_encoding_mode, use_sliding_window, False, "plan.")
    init = _constructor(dtype_q, dtype_kv, head_dim_qk, head_dim_vo) + (" init.window_left=2" if use_sliding_window else "")
    return JitSpecKernels(uri, items=rows.paged_prefill(dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, given,
                                                        "BatchAttentionWithAttentionSinkWrapper", init, " sink=f32:4 sm_scale=0.2"))


def get_batch_prefill_bidirectional_ranges_uri(dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo) -> str:
    rest = get_batch_prefill_attention_sink_uri("fa2", dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, 0, False)
    return rest.replace("attention_sink_kv_cache", "bidirectional_ranges").rpartition("_use_swa")[0]


def gen_batch_prefill_bidirectional_ranges_module(dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo):
    """Of `BatchPrefillWithCausalBidirectionalRangesWrapper`."""
    uri = get_batch_prefill_bidirectional_ranges_uri(dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo)
    init = _constructor(dtype_q, dtype_kv, head_dim_qk, head_dim_vo)
    if rows.long(dtype_o) != rows.long(dtype_q):
        init += f" init.o_data_type={rows.long(dtype_o)}"
    return JitSpecKernels(uri, items=rows.paged_prefill(dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, "",
                                                        "BatchPrefillWithCausalBidirectionalRangesWrapper", init,
                                                        " bidirectional_ranges=i32:{rows}x2:randint(0,4)"))


def gen_batch_mla_module(backend, dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_ckv, head_dim_kpe, use_profiler):
    """Of `BatchMLAPagedAttentionWrapper`."""
    uri = get_batch_mla_uri(backend, dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_ckv, head_dim_kpe, use_profiler)
    return JitSpecKernels(uri, items=rows.mla(dtype_q, dtype_kv, head_dim_ckv, head_dim_kpe))


def _pod(prefix, batch, dtype_q, dtype_kv, dtype_o, head_dim, *rest):
    uri = get_pod_uri(dtype_q, dtype_kv, dtype_o, head_dim, *rest)
    return JitSpecKernels(prefix + uri, items=rows.pod(dtype_q, dtype_kv, dtype_o, head_dim, batch))


def gen_pod_module(dtype_q, dtype_kv, dtype_o, head_dim, pos_encoding_mode_p, use_sliding_window_p, use_logits_soft_cap_p,
                   use_fp16_qk_reduction, dtype_idx, pos_encoding_mode_d, use_sliding_window_d, use_logits_soft_cap_d):
    """Of `PODWithPagedKVCacheWrapper`."""
    return _pod("", False, dtype_q, dtype_kv, dtype_o, head_dim, pos_encoding_mode_p, use_sliding_window_p, use_logits_soft_cap_p,
                use_fp16_qk_reduction, dtype_idx, pos_encoding_mode_d, use_sliding_window_d, use_logits_soft_cap_d)


def gen_batch_pod_module(dtype_q, dtype_kv, dtype_o, head_dim, pos_encoding_mode_p, use_sliding_window_p, use_logits_soft_cap_p,
                         use_fp16_qk_reduction, dtype_idx, pos_encoding_mode_d, use_sliding_window_d, use_logits_soft_cap_d):
    """Of `BatchPODWithPagedKVCacheWrapper`."""
    return _pod("batch_", True, dtype_q, dtype_kv, dtype_o, head_dim, pos_encoding_mode_p, use_sliding_window_p, use_logits_soft_cap_p,
                use_fp16_qk_reduction, dtype_idx, pos_encoding_mode_d, use_sliding_window_d, use_logits_soft_cap_d)


def gen_batch_attention_module(dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode, use_logits_soft_cap,
                               use_profiler):
    """Of `BatchAttention`."""
    uri = get_batch_attention_uri(dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode,
                                  use_logits_soft_cap, use_profiler)
    cap = " plan.logits_soft_cap=5.0 logits_soft_cap=5.0" if use_logits_soft_cap else ""
    return JitSpecKernels(uri, items=rows.batch_attention(dtype_q, dtype_kv, head_dim_qk, head_dim_vo, cap))


_ELSEWHERE = "attention has one family of kernels a device; gen_batch_prefill_module and gen_batch_decode_module describe them"


def gen_fmha_cutlass_sm100a_module(dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode,
                                   use_sliding_window, use_logits_soft_cap):
    missing("fmha_cutlass_sm100a", _ELSEWHERE)


def get_fmha_cutlass_sm100a_uri(dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode, use_sliding_window,
                                use_logits_soft_cap) -> str:
    return "fmha_cutlass_sm100a"


def gen_fmha_v2_module(input_layout, input_dtype, output_dtype=None):
    missing("fmha_v2", _ELSEWHERE)


def gen_trtllm_fmha_v2_sm120_module():
    missing("trtllm_fmha_v2_sm120", _ELSEWHERE)


def gen_trtllm_gen_fmha_module():
    missing("fmha_gen", _ELSEWHERE)


def gen_cudnn_fmha_module():
    missing("fmha_cudnn_gen", _ELSEWHERE)
