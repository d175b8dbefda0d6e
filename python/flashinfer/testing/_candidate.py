# SPDX-License-Identifier: Apache-2.0
"""Which implementation computes the calls of a thread."""
import contextlib

from .. import _native


@contextlib.contextmanager
def candidate(name):
    """`with candidate("reference"): ...`: calls of this thread within the block use only the implementation of this name (docs/ops.md has
    each op's): "reference" computes in double precision. The empty name: the library chooses.

    Raises (at a call):
        NotImplementedError: the op has none of this name, or it does not support the call
    """
    before = str(_native.function("python.force_candidate")(name))
    try:
        yield
    finally:
        _native.function("python.force_candidate")(before)
