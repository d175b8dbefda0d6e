# SPDX-License-Identifier: Apache-2.0
"""Products of few rows."""
from .kernels import family


def gen_tinygemm2_module():
    """Kernels of `tinygemm_bf16`."""
    return family("tinygemm2", "tinygemm_bf16")


def gen_tinygemm2_sm100_module():
    """As `gen_tinygemm2_module`."""
    return family("tinygemm2_sm100", "tinygemm_bf16")
