# SPDX-License-Identifier: Apache-2.0
"""autotune_v2: winners in a folder that the library manages, one file for each, read once."""
import contextlib
import dataclasses
import threading
from typing import Optional

from . import _files
from .autotuner import AutoTuner, _block, checked_overrides

_active = threading.local()


@dataclasses.dataclass(frozen=True)
class MeasurementPolicy:
    """How tactics are measured: all modes call them; `cold_l2`: from memory, not from caches. Winners of one policy do not count under another."""
    execution_mode: str = "auto"
    cold_l2: Optional[bool] = None

    def __post_init__(self):
        if self.execution_mode not in ("auto", "cuda_graph", "eager"):
            raise ValueError(f"execution_mode is {self.execution_mode!r}, but must be one of 'auto', 'cuda_graph', 'eager'")
        if self.cold_l2 not in (None, True, False):
            raise ValueError(f"cold_l2 is {self.cold_l2!r}, but must be None or a bool")

    @property
    def is_default(self):
        return self == MeasurementPolicy()

    def as_json(self):
        return {"execution_mode": self.execution_mode, "cold_l2": self.cold_l2}


@contextlib.contextmanager
def autotune_v2(mode="tune", persistent_cache=True, cache_root=None, measurement_policy=None, *, tuning_buckets=None, round_up=None,
                skip_ops=None):
    """`autotune` with a managed folder: `tune` measures what is not known, `replay` never measures. The folder stays in use after the
    block.

    Args:
        persistent_cache: keep winners on disk
        cache_root: the folder; None: FLASHINFER_AUTOTUNE_CACHE_DIR, or `autotune` in the kernel cache
        measurement_policy: a MeasurementPolicy
        others: as of `autotune`

    Raises:
        ValueError: another mode, no buckets
        TypeError: persistent_cache is no bool, measurement_policy of another type
        RuntimeError: within another block of autotune_v2
    """
    if mode not in ("tune", "replay"):
        raise ValueError(f"mode is {mode!r}, but must be 'tune' or 'replay'")
    if not isinstance(persistent_cache, bool):
        raise TypeError(f"persistent_cache must be a bool, but is {type(persistent_cache).__name__}")
    if measurement_policy is not None and not isinstance(measurement_policy, MeasurementPolicy):
        raise TypeError(f"measurement_policy must be a MeasurementPolicy, but is {type(measurement_policy).__name__}")
    if getattr(_active, "on", False):
        raise RuntimeError("autotune_v2 cannot be nested")
    tuning_buckets, skip_ops = checked_overrides(tuning_buckets, skip_ops)
    tuner = AutoTuner.get()
    if persistent_cache:
        tuner._managed = _files.Store(_files.default_root() if cache_root is None else cache_root, measurement_policy)
    _active.on = True
    try:
        with _block(tuner, mode == "tune", tuning_buckets=tuning_buckets, round_up=round_up, skip_ops=skip_ops,
                    cold_l2=None if measurement_policy is None else measurement_policy.cold_l2):
            yield
    finally:
        _active.on = False


def autotune_v2_reload():
    """Forgets winners in memory and reads the managed folder again: what other processes found counts then."""
    tuner = AutoTuner.get()
    with tuner._lock:
        tuner.profiling_cache.clear()
        tuner._ranked.clear()
        if tuner._managed is not None:
            tuner._managed.load()
