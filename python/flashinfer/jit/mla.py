# SPDX-License-Identifier: Apache-2.0
"""Multi-head latent attention."""
from .kernels import family, missing


def gen_mla_module():
    """Kernels of `BatchMLAPagedAttentionWrapper`; `gen_batch_mla_module` chooses dtypes."""
    return family("mla", "BatchMLAPagedAttentionWrapper.run")


def gen_sparse_mla_sm120_module():
    """Not available."""
    missing("sparse_mla_sm120", "use gen_mla_module, whose kernels run on every device")


def gen_sparse_mla_nvfp4_sm120_module():
    """Not available."""
    missing("sparse_mla_sm120", "use gen_mla_module, whose kernels run on every device")


def gen_sparse_mla_nvfp4_sm120_tile_module():
    """Not available."""
    missing("sparse_mla_sm120", "use gen_mla_module, whose kernels run on every device")


def gen_sparse_mla_dsv4_nvfp4_cache_ops_module():
    """Not available."""
    missing("sparse_mla_dsv4_nvfp4_cache_ops", "use gen_mla_module, whose kernels run on every device")
