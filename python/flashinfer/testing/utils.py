# SPDX-License-Identifier: Apache-2.0
"""Timing of calls, and how much work attention is. Times are milliseconds, on the CPU by the clock, and on a GPU between two waits for
it. `flashinfer bench` times the library's own cases beside the machine's limits, without Python in the way."""
import ctypes
import glob
import time
import warnings

from .. import _modules, _op
from ._fp8 import count_bytes, dequantize_fp8, per_block_cast_to_fp8, per_token_cast_to_fp8, quantize_fp8

__all__ = ["attention_flops", "attention_flops_with_actual_seq_lens", "attention_tb_per_sec", "attention_tb_per_sec_with_actual_seq_lens",
           "attention_tflops_per_sec", "attention_tflops_per_sec_with_actual_seq_lens", "bench_gpu_time", "bench_gpu_time_with_cuda_event",
           "bench_gpu_time_with_cudagraph", "bench_gpu_time_with_cupti", "bench_time", "count_bytes", "dequantize_fp8",
           "per_block_cast_to_fp8", "per_token_cast_to_fp8", "quantize_fp8", "set_seed", "sleep_after_kernel_run"]
__getattr__ = _modules.names_of(__name__)

_warned = set()


def _warn_once(message, category=UserWarning):
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, category, stacklevel=4)


def _torch():
    import sys

    return sys.modules.get("torch")


def _default_dtype():
    """bfloat16 that prints as torch's, whether torch is there or not."""
    return _op.Literal("torch.bfloat16")


# ---- timing ----
def _wait_for_gpu():
    """What waits until a GPU is idle; does nothing where there is none in use."""
    torch = _torch()
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.synchronize
    return lambda: None


def _cache_bytes():
    """The machine's largest cache."""
    sizes = [32 << 20]
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        with open(path) as f:
            text = f.read().strip()
        if text[:-1].isdigit():
            sizes.append(int(text[:-1]) << {"K": 10, "M": 20}.get(text[-1], 0))
    return max(sizes) if len(sizes) == 1 else max(sizes[1:])


class _Evict:
    """Writes twice the largest cache, so that the next call finds its arguments in memory."""

    def __init__(self):
        self._bytes = 2 * _cache_bytes()
        self._buffer = ctypes.create_string_buffer(self._bytes)
        self._value = 0

    def __call__(self):
        self._value ^= 1
        ctypes.memset(self._buffer, self._value, self._bytes)


def _aggregated(times, aggregate_op):
    """Over the ranks of torch.distributed, iteration by iteration."""
    torch = _torch()
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return times
    ranks = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(ranks, times)
    return [aggregate_op(column) for column in zip(*ranks)]


def bench_time(fn, dry_run_iters=None, repeat_iters=None, dry_run_time_ms=25, repeat_time_ms=100, sleep_after_run=False, input_args=(),
               input_kwargs=None, cold_cache=True, aggregate_op=max):
    """Times fn(*input_args, **input_kwargs) and returns the milliseconds of each repetition; report their median.

    Without given counts as many calls are made, first unmeasured and then measured, as take `dry_run_time_ms` and `repeat_time_ms` of
    the function's own time (at least one). The first call, which may compile kernels, is never measured. `cold_cache` writes twice the
    largest cache before each call. With torch.distributed, `aggregate_op` reduces each repetition over the ranks.
    """
    for name, count in (("dry_run_iters", dry_run_iters), ("repeat_iters", repeat_iters)):
        if count is not None and count < (1 if name == "repeat_iters" else 0):
            raise ValueError(f"bench_time: {name} is {count}, but must be at least {1 if name == 'repeat_iters' else 0}")
    kwargs = input_kwargs or {}
    wait, evict = _wait_for_gpu(), _Evict() if cold_cache else lambda: None

    def one():
        evict()
        wait()
        start = time.perf_counter_ns()
        fn(*input_args, **kwargs)
        wait()
        elapsed = (time.perf_counter_ns() - start) * 1e-6
        if sleep_after_run:
            sleep_after_kernel_run(elapsed)
        return elapsed

    fn(*input_args, **kwargs)
    estimate = max(1e-4, min(one() for _ in range(3)))
    for _ in range(max(1, int(dry_run_time_ms / estimate)) if dry_run_iters is None else dry_run_iters):
        one()
    times = [one() for _ in range(max(1, int(repeat_time_ms / estimate)) if repeat_iters is None else repeat_iters)]
    return _aggregated(times, aggregate_op)


def _bench_gpu_time(fn, dry_run_iters, repeat_iters, dry_run_time_ms, repeat_time_ms, l2_flush, l2_flush_size_mb, l2_flush_device,
                    sleep_after_run, input_args, input_kwargs, cold_l2_cache, aggregate_op, means=()):
    if l2_flush is not None or l2_flush_size_mb is not None or l2_flush_device is not None:
        _warn_once("l2_flush, l2_flush_size_mb and l2_flush_device are deprecated: cold_l2_cache says the same, and the size is measured",
                   DeprecationWarning)
        cold_l2_cache = cold_l2_cache if l2_flush is None else bool(l2_flush)
    for name in means:
        _warn_once(f"bench_gpu_time: {name} is not available here; calls are timed by the clock, between waits for the device")
    return bench_time(fn, dry_run_iters, repeat_iters, dry_run_time_ms, repeat_time_ms, sleep_after_run, input_args, input_kwargs,
                      cold_l2_cache, aggregate_op)


def bench_gpu_time(fn, dry_run_iters=None, repeat_iters=None, dry_run_time_ms=25, repeat_time_ms=100, l2_flush=None,
                   l2_flush_size_mb=None, l2_flush_device=None, sleep_after_run=False, enable_cupti=False, use_cuda_graph=False,
                   num_iters_within_graph=10, input_args=(), input_kwargs=None, cold_l2_cache=True, aggregate_op=max):
    """bench_time under its older name; on the CPU too. CUPTI and CUDA graphs are not used (a warning says so)."""
    means = (["CUPTI"] if enable_cupti else []) + (["a CUDA graph"] if use_cuda_graph else [])
    return _bench_gpu_time(fn, dry_run_iters, repeat_iters, dry_run_time_ms, repeat_time_ms, l2_flush, l2_flush_size_mb, l2_flush_device,
                           sleep_after_run, input_args, input_kwargs, cold_l2_cache, aggregate_op, means)


def bench_gpu_time_with_cuda_event(fn, dry_run_iters=None, repeat_iters=None, dry_run_time_ms=25, repeat_time_ms=100, l2_flush=None,
                                   l2_flush_size_mb=None, l2_flush_device=None, sleep_after_run=False, input_args=(), input_kwargs=None,
                                   cold_l2_cache=True, aggregate_op=max):
    """bench_gpu_time without CUPTI and graphs."""
    return _bench_gpu_time(fn, dry_run_iters, repeat_iters, dry_run_time_ms, repeat_time_ms, l2_flush, l2_flush_size_mb, l2_flush_device,
                           sleep_after_run, input_args, input_kwargs, cold_l2_cache, aggregate_op)


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


def sleep_after_kernel_run(execution_time):
    """Lets a chip that slows down when hot recover: five times `execution_time` (milliseconds), at most a second."""
    time.sleep(0.01 if execution_time == float("inf") else min(execution_time * 5e-3, 1.0))


def set_seed(random_seed):
    """Seeds random, numpy and torch (on all devices), those that are there."""
    import random
    import sys

    random.seed(random_seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(random_seed)
    if _torch() is not None:
        _torch().manual_seed(random_seed)


# ---- work of attention ----
def _numbers(lengths):
    return [int(n) for n in lengths]


def _flops(rows, causal, head_dim_qk, head_dim_vo, num_qo_heads):
    """Two operations for each of q k^T and p v, per query head and pair of positions; rows are (queries, keys)."""
    pairs = 0
    for queries, keys in rows:
        if causal and queries > keys:
            raise ValueError(f"qo_seqlen is {queries}, but must not be above kv_seqlen {keys} for causal attention")
        # Twice the pairs below the diagonal, counted as the area: q * (2 kv - q).
        pairs += queries * (2 * keys - queries) if causal else 2 * queries * keys
    return pairs * num_qo_heads * (head_dim_qk + head_dim_vo)


def _item_bytes(dtype):
    name = str(dtype).removeprefix("torch.").removeprefix("<class 'numpy.").removesuffix("'>")
    bits = {"float4_e2m1fn_x2": 8, "bool": 8}.get(name) or next(
        (n for n in (64, 32, 16, 8) if name.endswith(str(n)) or name.startswith(f"float{n}_")), None)
    if bits is None:
        raise TypeError(f"element type {dtype} is not known")
    return bits // 8


def _bytes(queries, keys, head_dim_qk, head_dim_vo, num_qo_heads, num_kv_heads, q_dtype, k_dtype, v_dtype, o_dtype):
    return (queries * num_qo_heads * (head_dim_qk * _item_bytes(q_dtype) + head_dim_vo * _item_bytes(o_dtype))
            + keys * num_kv_heads * (head_dim_qk * _item_bytes(k_dtype) + head_dim_vo * _item_bytes(v_dtype)))


def attention_flops(batch_size, qo_seqlen, kv_seqlen, head_dim_qk, head_dim_vo, num_qo_heads, causal):
    """Operations of attention over `batch_size` equal requests; the causal half is counted as area."""
    return _flops([(qo_seqlen, kv_seqlen)] * batch_size, causal, head_dim_qk, head_dim_vo, num_qo_heads)


def attention_flops_with_actual_seq_lens(actual_seq_lens_q, actual_seq_lens_kv, head_dim_qk, head_dim_vo, num_qo_heads, causal):
    """attention_flops for requests of the given lengths (tensors or lists)."""
    return _flops(zip(_numbers(actual_seq_lens_q), _numbers(actual_seq_lens_kv)), causal, head_dim_qk, head_dim_vo, num_qo_heads)


def attention_tflops_per_sec(batch_size, qo_seqlen, kv_seqlen, head_dim_qk, head_dim_vo, num_qo_heads, causal, time):
    """attention_flops in `time` milliseconds, as 1e12 operations per second."""
    return attention_flops(batch_size, qo_seqlen, kv_seqlen, head_dim_qk, head_dim_vo, num_qo_heads, causal) / time / 1e9


def attention_tflops_per_sec_with_actual_seq_lens(actual_seq_lens_q, actual_seq_lens_kv, head_dim_qk, head_dim_vo, num_qo_heads, causal, ms):
    """The same for requests of the given lengths."""
    return attention_flops_with_actual_seq_lens(actual_seq_lens_q, actual_seq_lens_kv, head_dim_qk, head_dim_vo, num_qo_heads, causal) / ms / 1e9


def attention_tb_per_sec(batch_size, qo_seqlen, kv_seqlen, head_dim_qk, head_dim_vo, num_qo_heads, num_kv_heads, time,
                         q_dtype=_default_dtype(), k_dtype=_default_dtype(), v_dtype=_default_dtype(), o_dtype=_default_dtype()):
    """Bytes of q, k, v and the output, each once, in `time` milliseconds, as 1e12 bytes per second."""
    return _bytes(batch_size * qo_seqlen, batch_size * kv_seqlen, head_dim_qk, head_dim_vo, num_qo_heads, num_kv_heads, q_dtype, k_dtype,
                  v_dtype, o_dtype) / time / 1e9


def attention_tb_per_sec_with_actual_seq_lens(actual_seq_lens_q, actual_seq_lens_kv, head_dim_qk, head_dim_vo, num_qo_heads, num_kv_heads,
                                              time, q_dtype=_default_dtype(), k_dtype=_default_dtype(), v_dtype=_default_dtype(),
                                              o_dtype=_default_dtype()):
    """The same for requests of the given lengths."""
    return _bytes(sum(_numbers(actual_seq_lens_q)), sum(_numbers(actual_seq_lens_kv)), head_dim_qk, head_dim_vo, num_qo_heads, num_kv_heads,
                  q_dtype, k_dtype, v_dtype, o_dtype) / time / 1e9
