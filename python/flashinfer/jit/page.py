# SPDX-License-Identifier: Apache-2.0
"""Paged caches."""
from .kernels import family


def gen_page_module():
    """Kernels of `flashinfer.page`."""
    return family("page", "@page")
