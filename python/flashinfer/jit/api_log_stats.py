# SPDX-License-Identifier: Apache-2.0
"""Statistics of the log."""
from .kernels import missing


def gen_api_log_stats_module():
    """Not available."""
    missing("api_log_stats", "the library computes the statistics of FLASHINFER_LOGLEVEL=5 itself")
