# SPDX-License-Identifier: Apache-2.0
"""Calls of the library's JIT (flashinfer/ffi/tvm/jit.cc): values go and come as JSON."""
import json
import os

from .. import _native

# What the library reads once and keeps: at the first call of an op, or here. A change of one of them makes it read all again.
_VARIABLES = ("FLASHINFER_WORKSPACE_BASE", "HOME", "FLASHINFER_AOT_DIR", "FLASHINFER_DISABLE_JIT", "FLASHINFER_NVCC_THREADS",
              "FLASHINFER_JIT_DEBUG", "FLASHINFER_JIT_VERBOSE", "FLASHINFER_JIT_LINEINFO", "FLASHINFER_CXX", "CXX", "FLASHINFER_NVCC",
              "CUDA_HOME", "CUDA_PATH", "FLASHINFER_CXX_LAUNCHER", "FLASHINFER_EXTRA_CFLAGS", "FLASHINFER_EXTRA_CUDAFLAGS",
              "FLASHINFER_EXTRA_LDFLAGS", "MAX_JOBS", "FLASHINFER_CUDA_ARCH_LIST", "PATH")
_seen = [_native.environment.get(name) for name in _VARIABLES]


def _follow_environment():
    """Programs set os.environ after the import; the library reads its variables once."""
    global _seen
    now = [os.environ.get(name) for name in _VARIABLES]
    if _seen != now:
        _seen = now
        _native.function("jit.reset")()


def call(name, *args):
    """The result of "flashinfer.jit.<name>"; dicts go as JSON."""
    _follow_environment()
    plain = [json.dumps(a) if isinstance(a, dict) else a for a in args]
    return json.loads(str(_native.function("jit." + name)(*plain)))


def jit_disabled():
    return os.environ.get("FLASHINFER_DISABLE_JIT") == "1"
