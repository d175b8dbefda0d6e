# SPDX-License-Identifier: Apache-2.0
"""Top-k."""
from .kernels import family


def gen_topk_module():
    """Kernels of `flashinfer.topk`."""
    return family("topk", "@topk")
