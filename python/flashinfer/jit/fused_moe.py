# SPDX-License-Identifier: Apache-2.0
"""Mixtures of experts."""
from .. import _modules
from .kernels import family

__getattr__ = _modules.refusing(__name__, "gen_alphamoe_fused_router_module gen_alphamoe_nvfp4_sm100_module gen_alphamoe_sm100_module gen_humming_moe_utils_module")


def gen_cutlass_fused_moe_module(nvcc_flags, device_arch, use_fast_build=False, module_name=None):
    """Kernels of `cutlass_fused_moe`; the flags choose nothing, kernels are compiled for the device of a call."""
    return family(f"{module_name or 'fused_moe_' + device_arch}", "cutlass_fused_moe*", "moe_gemm_*")


def gen_cutlass_fused_moe_sm89_module(use_fast_build=False):
    """As `gen_cutlass_fused_moe_module`."""
    return family("fused_moe_89", "cutlass_fused_moe*", "moe_gemm_*")


def gen_cutlass_fused_moe_sm90_module(use_fast_build=False):
    """As `gen_cutlass_fused_moe_module`."""
    return family("fused_moe_90", "cutlass_fused_moe*", "moe_gemm_*")


def gen_cutlass_fused_moe_sm100_module(use_fast_build=False):
    """As `gen_cutlass_fused_moe_module`."""
    return family("fused_moe_100", "cutlass_fused_moe*", "moe_gemm_*")


def gen_cutlass_fused_moe_sm103_module(use_fast_build=False):
    """As `gen_cutlass_fused_moe_module`."""
    return family("fused_moe_103", "cutlass_fused_moe*", "moe_gemm_*")


def gen_cutlass_fused_moe_sm120_module(use_fast_build=False):
    """As `gen_cutlass_fused_moe_module`."""
    return family("fused_moe_120", "cutlass_fused_moe*", "moe_gemm_*")


def gen_trtllm_gen_fused_moe_sm100_module(enable_rubin=False):
    """Kernels of the `trtllm_*_moe` functions."""
    return family("fused_moe_trtllm_sm100", "trtllm_*moe")


def gen_trtllm_gen_routing_module():
    """Kernels of `trtllm_gen_routing`."""
    return family("trtllm_gen_routing", "trtllm_gen_routing", "moe_routing")
