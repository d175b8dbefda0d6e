# SPDX-License-Identifier: Apache-2.0
"""Packing MLA caches."""
from .kernels import family


def gen_mla_kv_pack_fp8_module():
    """Kernels of `concat_mla_kv_quant_fp8`."""
    return family("mla_kv_pack_fp8", "concat_mla_kv_quant_fp8")
