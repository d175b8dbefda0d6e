# SPDX-License-Identifier: Apache-2.0
"""Timing of calls, and how much work attention is. Times are milliseconds: on a GPU by its activity records (CUPTI), a graph or events,
on the CPU by the clock. `flashinfer bench` times the library's own cases beside the machine's limits, without Python in the way."""
import collections
import sys

from .. import _modules
from . import _cuda, _cupti
from ._candidate import candidate
from ._clock import aggregate_gpu_time_across_ranks, bench_time, cache_bytes, sleep_after_kernel_run, torch_if_loaded, warn_once
from ._fp8 import count_bytes, dequantize_fp8, per_block_cast_to_fp8, per_token_cast_to_fp8, quantize_fp8
from ._kineto import bench_kineto, empty_suppress, suppress_stdout_stderr
from ._work import (attention_flops, attention_flops_with_actual_seq_lens, attention_tb_per_sec, attention_tb_per_sec_with_actual_seq_lens,
                    attention_tflops_per_sec, attention_tflops_per_sec_with_actual_seq_lens)

__all__ = ["aggregate_gpu_time_across_ranks", "attention_flops", "attention_flops_with_actual_seq_lens", "attention_tb_per_sec",
           "attention_tb_per_sec_with_actual_seq_lens", "attention_tflops_per_sec", "attention_tflops_per_sec_with_actual_seq_lens",
           "bench_gpu_time", "bench_gpu_time_with_cuda_event", "bench_gpu_time_with_cudagraph", "bench_gpu_time_with_cupti", "bench_kineto",
           "bench_time", "calculate_rotation_count", "candidate", "count_bytes", "dequantize_fp8", "empty_suppress", "get_l2_cache_size",
           "per_block_cast_to_fp8", "per_token_cast_to_fp8", "quantize_fp8", "set_seed", "sleep_after_kernel_run", "suppress_stdout_stderr"]
__getattr__ = _modules.names_of(__name__)

# How calls are timed; the names of bench_gpu_time's arguments.
_How = collections.namedtuple("_How", "dry repeat dry_ms repeat_ms sleep cold aggregate_op")


def bench_gpu_time(fn, dry_run_iters=None, repeat_iters=None, dry_run_time_ms=25, repeat_time_ms=100, l2_flush=None,
                   l2_flush_size_mb=None, l2_flush_device=None, sleep_after_run=False, enable_cupti=False, use_cuda_graph=False,
                   num_iters_within_graph=10, input_args=(), input_kwargs=None, cold_l2_cache=True, aggregate_op=max, *, args=None,
                   num_iters=None):
    """Times fn(*input_args, **input_kwargs) and returns the milliseconds of each measured call; report their median.

    On a GPU a call takes, with `enable_cupti`, the time from the start of its first to the end of its last activity there; else, with
    `use_cuda_graph`, a share of the replay of a graph of `num_iters_within_graph` calls; else the time between two events. On the CPU,
    and for arguments without tensors on a GPU, it takes what the clock says, and a warning says once that CUPTI and graphs are not used.

    Args:
        dry_run_iters, repeat_iters: unmeasured and measured calls (replays); as many as take `dry_run_time_ms` and `repeat_time_ms`
        l2_flush, l2_flush_size_mb, l2_flush_device: deprecated; l2_flush replaces cold_l2_cache
        sleep_after_run: sleep five times a call's time after each, at most a second
        cold_l2_cache: each call finds its arguments in memory: caches are overwritten before it; calls of a graph use copies in turn
        aggregate_op: reduces each measured call over the ranks of torch.distributed
        args, num_iters: other names of input_args and repeat_iters

    Raises:
        ValueError: counts below 0 (dry) or 1; a call without activity, or with other kernels than the first one (CUPTI)
    """
    input_args = input_args if args is None else tuple(args) if isinstance(args, (list, tuple)) else (args,)
    how = _how(l2_flush, l2_flush_size_mb, l2_flush_device, dry_run_iters, repeat_iters if num_iters is None else num_iters,
               dry_run_time_ms, repeat_time_ms, sleep_after_run, cold_l2_cache, aggregate_op)
    if not _cuda.on_gpu(input_args, input_kwargs):
        for used, name in ((enable_cupti, "CUPTI"), (use_cuda_graph, "a CUDA graph")):
            if used:
                warn_once(f"bench_gpu_time: {name} is not available here; calls are timed by the clock, between waits for the device")
        return bench_time(fn, how.dry, how.repeat, how.dry_ms, how.repeat_ms, how.sleep, input_args, input_kwargs, how.cold, aggregate_op)
    call = _cuda.Call(fn, input_args, input_kwargs)
    if enable_cupti:
        cupti, why_not = _cupti.module()
        if cupti:
            return _cupti.time_cupti("bench_gpu_time", cupti, call, how, use_cuda_graph)
        warn_once(f"bench_gpu_time: {why_not}; calls are timed by {'a CUDA graph' if use_cuda_graph else 'CUDA events'}")
    if use_cuda_graph:
        return _cuda.time_graph("bench_gpu_time", call, how, num_iters_within_graph)
    return _cuda.time_events("bench_gpu_time", call, how)


def _how(l2_flush, l2_flush_size_mb, l2_flush_device, dry, repeat, dry_ms, repeat_ms, sleep, cold, aggregate_op):
    if l2_flush is not None or l2_flush_size_mb is not None or l2_flush_device is not None:
        warn_once("l2_flush, l2_flush_size_mb and l2_flush_device are deprecated: cold_l2_cache says the same, and the size is measured",
                  DeprecationWarning)
        cold = cold if l2_flush is None else bool(l2_flush)
    return _How(dry, repeat, dry_ms, repeat_ms, sleep, cold, aggregate_op)


def bench_gpu_time_with_cuda_event(fn, dry_run_iters=None, repeat_iters=None, dry_run_time_ms=25, repeat_time_ms=100, l2_flush=None,
                                   l2_flush_size_mb=None, l2_flush_device=None, sleep_after_run=False, input_args=(), input_kwargs=None,
                                   cold_l2_cache=True, aggregate_op=max):
    """bench_gpu_time without CUPTI and graphs."""
    return bench_gpu_time(fn, dry_run_iters, repeat_iters, dry_run_time_ms, repeat_time_ms, l2_flush, l2_flush_size_mb, l2_flush_device,
                          sleep_after_run, False, False, 10, input_args, input_kwargs, cold_l2_cache, aggregate_op)


def bench_gpu_time_with_cudagraph(fn, dry_run_iters=None, repeat_iters=None, dry_run_time_ms=25, repeat_time_ms=100,
                                  num_iters_within_graph=10, l2_flush=None, l2_flush_size_mb=None, l2_flush_device=None,
                                  sleep_after_run=False, input_args=(), input_kwargs=None, cold_l2_cache=True, aggregate_op=max):
    """bench_gpu_time(use_cuda_graph=True)."""
    return bench_gpu_time(fn, dry_run_iters, repeat_iters, dry_run_time_ms, repeat_time_ms, l2_flush, l2_flush_size_mb, l2_flush_device,
                          sleep_after_run, False, True, num_iters_within_graph, input_args, input_kwargs, cold_l2_cache, aggregate_op)


def bench_gpu_time_with_cupti(fn, dry_run_iters=None, repeat_iters=None, dry_run_time_ms=25, repeat_time_ms=100, l2_flush=None,
                              l2_flush_size_mb=None, l2_flush_device=None, sleep_after_run=False, use_cuda_graph=False, input_args=(),
                              input_kwargs=None, cold_l2_cache=True, aggregate_op=max):
    """bench_gpu_time(enable_cupti=True)."""
    return bench_gpu_time(fn, dry_run_iters, repeat_iters, dry_run_time_ms, repeat_time_ms, l2_flush, l2_flush_size_mb, l2_flush_device,
                          sleep_after_run, True, use_cuda_graph, 10, input_args, input_kwargs, cold_l2_cache, aggregate_op)


def get_l2_cache_size(device=None):
    """Bytes of the L2 cache of a GPU (default: torch's current one); of the CPU's last-level cache for "cpu" and where there is no GPU."""
    torch = torch_if_loaded()
    if torch is None or not torch.cuda.is_available() or str(device).startswith("cpu"):
        return cache_bytes()
    return _cuda.l2_bytes(device)


def calculate_rotation_count(tensors, device=None, min_rotations=2):
    """How many copies of `tensors`, used in turn, do not stay in the L2 cache: as many as are five times its size, at least
    `min_rotations`, at most 1024; 1 where the tensors are that large already, or have no bytes."""
    return _cuda.rotations(list(tensors), device, min_rotations, get_l2_cache_size(device))


def set_seed(random_seed):
    """Seeds random, numpy and torch (on all devices), those that are there."""
    import random

    random.seed(random_seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(random_seed)
    if torch_if_loaded() is not None:
        torch_if_loaded().manual_seed(random_seed)
