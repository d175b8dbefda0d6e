# SPDX-License-Identifier: Apache-2.0
"""Kernels of CuTe-DSL, of which this library has none."""
from .spec import JitSpec


class JitSpecCuteDsl(JitSpec):
    """NotImplementedError: kernels written in CuTe-DSL are not compiled here."""

    def __init__(self, module_name, kernel_name, compile_fn, source_sha256):
        raise NotImplementedError("JitSpecCuteDsl: kernels written in CuTe-DSL are not compiled here; gen_jit_spec compiles CUDA sources")

    is_compiled = False

    def get_library_path(self):
        raise NotImplementedError

    def build(self):
        raise NotImplementedError

    def load(self):
        raise NotImplementedError


def cute_dsl_cache_disabled() -> bool:
    """True: there is no cache of such kernels."""
    return True
