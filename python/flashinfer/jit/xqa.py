# SPDX-License-Identifier: Apache-2.0
"""Decode attention in FlashInfer's XQA form."""
from .. import _modules
from .kernels import family

__getattr__ = _modules.refusing(__name__, "ragged_q_changes_build swap_ab_eligible")


def gen_xqa_module(input_dtype, kv_cache_dtype, page_size, head_dim, head_group_ratio, use_sliding_window, output_dtype, q_seq_len=1, use_ragged_q=False):
    """Kernels of `xqa` and `trtllm_batch_decode_with_kv_cache`."""
    return family("xqa", "xqa", "xqa_batch_decode_with_kv_cache", "trtllm_batch_decode_with_kv_cache")


def gen_xqa_module_mla(input_dtype, kv_cache_dtype, page_size, head_dim, head_group_ratio, use_sliding_window=False):
    """Kernels of MLA decode."""
    return family("xqa_mla", "xqa_mla", "trtllm_batch_decode_with_kv_cache_mla", "BatchMLAPagedAttentionWrapper.run")
