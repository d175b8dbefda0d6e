# SPDX-License-Identifier: Apache-2.0
"""Merging attention states."""
from .kernels import family


def gen_cascade_module():
    """Kernels of `merge_state`, `merge_state_in_place`, `merge_states`."""
    return family("cascade", "merge_state", "merge_state_in_place", "merge_states")
