# SPDX-License-Identifier: Apache-2.0
"""What the tests of trace definitions share."""
from flashinfer import _make

OPS = _make.package.ops


class Fake:
    """What a definition needs of a tensor."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype


def executed(text):
    namespace = {}
    exec(compile(text, "<definition>", "exec"), namespace)
    return namespace
