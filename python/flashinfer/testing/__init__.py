# SPDX-License-Identifier: Apache-2.0
"""Timing of calls, how much work attention is, and FP8 with block scales for references: the names of `flashinfer.testing.utils`."""
from .utils import *  # noqa: F401,F403
from .utils import __all__  # noqa: F401
