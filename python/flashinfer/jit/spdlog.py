# SPDX-License-Identifier: Apache-2.0
"""The C++ log."""
from .kernels import missing


def gen_spdlog_module():
    """Not available."""
    missing("spdlog", "the library has its own log (FLASHINFER_LOGLEVEL)")
