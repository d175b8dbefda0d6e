# SPDX-License-Identifier: Apache-2.0
"""Samplers."""
from .kernels import family


def gen_sampling_module():
    """Kernels of `flashinfer.sampling`."""
    return family("sampling", "@sampling")
