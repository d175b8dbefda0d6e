# SPDX-License-Identifier: Apache-2.0
"""Times of single kernels, from torch's profiler."""
import os
import sys

from ._clock import Evict

_FLUSH_BYTES = 8 << 30  # of a GPU, before each call


class suppress_stdout_stderr:
    """`with suppress_stdout_stderr(): ...`: nothing is printed, by native code neither."""

    def __enter__(self):
        sys.stdout.flush()
        sys.stderr.flush()
        self._saved = [os.dup(1), os.dup(2)]
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.close(null)
        return self

    def __exit__(self, *_):
        sys.stdout.flush()
        sys.stderr.flush()
        for saved, number in zip(self._saved, (1, 2)):
            os.dup2(saved, number)
            os.close(saved)


class empty_suppress:
    """suppress_stdout_stderr that lets everything through."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def _profile(fn, count, flush):
    import torch

    gpu = torch.cuda.is_available()
    kinds = [torch.profiler.ProfilerActivity.CUDA if gpu else torch.profiler.ProfilerActivity.CPU]
    fn()
    with torch.profiler.profile(activities=kinds) as profiler:
        for _ in range(count):
            flush()
            fn()
        if gpu:
            torch.cuda.synchronize()
    return profiler


def _seconds(event):
    total = getattr(event, "self_device_time_total", 0) or event.self_cpu_time_total
    return total * 1e-6


def bench_kineto(fn, kernel_names, num_tests=30, suppress_kineto_output=False, trace_path=None, flush_l2=True, with_multiple_kernels=False):
    """Mean seconds of the kernels (on the CPU: torch ops) whose names contain `kernel_names`, over `num_tests` calls of fn().

    Args:
        kernel_names: a name, for a number; a tuple of names, for a tuple of numbers
        suppress_kineto_output: nothing is printed while fn runs
        trace_path: where to write the profiler's trace, for Chrome and Perfetto
        flush_l2: overwrite 8 GiB of a GPU's memory (on the CPU: twice its last-level cache) before each call
        with_multiple_kernels: a name may be that of several kernels, whose times are added

    Raises:
        ValueError: a name that no kernel has, or several without with_multiple_kernels
    """
    import torch

    names = (kernel_names,) if isinstance(kernel_names, str) else tuple(kernel_names)
    evict = (lambda: None) if not flush_l2 else Evict() if not torch.cuda.is_available() else (
        lambda: torch.empty(_FLUSH_BYTES // 4, dtype=torch.int32, device="cuda").zero_())
    with suppress_stdout_stderr() if suppress_kineto_output else empty_suppress():
        profiler = _profile(fn, num_tests, evict)
    if trace_path is not None:
        profiler.export_chrome_trace(trace_path)
    table, seconds = profiler.key_averages(), []
    for name in names:
        found = [e for e in table if name in e.key]
        if not found or len(found) > 1 and not with_multiple_kernels:
            raise ValueError(f"bench_kineto: {len(found)} kernels have {name!r} in their names, of: {sorted(e.key for e in table)}")
        seconds.append(sum(_seconds(e) / e.count for e in found))
    return seconds[0] if isinstance(kernel_names, str) else tuple(seconds)
