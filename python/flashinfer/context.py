# SPDX-License-Identifier: Apache-2.0
"""How many threads calls use."""
import contextlib

from . import _native


def set_num_threads(threads):
    """Calls made from this thread use `threads` threads from now on; None or 0: as many as the process may use
    (or ``FLASHINFER_NUM_THREADS``). Results do not depend on it.

    Raises:
        ValueError: fewer than 0 or more than 4096
    """
    _native.function("python.set_threads")(int(threads or 0))


def get_num_threads():
    """How many threads calls made from this thread use."""
    return int(_native.function("python.threads")())


@contextlib.contextmanager
def num_threads(threads):
    """`with num_threads(1): ...`: calls of this thread within the block use `threads` threads."""
    before = _native.function("python.set_threads")(int(threads or 0))
    try:
        yield
    finally:
        set_num_threads(before)
