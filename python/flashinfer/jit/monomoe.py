# SPDX-License-Identifier: Apache-2.0
"""The single-kernel mixture of experts."""
from .kernels import missing


def gen_monomoe_module():
    """Not available."""
    missing("monomoe", "use gen_cutlass_fused_moe_module")


def get_monomoe_uri() -> str:
    return "monomoe"


def load_monomoe_module():
    """Not available."""
    return gen_monomoe_module()
