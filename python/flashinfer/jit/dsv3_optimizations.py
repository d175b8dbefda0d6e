# SPDX-License-Identifier: Apache-2.0
"""Small products and routing of DeepSeek-V3."""
from .kernels import family


def gen_concat_mla_module():
    """Kernels of `concat_mla_k`."""
    return family("concat_mla", "concat_mla_k")


def gen_dsv3_router_gemm_module():
    """Kernels of `mm_M1_16_K7168_N256` and the like."""
    return family("dsv3_router_gemm", "mm_M1_16_*")


def gen_dsv3_fused_routing_module(backend="default"):
    """Kernels of `fused_topk_deepseek`."""
    return family("dsv3_fused_routing", "fused_topk_deepseek")
