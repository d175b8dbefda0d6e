# SPDX-License-Identifier: Apache-2.0
"""Timing by the GPU's own activity records, through the package cupti-python (13 or newer)."""
import collections
import importlib.metadata

from . import _cuda
from ._clock import aggregate_gpu_time_across_ranks, iterations, sleep_after_kernel_run

_BUFFER_BYTES = 8 << 20

# An activity of the GPU. `what` is the same in each iteration: name, and for copies and sets their kind, bytes and value.
Activity = collections.namedtuple("Activity", "what start end correlation")


def module():
    """(cupti, "") or (None, why it is not there)."""
    try:
        version = importlib.metadata.version("cupti-python")
        if int(version.split(".")[0]) < 13:
            return None, f"cupti-python is {version}, but must be 13 or newer"
        from cupti import cupti
    except (ImportError, ValueError, OSError) as e:
        return None, f"cupti-python cannot be imported ({e})"
    return cupti, ""


class _Records:
    """What CUPTI delivered between enable() and the flush."""

    def __init__(self, cupti):
        self.cupti, self.launches, self.activities = cupti, [], []
        kinds = cupti.ActivityKind
        self.enabled = [kinds.RUNTIME, kinds.DRIVER, kinds.CONCURRENT_KERNEL, kinds.MEMCPY, kinds.MEMSET]

    def __enter__(self):
        self.cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._take)
        for kind in self.enabled:
            self.cupti.activity_enable(kind)
        return self

    def __exit__(self, *_):
        self.cupti.activity_flush_all(0)
        for kind in self.enabled:
            self.cupti.activity_disable(kind)

    def _take(self, records):
        kinds = self.cupti.ActivityKind
        for r in records:
            if r.kind in (kinds.RUNTIME, kinds.DRIVER):
                self.launches.append((r.start, r.correlation_id))
            elif r.kind == kinds.CONCURRENT_KERNEL:
                self.activities.append(Activity((r.name,), r.start, r.end, r.correlation_id))
            elif r.kind == kinds.MEMCPY:
                self.activities.append(Activity(("memcpy", int(r.copy_kind), r.bytes), r.start, r.end, r.correlation_id))
            elif r.kind == kinds.MEMSET:
                self.activities.append(Activity(("memset", r.bytes, r.value), r.start, r.end, r.correlation_id))


def spans(windows, launches, activities):
    """Milliseconds of each (begin, end) of `windows`, times of the CPU in nanoseconds: from the start of the first to the end of the last
    activity whose launch lies in it.

    Raises:
        ValueError: a window without activities, or with others than the first one
    """
    by_correlation = collections.defaultdict(list)
    for a in activities:
        by_correlation[a.correlation].append(a)
    times, first = [], None
    for i, (begin, end) in enumerate(windows):
        inside = {c for at, c in launches if begin <= at <= end}
        mine = [a for c in inside for a in by_correlation[c]]
        if not mine:
            raise ValueError(f"No kernel activities recorded for iteration {i}")
        what = {a.what for a in mine}
        first = what if first is None else first
        if what != first:
            raise ValueError(f"Inconsistent kernel names: iteration {i} has {sorted(map(str, what))}, iteration 0 {sorted(map(str, first))}")
        times.append((max(a.end for a in mine) - min(a.start for a in mine)) * 1e-6)
    return times


def time_cupti(name, cupti, call, how, use_graph):
    """Milliseconds that the GPU spends on each measured call."""
    import torch

    one = _cuda.captured([call]).replay if use_graph else call
    flush = _cuda.Flush() if how.cold else lambda: None
    one()
    estimate = _cuda._estimate(one, flush, how.aggregate_op)
    dry, repeat = iterations(name, how.dry, how.repeat, estimate, how.dry_ms, how.repeat_ms)
    for _ in range(dry):
        flush()
        one()
    torch.cuda.synchronize()
    windows = []
    with _Records(cupti) as records:
        for _ in range(repeat):
            flush()
            torch.cuda.synchronize()
            begin = cupti.get_timestamp()
            one()
            windows.append((begin, cupti.get_timestamp()))
            torch.cuda.synchronize()
            if how.sleep:
                sleep_after_kernel_run(estimate)
    return aggregate_gpu_time_across_ranks(spans(windows, records.launches, records.activities), how.aggregate_op)
