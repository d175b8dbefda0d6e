# SPDX-License-Identifier: Apache-2.0
"""Matrix products."""
from ..kernels import family
from ..._op import Literal

_BF16 = Literal("torch.bfloat16")


def gen_gemm_module():
    """Kernels of `SegmentGEMMWrapper.run`, `bmm_fp8`."""
    return family("gemm", "SegmentGEMMWrapper.run", "bmm_fp8")


def gen_gemm_sm90_module():
    """Kernels of `SegmentGEMMWrapper.run`."""
    return family("gemm_sm90", "SegmentGEMMWrapper.run")


def gen_gemm_sm100_module():
    """Kernels of `gemm_fp8_nt_*`, `group_gemm_*`."""
    return family("gemm_sm100", "gemm_fp8_nt_*", "group_gemm_*")


def gen_gemm_sm120_module():
    """Kernels of `gemm_fp8_nt_*`, `group_gemm_*`."""
    return family("gemm_sm120", "gemm_fp8_nt_*", "group_gemm_*")


def gen_gemm_sm100_module_cutlass_fp4():
    """Kernels of `mm_fp4`."""
    return family("fp4_gemm_cutlass", "mm_fp4")


def gen_gemm_sm103_module_cutlass_fp4():
    """Kernels of `mm_fp4`."""
    return family("fp4_gemm_cutlass_sm103", "mm_fp4")


def gen_gemm_sm120_module_cutlass_fp4():
    """Kernels of `mm_fp4`."""
    return family("fp4_gemm_cutlass_sm120", "mm_fp4")


def gen_gemm_sm100_module_cutlass_fp8():
    """Kernels of `mm_fp8`, `bmm_fp8`."""
    return family("fp8_gemm_cutlass", "mm_fp8", "bmm_fp8")


def gen_gemm_sm100_module_cutlass_bf16():
    """Kernels of `mm_bf16`, `bmm_bf16`."""
    return family("bf16_gemm_cutlass", "mm_bf16", "bmm_bf16")


def gen_gemm_sm100_module_cutlass_mxfp8():
    """Kernels of `*mm_mxfp8`."""
    return family("mxfp8_gemm_cutlass", "*mm_mxfp8")


def gen_gemm_sm120_module_cutlass_mxfp8():
    """Kernels of `*mm_mxfp8`."""
    return family("mxfp8_gemm_cutlass_sm120", "*mm_mxfp8")


def gen_gemm_sm100_module_cutlass_nvfp4_svdquant():
    """Kernels of `*svdquant*`."""
    return family("nvfp4_svdquant_gemm_cutlass", "*svdquant*")


def gen_mm_bf16_cublaslt_module():
    """Kernels of `mm_bf16`, `bmm_bf16`."""
    return family("mm_bf16_cublaslt", "mm_bf16", "bmm_bf16")


def gen_tgv_gemm_sm10x_module(dtype=_BF16, use_sm_100f=False):
    """Kernels of `mm_bf16`."""
    return family("tgv_gemm", "mm_bf16")


def gen_trtllm_gen_gemm_module(enable_rubin=False):
    """Kernels of `mm_fp4`, `mm_fp8`."""
    return family("trtllm_gemm", "mm_fp4", "mm_fp8")


def gen_trtllm_low_latency_gemm_module(enable_rubin=False):
    """Kernels of `mm_fp8`, `prepare_low_latency_gemm_weights`."""
    return family("trtllm_low_latency_gemm", "mm_fp8", "prepare_low_latency_gemm_weights")
