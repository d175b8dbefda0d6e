# SPDX-License-Identifier: Apache-2.0
"""The names of attention's modules: every choice that a module is for, so that equal names mean equal modules."""
from ..utils import file_name, filename_safe_dtype_map_kv


def _dtypes(dtype_q, dtype_kv, dtype_o, dtype_idx=None):
    idx = "" if dtype_idx is None else f"_dtype_idx_{file_name(dtype_idx)}"
    return f"dtype_q_{file_name(dtype_q)}_dtype_kv_{filename_safe_dtype_map_kv(dtype_kv)}_dtype_o_{file_name(dtype_o)}{idx}"


def _dims(head_dim_qk, head_dim_vo):
    return f"head_dim_qk_{head_dim_qk}_head_dim_vo_{head_dim_vo}"


def _options(pos_encoding_mode, use_sliding_window, use_logits_soft_cap):
    return f"posenc_{pos_encoding_mode}_use_swa_{use_sliding_window}_use_logits_cap_{use_logits_soft_cap}"


def _end(backend):
    return "_sm90" if backend == "fa3" else ""


def get_single_decode_uri(dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, pos_encoding_mode, use_sliding_window,
                          use_logits_soft_cap) -> str:
    return (f"single_decode_with_kv_cache_{_dtypes(dtype_q, dtype_kv, dtype_o)}_{_dims(head_dim_qk, head_dim_vo)}_"
            f"{_options(pos_encoding_mode, use_sliding_window, use_logits_soft_cap)}")


def get_single_prefill_uri(backend, dtype_q, dtype_kv, dtype_o, head_dim_qk, head_dim_vo, pos_encoding_mode, use_sliding_window,
                           use_logits_soft_cap, use_fp16_qk_reduction) -> str:
    return (f"single_prefill_with_kv_cache_{_dtypes(dtype_q, dtype_kv, dtype_o)}_{_dims(head_dim_qk, head_dim_vo)}_"
            f"{_options(pos_encoding_mode, use_sliding_window, use_logits_soft_cap)}_f16qk_{use_fp16_qk_reduction}{_end(backend)}")


def get_batch_decode_uri(dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode, use_sliding_window,
                         use_logits_soft_cap) -> str:
    return (f"batch_decode_with_kv_cache_{_dtypes(dtype_q, dtype_kv, dtype_o, dtype_idx)}_{_dims(head_dim_qk, head_dim_vo)}_"
            f"{_options(pos_encoding_mode, use_sliding_window, use_logits_soft_cap)}")


def get_batch_prefill_uri(backend, dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode,
                          use_sliding_window, use_logits_soft_cap, use_fp16_qk_reduction) -> str:
    return (f"batch_prefill_with_kv_cache_{_dtypes(dtype_q, dtype_kv, dtype_o, dtype_idx)}_{_dims(head_dim_qk, head_dim_vo)}_"
            f"{_options(pos_encoding_mode, use_sliding_window, use_logits_soft_cap)}_f16qk_{use_fp16_qk_reduction}{_end(backend)}")


def get_batch_prefill_attention_sink_uri(backend, dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode,
                                         use_sliding_window) -> str:
    del pos_encoding_mode
    return (f"batch_prefill_with_attention_sink_kv_cache_{_dtypes(dtype_q, dtype_kv, dtype_o, dtype_idx)}_"
            f"{_dims(head_dim_qk, head_dim_vo)}_use_swa_{use_sliding_window}_{_end(backend)}")


def get_batch_mla_uri(backend, dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_ckv, head_dim_kpe, use_profiler) -> str:
    return (f"batch_mla_attention_{_dtypes(dtype_q, dtype_kv, dtype_o, dtype_idx)}_head_dim_ckv_{head_dim_ckv}_head_dim_kpe_"
            f"{head_dim_kpe}_profiler_{use_profiler}_planabi2{_end(backend)}")


def _pod(dtype_q, dtype_kv, dtype_o, head_dim, pos_p, window_p, cap_p, fp16_qk, dtype_idx, pos_d, window_d, cap_d):
    return (f"{_dtypes(dtype_q, dtype_kv, dtype_o)}_head_dim_{head_dim}_posenc_p_{pos_p}_use_swa_p_{window_p}_use_logits_cap_p_{cap_p}_"
            f"posenc_d_{pos_d}_use_swa_d_{window_d}_use_logits_cap_d_{cap_d}_dtype_idx_{file_name(dtype_idx)}_f16qk_{fp16_qk}")


def get_pod_uri(dtype_q, dtype_kv, dtype_o, head_dim, pos_encoding_mode_p, use_sliding_window_p, use_logits_soft_cap_p,
                use_fp16_qk_reduction, dtype_idx, pos_encoding_mode_d, use_sliding_window_d, use_logits_soft_cap_d) -> str:
    return "pod_with_kv_cache_" + _pod(dtype_q, dtype_kv, dtype_o, head_dim, pos_encoding_mode_p, use_sliding_window_p,
                                       use_logits_soft_cap_p, use_fp16_qk_reduction, dtype_idx, pos_encoding_mode_d, use_sliding_window_d,
                                       use_logits_soft_cap_d)


def get_batch_attention_uri(dtype_q, dtype_kv, dtype_o, dtype_idx, head_dim_qk, head_dim_vo, pos_encoding_mode, use_logits_soft_cap,
                            use_profiler) -> str:
    return (f"batch_attention_with_kv_cache_{_dtypes(dtype_q, dtype_kv, dtype_o, dtype_idx)}_{_dims(head_dim_qk, head_dim_vo)}_"
            f"posenc_{pos_encoding_mode}_use_logits_soft_cap_{str(use_logits_soft_cap).lower()}_use_profiler_{str(use_profiler).lower()}")
