# SPDX-License-Identifier: Apache-2.0
"""FP4 caches."""
from .kernels import family


def gen_fp4_kv_dequantization_module():
    """Kernels of `nvfp4_kv_dequantize` and its paged form."""
    return family("fp4_kv_dequant", "nvfp4_kv_dequantize*")
