# SPDX-License-Identifier: Apache-2.0
"""Packed bits and quantisation."""
from .kernels import family


def gen_quantization_module():
    """Kernels of `packbits` and `segment_packbits`."""
    return family("quantization", "packbits", "segment_packbits")
