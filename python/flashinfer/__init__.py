# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's ops on NVIDIA GPUs and plain CPUs: attention, GEMM, norms, RoPE, sampling and more, with a log, a recorder and a
replayer. Functions and classes are made from the library's registry when this package is imported."""
from . import _beside

_beside.check()

from . import api_logging  # first: it reads what the environment says of the log
from . import _make, _modules, _native, utils
from .fi_trace import fi_trace
from .context import get_num_threads, num_threads, set_num_threads
from .utils import (next_positive_power_of_2, supports_gated_residual_next_rmsnorm, supports_gated_residual_rmsnorm,
                    supports_rmsnorm_sigmoid_gate)

__version__ = _native.version()
_modules.install()
globals().update(_make.package.exports)
__all__ = ["__version__", "fi_trace", "get_num_threads", "next_positive_power_of_2", "num_threads", "set_num_threads",
           "supports_gated_residual_next_rmsnorm", "supports_gated_residual_rmsnorm", "supports_rmsnorm_sigmoid_gate",
           *_make.package.exports]


def __getattr__(name):
    """Names and modules that not every program needs, made when they are first named."""
    if name in _modules.listed(__name__):
        import sys

        return _modules.resolve(__name__, name, sys._getframe(1))
    if name in ("__git_commit__", "__git_version__"):
        return _native.commit()
    if not name.startswith("_") and (name in _modules.MODULES or _modules.is_file(f"{__name__}.{name}")):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
