# SPDX-License-Identifier: Apache-2.0
"""Permutation of tokens to experts."""
from .kernels import missing


def gen_moe_utils_module():
    """Not available."""
    missing("moe_utils", "the mixtures of experts permute tokens themselves (gen_cutlass_fused_moe_module)")
