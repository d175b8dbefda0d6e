# SPDX-License-Identifier: Apache-2.0
"""Routing by hash."""
from .kernels import family


def gen_hash_topk_module():
    """Kernels of `hash_topk`."""
    return family("hash_topk", "hash_topk*")
