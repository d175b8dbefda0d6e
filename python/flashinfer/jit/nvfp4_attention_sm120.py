# SPDX-License-Identifier: Apache-2.0
"""FP4 attention."""
from .kernels import family


def gen_nvfp4_attention_sm120_module():
    """Kernels of `nvfp4_attention_sm120_fwd`."""
    return family("nvfp4_attention_sm120", "nvfp4_attention_*")
