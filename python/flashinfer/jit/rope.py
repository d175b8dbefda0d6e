# SPDX-License-Identifier: Apache-2.0
"""Rotary embeddings."""
from .kernels import family


def gen_rope_module():
    """Kernels of `flashinfer.rope`."""
    return family("rope", "@rope")
