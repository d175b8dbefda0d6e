# SPDX-License-Identifier: Apache-2.0
"""Timing by the CPU's monotonic clock, with a flush of its caches; what all ways of timing share."""
import ctypes
import functools
import glob
import sys
import time
import warnings

_warned = set()


def warn_once(message, category=UserWarning):
    """A warning at the first call with this message, shown at the first caller outside the package's timing functions."""
    if message not in _warned:
        _warned.add(message)
        frame, level = sys._getframe(1), 2
        while frame.f_back is not None and __name__.rpartition(".")[0] == frame.f_globals.get("__package__"):
            frame, level = frame.f_back, level + 1
        warnings.warn(message, category, stacklevel=level)


def torch_if_loaded():
    return sys.modules.get("torch")


def wait_for_gpu():
    """What waits until a GPU is idle; does nothing where there is none in use."""
    torch = torch_if_loaded()
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.synchronize
    return lambda: None


def cache_bytes():
    """The machine's largest cache (sysfs); 32 MB when unknown."""
    sizes = []
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        with open(path) as f:
            text = f.read().strip()
        if text[:-1].isdigit():
            sizes.append(int(text[:-1]) << {"K": 10, "M": 20}.get(text[-1], 0))
    return max(sizes, default=32 << 20)


@functools.lru_cache(maxsize=None)
def _buffer(size):
    return ctypes.create_string_buffer(size)


class Evict:
    """Writes twice the largest cache, so that the next call finds its arguments in memory. The memory is kept for later timings."""

    def __init__(self):
        self._bytes = 2 * cache_bytes()
        self._buffer = _buffer(self._bytes)
        self._value = 0

    def __call__(self):
        self._value ^= 1
        ctypes.memset(self._buffer, self._value, self._bytes)


def sleep_after_kernel_run(execution_time):
    """Lets a chip that slows down when hot recover: five times `execution_time` (milliseconds), at most a second."""
    time.sleep(0.01 if execution_time == float("inf") else min(execution_time * 5e-3, 1.0))


def aggregate_gpu_time_across_ranks(x, op=max):
    """`op` of every rank's `x`, element by element where x is a list; x itself without torch.distributed or with one rank."""
    torch = torch_if_loaded()
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return x
    ranks = [None] * torch.distributed.get_world_size()
    if len(ranks) == 1:
        return x
    torch.distributed.all_gather_object(ranks, x)
    return [op(column) for column in zip(*ranks)] if isinstance(x, (list, tuple)) else op(ranks)


def iterations(function, dry, repeat, estimate, dry_time_ms, repeat_time_ms):
    """(dry, measured) counts: those given, else what fits the time budgets at `estimate` milliseconds a call, at least one."""
    for name, count, least in (("dry_run_iters", dry, 0), ("repeat_iters", repeat, 1)):
        if count is not None and count < least:
            raise ValueError(f"{function}: {name} is {count}, but must be at least {least}")
    estimate = max(1e-4, estimate)
    return (max(1, int(dry_time_ms / estimate)) if dry is None else dry,
            max(1, int(repeat_time_ms / estimate)) if repeat is None else repeat)


def bench_time(fn, dry_run_iters=None, repeat_iters=None, dry_run_time_ms=25, repeat_time_ms=100, sleep_after_run=False, input_args=(),
               input_kwargs=None, cold_cache=True, aggregate_op=max):
    """Times fn(*input_args, **input_kwargs) and returns the milliseconds of each repetition; report their median.

    Without given counts as many calls are made, first unmeasured and then measured, as take `dry_run_time_ms` and `repeat_time_ms` of
    the function's own time (at least one). The first call, which may compile kernels, is never measured. `cold_cache` writes twice the
    largest cache before each call. With torch.distributed, `aggregate_op` reduces each repetition over the ranks.
    """
    iterations("bench_time", dry_run_iters, repeat_iters, 1, 1, 1)
    kwargs = input_kwargs or {}
    wait, evict = wait_for_gpu(), Evict() if cold_cache else lambda: None

    def one():
        evict()
        wait()
        start = time.perf_counter_ns()
        fn(*input_args, **kwargs)
        wait()
        return (time.perf_counter_ns() - start) * 1e-6

    fn(*input_args, **kwargs)
    if dry_run_iters is None or repeat_iters is None or sleep_after_run:
        estimate = aggregate_gpu_time_across_ranks(min(one() for _ in range(3)), aggregate_op)
    else:
        estimate = 1.0  # both counts are given
    dry, repeat = iterations("bench_time", dry_run_iters, repeat_iters, estimate, dry_run_time_ms, repeat_time_ms)

    def timed():
        elapsed = one()
        if sleep_after_run:
            sleep_after_kernel_run(estimate)
        return elapsed

    for _ in range(dry):
        timed()
    return aggregate_gpu_time_across_ranks([timed() for _ in range(repeat)], aggregate_op)
