# SPDX-License-Identifier: Apache-2.0
"""FP4 caches."""
from .kernels import family


def gen_fp4_kv_quantization_module():
    """Kernels of `nvfp4_kv_quantize` and `nvfp4_quantize_paged_kv_cache`."""
    return family("fp4_kv_quant", "nvfp4_kv_quantize", "nvfp4_quantize_paged_kv_cache")
