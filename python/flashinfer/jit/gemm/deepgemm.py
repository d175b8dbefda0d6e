# SPDX-License-Identifier: Apache-2.0
"""Products in FlashInfer's DeepGEMM form."""
from ..kernels import family


def gen_deepgemm_sm100_module():
    """Kernels of the `*_deepgemm_*` functions."""
    return family("deepgemm_sm100", "*deepgemm*")
