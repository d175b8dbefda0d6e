# SPDX-License-Identifier: Apache-2.0
"""Sums of chunks."""
from ..kernels import missing


def gen_seq_chunk_cumsum_module():
    """Not available."""
    missing("mamba_seq_chunk_cumsum", "the state-space ops compute them themselves")
