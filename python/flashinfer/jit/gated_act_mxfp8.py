# SPDX-License-Identifier: Apache-2.0
"""Gated activations that quantise."""
from .kernels import family


def gen_gated_act_mxfp8_module():
    """Kernels of `silu_and_mul_mxfp8_quantize`."""
    return family("gated_act_mxfp8_sm10x", "silu_and_mul_mxfp8_quantize*")
