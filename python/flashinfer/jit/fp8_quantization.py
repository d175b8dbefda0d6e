# SPDX-License-Identifier: Apache-2.0
"""MXFP8 quantisation."""
from .kernels import family


def gen_mxfp8_quantization_sm100_module():
    """Kernels of `mxfp8_quantize`."""
    return family("mxfp8_quantization_sm100", "mxfp8_quantize", "mxfp8_dequantize_host", "mxfp8_grouped_quantize")
