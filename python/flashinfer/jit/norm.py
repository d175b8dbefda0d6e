# SPDX-License-Identifier: Apache-2.0
"""Norms."""
from .kernels import family


def gen_norm_module():
    """Kernels of `flashinfer.norm`."""
    return family("norm", "@norm")
