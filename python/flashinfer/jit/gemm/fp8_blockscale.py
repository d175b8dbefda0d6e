# SPDX-License-Identifier: Apache-2.0
"""FP8 products with block scales."""
from ..kernels import family


def gen_fp8_blockscale_gemm_sm90_module(use_fast_build=False):
    """Kernels of `fp8_blockscale_gemm_sm90`."""
    return family("fp8_blockscale_gemm_90", "fp8_blockscale_gemm_sm90")
