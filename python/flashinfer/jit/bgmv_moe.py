# SPDX-License-Identifier: Apache-2.0
"""LoRA in mixtures of experts."""
from .kernels import family


def gen_bgmv_moe_module():
    """Kernels of the `bgmv_moe` functions."""
    return family("bgmv_moe", "bgmv_moe*")


def get_bgmv_moe_uri() -> str:
    return "bgmv_moe"


def load_bgmv_moe_module():
    """The module, compiled when it is not."""
    return gen_bgmv_moe_module().build_and_load()
