# SPDX-License-Identifier: Apache-2.0
"""Hyper-connections."""
from .kernels import family


def gen_mhc_module():
    """Kernels of `flashinfer.mhc`."""
    return family("mhc", "mhc_*")
