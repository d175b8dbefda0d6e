# SPDX-License-Identifier: Apache-2.0
"""FP4 quantisation."""
from .kernels import family


def gen_fp4_quantization_module(nvcc_flags, device_arch):
    """Kernels of the FP4 quantisers; the flags choose nothing, kernels are compiled for the device of a call."""
    return family(f"fp4_quantization_{device_arch}", "*fp4_quantize", "*fp4_batched_quantize", "e2m1_and_ufp8sf_scale_to_float")


def gen_fp4_quantization_sm90_module():
    """As `gen_fp4_quantization_module`."""
    return family("fp4_quantization_90", "*fp4_quantize", "*fp4_batched_quantize", "e2m1_and_ufp8sf_scale_to_float")


def gen_fp4_quantization_sm100_module():
    """As `gen_fp4_quantization_module`."""
    return family("fp4_quantization_100", "*fp4_quantize", "*fp4_batched_quantize", "e2m1_and_ufp8sf_scale_to_float")


def gen_fp4_quantization_sm103_module():
    """As `gen_fp4_quantization_module`."""
    return family("fp4_quantization_103", "*fp4_quantize", "*fp4_batched_quantize", "e2m1_and_ufp8sf_scale_to_float")


def gen_fp4_quantization_sm107_module():
    """As `gen_fp4_quantization_module`."""
    return family("fp4_quantization_107", "*fp4_quantize", "*fp4_batched_quantize", "e2m1_and_ufp8sf_scale_to_float")


def gen_fp4_quantization_sm110_module():
    """As `gen_fp4_quantization_module`."""
    return family("fp4_quantization_110", "*fp4_quantize", "*fp4_batched_quantize", "e2m1_and_ufp8sf_scale_to_float")


def gen_fp4_quantization_sm120_module():
    """As `gen_fp4_quantization_module`."""
    return family("fp4_quantization_120", "*fp4_quantize", "*fp4_batched_quantize", "e2m1_and_ufp8sf_scale_to_float")


def gen_fp4_quantization_sm120f_module():
    """As `gen_fp4_quantization_module`."""
    return family("fp4_quantization_120f", "*fp4_quantize", "*fp4_batched_quantize", "e2m1_and_ufp8sf_scale_to_float")


def gen_fp4_quantization_sm121_module():
    """As `gen_fp4_quantization_module`."""
    return family("fp4_quantization_121", "*fp4_quantize", "*fp4_batched_quantize", "e2m1_and_ufp8sf_scale_to_float")
